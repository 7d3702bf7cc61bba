"""Adapters for programs of others: between a host's own kernel and the fabric.

A host's kernel knows neither the rate and length of its dilated cable nor pauses. So its stack is
given an interface of its own, eth0, and what it sends there goes through a program that knows
them (traffic/core/nic_main.c). Hosts get theirs when somebody is to send from them; RoCEv2's
endpoints have no need of it, and go on using the cable's own end.

A program knows one address of a host. Where hosts have several ports, eth0 is at the first that
lives, in the plane in which those that are to send reach each other and most others, and names are
of that plane's addresses. Which that is is settled when programs start, and not while they run;
others that start later may go by another.
"""

from __future__ import annotations

import subprocess
from collections.abc import Collection, Iterable, Sequence
from contextlib import suppress
from operator import itemgetter

import networkx as nx

from controller import LinkSpec
from controller.routes import living_switches
from controller.settings import SettingsError
from lab.engines.mininet.emulation import Emulation
from lab.engines.mininet.programs import INTERFACE
from lab.engines.mininet.sandbox import hosts_file
from lab.errors import LabError, RunError
from lab.machine.native_host import nic_program
from lab.machine.patience import Patience
from lab.machine.processes import line_of, say, stop
from lab.machine.sched_priority import lend_sched_priority
from lab.machine.supervisor import how_ended, supervisor
from lab.scenario.experiment import Experiment
from lab.scenario.keys import nearest
from params.data import Data
from topologies import Fabric, Node
from topologies.mininet_topo import route_setup
from topologies.offload import switch_off_checksum_offload

_INSIDE = f"{INTERFACE}-nic"
_QUEUE_FRAMES = 1000  # as Linux's interfaces have by default
_BURST_FRAMES = 2
# Around the payload of a packet of RoCEv2: IPv4, UDP, BTH, RETH, immediate data, checksum. What an
# adapter of verbs sends has to fit (traffic/verbs), as it does from the lab's own endpoints.
_ROCE_BYTES = 20 + 8 + 12 + 16 + 4 + 4
_IPV6_BYTES, _IPV6_PAYLOAD = 1280, 1024


class NicCounts(Data):
    """What adapters counted."""

    sent: int = 0
    lost: int = 0  # frames that found the queue of their class full
    pauses: int = 0  # pause frames that came
    paused_ns: int = 0  # how long classes stood still

    def since(self, earlier: NicCounts) -> NicCounts:
        """What was added after an earlier reading."""
        return NicCounts(
            self.sent - earlier.sent,
            self.lost - earlier.lost,
            self.pauses - earlier.pauses,
            self.paused_ns - earlier.paused_ns,
        )

    def __add__(self, other: NicCounts) -> NicCounts:
        return NicCounts(
            self.sent + other.sent,
            self.lost + other.lost,
            self.pauses + other.pauses,
            self.paused_ns + other.paused_ns,
        )


class Nics:
    """The adapters of a fabric's hosts, as far as they were needed."""

    def __init__(self, experiment: Experiment, emulation: Emulation, dilation: int) -> None:
        self._experiment = experiment
        self._emulation = emulation
        self._dilation = dilation
        self._running: dict[Node, subprocess.Popen[str]] = {}
        self._ports: dict[Node, int] = {}  # of those, the one that theirs is at

    def plug_in(self, words: str) -> str:
        """Get hosts ready, as in `h1,h2 3`: what they send from now on goes in that class."""
        names, _, priority = words.partition(" ")
        if not priority.isdecimal():
            raise LabError(f"'{words}' names no hosts and class", "Write it as: plug h1,h2 0")
        return self.plug(names.split(","), int(priority))

    def plug(self, names: Sequence[str], priority: int) -> str:
        """Get hosts ready: what their programs send from now on goes in this class.

        Returned is what these programs are to find in /etc/hosts: addresses that they reach.
        """
        hosts = [self._host(name) for name in names]
        try:
            dscp = self._experiment.settings.dscp_of(priority)
        except SettingsError as error:
            raise LabError(str(error)) from None
        plane, ports = self._choose(hosts)
        for host in hosts:
            if self._ports.get(host) != ports[host]:
                self._move(host, ports[host])
            say(self._running[host], f"mark {dscp}")
        return self._names(plane)

    def counts(self) -> NicCounts:
        """What all of them counted."""
        return sum((self._ask(host) for host in self._running), NicCounts())

    def unplug(self) -> None:
        """End them."""
        for process in self._running.values():
            stop(process)

    def _host(self, name: str) -> Node:
        hosts = {host.name: host for host in self._emulation.fabric.hosts}
        if name not in hosts:
            raise LabError(f"there is no host '{name}'{nearest(name, hosts)}")
        return hosts[name]

    def _choose(self, hosts: Sequence[Node]) -> tuple[int, dict[Node, int]]:
        """The plane that misses fewest of its hosts, and each one's port by which all reach all."""
        fabric, cut = self._emulation.fabric, self._emulation.journal.cut
        joined = living_switches(fabric, cut)
        best: list[tuple[int, int, dict[Node, int]]] = []
        for plane in fabric.planes_of(*hosts):
            leaves = _living_leaves(fabric, hosts[0], plane, cut)
            for first in leaves[:1]:
                reached = nx.node_connected_component(joined, first)
                ports = {
                    host: fabric.port_towards(host, leaf)
                    for host in fabric.hosts
                    for leaf in _living_leaves(fabric, host, plane, cut)[:1]
                    if leaf in reached
                }
                missed = sum(plane in fabric.planes_of(host) for host in fabric.hosts) - len(ports)
                if ports.keys() >= {*hosts}:
                    best.append((missed, plane, ports))
        if not best:
            raise LabError(
                f"no plane joins {', '.join(host.name for host in hosts)}: cut are "
                f"{', '.join(sorted(cut)) or 'no cables'}",
                "Mend a cable ('mend' at the prompt), leave out faults of the scenario, or name "
                "hosts that reach each other.",
            )
        _, plane, ports = min(best, key=itemgetter(0, 1))
        return plane, ports

    def _names(self, plane: int) -> str:
        fabric = self._emulation.fabric
        return hosts_file(
            {
                host.name: str(fabric.address(host, fabric.leaf_of(host, plane)))
                for host in fabric.hosts
                if plane in fabric.planes_of(host)
            }
        )

    def _move(self, host: Node, port: int) -> None:
        if host in self._running:
            stop(self._running.pop(host))
            pid = self._emulation.host_pids()[host.name]
            _carry_out(("mnexec", "-a", str(pid)), f"ip link del {INTERFACE}")
        self._running[host] = self._start(host, port)
        self._ports[host] = port

    def _ask(self, host: Node) -> NicCounts:
        process = self._running[host]
        say(process, "tell")
        assert process.stdout is not None
        answer = line_of(process.stdout, Patience([process.pid])).split()
        if not answer:
            raise RunError(f"the adapter of {host} is gone")
        return NicCounts(*map(int, answer[1::2]))

    def _start(self, host: Node, port: int) -> subprocess.Popen[str]:
        experiment, fabric = self._experiment, self._emulation.fabric
        pid = self._emulation.host_pids()[host.name]
        outside, leaf = host.interface(port), fabric.ports(host)[port]
        cable = experiment.cable(fabric.link_at(host, port))
        mac = fabric.mac(host, leaf)
        mtu = _mtu(experiment.scenario.link.mtu, fabric.ip)
        here = ("mnexec", "-a", str(pid))
        # The cable's end has another address: what comes there is the adapter's, not the stack's.
        borrowed = "02:ff:" + mac.split(":", 2)[2]
        address = f"ip addr add {fabric.address(host, leaf)}/24 dev {INTERFACE}"
        _carry_out(
            here,
            f"ip link add dev {INTERFACE} mtu {mtu} address {mac} "
            f"type veth peer name {_INSIDE} mtu {mtu}",
            f"ip addr flush dev {outside}",
            # With its addresses IPv4's routes are gone; IPv6's would keep eth0 from its gateway.
            f"ip -{fabric.ip} route flush dev {outside}",
            f"ip link set dev {outside} address {borrowed}",
            *([address] if fabric.ip == 4 else []),  # IPv6's comes with its route
            f"ip link set {_INSIDE} up",
            f"ip link set {INTERFACE} up",
            route_setup(fabric, host, INTERFACE, leaf),
        )
        for interface in (INTERFACE, _INSIDE):
            switch_off_checksum_offload(interface, pid)
        self._hold_back(here, cable)
        classes = experiment.settings.dscp_priorities
        process = subprocess.Popen(
            [
                *here,
                *(str(nic_program()), outside, _INSIDE),
                *map(str, (cable.rate_bps, self._dilation, cable.delay_ns)),
                *map(str, (cable.overhead, _QUEUE_FRAMES)),
                "".join(str(classes.get(dscp, 0)) for dscp in range(64)),
            ],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )
        lend_sched_priority(process.pid)
        assert process.stdout is not None
        if line_of(process.stdout, Patience([process.pid])) != "ready":
            stop(process)
            raise RunError(f"the adapter of {host} did not start")
        supervisor.rely(process.pid, f"the adapter of {host}")
        return process

    def _hold_back(self, here: Sequence[str], cable: LinkSpec) -> None:
        """Let frames wait where TCP sees them, as it does before real adapters, if the kernel can.

        Otherwise they wait in the adapter, and TCP learns of too many when it loses some.
        """
        frame = self._experiment.settings.max_frame
        with suppress(RunError):
            _carry_out(
                here,
                f"tc qdisc add dev {INTERFACE} root tbf "
                f"rate {round(cable.rate_bps / self._dilation)}bit "
                f"burst {_BURST_FRAMES * frame} limit {_QUEUE_FRAMES * frame} "
                f"overhead {cable.overhead}",
            )


def _mtu(payload: int, ip: int) -> int:
    """What an adapter says that it can send, from which verbs find the path MTU."""
    if ip == 4:
        return payload + _ROCE_BYTES
    if payload < _IPV6_PAYLOAD:
        raise RunError(
            f"adapters that speak IPv6 have packets of {_IPV6_BYTES:,} bytes at least, and so a "
            f"path MTU of {_IPV6_PAYLOAD:,}; the fabric's is {payload}",
            f"Give it one: --set link.mtu={_IPV6_PAYLOAD}, or --set link.ip=4.",
        )
    return max(payload + _ROCE_BYTES + 20, _IPV6_BYTES)


def _living_leaves(
    fabric: Fabric, host: Node, plane: int, cut: Collection[str]
) -> tuple[Node, ...]:
    """Those of a plane that a host has a living cable to."""
    return tuple(
        leaf
        for leaf in fabric.leaves_of(host)
        if fabric.plane_of(leaf) == plane
        and any(link.name not in cut for link in fabric.links_between(host, leaf))
    )


def _carry_out(here: Iterable[str], *commands: str) -> None:
    done = subprocess.run(
        [*here, "sh", "-c", " && ".join(commands)], capture_output=True, text=True, check=False
    )
    if done.returncode != 0:
        why = done.stderr.strip() or f"what sets it up ended{how_ended(done.returncode)}"
        raise RunError(f"a host could not be given an adapter: {why}")
