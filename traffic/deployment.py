"""A schedule on hosts: which queue pairs there are, and the plan that each endpoint carries out.

Two ranks that exchange anything on a channel share one connection, both ways over it, and so one
pair of UDP source ports, hence one path each way for a load balancer that hashes. Connections are
numbered in order; connection k has the queue pairs 2k + 2 at its lower rank and 2k + 3 at its
higher. Transfers keep the ids of the schedule, which are their rkeys and immediates on the wire.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from ipaddress import IPv4Address

from traffic.collectives import Schedule, Timeline, local_part
from traffic.endpoint import (
    CongestionControl,
    EndpointConfig,
    EndpointPlan,
    EndpointReport,
    QueuePair,
    Transfer,
    TransferKind,
)
from traffic.frames import DSCP_CONTROL, DSCP_ROCE, FlowAddress

_FIRST_SOURCE_PORT = 0xC000
_SOURCE_PORTS = 0x4000
_SPREAD = 0x9E5  # odd, so that neighbours' ports differ in many bits and none comes twice
_DSCP_OF_PRIORITY = {0: 0, 3: DSCP_ROCE, 6: DSCP_CONTROL}
_KINDS = {
    "send": TransferKind.SEND,
    "receive": TransferKind.RECEIVE,
    "work": TransferKind.COMPUTE,
}


class DeploymentError(ValueError):
    """The schedule cannot be put on these hosts; the text says why."""


@dataclass(frozen=True, slots=True)
class Adapter:
    """Where a rank's endpoint sits."""

    address: IPv4Address
    mac: str
    gateway_mac: str  # whom its frames go to first


@dataclass(frozen=True, slots=True)
class _Connection:
    number: int
    activity: int


class Deployment:
    """A schedule's connections and plans, rank by rank."""

    def __init__(
        self,
        schedule: Schedule,
        adapters: Sequence[Adapter],
        config: EndpointConfig,
        *,
        cc: CongestionControl = CongestionControl.NONE,
    ) -> None:
        if len(adapters) < schedule.ranks:
            raise DeploymentError(
                f"{schedule.ranks} ranks need as many hosts, and there are {len(adapters)}"
            )
        self._schedule = schedule
        self._adapters = adapters
        self._config = config
        self._cc = cc
        self._connections = _connections(schedule)

    def plan(self, rank: int) -> EndpointPlan:
        """What a rank's endpoint is told."""
        transfers = tuple(
            Transfer(
                id=part.id,
                kind=_KINDS[part.kind],
                queue_pair=None
                if part.kind == "work"
                else self._number(rank, part.peer, part.channel),
                size=part.size,
                delay_ns=part.delay_ns,
                after=part.after,
            )
            for part in local_part(self._schedule, rank)
        )
        peers = {
            (part.peer, part.channel): None
            for part in local_part(self._schedule, rank)
            if part.kind != "work"
        }
        return EndpointPlan(
            config=self._config,
            queue_pairs=tuple(self._queue_pair(rank, *peer) for peer in peers),
            transfers=transfers,
        )

    def timeline(self, reports: Mapping[int, EndpointReport]) -> Timeline:
        """When transfers were posted and when they had arrived, from reports by rank."""
        starts: dict[int, int] = {}
        ends: dict[int, int] = {}
        for report in reports.values():
            for transfer in report.transfers.values():
                if transfer.kind is not TransferKind.RECEIVE and transfer.start_ns is not None:
                    starts[transfer.id] = transfer.start_ns
                if transfer.kind is not TransferKind.SEND and transfer.end_ns is not None:
                    ends[transfer.id] = transfer.end_ns
        return Timeline.gather(len(self._schedule), starts, ends)

    def _number(self, rank: int, peer: int, channel: int) -> int:
        connection = self._connections[min(rank, peer), max(rank, peer), channel]
        return 2 * connection.number + 2 + (rank > peer)

    def _queue_pair(self, rank: int, peer: int, channel: int) -> QueuePair:
        connection = self._connections[min(rank, peer), max(rank, peer), channel]
        activity = self._schedule.activities[connection.activity]
        ports = min(activity.source_ports or _SOURCE_PORTS, _SOURCE_PORTS)
        here, there = self._adapters[rank], self._adapters[peer]
        return QueuePair(
            number=self._number(rank, peer, channel),
            flow=FlowAddress(
                src_mac=here.mac,
                dst_mac=here.gateway_mac,
                src=here.address,
                dst=there.address,
                src_port=_FIRST_SOURCE_PORT + connection.number * _SPREAD % ports,
                queue_pair=self._number(peer, rank, channel),
            ),
            priority=activity.priority,
            dscp=_DSCP_OF_PRIORITY.get(activity.priority, activity.priority << 3),
            cc=self._cc,
        )


def _connections(schedule: Schedule) -> dict[tuple[int, int, int], _Connection]:
    """Number the connections in the order in which they are first used."""
    found: dict[tuple[int, int, int], _Connection] = {}
    columns = zip(schedule.src, schedule.dst, schedule.channel, schedule.activity, strict=True)
    for src, dst, channel, activity in columns:
        key = (src, dst, channel) if src < dst else (dst, src, channel)
        if src != dst and key not in found:
            found[key] = _Connection(len(found), activity)
    return found
