"""A fabric as a graph: hosts and switches, links between numbered ports.

Everything a user may want to type is computable from a node's name and place:

- switches are ``leaf1``, ``spine2``, ``core3``; hosts are ``h1`` to ``hN``;
- a node's port *p* is the interface ``<node>-eth<p>``; a switch counts its ports from 1, hosts
  first; a host's one port is 0, and one with a port into each of several planes counts on from it;
- a cable is ``leaf1-spine2``, the end nearer to the hosts first; the second between the same two
  nodes is ``leaf1-spine2.2``, the third ``leaf1-spine2.3``; its directions are ``leaf1>spine2.2``
  and ``spine2>leaf1.2``;
- the host in slot *s* of leaf *l* has the address 10.<l as 16 bits>.<s> and a MAC of 02:00 and the
  same four bytes, and all hosts of the leaf share the /24;
- a host that hangs at several leaves, one in each plane, has an address and a MAC of that kind at
  each of them; planes share hosts and nothing else;
- two leaves that are a pair have the same hosts, the first's prefix and, towards these, the first's
  MAC: such a host has one address and one MAC at both of its ports;
- in a fabric that speaks IPv6 it has the address fd00:0:0:<l>::<s>, all hosts of the leaf share the
  /64, and the MAC is the same;
- a switch has one MAC, 02:01, its kind and its number, and the address 10.255.0.0 with 4 bits of
  its kind and 12 of its number: leaf1 is 10.255.16.1;
- where tenants have networks of their own, each counts its hosts as if there were no others: the
  first of every tenant at a leaf has that leaf's address 1. In a subnet of all its leaves together
  its hosts are 172.16.0.1 and so on.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from copy import copy
from enum import IntEnum
from functools import cached_property, reduce
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_network
from itertools import count, islice
from operator import or_
from typing import TYPE_CHECKING, Literal, NamedTuple

from params.data import Data

if TYPE_CHECKING:
    import networkx as nx

Address = IPv4Address | IPv6Address
Network = IPv4Network | IPv6Network
IpVersion = Literal[4, 6]

_IPV6_BLOCK = 0xFD00 << 112
_LOOPBACKS = 10 << 24 | 255 << 16
_KIND_BITS = 12
_STRETCHED = IPv4Network("172.16.0.0/16")
_GATEWAY = 254  # among the addresses behind a leaf
MAX_LEAVES = 0xFFFF
MAX_HOSTS_PER_LEAF = 253  # .0 is the prefix itself, .254 the leaf, .255 the broadcast address
MAX_PORT = 508  # of a switch; v1model's 9 bits also name those of reports, of a CPU, and of drops


class TopologyError(ValueError):
    """A fabric that cannot be built as asked."""


def check_counts(least: int = 1, /, **counts: tuple[int, int]) -> None:
    """Refuse what there is too little or too much of: by name, how many, and the most."""
    for what, (number, most) in counts.items():
        if not least <= number <= most:
            raise TopologyError(f"{what} is {number}; it must be from {least} to {most}")


class NodeKind(IntEnum):
    """What a node is; the number is part of a switch's MAC."""

    HOST = 0
    LEAF = 1
    SPINE = 2
    CORE = 3

    __hash__ = int.__hash__  # that of enumerations is Python's, and nodes are keys everywhere


_CALLED = "h", "leaf", "spine", "core"


class Node(NamedTuple):
    """A host or a switch."""

    kind: NodeKind
    number: int

    @property
    def name(self) -> str:
        """``h3``, ``leaf1``, ``spine2``."""
        return f"{_CALLED[self.kind]}{self.number}"

    def interface(self, port: int) -> str:
        """The name of the network interface at one of this node's ports."""
        return f"{self.name}-eth{port}"

    def __str__(self) -> str:
        return self.name


class Speed(Data):
    """What is particular about a cable; None: as usual for its kind."""

    rate_bps: int | None = None
    delay_ns: int | None = None


USUAL = Speed()


class Link(Data):
    """A cable between two ports; what it is called is worked out once."""

    a: Node
    a_port: int
    b: Node
    b_port: int
    speed: Speed = USUAL
    number: int = 1  # among those between the same two nodes

    @cached_property
    def name(self) -> str:
        """``leaf1-spine2``: the two ends, the one nearer to the hosts first; or with a number."""
        return f"{self.a}-{self.b}{self._suffix}"

    @cached_property
    def up(self) -> str:
        """The name of the direction away from the hosts: ``leaf1>spine2``."""
        return f"{self.a}>{self.b}{self._suffix}"

    @cached_property
    def down(self) -> str:
        """The name of the direction towards the hosts: ``spine2>leaf1``."""
        return f"{self.b}>{self.a}{self._suffix}"

    @property
    def _suffix(self) -> str:
        return f".{self.number}" if self.number > 1 else ""

    def port_of(self, end: Node) -> int:
        """The port at one of the two ends."""
        return self.a_port if end == self.a else self.b_port

    @property
    def directions(self) -> tuple[str, str]:
        """The names of both."""
        return self.up, self.down

    def direction(self, sender: Node) -> str:
        """The name of the direction that one of the two ends sends in."""
        return self.up if sender == self.a else self.down

    @property
    def joins_switches(self) -> bool:
        """Whether neither end is a host."""
        return NodeKind.HOST not in (self.a.kind, self.b.kind)


def nodes(kind: NodeKind, number: int, first: int = 1) -> list[Node]:
    """So many of a kind, counted on from one."""
    return [Node(kind, each) for each in range(first, first + number)]


class Fabric:
    """A connected graph of nodes, built link by link and read by everyone else."""

    def __init__(self, ip: IpVersion = 4) -> None:
        self.ip: IpVersion = ip  # that hosts speak
        self.tenants: Mapping[Node, int] = {}  # hosts whose tenants have networks of their own
        self.is_stretched = False  # whether each of these is one subnet
        self.is_spread = True
        """Whether connections use all planes that both ends are in, and not the first of these."""
        self._links: list[Link] = []
        self._by_port: dict[Node, dict[int, Link]] = {}
        self._free: dict[Node, int] = {}  # below which no port is
        self._between: dict[tuple[Node, Node], list[Link]] = {}  # the lesser end first
        self._slots: dict[Node, dict[Node, int]] = {}  # by host and leaf, in the order of its ports
        self._below: Counter[Node] = Counter()  # leaves' hosts
        self._first_of: dict[Node, Node] = {}  # by the second leaf of a pair
        self._addresses: dict[Node, IPv4Address] = {}
        self._macs: dict[Node, str] = {}

    # --- building -------------------------------------------------------------------------

    def add_host(
        self,
        host: Node,
        leaf: Node,
        speed: Speed = USUAL,
        *,
        port: int | None = None,
        address: IPv4Address | None = None,
        mac: str | None = None,
    ) -> None:
        """Cable a host to a leaf, at its next slot and lowest free port unless told otherwise.

        One that is cabled to a leaf already gets a port into another plane.
        """
        slot = self._below[leaf] = self._below[leaf] + 1
        if slot > MAX_HOSTS_PER_LEAF:
            raise TopologyError(f"{leaf} has more than {MAX_HOSTS_PER_LEAF} hosts")
        self._slots.setdefault(host, {})[leaf] = slot
        if address is not None:
            self._addresses[host] = address
        if mac is not None:
            self._macs[host] = mac
        self.add_link(host, leaf, speed, b_port=port)

    def add_link(
        self,
        a: Node,
        b: Node,
        speed: Speed = USUAL,
        *,
        a_port: int | None = None,
        b_port: int | None = None,
    ) -> None:
        """Cable two nodes, each at its lowest free port unless told otherwise."""
        beside = self._between.setdefault((a, b) if a < b else (b, a), [])
        if beside and NodeKind.HOST in (a.kind, b.kind):
            raise TopologyError(f"{a} and {b} are cabled already: a host has one cable")
        if beside:
            a, a_port, b, b_port = (
                (a, a_port, b, b_port) if beside[0].a == a else (b, b_port, a, a_port)
            )
        link = Link(a, self._port(a, a_port), b, self._port(b, b_port), speed, len(beside) + 1)
        beside.append(link)
        self._links.append(link)
        self._by_port.setdefault(a, {})[link.a_port] = link
        self._by_port.setdefault(b, {})[link.b_port] = link

    def part(self, nodes: Collection[Node]) -> Fabric:
        """The same fabric, which tells of these nodes and the cables between them alone.

        Names, addresses, ports and what hangs at them are the whole fabric's.
        """
        other = copy(self)
        other._links = [link for link in self._links if link.a in nodes and link.b in nodes]
        other.hosts = tuple(host for host in self.hosts if host in nodes)
        other.switches = tuple(switch for switch in self.switches if switch in nodes)
        return other

    def hang(self, leaves: Iterable[Node], each: int) -> None:
        """Hosts at leaves, so many at each, counted leaf by leaf."""
        numbers = count(1)
        for leaf in leaves:
            for number in islice(numbers, each):
                self.add_host(Node(NodeKind.HOST, number), leaf)

    def join(
        self, lower: Sequence[Node], upper: Iterable[Node], links: int = 1, speed: Speed = USUAL
    ) -> None:
        """Cable each of these to each of those, so many times."""
        for above in upper:
            for below in lower:
                for _ in range(links):
                    self.add_link(below, above, speed)

    def pair(self, first: Node, second: Node) -> None:
        """Let two leaves be the same to their hosts, which hang at both."""
        self._first_of[second] = first

    def at_speeds(self, speeds: Mapping[str, Speed]) -> Fabric:
        """The same fabric with other cables where their names are given."""
        return self._copied(self.ip, speeds)

    def speaking(self, ip: IpVersion) -> Fabric:
        """The same fabric with addresses of another version of IP."""
        return self if ip == self.ip else self._copied(ip, {})

    def with_tenants(self, tenants: Iterable[Iterable[str]], *, stretched: bool) -> Fabric:
        """The same fabric, where these have networks of their own and the same addresses."""
        other = self._copied(self.ip, {})
        by_name = {name: n for n, names in enumerate(tenants, 1) for name in names}
        numbers = {host: by_name[host.name] for host in self.hosts if host.name in by_name}
        places: Counter[tuple[int, Node | None]] = Counter()
        addresses = dict(self._addresses)
        for host, number in numbers.items():
            leaf = self.leaf_of(host)
            place = number, None if stretched else leaf
            places[place] += 1
            prefix = _STRETCHED if stretched else self.prefix(leaf)
            addresses[host] = IPv4Address(int(prefix.network_address) + places[place])
        other.tenants, other.is_stretched = numbers, stretched
        other._macs = self._macs | {host: self.mac(host) for host in self.hosts}
        other._addresses = addresses
        return other

    def _copied(self, ip: IpVersion, speeds: Mapping[str, Speed]) -> Fabric:
        other = Fabric(ip)
        other.tenants, other.is_stretched = self.tenants, self.is_stretched
        other.is_spread, other._first_of = self.is_spread, self._first_of
        other._slots, other._addresses, other._macs = self._slots, self._addresses, self._macs
        for link in self._links:
            speed = speeds.get(link.name, link.speed)
            other.add_link(link.a, link.b, speed, a_port=link.a_port, b_port=link.b_port)
        return other

    def _port(self, node: Node, wanted: int | None) -> int:
        taken = self._by_port.get(node, {})
        if wanted in taken:
            raise TopologyError(f"port {wanted} of {node} has two links")
        port = wanted
        if port is None:
            port = self._free.get(node, 0 if node.kind is NodeKind.HOST else 1)
            while port in taken:
                port += 1
            self._free[node] = port
        if port > MAX_PORT:
            raise TopologyError(f"{node} has a port {port}, and its last one is {MAX_PORT}")
        return port

    # --- nodes and links ------------------------------------------------------------------

    @cached_property
    def hosts(self) -> tuple[Node, ...]:
        """All hosts in order."""
        return tuple(sorted(node for node in self._by_port if node.kind is NodeKind.HOST))

    @cached_property
    def switches(self) -> tuple[Node, ...]:
        """All switches, leaves first."""
        return tuple(sorted(node for node in self._by_port if node.kind is not NodeKind.HOST))

    @cached_property
    def graph(self) -> nx.Graph[Node]:
        """Who is cabled to whom, by however many cables."""
        import networkx as nx  # which a run in the simulator mostly does without

        return nx.Graph((link.a, link.b) for link in self._links)

    def far_from(self, node: Node) -> dict[Node, int]:
        """How many links each node that can be reached is away from one."""
        found, edge, far = {node: 0}, [node], 0
        while edge:
            far += 1
            behind = {other for here in edge for other in self.neighbours(here)}
            edge = [other for other in behind if other not in found]
            found |= dict.fromkeys(edge, far)
        return found

    def neighbours(self, node: Node) -> Iterator[Node]:
        """What hangs at a node's ports, in no order."""
        return (link.b if link.a == node else link.a for link in self._by_port[node].values())

    @cached_property
    def joined(self) -> dict[Node, list[Node]]:
        """By switch: the switches that are cabled to it, in the order in which they were."""
        found: dict[Node, dict[Node, None]] = {switch: {} for switch in self.switches}
        for link in self._links:
            if link.joins_switches:
                found[link.a][link.b] = found[link.b][link.a] = None
        return {switch: list(others) for switch, others in found.items()}

    @cached_property
    def longest_way(self) -> int:
        """The most switches that a packet crosses if it goes the shortest way."""
        beside = self.joined
        leaves = [switch for switch in self.switches if switch.kind is NodeKind.LEAF]
        # Which leaves a switch is reached from, a bit each, after ever more hops.
        reached = dict.fromkeys(beside, 0) | {leaf: 1 << bit for bit, leaf in enumerate(leaves)}
        hops = longest = 0
        while True:
            before, hops = reached, hops + 1
            reached = {
                switch: reduce(or_, (before[node] for node in nodes), before[switch])
                for switch, nodes in beside.items()
            }
            if reached == before:
                return 1 + longest
            if any(reached[leaf] != before[leaf] for leaf in leaves):
                longest = hops

    @property
    def links(self) -> tuple[Link, ...]:
        """All links in the order they were laid."""
        return tuple(self._links)

    def node(self, name: str) -> Node:
        """The node of that name."""
        if name in self._named:
            return self._named[name]
        known = ", ".join(node.name for node in (*self.switches, *self.hosts))
        raise TopologyError(f"there is no node '{name}' in this fabric; there are {known}")

    @cached_property
    def _named(self) -> dict[str, Node]:
        return {node.name: node for node in self._by_port}

    def port_towards(self, node: Node, neighbour: Node) -> int:
        """The port of ``node`` at which ``neighbour`` hangs, or first hangs."""
        return self.links_between(node, neighbour)[0].port_of(node)

    def links_between(self, a: Node, b: Node) -> tuple[Link, ...]:
        """The cables between two nodes, by their numbers."""
        return tuple(self._between.get((a, b) if a < b else (b, a), ()))

    def link_at(self, node: Node, port: int) -> Link:
        """The cable at a port of a node."""
        return self._by_port[node][port]

    def count_of_ports(self, node: Node) -> int:
        """How many ports of a node have a cable."""
        return len(self._by_port[node])

    def ports(self, node: Node) -> dict[int, Node]:
        """What hangs at each port of a node."""
        cables = sorted(self._by_port[node].items())
        return {port: link.b if link.a == node else link.a for port, link in cables}

    # --- addresses ------------------------------------------------------------------------

    def leaf_of(self, host: Node, plane: int | None = None) -> Node:
        """The leaf a host is cabled to first, or first in a plane."""
        leaves = self.leaves_of(host)
        if plane is None:
            return leaves[0]
        return next(leaf for leaf in leaves if self.plane_of(leaf) == plane)

    def leaves_of(self, host: Node) -> tuple[Node, ...]:
        """The leaves a host is cabled to, by its ports: mostly one, or one in every plane."""
        return tuple(self._slots[host])

    @cached_property
    def host_ports(self) -> int:
        """How many ports a host has, at most."""
        return max((len(leaves) for leaves in self._slots.values()), default=1)

    @property
    def ports_abreast(self) -> int:
        """How many of them one kind of traffic can use."""
        return self.host_ports if self.is_spread else 1

    @cached_property
    def planes(self) -> int:
        """How many planes there are: networks that only hosts join."""
        return 1 + max(self._plane_of.values(), default=0)

    def plane_of(self, switch: Node) -> int:
        """The plane a switch belongs to, from 0."""
        return self._plane_of[switch]

    def planes_of(self, *hosts: Node) -> tuple[int, ...]:
        """The planes that all of these hosts are in."""
        each = (dict.fromkeys(map(self.plane_of, self.leaves_of(host))) for host in hosts)
        first, *others = each
        return tuple(plane for plane in first if all(plane in other for other in others))

    @cached_property
    def _plane_of(self) -> dict[Node, int]:
        """Planes are counted as those count them that have most ports."""
        found: dict[Node, int] = {}
        if self.host_ports > 1:
            numbers = count()
            for leaves in sorted(self._slots.values(), key=len, reverse=True):
                for leaf in leaves:
                    if leaf not in found:
                        found |= dict.fromkeys(self._all_joined(leaf), next(numbers))
        return dict.fromkeys(self.switches, 0) | found

    def _all_joined(self, switch: Node) -> set[Node]:
        """The switches that can be reached from one by others."""
        found, edge = {switch}, [switch]
        while edge:
            edge = [other for here in edge for other in self.joined[here] if other not in found]
            found.update(edge)
        return found

    @property
    def has_pairs(self) -> bool:
        """Whether hosts hang at pairs of leaves."""
        return bool(self._first_of)

    def hosts_of(self, leaf: Node) -> tuple[Node, ...]:
        """The hosts cabled to a leaf."""
        return self._hosts_by_leaf.get(leaf, ())

    def plain_hosts_of(self, leaf: Node) -> tuple[Node, ...]:
        """Of these, the ones whose addresses are the fabric's."""
        return tuple(host for host in self.hosts_of(leaf) if host not in self.tenants)

    @cached_property
    def _hosts_by_leaf(self) -> dict[Node, tuple[Node, ...]]:
        by_leaf: dict[Node, list[Node]] = {}
        for host in self.hosts:
            for leaf in self.leaves_of(host):
                by_leaf.setdefault(leaf, []).append(host)
        return {leaf: tuple(hosts) for leaf, hosts in by_leaf.items()}

    def prefixes(self, leaf: Node) -> tuple[Network, ...]:
        """What leads to a leaf: one prefix, and every host whose address is not in it.

        Tenants' own networks are reached by the leaf's own address.
        """
        prefix = self.prefix(leaf)
        if self.ip == 6:  # none has another than follows from its place
            return (prefix,)
        hosts = self.plain_hosts_of(leaf)
        strangers = (self.address(host, leaf) for host in hosts if host in self._addresses)
        others = [ip_network(address) for address in strangers if address not in prefix]
        shared = (prefix,) if len(others) < len(hosts) else ()
        own = (ip_network(self.loopback(leaf)),) if len(hosts) < len(self.hosts_of(leaf)) else ()
        return (*shared, *others, *own)

    def prefix(self, leaf: Node) -> Network:
        """The addresses behind a leaf, where they follow from its number."""
        number = self._first_of.get(leaf, leaf).number
        if self.ip == 6:
            return IPv6Network((_IPV6_BLOCK | number << 64, 64))
        return IPv4Network((10 << 24 | number << 8, 24))

    def loopback(self, switch: Node) -> IPv4Address:
        """A switch's own address."""
        if switch.number >> _KIND_BITS:
            most = (1 << _KIND_BITS) - 1
            raise TopologyError(f"{switch} has no address of its own: {most:,} of a kind have")
        return IPv4Address(_LOOPBACKS + (int(switch.kind) << _KIND_BITS) + switch.number)

    def are_joined(self, a: Node, b: Node) -> bool:
        """Whether two hosts are in the same network, and can speak to each other at all."""
        return self.tenants.get(a) == self.tenants.get(b)

    def next_mac(self, src: Node, dst: Node, plane: int | None = None) -> str:
        """The MAC to which a host sends what is for another: its leaf's, or where all of a tenant's
        are one subnet its own."""
        is_near = self.is_stretched and src in self.tenants and self.are_joined(src, dst)
        return self.mac(dst if is_near else self.leaf_of(src, plane))

    def gateway(self, leaf: Node) -> Address:
        """The address hosts of a leaf send through."""
        return self.prefix(leaf).network_address + _GATEWAY

    def address(self, host: Node, leaf: Node | None = None) -> Address:
        """A host's address: at its first port, or at the one that leads to a leaf."""
        if self.ip == 6:
            leaf, slot = self._place_of(host, leaf)
            return self.prefix(leaf).network_address + slot
        return self._ipv4_address(host, leaf)

    def addresses(self, host: Node) -> tuple[Address, ...]:
        """A host's addresses, by its ports."""
        return tuple(self.address(host, leaf) for leaf in self.leaves_of(host))

    def _place_of(self, host: Node, leaf: Node | None) -> tuple[Node, int]:
        found = self._slots[host]
        at = next(iter(found)) if leaf is None else self._first_of.get(leaf, leaf)
        return at, found[at]

    def _ipv4_address(self, host: Node, leaf: Node | None) -> IPv4Address:
        if host in self._addresses:
            return self._addresses[host]
        leaf, slot = self._place_of(host, leaf)
        return IPv4Address(10 << 24 | leaf.number << 8 | slot)

    def mac(self, node: Node, leaf: Node | None = None) -> str:
        """A node's MAC address; a host's at its first port, or at the one that leads to a leaf."""
        if node in self._macs:
            return self._macs[node]
        if node.kind is NodeKind.HOST:
            octets = b"\x02\x00" + self._ipv4_address(node, leaf).packed
        else:
            octets = bytes((2, 1, node.kind, 0)) + node.number.to_bytes(2, "big")
        return octets.hex(":")
