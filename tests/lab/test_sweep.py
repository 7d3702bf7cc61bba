"""Sweeps: every combination once, in any number of processes, and a table of all."""

import csv
from pathlib import Path

import pytest

from lab.errors import RunError
from lab.sweep import values_of
from tests.lab.conftest import closlab


def table(folder: Path) -> list[dict[str, str]]:
    with (folder / "sweep.csv").open() as file:
        return list(csv.DictReader(file))


def test_every_combination_is_run_and_says_the_same_in_any_number_of_processes(
    tmp_path: Path,
) -> None:
    words = ["sweep", "incast", "--set", "traffic.bytes=200KB", "--vary", "seed=1..2"]
    words += ["--vary", "pfc.enabled=true,false"]
    for processes in ("1", "2"):
        done = closlab(*words, "--processes", processes, "--out", str(tmp_path / processes))
        assert done.returncode == 0, done.stderr
    rows = table(tmp_path / "2")
    assert rows == table(tmp_path / "1")
    asked = [(row["seed"], row["pfc.enabled"]) for row in rows]
    assert asked == [("1", "true"), ("1", "false"), ("2", "true"), ("2", "false")]
    drops = {(row["seed"], row["pfc.enabled"]): int(row["drops.total"]) for row in rows}
    assert drops["1", "true"] == drops["2", "true"] == 0
    assert (tmp_path / "2" / "4" / "result.json").exists()


@pytest.mark.parametrize(
    ("vary", "complaint"),
    [
        (("--vary", "pfc.enabld=true,false"), "did you mean 'pfc.enabled'"),
        (("--vary", "seed"), "write it as KEY=VALUE,VALUE"),
        (("--vary", "seed=9..1"), "no range"),
        ((), "nothing to vary"),
    ],
)
def test_what_makes_no_sense_is_refused_before_anything_runs(
    tmp_path: Path, vary: tuple[str, ...], complaint: str
) -> None:
    done = closlab("sweep", "incast", *vary, "--out", str(tmp_path))
    assert done.returncode == 1
    assert complaint in done.stderr
    assert list(tmp_path.iterdir()) == []


def test_ranges_and_lists() -> None:
    assert values_of("seed=2..4") == ["seed=2", "seed=3", "seed=4"]
    assert values_of("lb.policy=ecmp,spray") == ["lb.policy=ecmp", "lb.policy=spray"]
    with pytest.raises(RunError):
        values_of("=1,2")
