"""Fabrics of the RDMA simulators in ns-3: `topology.txt`, as HPCC's and ConWeave's read it.

    5 1 4                           nodes, switches, cables
    4                               which nodes are switches; the others are hosts, in their order
    0 4 100Gbps 1us 0               a cable: from, to, rate, delay, the share of packets it loses

Nodes are numbered from 0.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from fractions import Fraction

from topologies.cabling import MAX_NODES, Cable, End, Identity, Imported, cabled
from topologies.fabric import Fabric, Link, NodeKind, Speed, TopologyError

_WHOLE = re.compile(r"\d{1,9}", re.ASCII)
_RATE = re.compile(r"(\d{1,9}(?:\.\d{1,9})?)([GMK]?)bps", re.ASCII)
_DELAY = re.compile(r"(\d{1,12}(?:\.\d{1,12})?)(ns|us|ms|s)", re.ASCII)
_TIMES = {"G": 10**9, "M": 10**6, "K": 10**3, "": 1}
_LASTS = {"ns": 1, "us": 10**3, "ms": 10**6, "s": 10**9}
_MAX_CABLES = 4 * MAX_NODES


def import_ns3(text: str) -> Imported:
    """Build the fabric of a file's text."""
    lines = _lines(text)
    at, head = next(lines, (1, []))
    nodes, switches, cables = _numbers(at, head, 3, "nodes, switches and cables")
    if not switches < nodes <= MAX_NODES:
        raise TopologyError(f"line {at}: {nodes} nodes, {switches} of them switches")
    if cables > _MAX_CABLES:
        raise TopologyError(f"line {at}: {cables} cables; {_MAX_CABLES} can be")
    at, named = next(lines, (at + 1, [])) if switches else (at, [])
    which = set(_numbers(at, named, switches, f"the {switches} switches"))
    if len(which) < switches or max(which, default=0) >= nodes:
        raise TopologyError(f"line {at}: a switch is named twice, or is none of the {nodes} nodes")
    laid = [_cable(at, words, nodes) for at, words in lines]
    if len(laid) != cables:
        raise TopologyError(f"its first line says {cables} cables, and it has {len(laid)}")
    hosts = {str(node): Identity() for node in range(nodes) if node not in which}
    return cabled(hosts, [str(node) for node in sorted(which)], laid)


def _lines(text: str) -> Iterator[tuple[int, list[str]]]:
    for number, line in enumerate(text.splitlines(), 1):
        words = line.partition("#")[0].split()
        if words:
            yield number, words


def _numbers(at: int, words: list[str], count: int, what: str) -> list[int]:
    if len(words) != count or not all(_WHOLE.fullmatch(word) for word in words):
        raise TopologyError(f"line {at}: it does not say {what} as {count} whole numbers")
    return [int(word) for word in words]


def _cable(at: int, words: list[str], nodes: int) -> Cable:
    if len(words) not in (4, 5):
        raise TopologyError(f"line {at}: a cable is: from to rate delay, and the share it loses")
    ends = _numbers(at, words[:2], 2, "two nodes")
    if max(ends) >= nodes:
        raise TopologyError(f"line {at}: there is no node {max(ends)}; they are 0 to {nodes - 1}")
    rate, delay = _RATE.fullmatch(words[2]), _DELAY.fullmatch(words[3])
    if rate is None or not (bps := int(Fraction(rate[1]) * _TIMES[rate[2]])):
        raise TopologyError(f"line {at}: '{words[2][:40]}' is no rate; write 100Gbps")
    if delay is None:
        raise TopologyError(f"line {at}: '{words[3][:40]}' is no delay; write 1us or 0.001ms")
    if len(words) == 5 and not re.fullmatch(r"0+(\.0*)?(e[+-]?\d+)?", words[4]):
        raise TopologyError(
            f"line {at}: it loses a share of packets ('{words[4][:40]}'): write 0 there, and the "
            "share as loss.rate of a scenario, with loss.links"
        )
    speed = Speed(bps, int(Fraction(delay[1]) * _LASTS[delay[2]]))
    return Cable(End(str(ends[0])), End(str(ends[1])), speed)


def export_ns3(fabric: Fabric, cables: Mapping[Link, tuple[int, int]]) -> Iterator[str]:
    """The lines of a file with a fabric, hosts first; of each link its bits a second and its ns."""
    nodes = [*fabric.hosts, *fabric.switches]
    number = {node: at for at, node in enumerate(nodes)}
    switches = [str(number[node]) for node in nodes if node.kind is not NodeKind.HOST]
    links = list(fabric.links)
    yield f"{len(nodes)} {len(switches)} {len(links)}\n"
    yield f"{' '.join(switches)}\n"
    for link in links:
        rate_bps, delay_ns = cables[link]
        rate = f"{rate_bps / 10**9:g}Gbps"
        yield f"{number[link.a]} {number[link.b]} {rate} {delay_ns}ns 0\n"
