"""How far a long piece of work is, on the terminal: its stages as they pass."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, SpinnerColumn, TextColumn

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
        with Progress(
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


class Stage:
    """A stage under way."""

    def __init__(self, progress: Progress, task: object, title: str) -> None:
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
