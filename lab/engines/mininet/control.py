"""A fabric whose switches run themselves: a routing suite beside each, and who follows it.

Beside each of a switch's ports is a control port (p4src/punt.p4), a cable into the switch's room
(frr.py). There it ends in an interface that bears the front port's name, has the switch's MAC and
the carrier of the front port; what is for the switch itself arrives there, as if nothing lay
between. What the daemons make of it comes back as routes, which `controller.routing` writes into
the switch's tables. Our own controller tells the rest, as ever.

All of it goes by the machine's clock, however slowly the fabric's time passes.
"""

from __future__ import annotations

import math
import shlex
import socket
import threading
import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from pathlib import Path

from controller import NextHop, Route, Settings, SwitchPlan, Target, routes_behind, routes_of
from controller.fdb import Fdb
from controller.fpm import PORT as FPM_PORT
from controller.kernel import View
from controller.rib import Rib
from controller.routing import STALE_S, Change, Followed, Routing
from controller.tables import SwitchSite, control_port
from controller.tenants import BRIDGED_VNI, ROUTED_VNI, Far, far_of, tenants_at
from lab.engines.mininet.carriers import Carriers
from lab.engines.mininet.frr import DAEMONS, Room, as_number, configurations, drainage, vrf
from lab.engines.mininet.journal import Journal
from lab.engines.mininet.outside import Neighbour, behind
from lab.engines.mininet.routers import KINDS, Router
from lab.errors import RunError
from lab.machine.patience import Still
from lab.machine.speed import slowness
from lab.results.outcome import RouteChange, Routed
from lab.scenario.model import ControlSettings
from lab.scenario.topology import OutsideRouter
from params.data import Data
from topologies import Fabric, Node, NodeKind
from topologies.ip import run_ip
from topologies.offload import network_of, switch_off_checksum_offload

MIN_MTU = 1500  # of cables: IPv6, which neighbours speak, needs 1280
PUNTS_PER_S = 2000  # of the machine's time, by front port
_CONVERGE_S = 60.0  # that finding all ways may take, on a machine that is not slow
_TAKES_S = 10.0  # until FRR that starts again takes commands
_POLL_S = 0.02
_TELL_S = 1.0  # until tenants' hosts are told of again
_QUIET = "echo 1 > /proc/sys/net/ipv6/conf/{}/disable_ipv6"  # says nothing unasked
_ROUTED, _BRIDGED = "routed", "bridged"  # a tenant's networks, in its namespace

_Ways = Mapping[object, frozenset[NextHop]]  # by prefix


def interface(switch: Node, port: int) -> str:
    """The switch's end of the cable into its room."""
    return f"{switch}-cpu{port}"


def control_interfaces(fabric: Fabric, switch: Node) -> dict[int, str]:
    """A switch's control ports."""
    return {control_port(port): interface(switch, port) for port in fabric.ports(switch)}


class Converged(Data):
    """That all switches knew the way to everywhere."""

    took_s: float
    routes: int


class ControlPlane:
    """Of all switches of a fabric."""

    def __init__(
        self,
        fabric: Fabric,
        settings: ControlSettings,
        folder: Path,
        still: Still,
        outside: Sequence[OutsideRouter] = (),
    ) -> None:
        self.fabric = fabric
        self._outside = [Neighbour(fabric, router, place) for place, router in enumerate(outside)]
        self._routers: list[Router] = []
        self._folder = folder
        self._drained: frozenset[str] = frozenset()
        self.changes: list[Change] = []
        self.begun: dict[int, int] = {}  # when what is to happen at a time did
        self.converged: Converged | None = None
        self.journal = Journal()
        self._control = settings
        self._rooms = {
            switch: Room(
                switch,
                folder,
                lambda s: still("a room for FRR", s),
                has_vrfs=bool(tenants_at(fabric, switch)),
            )
            for switch in fabric.switches
        }
        self._routing: Routing | None = None
        self._followed: dict[str, Followed] = {}
        self._carriers = Carriers(
            {
                switch.interface(port): interface(switch, port)
                for switch in fabric.switches
                for port in fabric.ports(switch)
            }
        )
        self._failure: str | None = None
        self._stopping = threading.Event()
        self._watch = threading.Thread(target=self._look_after, name="daemons", daemon=True)
        self._began = 0.0
        self._tells_until = math.inf  # of tenants' hosts

    # --- bringing up ------------------------------------------------------------------------------

    def lay_cables(self, host_pids: Mapping[str, int]) -> None:
        """Connect every control port with its room, and have routers where hosts are."""
        for room in self._rooms.values():
            room.await_ready()
        run_ip(
            line
            for switch, room in self._rooms.items()
            for port in self.fabric.ports(switch)
            for line in (
                f"link add {interface(switch, port)} mtu {MIN_MTU} type veth "
                f"peer name {switch.interface(port)} mtu {MIN_MTU} "
                f"address {self.fabric.mac(switch)} netns {room.pid}",
                f"link set {interface(switch, port)} up",
            )
        )
        for switch, room in self._rooms.items():
            for port in self.fabric.ports(switch):
                switch_off_checksum_offload(interface(switch, port))
                switch_off_checksum_offload(switch.interface(port), room.pid)
            room.carry_out(self._furniture(switch))
        for each in self._outside:
            pid = host_pids[each.host.name]
            each.furnish(pid)
            kind = KINDS[each.settings.speaks]
            self._routers.append(kind(each, pid, self._folder.with_name("outside")))
        self._carriers.start()

    def _furniture(self, switch: Node) -> list[str]:
        """Interfaces up; towards hosts with the gateway's address and nothing unasked."""
        lines = list(_tenant_networks(self.fabric, switch))
        for port, peer in self.fabric.ports(switch).items():
            name = switch.interface(port)
            if peer in self.fabric.tenants:  # whose addresses mean nothing here
                if not self.fabric.is_stretched:
                    lines += [_QUIET.format(name), f"ip link set {name} up"]
            elif peer.kind is NodeKind.HOST and self.fabric.ip == 6:
                lines += [_QUIET.format(name), f"ip link set {name} up"]
            elif peer.kind is NodeKind.HOST:
                address = self.fabric.address(peer, switch)
                lines += [
                    _QUIET.format(name),
                    f"ip link set {name} up",
                    f"ip address add {self.fabric.gateway(switch)}/32 dev {name}",
                    f"ip neighbour add {address} lladdr {self.fabric.mac(peer, switch)} dev {name}",
                    f"ip route add {address} dev {name}",
                ]
            else:
                lines.append(f"ip link set {name} up")
        for each in self._outside:
            lines += each.leaf_furniture() if each.leaf == switch else ()
        return lines

    def follow(self, targets: tuple[Target, ...], settings: Settings) -> None:
        """Let daemons tell us their routes from now on; nothing is written before a first plan."""
        leaves = {
            prefix: leaf.number
            for leaf in self.fabric.switches
            if self.fabric.hosts_of(leaf)
            for prefix in self.fabric.prefixes(leaf)
        }
        macs = {own.packed: each.hop.mac for each in self._outside for own, _ in each.cable}
        by_name = {target.name: target for target in targets}
        for switch, room in self._rooms.items():
            ports = self.fabric.ports(switch)
            tenants = tenants_at(self.fabric, switch)
            with network_of(room.pid):
                server = socket.create_server(("127.0.0.1", FPM_PORT))
                names = {switch.interface(port): port for port in ports}
                here = socket.if_nameindex()
                numbers = {number: names[name] for number, name in here if name in names}
                underlay = View() if tenants else None
            evpn = [self._seen(room, tenant) for tenant in tenants]
            order = sorted(ports, key=lambda port: (ports[port], self._cable(switch, port)))
            self._followed[switch.name] = Followed(
                SwitchSite(self.fabric, switch, settings),
                by_name[switch.name],
                server,
                Rib(numbers, order, leaves, macs),
                routes_of(self.fabric, {link.name for link in self.fabric.links})[switch],
                underlay,
                evpn,
            )
        self._routing = Routing(self._followed, self._heard)

    def _seen(self, room: Room, tenant: int) -> tuple[Fdb, View]:
        """What EVPN finds of a tenant from now on."""
        with network_of(room.namespace(vrf(tenant))):
            numbers = {name: number for number, name in socket.if_nameindex()}
            return Fdb(tenant, numbers[_ROUTED], numbers.get(f"{_BRIDGED}-vx", 0)), View()

    def _cable(self, switch: Node, port: int) -> int:
        return self.fabric.link_at(switch, port).number

    def start(self) -> None:
        """Start the daemons, once switches have their plans."""
        assert self._routing is not None
        self._routing.start()
        self._began = time.monotonic()
        for switch, room in self._rooms.items():
            room.write(self._configured(switch, is_first=True))
            room.configure(self._configured(switch))
        for daemon in DAEMONS:
            for room in self._rooms.values():
                room.start(daemon)
        for router in self._routers:
            router.start(is_first=True)
        self._watch.start()

    def _configured(self, switch: Node, *, is_first: bool = False) -> dict[str, str]:
        """What a switch's daemons read."""
        return configurations(
            self.fabric,
            switch,
            self._control.bfd_ms,
            is_first=is_first,
            outside=self._outside,
            drained=self._drained_at(switch, self._drained),
        )

    def _drained_at(self, switch: Node, links: Collection[str]) -> list[str]:
        """A switch's interfaces at some cables."""
        ports = self.fabric.ports(switch)
        return [
            switch.interface(port)
            for port in ports
            if self.fabric.link_at(switch, port).name in links
        ]

    def await_routes(self, done: Callable[[], object]) -> Converged:
        """Until every switch knows all the ways that there are; each that does is told of."""
        wanted = self._await_ways(frozenset(), self._began, done)
        took_s = time.monotonic() - self._began
        self._tells_until = time.monotonic()
        self.converged = Converged(took_s, sum(map(len, wanted.values())))
        return self.converged

    def await_routes_without(self, dead: Collection[str]) -> None:
        """Until every switch knows all the ways that cables lead which are not dead."""
        self._await_ways(dead, time.monotonic(), lambda: None)

    def _await_ways(
        self, dead: Collection[str], began: float, done: Callable[[], object]
    ) -> dict[str, _Ways]:
        wanted = self._wanted(dead)
        deadline = began + _CONVERGE_S * slowness()
        waiting = set(wanted)
        while waiting:
            missing = self._missing(wanted)
            for _ in waiting - missing.keys():
                done()
            waiting = set(missing)
            self.check()
            if missing and time.monotonic() > deadline:
                name, prefix = next(iter(missing.items()))
                raise RunError(
                    f"BGP did not find all ways within {_CONVERGE_S * slowness():.0f} s: {name} "
                    f"does not know all that lead to {prefix}",
                    f"What its daemons said is in {self._rooms[self.fabric.node(name)].folder}/",
                )
            time.sleep(_POLL_S)
        return wanted

    def _wanted(self, dead: Collection[str]) -> dict[str, _Ways]:
        """All ways that cables lead which are not dead; by drained ones where no others lead."""
        found: dict[str, dict[object, frozenset[NextHop]]] = {}
        for unused in ({*dead}, {*dead, *self._drained}):
            beyond = routes_behind(self.fabric, behind(self._outside), unused)
            for switch, routes in routes_of(self.fabric, unused).items():
                found.setdefault(switch.name, {}).update(_as_sets((*routes, *beyond[switch])))
        return dict(found)

    def _missing(self, wanted: Mapping[str, _Ways]) -> dict[str, object]:
        """Switches that were not told all ways yet, and to where not."""
        assert self._routing is not None
        installed = {name: _as_sets(routes) for name, routes in self.routes().items()}
        far = {
            name: "other leaves' tenants"
            for name, known in self._routing.far().items()
            if _unordered(known) != _unordered(far_of(self.fabric, self.fabric.node(name)))
        }
        return far | {
            name: prefix
            for name, ways in wanted.items()
            for prefix, hops in ways.items()
            if installed[name].get(prefix) != hops
        }

    # --- while it is up ---------------------------------------------------------------------------

    def install(
        self, settings: Settings, install: Callable[[dict[str, SwitchPlan]], object]
    ) -> None:
        """Have whole plans installed, whose routes are the daemons'."""
        assert self._routing is not None
        self._routing.install(settings, install)

    def outcome(self, epoch_ns: int, dilation: float) -> Routed:
        """How it went, by the fabric's time since an epoch."""
        assert self.converged is not None
        changes = tuple(
            RouteChange(round((each.at_ns - epoch_ns) / dilation), each.switch, each.entities)
            for each in self.changes
            if each.at_ns >= epoch_ns
        )
        begun = {
            at_ns: round((moment_ns - epoch_ns) / dilation)
            for at_ns, moment_ns in self.begun.items()
        }
        return Routed(self.converged.took_s, self.converged.routes, changes, begun)

    def routes(self) -> dict[str, tuple[Route, ...]]:
        """What switches were told, by their names."""
        assert self._routing is not None
        return self._routing.routes()

    def plans(self) -> dict[str, SwitchPlan]:
        """All that switches should have, by their names: with the routes that they were told."""
        assert self._routing is not None
        return self._routing.plans()

    def learned(self, switch: str) -> tuple[Route, ...]:
        """Of these, what a switch knows from others."""
        own = set(self._followed[switch].own)
        return tuple(route for route in self.routes()[switch] if route not in own)

    @property
    def pids(self) -> dict[str, int]:
        """The process that holds each switch's room, as seen inside the sandbox."""
        return {switch.name: room.pid for switch, room in self._rooms.items()}

    def restart(self, switch: Node, daemon: str) -> None:
        """Let a daemon die; it is started again at once."""
        self._rooms[switch].kill(daemon)

    def drain(self, drained: frozenset[str]) -> None:
        """Leave these cables, and no others, to who has no other way."""
        changes = (drained - self._drained, True), (self._drained - drained, False)
        self._drained = drained
        if not self._watch.is_alive():
            return  # they read it when they start
        for links, is_drained in changes:
            for switch, room in self._rooms.items():
                if names := self._drained_at(switch, links):
                    room.configure(self._configured(switch))
                    commands = drainage(self.fabric, self._outside, names, is_drained=is_drained)
                    self._tell(
                        switch, "configure terminal", f"router bgp {as_number(switch)}", *commands
                    )
                    # FRR 8.4 was seen to leave what it had told before as it was.
                    self._tell(switch, *(f"clear bgp {name} soft out" for name in names))

    def _tell(self, switch: Node, *commands: str) -> None:
        """Have FRR carry these out: a bgpd that starts again, once it is there."""
        deadline = time.monotonic() + _TAKES_S * slowness()
        while said := self.asked(switch, *commands).strip():
            if time.monotonic() > deadline:
                raise RunError(f"FRR of {switch} does not take {commands[-1]!r}: {said}")
            time.sleep(_POLL_S)

    def restart_controller(self) -> None:
        """Let who writes routes into switches end, and another begin, who knows nothing."""
        self._stop_following()
        targets = tuple(each.target for each in self._followed.values())
        settings = next(iter(self._followed.values())).site.settings
        self.follow(targets, settings)
        assert self._routing is not None
        self._routing.start()

    def asked(self, switch: Node, *commands: str) -> str:
        """What vtysh answers in a switch's room."""
        return self._rooms[switch].asked(*commands)

    def inside(self, switch: Node, words: Sequence[str]) -> list[str]:
        """A command, to be run in a switch's room."""
        return self._rooms[switch].inside(words)

    def check(self) -> None:
        """Fail if it does not go on."""
        if self.failure is not None:
            raise self._failed()

    def _failed(self) -> RunError:
        return RunError(f"the switches' control plane failed: {self.failure}")

    @property
    def failure(self) -> str | None:
        """What befell it, if anything did."""
        return self._failure or (self._routing.failure if self._routing else None)

    def stop(self) -> None:
        """End all of it."""
        self._stopping.set()
        self._carriers.stop()
        if self._watch.is_alive():
            self._watch.join()
        self._stop_following()
        for router in self._routers:
            router.close()
        for room in self._rooms.values():
            room.close()

    def _stop_following(self) -> None:
        if self._routing is not None:
            self._routing.stop()
        for each in self._followed.values():
            each.listener.close()
            for view, _ in each.views():
                view.close()

    def _heard(self, change: Change) -> None:
        self.changes.append(change)

    def _look_after(self) -> None:
        """Start again what dies, and tell those that began of whom they do not ask.

        What fails is told at once: at the prompt nobody asks for it.
        """
        since = time.monotonic()
        while not self._stopping.wait(_POLL_S):
            if self.failure is not None:
                self._failed().show()
                return
            if since + _TELL_S < time.monotonic() and since < self._tells_until:
                since = time.monotonic()
                for switch, room in self._rooms.items():
                    room.have_done(_tell_hosts(self.fabric, switch))
            try:
                for switch, room in self._rooms.items():
                    for daemon in room.revive():
                        if daemon in ("bgpd", "zebra") and self._routing is not None:
                            self._routing.spare(switch.name)
                            self._tells_until = time.monotonic() + STALE_S
                        self.journal.note("fault", f"{daemon} of {switch} died, and is started")
                for router in self._routers:
                    if router.tend():
                        self.journal.note("fault", f"{router.name} died, and is started")
            except RunError as error:
                self._failure = error.message


def _tenant_networks(fabric: Fabric, switch: Node) -> Iterator[str]:
    """What zebra looks at to know which tenants are here, and where it writes what it finds."""
    here = tenants_at(fabric, switch)
    if here:
        yield f"ip address add {fabric.loopback(switch)}/32 dev lo"
    for tenant, hosts in here.items():
        yield f"ip netns add {vrf(tenant)}"
        inside = ["ip link set lo up"]
        inside += _network(_ROUTED, f"address {fabric.mac(switch)}")
        yield _tunnel(fabric, switch, tenant, _ROUTED, ROUTED_VNI)
        inside += _behind(_ROUTED)
        if fabric.is_stretched:
            yield _tunnel(fabric, switch, tenant, _BRIDGED, BRIDGED_VNI)
            inside += [*_network(_BRIDGED), *_behind(_BRIDGED)]
            for host in hosts:
                name, mac = switch.interface(fabric.port_towards(switch, host)), fabric.mac(host)
                yield f"ip link set {name} netns {vrf(tenant)}"
                inside += [
                    _QUIET.format(name),
                    f"ip link set {name} master {_BRIDGED} up",
                    f"bridge fdb replace {mac} dev {name} master static",
                ]
        script = shlex.quote("; ".join(["set -e", *inside]))
        yield f"nsenter --net=/run/netns/{vrf(tenant)} sh -c {script}"


def _tell_hosts(fabric: Fabric, switch: Node) -> Iterator[str]:
    """Have the kernel tell of tenants' hosts, and their addresses, anew.

    zebra listens while EVPN runs, and does not ask for what was told before.
    """
    for tenant, hosts in tenants_at(fabric, switch).items() if fabric.is_stretched else ():
        for host in hosts:
            words = (
                f"ip -n {vrf(tenant)} neighbour replace {fabric.address(host)} "
                f"lladdr {fabric.mac(host)} dev {_BRIDGED} nud"
            )
            yield from (f"{words} stale", f"{words} reachable")


def _network(name: str, more: str = "") -> list[str]:
    """A bridge of a tenant's."""
    return [f"ip link add {name} {more} type bridge", _QUIET.format(name), f"ip link set {name} up"]


def _tunnel(fabric: Fabric, switch: Node, tenant: int, network: str, vni: int) -> str:
    """The device behind which EVPN finds who is elsewhere; nothing travels by it."""
    return (
        f"ip link add {network}-vx netns {vrf(tenant)} type vxlan id {vni + tenant} dstport 4789 "
        f"local {fabric.loopback(switch)} nolearning"
    )


def _behind(network: str) -> list[str]:
    """Have a bridge's tunnel at it."""
    tunnel = f"{network}-vx"
    return [_QUIET.format(tunnel), f"ip link set {tunnel} master {network} up"]


def _unordered(far: Far) -> tuple[frozenset[object], ...]:
    return frozenset(far.prefixes), frozenset(far.macs), frozenset(far.members)


def _as_sets(routes: tuple[Route, ...]) -> _Ways:
    return {route.prefix: frozenset(route.next_hops) for route in routes}
