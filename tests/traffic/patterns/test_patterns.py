"""Patterns send what they say, to whom they say, when they say, and the same every time."""

from __future__ import annotations

from collections import Counter
from itertools import pairwise
from pathlib import Path
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from traffic.collectives import AlphaBeta, RankError, Schedule, Site, SizeError, SpecError
from traffic.patterns import (
    SIZES,
    ElephantsSpec,
    IncastSpec,
    NorthSouthSpec,
    PoissonSpec,
    SizeDistribution,
    elephants,
    incast,
    north_south,
    permutation,
    poisson,
    size_distribution,
    udp_source_port,
)

WEB = size_distribution("websearch")


def pairs(schedule: Schedule) -> list[tuple[int, int]]:
    return [(t.src, t.dst) for t in schedule]


def test_incast_is_many_to_one() -> None:
    schedule = incast(8, 1000, receiver=2, senders=5)
    assert pairs(schedule) == [(0, 2), (1, 2), (3, 2), (4, 2), (5, 2)]
    assert set(schedule.size) == {1000}
    # Their port is the bottleneck: five times 80 ns.
    assert AlphaBeta(1000, 100).run(schedule).finish_ns == 1000 + 5 * 80


def test_messages_of_a_flow_follow_one_another() -> None:
    schedule = incast(3, 1000, messages=3)
    assert [t.waits for t in schedule] == [(), (0,), (1,), (), (3,), (4,)]


@given(hosts=st.integers(2, 200), seed=st.integers(0, 2**32))
def test_a_permutation_loads_every_port_once(hosts: int, seed: int) -> None:
    schedule = permutation(hosts, 10, seed=seed)
    assert sorted(schedule.src) == sorted(schedule.dst) == list(range(hosts))
    assert all(src != dst for src, dst in pairs(schedule))
    assert schedule == permutation(hosts, 10, seed=seed)


def test_seeds_matter() -> None:
    assert permutation(64, 10, seed=1) != permutation(64, 10, seed=2)
    assert udp_source_port((0, 1, 0), seed=1) != udp_source_port((0, 1, 0), seed=2)


def test_elephants_have_few_source_ports() -> None:
    schedule = elephants(16, 10**9, seed=3, flows=4, source_ports=2)
    assert len(schedule) == len(set(schedule.src)) == 4
    assert schedule.activities[0].source_ports == 2
    ports = {udp_source_port(pair, 2) for pair in schedule.queue_pairs()}
    assert len(ports) <= 2
    many = elephants(4, 10**6, seed=3, flows=10)
    assert len(many.queue_pairs()) == 10
    free = {udp_source_port((0, 1, channel)) for channel in range(1000)}
    assert len(free) > 900
    assert all(0xC000 <= port <= 0xFFFF for port in free)


@pytest.mark.parametrize("name", SIZES)
def test_sizes_drawn_have_the_distribution(name: str) -> None:
    sizes = SIZES[name]
    chance = Random(1)
    drawn = [sizes.draw(chance) for _ in range(40_000)]
    deviation = (power_mean(name, 2) / len(drawn)) ** 0.5
    assert sum(drawn) / len(drawn) == pytest.approx(sizes.mean, abs=3 * deviation)
    for size, share in sizes.points[1:]:
        assert sum(each <= size for each in drawn) / len(drawn) == pytest.approx(share, abs=0.01)


def test_sizes_at_the_points_published() -> None:
    assert WEB.at(0.15) == 10_000
    assert WEB.at(0.80) == 2_000_000
    assert WEB.at(1.0) == 30_000_000
    assert WEB.at(0.0) == 1
    assert WEB.at(0.35) == 40_000
    assert SizeDistribution("even", ((0, 0.0), (100, 1.0))).mean == 50


def test_poisson_fills_ports_to_the_load() -> None:
    hosts, load, rate, duration = 32, 0.4, 100.0, 20_000_000
    schedule = poisson(hosts, WEB, load=load, rate_gbps=rate, duration_ns=duration, seed=5)
    assert sum(schedule.size) * 8 / (duration * rate * hosts) == pytest.approx(load, rel=0.1)
    starts = list(schedule.delay_ns)
    assert starts == sorted(starts)
    assert 0 <= starts[0] < starts[-1] < duration
    gaps = [b - a for a, b in pairwise(starts)]
    mean = sum(gaps) / len(gaps)
    variance = sum((gap - mean) ** 2 for gap in gaps) / len(gaps)
    assert variance == pytest.approx(mean**2, rel=0.2)  # as exponential gaps have it
    assert set(schedule.src) == set(schedule.dst) == set(range(hosts))
    assert len(schedule.queue_pairs()) == len(schedule)


def test_poisson_between_racks_crosses_leaves_at_the_same_load() -> None:
    racks, load, duration = ((0, 2, 4), (1, 3), (5, 6, 7)), 0.4, 20_000_000
    spec = PoissonSpec(load=load, duration_ns=duration, between_racks=True)
    schedule = spec.schedule(Site(8, racks=racks, seed=3))
    rack_of = {host: rack for rack in racks for host in rack}
    assert all(rack_of[src] != rack_of[dst] for src, dst in pairs(schedule))
    assert set(schedule.src) == set(schedule.dst) == set(range(8))
    assert sum(schedule.size) * 8 / (duration * 100 * 8) == pytest.approx(load, rel=0.2)
    with pytest.raises(RankError, match="all hosts are in one"):
        spec.schedule(Site(8, racks=(tuple(range(8)),)))


def test_log_normal_gaps_have_the_same_mean_and_come_in_bursts() -> None:
    hosts, load, rate, duration, sigma = 32, 0.4, 100.0, 20_000_000, 1.5
    schedule = poisson(
        hosts, WEB, load=load, rate_gbps=rate, duration_ns=duration, seed=5, sigma=sigma
    )
    gaps = [b - a for a, b in pairwise(schedule.delay_ns)]
    mean = sum(gaps) / len(gaps)
    assert mean == pytest.approx(WEB.mean * 8 / (load * hosts * rate), rel=0.1)
    below = sum(gap < mean for gap in gaps) / len(gaps)  # of a log-normal one: Phi(sigma / 2)
    assert below == pytest.approx(0.773, abs=0.02)  # of an exponential one 0.632
    usual = poisson(hosts, WEB, load=load, rate_gbps=rate, duration_ns=duration, seed=5)
    assert list(usual.delay_ns) != list(schedule.delay_ns)
    with pytest.raises(SpecError, match="sigma: it must be at most 4"):
        PoissonSpec.read({"load": 0.4, "duration_ns": "5ms", "sizes": "hadoop", "sigma": 5})


def test_sizes_are_read_from_a_file_of_points(tmp_path: Path) -> None:
    file = tmp_path / "mine.txt"
    file.write_text("0 0\n1000 20  # most are small\n\n1000 50\n9000 50\n10000 100\n")
    sizes = size_distribution(str(file))
    assert sizes.name == "mine"
    assert [sizes.at(share) for share in (0.1, 0.2, 0.4, 0.5, 0.75, 1)] == [
        500, 1000, 1000, 1000, 9500, 10_000,
    ]  # fmt: skip
    assert sizes.mean == 0.2 * 500 + 0.3 * 1000 + 0.5 * 9500
    shares = tmp_path / "shares.csv"
    shares.write_text("500,0.25\n10000,1\n")  # a quarter has 500 bytes, and shares are of 1
    assert [size_distribution(str(shares)).at(share) for share in (0.1, 0.25, 1)] == [
        500, 500, 10_000,
    ]  # fmt: skip
    web = tmp_path / "WebSearch_distribution.txt"
    web.write_text("".join(f"{size} {100 * share:g}\n" for size, share in WEB.points))
    assert size_distribution(str(web)).points == WEB.points


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("0 0\n1000\n", ":2: '1000' is no point; write bytes and per cent"),
        ("0 0\n1000 20 3\n", ":2: '1000 20 3' is no point"),
        ("0 0\n1000 x\n", ":2: '1000 x' is no point"),
        ("0 0\nnan 100\n", ":2: 'nan 100' is no point"),
        ("0 0\n1000 20\n900 100\n", ":3: 900 bytes and 100 % follow 1000 bytes and 20 %"),
        ("0 0\n1000 120\n", "no share is above 100"),
        ("0 0\n1e30 100\n", "bytes can be"),
        ("0 0\n1000 90\n", "the last line says that 90 % of flows are no larger"),
        ("", "end with 100"),
        ("0 100\n", "end with 100"),
    ],
)
def test_what_is_wrong_with_a_file_of_sizes_is_told_with_its_place(
    tmp_path: Path, text: str, expected: str
) -> None:
    file = tmp_path / "mine.txt"
    file.write_text(text)
    with pytest.raises(SizeError) as caught:
        size_distribution(str(file))
    assert expected in str(caught.value) and str(file) in str(caught.value)


def test_sizes_that_nobody_knows_are_told(tmp_path: Path) -> None:
    with pytest.raises(SizeError, match="did you mean 'hadoop'"):
        size_distribution("hadop")
    with pytest.raises(SizeError, match=r"nowhere\.txt"):
        size_distribution(str(tmp_path / "nowhere.txt"))


def power_mean(name: str, power: int) -> float:
    """Of a size to a power: sizes are as likely as each other between two of the points."""
    total: float = sum(
        (q - p) * (b ** (power + 1) - a ** (power + 1)) / ((power + 1) * (b - a))
        for (a, p), (b, q) in pairwise(SIZES[name].points)
    )
    return total


@pytest.mark.parametrize("name", SIZES)
def test_poisson_offers_what_it_is_asked_for_and_one_run_as_much_more_or_less_as_chance_has_it(
    name: str,
) -> None:
    """Flows that come at random are a compound Poisson sum: its mean and variance are known."""
    hosts, load, rate, seeds = 8, 0.5, 100.0, range(1000, 1120)
    most = 600  # flows: of small ones come very many
    duration = round(min(600_000, most * power_mean(name, 1) * 8 / (load * hosts * rate)))
    asked = load * hosts * rate * duration / 8  # bytes
    flows = asked / power_mean(name, 1)
    deviation = (flows * power_mean(name, 2)) ** 0.5

    def offered(seed: int) -> int:
        made = poisson(
            hosts, SIZES[name], load=load, rate_gbps=rate, duration_ns=duration, seed=seed
        )
        return sum(made.size)

    found = [offered(seed) for seed in seeds]
    mean = sum(found) / len(found)
    assert abs(mean - asked) < 3 * deviation / len(found) ** 0.5
    spread = (sum((each - asked) ** 2 for each in found) / len(found)) ** 0.5
    assert spread == pytest.approx(deviation, rel=0.3)


def test_north_south_goes_through_gateways_both_ways_unprotected() -> None:
    schedule = north_south(
        16, WEB, gateways=[0, 5], load=0.5, rate_gbps=100, duration_ns=50_000_000, seed=1
    )
    assert all((src in (0, 5)) != (dst in (0, 5)) for src, dst in pairs(schedule))
    out = Counter(src in (0, 5) for src, _ in pairs(schedule))
    assert out[True] == pytest.approx(out[False], rel=0.2)
    assert sum(schedule.size) * 8 / (50_000_000 * 100 * 2 * 2) == pytest.approx(0.5, rel=0.15)
    spec = NorthSouthSpec.read({"load": 0.5, "duration_ns": "50ms"})
    assert spec.classed(schedule).activities[0].priority == 0


@pytest.mark.parametrize(
    ("make", "error", "complaint"),
    [
        (lambda: incast(1, 10), RankError, "at least 2"),
        (lambda: incast(4, 10, senders=4), RankError, "4 hosts allow 1 to 3"),
        (lambda: incast(4, 10, senders=0), RankError, "0 senders"),
        (lambda: incast(4, 10, receiver=4), RankError, "there is no h5; they are h1 to h4"),
        (lambda: incast(4, 0), SizeError, "transfer of 0 bytes"),
        (lambda: incast(4, 10, messages=0), SizeError, "0 messages"),
        (lambda: permutation(1, 10, seed=1), RankError, "at least 2"),
        (lambda: elephants(4, 10, seed=1, flows=0), SizeError, "0 flows"),
        (lambda: elephants(4, 10, seed=1, source_ports=0), SizeError, "0 UDP source ports"),
        (lambda: size_distribution("webserch"), SizeError, "did you mean 'websearch'"),
        (lambda: SizeDistribution("x", ((0, 0), (5, 0.5))), SizeError, "does not rise"),
        (
            lambda: poisson(4, WEB, load=0.5, rate_gbps=100, duration_ns=10**18, seed=1),
            SizeError,
            "shorten the duration",
        ),
        (
            lambda: poisson(4, WEB, load=0.5, rate_gbps=100, duration_ns=10, seed=1),
            SizeError,
            "lengthen the duration",
        ),
        (
            lambda: poisson(4, WEB, load=0, rate_gbps=100, duration_ns=10, seed=1),
            SizeError,
            "above 0",
        ),
        (
            lambda: north_south(
                2, WEB, gateways=[0, 1], load=0.5, rate_gbps=100, duration_ns=10**7, seed=1
            ),
            RankError,
            "leave hosts",
        ),
    ],
)
def test_bad_input(make, error: type[Exception], complaint: str) -> None:  # type: ignore[no-untyped-def]
    with pytest.raises(error, match=complaint):
        make()


def test_yaml() -> None:
    site = Site(8, rate_gbps=100, seed=7)
    assert len(IncastSpec.read({"bytes": "4MB", "senders": 7}).schedule(site)) == 7
    assert len(ElephantsSpec.read({"bytes": "1GB", "flows": 3}).schedule(site)) == 3
    busy = PoissonSpec.read({"load": 0.3, "duration_ns": "5ms", "sizes": "hadoop"})
    assert busy.duration_ns == 5_000_000
    assert busy.schedule(site) == busy.schedule(site)
    assert len(NorthSouthSpec.read({"load": 0.3, "duration_ns": "5ms"}).schedule(site)) > 10
    with pytest.raises(SpecError, match=r"load: .*it must be at most 1"):
        PoissonSpec.read({"load": 1.5, "duration_ns": 10})
    with pytest.raises(SpecError, match=r"unknown key 'traffic\.sender'; did you mean 'senders'"):
        IncastSpec.read({"bytes": 10, "sender": 3})
