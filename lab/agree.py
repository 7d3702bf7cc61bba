"""``closlab agree``: the same scenarios in the simulator and on Mininet, side by side.

Both run the same compiled P4 and the same endpoints; what differs is the clock, and what a machine
adds to it. Completion times should be within 10 %, nothing should be dropped in one that is not in
the other, pauses and marks should be within 25 %. Counts below a hundred are held to a difference
of twenty-five instead: so few are noise.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from lab.errors import RunError
from lab.show import Stages

TIME_TOLERANCE = 0.10
COUNT_TOLERANCE = 0.25
FEW = 100


@dataclass(frozen=True, slots=True)
class Case:
    """A scenario to run on both."""

    title: str
    scenario: str
    changes: tuple[str, ...] = ()


_SMALL_ELEPHANTS = ("traffic.bytes=1MB",)
CASES = (
    Case("incast, PFC", "incast"),
    Case("incast, no PFC", "incast", ("pfc.enabled=false", "transport.recovery=selective")),
    Case("incast, PFC and ECN", "incast", ("ecn.enabled=true", "transport.cc=dcqcn")),
    Case("elephants, ecmp", "hash-collision", _SMALL_ELEPHANTS),
    *(
        Case(f"elephants, {policy}", "hash-collision", (*_SMALL_ELEPHANTS, f"lb.policy={policy}"))
        for policy in ("flowlet", "dlb", "conga", "spray")
    ),
    Case("all-reduce ring", "allreduce-ring"),
    Case("all-to-all", "alltoall"),
    Case("loss, selective", "lossy-link", ("transport.recovery=selective",)),
    Case(
        "link failure",
        "alltoall",
        ("faults=[{at_ns: 50us, link: leaf1-spine1, action: down}]",),
    ),
)


@dataclass(frozen=True, slots=True)
class Verdict:
    """How two results compare."""

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
    table = Table(title="Simulator and Mininet")
    for heading in ("", "time sim", "time mininet", "ratio", "drops", "pauses", "marks", "late"):
        table.add_column(heading, justify="left" if not heading else "right", overflow="fold")
    table.add_column("verdict", overflow="fold")
    disagree = 0
    for number, case in enumerate(chosen, 1):
        with Stages(console)(case.title):
            sim, mininet = (
                _run(case, engine, out / f"{number}-{engine}", dilation, seed)
                for engine in ("sim", "mininet")
            )
        verdict = compare(sim, mininet)
        disagree += bool(verdict.complaints)
        table.add_row(*_row(case, sim, mininet, verdict))
    console.print(table)
    console.print(f"{len(chosen) - disagree} of {len(chosen)} agree. All runs are in {out}/.")
    return 1 if disagree else 0


def _run(
    case: Case, engine: str, out: Path, dilation: int | None, seed: int | None
) -> dict[str, Any]:
    """A case's result.json; runs are processes of their own, as a capsule wants it."""
    out.mkdir(parents=True, exist_ok=True)
    words = [sys.executable, "-c", "from lab.cli import main; main()", "run", case.scenario]
    words += ["--engine", engine, "--out", str(out)]
    for change in case.changes:
        words += ["--set", change]
    if engine == "mininet" and dilation is not None:
        words += ["--dilation", str(dilation)]
    if seed is not None:
        words += ["--seed", str(seed)]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    (out / "said.txt").write_text(done.stderr)
    result = out / "result.json"
    if not result.exists():
        raise RunError(f"{case.title} on {engine}: {done.stderr.strip()[-300:]}")
    content: dict[str, Any] = json.loads(result.read_text())
    return content


def completion_ns(result: dict[str, Any]) -> float | None:
    """A job's time, or that of the slowest message; none if not everything arrived."""
    if result["flows"]["failed"]:
        return None
    return float(result.get("jct_ns") or result["flows"]["fct_ns"]["max"])


def compare(sim: dict[str, Any], mininet: dict[str, Any]) -> Verdict:
    """Where two results differ by more than they should."""
    complaints = []
    times = completion_ns(sim), completion_ns(mininet)
    ratio = None
    if None in times:
        complaints.append("not everything arrived")
    else:
        ratio = (times[1] or 0) / (times[0] or 1)
        if abs(ratio - 1) > TIME_TOLERANCE:
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
        "-" if (time := completion_ns(result)) is None else f"{time / 1e3:,.1f} us"
        for result in (sim, mininet)
    ]
    counts = [f"{_count(sim, w):,} / {_count(mininet, w):,}" for w in ("drops", "pauses", "marks")]
    return [
        case.title,
        *times,
        "-" if verdict.time_ratio is None else f"{verdict.time_ratio:.3f}",
        *counts,
        f"{mininet['fidelity']['late_p99_ns']:,} ns",
        "; ".join(verdict.complaints) or "agree",
    ]
