"""The run-time's shared object as Python sees it."""

from __future__ import annotations

import ctypes as c
from functools import cache
from pathlib import Path

from .abi import Declarations, Library
from .build import RUNTIME, runtime_library

DECLARED = Declarations(
    *(RUNTIME / f"{name}.h" for name in ("arena", "base", "books", "cable", "ctl", "hosted")),
    *(
        RUNTIME / f"{name}.h"
        for name in ("llr", "loop", "pcap", "port_memory", "port_socket", "sw")
    ),
)
NEVER = 2**64 - 1
NONE = 2**32 - 1  # no entry, no register, no action
ALL = 2**64 - 1  # every cell of an array
QUEUES = DECLARED.number("SW_QUEUES")
PORTS = DECLARED.number("SW_PORTS")
LATE_CLASSES = DECLARED.number("LOOP_LATE_CLASSES")
BOOKS = tuple(name.lower() for name in DECLARED.enum("book", "BOOK_"))
BOOK_MADE = DECLARED.number("BOOK_MADE")

TextFunction = c.CFUNCTYPE(None, c.c_void_p, c.c_char_p)


@DECLARED.mirror("hosted_link")
class Link(c.Structure):
    """What a port is joined to."""


@DECLARED.mirror("hosted_queue")
class Queue(c.Structure):
    """What a queue may hold; -1 leaves it as it is."""


@DECLARED.mirror("hosted_service")
class Service(c.Structure):
    """How a queue is served."""


@DECLARED.mirror("llr_config")
class Replay(c.Structure):
    """How a link sends again what it lost."""


@DECLARED.mirror("sw_credit")
class Credit(c.Structure):
    """A class of a port that goes by credits."""


@DECLARED.mirror("hosted_port")
class PortInfo(c.Structure):
    """A port's traffic and state."""


@DECLARED.mirror("hosted_stats")
class Stats(c.Structure):
    """Where every packet went."""


@DECLARED.mirror("book_line")
class BookLine(c.Structure):
    """A line of the books."""


@DECLARED.mirror("cable_faults")
class CableFaults(c.Structure):
    """What a bad cable does to frames."""


@DECLARED.mirror("ctl_reason_text")
class Reason(c.Structure):
    """Why an operation was refused."""


@cache
def runtime() -> Library:
    """The run-time, built if need be."""
    return Library(runtime_library(), DECLARED)


@cache
def program(path: Path) -> tuple[c.CDLL, int]:
    """A program's shared object and the address of its description."""
    runtime()
    library = c.CDLL(str(path))
    return library, c.addressof(c.c_char.in_dll(library, "sw_program"))


@cache
def drop_names() -> tuple[str, ...]:
    """Why packets are dropped, by number."""
    names: list[str] = []
    while (name := runtime().hosted_drop_name(len(names))) is not None:
        names.append(name.decode())
    return tuple(names)


@cache
def reason(number: int) -> tuple[int, str]:
    """Why an operation was refused: a gRPC status code and a text."""
    found = runtime().hosted_reason(number)
    return found.contents.code, found.contents.text.decode()
