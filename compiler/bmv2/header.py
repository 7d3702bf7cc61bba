"""Header types, header instances, stacks and unions."""

from __future__ import annotations

from typing import Any

from compiler import ir

SCALARS_TYPE = "scalars_0"


def headers(program: ir.Program) -> dict[str, Any]:
    """All sections that describe where data live."""
    types = [_type(SCALARS_TYPE, _padded(program.scalars), None, 0)]
    for each in program.header_types.values():
        fields = list(each.fields)
        if each.name == "standard_metadata":
            fields = _padded(fields)
        types.append(_type(each.name, fields, each.max_width, len(types)))
    instances = [
        _instance("scalars", SCALARS_TYPE, True, 0),
        _instance("standard_metadata", "standard_metadata", True, 1),
    ]
    ids = {"scalars": 0, "standard_metadata": 1}
    for header in program.headers:
        ids[header.name] = len(instances)
        instances.append(_instance(header.name, header.type, header.metadata, len(instances)))
    unions = {u.name: i for i, u in enumerate(program.unions)}
    stacks = [s for s in program.stacks if not s.union]
    union_stacks = [s for s in program.stacks if s.union]
    return {
        "header_types": types,
        "headers": instances,
        "header_stacks": [
            {
                "name": s.name,
                "id": i,
                "header_type": s.type,
                "size": s.size,
                "header_ids": [ids[f"{s.name}[{n}]"] for n in range(s.size)],
            }
            for i, s in enumerate(stacks)
        ],
        "header_union_types": [
            {"name": name, "id": i, "headers": [list(m) for m in members]}
            for i, (name, members) in enumerate(program.union_types.items())
        ],
        "header_unions": [
            {
                "name": u.name,
                "id": i,
                "union_type": u.type,
                "header_ids": [ids[m] for m in u.members],
                "pi_omit": True,
            }
            for i, u in enumerate(program.unions)
        ],
        "header_union_stacks": [
            {
                "name": s.name,
                "id": i,
                "union_type": s.type,
                "size": s.size,
                "header_union_ids": [unions[f"{s.name}[{n}]"] for n in range(s.size)],
            }
            for i, s in enumerate(union_stacks)
        ],
    }


def _padded(
    fields: list[tuple[str, int, bool]] | list[tuple[str, int | str, bool]],
) -> list[tuple[str, int | str, bool]]:
    """Fields of a metadata layout, made a whole number of bytes."""
    total = sum(width for _, width, _ in fields if isinstance(width, int))
    padded: list[tuple[str, int | str, bool]] = [*fields]
    if total % 8:
        padded.append(("_padding", 8 - total % 8, False))
    return padded


def _type(
    name: str, fields: list[tuple[str, int | str, bool]], max_width: int | None, index: int
) -> dict[str, Any]:
    made: dict[str, Any] = {
        "name": name,
        "id": index,
        "fields": [[n, w] if w == "*" else [n, w, signed] for n, w, signed in fields],
    }
    if max_width is not None:
        made["max_length"] = (max_width + 7) // 8
    return made


def _instance(name: str, type_: str, metadata: bool, index: int) -> dict[str, Any]:
    return {"name": name, "id": index, "header_type": type_, "metadata": metadata, "pi_omit": True}
