"""Adapters for programs of others: between a host's own kernel and the fabric.

A host's kernel knows neither the rate and length of its dilated cable nor pauses. So its stack is
given an interface of its own, eth0, and what it sends there goes through a program that knows
them (traffic/core/nic_main.c). Hosts get theirs when somebody is to send from them; RoCEv2's
endpoints have no need of it, and go on using the cable's own end.
"""

from __future__ import annotations

import subprocess
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass

from controller.settings import SettingsError
from controller.thresholds import WIRE_OVERHEAD
from lab.engines.mininet.emulation import Emulation
from lab.engines.mininet.programs import INTERFACE
from lab.errors import LabError, RunError
from lab.machine.native_host import nic_program
from lab.machine.patience import Patience
from lab.machine.processes import line_of, say, stop
from lab.scenario.experiment import Experiment
from lab.scenario.keys import nearest
from topologies import Node
from topologies.mininet_topo import route_setup
from topologies.offload import switch_off_checksum_offload

_INSIDE = f"{INTERFACE}-nic"
_QUEUE_FRAMES = 1000  # as Linux's interfaces have by default
_BURST_FRAMES = 2


@dataclass(frozen=True, slots=True)
class NicCounts:
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

    def plug_in(self, words: str) -> str:
        """Get hosts ready, as in `h1,h2 3`: what they send from now on goes in that class."""
        names, _, priority = words.partition(" ")
        if not priority.isdecimal():
            raise LabError(f"'{words}' names no hosts and class", "Write it as: plug h1,h2 0")
        self.plug(names.split(","), int(priority))
        return f"{names} send in class {priority}"

    def plug(self, names: Sequence[str], priority: int) -> None:
        """Get hosts ready: what their programs send from now on goes in this class."""
        hosts = [self._host(name) for name in names]
        try:
            dscp = self._experiment.settings.classes.dscp_of(priority)
        except SettingsError as error:
            raise LabError(str(error)) from None
        for host in hosts:
            if host not in self._running:
                self._running[host] = self._start(host)
            say(self._running[host], f"mark {dscp}")

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

    def _ask(self, host: Node) -> NicCounts:
        process = self._running[host]
        say(process, "tell")
        assert process.stdout is not None
        told = line_of(process.stdout, Patience([process.pid])).split()
        if not told:
            raise RunError(f"the adapter of {host} is gone")
        return NicCounts(*map(int, told[1::2]))

    def _start(self, host: Node) -> subprocess.Popen[str]:
        experiment, fabric = self._experiment, self._emulation.fabric
        pid = self._emulation.host_pids()[host.name]
        outside = host.interface(0)
        cable = experiment.cable(experiment.host_links[host])
        mtu = experiment.scenario.link.mtu
        here = ("mnexec", "-a", str(pid))
        # The cable's end has another address: what comes there is the adapter's, not the stack's.
        borrowed = "02:ff:" + fabric.mac(host).split(":", 2)[2]
        address = f"ip addr add {fabric.address(host)}/24 dev {INTERFACE}"
        _carry_out(
            here,
            f"ip link add dev {INTERFACE} mtu {mtu} address {fabric.mac(host)} "
            f"type veth peer name {_INSIDE} mtu {mtu}",
            f"ip addr flush dev {outside}",
            f"ip link set dev {outside} address {borrowed}",
            *([address] if fabric.ip == 4 else []),  # IPv6's comes with its route
            f"ip link set {_INSIDE} up",
            f"ip link set {INTERFACE} up",
            route_setup(fabric, host, INTERFACE),
        )
        for interface in (INTERFACE, _INSIDE):
            switch_off_checksum_offload(interface, pid)
        self._hold_back(here, cable.rate_bps / self._dilation)
        classes = experiment.settings.classes.dscp
        process = subprocess.Popen(
            [
                *here,
                *(str(nic_program()), outside, _INSIDE),
                *map(str, (cable.rate_bps, self._dilation, cable.delay_ns)),
                *map(str, (WIRE_OVERHEAD, _QUEUE_FRAMES)),
                "".join(str(classes.get(dscp, 0)) for dscp in range(64)),
            ],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )
        assert process.stdout is not None
        if line_of(process.stdout, Patience([process.pid])) != "ready":
            stop(process)
            raise RunError(f"the adapter of {host} did not start")
        return process

    def _hold_back(self, here: Sequence[str], bps: float) -> None:
        """Let frames wait where TCP sees them, as it does before real adapters, if the kernel can.

        Otherwise they wait in the adapter, and TCP learns of too many when it loses some.
        """
        frame = self._experiment.settings.max_frame
        with suppress(RunError):
            _carry_out(
                here,
                f"tc qdisc add dev {INTERFACE} root tbf rate {round(bps)}bit "
                f"burst {_BURST_FRAMES * frame} limit {_QUEUE_FRAMES * frame} "
                f"overhead {WIRE_OVERHEAD}",
            )


def _carry_out(here: Iterable[str], *commands: str) -> None:
    done = subprocess.run(
        [*here, "sh", "-c", " && ".join(commands)], capture_output=True, text=True, check=False
    )
    if done.returncode != 0:
        raise RunError(f"a host could not be given an adapter: {done.stderr.strip()}")
