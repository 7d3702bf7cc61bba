"""Instances: the tree of parsers, controls and extern objects that `main` stands for.

A control declared once may be instantiated many times; each instance has its own tables,
actions and objects, told apart by the path of instance names that leads to it.
"""

from __future__ import annotations

from dataclasses import field

from compiler import core as c
from compiler import folding, ir
from compiler import syntax as s
from compiler import types as t
from compiler.diagnostics import Diagnostics
from compiler.source import Span
from params.data import Data

MAX_INSTANCES = 10_000


def annotation(annotations: s.Annotations, name: str) -> s.Annotation | None:
    """The annotation of this name, if there."""
    for each in annotations:
        if each.name == name:
            return each
    return None


def given_name(annotations: s.Annotations, default: str) -> str:
    """The name `@name` gives, else the default."""
    found = annotation(annotations, "name")
    if found is not None and found.args and isinstance(found.args[0], s.String):
        return found.args[0].value
    return default


def join(prefix: str, name: str) -> str:
    """A control-plane name: a leading dot in `name` makes it absolute."""
    if name.startswith("."):
        return name[1:]
    return f"{prefix}.{name}" if prefix else name


class BlockInstance(Data, frozen=False, eq=False):
    """A parser or control with its constructor's arguments."""

    path: str
    decl: c.Parser | c.Control
    values: dict[c.Variable, Bound] = field(default_factory=dict)
    children: dict[c.Instance, BlockInstance | ir.Object] = field(default_factory=dict)
    tables: dict[c.Table, ir.Table] = field(default_factory=dict)
    value_sets: dict[c.ValueSet, ir.ValueSet] = field(default_factory=dict)
    called: dict[c.Action, ir.Action] = field(default_factory=dict)


Bound = c.Expr | BlockInstance | ir.Object


class Instances:
    """Creates instances."""

    def __init__(self, program: ir.Program, diagnostics: Diagnostics) -> None:
        self.program = program
        self.diagnostics = diagnostics
        self.globals: dict[c.Instance, BlockInstance | ir.Object] = {}
        self.stages: list[BlockInstance] = []
        self._made = 0

    def _count(self, span: Span) -> None:
        """A block that instantiates another twice doubles what is within."""
        self._made += 1
        if self._made > MAX_INSTANCES:
            self.diagnostics.error(
                "too-large",
                span,
                f"more than {MAX_INSTANCES} instances are made up to here",
                "let parsers and controls instantiate each other less often",
            )
            self.diagnostics.check()

    def block(self, instance: c.Instance, path: str, within: BlockInstance | None) -> BlockInstance:
        """An instance of a parser or control, with the instances inside it."""
        assert instance.block is not None
        self._count(instance.span)
        made = BlockInstance(path, instance.block)
        for variable, arg in zip(instance.block.constructor_params, instance.args, strict=False):
            if arg is not None:
                made.values[variable] = self.value(arg, within, path)
        for local in instance.block.locals:
            if isinstance(local, c.Instance):
                made.children[local] = self.create(local, made)
        return made

    def create(
        self, instance: c.Instance, within: BlockInstance | None
    ) -> BlockInstance | ir.Object:
        """Any instance declared inside a block, or at the top level."""
        name = given_name(instance.annotations, instance.name)
        path = join(within.path if within else "", name)
        if instance.block is not None:
            return self.block(instance, path, within)
        return self.object(instance, path, within)

    def object(self, instance: c.Instance, path: str, within: BlockInstance | None) -> ir.Object:
        """An extern object."""
        assert isinstance(instance.type, t.Extern)
        self._count(instance.span)
        args: dict[str, int | str] = {}
        for param, arg in zip(instance.params, instance.args, strict=False):
            if arg is None:
                continue
            value = self.value(arg, within, path)
            if isinstance(value, c.Const):
                args[param.name] = value.value if isinstance(value.value, str) else int(value.value)
        made = ir.Object(
            path, instance.type.name, instance.type, args, instance.decl_span, instance.annotations
        )
        self.program.objects.append(made)
        return made

    def find(self, instance: c.Instance, within: BlockInstance) -> BlockInstance | ir.Object:
        """The object an instance declaration stands for in a block."""
        found = within.children.get(instance)
        if found is None:
            found = self.globals.get(instance)
        if found is None:
            # Declared at the top level, or among the statements of an apply block.
            if any(instance is known for known in self.top_level):
                found = self.globals[instance] = self.create(instance, None)
            else:
                found = within.children[instance] = self.create(instance, within)
        return found

    top_level: list[c.Instance] = []

    def value(self, expr: c.Expr, within: BlockInstance | None, path: str) -> Bound:
        """A constructor argument."""
        if isinstance(expr, c.New):
            instance = expr.instance
            if instance.block is not None:
                return self.block(instance, join(path, instance.name), within)
            return self.object(instance, join(path, instance.name), within)
        if isinstance(expr, c.InstanceRef):
            if within is not None:
                return self.find(expr.instance, within)
            found = self.globals.get(expr.instance)
            if found is None:
                found = self.globals[expr.instance] = self.create(expr.instance, None)
            return found
        if isinstance(expr, c.Ref) and within is not None and expr.symbol in within.values:
            return within.values[expr.symbol]
        return reduce(expr, within.values if within else {})


def reduce(expr: c.Expr, values: dict[c.Variable, Bound]) -> c.Expr:
    """Fold an expression in which constructor parameters are known."""
    if isinstance(expr, c.Ref):
        bound = values.get(expr.symbol)
        return bound if isinstance(bound, c.Expr) else expr
    if isinstance(expr, c.Cast):
        inner = reduce(expr.operand, values)
        if isinstance(inner, c.Const) and not isinstance(inner.value, str):
            base = t.underlying(expr.type)
            return c.Const(expr.span, expr.type, folding.wrap(int(inner.value), base))
        return c.Cast(expr.span, expr.type, inner)
    if isinstance(expr, c.Unary):
        inner = reduce(expr.operand, values)
        if isinstance(inner, c.Const):
            return c.Const(
                expr.span, expr.type, folding.unary(expr.op, inner.value, t.underlying(expr.type))
            )
    if isinstance(expr, c.Binary):
        left, right = reduce(expr.left, values), reduce(expr.right, values)
        if isinstance(left, c.Const) and isinstance(right, c.Const):
            width = right.type.width if isinstance(right.type, t.Bits) else 0
            try:
                value = folding.binary(
                    expr.op, left.value, right.value, t.underlying(left.type), width
                )
            except folding.FoldError:
                return expr
            return c.Const(expr.span, expr.type, value)
        return c.Binary(expr.span, expr.type, expr.op, left, right)
    return expr
