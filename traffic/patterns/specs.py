"""Patterns as YAML describes them."""

from __future__ import annotations

from collections import Counter
from typing import Annotated, Literal

from pydantic import Field

from params.classes import Priority
from params.units import DurationNs, Host, Size
from traffic.collectives import ClassedSpec, RankError, Schedule, Site, Spec
from traffic.patterns import flows
from traffic.patterns.sizes import size_distribution

Load = Annotated[float, Field(gt=0, le=1)]
BEST_EFFORT = 0
Messages = Annotated[int, Field(ge=1, le=100_000)]


class IncastSpec(ClassedSpec):
    """Several hosts write to one at once."""

    kind: Literal["incast"] = "incast"
    bytes: Size
    """That every sender writes in a message."""
    senders: int | None = None
    """How many write: the first hosts that are not the receiver. Without it all others do."""
    receiver: Host = 0
    """The host they write to: a name such as h1, or a number counted from 0."""
    messages: Messages = 1
    """How many every sender writes, one after the other."""

    def schedule(self, site: Site) -> Schedule:
        """The flows on this site."""
        return flows.incast(
            site.hosts,
            self.bytes,
            senders=self.senders,
            receiver=self.receiver,
            messages=self.messages,
        )


class FlowSpec(Spec):
    """One flow."""

    src: Host
    """The host that sends: a name such as h1, or a number counted from 0."""
    dst: Host
    """The host it sends to."""
    bytes: Size
    """The size of a message."""
    at_ns: DurationNs = Field(default=0, ge=0)
    """When it begins."""


class FlowsSpec(ClassedSpec):
    """Flows named one by one."""

    kind: Literal["flows"] = "flows"
    name: str = Field(default="flows", min_length=1)
    """What results call them."""
    flows: Annotated[tuple[FlowSpec, ...], Field(min_length=1)]
    """Which: each from a host to another, so many bytes."""
    messages: Messages = 1
    """How many every flow has, one after the other."""
    rest_ns: DurationNs = Field(default=0, ge=0)
    """How long a sender rests between two of them."""

    def schedule(self, site: Site) -> Schedule:
        """The flows on this site."""
        channels: Counter[tuple[int, int]] = Counter()
        made = []
        for flow in self.flows:
            for host in (flow.src, flow.dst):
                if not 0 <= host < site.hosts:
                    raise RankError(f"{self.name}: there is no h{host + 1}", _hosts(site))
            if flow.src == flow.dst:
                raise RankError(f"{self.name}: h{flow.src + 1} sends to itself", "name two hosts")
            channels[flow.src, flow.dst] += 1
            channel = channels[flow.src, flow.dst] - 1
            made.append(flows.Flow(flow.src, flow.dst, channel, flow.bytes, flow.at_ns))
        chosen = flows.FlowSet(self.name, made, self.messages, rest_ns=self.rest_ns)
        return chosen.schedule(site.hosts)


def _hosts(site: Site) -> str:
    return f"they are h1 to h{site.hosts}"


class PermutationSpec(ClassedSpec):
    """Everyone sends to one other, drawn from the seed."""

    kind: Literal["permutation"] = "permutation"
    bytes: Size
    """The size of a message."""
    messages: Messages = 1
    """How many everyone sends, one after the other."""

    def schedule(self, site: Site) -> Schedule:
        """The flows on this site."""
        return flows.permutation(site.hosts, self.bytes, seed=site.seed, messages=self.messages)


class ElephantsSpec(ClassedSpec):
    """A few long flows of low entropy."""

    kind: Literal["elephants"] = "elephants"
    bytes: Size
    """The size of a message."""
    flows: int | None = None
    """How many there are; without it one from every host."""
    messages: Messages = 1
    """How many each flow has, one after the other."""
    source_ports: int = 1
    """How many UDP source ports they share; 1: only addresses tell them apart."""

    def schedule(self, site: Site) -> Schedule:
        """The flows on this site."""
        return flows.elephants(
            site.hosts,
            self.bytes,
            seed=site.seed,
            flows=self.flows,
            messages=self.messages,
            source_ports=self.source_ports,
        )


class PoissonSpec(ClassedSpec):
    """Flows of a named size distribution that arrive at random."""

    kind: Literal["poisson"] = "poisson"
    load: Load
    """The share of their rate that ports are busy with payload, on average over many seeds; most
    bytes are in few flows, so that a short run may be far from it."""
    duration_ns: DurationNs
    """For how long flows arrive."""
    sizes: str = "websearch"
    """How large they are: websearch, hadoop, storage or google-rpc, or the name of a file of points
    (bytes, per cent of flows no larger), as HPCC's and ConWeave's simulators read."""
    sigma: float | None = Field(default=None, gt=0, le=4)
    """Log-normal gaps between flows instead of exponential ones: the standard deviation of their
    logarithm. 1 and 2 are usual; the larger, the more flows come in bursts at the same load."""
    between_racks: bool = False
    """Whether sender and receiver hang at different leaves always, and not by chance."""

    def schedule(self, site: Site) -> Schedule:
        """The flows on this site."""
        return flows.poisson(
            site.hosts,
            size_distribution(self.sizes),
            load=self.load,
            rate_gbps=site.rate_gbps,
            duration_ns=self.duration_ns,
            seed=site.seed,
            sigma=self.sigma,
            racks=site.racks if self.between_racks else None,
        )


class NorthSouthSpec(ClassedSpec):
    """Background traffic with the world outside."""

    kind: Literal["north-south"] = "north-south"
    load: Load
    """The share of its rate that a gateway's port is busy each way, on average."""
    duration_ns: DurationNs
    """For how long flows arrive."""
    gateways: tuple[Host, ...] = (0,)
    """The hosts through which the world is reached."""
    sizes: str = "hadoop"
    """How large the flows are: websearch, hadoop, storage, google-rpc or a file, as for poisson."""
    priority: Priority = BEST_EFFORT
    """Its class: 3 is lossless unless pfc.priorities has others, 0 best effort, 6 control."""

    def schedule(self, site: Site) -> Schedule:
        """The flows on this site."""
        return flows.north_south(
            site.hosts,
            size_distribution(self.sizes),
            gateways=self.gateways,
            load=self.load,
            rate_gbps=site.rate_gbps,
            duration_ns=self.duration_ns,
            seed=site.seed,
        )
