"""Where a call is carried out: a process that a server which has everything ready forks off.

It has its bounds, ends with the session or with whoever no longer wants it, and hands back what can
be said in JSON. What is wrong comes back as a `LabError`.
"""

from __future__ import annotations

import os
import signal
import tempfile
import threading
import time
import traceback
from collections.abc import Callable
from contextlib import suppress
from multiprocessing import get_context
from multiprocessing.connection import Connection
from multiprocessing.context import ForkServerContext, SpawnContext
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Any

from doors.assistant.bounds import Bounds, limit, wall_in
from lab.errors import LabError, of_the_machine
from lab.machine.parallel import without_main
from lab.machine.processes import die_with_parent

Answer = dict[str, Any]
Task = Callable[..., Answer]

_LOOK_S = 0.05  # between two looks at whether anybody still wants it
_READY = "doors.assistant.work"
_LONGEST = 60  # characters: a socket's path has 107, of which its name and folder take the rest


def _context() -> SpawnContext | ForkServerContext:
    """How a call's process is begun: where there is no place for a server's socket, anew."""
    if len(tempfile.gettempdir()) > _LONGEST:
        return get_context("spawn")
    context = get_context("forkserver")
    context.set_forkserver_preload([_READY])
    return context


class Cell:
    """Carries out calls, a few at a time."""

    def __init__(self, bounds: Bounds, folders: tuple[Path, ...], scratch: Path) -> None:
        self._bounds = bounds
        self._folders = (*folders, scratch)
        self._scratch = scratch
        self._context = _context()
        self._at_work: set[BaseProcess] = set()
        self._room = threading.BoundedSemaphore(bounds.at_once)
        self._lock = threading.Lock()
        self._is_over = False

    def call(self, task: Task, stop: threading.Event, **arguments: Any) -> Answer:
        """What comes of a task; it is ended when its time is over, or when nobody waits."""
        if not self._room.acquire(blocking=False):
            raise LabError(
                f"{self._bounds.at_once} calls are under way, and no more are carried out at once",
                "Ask again when one of them is answered.",
            )
        try:
            return self._carried_out(task, stop, arguments)
        finally:
            self._room.release()

    def _carried_out(self, task: Task, stop: threading.Event, arguments: Answer) -> Answer:
        mine, its = self._context.Pipe(duplex=False)
        task_and_room = (task, arguments, self._bounds, self._folders, self._scratch, its)
        process = self._context.Process(target=_work, args=task_and_room, daemon=True)
        with self._lock, without_main():
            if self._is_over:
                raise LabError("the session is over")
            process.start()
            self._at_work.add(process)
        its.close()
        try:
            return self._awaited(mine, stop)
        finally:
            process.kill()
            process.join()
            mine.close()
            with self._lock:
                self._at_work.discard(process)

    def _awaited(self, pipe: Connection, stop: threading.Event) -> Answer:
        until = time.monotonic() + self._bounds.seconds
        while not pipe.poll(_LOOK_S):
            if stop.is_set() or self._is_over:
                raise LabError("it was called off")
            if time.monotonic() > until:
                raise LabError(
                    f"it took longer than {self._bounds.seconds:g} s, and was ended",
                    "Ask for less: fewer hosts, fewer or smaller messages.",
                )
        try:
            failed, answer = pipe.recv()
        except EOFError:
            raise LabError(
                "the process that carried it out was killed", "Was there too little memory?"
            ) from None
        if failed:
            raise LabError(*answer)
        found: Answer = answer
        return found

    def close(self) -> None:
        """End whatever is under way."""
        with self._lock:
            self._is_over = True
            for process in self._at_work:
                process.kill()


def _work(
    task: Task,
    arguments: Answer,
    bounds: Bounds,
    folders: tuple[Path, ...],
    scratch: Path,
    pipe: Connection,
) -> None:
    """In the process itself."""
    die_with_parent()
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # a terminal's is for the server
    tempfile.tempdir = os.environ["TMPDIR"] = str(scratch)
    os.chdir(folders[0])  # what a scenario names is looked for there
    limit(bounds)
    wall_in(folders)
    answer = _outcome(task, {**arguments, "bounds": bounds})
    with suppress(OSError):  # nobody waits for it any more
        pipe.send(answer)


def _outcome(task: Task, arguments: Answer) -> tuple[bool, Any]:
    """Whether it failed; what came of it, or what is wrong and its cure."""
    try:
        return False, task(**arguments)
    except LabError as error:
        return True, (error.message, error.cure)
    except (MemoryError, SystemError, OSError, RuntimeError, ImportError) as error:
        known = of_the_machine(error)
        return True, (known.message, known.cure) if known else (f"it failed: {error}"[:500], None)
    except Exception as error:
        traceback.print_exc()
        return True, (f"it failed, a defect of closlab: {type(error).__name__}", None)
