"""Warnings about legal programs that are probably not meant."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from compiler import core as c
    from compiler.diagnostics import Diagnostics


def lint(program: c.Program, variables: list[c.Variable], diagnostics: Diagnostics) -> None:
    """Look for unused things."""
    for variable in variables:
        if not variable.used and not variable.written:
            diagnostics.warning("unused", variable.span, f"variable '{variable.name}' is never "
                                "used", "remove it")
