"""Whether switches have, at the end of a run, what the controller means them to have."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from controller import SwitchPlan, switch_plans
from controller.entities import Changes, changes
from controller.tables import Groups
from controller.wire import canonical
from lab.scenario.experiment import Experiment
from lab.scenario.faults import Replan, Restart, events_of
from topologies import Node


def strays(
    experiment: Experiment,
    end_ns: int,
    schema: Any,
    read: Callable[[Node, SwitchPlan], SwitchPlan],
    groups: dict[str, Groups] | None = None,
) -> Iterator[str]:
    """What switches have and should not, or lack, in words.

    What they should have follows from the scenario, and from how groups were numbered on the way
    there, where that is remembered. A switch that started again and was not
    noticed yet has nothing, which is as it should be.
    """
    past = [
        event
        for event in events_of(experiment.scenario, experiment.fabric)
        if event.at_ns <= end_ns
    ]
    replans = [event for event in past if isinstance(event, Replan)]
    settings, dead = experiment.settings, frozenset[str]()
    if replans:
        settings, dead = replans[-1].applied(settings), replans[-1].dead
    planned_ns = replans[-1].at_ns if replans else 0
    emptied = {
        event.switch for event in past if isinstance(event, Restart) and event.at_ns >= planned_ns
    }
    plans = switch_plans(experiment.fabric, settings, dead, groups)
    yield from astray(
        {switch: plans[switch.name] for switch in experiment.fabric.switches
         if switch not in emptied},
        *(schema, read),
    )  # fmt: skip


def astray(
    plans: Mapping[Node, SwitchPlan], schema: Any, read: Callable[[Node, SwitchPlan], SwitchPlan]
) -> Iterator[str]:
    """Where switches have something else than their plans, in words."""
    for switch, plan in plans.items():
        wanted = canonical(plan, schema)
        difference = changes(read(switch, wanted), wanted)
        if len(difference):
            yield f"{switch} is not as the controller means it to be: {_said(difference)}"


def _said(difference: Changes) -> str:
    parts = (
        f"{len(entities)} entities {what}, such as {entities[0]}"
        for entities, what in (
            (difference.add, "missing"),
            (difference.change, "other than they should be"),
            (difference.remove, "too many"),
        )
        if entities
    )
    return "; ".join(parts)
