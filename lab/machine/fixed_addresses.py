"""Shared objects and memory at addresses that are the same in every process.

So what lies in that memory means the same in another process, pointers into these shared objects
included. Whoever wants that has to ask before anybody else loads them.
"""

from __future__ import annotations

import ctypes
import platform
import sys
from functools import cache
from pathlib import Path

from lab.errors import RunError
from lab.machine.building import building
from switch import build

_SOURCE = Path(__file__).with_suffix(".c")
# Where the kernel puts nothing of its own accord: above programs and their heaps, below all that is
# mapped where it likes.
_FREE = {"x86_64": 0x6000_0000_0000, "aarch64": 0xD000_0000_0000}
_ROOM = 1 << 30  # of each shared object
_MEMORY_AT = 1 << 40  # behind them
_CURE = "Leave --checkpoint out."


def memory_at() -> int:
    """The address of that memory."""
    found = _FREE.get(platform.machine()) if sys.platform == "linux" else None
    if found is None:
        raise RunError("checkpoints want Linux on an x86-64 or a 64-bit ARM", _CURE)
    return found + _MEMORY_AT


def load(library: Path, number: int) -> int:
    """Load a shared object, as that of this number; its address."""
    at = memory_at() - _MEMORY_AT + number * _ROOM
    problem = ctypes.c_char_p()
    found = _loader()(str(library).encode(), at, _ROOM, ctypes.byref(problem))
    if not at <= found < at + _ROOM:
        why = problem.value.decode() if problem.value else "this process has it elsewhere already"
        raise RunError(f"checkpoints want code at an address of their own: {why}", _CURE)
    return int(found)


def built() -> Path:
    """What loads them, built if need be, by whom the run-time was."""
    with building(_SOURCE.name):
        made_like = build.runtime_library().name
        name = f"fixed-addresses-{build.digest(made_like, _SOURCE.read_bytes())}.so"
        return build.compiled(name, [_SOURCE], ["-ldl"])


@cache
def _loader() -> ctypes._NamedFuncPointer:
    loader = ctypes.PyDLL(str(built())).load_at  # no other thread goes on meanwhile
    loader.restype = ctypes.c_uint64
    loader.argtypes = (
        *(ctypes.c_char_p, ctypes.c_uint64, ctypes.c_uint64),
        ctypes.POINTER(ctypes.c_char_p),
    )
    return loader
