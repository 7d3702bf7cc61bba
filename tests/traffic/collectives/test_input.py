"""Bad input gets one message that names the cure."""

from __future__ import annotations

import pytest

from traffic.collectives import (
    AlgorithmError,
    CollectiveSpec,
    ParallelGroups,
    RankError,
    Site,
    SizeError,
    SpecError,
    TrafficError,
    check_partition,
    collective,
    prove,
)


@pytest.mark.parametrize(
    ("ranks", "world", "complaint"),
    [
        ([0, 1, 3], None, "leave out 2; number them 0 to 2"),
        ([0, 1, 1], None, "rank 1 is named twice; name every rank once"),
        ([0, -1], None, "-1 is not a rank"),
        ([0, "1"], None, "'1' is not a rank"),
        ([0, True], None, "True is not a rank"),
        ([0, 8], 8, "no rank 8; the world has ranks 0 to 7"),
        ([4], 8, "at least two ranks"),
        ([], None, "at least two ranks"),
        (0, None, "at least two ranks"),
    ],
)
def test_ranks(ranks: list[int], world: int | None, complaint: str) -> None:
    with pytest.raises(RankError, match=complaint):
        collective("all-reduce", ranks, 4096, world=world)


@pytest.mark.parametrize(
    ("options", "complaint"),
    [
        ({"size": 0}, "all-reduce of 0 bytes; give 1 to"),
        ({"size": -5}, "of -5 bytes"),
        ({"size": 2**60}, "give 1 to 1099511627776 bytes"),
        ({"size": 7}, "7 bytes cannot be cut into 8 chunks; give at least 8 bytes"),
        ({"size": 4096, "channels": 0}, "0 channels; give 1 to 64"),
        ({"size": 4096, "channels": 65}, "65 channels"),
        ({"size": 4096, "pieces": 0}, "0 pieces"),
        ({"size": 2**40}, "one RDMA message carries"),
    ],
)
def test_sizes(options: dict[str, int], complaint: str) -> None:
    with pytest.raises(SizeError, match=complaint):
        CollectiveSpec(
            op="all-reduce",
            bytes=options["size"],
            channels=options.get("channels", 1),
            pieces=options.get("pieces"),
        ).schedule(Site(8))


def test_a_barrier_takes_no_bytes() -> None:
    with pytest.raises(SizeError, match="leave its bytes out"):
        collective("barrier", 4, 100)


def test_names() -> None:
    with pytest.raises(AlgorithmError, match="no operation 'allreduce'; did you mean 'all-reduce'"):
        collective("allreduce", 4, 4096)
    with pytest.raises(AlgorithmError, match="all-reduce has no algorithm 'rings'; did you mean"):
        collective("all-reduce", 4, 4096, "rings")
    with pytest.raises(AlgorithmError, match="known: ring, doubling"):
        collective("all-gather", 4, 4096, "zzz")


def test_nodes_and_roots() -> None:
    with pytest.raises(RankError, match="8 ranks do not divide into nodes of 3"):
        collective("all-reduce", 8, 4096, "hierarchical", node_size=3)
    with pytest.raises(RankError, match="members are 0 to 3"):
        collective("broadcast", 4, 4096, root=4)


def test_groups_that_do_not_divide() -> None:
    with pytest.raises(RankError, match="use an expert degree that divides 6"):
        ParallelGroups(tensor=1, data=6, pipeline=1, expert=4)
    with pytest.raises(RankError, match="tensor degree of 0"):
        ParallelGroups(tensor=0, data=6, pipeline=1)


def test_every_dimension_partitions_the_world() -> None:
    groups = ParallelGroups(tensor=4, data=8, pipeline=3, expert=2)
    for cut in (
        groups.tensor_groups,
        groups.data_groups,
        groups.expert_groups,
        groups.expert_data_groups,
    ):
        check_partition([group for stage in range(3) for group in cut(stage)], 96)
    assert groups.tensor_groups(0)[0] == (0, 1, 2, 3)
    assert groups.data_groups(0)[1] == (1, 5, 9, 13, 17, 21, 25, 29)
    assert groups.expert_groups(0)[:2] == [(0, 4), (8, 12)]
    assert groups.expert_data_groups(0)[0] == (0, 8, 16, 24)


@pytest.mark.parametrize(
    ("groups", "complaint"),
    [
        ([(0, 1), (1, 2)], "rank 1 is in two groups"),
        ([(0, 1), (3,)], "rank 2 is in no group"),
        ([(0, 1), (2, 4)], "no rank 4"),
    ],
)
def test_partitions(groups: list[tuple[int, ...]], complaint: str) -> None:
    with pytest.raises(RankError, match=complaint):
        check_partition(groups, 4)


def test_yaml() -> None:
    spec = CollectiveSpec.read({"op": "all-reduce", "bytes": "4MB", "repeat": 3})
    assert spec.bytes == 4_000_000
    schedule = spec.schedule(Site(4))
    prove(schedule)
    assert [activity.step for activity in schedule.activities] == [0, 1, 2]
    with pytest.raises(SpecError, match=r"unknown key 'traffic\.algoritm'; did you mean 'algo"):
        CollectiveSpec.read({"op": "all-reduce", "algoritm": "ring"})
    with pytest.raises(SpecError, match=r"traffic\.bytes: .*'4 parsecs' is not understood"):
        CollectiveSpec.read({"op": "all-reduce", "bytes": "4 parsecs"})
    with pytest.raises(SpecError, match=r"traffic\.op: it must be given"):
        CollectiveSpec.read({})
    with pytest.raises(SpecError, match="must be a section"):
        CollectiveSpec.read(["all-reduce"])


def test_all_errors_are_traffic_errors_with_their_cure_apart() -> None:
    with pytest.raises(TrafficError) as caught:
        collective("all-reduce", [0, 0], 10)
    assert (caught.value.message, caught.value.cure) == (
        "rank 0 is named twice",
        "name every rank once",
    )
