"""An adapter of verbs in a program's own process: what libibverbs and others are compiled from.

Programs that were compiled for adapters of RDMA find these libraries in place of theirs, and speak
RoCEv2 on the fabric by them; `rc.h` is where to begin.
"""

import re
from pathlib import Path

from params.data import Data

__all__ = ["CLOCK_SOURCE", "LIBRARIES", "VERBS_COUNTERS", "Library"]

_HERE = Path(__file__).parent
_CORE = _HERE.parent / "core"
_CONTROLS = sorted((_CORE / "cc").glob("*.c"))
_ADAPTER = (
    *("completion", "datagram", "device", "memory", "packet", "port", "queue_pair"),
    *("rate", "record", "requester", "responder", "route", "shown", "together", "words", "work"),
)

_CONNECTIONS = ("rdma_cm", "cm_endpoint", "cm_event", "cm_refused", "cm_wire")


class Library(Data):
    """A shared object that programs know by name."""

    name: str
    sources: tuple[Path, ...]
    exports: Path  # names and versions that it has for others
    words: tuple[str, ...] = ()  # for the compiler
    needs: tuple[str, ...] = ()  # of these libraries, before it


LIBRARIES = (
    Library(
        "libibverbs.so.1",
        (*(_HERE / f"{name}.c" for name in _ADAPTER), _CORE / "icrc.c", *_CONTROLS),
        _HERE / "libibverbs.map",
        ("-pthread", "-lm"),
    ),
    Library(
        "librdmacm.so.1",
        tuple(_HERE / f"{name}.c" for name in _CONNECTIONS),
        _HERE / "librdmacm.map",
        ("-pthread",),
    ),
    Library(
        "libnccl-net.so",
        (_HERE / "nccl_net.c",),
        _HERE / "libnccl-net.map",
        ("-pthread",),
        ("libibverbs.so.1",),
    ),
    Library("libmlx5.so.1", (_HERE / "absent.c",), _HERE / "libmlx5.map"),
    Library("libefa.so.1", (_HERE / "absent.c",), _HERE / "libefa.map", ("-DOF_EFA",)),
)
CLOCK_SOURCE = _HERE / "fabric_clock.c"
"""What is loaded into programs whose clocks are to be the fabric's."""

VERBS_COUNTERS = tuple(
    (folder, name)
    for folder, name in re.findall(r"X\((\w+), (\w+)\)", (_HERE / "counters.h").read_text())
    if folder != "own"
)
"""What an adapter counts: the folder that a counter's file is in, and its name."""
