"""The lexer: one regular expression over the whole text.

Tokens live in three parallel lists (kind, text, start) rather than in objects: the parser looks
at kinds alone nearly always, and a list of short interned strings is the fastest thing to look at.
Keywords and punctuation are their own kind; the others are `name`, `number`, `string`, `end`.
"""

from __future__ import annotations

import re
from bisect import bisect_left

from compiler.diagnostics import Diagnostics
from compiler.source import Span
from params.data import Data

KEYWORDS = frozenset(
    {
        "_",
        "abstract",
        "action",
        "actions",
        "apply",
        "bit",
        "bool",
        "break",
        "const",
        "continue",
        "control",
        "default",
        "else",
        "entries",
        "enum",
        "error",
        "exit",
        "extern",
        "false",
        "for",
        "header",
        "header_union",
        "if",
        "in",
        "inout",
        "int",
        "key",
        "list",
        "match_kind",
        "out",
        "package",
        "parser",
        "pragma",
        "priority",
        "return",
        "select",
        "state",
        "string",
        "struct",
        "switch",
        "table",
        "this",
        "transition",
        "true",
        "tuple",
        "type",
        "typedef",
        "value_set",
        "varbit",
        "void",
    }
)

# Several end tokens, so that looking ahead never runs off the lists.
_PADDING = 4

# Words the grammar gives a meaning in one place only; everywhere else they are plain names.
SOFT_KEYWORDS = frozenset(
    {
        "apply",
        "actions",
        "key",
        "entries",
        "state",
        "type",
        "list",
        "priority",
        "this",
        "pragma",
        "match_kind",
    }
)

# An annotation's only argument may go on for lines.
LONG_STRING = r'(?<=\()"(?:\\.|[^"\\])*"(?=\s*\))'

_SCAN = re.compile(
    rf"""
    (?P<space>\s+)
  | (?P<name>[A-Za-z_]\w*)
  | (?P<number>\d\w*)
  | (?P<string>"(?:\\.|[^"\\\n])*"|{LONG_STRING})
  | (?P<op>\|\+\|=|\|-\|=|<<=|&&&|\|\+\||\|-\||\.\.\.|\.\.|\+\+|<<|&&|\|\||==|!=|<=|>=
      | \+=|-=|\*=|/=|%=|&=|\|=|\^=|[-+*/%&|^~!<>=(){{}}\[\];:,.?@\#])
  | (?P<bad>.)
    """,
    re.VERBOSE | re.DOTALL | re.ASCII,
)


class Tokens(Data):
    """The tokens of a program, as parallel lists."""

    kinds: list[str]
    texts: list[str]
    starts: list[int]

    def span(self, index: int) -> Span:
        """Where a word stands."""
        start = self.starts[index]
        return Span(start, start + len(self.texts[index]))

    def up_to(self, index: int) -> Tokens:
        """Those before one."""
        return Tokens(self.kinds[:index], self.texts[:index], self.starts[:index])

    def behind(self, at: int, moved: int) -> Tokens | None:
        """Those from the one on that begins at an offset, moved by so much; None if none does, or
        what it is follows from what stands before it."""
        first = bisect_left(self.starts, at)
        if self.starts[first] != at or self.kinds[first] in ("string", "end"):
            return None
        starts = self.starts[first:]
        moved_ones = [start + moved for start in starts] if moved else starts
        return Tokens(self.kinds[first:], self.texts[first:], moved_ones)

    def copied(self) -> tuple[list[str], list[str], list[int]]:
        """The lists, for somebody to go on with."""
        return [*self.kinds], [*self.texts], [*self.starts]


class Before(Data):
    """Another text and its tokens, of which it is known where it begins to end as this one does."""

    tokens: Tokens
    since: int  # in this text
    moved: int  # by how much that is further than in the other


def tokenize(
    text: str, diagnostics: Diagnostics, known: Tokens | None = None, before: Before | None = None
) -> Tokens:
    """Split preprocessed text into tokens, of which those that it begins with may be known, and
    what those are that it ends with."""
    kinds, texts, starts = known.copied() if known is not None else ([], [], [])
    suspects: list[tuple[int, int]] = []
    keywords = KEYWORDS
    since = before.since if before is not None and "bad" not in before.tokens.kinds else len(text)
    for match in _SCAN.finditer(text, starts[-1] + len(texts[-1]) if starts else 0):
        group = match.lastgroup
        if group == "space":
            continue
        if match.start() >= since and not suspects:
            assert before is not None
            rest = before.tokens.behind(match.start() - before.moved, before.moved)
            if rest is not None:
                return Tokens(kinds + rest.kinds, texts + rest.texts, starts + rest.starts)
        word = match[0]
        if group == "name":
            kinds.append(word if word in keywords else "name")
        elif group == "op":
            kinds.append(word)
        elif group == "bad":
            kinds.append("bad")
            suspects.append((len(texts), match.start()))
        else:
            assert group
            kinds.append(group)
        texts.append(word)
        starts.append(match.start())
    if suspects and known is not None:
        return tokenize(text, diagnostics)  # what a word means may follow from any before it
    end = len(text.rstrip())
    for _ in range(_PADDING):
        kinds.append("end")
        texts.append("")
        starts.append(end)
    for index, start in suspects:
        if texts[index] not in _FREE_FORM or not _in_annotation(kinds, index):
            _bad(texts[index], start, diagnostics)
    return Tokens(kinds, texts, starts)


# What a free-form annotation may hold beyond the tokens of the language.
_FREE_FORM = set("'`\\$")


def _in_annotation(kinds: list[str], index: int) -> bool:
    """Whether a token stands in an annotation's parentheses, where anything may."""
    level = 0
    for at in range(index - 1, max(0, index - 1000), -1):
        kind = kinds[at]
        if kind == ")":
            level += 1
        elif kind == "(":
            if level == 0 and at >= 2 and kinds[at - 2] == "@":
                return True
            level = max(0, level - 1)
        elif kind in ("{", "}", ";") and level == 0:
            return False
    return False


def _bad(word: str, start: int, diagnostics: Diagnostics) -> None:
    span = Span(start, start + 1)
    if word == '"':
        diagnostics.error(
            "unterminated-string",
            span,
            "this string is not closed on its line",
            'close it with a "',
        )
    else:
        diagnostics.error(
            "bad-character",
            span,
            f"character {word!r} has no meaning in P4",
            "remove it; is it a typographic quote or dash from a web page?",
        )
