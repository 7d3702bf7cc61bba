"""Commands in processes of their own, each forked off one that has read closlab's code already.

Reading it takes half a second of processor time, and tests run some hundred commands. All else is
as if somebody had typed them: a process with arguments, environment, folder, descriptors and exit
code of its own. Tests of how a command begins, or is interrupted, start one as a user does.
"""

from __future__ import annotations

import gc
import json
import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from contextlib import suppress
from functools import cache
from importlib import import_module
from pathlib import Path
from select import select
from typing import Any

from lab.engines.sim.control import SimulatedSwitches
from lab.machine import program
from lab.machine.paths import ROOT
from lab.runs.provenance import commit
from lab.scenario import catalogue
from tests import costs

READ = (
    *(f"lab.commands.{file.stem}" for file in (ROOT / "lab" / "commands").glob("[a-z]*.py")),
    *(
        "lab.engines.sim.engine",
        "lab.engines.mininet.engine",
        "views.report.page",
        "views.report.pdf",
    ),
    "switch.host",
)


class Ready:
    """The process that has read it all; it ends with whoever started it."""

    def __init__(self) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-m", __name__],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            bufsize=0,  # an answer read ahead is one that `select` does not see
            cwd=ROOT,
            start_new_session=True,  # a terminal's interrupt is for the tests
        )

    def run(
        self,
        words: Sequence[str],
        environment: Mapping[str, str],
        cwd: Path,
        timeout_s: float,
        module: str = "lab.cli",
    ) -> subprocess.CompletedProcess[str]:
        """Run a command, or what another module is as a program, to its end."""
        assert self._process.stdin is not None and self._process.stdout is not None
        with tempfile.TemporaryFile("w+") as out, tempfile.TemporaryFile("w+") as err:
            files = [f"/proc/{os.getpid()}/fd/{file.fileno()}" for file in (out, err)]
            asked = [module, list(words), dict(environment), str(cwd), files]
            self._process.stdin.write(json.dumps(asked).encode() + b"\n")
            self._process.stdin.flush()
            pid = self._answer()
            if not select([self._process.stdout], [], [], timeout_s)[0]:
                with suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
                self._answer()
                raise subprocess.TimeoutExpired(list(words), timeout_s)
            code, used_s = self._answer()
            costs.add(used_s)
            return subprocess.CompletedProcess(list(words), code, _text(out), _text(err))

    def _answer(self) -> Any:
        assert self._process.stdout is not None
        return json.loads(self._process.stdout.readline())


def _text(file: Any) -> str:
    file.seek(0)
    return str(file.read())


@cache
def ready() -> Ready:
    """The one of this process."""
    return Ready()


def serve() -> str:
    """Fork for each command that is asked for; in the process that is to run it, its module."""
    answers = os.dup(1)

    def tell(what: Any) -> None:
        os.write(answers, json.dumps(what).encode() + b"\n")

    while line := sys.stdin.buffer.readline():
        module, words, environment, folder, files = json.loads(line)
        pid = os.fork()
        if pid == 0:
            os.close(answers)
            for number, file in enumerate((os.devnull, *files)):
                os.dup2(os.open(file, os.O_RDWR), number)
            os.chdir(folder)
            os.environ.clear()
            os.environ.update(environment)
            sys.argv[:] = ["closlab", *words]
            return str(module)
        tell(pid)
        _, status, used = os.wait4(pid, 0)
        tell([os.waitstatus_to_exitcode(status), used.ru_utime + used.ru_stime])
    sys.exit()


if __name__ == "__main__":
    for name in READ:
        import_module(name)
    with tempfile.TemporaryDirectory() as folder:  # and so has the fabric's program in mind
        built = program.build(Path(folder))
        SimulatedSwitches(catalogue.load("hello").fabric().switches[:1], built).close()
    commit()  # and git has looked at the sources
    gc.freeze()  # what was read stays shared memory
    del sys.modules["__main__"].__file__  # as of one that began with these words:
    __spec__ = None
    sys.exit(import_module(serve()).main())
