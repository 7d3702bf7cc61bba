"""Fabrics by lot: every kind there is, small enough that hundreds of them can be run."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

from lab.runs.lots.lot import Lot, Section

GBPS = 10, 25, 40, 50, 100, 200, 400, 800


def _leaf_spine(lot: Lot) -> Section:
    return {
        "leaves": lot.upto(4, 2), "spines": lot.upto(4), "hosts_per_leaf": lot.upto(4),
        **lot.maybe(0.3, links=2),
    }  # fmt: skip


def _fat_tree(lot: Lot) -> Section:
    return {"k": 4, **lot.maybe(0.7, hosts_per_leaf=lot.upto(3))}


def _rail(lot: Lot) -> Section:
    pods = lot.upto(2)
    servers = pods * lot.upto(3)
    inside: Section = {}
    if lot.chance(0.3):
        inside = {"scale_up_gbps": lot.one(GBPS), **lot.maybe(0.5, scale_up_ns=lot.wide(10, 9000))}
    return {
        "servers": servers, "rails": lot.upto(4, 2), "spines": lot.upto(3), "pods": pods, **inside
    }  # fmt: skip


def _dragonfly(lot: Lot) -> Section:
    switches, long = lot.upto(3), lot.upto(2)
    groups = lot.upto(min(4, switches * long + 1), 2)
    per_leaf = lot.upto(2)
    return {
        "groups": groups, "switches": switches, "hosts_per_leaf": per_leaf, "global_links": long
    }  # fmt: skip


def _planes(lot: Lot) -> Section:
    return {
        "planes": lot.one((1, 2, 2, 4)), "leaves": lot.upto(3), "spines": lot.upto(2),
        "hosts_per_leaf": lot.upto(3, 2),
    }  # fmt: skip


def _dual_tor(lot: Lot) -> Section:
    return {"racks": lot.upto(2), "spines": lot.upto(3), "hosts_per_rack": lot.upto(4, 2)}


def _two_fabrics(lot: Lot) -> Section:
    return {
        "leaves": lot.upto(2), "spines": lot.upto(2), "hosts_per_leaf": lot.upto(3, 2),
        "servers": lot.upto(3), "front_leaves": lot.upto(2), "front_spines": lot.upto(2),
        **lot.maybe(0.5, front_rate_gbps=lot.one(GBPS)),
    }  # fmt: skip


_KINDS: dict[str, Callable[[Lot], Section]] = {
    "leaf-spine": _leaf_spine, "fat-tree": _fat_tree, "rail": _rail, "dragonfly": _dragonfly,
    "planes": _planes, "dual-tor": _dual_tor, "two-fabrics": _two_fabrics,
}  # fmt: skip


def topology(lot: Lot, folder: Path | None) -> Section:
    """A fabric of any kind; one of a file is written into the folder, if there is one."""
    kind = lot.one((*_KINDS, "leaf-spine", "file"))
    if kind != "file" or folder is None:
        kind = "leaf-spine" if kind == "file" else kind
        return {"kind": kind, **_KINDS[kind](lot)}
    path = folder / f"fabric-{lot.seed}.json"
    path.write_text(json.dumps(_graph(lot)))
    return {"kind": "file", "path": str(path)}


def _graph(lot: Lot) -> Section:
    """Leaves and spines, cables of any speed and length, and not all that there could be."""
    leaves, spines, per_leaf = lot.upto(3, 2), lot.upto(3), lot.upto(3)
    nodes: list[Section] = []
    links: list[Section] = []

    def join(a: str, b: str) -> None:
        cable = lot.maybe(0.7, rate_gbps=lot.one(GBPS)) | lot.maybe(
            0.7, delay_ns=lot.wide(10, 9000)
        )
        links.append({"source": a, "target": b, **cable})

    nodes += [{"id": f"tor{n}", "kind": "switch"} for n in range(1, leaves + 1)]
    for leaf in range(1, leaves + 1):
        for spine in range(1, spines + 1):
            if spine == 1 or lot.chance(0.8):
                join(f"tor{leaf}", f"top{spine}")
        for number in range(1, per_leaf + 1):
            nodes.append({"id": f"gpu{leaf}.{number}", "kind": "host"})
            join(f"gpu{leaf}.{number}", f"tor{leaf}")
    tops = sorted({link["target"] for link in links if link["target"].startswith("top")})
    nodes += [{"id": top, "kind": "switch"} for top in tops]
    return {"nodes": nodes, "links": links}
