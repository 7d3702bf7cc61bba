"""`closlab bench uec`: what its options choose, what it keeps, and when it fails."""

from __future__ import annotations

import json
from pathlib import Path
from statistics import median
from typing import Any

import pytest
from rich.console import Console

from bench import uec
from lab.scenario.model import Scenario

ONE_PATH, SLOW = "1,024 hosts, one path", "8 core links at a quarter, oblivious"


class Runs:
    """Stands for the simulator: notes what it is asked, and takes so many times htsim's figure."""

    def __init__(self, **factors: float) -> None:
        self.asked: list[dict[str, Any]] = []
        self.factors = factors

    def __call__(self, scenario: Scenario, _console: object) -> float:
        said = scenario.model_dump(mode="json")
        self.asked.append(said)
        hosts = "1,024" if said["topology"]["k"] == 16 else "16"
        way = {"bitmap": "sprayed", "single": "one path"}[said["transport"]["entropy"]]
        (published,) = (r.published_us for r in uec.rows() if r.name == f"{hosts} hosts, {way}")
        return published * self.factors.get(f"seed{said['seed']}", 1.0)


@pytest.fixture
def runs(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Runs:
    """In the simulator's place, with nothing kept from before."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    found = Runs()
    monkeypatch.setattr(uec, "simulated", found)
    return found


@pytest.mark.slow
def test_rows_are_chosen_by_name_and_the_large_ones_only_if_asked_for(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def published(row: uec.Row, *_: object) -> float:
        return row.published_us

    monkeypatch.setattr(uec, "measured", published)
    for words, count in (([], 8), (["--all"], 15), (["16 hosts", "one flow"], 4), (["reps"], 2)):
        assert uec.main(words) == 0
        assert capsys.readouterr().out.count("+0.0%") == count, words


def test_a_row_is_the_median_of_its_seeds_and_is_kept(
    runs: Runs, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Who asks for more seeds than before pays for these alone, and for all if settings differ."""
    runs.factors = {"seed1": 1.04, "seed2": 0.9, "seed3": 1.01}
    kept = tmp_path / "figures.json"
    assert uec.main(["16 hosts, one path", "--seeds", "2"]) == 0
    assert [said["seed"] for said in runs.asked] == [1, 2]
    assert uec.main(["16 hosts, one path", "--seeds", "3", "--json", str(kept)]) == 0
    assert [said["seed"] for said in runs.asked] == [1, 2, 3]
    shown = capsys.readouterr().out.splitlines()[-2]
    figures = [round(527.8 * factor, 1) for factor in (1.04, 0.9, 1.01)]
    for figure in (527.8, median(figures), min(figures), max(figures)):
        assert f"{figure:,.1f}" in shown
    assert "+1.0%" in shown
    (record,) = json.loads(kept.read_text())
    assert record["name"] == "16 hosts, one path" and record["difference"] == 0.01
    assert record["runs_us"] == pytest.approx([527.8 * f for f in (1.04, 0.9, 1.01)])
    assert uec.main(["16 hosts, sprayed"]) == 0
    assert len(runs.asked) == 4


def test_a_matrix_says_who_is_paired_of_many_hosts_alone(runs: Runs, tmp_path: Path) -> None:
    matrix = tmp_path / "two.cm"
    for pairs in ("0->1000 id 1 start 0 size 2000000", "1000->0 id 1 start 0 size 2000000"):
        matrix.write_text(f"Nodes 1024\nConnections 1\n{pairs}\n")
        assert uec.main(["hosts, one path", "--matrix", str(matrix)]) == 0
    small, large, again = (said["traffic"]["kind"] for said in runs.asked)
    assert (small, large, again) == ("permutation", "htsim", "htsim")


@pytest.mark.parametrize(
    ("name", "us", "status", "said"),
    [
        (SLOW, 280.8 * 1.049, 0, ""),
        (SLOW, 240.6 * 0.96, 0, "16 by each"),
        (SLOW, 240.6 * 0.94, 1, "no reason is known"),
        (ONE_PATH, 889.9 * 1.2, 0, "by lot"),
        (ONE_PATH, 889.9 * 1.3, 1, "no reason is known"),
        ("one flow, nscc", 176.2 * 0.96, 0, ""),
        ("one flow, nscc", 176.2 * 1.06, 1, "no reason is known"),
    ],
)
def test_what_differs_has_its_reason_or_the_command_fails(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str],
    name: str, us: float, status: int, said: str,
) -> None:  # fmt: skip
    monkeypatch.setattr(uec, "measured", lambda *_: us)
    assert uec.main([name]) == status
    below = capsys.readouterr().out.rpartition("┘")[2]
    assert (said in " ".join(below.split())) if said else not below.strip()


@pytest.mark.parametrize(
    ("words", "complaint"),
    [
        (["--seeds", "0"], "--seeds must be positive"),
        (["--matrix", "/no/such.cm"], "there is no /no/such.cm"),
        (["seventeen hosts"], "no row is called so; there are: one flow, nscc;"),
    ],
)
def test_nonsense_is_refused(
    capsys: pytest.CaptureFixture[str], words: list[str], complaint: str
) -> None:
    with pytest.raises(SystemExit, match="2"):
        uec.main(words)
    assert complaint in capsys.readouterr().err


def test_sixteen_hosts_take_what_they_take_in_htsim() -> None:
    """Two rows as they are measured."""
    rows = [row for row in uec.rows() if row.name.startswith("16 hosts")]
    for row in rows:
        us = uec.simulated(uec.scenario_of(row, 1, None), Console(quiet=True))
        assert uec.Measured(row, (us,)).is_near, us
