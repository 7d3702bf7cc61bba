"""Lowering of expressions and assignments.

Expressions without side effects become value trees that BMv2 evaluates in one go. Calls with
side effects are carried out first, their results kept in temporaries; whatever stands to their
left is copied away before, so that the order of evaluation stays the language's.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Protocol

from compiler import core as c
from compiler import ir
from compiler import types as t
from compiler.instances import given_name
from compiler.lower.base import Builder
from compiler.lower.values import (
    ElementPlace,
    EndPlace,
    HeaderPlace,
    HeaderValue,
    InvalidValue,
    ListValue,
    Record,
    SlicePlace,
    StackPlace,
    UnionPlace,
    Val,
    overlap,
    reads,
    scalar_type,
)
from compiler.source import NOWHERE, Span

_PURE = {"isValid"}
# Terms of one expression in JSON, about: BMv2 reads JSON that is nested a thousand levels deep, and
# a term takes up to four.
MAX_TERMS = 64


class Inside(Protocol):
    """What expressions ask of statements: what a call or a branch comes to is made of those."""

    def call(self, expr: c.Call) -> Val | None:
        """Carry out a call."""

    def condition(self, expr: c.Expr, yes: ir.Block, no: ir.Block) -> None:
        """Branch on a boolean expression."""

    def table_result(self, expr: c.Field) -> Val:
        """`t.apply().hit` as a value."""


class Expressions:
    """Lowers expressions; dispatch is by node class."""

    statements: Inside

    def __init__(self, builder: Builder) -> None:
        self.builder = builder
        self._ranks: dict[int, tuple[Sequence[str], dict[str, int]]] = {}  # places of names

    # Side effects

    def effectful(self, expr: c.Expr | None) -> bool:
        """Whether evaluating an expression does anything besides giving a value."""
        if expr is None or isinstance(expr, c.Const | c.Ref):
            return False
        if isinstance(expr, c.Call):
            if isinstance(expr.callee, c.Builtin) and expr.callee.name in _PURE:
                return self.effectful(expr.base)
            return True
        if isinstance(expr, c.Binary):
            return self.effectful(expr.left) or self.effectful(expr.right)
        if isinstance(expr, c.Field | c.StackPart | c.Slice):
            return self.effectful(expr.base)
        if isinstance(expr, c.Index):
            return self.effectful(expr.base) or self.effectful(expr.index)
        if isinstance(expr, c.Unary | c.Cast):
            return self.effectful(expr.operand)
        if isinstance(expr, c.Ternary):
            return any(map(self.effectful, (expr.condition, expr.yes, expr.no)))
        if isinstance(expr, c.Aggregate):
            return any(self.effectful(p) for _, p in expr.parts)
        return False

    # Values

    def value(self, expr: c.Expr) -> Val:
        """Lower an expression of any type."""
        if self.builder.found and id(expr) in self.builder.found:
            return self.builder.found[id(expr)]
        rule = _RULES.get(type(expr))
        if rule is None:
            raise self.builder.fail(expr.span, "this cannot be used as a value here")
        return rule(self, expr)  # type: ignore[no-any-return]

    def scalar(self, expr: c.Expr) -> ir.Value:
        """Lower an expression of scalar type."""
        value = self.value(expr)
        if not isinstance(value, ir.Value):
            raise self.builder.fail(expr.span, f"a value of type {expr.type} cannot be used here")
        return value

    def values(self, exprs: list[c.Expr]) -> list[Val]:
        """Lower expressions left to right."""
        found: list[Val] = []
        for index, expr in enumerate(exprs):
            value = self.value(expr)
            if any(self.effectful(e) for e in exprs[index + 1 :]):
                value = self.spill(value, expr.span)
            found.append(value)
        return found

    def simple(self, value: ir.Value, span: Span) -> ir.Value:
        """A value an operation can take as an argument: a field, a literal or a parameter."""
        if isinstance(value, ir.Lit | ir.ParamRef):
            return value
        if isinstance(value, ir.FieldRef) and not isinstance(value.type, t.BoolType):
            return value
        if isinstance(value.type, t.BoolType):
            value = ir.Op(t.BIT1, "b2d", (value,))
        place = self.builder.temporary(value.type)
        self.assign(place, value, span)
        assert isinstance(place, ir.Value)
        return place

    def _const(self, expr: c.Const) -> Val:
        return self.constant(expr.value, expr.type, expr.span)

    def _rank(self, names: Sequence[str], name: str) -> int:
        """Which of them a name is; they are many, and asked for often."""
        known = self._ranks.get(id(names))
        if known is None:  # the names are kept too: another list shall not get their number
            known = names, {each: at for at, each in enumerate(names)}
            self._ranks[id(names)] = known
        return known[1][name]

    def constant(self, value: int | bool | str, type_: t.Type, span: Span) -> ir.Lit:
        """A literal."""
        if isinstance(type_, t.Enum):
            return ir.Lit(t.BIT32, self._rank(type_.members, str(value)))
        if isinstance(type_, t.ErrorType):
            return ir.Lit(t.BIT32, self._rank(self.builder.source.errors, str(value)))
        if isinstance(value, str):
            raise self.builder.fail(span, "a string cannot be used as a value")
        low = scalar_type(type_)
        return ir.Lit(low or t.BIT32, int(value))

    def _ref(self, expr: c.Ref) -> Val:
        symbol = expr.symbol
        found = self.builder.env.get(symbol)
        if found is not None:
            return found
        if symbol.direction == "ctor":
            bound = self.builder.current.values.get(symbol)
            if isinstance(bound, c.Expr):
                return self.value(bound)
        if symbol.direction == "var":
            # A variable of an enclosing parser or control whose declaration has not run.
            return self.declare(symbol)
        raise self.builder.fail(expr.span, f"'{symbol.name}' cannot be used as a value here")

    def declare(self, variable: c.Variable) -> Val:
        """Storage for a local variable."""
        place = self.builder.temporary(variable.type, variable.name)
        self.builder.env[variable] = place
        return place

    def _field(self, expr: c.Field) -> Val:
        if isinstance(expr.base, c.Call) and isinstance(expr.base.callee, c.TableApply):
            return self.statements.table_result(expr)
        return self.field(self.value(expr.base), expr.name, expr)

    def field(self, base: Val, name: str, expr: c.Expr) -> Val:
        """A field of a lowered struct, header or union."""
        if isinstance(base, Record | HeaderValue):
            return base.fields[name]
        if isinstance(base, UnionPlace):
            member = base.type.by_name[name]
            assert isinstance(member.type, t.Struct)
            return HeaderPlace(member.type, f"{base.name}.{given_name(member.annotations, name)}")
        if isinstance(base, EndPlace) and t.is_union(base.type):
            member_type = base.type.by_name[name].type
            assert isinstance(member_type, t.Struct)
            return EndPlace(member_type, base.stack, base.part, name)
        if isinstance(base, InvalidValue):
            return self.default(base.type.by_name[name].type, expr.span)  # type: ignore[attr-defined]
        if isinstance(base, HeaderPlace | ElementPlace | EndPlace):
            member = base.type.by_name[name]
            return self.header_field(base, given_name(member.annotations, name), member.type, expr)
        raise self.builder.fail(expr.span, f"field '{name}' cannot be reached here")

    def header_field(
        self, base: HeaderPlace | ElementPlace | EndPlace, path: str, type_: t.Type, expr: c.Expr
    ) -> Val:
        """A field of a header, or the record of fields of a struct inside it."""
        stripped = t.strip(type_)
        if isinstance(stripped, t.Struct):
            return Record(
                stripped,
                {
                    f.name: self.header_field(
                        base, f"{path}.{given_name(f.annotations, f.name)}", f.type, expr
                    )
                    for f in stripped.fields
                },
            )
        low = scalar_type(type_)
        assert low is not None
        if isinstance(base, HeaderPlace):
            return ir.FieldRef(low, base.name, self.builder.storage.flat_names(base.type)[path])
        if isinstance(base, ElementPlace):
            names = list(self.builder.storage.flat_names(base.type))
            return ir.ElementField(low, base.stack, base.index, names.index(path))
        if base.part == "next":
            raise self.builder.fail(
                expr.span,
                "a field of 'next' cannot be read",
                "'next' can only be extracted into; read 'last' after that",
            )
        return ir.LastField(
            low, base.stack, self.builder.storage.flat_names(base.type)[path], base.member
        )

    def _stack_part(self, expr: c.StackPart) -> Val:
        base = self.value(expr.base)
        if not isinstance(base, StackPlace):
            raise self.builder.fail(expr.span, "this stack cannot be used here")
        if expr.part == "lastIndex":
            return ir.LastIndex(t.BIT32, base.name)
        if expr.part == "size":
            return ir.Lit(t.BIT32, base.type.size)
        element = base.type.element
        assert isinstance(element, t.Struct)
        return EndPlace(element, base.name, expr.part)

    def _index(self, expr: c.Index) -> Val:
        base = self.value(expr.base)
        if self.effectful(expr.index):
            base = base if isinstance(base, StackPlace) else self.spill(base, expr.span)
        index = self.scalar(expr.index)
        return self.element(base, index, expr)

    def element(self, base: Val, index: ir.Value, expr: c.Expr) -> Val:
        """An element of a stack."""
        if isinstance(base, ListValue):
            if isinstance(index, ir.Lit):
                return base.elements[index.value]
            base = self.spill(base, expr.span)
        if not isinstance(base, StackPlace):
            raise self.builder.fail(expr.span, "this cannot be indexed here")
        element = base.type.element
        assert isinstance(element, t.Struct)
        if isinstance(index, ir.Lit):
            if not 0 <= index.value < base.type.size:
                raise self.builder.fail(
                    expr.span,
                    f"index {index.value} is outside the stack",
                    f"indices go from 0 to {base.type.size - 1}",
                    "out-of-range",
                )
            name = f"{base.name}[{index.value}]"
            if element.kind == "header_union":
                return UnionPlace(element, name)
            return HeaderPlace(element, name)
        if element.kind == "header_union":
            raise self.builder.fail(
                expr.span,
                "a stack of unions needs an index known at compile time here",
                "copy the header you mean to a variable in a statement before",
            )
        if not isinstance(index, ir.FieldRef | ir.ParamRef):
            index = self.simple(index, expr.span)
        return ElementPlace(element, base.name, index, base.type.size)

    def _slice(self, expr: c.Slice) -> Val:
        return slice_value(self.scalar(expr.base), expr.high, expr.low)

    def _unary(self, expr: c.Unary) -> Val:
        operand = self.scalar(expr.operand)
        if expr.op == "!":
            return negate(operand)
        return ir.Op(scalar_type(expr.type) or t.BIT32, expr.op, (operand,))

    def _binary(self, expr: c.Binary) -> Val:
        """Left before right: what the right changes was copied before."""
        op = expr.op
        if op in ("&&", "||") and self.effectful(expr.right):
            return self.branchy(expr)
        left = self.value(expr.left)
        if self.effectful(expr.right) or (
            _terms(expr) % MAX_TERMS == 0 and self.builder.mode not in ("checksum", "deparser")
        ):
            left = self.spill(left, expr.span)
        right = self.value(expr.right)
        if op in ("==", "!="):
            same = self.equal(left, right, expr.span)
            return negate(same) if op == "!=" else same
        if not isinstance(left, ir.Value) or not isinstance(right, ir.Value):
            raise self.builder.fail(expr.span, f"'{op}' cannot work on these")
        type_ = scalar_type(expr.type) or t.BIT32
        if op == "++":
            return concat(left, right, type_)
        if op in ("<<", ">>"):
            return shift(op, left, right, type_)
        return ir.Op(type_, op, (left, right))

    def branchy(self, expr: c.Expr) -> Val:
        """A boolean worked out by branching, because part of it must not always run."""
        result = self.builder.temporary(t.BOOL)
        yes, no, after = ir.Block(), ir.Block(), ir.Block()
        self.statements.condition(expr, yes, no)
        self.builder.block = yes
        self.assign(result, ir.boolean(True), expr.span)
        self.builder.jump(after, no)
        self.assign(result, ir.boolean(False), expr.span)
        self.builder.jump(after, after)
        return result

    def _ternary(self, expr: c.Ternary) -> Val:
        """One value if both branches are pure, else a branch for each."""
        type_ = scalar_type(expr.type)
        if (
            type_ is not None
            and not self.effectful(expr.yes)
            and not self.effectful(expr.no)
            and (not isinstance(type_, t.Varbit))
        ):
            condition = self.scalar(expr.condition)
            return ir.Op(type_, "?", (condition, self.scalar(expr.yes), self.scalar(expr.no)))
        result = self.builder.temporary(expr.type)
        yes, no, after = ir.Block(), ir.Block(), ir.Block()
        self.statements.condition(expr.condition, yes, no)
        self.builder.block = yes
        self.assign(result, self.value(expr.yes), expr.span)
        self.builder.jump(after, no)
        self.assign(result, self.value(expr.no), expr.span)
        self.builder.jump(after, after)
        return result

    def _cast(self, expr: c.Cast) -> Val:
        if isinstance(t.strip(expr.type), t.Struct | t.Tuple):
            return self.value(expr.operand)
        operand = self.scalar(expr.operand)
        return convert(operand, scalar_type(expr.type) or t.BIT32)

    def _aggregate(self, expr: c.Aggregate) -> Val:
        parts = [p for _, p in expr.parts if not isinstance(p, c.DefaultValue)]
        lowered = iter(self.values(parts))
        names = [n for n, _ in expr.parts]
        values = [
            self.default(p.type, p.span) if isinstance(p, c.DefaultValue) else next(lowered)
            for _, p in expr.parts
        ]
        base = t.strip(expr.type)
        if t.is_header(base):
            assert isinstance(base, t.Struct)
            return HeaderValue(base, dict(zip(names, values, strict=True)))
        if isinstance(base, t.Stack | t.ListType):
            return ListValue(base, tuple(values))
        return Record(base, dict(zip(names, values, strict=True)))

    def _invalid(self, expr: c.Invalid) -> Val:
        return InvalidValue(expr.type)

    def _default(self, expr: c.DefaultValue) -> Val:
        return self.default(expr.type, expr.span)

    def default(self, type_: t.Type, span: Span) -> Val:
        """The value `...` stands for."""
        base = t.strip(type_)
        if isinstance(base, t.Struct):
            if base.kind != "struct":
                return InvalidValue(base)
            return Record(base, {f.name: self.default(f.type, span) for f in base.fields})
        if isinstance(base, t.Tuple):
            return Record(
                base, {f"f{i}": self.default(e, span) for i, e in enumerate(base.elements)}
            )
        if isinstance(base, t.Stack):
            return ListValue(base, tuple(InvalidValue(base.element) for _ in range(base.size)))
        low = scalar_type(base)
        if low is None or isinstance(low, t.Varbit):
            raise self.builder.fail(span, f"type {type_} has no default value")
        return ir.Lit(low, 0)

    def _call(self, expr: c.Call) -> Val:
        result = self.statements.call(expr)
        if result is None:
            raise self.builder.fail(expr.span, "this call has no value")
        return result

    # Equality

    def valid(self, place: Val, span: Span) -> ir.Value:
        """Whether a header or union is valid."""
        if isinstance(place, HeaderPlace):
            return ir.FieldRef(t.BOOL, place.name, "$valid$")
        if isinstance(place, ElementPlace):
            return ir.ElementField(t.BOOL, place.stack, place.index, -1)
        if isinstance(place, UnionPlace):
            return ir.UnionValid(t.BOOL, place.name)
        if isinstance(place, HeaderValue):
            return ir.boolean(True)
        if isinstance(place, InvalidValue):
            return ir.boolean(False)
        if isinstance(place, EndPlace) and place.part == "last" and place.member is None:
            return ir.LastField(t.BOOL, place.stack, "$valid$")
        raise self.builder.fail(span, "validity cannot be asked here")

    def equal(self, left: Val, right: Val, span: Span) -> ir.Value:
        """Equality of any two values of one type."""
        if isinstance(left, ir.Value) and isinstance(right, ir.Value):
            return ir.Op(t.BOOL, "==", (left, right))
        if isinstance(left, Record) and isinstance(right, Record):
            return conjunction(
                [
                    self.equal(a, b, span)
                    for a, b in zip(left.fields.values(), right.fields.values(), strict=True)
                ]
            )
        if isinstance(left, StackPlace | ListValue) and isinstance(right, StackPlace | ListValue):
            return conjunction(
                [
                    self.equal(a, b, span)
                    for a, b in zip(self.elements(left), self.elements(right), strict=True)
                ]
            )
        one, other = self.valid(left, span), self.valid(right, span)
        if isinstance(left, InvalidValue) or isinstance(right, InvalidValue):
            return negate(other if isinstance(left, InvalidValue) else one)
        if isinstance(left, UnionPlace) and isinstance(right, UnionPlace):
            members = left.type.fields
        else:
            type_ = left.type
            assert isinstance(type_, t.Struct)
            members = type_.fields
        dummy = c.Any(span, t.ANYTHING)
        fields = conjunction(
            [
                self.equal(self.field(left, f.name, dummy), self.field(right, f.name, dummy), span)
                for f in members
            ]
        )
        if isinstance(left, UnionPlace):
            return fields
        both = conjunction([one, other, fields])
        neither = conjunction([negate(one), negate(other)])
        return disjunction(neither, both)

    def elements(self, stack: StackPlace | ListValue) -> list[Val]:
        """A stack's elements."""
        if isinstance(stack, ListValue):
            return list(stack.elements)
        dummy = c.Any(self.builder.span or NOWHERE, t.ANYTHING)
        return [self.element(stack, ir.Lit(t.BIT32, i), dummy) for i in range(stack.type.size)]

    # Places

    def place(self, expr: c.Expr) -> Val:
        """Lower an expression that will be written."""
        if isinstance(expr, c.Slice):
            base = self.place(expr.base)
            if isinstance(base, SlicePlace):
                return SlicePlace(expr.type, base.base, base.low + expr.high, base.low + expr.low)
            assert isinstance(base, ir.Value)
            return SlicePlace(expr.type, base, expr.high, expr.low)
        if isinstance(expr, c.Cast):
            return self.place(expr.operand)
        return self.value(expr)

    # Assignment

    def spill(self, value: Val, span: Span) -> Val:
        """Copy a value to fresh storage, so that later changes do not reach it."""
        if isinstance(value, ir.Lit | ir.ParamRef | InvalidValue):
            return value
        if isinstance(value, Record):
            return Record(value.type, {n: self.spill(v, span) for n, v in value.fields.items()})
        if isinstance(value, HeaderValue):
            return HeaderValue(
                value.type, {n: self.spill(v, span) for n, v in value.fields.items()}
            )
        if isinstance(value, ListValue):
            return ListValue(value.type, tuple(self.spill(v, span) for v in value.elements))
        place = self.builder.temporary(value.type)
        self.assign(place, value, span)
        return place

    def assign(self, target: Val, value: Val, span: Span) -> None:
        """Store a value of any type."""
        if isinstance(target, SlicePlace):
            self._assign_slice(target, value, span)
        elif isinstance(target, ir.Value):
            assert isinstance(value, ir.Value)
            if target.type == t.Bits(1, True):
                value = convert(value, t.BIT1)
            if target != value:
                op = "assign_VL" if isinstance(target.type, t.Varbit) else "assign"
                self.builder.emit(op, (target, value), span)
        elif isinstance(target, Record):
            self._assign_record(target, value, span)
        elif isinstance(target, StackPlace):
            self._assign_stack(target, value, span)
        else:
            self._assign_header(target, value, span)

    def _assign_slice(self, target: SlicePlace, value: Val, span: Span) -> None:
        assert isinstance(value, ir.Value)
        base = target.base
        type_ = base.type
        assert isinstance(type_, t.Bits)
        mask = ((1 << (target.high - target.low + 1)) - 1) << target.low
        everything = (1 << type_.width) - 1
        kept = ir.Op(type_, "&", (base, ir.Lit(type_, everything ^ mask)))
        moved: ir.Value = convert(value, t.Bits(type_.width))
        if target.low:
            moved = shift("<<", moved, ir.Lit(t.Bits(8), target.low), t.Bits(type_.width))
        moved = ir.Op(type_, "&", (moved, ir.Lit(t.Bits(type_.width), mask)))
        self.assign(base, ir.Op(type_, "|", (kept, moved)), span)

    def _assign_record(self, target: Record, value: Val, span: Span) -> None:
        if isinstance(value, ListValue):
            value = Record(target.type, dict(zip(target.fields, value.elements, strict=True)))
        assert isinstance(value, Record)
        self.assign_all(list(zip(target.fields.values(), value.fields.values(), strict=True)), span)

    def assign_all(self, pairs: list[tuple[Val, Val]], span: Span) -> None:
        """Assign as if at once: values that an earlier assignment would change go first."""
        written: set[tuple[str, str]] = set()
        safe: list[tuple[Val, Val]] = []
        for target, value in pairs:
            if target == value:
                continue
            if written and overlap(written, reads(value, set())):
                value = self.spill(value, span)  # noqa: PLW2901
            safe.append((target, value))
            reads(target, written)
        for target, value in safe:
            self.assign(target, value, span)

    def _assign_stack(self, target: StackPlace, value: Val, span: Span) -> None:
        if isinstance(value, StackPlace):
            if target.name != value.name:
                union = t.is_union(target.type.element)
                op = "assign_union_stack" if union else "assign_header_stack"
                one, other = self.builder.copy_name(target), self.builder.copy_name(value)
                assert one is not None
                assert other is not None
                self.builder.emit(op, (one, other), span)
            return
        assert isinstance(value, ListValue)
        self.assign_all(list(zip(self.elements(target), value.elements, strict=False)), span)

    def _assign_header(self, target: Val, value: Val, span: Span) -> None:
        """A header or union as a whole: validity goes with the fields."""
        name = self.builder.copy_name(target)
        if name is None or isinstance(target, EndPlace):
            raise self.builder.fail(
                span, "this header cannot be assigned here", "name the element by an index"
            )
        if isinstance(value, InvalidValue):
            self.invalidate(target, span)
        elif isinstance(value, HeaderValue):
            if overlap(reads(target, set()), reads(value, set())):
                spilled = self.spill(value, span)
                assert isinstance(spilled, HeaderValue)
                value = spilled
            self.builder.emit("add_header", (name,), span)
            dummy = c.Any(span, t.ANYTHING)
            for field_name, part in value.fields.items():
                self.assign(self.field(target, field_name, dummy), part, span)
        elif isinstance(value, EndPlace):
            self._assign_last(target, name, value, span)
        else:
            other = self.builder.copy_name(value)
            assert other is not None
            if name != other:
                union = isinstance(target, UnionPlace)
                self.builder.emit("assign_union" if union else "assign_header", (name, other), span)

    def _assign_last(self, target: Val, name: ir.Arg, value: EndPlace, span: Span) -> None:
        """Copy a stack's last element field by field: it has no name of its own."""
        self.builder.emit("add_header", (name,), span)
        dummy = c.Any(span, t.ANYTHING)
        for each in value.type.fields:
            self.assign(
                self.field(target, each.name, dummy), self.field(value, each.name, dummy), span
            )

    def invalidate(self, place: Val, span: Span) -> None:
        """Make a header or union invalid."""
        if isinstance(place, UnionPlace):
            for each in place.type.fields:
                member = self.field(place, each.name, c.Any(span, t.ANYTHING))
                self.invalidate(member, span)
            return
        name = self.builder.copy_name(place)
        assert name is not None
        self.builder.emit("remove_header", (name,), span)


def _terms(expr: c.Binary) -> int:
    """How many operators stand on the left of one another, this one included."""
    found = 0
    left: c.Expr = expr
    while isinstance(left, c.Binary):
        found += 1
        left = left.left
    return found


def negate(value: ir.Value) -> ir.Value:
    """Logical not."""
    if isinstance(value, ir.Lit):
        return ir.boolean(not value.value)
    if isinstance(value, ir.Op) and value.op == "!":
        return value.args[0]
    if isinstance(value, ir.Op) and value.op == "==":
        return ir.Op(t.BOOL, "!=", value.args)
    return ir.Op(t.BOOL, "!", (value,))


def conjunction(values: list[ir.Value]) -> ir.Value:
    """Logical and of all."""
    result: ir.Value | None = None
    for value in values:
        if isinstance(value, ir.Lit):
            if not value.value:
                return ir.boolean(False)
            continue
        result = value if result is None else ir.Op(t.BOOL, "&&", (result, value))
    return ir.boolean(True) if result is None else result


def disjunction(left: ir.Value, right: ir.Value) -> ir.Value:
    """Logical or."""
    for one, other in ((left, right), (right, left)):
        if isinstance(one, ir.Lit):
            return ir.boolean(True) if one.value else other
    return ir.Op(t.BOOL, "||", (left, right))


def convert(value: ir.Value, type_: t.Type) -> ir.Value:
    """A cast between scalar types."""
    have = value.type
    if have == type_:
        return value
    if isinstance(type_, t.BoolType):
        if isinstance(value, ir.Lit):
            return ir.boolean(bool(value.value))
        return ir.Op(t.BOOL, "d2b", (value,))
    if isinstance(have, t.BoolType):
        if isinstance(value, ir.Lit):
            return ir.Lit(type_, value.value)
        return ir.Op(type_, "b2d", (value,))
    if isinstance(value, ir.Lit):
        from compiler import folding

        return ir.Lit(type_, folding.wrap(value.value, type_))
    return ir.Op(type_, "cast", (value,))


def slice_value(base: ir.Value, high: int, low: int) -> ir.Value:
    """Bits high..low of a value."""
    type_ = t.Bits(high - low + 1)
    if isinstance(base, ir.Lit):
        return ir.Lit(type_, (base.value >> low) & ((1 << type_.width) - 1))
    assert isinstance(base.type, t.Bits)
    if low == 0 and type_.width == base.type.width and not base.type.signed:
        return base
    return ir.Op(type_, "slice", (base, ir.Lit(t.BIT32, high), ir.Lit(t.BIT32, low)))


def concat(left: ir.Value, right: ir.Value, type_: t.Type) -> ir.Value:
    """`left ++ right`."""
    return ir.Op(type_, "++", (left, right))


def shift(op: str, left: ir.Value, right: ir.Value, type_: t.Type) -> ir.Value:
    """A shift; amounts beyond the width leave nothing, which BMv2 must be told."""
    assert isinstance(type_, t.Bits)
    result = ir.Op(type_, op, (left, right))
    if isinstance(right, ir.Lit):
        if right.value >= type_.width and not type_.signed:
            return ir.Lit(type_, 0)
        return result
    amount = right.type
    if isinstance(amount, t.Bits) and amount.width > 16:
        if type_.signed and op == ">>":
            return result
        small = ir.Op(t.BOOL, "<", (right, ir.Lit(amount, type_.width)))
        return ir.Op(type_, "?", (small, result, ir.Lit(type_, 0)))
    return result


_RULES: dict[type, Callable[..., Any]] = {
    c.Const: Expressions._const,
    c.Ref: Expressions._ref,
    c.Field: Expressions._field,
    c.StackPart: Expressions._stack_part,
    c.Index: Expressions._index,
    c.Slice: Expressions._slice,
    c.Unary: Expressions._unary,
    c.Binary: Expressions._binary,
    c.Ternary: Expressions._ternary,
    c.Cast: Expressions._cast,
    c.Aggregate: Expressions._aggregate,
    c.Invalid: Expressions._invalid,
    c.DefaultValue: Expressions._default,
    c.Call: Expressions._call,
}
