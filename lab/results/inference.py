"""Inference: how long requests waited for their answers."""

from __future__ import annotations

from lab.results.part import Part
from lab.results.percentiles import Percentiles, percentiles
from lab.scenario.experiment import Experiment
from traffic.collectives import NEVER, Timeline


class InferenceResult(Part):
    """What became of requests."""

    completed: int
    failed: int
    ttft_ns: Percentiles | None = None  # from a request's arrival until its answer begins
    answered_ns: Percentiles | None = None  # until it is over


def inference_result(experiment: Experiment, timeline: Timeline) -> InferenceResult | None:
    """What became of requests; None where there are none."""
    requests = experiment.workload.requests
    if not requests:
        return None
    ends = timeline.end_ns
    over = [request for request in requests if ends[request.last_token] != NEVER]
    return InferenceResult(
        completed=len(over),
        failed=len(requests) - len(over),
        ttft_ns=percentiles([ends[each.first_token] - each.arrives_ns for each in over]),
        answered_ns=percentiles([ends[each.last_token] - each.arrives_ns for each in over]),
    )
