"""GOAL and Chakra: random programs, told in both, last as long as their longest way."""

from __future__ import annotations

import gzip
from pathlib import Path
from random import Random

import pytest

from tests.traffic.collectives.single import schedule_of
from tests.traffic.traces.programs import (
    Node,
    as_chakra,
    as_goal,
    fabric,
    longest_ns,
    parsed,
    random_program,
)
from traffic.collectives import Activity, ScheduleBuilder, Site, collective
from traffic.collectives.alphabeta import AlphaBeta
from traffic.jobs import make_workload, read_traffic
from traffic.traces import TraceError, chakra, goal, kind_of

SLACK_NS = 45  # of a deed's bytes and roundings


@pytest.mark.parametrize("seed", range(40))
def test_a_program_lasts_as_long_as_its_longest_way(seed: int, tmp_path: Path) -> None:
    chance = Random(seed)
    ranks, deeds = random_program(chance, step_ns=1000)
    (tmp_path / "p.goal").write_text(as_goal(ranks, deeds, chance))
    as_chakra(ranks, deeds, tmp_path, chance)
    want = longest_ns(deeds)
    for graph in (goal.read(tmp_path / "p.goal"), chakra.read(tmp_path)):
        schedule = graph.schedule()
        assert schedule.ranks == ranks
        assert sum(schedule.size) == sum(deed.size for deed in deeds if deed.kind == "send")
        assert fabric.run(schedule).finish_ns == pytest.approx(want, abs=SLACK_NS)


@pytest.mark.parametrize("seed", range(10))
def test_what_is_written_is_read_again_by_others_and_by_ourselves(
    seed: int, tmp_path: Path
) -> None:
    chance = Random(seed)
    ops = ["all-reduce", "all-gather", "all-to-all", "reduce-scatter", "broadcast"]
    what = collective(chance.choice(ops), chance.randint(2, 9), chance.randint(9, 200_000))
    made = schedule_of(what)
    files = chakra.write(made, tmp_path / "once" / "job")
    assert files == chakra.files_of(tmp_path / "once")
    nodes = [parsed(file.read_bytes()) for file in files]
    assert all(isinstance(node, Node) for rank in nodes for node in rank)
    sent = [(rank, node) for rank, own in enumerate(nodes) for node in own if node.type == 5]
    about = sorted(
        (rank, *({one.name: one.int64_val for one in node.attr}[name]
                 for name in ("comm_dst", "comm_size")))
        for rank, node in sent
    )  # fmt: skip
    assert about == sorted(zip(made.src, made.dst, made.size, strict=True))
    again = chakra.read(tmp_path / "once").schedule()
    rate = AlphaBeta(alpha_ns=700, rate_gbps=100)
    assert rate.run(again).finish_ns == rate.run(made).finish_ns
    twice = chakra.write(again, tmp_path / "twice" / "job")
    assert [file.read_bytes() for file in twice] == [file.read_bytes() for file in files]


def test_whatever_is_written_and_read_is_written_the_same(tmp_path: Path) -> None:
    """Random schedules: work that takes time, or none, or only waits; messages that begin late."""
    for seed in range(30):
        chance = Random(seed)
        ranks = chance.randint(1, 5)
        builder = ScheduleBuilder(ranks)
        activity = builder.activity(Activity("flows", "any"))
        known: list[list[int]] = [[] for _ in range(ranks)]
        for _ in range(chance.randint(1, 60)):
            src, dst = chance.randrange(ranks), chance.randrange(ranks)
            after = chance.choices(known[src], k=chance.randint(0, 3)) if known[src] else []
            delay = chance.choice([0, 0, 3000, 77_000])
            if src == dst:
                number = builder.work(src, delay, activity=activity, after=after)
            else:
                number = builder.transfer(
                    src, dst, chance.randint(1, 9999), activity=activity, delay_ns=delay,
                    after=after,
                )  # fmt: skip
                known[dst].append(number)
            known[src].append(number)
        made = builder.build()
        once = chakra.write(made, tmp_path / f"{seed}a")
        again = chakra.read(once[0]).schedule()
        twice = chakra.write(again, tmp_path / f"{seed}b")
        assert [file.read_bytes() for file in twice] == [file.read_bytes() for file in once]
        assert sum(again.size) == sum(made.size)
        assert sum(again.delay_ns) == sum(made.delay_ns)
        assert fabric.run(again).finish_ns == fabric.run(made).finish_ns


def test_collectives_of_groups_are_those_of_the_lab(tmp_path: Path) -> None:
    """Two groups of four reduce side by side, then all eight gather what each has."""
    groups = {"a": [0, 1, 2, 3], "b": [4, 5, 6, 7]}
    for rank in range(8):
        name = "a" if rank < 4 else "b"
        first = Node(id=0, name="sum", type=7)
        first.attr.add(name="comm_type", int64_val=0)
        first.attr.add(name="comm_size", int64_val=40_000)
        first.attr.add(name="pg_name", string_val=name)
        then = Node(id=1, name="gather", type=7, data_deps=[0])
        then.attr.add(name="comm_type", int64_val=2)
        then.attr.add(name="comm_size", int64_val=1000)
        data = b"\x00" + b"".join(
            bytes([len(text)]) + text for text in (m.SerializeToString() for m in (first, then))
        )
        with gzip.open(tmp_path / f"t.{rank}.et.gz", "wb") as file:
            file.write(data)
    schedule = chakra.read(tmp_path, groups).schedule()
    sizes = [schedule.size[at] for at in range(len(schedule)) if schedule.size[at]]
    assert sum(sizes) == 2 * 2 * 3 * 40_000 + 8 * 7 * 1000
    rate = AlphaBeta(alpha_ns=500, rate_gbps=100)
    parts = [schedule_of(collective("all-reduce", 4, 40_000)),
             schedule_of(collective("all-gather", 8, 8000))]  # fmt: skip
    assert rate.run(schedule).finish_ns == sum(rate.run(part).finish_ns for part in parts)
    with pytest.raises(TraceError, match=r"t\.0\.et\.gz: node 0: its group is 'a'"):
        chakra.read(tmp_path)


def test_a_rank_computes_its_operations(tmp_path: Path) -> None:
    node = Node(id=3, name="matmul", type=4)
    node.attr.add(name="num_ops", int64_val=5_000_000_000)
    data = node.SerializeToString()
    (tmp_path / "t.0.et").write_bytes(b"\x00" + bytes([len(data)]) + data)
    schedule = chakra.read(tmp_path, tflops=100).schedule()
    assert list(schedule.delay_ns) == [50_000]
    with pytest.raises(TraceError, match=r"node 3: 'matmul' has operations.*tflops"):
        chakra.read(tmp_path)


WRONG_GOAL = {
    "rank 0 { }": "'rank' stands where 'num_ranks' has to be",
    "num_ranks 2 rank 2 { }": "rank: '2' is no whole number from 0 to 1",
    "num_ranks 2 rank 0 { a: send 5b to 1 }": "sends 1 message\\(s\\) with the tag 0 that rank 1",
    "num_ranks 2 rank 0 { a: recv 5b from 1 }": "that is never sent",
    "num_ranks 2 rank 0 { a: calc 5": "'the end' stands where",
    "num_ranks 1 rank 0 { a: calc 5 b requires a }": "there is no 'b' above",
    "num_ranks 1 rank 0 { a: calc 5 b: calc 5 a requires b b requires a }": "waits in a circle",
    "num_ranks 1 rank 0 { a: calc 5 a: calc 5 }": "'a' is there twice",
    "num_ranks 2 rank 0 { a: send 5b to 0 }": ":1: rank 0 sends to itself",
    "num_ranks 2 rank 0 { a: recv 1b from 1 b: send 1b to 1 b requires a }\n"
    "rank 1 { a: recv 1b from 0 b: send 1b to 0 b requires a }": "waits in a circle",
}


@pytest.mark.parametrize("text", WRONG_GOAL)
def test_what_is_wrong_in_goal_is_named(text: str, tmp_path: Path) -> None:
    path = tmp_path / "x.goal"
    path.write_text(text)
    with pytest.raises(TraceError, match=WRONG_GOAL[text]):
        goal.read(path).schedule()


def test_kinds_are_known_by_their_content(tmp_path: Path) -> None:
    (tmp_path / "x").write_text("/* hm */ num_ranks 2\n")
    assert kind_of(tmp_path / "x") == "goal"
    assert kind_of(tmp_path) == kind_of(Path("job.3.et")) == "chakra"
    (tmp_path / "x").write_text("hello")
    with pytest.raises(TraceError, match="it is not known what this is"):
        kind_of(tmp_path / "x")


def test_traces_run_on_the_hosts_that_are_named(tmp_path: Path) -> None:
    (tmp_path / "x").write_text("num_ranks 2 rank 0 { send 5b to 1 } rank 1 { recv 5b from 0 }")
    spec = read_traffic({"kind": "goal", "file": str(tmp_path / "x"), "hosts": ["h7", "h2"]})
    schedule = make_workload(spec, Site(8)).schedule
    assert (list(schedule.src), list(schedule.dst)) == ([6], [1])
