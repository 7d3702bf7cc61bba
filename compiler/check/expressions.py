"""Typing of expressions other than calls."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

from compiler import core as c
from compiler import folding
from compiler import syntax as s
from compiler import types as t
from compiler.check.base import (
    BlockEntry,
    Constant,
    Context,
    Declared,
    GenericStruct,
    Overloads,
)
from compiler.check.typing import Typing

_COMPARE = {"<", "<=", ">", ">="}


class Inside(Protocol):
    """What expressions ask of calls, whose arguments are expressions."""

    def call(self, node: s.Call) -> c.Expr:
        """Type one."""


class Expressions:
    """Types expressions; the dispatch is by node class."""

    calls: Inside

    def __init__(self, context: Context, typing: Typing) -> None:
        self.context = context
        self.typing = typing

    def expr(self, node: s.Expr, expected: t.Type | None = None) -> c.Expr:
        """Type an expression, and convert it if a type is expected."""
        rule = _RULES[type(node)]
        value: c.Expr = rule(self, node, expected)
        if expected is not None:
            return self.typing.coerce(value, expected)
        return value

    def bad(self, node: s.Expr) -> c.Expr:
        """What stands for an expression that was already reported."""
        return c.Any(node.span, t.ANYTHING)

    # Literals

    def _number(self, node: s.Number, _: t.Type | None) -> c.Expr:
        """A literal, wrapped to its width; without one an `int`."""
        written = "" if node.base == 10 else _written(node)
        if node.width is None:
            return c.Const(node.span, t.INT, node.value, written)
        if node.width > 1 << 14 or (node.signed and node.width < 1):
            self.context.error("bad-width", node.span, f"a number cannot be {node.width} bits wide")
            return self.bad(node)
        type_ = t.Bits(node.width, node.signed)
        value = folding.wrap(node.value, type_)
        if value != node.value:
            self.context.warning(
                "overflow",
                node.span,
                f"{node.value} does not fit in {type_}; it becomes {value}",
                "use a wider type or a smaller number",
            )
        return c.Const(node.span, type_, value, written)

    def _bool(self, node: s.Bool, _: t.Type | None) -> c.Expr:
        return c.Const(node.span, t.BOOL, node.value)

    def _string(self, node: s.String, _: t.Type | None) -> c.Expr:
        return c.Const(node.span, t.STRING, node.value)

    def _invalid(self, node: s.InvalidHeader, _: t.Type | None) -> c.Expr:
        return c.Invalid(node.span, t.INVALID)

    def _default(self, node: s.Default, _: t.Type | None) -> c.Expr:
        if node.word == "...":
            return c.DefaultValue(node.span, t.ANYTHING)
        self.context.error("syntax", node.span, f"'{node.word}' cannot stand in an expression")
        return c.Any(node.span, t.ANYTHING)

    def _list(self, node: s.ListExpr, expected: t.Type | None) -> c.Expr:
        hints = self._element_types(expected, len(node.elements))
        parts = [
            (f"f{i}", self._part(e, hint))
            for i, (e, hint) in enumerate(zip(node.elements, hints, strict=True))
        ]
        return self._aggregate(node, t.Tuple(tuple(part.type for _, part in parts)), parts)

    def _aggregate(
        self, node: s.ListExpr | s.StructExpr, type_: t.Type, parts: list[tuple[str, c.Expr]]
    ) -> c.Expr:
        if self.typing.bounded(type_, node.span) is t.ANYTHING:
            return self.bad(node)
        if node.rest:
            parts.append(("...", c.DefaultValue(node.span, t.ANYTHING)))
        return c.Aggregate(node.span, type_, tuple(parts))

    def _part(self, node: s.Expr, hint: t.Type | None) -> c.Expr:
        """An element of a list: only literals want to know what is expected of them."""
        if hint is not None and isinstance(node, s.ListExpr | s.StructExpr):
            return self.expr(node, hint)
        return self.expr(node)

    def _element_types(self, expected: t.Type | None, count: int) -> list[t.Type | None]:
        found: list[t.Type | None] = []
        if isinstance(expected, t.Struct):
            found = [f.type for f in expected.fields]
        elif isinstance(expected, t.Tuple):
            found = list(expected.elements)
        elif isinstance(expected, t.Stack | t.ListType):
            found = [expected.element] * count
        found = found[:count]
        return found + [None] * (count - len(found))

    def _struct(self, node: s.StructExpr, expected: t.Type | None) -> c.Expr:
        """8.14: an initialiser by names; it takes its type from where it stands."""
        fields = expected.by_name if isinstance(expected, t.Struct) else {}
        if self.context.meanings is not None:
            named = tuple((name, span) for name, _, span in node.fields)
            self.context.meanings.await_fields(node.span, named)
        parts: list[tuple[str, c.Expr]] = []
        seen: set[str] = set()
        for name, value, span in node.fields:
            if name in seen:
                self.context.error(
                    "duplicate", span, f"field '{name}' is given twice", "remove one"
                )
                continue
            seen.add(name)
            hint = fields[name].type if name in fields else None
            parts.append((name, self._part(value, hint)))
        return self._aggregate(node, t.StructLiteral(tuple((n, v.type) for n, v in parts)), parts)

    # Names

    def _name(self, node: s.Name, _: t.Type | None) -> c.Expr:
        """6.5: what a name stands for, if that is a value."""
        entry = self.context.lookup(node.name, node.absolute, node.span)
        if isinstance(entry, c.Variable):
            if not self.context.lvalue_depth:
                entry.used = True
            return c.Ref(node.span, entry.type, entry)
        if isinstance(entry, Constant):
            entry.used = True
            return _moved(entry.value, node.span)
        if isinstance(entry, c.Instance):
            entry.used = True
            return c.InstanceRef(node.span, entry.type, entry)
        if isinstance(entry, c.ValueSet):
            return c.ValueSetRef(node.span, t.SetType(entry.type), entry)
        if entry is None:
            if node.name in self.context.match_kinds:
                if self.context.meanings is not None:
                    self.context.meanings.mean_member(node.span, "match_kind", node.name)
                return c.Const(node.span, t.MATCH_KIND, node.name)
            self.context.error(
                "unknown-name",
                node.span,
                f"'{node.name}' is not declared",
                self.context.similar(node.name, self.context.names())
                or "declare it before this line; is it a field that needs 'hdr.' or "
                "'meta.' in front?",
            )
        elif isinstance(entry, Declared | GenericStruct | BlockEntry):
            self.context.error(
                "not-a-value",
                node.span,
                f"'{node.name}' is a type, not a value",
                "to cast, put it in parentheses: (T) value" if isinstance(entry, Declared) else "",
            )
        elif isinstance(entry, c.Table):
            self.context.error(
                "not-a-value",
                node.span,
                f"'{node.name}' is a table, not a value",
                "within the table its name means the table: rename one of the two"
                if entry is self.context.place.declares
                else f"write {node.name}.apply()",
            )
        elif isinstance(entry, c.Action):
            self.context.error(
                "not-a-value",
                node.span,
                f"'{node.name}' is an action, not a value",
                f"call it: {node.name}(...)",
            )
        elif isinstance(entry, Overloads):
            self.context.error(
                "not-a-value",
                node.span,
                f"'{node.name}' is a function, not a value",
                f"call it: {node.name}(...)",
            )
        return self.bad(node)

    def _type_name(self, node: s.TypeName, _: t.Type | None) -> c.Expr:
        self.context.error("not-a-value", node.span, "a type cannot stand here", "write a value")
        return self.bad(node)

    def type_of_expr(self, node: s.Expr) -> t.Type | None:
        """The type an expression names, for `E.member`; None when it names a value."""
        if isinstance(node, s.TypeName):
            return self.typing.resolve(node.type)
        if isinstance(node, s.Name):
            entry = self.context.lookup(node.name, node.absolute, node.span)
            if isinstance(entry, Declared):
                return entry.type
        return None

    def _member(self, node: s.Member, _: t.Type | None) -> c.Expr:
        named = self.type_of_expr(node.base)
        if named is not None:
            return self._type_member(node, named)
        base = self.expr(node.base)
        return self.field_of(base, node)

    def _type_member(self, node: s.Member, type_: t.Type) -> c.Expr:
        """7.1.2, 7.2.1: `error.X` and `E.X`."""
        if self.context.meanings is not None:
            self.context.meanings.mean_member(node.name_span, str(type_), node.name)
        if isinstance(type_, t.ErrorType):
            if node.name in self.context.error_names:
                return c.Const(node.span, t.ERROR, node.name)
            self.context.error(
                "unknown-member",
                node.name_span,
                f"there is no error '{node.name}'",
                self.context.similar(node.name, self.context.error_names)
                or f"declare it: error {{ {node.name} }}",
            )
        elif isinstance(type_, t.Enum | t.SerializableEnum):
            if node.name in type_.members:
                member = node.name if isinstance(type_, t.Enum) else type_.members[node.name]
                return c.Const(node.span, type_, member)
            self.context.error(
                "unknown-member",
                node.name_span,
                f"enum {type_} has no member '{node.name}'",
                self.context.similar(node.name, type_.members),
            )
        elif type_ is not t.ANYTHING:
            self.context.error(
                "unknown-member",
                node.name_span,
                f"type {type_} has no members",
                "name a value of this type instead",
            )
        return self.bad(node)

    def field_of(self, base: c.Expr, node: s.Member) -> c.Expr:
        """`base.name` for a typed base."""
        type_ = base.type
        if type_ is t.ANYTHING:
            return self.bad(node)
        if isinstance(base, c.Aggregate):
            for name, part in base.parts:
                if name == node.name:
                    if isinstance(type_, t.Struct):
                        self.context.lead(node.name_span, type_.by_name[name].span)
                    return _moved(part, node.span)
        if isinstance(type_, t.Struct):
            found = type_.by_name.get(node.name)
            if found is not None:
                self.context.lead(node.name_span, found.span)
                return c.Field(node.span, found.type, base, node.name)
            if node.name in (
                "isValid",
                "setValid",
                "setInvalid",
                "minSizeInBits",
                "minSizeInBytes",
                "maxSizeInBits",
                "maxSizeInBytes",
            ):
                self.context.error(
                    "method-not-called",
                    node.name_span,
                    f"'{node.name}' is a method",
                    f"call it: {node.name}()",
                )
            else:
                self.context.error(
                    "unknown-field",
                    node.name_span,
                    f"{type_.kind} {type_} has no field '{node.name}'",
                    self.context.similar(node.name, type_.by_name)
                    or "its fields are: " + ", ".join(type_.by_name),
                )
            return self.bad(node)
        if isinstance(type_, t.Stack):
            return self._stack_part(base, node, type_)
        if isinstance(type_, t.TableResult):
            return self._table_result(base, node)
        self.context.error(
            "unknown-field", node.name_span, f"a value of type {type_} has no fields", ""
        )
        return self.bad(node)

    def _table_result(self, base: c.Expr, node: s.Member) -> c.Expr:
        """14.2.2: `hit`, `miss`, and in a switch `action_run`."""
        if node.name in ("hit", "miss"):
            return c.Field(node.span, t.BOOL, base, node.name)
        if node.name != "action_run":
            self.context.error(
                "unknown-field",
                node.name_span,
                f"apply() has no result '{node.name}'",
                "the results are hit, miss and action_run",
            )
        elif not self.context.place.in_switch:
            self.context.error(
                "misplaced",
                node.name_span,
                "'action_run' can be used in 'switch' only",
                "write switch (t.apply().action_run) { ... }",
            )
        else:
            return c.Field(node.span, t.ANYTHING, base, node.name)
        return self.bad(node)

    def _stack_part(self, base: c.Expr, node: s.Member, type_: t.Stack) -> c.Expr:
        """8.19: `next`, `last` and `lastIndex` in parsers, `size` anywhere."""
        if node.name in ("next", "last"):
            if self.context.place.kind != "parser":
                self.context.error(
                    "misplaced",
                    node.name_span,
                    f"'{node.name}' of a stack can be used in parsers only",
                    "use an index",
                )
            return c.StackPart(node.span, type_.element, base, node.name)
        if node.name == "lastIndex":
            if self.context.place.kind != "parser":
                self.context.error(
                    "misplaced",
                    node.name_span,
                    "'lastIndex' of a stack can be used in parsers only",
                )
            return c.StackPart(node.span, t.BIT32, base, node.name)
        if node.name == "size":
            return c.Const(node.span, t.BIT32, type_.size)
        self.context.error(
            "unknown-field",
            node.name_span,
            f"a stack has no field '{node.name}'",
            f"its elements have: write [index].{node.name}",
        )
        return self.bad(node)

    def _index(self, node: s.Index, _: t.Type | None) -> c.Expr:
        """8.13, 8.19: an element of a tuple, its index known; of a stack, in range if known."""
        base = self.expr(node.base)
        depth, self.context.lvalue_depth = self.context.lvalue_depth, 0
        index = self.expr(node.index)
        self.context.lvalue_depth = depth
        type_ = base.type
        if type_ is t.ANYTHING or index.type is t.ANYTHING:
            return self.bad(node)
        if isinstance(type_, t.Tuple):
            if not isinstance(index, c.Const) or not isinstance(index.value, int):
                self.context.error(
                    "not-constant", node.index.span, "a tuple's index must be a constant"
                )
                return self.bad(node)
            if not 0 <= index.value < len(type_.elements):
                self.context.error(
                    "out-of-range",
                    node.index.span,
                    f"a tuple of {len(type_.elements)} has no element {index.value}",
                )
                return self.bad(node)
            if isinstance(base, c.Aggregate):
                return _moved(base.parts[index.value][1], node.span)
            return c.Field(node.span, type_.elements[index.value], base, f"f{index.value}")
        if not isinstance(type_, t.Stack):
            self.context.error(
                "not-indexable",
                node.span,
                f"a value of type {type_} cannot be indexed",
                "for one bit, write a slice: [n:n]" if isinstance(type_, t.Bits) else "",
            )
            return self.bad(node)
        if not isinstance(index.type, t.Bits | t.InfInt | t.SerializableEnum):
            self.context.error("type-mismatch", node.index.span, f"an index cannot be {index.type}")
            return self.bad(node)
        if isinstance(index, c.Const):
            if not 0 <= int(index.value) < type_.size:
                self.context.error(
                    "out-of-range",
                    node.index.span,
                    f"index {index.value} is outside the stack of {type_.size}",
                    f"indices go from 0 to {type_.size - 1}",
                )
                return self.bad(node)
            index = c.Const(index.span, t.BIT32, index.value)
        return c.Index(node.span, type_.element, base, index)

    def _slice(self, node: s.Slice, _: t.Type | None) -> c.Expr:
        """8.7: bits high to low, both known and within the width."""
        base = self.expr(node.base)
        high = self.typing.constant_int(node.high, "a slice's bound")
        low = self.typing.constant_int(node.low, "a slice's bound")
        if base.type is t.ANYTHING or high is None or low is None:
            return self.bad(node)
        type_ = t.underlying(base.type)
        if not isinstance(type_, t.Bits | t.InfInt) or isinstance(base.type, t.NewType):
            self.context.error(
                "type-mismatch",
                node.span,
                f"a value of type {base.type} has no bits to take a slice of",
                f"cast it first: (({base.type.base}) ...)[high:low]"
                if isinstance(base.type, t.NewType)
                else "",
            )
            return self.bad(node)
        if low < 0 or high < low:
            self.context.error(
                "bad-slice",
                node.span,
                f"[{high}:{low}] is not a slice",
                "write the high bit first: [high:low]",
            )
            return self.bad(node)
        if isinstance(type_, t.Bits) and high >= type_.width:
            self.context.error(
                "bad-slice",
                node.span,
                f"bit {high} is outside {type_}",
                f"the highest bit is {type_.width - 1}",
            )
            return self.bad(node)
        result = t.Bits(high - low + 1)
        if isinstance(base, c.Const):
            return c.Const(node.span, result, folding.slice_(int(base.value), high, low))
        if base.type is not type_:
            base = c.Cast(base.span, type_, base)
        return c.Slice(node.span, result, base, high, low)

    def _plus_slice(self, node: s.PlusSlice, _: t.Type | None) -> c.Expr:
        """8.7: `[low +: width]`; a low that is not known is shifted away."""
        depth, self.context.lvalue_depth = self.context.lvalue_depth, 0
        low = self.expr(node.low)
        self.context.lvalue_depth = depth
        width = self.typing.constant_int(node.width, "a slice's width")
        if width is None or low.type is t.ANYTHING:
            return self.bad(node)
        if isinstance(low, c.Const) and not isinstance(low.value, str):
            high = s.Number(node.low.span, int(low.value) + width - 1, None, False)
            first = s.Number(node.low.span, int(low.value), None, False)
            return self._slice(s.Slice(node.span, node.base, high, first), None)
        base = self.expr(node.base)
        type_ = t.underlying(base.type)
        if not isinstance(type_, t.Bits) or not 0 < width <= type_.width:
            self.context.error(
                "bad-slice", node.span, f"{width} bits cannot be taken out of {base.type}"
            )
            return self.bad(node)
        shifted = self.operate(node, ">>", c.Cast(base.span, t.Bits(type_.width), base), low)
        return c.Slice(node.span, t.Bits(width), shifted, width - 1, 0)

    # Operators

    def _unary(self, node: s.Unary, _: t.Type | None) -> c.Expr:
        """8.7: `!` of bools, `~` of bits, `-` and `+` of numbers."""
        operand = self.expr(node.operand)
        type_ = operand.type
        if type_ is t.ANYTHING:
            return operand
        if isinstance(type_, t.SerializableEnum):
            operand = self.typing.coerce(operand, type_.underlying)
            type_ = operand.type
        if node.op == "!":
            if not isinstance(type_, t.BoolType):
                self.context.error(
                    "type-mismatch",
                    node.span,
                    f"'!' needs a bool, not {type_}",
                    "to invert bits write '~'" if isinstance(type_, t.Bits) else "",
                )
                return c.Const(node.span, t.BOOL, True)
        elif not isinstance(type_, t.Bits) and not (
            isinstance(type_, t.InfInt) and node.op in "-+"
        ):
            self.context.error(
                "type-mismatch",
                node.span,
                f"'{node.op}' needs a number, not {type_}",
                "to negate a bool write '!'"
                if isinstance(type_, t.BoolType)
                else "give it a width: 8w..."
                if isinstance(type_, t.InfInt)
                else "",
            )
            return self.bad(node)
        if isinstance(operand, c.Const):
            return c.Const(node.span, type_, folding.unary(node.op, operand.value, type_))
        if node.op == "+":
            return operand
        return c.Unary(node.span, type_, node.op, operand)

    def _binary(self, node: s.Binary, expected: t.Type | None) -> c.Expr:
        """The operator by its own rule, once both sides have types."""
        op = node.op
        if op == "&&&":
            return self._mask(node, expected)
        if op == "..":
            return self._range(node, expected)
        left = self.expr(node.left)
        right = self.expr(node.right)
        for side in (left, right):
            if isinstance(side, c.DefaultValue):
                self.context.error(
                    "syntax", side.span, "'...' cannot be an operand", "write a value"
                )
        if t.ANYTHING in (left.type, right.type):
            return c.Any(
                node.span,
                t.BOOL if op in ("==", "!=", "&&", "||") or op in _COMPARE else t.ANYTHING,
            )
        return self.operate(node, op, left, right)

    def operate(self, node: s.Expr, op: str, left: c.Expr, right: c.Expr) -> c.Expr:
        """The typed form of `left op right`."""
        if op in ("&&", "||"):
            for side in (left, right):
                if not isinstance(side.type, t.BoolType):
                    self.typing.mismatch(side, t.BOOL, f"'{op}'")
            return self.fold(node, op, left, right, t.BOOL)
        if op in ("==", "!="):
            return self._equality(node, op, left, right)
        if op in ("<<", ">>"):
            return self._shift(node, op, left, right)
        if op == "++":
            return self._concat(node, left, right)
        negative = any(
            isinstance(side, c.Const) and side.type is t.INT and int(side.value) < 0
            for side in (left, right)
        )
        left, right = self._balance(left, right)
        type_ = left.type
        if not isinstance(type_, t.Bits | t.InfInt):
            self.context.error("type-mismatch", node.span, f"'{op}' needs numbers, not {type_}", "")
            return self.bad(node)
        if type_ != right.type:
            self._operand_mismatch(node, op, left, right)
            return c.Any(node.span, t.BOOL if op in _COMPARE else type_)
        if op in ("|+|", "|-|") and isinstance(type_, t.InfInt):
            self.context.error(
                "type-mismatch",
                node.span,
                f"'{op}' needs numbers with a width",
                "write one as 8w...",
            )
            return self.bad(node)
        if op in ("/", "%") and (negative or (isinstance(type_, t.Bits) and type_.signed)):
            return self._no_division(node, op, type_)
        return self.fold(node, op, left, right, t.BOOL if op in _COMPARE else type_)

    def _no_division(self, node: s.Expr, op: str, type_: t.Type) -> c.Expr:
        if isinstance(type_, t.Bits) and type_.signed:
            cure = f"cast both to bit<{type_.width}>"
            self.context.error(
                "type-mismatch", node.span, f"'{op}' is not defined for signed numbers", cure
            )
        else:
            self.context.error(
                "bad-constant", node.span, f"'{op}' is not defined for negative numbers"
            )
        return self.bad(node)

    def _operand_mismatch(self, node: s.Expr, op: str, left: c.Expr, right: c.Expr) -> None:
        code = "type-mismatch"
        cure = ""
        if isinstance(left.type, t.Bits) and isinstance(right.type, t.Bits):
            code = "width-mismatch"
            wide = max(left.type, right.type, key=lambda x: x.width)
            if left.type.signed == right.type.signed:
                cure = f"cast the narrower one: ({wide}) ..."
            else:
                cure = "cast one of them, so that both are signed or both unsigned"
        self.context.error(code, node.span, f"'{op}' between {left.type} and {right.type}", cure)

    def _beneath(self, value: c.Expr) -> c.Expr:
        """A value, or what one of an enum is made of."""
        if isinstance(value.type, t.SerializableEnum):
            return self.typing.coerce(value, value.type.underlying)
        return value

    def _balance(self, left: c.Expr, right: c.Expr) -> tuple[c.Expr, c.Expr]:
        """Drop enums to numbers, and give a plain integer the other side's type."""
        left, right = self._beneath(left), self._beneath(right)
        if isinstance(left.type, t.InfInt) and isinstance(right.type, t.Bits):
            left = self.typing.fit(left, right.type)
        elif isinstance(right.type, t.InfInt) and isinstance(left.type, t.Bits):
            right = self.typing.fit(right, left.type)
        return left, right

    def _equality(self, node: s.Expr, op: str, left: c.Expr, right: c.Expr) -> c.Expr:
        """`==` and `!=` between values of one type, literals taking the other's."""
        if left.type != right.type:
            if isinstance(left, c.Aggregate | c.Invalid) and not isinstance(right, c.Aggregate):
                left = self.typing.coerce(left, right.type)
            elif isinstance(right, c.Aggregate | c.Invalid):
                right = self.typing.coerce(right, left.type)
            else:
                left, right = self._balance(left, right)
        if left.type != right.type:
            self._operand_mismatch(node, op, left, right)
            return c.Any(node.span, t.BOOL)
        if (
            isinstance(t.strip(left.type), t.StructLiteral)
            or isinstance(left.type, t.TypeVar | t.Void)
            or isinstance(t.strip(left.type), t.Extern | t.BlockType | t.TableResult)
        ):
            self.context.error(
                "type-mismatch", node.span, f"values of type {left.type} cannot be compared", ""
            )
            return c.Any(node.span, t.BOOL)
        return self.fold(node, op, left, right, t.BOOL)

    def _shift(self, node: s.Expr, op: str, left: c.Expr, right: c.Expr) -> c.Expr:
        """8.10: by what is unsigned; the left side keeps its type."""
        left, right = self._beneath(left), self._beneath(right)
        if not isinstance(left.type, t.Bits | t.InfInt):
            self.context.error(
                "type-mismatch", node.span, f"'{op}' needs a number, not {left.type}"
            )
            return self.bad(node)
        if not isinstance(right.type, t.Bits | t.InfInt):
            self.context.error(
                "type-mismatch", right.span, f"a shift amount cannot be {right.type}"
            )
            return self.bad(node)
        if isinstance(right, c.Const):
            if int(right.value) < 0:
                self.context.error("bad-constant", right.span, "a shift amount cannot be negative")
                return self.bad(node)
        elif isinstance(right.type, t.Bits) and right.type.signed:
            self.context.error(
                "type-mismatch",
                right.span,
                "a shift amount must be unsigned",
                f"cast it: (bit<{right.type.width}>) ...",
            )
            return self.bad(node)
        if isinstance(left.type, t.InfInt) and not isinstance(right, c.Const):
            self.context.error(
                "type-mismatch", left.span, "the number to shift has no width", "write it as 32w..."
            )
            return self.bad(node)
        if (
            isinstance(right, c.Const)
            and isinstance(left.type, t.Bits)
            and (int(right.value) >= left.type.width)
        ):
            self.context.warning(
                "overflow",
                node.span,
                f"shifting {left.type} by {right.value} leaves nothing",
                "shift by less than the width",
            )
        return self.fold(node, op, left, right, left.type)

    def _concat(self, node: s.Expr, left: c.Expr, right: c.Expr) -> c.Expr:
        """8.10: both sides have widths; the sign is the left one's."""
        left, right = self._beneath(left), self._beneath(right)
        one, other = left.type, right.type
        if isinstance(one, t.StringType) and isinstance(other, t.StringType):
            return self.fold(node, "++", left, right, t.STRING)
        if not isinstance(one, t.Bits) or not isinstance(other, t.Bits):
            bad = left if not isinstance(one, t.Bits) else right
            self.context.error(
                "type-mismatch",
                bad.span,
                f"'++' needs numbers with a width, not {bad.type}",
                "write it as 8w..." if isinstance(bad.type, t.InfInt) else "",
            )
            return self.bad(node)
        return self.fold(node, "++", left, right, t.Bits(one.width + other.width, one.signed))

    def fold(self, node: s.Expr, op: str, left: c.Expr, right: c.Expr, type_: t.Type) -> c.Expr:
        """Fold constants, or build the operator."""
        if isinstance(left, c.Const) and isinstance(right, c.Const):
            try:
                width = right.type.width if isinstance(right.type, t.Bits) else 0
                value = folding.binary(op, left.value, right.value, t.underlying(left.type), width)
            except folding.FoldError as problem:
                self.context.error("bad-constant", node.span, str(problem))
                return self.bad(node)
            return c.Const(node.span, type_, value)
        if op in ("&&", "||") and isinstance(left, c.Const):
            return right if bool(left.value) == (op == "&&") else left
        if op in ("/", "%") and isinstance(right, c.Const) and right.value == 0:
            self.context.error("bad-constant", node.span, "division by zero")
            return self.bad(node)
        return c.Binary(node.span, type_, op, left, right)

    def _mask(self, node: s.Binary, expected: t.Type | None) -> c.Expr:
        element = expected.element if isinstance(expected, t.SetType) else None
        left, right = self.expr(node.left), self.expr(node.right)
        left, right = self._balance(left, right)
        if element is not None:
            base = t.strip(element)
            left = (
                self.typing.coerce(left, element)
                if left.type is t.INT and element is base
                else left
            )
            right = (
                self.typing.coerce(right, element)
                if right.type is t.INT and element is base
                else right
            )
        return c.Mask(node.span, t.SetType(left.type), left, right)

    def _range(self, node: s.Binary, expected: t.Type | None) -> c.Expr:
        element = expected.element if isinstance(expected, t.SetType) else None
        left, right = self._balance(self.expr(node.left), self.expr(node.right))
        if element is not None:
            left = self.typing.coerce(left, element) if left.type is t.INT else left
            right = self.typing.coerce(right, element) if right.type is t.INT else right
        return c.Range(node.span, t.SetType(left.type), left, right)

    def _ternary(self, node: s.Ternary, expected: t.Type | None) -> c.Expr:
        """8.5.1: a bool, and two branches of one type."""
        condition = self.expr(node.condition)
        if not isinstance(condition.type, t.BoolType) and condition.type is not t.ANYTHING:
            self.typing.mismatch(condition, t.BOOL, "the condition of '?'")
        yes, no = self.expr(node.yes), self.expr(node.no)
        if expected is not None and isinstance(yes, c.Aggregate | c.Invalid | c.DefaultValue):
            yes = self.typing.coerce(yes, expected)
        if expected is not None and isinstance(no, c.Aggregate | c.Invalid | c.DefaultValue):
            no = self.typing.coerce(no, expected)
        if yes.type != no.type:
            if isinstance(yes, c.Aggregate | c.Invalid):
                yes = self.typing.coerce(yes, no.type)
            elif isinstance(no, c.Aggregate | c.Invalid):
                no = self.typing.coerce(no, yes.type)
            else:
                yes, no = self._balance(yes, no)
        if yes.type is t.ANYTHING or no.type is t.ANYTHING:
            return self.bad(node)
        if yes.type != no.type:
            self.context.error(
                "type-mismatch",
                node.span,
                f"the branches of '?' are {yes.type} and {no.type}",
                "cast one of them",
            )
            return self.bad(node)
        if isinstance(condition, c.Const):
            return yes if condition.value else no
        if isinstance(yes.type, t.InfInt):
            self.context.error(
                "type-mismatch", node.span, "the numbers here have no width", "write one as 8w..."
            )
            return self.bad(node)
        return c.Ternary(node.span, yes.type, condition, yes, no)

    # Casts

    def _cast(self, node: s.Cast, _: t.Type | None) -> c.Expr:
        type_ = self.typing.resolve(node.type)
        operand = self.expr(node.operand)
        if type_ is t.ANYTHING or operand.type is t.ANYTHING:
            return c.Cast(node.span, type_, operand)
        return self.cast(node, operand, type_)

    def cast(self, node: s.Expr, operand: c.Expr, type_: t.Type) -> c.Expr:
        """An explicit cast."""
        have = operand.type
        if have == type_:
            return operand
        if isinstance(operand, c.Aggregate | c.Invalid | c.DefaultValue):
            return self.typing.coerce(operand, type_)
        if not self._castable(have, type_):
            cure = ""
            one, other = t.strip(have), t.strip(type_)
            if isinstance(one, t.Bits) and isinstance(other, t.Bits):
                cure = f"cast in two steps: ({type_}) ({t.Bits(one.width, other.signed)}) ..."
            elif isinstance(one, t.Bits) and isinstance(other, t.BoolType):
                cure = "compare it with 0: ... != 0"
            elif isinstance(one, t.BoolType) and isinstance(other, t.Bits):
                cure = "cast to bit<1> first"
            elif isinstance(one, t.SerializableEnum):
                cure = f"cast to what represents it first: ({type_}) ({one.underlying}) ..."
            elif isinstance(other, t.SerializableEnum):
                cure = f"cast to what represents it first: ({type_}) ({other.underlying}) ..."
            self.context.error("bad-cast", node.span, f"{have} cannot be cast to {type_}", cure)
            return c.Cast(node.span, type_, operand)
        if isinstance(operand, c.Const) and not isinstance(operand.value, str):
            return self._cast_const(node, operand, type_)
        return c.Cast(node.span, type_, operand)

    def _cast_const(self, node: s.Expr, operand: c.Const, type_: t.Type) -> c.Expr:
        """8.12.1: a cast of a constant is done here."""
        base = t.underlying(type_)
        if isinstance(base, t.BoolType):
            if operand.value not in (0, 1):
                self.context.error(
                    "bad-cast",
                    node.span,
                    f"{operand.value} cannot be cast to bool",
                    "0 and 1 can; or compare it: ... != 0",
                )
            return c.Const(node.span, type_, bool(operand.value))
        if isinstance(base, t.Bits) and isinstance(operand.type, t.InfInt):
            fitted = self.typing.fit(operand, base)
            assert isinstance(fitted, c.Const)
            return c.Const(node.span, type_, fitted.value)
        return c.Const(node.span, type_, folding.wrap(int(operand.value), base))

    def _castable(self, have: t.Type, want: t.Type) -> bool:
        """The specification's list of legal casts, to and from each kind of type."""
        if have == want:
            return True
        if isinstance(want, t.NewType):
            return have == want.base or (have is t.INT and isinstance(want.base, t.Bits))
        if isinstance(have, t.NewType):
            return have.base == want
        if isinstance(have, t.SerializableEnum):
            inside = want.underlying if isinstance(want, t.SerializableEnum) else want
            return have.underlying == inside
        if isinstance(want, t.SerializableEnum):
            return have in (want.underlying, t.INT)
        if isinstance(have, t.InfInt):
            return isinstance(want, t.Bits | t.BoolType)
        if isinstance(have, t.BoolType):
            return want == t.BIT1
        if not isinstance(have, t.Bits):
            return False
        if isinstance(want, t.Bits):
            return have.signed == want.signed or have.width == want.width
        return isinstance(want, t.InfInt) or (isinstance(want, t.BoolType) and have == t.BIT1)

    def _call(self, node: s.Call, _: t.Type | None) -> c.Expr:
        return self.calls.call(node)

    def _tuple_keyset(self, node: s.TupleKeyset, _: t.Type | None) -> c.Expr:
        self.context.error("syntax", node.span, "a tuple of key sets cannot stand here")
        return self.bad(node)

    # Lvalues

    def lvalue(self, node: s.Expr, what: str = "assigned") -> c.Expr:
        """Type an expression that will be written."""
        self.context.lvalue_depth += 1
        value = self.expr(node)
        self.context.lvalue_depth -= 1
        self.check_writable(value, what)
        return value

    def check_writable(self, value: c.Expr, what: str = "assigned") -> None:
        """Report a target that cannot be written."""
        root = value
        while isinstance(root, c.Field | c.Index | c.Slice | c.StackPart):
            if isinstance(root, c.StackPart) and root.part in ("lastIndex", "size"):
                self.context.error("not-writable", value.span, f"'{root.part}' cannot be {what}")
                return
            root = root.base
        if isinstance(root, c.Cast) and root is not value:
            root = root.operand
        if isinstance(root, c.Ref):
            symbol = root.symbol
            symbol.written = True
            if symbol.direction == "in":
                self.context.error(
                    "not-writable",
                    value.span,
                    f"'{symbol.name}' is an 'in' parameter and cannot be {what}",
                    "declare it 'inout', or copy it to a variable",
                )
            elif symbol.direction == "":
                if not isinstance(symbol.type, t.Extern):
                    self.context.error(
                        "not-writable",
                        value.span,
                        f"parameter '{symbol.name}' has no direction and cannot be {what}",
                        "its value comes from the control plane; copy it to a variable",
                    )
            elif symbol.direction == "ctor":
                self.context.error(
                    "not-writable",
                    value.span,
                    f"constructor parameter '{symbol.name}' cannot be {what}",
                )
        elif root.type is not t.ANYTHING:
            self.context.error(
                "not-writable",
                value.span,
                f"this cannot be {what}",
                "a variable, field, element or slice can",
            )


def _written(node: s.Number) -> str:
    """A number in the base it was written in."""
    return format(node.value, {16: "#x", 8: "#o", 2: "#b"}[node.base])


def _moved(value: c.Expr, span: object) -> c.Expr:
    """A constant's value, as if written at the place of use."""
    if isinstance(value, c.Const):
        return c.Const(span, value.type, value.value, value.written)  # type: ignore[arg-type]
    return value


_RULES: dict[type, Callable[..., Any]] = {
    s.Number: Expressions._number,
    s.Bool: Expressions._bool,
    s.String: Expressions._string,
    s.Name: Expressions._name,
    s.TypeName: Expressions._type_name,
    s.Member: Expressions._member,
    s.Index: Expressions._index,
    s.Slice: Expressions._slice,
    s.PlusSlice: Expressions._plus_slice,
    s.Unary: Expressions._unary,
    s.Binary: Expressions._binary,
    s.Ternary: Expressions._ternary,
    s.Cast: Expressions._cast,
    s.Call: Expressions._call,
    s.ListExpr: Expressions._list,
    s.StructExpr: Expressions._struct,
    s.InvalidHeader: Expressions._invalid,
    s.Default: Expressions._default,
    s.TupleKeyset: Expressions._tuple_keyset,
}
