"""An experiment without something: what may be a root of lateness, and how it is taken away.

Faults, losses and slow links are taken out of the scenario, and what bounds a sender is as it is
where nobody says anything. A straggler works as long as half of
the others do. Messages are left out, but for those that others wait for: these become one byte.
"""

from __future__ import annotations

from array import array
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from statistics import median
from typing import Any

from lab.results.causes import LATER, Root
from lab.scenario.experiment import Experiment
from lab.scenario.faults import described
from lab.scenario.model import LossSettings, Scenario
from lab.scenario.transport import TransportSettings
from params.data import Data
from params.quantity import listed, plural
from traffic.collectives import Timeline

# What bounds a sender, in words, and without which bound.
_BOUNDS = {
    ("transport", "receive_gbps"): "hosts that receive more slowly",
    ("transport", "window"): "a window that holds {value:,} of its packets",
    ("transport", "cc"): "the congestion control {value}",
    ("link", "credit"): "a credit of {value:,} bytes",
    ("schedule", "port_gbps"): "ports that send at {value:g} Gb/s",
    ("schedule", "shape"): "classes that are shaped",
}
_USUAL: dict[tuple[str, str], Any] = {
    ("transport", "receive_gbps"): None,
    ("transport", "window"): TransportSettings.model_fields["window"].default,
    ("transport", "cc"): "none",
    ("link", "credit"): None,
    ("schedule", "port_gbps"): None,
    ("schedule", "shape"): {},
}
_MAX_HOSTS = 6  # to which others' messages are looked at, the most bytes first
_MAX_PARTS = 32  # of which the few are looked for that matter
_MAX_NAMED = 4


class Removal(Data):
    """A root, and what is to be done to be rid of it."""

    root: Root
    fault: int | None = None  # by its place in the scenario
    loses: bool = False
    slow: str = ""  # a link
    setting: tuple[str, str] = ("", "")  # a section and its key
    straggler: int | None = None  # a rank
    messages: frozenset[int] = frozenset()
    parts: tuple[Removal, ...] = ()  # of which it may be that a few are enough


def without(
    experiment: Experiment, removed: Collection[Removal]
) -> tuple[Experiment, Sequence[int]]:
    """The same experiment, these taken away; and which of its transfers are left."""
    thinner = Experiment.of(_scenario(experiment.scenario, removed))
    workload, schedule = thinner.workload, thinner.schedule
    gone = frozenset().union(*(each.messages for each in removed))
    kept: Sequence[int] = range(len(schedule))
    if gone:
        size = array("q", schedule.size)
        for number in gone:
            size[number] = 1
        schedule = replace(schedule, size=memoryview(size).toreadonly())
    late = {each.straggler for each in removed if each.straggler is not None}
    if late:
        usual = usual_work(experiment)
        delay = array("q", schedule.delay_ns)
        for number in range(len(schedule)):
            if schedule.src[number] == schedule.dst[number] and schedule.src[number] in late:
                delay[number] = round(delay[number] / usual[schedule.src[number]])
        schedule = replace(schedule, delay_ns=memoryview(delay).toreadonly())
    if gone:
        schedule, kept = schedule.without(gone - frozenset(schedule.wait))
    return replace(thinner, workload=replace(workload, schedule=schedule)), kept


def _scenario(scenario: Scenario, removed: Collection[Removal]) -> Scenario:
    gone = {each.fault for each in removed}
    slow = {each.slow for each in removed}
    changes: dict[str, Any] = {
        "faults": tuple(f for at, f in enumerate(scenario.faults) if at not in gone)
    }
    if any(each.loses for each in removed):
        changes["loss"] = LossSettings()
    if slow - {""}:
        kept = {name: share for name, share in scenario.link.slow.items() if name not in slow}
        changes["link"] = scenario.link.model_copy(update={"slow": kept})
    for section, key in {each.setting for each in removed} - {("", "")}:
        part = changes.get(section, getattr(scenario, section))
        changes[section] = part.model_copy(update={key: _USUAL[section, key]})
    return scenario.model_copy(update=changes)


def usual_work(experiment: Experiment) -> Mapping[int, float]:
    """By rank: how many times as long as half of them it works."""
    worked = Counter[int]()
    schedule = experiment.schedule
    for src, dst, delay in zip(schedule.src, schedule.dst, schedule.delay_ns, strict=True):
        if src == dst and delay:
            worked[src] += delay
    if len(worked) < 3:
        return {}
    usual = median(worked.values())
    return {rank: took / usual for rank, took in worked.items()}


def settings(experiment: Experiment, until_ns: int) -> Iterator[Removal]:
    """What a scenario says that may have held anything up by a time."""
    scenario = experiment.scenario
    for at, fault in enumerate(scenario.faults):
        if fault.at_ns < until_ns:
            keys = (f"faults.{at}",)
            what = f"{described(fault)} at {fault.at_ns:,} ns"
            yield Removal(Root(kind="fault", what=what, keys=keys, begins_ns=fault.at_ns), fault=at)
    if scenario.loss.rate:
        what = f"losing {scenario.loss.rate:g} of all packets"
        yield Removal(Root(kind="loss", what=what, keys=("loss.rate",)), loses=True)
    for name, share in scenario.link.slow.items():
        what = f"{name} at {share:g} of its rate"
        yield Removal(Root(kind="slow link", what=what, keys=(f"link.slow.{name}",)), slow=name)
    for (section, key), what in _BOUNDS.items():
        value = getattr(getattr(scenario, section), key)
        if value != _USUAL[section, key]:
            said = what.format(value=value)
            root = Root(kind="setting", what=said, keys=(f"{section}.{key}",))
            yield Removal(root, setting=(section, key))


def stragglers(experiment: Experiment) -> Iterator[Removal]:
    """Hosts that work for longer than others do."""
    hosts = experiment.fabric.hosts
    for rank, times in usual_work(experiment).items():
        if times >= LATER:
            what = f"{hosts[rank]}'s work, {times:.3g} times as long as usual"
            yield Removal(Root(kind="straggler", what=what), straggler=rank)


def messages(experiment: Experiment, timeline: Timeline, mine: int) -> Iterator[Removal]:
    """Messages that were under way at the same time as one: to the same host, from the same, to
    each of the others that most was sent to; and all of them."""
    schedule, hosts = experiment.schedule, experiment.fabric.hosts
    src, dst = schedule.src[mine], schedule.dst[mine]
    begin, end = timeline.start_ns[mine], _end(timeline, mine)
    beside = [
        number
        for number in range(len(schedule))
        if number != mine
        and schedule.src[number] != schedule.dst[number]
        and 0 <= timeline.start_ns[number] < end
        and _end(timeline, number) > begin
    ]
    to: dict[int, list[int]] = {}
    pairs: dict[tuple[int, int], list[int]] = {}
    for number in beside:
        to.setdefault(schedule.dst[number], []).append(number)
        pairs.setdefault((schedule.src[number], schedule.dst[number]), []).append(number)
    most = sorted(to, key=lambda there: -sum(schedule.size[n] for n in to[there]))
    groups = {f"to {hosts[dst]}": to.get(dst, [])}
    groups[f"from {hosts[src]}"] = [
        n for n in beside if schedule.src[n] == src and schedule.dst[n] != dst
    ]
    for there in [there for there in most if there != dst][:_MAX_HOSTS]:
        groups[f"to {hosts[there]}"] = [n for n in to[there] if schedule.src[n] != src]

    def removal(where: str, group: Sequence[int], *parts: Removal) -> Removal:
        begins = max(0, min(timeline.start_ns[n] for n in group))
        names = sorted({f"{hosts[schedule.src[n]]}-{hosts[schedule.dst[n]]}" for n in group})
        what = f"{plural(len(group), 'message')} {where}"
        root = Root(kind="messages", what=what, keys=tuple(names), begins_ns=begins)
        return Removal(root, messages=frozenset(group), parts=parts)

    yield from (removal(where, group) for where, group in groups.items() if group)
    if beside:
        each = [removal("beside it", group) for group in pairs.values()]
        yield removal("beside it", beside, *(each if len(each) <= _MAX_PARTS else ()))


def others(experiment: Experiment, timeline: Timeline, mine: Collection[int]) -> Iterator[Removal]:
    """What other jobs sent, each by itself; what belongs to none counts as one."""
    schedule, own = experiment.schedule, frozenset(mine)
    of: dict[str, list[int]] = {}
    for number in range(len(schedule)):
        if number not in own and schedule.src[number] != schedule.dst[number]:
            of.setdefault(schedule.activities[schedule.activity[number]].job, []).append(number)
    for job, group in of.items():
        what = f"{plural(len(group), 'message')} of {f'job {job}' if job else 'no job'}"
        begins = max(0, min(timeline.start_ns[n] for n in group))
        root = Root(kind="messages", what=what, keys=(job,) if job else (), begins_ns=begins)
        yield Removal(root, messages=frozenset(group))


def joined(parts: Sequence[Removal]) -> Removal:
    """Several sets of messages as one, told by their names."""
    names = [name for part in parts for name in part.root.keys]
    few = names if len(names) <= _MAX_NAMED else [*names[:_MAX_NAMED], "others"]
    root = Root(
        kind="messages",
        what=f"{'messages' if len(few) > 1 else 'the message'} {listed(few)}",
        keys=tuple(names),
        begins_ns=min(part.root.begins_ns for part in parts),
    )
    return Removal(root, messages=frozenset().union(*(part.messages for part in parts)))


def _end(timeline: Timeline, number: int) -> float:
    end = timeline.end_ns[number]
    return end if end >= 0 else float("inf")
