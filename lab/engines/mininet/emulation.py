"""The Mininet engine: a fabric of namespaces, veths and switches, up for as long as it is needed.

Everything here runs inside a sandbox (see sandbox.py), so nothing has to be undone on failure;
an orderly stop is still made, because a user may be watching.
"""

from __future__ import annotations

import subprocess
import time
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import replace

from mininet.log import setLogLevel
from mininet.net import Mininet

from controller import ControllerError, Settings, SwitchPlan, in_turn, install, switch_plans
from controller.client import ANSWER_S
from controller.tables import Groups
from lab.engines.mininet.control import MIN_MTU, ControlPlane
from lab.engines.mininet.journal import Journal
from lab.engines.mininet.switches import Switches
from lab.errors import RunError
from lab.machine.speed import slowness
from lab.machine.supervisor import supervisor
from lab.scenario.faults import Event
from params.data import Data
from topologies import Fabric, Link, Node
from topologies.mininet_topo import build_network, remove_network

_PING_S = 2.0


class PingResult(Data):
    """Which ordered pairs of hosts answered a ping."""

    answered: frozenset[tuple[Node, Node]]
    silent: frozenset[tuple[Node, Node]]


class Emulation:
    """A fabric that is up."""

    def __init__(
        self,
        fabric: Fabric,
        switches: Switches,
        settings: Settings,
        control: ControlPlane | None = None,
    ) -> None:
        self.fabric = fabric
        self.control = control  # of the switches' own; none: routes are the controller's
        self.switches = switches
        self._settings = settings
        self._network: Mininet | None = None
        self._dead: frozenset[str] = frozenset()  # cables that the controller has heard of
        self._dead_by_hand: frozenset[str] = frozenset()
        self._drained_by_hand: frozenset[str] = frozenset()
        self.groups: dict[str, Groups] = {}  # as switches know them
        self._installed: dict[str, SwitchPlan] = {}  # the plan that each was given last
        self._avoided = self.avoided  # as switches were told
        self.to_happen: tuple[Event, ...] = ()  # what had not when hosts had ended
        self.journal = Journal() if control is None else control.journal

    # --- bringing up ----------------------------------------------------------------------

    def lay_cables(self) -> None:
        """Make the hosts' namespaces and all links."""
        setLogLevel("critical")  # Mininet complains about limits no sandbox may set; errors raise
        mtu = self._settings.max_frame
        self._network = build_network(
            self.here,
            max(mtu, MIN_MTU) if self.control or self.fabric.ip == 6 else mtu,
            lambda pid, name: supervisor.rely(pid, f"Mininet's shell of {name}"),
        )
        if self.control is not None:
            self.control.lay_cables(self.host_pids())

    def install_routes(
        self,
        done: Callable[[str], None] = lambda _: None,
        *,
        dead: Collection[str] | None = None,
        by_hand: frozenset[str] | None = None,
        drained_by_hand: frozenset[str] | None = None,
    ) -> int | None:
        """Give every switch its program and its plan, or what is new of it.

        One for which nothing is new is not spoken to: that takes time, in which packets go on by
        what the others know. Returned is when the first was told something new, by the machine's
        monotonic clock.

        Routes lead round cables that are known to be dead: by the scenario's faults, and those that
        somebody cut; what is not given is as it was. Switches that find their own routes keep them.
        """
        self._dead = self._dead if dead is None else frozenset(dead)
        if by_hand is not None:
            self._dead_by_hand = by_hand
        if drained_by_hand is not None:
            self._drained_by_hand = drained_by_hand
        before, self._avoided = self._avoided, self.avoided
        known, drained = self.avoided
        if self.control is not None:
            self.control.drain(drained)
        elif self._avoided != before:
            names = ", ".join(sorted(known | drained)) or "no fault any more"
            self.journal.note("reroute", f"routes know of {names}")

        moments: dict[str, int] = {}

        def installed(name: str) -> None:
            moments[name] = time.monotonic_ns()
            done(name)

        def tell(plans: Mapping[str, SwitchPlan]) -> None:
            news = [
                each
                for each in self.switches.targets
                if plans[each.name] != self._installed.get(each.name)
            ]
            known, self._installed = self._installed, {}  # not known if it fails half-way
            changed = install(news, plans, installed, answer_s=ANSWER_S * slowness())
            self._installed = known | {each.name: plans[each.name] for each in news}
            for name in [name for name, entities in changed.items() if not entities]:
                moments.pop(name, None)

        try:
            if self.control is None:
                for so_far in in_turn(self.fabric, before[1], drained):
                    settings = replace(self._settings, drained=so_far)
                    tell(switch_plans(self.fabric, settings, known, self.groups))
            else:
                self.control.install(self._settings, tell)
        except ControllerError as error:
            refused = RunError(str(error), self.switches.where_they_speak())
            raise supervisor.explained(refused) or refused from None
        self.switches.furnish()
        return min(moments.values(), default=None)

    def change(
        self,
        change: Callable[[Settings], Settings],
        *,
        dead: Collection[str] | None = None,
        at_ns: int | None = None,
    ) -> None:
        """Let the controller have other settings from now on, as of an event at a time."""
        self._settings = change(self._settings)
        begins_ns = self.install_routes(dead=dead)
        if self.control is not None and at_ns is not None and begins_ns is not None:
            self.control.begun[at_ns] = begins_ns

    @property
    def avoided(self) -> tuple[frozenset[str], frozenset[str]]:
        """The cables that the controller takes for dead, and those that are drained."""
        drained = self._settings.drained | self._drained_by_hand
        return self._dead | self._dead_by_hand, drained

    @property
    def settings(self) -> Settings:
        """What the controller goes by at the moment."""
        return self._settings

    @property
    def tick_ns(self) -> float:
        """How much of the fabric's time passes in a tick of the switches' clock."""
        return self._settings.tick_ns

    def restart(self, switch: Node) -> None:
        """Let a switch start again, with empty tables."""
        self.switches.restart(switch)
        self._installed.pop(switch.name, None)

    def set_up(self, link: Link, *, is_up: bool) -> None:
        """Cut a cable, or mend it."""
        words = ["ip", "link", "set", link.b.interface(link.b_port), "up" if is_up else "down"]
        done = subprocess.run(words, check=False, capture_output=True, text=True)
        if done.returncode != 0:
            what = f"{link.name} could not be {'mended' if is_up else 'cut'}"
            raise RunError(f"{what}: {done.stderr.strip() or 'ip failed'}")
        self.journal.turned(link.name, is_up=is_up)

    # --- using it -------------------------------------------------------------------------

    @property
    def network(self) -> Mininet:
        """The Mininet network, once its cables are laid."""
        assert self._network is not None
        return self._network

    def whereabouts(
        self,
    ) -> tuple[dict[str, int], dict[str, tuple[str, int]], dict[str, str]]:
        """Hosts' processes, switches' addresses, and the interface that a link is seen at."""
        return (
            self.host_pids(),
            {each.name: (each.address, each.device_id) for each in self.switches.targets},
            {link.name: link.b.interface(link.b_port) for link in self.here.links},
        )

    @property
    def here(self) -> Fabric:
        """What of the fabric is on this machine."""
        return self.switches.setting.fabric

    def host_pids(self) -> dict[str, int]:
        """The process that holds each host's namespace, as seen inside the sandbox."""
        return {host.name: self.network.get(host.name).pid for host in self.here.hosts}

    def _peers(self, host: Node) -> Iterator[Node]:
        """Whom a host can speak to."""
        for peer in self.fabric.hosts:
            if peer != host and self.fabric.are_joined(host, peer):
                yield peer

    def ping_all(self) -> PingResult:
        """Let every host ping every other; the hosts work at the same time."""
        nodes = {host: self.network.get(host.name) for host in self.fabric.hosts}
        peers = {
            host: {str(self.fabric.address(peer)): peer for peer in self._peers(host)}
            for host in nodes
        }
        wait_s = round(_PING_S * slowness())
        for host, node in nodes.items():
            node.sendCmd(
                f"for peer in {' '.join(peers[host])}; do "
                f"ping -n -c 1 -W {wait_s} $peer > /dev/null 2>&1 && echo answered $peer; done"
            )
        answered = set()
        for host, node in nodes.items():
            for line in node.waitOutput().splitlines():
                word, _, address = line.partition(" ")
                if word == "answered" and address.strip() in peers[host]:
                    answered.add((host, peers[host][address.strip()]))
        pairs = {(a, b) for a in nodes for b in peers[a].values()}
        return PingResult(frozenset(answered), frozenset(pairs - answered))

    # --- taking down ----------------------------------------------------------------------

    def take_down(self) -> None:
        """Stop the switches and remove the network."""
        if self.control is not None:
            self.control.stop()
        self.switches.stop()
        if self._network is not None:
            remove_network(self.here, self._network, supervisor.spare)
