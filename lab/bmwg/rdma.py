"""Section 5: throughput, latency and bursts of RDMA writes."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

from lab.bmwg.arithmetic import slope
from lab.bmwg.bench import KIB, MB, MIB, Bench, in_words
from lab.bmwg.case import Asks, Case, Found, together
from lab.bmwg.outcome import Outcome, Plot, Row, Table
from params.data import Data
from params.load_balancing import Policy
from params.quantity import plural
from traffic.measures import percentile

SUSTAINED = 0.99  # of what is offered: the least that a rate must deliver to count
_SIZES = (64, 256, KIB, 4 * KIB, 64 * KIB, 256 * KIB, MIB, 4 * MIB)
_QPS = (1, 4, 16, 32)
_MIN_SAMPLES = 100  # of a message's time in an idle fabric
_HASHED = (
    "Switches hash: all pairs keep up with what the busiest uplink lets through, and few queue "
    "pairs fill few uplinks. In both directions, acknowledgements take their part, too."
)
_QUEUED = 1 << 20  # packets in flight: so many that the window never holds a burst back


# --- an offered rate -----------------------------------------------------------------------------


class Offer(Data):
    """Messages at a rate, from every host of one half to its partner in the other."""

    size: int
    qps: int = 1
    is_both_ways: bool = False
    transport: tuple[tuple[str, Any], ...] = ()
    lb: str = ""
    section: str = "5.1"

    def pairs(self, hosts: int) -> list[tuple[int, int]]:
        """Who sends to whom."""
        half = hosts // 2
        there = [(host, host + half) for host in range(half)]
        return there + [(dst, src) for src, dst in there] if self.is_both_ways else there

    def case(self, bench: Bench, share: float, seed: int = 1) -> Case:
        """The run at a share of the most payload that a line can carry."""
        hosts = len(bench.scenario.fabric().hosts)
        most = bench.rate_gbps * bench.share_of_payload(self.size, **dict(self.transport))
        every_ns = 8 * self.size / (most * share)
        count = messages_of(bench, self.size, self.qps)
        # Partners do not begin at the same nanosecond: nobody's clocks are so alike.
        lines = [
            f"{round(number * every_ns + at * every_ns / hosts)},{src},{dst},{self.size}"
            for at, (src, dst) in enumerate(self.pairs(hosts))
            for number in range(count)
        ]
        changes: dict[str, Any] = {"lb": {"policy": self.lb}} if self.lb else {}
        return bench.case(
            self.section, {"kind": "table"}, seed=seed,
            table="\n".join(["start_ns,src,dst,bytes", *lines]) + "\n",
            transport={"queue_pairs": self.qps, **dict(self.transport)}, **changes,
        )  # fmt: skip


def messages_of(bench: Bench, size: int, qps: int) -> int:
    """How many each pair sends in a trial: enough bytes, and enough of every queue pair."""
    wanted, most = (1 * MB, 2000) if bench.extent.is_quick else (8 * MB, 1000)
    return max(16, 8 * qps, min(most, wanted // size))


def fitting(bench: Bench, offers: Sequence[Offer]) -> tuple[list[Offer], list[str]]:
    """Those whose trials may be run, and what is left out, in words."""
    hosts = len(bench.scenario.fabric().hosts)
    run, left_out = [], []
    for offer in offers:
        sent = messages_of(bench, offer.size, offer.qps) * offer.size * len(offer.pairs(hosts))
        if sent <= bench.extent.most_bytes:
            run.append(offer)
        else:
            left_out.append(f"{in_words(offer.size)} by {offer.qps} queue pairs")
    omitted = ", ".join(dict.fromkeys(left_out))
    return run, [f"what sends more than --most in a trial: {omitted}"] if left_out else []


def delivered(found: Found) -> dict[tuple[str, str], float]:
    """Of every pair, how fast messages come by how fast they are sent, once the fabric is full.

    Where less comes than is sent, each message is later than the one before it: by how much, a
    line through their times tells, whatever single messages wait for. The first quarter fills the
    fabric and does not count.
    """
    goodput: dict[tuple[str, str], list[tuple[float, float]]] = {}
    for flow in found.flows:
        if flow.start_ns is None or flow.fct_ns is None:
            return {}
        goodput.setdefault((flow.src, flow.dst), []).append((flow.start_ns, flow.fct_ns))
    return {
        pair: 1 / (1 + max(0.0, slope(sorted(times)[len(times) // 4 :])))
        for pair, times in goodput.items()
    }


def is_sustained(found: Found) -> bool:
    """Whether a rate counts: nothing lost or sent again, and all pairs kept up."""
    kept = delivered(found)
    return not found.losses and bool(kept) and min(kept.values()) >= SUSTAINED


class Sought(Data):
    """What a binary search came to."""

    share: float  # of the most payload; 0: not even the least step was sustained
    case: Case | None  # the run at that rate
    found: Found | None


def search(bench: Bench, offer: Offer, seed: int = 1) -> Asks[Sought]:
    """RFC 2544, 26.1: the full rate, and then between the most that passed and the least that
    failed until a step is left: from what came of the full rate on, in strides that double, and by
    halves once it is between two that were tried."""
    step = bench.step
    passed, failed, stride = 0.0, 1.0, step
    best = Sought(0.0, None, None)
    share = 1.0
    while True:
        case = offer.case(bench, share, seed)
        (found,) = yield [case]
        if is_sustained(found):
            passed, best = share, Sought(share, case, found)
        else:
            failed = share
        if passed == 1.0 or failed - passed <= step:
            return best
        middle = (passed + failed) / 2
        if share == 1.0:
            share = _came(found, step)
        elif passed and failed < 1.0:
            share = middle
        else:
            share = max(failed - stride, middle) if not passed else min(passed + stride, middle)
            stride *= 2


def _came(found: Found, step: float) -> float:
    """What share came through of the full rate, to the pair that fared worst, in whole steps."""
    worst = min(delivered(found).values(), default=0.5)
    return min(max(1, int(worst / step)) * step, 1 - step)


def aggregate_gbps(found: Found) -> float:
    """Payload delivered of all pairs together."""
    spans: dict[tuple[str, str], list[tuple[int, int]]] = {}
    for flow in found.flows:
        if flow.start_ns is not None and flow.fct_ns is not None:
            spans.setdefault((flow.src, flow.dst), []).append(
                (flow.start_ns + flow.fct_ns, flow.bytes)
            )
    return sum(
        8 * sum(size for _, size in sorted(came)[1:]) / (max(came)[0] - min(came)[0])
        for came in spans.values()
    )


# --- 5.1 -----------------------------------------------------------------------------------------


def throughput(bench: Bench) -> Asks[Outcome]:
    """The largest rate without loss, by message size and queue pairs."""
    extent = bench.extent
    cells, left_out = fitting(
        bench,
        [
            Offer(size, qps, is_both_ways)
            for size in extent.some(_SIZES, (64, 4 * KIB, 64 * KIB))
            for qps in extent.some(_QPS, (1, 16))
            for is_both_ways in (False, True)
            if not extent.is_quick or not is_both_ways or (size, qps) == (4 * KIB, 16)
        ],
    )
    seeds = range(1, extent.repeats(3, 1) + 1)
    sought = yield from together([search(bench, cell, seed) for cell in cells for seed in seeds])
    by_cell = [sought[at : at + len(seeds)] for at in range(0, len(sought), len(seeds))]
    hosts = len(bench.scenario.fabric().hosts)
    rows = []
    for cell, trials in zip(cells, by_cell, strict=True):
        rates = [aggregate_gbps(each.found) if each.found else 0.0 for each in trials]
        line = bench.rate_gbps * len(cell.pairs(hosts))
        most = line * bench.share_of_payload(cell.size)
        rows.append(
            Row(
                {
                    "message": in_words(cell.size),
                    "QPs": str(cell.qps),
                    "direction": "both" if cell.is_both_ways else "one",
                },
                {
                    "rate sustained": [each.share for each in trials],
                    "aggregate goodput": rates,
                    "efficiency": [rate / most for rate in rates],
                    "payload by line rate": [rate / line for rate in rates],
                },
                [each.case for each in trials if each.case],
            )
        )
    rows_of = {
        plural(qps, "QP"): {
            float(cell.size): row.mean("efficiency") or 0.0
            for cell, row in zip(cells, rows, strict=True)
            if cell.qps == qps and not cell.is_both_ways
        }
        for qps in dict.fromkeys(cell.qps for cell in cells)
    }
    return Outcome(
        [Table("Throughput", {
            "rate sustained": "share", "aggregate goodput": "gbps", "efficiency": "share",
            "payload by line rate": "share"}, rows)],
        "aggregate goodput",
        [Plot("Efficiency by message size", ("message", "message"), ("efficiency", "share"),
              rows_of, is_log=True, caption=_HASHED if bench.scenario.lb.policy is Policy.ECMP
              else "")],
        deviations=(
            "A trial lasts as long as its messages take (1 MB a pair in a quick run, 8 MB else, "
            "and at least 16 of a pair and 8 of a queue pair), not 60 s.",
            "A rate counts as sustained where nothing is lost or sent again and every pair "
            "delivers 99 % of what it is offered: messages do not come ever later.",
        ),
        left_out=left_out,
    )  # fmt: skip


# --- 5.2 -----------------------------------------------------------------------------------------


def latency(bench: Bench) -> Asks[Outcome]:
    """One-way and round-trip times of messages, in an idle fabric and at its throughput: the most
    that each of the trials sustains, for beyond it messages come ever later."""
    extent = bench.extent
    sizes = extent.some(_SIZES, (64, 4 * KIB))
    seeds = range(1, extent.repeats(20, 3) + 1)
    done = yield from together([_latency(bench, size, seeds) for size in sizes])
    rows = [row for pair, _ in done for row in pair]
    factors = [
        Row(
            {"message": in_words(size)},
            {"increase": [(busy.mean("P50") or 0.0) / (idle.mean("P50") or 1.0)]},
            [*idle.cases, *busy.cases],
        )
        for size, ((idle, busy), _) in zip(sizes, done, strict=True)
    ]
    names = ("min", "mean", *_SHARES, "P99 by run", "round trip P50")
    shown = done[min(1, len(done) - 1)]
    return Outcome(
        [
            Table("One-way latency", {"samples": "count", **dict.fromkeys(names, "ns")}, rows),
            Table("Loaded by unloaded", {"increase": "times"}, factors),
        ],
        "P99 by run",
        [
            Plot(
                f"Latency of {shown[0][0].of['message']} messages, cumulative",
                ("one-way latency", "ns"), ("share of messages", "share"), shown[1],
            )
        ],
        deviations=(
            "Every message of the second half of the stream is a sample, instead of one tagged "
            "frame at 60 s of 120 s, which cannot come to 10,000 samples.",
            "In an idle fabric as many messages are sent as fit a tenth of --most, 10,000 at "
            "most, and the simulator repeats it once: nothing there is left to chance.",
            "The one-way time is from the post of a message to its last byte's arrival: it has "
            "the message's own serialization in it. Cables have their delay, switches add that of "
            "their queues and ports alone.",
            "The throughput is the largest rate that every one of the trials sustains.",
            "The round trip is from the post of a message to when its sender knows that it "
            "arrived, of messages one after the other in an idle fabric.",
        ),
    )  # fmt: skip


_SHARES = {"P50": 0.5, "P95": 0.95, "P99": 0.99, "P99.9": 0.999, "max": 1.0}
Curves = dict[str, dict[float, float]]


def _latency(bench: Bench, size: int, seeds: Sequence[int]) -> Asks[tuple[tuple[Row, Row], Curves]]:
    """An idle and a loaded row, and the cumulative distribution of each."""
    offer = Offer(size)
    share = yield from _sustained(bench, offer, seeds)
    most = 2000 if bench.extent.is_quick else 10_000
    count = min(most, max(_MIN_SAMPLES, bench.extent.most_bytes // 10 // size))
    flow = {"src": "h1", "dst": _partner(bench), "bytes": size}
    alone = [
        bench.case(
            "5.2", {"kind": "flows", "messages": count, "flows": [flow]},
            seed=seed, transport={"queue_pairs": 1},
        )
        for seed in bench.certain(seeds)
    ]  # fmt: skip
    busy = [offer.case(bench, share, seed) for seed in seeds]
    found = yield [*alone, *busy]
    idle, loaded = found[: len(alone)], found[len(alone) :]
    trips = [percentile(trips, 50) for each in idle if (trips := _trips(each))]
    times = {"idle": [_late(each) for each in idle],
             "at throughput": [_late(each) for each in loaded]}  # fmt: skip
    statistics = {name: statistics_of(runs) for name, runs in times.items()}
    statistics["idle"]["round trip P50"] = trips
    message = in_words(size)
    return (
        (
            Row({"message": message, "load": "idle"}, statistics["idle"], alone),
            Row({"message": message, "load": "at throughput"}, statistics["at throughput"], busy),
        ),
        {name: _curve([time for run in runs for time in run]) for name, runs in times.items()},
    )


def _sustained(bench: Bench, offer: Offer, seeds: Sequence[int]) -> Asks[float]:
    """The largest rate that all trials sustain: found by the first of them, and then by those that
    do not sustain what was found."""
    step, share, failing = bench.step, 1 + bench.step, list(seeds[:1])
    while failing and share > step:
        sought = yield from together([search(bench, offer, seed) for seed in failing])
        share = max(step, min(share - step, *(each.share for each in sought)))
        found = yield [offer.case(bench, share, seed) for seed in seeds]
        failing = [seed for seed, each in zip(seeds, found, strict=True) if not is_sustained(each)]
    return share


def _curve(times: Sequence[int]) -> dict[float, float]:
    """Which share of messages took no longer."""
    shares = [0.01, *(number / 20 for number in range(1, 20)), 0.99, 0.999, 1.0]
    return {float(percentile(times, 100 * share)): share for share in shares} if times else {}


def _partner(bench: Bench) -> str:
    return f"h{len(bench.scenario.fabric().hosts) // 2 + 1}"


def _late(found: Found) -> list[int]:
    """One-way times of what was posted in the second half."""
    flows = [flow for flow in found.flows if flow.start_ns is not None and flow.fct_ns is not None]
    middle = max((flow.start_ns or 0 for flow in flows), default=0) / 2
    return [flow.fct_ns or 0 for flow in flows if (flow.start_ns or 0) >= middle]


def _trips(found: Found) -> list[int]:
    """Between posts of messages that follow one another."""
    posts = sorted(flow.start_ns for flow in found.flows if flow.start_ns is not None)
    return [after - before for before, after in pairwise(posts)]


def statistics_of(runs: Sequence[Sequence[int]]) -> dict[str, list[float]]:
    """Of all runs' samples as one; and P99 of each run, to tell how far they differ."""
    pooled = [time for run in runs for time in run]
    row: dict[str, list[float]] = {"samples": [float(len(pooled))]}
    if pooled:
        row["min"] = [float(min(pooled))]
        row["mean"] = [sum(pooled) / len(pooled)]
        for name, share in _SHARES.items():
            row[name] = [float(percentile(pooled, 100 * share))]
    row["P99 by run"] = [float(percentile(run, 99)) for run in runs if run]
    return row


# --- 5.3 -----------------------------------------------------------------------------------------

_RATIOS = (2, 4, 8, 16, 32)


def bursts(bench: Bench) -> Asks[Outcome]:
    """The longest burst of N senders to one that loses nothing, without pauses."""
    extent = bench.extent
    ratios = extent.some(_RATIOS, (2, 4, 8))
    done = yield from together([_burst(bench, ratio) for ratio in ratios])
    plot = {"absorbed": {
        float(ratio): row.mean("absorbed") or 0.0 for ratio, row in zip(ratios, done, strict=True)
    }}  # fmt: skip
    return Outcome(
        [Table("Burst absorption", {
            "absorbed": "bytes", "by sender": "bytes", "frames": "count", "repeats": "count",
            "pauses with PFC": "count"}, done)],
        "absorbed",
        [Plot("Burst absorbed by incast ratio", ("senders", "count"), ("bytes", "bytes"), plot)],
        deviations=(
            "PFC is off while bursts grow, since with it no burst of any length loses a frame; "
            "the longest is then sent once more with PFC, and its pause frames are counted.",
            "The longest burst is sought by halves, instead of by growing it frame by frame; it "
            "counts if no repeat loses a frame, each of which has chances of its own.",
        ),
    )  # fmt: skip


def _burst(bench: Bench, senders: int) -> Asks[Row]:
    mtu = bench.scenario.link.mtu

    def case(frames: int, seed: int = 1, *, pfc: bool = False) -> Case:
        return bench.case(
            "5.3", {"kind": "incast", "receiver": "h1", "senders": senders, "bytes": frames * mtu},
            seed=seed, topology=bench.grown(senders + 1), pfc={"enabled": pfc},
            transport={"window": _QUEUED, "cc": "none"},
        )  # fmt: skip

    whole, lost = 0, 2 * int(bench.scenario.buffer.bytes) // mtu // senders + 2
    seeds = range(1, bench.extent.repeats(50, 3) + 1)
    failing: Sequence[int] = seeds[:1]
    while failing and lost > 1:  # first by one repeat, then by those that lost of what it found
        whole = 0
        while lost - whole > max(1, whole // (16 if bench.extent.is_quick else 64)):
            middle = (whole + lost) // 2
            grown = yield [case(middle, seed) for seed in failing]
            whole, lost = (whole, middle) if any(g.losses for g in grown) else (middle, lost)
        lost = whole
        tried = yield [case(whole, seed) for seed in seeds] if whole else []
        failing = [seed for seed, each in zip(seeds, tried, strict=False) if each.losses]
    if not whole:
        return Row({"senders": f"{senders}:1"}, {"absorbed": [0.0]}, [case(1)])
    again = [case(whole, seed) for seed in seeds]
    (paused,) = yield [case(whole, pfc=True)]
    return Row(
        {"senders": f"{senders}:1"},
        {
            "absorbed": [float(whole * mtu * senders)],
            "by sender": [float(whole * mtu)],
            "frames": [float(whole * senders)],
            "repeats": [float(len(again))],
            "pauses with PFC": [paused.figure("pfc.xoff_frames")],
        },
        [*again, case(whole, pfc=True)],
    )
