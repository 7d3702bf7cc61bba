"""Faults by lot, from any host, at any link and switch."""

from __future__ import annotations

from collections.abc import Callable

from lab.runs.lots.lot import Lot, Section
from lab.runs.lots.settings import Frame

HARMLESS = frozenset(("storm", "slow", "drain", "undrain"))  # nothing is lost for them
_SPAN_NS = 100_000  # in which they begin
_CHANCES = 0.001, 0.01, 0.1


def faults(lot: Lot, chosen: Frame, *, has_llr: bool, eventful: bool) -> list[Section]:
    """None, as often as not; or storms alone, or whatever else does not lose, or everything."""
    kinds: dict[str, Callable[[Lot, Frame], list[Section]]] = {}
    if not chosen.has_ports:  # adapters with several send no storm
        kinds |= {"storm": _storm, "storms": _storm}
    if not eventful and lot.chance(0.5):
        return []
    if eventful or not kinds or lot.chance(0.6):
        kinds |= {"slow": _slow, "drain": _drain}
    if eventful or lot.chance(0.25):
        kinds |= {"down": _down, "spoil": _spoil, "halt": _halt, "stop": _stop}
        kinds |= {} if has_llr else {"restart": _restart}
        kinds |= {"plane": _plane} if chosen.fabric.planes > 1 else {}
    drawn = (kinds[lot.one(list(kinds))](lot, chosen) for _ in range(lot.upto(4)))
    return [fault for found in drawn for fault in found]


def _at(lot: Lot) -> Section:
    return {"at_ns": lot.upto(_SPAN_NS, 0)}


def _for(lot: Lot) -> Section:
    return {"for_ns": lot.wide(100, 500_000)}


def _storm(lot: Lot, chosen: Frame) -> list[Section]:
    host = lot.one(chosen.fabric.hosts).name
    lasts = lot.wide(1_000, 3_000_000)
    return [{**_at(lot), "action": "storm", "host": host, "for_ns": lasts}]


def _slow(lot: Lot, chosen: Frame) -> list[Section]:
    where = lot.one(chosen.links + chosen.ends)
    way = lot.maybe(0.4, direction=lot.one(("up", "down")))
    share = lot.share(0.05)
    return [{**_at(lot), "action": "slow", "link": where, "share": share, **way, **_for(lot)}]


def _drain(lot: Lot, chosen: Frame) -> list[Section]:
    spared = lot.one([node.name for node in chosen.fabric.switches])
    where = {"switch": spared}
    if chosen.links and lot.chance(0.6):
        where = {"link": lot.one(chosen.links)}
    begin = lot.upto(_SPAN_NS, 0)
    if lot.chance(0.4):
        again = {"at_ns": begin + lot.wide(100, 10**5), "action": "undrain", **where}
        return [{"at_ns": begin, "action": "drain", **where}, again]
    return [{"at_ns": begin, "action": "drain", **where, **_for(lot)}]


def _down(lot: Lot, chosen: Frame) -> list[Section]:
    what = lot.one(("link", "link", "switch", "flap"))
    where = {"link": lot.one(chosen.links + chosen.ends)}
    if what == "switch":
        where = {"switch": lot.one(chosen.fabric.switches).name}
    begin = lot.upto(_SPAN_NS, 0)
    if what == "flap":
        up = {"at_ns": begin + lot.wide(100, 10**5), "action": "up", **where}
        return [{"at_ns": begin, "action": "down", **where}, up]
    return [{"at_ns": begin, "action": "down", **where, **_for(lot)}]


def _plane(lot: Lot, chosen: Frame) -> list[Section]:
    return [{**_at(lot), "action": "down", "plane": lot.upto(chosen.fabric.planes), **_for(lot)}]


def _spoil(lot: Lot, chosen: Frame) -> list[Section]:
    action = lot.one(("lose", "corrupt", "duplicate", "reorder"))
    where = lot.one(chosen.links + chosen.ends)
    late = lot.maybe(0.5, late_ns=lot.wide(10, 20_000)) if action == "reorder" else {}
    spoils = {"action": action, "link": where, "rate": lot.one(_CHANCES)}
    return [{**_at(lot), **spoils, **late, **_for(lot)}]


def _halt(lot: Lot, chosen: Frame) -> list[Section]:
    return [{**_at(lot), "action": "halt", "host": lot.one(chosen.fabric.hosts).name, **_for(lot)}]


def _stop(lot: Lot, _: Frame) -> list[Section]:
    return [
        {**_at(lot), "action": "halt", "part": lot.one(("controller", "collector")), **_for(lot)}
    ]


def _restart(lot: Lot, chosen: Frame) -> list[Section]:
    return [{**_at(lot), "action": "restart", "switch": lot.one(chosen.fabric.switches).name}]
