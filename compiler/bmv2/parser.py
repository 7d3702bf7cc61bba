"""Parse states, value sets and the deparser."""

from __future__ import annotations

from typing import Any

from compiler import ir
from compiler import types as t
from compiler.bmv2.expression import argument, expression, hex_text, reference, target
from compiler.bmv2.position import Positions

_WHOLE = {"extract", "verify", "advance", "extract_VL"}


def parsers(program: ir.Program, positions: Positions) -> dict[str, Any]:
    """The sections about parsing and deparsing."""
    names = _names(program)
    states = [_state(block, i, names, positions) for i, block in enumerate(program.states)]
    if not states:
        states = [
            {
                "name": "start",
                "id": 0,
                "parser_ops": [],
                "transitions": [_default(None)],
                "transition_key": [],
            }
        ]
    init = names[id(program.parser)] if program.parser is not None else "start"
    return {
        "parsers": [{"name": "parser", "id": 0, "init_state": init, "parse_states": states}],
        "parse_vsets": [
            {
                "name": v.name,
                "id": i,
                "compressed_bitwidth": v.width,
                "max_size": v.size,
            }
            for i, v in enumerate(program.value_sets)
        ],
        "deparsers": [
            {
                "name": "deparser",
                "id": 0,
                **positions.info(program.deparser_span),
                "order": program.deparser,
                "primitives": [],
            }
        ],
    }


def _names(program: ir.Program) -> dict[int, str]:
    """A name for every state: its own where it has one, made up for the pieces of others."""
    names: dict[int, str] = {}
    taken: set[str] = set()
    for block in program.states:
        wanted = block.name or "state"
        chosen, count = wanted, 0
        while chosen in taken:
            chosen = f"{wanted}_{count}"
            count += 1
        taken.add(chosen)
        names[id(block)] = chosen
    return names


def _state(
    block: ir.Block, index: int, names: dict[int, str], positions: Positions
) -> dict[str, Any]:
    ops = [_op(op, positions) for op in block.ops]
    keys: list[dict[str, Any]] = []
    transitions: list[dict[str, Any]] = []

    def name(target: ir.Block | None) -> str | None:
        return None if target is None else names[id(target)]

    end = block.end
    if isinstance(end, ir.Select):
        keys = [reference(k) for k in end.keys]
        transitions = [_transition(case, end.keys, name(case.target)) for case in end.cases]
    else:
        after = end.target if isinstance(end, ir.Jump) else None
        transitions = [_default(name(after))]
    return {
        "name": names[id(block)],
        "id": index,
        "parser_ops": ops,
        "transitions": transitions,
        "transition_key": keys,
    }


def _default(next_state: str | None) -> dict[str, Any]:
    return {"type": "default", "value": None, "mask": None, "next_state": next_state}


def _transition(
    case: ir.SelectCase, keys: tuple[ir.Value, ...], next_state: str | None
) -> dict[str, Any]:
    if case.value_set is not None:
        return {
            "type": "parse_vset",
            "value": case.value_set,
            "mask": None,
            "next_state": next_state,
        }
    if all(v is None for v in case.values):
        return _default(next_state)
    value = mask = size = 0
    exact = True
    for key, wanted in zip(keys, case.values, strict=True):
        width = t.width_of(key.type) or 1
        own, own_mask = wanted if wanted is not None else (0, 0)
        exact = exact and own_mask == (1 << width) - 1
        room = (width + 7) // 8
        value = (value << (8 * room)) | own
        mask = (mask << (8 * room)) | own_mask
        size += room
    return {
        "type": "hexstr",
        "value": hex_text(value, size),
        "mask": None if exact else hex_text(mask, size),
        "next_state": next_state,
    }


def _op(op: ir.Operation, positions: Positions) -> dict[str, Any]:
    if op.op == "assign":
        return {"parameters": [target(op.args[0]), argument(op.args[1])], "op": "set"}
    if op.op == "extract_VL":
        length = op.args[1]
        assert isinstance(length, ir.Value)
        return {
            "parameters": [
                argument(op.args[0]),
                {"type": "expression", "value": expression(length)},
            ],
            "op": "extract_VL",
        }
    if op.op == "verify":
        return {
            "parameters": [expression(a) for a in op.args if isinstance(a, ir.Value)],
            "op": "verify",
        }
    if op.op in _WHOLE:
        return {"parameters": [argument(a) for a in op.args], "op": op.op}
    inner = {"op": op.op, "parameters": [argument(a) for a in op.args], **positions.info(op.span)}
    return {"parameters": [inner], "op": "primitive"}
