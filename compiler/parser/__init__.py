"""The parser: recursive descent over the token lists, one method per grammar symbol.

Recovery: a broken statement is skipped to its `;` or to the brace that closes its block, a broken
declaration to the next word that starts one, so that one run reports many mistakes. Two things in
P4's grammar need more than a token of look-ahead: `(T) e` against `(e)`, answered by remembering
which names in scope are types; and `f<T>(x)` against `f < x`, answered by trying type arguments
and coming back. Nesting is bounded, and so is the height of expressions, so no input can exhaust
the stack here or in the stages behind; a position where type arguments once failed is never tried
again, so none can make it slow.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from compiler import syntax as s
from compiler.parser.cursor import MAX_CHAIN, SyntaxMistakeError, TooDeepError
from compiler.parser.declarations import Declarations

if TYPE_CHECKING:
    from compiler.diagnostics import Diagnostics
    from compiler.lexer import Tokens

__all__ = ["MAX_CHAIN", "parse"]


def parse(tokens: Tokens, diagnostics: Diagnostics) -> s.Program:
    """Parse a token list."""
    parser = Declarations(tokens, diagnostics)
    try:
        return parser.program()
    except (SyntaxMistakeError, TooDeepError):
        return s.Program(())
