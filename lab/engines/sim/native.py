"""The simulator's shared object as Python sees it: built if need be, signatures, nothing else."""

from __future__ import annotations

import ctypes as c
from functools import cache
from pathlib import Path

from lab.machine.building import building
from switch import build
from switch.abi_check import compare
from traffic.endpoint import CORE
from traffic.endpoint import SOURCES as ENDPOINT_SOURCES

FOLDER = Path(__file__).parent
NEVER = 2**64 - 1
NOWHERE = 2**32 - 1
LOST = ("link_cut", "host_halted")  # enum net_lost
PAUSE_KINDS = "xon", "xoff", "stuck"  # enum net_pause_kind


class Account(c.Structure):
    """struct net_account."""

    _fields_ = [(name, c.c_uint64) for name in ("delivered", "events", "early")]


class ChannelReport(c.Structure):
    """struct net_channel_report."""

    _fields_ = [(name, c.c_uint64) for name in ("packets", "bytes", "lost", "max_queue_bytes")]


class Sample(c.Structure):
    """struct net_sample."""

    _fields_ = [
        ("at", c.c_uint64),
        ("channel", c.c_uint32),
        ("queue_bytes", c.c_uint32),
        ("bytes", c.c_uint64),
        ("paused", c.c_uint64),
        ("marked", c.c_uint64),
        ("dropped", c.c_uint64),
    ]


class Watch(c.Structure):
    """struct net_watch."""

    _fields_ = [
        (name, c.c_uint32)
        for name in (
            *("pause_total", "marked", "dropped", "classes", "lossless", "storms"),
            *("in_used", "in_headroom", "out_used", "pool_used", "headroom_used"),
        )
    ]


class Stock(c.Structure):
    """struct net_stock."""

    _fields_ = [
        ("at", c.c_uint64),
        *((name, c.c_uint32) for name in ("node", "priority", "port", "pool")),
        *((name, c.c_uint32) for name in ("used", "most", "headroom")),
    ]


class WayNote(c.Structure):
    """struct ep_way_note."""

    _fields_ = [
        ("at", c.c_uint64),
        ("queue_pair", c.c_uint32),
        ("entropy", c.c_uint16),
        ("state", c.c_uint16),
    ]


class Pause(c.Structure):
    """struct net_pause."""

    _fields_ = [
        ("at", c.c_uint64),
        ("channel", c.c_uint32),
        ("priority", c.c_uint16),
        ("kind", c.c_uint16),
    ]


class Wait(c.Structure):
    """struct net_wait."""

    _fields_ = [
        *((name, c.c_uint64) for name in ("until", "since", "bytes")),
        *((name, c.c_uint32) for name in ("channel", "came", "packets", "priority")),
    ]


class Snapshot(c.Structure):
    """struct net_snapshot."""

    _fields_ = [
        ("into_hosts", c.c_uint64),
        ("queue_bytes", c.c_uint64),
        ("channel", c.c_uint32),
        ("paused", c.c_uint32),
        ("dropped", c.c_uint64),
        ("marked", c.c_uint64),
    ]


SHARED_RECORDS = (Account, ChannelReport, Sample, Watch, Stock, Pause, Snapshot, WayNote, Wait)
HEADERS = (FOLDER / "net.h", CORE / "endpoint.h")

P, S, I64, U32, U64, B = c.c_void_p, c.c_char_p, c.c_int64, c.c_uint32, c.c_uint64, c.c_bool

SIGNATURES: dict[str, tuple[object, list[object]]] = {
    "net_new": (P, [U64, U32, U32, U64]),
    "net_free": (None, [P]),
    "net_place": (None, [P, U32, U32]),
    "net_add_switch": (I64, [P, P]),
    "net_add_host": (I64, [P]),
    "net_host_lines": (S, [P, U32, S, c.POINTER(U32)]),
    "net_add_channel": (I64, [P, U32, U32, U32, U32, U64, U32, U64]),
    "net_set_up": (None, [P, U32, B]),
    "net_set_halted": (None, [P, U32, B]),
    "net_deny": (B, [P, U32, U32, c.POINTER(U64)]),
    "net_set_rate": (None, [P, U32, U64]),
    "net_record": (B, [P, U32, S]),
    "net_sample": (None, [P, c.POINTER(Watch), U64, U32]),
    "net_samples": (c.POINTER(Sample), [P, c.POINTER(U64)]),
    "net_stocks": (c.POINTER(Stock), [P, c.POINTER(U64)]),
    "net_pauses": (c.POINTER(Pause), [P, c.POINTER(U64)]),
    "net_next": (U64, [P]),
    "net_look": (None, [P, c.POINTER(Sample)]),
    "net_snapshot": (None, [P, c.POINTER(Snapshot)]),
    "net_waits": (U32, [P, c.POINTER(Wait), U32]),
    "net_start": (None, [P]),
    "net_run": (U64, [P, U64, U64]),
    "net_ended": (U64, [P]),
    "net_give_up": (U64, [P]),
    "net_wake": (None, [P, U32]),
    "net_has_failed": (B, [P]),
    "net_open_transfers": (U64, [P]),
    "net_is_quiet": (B, [P]),
    "net_account": (None, [P, c.POINTER(Account)]),
    "net_channel_report": (None, [P, U32, c.POINTER(ChannelReport)]),
    "net_books": (U32, [P, U32, P, U32]),
    "net_host_report": (B, [P, U32, c.c_int]),
    "net_host_times": (None, [P, U32, P, P, U64]),
    "net_host_counters": (U32, [P, U32, P, U32]),
    "net_host_port": (None, [P, U32, c.c_uint8, P]),
    "net_way_notes": (c.POINTER(WayNote), [P, U32, c.POINTER(U32)]),
    "way_state_name": (S, [c.c_uint16]),
    "net_counter_name": (S, [U32]),
}


@cache
def library() -> c.CDLL:
    """The simulator, linked to the switch's run-time."""
    sources = [*sorted(FOLDER.glob("*.c")), *ENDPOINT_SOURCES]
    folders = dict.fromkeys(source.parent for source in sources)
    headers = [path for folder in folders for path in sorted(folder.glob("*.h"))]
    with building("the simulator"):
        output = _built(sources, headers)
    loaded = c.CDLL(str(output), use_errno=True)
    compare(SHARED_RECORDS, HEADERS)
    for function, (result, arguments) in SIGNATURES.items():
        getattr(loaded, function).restype = result
        getattr(loaded, function).argtypes = arguments
    return loaded


def _built(sources: list[Path], headers: list[Path]) -> Path:
    runtime = build.runtime_library()
    texts = (path.read_bytes() for path in dict.fromkeys((*sources, *headers)))
    includes = [f"-I{folder}" for folder in dict.fromkeys(path.parent for path in headers)]
    return build.compiled(
        f"sim-{build.digest(runtime.name, *texts)}.so",
        [*sources, runtime],
        [*includes, f"-I{build.RUNTIME}", "-lm", "-pthread"],
    )


@cache
def counter_names() -> tuple[str, ...]:
    """What an endpoint counts, in the order of net_host_counters."""
    names: list[str] = []
    while name := library().net_counter_name(len(names)):
        names.append(name.decode())
    return tuple(names)
