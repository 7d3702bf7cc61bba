"""How far long work is: its stages as they pass, on the terminal or told to a function."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import NamedTuple

from rich import progress as bars
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, SpinnerColumn, TextColumn

_BAR_WIDTH = 14


class Stages:
    """The stages of a run: a moving line while one lasts, a plain line when it is over."""

    def __init__(self, console: Console) -> None:
        self.console = console
        self._under_way: Stage | None = None

    @contextmanager
    def __call__(self, title: str, total: int | None = None) -> Iterator[Stage]:
        """Show a stage for as long as the block lasts."""
        started = time.monotonic()
        columns = [SpinnerColumn(), TextColumn("{task.description}")]
        if total is not None:
            columns += [BarColumn(bar_width=_BAR_WIDTH), MofNCompleteColumn()]
        with bars.Progress(
            *columns,
            console=self.console,
            transient=True,
            disable=not self.console.is_terminal,
        ) as progress:
            stage = Stage(progress, progress.add_task(title, total=total), title)
            self._under_way = stage
            yield stage
        self._under_way = None
        took = time.monotonic() - started
        note = f"  {stage.note}" if stage.note else ""
        self.console.print(
            f"[green]✓[/] {title}{note} [dim]({took:.1f} s)[/]", highlight=False, soft_wrap=True
        )

    def still_waiting(self, what: str, waited_s: float) -> None:
        """Say for what a stage takes so long."""
        text = f"still waiting for {what}, {waited_s:.0f} s by now"
        if self._under_way is not None and self._under_way.is_watched:
            self._under_way.tell(text)
        else:
            self.console.print(text, highlight=False, soft_wrap=True)

    def caution(self, text: str) -> None:
        """Say, with rich's marks, what is amiss while it goes on."""
        self.console.print(text, soft_wrap=True)

    def warn(self, text: str) -> None:
        """Say at once what keeps it from going on."""
        self.console.print(f"closlab: {text}", highlight=False, soft_wrap=True, markup=False)


class Stage:
    """A stage under way."""

    def __init__(self, progress: bars.Progress, task: object, title: str) -> None:
        self._progress = progress
        self._task = task
        self._title = title
        self.note = ""

    @property
    def is_watched(self) -> bool:
        """Whether what it tells is shown to anybody."""
        return not self._progress.disable

    def tell(self, text: str) -> None:
        """Say how far it is, beside the title, where somebody watches."""
        self._progress.update(self._task, description=f"{self._title}  {text}")  # type: ignore[arg-type]

    def advance(self, _name: str = "") -> None:
        """One more of the stage's pieces is done."""
        self._progress.advance(self._task)  # type: ignore[arg-type]

    def look(self) -> None:
        """Nothing is new, but whoever watches may break it off."""


class Progress(NamedTuple):
    """How far a run or sweep is."""

    stage: str
    done: int | None = None  # of its pieces, where it has such
    total: int | None = None
    note: str = ""
    is_over: bool = False  # the stage is


Hear = Callable[[Progress | None], object]
"""Who is told; None: nothing is new. It may break off what it is told of by a KeyboardInterrupt."""


def until(cancel: threading.Event | None, progress: Callable[[Progress], object] | None) -> Hear:
    """Tell somebody how far it is, if somebody is to be told, until it is cancelled."""
    asked = False

    def hear(now: Progress | None) -> None:
        nonlocal asked
        if not asked and cancel is not None and cancel.is_set():
            asked = True  # once, or nothing could be concluded
            raise KeyboardInterrupt  # what engines know
        if progress is not None and now is not None:
            progress(now)

    return hear


class HeardStages(Stages):
    """Stages that a function hears of, and nobody sees."""

    def __init__(self, hear: Hear) -> None:
        super().__init__(Console(quiet=True))
        self._hear = hear

    @contextmanager
    def __call__(self, title: str, total: int | None = None) -> Iterator[Stage]:
        """Tell of a stage for as long as the block lasts."""
        stage = _HeardStage(self._hear, title, total)
        self._under_way = stage
        stage.tell("")
        yield stage
        self._under_way = None
        self._hear(Progress(title, stage.done, total, stage.note, is_over=True))

    def warn(self, text: str) -> None:
        """Have it heard of."""
        if self._under_way is not None:
            self._under_way.tell(text)


class _HeardStage(Stage):
    """One of them under way."""

    def __init__(self, hear: Hear, title: str, total: int | None) -> None:
        self._hear = hear
        self._title = title
        self._total = total
        self.done = None if total is None else 0
        self.note = ""

    @property
    def is_watched(self) -> bool:
        return True

    def tell(self, text: str) -> None:
        self._hear(Progress(self._title, self.done, self._total, text))

    def advance(self, _name: str = "") -> None:
        self.done = (self.done or 0) + 1
        self.tell("")

    def look(self) -> None:
        self._hear(None)
