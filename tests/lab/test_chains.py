"""A stopped link followed to its root: by links that lead on, and a browser lights them."""

import re
from itertools import pairwise
from pathlib import Path

import pytest
from rich.console import Console

from lab.engines import RunOptions
from lab.runs.lots import drawn
from lab.runs.run import run_quietly
from lab.scenario.model import MeasureSettings
from tests.lab.browser import browser, needs_chromium
from tests.lab.simulated import simulate
from views.report import read_run, write_report
from views.report.chains import chains, jobs, of_message, phases, slow
from views.report.kept import KeptRun
from views.report.standing import chain as held_by
from views.report.standing import paused


@pytest.fixture(scope="module")
def storm(tmp_path_factory: pytest.TempPathFactory) -> KeptRun:
    return read_run(simulate("pfc-storm", out=tmp_path_factory.mktemp("storm")).out)


@pytest.mark.by_day(4)
@pytest.mark.parametrize(
    ("scenario", "changes"),
    [
        ("deadlock", ()),
        ("victim-flow", ()),
        ("alltoall", ()),
        ("incast", ("topology.leaves=6", "topology.spines=3")),
        ("pfc-storm", ("faults.0.host=h6", "traffic.bytes=8MB")),
        ("dragonfly", ()),
        ("planes", ("transport.kind=roce", "transport.cc=none")),
        ("two-fabrics", ("pfc.asymmetric=true",)),
    ],
)
def test_each_link_leads_to_the_next_and_none_turns_round(
    scenario: str, changes: tuple[str, ...], tmp_path: Path
) -> None:
    run = read_run(simulate(scenario, *changes, out=tmp_path).out)
    found = chains(run)
    assert found.keys() == {row.name for row in paused(run)}
    for name, chain in found.items():
        assert chain.said.startswith(f"{name} stood still for ")
        way = [name, *(part.split()[0] for part in chain.said.split("because ")[1:])]
        way = [each for each in way if ">" in each]
        for one, other in pairwise(way):
            (begin, middle), (again, end) = (each.split(".")[0].split(">") for each in (one, other))
            assert middle == again and end != begin, chain.said
        assert {*way} <= {*chain.links}
        circle = chain.said.partition("did again")[1]
        assert bool(circle) == (len(way) > len({*way}))


def test_the_root_is_who_began_it(storm: KeptRun) -> None:
    """Where the storm reached first, its host; its victims are told at the links on the way."""
    found = chains(storm)
    root = "because h1's adapter sent pause frames without need"
    assert all(root in found[name].said for name in ("leaf1>h1", "spine1>leaf1", "h7>leaf4"))
    assert "It held up" in found["leaf4>spine1"].said and "h7>leaf4" in found["leaf4>spine1"].said
    assert "It held up" not in found["h7>leaf4"].said
    assert found["h7>leaf4"].links == ("h7>leaf4", "leaf4>spine1", "spine1>leaf1", "leaf1>h1")


def test_of_a_deadlock_it_is_the_circle(tmp_path: Path) -> None:
    run = read_run(simulate("deadlock", out=tmp_path).out)
    said = [chain.said for chain in chains(run).values()]
    assert len(said) > 15
    assert all("they waited for one another" in each for each in said)


def test_a_slow_message_leads_from_its_own_link_to_what_held_it_up(storm: KeptRun) -> None:
    worst = slow(storm)[0]
    chain = of_message(storm, worst)
    assert (worst.src, worst.dst) == ("h7", "h1")
    assert chain.said.startswith("h7's message to h1 took 4.91 ms, 29.2 times as long as alone. ")
    assert "h7>leaf4 stood still for" in chain.said
    assert "because h1's adapter sent pause frames without need" in chain.said
    assert {"h7>leaf4", "leaf1>h1"} <= {*chain.links}


def test_a_phase_ends_with_its_last_message(tmp_path: Path) -> None:
    run = read_run(simulate("checkpoint-burst", out=tmp_path).out)
    found = dict(phases(run))
    ends: dict[str, dict[int, set[str]]] = {}
    for flow in run.flows:
        own = ends.setdefault(f"{flow.what}, step {flow.step}", {})
        end = (flow.start_ns or 0) + (flow.fct_ns or 0)
        own.setdefault(end, set()).add(f"{flow.src}'s message to {flow.dst} took")
    assert found.keys() == ends.keys() and len(found) > 4
    for name, own in ends.items():
        said = found[name].said.partition("its last message was this: ")[2]
        assert any(said.startswith(whose) for whose in own[max(own)]), said


@pytest.mark.by_day(5)
@pytest.mark.parametrize("seed", range(12))
def test_of_any_run_each_slow_message_is_told(seed: int, tmp_path: Path) -> None:
    """The slowest first, by times of their own; what stood still did so within the message's time,
    and links lead on from its host."""
    case = drawn(9_400_000 + seed, tmp_path)
    options = RunOptions(tmp_path / "run", "sim")
    options.out.mkdir()
    measured = case.scenario.model_copy(update={"measures": MeasureSettings()})
    run_quietly(measured, options, Console(quiet=True))
    run = read_run(options.out)
    found = slow(run)
    times = [flow.slowdown or 0 for flow in found if flow.fct_ns is not None]
    assert times == sorted(times, reverse=True)
    late = sum((flow.slowdown or 0) >= 1.1 for flow in run.flows)
    missing = sum(flow.fct_ns is None and flow.start_ns is not None for flow in run.flows)
    assert len(found) == min(48, late + missing)
    for flow in found:
        chain = of_message(run, flow)
        assert chain.said.startswith(f"{flow.src}'s message to {flow.dst} ")
        assert not re.search(r"None|nan|  |\.\.", chain.said)
        begin, end = flow.start_ns, flow.start_ns + (flow.fct_ns or run.end_ns - flow.start_ns)
        held = held_by(run, flow.src, begin, end)
        spent = end - begin
        here = flow.src
        for each in held:
            assert each.link.partition(">")[0] == here
            here = each.link.partition(">")[2].partition(".")[0]
        for each in held:
            assert each.stood_ns <= spent + 1
            spent = each.stood_ns


@pytest.mark.slow
@needs_chromium
def test_a_finger_follows_it(storm: KeptRun) -> None:
    page = write_report(storm.folder)
    found = chains(storm)
    with browser() as chromium:
        tab = chromium.open(page.as_uri(), 1000, 900)
        tab.until("!!document.querySelector('.follow:not([hidden])')")
        assert tab.js("document.querySelectorAll('.reach').length") == len(found)
        said, lit = "document.querySelector('.follow span').textContent", ".lit"
        tab.js("document.querySelector('.follow select').value = 'l2'")
        tab.js("document.querySelector('.follow select').onchange()")
        name = tab.js("document.querySelector('.follow select').selectedOptions[0].text")
        assert tab.js(said) == found[name].said
        assert tab.js(f"document.querySelectorAll('{lit}').length") == len(found[name].links)
        tab.js("document.querySelectorAll('.reach')[0].dispatchEvent(new MouseEvent('click'))")
        assert tab.js(said) != found[name].said and "stood still" in tab.js(said)
        worst = slow(storm)[0]
        tab.js("document.querySelector('[data-why=m0]').dispatchEvent(new MouseEvent('click'))")
        assert tab.js(said) == of_message(storm, worst).said
        chosen = tab.js("document.querySelector('.follow select').selectedOptions[0].text")
        assert chosen.startswith(f"{worst.src} to {worst.dst}, ")
        assert not tab.complaints()


@pytest.mark.slow
@needs_chromium
def test_a_job_is_asked_about_by_its_box(tmp_path: Path) -> None:
    """It waited for whoever had its hosts before, and its slowest message is one of its own."""
    run = read_run(simulate("cluster-day", out=tmp_path).out)
    found, chains = run.result.cluster, jobs(run)
    assert found and found.longest_queued.queued_ns
    for job in found.jobs:
        said = chains[job.name].said
        assert said.startswith(job.name)
        assert ("waited" in said.split(".")[0]) == bool(job.queued_ns)
        named = re.search(r"was this: (\w+)'s message to (\w+) took", said)
        (piece,) = job.pieces
        assert named is None or {*named.groups()} <= {*piece[0]}
    queued = found.longest_queued
    (freed,) = re.findall(r"until (\S+) freed", chains[queued.name].said)
    (before,) = [job for job in found.jobs if job.name == freed]
    assert {*before.pieces[0][0]} & {*queued.pieces[0][0]} and before.ended_ns is not None
    assert before.ended_ns <= (queued.started_ns or 0)
    with browser() as chromium:
        tab = chromium.open(write_report(run.folder).as_uri(), 1000, 900)
        tab.until("!!document.querySelector('.follow:not([hidden])')")
        for at in (0, len(chains) - 1):
            box = f"document.querySelector('[data-why=j{at}]')"
            tab.js(f"{box}.dispatchEvent(new MouseEvent('click'))")
            assert tab.js("document.querySelector('.follow span').textContent") in {
                chain.said for chain in chains.values()
            }
        chosen = tab.js("document.querySelector('.follow select').selectedOptions[0].text")
        assert chosen == [*chains][-1]
        assert not tab.complaints()
