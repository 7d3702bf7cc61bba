"""A switch's routes as its routing daemon tells them, and what of it a switch can be told.

The daemon's interfaces are the switch's front ports, so a way out is a port and the MAC of who is
there. Ways are put in the order in which our own controller has them (`controller/routes.py`): the
same ways make the same group, whoever found them.

When a daemon starts again its routes stay, as graceful restart wants it: the switch goes on by what
it knows. They are *stale* until they are told again, and nobody's word that they are withdrawn
counts (zebra 8.4 withdraws all of them as soon as the new bgpd knows nothing yet); what is stale is
swept when the time that was granted is over, so what is gone does not stay for ever.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import field

from controller.fpm import BgpRoute, Message, NextHops, Way, link_local
from controller.kernel import IN_PLACE_OF_IPV6, ROUTED, Events, Neighbour, found_of
from controller.routes import MAX_WAYS, NextHop, Route
from params.data import Data
from topologies import Network

MAX_DEPTH = 4  # of sets of next hops in each other


class Rib(Data, frozen=False):
    """What one switch's daemon told."""

    ports: Mapping[int, int]  # front ports, by the number of the daemon's interface there
    order: Sequence[int]  # of ports
    # Whose prefixes these are.
    leaves: Mapping[Network, int] = field(default_factory=dict)
    # Of routers that are no switches: addresses do not tell these.
    macs: Mapping[bytes, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._sets: dict[int, NextHops] = {}
        self._routes: dict[Network, BgpRoute] = {}
        self._stale: set[Network] = set()
        self._neighbours: dict[int, str] = {}
        self._places = {port: place for place, port in enumerate(self.order)}

    def hear(self, message: Message) -> None:
        """Take in what was told."""
        match message:
            case NextHops(way=None, members=()):
                self._sets.pop(message.number, None)
            case NextHops():
                self._sets[message.number] = message
            case BgpRoute(number=None, ways=()):
                if message.prefix not in self._stale:
                    self._routes.pop(message.prefix, None)
            case BgpRoute():
                if message.number is not None:  # its set may be gone when the daemon is
                    ways = tuple(self._ways_of(message.number))
                    message = BgpRoute(message.prefix, message.number, ways)
                self._routes[message.prefix] = message
                self._stale.discard(message.prefix)

    def hear_kernel(self, events: Events) -> None:
        """Take in what the kernel tells of zebra's routes, instead of zebra."""
        for found in found_of(events):
            match found:
                case Neighbour(family=family, address=address):
                    if (family, address) != (ROUTED, IN_PLACE_OF_IPV6):
                        continue
                    if found.is_there and found.mac:
                        self._neighbours[found.device] = found.mac.hex(":")
                    else:
                        self._neighbours.pop(found.device, None)
                case BgpRoute():  # its sets of next hops, if it has some, are told beside
                    self.hear(BgpRoute(found.prefix, ways=found.ways))

    def learn_anew(self, everything: Events) -> None:
        """Know what the kernel says there is, and nothing else."""
        self.grow_stale()
        self._neighbours.clear()
        self.hear_kernel(everything)
        self.sweep()

    def adopt(self, routes: Iterable[Route]) -> None:
        """Know what a switch was told by somebody who followed its daemon before."""
        devices = {port: number for number, port in self.ports.items()}
        for route in routes:
            ways = (Way(devices[hop.port], link_local(hop.mac)) for hop in route.next_hops)
            self._routes[route.prefix] = BgpRoute(route.prefix, ways=tuple(ways))

    def grow_stale(self, *, forgets_sets: bool = False) -> None:
        """A daemon starts again; if it is zebra, numbers of sets will mean something else."""
        self._routes = {
            prefix: BgpRoute(prefix, ways=self._now(route))
            for prefix, route in self._routes.items()
        }
        self._stale = set(self._routes)
        if forgets_sets:
            self._sets.clear()

    def sweep(self) -> int:
        """Forget what is stale; how much that was."""
        for prefix in self._stale:
            del self._routes[prefix]
        swept = len(self._stale)
        self._stale.clear()
        return swept

    def routes(self) -> tuple[Route, ...]:
        """What a switch is to be told, in the order of prefixes."""
        found = []
        for prefix in sorted(self._routes, key=lambda each: (each.version, each)):
            hops = self._hops(self._now(self._routes[prefix]))
            if hops:
                found.append(Route(prefix, hops, self.leaves.get(prefix, 0)))
        return tuple(found)

    def _now(self, route: BgpRoute) -> tuple[Way, ...]:
        """A route's ways: those of its set as it is by now, while there is one."""
        if route.number is None or route.number not in self._sets:
            return route.ways
        return tuple(self._ways_of(route.number)) or route.ways

    def _ways_of(self, number: int, depth: int = 0) -> list[Way]:
        found = self._sets.get(number)
        if found is None or depth > MAX_DEPTH:
            return []
        if found.way is not None:
            return [found.way]
        return [way for member in found.members for way in self._ways_of(member, depth + 1)]

    def _mac_of(self, way: Way) -> str | None:
        """Who is asked by a way."""
        return self.macs.get(way.gateway) or way.mac or self._neighbours.get(way.interface)

    def _hops(self, ways: Sequence[Way]) -> tuple[NextHop, ...]:
        hops = {
            NextHop(self.ports[way.interface], mac)
            for way in ways
            if way.interface in self.ports and (mac := self._mac_of(way)) is not None
        }
        known = [hop for hop in hops if hop.port in self._places]
        return tuple(sorted(known, key=lambda hop: self._places[hop.port])[:MAX_WAYS])
