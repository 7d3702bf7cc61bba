"""A run told step by step: what is told happened, in this order, and a browser leads through it."""

from pathlib import Path

import pytest

from lab.scenario import shipped
from tests.lab.browser import browser, needs_chromium
from tests.lab.simulated import simulate
from views.report import read_run, write_report
from views.report.kept import KeptRun
from views.report.standing import paused
from views.report.steps import steps

# By scenario: what is told, in order.
STEPS = {
    "deadlock": ("8 hosts begin", "is full", "a deadlock", "watchdog gives up", "slowed most"),
    "incast": ("7 hosts begin to write to h1", "is full", "As ", "from h8 to h1"),
    "lossy-link": ("8 hosts begin", "drops the first packet (at random", "slowed most"),
    "pfc-storm": (
        "8 hosts begin", "h1's adapter breaks", "spine1 has to stand still, too",
        "leaf3 and leaf4 have", "watchdog gives up", "h1's storm is over",
        "goes on all at once", "from h7 to h1",
    ),
    "straggler": ("begin to write", "h6 still computes, 2 times", "from h6 to h7"),
    "victim-flow": ("6 hosts begin to write to h1", "is full", "it is the victim", "slowed most"),
}  # fmt: skip


@pytest.fixture(scope="module")
def storm(tmp_path_factory: pytest.TempPathFactory) -> KeptRun:
    return read_run(simulate("pfc-storm", out=tmp_path_factory.mktemp("storm")).out)


@pytest.mark.by_day(3)
@pytest.mark.parametrize("name", STEPS)
def test_what_happened_is_told_in_its_order(name: str, tmp_path: Path) -> None:
    run = read_run(simulate(name, out=tmp_path).out)
    found = steps(run)
    assert len(found) <= 8
    assert [step.at_ns for step in found] == sorted(step.at_ns for step in found)
    assert all(0 <= step.at_ns <= run.end_ns for step in found)
    said = iter(step.said for step in found)
    missing = [each for each in STEPS[name] if not any(each in one for one in said)]
    assert missing == [], [step.said for step in found]
    known = {way for link in run.fabric.links for way in link.directions}
    assert all({*step.links} <= known for step in found)


def test_who_is_told_to_have_stood_still_did_at_that_moment(storm: KeptRun) -> None:
    rows = {row.name: row for row in paused(storm)}
    climbs = [step for step in steps(storm) if "to stand still, too" in step.said]
    assert climbs
    for step in climbs:
        first, *_ = sorted(rows[name].first_ns for name in step.links)
        assert step.at_ns == first
        assert all(name.partition(">")[0] in step.said for name in step.links)


@pytest.mark.slow
@pytest.mark.parametrize("name", shipped.names())
def test_every_scenario_has_some(name: str, tmp_path: Path) -> None:
    if "sim" not in shipped.engines(name):
        pytest.skip("the simulator cannot run it")
    found = steps(read_run(simulate(name, out=tmp_path).out))
    assert 1 <= len(found) <= 8
    assert len({step.said for step in found}) == len(found)


@pytest.mark.slow
@needs_chromium
def test_a_browser_leads_through_the_steps(storm: KeptRun) -> None:
    """By its buttons and by keys; what a step is about is lit, and large where one presents."""
    page = write_report(storm.folder)
    found = steps(storm)
    with browser() as chromium:
        tab = chromium.open(page.as_uri(), 1000, 900)
        tab.until("!!document.querySelector('.steps:not([hidden])')")
        text = "document.querySelector('.steps p').textContent"
        lit = "document.querySelectorAll('.lit')"
        assert tab.js(text) == f"What happened, in {len(found)} steps"
        for number, step in enumerate(found, 1):
            tab.click(".steps [aria-label='Next step']")
            assert tab.js(text).startswith(f"{number} of {len(found)}. ")
            assert tab.js(text).endswith(step.said)
            assert bool(tab.js(f"{lit}.length")) == bool(step.links)
        assert tab.js("document.querySelector(\".steps [aria-label='Next step']\").disabled")
        ask, present = (f"document.querySelectorAll('.steps [aria-pressed]')[{n}]" for n in (0, 1))
        tab.js(f"{present}.click()")
        assert tab.js("getComputedStyle(document.querySelector('.present')).position") == "fixed"
        tab.key("ArrowLeft")
        assert tab.js(text).startswith(f"{len(found) - 1} of ")
        tab.js(f"{ask}.click()")  # a question before the answer, at its moment
        tab.key("ArrowRight")
        assert tab.js(text).endswith(": what happens?")
        assert tab.js(f"{lit}.length") == 0
        tab.key("ArrowRight")
        assert tab.js(text).endswith(found[-1].said)
        assert tab.js("document.querySelector(\".steps [aria-label='Next step']\").disabled")
        tab.key("Escape")
        assert tab.js("!!document.querySelector('.present')") is False
        tab.js("document.querySelector('.moments input').value = 3")
        tab.js("document.querySelector('.moments input').dispatchEvent(new Event('input'))")
        assert tab.js(f"{lit}.length") == 0
        assert tab.complaints() == []
