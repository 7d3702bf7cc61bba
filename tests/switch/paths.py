"""Packets for paths.p4, and reading what they were told."""

from __future__ import annotations

import struct
from enum import IntEnum
from pathlib import Path

from params.data import Data

ASK = struct.Struct(">BBBI")
SEEN = struct.Struct(">BBHHHIIIIQ")
SOURCE = Path(__file__).parent / "p4" / "paths.p4"


class Want(IntEnum):
    """The ways a packet can ask to go; the numbers are the program's."""

    FORWARD = 0
    DROP_INGRESS = 1
    DROP_EGRESS = 2
    CLONE_INGRESS = 3
    CLONE_EGRESS = 4
    RESUBMIT = 5
    RECIRCULATE = 6
    MULTICAST = 7
    TRUNCATE = 8
    GROW = 9
    PAUSE = 10
    ASSERT = 11
    EXIT = 12


class Seen(Data):
    """What the egress control saw of a packet."""

    instance: int
    turns: int
    rid: int
    ingress_port: int
    egress_port: int
    length: int
    enq_depth: int
    deq_depth: int
    waited: int
    at: int
    payload: bytes


def ask(want: Want, port: int = 1, *, prio: int = 0, arg: int = 0, size: int = 100) -> bytes:
    """A packet of some size."""
    body = ASK.pack(want, port, prio, arg) + bytes(SEEN.size)
    return body + bytes(i & 0xFF for i in range(size - len(body)))


def seen_of(frame: bytes) -> Seen:
    """What a packet brings back."""
    return Seen(*SEEN.unpack_from(frame, ASK.size), payload=frame[ASK.size + SEEN.size :])
