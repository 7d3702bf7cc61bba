"""Slowdowns by size: bins of about as many messages, percentiles, and when there are none."""

from pathlib import Path
from types import SimpleNamespace

import closlab
from traffic.measures import percentile
from views.report.figures import write_figure
from views.report.kept import KeptFlow
from views.report.slowdowns import by_size, slowdowns
from views.report.svg import Drawing


def run_of(*messages: tuple[int, float | None]) -> SimpleNamespace:
    """A run of messages, told by their bytes and slowdowns."""
    flows = tuple(KeptFlow("h1", "h2", of, 0, 1, slow) for of, slow in messages)
    return SimpleNamespace(flows=flows)


def test_bins_hold_about_as_many_and_those_of_one_size_stay_together() -> None:
    bins = by_size(run_of(*((of, of / 100) for of in range(1, 1001))))
    assert [(each.least, each.most, each.messages) for each in bins] == [
        (100 * at + 1, 100 * at + 100, 100) for at in range(10)
    ]
    assert bins[0].p50 == percentile([each / 100 for each in range(1, 101)], 50)
    assert bins[9].p99_9 == percentile([each / 100 for each in range(901, 1001)], 99.9)
    assert [each.p50 < each.p95 < each.p99 < each.p99_9 for each in bins] == [True] * 10
    half = by_size(run_of(*[(64, 1.0)] * 500, *((of, 2.0) for of in range(100, 600))))
    assert (half[0].least, half[0].most, half[0].messages) == (64, 64, 500)
    assert sum(each.messages for each in half) == 1000 and len(half) == 10
    assert {each.messages for each in half[1:]} <= {55, 56}


def test_messages_that_did_not_arrive_are_in_no_bin() -> None:
    assert by_size(run_of((1, None), (2, None))) == []
    (only,) = by_size(run_of((1, None), (2, 3.0)))
    assert (only.least, only.messages, only.p50, only.p99_9) == (2, 1, 3.0, 3.0)


def test_few_messages_or_messages_alike_are_not_drawn(tmp_path: Path) -> None:
    assert slowdowns(run_of(*((of, 1.0) for of in range(1, 150)))) is None
    assert slowdowns(run_of(*[(64, 1.0)] * 5000)) is None
    drawn = slowdowns(run_of(*((of, 1 + of / 1000) for of in range(1, 1001))))
    assert isinstance(drawn, Drawing)
    texts = {shape.text for shape in drawn.shapes if shape.text}
    assert {"median", "95 %", "99 %", "99.9 %"} <= texts
    for name in ("drawn.svg", "drawn.pdf"):
        write_figure(drawn, tmp_path / name)
        assert (tmp_path / name).stat().st_size > 1000


def test_a_run_of_mixed_flows_has_them_in_its_report_and_in_python(tmp_path: Path) -> None:
    traffic = {"kind": "poisson", "sizes": "hadoop", "load": 0.5, "duration_ns": "2ms"}
    changes = {"traffic": traffic, "measures.series": False}
    run = closlab.run("incast", set=changes, out=tmp_path)
    rows = closlab.records(run.slowdowns)
    assert len(rows) == 10 and sum(row["messages"] for row in rows) == len(
        closlab.records(run.flows)
    )
    assert all(1 <= row["p50"] <= row["p95"] <= row["p99"] <= row["p99_9"] for row in rows)
    assert "Slowdowns by size" in run.report().read_text()
    alike = closlab.run("incast", out=tmp_path / "alike")
    assert "Slowdowns by size" not in alike.report().read_text()
