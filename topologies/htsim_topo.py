"""Fabrics from htsim's `.topo` files: fat trees of two or three tiers.

    Nodes 32                     hosts in all
    Tiers 2
    Podsize 32                   hosts in a pod
    Tier 0                       switches with hosts; Tier 1 those above them, Tier 2 cores
    Downlink_speed_Gbps 100      of the cables below
    Downlink_Latency_ns 1000
    Radix_Down 8                 cables down and up
    Radix_Up 2
    Switch_Latency_ns 0          \\
    Oversubscribed 4              | may be left out
    Bundle 1                     /   cables to each switch below

A switch's own latency becomes part of its cables, half of it on either side, so that a way takes as
long as there. `Queue_Up` and `Queue_Down` are htsim's: memory is the scenario's here.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import field

from params.data import Data
from topologies.cabling import MAX_NODES, Cable, End, Identity, Imported, cabled
from topologies.fabric import Speed, TopologyError

_HEADS = ("nodes", "tiers", "podsize")
_USUAL = {"switch_latency_ns": 0, "oversubscribed": 1, "bundle": 1, "radix_up": 0}
_NEEDED = ("downlink_speed_gbps", "downlink_latency_ns", "radix_down")
_BOUNDS = {  # and what their numbers may be; others are from 1
    "tier": (0, 2), "tiers": (2, 3), "switch_latency_ns": (0, 10**9),
    "downlink_latency_ns": (0, 10**9), "downlink_speed_gbps": (1, 10_000),
    "queue_up": (0, 1 << 40), "queue_down": (0, 1 << 40),
}  # fmt: skip
_KNOWN = (*_HEADS, "tier", *_NEEDED, *_USUAL, "queue_up", "queue_down")
_NUMBER = re.compile(r"\d{1,15}", re.ASCII)


class _Tier(Data, frozen=False):
    said: dict[str, int] = field(default_factory=dict)

    def __getitem__(self, key: str) -> int:
        return self.said.get(key, _USUAL.get(key, 0))


def import_topo(text: str) -> Imported:
    """Build the fabric of a file's text."""
    heads, tiers = _parse(text)
    nodes, pod = heads["nodes"], heads["podsize"]
    leaf, spine = tiers[:2]
    _divides(nodes, pod, "Nodes", "Podsize")
    _divides(pod, leaf["radix_down"], "Podsize", "Tier 0's Radix_Down")
    pods = nodes // pod
    leaves_in_pod = pod // leaf["radix_down"]
    _agree(0, leaf, spine)
    _divides(leaf["radix_up"], spine["bundle"], "Tier 0's Radix_Up", "Tier 1's Bundle")
    if len(tiers) == 2:  # every leaf is cabled to all above it, whatever a pod is
        leaves_in_pod, pods = leaves_in_pod * pods, 1
    spines_in_pod = leaf["radix_up"] // spine["bundle"]
    _fits(1, spine, leaves_in_pod)
    hosts = [f"node {number}" for number in range(nodes)]
    leaves = [f"tier 0 switch {number}" for number in range(leaves_in_pod * pods)]
    spines = [f"tier 1 switch {number}" for number in range(spines_in_pod * pods)]
    cables = [
        cable
        for number, host in enumerate(hosts)
        for cable in _bundle(host, leaves[number // leaf["radix_down"]], None, leaf)
    ]
    cables += [
        cable
        for at, one in enumerate(leaves)
        for place in range(spines_in_pod)
        for cable in _bundle(one, spines[at // leaves_in_pod * spines_in_pod + place], leaf, spine)
    ]
    cores: list[str] = []
    if len(tiers) == 3:
        core = tiers[2]
        _agree(1, spine, core)
        _divides(spine["radix_up"], core["bundle"], "Tier 1's Radix_Up", "Tier 2's Bundle")
        _fits(2, core, pods)
        each = spine["radix_up"] // core["bundle"]
        cores = [f"tier 2 switch {number}" for number in range(spines_in_pod * each)]
        cables += [
            cable
            for at, one in enumerate(spines)
            for turn in range(each)
            for cable in _bundle(one, cores[at % spines_in_pod + spines_in_pod * turn], spine, core)
        ]
    return cabled(dict.fromkeys(hosts, Identity()), [*leaves, *spines, *cores], cables)


def _bundle(below: str, above: str, tier_below: _Tier | None, tier: _Tier) -> Iterator[Cable]:
    """The cables between a node and a switch of the tier above it."""
    switching = tier["switch_latency_ns"] + (tier_below["switch_latency_ns"] if tier_below else 0)
    speed = Speed(tier["downlink_speed_gbps"] * 10**9, tier["downlink_latency_ns"] + switching // 2)
    for _ in range(tier["bundle"]):
        yield Cable(End(below), End(above), speed)


def _parse(text: str) -> tuple[dict[str, int], list[_Tier]]:
    heads: dict[str, int] = {}
    tiers: dict[int, _Tier] = {}
    into = heads
    for number, line in enumerate(text.splitlines(), 1):
        words = line.partition("#")[0].split()
        if not words:
            continue
        try:
            key = words[0].lower()
            value = _value(key, words)
            if key == "tier":
                if value in tiers:
                    raise TopologyError(f"tier {value} is there twice")
                tiers[value] = _Tier()
                into = tiers[value].said
                continue
            if (key in _HEADS) != (into is heads):
                raise TopologyError(f"'{words[0]}' stands {'below' if tiers else 'above'} a tier")
            if into.setdefault(key, value) != value:
                raise TopologyError(f"'{words[0]}' is there twice")
        except TopologyError as error:
            raise TopologyError(f"line {number}: {error}") from None
    return heads, _whole(heads, tiers)


def _whole(heads: dict[str, int], tiers: dict[int, _Tier]) -> list[_Tier]:
    """All tiers, if nothing is missing."""
    missing = next((head for head in _HEADS if head not in heads), None)
    if missing:
        raise TopologyError(f"it does not say '{missing.capitalize()} N'")
    if heads["nodes"] > MAX_NODES:
        raise TopologyError(f"{heads['nodes']:,} nodes: at most {MAX_NODES:,} can be")
    if sorted(tiers) != list(range(heads["tiers"])):
        raise TopologyError(f"it says Tiers {heads['tiers']}, and tells of {sorted(tiers)}")
    for tier, fields in tiers.items():
        is_top = tier == heads["tiers"] - 1
        needed = (*_NEEDED, *(() if is_top else ("radix_up",)))
        gap = next((key for key in needed if key not in fields.said), None)
        if gap:
            raise TopologyError(f"tier {tier} does not say '{gap.capitalize()} N'")
        if is_top and fields["radix_up"]:
            raise TopologyError(f"tier {tier} is the last, and has a Radix_Up")
    if tiers[0]["bundle"] > 1:
        raise TopologyError("tier 0: a host has one cable: make Bundle 1")
    return [tiers[tier] for tier in range(heads["tiers"])]


def _value(key: str, words: list[str]) -> int:
    if key not in _KNOWN:
        raise TopologyError(f"'{words[0][:40]}' is not known; known: {', '.join(_KNOWN)}")
    least, most = _BOUNDS.get(key, (1, 1 << 20))
    found = int(words[1]) if len(words) == 2 and _NUMBER.fullmatch(words[1]) else -1
    if not least <= found <= most:
        raise TopologyError(f"'{words[0]}' is followed by a whole number from {least} to {most:,}")
    return found


def _divides(whole: int, part: int, what: str, by: str) -> None:
    if whole % part:
        raise TopologyError(f"{what}, {whole}, is no multiple of {by}, {part}")


def _agree(tier: int, below: _Tier, above: _Tier) -> None:
    """What a switch has below is so many times what it has above as the file says."""
    down = below["radix_down"] * below["downlink_speed_gbps"]
    up = below["radix_up"] * above["downlink_speed_gbps"]
    if down != below["oversubscribed"] * up:
        raise TopologyError(
            f"tier {tier} has {down} Gb/s down and {up} up, which is not Oversubscribed "
            f"{below['oversubscribed']}"
        )


def _fits(tier: int, switch: _Tier, below: int) -> None:
    if switch["radix_down"] != below * switch["bundle"]:
        raise TopologyError(
            f"tier {tier}: Radix_Down {switch['radix_down']}, and below are {below} switches with "
            f"{switch['bundle']} cable(s) each"
        )
