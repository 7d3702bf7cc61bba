"""Which switches and hosts there are, and how they are cabled: a section for each kind."""

from __future__ import annotations

from enum import Enum
from ipaddress import ip_network
from pathlib import Path
from typing import Annotated, Literal, get_args

from pydantic import AfterValidator, Field, field_validator

from lab.scenario.fabrics import read_fabric
from params.rates import LinkGbps, bps
from params.section import Section
from params.units import DurationNs
from topologies import (
    Fabric,
    Network,
    Speed,
    dragonfly,
    dual_tor,
    fat_tree,
    leaf_spine,
    planes,
    rail,
    two_fabrics,
)
from topologies.fabric import USUAL


class Speaks(Enum):
    """Routing daemons of others."""

    BIRD = "bird"
    GOBGP = "gobgp"
    EXABGP = "exabgp"

    @property
    def program(self) -> str:
        """The one that runs."""
        return "gobgpd" if self is Speaks.GOBGP else self.value

    @property
    def package(self) -> str:
        """Debian's, which brings it."""
        return {Speaks.BIRD: "bird2"}.get(self, self.program)

    @property
    def writes_kernel(self) -> bool:
        """Whether the host sends by what it hears."""
        return self is Speaks.BIRD


def _is_routed(text: str) -> str:
    try:
        prefix = ip_network(text)
    except ValueError as error:
        raise ValueError(f"{error}: write it as 198.51.100.0/24, or 2001:db8:1::/48") from None
    if not prefix.prefixlen or prefix.is_multicast or prefix.is_loopback or prefix.is_link_local:
        raise ValueError(f"{prefix} is no prefix of unicast addresses that is behind anybody")
    return text


class OutsideRouter(Section):
    """A router of others in a host's place."""

    host: str
    """Which host it is: it speaks BGP with its leaf."""
    speaks: Speaks = Speaks.BIRD
    """The daemon, which is to be installed: Debian's bird2, gobgpd or exabgp."""
    prefixes: tuple[Annotated[str, AfterValidator(_is_routed)], ...] = Field(min_length=1)
    """What is behind it, IPv4 or IPv6, such as 198.51.100.0/24; the first address of each
    answers. Several routers may have the same behind them."""

    @property
    def networks(self) -> tuple[Network, ...]:
        """The same as addresses go."""
        return tuple(map(ip_network, self.prefixes))


class _Kind(Section):
    outside: tuple[OutsideRouter, ...] = ()
    """Routers of others in hosts' places (docs/bgp.md): only with control.kind=bgp."""

    @property
    def ports(self) -> int:
        """How many a host has."""
        return 1

    @property
    def is_split(self) -> bool:
        """Whether its ports lead into networks that have other hosts, each of which has a use."""
        return False

    def renamed(self) -> dict[str, str]:
        """What a file calls otherwise than the lab: its name, ours."""
        return {}


class LeafSpine(_Kind):
    """Leaves, each cabled to every spine."""

    kind: Literal["leaf-spine"] = "leaf-spine"
    leaves: int = 4
    """Switches that hosts hang at."""
    spines: int = 2
    """Switches that join the leaves: as many ways as these lead from leaf to leaf."""
    hosts_per_leaf: int = 2
    """Hosts at each leaf, counted h1, h2 ... leaf by leaf."""
    links: int = 1
    """Cables from each leaf to each spine; the second is called leaf1-spine1.2."""

    def build(self) -> Fabric:
        """The fabric this describes."""
        return leaf_spine(self.leaves, self.spines, self.hosts_per_leaf, self.links)


class FatTree(_Kind):
    """Three tiers of k-port switches: k pods, and k^3/4 hosts unless fewer hang at each leaf."""

    kind: Literal["fat-tree"]
    k: int = 4
    """Ports of a switch, an even number."""
    hosts_per_leaf: int | None = None
    """Hosts at each leaf; without it k/2, which is non-blocking."""

    def build(self) -> Fabric:
        """The fabric this describes."""
        return fat_tree(self.k, self.hosts_per_leaf)


class Rail(_Kind):
    """Servers whose n-th adapters all hang at the leaf of rail n."""

    kind: Literal["rail"]
    servers: int = 4
    """How many, evenly spread over the pods."""
    rails: int = 4
    """GPUs in each, and leaves in a pod: GPU n of every server hangs at leaf n."""
    spines: int = 2
    """Switches that join the rails."""
    pods: int = 1
    """Groups of servers, each with leaves of its own."""
    scale_up_gbps: LinkGbps | None = None
    """The rate between each GPU of a server and a switch that joins them, as NVSwitch does: what
    stays in a server goes there. Without it they have none."""
    scale_up_ns: DurationNs = Field(default=250, ge=0, le=10**9)
    """The delay of such a link."""

    def build(self) -> Fabric:
        """The fabric this describes."""
        inside = None
        if self.scale_up_gbps is not None:
            inside = Speed(bps(self.scale_up_gbps), self.scale_up_ns)
        return rail(self.servers, self.rails, self.spines, self.pods, inside)

    @property
    def ports(self) -> int:
        """Of a host: one to its rail, and one into its server if that has a switch."""
        return 2 if self.is_split else 1

    @property
    def is_split(self) -> bool:
        """Whether there is a network inside each server."""
        return self.scale_up_gbps is not None


class Dragonfly(_Kind):
    """Groups of switches, all of a group cabled to each other, and few cables between groups."""

    kind: Literal["dragonfly"]
    groups: int = 5
    """How many groups there are."""
    switches: int = 2
    """Switches of a group, each of them a leaf: leaf1 and leaf2 are the first group's."""
    hosts_per_leaf: int = 2
    """Hosts at each leaf."""
    global_links: int = 2
    """Cables from each switch to other groups, dealt to these in turn."""

    def build(self) -> Fabric:
        """The fabric this describes."""
        return dragonfly(self.groups, self.switches, self.hosts_per_leaf, self.global_links)


class Planes(_Kind):
    """Several independent leaf-spine fabrics, and hosts with a port into each."""

    kind: Literal["planes"]
    planes: int = 2
    """How many, and ports of a host, each at link.rate_gbps; a power of two."""
    leaves: int = 2
    """Switches of a plane that hosts hang at; the second plane's are counted on from there."""
    spines: int = 2
    """Switches of a plane that join its leaves."""
    hosts_per_leaf: int = 2
    """Hosts at each leaf of a plane; a host hangs at the same place in every plane."""

    @field_validator("planes")
    @classmethod
    def _is_power_of_two(cls, value: int) -> int:
        if value < 1 or value & (value - 1):
            raise ValueError("the ways of a connection are shared out evenly: 1, 2, 4 or 8 planes")
        return value

    def build(self) -> Fabric:
        """The fabric this describes."""
        return planes(self.planes, self.leaves, self.spines, self.hosts_per_leaf)

    @property
    def ports(self) -> int:
        """Of a host: one into each plane."""
        return self.planes


class DualTor(_Kind):
    """Leaves in pairs: every host of a rack has a port into each of its two leaves."""

    kind: Literal["dual-tor"]
    racks: int = 2
    """How many, of two leaves each: leaf1 and leaf2 are the first rack's."""
    spines: int = 2
    """Switches that join all leaves."""
    hosts_per_rack: int = 4
    """Hosts of each, with one address at two ports; a connection goes on by the other when one
    fails."""

    def build(self) -> Fabric:
        """The fabric this describes."""
        return dual_tor(self.racks, self.spines, self.hosts_per_rack)

    @property
    def ports(self) -> int:
        """Of a host of a rack: one into each leaf."""
        return 2


class TwoFabrics(_Kind):
    """A back-end fabric for GPUs, and a front-end where they meet servers, such as storage."""

    kind: Literal["two-fabrics"]
    leaves: int = 2
    """Switches of the back-end that hosts hang at."""
    spines: int = 2
    """Switches that join these."""
    hosts_per_leaf: int = 4
    """Hosts at each, which have a second port, into the front-end."""
    servers: int = 4
    """Hosts of the front-end alone, counted on from those: connections with them go there, all
    others through the back-end."""
    front_leaves: int = 2
    """Switches of the front-end that hosts hang at: neighbours together, servers likewise."""
    front_spines: int = 1
    """Switches that join these."""
    front_rate_gbps: LinkGbps | None = None
    """The rate of the front-end's links, if it differs."""

    def build(self) -> Fabric:
        """The fabric this describes."""
        rate = self.front_rate_gbps
        front = USUAL if rate is None else Speed(rate_bps=bps(rate))
        counts = self.leaves, self.spines, self.hosts_per_leaf, self.servers
        return two_fabrics(*counts, self.front_leaves, self.front_spines, front)

    @property
    def ports(self) -> int:
        """Of a host of the back-end: one into each fabric."""
        return 2

    @property
    def is_split(self) -> bool:
        """Servers are in the front-end alone."""
        return True


class File(_Kind):
    """A fabric somebody else described."""

    kind: Literal["file"]
    path: str
    """A topology.json of the P4 tutorials, a graph of networkx (JSON or GraphML), a .topo of htsim,
    or an InfraGraph (YAML or JSON); links without a speed get the scenario's."""

    def build(self) -> Fabric:
        """The fabric this describes."""
        return read_fabric(Path(self.path)).fabric

    def renamed(self) -> dict[str, str]:
        """What the file calls otherwise than the lab: its name, ours."""
        aliases = read_fabric(Path(self.path)).aliases
        return {theirs: node.name for theirs, node in aliases.items() if theirs != node.name}


Topology = LeafSpine | FatTree | Rail | Dragonfly | Planes | DualTor | TwoFabrics | File
TOPOLOGIES: dict[str, type[Section]] = {
    get_args(kind.model_fields["kind"].annotation)[0]: kind for kind in get_args(Topology)
}
"""By name, in the order in which they are told."""
