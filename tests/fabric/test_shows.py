"""The promises of tests.fabric.shows, kept in the simulator; and on Mininet, at length."""

import pytest

from tests.fabric.runs import Runner
from tests.fabric.shows import SHOWS, Show


@pytest.mark.parametrize("show", SHOWS.values(), ids=SHOWS)
def test_simulated(show: Show) -> None:
    assert list(show(Runner("sim")))


@pytest.mark.mininet
@pytest.mark.slow
@pytest.mark.timeout(900)
@pytest.mark.parametrize("show", SHOWS.values(), ids=SHOWS)
def test_emulated(show: Show) -> None:
    assert list(show(Runner("mininet")))
