"""Millions of frames through one switch: what they cost, and what became of them."""

from __future__ import annotations

import ctypes
from functools import cache
from pathlib import Path

from params.data import Data
from switch import build
from tests.fabric.network import Switch

SOURCE = Path(__file__).with_suffix(".c")


class _Outcome(ctypes.Structure):
    _fields_ = [("sent", ctypes.c_uint64), ("marked", ctypes.c_uint64)]


class Outcome(Data):
    """What a drive came to; `ns` is processor time for a frame."""

    sent: int
    marked: int
    ns: float


@cache
def _library() -> ctypes.CDLL:
    library = ctypes.CDLL(str(build.beside_runtime(SOURCE)))
    u32, u64 = ctypes.c_uint32, ctypes.c_uint64
    library.drive.restype = u64
    library.drive.argtypes = [
        *(ctypes.c_void_p, u32, u32, ctypes.c_char_p, u32, u32),
        *(u64, u64, u64, ctypes.POINTER(_Outcome)),
    ]
    return library


def drive(
    switch: Switch,
    frames: list[bytes],
    n: int,
    *,
    in_port: int = 1,
    ports: int = 16,
    batch: int = 32,
    gap_ns: int = 100,
) -> Outcome:
    """Let `n` frames, taken in turn from a list, arrive at a switch that has no ports yet."""
    (length,) = {len(frame) for frame in frames}
    outcome = _Outcome()
    took = _library().drive(
        *(switch.plane._sw, ports, in_port, b"".join(frames), len(frames), length),
        *(n, batch, gap_ns, ctypes.byref(outcome)),
    )
    return Outcome(outcome.sent, outcome.marked, took / n)
