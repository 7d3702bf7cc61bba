"""closlab bmwg: the draft's arithmetic, held against the runs' own files by another computation."""

import csv
import json
import random
from collections.abc import Sequence
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from lab.bmwg import balancing, collectives, congestion, jobs, rdma, scale
from lab.bmwg.arithmetic import (
    bus_bandwidth,
    carried_by,
    fairness,
    marking,
    max_mean,
    roofline_ns,
    settles,
    slope,
)
from lab.bmwg.bench import KIB, Bench, Extent, in_words
from lab.bmwg.case import Asks, Case, Found, together
from lab.bmwg.comparing import differing
from lab.bmwg.draft import TESTS, chosen
from lab.bmwg.outcome import Outcome, Row
from lab.bmwg.running import Job, Workshop, carry_out, run_job
from lab.errors import LabError
from lab.progress import Stages
from tests.lab.bmwg_model import MODELS, NOT_MODELLED, Kept
from tests.lab.conftest import closlab

SMALL = Bench.of(
    None, ("topology={kind: leaf-spine, leaves: 2, spines: 2, hosts_per_leaf: 2}",
           "link.rate_gbps=100", "buffer.bytes=2MB"),
    extent=Extent(is_quick=True, trials=2, most_bytes=20_000_000),
)  # fmt: skip


class Here(Workshop, frozen=False):
    """Runs in this process, one after the other."""

    def _make(self, missing: list[Job]) -> None:  # type: ignore[override]
        for job in missing:
            self._note(job, run_job(job))


@pytest.fixture(scope="module")
def workshop(tmp_path_factory: pytest.TempPathFactory) -> Workshop:
    return Here(SMALL, tmp_path_factory.mktemp("bmwg"), 1, Stages(Console(quiet=True)))


def check_rows(name: str, rows: Sequence[Row], workshop: Workshop, table: int = 0) -> int:
    """Every figure is the model's; how many these are."""
    compared = 0
    for row in rows:
        runs = [Kept(workshop.job(case).folder) for case in row.cases]
        if not runs:
            continue
        model = MODELS[name][table](runs, dict(row.of))
        for figure, values in row.figures.items():
            if values and (name, figure) not in NOT_MODELLED:
                assert list(values) == pytest.approx(model[figure], rel=1e-9), (figure, row.of)
                compared += len(values)
    return compared


def test_figures_of_each_kind_are_those_of_the_runs(workshop: Workshop) -> None:
    bench = SMALL
    seeds = (1, 2)

    def marks() -> Asks[Row]:
        row, _ = yield from congestion._marks(bench, 100_000)
        return row

    def paused() -> Asks[Row]:
        cases = [congestion.incast(bench, "7.2", 3, seed) for seed in seeds]
        found = yield cases
        return Row({}, congestion.pauses(bench, found), cases)

    def idle_or_loaded(which: int) -> Asks[Row]:
        rows, _ = yield from rdma._latency(bench, 4 * KIB, seeds)
        return rows[which]

    def reduced() -> Asks[Row]:
        case = collectives.case(bench, "9.1", "all-reduce", 4, 200_000, 5)
        (found,) = yield [case]
        return Row({"N": "4"}, collectives.figures(found, "all-reduce", 4, 200_000, 100), [case])

    balanced = [balancing.elephants(bench, "8.1", "ecmp", seed) for seed in seeds]
    asked: dict[str, Asks[Row]] = {
        "latency": idle_or_loaded(1),
        "bursts": rdma._burst(bench, 2),
        "ecn": marks(),
        "pfc": paused(),
        "ecmp": balancing._measured(bench, {}, balanced),
        "allreduce": reduced(),
        "failover": scale._fails(bench, "leaf uplink", "spray"),
        "dcqcn": congestion.convergence(bench, "7.3", 2, "", transport={"cc": "dcqcn"}),
    }
    rows = carry_out(asked, workshop)
    for name, row in rows.items():
        assert isinstance(row, Row), (name, row)
        assert check_rows(name, [row], workshop) >= 1, name
    whole = carry_out({"jct": jobs.synthetic(bench), "tenants": jobs.tenants(bench)}, workshop)
    for name, outcome in whole.items():
        assert isinstance(outcome, Outcome), outcome
        assert check_rows(name, outcome.tables[0].rows, workshop) >= 3, name


def test_a_found_rate_is_sustained_and_the_next_step_is_not(workshop: Workshop) -> None:
    offer = rdma.Offer(4 * KIB)

    def sought() -> Any:
        return (yield from rdma.search(SMALL, offer))

    found = carry_out({"it": sought()}, workshop)["it"]
    assert isinstance(found, rdma.Sought) and found.case and found.found
    runs = [Kept(workshop.job(found.case).folder)]
    goodput = MODELS["throughput"][0](runs, {})["aggregate goodput"]
    assert goodput == pytest.approx([rdma.aggregate_gbps(found.found)])
    if found.share < 1:
        above = offer.case(SMALL, found.share + 1 / 8)
        assert not rdma.is_sustained(workshop.tell([above])[above])


@pytest.mark.parametrize("seed", range(20))
def test_a_binary_search_finds_what_is_there(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever the capacity and the guess: within a step below it, and soon if that is good."""
    chance = random.Random(seed)
    capacity = chance.uniform(0.02, 1.2)
    bench = Bench(SMALL.device, Extent(is_quick=chance.random() < 0.5))
    step = 1 / 8 if bench.extent.is_quick else 1 / 64
    tried: list[float] = []
    monkeypatch.setattr(rdma.Offer, "case", lambda _s, _b, share, _seed=1: tried.append(share))
    monkeypatch.setattr(rdma, "is_sustained", lambda _found: tried[-1] <= capacity)
    guess = chance.choice([capacity, chance.uniform(0, 1)])
    monkeypatch.setattr(rdma, "delivered", lambda _found: {("h1", "h2"): guess})
    search = rdma.search(bench, rdma.Offer(64))
    next(search)
    try:
        while True:
            search.send([None])  # type: ignore[list-item]
    except StopIteration as stop:
        share = stop.value.share
    assert share == 1 if capacity >= 1 else share <= capacity < share + step + 1e-12
    assert len(tried) <= (3 if guess == capacity else 13) and tried[0] == 1


@pytest.mark.parametrize("seed", range(10))
def test_formulas_are_those_of_fractions(seed: int) -> None:
    chance = random.Random(seed)
    loads = [chance.randrange(1, 10**9) for _ in range(chance.randrange(1, 40))]
    n = len(loads)
    index = Fraction(sum(loads) ** 2, n * sum(load * load for load in loads))
    assert fairness(loads) == pytest.approx(float(index))
    assert 1 / n <= fairness(loads) * (1 + 1e-12) and fairness([7] * n) == pytest.approx(1)
    assert max_mean(loads) == pytest.approx(float(Fraction(max(loads) * n, sum(loads))))
    ranks, size, took = (
        chance.randrange(2, 1024),
        chance.randrange(1, 10**10),
        chance.random() * 1e9,
    )
    for op, times in (("all-reduce", 2), ("all-gather", 1), ("all-to-all", 1)):
        factor = Fraction(times * (ranks - 1), ranks)
        assert bus_bandwidth(op, ranks, size, took) == pytest.approx(8 * size * factor / took)
        # At the roofline without compute, bus bandwidth is the line's rate.
        line = roofline_ns(1, 0, op, ranks, size, 400)
        assert bus_bandwidth(op, ranks, size, line) == pytest.approx(400)
        assert roofline_ns(7, 11, op, ranks, size, 400) == pytest.approx(7 * (11 + line))


def test_stories_windows_and_lines() -> None:
    story = [(0, 0), (10, 100), (20, 100), (40, 500)]
    assert [carried_by(story, at) for at in (-1, 0, 5, 15, 30, 99)] == [0, 0, 0, 100, 100, 500]
    assert slope([(0, 1), (1, 3), (2, 5)]) == pytest.approx(2) and slope([(1, 1), (1, 2)]) == 0
    fair, unfair = [1.0, 1.05], [1.0, 2.0]
    assert settles([unfair, fair, unfair, fair, fair], 0.1) == 3
    assert settles([fair, unfair], 0.1) is None and settles([[0.0, 0.0]], 0.1) is None
    assert marking([(5, 10, 0), (15, 10, 5), (16, 10, 10)], 10) == {5: 0, 15: 0.75}
    assert [in_words(size) for size in (64, 1024, 4 << 20, 1000)] == [
        "64 B", "1 KiB", "4 MiB", "1 KB"]  # fmt: skip


def test_tests_that_ask_together_get_each_their_own() -> None:
    def asks(*times: int) -> Any:
        got: list[str] = []
        for turn, count in enumerate(times):
            got += yield [f"{times}{turn}{n}" for n in range(count)]
        return got

    whole: Any = together([asks(2, 1), asks(), asks(0, 3, 1)])
    asked = next(whole)
    try:
        while True:
            asked = whole.send([f"{case}!" for case in asked])
    except StopIteration as stop:
        one, none, three = stop.value
    assert none == [] and all(each.endswith("!") for each in one + three)
    assert [each[:6] for each in one] == ["(2, 1)"] * 3 and len(three) == 4


def test_every_section_of_the_draft_is_there_and_strangers_are_told() -> None:
    assert {test.chapter for test in TESTS} == set(range(5, 13))
    assert [test.key for test in chosen(["8", "7.1"])] == [
        "ecn", "ecmp", "flowlet", "spray", "fairness"]  # fmt: skip
    with pytest.raises(LabError, match=r"no test 'thruput'; did you mean 'throughput'"):
        chosen(["thruput"])
    with pytest.raises(LabError, match="Resource leaks"):
        chosen(["12.2"])
    with pytest.raises(LabError, match="more hosts"):
        chosen(["dcqcn"], "mininet")


def test_no_collective_is_left_without_a_run() -> None:
    bench = Bench.of(None, ())
    keys = ("allreduce", "alltoall", "allgather", "scale", "jct")
    asked = {test.key: list(next(test.run(bench))) for test in TESTS if test.key in keys}
    assert len(asked) == len(keys) and all(asked.values())
    for case in asked["allreduce"] + asked["alltoall"] + asked["scale"][::2]:
        traffic = case.content["traffic"]
        sent = (len(traffic["ranks"]) - 1) * traffic["bytes"] * traffic["repeat"]
        assert traffic["repeat"] >= 2 and sent <= bench.extent.most_bytes


@pytest.mark.slow
def test_the_command_reports_goes_on_and_compares(tmp_path: Path) -> None:
    small = ("--set", "topology.leaves=2", "--set", "topology.hosts_per_leaf=2", "--trials", "1")
    out = tmp_path / "one"
    words = ("bmwg", "fairness", "--quick", *small, "--processes", "1")
    first = closlab(*words, "--out", str(out))
    assert first.returncode == 0, first.stderr
    report = json.loads((out / "bmwg.json").read_text())
    assert report["schema"] == "closlab.bmwg/1" and report["is_quick"]
    with (out / "bmwg.csv").open() as file:
        lines = list(csv.DictReader(file))
    (test,) = report["results"]
    rows = test["tables"][0]["rows"]
    assert len(lines) == sum(v is not None for row in rows for v in row["figures"].values())
    kept = Kept(Path(lines[0]["command"].split()[2]).parent)
    assert float(lines[2]["mean"]) == pytest.approx(MODELS["fairness"][0]([kept], {})["JFI"][0])
    page = (out / "index.html").read_text()
    for part in ("1. DUT identification", "2. Test topology", "5. Test results", "6. Anomalies",
                 "7. Repeatability", "8. Comparability", "no benchmark result"):  # fmt: skip
        assert part in page
    again = closlab(*words, "--out", str(out))
    assert "0 runs were made" in again.stdout
    other = tmp_path / "other"
    report["comparability"]["N"] = 99
    other.mkdir()
    (other / "bmwg.json").write_text(json.dumps(report))
    assert list(differing(json.loads((out / "bmwg.json").read_text()), report)) == ["N"]
    side = closlab("bmwg", "--compare", str(out), "--compare", str(other), "--out",
                   str(tmp_path / "side"))  # fmt: skip
    assert side.returncode == 0, side.stderr
    assert "They differ in N" in (tmp_path / "side" / "compared.html").read_text()


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (("--most", "much"), "is no size"),
        (("--dut", "nowhere"), "there is no scenario"),
        (("--set", "topology.leaf=2"), "leaf"),
        (("--set", "traffic.bytes=1MB"), "is not of the device under test"),
        (("--switch", "bmv2"), "own"),
        (("--compare", "nowhere"), "takes two reports"),
        (("--compare", "nowhere", "--compare", "nowhere"), "nowhere"),
        (("--p4", "nowhere"), "nowhere"),
    ],
)
def test_what_cannot_be_is_told(words: tuple[str, ...], expected: str, tmp_path: Path) -> None:
    tests = () if "--compare" in words else ("fairness",)
    came = closlab("bmwg", *tests, *words, "--out", str(tmp_path / "out"))
    assert came.returncode == 1 and expected in came.stderr
    assert "Traceback" not in came.stderr


@pytest.mark.slow
@pytest.mark.timeout(3600)
def test_every_figure_of_a_quick_benchmark_is_that_of_its_runs(tmp_path: Path) -> None:
    bench = Bench.of(None, (), extent=Extent(is_quick=True, trials=2))
    shop = Workshop(bench, tmp_path, 2, Stages(Console(quiet=True)))
    done = carry_out({test.key: test.run(bench) for test in TESTS}, shop)
    compared = {
        (name, at): check_rows(name, table.rows, shop, at)
        for name, outcome in done.items()
        for at, table in enumerate(outcome.tables if isinstance(outcome, Outcome) else ())
    }
    assert {name for name, _ in compared} == {test.key for test in TESTS}, done
    assert all(compared.values()), compared


def test_a_case_is_made_again_by_its_own_command(workshop: Workshop) -> None:
    case: Case = rdma.Offer(64).case(SMALL, 0.5)
    found = workshop.tell([case])[case]
    assert isinstance(found, Found)
    words = workshop.job(case).command.split()
    again = closlab(*words[1:], "--out", str(workshop.out / "again"))
    assert again.returncode == 0, again.stderr
    ours = (found.folder / "flows.csv").read_bytes()
    assert ours == (workshop.out / "again" / "flows.csv").read_bytes()
