"""Measures: by their definitions, on timelines made by hand and by the ideal fabric."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.traffic.collectives.single import schedule_of
from traffic.collectives import (
    NEVER,
    Activity,
    AlphaBeta,
    CollectiveSpec,
    ScheduleBuilder,
    ScheduleError,
    Site,
    Timeline,
    collective,
)
from traffic.jobs import SimpleJob
from traffic.measures import Measures, algbw_gbps, busbw_gbps, percentile
from traffic.patterns import incast


def test_bandwidths_as_nccl_tests_has_them() -> None:
    """1 GB in 10 ms is 100 GB/s, that is 800 Gb/s; the factors are those of its documentation."""
    assert algbw_gbps(10**9, 10**7) == 800
    for op, factor in (
        ("all-reduce", 14 / 8),
        ("reduce-scatter", 7 / 8),
        ("all-gather", 7 / 8),
        ("all-to-all", 7 / 8),
        ("broadcast", 1),
    ):
        assert busbw_gbps(op, 8, 10**9, 10**7) == pytest.approx(800 * factor)


def test_a_ring_on_an_ideal_fabric_has_the_busbw_of_its_ports() -> None:
    for n in (2, 8, 64):
        schedule = schedule_of(collective("all-reduce", n, 1 << 28))
        timeline = AlphaBeta(0, 100).run(schedule)
        (measured,) = Measures(schedule, timeline, 0, 100).collectives
        assert measured.busbw_gbps == pytest.approx(100, rel=1e-3)


def test_percentiles_are_values_that_occurred() -> None:
    assert [percentile([15, 20, 35, 40, 50], p) for p in (0, 5, 30, 40, 50, 100)] == [
        15, 15, 20, 20, 35, 50,
    ]  # fmt: skip
    for values, percent in (([], 50), ([1], -1), ([1], 101)):
        with pytest.raises(ValueError, match=r"no percentile|not a percentage"):
            percentile(values, percent)


@given(st.lists(st.integers(), min_size=1), st.floats(0, 100))
def test_a_percentile_splits_its_values(values: list[int], percent: float) -> None:
    found = percentile(values, percent)
    assert found in values
    assert sum(value <= found for value in values) >= len(values) * percent / 100
    assert sum(value < found for value in values) <= len(values) * percent / 100


def test_flows_and_slowdown() -> None:
    schedule = incast(4, 1000, messages=2)
    measures = Measures(schedule, AlphaBeta(1000, 100).run(schedule), 1000, 100)
    flows = measures.flows
    assert [(f.src, f.dst, f.bytes, f.messages) for f in flows] == [
        (1, 0, 2000, 2), (2, 0, 2000, 2), (3, 0, 2000, 2),
    ]  # fmt: skip
    # Alone 1080 ns; the receiver's port adds 80 for each that came before.
    assert [f.slowdown for f in flows] == pytest.approx([1, 1160 / 1080, 1240 / 1080])
    assert flows[2].fct_ns == 2 * 1080 + 2 * 80
    assert measures.span_ns == flows[2].fct_ns
    assert measures.failed == 0
    assert measures.jobs == measures.collectives == []


def test_a_step_by_hand() -> None:
    """Two ranks compute 100 and 300, one sends for 50 in between and 200 at the end."""
    builder = ScheduleBuilder(2)
    compute = builder.activity(Activity("compute", "compute", job="j"))
    flow = builder.activity(Activity("flows", "x", job="j"))
    builder.work(0, 100, activity=compute)
    builder.work(1, 300, activity=compute)
    builder.transfer(0, 1, 10, activity=flow)
    builder.transfer(1, 0, 10, activity=flow)
    timeline = Timeline([0, 0, 120, 300], [100, 300, 170, 500])
    (job,) = Measures(builder.build(), timeline, 1, 1).jobs
    (step,) = job.steps
    assert (step.start_ns, step.end_ns, step.compute_ns, step.comm_ns) == (0, 500, 200, 250)
    assert step.gpu_utilisation == job.gpu_utilisation == 200 / 500
    assert job.jct_ns == 500


def test_repeated_collectives_are_steps() -> None:
    spec = CollectiveSpec(op="all-reduce", bytes=8_000_000, repeat=3)
    schedule = spec.schedule(Site(8))
    measures = Measures(schedule, AlphaBeta().run(schedule), 1000, 100)
    assert len(measures.collectives) == 3
    (job,) = measures.jobs
    assert job.jct_ns == pytest.approx(3 * 14 * 81_000, rel=1e-3)
    assert job.gpu_utilisation == 0


def test_a_peer_that_dies_fails_the_job_by_name() -> None:
    job = SimpleJob.read(
        {
            "name": "red", "steps": 3, "compute_ns": "1ms",
            "collective": {"op": "all-reduce", "bytes": "8MB"},
        }
    )  # fmt: skip
    schedule = job.schedule(4)
    whole = AlphaBeta().run(schedule)
    timeline = AlphaBeta(dead_at_ns={2: whole.finish_ns // 2}).run(schedule)
    measures = Measures(schedule, timeline, 1000, 100)
    (found,) = measures.jobs
    assert found.jct_ns is None
    assert found.gpu_utilisation is None
    assert found.steps[0].gpu_utilisation is not None
    assert measures.failed > 0
    assert measures.span_ns is None
    first = measures.failures[0]
    assert first.startswith("job red, step 1: all-reduce ring:")
    assert "transfers never ended" in first
    assert any(flow.end_ns is None and flow.slowdown is None for flow in measures.flows)


def test_timelines_that_do_not_fit() -> None:
    schedule = incast(3, 10)
    with pytest.raises(ScheduleError, match="3 transfers for a schedule of 2"):
        Measures(schedule, Timeline([0, 0, 0], [1, 1, NEVER]), 1, 1)
    with pytest.raises(ScheduleError, match="2 starts and 1 ends"):
        Timeline([0, 0], [1])
