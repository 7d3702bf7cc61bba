"""Better code for a run that goes on: the fabric program built quickly makes room for it.

A program that nobody ran before is built quickly, so that the run begins soon. Most runs are over
before it could be built as well as can be. Beside one that is not that is done, and its switches go
on with it between two slices. They do the same, so nothing that happens tells when.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from contextlib import suppress
from typing import Self

from lab.engines.sim.control import SimulatedSwitches
from lab.machine.paths import ROOT

_AFTER_S = 1.0  # about what it takes, so that at worst a run's end comes twice as late as it could
_END_S = 0.5  # what it then leaves half made is found later
_BUILD = """
import os, signal, sys
from pathlib import Path
from lab.machine.processes import die_with_parent
from switch.program import Program
die_with_parent()
signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))  # so that what is half made goes
os.nice(5)
Program.load(Path(sys.argv[1]).read_bytes())
"""


class Improvement:
    """The build beside a run; with the context it ends, done or not."""

    def __init__(self, switches: SimulatedSwitches) -> None:
        self._switches = switches
        self._is_wanted = switches.program.is_quick
        self._began = time.perf_counter()
        self._builder: subprocess.Popen[bytes] | None = None

    def look(self) -> None:
        """See to it: to be called now and then, when nothing is being simulated."""
        if not self._is_wanted:
            return
        if self._builder is None:
            if time.perf_counter() - self._began > _AFTER_S:
                self._builder = self._begin()
        elif self._builder.poll() is not None:
            self._is_wanted = False
            if self._builder.returncode == 0:
                self._switches.go_on_with(self._switches.program.built_well())

    def _begin(self) -> subprocess.Popen[bytes]:
        return subprocess.Popen(
            [sys.executable, "-c", _BUILD, str(self._switches.json.absolute())],
            cwd=ROOT,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self._builder is None or self._builder.poll() is not None:
            return
        for end in (signal.SIGTERM, signal.SIGKILL):  # it, and the compilers that it started
            os.killpg(self._builder.pid, end)
            with suppress(subprocess.TimeoutExpired):
                self._builder.wait(_END_S)
                return
