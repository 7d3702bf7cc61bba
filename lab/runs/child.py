"""An emulated run in a process of its own, for callers that want to stay what they are.

    caller ──request──► python -m lab.runs.child ── fork ──► process 1 of a sandbox
           ◄─progress──────────────┴──────────────────────────────┘
           ──SIGINT──► to all of them, as a terminal does

To make a sandbox takes a process out of the machine's network and mounts for good, and an ordinary
user may not do it where there are threads: so not in a notebook's process. Request, progress and
errors are lines of JSON. The child dies with the thread that waits for it, the sandbox with the
child.
"""

from __future__ import annotations

import json
import os
import select
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from contextlib import nullcontext, suppress
from dataclasses import asdict, field
from pathlib import Path
from typing import Any

from lab import errors
from lab.engines import RunOptions
from lab.errors import LabError, RunError
from lab.machine.paths import ROOT
from lab.machine.processes import die_with_parent
from lab.machine.stopped import telling_of_stopped
from lab.progress import Hear, HeardStages, Progress
from lab.runs.emulate import emulate
from lab.runs.run import INTERRUPTED, KEPT, check, keeping
from lab.scenario.model import Scenario
from params.data import Data

_LOOK_S = 0.1  # between two looks at whether to go on
_GRACE_S = 60.0  # that an interrupted run has to take everything down
_LAST_LINES = 20


def run_in_child(
    scenario: Scenario,
    options: RunOptions,
    hear: Hear,
    found: Callable[[str], object] = lambda _: None,
) -> int:
    """Run a scenario on Mininet; the exit code. ``hear`` breaks it off by a KeyboardInterrupt.

    ``found`` is given the name by which the lab is among the running ones, once it has one.
    """
    request = {
        "parent": os.getpid(),
        "scenario": scenario.model_dump(mode="json"),
        "options": asdict(options),
    }
    with tempfile.TemporaryFile() as said:
        child = subprocess.Popen(
            [sys.executable, "-m", "lab.runs.child"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=said,
            start_new_session=True,
            env={**os.environ, "PYTHONPATH": _path(os.environ.get("PYTHONPATH"))},
        )
        try:
            _ask(child, request)
            with telling_of_stopped():
                failure, is_ours = _follow(child, hear, found)
        finally:
            _signal(child, signal.SIGKILL)  # whatever is left of it
            code = child.wait()
        if failure is not None:
            raise failure
        if code == INTERRUPTED and not is_ours:
            is_kept = (options.out / KEPT[0]).exists()
            raise RunError(
                "somebody else ended the run: its processes were told to (SIGINT, SIGTERM, SIGHUP)",
                f"What was measured until then is in {options.out}." if is_kept else None,
            )
        if code != INTERRUPTED and not (options.out / KEPT[0]).exists():
            said.seek(0)
            last = said.read().decode(errors="replace").strip().splitlines()[-_LAST_LINES:]
            raise RunError("\n".join((f"the run came to nothing (exit code {code})", *last)))
        return code


def _path(given: str | None) -> str:
    """Where the child and its own find our packages, however this process did."""
    return os.pathsep.join(filter(None, (str(ROOT), given)))


def _ask(child: subprocess.Popen[bytes], request: dict[str, Any]) -> None:
    assert child.stdin is not None
    with suppress(BrokenPipeError), child.stdin:
        child.stdin.write(json.dumps(request, default=str).encode() + b"\n")


def _follow(
    child: subprocess.Popen[bytes], hear: Hear, found: Callable[[str], object]
) -> tuple[LabError | None, bool]:
    """Pass on what it tells, until it and all of its own have ended; what it failed by, and whether
    it was interrupted from here."""
    assert child.stdout is not None
    failure: LabError | None = None
    until: float | None = None  # when patience with one that was interrupted is over
    with child.stdout as stream:
        events = _Events(stream.fileno())
        while True:
            try:
                line = events.next()
                if line is None:
                    return failure, until is not None
                event = json.loads(line) if line else {}
                if "error" in event:
                    failure = _read_error(event["error"])
                if "lab" in event:
                    found(event["lab"])
                if until is None:
                    hear(Progress(*event["progress"]) if "progress" in event else None)
                elif time.monotonic() > until:
                    raise RunError("the run was interrupted, did not end, and was killed")
            except KeyboardInterrupt:
                if until is not None:
                    raise  # asked twice: at once
                until = time.monotonic() + _GRACE_S
                _signal(child, signal.SIGINT)


class _Events(Data, frozen=False):
    """What comes through a pipe, line by line."""

    _pipe: int
    _lines: list[bytes] = field(default_factory=lambda: [b""])  # the last is not whole yet

    def next(self) -> bytes | None:
        """The next line; an empty one if there is none by now, None if there will be none."""
        if len(self._lines) == 1:
            if not select.select([self._pipe], [], [], _LOOK_S)[0]:
                return b""
            read = os.read(self._pipe, 1 << 16)
            if not read:
                return None
            self._lines = (self._lines[0] + read).split(b"\n")
        return self._lines.pop(0) if len(self._lines) > 1 else b""


def _signal(child: subprocess.Popen[bytes], number: signal.Signals) -> None:
    """Reach it and process 1 of its sandbox, which are a process group."""
    with suppress(ProcessLookupError):
        os.killpg(child.pid, number)


def _read_error(event: dict[str, Any]) -> LabError:
    return getattr(errors, event["kind"], LabError)(event["message"], event["cure"])


# --- the child's side ----------------------------------------------------------------------------


def main() -> int:
    """What the child does: one run, told line by line."""
    signal.signal(signal.SIGINT, signal.default_int_handler)
    request = json.loads(sys.stdin.readline())
    die_with_parent()
    if os.getppid() != request["parent"]:
        return INTERRUPTED  # it died before the kernel was asked to tell
    tell = _teller()
    given = request["options"]
    paths = {name: given[name] and Path(given[name]) for name in ("out", "p4")}
    options = RunOptions(**given | paths)
    stages = HeardStages(lambda progress: progress and tell("progress", progress))
    try:
        check(options)  # again, as that finds Mininet for this process
        return emulate(
            Scenario.model_validate(request["scenario"]),
            options,
            stages,
            keeping(options, stages),
            lambda error: tell("error", _fields(error)),
            beside=lambda name: nullcontext(tell("lab", name)),
        )
    except LabError as error:
        tell("error", _fields(error))
        return 1
    except KeyboardInterrupt:
        return INTERRUPTED


def _teller() -> Callable[[str, object], None]:
    """Standard output is for what is told; whatever else is printed goes to standard error."""
    events = os.dup(1)
    os.dup2(2, 1)

    def tell(kind: str, content: object) -> None:
        os.write(events, json.dumps({kind: content}).encode() + b"\n")

    return tell


def _fields(error: LabError) -> dict[str, str | None]:
    return {"kind": type(error).__name__, "message": error.message, "cure": error.cure}


if __name__ == "__main__":
    sys.exit(main())
