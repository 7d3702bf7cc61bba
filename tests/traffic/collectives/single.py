"""One collective alone: its schedule, and what it should take on a fabric that never blocks."""

from traffic.collectives import Collective, Schedule, ScheduleBuilder, add_collective
from traffic.collectives.algorithms import find_algorithm


def schedule_of(what: Collective, *, world: int | None = None) -> Schedule:
    builder = ScheduleBuilder(max(what.ranks) + 1 if world is None else world)
    add_collective(builder, what)
    return builder.build()


def bound_ns(what: Collective, *, alpha_ns: float, rate_gbps: float) -> float:
    return find_algorithm(what.op, what.algorithm).bound(what, alpha_ns, 8 / rate_gbps)
