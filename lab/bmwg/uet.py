"""Section 6: Ultra Ethernet Transport beside RoCEv2, on the same fabric."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from statistics import fmean
from typing import Any

from lab.bmwg.balancing import BALANCE, balance, elephants, goodput_gbps
from lab.bmwg.bench import KB, KIB, MB, MIB, Bench, in_words
from lab.bmwg.case import Asks, Found, together
from lab.bmwg.collectives import FITTED, figures, fitted
from lab.bmwg.collectives import case as collective_case
from lab.bmwg.congestion import CONVERGENCE, WINDOWED, convergence, incast
from lab.bmwg.outcome import Outcome, Plot, Row, Table
from lab.bmwg.rdma import Offer, aggregate_gbps, fitting, search
from traffic.measures import percentile

_SERVICES: Mapping[str, tuple[tuple[tuple[str, Any], ...], str]] = {
    "UET RUD": ((("kind", "uet"),), ""),
    "UET ROD (one way)": ((("kind", "uet"), ("entropy", "single")), "ecmp"),
    "RoCEv2 RC": ((("kind", "roce"),), "ecmp"),
}
"""By name: the transport, and how switches balance where that is part of it."""
_NOT_THERE = "UET RUDI and UUD, and RoCEv2 UC: adapters have none of these services"
_ROD = (
    "ROD is RUD with a single entropy value: packets of a PDC keep to one way and so come in "
    "order; where one is lost, adapters do not go back as ROD would."
)
_NSCC = {"kind": "uet", "cc": "nscc"}
_DCQCN = {"kind": "roce", "cc": "dcqcn"}


# --- 6.1 -----------------------------------------------------------------------------------------


def throughput(bench: Bench) -> Asks[Outcome]:
    """The binary search of section 5.1, by service."""
    extent = bench.extent
    services = {transport: name for name, (transport, _) in _SERVICES.items()}
    offers, left_out = fitting(
        bench,
        [
            Offer(size, count, is_both, transport, lb, "6.1")
            for transport, lb in _SERVICES.values()
            for size in extent.some((MIB, 4 * MIB), (256 * KIB,))
            for count in extent.some((1, 4, 16, 32), (4,))
            for is_both in extent.some((False, True), (False,))
        ],
    )
    seeds = range(1, extent.repeats(3, 1) + 1)
    sought = yield from together([search(bench, offer, s) for offer in offers for s in seeds])
    hosts = len(bench.scenario.fabric().hosts)
    rows = []
    for at, offer in enumerate(offers):
        trials = sought[at * len(seeds) : (at + 1) * len(seeds)]
        got = [aggregate_gbps(each.found) if each.found else 0.0 for each in trials]
        line = bench.rate_gbps * len(offer.pairs(hosts))
        rows.append(
            Row(
                {"service": services[offer.transport], "message": in_words(offer.size),
                 "PDCs or QPs": str(offer.qps),
                 "direction": "both" if offer.is_both_ways else "one"},
                {"rate sustained": [each.share for each in trials], "aggregate goodput": got,
                 "efficiency": [each / line for each in got]},
                [each.case for each in trials if each.case],
            )
        )  # fmt: skip
    return Outcome(
        [Table("Throughput by service", {
            "rate sustained": "share", "aggregate goodput": "gbps", "efficiency": "share"}, rows)],
        "aggregate goodput",
        left_out=(*left_out, _NOT_THERE,
                  "connection set-up of RoCEv2: queue pairs are there when a run begins"),
        deviations=(_ROD, "Efficiency is payload by line rate, as the template's column says."),
    )  # fmt: skip


# --- 6.2 -----------------------------------------------------------------------------------------


def latency(bench: Bench) -> Asks[Outcome]:
    """First and later messages of a PDC, in an idle fabric."""
    sizes = bench.extent.some((64, 4 * KIB, 64 * KIB, MIB), (64, 64 * KIB))
    count = 1000 if not bench.extent.is_quick else 100

    def row(name: str, size: int) -> Asks[Row]:
        transport, lb = _SERVICES[name]
        half = len(bench.scenario.fabric().hosts) // 2 + 1
        one = bench.case(
            "6.2",
            {"kind": "flows", "messages": count, "rest_ns": "5us",
             "flows": [{"src": "h1", "dst": f"h{half}", "bytes": size}]},
            transport={"queue_pairs": 1, **dict(transport)},
            lb={"policy": lb} if lb else {},
        )  # fmt: skip
        (found,) = yield [one]
        times = [float(flow.fct_ns) for flow in found.flows if flow.fct_ns is not None]
        return Row(
            {"service": name, "message": in_words(size), "load": "idle"},
            {"first message": times[:1], "P50": [percentile(times[1:], 50)],
             "P99": [percentile(times[1:], 99)], "max": [max(times[1:])]},
            [one],
        )  # fmt: skip

    rows = yield from together([row(name, size) for name in _SERVICES for size in sizes])
    return Outcome(
        [Table("Latency by service",
               dict.fromkeys(("first message", "P50", "P99", "max"), "ns"), rows)],
        "P50",
        left_out=(_NOT_THERE,),
        deviations=(_ROD,),
    )  # fmt: skip


# --- 6.3 -----------------------------------------------------------------------------------------


def spray(bench: Bench) -> Asks[Outcome]:
    """Five configurations, by the number of ways."""
    rud, rod = {"kind": "uet"}, {"kind": "uet", "entropy": "single"}
    roce = {"kind": "roce", "recovery": "selective"}
    configurations = {
        "UET RUD + packet spray": (rud, "ecmp"),
        "UET ROD + packet spray": (rod, "spray"),
        "RoCEv2 RC + packet spray": (roce, "spray"),
        "RoCEv2 RC + ECMP (baseline)": (roce, "ecmp"),
        "UET RUD + DLB/flowlet": (rod, "dlb"),
    }
    paths = bench.extent.some((4, 8, 16, 32), (4,))
    each = int(bench.device["topology"].get("hosts_per_leaf", 2))

    def row(name: str, ways: int) -> Asks[Row]:
        transport, policy = configurations[name]
        topology = dict(bench.device["topology"])
        if topology.get("kind", "leaf-spine") == "leaf-spine":
            topology |= {"kind": "leaf-spine", "spines": ways, "hosts_per_leaf": each}
        cases = [
            elephants(bench, "6.3", policy, seed, transport=transport, topology=topology)
            for seed in range(1, bench.extent.repeats(20, 2) + 1)
        ]
        found = yield cases
        return Row({"balancing": name, "ways": str(ways)}, balance(bench, found), cases)

    rows = yield from together([row(name, ways) for name in configurations for ways in paths])
    return Outcome(
        [Table("Spraying", BALANCE, rows)],
        "goodput by line rate",
        deviations=(
            "UET sprays by its entropy values, under switches that hash (ECMP); in the second and "
            "third configuration switches spray. RUD under DLB has a single entropy value, or "
            "there would be no flowlets.",
            _ROD,
        ),
    )


# --- 6.4 -----------------------------------------------------------------------------------------


def congestion(bench: Bench) -> Asks[Outcome]:
    """Incast and convergence of NSCC beside DCQCN, with PFC and without."""
    ratios = bench.extent.some((2, 4, 8, 16, 32, 64), (8,))
    tried: Mapping[str, tuple[Mapping[str, Any], Mapping[str, Any]]] = {
        "UET NSCC, no PFC": (_NSCC, {"pfc": {"enabled": False}}),
        "UET NSCC, trimming, no PFC": (
            _NSCC, {"pfc": {"enabled": False}, "trim": {"enabled": True}}),
        "UET RCCC, no PFC": ({"kind": "uet", "cc": "rccc"}, {"pfc": {"enabled": False}}),
        "RoCEv2 DCQCN, PFC": (_DCQCN, {"pfc": {"enabled": True}}),
    }  # fmt: skip

    def row(senders: int, name: str) -> Asks[Row]:
        transport, changes = tried[name]
        one = incast(bench, "6.4", senders, 1, transport=dict(transport), **changes)
        (found,) = yield [one]
        sent = max(1.0, found.figure("roce.data_packets"))
        queue = max((use.max_queue_bytes or 0 for use in found.result.links), default=0)
        failed = found.result.flows.failed
        return Row(
            {"senders": f"{senders}:1", "transport": name},
            {"throughput by line rate": [goodput_gbps(found) / bench.rate_gbps],
             "longest queue": [float(queue)], "pause frames": [found.figure("pfc.xoff_frames")],
             "dropped": [found.figure("drops.total")],
             "sent again": [found.figure("roce.retransmitted_packets") / sent],
             "messages lost": [float(failed)]},
            [one],
        )  # fmt: skip

    incasts = yield from together([row(n, name) for n in ratios for name in tried])
    m = bench.extent.some((4, 16, 64), (4,))
    settled = yield from together([
        convergence(bench, "6.4", flows, name, transport=transport, **changes)
        for flows in m
        for name, transport, changes in (
            ("UET NSCC, no PFC", _NSCC, {"pfc": {"enabled": False}}),
            ("RoCEv2 DCQCN, PFC", _DCQCN, {"pfc": {"enabled": True}}),
        )
    ])  # fmt: skip
    return Outcome(
        [
            Table("Incast", {
                "throughput by line rate": "share", "longest queue": "bytes",
                "pause frames": "count", "dropped": "count", "sent again": "share",
                "messages lost": "count"}, incasts),
            Table("Convergence", CONVERGENCE, settled),
        ],
        "throughput by line rate",
        left_out=("receiver credit utilization: RCCC's grants are not counted",),
        deviations=(
            WINDOWED,
            "Application-visible loss is a message that never arrives; packets that are dropped "
            "and sent again are told beside it.",
        ),
    )  # fmt: skip


# --- 6.5 -----------------------------------------------------------------------------------------


def links(bench: Bench) -> Asks[Outcome]:
    """Link-level retry, trimming, and credits in place of pauses."""
    retry = yield from _retry(bench)
    trimming = yield from _trimming(bench)
    credit = yield from _credit(bench)
    return Outcome(
        [
            Table("Link-level retry", {
                "message P50": "ns", "message P99": "ns", "sent again by hosts": "count",
                "sent again by links": "count"}, retry),
            Table("Trimming under 2:1", {
                "message P50": "ns", "message P99": "ns", "cut": "count", "bytes cut off": "bytes",
                "dropped": "count", "sent again": "count"}, trimming),
            Table(f"Credits or pauses, {_incast_of(bench)}:1", {
                "victim's throughput": "share", "victim held up": "times", "pause frames": "count",
                "links held up": "count", "waited": "ns", "throughput by line rate": "share"},
                credit),
        ],
        "message P99",
        deviations=(
            "Frames are spoilt at random on one link, one in a thousand, under a permutation that "
            "loads the fabric.",
            "All three are in software, as everything here: what is compared is what they do.",
            "Head-of-line blocking is told by a victim, a flow from a leaf of the incast's senders "
            "to a host beside its receiver that nobody else sends to: its time by its time alone.",
        ),
        left_out=("retry latency of a single frame: links tell how many they sent again, and the "
                  "messages' times tell what it cost",),
    )  # fmt: skip


def _times(found: Found) -> list[float]:
    return [float(flow.fct_ns) for flow in found.flows if flow.fct_ns is not None]


def _retry(bench: Bench) -> Asks[list[Row]]:
    fault = [{"at_ns": 0, "action": "corrupt", "link": "leaf1-spine1", "rate": 0.001}]
    size = (64 if bench.extent.is_quick else 256) * KB
    tried = {"none": {"llr": "none"}, "go-back-n": {"llr": "go-back-n"},
             "selective": {"llr": "selective"}}  # fmt: skip
    cases = {
        name: bench.case("6.5", {"kind": "permutation", "bytes": size, "messages": 32}, link=link,
                         faults=fault, lb={"policy": "spray"})
        for name, link in tried.items()
    }  # fmt: skip
    found = yield list(cases.values())
    rows = []
    for (name, case), each in zip(cases.items(), found, strict=True):
        times = _times(each)
        llr = each.result.llr
        rows.append(
            Row({"LLR": name},
                {"message P50": [percentile(times, 50)], "message P99": [percentile(times, 99)],
                 "sent again by hosts": [each.figure("roce.retransmitted_packets")],
                 "sent again by links": [float(llr.replayed_frames if llr else 0)]}, [case])
        )  # fmt: skip
    return rows


def _trimming(bench: Bench) -> Asks[list[Row]]:
    size = (2 if bench.extent.is_quick else 16) * MB
    cases = {
        name: bench.case(
            "6.5",
            {"kind": "incast", "receiver": "h1", "senders": 2, "bytes": size},
            buffer={"bytes": MB}, pfc={"enabled": False}, transport=_NSCC, trim={"enabled": on},
        )
        for name, on in (("trimming", True), ("drops", False))
    }  # fmt: skip
    found = yield list(cases.values())
    rows = []
    for (name, case), each in zip(cases.items(), found, strict=True):
        times, trim = _times(each), each.result.trim
        rows.append(
            Row({"when full": name},
                {"message P50": [percentile(times, 50)] if times else [],
                 "message P99": [percentile(times, 99)] if times else [],
                 "cut": [float(trim.cut_packets if trim else 0)],
                 "bytes cut off": [float(trim.cut_bytes if trim else 0)],
                 "dropped": [each.figure("drops.total")],
                 "sent again": [each.figure("roce.retransmitted_packets")]}, [case])
        )  # fmt: skip
    return rows


def _incast_of(bench: Bench) -> int:
    """How many send to one: the draft's 32, or fewer."""
    return 8 if bench.extent.is_quick else 32


def _credit(bench: Bench) -> Asks[list[Row]]:
    senders = _incast_of(bench)
    topology = bench.grown(senders + 3)
    last = senders + 3
    # The victim goes from the last of the incast's senders' leaves to a host of its own.
    flows = [{"src": f"h{n + 2}", "dst": "h1", "bytes": 16 * MB // senders}
             for n in range(senders)]  # fmt: skip
    victim = {"src": f"h{last - 1}", "dst": "h2", "bytes": MB}
    tried = {"PFC": {"cbfc": False}, "CBFC": {"cbfc": True}}
    cases = [
        bench.case("6.5", {"kind": "flows", "flows": traffic}, topology=topology, link=link,
                   buffer={"bytes": 8 * MB}, pfc={"enabled": True}, transport={"cc": "none"})
        for link in tried.values()
        for traffic in ([*flows, victim], [victim])
    ]  # fmt: skip
    found = yield cases
    rows = []
    for at, name in enumerate(tried):
        both, alone = found[2 * at : 2 * at + 2]
        took, least = (_victim(each, victim) for each in (both, alone))
        credits = both.result.credits
        held = credits.by_link if credits else both.result.pfc.by_link
        rows.append(
            Row({"held back by": name},
                {"victim's throughput": [8 * MB / took / bench.rate_gbps],
                 "victim held up": [took / least],
                 "pause frames": [both.figure("pfc.xoff_frames")],
                 "links held up": [float(len(held))],
                 "waited": [float(credits.waited_ns if credits else both.result.pfc.paused_ns)],
                 "throughput by line rate": [goodput_gbps(both, "h1") / bench.rate_gbps]},
                cases[2 * at : 2 * at + 2])
        )  # fmt: skip
    return rows


def _victim(found: Found, victim: Mapping[str, Any]) -> float:
    return float(
        next(
            flow.fct_ns
            for flow in found.flows
            if (flow.src, flow.dst) == (victim["src"], victim["dst"]) and flow.fct_ns is not None
        )
    )


# --- 6.6 -----------------------------------------------------------------------------------------


def collectives(bench: Bench) -> Asks[Outcome]:
    """The collectives of section 9 over UET, beside RoCEv2."""
    extent = bench.extent
    wanted = extent.repeats(100, 5)
    tried = {
        "UET RUD": ({"kind": "uet"}, "ecmp"),
        "UET ROD": ({"kind": "uet", "entropy": "single"}, "ecmp"),
        "RoCEv2 RC": ({"kind": "roce"}, "ecmp"),
    }
    cells = [
        (op, ranks, *fitted(bench, op, ranks, MB if extent.is_quick else 64 * MB, wanted))
        for op in ("all-reduce", "all-to-all", "all-gather")
        for ranks in extent.some((16, 64), (16,))
    ]

    def row(op: str, ranks: int, size: int, repeat: int) -> Asks[Row]:
        cases = [
            collective_case(bench, "6.6", op, ranks, size, repeat, transport=transport,
                            lb={"policy": policy})
            for transport, policy in tried.values()
        ]  # fmt: skip
        found = yield cases
        bus: dict[str, Sequence[float]] = {
            f"{name} BusBW": figures(each, op, ranks, size, bench.rate_gbps)["BusBW"]
            for name, each in zip(tried, found, strict=True)
        }
        means = [fmean(values) if values else 0.0 for values in bus.values()]
        gain = [means[0] / means[-1] - 1] if means[-1] else []
        return Row({"collective": op, "message": in_words(size), "N": str(ranks),
                    "iterations": str(repeat)},
                   {**bus, "RUD to RoCEv2": gain}, cases)  # fmt: skip

    rows = yield from together([row(*cell) for cell in cells])
    return Outcome(
        [Table("Collectives by transport", {
            **{f"{name} BusBW": "gbps" for name in tried}, "RUD to RoCEv2": "change"}, rows)],
        "UET RUD BusBW",
        deviations=("Group-key encryption (TSS) is not there: it is inactive.", FITTED, _ROD),
        left_out=("1 GB of 128 and 512 accelerators",),
    )  # fmt: skip


# --- 6.7 -----------------------------------------------------------------------------------------


def pdcs(bench: Bench) -> Asks[Outcome]:
    """Ever more PDCs between two hosts, and the first byte of one."""
    counts = bench.extent.some((1, 2, 4, 8, 16, 32, 64), (1, 8, 64))
    half = len(bench.scenario.fabric().hosts) // 2 + 1
    size = MB if bench.extent.is_quick else 16 * MB

    def row(name: str, count: int) -> Asks[Row]:
        transport, lb = _SERVICES[name]
        one = bench.case(
            "6.7",
            {"kind": "flows", "flows": [
                {"src": "h1", "dst": f"h{half}", "bytes": size // count} for _ in range(count)]},
            transport={"queue_pairs": count, **dict(transport)},
            lb={"policy": lb} if lb else {},
        )  # fmt: skip
        (found,) = yield [one]
        return Row(
            {"service": name, "PDCs or QPs": str(count)},
            {"throughput by line rate": [goodput_gbps(found) / bench.rate_gbps]},
            [one],
        )

    rows = yield from together([
        row(name, count) for name in ("UET RUD", "RoCEv2 RC") for count in counts
    ])  # fmt: skip
    plot = {
        name: {float(row.of["PDCs or QPs"]): row.mean("throughput by line rate") or 0.0
               for row in rows if row.of["service"] == name}
        for name in ("UET RUD", "RoCEv2 RC")
    }  # fmt: skip
    return Outcome(
        [Table("Concurrent contexts", {"throughput by line rate": "share"}, rows)],
        "throughput by line rate",
        [Plot("Throughput of two hosts by contexts", ("contexts", "count"),
              ("by line rate", "share"), plot, is_log=True)],
        left_out=(
            "PDC establishment rate, and 100 to 100,000 of them: it is a limit of adapters, as "
            "the draft notes, and those here have none; 64 contexts between two hosts are most",
        ),
    )  # fmt: skip
