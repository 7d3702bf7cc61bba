"""The same questions asked of a scenario: headroom, marks, the watchdog, circles of buffers.

A scenario has one value of each key, so a finding's place is the key, and its cure a word for the
command line. Values that nobody gave are the lab's own and computed to suffice.
"""

from __future__ import annotations

from collections.abc import Iterator

import networkx as nx

from controller.tables import SwitchSite, headroom_of, needed_headroom, pool_of
from lab.configs.findings import Finding
from lab.configs.routes import circles
from lab.scenario.experiment import Experiment
from lab.scenario.model import Scenario
from topologies import NodeKind

_SWITCH = "scenario"
_MAX_SWITCHES = 256  # of which circles are looked for


def check_scenario(scenario: Scenario) -> list[Finding]:
    """Everything that is found."""
    experiment = Experiment.of(scenario)
    if not scenario.pfc.enabled or scenario.link.cbfc:
        return []  # nothing is paused
    sites = [
        SwitchSite(experiment.fabric, switch, experiment.settings)
        for switch in experiment.fabric.switches
    ]
    return [
        *_headroom(scenario, sites),
        *_marks(scenario, sites),
        *_watchdog(scenario),
        *_circles(scenario, experiment),
    ]


def _headroom(scenario: Scenario, sites: list[SwitchSite]) -> Iterator[Finding]:
    short = [
        (needed_headroom(site, port), site, port)
        for site in sites
        for port in site.ports
        if headroom_of(site, port) < needed_headroom(site, port)
    ]
    if not short:
        return
    size, site, port = max(short, key=lambda one: one[0])
    link = site.link(port)
    yield Finding(
        "headroom-small", _SWITCH, "pfc", "headroom",
        f"it is {scenario.pfc.headroom:,} bytes, and {site.switch.interface(port)} needs {size:,}",
        "what arrives between a pause and its being obeyed finds no room, and is lost",
        f"--set pfc.headroom={size}, or leave it out.",
        facts={"rate_gbps": link.rate_bps / 1e9, "delay_ns": link.delay_ns,
               "mtu": scenario.link.mtu, "extra_ns": scenario.pfc.response_ns,
               "need": size, "configured": scenario.pfc.headroom, "cell": scenario.buffer.cell},
    )  # fmt: skip


def _marks(scenario: Scenario, sites: list[SwitchSite]) -> Iterator[Finding]:
    buffer, ecn = scenario.buffer, scenario.ecn
    if not scenario.transport.control.hears_marks:
        return  # nobody would do anything about them
    if not ecn.enabled:
        yield Finding(
            "ecn-missing", _SWITCH, "ecn", "enabled",
            f"switches mark nothing, and {scenario.transport.cc} waits for marks",
            "no sender hears of congestion until all are paused", "--set ecn.enabled=true",
        )  # fmt: skip
        return
    alpha = buffer.alpha
    shares = [alpha / (1 + alpha) * pool_of(site) for site in sites]
    xoff = buffer.reserved + int(max(shares) if buffer.static is None else buffer.static)
    if ecn.kmin >= xoff and not ecn.classes:
        low, high = xoff // 4, max(xoff // 4 + 1, xoff // 2)
        yield Finding(
            "ecn-late", _SWITCH, "ecn", "kmin",
            f"marks begin at {ecn.kmin:,} bytes, and a sender is paused at {xoff:,}",
            "a single sender is paused before any packet of it is marked: congestion control "
            "hears nothing",
            f"--set ecn.kmin={low} --set ecn.kmax={high}",
            facts={"kmin": ecn.kmin, "kmax": ecn.kmax, "xoff": xoff, "low": low, "high": high},
        )  # fmt: skip


def _watchdog(scenario: Scenario) -> Iterator[Finding]:
    if not scenario.pfc.watchdog_ns:
        yield Finding(
            "watchdog-missing", _SWITCH, "pfc", "watchdog_ns",
            "there is no watchdog",
            "a neighbour that never stops pausing holds the port, and who waits for it, for good",
            "--set pfc.watchdog_ns=200ms",
        )  # fmt: skip


def _circles(scenario: Scenario, experiment: Experiment) -> Iterator[Finding]:
    fabric = experiment.fabric
    if len(fabric.switches) > _MAX_SWITCHES:
        return
    dead = {fault.link for fault in scenario.faults if fault.action == "down" and not fault.at_ns}
    beside: nx.Graph[str] = nx.Graph()
    beside.add_nodes_from(switch.name for switch in fabric.switches)
    beside.add_edges_from(
        (link.a.name, link.b.name)
        for link in fabric.links
        if link.joins_switches and link.name not in dead
    )
    ends = [switch.name for switch in fabric.switches if switch.kind is NodeKind.LEAF]
    neighbours = {name: sorted(beside[name]) for name in beside}
    for circle in circles(neighbours, [end for end in ends if neighbours[end]], {}):
        yield Finding(
            "deadlock", _SWITCH, "topology", circle[0],
            f"buffers can wait for one another in a circle: {' > '.join((*circle, circle[0]))}",
            "once all of them are full nobody may send, and only the watchdog's losses end it",
            "Mend what is dead, or take out cables between switches of one tier.",
            facts={"circle": circle},
        )  # fmt: skip
