"""What a benchmark's figures must be, computed again from the files of its runs.

Nothing here is the benchmark's: CSV and JSON are read as they lie there, formulas are written from
the draft's text, in another way where there is one.
"""

import csv
import json
import math
from collections import defaultdict
from collections.abc import Callable, Sequence
from fractions import Fraction
from itertools import pairwise
from pathlib import Path
from statistics import linear_regression, mean
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
        with (folder / "flows.csv").open() as file:
            self.posted = sum(1 for _ in csv.DictReader(file))
        self.notes: dict[str, list[dict[str, int]]] = defaultdict(list)
        if (folder / "timeseries.csv").exists():
            with (folder / "timeseries.csv").open() as file:
                for row in csv.DictReader(file):
                    link = row.pop("link")
                    self.notes[link].append({name: int(value) for name, value in row.items()})

    def goodput(self, dst: str = "") -> float:
        came = [f for f in self.flows if dst in ("", f[1])]
        begun, ended = min(f[3] for f in came), max(f[4] for f in came)
        return float(Fraction(8 * sum(f[2] for f in came), ended - begun))

    def times(self) -> list[int]:
        return sorted(f[4] - f[3] for f in self.flows)

    def by_packet(self, counter: str) -> float:
        return float(Fraction(self.result["roce"][counter], self.result["roce"]["data_packets"]))

    def dropped(self) -> int:
        return sum(self.result["drops"]["by_reason"].values())

    def longest_queue(self) -> int:
        return int(max(link.get("max_queue_bytes", 0) for link in self.result["links"]))

    def paused_classes(self) -> list[int]:
        """Of each direction of a link that was paused, the class that was most."""
        return [max([part["paused_ns"] for part in (link.get("by_class") or {}).values()]
                    or [link["paused_ns"]])
                for link in self.result["pfc"]["by_link"].values()]  # fmt: skip

    def jct(self) -> list[int]:
        return [step["end_ns"] - step["start_ns"] for step in self.result["steps"]]

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
        times = [min(f[3] for f in self.flows), *sorted(ends.values())]
        return [after - before for before, after in pairwise(times)]


def factor(op: str, n: int) -> Fraction:
    return Fraction((2 if op == "all-reduce" else 1) * (n - 1), n)


def rank(ordered: list[int], share: float) -> int:
    """The least of which so many per cent are no larger."""
    return next(each for at, each in enumerate(ordered, 1) if 100 * at >= share * len(ordered))


def payload_share(size: int) -> float:
    """Of what a line carries: each packet with preamble and gap, Ethernet and FCS, IP, UDP, BTH,
    RETH, ICRC, and the last one with immediate data."""
    around = (8 + 12) + (14 + 4) + 20 + 8 + 12 + 16 + 4
    return size / (size + -(-size // 4096) * around + 4)


def throughput(runs: list[Kept], _of: dict[str, str]) -> Figures:
    rates, lines, shares, offered = [], [], [], []
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
        rates.append(total)
        lines.append(run.rate * len(pairs))
        ((size, *_),) = {tuple({f[1] for f in flows}) for flows in pairs.values()}
        shares.append(payload_share(size))
        posts = sorted(f[2] for f in pairs[min(pairs)])
        offered.append(8 * size * (len(posts) - 1) / (posts[-1] - posts[0]) / run.rate)
    by_line = [got / line for got, line in zip(rates, lines, strict=True)]
    return {
        "aggregate goodput": rates,
        "payload by line rate": by_line,
        "efficiency": [got / share for got, share in zip(by_line, shares, strict=True)],
        # Posts are at whole nanoseconds; rates were tried in steps of a 64th, or of an eighth.
        "rate sustained": [
            round(64 * rate / share) / 64 for rate, share in zip(offered, shares, strict=True)
        ],
    }


def uet_throughput(runs: list[Kept], of: dict[str, str]) -> Figures:
    """6.1: efficiency is by line rate there; a UET packet's headers are others."""
    figures = throughput(runs, of)
    return {"aggregate goodput": figures["aggregate goodput"],
            "efficiency": figures["payload by line rate"]}  # fmt: skip


def latency(runs: list[Kept], _of: dict[str, str]) -> Figures:
    pooled, last = [], []
    for run in runs:
        middle = max(f[3] for f in run.flows) / 2
        times = sorted(f[4] - f[3] for f in run.flows if f[3] >= middle)
        last.append(times[-(-99 * len(times) // 100) - 1])
        pooled += times
    pooled.sort()
    figures: Figures = {"min": pooled[:1], "max": pooled[-1:], "mean": [mean(pooled)],
                     "samples": [len(pooled)], "P99 by run": last}  # fmt: skip
    figures |= {f"P{share:g}": [rank(pooled, share)] for share in (50, 95, 99, 99.9)}
    if runs[0].result["scenario"]["traffic"]["kind"] == "flows":
        posts = [sorted(f[3] for f in run.flows) for run in runs]
        gaps = [sorted(b - a for a, b in pairwise(each)) for each in posts]
        figures["round trip P50"] = [rank(each, 50) for each in gaps]
    return figures


def increase(runs: list[Kept], of: dict[str, str]) -> Figures:
    """5.2: idle and loaded runs lie together here."""
    idle = [run for run in runs if run.result["scenario"]["traffic"]["kind"] == "flows"]
    busy = [run for run in runs if run not in idle]
    halves = [latency(some, of)["P50"][0] for some in (busy, idle)]
    return {"increase": [halves[0] / halves[1]]}


def bursts(runs: list[Kept], of: dict[str, str]) -> Figures:
    *repeats, paused = runs
    senders = int(of["senders"].split(":")[0])
    each = {f[2] for run in repeats for f in run.flows}
    (size,) = each  # every sender's burst is the same, in all repeats
    assert not any(run.dropped() or run.result["roce"]["retransmitted_packets"] for run in runs)
    assert all(len(run.flows) == run.posted == senders for run in runs)
    return {"absorbed": [senders * size], "by sender": [size], "repeats": [len(repeats)],
            "frames": [senders * -(-size // 4096)],
            "pauses with PFC": [paused.result["pfc"]["xoff_frames"]]}  # fmt: skip


def ecn(runs: list[Kept], of: dict[str, str]) -> Figures:
    size, unit = of["T"].split()
    threshold = float(size) * {"KB": 1e3, "MB": 1e6}[unit]
    below: list[float] = []
    above: list[float] = []
    found: Figures = defaultdict(list)
    for run in runs:
        notes = run.notes["leaf1>h1"]
        bins: dict[int, list[int]] = defaultdict(lambda: [0, 0])  # ten to a threshold
        for a, b in pairwise(notes):
            if b["bytes"] > a["bytes"]:
                new = b["marked"] - a["marked"]
                its = bins[int(Fraction(a["queue_bytes"] + b["queue_bytes"], 2) * 10 / threshold)]
                its[0] += max(new, round((b["bytes"] - a["bytes"]) / 4196))
                its[1] += new
        ramp = {(n + 0.5) / 10: m / p for n, (p, m) in bins.items() if 10 <= n < 20}
        off = [abs(share - (depth - 1) / 2) for depth, share in ramp.items()]
        found["ramp off by"].append(mean(off))
        marked_ones = [(x, y) for x, y in ramp.items() if y]
        line = linear_regression(*zip(*marked_ones, strict=True))
        zero = -line.intercept / line.slope
        found["threshold found"].append(zero * threshold)
        found["deviation"].append(zero - 1)
        for shares, keep in ((below, lambda q: q < 0.9 * threshold),
                           (above, lambda q: q > 2.1 * threshold)):  # fmt: skip
            packets = marked = 0
            for a, b in pairwise(notes):
                if b["bytes"] > a["bytes"] and keep((a["queue_bytes"] + b["queue_bytes"]) / 2):
                    new = b["marked"] - a["marked"]
                    packets += max(new, round((b["bytes"] - a["bytes"]) / 4196))
                    marked += new
            shares.append(marked / packets)
    return {"marked below T": below, "marked above 2 T": above, **found}


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
        "into fabric links": [
            sum(p["xoff_frames"] for name, p in run.result["pfc"]["by_link"].items()
                if name[0] != "h") for run in runs
        ],
        "most paused port": [
            max(p["paused_ns"] for p in run.result["pfc"]["by_link"].values()) for run in runs
        ],
        "a port paused": [
            mean(p["paused_ns"] for p in run.result["pfc"]["by_link"].values()) for run in runs
        ],
        "longest queue": [run.longest_queue() for run in runs],
        "storms": [sum(run.result["pfc"]["storms"].values()) for run in runs],
        "dropped": [run.dropped() for run in runs],
    }  # fmt: skip


def balance(runs: list[Kept], _of: dict[str, str]) -> Figures:
    figures: Figures = defaultdict(list)
    for run in runs:
        groups = run.uplinks().values()
        index = [float(Fraction(sum(g) ** 2, len(g) * sum(x * x for x in g))) for g in groups]
        ratio = [float(Fraction(max(g) * len(g), sum(g))) for g in groups]
        figures["JFI"].append(mean(index))
        figures["worst JFI"].append(min(index))
        figures["MMR"].append(mean(ratio))
        figures["worst MMR"].append(max(ratio))
        hosts = len({f[0] for f in run.flows})
        figures["goodput by line rate"].append(run.goodput() / (run.rate * hosts))
        figures["out of order"].append(run.by_packet("out_of_order_packets"))
        figures["sent again"].append(run.by_packet("retransmitted_packets"))
    return dict(figures)


def collective(op: str) -> Callable[[list[Kept], dict[str, str]], Figures]:
    def measure(runs: list[Kept], of: dict[str, str]) -> Figures:
        (run,) = runs
        n = int(of["N"])
        size = run.result["scenario"]["traffic"]["bytes"]
        took = run.rounds()
        assert sum(took) == max(f[4] for f in run.flows) - min(f[3] for f in run.flows)
        bus = [float(Fraction(8 * size, each) * factor(op, n)) for each in took]
        own = [link["bytes"] for link in run.result["links"] if link["name"][0] == "h"]
        late: Figures = {
            f"BusBW P{share}": [float(8 * size * factor(op, n) / rank(sorted(took), share))]
            for share in (50, 95, 99)
        }
        return {"BusBW": bus, "efficiency": [each / run.rate for each in bus], "JCT": took,
                "S_fabric": [sum(own) / n / len(took)],
                "ECN ratio": [run.result["ecn"]["marked_packets"]
                              / run.result["roce"]["data_packets"]],
                "pause frames": [run.result["pfc"]["xoff_frames"]],
                "busiest link": [max(link["utilisation"] for link in run.result["links"])],
                **late}  # fmt: skip

    return measure


def side_by_side(names: Sequence[str]) -> Callable[[list[Kept], dict[str, str]], Figures]:
    """6.6 and 9.4: a run of each."""

    def measure(runs: list[Kept], of: dict[str, str]) -> Figures:
        bus = [collective(of["collective"])([run], of)["BusBW"] for run in runs]
        found: Figures = {f"{name} BusBW": each for name, each in zip(names, bus, strict=True)}
        return found | {"RUD to RoCEv2": [mean(bus[0]) / mean(bus[-1]) - 1]}

    return measure


def jct(runs: list[Kept], of: dict[str, str]) -> Figures:
    (run,) = runs
    n, traffic = int(of["N"]), run.result["scenario"]["traffic"]
    size = traffic["collective"]["bytes"]
    roofline = traffic["compute_ns"] + 8 * size * factor("all-reduce", n) / Fraction(run.rate)
    steps = run.result["steps"]
    assert len(steps) == traffic["steps"]
    ratio = (steps[-1]["end_ns"] - steps[0]["start_ns"]) / (len(steps) * roofline)
    last = max(f[4] for f in run.flows)
    assert steps[0]["start_ns"] == 0 and last == max(step["end_ns"] for step in steps)
    return {
        "whole JCT ratio": [float(ratio)],
        "roofline": [float(roofline)],
        "iteration": run.jct(),
        "JCT ratio": [float(t / roofline) for t in run.jct()],
    }


def mlperf(runs: list[Kept], _of: dict[str, str]) -> Figures:
    (run,) = runs
    steps = run.result["steps"]
    by_step: dict[int, int] = defaultdict(int)
    for *_, end, step in run.flows:
        by_step[step] = max(by_step[step], end)
    assert all(by_step[at] <= step["end_ns"] for at, step in enumerate(steps))
    computing = sum(step["compute_ns"] for step in steps)
    return {
        "step": run.jct(),
        "GPUs computing": [computing / (steps[-1]["end_ns"] - steps[0]["start_ns"])],
    }


def scale(runs: list[Kept], of: dict[str, str]) -> Figures:
    """11.1: the collective alone, and as a job that never computes."""
    one, job = runs
    figures = collective("all-reduce")([one], of)
    return {name: figures[name] for name in ("BusBW", "ECN ratio", "pause frames")} | {
        "JCT ratio": jct([job], of)["whole JCT ratio"]
    }


def soak(runs: list[Kept], of: dict[str, str]) -> Figures:
    ratios = []
    for run in runs:
        traffic, steps = run.result["scenario"]["traffic"], run.result["steps"]
        fair = 8 * traffic["collective"]["bytes"] * factor(of["collective"], int(of["N"]))
        line = len(steps) * (traffic["compute_ns"] + fair / Fraction(run.rate))
        ratios.append(float((steps[-1]["end_ns"] - steps[0]["start_ns"]) / line))
    middle = mean(ratios)
    spread = math.sqrt(sum((each - middle) ** 2 for each in ratios) / max(1, len(ratios) - 1))
    return {
        "JCT ratio": ratios,
        "standard deviation": [spread],
        "ECN ratio": [
            run.result["ecn"]["marked_packets"] / run.result["roce"]["data_packets"] for run in runs
        ],
        "pause frames": [run.result["pfc"]["xoff_frames"] for run in runs],
        "dropped": [run.dropped() for run in runs],
    }


def tenants(runs: list[Kept], _of: dict[str, str]) -> Figures:
    half = len(runs) // 2
    ours = {f[0] for f in runs[0].flows}
    took = [max(f[4] for f in run.flows if f[0] in ours)
            - min(f[3] for f in run.flows if f[0] in ours) for run in runs]  # fmt: skip
    alone, both = took[:half], took[half:]
    return {
        "interference factor": [b / a for a, b in zip(alone, both, strict=True)],
        "baseline JCT": alone,
        "contention JCT": both,
    }


def failover(runs: list[Kept], _of: dict[str, str]) -> Figures:
    half = len(runs) // 2
    figures: Figures = defaultdict(list)
    for before, after in zip(runs[:half], runs[half:], strict=True):
        (fault,) = after.result["scenario"]["faults"]
        ends = [before.flows[0][3]]
        for took in before.rounds():
            ends.append(ends[-1] + took)
        struck = next(k for k in range(len(ends) - 1) if ends[k] <= fault["at_ns"] < ends[k + 1])
        figures["packets lost"].append(after.dropped())
        hurt, usual = after.rounds()[struck], before.rounds()
        figures["failure iteration"].append(hurt)
        figures["steady P99"].append(rank(sorted(usual), 99))
        figures["zero impact"].append(int(hurt <= figures["steady P99"][-1]))
        figures["JCT overhead"].append(hurt / mean(usual) - 1)
        # A switch has one count, which each of its links tells when something passes there.
        counts: dict[str, dict[int, int]] = defaultdict(dict)
        for link, notes in after.notes.items():
            for note in notes:
                first = counts[link.split(">")[0]]
                first[note["dropped"]] = min(first.get(note["dropped"], 1 << 62), note["time_ns"])
        grew = sorted(at for first in counts.values() for count, at in first.items() if count)
        counted = sum(max(first) for first in counts.values())
        if counted < after.result["drops"]["total"]:  # the rest went with the cable
            grew = sorted([fault["at_ns"], *grew])
        assert bool(grew) == bool(after.result["drops"]["total"])
        figures["redistributed after"].append(grew[-1] - fault["at_ns"] if grew else 0)
        figures["loss lasts"].append(grew[-1] - grew[0] if grew else 0)
    return dict(figures)


def messages(runs: list[Kept], _of: dict[str, str]) -> Figures:
    """6.2: of one PDC's messages."""
    (run,) = runs
    times = [f[4] - f[3] for f in sorted(run.flows, key=lambda f: f[3])]
    later = sorted(times[1:])
    return {
        "first message": times[:1],
        "P50": [rank(later, 50)],
        "P99": [rank(later, 99)],
        "max": later[-1:],
    }


def incast(runs: list[Kept], _of: dict[str, str]) -> Figures:
    """6.4: one run."""
    (run,) = runs
    return {
        "throughput by line rate": [run.goodput() / run.rate],
        "longest queue": [run.longest_queue()],
        "dropped": [run.dropped()],
        "pause frames": [run.result["pfc"]["xoff_frames"]],
        "sent again": [run.by_packet("retransmitted_packets")],
        "messages lost": [run.posted - len(run.flows)],
    }


def convergence(runs: list[Kept], of: dict[str, str]) -> Figures:
    """7.3 and 6.4: windows that hold forty frames of a fair share, in steps of 100 us."""
    figures: Figures = defaultdict(list)
    flows, begun = 2 * int(of["M"]), 1_000_000
    for run in runs:
        last = run.result["scenario"]["limit_ns"]
        width = 100_000
        while width < 40 * 4196 * 8 * flows / run.rate:
            width += 100_000
        edges = range(begun, last + 1, width)
        carried = []
        for n in range(2, flows + 2):
            ((_, notes),) = [item for item in run.notes.items() if item[0].startswith(f"h{n}>")]
            story = iter(sorted((x["time_ns"], x["bytes"]) for x in notes))
            came, row, upcoming = 0, [], next(story, None)
            for edge in edges:
                while upcoming and upcoming[0] <= edge:
                    came, upcoming = upcoming[1], next(story, None)
                row.append(came)
            carried.append([b - a for a, b in pairwise(row)])
        off = [
            max(abs(rate * flows / sum(rates) - 1) for rate in rates) if sum(rates) else 1.0
            for rates in zip(*carried, strict=True)
        ]
        ends = next((n for n in range(len(off), 0, -1) if off[n - 1] > 0.1), 0)
        if ends < len(off):
            figures["convergence"].append(ends * width)
        figures["converged"].append(int(ends < len(off)))
        figures["largest deviation at the end"].append(off[-1])
        figures["longest queue"].append(run.longest_queue())
        figures["pause frames"].append(run.result["pfc"]["xoff_frames"])
        figures["dropped"].append(run.dropped())
    return dict(figures)


def retry(runs: list[Kept], _of: dict[str, str]) -> Figures:
    """6.5 (a)."""
    (run,) = runs
    links = (run.result.get("llr") or {"by_link": {}})["by_link"].values()
    return {
        "message P50": [rank(run.times(), 50)],
        "message P99": [rank(run.times(), 99)],
        "sent again by hosts": [run.result["roce"]["retransmitted_packets"]],
        "sent again by links": [sum(link["replayed_frames"] for link in links)],
    }


def trimming(runs: list[Kept], _of: dict[str, str]) -> Figures:
    """6.5 (b)."""
    (run,) = runs
    trim = run.result.get("trim") or {"by_link": {}, "cut_bytes": 0}
    return {
        "message P50": [rank(run.times(), 50)],
        "message P99": [rank(run.times(), 99)],
        "cut": [sum(trim["by_link"].values())],
        "bytes cut off": [trim["cut_bytes"]],
        "dropped": [run.dropped()],
        "sent again": [run.result["roce"]["retransmitted_packets"]],
    }


def credit(runs: list[Kept], _of: dict[str, str]) -> Figures:
    """6.5 (c): with the incast, and the victim alone, who is the only one not to write to h1."""
    both, alone = runs
    ((_, to, size, start, end, _),) = alone.flows
    ((begun, ended),) = [(f[3], f[4]) for f in both.flows if f[1] == to]
    credits = both.result.get("credits")
    held = credits["by_link"] if credits else both.result["pfc"]["by_link"]
    return {
        "victim's throughput": [8 * size / (ended - begun) / both.rate],
        "victim held up": [(ended - begun) / (end - start)],
        "pause frames": [both.result["pfc"]["xoff_frames"]],
        "links held up": [len(held)],
        "waited": [
            sum(held.values()) if credits else sum(each["paused_ns"] for each in held.values())
        ],
        "throughput by line rate": [both.goodput("h1") / both.rate],
    }


def contexts(runs: list[Kept], of: dict[str, str]) -> Figures:
    """6.7."""
    (run,) = runs
    assert len(run.flows) == int(of["PDCs or QPs"])
    return {"throughput by line rate": [run.goodput() / run.rate]}


def deadlock(runs: list[Kept], _of: dict[str, str]) -> Figures:
    return {
        "arrived": [len(run.flows) / run.posted for run in runs],
        "run": [run.result["duration_ns"] for run in runs],
        "watchdog events": [sum(run.result["pfc"]["storms"].values()) for run in runs],
        "dropped": [run.dropped() for run in runs],
        "most paused port": [max(run.paused_classes(), default=0) for run in runs],
    }


Model = Callable[[list[Kept], dict[str, str]], Figures]
MODELS: dict[str, tuple[Model, ...]] = {
    "throughput": (throughput,), "latency": (latency, increase), "bursts": (bursts,),
    "uet-throughput": (uet_throughput,), "uet-latency": (messages,), "uet-spray": (balance,),
    "uet-congestion": (incast, convergence), "uet-links": (retry, trimming, credit),
    "uet-collectives": (side_by_side(("UET RUD", "UET ROD", "RoCEv2 RC")),),
    "uet-pdcs": (contexts,), "ecn": (ecn,), "pfc": (pfc,), "dcqcn": (convergence,),
    "deadlock": (deadlock,), "ecmp": (balance,), "flowlet": (balance,), "spray": (balance,),
    "fairness": (balance,), "allreduce": (collective("all-reduce"),),
    "alltoall": (collective("all-to-all"),), "allgather": (collective("all-gather"),),
    "busbw": (side_by_side(("ECMP", "DLB", "spray")),), "jct": (jct,), "mlperf": (mlperf,),
    "tenants": (tenants,), "scale": (scale,), "failover": (failover,), "zero-impact": (failover,),
    "soak": (soak,),
}  # fmt: skip
"""Of each test, a model for each of its tables."""
NOT_MODELLED = {
    ("flowlet", "goodput by ECMP's"),  # one row's goodput, which has a model, by another row's
    ("uet-throughput", "rate sustained"),  # of UET's own headers; what it delivers has a model
}
"""Figures that no model here computes."""
