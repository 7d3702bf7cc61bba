"""MRC's time stamps, endpoint requests and ways for answers, against models of the wire."""

from __future__ import annotations

import random
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from scapy.layers.inet import UDP
from scapy.layers.l2 import Ether
from scapy.packet import Packet
from scapy.utils import PcapReader

from lab.machine.paths import CONGA_DISSECTOR
from params.data import Data
from tests.lab.simulated import Run, simulate
from tests.lab.test_captures import _number, dissected
from traffic.endpoint import MRC_OPTIONS
from traffic.layers import BTH, EETH, ERTH, METH, NETH, PETH, SETH, TSETH

_ALL = [f"transport.{key}=true" for key in MRC_OPTIONS]
_STAMP_NS = 128
_DIES_NS = 30_000  # when a port of the receiver does
_AGAIN = 0x20  # of what scapy calls reserved in a BTH
_FIRST_PORT = 0xC000  # of UDP: entropy 0
_PACKET = 4194 + 24  # bytes on the wire of 4,096, preamble, FCS and gap included


@pytest.mark.parametrize(
    "seed", [0, *(pytest.param(seed, marks=pytest.mark.slow) for seed in range(1, 25))]
)
def test_who_is_told_of_a_dead_port_loses_what_was_under_way(seed: int, tmp_path: Path) -> None:
    """What left before the word was there, and had not come when the port died, and no more."""
    rng = random.Random(seed)
    count = rng.choice((2, 4, 8))
    plane, at_us = rng.randrange(count), rng.randrange(40, 150)
    gbps, fabric_gbps = 400 // count, 1600 // count
    run = simulate(
        "planes",
        f"topology.planes={count}",
        f"link.rate_gbps={gbps}",
        f"link.fabric_rate_gbps={fabric_gbps}",
        "transport.kind=mrc",
        "transport.port_status=true",
        f"faults=[{{at_ns: {at_us}us, action: down, link: h5-leaf{2 * plane + 2}}}]",
        out=tmp_path,
    )
    serial = 2 * 8 / gbps + 2 * 8 / fabric_gbps  # a byte by four cables, each of 500 ns
    there, told = 2000 + _PACKET * serial, 2000 + (74 + 24) * serial
    under_way = (there + told) / (_PACKET * 8 / gbps)
    assert abs(run.result.roce.retransmitted_packets - under_way) < 2.5
    assert (run.result.flows.failed, run.result.roce.timeouts) == (0, 0)


def test_answers_take_ways_that_lead_there(tmp_path: Path) -> None:
    """Of a plane a spine loses all: so are a quarter of its answers, or none once that is known."""
    lost = []
    for switch in ("false", "true"):
        run = simulate(
            "path-health",
            *("transport={kind: mrc, cc: nscc, entropies: 64, acks: data}", "lb.policy=ecmp"),
            *("traffic.flows.0.bytes=8MB", f"transport.reverse_set={switch}"),
            "faults=[{at_ns: 20us, action: lose, rate: 1, link: leaf1-spine3}]",
            out=tmp_path / switch,
        )
        assert run.result.flows.failed == 0
        lost.append(run.result.drops.total)
    packets = 8_000_000 / 4096 * (1 - 20 / 170) / 16  # of which so many are answered by that spine
    assert lost[0] > 0.7 * packets and lost[1] < 0.4 * lost[0]


class Frame(Data):
    """A frame at a port of an adapter."""

    time_ns: int
    leaves: bool  # or has come
    packet: Packet

    @property
    def entropy(self) -> int:
        """Which way it goes."""
        return int(self.packet[UDP].sport) - _FIRST_PORT


def whole(kept: Packet) -> Packet:
    """The simulator keeps headers alone."""
    return Ether(bytes(kept).ljust(kept.wirelen, b"\0"))


def captured(run: Run, host: str) -> list[Frame]:
    """What left a host or came to it, by all of its ports, in the order of time."""
    found = []
    for path in sorted((run.out / "pcaps").glob(f"*{host}*.pcap")):
        for kept in PcapReader(str(path)):
            leaves = path.name.startswith(host)
            # What is kept is when it was at the other end, by a cable of 500 ns and 100 Gb/s.
            crosses = 500 + (kept.wirelen + 24) * 0.08 if leaves else 0
            found.append(Frame(round(float(kept.time * 10**9) - crosses), leaves, whole(kept)))
    return sorted(found, key=lambda frame: frame.time_ns)


@pytest.fixture(scope="module")
def frames(run: Run) -> dict[str, list[Frame]]:
    """What both hosts' ports saw."""
    return {host: captured(run, host) for host in ("h1", "h2")}


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Run:
    """A message over four planes, of which a spine loses some, and a port of the receiver dies."""
    ports = [f"h{host}-leaf{leaf + host}" for host in (1, 2) for leaf in (0, 2, 4, 6)]
    return simulate(
        "path-health",
        *("transport.kind=mrc", *_ALL, "transport.entropies=64", "lb.policy=ecmp"),
        "traffic.flows=[{src: h1, dst: h2, bytes: 2MB}]",
        "faults=[{at_ns: 5us, action: lose, link: leaf1-spine3, rate: 0.3}, "
        f"{{at_ns: {_DIES_NS}, action: down, link: h2-leaf8}}]",
        f"measures.pcap=[{', '.join(ports)}]",
        out=tmp_path_factory.mktemp("mrc"),
    )


def header(packet: Packet, *kinds: type[Packet]) -> Packet | None:
    """The first of some headers that it has."""
    return next((packet[kind] for kind in kinds if kind in packet), None)


def ways_of_answers(frames: list[Frame], planes: int) -> Iterator[tuple[int, int, set[int]]]:
    """Of each answer of a host that does not send when it left, its way, and those it may take.

    They are that of the plane's last probe that was answered a microsecond ago, or one answered
    since; before there is any, that of what it answers.
    """
    asked: dict[int, int] = {}
    known: list[tuple[int, int]] = []  # when, and the way
    for frame in frames:
        number, node = frame.packet[BTH].psn, header(frame.packet, ERTH, EETH)
        answer = header(frame.packet, SETH, NETH)
        if frame.leaves and node and ERTH in frame.packet and node.op == 1:
            asked = {number: frame.entropy}
        elif not frame.leaves and node and node.op == 1 and number in asked:
            known.append((frame.time_ns, asked[number]))
        elif frame.leaves and answer:
            about = (answer.entropy >> 16) - _FIRST_PORT
            of_plane = [(when, way) for when, way in known if way % planes == about % planes]
            late = {way for when, way in of_plane if when > frame.time_ns - 1000}
            before = [way for when, way in of_plane if when <= frame.time_ns - 1000]
            yield frame.time_ns, frame.entropy, late | set(before[-1:] or [about])


def test_answers_take_the_way_of_the_last_probe_that_was_answered(
    frames: dict[str, list[Frame]],
) -> None:
    """Until a port has no link any more, whose answers then take another."""
    found = list(ways_of_answers(frames["h2"], 4))
    alive = [(way, ways) for when, way, ways in found if when < _DIES_NS]
    assert len(alive) > 200
    assert all(way in ways for way, ways in alive)


def test_stamps_are_when_packets_left_and_come_back(frames: dict[str, list[Frame]]) -> None:
    """To 128 ns; an answer has that of the very transmission that it is about."""
    sent: dict[tuple[int, int], set[int]] = {}
    answered = 0
    for frame in frames["h1"]:
        packet, again = frame.packet, frame.packet[BTH].resv7 & _AGAIN
        seth = header(packet, SETH)
        if frame.leaves and METH in packet:
            stamp = packet[TSETH].tx_timestamp
            assert abs(frame.time_ns / _STAMP_NS - stamp) <= 1.01
            sent.setdefault((packet[BTH].psn, again), set()).add(stamp)
        elif seth and not seth.pr:
            psn = (seth.cack_psn + seth.ack_psn_offset) % 2**24
            assert seth.tx_timestamp in sent[psn, again]
            answered += 1
    assert answered > 300


def test_a_dead_port_is_told_by_the_others_and_answered(frames: dict[str, list[Frame]]) -> None:
    """At once; a few microseconds later nothing more is sent to its plane."""
    said = [
        (frame, node)
        for frame in frames["h2"]
        if (node := header(frame.packet, ERTH, EETH)) and node.op == 0
    ]
    (told, request), (heard, _) = said
    assert (told.leaves, heard.leaves, request.port_status_mask) == (True, False, 0b01110)
    assert heard.packet[BTH].psn == told.packet[BTH].psn and told.packet[BTH].dqpn == 2
    assert told.time_ns - _DIES_NS < 1000
    late = [
        frame
        for frame in frames["h1"]
        if frame.leaves and METH in frame.packet and frame.time_ns > told.time_ns + 2500
    ]
    assert {frame.entropy % 4 for frame in late} == {0, 1, 2}


def _any_of(field: str, *kinds: type[Packet]) -> Callable[[Packet], int | None]:
    return lambda packet: getattr(header(packet, *kinds), field, None)


_FIELDS: dict[str, Callable[[Packet], int | None]] = {  # of tshark, and how scapy has it
    "ts": lambda packet: int(packet[BTH].resv7 & 0x10 != 0),
    "tx_timestamp": _any_of("tx_timestamp", TSETH, SETH, NETH, PETH, ERTH, EETH),
    "ftype": _any_of("ftype", TSETH, PETH, ERTH),
    "tsr": _any_of("tsr", TSETH, PETH, ERTH),
    "ep_id": lambda packet: packet[BTH].psn if header(packet, ERTH, EETH) else None,
    "ep_op": _any_of("op", ERTH, EETH),
    "port_status_mask": _any_of("port_status_mask", ERTH),
}


@pytest.mark.skipif(shutil.which("tshark") is None, reason="tshark is not installed")
def test_tshark_and_scapy_read_the_same(run: Run) -> None:
    """Of all that a port saw; what has no such field is empty for both."""
    seen = set()
    for name in ("h2-leaf2.pcap", "leaf2-h2.pcap"):
        path = run.out / "pcaps" / name
        dissector, fields = (
            CONGA_DISSECTOR.with_name("mrc.lua"),
            [f"mrc.{name}" for name in _FIELDS],
        )
        packets = [whole(kept) for kept in PcapReader(str(path))]
        for row, packet in zip(dissected(str(path), dissector, fields), packets, strict=True):
            assert [_number(word) for word in row] == [read(packet) for read in _FIELDS.values()]
            seen.add(packet[BTH].opcode)
    assert {0xC7, 0xD8, 0xD9, 0xDC} <= seen
