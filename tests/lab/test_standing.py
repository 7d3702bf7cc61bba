"""Who stood still: what was noted over time adds up to what was counted, at every port."""

from pathlib import Path

import pytest

from tests.lab.simulated import simulate
from views.report import read_run
from views.report.standing import chain, first_wave, paused

RUNS = {
    "one port a host": ("pfc-storm", ()),
    "hosts with a port in each of two fabrics": ("two-fabrics", ()),
    "hosts with a port in each plane": (
        "incast",
        ("topology={kind: planes, planes: 2, leaves: 2, spines: 1, hosts_per_leaf: 3}",),
    ),
}


@pytest.mark.parametrize("kind", RUNS)
def test_who_stood_still_did_so_at_that_port_and_for_as_long(kind: str, tmp_path: Path) -> None:
    name, changes = RUNS[kind]
    run = read_run(simulate(name, *changes, out=tmp_path).out)
    stood = {row.name: row.stood_ns for row in paused(run)}
    assert stood.keys() == {*run.result.pfc.by_link}
    for direction, pause in run.result.pfc.by_link.items():
        assert stood[direction] == pytest.approx(pause.paused_ns, rel=0.02, abs=2000), direction


def test_the_first_wave_begins_with_who_stood_still_first_and_is_closed(tmp_path: Path) -> None:
    rows = paused(read_run(simulate("pfc-storm", out=tmp_path).out))
    wave = first_wave(rows)
    names = {row.name for row in wave}
    assert wave[0].first_ns == min(row.first_ns for row in rows)
    assert all(not row.cause or row.cause in names for row in wave)


def test_a_chain_leads_by_links_that_meet(tmp_path: Path) -> None:
    run = read_run(simulate("victim-flow", out=tmp_path).out)
    found = chain(run, "h8", 0, run.end_ns)
    ends = [held.link.split(">") for held in found]
    assert [end for _, end in ends[:-1]] == [begin for begin, _ in ends[1:]]
    assert ends[0][0] == "h8"
