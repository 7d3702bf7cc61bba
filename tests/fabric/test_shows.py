"""The promises of tests.fabric.shows, kept in the simulator; at length on Mininet, and on BMv2."""

from pathlib import Path

import pytest

from tests.fabric.runs import Place, Runner
from tests.fabric.shows import SHOWN_AT, SHOWS

ELSEWHERE = {  # where a test of its own is quicker or says more
    Place.SIM: {"headroom", "ecn"},  # test_pause.py, test_mark.py
    Place.MININET: set[str](),
    Place.BMV2: {"ecn"},  # test_mark.py
}


LONG = {"degraded", "incast", "deadlock", "failure"}  # test_scenarios_sim.py has their scenarios


def names(place: Place) -> list[str]:
    return [name for name in SHOWN_AT[place] if name not in ELSEWHERE[place]]


@pytest.mark.by_day(2)
@pytest.mark.parametrize(
    "name",
    [
        pytest.param(name, marks=[pytest.mark.slow] if name in LONG else [])
        for name in names(Place.SIM)
    ],
)
def test_simulated(name: str, tmp_path: Path) -> None:
    assert list(SHOWS[name](Runner(Place.SIM, tmp_path)))


@pytest.mark.mininet
@pytest.mark.slow
@pytest.mark.timeout(900)
@pytest.mark.parametrize("name", names(Place.MININET))
def test_emulated(name: str, tmp_path: Path) -> None:
    assert list(SHOWS[name](Runner(Place.MININET, tmp_path)))


@pytest.mark.reference
@pytest.mark.mininet
@pytest.mark.slow
@pytest.mark.timeout(900)
@pytest.mark.parametrize("name", names(Place.BMV2))
def test_on_bmv2(name: str, tmp_path: Path) -> None:
    assert list(SHOWS[name](Runner(Place.BMV2, tmp_path)))
