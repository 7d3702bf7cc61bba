"""One job led round another: delayed a little in every step, so that they meet in all ways.

What of a step comes first waits for nothing but steps before. As much later as that happens all of
the step does, and the next one more; so what was delayed is known of every moment, and taken off.
"""

from __future__ import annotations

from array import array
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import cache
from typing import NamedTuple

from lab.scenario.experiment import Experiment
from lab.scenario.translate import data_headers_bytes
from traffic.collectives import Schedule, Timeline


class Lead(NamedTuple):
    """Which job is delayed, and by how much in each step."""

    job: str
    delay_ns: int


def led(experiment: Experiment, lead: Lead) -> Experiment:
    """The same with one job delayed."""
    schedule = experiment.schedule
    delays = array("q", schedule.delay_ns)
    for number in _first(schedule, lead.job):
        delays[number] += lead.delay_ns
    slower = replace(schedule, delay_ns=memoryview(delays).toreadonly())
    return replace(experiment, workload=replace(experiment.workload, schedule=slower))


def without(schedule: Schedule, timeline: Timeline, lead: Lead) -> Timeline:
    """When all would have happened, had it not been delayed."""
    starts, ends = array("q", timeline.start_ns), array("q", timeline.end_ns)
    late = [
        (activity.step + 1) * lead.delay_ns if activity.job == lead.job else 0
        for activity in schedule.activities
    ]
    for number, what in enumerate(schedule.activity):
        starts[number] -= late[what]
        ends[number] -= late[what]
    for number in _first(schedule, lead.job):
        if schedule.src[number] == schedule.dst[number]:  # work, which begins with its delay
            starts[number] += lead.delay_ns
    return Timeline(starts, ends)


def longest_ns(
    experiment: Experiment, job: str, limit_ns: float, share: Callable[[float], float]
) -> float:
    """What messages of a step take that wait for each other, by those that take less than so long.

    So much do they delay the step if each has to wait for another like it, on its slowest link, in
    that share of steps.
    """
    schedule, kinds = experiment.schedule, experiment.schedule.activities
    headers, mtu = data_headers_bytes(experiment.scenario), experiment.scenario.link.mtu
    rates = {experiment.cable(link).rate_bps for link in experiment.fabric.links}

    @cache
    def delay_ns(size: int) -> float:
        bits = 8e9 * (size + -(-size // mtu) * headers)
        own_ns = bits / min(rates)
        return own_ns * share(own_ns) if bits / max(rates) < limit_ns else 0.0

    longest: dict[int, float] = {}
    for number, what in enumerate(schedule.activity):
        if (kinds[what].job, kinds[what].step) != (job, 1):
            continue
        before = (longest.get(wait, 0.0) for wait in schedule.waits(number))
        longest[number] = max(before, default=0.0) + delay_ns(schedule.size[number])
    return max(longest.values())


def _first(schedule: Schedule, job: str) -> Iterator[int]:
    """What of a job's steps waits for nothing of the same step."""
    steps = [each.step if each.job == job else -1 for each in schedule.activities]
    its = [steps[what] for what in schedule.activity]
    for number, step in enumerate(its):
        if step >= 0 and all(its[wait] != step for wait in schedule.waits(number)):
            yield number
