"""The sandbox: a private network, mount and PID namespace that a run lives and dies in.

    closlab ── unshare ── fork ──► the run, as process 1 of its own PID namespace
       │                              ├─ switches
       └─ waits, passes the           ├─ Mininet hosts ...
          exit code on                └─ everything else it starts

When process 1 ends, however it ends, the kernel ends every process in its PID namespace, and with
the last of them the network and mount namespaces go, and every interface and mount in them. When
the waiting parent is killed, the kernel kills process 1 (its parent-death signal). So there is no
clean-up to forget, and nothing to find from an earlier run.

A thread of process 1 that dies takes the run with it: one without it may look whole and is not.

Without root a user namespace comes first, in which the caller is root.
"""

from __future__ import annotations

import ctypes
import errno
import faulthandler
import os
import select
import signal
import socket
import sys
import threading
import time
import traceback
from collections.abc import Callable, Collection, Mapping
from contextlib import suppress
from functools import partial
from pathlib import Path
from types import FrameType

from lab.errors import RunError, SandboxError
from lab.machine.processes import die_with_parent
from lab.machine.speed import slowness
from lab.machine.stopped import LOOK_S, waiting_for
from lab.machine.supervisor import how_ended
from topologies.ip import turn

_CLONE_NEWNS = 0x00020000
_CLONE_NEWUSER = 0x10000000
_CLONE_NEWPID = 0x20000000
_CLONE_NEWNET = 0x40000000
_MS_NOSUID, _MS_NODEV, _MS_NOEXEC, _MS_BIND, _MS_REC = 2, 4, 8, 4096, 16384
_MS_PRIVATE = 1 << 18
_NAMES = Path("/etc/hosts")
_ENDS_WITHIN_S = 40.0  # once it was told to, on a machine that is not slow
_ENDING_SIGNALS = (signal.SIGTERM, signal.SIGHUP)
_THREAD_DIED = signal.SIGUSR1
_DEFECT = 70
_SAME_INTERRUPT_S = 1.0  # the terminal and the process outside tell of one interrupt within

_CURE = """\
Any one of these will do:
  - run it as root:  sudo ./closlab ...   (in a container: start that with --privileged)
  - allow unprivileged user namespaces:
      Ubuntu 23.10 or later:  sudo sysctl -w kernel.apparmor_restrict_unprivileged_userns=0
      Debian:                 sudo sysctl -w kernel.unprivileged_userns_clone=1
      where they are counted: sudo sysctl -w user.max_user_namespaces=10000"""

_libc = ctypes.CDLL(None, use_errno=True)


def run_in_sandbox(run: Callable[[], int], announce: Callable[[int], None]) -> int:
    """Run a function in a sandbox of its own and return its exit code.

    ``announce`` is called outside, with the PID of the sandbox's first process, before the run.
    """
    _unshare()
    sys.stdout.flush()
    sys.stderr.flush()
    outside, inside = socket.socketpair()
    # Nobody is told to end before there is somebody to say so to.
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT, *_ENDING_SIGNALS})
    child = os.fork()
    if child == 0:
        outside.close()
        os._exit(_first_process(run, inside, before))
    inside.close()
    for number in _ENDING_SIGNALS:
        signal.signal(number, lambda number, _frame: _pass_on(child, number))
    signal.pthread_sigmask(signal.SIG_SETMASK, before)
    with outside:
        if _is_ready(child, outside):  # from here on the child dies when we do
            announce(child)
            with suppress(BrokenPipeError):  # it was told to end meanwhile, which its code says
                outside.send(b"g")
    return _wait(child)


def _unshare() -> None:
    uid, gid = os.geteuid(), os.getegid()
    flags = _CLONE_NEWNS | _CLONE_NEWPID | _CLONE_NEWNET
    if uid != 0:
        flags |= _CLONE_NEWUSER
    if _libc.unshare(flags) != 0:
        raise _refusal(ctypes.get_errno())
    if uid != 0:
        try:
            Path("/proc/self/setgroups").write_text("deny")
            Path("/proc/self/uid_map").write_text(f"0 {uid} 1")
            Path("/proc/self/gid_map").write_text(f"0 {gid} 1")
        except OSError as error:
            raise _refusal(error.errno or errno.EPERM) from None


def _refusal(number: int) -> SandboxError:
    return SandboxError(
        "this machine does not let you make the private namespaces a run lives in "
        f"({os.strerror(number)})",
        _CURE,
    )


def _first_process(run: Callable[[], int], gate: socket.socket, mask: Collection[int]) -> int:
    """What process 1 does. Nothing may escape from here: there is nobody to catch it."""
    die_with_parent()
    for number in _ENDING_SIGNALS:
        signal.signal(number, _for_good)
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, _once())
    died = _mind_threads()
    try:
        signal.pthread_sigmask(signal.SIG_SETMASK, mask)
        with gate:
            gate.send(b"r")
            if not gate.recv(1):
                return 1  # the parent died before it could make this run known
        _furnish()
        code = run()
        return _DEFECT if died else code
    except SandboxError as error:
        error.show()
        return 1
    except KeyboardInterrupt:  # before the run takes it for its own, or after
        print("closlab: the run was told to end", file=sys.stderr)
        return 130
    except _ThreadDied:  # which has told all it knew
        return _DEFECT
    except Exception:
        traceback.print_exc()  # a defect of ours: say all we know
        return _DEFECT
    finally:
        sys.stdout.flush()
        sys.stderr.flush()


class _ThreadDied(Exception):  # noqa: N818  (no error of who meets it)
    """A thread that the run relied on."""


def _mind_threads() -> list[str]:
    """Have a thread that dies end the run, at once; the names of those that did."""
    died: list[str] = []

    def tell(end: threading.ExceptHookArgs) -> None:
        threading.__excepthook__(end)  # a defect of ours: say all we know
        name = end.thread.name if end.thread is not None else "one without a name"
        print(f"closlab: a thread of the run died ({name}), and the run ends", file=sys.stderr)
        sys.stderr.flush()
        died.append(name)
        first = threading.main_thread().ident
        if len(died) == 1 and first is not None:
            signal.pthread_kill(first, _THREAD_DIED)  # wakes it, whatever it waits for

    def leave(_number: int, _frame: FrameType | None) -> None:
        raise _ThreadDied

    threading.excepthook = tell
    signal.signal(_THREAD_DIED, leave)
    return died


def _for_good(number: int, frame: FrameType | None) -> None:
    """It is to end: what was measured is kept, and all is taken down, if that does not take for
    ever. All that is in a sandbox goes with its first process anyway."""
    threading.Thread(target=_give_up, name="end", daemon=True).start()
    signal.default_int_handler(number, frame)


def _give_up() -> None:
    time.sleep(_ENDS_WITHIN_S * slowness())
    said = "closlab: the run was told to end, and did not: it is ended as it stands, at"
    print(said, file=sys.stderr)
    faulthandler.dump_traceback(sys.stderr)  # a defect of ours: say all we know
    sys.stderr.flush()
    os._exit(_DEFECT)


def _once() -> Callable[[int, FrameType | None], None]:
    """What interrupts, and takes an interrupt that is told twice for one."""
    last = -_SAME_INTERRUPT_S

    def interrupt(number: int, frame: FrameType | None) -> None:
        nonlocal last
        now = time.monotonic()
        is_new, last = now - last >= _SAME_INTERRUPT_S, now
        if is_new:
            signal.default_int_handler(number, frame)

    return interrupt


def _furnish() -> None:
    """Give the namespaces what programs expect: a /proc of their own and a loopback that is up."""
    _mount("none", "/", None, _MS_REC | _MS_PRIVATE)
    _mount("proc", "/proc", "proc", _MS_NOSUID | _MS_NODEV | _MS_NOEXEC)
    try:
        turn("lo", is_up=True)
    except OSError as error:
        raise _refusal(error.errno or errno.EPERM) from None


def name_addresses(addresses: Mapping[str, str], file: Path) -> None:
    """From inside: let programs find hosts by their names (``enter h1 ping h8``).

    The file takes the place of /etc/hosts, which has none of our names, in this sandbox only. No
    name server is asked: there is none, and what asks for it would be a packet in the fabric.
    """
    file.write_text(hosts_file(addresses))
    _mount(str(file), str(_NAMES), None, _MS_BIND)
    if Path("/etc/nsswitch.conf").is_file():
        order = file.with_name(f"{file.name}.order")
        order.write_text("passwd: files\ngroup: files\nhosts: files\n")
        _mount(str(order), "/etc/nsswitch.conf", None, _MS_BIND)


def hosts_file(addresses: Mapping[str, str]) -> str:
    """What stands in /etc/hosts so that names are of these addresses."""
    lines = ["127.0.0.1 localhost", *(f"{address} {name}" for name, address in addresses.items())]
    return "\n".join(lines) + "\n"


def _mount(source: str, target: str, kind: str | None, flags: int) -> None:
    kind_bytes = kind.encode() if kind else None
    if _libc.mount(source.encode(), target.encode(), kind_bytes, flags, None) != 0:
        raise _refusal(ctypes.get_errno())


def _pass_on(child: int, number: int) -> None:
    with suppress(ProcessLookupError):
        os.kill(child, number)


def _is_ready(child: int, gate: socket.socket) -> bool:
    """Wait for the sandbox's first process to say so; it does not if it ends before."""
    stopped = _Stopped(child)
    while not select.select([gate], [], [], LOOK_S)[0]:
        # Its end is not taken here.
        if news := os.waitid(os.P_PID, child, os.WSTOPPED | os.WCONTINUED | os.WNOHANG):
            stopped.turn(is_so=news.si_code == os.CLD_STOPPED)
        stopped.look()
    return bool(gate.recv(1))


def _wait(child: int) -> int:
    """Wait for the sandbox's first process, and pass interrupts on to it."""
    stopped = _Stopped(child)
    while True:
        try:
            # It is asked by this way alone: what lies in /proc here is the sandbox's.
            done, status = os.waitpid(child, os.WNOHANG | os.WUNTRACED | os.WCONTINUED)
            if not done:
                stopped.look()
                _await(child)
                continue
        except KeyboardInterrupt:
            _pass_on(child, signal.SIGINT)  # a terminal told it too, and it knows; others did not
            continue
        if os.WIFSTOPPED(status) or os.WIFCONTINUED(status):
            stopped.turn(is_so=os.WIFSTOPPED(status))
            continue
        code = os.waitstatus_to_exitcode(status)
        if code < 0:
            raise RunError(f"the run was killed{how_ended(code)}; nothing of it is left behind")
        return code


class _Stopped:
    """Whether the first process was stopped, which is told if it is for a second look."""

    def __init__(self, child: int) -> None:
        self._child = child
        self._is_so = self._was_so = self._is_reported = False

    def turn(self, *, is_so: bool) -> None:
        """It was, or goes on."""
        self._is_so, self._was_so = is_so, False

    def look(self) -> None:
        """Tell what is new."""
        name, tell = "the first process of the run", partial(print, file=sys.stderr, flush=True)
        if self._was_so and not self._is_reported:
            tell(f"closlab: {waiting_for(name, self._child)}")
        elif self._is_reported and not self._is_so:
            tell(f"closlab: {name} goes on")
        self._is_reported = self._was_so
        self._was_so = self._is_so


def _await(child: int) -> None:
    """Until it ends, or it is time to look what it does."""
    door = os.pidfd_open(child)
    try:
        select.select([door], [], [], LOOK_S)
    finally:
        os.close(door)
