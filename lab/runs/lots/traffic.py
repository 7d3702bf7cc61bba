"""Traffic by lot: every kind that takes no file of others, as much of it as a few links carry in
some microseconds.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from itertools import product
from math import prod
from pathlib import Path

from lab.runs.lots.lot import Lot, Section
from params.data import Data
from traffic.collectives import CHUNK_BYTES, IN_NETWORK
from traffic.collectives.algorithms import ALGORITHMS
from traffic.collectives.nccl import NcclProtocol
from traffic.collectives.schedule import LOSSLESS
from traffic.patterns.sizes import SIZES

PLACEMENTS = "packed", "spread", "random", "topology-aware"
PRECISIONS = "fp8", "bf16", "fp16", "fp32"


class Crowd(Data):
    """Who there is to send, and how much."""

    hosts: int
    gbps: float  # of a host
    kb: int  # that a message may have
    folder: Path | None  # for what is read from files
    rails: int = 0  # the leaves, where each is a rail
    part: int = 0  # of the traffic

    @property
    def names(self) -> list[str]:
        """The hosts."""
        return [f"h{number}" for number in range(1, self.hosts + 1)]


def traffic(lot: Lot, crowd: Crowd, classes: list[int]) -> Section:
    """What all of these classes carry, as one or several kinds."""
    if len(classes) == 1 and lot.chance(0.1):
        return _all_pairs(lot, crowd) | _class(lot, classes[0])
    if len(classes) == 1 and lot.chance(0.1):
        return _cluster(lot, crowd, classes[0])
    found: list[Section] = []
    for priority in classes:
        found.append(part(lot, crowd, priority, beside=found))
    if len(found) == 1 and lot.chance(0.5):
        return found[0]
    return {"kind": "mix", "parts": found}


def part(lot: Lot, crowd: Crowd, priority: int, beside: list[Section]) -> Section:
    """Traffic of one class; of jobs, which want hosts of their own, only one."""
    has_job = any(other["kind"] in _JOBS for other in beside)
    crowd = replace(crowd, part=len(beside))
    files = _FILES if crowd.folder else {}
    kind = lot.one([*_PATTERNS, *files, "incast", "poisson", *(() if has_job else _JOBS)])
    return {"kind": kind, **(_PATTERNS | _FILES | _JOBS)[kind](lot, crowd), **_class(lot, priority)}


def _class(lot: Lot, priority: int) -> Section:
    return {"priority": priority, **lot.maybe(0.1, ecn_capable=lot.chance(0.5))}


def _size(lot: Lot, crowd: Crowd) -> int:
    return 1000 * lot.upto(crowd.kb, max(1, crowd.kb // 4))


def _all_pairs(lot: Lot, crowd: Crowd) -> Section:
    return {"kind": "all-pairs", "bytes": max(1, _size(lot, crowd) // crowd.hosts)}


def _messages(lot: Lot) -> Section:
    return lot.maybe(0.3, messages=lot.upto(4))


def exchange(lot: Lot, crowd: Crowd, ranks: int) -> Section:
    """A collective among so many."""
    op = lot.one(list(ALGORITHMS))
    found: Section = {"op": op}
    names = [name for name in ALGORITHMS[op] if name != IN_NETWORK]  # drawn last: `in_network`
    if ranks & (ranks - 1):  # halves do not come out even
        names = [name for name in names if name not in ("halving", "doubling")]
    algorithm = lot.one(names)
    if op != "barrier":
        found |= {"bytes": 64 * _size(lot, crowd) // 16, **lot.maybe(0.2, channels=lot.upto(2))}
    if lot.chance(0.7):
        found["algorithm"] = algorithm
    else:
        algorithm = names[0]
    if op == "broadcast":
        found |= lot.maybe(0.5, root=lot.upto(ranks - 1, 0))
    if op == "broadcast" or algorithm == "double-binary-tree":
        found |= lot.maybe(0.5, pieces=lot.upto(8))
    if algorithm in ("hierarchical", "ring", "double-binary-tree") and op != "broadcast":
        sizes = [size for size in range(1, ranks + 1) if ranks % size == 0]
        found |= lot.maybe(0.5, node_size=lot.one(sizes))
    if op != "barrier":
        found |= lot.maybe(0.2, protocol=lot.one(tuple(NcclProtocol)).value)
    return found


def in_network(lot: Lot, content: Section, *, has_one_port: bool) -> Section:
    """Now and then a collective that switches carry out, where hosts would, or all speak to all."""
    spec = content["traffic"]
    link = content["link"]
    fits = link["mtu"] >= CHUNK_BYTES and not link.get("cbfc") and "overlay" not in content
    fits = fits and has_one_port
    if not fits:
        _by_hosts(spec)
    is_collective = spec.get("kind") == "collective" and spec["op"] != "all-to-all"
    if not fits or not (is_collective or spec.get("kind") == "all-pairs") or lot.chance(0.5):
        return {}
    if not is_collective:
        op = lot.one([op for op in ALGORITHMS if IN_NETWORK in ALGORITHMS[op]])
        size = {} if op == "barrier" else {"bytes": 1000 * lot.wide(1, 200)}
        spec = {"kind": "collective", "op": op, **size, "priority": spec.get("priority", LOSSLESS)}
    kept = {key: value for key, value in spec.items() if key not in ("node_size", "protocol")}
    return {
        "traffic": kept | {"algorithm": IN_NETWORK},
        "inc": {
            **lot.maybe(0.7, slots=lot.wide(1, 512)),
            **lot.maybe(0.4, rto_ns=lot.wide(10_000, 1_000_000)),
            **lot.maybe(0.4, tries=lot.upto(8)),
            **lot.maybe(0.4, numbers="floats"),
        },
    }


def _by_hosts(spec: Section) -> None:
    """Jobs' collectives that switches cannot carry out here go round."""
    for part in spec.get("parts", [spec]):
        algorithms = part.get("algorithms", {})
        algorithms.update({what: "ring" for what, how in algorithms.items() if how == IN_NETWORK})


def _collective(lot: Lot, crowd: Crowd) -> Section:
    count = crowd.hosts
    some: Section = {}
    if crowd.hosts > 2 and lot.chance(0.4):
        count = lot.upto(crowd.hosts, 2)
        some = {"ranks": lot.some(crowd.names, count)}
    return exchange(lot, crowd, count) | some | lot.maybe(0.3, repeat=lot.upto(3))


def _incast(lot: Lot, crowd: Crowd) -> Section:
    return {
        "bytes": _size(lot, crowd),
        **lot.maybe(0.7, senders=lot.upto(min(crowd.hosts - 1, 16))),
        **lot.maybe(0.6, receiver=lot.one(crowd.names)),
        **_messages(lot),
    }


def _flows(lot: Lot, crowd: Crowd) -> Section:
    named = []
    for _ in range(lot.upto(2 * crowd.hosts)):
        src, dst = lot.some(crowd.names, 2)
        at = lot.maybe(0.3, at_ns=lot.wide(1, 50_000))
        named.append({"src": src, "dst": dst, "bytes": lot.upto(1000 * crowd.kb), **at})
    messages = lot.maybe(0.3, messages=lot.upto(4), rest_ns=lot.wide(1, 20_000))
    return {"flows": named, **lot.maybe(0.1, name="named"), **messages}


def _permutation(lot: Lot, crowd: Crowd) -> Section:
    return {"bytes": _size(lot, crowd), **_messages(lot)}


def _elephants(lot: Lot, crowd: Crowd) -> Section:
    return {
        "bytes": _size(lot, crowd), **lot.maybe(0.4, flows=lot.upto(crowd.hosts)),
        **lot.maybe(0.5, source_ports=lot.upto(4)), **_messages(lot),
    }  # fmt: skip


def _arrivals(lot: Lot, gbps: float) -> Section:
    """Flows at random for as long as some should come."""
    sizes = lot.one(("storage", "hadoop", "websearch", "storage"))
    load = lot.share(0.1)
    bytes_ns = load * gbps / 8
    lasts_ns = round(lot.upto(30, 12) * SIZES[sizes].mean / bytes_ns)
    return {"load": load, "duration_ns": max(lasts_ns, 1), "sizes": sizes}


def _poisson(lot: Lot, crowd: Crowd) -> Section:
    return _arrivals(lot, crowd.gbps * crowd.hosts)


def _north_south(lot: Lot, crowd: Crowd) -> Section:
    gates = lot.upto(min(2, crowd.hosts - 1))
    found = _arrivals(lot, crowd.gbps * gates)
    return found | {"gateways": lot.some(crowd.names, gates)}


def _storage(lot: Lot, crowd: Crowd) -> Section:
    count = lot.upto(max(1, crowd.hosts // 2))
    servers, rest = lot.some(crowd.names, count), crowd.names
    clients = [name for name in rest if name not in servers]
    use = lot.one((("save",), ("load",), ("save", "load")))
    return {
        "servers": servers,
        **lot.maybe(0.3, clients=lot.some(clients, lot.upto(len(clients)))),
        **{key: _size(lot, crowd) for key in use},
        **lot.maybe(0.3, stripes=lot.upto(count)),
        **lot.maybe(0.3, at_ns=lot.wide(1, 20_000)),
        **lot.maybe(0.3, times=lot.upto(3), every_ns=lot.wide(100, 50_000)),
    }


def _rows(lot: Lot, crowd: Crowd) -> list[tuple[int, int, int, int]]:
    """When, from where, to where, how much."""
    pairs = [lot.some(range(crowd.hosts), 2) for _ in range(lot.upto(2 * crowd.hosts))]
    return [(lot.wide(1, 30_000), *pair, lot.upto(1000 * crowd.kb)) for pair in pairs]  # type: ignore[misc]


def _file(lot: Lot, crowd: Crowd, ending: str, text: str) -> Section:
    assert crowd.folder
    path = crowd.folder / f"traffic-{lot.seed}-{crowd.part}.{ending}"
    path.write_text(text)
    return {"file": str(path), **lot.maybe(0.3, hosts=lot.some(crowd.names, crowd.hosts))}


def _table(lot: Lot, crowd: Crowd) -> Section:
    lines = [",".join(map(str, row)) for row in _rows(lot, crowd)]
    return _file(lot, crowd, "csv", "\n".join(["start_ns,src,dst,bytes", *lines, ""]))


def _htsim(lot: Lot, crowd: Crowd) -> Section:
    rows = _rows(lot, crowd)
    ends = lot.maybe(0.3, bytes=_size(lot, crowd))
    if ends:  # the first is one without an end, but for what is said here
        rows[0] = (*rows[0][:3], 0)
    lines = [f"{src}->{dst} start {1000 * at} size {size}" for at, src, dst, size in rows]
    head = [f"Nodes {crowd.hosts}", f"Connections {len(rows)}"]
    return _file(lot, crowd, "cm", "\n".join([*head, *lines, ""])) | ends


def _goal(lot: Lot, crowd: Crowd) -> Section:
    ranks: list[list[str]] = [[] for _ in range(crowd.hosts)]
    for tag, (at, src, dst, size) in enumerate(_rows(lot, crowd)):
        ranks[src] += [f"w{tag}: calc {at}", f"s{tag}: send {size}b to {dst} tag {tag}"]
        ranks[src].append(f"s{tag} requires w{tag}")
        ranks[dst].append(f"r{tag}: recv {size}b from {src} tag {tag}")
    goals = (["rank " + str(at) + " {", *lines, "}"] for at, lines in enumerate(ranks))
    text = [f"num_ranks {crowd.hosts}", *(line for lines in goals for line in lines), ""]
    return _file(lot, crowd, "goal", "\n".join(text))


# --- jobs ----------------------------------------------------------------------------------------


def _job(lot: Lot, crowd: Crowd, ranks: int) -> Section:
    slow = {"rank": lot.upto(ranks) - 1, "slowdown": lot.share(1, 4)}
    narrow = {"rank": lot.upto(ranks) - 1, "rate_share": lot.share(0.05)}
    return {
        **lot.maybe(0.4, steps=lot.upto(3)),
        **lot.maybe(0.5, placement=lot.one(_placements(crowd, ranks))),
        **lot.maybe(0.2, stragglers=[slow]), **lot.maybe(0.2, slow_links=[narrow]),
        **lot.maybe(0.1, name=f"job-{lot.seed}"),
    }  # fmt: skip


def _placements(crowd: Crowd, ranks: int) -> tuple[str, ...]:
    by_rail = crowd.rails and ranks % crowd.rails == 0
    return (*PLACEMENTS, *(("rail-aligned",) if by_rail else ()))


def _simple(lot: Lot, crowd: Crowd) -> Section:
    count = lot.upto(crowd.hosts, 2)
    is_whole = lot.chance(0.3)
    ranks = crowd.hosts if is_whole else count
    what = exchange(lot, crowd, ranks)
    buckets = lot.maybe(0.3, buckets=lot.upto(3), overlap=lot.chance(0.5))
    return {
        **_job(lot, crowd, ranks), **({} if is_whole else {"ranks": ranks}),
        "compute_ns": lot.wide(1, 20_000), "collective": what, **buckets,
        **lot.maybe(0.3, barrier=lot.chance(0.5)),
    }  # fmt: skip


def _training(lot: Lot, crowd: Crowd) -> Section:
    splits = [split for split in product((1, 2), repeat=3) if 1 < prod(split) <= crowd.hosts]
    tensor, pipeline, data = lot.one(splits)
    ranks = tensor * pipeline * data
    parameters = 1000 * lot.upto(8 * crowd.kb)
    has_experts = lot.chance(0.3)
    experts = {"count": 4, "active": lot.upto(2), "parameters": parameters // 2}
    split = {"tensor": tensor, "pipeline": pipeline, "data": data}
    if has_experts and data > 1 and lot.chance(0.5):
        split["expert"] = data
    chosen = {
        "tensor": lot.one(list(ALGORITHMS["all-reduce"])),
        "data": lot.one(list(ALGORITHMS["all-reduce"])),
        "expert": lot.one(list(ALGORITHMS["all-to-all"])),
        "channels": lot.upto(2),
    }
    return {
        **_job(lot, crowd, ranks),
        "model": {
            "name": "drawn", "parameters": parameters, "layers": 2 * pipeline, "hidden": 64,
            "heads": 4, "sequence": lot.one((32, 64)),
            **lot.maybe(0.5, precision=lot.one(PRECISIONS)),
            **lot.maybe(0.5, gradient_precision=lot.one(PRECISIONS)),
            **({"experts": experts} if has_experts else {}),
        },
        "parallelism": split,
        "batch": {"sequences": 2 * data, **lot.maybe(0.3, micro=2)},
        **lot.maybe(0.3, gpu={"tflops": lot.upto(1000), "efficiency": lot.share(0.1)}),
        **lot.maybe(0.3, node={"gpus": lot.one((1, ranks)), "gbps": lot.upto(5000, 100)}),
        **lot.maybe(0.3, algorithms=chosen),
        **lot.maybe(0.3, buckets=lot.upto(4)), **lot.maybe(0.3, slices=lot.upto(2)),
        **lot.maybe(0.3, overlap=lot.chance(0.5)), **lot.maybe(0.3, recompute=lot.chance(0.5)),
        **lot.maybe(0.3, sharded_optimizer=lot.chance(0.5)),
        **lot.maybe(0.3, clip_gradients=lot.chance(0.5)),
        **lot.maybe(0.3, scale=lot.share(0.2)),
    }  # fmt: skip


def _experts(lot: Lot, crowd: Crowd) -> Section:
    ranks = lot.upto(crowd.hosts, 2)
    each = lot.upto(2)
    tokens = max(1, 1000 * crowd.kb // 4096 // 4)
    return {
        **_job(lot, crowd, ranks),
        "ranks": ranks, "tokens": tokens, "compute_ns": lot.wide(1, 9000),
        **lot.maybe(0.5, experts=each * ranks), **lot.maybe(0.5, active=lot.upto(2)),
        **lot.maybe(0.3, layers=lot.upto(2)), **lot.maybe(0.5, skew=lot.share(0, 3)),
        "token_bytes": lot.wide(64, 8192),
    }  # fmt: skip


def _inference(lot: Lot, crowd: Crowd) -> Section:
    prefill = lot.upto(crowd.hosts - 1)
    decode = lot.upto(crowd.hosts - prefill)
    prompt = lot.upto(64)
    job = _job(lot, crowd, prefill + decode)
    return {
        **{key: value for key, value in job.items() if key != "steps"},
        "prefill": prefill, "decode": decode, "requests": lot.upto(8),
        "every_ns": lot.wide(100, 20_000), "prompt_tokens": prompt,
        "prefill_ns": lot.wide(1, 100), **lot.maybe(0.5, decode_ns=lot.wide(1, 100)),
        **lot.maybe(0.5, answer_tokens=lot.upto(64)),
        "kv_bytes": max(1, 1000 * crowd.kb // prompt // 2), **lot.maybe(0.5, pieces=lot.upto(4)),
    }  # fmt: skip


def _cluster(lot: Lot, crowd: Crowd, priority: int) -> Section:
    jobs = []
    for number in range(lot.upto(3)):
        what = _simple(lot, crowd) | {"kind": "job", "name": f"job{number}"}
        what.setdefault("ranks", crowd.hosts)
        times = sorted(lot.wide(1, 50_000) for _ in range(lot.upto(2)))
        at_random = {"random": lot.upto(2), "until_ns": lot.wide(1000, 50_000)}
        when = at_random if lot.chance(0.3) else {"at_ns": times}
        urgent = lot.maybe(0.3, urgency=lot.upto(3))
        jobs.append({"job": what | _class(lot, priority), **when, **urgent})
    return {
        "kind": "cluster", "jobs": jobs, **lot.maybe(0.3, placement=lot.one(PLACEMENTS)),
        **lot.maybe(0.6, queue=lot.one(("fifo", "shortest", "backfill"))),
        **lot.maybe(0.4, preemption=lot.chance(0.7)),
    }  # fmt: skip


_PATTERNS: dict[str, Callable[[Lot, Crowd], Section]] = {
    "collective": _collective, "incast": _incast, "flows": _flows, "permutation": _permutation,
    "elephants": _elephants, "poisson": _poisson, "north-south": _north_south,
    "storage": _storage,
}  # fmt: skip
_FILES: dict[str, Callable[[Lot, Crowd], Section]] = {
    "table": _table, "htsim": _htsim, "goal": _goal,
}  # fmt: skip
_JOBS: dict[str, Callable[[Lot, Crowd], Section]] = {
    "job": _simple, "training": _training, "experts": _experts, "inference": _inference,
}  # fmt: skip
