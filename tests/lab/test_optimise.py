"""Searches: what may be turned, that they go on as if never interrupted, and what they answer."""

import json
from dataclasses import replace
from pathlib import Path

import pytest
from rich.console import Console

from lab.configs.config_db import switch_of
from lab.errors import LabError, RunError
from lab.optimise import search as searching
from lab.optimise.answer import chosen, sonic_patch, write_answer
from lab.optimise.levers import levers_of, said
from lab.optimise.published import PUBLISHED
from lab.optimise.search import Asked, Found, Runs, Tried, objective, search
from lab.progress import Stages
from lab.runs.sweep import Variant
from lab.scenario import catalogue
from tests.lab.conftest import closlab
from tests.lab.fabrics_by_lot import sound

pytest.importorskip("optuna")


def _asked(**changes: object) -> Asked:
    levers, fixed = levers_of(("incast",), ("traffic.bytes=100KB",), ("ecn",))
    asked = Asked(("incast",), fixed, levers, ("flows.fct_ns.p99", "pfc.paused_ns"), 2, 24, 24, 1)
    return replace(asked, **changes)


def _figures(variant: Variant) -> dict[str, float] | str:
    """What a run might come to: marks from 60,000 on are best, from 20,000 on nothing is paused;
    from 500,000 on packets are lost."""
    ecn, seed = variant.scenario.ecn, variant.scenario.seed or 0
    late = abs(ecn.kmin - 60_000) + ecn.kmax / 100 + 10 * seed
    return {
        "flows.fct_ns.p99": 1e6 + late, "pfc.paused_ns": float(max(0, ecn.kmin - 20_000)),
        "drops.total": float(ecn.kmin > 500_000), "flows.failed": 0.0,
    }  # fmt: skip


@pytest.fixture
def model(monkeypatch: pytest.MonkeyPatch) -> None:
    """Runs that take no time."""
    monkeypatch.setattr(searching, "figures_of", _figures)


def _searched(asked: Asked, out: Path) -> Found:
    out.mkdir(exist_ok=True)
    return search(asked, out, _runs(asked))


def _runs(asked: Asked) -> Runs:
    return Runs(asked, 1, None, Stages(Console(quiet=True)))


def test_levers_say_what_keys_take() -> None:
    levers, fixed = levers_of(
        ("incast",), ("ecn.pmax=0.5",),
        ("dcqcn", "ecn", "buffer.alpha=0.1..3", "lb.policy=ecmp,spray"),
    )  # fmt: skip
    assert fixed == ("ecn.pmax=0.5", "transport.cc=dcqcn", "ecn.enabled=true")
    by_key = {lever.key: lever for lever in levers}
    assert (by_key["buffer.alpha"].low, by_key["buffer.alpha"].high) == (-3, 1)
    assert by_key["buffer.alpha"].said(-3) == "0.125"
    assert by_key["ecn.pmax"].said(7) == "0.07"
    assert by_key["transport.dcqcn.increase_interval_ns"].low == 10_000
    values = {one.key: (one.words or (one.high,))[0] for one in levers}
    values["ecn.kmin"], values["ecn.kmax"] = 900_000, 20_000
    loaded = catalogue.load("incast", (*fixed, *said(levers, values)))
    assert loaded.ecn.kmin == loaded.ecn.kmax == 900_000


@pytest.mark.parametrize(
    "asked",
    [
        "ecm", "no.such=1..2", "ecn.kmin=5..5", "ecn.kmin=9..x", "ecn.kmin=1KB", "lb.policy=a,b",
        "lb.policy=1..2", "ecn.kmin=1..99999999999", "buffer.alpha=0..1", "ecn.pmax=nan..1",
        "=1..2", "pfc=1..2", "\x1b[2J=1..2",
    ],
)  # fmt: skip
def test_what_cannot_be_turned_is_refused(asked: str) -> None:
    with pytest.raises(LabError):
        levers_of(("incast",), (), (asked,))
    with pytest.raises(LabError, match="p99, p50"):
        objective(asked)


@pytest.mark.usefixtures("model")
def test_a_search_goes_on_as_if_never_interrupted(tmp_path: Path) -> None:
    whole = _searched(_asked(), tmp_path / "a")
    _searched(_asked(trials=8), tmp_path / "b")
    again = _searched(_asked(), tmp_path / "b")
    assert [one.changes for one in whole.tried] == [one.changes for one in again.tried]
    assert len(whole.tried) + whole.stopped == 24
    with pytest.raises(RunError, match="a search for something else"):
        _searched(_asked(seeds=3), tmp_path / "b")


@pytest.mark.usefixtures("model")
def test_what_loses_packets_is_stopped_and_never_the_answer(tmp_path: Path) -> None:
    found = _searched(_asked(trials=48, patience=48), tmp_path)
    assert found.stopped > 0
    assert len(found.front) > 1  # what is quick is paused more
    for one in found.front:
        kmin = catalogue.load("incast", (*found.asked.changes, *one.changes)).ecn.kmin
        assert 4_000 <= kmin <= 62_000
    importance = found.importance["pfc.paused_ns"]
    assert max(importance, key=lambda key: importance[key]) == "ecn.kmin"


@pytest.mark.usefixtures("model")
def test_of_two_workloads_both_count(tmp_path: Path) -> None:
    asked = _asked(scenarios=("incast", "hello"))
    found = _searched(asked, tmp_path)
    first = found.tried[0]  # as both are
    assert first.values == (pytest.approx(1), pytest.approx(1))
    answer = chosen(found, _runs(asked), 2)
    assert (answer.values[0] < 1.02, answer.values[1] < 1) == (True, True)


@pytest.mark.usefixtures("model")
def test_a_search_ends_if_nothing_better_comes_of_it(tmp_path: Path) -> None:
    asked = _asked(trials=400, patience=16, objectives=("flows.fct_ns.p99",))
    found = _searched(asked, tmp_path)
    assert len(found.tried) + found.stopped < 400
    assert "nothing better" in found.why_over


@pytest.mark.usefixtures("model")
def test_luck_with_a_few_seeds_is_no_answer(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of 40 settings one is by luck the best with the seeds of the search, and bad with others."""

    def lucky(variant: Variant) -> dict[str, float] | str:
        made = _figures(variant)
        assert isinstance(made, dict)
        if variant.scenario.ecn.kmin < 30_000:
            made["flows.fct_ns.p99"] *= 0.5 if (variant.scenario.seed or 0) < 100 else 9
        return made

    monkeypatch.setattr(searching, "figures_of", lucky)
    asked = _asked(trials=40, patience=40)
    found = _searched(asked, tmp_path)
    best = min(found.front, key=lambda one: one.values[0])
    answer = chosen(found, _runs(asked), 4)
    kmins = [catalogue.load("incast", (*asked.changes, *one.changes)).ecn.kmin
             for one in (best, answer)]  # fmt: skip
    assert kmins[0] < 30_000 <= kmins[1]


@pytest.mark.usefixtures("model")
def test_the_front_has_what_nothing_beats_in_all() -> None:
    points = [(1.0, 9.0), (2.0, 2.0), (2.0, 3.0), (9.0, 1.0), (2.0, 2.0)]
    found = Found(_asked(), [Tried(at, (), point, (), True) for at, point in enumerate(points)])
    found.tried.append(Tried(9, (), (0.0, 0.0), (), is_allowed=False))
    assert [one.number for one in found.front] == [0, 1, 3]
    with pytest.raises(RunError, match="none loses nothing"):
        chosen(Found(_asked(), found.tried[-1:]), _runs(_asked()), 2)


def test_an_answer_is_a_scenario_and_a_patch_of_a_switch(tmp_path: Path) -> None:
    changes = ("ecn.kmin=20KB", "ecn.kmax=70000", "ecn.pmax=0.25", "buffer.alpha=0.5",
               "lb.policy=dlb")  # fmt: skip
    others = write_answer(_asked(), Tried(1, changes, (), (), True), tmp_path)
    assert others == ["traffic.bytes=100KB", "lb.policy=dlb"]
    made = catalogue.load(str(tmp_path / "answer.yaml"))
    assert (made.ecn.kmin, made.ecn.kmax, made.ecn.pmax) == (20_000, 70_000, 0.25)
    ops = json.loads((tmp_path / "answer.config_db.json").read_text())
    assert ops == sonic_patch((*_asked().changes, *changes))[0]
    (tables,) = list(sound(1).tables.values())[:1]
    wred = tables["WRED_PROFILE"] = {"AZURE_LOSSLESS": {}}
    tables["DEFAULT_LOSSLESS_BUFFER_PARAMETER"] = {"AZURE": {}}
    for op in ops:
        _, table, key, field = op["path"].split("/")
        tables[table][key][field] = op["value"]
    switch = switch_of(tmp_path / "x", tables)
    read = switch.wred["AZURE_LOSSLESS"]
    assert (read.kmin, read.kmax, read.percent, read.marks) == (20_000, 70_000, 25, True)
    assert (switch.default_th, len(wred["AZURE_LOSSLESS"])) == (-1, 10)


@pytest.mark.slow
def test_a_search_from_the_command_line(tmp_path: Path) -> None:
    words = (
        "optimise", "incast", "--set", "transport.cc=dcqcn", "--set", "traffic.bytes=100KB",
        "--over", "ecn", "--for", "p99", "--trials", "2", "--seeds", "1", "--repeats", "2",
        "--processes", "1", "--out", str(tmp_path / "out"),
    )  # fmt: skip
    done = closlab(*words)
    assert done.returncode == 0, done.stderr
    assert {path.name for path in (tmp_path / "out").iterdir()} == {
        "report.html", "answer.yaml", "answer.json", "answer.config_db.json", "study.log",
        "optimise.json",
    }  # fmt: skip
    again = closlab(*words)
    assert again.stdout == done.stdout
    answer = json.loads((tmp_path / "out" / "answer.json").read_text())
    settings = {one["setting"] for one in answer["compared"]}
    assert settings == {"found", "as it is", *(profile.name for profile in PUBLISHED)}
    done = closlab("optimise", "incast", "--for", "beauty")
    assert (done.returncode, "Traceback" in done.stderr) == (1, False)


@pytest.mark.slow
def test_a_search_on_a_cluster_finds_what_one_here_finds(tmp_path: Path) -> None:
    pytest.importorskip("distributed", reason="Dask is not installed")
    words = ["optimise", "incast", "--set", "traffic.bytes=100KB", "--trials", "5", "--seeds", "1",
             "--repeats", "2", "--processes", "2", "--out"]  # fmt: skip
    answers = []
    for name, where in (("here", ()), ("there", ("--on", "dask"))):
        done = closlab(*words, str(tmp_path / name), *where)
        assert done.returncode == 0, done.stderr
        answers.append((tmp_path / name / "answer.json").read_text())
        assert (tmp_path / name / "study.log").stat().st_size > 0
    assert answers[0] == answers[1]
