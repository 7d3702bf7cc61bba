"""Running before other work on the machine: an emulation that gets its turn late is wrong.

Two things help. A better niceness gives a greater share of the processors, and only root may have
it. A short time slice gives the turn sooner to whoever was asleep, at no one's cost, and anybody
may ask for one (Linux 6.12 and later; earlier kernels take no notice). Children inherit both.

Where the kernel groups processes by session, as Debian's and Ubuntu's do, niceness only says who
goes first within a session, and sessions share the processors as equals, unless they have a
niceness as well.
"""

from __future__ import annotations

import ctypes
import os
import platform
import struct
from contextlib import suppress
from pathlib import Path

_NICENESS = -10
_SESSION_NICENESS = -20  # all of a rival session counts as one, but there may be many rivals
_SLICE_NS = 100_000  # the least there is
_SCHED_SETATTR = {"x86_64": 314, "aarch64": 274, "riscv64": 274}
_ATTRIBUTES = struct.Struct("=IIQiIQQQII")  # struct sched_attr
_ORDINARY = 0  # SCHED_OTHER


def take_sched_priority() -> None:
    """As far as this machine permits it; who was started with more (`chrt -r 1 ...`) keeps it."""
    if os.sched_getscheduler(0) != os.SCHED_OTHER:
        return
    try:
        niceness = os.nice(_NICENESS - os.nice(0))
    except PermissionError:
        niceness = os.nice(0)
    call = _SCHED_SETATTR.get(platform.machine())
    if call is not None:
        size = _ATTRIBUTES.size
        wanted = _ATTRIBUTES.pack(size, _ORDINARY, 0, niceness, 0, _SLICE_NS, 0, 0, 0, 0)
        ctypes.CDLL(None).syscall(call, 0, wanted, 0)


def lend_sched_priority(pid: int) -> None:
    """Let a process that began a session come before other sessions, if it may."""
    with suppress(OSError):  # only root may, and only of a kernel that groups
        Path(f"/proc/{pid}/autogroup").write_text(str(_SESSION_NICENESS))
