"""What a benchmark's figures must be, computed again from the files of its runs.

Nothing here is the benchmark's: CSV and JSON are read as they lie there, formulas are written from
the draft's text, in another way where there is one.
"""

import csv
import json
from collections import defaultdict
from collections.abc import Callable
from fractions import Fraction
from itertools import pairwise
from pathlib import Path
from statistics import linear_regression, mean, median
from typing import Any

Figures = dict[str, list[Any]]


class Kept:
    """A run's files."""

    def __init__(self, folder: Path) -> None:
        self.result = json.loads((folder / "result.json").read_text())
        self.rate = float(self.result["scenario"]["link"]["rate_gbps"])
        with (folder / "flows.csv").open() as file:
            self.flows = [
                (row["src"], row["dst"], int(row["bytes"]), int(row["start_ns"]),
                 int(row["start_ns"]) + int(row["fct_ns"]), int(row["step"]))
                for row in csv.DictReader(file) if row["complete"] == "1"
            ]  # fmt: skip
        self.notes: dict[str, list[dict[str, int]]] = defaultdict(list)
        if (folder / "timeseries.csv").exists():
            with (folder / "timeseries.csv").open() as file:
                for row in csv.DictReader(file):
                    link = row.pop("link")
                    self.notes[link].append({name: int(value) for name, value in row.items()})

    def goodput(self) -> float:
        begun, ended = min(f[3] for f in self.flows), max(f[4] for f in self.flows)
        return float(Fraction(8 * sum(f[2] for f in self.flows), ended - begun))

    def uplinks(self) -> dict[str, list[int]]:
        """By leaf: the bytes of each of its ways to spines."""
        found: dict[str, list[int]] = defaultdict(list)
        for link in self.result["links"]:
            leaf, _, spine = link["name"].partition(">")
            if leaf.startswith("leaf") and spine.startswith("spine"):
                found[leaf].append(link["bytes"])
        return {leaf: loads for leaf, loads in found.items() if any(loads)}

    def rounds(self) -> list[int]:
        """Iterations: between the ends of steps that follow one another."""
        ends: dict[int, int] = defaultdict(int)
        for *_, end, step in self.flows:
            ends[step] = max(ends[step], end)
        told = [min(f[3] for f in self.flows), *sorted(ends.values())]
        return [after - before for before, after in pairwise(told)]


def factor(op: str, n: int) -> Fraction:
    return Fraction((2 if op == "all-reduce" else 1) * (n - 1), n)


def throughput(runs: list[Kept], _of: dict[str, str]) -> Figures:
    told = []
    for run in runs:
        assert run.result["drops"]["total"] == 0
        assert run.result["roce"]["retransmitted_packets"] == 0
        pairs = defaultdict(list)
        for src, dst, size, start, end, _ in run.flows:
            pairs[src, dst].append((end, size, start))
        total = 0.0
        for messages in pairs.values():
            by_post = sorted((start, end - start) for end, _, start in messages)
            kept = by_post[len(by_post) // 4 :]
            late = linear_regression([x for x, _ in kept], [y for _, y in kept]).slope
            assert late <= 1 / 0.99 - 1 + 1e-9
            messages.sort()
            total += 8 * sum(size for _, size, _ in messages[1:]) / (
                messages[-1][0] - messages[0][0])  # fmt: skip
        told.append(total)
    return {"aggregate goodput": told}


def latency(runs: list[Kept], _of: dict[str, str]) -> Figures:
    pooled, last = [], []
    for run in runs:
        middle = max(f[3] for f in run.flows) / 2
        times = sorted(f[4] - f[3] for f in run.flows if f[3] >= middle)
        last.append(times[-(-99 * len(times) // 100) - 1])
        pooled += times
    pooled.sort()
    return {"P50": [pooled[(len(pooled) + 1) // 2 - 1]], "min": pooled[:1], "max": pooled[-1:],
            "samples": [len(pooled)], "P99 by run": last}  # fmt: skip


def bursts(runs: list[Kept], of: dict[str, str]) -> Figures:
    *repeats, paused = runs
    senders = int(of["senders"].split(":")[0])
    each = {f[2] for run in repeats for f in run.flows}
    assert len(each) == 1  # every sender's burst is the same, in all repeats
    whole = [run.result["drops"]["total"] == 0 for run in repeats]
    assert paused.result["drops"]["total"] == 0
    return {"absorbed": [senders * each.pop()], "repeats whole": [sum(whole) / len(whole)],
            "pauses with PFC": [paused.result["pfc"]["xoff_frames"]]}  # fmt: skip


def ecn(runs: list[Kept], of: dict[str, str]) -> Figures:
    size, unit = of["T"].split()
    threshold = float(size) * {"KB": 1e3, "MB": 1e6}[unit]
    below, above = [], []
    for run in runs:
        notes = run.notes["leaf1>h1"]
        for told, keep in ((below, lambda q: q < 0.9 * threshold),
                           (above, lambda q: q > 2.1 * threshold)):  # fmt: skip
            packets = marked = 0
            for a, b in pairwise(notes):
                if b["bytes"] > a["bytes"] and keep((a["queue_bytes"] + b["queue_bytes"]) / 2):
                    new = b["marked"] - a["marked"]
                    packets += max(new, round((b["bytes"] - a["bytes"]) / 4196))
                    marked += new
            told.append(marked / packets)
    return {"marked below T": below, "marked above 2 T": above}


def pfc(runs: list[Kept], _of: dict[str, str]) -> Figures:
    return {
        "throughput by line rate": [run.goodput() / run.rate for run in runs],
        "pause frames a second": [
            run.result["pfc"]["xoff_frames"] * 1e9 / run.result["duration_ns"] for run in runs
        ],
        "into hosts' links": [
            sum(p["xoff_frames"] for name, p in run.result["pfc"]["by_link"].items()
                if name[0] == "h") for run in runs
        ],
        "longest pause of a port": [
            max(p["paused_ns"] for p in run.result["pfc"]["by_link"].values()) for run in runs
        ],
    }  # fmt: skip


def balance(runs: list[Kept], _of: dict[str, str]) -> Figures:
    told: Figures = defaultdict(list)
    for run in runs:
        groups = run.uplinks().values()
        index = [float(Fraction(sum(g) ** 2, len(g) * sum(x * x for x in g))) for g in groups]
        ratio = [float(Fraction(max(g) * len(g), sum(g))) for g in groups]
        told["JFI"].append(mean(index))
        told["worst JFI"].append(min(index))
        told["MMR"].append(mean(ratio))
        told["worst MMR"].append(max(ratio))
        hosts = len({f[0] for f in run.flows})
        told["goodput by line rate"].append(run.goodput() / (run.rate * hosts))
    return dict(told)


def collective(op: str) -> Callable[[list[Kept], dict[str, str]], Figures]:
    def told(runs: list[Kept], of: dict[str, str]) -> Figures:
        (run,) = runs
        n = int(of["N"])
        size = run.result["scenario"]["traffic"]["bytes"]
        took = run.rounds()
        assert sum(took) == max(f[4] for f in run.flows) - min(f[3] for f in run.flows)
        bus = [float(Fraction(8 * size, each) * factor(op, n)) for each in took]
        slow = sorted(took)
        p99 = slow[-(-len(slow) * 99 // 100) - 1]
        return {"BusBW": bus, "efficiency": [each / run.rate for each in bus],
                "BusBW P99": [float(Fraction(8 * size, p99) * factor(op, n))]}  # fmt: skip

    return told


def jct(runs: list[Kept], of: dict[str, str]) -> Figures:
    (run,) = runs
    n, traffic = int(of["N"]), run.result["scenario"]["traffic"]
    size = traffic["collective"]["bytes"]
    roofline = traffic["compute_ns"] + 8 * size * factor("all-reduce", n) / Fraction(run.rate)
    steps = run.result["steps"]
    assert len(steps) == traffic["steps"]
    ratio = (steps[-1]["end_ns"] - steps[0]["start_ns"]) / (len(steps) * roofline)
    return {"whole JCT ratio": [float(ratio)], "roofline": [float(roofline)]}


def tenants(runs: list[Kept], _of: dict[str, str]) -> Figures:
    half = len(runs) // 2
    ours = {f[0] for f in runs[0].flows}
    took = [max(f[4] for f in run.flows if f[0] in ours)
            - min(f[3] for f in run.flows if f[0] in ours) for run in runs]  # fmt: skip
    alone, both = took[:half], took[half:]
    return {"interference factor": [b / a for a, b in zip(alone, both, strict=True)]}


def failover(runs: list[Kept], _of: dict[str, str]) -> Figures:
    half = len(runs) // 2
    told: Figures = defaultdict(list)
    for before, after in zip(runs[:half], runs[half:], strict=True):
        (fault,) = after.result["scenario"]["faults"]
        ends = [before.flows[0][3]]
        for took in before.rounds():
            ends.append(ends[-1] + took)
        struck = next(k for k in range(len(ends) - 1) if ends[k] <= fault["at_ns"] < ends[k + 1])
        told["packets lost"].append(after.result["drops"]["total"])
        told["JCT overhead"].append(after.rounds()[struck] / mean(before.rounds()) - 1)
        grew = sorted(
            b["time_ns"]
            for notes in after.notes.values()
            for a, b in zip([{"dropped": 0}, *notes], notes, strict=False)
            if b["dropped"] > a["dropped"]
        )
        ends_of: dict[str, int] = defaultdict(int)
        for link, notes in after.notes.items():
            sender = link.split(">")[0]
            ends_of[sender] = max([ends_of[sender], *(x["dropped"] for x in notes)])
        if sum(ends_of.values()) < after.result["drops"]["total"]:  # the rest went with the cable
            grew = sorted([fault["at_ns"], *grew])
        assert bool(grew) == bool(after.result["drops"]["total"])
        told["redistributed after"].append(grew[-1] - fault["at_ns"] if grew else 0)
        told["loss lasts"].append(grew[-1] - grew[0] if grew else 0)
    return dict(told)


def messages(runs: list[Kept], _of: dict[str, str]) -> Figures:
    """6.2: of one PDC's messages."""
    (run,) = runs
    times = [f[4] - f[3] for f in sorted(run.flows, key=lambda f: f[3])]
    return {"first message": times[:1], "P50": [median(sorted(times[1:]))], "max": [max(times[1:])]}


def convergence(runs: list[Kept], of: dict[str, str]) -> Figures:
    """7.3: rates of the last window of 100 us."""
    told = []
    for run in runs:
        last = run.result["scenario"]["limit_ns"]
        rates = []
        for n in range(2, 2 * int(of["M"]) + 2):
            ((_, notes),) = [item for item in run.notes.items() if item[0].startswith(f"h{n}>")]
            by = [max((x["bytes"] for x in notes if x["time_ns"] <= t), default=0)
                  for t in (last - 100_000, last)]  # fmt: skip
            rates.append(by[1] - by[0])
        told.append(max(abs(r * len(rates) / sum(rates) - 1) for r in rates))
    return {"largest deviation at the end": told}


MODELS: dict[str, Callable[[list[Kept], dict[str, str]], Figures]] = {
    "throughput": throughput, "latency": latency, "bursts": bursts, "ecn": ecn, "pfc": pfc,
    "uet-throughput": throughput, "uet-latency": messages, "uet-spray": balance,
    "ecmp": balance, "flowlet": balance, "spray": balance, "fairness": balance,
    "allreduce": collective("all-reduce"), "alltoall": collective("all-to-all"),
    "allgather": collective("all-gather"), "jct": jct, "tenants": tenants, "failover": failover,
    "dcqcn": convergence,
}  # fmt: skip
