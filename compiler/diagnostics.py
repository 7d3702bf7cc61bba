"""Diagnostics: what went wrong, where, and what to do about it.

Every stage reports into one `Diagnostics` collector instead of raising, so that a run shows
many mistakes at once. `CompileError` is raised only at the seams between stages, when going on
would merely produce echoes of what was already reported.
"""

from __future__ import annotations

from collections.abc import Iterable

from compiler.source import Position, Span, Text
from params.data import Data

MAX_ERRORS = 40
MAX_WARNINGS = 200
_SHOWN = 160  # characters of a line


class Diagnostic(Data):
    """One message: a stable code, the place, and the cure."""

    severity: str
    code: str
    message: str
    cure: str
    position: Position | None

    def render(self) -> str:
        """The message as shown to a person, with the source line and a caret."""
        where = (
            f"{self.position.file}:{self.position.line}:{self.position.column}: "
            if (self.position)
            else ""
        )
        lines = [f"{where}{self.severity}[{self.code}]: {self.message}"]
        if self.position and self.position.line_text.strip():
            column = self.position.column - 1
            begin = max(0, column - _SHOWN // 2) if len(self.position.line_text) > _SHOWN else 0
            text = self.position.line_text[begin : begin + _SHOWN].rstrip().replace("\t", " ")
            number = f"{self.position.line:5d}"
            column = min(column - begin, len(text))
            width = max(1, min(self.position.length, len(text) - column))
            lines.append(f"{number} | {text}")
            lines.append(f"{' ' * len(number)} | {' ' * column}{'^' * width}")
        if self.cure:
            lines.append(f"      = help: {self.cure}")
        return "\n".join(lines)


class CompileError(Exception):
    """The program was refused; `diagnostics` says why, all of it."""

    def __init__(self, diagnostics: Iterable[Diagnostic]) -> None:
        self.diagnostics = tuple(diagnostics)
        super().__init__("\n".join(d.render() for d in self.diagnostics))


class TooManyErrorsError(Exception):
    """Raised inside a run once more errors would not help anyone."""


class Diagnostics:
    """The collector all stages of one run report into."""

    def __init__(
        self,
        *,
        disabled: frozenset[str] = frozenset(),
        werror: bool = False,
        quiet: bool = False,
        most_errors: int = MAX_ERRORS,
    ) -> None:
        self.text: Text | None = None
        self.found: list[Diagnostic] = []
        self.error_count = self.warning_count = 0
        self._disabled = disabled
        self._werror = werror
        self._quiet = quiet
        self._most_errors = most_errors
        self._seen: set[tuple[str, int, str]] = set()
        self.silenced: list[tuple[Span, frozenset[str]]] = []

    def error(self, code: str, span: Span, message: str, cure: str = "") -> None:
        """Report a mistake that makes the program unusable."""
        self._add("error", code, span, message, cure)
        if self.error_count >= self._most_errors:
            raise TooManyErrorsError

    def warning(self, code: str, span: Span, message: str, cure: str = "") -> None:
        """Report something legal that is probably not meant."""
        if self._quiet or code in self._disabled or self._is_silenced(code, span):
            return
        self.warning_count += 1
        if self.warning_count > MAX_WARNINGS and not self._werror:
            if self.warning_count == MAX_WARNINGS + 1:
                notice = f"there are more than {MAX_WARNINGS} warnings"
                self.add(Diagnostic("warning", "too-many-warnings", notice, "", None))
            return
        self._add("error" if self._werror else "warning", code, span, message, cure)

    def check(self) -> None:
        """Stop here if anything so far was an error."""
        if self.error_count:
            raise CompileError(self.found)

    def _is_silenced(self, code: str, span: Span) -> bool:
        return any(
            where.start <= span.start < where.end and code in codes
            for where, codes in self.silenced
        )

    def _add(self, severity: str, code: str, span: Span, message: str, cure: str) -> None:
        key = (code, span.start, message)
        if key in self._seen:
            return
        self._seen.add(key)
        position = None
        if self.text is not None and span.start >= 0:
            position = self.text.position(span)
        self.add(Diagnostic(severity, code, message, cure, position))

    def add(self, diagnostic: Diagnostic) -> None:
        """Take a finished diagnostic, as the preprocessor makes them."""
        self.found.append(diagnostic)
        if diagnostic.severity == "error":
            self.error_count += 1
