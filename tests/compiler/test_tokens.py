"""The lexer."""

import pytest

from compiler.diagnostics import Diagnostics
from compiler.lexer import tokenize
from compiler.source import Line, Text


def tokens(text: str) -> list[tuple[str, str]]:
    diagnostics = Diagnostics()
    diagnostics.text = Text(text, [Line("x.p4", i + 1, x) for i, x in enumerate(text.split("\n"))])
    found = tokenize(text, diagnostics)
    return [(k, t) for k, t in zip(found.kinds, found.texts, strict=True) if k != "end"]


@pytest.mark.parametrize(
    "number", ["0", "42", "0x1F", "0b1010", "0o17", "0d9", "8w255", "4s0x7", "1_000", "16w0xFF_FF"]
)
def test_numbers(number: str) -> None:
    assert tokens(number) == [("number", number)]


@pytest.mark.parametrize(
    "operator",
    [
        "&&&",
        "&&",
        "&",
        "|+|",
        "|-|",
        "||",
        "++",
        "<<",
        "<=",
        "==",
        "!=",
        ">=",
        "..",
        "...",
        "+=",
        "<<=",
        "|+|=",
        "|-|=",
        "^=",
    ],
)
def test_operators_are_taken_whole(operator: str) -> None:
    assert tokens(f"a{operator}b") == [("name", "a"), (operator, operator), ("name", "b")]


def test_two_closing_angles_stay_two_tokens() -> None:
    assert [k for k, _ in tokens("a<b<c>>")] == ["name", "<", "name", "<", "name", ">", ">"]


def test_keywords_are_their_own_kind() -> None:
    assert tokens("table tables _ _x") == [
        ("table", "table"),
        ("name", "tables"),
        ("_", "_"),
        ("name", "_x"),
    ]


def test_strings_keep_their_escapes() -> None:
    assert tokens(r'"a \" b" c') == [("string", r'"a \" b"'), ("name", "c")]


def test_an_annotations_string_may_go_on_for_lines() -> None:
    assert tokens('@a("b\nc")')[3] == ("string", '"b\nc"')


def test_spans_point_at_the_text() -> None:
    text = "  abc   = 12 ;"
    found = tokenize(text, Diagnostics())
    assert [text[found.span(i).start : found.span(i).end] for i in range(4)] == [
        "abc",
        "=",
        "12",
        ";",
    ]
