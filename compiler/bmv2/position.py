"""Source positions in the JSON: file, line, column (from 0) and the text itself."""

from __future__ import annotations

from typing import Any

from compiler.source import Span, Text


class Positions:
    """Writes source positions."""

    def __init__(self, text: Text) -> None:
        self._text = text

    def info(self, span: Span | None) -> dict[str, Any]:
        """The `source_info` member for a span, ready to be merged; empty if it has no place."""
        if span is None or span.start < 0:
            return {}
        position = self._text.position(span)
        fragment = self._text.fragment(span).rstrip("; \n")
        first, newline, _ = fragment.partition("\n")
        if newline:
            fragment = first.rstrip() + " ..."
        return {
            "source_info": {
                "filename": position.file,
                "line": position.line,
                "column": position.column - 1,
                "source_fragment": fragment,
            }
        }

    def line(self, span: Span | None) -> int:
        """The line a span starts on."""
        return 0 if span is None else self._text.position(span).line
