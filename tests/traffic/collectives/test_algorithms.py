"""Every collective by every algorithm: proved right, with the bytes and the time theory gives."""

from __future__ import annotations

from dataclasses import fields

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests import depth
from tests.traffic.collectives.single import bound_ns, schedule_of
from tests.traffic.collectives.theory import sent
from traffic.collectives import (
    ALGORITHMS,
    IN_NETWORK,
    AlphaBeta,
    Collective,
    Schedule,
    collective,
    prove,
)

RANKS = (2, 3, 4, 7, 8, 16, 64)
EVERY = [(op, algorithm) for op, algorithms in ALGORITHMS.items() for algorithm in algorithms]
BY_HOSTS = [(op, algorithm) for op, algorithm in EVERY if algorithm != IN_NETWORK]
EVEN = 2**16 * 3 * 7  # what every number of ranks, channels and pieces here divides
LARGE = 13 * EVEN
ALPHA_NS = 1000
RATE_GBPS = 100.0


def make(op: str, algorithm: str, n: int, size: int, **options: int) -> Collective:
    return collective(op, n, 0 if op == "barrier" else size, algorithm, **options)


def measured(schedule: Schedule) -> int:
    return AlphaBeta(ALPHA_NS, RATE_GBPS).run(schedule).finish_ns


@pytest.mark.parametrize("n", RANKS)
@pytest.mark.parametrize(("op", "algorithm"), EVERY)
def test_is_right_and_moves_what_theory_says(op: str, algorithm: str, n: int) -> None:
    what = make(op, algorithm, n, EVEN, pieces=8)
    schedule = schedule_of(what)
    prove(schedule)
    moved = schedule.sent_bytes()
    if algorithm == "double-binary-tree":
        # Every member but a root sends each half up once; every child is sent it once.
        assert sum(moved) == sum(schedule.received_bytes()) == 2 * (n - 1) * EVEN
        assert max(moved) <= 2 * EVEN
    elif algorithm == IN_NETWORK:
        assert moved == [0] * n  # between adapters and switches, no host sends another anything
    else:
        assert moved == sent(op, algorithm, n, what.bytes, node=what.members_per_node)


@pytest.mark.by_day(84)
@pytest.mark.parametrize("size", [EVEN, LARGE], ids=["small", "large"])
@pytest.mark.parametrize("n", RANKS)
@pytest.mark.parametrize(("op", "algorithm"), EVERY)
def test_takes_its_alpha_beta_time(op: str, algorithm: str, n: int, size: int) -> None:
    what = make(op, algorithm, n, size)
    bound = bound_ns(what, alpha_ns=ALPHA_NS, rate_gbps=RATE_GBPS)
    assert 0.9 * bound <= measured(schedule_of(what)) <= 1.1 * bound


@pytest.mark.parametrize("channels", [2, 4])
@pytest.mark.parametrize("n", [3, 4, 7, 8])
@pytest.mark.parametrize(("op", "algorithm"), BY_HOSTS)
def test_channels_change_neither_result_nor_bytes_nor_bound(
    op: str, algorithm: str, n: int, channels: int
) -> None:
    what = make(op, algorithm, n, LARGE, channels=channels, pieces=8)
    schedule = schedule_of(what)
    prove(schedule)
    if op != "barrier":
        used = 2 * channels if algorithm == "double-binary-tree" else channels
        assert set(schedule.channel) == set(range(used))
    alone = schedule_of(make(op, algorithm, n, LARGE, pieces=8 * channels))
    assert schedule.sent_bytes() == pytest.approx(alone.sent_bytes(), abs=8 * n * channels)
    bound = bound_ns(what, alpha_ns=ALPHA_NS, rate_gbps=RATE_GBPS)
    busiest_port_ns = max(schedule.sent_bytes()) * 8 / RATE_GBPS
    assert busiest_port_ns < measured(schedule) <= 1.1 * bound


def test_bounds_of_the_literature() -> None:
    """Figures computed by hand for 8 ranks, 8 MB, 1 us and 100 Gb/s (80 ns a kilobyte)."""

    def bound(op: str, algorithm: str, n: int = 8, **options: int) -> float:
        what = make(op, algorithm, n, 8_000_000, **options)
        return bound_ns(what, alpha_ns=1000, rate_gbps=100)

    assert bound("all-reduce", "ring") == pytest.approx(14 * (1000 + 80_000))
    assert bound("all-reduce", "halving-doubling") == pytest.approx(6 * 1000 + 2 * 560_000)
    assert bound("all-reduce", "hierarchical", node_size=4) == pytest.approx(
        6 * (1000 + 160_000) + 2 * (1000 + 80_000)
    )
    assert bound("all-to-all", "pairwise") == pytest.approx(7 * (1000 + 80_000))
    assert bound("all-to-all", "staggered") == pytest.approx(1000 + 560_000)
    assert bound("broadcast", "binomial", 5) == pytest.approx(3 * (1000 + 640_000))
    assert bound("broadcast", "ring", 3, pieces=8) == pytest.approx(2000 + 9 * 80_000)
    assert bound("barrier", "dissemination", 5) == pytest.approx(3 * (1000 + 0.64))


def test_a_tree_beats_a_ring_when_small_and_not_when_large() -> None:
    def times(size: int) -> tuple[int, int]:
        ring, tree = (make("all-reduce", a, 64, size) for a in ("ring", "double-binary-tree"))
        return measured(schedule_of(ring)), measured(schedule_of(tree))

    ring, tree = times(4096)
    assert tree < ring / 5
    ring, tree = times(64 << 20)
    assert ring < tree


def test_no_member_is_an_inner_node_of_both_trees() -> None:
    for n in range(2, 200):
        schedule = schedule_of(make("all-reduce", "double-binary-tree", n, 2, pieces=1))
        inner: list[set[int]] = [set(), set()]
        for transfer in schedule:
            if transfer.mode.name == "REDUCE":
                inner[transfer.first_chunk].add(transfer.dst)
        assert not inner[0] & inner[1]
        assert len(schedule) == 4 * (n - 1)


def test_hierarchical_crosses_between_nodes_less_than_a_ring() -> None:
    def crossing(algorithm: str) -> int:
        schedule = schedule_of(make("all-reduce", algorithm, 16, EVEN, node_size=4))
        return sum(t.size for t in schedule if t.src // 4 != t.dst // 4)

    assert crossing("hierarchical") == 16 * 2 * 3 * EVEN // 16
    rails = schedule_of(make("all-reduce", "hierarchical", 16, EVEN, node_size=4))
    assert {(t.dst - t.src) % 4 for t in rails if t.src // 4 != t.dst // 4} == {0}


@settings(max_examples=depth.of(60), deadline=None)
@given(data=st.data())
def test_any_members_of_any_world(data: st.DataObject) -> None:
    """Ranks in any order with gaps, odd sizes, channels, roots: right, and not a byte lost."""
    op, algorithm = data.draw(st.sampled_from(BY_HOSTS))
    world = data.draw(st.integers(2, 24))
    ranks = data.draw(st.permutations(range(world)))[: data.draw(st.integers(2, world))]
    channels = data.draw(st.integers(1, 3))
    pieces = data.draw(st.integers(1, 4))
    size = data.draw(st.integers(len(ranks) * channels * pieces * 2, 10**6))
    root = data.draw(st.integers(0, len(ranks) - 1))
    what = collective(
        op, ranks, 0 if op == "barrier" else size, algorithm,
        world=world, channels=channels, pieces=pieces, root=root,
    )  # fmt: skip
    schedule = schedule_of(what, world=world)
    prove(schedule)
    assert {t.src for t in schedule} <= set(ranks)
    if algorithm != "double-binary-tree":
        theory = sent(op, algorithm, len(ranks), what.bytes, node=what.members_per_node, root=root)
        rounding = 4 * len(ranks) * channels
        for member, rank in enumerate(ranks):
            assert schedule.sent_bytes()[rank] == pytest.approx(float(theory[member]), abs=rounding)


@pytest.mark.parametrize("ranks", [256, pytest.param(1024, marks=pytest.mark.slow)])
def test_all_to_all_of_many_ranks_stays_small(ranks: int) -> None:
    schedule = schedule_of(collective("all-to-all", ranks, ranks << 20, "staggered"))
    assert len(schedule) == ranks * (ranks - 1)
    columns = (getattr(schedule, each.name) for each in fields(schedule))
    kept = sum(column.nbytes for column in columns if isinstance(column, memoryview))
    assert kept < 48 * len(schedule)
    assert set(schedule.sent_bytes()) == {(ranks - 1) << 20}
