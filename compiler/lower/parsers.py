"""Lowering of parsers: states become blocks, sub-parsers are expanded in place."""

from __future__ import annotations

from collections.abc import Callable

from compiler import core as c
from compiler import ir
from compiler import types as t
from compiler.instances import BlockInstance, given_name, join
from compiler.lower.base import Builder, Frame
from compiler.lower.expressions import Expressions
from compiler.lower.externs import Externs
from compiler.lower.statements import Statements
from compiler.lower.tables import Tables
from compiler.source import Span
from params.data import Data

MAX_MASKS = 512


class Parsers(Data, eq=False, frozen=False):
    """Lowers parsers and controls as a whole."""

    builder: Builder
    expressions: Expressions
    externs: Externs
    statements: Statements
    tables: Tables

    def run_block(self, instance: BlockInstance, frame: Frame) -> None:
        """Expand a control or parser in place; the current block goes on after it."""
        decl = instance.decl
        if isinstance(decl, c.Control):
            self.statements.locals(instance)
            assert decl.body is not None
            self.statements.statement(decl.body)
            self.builder.jump(frame.after, frame.after)
            return
        self.statements.locals(instance)
        self.run_states(decl, instance, frame.after, decl.name)
        self.builder.block = frame.after

    def run_states(
        self, decl: c.Parser, instance: BlockInstance, accept: ir.Block | None, prefix: str
    ) -> None:
        """Lower all states reachable from start; the current block flows into start."""
        self._declare_value_sets(decl, instance)
        blocks: dict[str, ir.Block] = {}
        names = {name: name if not prefix else f"{prefix}_{name}" for name in decl.states}

        def target(name: str) -> ir.Block | None:
            if name == "accept":
                return accept
            if name == "reject":
                return None
            if name not in blocks:
                state = decl.states[name]
                given = given_name(state.decl.annotations, names[name])
                blocks[name] = ir.Block(
                    span=state.decl.span, name=given if not prefix else names[name]
                )
                work.append(name)
            return blocks[name]

        work: list[str] = []
        if "start" not in decl.states:
            return
        self.builder.jump(target("start"), ir.Block())
        kept = dict(self.builder.env)
        while work:
            name = work.pop(0)
            state = decl.states[name]
            self.builder.block = blocks[name]
            self.builder.in_loop += 1
            self.statements.statements(state.body)
            self._transition(state, target)
            self.builder.in_loop -= 1
        self.builder.env.update({k: v for k, v in kept.items() if k not in self.builder.env})

    def _declare_value_sets(self, decl: c.Parser, instance: BlockInstance) -> None:
        for local in decl.locals:
            if isinstance(local, c.ValueSet):
                name = join(instance.path, given_name(local.decl.annotations, local.name))
                made = ir.ValueSet(
                    name, t.width_of(local.type) or 0, local.size, local, instance.path
                )
                instance.value_sets[local] = made
                self.builder.program.value_sets.append(made)

    def _transition(self, state: c.State, target: Callable[[str], ir.Block | None]) -> None:
        """One way on, or a select with masks; where no case matches, the error that says so."""
        if state.next is not None:
            self.builder.jump(target(state.next), ir.Block())
            return
        keys: list[ir.Value] = []
        for expr, value in zip(state.keys, self.expressions.values(list(state.keys)), strict=True):
            leaves = self.externs.flatten(value, expr.span)
            keys += [self._select_key(leaf, expr.span) for leaf in leaves]
        cases: list[ir.SelectCase] = []
        for case in state.cases:
            cases += self._cases(case, keys, target(case.state))
        if not any(case.value_set is None and not any(case.values) for case in cases):
            cases.append(ir.SelectCase((None,) * len(keys), None, self.no_match(state.decl.span)))
        self.builder.end(ir.Select(tuple(keys), cases), ir.Block())

    def no_match(self, span: Span) -> ir.Block | None:
        """Where a select without a matching case ends: BMv2 must be told the error."""
        if "NoMatch" not in self.builder.source.errors:
            return None
        if self._no_match is None:
            code = ir.Lit(t.BIT32, self.builder.source.errors.index("NoMatch"))
            failing = ir.Operation("verify", (ir.boolean(False), code), span)
            self._no_match = ir.Block([failing], ir.Jump(None), span, "no_match")
        return self._no_match

    _no_match: ir.Block | None = None

    def _select_key(self, value: ir.Value, span: Span) -> ir.Value:
        if isinstance(value, ir.FieldRef | ir.LastField):
            return value
        place = self.builder.temporary(value.type, "select")
        self.expressions.assign(place, value, span)
        assert isinstance(place, ir.Value)
        return place

    def _cases(
        self, case: c.SelectCase, keys: list[ir.Value], target: ir.Block | None
    ) -> list[ir.SelectCase]:
        """A case for BMv2: values with masks; a range takes several, so a product of them."""
        if len(case.keys) == 1 and isinstance(case.keys[0], c.ValueSetRef):
            made = self.builder.current.value_sets.get(case.keys[0].value_set)
            if made is None:
                raise self.builder.fail(case.span, "this value set is not known here")
            return [ir.SelectCase((), made.name, target)]
        alternatives: list[list[tuple[int, int] | None]] = [[]]
        flat = [k for keyset in case.keys for k in self._flat_keyset(keyset)]
        for keyset, key in zip(flat, keys, strict=False):
            width = t.width_of(key.type) or 1
            options = self._masks(keyset, width)
            alternatives = [[*a, o] for a in alternatives for o in options]
            if len(alternatives) > MAX_MASKS:
                raise self.builder.fail(
                    case.span,
                    f"the ranges here need more than {MAX_MASKS} masks",
                    "use smaller ranges, or ranges that are powers of two",
                )
        return [ir.SelectCase(tuple(a), None, target) for a in alternatives]

    def _flat_keyset(self, keyset: c.Expr) -> list[c.Expr]:
        if isinstance(keyset, c.Aggregate):
            return [leaf for _, p in keyset.parts for leaf in self._flat_keyset(p)]
        if isinstance(keyset, c.Any):
            base = t.strip(keyset.type)
            if isinstance(base, t.Struct | t.Tuple):
                parts = (
                    [f.type for f in base.fields]
                    if isinstance(base, t.Struct)
                    else list(base.elements)
                )
                return [leaf for p in parts for leaf in self._flat_keyset(c.Any(keyset.span, p))]
        return [keyset]

    def _masks(self, keyset: c.Expr, width: int) -> list[tuple[int, int] | None]:
        """The values with masks that one key set covers."""
        full = (1 << width) - 1
        if isinstance(keyset, c.Any):
            return [None]
        if isinstance(keyset, c.Mask):
            mask = self.tables.literal(keyset.mask) & full
            return [(self.tables.literal(keyset.value) & mask, mask)]
        if isinstance(keyset, c.Range):
            signed = isinstance(keyset.low.type, t.Bits) and keyset.low.type.signed
            low, high = self.tables.literal(keyset.low), self.tables.literal(keyset.high)
            if low > high:
                self.builder.diagnostics.warning(
                    "empty-range",
                    keyset.span,
                    f"the range {low}..{high} is empty",
                    "write the smaller number first",
                )
                return []
            if signed and low < 0 <= high:
                return [*range_masks(low & full, full, width), *range_masks(0, high, width)]
            return list(range_masks(low & full, high & full, width))
        if isinstance(keyset, c.ValueSetRef):
            raise self.builder.fail(keyset.span, "a value set must be a case's only value")
        return [(self.tables.literal(keyset) & full, full)]


def range_masks(low: int, high: int, width: int) -> list[tuple[int, int]]:
    """The fewest masks that together cover low..high: aligned blocks, greedily."""
    found: list[tuple[int, int]] = []
    full = (1 << width) - 1
    while low <= high:
        size = low & -low if low else 1 << width
        while size > high - low + 1:
            size >>= 1
        found.append((low, full ^ (size - 1)))
        low += size
        if len(found) > MAX_MASKS:
            break
    return found
