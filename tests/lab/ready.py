"""Commands in processes of their own, each forked off one that has read closlab's code already.

Reading it takes half a second of processor time, and tests run some hundred commands. All else is
as if somebody had typed them: a process with arguments, environment, folder, descriptors and exit
code of its own. Tests of how a command begins, or is interrupted, start one as a user does.
"""

from __future__ import annotations

import atexit
import ctypes
import gc
import json
import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from functools import cache
from importlib import import_module
from pathlib import Path
from select import select
from typing import Any, NoReturn

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


_SET_SUBREAPER = 36  # of prctl(2): orphans among its descendants become a process's own children
_libc = ctypes.CDLL(None, use_errno=True)


class Ready:
    """The process that has read it all, or some modules; it ends with whoever started it."""

    def __init__(self, *modules: str) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-m", __name__, *modules],
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
        assert self._process.stdout is not None
        with tempfile.TemporaryFile("w+") as out, tempfile.TemporaryFile("w+") as err:
            files = [os.devnull, *(_place(file.fileno()) for file in (out, err))]
            self._ask(module, words, environment, cwd, files)
            pid = self._answer()
            if not select([self._process.stdout], [], [], timeout_s)[0]:
                with suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
                self._answer()
                raise subprocess.TimeoutExpired(list(words), timeout_s)
            code, used_s = self._answer()
            costs.add(used_s)
            return subprocess.CompletedProcess(list(words), code, _text(out), _text(err))

    def start(
        self, words: Sequence[str], module: str = "lab.cli", **settings: Any
    ) -> subprocess.Popen[Any]:
        """Start one, with settings of ``subprocess.Popen``: a child of this very process."""
        return _Started(self, module, words, **settings)

    def adopt(
        self,
        module: str,
        words: Sequence[str],
        environment: Mapping[str, str],
        cwd: Path,
        files: Sequence[str],
    ) -> int:
        """Its process id, once it is this process's child."""
        _libc.prctl(_SET_SUBREAPER, 1, 0, 0, 0)
        try:
            self._ask(module, words, environment, cwd, files, is_orphan=True)
            pid = int(self._answer())
            self._answer()  # who forked it has ended
        finally:
            _libc.prctl(_SET_SUBREAPER, 0, 0, 0, 0)
        return pid

    def _ask(
        self,
        module: str,
        words: Sequence[str],
        environment: Mapping[str, str],
        cwd: Path,
        files: Sequence[str],
        *,
        is_orphan: bool = False,
    ) -> None:
        assert self._process.stdin is not None
        asked = [module, [*map(str, words)], dict(environment), str(cwd), files, is_orphan]
        self._process.stdin.write(json.dumps(asked).encode() + b"\n")
        self._process.stdin.flush()

    def _answer(self) -> Any:
        assert self._process.stdout is not None
        return json.loads(self._process.stdout.readline())


class _Started(subprocess.Popen[Any]):
    """A process as any other to who started it, but that it was forked off, not executed."""

    def __init__(self, off: Ready, module: str, words: Sequence[str], **settings: Any) -> None:
        self._off, self._module = off, module
        super().__init__(words, **settings)

    def _execute_child(self, words: Sequence[str], *settings: Any) -> None:
        """What `Popen` leaves to the system; the order of what it tells is Python's own."""
        starts_session = settings[-2]
        assert not starts_session, "it is in the session of the one it was forked off"
        cwd, environment = settings[4:6]
        pipes = settings[9:15]
        given = (pipes[0], pipes[3], pipes[5])
        self.pid = self._off.adopt(
            self._module,
            words,
            os.environ if environment is None else environment,
            Path.cwd() if cwd is None else cwd,
            [_place(number if fd < 0 else fd) for number, fd in enumerate(given)],
        )
        self._child_created = True
        self._close_pipe_fds(*pipes)  # type: ignore[attr-defined]


def _place(descriptor: int) -> str:
    """Where others find a file that this process has open."""
    return f"/proc/{os.getpid()}/fd/{descriptor}"


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
        module, words, environment, folder, files, is_orphan = json.loads(line)
        pid = os.fork()
        if pid == 0:
            _stand_in(words, environment, folder, files)
            if is_orphan:
                between = os.getpid()
                if pid := os.fork():
                    tell(pid)
                    os._exit(0)
                while os.getppid() == between:  # whose end may be a sign to what it runs
                    time.sleep(0.001)
            os.close(answers)
            return str(module)
        if not is_orphan:
            tell(pid)
        _, status, used = os.wait4(pid, 0)
        tell([os.waitstatus_to_exitcode(status), used.ru_utime + used.ru_stime])
    sys.exit()


def _stand_in(
    words: Sequence[str], environment: Mapping[str, str], folder: str, files: Sequence[str]
) -> None:
    """Be as if executed: its words, environment, folder and first three descriptors."""
    for number, file in enumerate(files):
        opened = os.open(file, os.O_WRONLY | os.O_APPEND if number else os.O_RDONLY)
        os.dup2(opened, number)
        os.close(opened)
    os.chdir(folder)
    os.environ.clear()
    os.environ.update(environment)
    sys.argv[:] = ["closlab", *words]


def end_of(main: Callable[[], object]) -> NoReturn:
    """Run it, and end as Python does, but for taking apart what was read, which takes longest."""
    try:
        code = main()
    except SystemExit as end:
        code = end.code
    if not isinstance(code, int | None):  # of which Python has something to say
        sys.exit(code)
    threading._shutdown()  # type: ignore[attr-defined] # waits for those that are no daemons
    atexit._run_exitfuncs()
    for stream in (sys.stdout, sys.stderr):
        if not stream.closed:
            stream.flush()
    os._exit(code or 0)


if __name__ == "__main__":
    for name in sys.argv[1:] or READ:
        import_module(name)
    if not sys.argv[1:]:
        with tempfile.TemporaryDirectory() as folder:  # and so has the fabric's program in mind
            built = program.build(Path(folder))
            SimulatedSwitches(catalogue.load("hello").fabric().switches[:1], built).close()
        commit()  # and git has looked at the sources
    gc.freeze()  # what was read stays shared memory
    del sys.modules["__main__"].__file__  # as of one that began with these words:
    __spec__ = None
    end_of(import_module(serve()).main)
