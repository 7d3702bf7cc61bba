"""Section 10: the time of jobs that compute and communicate in turn."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from lab.bmwg.arithmetic import ALGO_FACTORS, roofline_ns
from lab.bmwg.bench import GB, KB, MB, Bench
from lab.bmwg.case import Asks, Case, Found, together
from lab.bmwg.collectives import BALANCING, FITTED, fitted, halving_bytes
from lab.bmwg.outcome import Outcome, Plot, Row, Table
from params.quantity import duration
from params.quantity import size as size_text

_C_MS = (10, 50, 100, 500)
_S = (256 * MB, GB, 4 * GB)
_N = (64, 128, 256, 512, 1024)
_OVERLAPS = (0, 1, 2, 3)  # of four leaves
_MIN_JOB = 750 * KB  # that an all-reduce must have: a smaller one is all delays
HALVING = "halving-doubling"  # fewest rounds: of a job made smaller, delays weigh least
_SCALE = 0.00005  # of a training step: bytes and durations alike


def job_case(
    bench: Bench, section: str, ranks: int, compute_ns: int, size: int, steps: int,
    op: str = "all-reduce", algorithm: str | None = None, **changes: Any,
) -> Case:  # fmt: skip
    """A job of so many ranks: it computes, then communicates."""
    named = {"algorithm": algorithm} if algorithm else {}
    return bench.case(
        section,
        {"kind": "job", "ranks": ranks, "steps": steps, "compute_ns": compute_ns,
         "collective": {"op": op, "bytes": size, **named}},
        **bench.sized(ranks), **changes,
    )  # fmt: skip


def ratio(found: Found, ranks: int, compute_ns: int, size: int, steps: int, gbps: float,
          op: str = "all-reduce") -> list[float]:  # fmt: skip
    """JCT by its roofline; nothing of a job that did not end."""
    took = found.result.jct_ns
    if took is None:
        return []
    return [took / roofline_ns(steps, compute_ns, op, ranks, size, gbps)]


# --- 10.1 ----------------------------------------------------------------------------------------


def synthetic(bench: Bench) -> Asks[Outcome]:
    """The synthetic job, made smaller as a whole: C and S by the same factor."""
    extent = bench.extent
    steps = extent.repeats(3, 3)
    rows_of, left_out = [], 0
    for compute_ms in extent.some(_C_MS, (10, 100)):
        for size in extent.some(_S, (256 * MB,)):
            for ranks in extent.some(_N, (8,)):
                shrunk = _shrinking(bench, size, ranks, steps)
                if shrunk is None or bench.fabric(ranks) is None or (bench.is_small and ranks > 16):
                    left_out += 1
                    continue
                rows_of += [(compute_ms, size, ranks, name, shrunk) for name in BALANCING]

    def row(compute_ms: int, size: int, ranks: int, name: str, shrunk: int) -> Asks[Row]:
        compute_ns, bytes_ = compute_ms * 1_000_000 // shrunk, size // shrunk
        one = job_case(bench, "10.1", ranks, compute_ns, bytes_, steps, algorithm=HALVING,
                       lb={"policy": BALANCING[name]})  # fmt: skip
        (found,) = yield [one]
        comm = 8 * bytes_ * ALGO_FACTORS["all-reduce"](ranks) / bench.rate_gbps
        took = [float(step.end_ns - step.start_ns) for step in found.result.steps or ()
                if step.end_ns is not None]  # fmt: skip
        return Row(
            {"C": f"{compute_ms} ms", "S": size_text(size), "N": str(ranks), "balancing": name,
             "smaller by": str(shrunk)},
            {"JCT ratio": [each / (compute_ns + comm) for each in took],
             "whole JCT ratio": ratio(found, ranks, compute_ns, bytes_, steps, bench.rate_gbps),
             "iteration": took, "roofline": [compute_ns + comm]},
            [one],
        )  # fmt: skip

    rows = yield from together([row(*each) for each in rows_of])
    series: dict[str, dict[float, float]] = {}
    for each in rows:
        if each.of["C"] == rows[0].of["C"] and each.of["S"] == rows[0].of["S"]:
            series.setdefault(each.of["balancing"], {})[float(each.of["N"])] = (
                each.mean("whole JCT ratio") or 0.0
            )
    return Outcome(
        [Table("Synthetic job", {"JCT ratio": "times", "whole JCT ratio": "times",
                                 "iteration": "ns", "roofline": "ns"}, rows)],
        "JCT ratio",
        [Plot("JCT ratio by ranks", ("N", "count"), ("JCT ratio", "times"), series)]
        if rows
        else [],
        left_out=[f"{left_out} of the (C, S, N) that the draft lists"] if left_out else (),
        deviations=(
            "C and S are divided by the same factor, so that the roofline keeps its proportions; "
            "fixed delays then weigh more, so the ratio is never better than at full size.",
            f"{steps} iterations instead of 1000: queue pairs keep their ways, so that one is as "
            "the other." if steps != 1000 else "1000 iterations, as the draft has it.",
            "AllReduce goes by halving and doubling, whose rounds are fewest; where --most makes S "
            f"smaller than {size_text(_MIN_JOB)}, delays would be all that is measured.",
        ),
    )  # fmt: skip


def _shrinking(bench: Bench, size: int, ranks: int, steps: int) -> int | None:
    """By how much a job is made smaller, a power of two: so that it sends no more than it may."""
    most = bench.extent.most_bytes // (4 if bench.extent.is_quick else 1)
    factor = 1
    least = 64 * ranks if bench.extent.is_quick else _MIN_JOB
    while halving_bytes(ranks, size // factor) * steps > most:
        factor *= 2
        if size // factor < least:
            return None
    return factor


# --- 10.2 ----------------------------------------------------------------------------------------


def mlperf(bench: Bench) -> Asks[Outcome]:
    """A step of training Llama 2 70B, with the model that ships, at the device's rate."""
    steps = bench.extent.repeats(10, 2)
    hosts = len(bench.scenario.fabric().hosts) // 4 * 4
    if hosts < 8:
        return Outcome([], "", left_out=["all of it: eight hosts are needed"])
    training = {
        "kind": "training", "model": "llama-70b", "steps": steps, "scale": _SCALE,
        "parallelism": {"tensor": 4, "data": hosts // 4}, "batch": {"sequences": hosts},
        "node": {"gpus": 4}, "sharded_optimizer": True,
    }  # fmt: skip
    cases = [bench.case("10.2", training, lb={"policy": policy}) for policy in BALANCING.values()]
    found = yield cases
    rows = []
    for name, one, case in zip(BALANCING, found, cases, strict=True):
        took = [float(step.end_ns - step.start_ns) for step in one.result.steps or ()
                if step.end_ns is not None]  # fmt: skip
        rows.append(
            Row(
                {"workload": "Llama 2 70B", "balancing": name},
                {"step": took, "GPUs computing": _of(one.result.gpu_utilisation)},
                [case],
            )
        )
    return Outcome(
        [Table("Training step", {"step": "ns", "GPUs computing": "share"}, rows)],
        "step",
        deviations=(
            "MLPerf's rules cannot be met without accelerators that train to a target: this is the "
            "step of a model's published shape, made a twenty-thousandth of its size, bytes and "
            "durations alike, and no MLPerf result.",
        ),
    )


def _of(value: float | None) -> list[float]:
    return [] if value is None else [value]


# --- 10.3 ----------------------------------------------------------------------------------------


def tenants(bench: Bench) -> Asks[Outcome]:
    """Two jobs, of which one leaf in four, two or three is the same: each has half its hosts."""
    extent = bench.extent
    wanted = extent.repeats(100, 5)
    topology = bench.fabric(0, 8)
    each = int(topology.get("hosts_per_leaf", 2)) if topology else 0
    if topology is None or topology.get("kind") != "leaf-spine" or each < 2:
        return Outcome([], "", left_out=["all of it: a leaf-spine with two hosts a leaf is needed"])

    def ranks(leaves: Sequence[int], slots: Sequence[int]) -> list[str]:
        # Slot by slot, so that every hop of the ring is from leaf to leaf, by a spine.
        return [f"h{leaf * each + slot + 1}" for slot in slots for leaf in leaves]

    half = each // 2
    ours = ranks(range(4), range(half))
    most = MB if extent.is_quick else 16 * MB
    size, repeat = fitted(bench, "all-reduce", 2 * len(ours), most, wanted)

    def job(hosts: Sequence[str]) -> dict[str, Any]:
        return {"kind": "collective", "op": "all-reduce", "algorithm": "ring", "bytes": size,
                "repeat": repeat, "ranks": list(hosts)}  # fmt: skip

    def case(seed: int, shared: int | None) -> Case:
        leaves = range(4 - shared, 8 - shared) if shared is not None else ()
        parts = [job(ours)] + ([job(ranks(leaves, range(half, 2 * half)))] if leaves else [])
        traffic = parts[0] if len(parts) == 1 else {"kind": "mix", "parts": parts}
        return bench.case("10.3", traffic, seed=seed, topology=topology, lb={"policy": "ecmp"})

    def row(shared: int) -> Asks[Row]:
        seeds = range(1, extent.repeats(20, 2) + 1)
        alone, both = [case(s, None) for s in seeds], [case(s, shared) for s in seeds]
        found = yield [*alone, *both]
        times = [_took(each, ours) for each in found]
        base, contended = times[: len(alone)], times[len(alone) :]
        return Row(
            {"spine link overlap": f"{25 * shared} %"},
            {"interference factor": [b / a for a, b in zip(base, contended, strict=True)],
             "baseline JCT": base, "contention JCT": contended},
            [*alone, *both],
        )  # fmt: skip

    rows = yield from together([row(shared) for shared in _OVERLAPS])
    plot = {"factor": {
        25.0 * shared: row.mean("interference factor") or 0.0
        for shared, row in zip(_OVERLAPS, rows, strict=True)
    }}  # fmt: skip
    return Outcome(
        [Table("Two jobs", {"interference factor": "times", "baseline JCT": "ns",
                            "contention JCT": "ns"}, rows)],
        "interference factor",
        [Plot("Interference by overlap", ("overlap, %", "count"), ("factor", "times"), plot)],
        deviations=(
            "Overlap is the share of the job's leaves, and so of its uplinks, at which the other "
            "job has hosts as well; which spines they take follows from the hash.",
            FITTED,
            f"Jobs are {repeat} all-reduces of {size_text(size)} in a row, ring order from leaf to "
            f"leaf, one after the other without computing ({duration(0)} of C).",
        ),
    )  # fmt: skip


def _took(found: Found, hosts: Sequence[str]) -> float:
    """From the first post to the last arrival of what these hosts sent."""
    known = set(hosts)
    spans = [
        (flow.start_ns, flow.start_ns + flow.fct_ns)
        for flow in found.flows
        if flow.src in known and flow.start_ns is not None and flow.fct_ns is not None
    ]
    return float(max(end for _, end in spans) - min(start for start, _ in spans))
