"""What `closlab test --quick` takes: the most cases for the time."""

from pathlib import Path

import pytest

from tests import costs
from tests.costs import Cost, cheap

ROOT = Path(__file__).parent.parent


def test_the_cheapest_cases_come_first() -> None:
    many, one, slow = Cost("many", 100, 2.0), Cost("one", 1, 0.5), Cost("slow", 2, 8.0)
    assert cheap([slow, one, many], 10.5) == {"many", "one", "slow"}
    assert cheap([slow, one, many], 10.4) == {"many", "one"}
    assert cheap([slow, one, many], 2.0) == {"many"}


def test_what_is_noted_is_there() -> None:
    """A file that is gone costs nothing; most cases are quick, at a small part of the cost."""
    noted = costs.noted()
    files = {costs.file_of(cost.function) for cost in noted}
    assert not [name for name in files if not (ROOT / name).exists()]
    chosen = cheap(noted)
    quick = [cost for cost in noted if cost.function in chosen]
    assert sum(cost.cases for cost in quick) > sum(cost.cases for cost in noted) / 2
    assert sum(cost.seconds for cost in quick) < sum(cost.seconds for cost in noted) / 10


def test_a_day_is_short() -> None:
    """What is too much for it is cut, or goes to the night and leaves something lighter here."""
    assert sum(cost.seconds for cost in costs.noted()) < costs.DAY_S


def test_files_that_were_measured_are_noted_anew(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With what two processes say of one function; what is gone from a file goes from the notes."""
    monkeypatch.setattr(costs, "COSTS", tmp_path / "costs.csv")
    costs.COSTS.write_text("a.py::test_gone,1,9.00\na.py::test_x,1,9.00\nb.py::test_y,2,1.00\n")
    (tmp_path / "new").write_text("a.py::test_x,1,0.25\na.py::test_x,2,0.50\n")
    costs.merge(tmp_path / "new")
    assert costs.COSTS.read_text() == "a.py::test_x,3,0.75\nb.py::test_y,2,1.00\n"
