"""The simulator and Mininet come to the same results."""

import csv
import io
import json
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from lab.engines import RunOptions
from lab.runs import agree
from lab.runs.agree import (
    CASES,
    MOVED,
    SPREAD,
    Comparison,
    Figures,
    compare,
    figures,
    middle,
    shown,
    simulated,
)
from tests.lab.conftest import closlab

USUAL = Figures(1000.0, {"drops": 0, "pauses": 200, "marks": 40})


def changed(time_ns: float | None = 1000.0, **counts: int) -> Figures:
    return Figures(time_ns, {**USUAL.counts, **counts})


def complaints(simulated: list[Figures], mininet: Figures, keeps_up: bool = True) -> list[str]:
    return list(compare(simulated, mininet, keeps_up).complaints)


def test_what_is_close_agrees() -> None:
    verdict = compare([USUAL], changed(1085.0, pauses=160, marks=60), keeps_up=True)
    assert verdict.complaints == ()
    assert verdict.time_ratio == pytest.approx(1.085)
    assert verdict.spread == 0


@pytest.mark.parametrize(
    ("other", "complaint"),
    [
        (changed(1120.0), "times differ by 12%"),
        (changed(880.0), "times differ by 12%"),
        (changed(None), "not everything arrived"),
        (changed(drops=1), "drops in one only"),
        (changed(pauses=140), "pauses differ by 30%"),
        (changed(marks=66), "marks differ by 39%"),
    ],
)
def test_what_differs_is_named(other: Figures, complaint: str) -> None:
    assert complaints([USUAL], other) == [complaint]
    assert len(complaints([other], USUAL)) == 1
    assert complaints([USUAL], other, keeps_up=False)[1:] == ["but the machine could not keep up"]


def test_the_middle_of_the_simulator_s_runs_counts_and_how_far_they_differ() -> None:
    runs = [changed(each) for each in (990.0, 1000.0, 1040.0)]
    verdict = compare(runs, changed(1095.0), keeps_up=True)
    assert verdict.time_ratio == pytest.approx(1.095)
    assert verdict.spread == pytest.approx(0.05)
    assert verdict.complaints == ()
    assert complaints([*runs, changed(1041.0), changed(985.0)], USUAL) == [
        "badly posed: the simulator's own times spread by 6%"
    ]
    assert complaints([*runs, changed(None)], USUAL) == ["not everything arrived"]


RESULT: dict[str, Any] = {
    "scenario": {"traffic": {"kind": "incast"}},
    "flows": {"failed": 0, "fct_ns": {"p99": 900.0, "max": 1000.0}},
    "mean_fct_ns": 500.0,
    "drops": {"total": 0},
    "pfc": {"xoff_frames": 200},
    "ecn": {"marked_packets": 40},
}


@pytest.mark.parametrize(
    ("changes", "time_ns"),
    [
        ({}, 1000.0),
        ({"jct_ns": 5000}, 5000),
        ({"scenario": {"traffic": {"kind": "poisson"}}}, 500.0),
        ({"flows": {"failed": 1, "fct_ns": None}, "jct_ns": 5000}, None),
    ],
)
def test_a_run_is_told_by_the_time_that_says_most(
    changes: dict[str, Any], time_ns: float | None
) -> None:
    assert figures(RESULT | changes) == Figures(time_ns, USUAL.counts)


def starts_ns(folder: Path) -> list[str]:
    """When the messages of a run began."""
    with (folder / "flows.csv").open(newline="") as file:
        return [row["start_ns"] for row in csv.DictReader(file)]


def well_posed(name: str, out: Path) -> None:
    """The simulator tells what to expect, whoever comes first.

    Every run has starts of its own. What does not meet is as long whenever it begins: one message
    alone, or several on ways of their own.
    """
    (case,) = (case for case in CASES if case.title == name)
    runs = simulated(case, out)
    starts = {tuple(starts_ns(folder)) for folder in (out, *out.glob("moved-*"))}
    assert len(runs) == 1 + MOVED
    assert len(starts) == len(runs) or starts == {()}  # sums in switches have no messages
    verdict = compare(runs, middle(runs), keeps_up=True)
    assert verdict.complaints == (), runs
    assert verdict.spread <= SPREAD


def test_a_case_has_an_answer(tmp_path: Path) -> None:
    well_posed("flows, adaptive", tmp_path)


def test_so_has_one_without_messages(tmp_path: Path) -> None:
    well_posed("all-reduce by reliable hops", tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize("name", [case.title for case in CASES])
def test_all_cases_have_an_answer(name: str, tmp_path: Path) -> None:
    well_posed(name, tmp_path)


def test_an_unknown_case_is_refused(tmp_path: Path) -> None:
    done = closlab("agree", "outcast", "--out", str(tmp_path))
    assert done.returncode == 1
    assert "no case is called 'outcast'" in done.stderr
    assert "incast, PFC" in done.stderr


@pytest.mark.parametrize(
    ("asked", "believed", "agrees_at", "tries"),
    [
        (None, True, 1, 1),
        (None, True, 9, 1),  # it differs, and there is nothing to be said against it
        (None, False, 1, 1),
        (None, False, 2, 2),
        (None, False, 9, 3),
        (7, False, 9, 1),  # whoever says how slowly means it
    ],
)
def test_a_run_that_differs_and_is_not_believed_is_made_again_more_slowly(
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    asked: int | None,
    believed: bool,
    agrees_at: int,
    tries: int,
) -> None:
    made: list[tuple[int | None, int, bool]] = []

    def run(_scenario: object, options: RunOptions, _hear: object) -> None:
        made.append((options.dilation, options.leisure, options.hurry))
        time_ns = 1000.0 if len(made) >= agrees_at else 2000.0
        flows = {"failed": 0, "fct_ns": {"max": time_ns}}
        result = RESULT | {"flows": flows, "fidelity": {"ok": believed}, "dilation": 5.0}
        (options.out / "result.json").write_text(json.dumps(result))
        (options.out / "flows.csv").write_text("fct_ns\n1000\n")

    monkeypatch.setattr(agree, "run_in_child", run)
    monkeypatch.setattr(agree, "simulated", lambda *_: [USUAL])
    both = agree.on_both(CASES[0], tmp_path, "1", asked, None)
    assert made == [(asked, 2 << n, n == 0) for n in range(tries)]
    assert (both.tries, both.is_believed) == (tries, believed)
    assert (both.verdict.complaints == ()) == (agrees_at <= tries)
    assert both.pace_text == ("1/5" if tries == 1 else f"1/5 (try {tries})")


def test_the_table_has_room_for_every_figure() -> None:
    counts = {"drops": 1_234_567.0, "pauses": 7_654_321.0, "marks": 2_345_678.0}
    rows = [
        (
            case.title,
            Figures(98_765_432.1, counts),
            Figures(None, counts),
            Comparison(0.987, 0.043, ()),
        )
        for case in CASES
    ]
    output = io.StringIO()
    Console(file=output, width=80).print(shown(rows))
    assert "\N{HORIZONTAL ELLIPSIS}" not in output.getvalue()
    for figure in ("98,765.4", "1,234,567", "7,654,321", "2,345,678", "4.3%", "0.987"):
        assert output.getvalue().count(figure) >= len(CASES), figure


def agrees(name: str, out: Path) -> None:
    done = closlab("agree", name, "--out", str(out))
    assert done.returncode == 0, done.stderr
    for engine in ("sim", "mininet"):
        assert json.loads((out / f"1-{engine}" / "result.json").read_text())["engine"] == engine


@pytest.mark.slow
@pytest.mark.mininet
@pytest.mark.clock
@pytest.mark.timeout(600)
def test_a_quick_case_agrees(tmp_path: Path) -> None:
    agrees("flows, spray", tmp_path)


@pytest.mark.mininet
@pytest.mark.clock
@pytest.mark.slow
@pytest.mark.timeout(900)
@pytest.mark.parametrize("name", [case.title for case in CASES])
def test_all_cases_agree(name: str, tmp_path: Path) -> None:
    agrees(name, tmp_path)
