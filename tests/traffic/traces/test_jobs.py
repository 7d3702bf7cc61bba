"""MSCCL's schedules and AICB's layers: what they move, how long it takes, what is refused."""

from __future__ import annotations

import re
from pathlib import Path
from random import Random

import pytest

from tests.traffic.collectives.single import schedule_of
from tests.traffic.traces.xml_rings import ring
from traffic.collectives import Site, collective
from traffic.collectives.alphabeta import AlphaBeta
from traffic.jobs import make_workload, read_traffic
from traffic.traces import TraceError, aicb, kind_of, msccl

FABRIC = AlphaBeta(alpha_ns=600, rate_gbps=100)


def written(tmp_path: Path, text: str, name: str = "x.xml") -> Path:
    path = tmp_path / name
    path.write_text(text)
    return path


@pytest.mark.parametrize("seed", range(12))
def test_rings_move_what_a_ring_moves_and_take_as_long(seed: int, tmp_path: Path) -> None:
    chance = Random(seed)
    gpus, channels = chance.randint(2, 9), chance.randint(1, 3)
    coll, passes = chance.choice([("allreduce", 2), ("reduce_scatter", 1), ("allgather", 1)])
    size = chance.randint(1, 50) * gpus * channels * 1000
    path = written(tmp_path, ring(gpus, channels, coll))
    assert kind_of(path) == "msccl"
    assert msccl.check(msccl.parse(path))
    schedule = msccl.read(path, size).schedule()
    assert sum(schedule.size) == passes * (gpus - 1) * size
    each_ns = size / gpus * 8 / 100
    steps = passes * (gpus - 1)
    took = FABRIC.run(schedule).finish_ns
    if channels == 1:
        assert took == pytest.approx(steps * (600 + each_ns), rel=0.001)
    else:  # channels overlap: never slower than one after the other, never quicker than the links
        assert steps * each_ns * 0.999 <= took <= steps * (600 + each_ns) * 1.001


@pytest.mark.parametrize("seed", range(60))
def test_a_ring_with_one_mistake_is_refused(seed: int, tmp_path: Path) -> None:
    """A chunk mistaken, a step forgotten, an addition for a copy: no result is then what it was."""
    chance = Random(seed)
    coll = chance.choice(["allreduce", "reduce_scatter", "allgather"])
    lines = ring(chance.randint(3, 6), chance.randint(1, 2), coll).splitlines()
    at = chance.choice([at for at, line in enumerate(lines) if line.startswith("<step")])
    match chance.randrange(3):
        case 0:
            del lines[at]
        case 1:
            chunk = int(re.search(r'srcoff="(\d+)"', lines[at])[1])  # type: ignore[index]
            lines[at] = lines[at].replace(f'off="{chunk}"', f'off="{(chunk + 1) % 3}"')
            if chunk == (chunk + 1) % 3:
                del lines[at]
        case 2:
            swaps = {"s": "nop", "r": "rcs", "rcs": "r", "rrc": "r", "rrs": "rcs", "rrcs": "rcs"}
            kind = re.search(r'type="(\w+)"', lines[at])[1]  # type: ignore[index]
            lines[at] = lines[at].replace(f'type="{kind}"', f'type="{swaps[kind]}"')
    with pytest.raises(TraceError, match=r"another chunk|waits for ever|does not receive|sends to"):
        msccl.read(written(tmp_path, "\n".join(lines)), 1_000_000)


def test_a_result_that_is_not_its_collectives_can_be_asked_for(tmp_path: Path) -> None:
    text = ring(4).replace('type="rrs"', 'type="rcs"')
    path = written(tmp_path, text)
    asked = {"kind": "msccl", "file": str(path), "bytes": "1MB"}
    with pytest.raises(TraceError, match=r"traffic\.check=false"):
        make_workload(read_traffic(asked), Site(4))
    unchecked = read_traffic({**asked, "check": False})
    assert len(make_workload(unchecked, Site(4)).schedule)


@pytest.mark.parametrize(
    ("text", "wrong"),
    [
        ("<algo", "is not XML"),
        ('<!DOCTYPE a [<!ENTITY b "c">]><algo/>', "defines names of its own"),
        ("<gpu/>", "it begins with <gpu>"),
        ('<algo ngpus="2" nchunksperloop="2"/>', "speaks of 2 GPUs, and has 0"),
        ('<algo ngpus="x" nchunksperloop="2"/>', "algo ngpus: 'x' is no whole number"),
        (ring(2).replace('type="s"', 'type="q"', 1), "threadblock 0, step 0: there is no type 'q'"),
        (ring(2).replace('srcbuf="i"', 'srcbuf="z"', 1), "there is no buffer 'z'"),
        (ring(3).replace('recv="2"', 'recv="-1"', 1), "receives of nobody|does not receive"),
    ],
)
def test_what_is_wrong_in_a_schedule_is_named(text: str, wrong: str, tmp_path: Path) -> None:
    with pytest.raises(TraceError, match=wrong):
        msccl.read(written(tmp_path, text), 1000)


# --- AICB -----------------------------------------------------------------------------------------


def layers(tensor: int, expert: int, gpus: int, rows: list[str]) -> str:
    head = f"HYBRID_TRANSFORMER_FWD_IN_BCKWD model_parallel_NPU_group: {tensor} ep: {expert} pp: 1"
    return "\n".join([f"{head} vpp: 2 ga: 3 all_gpus: {gpus}", str(len(rows)), *rows])


def test_a_step_lasts_as_long_as_its_parts(tmp_path: Path) -> None:
    """Tensor groups of two, four of them: by hand."""
    rows = ["a -1 5000 ALLREDUCE 20000 20000 ALLREDUCE 20000 3000 NONE 0 0",
            "b -1 1000 NONE 0 2000 NONE 0 1000 ALLREDUCE 40000 500"]  # fmt: skip
    path = written(tmp_path, layers(2, 1, 8, rows), "w.txt")
    assert kind_of(path) == "aicb"
    schedule = aicb.read(path).schedule()

    def ring_ns(ranks: int, size: int) -> int:
        return FABRIC.run(schedule_of(collective("all-reduce", ranks, size))).finish_ns

    forward = 5000 + ring_ns(2, 20000) + 1000
    down = forward + 2000 + 1000  # then b's weights' gradients go out, beside what follows
    through = down + 20_000 + ring_ns(2, 20000) + 3000
    beside = down + ring_ns(4, 40000) + 500
    assert FABRIC.run(schedule).finish_ns == pytest.approx(max(through, beside), abs=100)


@pytest.mark.parametrize("seed", range(10))
def test_layers_exchange_within_their_groups(seed: int, tmp_path: Path) -> None:
    """Bytes by group, against groups made otherwise: ranks as (data block, expert, tensor)."""
    chance = Random(seed)
    tensor, expert, blocks = (chance.choice([1, 2, 3]) for _ in range(3))
    gpus = tensor * expert * blocks
    size = 12 * chance.randint(1, 1000)
    for scope, weights, same in (
        ("ALLREDUCE", False, lambda a, b: a[:2] == b[:2]),
        ("ALLREDUCE", True, lambda a, b: a[2] == b[2]),
        ("ALLREDUCE_EP", True, lambda a, b: (a[0], a[2]) == (b[0], b[2])),
        ("ALLREDUCE_DP_EP", True, lambda a, b: a[1:] == b[1:]),
    ):
        row = f"x -1 1 NONE 0 1 NONE 0 1 {scope} {size} 0"
        if not weights:
            row = f"x -1 1 {scope} {size} 1 NONE 0 1 NONE 0 0"
        schedule = aicb.read(written(tmp_path, layers(tensor, expert, gpus, [row]))).schedule()
        where = [(r // (tensor * expert), r // tensor % expert, r % tensor) for r in range(gpus)]
        pairs = {(s, d) for s, d in zip(schedule.src, schedule.dst, strict=True) if s != d}
        assert all(same(where[src], where[dst]) for src, dst in pairs)
        want = sum(
            2 * (n - 1) * size / n
            for at in range(gpus)
            for n in [sum(same(where[at], where[other]) for other in range(gpus))]
        )
        assert sum(schedule.size) == pytest.approx(want)


ROW = "a -1 1 NONE 0 1 NONE 0 1 NONE 0 0"


@pytest.mark.parametrize("seed", range(8))
def test_stages_wait_for_each_other(seed: int, tmp_path: Path) -> None:
    """Against a pipeline reckoned micro-batch by micro-batch; a link hands on one at a time."""
    chance = Random(seed)
    stages, batches, gpus = (chance.randint(a, b) for a, b in ((2, 4), (1, 4), (1, 2)))
    forward, backward = chance.randint(1000, 9000), chance.randint(1000, 9000)
    passed_on = chance.choice([1000, 40_000, 200_000])
    rows = ["head -1 0 NONE 0 0 NONE 0 0 NONE 0 0", *batches * [
        f"embedding_layer -1 {forward} NONE 0 {backward} NONE 0 0 NONE 0 0",
        "attention -1 0 NONE 0 0 NONE 0 0 NONE 0 0",
    ]]  # fmt: skip
    text = layers(1, 1, stages * gpus, rows)
    text = text.replace("pp: 1", f"pp: {stages}").replace("ga: 3", f"ga: {batches}")
    path = written(tmp_path, text.replace("\n", f" pp_comm: {passed_on}.0\n", 1), "w.txt")
    lasts_ns = passed_on * 8 / 100
    over = [0.0] * stages
    for order, work in ((range(stages), forward), (range(stages - 1, -1, -1), backward)):
        arrived = [0.0] * batches
        for stage in order:
            free = 0.0
            for batch in range(batches):
                over[stage] = max(over[stage], arrived[batch]) + work
                free = max(free, over[stage]) + lasts_ns
                arrived[batch] = free + 600
    took = FABRIC.run(aicb.read(path).schedule()).finish_ns
    assert took == pytest.approx(max(over), abs=50)
    half = FABRIC.run(aicb.read(path, scale=0.5).schedule()).finish_ns
    assert half < took


def test_groups_stay_within_their_stage(tmp_path: Path) -> None:
    row = "embedding_layer -1 1 ALLREDUCE 8000 1 NONE 0 1 REDUCESCATTER 8000 0"
    text = layers(2, 1, 12, [row]).replace("pp: 1", "pp: 3").replace("ga: 3", "ga: 1")
    path = written(tmp_path, text.replace("\n", " pp_comm 96\n", 1), "w.txt")
    schedule = aicb.read(path).schedule()
    sent = zip(schedule.src, schedule.dst, schedule.size, strict=True)
    across = {(s, d, size) for s, d, size in sent if s // 4 != d // 4}
    ahead = {(rank, rank + 4, 96) for rank in range(8)}
    assert across == ahead | {(dst, src, size) for src, dst, size in ahead}


def test_rows_of_a_micro_benchmark_come_one_after_the_other(tmp_path: Path) -> None:
    rows = [f"micro_test -1 1 NONE 0 1 NONE 0 1 ALLREDUCE {size} 1" for size in (4000, 9, 2, 80)]
    path = written(tmp_path, "\n".join(["MICRO", "4", *rows]), "w.txt")
    assert kind_of(path) == "aicb"
    schedule = aicb.read(path, 4).schedule()
    named = [activity for activity in schedule.activities if activity.kind == "collective"]
    sizes = [one.collective.bytes for one in named if one.collective is not None]
    assert sizes == [4000, 9, 4, 80]


@pytest.mark.parametrize(
    ("text", "wrong"),
    [
        ("hello\n1\n", ":1: it does not begin as AICB's do"),
        (layers(2, 1, 7, ["a"]), ":1: 7 GPUs do not divide into 2 and 1"),
        (layers(2, 1, 8, ["a"]), ":3: 1 columns, and 12 have to be there"),
        (layers(1, 1, 2, ["a -1 1 SUM 5 1 NONE 0 1 NONE 0 0"]), ":3: 'SUM' is not known"),
        (layers(1, 1, 2, ["a -1 x NONE 5 1 NONE 0 1 NONE 0 0"]), ":3: a time: 'x' is no whole"),
        (layers(1, 1, 2, []).replace("\n0", "\n1"), "it says 1 layers, and has 0"),
        (layers(1, 1, 6, ["a"]).replace("pp: 1", "pp: 4"), "6 GPUs do not divide into 1 and 1 and"),
        (layers(1, 1, 8, [ROW]).replace("pp: 1", "pp: 4"), "pp_comm does not say what goes on"),
        (layers(1, 1, 8, [ROW]).replace("pp: 1", "pp: 4 pp_comm 5"), "says ga: 3, and has 0 rows"),
        (layers(1, 1, 60_000, 47 * [ROW]), "60,000 GPUs compute 8,460,000 times; at most"),
        (
            layers(1, 1, 8, [ROW]).replace("all_gpus", "gpus"),
            "does not say all_gpus; say it: --gpu",
        ),
    ],
)
def test_what_is_wrong_in_layers_is_named(text: str, wrong: str, tmp_path: Path) -> None:
    with pytest.raises(TraceError, match=wrong):
        aicb.read(written(tmp_path, text))
