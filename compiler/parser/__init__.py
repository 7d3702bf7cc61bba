"""The parser: recursive descent over the token lists, one method per grammar symbol.

All parts read at one `Cursor`. `Expressions`, `Statements`, `Blocks` and `Declarations` each hold
the parts that their grammar is made of, by name; two lead back: a type's width is an expression,
and an instance may hold functions.

Recovery: a broken statement is skipped to its `;` or to the brace that closes its block, a broken
declaration to the next word that starts one, so that one run reports many mistakes. Two things in
P4's grammar need more than a token of look-ahead: `(T) e` against `(e)`, answered by remembering
which names in scope are types; and `f<T>(x)` against `f < x`, answered by trying type arguments
and coming back. Nesting is bounded, and so is the height of expressions, so no input can exhaust
the stack here or in the stages behind; a position where type arguments once failed is never tried
again, so none can make it slow.
"""

from __future__ import annotations

from collections.abc import Iterator

from compiler import syntax as s
from compiler.diagnostics import Diagnostics
from compiler.lexer import Tokens
from compiler.parser.blocks import Blocks
from compiler.parser.cursor import MAX_CHAIN, Cursor, SyntaxMistakeError, TooDeepError
from compiler.parser.declarations import Declarations
from compiler.parser.expressions import Expressions
from compiler.parser.statements import Statements
from compiler.parser.types import Types

__all__ = ["MAX_CHAIN", "Parser", "parse"]


class Parser:
    """A parse, one declaration after the other; it may begin behind some that were read before."""

    def __init__(
        self,
        tokens: Tokens,
        diagnostics: Diagnostics,
        at: int = 0,
        names: dict[str, bool] | None = None,
    ) -> None:
        self._cursor = Cursor(tokens, diagnostics)
        self._cursor.at = at
        self._cursor.scopes = [names or {}]

    @property
    def at(self) -> int:
        """The token behind the declaration that was read last."""
        return self._cursor.at

    @property
    def names(self) -> dict[str, bool]:
        """What has been declared so far, and whether it is a type."""
        return self._cursor.scopes[0]

    def declarations(self) -> Iterator[s.Decl]:
        """The declarations of the top level; one that is broken is told and left out."""
        types = Types(self._cursor)
        expressions = types.expressions = Expressions(self._cursor, types)
        statements = Statements(self._cursor, types, expressions)
        blocks = Blocks(self._cursor, types, expressions, statements)
        declarations = Declarations(self._cursor, types, expressions, statements, blocks)
        statements.declarations = declarations
        try:
            yield from declarations.program()
        finally:
            # So that what was read goes with its user.
            del types.expressions, statements.declarations


def parse(tokens: Tokens, diagnostics: Diagnostics) -> s.Program:
    """Parse a token list."""
    try:
        return s.Program(tuple(Parser(tokens, diagnostics).declarations()))
    except (SyntaxMistakeError, TooDeepError):
        return s.Program(())
