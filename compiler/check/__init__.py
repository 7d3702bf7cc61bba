"""The checker: from syntax tree to typed tree."""

from __future__ import annotations

from typing import TYPE_CHECKING

from compiler.check.declarations import Declarations
from compiler.check.lint import lint

if TYPE_CHECKING:
    from compiler import core as c
    from compiler import syntax as s
    from compiler.diagnostics import Diagnostics

__all__ = ["check"]


def check(program: s.Program, diagnostics: Diagnostics) -> c.Program:
    """Type a program, reporting everything wrong with it."""
    checker = Declarations(diagnostics)
    for declaration in program.declarations:
        checker.top_level(declaration)
    checker.program.errors = list(checker.error_names)
    checker.program.match_kinds = list(checker.match_kinds)
    if not diagnostics.error_count:
        lint(checker.program, checker.variables, diagnostics)
    return checker.program
