"""Values as BMv2's JSON has them.

BMv2 computes on unbounded integers, so every operator whose result may leave its type's range is
wrapped in a mask (unsigned) or in `two_comp_mod` (signed). Booleans are a type of their own in
expressions but numbers in fields: `d2b` and `b2d` stand where the two meet.
"""

from __future__ import annotations

from typing import Any

from compiler import ir
from compiler import types as t

Json = dict[str, Any]

_NAMES = {"&&": "and", "||": "or"}
_ONE_BIT_SIGNED = t.Bits(1, True)
_COMPARE = {"==", "!=", "<", "<=", ">", ">="}


def hexstr(value: int, width: int = 0) -> Json:
    """A literal, padded to whole bytes."""
    return {"type": "hexstr", "value": hex_text(value, (width + 7) // 8)}


def hex_text(value: int, size: int = 0) -> str:
    """A number in hexadecimal, padded to `size` bytes."""
    sign = "-" if value < 0 else ""
    return f"{sign}0x{abs(value):0{size * 2 or 1}x}"


def field(value: ir.FieldRef) -> Json:
    """A reference to a field."""
    return {"type": "field", "value": [value.header, value.name]}


def operator(op: str, left: Json | None, right: Json) -> Json:
    """An operator applied."""
    return {"type": "expression", "value": {"op": op, "left": left, "right": right}}


def expression(value: ir.Value) -> Json:
    """A value inside an expression."""
    if isinstance(value, ir.Lit):
        if isinstance(value.type, t.BoolType):
            return {"type": "bool", "value": bool(value.value)}
        return hexstr(value.value, t.width_of(value.type) or 0)
    if isinstance(value, ir.ParamRef):
        return {"type": "local", "value": value.index}
    if isinstance(value, ir.Op):
        return _operation(value)
    raw = reference(value)
    if (
        isinstance(value.type, t.BoolType)
        and not isinstance(value, ir.UnionValid)
        and not (isinstance(value, ir.ElementField) and value.field_index < 0)
    ):
        return operator("d2b", None, raw)
    if value.type == _ONE_BIT_SIGNED:
        return operator("two_comp_mod", raw, hexstr(1))
    return raw


def reference(value: ir.Value) -> Json:
    """Data as they are stored."""
    if isinstance(value, ir.FieldRef):
        return field(value)
    if isinstance(value, ir.LastField):
        if value.member is not None:
            return {"type": "union_stack_field", "value": [value.stack, value.member, value.name]}
        return {"type": "stack_field", "value": [value.stack, value.name]}
    if isinstance(value, ir.LastIndex):
        return operator("last_stack_index", None, {"type": "header_stack", "value": value.stack})
    if isinstance(value, ir.UnionValid):
        return operator("valid_union", None, {"type": "header_union", "value": value.union})
    if isinstance(value, ir.ElementField):
        header = element(value.stack, value.index)
        if value.field_index < 0:
            return operator("valid", None, header)
        return {
            "type": "expression",
            "value": {"op": "access_field", "left": header, "right": value.field_index},
        }
    if isinstance(value, ir.Lookahead):
        return {"type": "lookahead", "value": [value.offset, value.width]}
    raise AssertionError(value)


def element(stack: str, index: ir.Value) -> Json:
    """A stack's element by a run-time index."""
    return operator(
        "dereference_header_stack", {"type": "header_stack", "value": stack}, expression(index)
    )


def _wrapped(type_: t.Type, body: Json) -> Json:
    """Bring a result back into its type's range."""
    if isinstance(type_, t.Bits):
        if type_.signed:
            return operator("two_comp_mod", body, hexstr(type_.width))
        return operator("&", body, hexstr((1 << type_.width) - 1, type_.width))
    return body


def _operation(value: ir.Op) -> Json:
    op, args, type_ = value.op, value.args, value.type
    if op == "!":
        return operator("not", None, expression(args[0]))
    if op in ("&&", "||") or op in _COMPARE:
        return operator(_NAMES.get(op, op), expression(args[0]), expression(args[1]))
    if op == "?":
        return _ternary(value)
    if op == "d2b":
        return operator("d2b", None, expression(args[0]))
    if op == "b2d":
        return _to_data(args[0])
    if op == "cast":
        return _cast(args[0], type_)
    if op == "slice":
        return _slice(value)
    if op == "++":
        return _concat(value)
    if op in ("|+|", "|-|"):
        assert isinstance(type_, t.Bits)
        body = operator(op[1], expression(args[0]), expression(args[1]))
        return operator("sat_cast" if type_.signed else "usat_cast", body, hexstr(type_.width))
    if op == "~":
        return _wrapped(type_, operator("~", None, expression(args[0])))
    if op == "-" and len(args) == 1:
        width = t.width_of(type_) or 0
        return _wrapped(type_, operator("-", hexstr(0, width), expression(args[0])))
    body = operator(op, expression(args[0]), expression(args[1]))
    if op in ("&", "|", "^"):
        signed = isinstance(type_, t.Bits) and type_.signed
        return _wrapped(type_, body) if signed else body
    return _wrapped(type_, body)


def _to_data(value: ir.Value) -> Json:
    """A boolean as a number."""
    if isinstance(value, ir.Lit):
        return hexstr(value.value, 1)
    if isinstance(value, ir.FieldRef | ir.LastField):
        return reference(value)
    return operator("b2d", None, expression(value))


def _ternary(value: ir.Op) -> Json:
    condition, yes, no = value.args
    if isinstance(value.type, t.BoolType):
        first = operator("and", expression(condition), expression(yes))
        second = operator("and", operator("not", None, expression(condition)), expression(no))
        return operator("or", first, second)
    return {
        "type": "expression",
        "value": {
            "op": "?",
            "left": expression(yes),
            "right": expression(no),
            "cond": expression(condition),
        },
    }


def _cast(value: ir.Value, type_: t.Type) -> Json:
    have = value.type
    body = expression(value)
    if (
        isinstance(type_, t.Bits)
        and isinstance(have, t.Bits)
        and not type_.signed
        and (not have.signed and type_.width >= have.width)
    ):
        return body
    if (
        isinstance(type_, t.Bits)
        and isinstance(have, t.Bits)
        and type_.signed
        and (have.signed and type_.width >= have.width)
    ):
        return body
    return _wrapped(type_, body)


def _slice(value: ir.Op) -> Json:
    base, high, low = value.args
    assert isinstance(high, ir.Lit)
    assert isinstance(low, ir.Lit)
    body = expression(base)
    if isinstance(base.type, t.Bits) and base.type.signed:
        body = operator("&", body, hexstr((1 << base.type.width) - 1, base.type.width))
    if low.value:
        body = operator(">>", body, hexstr(low.value, 8))
    width = high.value - low.value + 1
    return operator("&", body, hexstr((1 << width) - 1, width))


def _concat(value: ir.Op) -> Json:
    left, right = value.args
    width = t.width_of(right.type) or 0
    low = expression(right)
    if isinstance(right.type, t.Bits) and right.type.signed:
        low = operator("&", low, hexstr((1 << width) - 1, width))
    body = operator("|", operator("<<", expression(left), hexstr(width, 8)), low)
    return _wrapped(value.type, body)


def argument(arg: ir.Arg) -> Json:
    """An argument of a primitive; expressions are wrapped once more, as BMv2 wants it."""
    if isinstance(arg, ir.Name):
        if arg.kind == "union_stack":
            return {"type": arg.kind, "value": [arg.name, arg.member]}
        return {"type": arg.kind, "value": arg.name}
    if isinstance(arg, ir.Element):
        return {"type": "expression", "value": element(arg.stack, arg.index)}
    if isinstance(arg, ir.Text):
        return {"type": "string", "value": arg.text}
    if isinstance(arg, ir.Values):
        return {"type": "parameters_vector", "value": [argument(v) for v in arg.values]}
    if isinstance(arg, ir.Lit):
        return hexstr(arg.value, t.width_of(arg.type) or 0)
    if isinstance(arg, ir.FieldRef):
        return field(arg)
    if isinstance(arg, ir.ParamRef):
        return {"type": "runtime_data", "value": arg.index}
    if isinstance(arg, ir.Lookahead):
        return reference(arg)
    body = _to_data(arg) if isinstance(arg.type, t.BoolType) else expression(arg)
    return {"type": "expression", "value": body}


def target(arg: ir.Arg) -> Json:
    """What a primitive writes."""
    if isinstance(arg, ir.ElementField):
        return {"type": "expression", "value": reference(arg)}
    return argument(arg)
