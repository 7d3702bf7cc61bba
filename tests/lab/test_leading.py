"""A job that is led round another does what it would have done, later."""

from pathlib import Path

import pytest
from rich.console import Console

from lab.engines import RunOptions
from lab.engines.sim import engine as sim
from lab.progress import Stages
from lab.runs.leading import Lead, led, longest_ns, without
from lab.scenario.catalogue import made
from lab.scenario.experiment import Experiment
from lab.scenario.translate import data_headers_bytes
from tests.lab.any_skips import judged
from traffic.collectives import Timeline
from traffic.collectives.collective import BARRIER_BYTES

_PLAIN = {
    "kind": "job", "ranks": 4, "compute_ns": 20_000, "overlap": True, "buckets": 2,
    "collective": {"op": "all-reduce", "bytes": 20_000}, "barrier": True,
}  # fmt: skip
_TRAINING = {
    "kind": "training", "model": "gpt3-175b", "batch": {"sequences": 4}, "scale": 5e-6,
    "parallelism": {"tensor": 1, "pipeline": 2, "data": 2}, "clip_gradients": True,
}  # fmt: skip
_FABRIC = {"kind": "leaf-spine", "leaves": 2, "spines": 2, "hosts_per_leaf": 4}


def ran(experiment: Experiment, out: Path) -> Timeline:
    """When everything happened."""
    options = RunOptions(out=out, engine="sim")
    with sim.bring_up(experiment, options, Stages(Console(quiet=True))) as up:
        return up.measure().timeline


@pytest.mark.parametrize("job", [_PLAIN, _TRAINING], ids=["job", "training"])
def test_who_meets_nobody_does_the_same_later(job: dict[str, object], tmp_path: Path) -> None:
    jobs = [{**job, "name": name, "steps": 5} for name in ("first", "second")]
    experiment = Experiment.of(
        made({"name": "t", "topology": _FABRIC, "traffic": {"kind": "mix", "parts": jobs}})
    )
    lead = Lead("second", 1234)
    late = ran(led(experiment, lead), tmp_path)
    usual = ran(experiment, tmp_path)
    assert late.finish_ns == usual.finish_ns + 5 * 1234
    found = without(experiment.schedule, late, lead)
    assert [*found.start_ns] == [*usual.start_ns]
    assert [*found.end_ns] == [*usual.end_ns]


def test_how_long_messages_take_that_wait_for_each_other() -> None:
    """A ring of four sends six eighths, one after the other, of each half; then two rounds."""
    experiment = Experiment.of(
        made(
            {
                "name": "t",
                "topology": _FABRIC,
                "link": {"rate_gbps": 100, "mtu": 4096},
                "traffic": {**_PLAIN, "name": "first", "steps": 2},
            }
        )
    )
    headers = data_headers_bytes(experiment.scenario)
    eighth_ns, token_ns = ((size + headers) * 0.08 for size in (20_000 / 8, BARRIER_BYTES))

    def longest(limit_ns: float, share: float = 1) -> float:
        return longest_ns(experiment, "first", limit_ns, lambda _: share)

    assert longest(10**9) == pytest.approx(12 * eighth_ns + 2 * token_ns)
    assert longest(10**9, 0.25) == pytest.approx((12 * eighth_ns + 2 * token_ns) / 4)
    assert longest(eighth_ns - 1) == pytest.approx(2 * token_ns)
    assert longest(token_ns - 1) == 0


def test_jobs_that_drift_slowly_are_told_by_leading_one_round(tmp_path: Path) -> None:
    """One begins ever later in the other's steps, by a ten-thousandth of one."""
    jobs = [
        {**_PLAIN, "name": name, "steps": 200, "placement": "spread", "compute_ns": compute_ns}
        for name, compute_ns in (("first", 100_000), ("second", 100_010))
    ]
    drawn = made(
        {
            "name": "t",
            "topology": _FABRIC,
            "traffic": {"kind": "mix", "parts": jobs},
            "measures": {"series": False, "flows": False},
        }
    )
    verdict = judged(drawn, "5%", tmp_path)
    assert verdict.steps == 300
    assert verdict.is_kept
    for job, told in zip(verdict.jobs, verdict.skipped_jobs, strict=True):
        begins = [[step.start_ns for step in each.steps[:8]] for each in (job, told)]
        assert begins[0] == begins[1]
