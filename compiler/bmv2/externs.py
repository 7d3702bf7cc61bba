"""Counters, meters, registers, calculations, checksums, field lists and digests."""

from __future__ import annotations

from typing import Any

from compiler import ir
from compiler import types as t
from compiler.bmv2.expression import argument, expression, field, hexstr
from compiler.bmv2.position import Positions


def externs(program: ir.Program, positions: Positions) -> dict[str, list[dict[str, Any]]]:
    """The sections about extern objects and calculations."""
    sections: dict[str, list[dict[str, Any]]] = {
        "counter_arrays": [],
        "meter_arrays": [],
        "register_arrays": [],
    }
    for each in program.objects:
        rule = _RULES.get(each.kind)
        if rule is None:
            continue
        section, make = rule
        made = make(each, len(sections[section]), positions)
        if made is not None:
            sections[section].append(made)
    sections["field_lists"] = [
        {
            "id": i,
            "name": fl.name,
            "elements": [_input(v) for v in fl.fields],
        }
        for i, fl in enumerate(program.field_lists, 1)
    ]
    sections["learn_lists"] = [
        {
            "id": i,
            "name": ll.name,
            **positions.info(ll.span),
            "elements": [_input(v) for v in ll.fields],
        }
        for i, ll in enumerate(program.learn_lists, 1)
    ]
    sections["calculations"] = [
        _calculation(calc, i, positions) for i, calc in enumerate(program.calculations)
    ]
    sections["checksums"] = [_checksum(cs, i, positions) for i, cs in enumerate(program.checksums)]
    return sections


def _input(value: ir.Value) -> dict[str, Any]:
    """A value in a list: a field or a literal with its width."""
    if isinstance(value, ir.Lit):
        width = t.width_of(value.type) or 0
        return {**hexstr(value.value, width), "bitwidth": width}
    if isinstance(value, ir.FieldRef):
        return field(value)
    return argument(value)


def _calculation(calc: ir.Calculation, index: int, positions: Positions) -> dict[str, Any]:
    inputs = [_input(v) for v in calc.inputs]
    if calc.payload:
        inputs.append({"type": "payload", "value": None})
    return {
        "name": calc.name,
        "id": index,
        **positions.info(calc.span),
        "algo": calc.algorithm,
        "input": inputs,
    }


def _checksum(checksum: ir.Checksum, index: int, positions: Positions) -> dict[str, Any]:
    assert isinstance(checksum.target, ir.FieldRef)
    return {
        "name": "cksum" if not index else f"cksum_{index - 1}",
        "id": index,
        **positions.info(checksum.span),
        "target": [checksum.target.header, checksum.target.name],
        "type": "generic",
        "calculation": checksum.calculation,
        "verify": checksum.verify,
        "update": not checksum.verify,
        "if_cond": expression(checksum.condition),
    }


def _counter(each: ir.Object, index: int, positions: Positions) -> dict[str, Any]:
    return {
        "name": each.name,
        "id": index,
        **positions.info(each.span),
        "size": each.args.get("size", 0),
        "is_direct": False,
    }


def _direct_counter(each: ir.Object, index: int, positions: Positions) -> dict[str, Any] | None:
    if each.table is None:
        return None
    return {
        "name": each.name,
        "id": index,
        "is_direct": True,
        "binding": each.table.name,
        **positions.info(each.span),
    }


def _meter(each: ir.Object, index: int, positions: Positions) -> dict[str, Any]:
    return {
        "name": each.name,
        "id": index,
        **positions.info(each.span),
        "is_direct": False,
        "size": each.args.get("size", 0),
        "rate_count": 2,
        "type": each.args.get("type", "packets"),
    }


def _direct_meter(each: ir.Object, index: int, positions: Positions) -> dict[str, Any] | None:
    if each.table is None or not isinstance(each.meter_target, ir.FieldRef):
        return None
    return {
        "name": each.name,
        "id": index,
        **positions.info(each.span),
        "is_direct": True,
        "rate_count": 2,
        "type": each.args.get("type", "packets"),
        "size": each.table.size,
        "binding": each.table.name,
        "result_target": [each.meter_target.header, each.meter_target.name],
    }


def _register(each: ir.Object, index: int, positions: Positions) -> dict[str, Any]:
    width = t.width_of(each.type.args[0]) if each.type.args else 32
    return {
        "name": each.name,
        "id": index,
        **positions.info(each.span),
        "size": each.args.get("size", 0),
        "bitwidth": width or 32,
    }


_RULES = {
    "counter": ("counter_arrays", _counter),
    "direct_counter": ("counter_arrays", _direct_counter),
    "meter": ("meter_arrays", _meter),
    "direct_meter": ("meter_arrays", _direct_meter),
    "register": ("register_arrays", _register),
}
