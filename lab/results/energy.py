"""From what links carried, and for how long the fabric was on, to joules.

All follows from what a result holds, so that runs that were kept before there was any have it too.
What is slow, cut or halted takes what it takes when idle: a port stays on.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from lab.results.result import Energy, LinkUse, Result
from params.energy import EnergyModel, Optics
from params.quantity import summed
from params.rates import GBPS
from topologies import Fabric, Link, Node, NodeKind

_DIGITS = 6


class _Port(NamedTuple):
    """One end of a link: what its parts take all the time, and for what passed it."""

    way: str  # that it sends into
    optics_w: float
    switch_w: float
    adapter_w: float
    moved_j: float

    @property
    def idle_w(self) -> float:
        return self.optics_w + self.switch_w + self.adapter_w


def weighed(result: Result) -> Result:
    """The same with joules."""
    fabric = result.scenario.fabric()  # with ports as they are made, whatever slows some
    seconds = result.duration_ns / 1e9
    ports = list(_ports(result, fabric))
    idle_w = summed(port.idle_w for port in ports)
    moved_j = summed(port.moved_j for port in ports)
    total_j = idle_w * seconds + moved_j
    bits = 8 * result.flows.bytes
    by_way = {port.way: _round(port.idle_w * seconds + port.moved_j) for port in ports}
    energy = Energy(
        total_j=_round(total_j),
        idle_w=_round(idle_w),
        optics_j=_round(summed(port.optics_w for port in ports) * seconds),
        switches_j=_round(summed(port.switch_w for port in ports) * seconds + moved_j),
        adapters_j=_round(summed(port.adapter_w for port in ports) * seconds),
        moved_j=_round(moved_j),
        per_bit_j=_round(total_j / bits) if bits else None,
        jobs_j=_of_jobs(result, idle_w, moved_j),
    )
    links = tuple(use.model_copy(update={"energy_j": by_way.get(use.name)}) for use in result.links)
    return result.model_copy(update={"energy": energy, "links": links})


def _round(value: float) -> float:
    return float(f"{value:.{_DIGITS}g}")


def _ports(result: Result, fabric: Fabric) -> Iterator[_Port]:
    uses = {use.name: use for use in result.links}
    for link in fabric.links:
        up, down = uses.get(link.up), uses.get(link.down)
        if up and down:
            for node in (link.a, link.b):
                yield _port(result, fabric, link, node, (up, down))


def _port(
    result: Result, fabric: Fabric, link: Link, node: Node, uses: tuple[LinkUse, LinkUse]
) -> _Port:
    model, gbps = result.scenario.energy, _gbps(result, link)
    optics_w = _optics(model, link).module.idle_w(gbps)
    if node.kind is NodeKind.HOST:
        return _Port(
            link.direction(node), optics_w, 0.0, model.adapter_w / len(fabric.ports(node)), 0.0
        )
    chassis = model.switch.chassis
    moved_j = summed(8 * use.bytes * chassis.bit_j + use.packets * chassis.packet_j for use in uses)
    return _Port(link.direction(node), optics_w, chassis.idle_w(gbps), 0.0, moved_j)


def _gbps(result: Result, link: Link) -> float:
    """What a link's ports are made for, whatever faults leave of it."""
    if link.speed.rate_bps is not None:
        return link.speed.rate_bps / GBPS
    cables = result.scenario.link
    between = cables.fabric_rate_gbps if link.joins_switches else None
    return cables.rate_gbps if between is None else between


def _optics(model: EnergyModel, link: Link) -> Optics:
    return (model.fabric_optics or model.optics) if link.joins_switches else model.optics


def _of_jobs(result: Result, idle_w: float, moved_j: float) -> dict[str, float] | None:
    """What each job took until its end: of what all took, its share by payload that arrived."""
    jobs, parts = result.jobs, result.parts
    if not jobs or not parts or not result.flows.bytes:
        return None
    found = {}
    for name, job in jobs.items():
        if job.jct_ns is not None and name in parts:
            share = parts[name].bytes / result.flows.bytes
            found[name] = _round(share * (idle_w * job.jct_ns / 1e9 + moved_j))
    return found or None
