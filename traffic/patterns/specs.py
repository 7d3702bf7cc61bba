"""Patterns as YAML describes them."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from traffic.collectives import Schedule, Site, Spec
from traffic.collectives.units import DurationNs, Size
from traffic.patterns import flows
from traffic.patterns.sizes import size_distribution

Load = Annotated[float, Field(gt=0, le=1)]
Priority = Annotated[int, Field(ge=0, le=7)]
Messages = Annotated[int, Field(ge=1, le=100_000)]


class IncastSpec(Spec):
    """Several hosts write to one at once."""

    kind: Literal["incast"] = "incast"
    bytes: Size
    senders: int | None = None  # none: all the others
    receiver: int = 0
    messages: Messages = 1

    def schedule(self, site: Site) -> Schedule:
        """The flows on this site."""
        return flows.incast(
            site.hosts,
            self.bytes,
            senders=self.senders,
            receiver=self.receiver,
            messages=self.messages,
        )


class PermutationSpec(Spec):
    """Everyone sends to one other."""

    kind: Literal["permutation"] = "permutation"
    bytes: Size
    messages: Messages = 1

    def schedule(self, site: Site) -> Schedule:
        """The flows on this site."""
        return flows.permutation(site.hosts, self.bytes, seed=site.seed, messages=self.messages)


class ElephantsSpec(Spec):
    """A few long flows of low entropy."""

    kind: Literal["elephants"] = "elephants"
    bytes: Size
    flows: int | None = None  # none: one from every host
    messages: Messages = 1
    source_ports: int = 1

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


class PoissonSpec(Spec):
    """Flows of a named size distribution that arrive at random."""

    kind: Literal["poisson"] = "poisson"
    load: Load
    duration_ns: DurationNs
    sizes: str = "websearch"
    priority: Priority = 3

    def schedule(self, site: Site) -> Schedule:
        """The flows on this site."""
        return flows.poisson(
            site.hosts,
            size_distribution(self.sizes),
            load=self.load,
            rate_gbps=site.rate_gbps,
            duration_ns=self.duration_ns,
            seed=site.seed,
            priority=self.priority,
        )


class NorthSouthSpec(Spec):
    """Background traffic with the world outside."""

    kind: Literal["north-south"] = "north-south"
    load: Load
    duration_ns: DurationNs
    gateways: tuple[int, ...] = (0,)
    sizes: str = "hadoop"
    priority: Priority = flows.BEST_EFFORT

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
            priority=self.priority,
        )
