"""`closlab bench switches`: BMv2 beside our own switch, on the same scenarios.

    closlab bench switches [CASE...] [--out DIR]

Every case runs on Mininet with either switch, each at the dilation that it can sustain, with the
same controller, endpoints and plans. Times are the fabric's, so they compare. Without names, all.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import tempfile
from collections.abc import Iterable, Sequence
from dataclasses import astuple
from pathlib import Path
from typing import Any

from rich.box import SIMPLE
from rich.console import Console
from rich.table import Table

from bench import CLOSLAB, add_cases
from lab.machine import tools
from lab.progress import Stages
from params.data import Data

TIME_TOLERANCE = 0.20
_MIN_WIDTH = 100
# Of the packets on links. Where marks are due there are a hundred times as many; a machine that
# stands still for a moment has a few marked, while the run is on time on the whole.
_MANY_MARKED = 1e-3


class Setup(Data):
    """A scenario to run on both."""

    name: str
    scenario: str
    changes: tuple[str, ...] = ()
    is_timed: bool = False  # completion times have to agree

    def words(self, switch: str, out: Path) -> list[str]:
        """The command line of its run."""
        words = [*CLOSLAB, "run", self.scenario, "--switch", switch, "--out", str(out)]
        return words + [word for change in self.changes for word in ("--set", change)]


_NO_PFC = (
    "pfc.enabled=false",
    "traffic.bytes=500KB",
    "transport={recovery: selective, rto_ns: 100us, retry_limit: 100}",
)
# Two pairs of hosts, two spines, rests between bursts. (Of senders that begin at one instant each
# finds the same link idle, so that they collide all the time, on whichever switch.)
_BURSTS = (
    "topology={kind: leaf-spine, leaves: 2, spines: 2, hosts_per_leaf: 2}",
    "traffic={kind: flows, flows: ["
    + ", ".join(
        f"{{src: {src}, dst: {dst}, bytes: 128KB, at_ns: {number * 15 + later}us}}"
        for number in range(12)
        for src, dst, later in (("h1", "h3", 0), ("h2", "h4", 6))
    )
    + "]}",
    "buffer.bytes=16MB",
    "lb.flowlet_gap_ns=3us",
)
_DEGRADED = (*_BURSTS, "link.slow={leaf2-spine2: 0.25}")
_ELEPHANTS = ("traffic.bytes=1MB", "buffer.bytes=16MB")
CASES = (
    Setup("hello", "hello", is_timed=True),
    Setup("incast", "incast", is_timed=True),
    Setup("incast-no-pfc", "incast", _NO_PFC),
    Setup(
        "incast-ecn", "incast", ("traffic.bytes=1MB", "ecn={enabled: true, kmin: 20KB, kmax: 60KB}")
    ),
    Setup(
        "incast-dcqcn",
        "incast",
        (
            "traffic.bytes=1MB",
            "ecn={enabled: true, kmin: 20KB, kmax: 200KB, pmax: 0.8}",
            "buffer.bytes=4MB",
            "transport={cc: dcqcn, dcqcn: conweave}",
        ),
    ),
    Setup("collision-ecmp", "hash-collision", _ELEPHANTS),
    Setup("collision-flowlet", "hash-collision", (*_ELEPHANTS, "lb.policy=flowlet")),
    Setup(
        "collision-spray",
        "hash-collision",
        (*_ELEPHANTS, "lb.policy=spray", "transport.recovery=selective"),
    ),
    *(
        Setup(f"bursts-{policy}", "incast", (*_BURSTS, f"lb.policy={policy}"))
        for policy in ("ecmp", "dlb")
    ),
    *(
        Setup(f"degraded-{policy}", "incast", (*_DEGRADED, f"lb.policy={policy}"))
        for policy in ("ecmp", "dlb", "conga")
    ),
    Setup("int", "incast", ("traffic.bytes=500KB", "int.share=0.05")),
    Setup("ring", "allreduce-ring", is_timed=True),
)


class Shown(Data):
    """What a run showed, in words, figures left out."""

    arrived: str
    lost: str
    paused: str
    marked: str
    uplinks: str
    reported: str

    @classmethod
    def of(cls, result: dict[str, Any]) -> Shown:
        """What a result says."""
        reasons = sorted(result["drops"]["by_reason"])
        failed = result["flows"]["failed"]
        return cls(
            arrived="all arrived" if not failed else "not all arrived",
            lost=f"lost: {', '.join(reasons)}" if reasons else "nothing lost",
            paused="paused" if result["pfc"]["xoff_frames"] else "never paused",
            marked="marked" if _is_marked(result) else "unmarked",
            uplinks="uplinks idle" if _idle_uplinks(result) else "all uplinks used",
            reported="hops reported" if result.get("telemetry") else "",
        )

    def __str__(self) -> str:
        return ", ".join(word for word in astuple(self) if word)


def _is_marked(result: dict[str, Any]) -> bool:
    """Whether many packets were marked; of none, none was."""
    sent = sum(link["packets"] for link in result["links"])
    return bool(result["ecn"]["marked_packets"] > _MANY_MARKED * sent)


def _idle_uplinks(result: dict[str, Any]) -> int:
    """Uplinks that carried next to nothing: acknowledgements at most."""
    uplinks = [
        link["bytes"]
        for link in result["links"]
        if link["name"].startswith("leaf") and ">spine" in link["name"]
    ]
    return sum(carried < max(uplinks) / 20 for carried in uplinks)


def completion_ns(result: dict[str, Any]) -> float | None:
    """A job's time, or that of the slowest message; none if not everything arrived."""
    if result["flows"]["failed"]:
        return None
    return float(result.get("jct_ns") or result["flows"]["fct_ns"]["max"])


def measure(case: Setup, switch: str, out: Path) -> dict[str, Any]:
    """A case's result."""
    out.mkdir(parents=True, exist_ok=True)
    kept = out / "result.json"
    kept.unlink(missing_ok=True)  # of an earlier measurement
    done = subprocess.run(case.words(switch, out), capture_output=True, text=True, check=False)
    if not kept.exists():
        raise SystemExit(f"closlab: {case.name} on {switch}: {done.stderr.strip()[-500:]}")
    result: dict[str, Any] = json.loads(kept.read_text())
    return result


def complaints(case: Setup, ours: dict[str, Any], bmv2: dict[str, Any]) -> list[str]:
    """In what two results contradict each other."""
    found = []
    if (a := Shown.of(ours)) != (b := Shown.of(bmv2)):
        found.append(f"{a}; BMv2: {b}")
    times = completion_ns(ours), completion_ns(bmv2)
    if case.is_timed and times[0] and times[1]:
        off = abs(times[1] / times[0] - 1)
        if off > TIME_TOLERANCE:
            found.append(f"times differ by {off:.0%}")
    return found


def main(arguments: Sequence[str]) -> int:
    """Run cases on both switches and compare."""
    parser = argparse.ArgumentParser(prog="closlab bench switches", description=__doc__)
    add_cases(parser, (case.name for case in CASES))
    parser.add_argument("--out", type=Path, help="keep the runs here")
    words = parser.parse_args(arguments)
    tools.require_compiler()
    tools.require_emulation()
    tools.require_bmv2()
    chosen = [case for case in CASES if case.name in words.cases]
    with tempfile.TemporaryDirectory() as folder:
        console = Console(width=max(_MIN_WIDTH, Console().width))
        return _compare(chosen, words.out or Path(folder), console)


def _compare(cases: Iterable[Setup], out: Path, console: Console) -> int:
    table = Table(title="Our switch / BMv2", box=SIMPLE, padding=(0, 1, 0, 0))
    for heading in ("", "dilation", "time, us", "ratio", "drops", "XOFF", "held, us", "marks"):
        table.add_column(heading, justify="left" if not heading else "right", no_wrap=True)
    verdicts = []
    wrong = 0
    for case in cases:
        with Stages(console)(case.name):
            ours, bmv2 = (
                measure(case, switch, out / f"{case.name}-{switch}") for switch in ("soft", "bmv2")
            )
        found = complaints(case, ours, bmv2)
        wrong += bool(found)
        verdicts.append(f"{case.name}: {'; '.join(found) or f'both: {Shown.of(ours)}'}")
        table.add_row(case.name, *_figures(ours, bmv2))
    console.print(table)
    console.print(*verdicts, sep="\n", highlight=False)
    return 1 if wrong else 0


def _figures(*results: dict[str, Any]) -> list[str]:
    times = [completion_ns(result) for result in results]
    both = None not in times

    def pair(values: Iterable[float]) -> str:
        return "/".join(f"{value:,.0f}" for value in values)

    return [
        pair(result["dilation"] for result in results),
        pair((time or 0) / 1e3 for time in times) if both else "-",
        f"{(times[1] or 0) / (times[0] or 1):.3f}" if both else "-",
        pair(result["drops"]["total"] for result in results),
        pair(result["pfc"]["xoff_frames"] for result in results),
        pair(result["pfc"]["paused_ns"] / 1e3 for result in results),
        pair(result["ecn"]["marked_packets"] for result in results),
    ]
