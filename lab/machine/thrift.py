"""How processes of a run take memory from the kernel: what is large goes back when it is free.

glibc keeps megabytes once it has seen some come and go, in each process and each thread's arena. A
program of five megabytes, pushed to sixteen switches, would stay many times in the process that
pushes it, and in the one that takes it.
"""

from __future__ import annotations

import ctypes
from contextlib import suppress

_MMAP_THRESHOLD_BYTES = 1 << 18
_M_MMAP_THRESHOLD = -3  # malloc.h

# For a process that is to be started.
THRIFTY = {"MALLOC_MMAP_THRESHOLD_": str(_MMAP_THRESHOLD_BYTES)}


def give_back() -> None:
    """Let the kernel have what is free, however small its pieces are."""
    with suppress(AttributeError):
        ctypes.CDLL(None).malloc_trim(0)


def be_thrifty() -> None:
    """The same for this one, from now on; where there is another allocator, nothing."""
    with suppress(AttributeError):
        ctypes.CDLL(None).mallopt(_M_MMAP_THRESHOLD, _MMAP_THRESHOLD_BYTES)
