"""What the field says of links, buffers, hashing, pauses, oversubscription and placement."""

from __future__ import annotations

from collections.abc import Mapping
from statistics import mean, median

from lab.claims.claim import Case, Claim, Found, Judgement, Verdict
from params.quantity import NANOSECONDS, PER_CENT, PLAIN, duration, number, percent
from views.report.charts import Spread, bars, lines

Runs = Mapping[str, Found]


def _times(value: float) -> str:
    return f"{number(value)} times"


def _jct(found: Found) -> float:
    """A job that never ended took as long as it was given, at least."""
    return float(found.jct_ns if found.jct_ns is not None else found.duration_ns)


# --- 30 to 50 % of productivity ------------------------------------------------------------------

_LLAMA = "training-llama"
_POOR = {
    "a good network": (),
    "random placement": ("traffic.placement=random",),
    "random placement, one spine": ("traffic.placement=random", "topology.spines=1"),
    "0.1 % loss": ("loss.rate=0.001", "transport.rto_ns=100us"),
    "1 % loss": ("loss.rate=0.01", "transport.rto_ns=100us"),
    "a port at a quarter of its rate": ("traffic.slow_links=[{rank: 0, rate_share: 0.25}]",),
    "a quarter of the bandwidth": ("link.rate_gbps=25",),
}


def _judge_productivity(found: Runs) -> Judgement:
    best = found["a good network"].utilisation or 0.0
    lost = {
        name: 1 - (run.utilisation or 0.0) / best
        for name, run in found.items()
        if name != "a good network"
    }
    # It says what a poor network costs, not what one could be found to cost: one that fits of many
    # is chance. All of them fit, or at least most, or the claim is wrong.
    fits = [name for name, share in lost.items() if 0.3 <= share <= 0.5]
    is_most = 2 * len(fits) > len(lost)
    verdict = Verdict.SOMETIMES if is_most else Verdict.FAILS
    shares = ", ".join(f"{name} {percent(share)}" for name, share in lost.items())
    return Judgement(
        Verdict.HOLDS if len(fits) == len(lost) else verdict,
        f"Of what the GPUs computed on a good network, {shares} is lost: from 30 to 50 % in "
        f"{len(fits)} of {len(lost)} cases, and {percent(median(lost.values()))} in the middle.",
        {**lost, "the middle one": median(lost.values())},
        bars("Computing lost to the network", lost, percent),
    )


_PRODUCTIVITY = Claim(
    "productivity",
    "A poor network costs a GPU cluster 30 to 50 % of its productivity.",
    "Highfens, 31 March 2026: AI network bottlenecks, a silent GPU killer. "
    "https://highfens.com/2026/03/31/ai-network-bottlenecks-a-silent-gpu-killer/ (30 to 50 % or "
    "more, without a measurement).",
    "Two steps of Llama 2 70B on sixteen GPUs aligned to rails, 100 Gb/s, then with one or two "
    "things wrong at a time; time-outs of 100 us, as the job is shrunk.",
    {name: Case(_LLAMA, changes) for name, changes in _POOR.items()},
    _judge_productivity,
)


# --- one slow link -------------------------------------------------------------------------------

_SHARES = (1.0, 0.75, 0.5, 0.25, 0.1)


def _judge_slow_link(found: Runs) -> Judgement:
    rates = {share: found[str(share)].busbw_gbps or 0.0 for share in _SHARES}
    kept = {share: rate / rates[1.0] for share, rate in rates.items()}
    follows = [abs(kept[share] - share) < 0.1 * share for share in _SHARES]
    shares = ", ".join(f"{percent(kept[share])} at {percent(share)}" for share in _SHARES[1:])
    return Judgement(
        Verdict.of(follows),
        f"With one of eight uplinks at a share of its rate, the whole all-reduce keeps {shares}: "
        "every turn of the ring waits for the flow that crosses it.",
        {f"bus bandwidth kept at {share:.0%}": value for share, value in kept.items()},
        lines(
            "Bus bandwidth by the rate of one link",
            ("rate of the slow link, of its usual rate", PER_CENT),
            ("bus bandwidth kept", PER_CENT),
            {"measured": kept, "as slow as the link": {share: share for share in _SHARES}},
            top=1.0,
        ),
    )


_SLOW_LINK = Claim(
    "slow-link",
    "One slow link drags a whole all-reduce down to its rate.",
    "P. Chen et al.: Don't let a few network failures slow the entire AllReduce, arXiv:2606.01680 "
    "(a degraded server stays on the critical path of a ring).",
    "A ring all-reduce of 8 MB among eight hosts at 100 Gb/s, one uplink slowed down.",
    {
        str(share): Case("degraded-uplink", (f"link.slow.leaf1-spine1={share}",))
        for share in _SHARES
    },
    _judge_slow_link,
)


# --- incast --------------------------------------------------------------------------------------

_BUFFERS = {
    "1 MB": ("buffer.bytes=1MB",),
    "4 MB": ("buffer.bytes=4MB",),
    "16 MB": ("buffer.bytes=16MB",),
    "32 MB": ("buffer.bytes=32MB",),
    "32 MB (alpha 8)": ("buffer.bytes=32MB", "buffer.alpha=8"),
}
_MOMENTS_US = (5, 10, 20, 50, 100, 200, 500, 1000)


def _judge_incast(found: Runs) -> Judgement:
    first = {}
    for buffer in _BUFFERS:
        lossy = [us for us in _MOMENTS_US if found[f"{buffer}, {us}"].drops]
        if lossy:
            first[buffer] = min(lossy) * 1000.0
    parts = [f"{buffer} within {duration(ns)}" for buffer, ns in first.items()]
    parts += [f"{buffer} not in a millisecond" for buffer in _BUFFERS if buffer not in first]
    return Judgement(
        Verdict.of(buffer in first for buffer in _BUFFERS),
        f"Without pauses seven hosts that write to one overflow a buffer of {', '.join(parts)}.",
        {
            f"{name}: dropped in 1 ms": float(found[f"{name}, {_MOMENTS_US[-1]}"].drops)
            for name in _BUFFERS
        }
        | {f"{buffer}: first drop before (ns)": ns for buffer, ns in first.items()},
        lines(
            "Packets dropped since an incast began",
            ("time since the incast began", NANOSECONDS),
            ("packets dropped", PLAIN),
            {
                buffer: {us * 1e3: found[f"{buffer}, {us}"].drops for us in _MOMENTS_US}
                for buffer in _BUFFERS
            },
            is_log=True,
        ),
    )


_INCAST = Claim(
    "incast",
    "An incast overflows a switch's buffer within a millisecond.",
    "C. Canel et al.: Understanding incast bursts in modern datacenters, IMC 2024, "
    "doi:10.1145/3646547.3689028 (incasts overwhelm shallow buffers; for the millisecond no source "
    "was found).",
    "Seven hosts write 16 MB each to one at 100 Gb/s, PFC and ECN off, and the run is ended after "
    "5 us to 1 ms; buffers from 1 MB to 32 MB, of which one queue may have a ninth, or 8/9 with "
    "alpha 8.",
    {
        f"{buffer}, {us}": Case(
            "incast",
            (
                *changes,
                *("pfc.enabled=false", "traffic.bytes=16MB", "transport.window=8192"),
                f"limit_ns={us}us",
            ),
        )
        for buffer, changes in _BUFFERS.items()
        for us in _MOMENTS_US
    },
    _judge_incast,
)


# --- ECMP ----------------------------------------------------------------------------------------

_SEEDS = tuple(range(1, 9))
_LOADS = {
    "16 elephants, ecmp": (),
    "256 flows, ecmp": ("traffic.flows=256", "traffic.bytes=250KB", "traffic.source_ports=16384"),
    "16 elephants, spray": ("lb.policy=spray", "transport.recovery=selective"),
}


def _idle_share(found: Found) -> float:
    """The share of leaves' ways up that carry less than a tenth of an even share."""
    idle = []
    for leaf in range(1, 5):
        ways = [carried for name, carried in found.links.items() if f"leaf{leaf}>spine" in name]
        idle += [carried < 0.1 * mean(ways) for carried in ways]
    return mean(idle)


def _judge_ecmp(found: Runs) -> Judgement:
    idle = {load: mean(_idle_share(found[f"{load}, {seed}"]) for seed in _SEEDS) for load in _LOADS}
    ends = {
        load: mean(found[f"{load}, {seed}"].fct_max_ns or 0.0 for seed in _SEEDS) for load in _LOADS
    }
    collided, many, sprayed = _LOADS
    slower = ends[collided] / ends[sprayed]
    holds = idle[collided] > 0.2 and slower > 1.5
    cured = idle[many] < 0.05
    verdict = (Verdict.HOLDS if cured else Verdict.SOMETIMES) if holds else Verdict.FAILS
    return Judgement(
        verdict,
        f"Averaged over {len(_SEEDS)} seeds, {percent(idle[collided])} of the ways up stay idle "
        f"under 16 elephants, {percent(idle[many])} if the same bytes are 256 flows, and "
        f"{percent(idle[sprayed])} if elephants are sprayed; the elephants take "
        f"{_times(slower)} as long as sprayed.",
        {**{f"{k}: idle": v for k, v in idle.items()}, "slower than spray": slower},
        bars("Ways up that stay idle", idle, percent),
    )


_ECMP = Claim(
    "ecmp",
    "ECMP lets low-entropy elephants collide and leaves paths idle.",
    "FlowTracer: a tool for uncovering network path usage imbalance in AI training clusters, "
    "arXiv:2410.17078 (ECMP's collisions on sixteen 400G nodes).",
    "Sixteen hosts at 100 Gb/s below four leaves and four spines, each sending 4 MB to one other; "
    "eight seeds.",
    {
        f"{load}, {seed}": Case("hash-collision", (*changes, f"seed={seed}"))
        for load, changes in _LOADS.items()
        for seed in _SEEDS
    },
    _judge_ecmp,
)


# --- PFC and ECN ---------------------------------------------------------------------------------

_MARKS = ("ecn.enabled=true", "transport.cc=dcqcn")
_NO_PAUSES = ("pfc.enabled=false",)
_NEITHER, _PFC, _ECN, _BOTH = "no PFC, no ECN", "PFC alone", "ECN alone", "PFC and ECN"
_CONTROLS = {
    _NEITHER: _NO_PAUSES,
    _PFC: (),
    _ECN: (*_NO_PAUSES, *_MARKS),
    _BOTH: _MARKS,
}


def _judge_pfc_ecn(found: Runs) -> Judgement:
    victim = {name: found[name].part_fct_ns.get("bystander", 0.0) for name in _CONTROLS}
    drops = {name: found[name].drops for name in _CONTROLS}
    both, pfc = found[_BOTH], found[_PFC]
    not_enough = [drops[_PFC] > 0, drops[_ECN] > 0]
    figures = {
        **{f"{name}: drops": float(count) for name, count in drops.items()},
        **{f"{name}: victim (ns)": ns for name, ns in victim.items()},
        **{f"{name}: paused (ns)": float(found[name].paused_ns) for name in _CONTROLS},
    }
    return Judgement(
        Verdict.FAILS if drops[_BOTH] else Verdict.of(not_enough),
        f"Dropped: {drops[_NEITHER]:,} packets with neither, {drops[_ECN]:,} with ECN alone, "
        f"{drops[_PFC]:,} with PFC alone, {drops[_BOTH]:,} with both. "
        + ("" if drops[_PFC] else "So PFC alone loses nothing either. ")
        + f"A bystander takes {duration(victim[_PFC])} with PFC alone, "
        f"{duration(victim[_BOTH])} with both, while links stand still "
        f"{duration(pfc.paused_ns)} and {duration(both.paused_ns)} in all.",
        figures,
        bars("Completion time of the flow that shares no full link", victim, duration),
    )


_ALONE, _WITH, _WITHOUT = "nobody else", "with PFC", "without PFC"
_BYSTANDER = {
    _ALONE: ("traffic={kind: flows, name: bystander, flows: [{src: h8, dst: h2, bytes: 2MB}]}",),
    _WITH: (),
    _WITHOUT: _NO_PAUSES,
}


def _judge_victim(found: Runs) -> Judgement:
    alone = found[_ALONE].fct_max_ns or 1.0
    slower = {
        name: found[name].part_fct_ns.get("bystander", 0.0) / alone for name in (_WITH, _WITHOUT)
    }
    spreads = slower[_WITH] > 2
    return Judgement(
        Verdict.FAILS if not spreads else Verdict.of([slower[_WITHOUT] < 1.5, spreads]),
        f"The flow takes {_times(slower[_WITH])} as long as alone where PFC is on, and "
        f"{_times(slower[_WITHOUT])} where it is off.",
        {f"{name}: slower than alone": value for name, value in slower.items()},
        bars("How many times as long as alone", slower, lambda value: f"{number(value)} x"),
    )


_VICTIM = Claim(
    "victim",
    "PFC spreads congestion to flows that have no part in it.",
    "Y. Zhu et al.: Congestion control for large-scale RDMA deployments, SIGCOMM 2015, "
    "doi:10.1145/2785956.2787484 (victim flows).",
    "Six hosts write 2 MB each to one, and a seventh to another below the same leaf, by links that "
    "have room for it; with PFC and without, and alone.",
    {name: Case("victim-flow", changes) for name, changes in _BYSTANDER.items()},
    _judge_victim,
)

_PFC_ECN = Claim(
    "pfc-ecn",
    "PFC and ECN together are lossless, where each alone is not enough.",
    "Lossless Network: PFC, ECN and DCQCN. "
    "https://losslessnetwork.com/learn/roce-v2/pfc-ecn-dcqcn (RoCEv2 is said to need all of them).",
    "Six hosts write 2 MB each to one, and a seventh to another below the same leaf; ECN with "
    "DCQCN senders, marking well below where pauses begin.",
    {name: Case("victim-flow", changes) for name, changes in _CONTROLS.items()},
    _judge_pfc_ecn,
)


# --- a fabric without PFC ------------------------------------------------------------------------

_TRIMS, _PAUSES, _MARKED = "trimming, UET", "PFC, RoCEv2", "PFC, ECN, DCQCN"
_PAUSED = ("pfc.enabled=true", "trim.enabled=false", "transport.kind=roce")
_SCHOOLS = {
    _TRIMS: (),
    _PAUSES: (*_PAUSED, "transport.cc=none"),
    _MARKED: (*_PAUSED, "transport.cc=dcqcn"),
}


def _judge_no_pfc(found: Runs) -> Judgement:
    victim = {name: found[name].part_fct_ns.get("bystander", 0.0) for name in _SCHOOLS}
    incast = {name: found[name].part_fct_ns.get("incast", 0.0) for name in _SCHOOLS}
    trims = found[_TRIMS]
    whole = trims.is_whole and not trims.drops and not trims.paused_ns
    as_fast = incast[_TRIMS] < 1.05 * min(incast[_PAUSES], incast[_MARKED])
    spared = victim[_TRIMS] < 0.5 * min(victim[_PAUSES], victim[_MARKED])
    return Judgement(
        Verdict.of([whole, as_fast, spared]) if whole else Verdict.FAILS,
        f"Without PFC {trims.drops:,} packets are dropped where switches trim; the incast takes "
        f"{duration(incast[_TRIMS])}, with PFC {duration(incast[_PAUSES])}, with DCQCN too "
        f"{duration(incast[_MARKED])}. The flow beside it takes {duration(victim[_TRIMS])} without "
        f"PFC, {duration(victim[_PAUSES])} and {duration(victim[_MARKED])} with. It takes adapters "
        "that ask for single packets and switches that cut them.",
        {
            **{f"{name}: victim (ns)": ns for name, ns in victim.items()},
            **{f"{name}: incast (ns)": ns for name, ns in incast.items()},
            "drops without PFC": float(trims.drops),
        },
        bars("Completion time of the flow that shares no full link", victim, duration),
    )


_NO_PFC = Claim(
    "no-pfc",
    "An AI fabric needs no PFC.",
    "Ultra Ethernet Specification 1.0. https://ultraethernet.org/ (packets are trimmed and "
    "sprayed, and PFC is optional).",
    "Six hosts write 2 MB each to one, and a seventh to another below the same leaf; switches that "
    "trim under UET with NSCC, and switches that pause under RoCEv2, without and with DCQCN.",
    {name: Case("pfc-or-trim", changes) for name, changes in _SCHOOLS.items()},
    _judge_no_pfc,
)


# --- a neighbour of an incast --------------------------------------------------------------------

_MRC, _PFC_ALONE, _DCQCN = "MRC", "PFC alone", "PFC and DCQCN"
_BY_ROCE = ("pfc.enabled=true", "trim.enabled=false")
_BESIDE_INCAST = {
    _MRC: ("transport.kind=mrc",),
    _PFC_ALONE: (*_BY_ROCE, "transport={kind: roce}", "ecn.enabled=false"),
    _DCQCN: (
        *(*_BY_ROCE, "transport={kind: roce, cc: dcqcn}"),
        "ecn={enabled: true, kmin: 400KB, kmax: 1600KB, pmax: 0.2}",
    ),
}
_BY_ITSELF = "traffic={kind: flows, flows: [{src: h16, dst: h2, bytes: 8MB, at_ns: 100us}]}"


def _judge_neighbour(found: Runs) -> Judgement:
    kept = {
        school: [
            (found[f"{school}, alone"].fct_max_ns or 0.0)
            / found[f"{school}, seed {seed}"].part_fct_ns["bystander"]
            for seed in _SEEDS
        ]
        for school in _BESIDE_INCAST
    }
    middle = {school: median(each) for school, each in kept.items()}
    spared = min(kept[_MRC]) >= 0.97
    others_suffer = [middle[school] < 0.97 for school in (_PFC_ALONE, _DCQCN)]
    parts = "; ".join(
        f"{school} {percent(middle[school])}, from {percent(min(each))} to {percent(max(each))}"
        for school, each in kept.items()
    )
    return Judgement(
        Verdict.of([spared, *others_suffer]) if spared else Verdict.FAILS,
        f"Of the rate that it has alone the flow beside the incast keeps, in the middle of "
        f"{len(_SEEDS)} seeds: {parts}.",
        {
            f"{school}: {name} kept": choose(each)
            for school, each in kept.items()
            for name, choose in (("least", min), ("median", median), ("most", max))
        },
        bars(
            "Rate that the flow beside the incast keeps",
            middle,
            percent,
            {school: Spread.of(each) for school, each in kept.items()},
        ),
    )


_NEIGHBOUR = Claim(
    "neighbour",
    "MRC leaves an incast's neighbours alone, where PFC and DCQCN do not.",
    "Multipath Reliable Connection, arXiv:2605.04333 (figure 18: with PFC alone the victim is left "
    "30 to 100 of 400 Gb/s, with DCQCN it loses a quarter, with MRC nothing).",
    "Seven hosts of other racks write 8 MB each to one, and another to its neighbour at the same "
    "leaf, at 400 Gb/s over four spines; eight seeds of hashes; by each transport also alone.",
    {
        **{
            f"{school}, alone": Case("victim-mrc", (*changes, _BY_ITSELF))
            for school, changes in _BESIDE_INCAST.items()
        },
        **{
            f"{school}, seed {seed}": Case("victim-mrc", (*changes, f"seed={seed}"))
            for school, changes in _BESIDE_INCAST.items()
            for seed in _SEEDS
        },
    },
    _judge_neighbour,
)


# --- oversubscription ----------------------------------------------------------------------------

_SPINES = (4, 2, 1)
_OPS = {
    "all-to-all": "traffic={kind: collective, op: all-to-all, bytes: 4MB}",
    "ring all-reduce": "traffic={kind: collective, op: all-reduce, algorithm: ring, bytes: 8MB}",
}


def _judge_oversubscription(found: Runs) -> Judgement:
    slower = {
        op: {4.0 / s: _jct(found[f"{op}, {s}"]) / _jct(found[f"{op}, 4"]) for s in _SPINES}
        for op in _OPS
    }
    most = {op: values[4.0] for op, values in slower.items()}
    parts = " and ".join(f"{op} {_times(value)} as long" for op, value in most.items())
    return Judgement(
        Verdict.of(value > 2 for value in most.values()),
        f"Four to one, {parts} as without oversubscription. A ring whose neighbours are neighbours "
        "in the fabric sends one flow up from each leaf, which fits through one spine; what "
        "crosses all at once does not.",
        {f"{op}, {ratio:g} to 1": v for op, each in slower.items() for ratio, v in each.items()},
        lines(
            "Completion time by oversubscription",
            ("hosts' rate to uplinks' rate, to 1", PLAIN),
            ("times as long as non-blocking", PLAIN),
            slower,
        ),
    )


_OVERSUBSCRIPTION = Claim(
    "oversubscription",
    "AI traffic needs a non-blocking Clos: oversubscribed, collectives slow down.",
    "Pingdo: GPU fabric design. https://pingdo.net/ai-infrastructure/gpu-fabric-design/ "
    "(all-reduce is said to need a non-blocking fabric).",
    "Sixteen hosts below four leaves, with four, two and one spine; spray and selective recovery, "
    "so that collisions play no part.",
    {
        f"{op}, {spines}": Case("oversubscription", (traffic, f"topology.spines={spines}"))
        for op, traffic in _OPS.items()
        for spines in _SPINES
    },
    _judge_oversubscription,
)


# --- rails ---------------------------------------------------------------------------------------

_JOBS: dict[str, tuple[str, ...]] = {  # with what makes of each one job on sixteen hosts
    "rails": (),
    "training-llama": (),
    "training-gpt3": (
        "topology.servers=4",
        "traffic={kind: training, model: gpt3-175b, scale: 0.0001, placement: rail-aligned, "
        "parallelism: {tensor: 4, pipeline: 2, data: 2}, batch: {sequences: 16}, node: {gpus: 4}}",
    ),
}
_PLACEMENT_SEEDS = (1, 2, 3)


def _judge_rails(found: Runs) -> Judgement:
    faster, spine_share = dict[str, float](), dict[str, float]()
    for job in _JOBS:
        anywhere = [found[f"{job}, random, {seed}"] for seed in _PLACEMENT_SEEDS]
        aligned = found[f"{job}, aligned"]
        faster[job] = mean(map(_jct, anywhere)) / _jct(aligned)
        spine_share[job] = _through_spines(aligned)
    parts = ", ".join(f"{job} {_times(value)}" for job, value in faster.items())
    pure = [job for job, share in spine_share.items() if share == 0]
    return Judgement(
        Verdict.of(faster[job] > 1.2 and job in pure for job in _JOBS),
        f"Placed at random, jobs take longer than aligned to rails: {parts}. "
        + (f"Aligned, no packet of {' and '.join(pure)} crosses a spine." if pure else ""),
        {
            **{f"{job}: slower at random": value for job, value in faster.items()},
            **{f"{job}: through spines": value for job, value in spine_share.items()},
        },
        bars("How many times longer at random", faster, lambda value: f"{number(value)} x"),
    )


def _through_spines(found: Found) -> float:
    """The bytes that spines receive, for each byte that hosts send."""
    up = sum(carried for name, carried in found.links.items() if ">spine" in name)
    sent = sum(carried for name, carried in found.links.items() if name.startswith("h"))
    return up / sent if sent else 0.0


_RAILS = Claim(
    "rails",
    "Rail-optimised placement keeps collectives off the spines and jobs fast.",
    "Pingdo: rail-optimised GPU networking. "
    "https://pingdo.net/ai-infrastructure/rail-optimized-gpu-networking/ (all-reduce within rails "
    "minimises what crosses the spines).",
    "Sixteen GPUs in four servers on a rail-optimised fabric at 100 Gb/s: three training jobs, "
    "aligned to rails and placed at random with three seeds.",
    {
        **{f"{job}, aligned": Case(job, alone) for job, alone in _JOBS.items()},
        **{
            f"{job}, random, {seed}": Case(
                job, (*alone, "traffic.placement=random", f"seed={seed}")
            )
            for job, alone in _JOBS.items()
            for seed in _PLACEMENT_SEEDS
        },
    },
    _judge_rails,
)


FABRIC_CLAIMS = (
    _PRODUCTIVITY, _SLOW_LINK, _INCAST, _ECMP, _VICTIM, _PFC_ECN, _NO_PFC,
    _NEIGHBOUR, _OVERSUBSCRIPTION, _RAILS,
)  # fmt: skip
