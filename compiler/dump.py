"""`--dump STAGE`: the program after any stage, for reading."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import fields

from compiler import core as c
from compiler import ir
from compiler import types as t
from compiler.driver import Compiled
from compiler.lower.graph import reachable, successors
from compiler.source import Span
from params.data import Data


def dump(compiled: Compiled, stage: str) -> str:
    """A stage's result as text."""
    if stage == "preprocess":
        return compiled.text.text if compiled.text else ""
    if stage == "tokens":
        assert compiled.tokens is not None
        return "\n".join(
            f"{k:8} {x}"
            for k, x in zip(compiled.tokens.kinds, compiled.tokens.texts, strict=True)
            if k != "end"
        )
    if stage == "syntax":
        return "\n".join(_tree(compiled.syntax, ""))
    if stage == "types":
        assert compiled.core is not None
        blocks = [*compiled.core.actions, *compiled.core.blocks]
        return "\n".join(line for block in blocks for line in _tree(block, ""))
    if stage == "lower":
        assert compiled.ir is not None
        return "\n".join(_program(compiled.ir))
    if stage == "json":
        return compiled.json_text
    from google.protobuf import text_format

    return str(text_format.MessageToString(compiled.p4info))


def _tree(node: object, indent: str, label: str = "") -> Iterator[str]:  # noqa: PLR0912 - one branch per kind
    """A tree, one node a line; spans and declarations seen before are left out."""
    if isinstance(node, tuple | list):
        if not node:
            return
        if all(isinstance(x, str | int) for x in node):
            yield f"{indent}{label}{', '.join(map(str, node))}"
            return
        for each in node:
            yield from _tree(each, indent, label)
        return
    if isinstance(node, dict):
        for key, value in node.items():
            yield from _tree(value, indent, f"{label}{key}: ")
        return
    if isinstance(node, t.Type):
        yield f"{indent}{label}{node}"
        return
    if (
        isinstance(node, c.Variable | c.Instance | c.Table | c.Action | c.Function)
        and indent
        and (label)
    ):
        yield f"{indent}{label}{node.name}"
        return
    if isinstance(node, Data):
        simple: list[str] = []
        deep: list[tuple[str, object]] = []
        for each in fields(node):
            value = getattr(node, each.name)
            if (
                each.name
                in ("span", "name_span", "decl", "used", "written", "decl_span", "state_span")
                or isinstance(value, Span)
                or value in (None, (), "")
            ):
                continue
            if isinstance(value, str | int | bool | t.Type):
                simple.append(f"{each.name}={value}")
            else:
                deep.append((each.name, value))
        yield f"{indent}{label}{type(node).__name__} {' '.join(simple)}".rstrip()
        for name, value in deep:
            yield from _tree(value, indent + "  ", f"{name}: ")
        return
    if node is not None:
        yield f"{indent}{label}{node}"


def show(value: object) -> str:
    """A low-level value or argument, close to how it would be written."""
    if isinstance(value, ir.Lit):
        return f"{value.value}"
    if isinstance(value, ir.FieldRef):
        return f"{value.header}.{value.name}"
    if isinstance(value, ir.ParamRef):
        return f"param{value.index}"
    if isinstance(value, ir.Op):
        return f"{value.op}({', '.join(map(show, value.args))})"
    if isinstance(value, ir.Name):
        return value.name
    return str(value)


def _graph(entry: ir.Block | None, indent: str) -> Iterator[str]:
    blocks = reachable(entry)
    names = {id(b): b.name or f"b{i}" for i, b in enumerate(blocks)}
    for block in blocks:
        yield f"{indent}{names[id(block)]}:"
        if block.inner is not None:
            yield f"{indent}  loop:"
            yield from _graph(block.inner, indent + "    ")
        for op in block.ops:
            yield f"{indent}  {op.op} {', '.join(map(show, op.args))}"
        targets = ", ".join(
            "end" if s is None else names.get(id(s), "?") for s in successors(block)
        )
        end = block.end
        if isinstance(end, ir.Branch):
            yield f"{indent}  if {show(end.condition)} -> {targets}"
        elif isinstance(end, ir.Apply):
            yield f"{indent}  apply {end.table.name} -> {targets}"
        elif isinstance(end, ir.Select):
            yield f"{indent}  select {', '.join(map(show, end.keys))} -> {targets}"
        else:
            yield f"{indent}  -> {targets or 'end'}"


def _program(program: ir.Program) -> Iterator[str]:
    yield "headers:"
    for header in program.headers:
        yield f"  {header.type} {header.name}"
    yield "scalars:"
    for name, width, signed in program.scalars:
        yield f"  {'int' if signed else 'bit'}<{width}> {name}"
    yield "parser:"
    yield from _graph(program.parser, "  ")
    for action in program.actions:
        yield f"action {action.name}({', '.join(n for n, _ in action.params)}):"
        yield from _graph(action.entry, "  ")
    for table in program.tables:
        yield f"table {table.name}:"
        for key in table.keys:
            yield f"  {key.match} {show(key.value)} ({key.name})"
        yield f"  actions {', '.join(a.name for a in table.actions)}"
    for pipeline in program.pipelines:
        yield f"{pipeline.name}:"
        yield from _graph(pipeline.entry, "  ")
    yield f"deparser: {', '.join(program.deparser)}"
