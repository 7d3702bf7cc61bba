"""Temporaries: which fields of the compiler's `scalars` are an action's own, and so C variables.

Compilers keep every variable of every control and action in one metadata header, hundreds of
fields. One that a single action uses, and nothing else does, need not live longer than a call of
it, provided that no packet calls it twice: then it begins at zero each time, as the header does.
"""

from __future__ import annotations

import dataclasses
from collections import Counter
from collections.abc import Iterator

from .. import bmv2

SCALARS = "scalars"
_ALL = ""  # no field's name


def temporaries(program: bmv2.Program) -> dict[int, tuple[bmv2.Field, ...]]:
    """By the number of an action: the fields of `scalars` that are its own."""
    header = program.headers.get(SCALARS)
    if header is None or not header.is_metadata:
        return {}
    if [h.type for h in program.headers.values()].count(header.type) > 1:
        return {}
    users = {index: set(fields_in(action)) for index, action in enumerate(program.actions)}
    times = Counter(name for names in users.values() for name in names)
    elsewhere = set(fields_in(dataclasses.replace(program, actions=())))
    if _ALL in times or _ALL in elsewhere:
        return {}
    calls = Counter(_calls(program))
    found = {}
    for index, names in users.items():
        own = {name for name in names if times[name] == 1 and name not in elsewhere}
        fields = tuple(f for f in header.type.fields if f.name in own and not f.is_varbit)
        if fields and calls[index] <= 1:
            found[index] = fields
    return found


def _calls(program: bmv2.Program) -> Iterator[int]:
    """The actions that nodes may run, once for each of those."""
    for pipeline in program.pipelines.values():
        for node in pipeline.nodes.values():
            if isinstance(node, bmv2.ActionCall):
                yield node.action
            elif isinstance(node, bmv2.Table):
                yield from {*node.actions, *([node.default.action] if node.default else [])}


def fields_in(part: object) -> Iterator[str]:
    """The fields of `scalars` that any part of a program refers to, `_ALL` among them."""
    if isinstance(part, bmv2.FieldRef):
        if part.header == SCALARS:
            yield part.field
    elif isinstance(part, bmv2.HeaderRef):
        if part.name == SCALARS:
            yield _ALL
    elif dataclasses.is_dataclass(part):
        for field in dataclasses.fields(part):
            yield from fields_in(getattr(part, field.name))
    elif isinstance(part, dict):
        for value in part.values():
            yield from fields_in(value)
    elif isinstance(part, tuple | list):
        for value in part:
            yield from fields_in(value)
