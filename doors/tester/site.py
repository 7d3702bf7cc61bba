"""Where a tester's ports are: hosts of a lab that is up, or the two ends of one cable."""

from __future__ import annotations

from collections.abc import Mapping

from doors.tester.headers import Ends
from lab.engines.mininet.running import RunningLab
from lab.scenario.experiment import Experiment
from lab.scenario.model import Scenario
from params.data import Data
from topologies import Node

WIRE = ("tester-a", "tester-b")  # interfaces of the cable that is all there is
_WIRE_MTU = 9216
_WIRE_OVERHEAD = 24  # of the wire around a frame: preamble 8, check sequence 4, gap 12


class Place(Data):
    """One of them."""

    location: str
    command: tuple[str, ...]  # that runs others there
    interface: str
    bps: int
    dilation: int
    delay_ns: int
    overhead: int
    most_frame: int  # bytes without the check sequence
    ends: Ends
    gateway: str  # its address; empty: it has none
    classes: Mapping[int, int]  # by DSCP


def of_lab(lab: RunningLab) -> dict[str, Place]:
    """The ports of a lab's hosts, by what they are called: h1, and h1-eth1 of one with several."""
    scenario = Scenario.model_validate(lab.watch["scenario"])
    experiment = Experiment.of(scenario)
    fabric, found = experiment.fabric, {}
    for host in fabric.hosts:
        for port, leaf in enumerate(fabric.leaves_of(host)):
            name = host.interface(port) if port else host.name
            found[name] = _at_host(experiment, lab, host, port, leaf, name)
    return found


def _at_host(
    experiment: Experiment, lab: RunningLab, host: Node, port: int, leaf: Node, name: str
) -> Place:
    fabric, settings = experiment.fabric, experiment.settings
    cable = experiment.cable(fabric.link_at(host, port))
    return Place(
        location=name,
        command=tuple(lab.node_command(host.name, [])),
        interface=host.interface(port),
        bps=cable.rate_bps,
        dilation=lab.watch["dilation"],
        delay_ns=cable.delay_ns,
        overhead=cable.overhead,
        most_frame=settings.max_frame,
        ends=Ends(fabric.mac(host, leaf), str(fabric.address(host, leaf)), fabric.mac(leaf)),
        gateway=str(fabric.gateway(leaf)),
        classes=settings.dscp_priorities,
    )


def of_wire(names: tuple[str, str], enter: tuple[str, ...], bps: int) -> dict[str, Place]:
    """The two ends of a cable, in real time; each is the other's neighbour."""
    macs = ("02:00:00:00:00:01", "02:00:00:00:00:02")
    addresses = ("192.0.2.1", "192.0.2.2")
    classes = {dscp: dscp >> 3 for dscp in range(64)}
    return {
        name: Place(
            *(name, enter, WIRE[end], bps, 1, 0, _WIRE_OVERHEAD, _WIRE_MTU + 14),
            ends=Ends(macs[end], addresses[end], macs[1 - end]),
            gateway=addresses[1 - end],
            classes=classes,
        )
        for end, name in enumerate(names)
    }
