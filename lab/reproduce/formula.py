"""Formulas: what is measured of runs, as a reproduction's file writes it.

    slowdown(dcqcn, 99, most=3KB) / slowdown(hpcc, 99, most=3KB)
    hpcc.pfc.xoff_frames == 0 and dcqcn.pfc.xoff_frames > 0

A name is a case, and a dot leads to where a figure stands in its result.json. Beside numbers there
are sizes and times with their units (3KB, 50us), texts in quotation marks, + - * /, comparisons
with `and`, `or`, `not`, the functions of `observed.py`, and min, max, abs. It is Python's grammar,
of which nothing else is taken: a formula can ask for nothing but figures.
"""

from __future__ import annotations

import ast
import operator
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import field
from typing import Any

from pydantic import TypeAdapter, ValidationError

from lab.errors import LabError
from lab.reproduce.observed import FUNCTIONS, Observed
from lab.scenario.keys import nearest
from params.data import Data
from params.units import DurationNs, Size

_LONGEST = 2000
_UNITS = re.compile(r"(?<![\w.\"'])(\d+(?:\.\d+)?)(ns|us|ms|s|B|KB|MB|GB|KiB|MiB|GiB)\b(?![\"'])")
_ARITHMETIC: Mapping[type[ast.operator], Callable[[Any, Any], Any]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
}
_ORDER: Mapping[type[ast.cmpop], Callable[[Any, Any], bool]] = {
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
    ast.Eq: operator.eq,
    ast.NotEq: operator.ne,
}
_PLAIN: Mapping[str, Callable[..., float]] = {"min": min, "max": max, "abs": abs}


class FormulaError(LabError):
    """A formula that cannot be understood, or asks for what a run has not."""


class Formula(Data):
    """One, read; what it says stands in its text."""

    text: str
    _tree: ast.expr = field(repr=False, compare=False)

    @classmethod
    def of(cls, text: str) -> Formula:
        """Read one, without asking what its names are."""
        if len(text) > _LONGEST:
            raise FormulaError(f"a formula of {len(text)} characters; {_LONGEST} can be")
        try:
            tree = ast.parse(_with_numbers(text.strip()), mode="eval").body
        except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
            raise FormulaError(f"'{text}' is no formula: {error}") from None
        for node in ast.walk(tree):
            if not isinstance(node, _ALLOWED):
                raise FormulaError(
                    f"'{text}': {ast.unparse(node)[:60]} is not for formulas",
                    "They have numbers, cases, figures, + - * /, comparisons and functions.",
                )
        return cls(text.strip(), tree)

    @property
    def cases(self) -> set[str]:
        """The cases it names."""
        called = {id(node.func) for node in ast.walk(self._tree) if isinstance(node, ast.Call)}
        return {
            node.id
            for node in ast.walk(self._tree)
            if isinstance(node, ast.Name) and id(node) not in called
        }

    def check(self, known: set[str]) -> None:
        """Find out before anything runs whether its names are known."""
        for name in sorted(self.cases - known):
            raise FormulaError(
                f"'{self.text}': there is no case '{name}'" + nearest(name, sorted(known))
            )
        for node in ast.walk(self._tree):
            if isinstance(node, ast.Call):
                _function(node, self.text)

    def value(self, runs: Mapping[str, Observed]) -> float:
        """What it comes to; of a comparison 1 if it holds, and 0 if not."""
        try:
            found = _value(self._tree, runs, self.text)
        except ZeroDivisionError:
            raise FormulaError(f"'{self.text}' divides by 0") from None
        if isinstance(found, Observed | str):
            raise FormulaError(f"'{self.text}' names a run and not a figure of it")
        return float(found)


_ALLOWED = (
    ast.Expression, ast.BinOp, ast.UnaryOp, ast.USub, ast.Not, ast.BoolOp, ast.And, ast.Or,
    ast.Compare, ast.Call, ast.keyword, ast.Name, ast.Attribute, ast.Constant, ast.Load,
    *_ARITHMETIC, *_ORDER,
)  # fmt: skip


def _with_numbers(text: str) -> str:
    """Sizes and times written with their units, as bytes and nanoseconds."""

    def number(found: re.Match[str]) -> str:
        kind = Size if found[2].endswith("B") else DurationNs
        return str(TypeAdapter(kind).validate_python(found[0]))

    try:
        return _UNITS.sub(number, text)
    except ValidationError as error:
        raise FormulaError(f"'{text}': {error.errors()[0]['msg']}") from None


def _function(node: ast.Call, text: str) -> Callable[..., float]:
    name = node.func.id if isinstance(node.func, ast.Name) else ast.unparse(node.func)
    known = {**_PLAIN, **FUNCTIONS}
    if name not in known:
        raise FormulaError(f"'{text}': there is no function '{name}'" + nearest(name, known))
    return known[name]


def _value(node: ast.expr, runs: Mapping[str, Observed], text: str) -> Any:
    """What a part of a formula comes to."""
    if isinstance(node, ast.Constant):
        return node.value
    if isinstance(node, ast.Name):
        return runs[node.id]
    if isinstance(node, ast.Attribute):
        return _figure(node, runs, text)
    if isinstance(node, ast.BinOp):
        left, right = (_value(side, runs, text) for side in (node.left, node.right))
        return _ARITHMETIC[type(node.op)](left, right)
    if isinstance(node, ast.UnaryOp):
        inside = _value(node.operand, runs, text)
        return not inside if isinstance(node.op, ast.Not) else -inside
    if isinstance(node, ast.BoolOp):
        each = [bool(_value(value, runs, text)) for value in node.values]
        return all(each) if isinstance(node.op, ast.And) else any(each)
    if isinstance(node, ast.Compare):
        sides = [_value(side, runs, text) for side in (node.left, *node.comparators)]
        ordered = zip(node.ops, sides, sides[1:], strict=False)
        return all(_ORDER[type(op)](left, right) for op, left, right in ordered)
    assert isinstance(node, ast.Call), node
    return _called(node, runs, text)


def _called(node: ast.Call, runs: Mapping[str, Observed], text: str) -> float:
    function = _function(node, text)
    given = [_value(each, runs, text) for each in node.args]
    named = {str(each.arg): _value(each.value, runs, text) for each in node.keywords}
    try:
        return function(*given, **named)
    except (TypeError, AttributeError) as error:
        raise FormulaError(f"'{text}': {ast.unparse(node)}: {error}") from None
    except LabError as error:
        raise FormulaError(f"'{text}': {error.message}", error.cure) from None


def _figure(node: ast.Attribute, runs: Mapping[str, Observed], text: str) -> float:
    """What stands at a place of a run's result.json."""
    case, *path = _path(node)
    if case not in runs:
        raise FormulaError(f"'{text}': '{case}' is no case")
    try:
        return runs[case].figure(".".join(path))
    except LabError as error:
        raise FormulaError(f"'{text}': {case}: {error.message}", error.cure) from None


def _path(node: ast.expr) -> Iterator[str]:
    if isinstance(node, ast.Attribute):
        yield from _path(node.value)
        yield node.attr
    else:
        yield ast.unparse(node)
