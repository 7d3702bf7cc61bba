"""Lowering of tables and of the actions they run."""

from __future__ import annotations

from contextlib import suppress

from compiler import core as c
from compiler import ir
from compiler import types as t
from compiler.instances import given_name, join, reduce
from compiler.lower.base import Builder, Frame, LoweringError
from compiler.lower.expressions import Expressions, convert
from compiler.lower.statements import Statements
from compiler.lower.values import scalar_type
from compiler.source import Span
from params.data import Data

_WIDER = {"exact": 0, "lpm": 1, "ternary": 2, "optional": 2, "range": 3}


class Tables(Data, eq=False, frozen=False):
    """Lowers tables."""

    builder: Builder
    expressions: Expressions
    statements: Statements

    def apply(self, table: c.Table, span: Span, after: ir.Block | None) -> ir.Apply:
        """The terminator that applies a table, its keys computed before."""
        known = self.builder.current.tables.get(table)
        if known is not None:
            return self._apply_again(known, table, span, after)
        if self.builder.mode in ("checksum", "deparser"):
            raise self.builder.fail(
                span, f"a table cannot be applied in a {self.builder.mode} control", "", "misplaced"
            )
        made = ir.Table(
            join(self.builder.current.path, given_name(table.decl.annotations, table.name)),
            table.decl.span,
            core=table,
            prefix=self.builder.current.path,
        )
        self.builder.current.tables[table] = made
        self.builder.program.tables.append(made)
        self._keys(made, table)
        self._properties(made, table)
        self._actions(made, table)
        self._default_action(made, table)
        self._entries(made, table)
        return ir.Apply(made, after, span=span)

    def _apply_again(
        self, known: ir.Table, table: c.Table, span: Span, after: ir.Block | None
    ) -> ir.Apply:
        """Another place where a table is applied: its key must come from the same fields."""
        values = self.expressions.values([k.expr for k in table.key if k.match_kind != "selector"])
        for key, value in zip(known.keys, values, strict=True):
            if value == key.value:
                continue
            if not key.computed or not isinstance(value, ir.Value):
                raise self.builder.fail(
                    span,
                    f"table '{known.name}' is applied to different arguments",
                    "BMv2 gives a table one key: apply it once, or instantiate the control twice",
                    "applied-twice",
                )
            self.expressions.assign(key.value, value, span)
        return ir.Apply(known, after, span=span)

    # Keys

    def _keys(self, made: ir.Table, table: c.Table) -> None:
        """Key fields in order; the selector's go to the action selector."""
        keys: list[ir.Key] = []
        selector: list[ir.Value] = []
        lpm = 0
        exprs = [k.expr for k in table.key]
        for element, value in zip(table.key, self.expressions.values(exprs), strict=True):
            if not isinstance(value, ir.Value):
                raise self.builder.fail(element.span, "this cannot be a key field")
            if element.match_kind not in _WIDER and element.match_kind != "selector":
                raise self.builder.fail(
                    element.span,
                    f"match kind '{element.match_kind}' is not supported by BMv2",
                    "use exact, lpm, ternary, range or optional",
                )
            field = self._key_field(value, element.expr.span)
            if element.match_kind == "selector":
                selector.append(field)
                continue
            lpm += element.match_kind == "lpm"
            name = given_name(element.annotations, key_name(element.expr) or "")
            if not name:
                self.builder.error(
                    "key-name",
                    element.span,
                    "this key needs a name for the control plane",
                    'add @name("...") after the match kind',
                )
            width = t.width_of(scalar_type(element.expr.type) or t.BIT32) or 1
            keys.append(ir.Key(field, element.match_kind, name, width, element, field is not value))
        if lpm > 1:
            self.builder.error(
                "bad-key",
                table.decl.span,
                f"table '{made.name}' has {lpm} lpm keys",
                "BMv2 allows one; declare the others ternary",
            )
        made.keys = tuple(keys)
        made.selector = tuple(selector)

    def _key_field(self, value: ir.Value, span: Span) -> ir.Value:
        """A key is a field; anything else is computed into one first."""
        if isinstance(value, ir.FieldRef):
            return value
        place = self.builder.temporary(value.type, "key")
        self.expressions.assign(place, value, span)
        assert isinstance(place, ir.Value)
        return place

    # Properties

    def _properties(self, made: ir.Table, table: c.Table) -> None:
        """Size, time-out, and the objects attached to a table."""
        size = table.properties.get("size")
        if size is not None:
            value = reduce(size.value, self.builder.current.values)
            if isinstance(value, c.Const) and not isinstance(value.value, str):
                made.size = int(value.value)
            else:
                self.builder.error(
                    "not-constant",
                    size.span,
                    "a table's size must be known at compile time",
                    "use a number or a 'const'",
                )
        made.declared_size = made.size = made.size or 1024
        if table.entries is not None and table.const_entries:
            made.size = len(table.entries) or 1024
        timeout = table.properties.get("support_timeout")
        if timeout is not None and isinstance(timeout.value, c.Const):
            made.timeout = bool(timeout.value.value)
        made.implementation = self._object(table, "implementation")
        made.counter = self._object(table, "counters")
        made.meter = self._object(table, "meters")
        if made.implementation is not None:
            if made.implementation.kind == "action_selector":
                made.implementation.selector = made.selector
                if not made.selector:
                    self.builder.error(
                        "bad-key",
                        table.decl.span,
                        "a table with an action selector needs "
                        "a key field of match kind 'selector'",
                        "add 'field : selector;'",
                    )
        elif made.selector:
            self.builder.diagnostics.warning(
                "bad-key",
                table.decl.span,
                "'selector' keys mean nothing without an action selector",
                "add: implementation = action_selector(...)",
            )
        for extern in (made.counter, made.meter):
            if extern is None:
                continue
            if extern.table is not None and extern.table is not made:
                self.builder.error(
                    "bad-property",
                    table.decl.span,
                    f"'{extern.name}' is already attached to table '{extern.table.name}'",
                    "declare one for each table",
                )
            extern.table = made

    def _object(self, table: c.Table, name: str) -> ir.Object | None:
        """The extern object that a property names, or makes in place."""
        found = table.properties.get(name)
        if found is None:
            return None
        value = found.value
        target: object = None
        if isinstance(value, c.InstanceRef):
            target = self.builder.instances.find(value.instance, self.builder.current)
        elif isinstance(value, c.Ref):
            target = self.builder.current.values.get(value.symbol)
        elif isinstance(value, c.New):
            # An object made in place has no block to prefix its name with.
            path = given_name(found.annotations, name).lstrip(".")
            path = self.builder.storage.unique(path, self.builder.object_names)
            target = self.builder.instances.object(value.instance, path, self.builder.current)
            target.annotations = found.annotations
            target.in_place = True
        if not isinstance(target, ir.Object):
            self.builder.error("bad-property", found.span, f"'{name}' is not known at compile time")
            return None
        target.used = True
        return target

    # Actions

    def _actions(self, made: ir.Table, table: c.Table) -> None:
        made.refs = table.actions
        for ref in table.actions:
            made.actions.append(self.table_action(ref))

    def action_header(self, action: c.Action) -> ir.Action:
        """An action's name and place, its body still to come."""
        name = given_name(action.decl.annotations, action.name)
        full = name.lstrip(".") if action.top_level else join(self.builder.current.path, name)
        return ir.Action(
            full,
            (),
            ir.Block(),
            action.decl.span,
            origin=action,
            annotations=action.decl.annotations,
        )

    def table_action(self, ref: c.ActionRef) -> ir.Action:
        """An action as one table runs it, with the arguments bound in its action list."""
        action = ref.action
        params: list[tuple[str, t.Type]] = []
        made = self.action_header(action)
        frame = Frame(ir.Block())
        directed = tuple(v for v in action.params if v.direction)
        with self.builder.aside("action") as made.entry, suppress(LoweringError):
            self.statements.bind(
                directed,
                ref.args,
                frame,
                ref.span,
                isolated=False,
                mentions=self.statements.mentioned(action),
            )
            for variable in action.params:
                if not variable.direction:
                    low = scalar_type(variable.type) or t.BIT32
                    value: ir.Value = ir.ParamRef(low, len(params))
                    if isinstance(low, t.BoolType) or (isinstance(low, t.Bits) and low.signed):
                        raw = t.Bits(t.width_of(low) or 1)
                        value = convert(ir.ParamRef(raw, len(params)), low)
                    self.builder.env[variable] = value
                    params.append((given_name(variable.annotations, variable.name), low))
            self.builder.frames.append(frame)
            self.statements.statement(action.body)
            self.builder.jump(frame.after, frame.after)
            for copy in frame.copy_out:
                copy()
            self.builder.jump(None, ir.Block())
        made.params = tuple(params)
        self.builder.program.actions.append(made)
        return made

    def _default_action(self, made: ir.Table, table: c.Table) -> None:
        if table.default is None:
            return
        made.default = self._action_data(made, table.default)
        made.default_const = table.default_const

    def _action_data(self, made: ir.Table, call: c.ActionCall) -> tuple[int, tuple[int, ...]]:
        index = next(i for i, ref in enumerate(made.refs) if ref is call.ref)
        return index, tuple(self.literal(a) for a in call.args)

    def literal(self, expr: c.Expr) -> int:
        """A number known at compile time."""
        value = self.expressions.value(expr)
        if isinstance(value, ir.Lit):
            return value.value
        self.builder.error(
            "not-constant",
            expr.span,
            "this must be known at compile time",
            "use a number or a 'const'",
        )
        return 0

    # Entries

    def _entries(self, made: ir.Table, table: c.Table) -> None:
        if table.entries is None:
            return
        entries: list[ir.Entry] = []
        elements = [k for k in table.key if k.match_kind != "selector"]
        priorities = self._priorities(table)
        for entry, priority in zip(table.entries, priorities, strict=True):
            keys = tuple(
                self._entry_key(value, element)
                for value, element in zip(entry.keys, elements, strict=False)
            )
            index, data = self._action_data(made, entry.action)
            entries.append(ir.Entry(keys, index, data, priority, entry.span))
        made.entries = tuple(entries)

    def _priorities(self, table: c.Table) -> list[int | None]:
        """BMv2 prefers the smaller number; so do entries without `priority =`, by position."""
        assert table.entries is not None
        annotated = [any(a.name == "priority" for a in e.annotations) for e in table.entries]
        given = [
            None if old else e.priority for e, old in zip(table.entries, annotated, strict=True)
        ]
        if all(g is None for g in given):
            return [e.priority for e in table.entries]
        self._check_priorities(table, given)
        largest = bool(self._setting(table, "largest_priority_wins", 1))
        delta = self._setting(table, "priority_delta", 1)
        values: list[int] = []
        current = (len(table.entries) - 1) * delta + 1 if largest else 1
        for index, priority in enumerate(given):
            if priority is not None:
                current = priority
            elif index:
                current += -delta if largest else delta
            values.append(current)
        if any(v < 0 for v in values):
            self.builder.error(
                "bad-entry",
                table.decl.span,
                f"the priorities of table '{table.name}' run below zero",
                "start with a larger priority, or set priority_delta smaller",
            )
        if not largest:
            return list(values)
        ranks = {value: rank for rank, value in enumerate(sorted(set(values), reverse=True), 1)}
        return [ranks[value] for value in values]

    def _setting(self, table: c.Table, name: str, default: int) -> int:
        found = table.properties.get(name)
        if found is not None and isinstance(found.value, c.Const):
            return int(found.value.value)
        return default

    def _check_priorities(self, table: c.Table, given: list[int | None]) -> None:
        """Entries have priorities only where two could match, and the first one has it."""
        assert table.entries is not None
        if not any(k.match_kind in ("ternary", "range", "optional") for k in table.key):
            self.builder.error(
                "bad-entry",
                table.decl.span,
                f"the key of table '{table.name}' leaves no choice between entries, so they have "
                "no priorities",
                "remove 'priority = ...', or use a ternary, range or optional key",
            )
        elif table.const_entries is False and given[0] is None:
            self.builder.error(
                "bad-entry",
                table.entries[0].span,
                "the first entry must have a priority when a later one has",
                "write priority = ...: before it",
            )

    def _entry_key(self, value: c.Expr, element: c.KeyElement) -> tuple[int, ...]:
        """(value) for exact, (value, length) for lpm, (value, mask), or (low, high)."""
        width = t.width_of(scalar_type(element.expr.type) or t.BIT32) or 1
        mask = (1 << width) - 1
        kind = element.match_kind
        if isinstance(value, c.Any):
            low, high = 0, 0
            if kind == "range":
                return (0, mask)
        elif isinstance(value, c.Mask):
            low, high = self.literal(value.value) & mask, self.literal(value.mask) & mask
        elif isinstance(value, c.Range):
            low, high = self.literal(value.low) & mask, self.literal(value.high) & mask
            if low > high:
                self.builder.error(
                    "bad-entry",
                    value.span,
                    f"the range {low}..{high} is empty",
                    "write the smaller number first",
                )
            return (low, high)
        else:
            low, high = self.literal(value) & mask, mask
            if kind == "range":
                return (low, low)
        if kind == "exact":
            return (low,)
        if kind == "lpm":
            ones = high.bit_count()
            if high != mask ^ (mask >> ones):
                self.builder.error(
                    "bad-entry",
                    value.span,
                    "this mask is not a prefix",
                    "lpm keys need a mask of ones followed by zeros",
                )
            return (low, ones)
        return (low, high)


def key_name(expr: c.Expr) -> str | None:
    """What the control plane calls a key field that has no @name; None if it has none."""
    if isinstance(expr, c.Ref):
        return given_name(expr.symbol.annotations, expr.symbol.name)
    if isinstance(expr, c.Const):
        return expr.written or (str(int(expr.value)) if not isinstance(expr.value, str) else None)
    if isinstance(expr, c.Cast):
        return None
    if isinstance(expr, c.Call) and isinstance(expr.callee, c.Builtin) and expr.base is not None:
        return _suffixed(expr.base, ".$valid$")
    if isinstance(expr, c.Field):
        type_ = t.strip(expr.base.type)
        name = expr.name
        if isinstance(type_, t.Struct) and name in type_.by_name:
            name = given_name(type_.by_name[name].annotations, name)
        return name[1:] if name.startswith(".") else _suffixed(expr.base, f".{name}")
    if isinstance(expr, c.StackPart):
        return _suffixed(expr.base, f".{expr.part}")
    if isinstance(expr, c.Index):
        return _suffixed(expr.base, f"[{key_name(expr.index)}]")
    if isinstance(expr, c.Slice):
        return _suffixed(expr.base, f"[{expr.high}:{expr.low}]")
    if isinstance(expr, c.Binary) and expr.op == "&":
        right = key_name(expr.right)
        return None if right is None else _suffixed(expr.left, f" & {right}")
    return None


def _suffixed(base: c.Expr, suffix: str) -> str | None:
    name = key_name(base)
    return None if name is None else name + suffix
