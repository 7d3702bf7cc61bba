"""The same graph as a Mininet network.

Switches do not run here: their interfaces lie in the network namespace Mininet itself runs in,
and whoever runs the switches (one process for all of them) opens them there. Hosts are network
namespaces of their own, with one fixed neighbour, their leaf: the fabric routes, it does not
answer ARP.

Mininet is a system package, so this module is imported only by what emulates.
"""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any

from mininet.link import Intf, Link
from mininet.net import Mininet
from mininet.node import Host, Switch
from mininet.topo import Topo

from topologies.fabric import Fabric, Node, TopologyError
from topologies.ip import run_ip
from topologies.offload import switch_off_checksum_offload

# No link-local address, no router asked for, no group joined, no neighbour looked for: quiet.
_IPV6_ADDRESS = (
    "ip link set {device} addrgenmode none arp off && "
    "echo 0 > /proc/sys/net/ipv6/conf/{device}/accept_ra && "
    "echo 0 > /proc/sys/net/ipv6/conf/{device}/disable_ipv6 && "
    "ip -6 addr add {address}/128 dev {device} nodad"
)
_NO_IPV6 = "echo 1 > /proc/sys/net/ipv6/conf/{scope}/disable_ipv6"


Begun = Callable[[int, str], object]
"""Who is told of the process that a node's shell is."""


class _ReportsShell:
    """A node that tells of its shell as soon as there is one: it may end before it says a word."""

    def _popen(self, cmd: list[str], **params: Any) -> Any:
        process = super()._popen(cmd, **params)  # type: ignore[misc]
        if self.shell is None:  # type: ignore[attr-defined]  # it is this
            self.params["begun"](process.pid, self.name)  # type: ignore[attr-defined]
        return process


class PassiveSwitch(_ReportsShell, Switch):  # type: ignore[misc]
    """A switch's interfaces, without the switch."""

    def start(self, controllers: object) -> None:
        """Nothing to start: another process moves the packets."""


class QuietHost(_ReportsShell, Host):  # type: ignore[misc]
    """A host that says nothing unasked: neighbour discovery would show up in every count."""

    def startShell(self, mnopts: str | None = None) -> None:  # noqa: N802  (Mininet's name)
        """Start the host's shell; no interface has been given to it yet."""
        super().startShell(mnopts)
        self.cmd(_NO_IPV6.format(scope="all"), ";", _NO_IPV6.format(scope="default"))


class PlainIntf(Intf):  # type: ignore[misc]
    """An interface whose checksums are done before the frame leaves, not by absent hardware."""

    def __init__(self, name: str, node: Any = None, **params: Any) -> None:
        super().__init__(name, node=node, **params)
        if isinstance(node, Switch):
            switch_off_checksum_offload(name)
        else:
            switch_off_checksum_offload(name, node.pid)


class FabricTopo(Topo):  # type: ignore[misc]
    """Mininet's description of a fabric."""

    def build(self, fabric: Fabric) -> None:
        """Add the fabric's nodes and links, with its ports."""
        for host in fabric.hosts:
            ipv4 = {"ip": f"{fabric.address(host)}/24"} if fabric.ip == 4 else {"ip": None}
            self.addHost(host.name, mac=fabric.mac(host), **ipv4)
        for switch in fabric.switches:
            self.addSwitch(switch.name)
        for link in fabric.links:
            self.addLink(link.a.name, link.b.name, port1=link.a_port, port2=link.b_port)


def build_network(fabric: Fabric, mtu: int, begun: Begun = lambda _pid, _name: None) -> Mininet:
    """Make the namespaces and cables of a fabric, every interface up; the caller stops it."""
    for scope in ("all", "default"):
        Path(f"/proc/sys/net/ipv6/conf/{scope}/disable_ipv6").write_text("1")
    try:
        network = Mininet(
            topo=FabricTopo(fabric),
            switch=partial(PassiveSwitch, begun=begun),
            host=partial(QuietHost, begun=begun),
            link=Link,
            intf=PlainIntf,
            controller=None,
            build=True,
        )
    except SystemExit:  # it logs what it misses, and ends the program
        raise TopologyError("Mininet did not find a program that it needs") from None
    except Exception as error:  # it has no other
        if type(error) is not Exception and not isinstance(error, OSError):
            raise
        raise TopologyError(f"Mininet could not lay the cables: {str(error).strip()}") from None
    for host in fabric.hosts:
        for port, leaf in enumerate(fabric.leaves_of(host)):
            device = host.interface(port)
            commands = [f"ip link set {device} mtu {mtu}"]
            if port:
                commands.append(further_setup(fabric, host, leaf, device))
            if not port or fabric.plane_of(leaf) != fabric.plane_of(fabric.leaf_of(host)):
                commands.append(route_setup(fabric, host, device, leaf))
            complaint = network.get(host.name).cmd(" && ".join(commands))
            if complaint:
                raise TopologyError(f"{host} could not be set up: {complaint.strip()}")
    run_ip(
        f"link set {switch.interface(port)} mtu {mtu} up"
        for switch in fabric.switches
        for port in fabric.ports(switch)
    )
    return network


def remove_network(
    fabric: Fabric, network: Mininet, ends: Callable[[int], object] = lambda _pid: None
) -> None:
    """Remove what was made, without a word to shells, of which some may hear none any more.

    ``ends`` is told of each that is meant to end.
    """
    for node in (*network.hosts, *network.switches):
        ends(node.shell.pid)
        with suppress(ProcessLookupError):  # with all that was started there
            os.killpg(node.shell.pid, signal.SIGKILL)
        node.shell.wait()
    # A namespace takes its interfaces with it, some time later: their names are wanted now.
    words = (f"link del {link.b.interface(link.b_port)}\n" for link in fabric.links)
    subprocess.run(
        ["ip", "-force", "-batch", "-"],
        input="".join(words),
        text=True,
        stderr=subprocess.DEVNULL,  # of those that it took by now
        check=False,
    )


def further_setup(fabric: Fabric, host: Node, leaf: Node, device: str) -> str:
    """The commands that give a further port of a host what Mininet gives the first.

    Behind a pair of leaves it has the first one's MAC, and the kernel uses the first alone.
    """
    address = f"ip addr replace {fabric.address(host, leaf)}/24 dev {device} && "
    has_own = fabric.address(host, leaf) != fabric.address(host)
    return (
        f"ip link set {device} address {fabric.mac(host, leaf)} && "
        f"{address if fabric.ip == 4 and has_own else ''}ip link set {device} up"
    )


def route_setup(fabric: Fabric, host: Node, device: str, leaf: Node | None = None) -> str:
    """The commands that leave a host with one route, through its leaf, even to its neighbours.

    At a port into a further plane the route is to that plane's hosts, address by address.
    """
    leaf = leaf or fabric.leaf_of(host)
    gateway = fabric.gateway(leaf)
    ip = f"ip -{fabric.ip}"
    plane = fabric.plane_of(leaf)
    prefixes = [
        str(prefix)
        for other in fabric.switches
        if plane and fabric.plane_of(other) == plane and fabric.hosts_of(other)
        for prefix in fabric.prefixes(other)
    ]
    address = _IPV6_ADDRESS.format(device=device, address=fabric.address(host, leaf))
    return " && ".join(
        (
            *((address,) if fabric.ip == 6 else (f"ip route flush dev {device}",)),
            f"{ip} neigh replace {gateway} lladdr {fabric.mac(leaf)} dev {device} nud permanent",
            *(
                f"{ip} route replace {prefix} via {gateway} dev {device} onlink"
                for prefix in prefixes or ("default",)
            ),
        )
    )
