"""What something costs: the same run again without it, where that is what its scenario asks.

Faults, losses and slow links are what has a price; where there are none and the traffic is a mix
of several kinds, all that goes on beside its first part.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from lab.engines import RunOptions
from lab.engines.sim import engine as sim
from lab.machine.scratch import scratch
from lab.progress import Stages, Told
from lab.results.outcome import INTERRUPTION, Outcome
from lab.results.result import Cost
from lab.scenario.experiment import Experiment
from lab.scenario.faults import described
from lab.scenario.model import LossSettings, MeasureSettings, Scenario
from lab.scenario.questions import Question
from params.quantity import listed, percent
from traffic.collectives import NEVER, Spec, Timeline
from traffic.jobs import MixSpec

_MOST_NAMED = 3


@dataclass(frozen=True)
class Priced:
    """What has a price, who pays it, and the scenario without it."""

    of: str
    whom: str
    without: Scenario


def cost(
    experiment: Experiment, outcome: Outcome, options: RunOptions, stages: Stages
) -> Cost | None:
    """What the run would have taken otherwise; nothing where nobody asks, or it did not end."""
    found = priced(experiment.scenario)
    if found is None or options.engine != "sim" or outcome.ended:
        return None
    measures = MeasureSettings(flows=False, series=False)
    other = Experiment.of(found.without.model_copy(update={"measures": measures}))
    try:
        with scratch() as space, stages(f"The same without {found.of}") as stage:
            quiet = Told(lambda _: stage.look())
            with sim.bring_up(other, replace(options, out=space, reports=None), quiet) as up:
                without = up.measure()
    except KeyboardInterrupt:  # which does not take what was measured
        return None
    if without.ended == INTERRUPTION:
        return None
    count = len(other.schedule)
    return Cost(
        of=found.of,
        whom=found.whom,
        took_ns=_took_ns(outcome.timeline, count),
        without_ns=_took_ns(without.timeline, count),
    )


def priced(scenario: Scenario) -> Priced | None:
    """What a scenario asks the price of."""
    if scenario.question not in (Question.COSTS, Question.SUFFERS):
        return None
    traffic = scenario.traffic
    named = [*dict.fromkeys(described(fault) for fault in scenario.faults)]
    if scenario.loss.rate:
        named.append(f"{100 * scenario.loss.rate:g} % of all packets lost")
    slow = scenario.link.slow.items()
    named += [f"{name} at {percent(share)} of its rate" for name, share in slow]
    if named and scenario.question is Question.COSTS:
        of = listed(named) if len(named) <= _MOST_NAMED else f"{len(named)} faults"
        link = scenario.link.model_copy(update={"slow": {}})
        changes: dict[str, Any] = {"faults": (), "loss": LossSettings(), "link": link}
        return Priced(of, "the run", scenario.model_copy(update=changes))
    if not isinstance(traffic, MixSpec) or named:
        return None
    first, *others = traffic.parts
    if not others or any(type(part) is type(first) for part in others):
        return None  # several of a kind are compared with each other
    alone = traffic.model_copy(update={"parts": (first,)})
    of = f"{listed([_named(part) for part in others])} beside it"
    return Priced(of, f"the {_named(first)}", scenario.model_copy(update={"traffic": alone}))


def _named(part: Spec) -> str:
    """A part of the traffic, by its name, its operation or its kind."""
    name, op = getattr(part, "name", ""), getattr(part, "op", "")
    kind = str(getattr(part, "kind", ""))
    return op or (name if name and name != kind else kind)


def _took_ns(timeline: Timeline, count: int) -> int | None:
    """From the first of so many transfers to the end of the last, if all came to an end."""
    starts, ends = timeline.start_ns[:count], timeline.end_ns[:count]
    return None if NEVER in ends else max(ends) - min(starts)
