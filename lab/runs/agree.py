"""``closlab agree``: the same scenarios in the simulator and on Mininet, side by side.

Both run the same compiled P4 and the same endpoints; what differs is the clock, and what a machine
adds to it. Completion times should be within 10 %, nothing should be dropped in one that is not in
the other, pauses and marks should be within 25 %. Counts below a hundred are held to a difference
of twenty-five instead: so few are noise.

No machine starts all hosts within a nanosecond, so a case is put to the simulator five times: as it
stands, and with every start moved by up to a microsecond, by lot. Mininet is compared with the
median of these. How far they differ among themselves tells whether the question has an answer:
where times spread by more than 5 %, who comes first at some instant decides the rest, in a real
fabric as well, and the case is badly posed. Sixteen elephants that set out at once are: which of
them share a link from then on is settled by their first packets (under `adaptive` they spread by
12 %). So load balancers are compared under flows that arrive at random. Three senders of one rate
that overflow a port are, too: packets that once come at one instant do so for ever, and the same
one always loses. So what overflows a port here has rates that do not fit into one another.

A run on Mininet that does not agree and says itself that it is not to be believed is evidence of
nothing but other work on the machine: it is made again, more slowly, a few times.
"""

from __future__ import annotations

import csv
import json
import random
from array import array
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from statistics import fmean, median
from typing import Any

from rich.console import Console
from rich.table import Table

from lab.engines import RunOptions
from lab.errors import RunError
from lab.progress import Stages
from lab.results.result import RESULT
from lab.runs.child import run_in_child
from lab.runs.run import clear, keep, outcome_of
from lab.scenario import catalogue
from lab.scenario.experiment import Experiment
from params.data import Data
from traffic.endpoint import MRC_OPTIONS

TIME_TOLERANCE = 0.10
COUNT_TOLERANCE = 0.25
FEW = 100
SPREAD = 0.05  # of the simulator's own times: more, and the case has no answer
MOVED, START_NS = 4, 1_000
LEISURE = 2, 4, 8  # a try each; what takes real time, as a fault does, is given twice of it
_COUNTS = {
    "drops": ("drops", "total"),
    "pauses": ("pfc", "xoff_frames"),
    "marks": ("ecn", "marked_packets"),
}


class Trial(Data):
    """A scenario to run on both."""

    title: str
    scenario: str
    changes: tuple[str, ...] = ()


_FLOWS = ("traffic={kind: poisson, load: 0.5, duration_ns: 600us, sizes: hadoop}",)
_MANY_WAYS = (
    *_FLOWS,
    "topology={kind: leaf-spine, leaves: 2, spines: 1, hosts_per_leaf: 8, links: 64}",
    "link={rate_gbps: 100, fabric_rate_gbps: 25, delay_ns: 1000}",
    "buffer.bytes=64MB",
)
_PARALLEL = (
    *("topology.links=2", "buffer.bytes=6MB", "traffic.bytes=1MB", "ecn.enabled=false"),
    *("lb.policy=adaptive", "transport.recovery=selective"),
)
_WEIGHTED = (
    "traffic={kind: poisson, load: 0.2, duration_ns: 1ms, sizes: hadoop}",
    "link.slow={leaf1-spine1: 0.5, leaf2-spine2: 0.5, leaf3-spine3: 0.25}",
    "lb.policy=conga",
)
_UNEQUAL = "link.slow={h2-leaf1: 0.71, h3-leaf2: 0.67}"
_QUICK_REPAIR = "transport={recovery: selective, rto_ns: 60us, retry_limit: 100}"
_NO_PFC = (
    "traffic={kind: incast, senders: 2, bytes: 6MB}",
    *("pfc.enabled=false", _UNEQUAL, _QUICK_REPAIR),
)
_WRED = (
    "traffic={kind: incast, senders: 2, bytes: 12MB, priority: 0, ecn_capable: false}",
    "ecn={enabled: true, classes: {0: {kmin: 50KB, kmax: 150KB, pmax: 0.5, drop: true}}}",
    *(_UNEQUAL, _QUICK_REPAIR),
)
_FAILURE = (
    "traffic={kind: flows, flows: ["
    "{src: h1, dst: h4, bytes: 2MB}, {src: h2, dst: h3, bytes: 2MB}]}",
    "transport={recovery: selective, rto_ns: 200us, retry_limit: 100}",
    "reroute_ns=100us",
    "faults=[{at_ns: 50us, link: leaf1-spine1, action: down}]",
)
_LOSS = (
    *("traffic={kind: incast, senders: 1, bytes: 8MB}", "loss.rate=0.01", "buffer.bytes=4MB"),
    *("transport.rto_ns=300us", "transport.retry_limit=100"),
)
_EIGHT = ("topology.hosts_per_leaf=3", "buffer.bytes=8MB")
_DCQCN = (
    *_EIGHT,
    "traffic={kind: incast, senders: 8, bytes: 2MB}",
    "ecn={enabled: true, kmin: 20KB, kmax: 200KB, pmax: 0.8}",
    "transport={cc: dcqcn, dcqcn: paper}",
)
_HPCC = (*_EIGHT, "traffic={kind: incast, senders: 8, bytes: 2MB}", "transport.cc=hpcc")
_CSIG = (*_HPCC[:-1], "transport.cc=poseidon")
_FASTER_FABRIC = (
    "link={rate_gbps: 25, fabric_rate_gbps: 100, delay_ns: 1000}",
    "traffic.bytes=1MB",
)
_SLOW_RECEIVER = ("link.slow={h1-leaf1: 0.125}", "traffic.bytes=500KB", "buffer.bytes=1.5MB")
_STORM = (
    "pfc.watchdog_ns=0",
    "faults=[{at_ns: 50us, action: storm, host: h1, for_ns: 1500us}]",
)
_WATCHDOG = (
    *("pfc.watchdog_ns=200us", "transport={recovery: selective, rto_ns: 100us, retry_limit: 100}"),
    "faults=[{at_ns: 50us, action: storm, host: h1, for_ns: 1500us}]",
)
_TRIM = (
    *("pfc.enabled=false", "trim={enabled: true, threshold: 60KB}", "buffer.bytes=2MB"),
    "ecn={enabled: true, kmin: 20KB, kmax: 60KB, pmax: 1}",
    "schedule={kind: ets, weights: {3: 3, 5: 1}}",
)
_HALF = ("faults=[{at_ns: 0, action: slow, link: leaf1-spine1, share: 0.5}]",)
_FOLLOWED = (  # so much is on its way that only a queue whose marks follow its link is marked
    "traffic={kind: flows, flows: ["
    "{src: h3, dst: h1, bytes: 2MB}, {src: h5, dst: h2, bytes: 2MB}]}",
    *("transport.window=24", "ecn={enabled: true, kmin: 100KB, kmax: 100KB, pmax: 1}"),
    "faults=[{at_ns: 0, action: slow, link: leaf1-spine1, share: 0.25, direction: down}, "
    "{at_ns: 0, action: slow, link: leaf1-spine2, share: 0.25, direction: down}]",
    *("reroute_ns=0", "buffer.follow_rate=true"),
)
_LOSSY_LINK = (
    "traffic={kind: flows, flows: ["
    "{src: h3, dst: h1, bytes: 8MB}, {src: h5, dst: h2, bytes: 8MB}]}",
    "loss={rate: 0.01, links: [leaf1-spine1, leaf1-spine2]}",
    *("link.cbfc=true", "buffer.bytes=4MB", "ecn.enabled=false"),
)
_THREE_TIERS = (
    "topology={kind: fat-tree, k: 4}",
    *("traffic={kind: incast, senders: 15, bytes: 300KB}", "buffer.bytes=2MB"),
)
_TWO_CLASSES = (
    "pfc.priorities=[3, 4]",
    "traffic={kind: mix, parts: ["
    "{kind: incast, senders: 3, bytes: 1MB}, {kind: incast, senders: 3, bytes: 1MB, priority: 4}]}",
)
_WEIGHTS = (*_TWO_CLASSES, "schedule={kind: ets, weights: {3: 3, 4: 1}}")
_MRC_ASKS = (  # a receiver's port dies, and its adapter says so
    *("transport.kind=mrc", "faults=[{at_ns: 100us, action: down, link: h5-leaf4}]"),
    *(f"transport.{key}=true" for key in MRC_OPTIONS),
)
_EIGHT_PORTS = (  # of the receiver's one dies
    "topology={kind: planes, planes: 8, leaves: 2, spines: 1, hosts_per_leaf: 1}",
    "link={rate_gbps: 50, fabric_rate_gbps: 200, delay_ns: 500}",
    "traffic.flows=[{src: h1, dst: h2, bytes: 8MB}]",
    "faults=[{at_ns: 50us, action: down, link: h2-leaf4}]",
)
_BY_MRC = (  # as closlab bench mrc has it
    *("pfc.enabled=false", "trim={enabled: true, threshold: 400KB}", "buffer.bytes=16MB"),
    "ecn={enabled: true, kmin: 80KB, kmax: 320KB, pmax: 1}",
    "schedule={kind: ets, weights: {3: 3, 5: 1}}",
    *("transport={kind: mrc, cc: nscc, entropies: 64}", "lb.policy=structured"),
    *("traffic.ranks=[h1, h3, h5, h7, h2, h4, h6, h8]", "traffic.channels=4"),
)
_ADAPTERS_STEER = (
    *("link.ip=6", "segments={enabled: true, hosts: true}", "transport.kind=mrc"),
    "faults=[{at_ns: 100us, action: drain, link: leaf1-spine1}]",
)
_RUDI = ("transport={kind: uet, delivery: rudi}",)
_UUD = ("transport={kind: uet, delivery: uud}",)
_SCALE_UP_CLOS = (
    "topology={kind: leaf-spine, leaves: 2, spines: 2, hosts_per_leaf: 4}",
    *("traffic.tokens=16", "link.llr=go-back-n", "loss={rate: 0.002, links: [leaf1-spine1]}"),
)
CASES = (
    Trial("incast, PFC", "incast"),
    Trial("incast over IPv6", "incast", ("link.ip=6",)),
    Trial("PFC, faster fabric", "incast", _FASTER_FABRIC),
    Trial("PFC, slow receiver", "incast", _SLOW_RECEIVER),
    Trial("PFC, storm", "incast", _STORM),
    Trial("PFC, watchdog", "incast", _WATCHDOG),
    Trial("PFC, three tiers", "incast", _THREE_TIERS),
    Trial("PFC, slow host", "incast", ("transport.receive_gbps={h1: 20}", "traffic.bytes=300KB")),
    Trial("two lossless classes", "incast", _TWO_CLASSES),
    Trial("classes by weight", "incast", _WEIGHTS),
    Trial("incast, no PFC", "incast", _NO_PFC),
    Trial("incast, ECN", "incast", ("ecn={enabled: true, kmin: 20KB, kmax: 100KB}",)),
    Trial("incast, WRED", "incast", _WRED),
    Trial("incast, DCQCN", "incast", _DCQCN),
    Trial("incast, HPCC", "incast", _HPCC),
    Trial("incast, DCQCN by fast CNPs", "incast", (*_DCQCN, "ecn.fast_cnp=true")),
    Trial("incast, Poseidon by CSIG", "incast", _CSIG),
    Trial("incast, IOAM in every packet", "incast", ("int={share: 1, format: ioam}",)),
    Trial("all-reduce in the network", "in-network-allreduce", ("traffic.bytes=256KB",)),
    Trial("all-reduce by reliable hops", "reliable-tree", ("traffic.bytes=256KB",)),
    Trial("incast, Poseidon by wide tags", "incast", (*_CSIG, "csig.tag=wide")),
    *(
        Trial(f"flows, {policy}", "hash-collision", (*_FLOWS, f"lb.policy={policy}"))
        for policy in ("ecmp", "flowlet", "dlb", "conga")
    ),
    *(
        Trial(
            f"flows, {policy}",
            "hash-collision",
            (*_FLOWS, "transport.recovery=selective", f"lb.policy={policy}", *more),
        )
        for policy, *more in (
            *(("spray",), ("drill",)),
            ("adaptive", "traffic.duration_ns=1ms"),
        )
    ),
    Trial("ECMP over 64 ways", "hash-collision", _MANY_WAYS),
    Trial("parallel links", "alltoall", _PARALLEL),
    Trial("weighted conga", "hash-collision", _WEIGHTED),
    Trial("all-reduce ring", "allreduce-ring"),
    Trial("all-to-all", "alltoall"),
    *(
        Trial(f"loss, {recovery}", "incast", (*_LOSS, f"transport.recovery={recovery}"))
        for recovery in ("selective", "go-back-n")
    ),
    Trial("incast, trimming, NSCC", "incast", (*_TRIM, "transport={kind: uet, cc: nscc}")),
    Trial("incast, trimming, RCCC", "incast", (*_TRIM, "transport={kind: uet, cc: rccc}")),
    Trial("incast, trimming, Swift", "incast", (*_TRIM, "transport={kind: uet, cc: swift}")),
    Trial("trim-incast", "trim-incast"),
    Trial("pfc-or-trim", "pfc-or-trim"),
    Trial("spray-permutation", "spray-permutation"),
    Trial("degraded-spray", "degraded-spray", _HALF),
    Trial("slow links, followed", "incast", _FOLLOWED),
    Trial("incast, credits", "incast", ("link.cbfc=true",)),
    *(
        Trial(f"retry, {llr}", "incast", (*_LOSSY_LINK, f"link.llr={llr}"))
        for llr in ("go-back-n", "selective")
    ),
    Trial("link failure", "two-elephants", _FAILURE),
    *(
        Trial(title, name)
        for title, name in (
            *(("experts", "hot-experts"), ("inference", "kv-cache")),
            *(("storage", "checkpoint-burst"), ("cluster", "cluster-day")),
            *(("dragonfly", "dragonfly"), ("two fabrics", "two-fabrics")),
        )
    ),
    Trial("dual ToR", "dual-tor", (_QUICK_REPAIR,)),
    *(Trial(name, name) for name in ("planes", "path-health", "victim-mrc")),
    Trial("planes, adapters steer", "planes", _ADAPTERS_STEER),
    Trial("planes, adapters ask", "planes", _MRC_ASKS),
    Trial("planes, eight ports", "planes", _EIGHT_PORTS),
    Trial("micro-segments", "usid-steering", ("link.ip=6",)),
    Trial("all-reduce by MRC", "allreduce-ring", _BY_MRC),
    Trial("encrypted", "encrypted"),
    Trial("delivery, ROD", "delivery-modes", ("loss.rate=0.0005",)),
    Trial("delivery, RUDI", "delivery-modes", _RUDI),
    Trial("delivery, UUD", "delivery-modes", (*_UUD, "loss.rate=0")),
    Trial("scale-up", "scale-up", ("traffic.tokens=16",)),
    Trial("scale-up, two leaves, retry", "scale-up", _SCALE_UP_CLOS),
)


class Figures(Data):
    """What runs are compared by; counts by what they count."""

    time_ns: float | None  # nothing if not everything arrived
    counts: Mapping[str, float]


class Comparison(Data):
    """How two runs compare: the ratio of their times, and how far the simulator's own spread."""

    time_ratio: float | None
    spread: float
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
    rows: list[tuple[str, Figures, Figures, Comparison]] = []
    complaints: list[str] = []
    agreed = 0
    for number, case in enumerate(chosen, 1):
        with Stages(console)(case.title) as stage:
            both = on_both(case, out, str(number), dilation, seed)
            verdict = both.verdict
            stage.note = "; ".join(verdict.complaints) or "agree"
            stage.note += f", at {both.pace_text}"
        agreed += not verdict.complaints
        complaints += (f"{case.title}: {text}" for text in verdict.complaints)
        rows.append((case.title, middle(both.sim), both.mininet, verdict))
    console.print(shown(rows))
    for text in complaints:
        console.print(f"[red]{text}[/]", highlight=False)
    console.print(f"{agreed} of {len(chosen)} agree. All runs are in {out}/.", highlight=False)
    return 0 if agreed == len(chosen) else 1


class Both(Data):
    """A case on both, and what is to be said of that."""

    sim: list[Figures]
    mininet: Figures
    is_believed: bool
    verdict: Comparison
    dilation: float
    tries: int

    @property
    def pace_text(self) -> str:
        """How slowly time passed on Mininet, and the how manieth try that was."""
        again = f" (try {self.tries})" if self.tries > 1 else ""
        return f"1/{self.dilation:,.0f}{again}"


def on_both(case: Trial, out: Path, name: str, dilation: int | None, seed: int | None) -> Both:
    """Run a case on both, one after the other."""
    sim = simulated(case, out / f"{name}-sim", seed)
    for leisure in LEISURE:
        mininet = _run(case, out / f"{name}-mininet", dilation, seed, leisure)
        is_believed = mininet["fidelity"]["ok"]
        verdict = compare(sim, figures(mininet), is_believed)
        if is_believed or not verdict.complaints or dilation is not None:
            break
    tries = LEISURE.index(leisure) + 1
    return Both(sim, figures(mininet), is_believed, verdict, mininet["dilation"], tries)


def simulated(case: Trial, out: Path, seed: int | None = None) -> list[Figures]:
    """A case in the simulator: as it stands, which is kept, and with its starts moved."""
    changes = case.changes if seed is None else (*case.changes, f"seed={seed}")
    experiment = Experiment.of(catalogue.load(case.scenario, changes))
    silent = Stages(Console(quiet=True))
    found = []
    for draw in range(1 + MOVED):
        folder = out / f"moved-{draw}" if draw else out
        folder.mkdir(parents=True, exist_ok=True)
        options = RunOptions(out=folder, engine="sim")
        moved = _moved(experiment, draw) if draw else experiment
        keep(moved, outcome_of(moved, options, silent), options)
        found.append(figures(_result(folder)))
    return found


def _moved(experiment: Experiment, draw: int) -> Experiment:
    """The same with everything that waits for nothing set out up to a microsecond later."""
    rng = random.Random(draw)  # noqa: S311
    schedule = experiment.schedule
    delays = array("q", schedule.delay_ns)
    for number in range(len(schedule)):
        if not len(schedule.waits(number)):
            delays[number] += rng.randrange(START_NS)
    moved = replace(schedule, delay_ns=memoryview(delays).toreadonly())
    return replace(experiment, workload=replace(experiment.workload, schedule=moved))


def middle(found: Sequence[Figures]) -> Figures:
    """The median of several runs, of every figure."""
    times = [each.time_ns for each in found if each.time_ns is not None]
    counts = {what: median(each.counts[what] for each in found) for what in _COUNTS}
    return Figures(median(times) if len(times) == len(found) else None, counts)


def _run(
    case: Trial, out: Path, dilation: int | None, seed: int | None, leisure: int
) -> dict[str, Any]:
    """A case on Mininet, first in a hurry."""
    changes = case.changes if seed is None else (*case.changes, f"seed={seed}")
    out.mkdir(parents=True, exist_ok=True)
    clear(out)
    hurries = leisure == LEISURE[0]
    options = RunOptions(out=out, dilation=dilation, hurry=hurries, leisure=leisure)
    try:
        run_in_child(catalogue.load(case.scenario, changes), options, lambda _: None)
    except RunError as error:
        raise RunError(f"{case.title} on Mininet: {error.message}") from None
    return _result(out)


def _result(folder: Path) -> dict[str, Any]:
    """A run's result.json, with the mean of its messages' times, if it has any."""
    content: dict[str, Any] = json.loads((folder / RESULT).read_text())
    with (folder / "flows.csv").open(newline="") as file:
        times = [float(row["fct_ns"] or 0) for row in csv.DictReader(file)]
    content["mean_fct_ns"] = fmean(times) if times else None
    return content


def figures(result: dict[str, Any]) -> Figures:
    """What a run is compared by: a job's time, or the mean time of flows that arrive at random, or
    that of the slowest of messages that set out together.
    """
    counts = {what: result[section][key] for what, (section, key) in _COUNTS.items()}
    flows = result["flows"]
    if flows["failed"]:
        return Figures(None, counts)
    at_random = result["scenario"]["traffic"]["kind"] == "poisson"
    time_ns = result.get("jct_ns") or (
        result["mean_fct_ns"] if at_random else flows["fct_ns"]["max"]
    )
    return Figures(time_ns, counts)


def compare(sim: Sequence[Figures], mininet: Figures, keeps_up: bool) -> Comparison:
    """Where Mininet differs from runs of the simulator by more than it should, and whether these
    tell what to expect."""
    usual, complaints = middle(sim), []
    ratio, spread = None, 0.0
    if usual.time_ns is None or mininet.time_ns is None:
        complaints.append("not everything arrived")
    else:
        times = [each.time_ns for each in sim if each.time_ns is not None]
        ratio, spread = mininet.time_ns / usual.time_ns, (max(times) - min(times)) / usual.time_ns
        if spread > SPREAD:
            complaints.append(f"badly posed: the simulator's own times spread by {spread:.0%}")
        if abs(ratio - 1) > TIME_TOLERANCE:
            complaints.append(f"times differ by {abs(ratio - 1):.0%}")
    if (usual.counts["drops"] == 0) != (mininet.counts["drops"] == 0):
        complaints.append("drops in one only")
    for what in ("pauses", "marks"):
        a, b = usual.counts[what], mininet.counts[what]
        most = max(a, b)
        if abs(a - b) > (COUNT_TOLERANCE * most if most >= FEW else COUNT_TOLERANCE * FEW):
            complaints.append(f"{what} differ by {abs(a - b) / most:.0%}")
    if complaints and not keeps_up:
        complaints.append("but the machine could not keep up")
    return Comparison(ratio, spread, tuple(complaints))


def shown(rows: Sequence[tuple[str, Figures, Figures, Comparison]]) -> Table:
    """How each case compares, the simulator above Mininet: so there is room for any figure."""
    table = Table(title="Simulator and Mininet", padding=(0, 0))
    for heading in ("", "on", "us", "spread, ratio", "drops", "pauses", "marks"):
        is_text = heading in ("", "on")
        table.add_column(heading, justify="left" if is_text else "right", no_wrap=not is_text)
    for title, sim, mininet, verdict in rows:
        table.add_row(title, *_row(sim, mininet, verdict))
    table.caption = (
        "spread: of the simulator's times, when starts move; ratio: Mininet's time to theirs"
    )
    return table


def _row(sim: Figures, mininet: Figures, verdict: Comparison) -> list[str]:
    """The simulator above, Mininet below."""
    times = [
        "-" if each.time_ns is None else f"{each.time_ns / 1e3:,.1f}" for each in (sim, mininet)
    ]
    ratio = "-" if verdict.time_ratio is None else f"{verdict.time_ratio:.3f}"
    return [
        "sim\nMininet",
        "\n".join(times),
        f"{verdict.spread:.1%}\n{ratio}",
        *(f"{sim.counts[what]:,.0f}\n{mininet.counts[what]:,.0f}" for what in _COUNTS),
    ]
