"""``closlab agree``: the same scenarios in the simulator and on Mininet, side by side.

Both run the same compiled P4 and the same endpoints; what differs is the clock, and what a machine
adds to it. Completion times should be within 10 %, nothing should be dropped in one that is not in
the other, pauses and marks should be within 25 %. Counts below a hundred are held to a difference
of twenty-five instead: so few are noise.

The cases are chosen so that the simulator alone comes to the same figures whichever way it decides
between packets that arrive at one instant. (Sixteen elephants that set out at once do not: who
comes first decides which of them share a link from then on, in a real fabric as well. So load
balancers are compared under flows that arrive at random, at the same times on both engines. For
the same reason three senders overflow a port, not seven.)
"""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from lab.errors import RunError
from lab.progress import Stages
from lab.runs.apart import run_apart
from lab.scenario import catalogue
from lab.scenario.experiment import Experiment

TIME_TOLERANCE = 0.10
COUNT_TOLERANCE = 0.25
FEW = 100
_PACKETS_PER_S = 3_000  # that hosts may send: slow, for now and then one is late by real ms


@dataclass(frozen=True, slots=True)
class Case:
    """A scenario to run on both."""

    title: str
    scenario: str
    changes: tuple[str, ...] = ()


_FLOWS = ("traffic={kind: poisson, load: 0.5, duration_ns: 600us, sizes: hadoop}",)
_ELEPHANTS = ("traffic.bytes=1MB", "transport.recovery=selective")
_PARALLEL = (
    *("topology.links=2", "buffer.bytes=6MB", "traffic.bytes=1MB", "ecn.enabled=false"),
    *("lb.policy=adaptive", "transport.recovery=selective"),
)
_WEIGHTED = (
    "traffic={kind: poisson, load: 0.3, duration_ns: 600us, sizes: hadoop}",
    "link.slow={leaf1-spine1: 0.5, leaf2-spine2: 0.5, leaf3-spine3: 0.25}",
    "lb.policy=conga",
)
_NO_PFC = (
    "traffic={kind: incast, senders: 3, bytes: 3MB}",
    "pfc.enabled=false",
    "transport={recovery: selective, rto_ns: 30us, retry_limit: 100}",
)
_FAILURE = (
    "transport.rto_ns=200us",
    "reroute_ns=100us",
    "faults=[{at_ns: 50us, link: leaf1-spine1, action: down}]",
)
_DCQCN = (
    "traffic={kind: incast, senders: 4, bytes: 2MB}",
    "buffer.bytes=4MB",
    "ecn={enabled: true, kmin: 20KB, kmax: 200KB, pmax: 0.8}",
    "transport={cc: dcqcn, dcqcn: conweave}",
)
_FASTER_FABRIC = (
    "link={rate_gbps: 25, fabric_rate_gbps: 100, delay_ns: 1000}",
    "traffic.bytes=1MB",
)
_SLOW_RECEIVER = ("link.slow={h1-leaf1: 0.125}", "traffic.bytes=500KB", "buffer.bytes=1.5MB")
_STORM = (
    "pfc.watchdog_ns=0",
    "faults=[{at_ns: 50us, action: storm, host: h1, for_ns: 1500us}]",
)
_TWO_CLASSES = (
    "pfc.priorities=[3, 4]",
    "traffic={kind: mix, parts: ["
    "{kind: incast, senders: 3, bytes: 1MB}, {kind: incast, senders: 3, bytes: 1MB, priority: 4}]}",
)
_WEIGHTS = (*_TWO_CLASSES, "schedule={kind: ets, weights: {3: 3, 4: 1}}")
CASES = (
    Case("incast, PFC", "incast"),
    Case("PFC, faster fabric", "incast", _FASTER_FABRIC),
    Case("PFC, slow receiver", "incast", _SLOW_RECEIVER),
    Case("PFC, storm", "incast", _STORM),
    Case("PFC, slow host", "incast", ("transport.receive_gbps={h1: 20}", "traffic.bytes=300KB")),
    Case("two lossless classes", "incast", _TWO_CLASSES),
    Case("classes by weight", "incast", _WEIGHTS),
    Case("incast, no PFC", "incast", _NO_PFC),
    Case("incast, ECN", "incast", ("ecn={enabled: true, kmin: 20KB, kmax: 100KB}",)),
    Case("incast, DCQCN", "incast", _DCQCN),
    *(
        Case(f"flows, {policy}", "hash-collision", (*_FLOWS, f"lb.policy={policy}"))
        for policy in ("ecmp", "flowlet", "dlb", "conga")
    ),
    *(
        Case(f"elephants, {policy}", "hash-collision", (*_ELEPHANTS, f"lb.policy={policy}"))
        for policy in ("spray", "adaptive", "drill")
    ),
    Case("parallel links", "alltoall", _PARALLEL),
    Case("weighted conga", "hash-collision", _WEIGHTED),
    Case("all-reduce ring", "allreduce-ring"),
    Case("all-to-all", "alltoall"),
    Case("loss, selective", "lossy-link", ("transport.recovery=selective",)),
    Case(
        "link failure",
        "alltoall",
        ("ecn.enabled=false", *_FAILURE),
    ),
)


@dataclass(frozen=True, slots=True)
class Verdict:
    """How two results compare; the ratio is that of the completion times that differ most."""

    time_ratio: float | None
    complaints: tuple[str, ...]


def agree(
    names: Sequence[str], out: Path, dilation: int | None, seed: int | None, console: Console
) -> int:
    """Run the cases whose titles contain one of the names (all without names); 0 if all agree."""
    chosen = [case for case in CASES if not names or any(name in case.title for name in names)]
    if not chosen:
        raise RunError(
            f"no case is called '{names[0]}'", f"There are: {', '.join(c.title for c in CASES)}"
        )
    table = Table(title="Simulator and Mininet", padding=(0, 0))
    for heading in ("", "sim, us", "mininet", "ratio", "drops", "pauses", "marks", "late"):
        table.add_column(heading, justify="left" if not heading else "right", no_wrap=True)
    complaints: list[str] = []
    agreed = 0
    for number, case in enumerate(chosen, 1):
        with Stages(console)(case.title) as stage:
            sim, mininet = (
                _run(case, engine, out / f"{number}-{engine}", dilation, seed)
                for engine in ("sim", "mininet")
            )
            verdict = compare(sim, mininet)
            stage.note = "; ".join(verdict.complaints) or "agree"
        agreed += not verdict.complaints
        complaints += (f"{case.title}: {text}" for text in verdict.complaints)
        table.add_row(*_row(case, sim, mininet, verdict))
    table.caption = "counts: sim / mininet; late: when hosts woke, ns of the fabric, 99 %"
    console.print(table)
    for text in complaints:
        console.print(f"[red]{text}[/]", highlight=False)
    console.print(f"{agreed} of {len(chosen)} agree. All runs are in {out}/.", highlight=False)
    return 0 if agreed == len(chosen) else 1


def _run(
    case: Case, engine: str, out: Path, dilation: int | None, seed: int | None
) -> dict[str, Any]:
    """A case's result.json."""
    options: list[str] = []
    if engine == "mininet":
        options += ["--dilation", str(dilation or _slow_dilation(case))]
    if seed is not None:
        options += ["--seed", str(seed)]
    try:
        result = run_apart(case.scenario, case.changes, engine, out, options)
    except RunError as error:
        raise RunError(f"{case.title} on {engine}: {error.message}") from None
    content: dict[str, Any] = json.loads(result.read_text())
    return content


def _slow_dilation(case: Case) -> int:
    experiment = Experiment.of(catalogue.load(case.scenario, case.changes))
    return math.ceil(experiment.packets_per_s / _PACKETS_PER_S)


def completion_ns(result: dict[str, Any]) -> tuple[float, ...]:
    """A job's time, or that of the slowest message and of the slowest but one in a hundred.

    Nothing if not everything arrived.
    """
    flows = result["flows"]
    if flows["failed"]:
        return ()
    return (
        (result["jct_ns"],)
        if result.get("jct_ns")
        else (flows["fct_ns"]["max"], flows["fct_ns"]["p99"])
    )


def compare(sim: dict[str, Any], mininet: dict[str, Any]) -> Verdict:
    """Where two results differ by more than they should."""
    complaints = []
    ratios = [b / a for a, b in zip(completion_ns(sim), completion_ns(mininet), strict=False)]
    ratio = max(ratios, key=lambda ratio: abs(ratio - 1), default=None)
    if ratio is None:
        complaints.append("not everything arrived")
    elif abs(ratio - 1) > TIME_TOLERANCE:
        complaints.append(f"times differ by {abs(ratio - 1):.0%}")
    drops = _count(sim, "drops"), _count(mininet, "drops")
    if (drops[0] == 0) != (drops[1] == 0):
        complaints.append("drops in one only")
    for what in ("pauses", "marks"):
        a, b = _count(sim, what), _count(mininet, what)
        most = max(a, b)
        if abs(a - b) > (COUNT_TOLERANCE * most if most >= FEW else COUNT_TOLERANCE * FEW):
            complaints.append(f"{what} differ by {abs(a - b) / most:.0%}")
    if complaints and not mininet["fidelity"]["ok"]:
        complaints.append("but the machine could not keep up")
    return Verdict(ratio, tuple(complaints))


def _count(result: dict[str, Any], what: str) -> int:
    section, key = {
        "drops": ("drops", "total"),
        "pauses": ("pfc", "xoff_frames"),
        "marks": ("ecn", "marked_packets"),
    }[what]
    return int(result[section][key])


def _row(case: Case, sim: dict[str, Any], mininet: dict[str, Any], verdict: Verdict) -> list[str]:
    times = [
        f"{times[0] / 1e3:,.1f}" if (times := completion_ns(result)) else "-"
        for result in (sim, mininet)
    ]
    counts = [f"{_count(sim, w):,} / {_count(mininet, w):,}" for w in ("drops", "pauses", "marks")]
    return [
        case.title,
        *times,
        "-" if verdict.time_ratio is None else f"{verdict.time_ratio:.3f}",
        *counts,
        f"{mininet['fidelity']['late_p99_ns']:,}",
    ]
