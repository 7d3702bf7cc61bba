"""What telemetry reports tell of a run: how long packets took at each hop, how long queues were."""

from __future__ import annotations

from array import array
from dataclasses import field

from controller import Report, ReportError, decode
from controller.tables import node_id
from params.data import Data
from topologies import Fabric, Node


class HopSeen(Data, frozen=False):
    """What one switch said of the packets that carried telemetry, or that it dropped."""

    latency_ns: array[float] = field(default_factory=lambda: array("d"))
    queue_bytes: array[float] = field(default_factory=lambda: array("d"))


class Tally(Data, frozen=False):
    """All reports of a run."""

    numbers: dict[int, str]  # switches by their number in telemetry
    tick_ns: float = 1.0
    reports: int = 0
    unreadable: int = 0
    mtu_exceeded: int = 0  # reports of packets without room for every hop
    hops: dict[str, HopSeen] = field(default_factory=dict)
    kept: list[Report] | None = None  # all of them, where somebody wants them one by one

    @classmethod
    def of(cls, fabric: Fabric, tick_ns: float = 1.0, *, keeps: bool = False) -> Tally:
        """An empty one."""
        numbers = {node_id(switch): switch.name for switch in fabric.switches}
        return cls(numbers, tick_ns, kept=[] if keeps else None)

    def add(self, frame: bytes) -> None:
        """Take a report into account."""
        try:
            report = decode(frame)
        except ReportError:
            self.unreadable += 1
            return
        self.reports += 1
        if self.kept is not None:
            self.kept.append(report)
        self.mtu_exceeded += report.mtu_exceeded
        for hop in report.hops:
            name = None if hop.node is None else self.numbers.get(hop.node)
            if name is None:
                continue
            seen = self.hops.setdefault(name, HopSeen())
            if (stayed := hop.stayed_ns(self.tick_ns)) is not None:
                seen.latency_ns.append(stayed)
            if hop.queue_bytes is not None:
                seen.queue_bytes.append(hop.queue_bytes)

    def add_all(self, other: Tally) -> None:
        """Take into account what others have of the same run."""
        self.reports += other.reports
        self.unreadable += other.unreadable
        self.mtu_exceeded += other.mtu_exceeded
        for name, hop in other.hops.items():
            seen = self.hops.setdefault(name, HopSeen())
            seen.latency_ns += hop.latency_ns
            seen.queue_bytes += hop.queue_bytes
        if self.kept is not None:
            self.kept += other.kept or []


def switch_named(fabric: Fabric, number: int | None) -> Node | None:
    """The switch of this number in telemetry."""
    return next((switch for switch in fabric.switches if node_id(switch) == number), None)
