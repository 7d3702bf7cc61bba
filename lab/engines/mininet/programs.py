"""Programs of others on the hosts: one on each, together, as a launcher of jobs starts them.

A host is a network namespace, in which a program is given a name for its machine too (a UTS
namespace), for launchers and communicators tell hosts apart by that, and an /etc/hosts of its own
(a mount namespace): by which plane names lead is settled when programs start, for each start anew.
All else is the machine's: files, users, processors. What several say is seen line by line, each
behind its host's name.
"""

from __future__ import annotations

import os
import selectors
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import IO

from lab.errors import LabError
from lab.machine.native_host import stretch_library
from lab.machine.processes import as_shells_tell
from lab.machine.scratch import at_our_end
from lab.machine.stopped import telling_of_stopped
from params.data import Data

INTERFACE = "eth0"  # by which they send, on every host
_GRACE_S = 3.0  # that programs have to end when they are told to
_CHUNK = 1 << 16
_RENDEZVOUS_PORT = 29500  # where torch.distributed meets by default
_NAMED = ("sh", "-c", 'mount --bind "$0" /etc/hosts && hostname "$1" && shift && exec "$@"')


class Task(Data):
    """A program and where it runs."""

    host: str
    words: tuple[str, ...]  # that start it, from where they are started
    environment: Mapping[str, str]
    is_plain: bool = False  # whether its lines are passed on as they are, without its host's name


class Ended(Data):
    """How programs ended."""

    code: int  # 0: all did well; else that of the first that did not
    failed: str | None  # where that was
    took_s: float  # until the last ended by itself
    by_signal: int = 0  # that ended it, if one did


def on_host(pid: int, host: str, names: Path, words: Sequence[str]) -> list[str]:
    """A command on a host, from inside the sandbox, with a file for its /etc/hosts."""
    apart = ("unshare", "--uts", "--mount")
    return ["mnexec", "-a", str(pid), *apart, *_NAMED, str(names), host, *words]


def environment(hosts: Sequence[str], rank: int, dilation: float, stretch: float) -> dict[str, str]:
    """What the program of a rank is told, in words that those of others know.

    Hosts are those of the ranks: one that has several is named as often, in a row.
    """
    return {
        **os.environ,
        "RANK": str(rank),
        "WORLD_SIZE": str(len(hosts)),
        "LOCAL_RANK": str(rank - hosts.index(hosts[rank])),
        "LOCAL_WORLD_SIZE": str(hosts.count(hosts[rank])),
        "MASTER_ADDR": hosts[0],
        "MASTER_PORT": str(_RENDEZVOUS_PORT),
        "GLOO_SOCKET_IFNAME": INTERFACE,
        "CLOSLAB_HOST": hosts[rank],
        "CLOSLAB_HOSTS": ",".join(dict.fromkeys(hosts)),
        "CLOSLAB_DILATION": f"{dilation:g}",
        **stretched(stretch),
    }


def stretched(times: float) -> dict[str, str]:
    """What makes a program compute as on a processor so many times slower."""
    if times == 1:
        return {}
    loaded = [str(stretch_library()), os.environ.get("LD_PRELOAD", "")]
    return {"CLOSLAB_STRETCH": f"{times:g}", "LD_PRELOAD": ":".join(filter(None, loaded))}


def run(tasks: Sequence[Task], happen: Callable[[float], float | None] = lambda _s: None) -> Ended:
    """Run programs to their end; if one fails, the others are ended.

    ``happen`` is called with the seconds since they began, and says at which it wants to be called
    again.
    """
    running: list[subprocess.Popen[bytes]] = []  # of each task; a host may have several
    code, failed = 0, None
    with selectors.DefaultSelector() as selector, ExitStack() as stack:
        stack.enter_context(telling_of_stopped())
        executor = stack.enter_context(at_our_end())
        stack.callback(_finish, selector, running)
        began = time.monotonic()
        for task in tasks:
            process = _start(task, is_alone=len(tasks) == 1)
            running.append(process)
            executor.then("kill", "-s", "KILL", "--", f"-{process.pid}")
            pid = os.pidfd_open(process.pid)
            stack.callback(os.close, pid)
            selector.register(pid, selectors.EVENT_READ)
            for pipe, to in ((process.stdout, sys.stdout), (process.stderr, sys.stderr)):
                if pipe is not None:
                    os.set_blocking(pipe.fileno(), False)
                    selector.register(pipe, selectors.EVENT_READ, _Teller(task, to.buffer))
        left = {*range(len(tasks))}
        while left and not code:
            next_s = happen(time.monotonic() - began)
            _listen(selector, None if next_s is None else began + next_s - time.monotonic())
            for number in [number for number in left if running[number].poll() is not None]:
                left.remove(number)
                if code == 0 and (code := as_shells_tell(running[number].wait())):
                    failed = number
        took_s = time.monotonic() - began
        if failed is None:
            return Ended(code, None, took_s)
        return Ended(code, tasks[failed].host, took_s, max(0, -running[failed].returncode))


def _finish(selector: selectors.BaseSelector, running: Sequence[subprocess.Popen[bytes]]) -> None:
    _end(running)
    _listen(selector, 0)
    for key in selector.get_map().values():
        if key.data is not None:
            key.data.finish()


def _start(task: Task, *, is_alone: bool) -> subprocess.Popen[bytes]:
    pipe = None if is_alone else subprocess.PIPE
    try:
        return subprocess.Popen(
            task.words,
            env=task.environment,
            # A terminal's words are for whoever is in its foreground.
            stdin=None if is_alone and not sys.stdin.isatty() else subprocess.DEVNULL,
            stdout=pipe,
            stderr=pipe,
            process_group=0,  # so that all that it starts can be ended with it
        )
    except OSError as error:
        raise LabError(f"{task.words[0]} cannot be started: {error.strerror}") from None


def _end(processes: Sequence[subprocess.Popen[bytes]]) -> None:
    """End them with all that they started, gently at first; of those that are over what is left."""
    for number in (signal.SIGTERM, signal.SIGKILL):
        for process in processes:
            with suppress(ProcessLookupError, PermissionError):
                os.killpg(process.pid, number)
        until = time.monotonic() + _GRACE_S
        for process in processes:
            with suppress(subprocess.TimeoutExpired):
                process.wait(max(0.0, until - time.monotonic()))


class _Teller:
    """Lines of one program, each behind its host's name."""

    def __init__(self, task: Task, to: IO[bytes]) -> None:
        self._prefix = b"" if task.is_plain else f"{task.host}: ".encode()
        self._to, self._rest = to, b""

    def tell(self, text: bytes) -> None:
        *lines, self._rest = (self._rest + text).split(b"\n")
        for line in lines:
            self._to.write(self._prefix + line + b"\n")
        self._to.flush()

    def finish(self) -> None:
        if self._rest:
            self.tell(b"\n")


def _listen(selector: selectors.BaseSelector, wait_s: float | None) -> None:
    """Pass on what programs say, for so long or until something is new."""
    for key, _ in selector.select(wait_s):
        if key.data is None:
            selector.unregister(key.fileobj)  # a process has ended
            continue
        while True:
            try:
                text = os.read(key.fd, _CHUNK)
            except BlockingIOError:
                break
            if not text:
                selector.unregister(key.fileobj)
                key.data.finish()
                break
            key.data.tell(text)
