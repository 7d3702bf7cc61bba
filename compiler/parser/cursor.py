"""The place in the token lists: taking tokens, names in scope, and getting over a mistake."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import NoReturn, TypeVar

from compiler.diagnostics import Diagnostics
from compiler.lexer import KEYWORDS, SOFT_KEYWORDS, Tokens
from compiler.source import Span

MAX_DEPTH = 200  # of what stands within brackets, braces and prefixes
MAX_CHAIN = 1000  # of operators, and of `else if`s, one upon the other

_T = TypeVar("_T")

DECLARATION_STARTS = {
    "action",
    "const",
    "control",
    "enum",
    "error",
    "extern",
    "header",
    "header_union",
    "match_kind",
    "package",
    "parser",
    "struct",
    "typedef",
    "type",
    "state",
    "table",
    "@",
}


_STATEMENT_STARTS = {
    *DECLARATION_STARTS,
    "if",
    "transition",
    "apply",
    "return",
    "exit",
    "switch",
    "else",
}
_TOP_STARTS = {
    "control",
    "parser",
    "header",
    "header_union",
    "struct",
    "enum",
    "extern",
    "package",
    "typedef",
}


class SyntaxMistakeError(Exception):
    """Unwinds to the nearest recovery point; already reported."""


class NotClosedError(SyntaxMistakeError):
    """A '}' is missing: unwinds to `program`, which reports it once, however deep it was."""


class TooDeepError(Exception):
    """The program is nested too deeply to go on; already reported."""


class Cursor:
    """A place in the tokens, which only moves on."""

    def __init__(self, tokens: Tokens, diagnostics: Diagnostics) -> None:
        self.tokens = tokens
        self.kinds = tokens.kinds
        self.texts = tokens.texts
        self.starts = tokens.starts
        self.at = 0
        self.diagnostics = diagnostics
        self.depth = 0
        self.height = 0  # of the expression just read: operators upon operators
        self.scopes: list[dict[str, bool]] = [{}]
        self.not_type_args: set[int] = set()
        self._last = self.kinds.index("end")

    def span(self, index: int | None = None) -> Span:
        """The span of a token, the current one by default."""
        index = self.at if index is None else index
        start = self.starts[index]
        return Span(start, start + len(self.texts[index]))

    def since(self, start: int) -> Span:
        """From the token at index `start` to the one before the current."""
        last = max(start, self.at - 1)
        return Span(self.starts[start], self.starts[last] + len(self.texts[last]))

    def reaching(self, start: int) -> Span:
        """From an offset to the end of the token before the current."""
        last = self.at - 1
        return Span(start, self.starts[last] + len(self.texts[last]))

    def accept(self, kind: str) -> bool:
        """Take the current token if it is of this kind."""
        if self.kinds[self.at] == kind:
            if self.at < self._last:
                self.at += 1
            return True
        return False

    def expect(self, kind: str, context: str = "") -> None:
        """Take a token of this kind or complain."""
        if self.kinds[self.at] == kind:
            if self.at < self._last:
                self.at += 1
            return
        if kind == "}" and not self.inside_braces():
            raise NotClosedError
        after = f" after {context}" if context else ""
        if kind == ";" and self.at:
            previous = self.at - 1
            end = self.starts[previous] + len(self.texts[previous])
            self.diagnostics.error(
                "missing-semicolon",
                Span(end, end + 1),
                f"expected ';' {after.strip() or f'after {self.texts[previous]!r}'}, "
                f"found {self.found()}",
                "put a ';' here",
            )
            raise SyntaxMistakeError
        self.fail(f"expected '{kind}'{after}, found {self.found()}")

    def found(self) -> str:
        """What stands here, for messages."""
        return repr(self.texts[self.at]) if self.kinds[self.at] != "end" else "the end of the file"

    def fail(self, message: str, cure: str = "", code: str = "syntax") -> NoReturn:
        """Report a syntax error here and unwind."""
        self.diagnostics.error(code, self.span(), message, cure)
        raise SyntaxMistakeError

    def enter(self) -> None:
        """Go one level deeper, within bounds."""
        self.depth += 1
        if self.depth > MAX_DEPTH:
            self.too_deep(f"this is nested more than {MAX_DEPTH} levels deep")

    def too_deep(self, message: str) -> NoReturn:
        """Give up: what is this deep would only fail again at each level on the way out."""
        self.diagnostics.error(
            "too-deep", self.span(), message, "use variables or actions for parts of it"
        )
        raise TooDeepError

    def grown(self, height: int) -> None:
        """An operator stands on operands of this height."""
        if height >= MAX_CHAIN:
            self.too_deep(f"this expression has more than {MAX_CHAIN} operators upon each other")
        self.height = height + 1

    def is_name(self, index: int | None = None) -> bool:
        """Whether a token can serve as an identifier."""
        kind = self.kinds[self.at if index is None else index]
        return kind == "name" or kind in SOFT_KEYWORDS

    def name(self, what: str = "a name") -> tuple[str, Span]:
        """Take an identifier."""
        kind = self.kinds[self.at]
        if kind != "name" and kind not in SOFT_KEYWORDS:
            cure = ""
            if kind in KEYWORDS:
                cure = f"'{kind}' is a word of the language; choose another name"
            self.fail(f"expected {what}, found {self.found()}", cure)
        span = self.span()
        text = self.texts[self.at]
        self.at += 1
        return text, span

    def is_type_name(self, name: str) -> bool:
        """Whether a name in scope is that of a type."""
        for scope in reversed(self.scopes):
            if name in scope:
                return scope[name]
        return False

    def declare(self, name: str, is_type: bool = False) -> None:
        """Remember a name, so that later uses parse as what it is."""
        self.scopes[-1][name] = is_type

    def scoped(self, rule: Callable[[], _T]) -> _T:
        """Read something whose names are its own."""
        self.scopes.append({})
        try:
            return rule()
        finally:
            self.scopes.pop()

    # Looking ahead

    def at_top_level(self) -> bool:
        """Whether a declaration of the top level begins here, at the start of a line."""
        return self.kinds[self.at] in _TOP_STARTS and self.column_zero()

    def inside_braces(self) -> bool:
        """Whether neither the end of a braced list is here nor that of what forgot to close it."""
        return self.kinds[self.at] not in ("}", "end") and not self.at_top_level()

    def begins_line(self) -> bool:
        """Whether the current token is the first of its line."""
        previous = self.at - 1
        if previous < 0:
            return True
        text = self.diagnostics.text
        if text is None:
            return False
        end = self.starts[previous] + len(self.texts[previous])
        return "\n" in text.text[end : self.starts[self.at]]

    def column_zero(self) -> bool:
        """Whether the current token stands where no line is indented."""
        text = self.diagnostics.text
        start = self.starts[self.at]
        return text is not None and (start == 0 or text.text[start - 1] == "\n")

    def adjacent(self, first: str, second: str) -> bool:
        """Whether these two tokens stand here with nothing between them."""
        at = self.at
        return (
            self.kinds[at] == first
            and self.kinds[at + 1] == second
            and self.starts[at] + 1 == self.starts[at + 1]
        )

    def matching(self, index: int) -> int:
        """The token that closes the bracket at `index`."""
        level = 0
        opening, closing = {"(", "[", "{"}, {")", "]", "}"}
        for at in range(index, len(self.kinds)):
            kind = self.kinds[at]
            if kind in opening:
                level += 1
            elif kind in closing:
                level -= 1
                if level == 0:
                    return at
        return self.fail("this bracket is never closed")

    def matching_or_none(self, index: int) -> int | None:
        """The ')' that closes the '(' at `index`, if no statement ends before it."""
        level = 0
        for at in range(index, len(self.kinds)):
            kind = self.kinds[at]
            if kind == "(":
                level += 1
            elif kind == ")":
                level -= 1
                if level == 0:
                    return at
            elif kind in (";", "}"):
                return None
        return None

    # Getting over a mistake

    @contextmanager
    def recovering(self) -> Iterator[None]:
        """Skip to after the statement that begins here if there is a mistake in it."""
        start, depth, scopes = self.at, self.depth, len(self.scopes)
        try:
            yield
        except SyntaxMistakeError:
            self.depth = depth
            del self.scopes[scopes:]
            self.recover_statement(start)

    def recover_statement(self, start: int) -> None:
        """Skip to just after the broken statement."""
        if self.at_top_level():
            return
        if self.at == start and self.kinds[self.at] not in ("}", "end"):
            self.at += 1
        level = 0
        while True:
            kind = self.kinds[self.at]
            if kind == "end" or self.at_top_level():
                return
            if kind == "{":
                level += 1
            elif kind == "}":
                if level == 0:
                    return
                level -= 1
                if level == 0:
                    self.at += 1
                    return
            elif kind == ";" and level == 0:
                self.at += 1
                return
            elif (
                level == 0 and self.at > start and self.begins_line() and kind in _STATEMENT_STARTS
            ):
                return
            self.at += 1
