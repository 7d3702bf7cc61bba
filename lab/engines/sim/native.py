"""The simulator's shared object as Python sees it: built if need be."""

from __future__ import annotations

import ctypes as c
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from struct import Struct
from typing import Any

from lab.machine.building import building
from switch import build
from switch.abi import Declarations, Library
from switch.native import runtime
from traffic.endpoint import CORE
from traffic.endpoint import SOURCES as ENDPOINT_SOURCES

FOLDER = Path(__file__).parent
DECLARED = Declarations(
    FOLDER / "net.h", FOLDER / "likeness.h", FOLDER / "ranks.h", CORE / "endpoint.h"
)
NEVER = 2**64 - 1
NOWHERE = 2**32 - 1
*LOST, _ = (name.lower() for name in DECLARED.enum("net_lost", "NET_"))
Record = tuple[Any, ...]
MAX_PAUSES = DECLARED.number("NET_MAX_PAUSES")
PAUSE_KINDS = tuple(name.lower() for name in DECLARED.enum("net_pause_kind", "NET_"))


@DECLARED.mirror("net_account")
class Account(c.Structure):
    """What the simulation came to."""


@DECLARED.mirror("net_channel_report")
class ChannelReport(c.Structure):
    """What a channel carried and lost."""


@DECLARED.mirror("net_sample")
class Sample(c.Structure):
    """A channel at a moment."""


@DECLARED.mirror("net_watch")
class Watch(c.Structure):
    """Where the program keeps what is noted of switches."""


@DECLARED.mirror("net_stock")
class Stock(c.Structure):
    """What a class holds of a switch's buffer."""


@DECLARED.mirror("ep_way_note")
class WayNote(c.Structure):
    """That a way's state changed."""


@DECLARED.mirror("net_pause")
class Pause(c.Structure):
    """Something about a pause."""


@DECLARED.mirror("net_wait")
class Wait(c.Structure):
    """What waits in a queue."""


@DECLARED.mirror("net_snapshot")
class Snapshot(c.Structure):
    """How things are now."""


@DECLARED.mirror("net_share")
class Share(c.Structure):
    """How many events a part had in a turn."""


@DECLARED.mirror("ranks_account")
class RanksAccount(c.Structure):
    """What a rank has sent to others, and waited for."""


@cache
def library() -> Library:
    """The simulator, linked to the switch's run-time."""
    with building("the simulator"):
        output = built()
    runtime()
    return Library(output, DECLARED)


def built() -> Path:
    """Its shared object, built if need be."""
    sources = [*sorted(FOLDER.glob("*.c")), *ENDPOINT_SOURCES]
    folders = dict.fromkeys(source.parent for source in sources)
    headers = [path for folder in folders for path in sorted(folder.glob("*.h"))]
    linked_to = build.runtime_library()
    texts = (path.read_bytes() for path in dict.fromkeys((*sources, *headers)))
    includes = [f"-I{folder}" for folder in dict.fromkeys(path.parent for path in headers)]
    return build.compiled(
        f"sim-{build.digest(linked_to.name, *texts)}.so",
        [*sources, linked_to],
        # Endpoints do not know of the arena, and take their memory there all the same.
        [*includes, f"-I{build.RUNTIME}", "-include", "arena.h", "-lm", "-pthread"],
    )


def records(name: str, notes: Any, count: int, begin: int = 0) -> Iterator[Record]:
    """The structs of an array from one on, so many in all: their members in order.

    They are taken as they are now, and faster than field by field.
    """
    layout = _row(name)
    if begin >= count:
        return iter(())
    at = c.cast(notes, c.c_void_p).value or 0
    text = c.string_at(at + begin * layout.size, (count - begin) * layout.size)
    return layout.iter_unpack(text)


@cache
def _row(name: str) -> Struct:
    return DECLARED.row(name)


@cache
def counter_names() -> tuple[str, ...]:
    """What an endpoint counts, in the order of net_host_counters."""
    names: list[str] = []
    while name := library().net_counter_name(len(names)):
        names.append(name.decode())
    return tuple(names)
