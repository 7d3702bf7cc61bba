"""Stacks of unions indexed at run time.

BMv2 finds a header by an index it computes, but no union. So a statement that asks for `u[i]` is
lowered once for each element, behind a comparison of `i` with that element's number:

    u[i].h = x;   becomes   k = i; if (k == 0) { u[0].h = x; } else if (k == 1) ... else { ... }

An index beyond the end is undefined in the language; here it means the last element.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import fields, replace
from typing import Any

from compiler import core as c
from compiler import types as t


def expanded(node: c.Statement) -> tuple[c.Statement, ...] | None:
    """What stands for a statement that indexes a stack of unions; None if it does not."""
    if isinstance(node, c.If | c.Switch):
        head = node.condition if isinstance(node, c.If) else node.value
        if next(_indices(head), None) is None:
            return None
        kept = c.Variable("head", head.type, "var", node.span)
        ref = c.Ref(head.span, head.type, kept)
        rest = replace(node, condition=ref) if isinstance(node, c.If) else replace(node, value=ref)
        return (c.Declare(node.span, kept, None), c.Assign(node.span, ref, head), rest)
    if isinstance(node, c.Declare):
        if node.init is None or next(_indices(node.init), None) is None:
            return None
        ref = c.Ref(node.span, node.variable.type, node.variable)
        return (replace(node, init=None), c.Assign(node.span, ref, node.init))
    if not isinstance(node, c.Assign | c.CallStatement | c.Return):
        return None
    found = next(_indices(node), None)
    return None if found is None else _one_by_one(node, found)


def _one_by_one(node: c.Statement, index: c.Index) -> tuple[c.Statement, ...]:
    """The ladder of comparisons above, for one index; those left are the next round's."""
    type_ = t.underlying(index.index.type)
    kept = c.Variable("index", type_, "var", index.span)
    ref = c.Ref(index.span, type_, kept)
    value = index.index
    if value.type != type_:
        value = c.Cast(value.span, type_, value)
    assert isinstance(index.base.type, t.Stack)
    size = index.base.type.size
    if isinstance(type_, t.Bits):
        size = min(size, 1 << type_.width)
    made: c.Statement | None = None
    for number in reversed(range(size)):
        at = replace(index, index=c.Const(index.span, t.BIT32, number))
        once = c.Block(node.span, (_with(node, index, at),))
        if made is None:
            made = once
            continue
        is_it = c.Binary(index.span, t.BOOL, "==", ref, c.Const(index.span, type_, number))
        made = c.If(node.span, is_it, once, made)
    assert made is not None
    return (c.Declare(node.span, kept, None), c.Assign(node.span, ref, value), made)


def _indices(node: object) -> Iterator[c.Index]:
    """The run-time indices into stacks of unions, those within others first."""
    if type(node) is tuple:
        for each in node:
            yield from _indices(each)
    elif isinstance(node, c.Expr | c.Assign | c.CallStatement | c.Return):
        for each in fields(node):
            yield from _indices(getattr(node, each.name))
        if isinstance(node, c.Index) and not isinstance(node.index, c.Const):
            type_ = node.base.type
            if isinstance(type_, t.Stack) and t.is_union(type_.element):
                yield node


def _with(node: Any, old: c.Expr, new: c.Expr) -> Any:
    """The same piece of the tree with one expression in place of another."""
    if node is old:
        return new
    if type(node) is tuple:  # a span is a tuple too
        return tuple(_with(each, old, new) for each in node)
    if not isinstance(node, c.Expr | c.Statement):
        return node
    changed = {f.name: _with(getattr(node, f.name), old, new) for f in fields(node)}
    if all(changed[f.name] is getattr(node, f.name) for f in fields(node)):
        return node
    return replace(node, **changed)
