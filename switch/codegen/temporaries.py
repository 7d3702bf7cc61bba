"""Temporaries: which fields of the compiler's `scalars` need not be kept with the packet.

Compilers keep every variable of every control and action in one metadata header, hundreds of
fields. One that a single action uses, and nothing else does, need not live longer than a call of
it, provided that no packet calls it twice: then it begins at zero each time, as the header does.
One that a single stage uses (the parser, ingress, egress) need not outlive the stage, which a
packet enters once with its metadata cleared. Both become variables of C, which the compiler keeps
in registers, or leaves out; and a packet that waits in a queue is smaller by them.
"""

from __future__ import annotations

import dataclasses
from collections import Counter
from collections.abc import Iterable, Iterator

from params.data import Data

from .. import bmv2
from ..layout import is_warmed

SCALARS = "scalars"
_ALL = ""  # no field's name


class Uses(Data):
    """Which fields of `scalars` the parts of a program use."""

    actions: list[set[str]]  # by an action's number
    stages: dict[
        str, set[str]
    ]  # "parser", "ingress", "egress", the actions that they run not included
    rest: set[str]  # everything else, and what is looked up ahead of ingress

    @classmethod
    def of(cls, program: bmv2.Program) -> Uses:
        """What a program uses."""
        stages = {name: set(fields_in(p.nodes)) for name, p in program.pipelines.items()}
        stages["parser"] = set(fields_in(program.parser))
        nodes = program.pipelines["ingress"].nodes.values()
        tables = (n for n in nodes if isinstance(n, bmv2.Table))
        ahead = tuple(t.keys for t in tables if is_warmed(program, t))
        no_parser = bmv2.Parser("", None, ())
        others = dataclasses.replace(program, actions=(), pipelines={}, parser=no_parser)
        return cls(
            [set(fields_in(action)) for action in program.actions],
            stages,
            {*fields_in(others), *fields_in(ahead)},
        )

    def are_apart(self, program: bmv2.Program) -> bool:
        """Whether fields are used one by one, and there only."""
        header = program.headers.get(SCALARS)
        if header is None or not header.is_metadata:
            return False
        if [h.type for h in program.headers.values()].count(header.type) > 1:
            return False
        return not any(_ALL in names for names in (self.rest, *self.actions, *self.stages.values()))


def temporaries(program: bmv2.Program, uses: Uses) -> dict[int, tuple[bmv2.Field, ...]]:
    """By the number of an action: the fields of `scalars` that are its own."""
    if not uses.are_apart(program):
        return {}
    times = Counter(n for names in (*uses.actions, *uses.stages.values(), uses.rest) for n in names)
    calls = Counter(a for p in program.pipelines.values() for a in _calls(p))
    found = {}
    for index, names in enumerate(uses.actions):
        own = _simple(program, {name for name in names if times[name] == 1})
        if own and calls[index] <= 1:
            found[index] = own
    return found


class StageVariables(Data):
    """The fields of `scalars` that are a stage's own, and which actions use them."""

    fields: dict[str, tuple[bmv2.Field, ...]]
    users: dict[int, str]


def stage_variables(
    program: bmv2.Program, uses: Uses, own: Iterable[bmv2.Field], bodies: Iterable[bmv2.Action]
) -> StageVariables:
    """What is a stage's own, among what no action has for its own.

    What actions share the body of is called from many places: no such variable is at hand there.
    """
    fields: dict[str, tuple[bmv2.Field, ...]] = {}
    users: dict[int, str] = {}
    if not uses.are_apart(program):
        return StageVariables(fields, users)
    kept = {*uses.rest, *(f.name for f in own), *fields_in(tuple(bodies))}
    names = {
        stage: used.union(*(uses.actions[a] for a in set(_calls(program.pipelines[stage]))))
        if stage in program.pipelines
        else used
        for stage, used in uses.stages.items()
    }
    times = Counter(n for used in (*names.values(), kept) for n in used)
    for stage, used in names.items():
        if found := _simple(program, {name for name in used if times[name] == 1}):
            fields[stage] = found
            found_names = {f.name for f in found}
            users |= {i: stage for i, action in enumerate(uses.actions) if action & found_names}
    return StageVariables(fields, users)


def _simple(program: bmv2.Program, names: set[str]) -> tuple[bmv2.Field, ...]:
    """The fields of these names, without those of variable length."""
    fields = program.headers[SCALARS].type.fields
    return tuple(f for f in fields if f.name in names and not f.is_varbit)


def _calls(pipeline: bmv2.Pipeline) -> Iterator[int]:
    """The actions that a pipeline's nodes may run, once for each of those."""
    for node in pipeline.nodes.values():
        if isinstance(node, bmv2.ActionCall):
            yield node.action
        elif isinstance(node, bmv2.Table):
            yield from node.runnable


def fields_in(part: object) -> Iterator[str]:
    """The fields of `scalars` that any part of a program refers to, `_ALL` among them."""
    for ref in bmv2.references(part):
        if isinstance(ref, bmv2.FieldRef) and ref.header == SCALARS:
            yield ref.field
        elif isinstance(ref, bmv2.HeaderRef) and ref.name == SCALARS:
            yield _ALL
