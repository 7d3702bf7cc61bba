"""Lowering of v1model's extern functions and objects to BMv2's primitives."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from compiler import core as c
from compiler import ir
from compiler import types as t
from compiler.instances import given_name
from compiler.lower.base import Builder
from compiler.lower.expressions import Expressions, conjunction, convert
from compiler.lower.storage import leaves
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
    scalar_type,
)
from compiler.source import NOWHERE, Span

_ALGORITHMS = {
    "crc32",
    "crc32_custom",
    "crc16",
    "crc16_custom",
    "random",
    "identity",
    "csum16",
    "xor16",
}


class Externs:
    """Lowers extern calls; dispatch is by the extern's and the method's name."""

    def __init__(self, builder: Builder, expressions: Expressions) -> None:
        self.builder = builder
        self.expressions = expressions

    guards: list[ir.Value]

    def extern_call(self, expr: c.Call, callee: c.ExternCall) -> Val | None:
        """Carry out an extern function or method."""
        name = callee.method.name
        key = (callee.extern.name, name) if callee.extern is not None else name
        rule = _RULES.get(key)
        if callee.extern is None and self.builder.mode != "parser":
            self.builder.program.calls_externs = True
        if rule is None:
            what = f"'{callee.extern.name}.{name}'" if callee.extern else f"extern '{name}'"
            raise self.builder.fail(
                expr.span, f"{what} is not supported by BMv2", _CURES.get(key, "")
            )
        return rule(self, expr)  # type: ignore[no-any-return]

    # Helpers

    def argument(self, expr: c.Call, index: int) -> ir.Value:
        """A scalar argument an operation can take."""
        arg = expr.args[index]
        assert arg is not None
        return self.expressions.simple(self.expressions.scalar(arg), arg.span)

    def arguments(self, expr: c.Call, *indices: int) -> list[ir.Value]:
        """Several scalar arguments, left to right."""
        exprs = [a for a in (expr.args[i] for i in indices) if a is not None]
        found: list[ir.Value] = []
        for value, arg in zip(self.expressions.values(exprs), exprs, strict=True):
            if not isinstance(value, ir.Value):
                raise self.builder.fail(
                    arg.span, f"a value of type {arg.type} cannot be used here", "use bit<> values"
                )
            found.append(self.expressions.simple(value, arg.span))
        return found

    def destination(self, expr: c.Call, index: int) -> tuple[ir.Value, Val | None]:
        """A field an operation can write, and the place to copy it to afterwards, if any."""
        arg = expr.args[index]
        if arg is None:
            place = self.builder.temporary(_out_type(expr, index))
            assert isinstance(place, ir.Value)
            return place, None
        target = self.expressions.place(arg)
        signed = (
            isinstance(target, ir.FieldRef)
            and isinstance(target.type, t.Bits)
            and (target.type.signed)
        )
        if isinstance(target, ir.FieldRef) and not signed:
            return target, None
        if signed:
            # What a primitive writes is unsigned; the sign comes with the copy.
            copy = self.builder.temporary(t.Bits(t.width_of(arg.type) or 1))
        elif isinstance(target, SlicePlace):
            copy = self.builder.temporary(t.Bits(target.high - target.low + 1))
        else:
            copy = self.builder.temporary(arg.type)
        if not isinstance(copy, ir.Value):
            raise self.builder.fail(
                arg.span, f"a result of type {arg.type} cannot be had here", "use a bit<> variable"
            )
        return copy, target

    def finish(self, written: ir.Value, target: Val | None, span: Span) -> None:
        """Copy a result to where it belongs."""
        if isinstance(target, ir.Value):
            self.expressions.assign(target, convert(written, target.type), span)
        elif target is not None:
            self.expressions.assign(target, written, span)

    def enum(self, expr: c.Call, index: int) -> str:
        """An enum argument known at compile time."""
        arg = expr.args[index]
        if isinstance(arg, c.Ref) and arg.symbol.direction == "ctor":
            bound = self.builder.current.values.get(arg.symbol)
            arg = bound if isinstance(bound, c.Expr) else arg
        if isinstance(arg, c.Const):
            return str(arg.value)
        raise self.builder.fail(
            expr.span, "this argument must be known at compile time", "name a member of the enum"
        )

    def constant_argument(self, expr: c.Call, index: int) -> int:
        """An integer argument known at compile time."""
        arg = expr.args[index]
        assert arg is not None
        value = self.expressions.scalar(arg)
        if not isinstance(value, ir.Lit):
            raise self.builder.fail(
                arg.span, "this argument must be known at compile time", "use a number or a 'const'"
            )
        return value.value

    def object_of(self, expr: c.Call) -> ir.Object:
        """The extern object a method is called on."""
        found = self.builder.known(expr.base)
        if not isinstance(found, ir.Object):
            raise self.builder.fail(expr.span, "the object is not known at compile time")
        found.used = True
        return found

    def flatten(self, value: Val, span: Span) -> list[ir.Value]:
        """The scalars a value is made of, in order."""
        if isinstance(value, ir.Value):
            return [value]
        if isinstance(value, Record | HeaderValue):
            return [leaf for part in value.fields.values() for leaf in self.flatten(part, span)]
        if isinstance(value, HeaderPlace | ElementPlace):
            dummy = c.Any(span, t.ANYTHING)
            return [
                leaf
                for path, type_ in leaves(value.type)
                for leaf in self.flatten(
                    self.expressions.header_field(value, path, type_, dummy), span
                )
            ]
        if isinstance(value, StackPlace | ListValue):
            return [
                leaf for e in self.expressions.elements(value) for leaf in self.flatten(e, span)
            ]
        if isinstance(value, EndPlace | UnionPlace):
            dummy = c.Any(span, t.ANYTHING)
            return [
                leaf
                for f in value.type.fields
                for leaf in self.flatten(self.expressions.field(value, f.name, dummy), span)
            ]
        raise self.builder.fail(span, "this has no fields to list here")

    def inputs(self, expr: c.Expr | None, *, exact: bool = False) -> tuple[ir.Value, ...]:
        """A hash's or checksum's input: fields and literals."""
        assert expr is not None
        found: list[ir.Value] = []
        for leaf in self.flatten(self.expressions.value(expr), expr.span):
            if isinstance(leaf, ir.FieldRef | ir.Lit):
                if isinstance(leaf, ir.Lit) and leaf.type == t.INT:
                    raise self.builder.fail(
                        expr.span, "a number here needs a width", "write it as 8w..."
                    )
                found.append(leaf)
            elif exact:
                raise self.builder.fail(
                    expr.span,
                    "only fields and constants can enter a checksum",
                    "compute the value in ingress or egress, keep it in metadata",
                )
            else:
                found.append(self.expressions.simple(leaf, expr.span))
        return tuple(found)

    def calculation(
        self, algorithm: str, inputs: tuple[ir.Value, ...], span: Span | None, payload: bool = False
    ) -> str:
        """Register a calculation."""
        if algorithm not in _ALGORITHMS:
            where = span or self.builder.span or NOWHERE
            raise self.builder.fail(where, f"there is no algorithm '{algorithm}'")
        name = (
            "calc"
            if not self.builder.program.calculations
            else (f"calc_{len(self.builder.program.calculations) - 1}")
        )
        self.builder.program.calculations.append(
            ir.Calculation(name, algorithm, inputs, payload, span)
        )
        return name

    def standard_metadata(self, name: str) -> ir.FieldRef:
        """A field of the standard metadata."""
        return ir.FieldRef(t.Bits(9), "standard_metadata", name)

    def only_in(self, pipeline: str, expr: c.Call, what: str) -> None:
        """Report a call that means something in one pipeline only."""
        if self.builder.pipeline != pipeline:
            self.builder.error(
                "misplaced",
                expr.span,
                f"{what} can be called in {pipeline} only",
                f"move it to the {pipeline} control",
            )

    # Packets

    def _extract(self, expr: c.Call) -> None:
        """`extract`: into a header, a stack's next, or a temporary where BMv2 cannot."""
        self._in_parser(expr)
        arg = expr.args[0]
        target = (
            self.expressions.place(arg)
            if arg is not None
            else self.builder.temporary(expr.type_args[0])
        )
        name: ir.Name
        copy: Val | None = None
        if isinstance(target, EndPlace) and target.part == "next":
            name = (
                ir.Name("union_stack", target.stack, target.member)
                if target.member
                else ir.Name("stack", target.stack)
            )
        elif isinstance(target, HeaderPlace):
            name = ir.Name("regular", target.name)
        elif isinstance(target, ElementPlace):
            copy = target
            fresh = self.builder.temporary(target.type)
            assert isinstance(fresh, HeaderPlace)
            name = ir.Name("regular", fresh.name)
        else:
            type_ = getattr(target, "type", None)
            raise self.builder.fail(
                expr.span,
                f"extract needs a header, not {type_}",
                "extract the headers inside it one by one",
            )
        if isinstance(target, EndPlace) and t.is_union(target.type):
            raise self.builder.fail(
                expr.span,
                "a header union cannot be extracted as a whole",
                "choose one of its headers",
            )
        header = target.type
        assert isinstance(header, t.Struct)
        if len(expr.args) == 1:
            self.builder.emit("extract", (name,), expr.span)
        else:
            size = expr.args[1]
            assert size is not None
            self.builder.emit("extract_VL", (name, self.expressions.scalar(size)), expr.span)
        if copy is not None:
            self.expressions.assign(copy, HeaderPlace(header, name.name), expr.span)

    def _in_parser(self, expr: c.Call) -> None:
        if self.builder.mode != "parser":
            raise self.builder.fail(expr.span, "packets are read in parsers only", "", "misplaced")

    def _lookahead(self, expr: c.Call) -> Val:
        self._in_parser(expr)
        type_ = expr.type_args[0]
        offset = [0]
        return self._look(type_, offset, expr)

    def _look(self, type_: t.Type, offset: list[int], expr: c.Call) -> Val:
        """`lookahead<T>()`: each field of T is so many bits at its own offset."""
        base = t.strip(type_)
        if isinstance(base, t.Struct):
            fields = {f.name: self._look(f.type, offset, expr) for f in base.fields}
            if base.kind == "header":
                return HeaderValue(base, fields)
            return Record(base, fields)
        if isinstance(base, t.Tuple):
            return Record(
                base, {f"f{i}": self._look(e, offset, expr) for i, e in enumerate(base.elements)}
            )
        if isinstance(base, t.Stack):
            return ListValue(
                base, tuple(self._look(base.element, offset, expr) for _ in range(base.size))
            )
        low = scalar_type(base)
        width = t.width_of(base)
        if low is None or width is None or isinstance(low, t.Varbit):
            raise self.builder.fail(
                expr.span, f"lookahead cannot read a {type_}", "its width must be fixed"
            )
        place = self.builder.temporary(t.Bits(width))
        assert isinstance(place, ir.Value)
        raw: ir.Value = ir.Lookahead(t.Bits(width), offset[0], width)
        offset[0] += width
        self.builder.emit("assign", (place, raw), expr.span)
        return convert(place, low)

    def _advance(self, expr: c.Call) -> None:
        self._in_parser(expr)
        size = expr.args[0]
        assert size is not None
        self.builder.emit("advance", (self.expressions.scalar(size),), expr.span)

    def _length(self, expr: c.Call) -> Val:
        raise self.builder.fail(
            expr.span,
            "BMv2 cannot tell the packet's length in the parser",
            "standard_metadata.packet_length has the length of the whole packet",
        )

    def _emit(self, expr: c.Call) -> None:
        if self.builder.mode != "deparser":
            raise self.builder.fail(
                expr.span, "packets are written in deparsers only", "", "misplaced"
            )
        arg = expr.args[0]
        assert arg is not None
        self._emit_value(self.expressions.value(arg), expr.span)

    def _emit_value(self, value: Val, span: Span) -> None:
        """`emit` of what it is made of: headers, elements and members, in order."""
        if isinstance(value, HeaderPlace):
            self.builder.emit("emit", (ir.Name("header", value.name),), span)
        elif isinstance(value, StackPlace | ListValue):
            for element in self.expressions.elements(value):
                self._emit_value(element, span)
        elif isinstance(value, UnionPlace):
            dummy = c.Any(span, t.ANYTHING)
            for each in value.type.fields:
                self._emit_value(self.expressions.field(value, each.name, dummy), span)
        elif isinstance(value, Record):
            for part in value.fields.values():
                self._emit_value(part, span)
        elif not isinstance(value, InvalidValue):
            raise self.builder.fail(
                span,
                "only headers can be emitted",
                "emit a header, a stack, a union, or a struct of them",
                "bad-emit",
            )

    def _verify(self, expr: c.Call) -> None:
        self._in_parser(expr)
        condition, error = expr.args
        assert condition is not None
        assert error is not None
        self.builder.emit(
            "verify",
            (self.expressions.scalar(condition), self.expressions.scalar(error)),
            expr.span,
        )

    # Objects

    def _count(self, expr: c.Call) -> None:
        name = ir.Name("counter_array", self.object_of(expr).name)
        self.builder.emit("count", (name, self.argument(expr, 0)), expr.span)

    def _direct_count(self, expr: c.Call) -> None:
        self._check_direct(expr, "counter")

    def _check_direct(self, expr: c.Call, kind: str) -> ir.Object:
        found = self.object_of(expr)
        if self.builder.mode != "action":
            self.builder.error(
                "misplaced",
                expr.span,
                f"a direct {kind} is used in actions of its table only",
                f"call it in an action, or use an indexed {kind}",
            )
        return found

    def _execute_meter(self, expr: c.Call) -> None:
        name = ir.Name("meter_array", self.object_of(expr).name)
        index = self.argument(expr, 0)
        written, target = self.destination(expr, 1)
        self.builder.emit("execute_meter", (name, index, written), expr.span)
        self.finish(written, target, expr.span)

    def _direct_read(self, expr: c.Call) -> None:
        found = self._check_direct(expr, "meter")
        written, target = self.destination(expr, 0)
        if found.meter_target is None:
            found.meter_target = written
        elif target is not None or found.meter_target != written:
            known = found.meter_target
            if target is None:
                self.expressions.assign(written, convert(known, written.type), expr.span)
                return
            written = known
        self.finish(written, target, expr.span)

    def _register_read(self, expr: c.Call) -> None:
        name = ir.Name("register_array", self.object_of(expr).name)
        index = self.argument(expr, 1)
        written, target = self.destination(expr, 0)
        self.builder.emit("register_read", (written, name, index), expr.span)
        self.finish(written, target, expr.span)

    def _register_write(self, expr: c.Call) -> None:
        name = ir.Name("register_array", self.object_of(expr).name)
        index, value = self.arguments(expr, 0, 1)
        self.builder.emit("register_write", (name, index, value), expr.span)

    # Functions

    def _mark_to_drop(self, expr: c.Call) -> None:
        """Which port stands for none the switch alone knows. So of a copy of the metadata the
        packet's own is marked, copied from, and has back what it had."""
        assert expr.args[0] is not None
        given = self.expressions.place(expr.args[0])
        assert isinstance(given, Record)
        names = "egress_spec", "mcast_grp"
        places = [given.fields[name] for name in names]
        own = [ir.FieldRef(given.fields[n].type, "standard_metadata", n) for n in names]
        had = [] if places == own else [self.expressions.spill(field, expr.span) for field in own]
        self.builder.emit("mark_to_drop", (ir.Name("header", "standard_metadata"),), expr.span)
        for place, field, before in zip(places, own, had, strict=False):
            self.expressions.assign(place, field, expr.span)
            self.expressions.assign(field, before, expr.span)

    def _random(self, expr: c.Call) -> None:
        low, high = self.arguments(expr, 1, 2)
        written, target = self.destination(expr, 0)
        self.builder.emit("modify_field_rng_uniform", (written, low, high), expr.span)
        self.finish(written, target, expr.span)

    def _hash(self, expr: c.Call) -> None:
        algorithm = self.enum(expr, 1)
        base = self.argument(expr, 2)
        inputs = self.inputs(expr.args[3])
        maximum = self.argument(expr, 4)
        written, target = self.destination(expr, 0)
        name = self.calculation(algorithm, inputs, None)
        self.builder.emit(
            "modify_field_with_hash_based_offset",
            (written, base, ir.Name("calculation", name), maximum),
            expr.span,
        )
        self.finish(written, target, expr.span)

    def _digest(self, expr: c.Call) -> None:
        """`digest`: a list of fields under a number that `generate_digest` names."""
        receiver = self.argument(expr, 0)
        data = expr.args[1]
        assert data is not None
        type_ = t.strip(expr.type_args[0]) if expr.type_args else data.type
        if isinstance(type_, t.Struct):
            name = given_name(type_.annotations, type_.name)
        else:
            name = f"digest_{self.builder.program.unnamed_digests}"
            self.builder.program.unnamed_digests += 1
        values = tuple(
            self._stored(leaf, data.span)
            for leaf in self.flatten(self.expressions.value(data), data.span)
        )
        self.builder.program.learn_lists.append(ir.LearnList(name, values, expr.span))
        self.builder.program.digests.append(ir.Digest(name, type_))
        index = len(self.builder.program.learn_lists)
        self.builder.emit("generate_digest", (receiver, ir.Lit(t.BIT32, index)), expr.span)

    def _stored(self, value: ir.Value, span: Span) -> ir.Value:
        """A value kept in a field until the packet's learning data are collected."""
        if isinstance(value, ir.FieldRef | ir.Lit):
            return value
        place = self.builder.temporary(value.type)
        self.expressions.assign(place, value, span)
        assert isinstance(place, ir.Value)
        return place

    def _field_list(self, index: int, expr: c.Call) -> ir.Lit:
        for known in self.builder.program.field_lists:
            if known.index == index:
                return ir.Lit(t.BIT32, self.builder.program.field_lists.index(known) + 1)
        self.builder.diagnostics.warning(
            "empty-field-list",
            expr.span,
            f"no field of the user metadata is annotated @field_list({index})",
            f"annotate what shall be kept with @field_list({index})",
        )
        return self._empty_list(index)

    def _empty_list(self, index: int = -1) -> ir.Lit:
        name = "empty" if index >= 0 else "fl"
        taken = sum(1 for known in self.builder.program.field_lists if known.name.startswith(name))
        self.builder.program.field_lists.append(
            ir.FieldList(name if not taken else f"{name}_{taken - 1}", index, ())
        )
        return ir.Lit(t.BIT32, len(self.builder.program.field_lists))

    def _clone(self, expr: c.Call) -> None:
        kind = self.enum(expr, 0)
        pipeline = "ingress" if kind == "I2E" else "egress"
        self.only_in(pipeline, expr, f"clone({kind}, ...)")
        session = self.argument(expr, 1)
        if len(expr.args) == 3:
            fields = self._field_list(self.constant_argument(expr, 2), expr)
        else:
            fields = self._empty_list()
        self.builder.emit(f"clone_{pipeline}_pkt_to_egress", (session, fields), expr.span)

    def _resubmit(self, expr: c.Call) -> None:
        self.only_in("ingress", expr, "resubmit")
        fields = self._field_list(self.constant_argument(expr, 0), expr)
        self.builder.emit("resubmit", (fields,), expr.span)

    def _recirculate(self, expr: c.Call) -> None:
        self.only_in("egress", expr, "recirculate")
        fields = self._field_list(self.constant_argument(expr, 0), expr)
        self.builder.emit("recirculate", (fields,), expr.span)

    def _truncate(self, expr: c.Call) -> None:
        self.builder.emit("truncate", (self.argument(expr, 0),), expr.span)

    def _assert(self, expr: c.Call) -> None:
        assert isinstance(expr.callee, c.ExternCall)
        condition = expr.args[0]
        assert condition is not None
        value = convert(self.expressions.scalar(condition), t.BIT1)
        self.builder.emit(expr.callee.method.name, (value,), expr.span)

    def _log(self, expr: c.Call) -> None:
        """`log_msg`: a text with `{}` for each value."""
        message = expr.args[0]
        if not isinstance(message, c.Const):
            raise self.builder.fail(expr.span, "the message must be a literal")
        values: list[ir.Value] = []
        if len(expr.args) > 1 and expr.args[1] is not None:
            values = self.flatten(self.expressions.value(expr.args[1]), expr.span)
            if isinstance(message.value, str) and message.value.count("{}") != len(values):
                self.builder.diagnostics.warning(
                    "log-arguments",
                    expr.span,
                    f"the message has {message.value.count('{}')} "
                    f"places for {len(values)} value(s)",
                    "write one {} for each value",
                )
        self.builder.emit(
            "log_msg", (ir.Text(str(message.value)), ir.Values(tuple(values))), expr.span
        )

    # Checksums

    def _checksum(self, expr: c.Call) -> None:
        """`verify_checksum` and `update_checksum`, under the conditions around them."""
        assert isinstance(expr.callee, c.ExternCall)
        name = expr.callee.method.name
        verify = name.startswith("verify")
        wanted = "verify" if verify else "update"
        if self.builder.mode != "checksum" or self.builder.pipeline != wanted:
            raise self.builder.fail(
                expr.span,
                f"'{name}' can be called in the "
                f"{'VerifyChecksum' if verify else 'ComputeChecksum'} control only",
                "",
                "misplaced",
            )
        condition, data, target, _ = expr.args
        assert condition is not None
        assert target is not None
        inputs = self.inputs(data, exact=True)
        place = self.expressions.place(target)
        if not isinstance(place, ir.FieldRef):
            raise self.builder.fail(expr.span, "the checksum must be a field", "", "bad-checksum")
        calculation = self.calculation(
            self.enum(expr, 3), inputs, expr.span, name.endswith("_with_payload")
        )
        guard = conjunction([*self.guards, self.expressions.scalar(condition)])
        self.builder.program.checksums.append(
            ir.Checksum(place, calculation, guard, verify, expr.span)
        )

    def _old_checksum(self, expr: c.Call) -> Val:
        raise self.builder.fail(
            expr.span,
            "Checksum16 is not supported by BMv2",
            "call verify_checksum or update_checksum in their controls",
        )

    def _old_list(self, expr: c.Call) -> None:
        assert isinstance(expr.callee, c.ExternCall)
        name = {
            "clone3": "clone_preserving_field_list",
            "resubmit": "resubmit_preserving_field_list",
            "recirculate": "recirculate_preserving_field_list",
        }[expr.callee.method.name]
        raise self.builder.fail(
            expr.span,
            f"'{expr.callee.method.name}' with a list of fields is no longer supported",
            f"annotate the metadata fields with @field_list(n) and call {name}(..., n)",
        )


def _out_type(expr: c.Call, index: int) -> t.Type:
    assert isinstance(expr.callee, c.ExternCall)
    type_ = expr.callee.method.params[index].type
    binding = dict(zip(expr.callee.method.type_params, expr.type_args, strict=False))
    found = t.substitute(type_, binding)
    return t.BIT32 if found is t.ANYTHING else found


_CURES: dict[object, str] = {}

_RULES: dict[object, Callable[..., Any]] = {
    ("packet_in", "extract"): Externs._extract,
    ("packet_in", "lookahead"): Externs._lookahead,
    ("packet_in", "advance"): Externs._advance,
    ("packet_in", "length"): Externs._length,
    ("packet_out", "emit"): Externs._emit,
    "verify": Externs._verify,
    ("counter", "count"): Externs._count,
    ("direct_counter", "count"): Externs._direct_count,
    ("meter", "execute_meter"): Externs._execute_meter,
    ("direct_meter", "read"): Externs._direct_read,
    ("register", "read"): Externs._register_read,
    ("register", "write"): Externs._register_write,
    ("Checksum16", "get"): Externs._old_checksum,
    "mark_to_drop": Externs._mark_to_drop,
    "random": Externs._random,
    "hash": Externs._hash,
    "digest": Externs._digest,
    "clone": Externs._clone,
    "clone_preserving_field_list": Externs._clone,
    "resubmit_preserving_field_list": Externs._resubmit,
    "recirculate_preserving_field_list": Externs._recirculate,
    "clone3": Externs._old_list,
    "resubmit": Externs._old_list,
    "recirculate": Externs._old_list,
    "truncate": Externs._truncate,
    "assert": Externs._assert,
    "assume": Externs._assert,
    "log_msg": Externs._log,
    "verify_checksum": Externs._checksum,
    "update_checksum": Externs._checksum,
    "verify_checksum_with_payload": Externs._checksum,
    "update_checksum_with_payload": Externs._checksum,
}
