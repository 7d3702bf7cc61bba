"""What captures of links say: every frame with its time, and how pauses were obeyed.

Of either engine, frames bear the time at which their last bit arrives at the cable's other end.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from controller import headroom
from controller.reports import Report, decode
from lab.scenario.experiment import Experiment
from lab.scenario.translate import REPORT_PORT
from params.classes import LOSSLESS_PRIORITY
from params.data import Data
from topologies import Node, NodeKind

_MAGIC_NS = 0xA1B23C4D
_PFC = bytes.fromhex("88080101")
_ACKNOWLEDGE = b"\x11"  # of opcodes; those of data are less
_INT_PORT = 20052
_DSCP_DATA = 26


class Captured(NamedTuple):
    """A frame, and when it arrived; its end may be missing from `frame`, not from `length`."""

    when_ns: int
    frame: bytes
    length: int


def recorded(path: Path) -> list[Captured]:
    """A capture's frames."""
    data = path.read_bytes()
    assert data[:4] == struct.pack("<I", _MAGIC_NS)
    frames, at = [], 24
    while at < len(data):
        seconds, nanoseconds, kept, length = struct.unpack_from("<IIII", data, at)
        frame = data[at + 16 : at + 16 + kept]
        frames.append(Captured(seconds * 10**9 + nanoseconds, frame, length))
        at += 16 + kept
    return frames


def reported(pcaps: Path, switch: Node) -> Iterator[Report]:
    """What a switch reported of data packets."""
    for _, frame, _ in recorded(pcaps / f"{switch.interface(REPORT_PORT)}_out.pcap"):
        report = decode(frame)
        if is_data(report.packet):
            yield report


def carried(frame: bytes) -> bytes:
    """What stands behind the UDP header, without telemetry."""
    at = 42
    if int.from_bytes(frame[36:38], "big") == _INT_PORT:
        at += 4 + 4 * frame[43]
    return frame[at:]


def is_data(frame: bytes) -> bool:
    """Whether it is a RoCEv2 data packet, and no acknowledgement, which is of the same class."""
    return frame[15] >> 2 == _DSCP_DATA and carried(frame)[:1] < _ACKNOWLEDGE


class Reaction(Data):
    """What came after a pause frame had left."""

    took_ns: float  # until its receiver was silent
    granted_ns: float
    came: int  # bytes
    room: int  # left in the headroom


def reactions(pcaps: Path, experiment: Experiment) -> Iterator[Reaction]:
    """Every pause of the fabric that lasted long enough to silence its receiver."""
    for link in experiment.fabric.links:
        yield from _reactions(pcaps, experiment, (link.b, link.b_port), (link.a, link.a_port))
        if link.joins_switches:
            yield from _reactions(pcaps, experiment, (link.a, link.a_port), (link.b, link.b_port))


_End = tuple[Node, int]


def _reactions(pcaps: Path, experiment: Experiment, asks: _End, obeys: _End) -> Iterator[Reaction]:
    link = experiment.port_cable(*asks)
    response_ns = experiment.settings.pfc.response_ns
    frame = experiment.settings.max_frame
    reach_ns = link.delay_ns + headroom.PAUSE_WIRE_BYTES * 8e9 / link.rate_bps
    wire_ns = (frame + headroom.WIRE_OVERHEAD) * 8e9 / link.rate_bps
    granted_ns = reach_ns + response_ns + wire_ns + link.delay_ns
    # Two frames it has taken before the pause frame leaves: see controller/headroom.py.
    room = headroom.headroom(link, frame, response_ns) - 2 * frame
    data = [seen for seen in _delivered(pcaps, obeys, asks) if is_data(seen.frame)]
    for begins, ends in _pauses(_delivered(pcaps, asks, obeys)):
        left, resumed = begins - reach_ns, ends + link.delay_ns
        if resumed - left < granted_ns:
            continue
        late = [seen for seen in data if left < seen.when_ns < resumed]
        silent = max((seen.when_ns for seen in late), default=left)
        yield Reaction(silent - left, granted_ns, sum(seen.length for seen in late), room)


def _pauses(frames: list[Captured]) -> Iterator[tuple[int, int]]:
    """From the arrival of an XOFF to that of its XON."""
    began = None
    for when, frame, _ in frames:
        if frame[12:16] != _PFC or not frame[17] >> LOSSLESS_PRIORITY & 1:
            continue
        at = 18 + 2 * LOSSLESS_PRIORITY
        is_xoff = frame[at : at + 2] != b"\0\0"
        if is_xoff and began is None:
            began = when
        elif not is_xoff and began is not None:
            yield began, when
            began = None


def _delivered(pcaps: Path, src: _End, dst: _End) -> list[Captured]:
    """What a direction of a link carried: the simulator's captures, or those of a switch."""
    simulated = pcaps / f"{src[0]}-{dst[0]}.pcap"
    if simulated.exists():
        return recorded(simulated)
    (node, port), way = (src, "out") if dst[0].kind is NodeKind.HOST else (dst, "in")
    return recorded(pcaps / f"{node.interface(port)}_{way}.pcap")
