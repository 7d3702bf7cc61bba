"""The checker: from syntax tree to typed tree.

All parts check in one `Context`: the scopes, the place, and where mistakes are told. Each part
holds, by name, those that it asks; these lead back: a type's width is an expression, calls are
expressions, and both calls and statements instantiate, by which declarations with type arguments
are checked for them.
"""

from __future__ import annotations

from compiler import core as c
from compiler import syntax as s
from compiler.check.base import Context
from compiler.check.calls import Calls
from compiler.check.declarations import Declarations
from compiler.check.expressions import Expressions
from compiler.check.instantiations import Instantiations
from compiler.check.lint import lint
from compiler.check.names import Names
from compiler.check.statements import Statements
from compiler.check.states import States
from compiler.check.tables import Tables
from compiler.check.typing import Typing
from compiler.diagnostics import Diagnostics

__all__ = ["Checker", "check"]


def check(program: s.Program, diagnostics: Diagnostics, names: Names | None = None) -> c.Program:
    """Type a program, reporting everything wrong with it; noting what names mean, if asked to."""
    checker = Checker(diagnostics, names)
    try:
        for declaration in program.declarations:
            checker.take(declaration)
    finally:
        checker.part()
    return checker.program()


class Checker:
    """A check, one declaration after the other."""

    def __init__(self, diagnostics: Diagnostics, names: Names | None = None) -> None:
        self.context = Context(diagnostics, names)
        self._declarations = _declarations(self.context)

    def take(self, declaration: s.Decl) -> None:
        """Check the next declaration of the top level."""
        self._declarations.top_level(declaration)

    def program(self) -> c.Program:
        """What all that was taken makes; what nobody uses, and the like, is told."""
        context = self.context
        typed = context.program
        typed.errors = list(context.error_names)
        typed.match_kinds = list(context.match_kinds)
        if not context.diagnostics.error_count:
            lint(typed, context.variables, context.diagnostics)
        return typed

    def part(self) -> None:
        """Let none of the parts lead back, so that all of them go when they are done."""
        _part(self._declarations)


def _declarations(context: Context) -> Declarations:
    """The part that checks declarations, and through the others all that is in them."""
    typing = Typing(context)
    expressions = typing.expressions = Expressions(context, typing)
    calls = expressions.calls = Calls(context, typing, expressions)
    statements = Statements(context, typing, expressions)
    tables = Tables(context, typing, expressions, calls)
    states = States(context, typing, expressions, statements, tables)
    instantiations = Instantiations(context, typing, expressions, calls)
    calls.instantiations = statements.instantiations = instantiations
    made = Declarations(context, typing, expressions, statements, tables, states)
    calls.declarations = instantiations.declarations = made
    return made


def _part(declarations: Declarations) -> None:
    """Let none of the parts lead back, so that all of them go when they are done."""
    typing, expressions = declarations.typing, declarations.expressions
    calls, statements = expressions.calls, declarations.statements
    assert isinstance(calls, Calls)
    assert isinstance(calls.instantiations, Instantiations)
    del calls.instantiations.declarations, calls.declarations
    del calls.instantiations, statements.instantiations
    del typing.expressions, expressions.calls
