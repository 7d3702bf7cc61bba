"""Whatever stands below ``traffic:``, it becomes a schedule or a message, never a traceback."""

from __future__ import annotations

import copy
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests import depth
from traffic.collectives import Site, TrafficError
from traffic.jobs import make_workload, read_traffic

SITE = Site(16, 100.0, racks=tuple(tuple(range(at, at + 4)) for at in range(0, 16, 4)))
JOB: dict[str, Any] = {
    "kind": "job", "name": "a", "ranks": 4, "steps": 2, "compute_ns": "10us", "buckets": 2,
    "collective": {
        "op": "all-reduce", "algorithm": "hierarchical", "bytes": "64KB", "channels": 2,
        "root": 0, "node_size": 2, "pieces": 2,
    },
    "overlap": True, "barrier": False, "placement": "rail-aligned",
    "stragglers": [{"rank": 1, "slowdown": 2}], "slow_links": [{"rank": 1, "rate_share": 0.5}],
}  # fmt: skip
TRAINING: dict[str, Any] = {
    "kind": "training", "name": "b", "steps": 1, "scale": 1e-4,
    "model": {
        "name": "m", "parameters": "1B", "layers": 8, "hidden": 512, "heads": 8, "sequence": 128,
        "precision": "bf16", "experts": {"count": 4, "active": 2, "parameters": "0.5B"},
    },
    "parallelism": {"tensor": 2, "pipeline": 2, "data": 2, "expert": 2},
    "batch": {"sequences": 8, "micro": 1}, "gpu": {"tflops": 312, "efficiency": 0.5},
    "node": {"gpus": 2, "gbps": 2400}, "algorithms": {"data": "ring", "channels": 1},
    "buckets": 2, "slices": 2, "placement": "spread",
}  # fmt: skip
EXAMPLES: list[dict[str, Any]] = [
    {"kind": "collective", "op": "broadcast", "bytes": "1MB", "ranks": [1, 3, 5], "repeat": 2},
    {"kind": "incast", "bytes": "4MB", "senders": 3, "receiver": 2, "messages": 2},
    {"kind": "permutation", "bytes": 10, "messages": 1},
    {"kind": "elephants", "bytes": "1MB", "flows": 3, "source_ports": 2},
    {"kind": "poisson", "load": 0.5, "duration_ns": "1ms", "sizes": "storage", "priority": 3},
    {"kind": "north-south", "load": 0.5, "duration_ns": "2ms", "gateways": [0, 1]},
    {"kind": "storage", "servers": ["h1", 7], "clients": [1, 2], "save": "1MB", "load": 100,
     "stripes": 1, "times": 2, "every_ns": "1ms"},
    {"kind": "experts", "ranks": 4, "experts": 8, "layers": 2, "tokens": 50, "compute_ns": 500,
     "skew": 1.2, "steps": 2},
    {"kind": "inference", "prefill": 2, "decode": 3, "requests": 5, "every_ns": "10us",
     "prefill_ns": 100, "decode_ns": 20, "kv_bytes": 1000, "prompt_tokens": 20, "pieces": 2},
    JOB,
    TRAINING,
    {"kind": "mix", "parts": [JOB, TRAINING, {"kind": "incast", "bytes": 10}]},
]  # fmt: skip
JUNK: st.SearchStrategy[Any] = st.sampled_from(
    [None, True, -1, 0, 1, 3, 7, 1.5, 10**30, 1e400, float("nan"), "", "x", "7", "1e400", "ring",
     "-3", [], [0], [[]], {}, {"kind": "job"}, b"\xff"]
)  # fmt: skip


def places(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    found = [path] if path else []
    if isinstance(value, dict | list):
        for key in value if isinstance(value, dict) else range(len(value)):
            found += places(value[key], (*path, key))
    return found


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda example: example["kind"])
def test_the_examples_are_fine(example: dict[str, Any]) -> None:
    work = make_workload(read_traffic(example), SITE)
    assert work.schedule.ranks == 16
    assert work.schedule == make_workload(read_traffic(example), SITE).schedule


@settings(max_examples=depth.of(600), deadline=None)
@given(data=st.data())
def test_one_thing_wrong(data: st.DataObject) -> None:
    broken = copy.deepcopy(data.draw(st.sampled_from(EXAMPLES)))
    *way, last = data.draw(st.sampled_from(places(broken)))
    place: Any = broken
    for part in way:
        place = place[part]
    match data.draw(st.sampled_from(["change", "remove", "rename"])):
        case "rename" if isinstance(place, dict):
            place[f"{last}x"] = place.pop(last)
        case "remove":
            del place[last]
        case _:
            place[last] = data.draw(JUNK)
    try:
        make_workload(read_traffic(broken), SITE)
    except TrafficError as error:
        assert str(error)
        assert "\n" not in str(error)
