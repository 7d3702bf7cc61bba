"""A stopped link followed to its root: by links that lead on, and a browser lights them."""

from itertools import pairwise
from pathlib import Path

import pytest

from tests.lab.browser import browser, needs_chromium
from tests.lab.simulated import simulate
from views.report import read_run, write_report
from views.report.chains import chains
from views.report.kept import KeptRun
from views.report.standing import paused


@pytest.fixture(scope="module")
def storm(tmp_path_factory: pytest.TempPathFactory) -> KeptRun:
    return read_run(simulate("pfc-storm", out=tmp_path_factory.mktemp("storm")).out)


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


@needs_chromium
def test_a_finger_follows_it(storm: KeptRun) -> None:
    page = write_report(storm.folder)
    found = chains(storm)
    with browser() as chromium:
        tab = chromium.open(page.as_uri(), 1000, 900)
        tab.until("!!document.querySelector('.follow:not([hidden])')")
        assert tab.js("document.querySelectorAll('.reach').length") == len(found)
        said, lit = "document.querySelector('.follow span').textContent", ".lit"
        tab.js("document.querySelector('.follow select').value = '2'")
        tab.js("document.querySelector('.follow select').onchange()")
        name = tab.js("document.querySelector('.follow select').selectedOptions[0].text")
        assert tab.js(said) == found[name].said
        assert tab.js(f"document.querySelectorAll('{lit}').length") == len(found[name].links)
        tab.js("document.querySelectorAll('.reach')[0].dispatchEvent(new MouseEvent('click'))")
        assert tab.js(said) != found[name].said and "stood still" in tab.js(said)
        assert not tab.complaints()
