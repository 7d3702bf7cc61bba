"""Pauses one by one and what buffers held: they add up to what was counted otherwise."""

from collections import Counter
from itertools import pairwise
from pathlib import Path

import pytest

from controller.tables import SwitchSite, headroom_of, pool_of
from tests.lab.simulated import Run, simulate


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Run:
    return simulate("victim-flow", out=tmp_path_factory.mktemp("noted"))


def test_what_stood_still_between_xoff_and_xon_is_what_was_counted(run: Run) -> None:
    stood: Counter[str] = Counter()
    since: dict[str, int] = {}
    for note in run.outcome.pauses:
        assert note.what in ("xoff", "xon")
        if note.what == "xoff":
            since.setdefault(note.link, note.time_ns)
        elif note.link in since:
            stood[note.link] += note.time_ns - since.pop(note.link)
    for link, began in since.items():
        stood[link] += run.outcome.end_ns - began
    counted = {name: pause.paused_ns for name, pause in run.result.pfc.by_link.items()}
    # What stands still as the run ends may have been told so since; what ran out was not told.
    assert stood == {name: pytest.approx(ns, abs=2000) for name, ns in counted.items()}
    assert sum(counted.values()) > 1_000_000
    noted = Counter(note.what for note in run.outcome.pauses)
    assert noted["xoff"] == pytest.approx(run.result.pfc.xoff_frames, abs=2)
    assert noted["xon"] == pytest.approx(run.result.pfc.xon_frames, abs=len(counted))
    times = [note.time_ns for note in run.outcome.pauses]
    assert times == sorted(times)


def test_a_buffer_holds_no_more_than_it_has_and_its_queues_what_it_holds(run: Run) -> None:
    """Of one lossless class without reserved bytes the pool holds just what its queues do."""
    fabric, settings = run.experiment.fabric, run.experiment.settings
    assert len(run.outcome.stocks) > 1000
    for switch in fabric.switches:
        site = SwitchSite(fabric, switch, settings)
        pool, headroom = pool_of(site), sum(headroom_of(site, port) for port in site.ports)
        mine = [stock for stock in run.outcome.stocks if stock.switch == switch.name]
        assert max(stock.headroom_bytes for stock in mine) > 0
        for stock in mine:
            assert stock.pool_bytes <= pool and stock.headroom_bytes <= headroom
            assert 0 < stock.queue_bytes <= stock.used_bytes
            assert stock.link.endswith(f">{switch}")
        by_moment: Counter[int] = Counter()
        for stock in mine:
            by_moment[stock.time_ns] += stock.used_bytes
        assert all(by_moment[stock.time_ns] == stock.pool_bytes for stock in mine)


def test_pauses_begin_where_the_fullest_queue_met_its_threshold(run: Run) -> None:
    """Before a switch tells the first to pause its fullest queue is near alpha times free."""
    first = run.outcome.pauses[0]
    switch = first.link.partition(">")[2]
    site = SwitchSite(
        run.experiment.fabric, run.experiment.fabric.node(switch), run.experiment.settings
    )
    around = [stock for stock in run.outcome.stocks if stock.switch == switch]
    before, after = next(
        (one, other) for one, other in pairwise(around) if other.time_ns >= first.time_ns - 1000
    )

    def threshold(pool_bytes: int) -> float:
        return run.experiment.settings.buffer.alpha * (pool_of(site) - pool_bytes)

    assert before.queue_bytes < threshold(before.pool_bytes) + 4200
    assert max(after.queue_bytes, before.queue_bytes) > threshold(after.pool_bytes) - 3 * 4200


def test_files_of_another_run_do_not_stay(tmp_path: Path) -> None:
    simulate("incast", "traffic.bytes=100KB", out=tmp_path)
    assert (tmp_path / "pauses.csv").exists() and (tmp_path / "buffers.csv").exists()
    simulate("incast", "traffic.bytes=100KB", "measures.series=false", out=tmp_path)
    assert not (tmp_path / "pauses.csv").exists() and not (tmp_path / "buffers.csv").exists()
