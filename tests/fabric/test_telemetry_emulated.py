"""INT on real interfaces: reports against what the switches recorded of every frame, with when."""

from collections import defaultdict
from dataclasses import field
from pathlib import Path

import pytest

from controller.reports import Hop, Report
from lab.runs.run import UNBELIEVED
from params.data import Data
from tests.fabric.captures import carried, is_data, recorded, reported
from tests.lab.conftest import closlab
from topologies import leaf_spine

FABRIC = leaf_spine(2, 2, 2)
RATE_GBPS, DELAY_NS, OVERHEAD = 100, 1000, 24
LATE_NS = 20_000

Key = tuple[bytes, int, int]  # addresses, queue pair and opcode, sequence number


def key(frame: bytes) -> Key:
    """What tells a data packet from all others."""
    bth = carried(frame)[:12]
    return frame[26:34], int.from_bytes(bth[:1] + bth[4:8], "big"), int.from_bytes(bth[8:12], "big")


class Seen(Data, frozen=False):
    """What one switch recorded: when each packet came and left, by which port, and how long."""

    came: dict[Key, tuple[int, int, int]] = field(default_factory=dict)
    left: dict[Key, tuple[int, int, int]] = field(default_factory=dict)


def watch(folder: Path) -> dict[int, Seen]:
    """By number in telemetry."""
    seen: dict[int, Seen] = defaultdict(Seen)
    for switch in FABRIC.switches:
        number = int(switch.kind) << 16 | switch.number
        for port in FABRIC.ports(switch):
            for direction, notes in (("in", seen[number].came), ("out", seen[number].left)):
                for when, frame, _ in recorded(
                    folder / f"{switch.interface(port)}_{direction}.pcap"
                ):
                    if is_data(frame):
                        notes[key(frame)] = (port, when, len(frame))
    return seen


def check_hop(hop: Hop, packet: Key, seen: Seen) -> None:
    port_in, came, _ = seen.came[packet]
    port_out, arrived, length = seen.left[packet]
    assert (hop.ingress_port, hop.egress_port) == (port_in, port_out)
    assert hop.ingress_time == came
    assert hop.egress_time is not None
    on_the_wire = (length + OVERHEAD) * 8 / RATE_GBPS + DELAY_NS
    # The switch keeps fractions of a nanosecond to itself.
    assert arrived - on_the_wire == pytest.approx(hop.egress_time, abs=2)
    assert hop.latency == hop.egress_time - hop.ingress_time


@pytest.mark.mininet
def test_reports_equal_what_the_switches_recorded(tmp_path: Path) -> None:
    words = ["run", "two-elephants", "--set", "int.share=1", "--pcap", "--out", str(tmp_path)]
    flows = "[{src: h1, dst: h4, bytes: 400KB}, {src: h2, dst: h3, bytes: 400KB}]"
    done = closlab(*words, "--set", f"traffic.flows={flows}")
    assert done.returncode in (0, UNBELIEVED), done.stderr  # what is late is told as late
    folder = tmp_path / "pcaps"
    seen = watch(folder)

    reports: dict[Key, Report] = {}
    for leaf in ("leaf1", "leaf2"):
        for report in reported(folder, FABRIC.node(leaf)):
            reports[key(report.packet)] = report
    data_packets = 2 * -(-400_000 // 4096)
    assert len(reports) == data_packets
    waits: dict[tuple[int, int], list[tuple[int, int, int]]] = defaultdict(list)
    for packet, report in reports.items():
        assert len(report.hops) == 3
        for hop in report.hops:
            assert hop.node is not None and hop.egress_port is not None
            check_hop(hop, packet, seen[hop.node])
            length = seen[hop.node].came[packet][2]
            waits[hop.node, hop.egress_port].append(
                (hop.ingress_time or 0, hop.egress_time or 0, length)
            )

    # What a packet says of its queue is what had come and not yet left as it left, itself included;
    # of those that came or left in the same nanosecond it cannot be told which. Under the real
    # clock a switch that is late looks a little later than it should, and sees more.
    deepest = 0
    for packet, report in reports.items():
        for hop in report.hops:
            assert hop.node is not None and hop.egress_port is not None
            own, now = seen[hop.node].came[packet][2], hop.egress_time or 0
            others = waits[hop.node, hop.egress_port]
            least = sum(size for came, left, size in others if came < now < left)
            most = sum(size for came, left, size in others if came <= now + LATE_NS and now <= left)
            assert min(least + own, most) <= (hop.queue_bytes or 0) <= most
            deepest = max(deepest, hop.queue_bytes or 0)
    assert deepest > 100_000  # two senders on one uplink

    # And the packets came out as they went in, but for what every router changes.
    came, left = (
        {
            key(f): f
            for port in (1, 2)
            for _, f, _ in recorded(folder / end.format(port))
            if is_data(f)
        }
        for end in ("leaf1-eth{}_in.pcap", "leaf2-eth{}_out.pcap")
    )
    assert len(left) == data_packets
    for packet, frame in left.items():
        assert routed(frame) == routed(came[packet])
        assert came[packet][22] - frame[22] == 3  # TTL


def routed(frame: bytes) -> bytes:
    """A frame without its MAC addresses, TTL and header checksum."""
    return frame[12:22] + frame[23:24] + frame[26:]
