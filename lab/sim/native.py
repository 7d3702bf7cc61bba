"""The simulator's shared object as Python sees it: built if need be, signatures, nothing else."""

from __future__ import annotations

import ctypes as c
from functools import cache
from pathlib import Path

from switch import build
from traffic.endpoint import SOURCES as ENDPOINT_SOURCES

FOLDER = Path(__file__).parent
NEVER = 2**64 - 1


class Account(c.Structure):
    """struct net_account."""

    _fields_ = [(name, c.c_uint64) for name in ("sent", "delivered", "lost", "under_way", "events")]


class ChannelReport(c.Structure):
    """struct net_channel_report."""

    _fields_ = [(name, c.c_uint64) for name in ("packets", "bytes", "lost")]


P, S, I64, U32, U64, B = c.c_void_p, c.c_char_p, c.c_int64, c.c_uint32, c.c_uint64, c.c_bool

SIGNATURES: dict[str, tuple[object, list[object]]] = {
    "net_new": (P, [U64]),
    "net_free": (None, [P]),
    "net_add_switch": (I64, [P, P]),
    "net_add_host": (I64, [P]),
    "net_host_line": (S, [P, U32, S]),
    "net_add_channel": (I64, [P, U32, U32, U32, U32, U64, U32, U64]),
    "net_set_loss": (None, [P, U32, U32]),
    "net_start": (None, [P]),
    "net_run": (U64, [P, U64, U64]),
    "net_wake": (None, [P, U32]),
    "net_open_transfers": (U64, [P]),
    "net_account": (None, [P, c.POINTER(Account)]),
    "net_channel_report": (None, [P, U32, c.POINTER(ChannelReport)]),
    "net_host_report": (B, [P, U32, c.c_int]),
}


@cache
def library() -> c.CDLL:
    """The simulator, linked to the switch's run-time."""
    sources = [*sorted(FOLDER.glob("*.c")), *ENDPOINT_SOURCES]
    headers = [path for source in sources for path in sorted(source.parent.glob("*.h"))]
    runtime = build.runtime_library()
    name = build.digest(runtime.name, *(path.read_bytes() for path in (*sources, *headers)))
    output = build.cache_dir() / f"sim-{name}.so"
    if not output.exists():
        includes = [f"-I{folder}" for folder in {str(path.parent) for path in headers}]
        build.run_compiler(
            [*includes, f"-I{build.RUNTIME}", *map(str, sources), str(runtime), "-lm"], output
        )
    loaded = c.CDLL(str(output), use_errno=True)
    for function, (result, arguments) in SIGNATURES.items():
        getattr(loaded, function).restype = result
        getattr(loaded, function).argtypes = arguments
    return loaded
