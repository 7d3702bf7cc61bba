"""This process, as if it ran on macOS: python -m tests.packaging.darwin WORD... is closlab's there.

What Linux alone has is taken away from the modules that speak to a system (their "Availability" in
Python's documentation), and nothing of /proc, /sys and /dev/shm can be opened. The C is compiled
for Linux, of the files that are taken for macOS: it is loaded here.
"""

from __future__ import annotations

import fcntl
import os
import resource
import select
import signal
import socket
import sys
import time
from dataclasses import replace
from types import ModuleType

ABSENT: dict[ModuleType, tuple[str, ...]] = {
    os: (
        *("sched_", "SCHED_", "memfd_create", "MFD_", "pidfd_", "PIDFD_", "P_PIDFD", "posix_fa"),
        *("POSIX_FADV_", "getxattr", "setxattr", "listxattr", "removexattr", "XATTR_", "getrandom"),
        *("GRND_", "O_TMPFILE", "O_PATH", "O_NOATIME", "O_DIRECT", "O_LARGEFILE", "O_RSYNC"),
        *("eventfd", "EFD_", "splice", "SPLICE_", "copy_file_range", "unshare", "setns", "CLONE_"),
        *("timerfd_", "TFD_", "getres", "setres", "pipe2", "fdatasync", "RWF_", "RTLD_DEEPBIND"),
    ),
    select: ("epoll", "EPOLL"),
    signal: (
        *("SIGRT", "SIGPOLL", "SIGPWR", "SIGSTKFLT", "SIGCLD", "sigtimedwait", "sigwaitinfo"),
        "pidfd_send_signal",
    ),
    socket: (
        *("AF_PACKET", "AF_NETLINK", "AF_VSOCK", "AF_CAN", "AF_TIPC", "AF_ALG", "PF_PACKET"),
        *("PACKET_", "NETLINK_", "SOCK_CLOEXEC", "SOCK_NONBLOCK", "SO_BINDTODEVICE", "SO_DOMAIN"),
        *("SO_PROTOCOL", "SO_MARK", "SO_PEERCRED", "SO_PASSCRED", "SO_PASSSEC", "SO_PRIORITY"),
    ),
    fcntl: (
        *("F_ADD_SEALS", "F_GET_SEALS", "F_SEAL_", "F_SETPIPE_SZ", "F_GETPIPE_SZ", "F_OFD_"),
        *("F_NOTIFY", "DN_", "F_SETLEASE", "F_GETLEASE", "F_SETSIG", "F_GETSIG"),
    ),
    resource: (
        *("prlimit", "RLIMIT_MSGQUEUE", "RLIMIT_NICE", "RLIMIT_RT", "RLIMIT_SIGPENDING"),
        "RUSAGE_THREAD",
    ),
    time: ("CLOCK_BOOTTIME", "CLOCK_TAI", "pthread_getcpuclockid"),
}
_STAY = ("O_DIRECTORY",)  # begins like O_DIRECT
_HIDDEN = ("/proc", "/sys", "/dev/shm")


def pretend() -> None:
    """From now on."""
    sys.platform = "darwin"
    for module, beginnings in ABSENT.items():
        for name in dir(module):
            if name.startswith(beginnings) and name not in _STAY:
                delattr(module, name)
    sys.addaudithook(_hide)
    _compile_for_here()


def _hide(event: str, arguments: tuple[object, ...]) -> None:
    if event in ("open", "os.listdir", "os.scandir") and isinstance(arguments[0], (str, bytes)):
        path = os.fsdecode(arguments[0])
        if any(path == hidden or path.startswith(hidden + "/") for hidden in _HIDDEN):
            raise FileNotFoundError(2, "No such file or directory", path)


def _compile_for_here() -> None:
    """Let what is compiled for macOS run here all the same, under names that say so."""
    from switch import target

    machine = os.uname().machine
    linux, macos = (
        next(each for each in target.NATIVE if each.name == f"{machine}-{system}")
        for system in ("linux", "macos")
    )
    flags = (*linux.flags, "-DPRETENDING")
    here = replace(linux, flags=flags, left_out=macos.left_out)
    target.NATIVE = tuple(here if each is macos else each for each in target.NATIVE)
    target.of_this_machine = lambda: here


if __name__ == "__main__":
    pretend()
    from lab.cli import main

    main()
