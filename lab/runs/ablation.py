"""What something costs: the same run again without it, where that is what its scenario asks.

costs      faults, losses and slow links; where there are none, as suffers
suffers    what goes on beside the first part of a mix
waits      hosts that work for longer than others
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from lab.engines import RunOptions
from lab.engines.sim import engine as sim
from lab.progress import HeardStages, Stages
from lab.results.outcome import INTERRUPTION, Outcome
from lab.results.result import Cost
from lab.runs import whatif
from lab.scenario.experiment import Experiment
from lab.scenario.faults import described
from lab.scenario.model import LossSettings, MeasureSettings
from lab.scenario.questions import Question
from params.data import Data
from params.quantity import listed, percent
from topologies import Node
from traffic.collectives import NEVER, Spec, Timeline
from traffic.jobs import MixSpec
from traffic.patterns import FlowsSpec, NorthSouthSpec, StorageSpec

ASKED = Question.COSTS, Question.SUFFERS, Question.WAITS  # what one of these may be the answer to
_MAX_NAMED = 3


class Priced(Data):
    """What has a price, who pays it, and the experiment without it."""

    of: str
    whom: str
    without: Experiment


def cost(
    experiment: Experiment, outcome: Outcome, options: RunOptions, stages: Stages
) -> Cost | None:
    """What the run would have taken otherwise; nothing where nobody asks, it did not end,
    or what repeats of it was left out."""
    if options.engine != "sim" or outcome.ended or outcome.cuts or outcome.sampled:
        return None
    found = priced(experiment)
    if found is None:
        return None
    other = found.without
    try:
        with stages(f"The same without {found.of}") as stage:
            quiet = HeardStages(lambda _: stage.look())
            # Nothing of it is kept: where the run was made it has the same program.
            with sim.bring_up(
                other, replace(options, reports=None, checkpoint_s=None), quiet
            ) as up:
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


def priced(experiment: Experiment) -> Priced | None:
    """What a scenario asks the price of."""
    match experiment.scenario.question:
        case Question.COSTS:
            return _faults(experiment) or _beside(experiment)
        case Question.SUFFERS:
            return _beside(experiment)
        case Question.WAITS:
            return _stragglers(experiment)
    return None


def _faults(experiment: Experiment) -> Priced | None:
    """Whatever the scenario breaks."""
    scenario = experiment.scenario
    named = [*dict.fromkeys(described(fault) for fault in scenario.faults)]
    if scenario.loss.rate:
        named.append(f"{100 * scenario.loss.rate:g} % of data packets lost")
    slow = scenario.link.slow.items()
    named += [f"{name} at {percent(share)} of its rate" for name, share in slow]
    if not named:
        return None
    of = _few(named, f"{len(named)} faults")
    link = scenario.link.model_copy(update={"slow": {}})
    changes: dict[str, Any] = {"faults": (), "loss": LossSettings(), "link": link}
    return Priced(of, "", _lightest(experiment, changes))


def _beside(experiment: Experiment) -> Priced | None:
    """What goes on beside the first part of a mix of several kinds."""
    traffic = experiment.scenario.traffic
    if not isinstance(traffic, MixSpec):
        return None
    first, *others = traffic.parts
    if not others or any(type(part) is type(first) for part in others):
        return None  # several of a kind are compared with each other
    alone = traffic.model_copy(update={"parts": (first,)})
    hosts = experiment.fabric.hosts
    of = listed([_named(part, hosts) for part in others])
    without = _lightest(experiment, {"traffic": alone})
    return Priced(of, f"the {_named(first, hosts)}", without)


def _stragglers(experiment: Experiment) -> Priced | None:
    """Hosts that work for longer than others, as if they did not."""
    late = [*whatif.stragglers(experiment)]
    if not late:
        return None
    lightest = _lightest(experiment, {})
    named = [each.root.what for each in late]
    of = _few(named, f"what {len(named)} hosts compute for longer")
    return Priced(of, "", whatif.without(lightest, late)[0])


def _lightest(experiment: Experiment, changes: dict[str, Any]) -> Experiment:
    """An experiment otherwise, nothing of which is kept."""
    measures = MeasureSettings(flows=False, series=False)
    changed = experiment.scenario.model_copy(update={"measures": measures, **changes})
    return Experiment.of(changed, like=experiment)


def _named(part: Spec, hosts: Sequence[Node]) -> str:
    """A part of the traffic: what it does, and by whom or to whom."""
    if isinstance(part, FlowsSpec):
        ends = [sorted({getattr(flow, end) for flow in part.flows}) for end in ("src", "dst")]
        who, whom = (_few([hosts[n].name for n in each], "many") for each in ends)
        return f"{part.name} ({who} to {whom})"
    if isinstance(part, StorageSpec):
        return "a checkpoint" if part.save else "storage traffic"
    if isinstance(part, NorthSouthSpec):
        return "traffic to and from the north"
    op = getattr(part, "op", None)
    return str(op or getattr(part, "kind", "traffic"))


def _few(named: Sequence[str], many: str) -> str:
    """A few by name; many in other words."""
    return listed(named) if len(named) <= _MAX_NAMED else many


def _took_ns(timeline: Timeline, count: int) -> int | None:
    """From the first of so many transfers to the end of the last, if all came to an end."""
    starts, ends = timeline.start_ns[:count], timeline.end_ns[:count]
    return None if NEVER in ends else max(ends) - min(starts)
