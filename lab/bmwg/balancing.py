"""Section 8: how evenly parallel links carry what hosts send."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from statistics import fmean
from typing import Any

from lab.bmwg.arithmetic import fairness, max_mean
from lab.bmwg.bench import MB, Bench
from lab.bmwg.case import Asks, Case, Found, together
from lab.bmwg.outcome import Outcome, Plot, Row, Table
from params.quantity import duration
from topologies import NodeKind

_GAPS_NS = (500, 1_000, 2_000, 10_000, 50_000, 200_000)
_LEAVES = (8, 16, 32, 64)
_EACH = 4 * MB  # what a host sends, over all its queue pairs
BALANCE = {
    "MMR": "times", "worst MMR": "times", "JFI": "index", "worst JFI": "index",
    "goodput by line rate": "share", "out of order": "share", "sent again": "share",
}  # fmt: skip


def uplinks(found: Found) -> dict[str, list[int]]:
    """The bytes of each switch's parallel links: those of a leaf to all that is above it."""
    fabric = found.run.fabric
    tops = {use.name: use.bytes for use in found.result.links}
    groups: dict[str, list[int]] = {}
    for link in fabric.links:
        if link.joins_switches and NodeKind.LEAF in (link.a.kind, link.b.kind):
            leaf = link.a if link.a.kind is NodeKind.LEAF else link.b
            away = next(name for name in link.directions if name.startswith(f"{leaf.name}>"))
            groups.setdefault(leaf.name, []).append(tops[away])
    return {leaf: loads for leaf, loads in groups.items() if sum(loads)}


def goodput_gbps(found: Found, dst: str = "") -> float:
    """Payload of all messages together, or of those to a host, from the first post to the last
    arrival."""
    came = [
        (flow.start_ns, flow.start_ns + flow.fct_ns, flow.bytes)
        for flow in found.flows
        if flow.start_ns is not None and flow.fct_ns is not None and dst in ("", flow.dst)
    ]
    if not came:
        return 0.0
    took = max(end for _, end, _ in came) - min(start for start, _, _ in came)
    return 8 * sum(size for _, _, size in came) / took


def balance(bench: Bench, runs: Sequence[Found]) -> dict[str, list[float]]:
    """What section 8 asks of every run: the mean and the worst over leaves of MMR and JFI."""
    figures: dict[str, list[float]] = {name: [] for name in BALANCE}
    for found in runs:
        groups = list(uplinks(found).values())
        sent = max(1.0, found.figure("roce.data_packets"))
        senders = len({flow.src for flow in found.flows})
        figures["MMR"].append(fmean(map(max_mean, groups)) if groups else 1.0)
        figures["worst MMR"].append(max(map(max_mean, groups), default=1.0))
        figures["JFI"].append(fmean(map(fairness, groups)) if groups else 1.0)
        figures["worst JFI"].append(min(map(fairness, groups), default=1.0))
        figures["goodput by line rate"].append(goodput_gbps(found) / (senders * bench.rate_gbps))
        figures["out of order"].append(found.figure("roce.out_of_order_packets") / sent)
        figures["sent again"].append(found.figure("roce.retransmitted_packets") / sent)
    return figures


def elephants(
    bench: Bench, section: str, policy: str, seed: int, *, qps: int = 4, ports: int = 1 << 14,
    lb: Mapping[str, Any] | None = None, **changes: Any,
) -> Case:  # fmt: skip
    """Every host sends to one other, by so many queue pairs that share so many UDP ports."""
    hosts = _hosts(bench, changes.get("topology"))
    traffic = {"kind": "elephants", "flows": qps * hosts, "bytes": _EACH // qps,
               "source_ports": ports}  # fmt: skip
    return bench.case(section, traffic, seed=seed, lb={"policy": policy, **(lb or {})}, **changes)


def _hosts(bench: Bench, topology: Mapping[str, Any] | None) -> int:
    if topology and topology.get("kind") == "leaf-spine":
        return int(topology["leaves"]) * int(topology.get("hosts_per_leaf", 2))
    return len(bench.scenario.fabric().hosts)


def _measured(bench: Bench, of: Mapping[str, str], cases: Sequence[Case]) -> Asks[Row]:
    found = yield cases
    return Row(of, balance(bench, found), cases)


def _seeds(bench: Bench, topology: Mapping[str, Any] | None = None) -> range:
    """Trials: of more than eight leaves fewer, for each leaf is a sample of its own."""
    leaves = int((topology or {}).get("leaves", 0))
    whole = max(3, 20 * _LEAVES[0] // max(leaves, _LEAVES[0]))
    return range(1, bench.extent.repeats(whole, 2) + 1)


# --- 8.1 -----------------------------------------------------------------------------------------


def ecmp(bench: Bench) -> Asks[Outcome]:
    """ECMP by five-tuple: queue pairs that share a UDP source port, or have each their own."""
    extent = bench.extent
    leaves = [number for number in extent.some(_LEAVES, (8,)) if not bench.is_small]
    topologies = [bench.fabric(0, number) for number in leaves] or [None]
    rows = yield from together([
        _measured(
            bench,
            {"leaves": str((topology or bench.device["topology"]).get("leaves", "as it is")),
             "QPs": str(qps), "hash sees": seen},
            [elephants(bench, "8.1", "ecmp", seed, qps=qps, ports=ports,
                       **({"topology": topology} if topology else {}))
             for seed in _seeds(bench, topology)],
        )
        for topology in topologies
        for qps in extent.some((1, 4, 8, 16, 32), (1, 4, 16))
        for seen, ports in (("hosts alone", 1), ("every QP", 1 << 14))
    ])  # fmt: skip
    plot = {
        seen: {
            float(row.of["QPs"]): row.mean("JFI") or 0.0
            for row in rows
            if row.of["hash sees"] == seen and row.of["leaves"] == rows[0].of["leaves"]
        }
        for seen in ("hosts alone", "every QP")
    }
    return Outcome(
        [Table("ECMP", BALANCE, rows)],
        "JFI",
        [Plot("Fairness of uplinks by queue pairs", ("QPs", "count"), ("JFI", "index"), plot)],
        deviations=(
            "The program hashes the five-tuple and not the BTH's destination QP. In place of the "
            "two hashes two hosts are compared: one that gives all QPs of a pair the same UDP "
            "source port, which a hash with the QP would tell apart, and one that gives each its "
            "own, as RoCEv2 adapters do, which comes to the same spread.",
            "Each leaf is a sample of how evenly uplinks are used: 20 trials of 8 leaves, and of "
            "more leaves as many fewer, 3 at least.",
        ),
    )


# --- 8.2 -----------------------------------------------------------------------------------------


def flowlet(bench: Bench) -> Asks[Outcome]:
    """Flowlets by their gap, beside ECMP."""
    gaps = bench.extent.some(_GAPS_NS, (1_000, 50_000))
    asked: list[tuple[str, str, str, dict[str, Any]]] = [("ECMP", "-", "ecmp", {})]
    for name, policy in (("flowlet, by hash", "flowlet"), ("DLB, least queue", "dlb")):
        asked += [(name, duration(gap), policy, {"flowlet_gap_ns": gap}) for gap in gaps]
    rows = yield from together([
        _measured(bench, {"balancing": name, "gap": gap},
                  [elephants(bench, "8.2", policy, seed, lb=lb) for seed in _seeds(bench)])
        for name, gap, policy, lb in asked
    ])  # fmt: skip
    base = rows[0].mean("goodput by line rate") or 1.0
    rows = [
        Row(row.of, {**row.figures, "goodput by ECMP's": [
            each / base for each in row.figures["goodput by line rate"]]}, row.cases)
        for row in rows
    ]  # fmt: skip
    plot = {
        name: {
            float(gap): row.mean("JFI") or 0.0
            for gap, row in zip(gaps, [r for r in rows if r.of["balancing"] == name], strict=True)
        }
        for name in ("flowlet, by hash", "DLB, least queue")
    }
    return Outcome(
        [Table("Flowlets, 4 QPs", {**BALANCE, "goodput by ECMP's": "times"}, rows)],
        "JFI",
        [Plot("Fairness by flowlet gap", ("gap", "ns"), ("JFI", "index"), plot, is_log=True)],
    )


# --- 8.3 -----------------------------------------------------------------------------------------


def spray(bench: Bench) -> Asks[Outcome]:
    """Packets one by one, under adapters that bear it and that do not."""
    rows = yield from together([
        _measured(bench, {"balancing": name, "recovery": recovery},
                  [elephants(bench, "8.3", policy, seed, transport={"recovery": recovery})
                   for seed in _seeds(bench)])
        for name, policy in (("spray, in turn", "spray"), ("adaptive, least queue", "adaptive"))
        for recovery in ("selective", "go-back-n")
    ])  # fmt: skip
    return Outcome(
        [Table("Packet spraying, 4 QPs", BALANCE, rows)],
        "JFI",
        deviations=("The switches have no reorder buffer: adapters see packets as they come.",),
    )


# --- 8.4 -----------------------------------------------------------------------------------------


def index(bench: Bench) -> Asks[Outcome]:
    """Jain's index of each way of balancing, side by side."""
    rows = yield from together([
        _measured(bench, {"balancing": name},
                  [elephants(bench, "8.4", policy, seed) for seed in _seeds(bench)])
        for name, policy in (("ECMP", "ecmp"), ("flowlet", "flowlet"), ("DLB", "dlb"),
                             ("packet spray", "spray"))
    ])  # fmt: skip
    indices = {row.of["balancing"]: row.mean("JFI") or 0.0 for row in rows}
    return Outcome(
        [Table("Jain's fairness index", BALANCE, rows)],
        "JFI",
        [Plot("Jain's fairness index", ("", "count"), ("JFI", "index"), {}, kind="bars",
              bars=indices)],
    )  # fmt: skip
