"""How processes of a run take memory from the kernel: what is large goes back when it is free.

glibc keeps megabytes once it has seen some come and go, in each process and each thread's arena. A
program of five megabytes, pushed to sixteen switches, would stay many times in the process that
pushes it, and in the one that takes it.
"""

from __future__ import annotations

import ctypes
import gc
import os
import re
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

_MMAP_THRESHOLD_BYTES = 1 << 18
_M_MMAP_THRESHOLD = -3  # malloc.h
_SIZES = re.compile(r'type="(\w+)"[^>]* size="(\d+)"')

# For a process that is to be started.
FREE_AT_ONCE = {"MALLOC_MMAP_THRESHOLD_": str(_MMAP_THRESHOLD_BYTES)}


def give_back() -> None:
    """Let the kernel have what is free, however small its pieces are."""
    with suppress(AttributeError):
        ctypes.CDLL(None).malloc_trim(0)


def free_at_once() -> None:
    """The same for this one, from now on; where there is another allocator, nothing."""
    with suppress(AttributeError):
        ctypes.CDLL(None).mallopt(_M_MMAP_THRESHOLD, _MMAP_THRESHOLD_BYTES)


@contextmanager
def without_collections() -> Iterator[None]:
    """While many objects are made that stay: to look through them for garbage takes half of the
    time."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()


def resident_bytes() -> int:
    """What this process has of the machine's memory."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE")


def handed_out_bytes() -> int:
    """What this process has of its allocator, in all arenas: unlike its resident memory, without
    what the allocator keeps, which goes up and down by tens of megabytes. Where it is another
    allocator than glibc's, the resident memory.

    Small objects of Python are none of it, but the pools that they lie in are not either.
    """
    libc = ctypes.CDLL(None)
    if not hasattr(libc, "malloc_info"):
        return resident_bytes()
    libc.fdopen.restype, libc.fdopen.argtypes = ctypes.c_void_p, (ctypes.c_int, ctypes.c_char_p)
    libc.malloc_info.argtypes = ctypes.c_int, ctypes.c_void_p
    libc.fclose.argtypes = (ctypes.c_void_p,)
    with os.fdopen(os.memfd_create("malloc"), "rb") as file:
        stream = libc.fdopen(os.dup(file.fileno()), b"w")
        libc.malloc_info(0, stream)
        libc.fclose(stream)
        file.seek(0)
        whole = file.read().decode().rpartition("</heap>")[2]
    sizes = {what: int(size) for what, size in _SIZES.findall(whole)}
    return sizes["current"] + sizes["mmap"] - sizes["fast"] - sizes["rest"]
