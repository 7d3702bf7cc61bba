"""What a model finds wrong with a value, in words that say what it takes instead."""

from __future__ import annotations

from collections.abc import Mapping

from pydantic_core import ErrorDetails

_LONGEST = 60  # that is shown of what somebody wrote
_KINDS = {  # by the beginning of what pydantic calls the problem
    "bool": "true or false",
    "int": "a whole number",
    "float": "a number",
    "finite": "a finite number",
    "string_type": "a word",
    "dict": "a section, with keys and values",
    "model": "a section, with keys and values",
    "tuple": "a list",
    "list": "a list",
}
_BOUNDS = {
    "greater_than_equal": ("at least", "ge"),
    "greater_than": ("more than", "gt"),
    "less_than_equal": ("at most", "le"),
    "less_than": ("less than", "lt"),
    "multiple_of": ("a multiple of", "multiple_of"),
    "enum": ("one of", "expected"),
    "literal_error": ("one of", "expected"),
    "string_pattern_mismatch": ("a word like", "pattern"),
}


def complaint(problem: ErrorDetails) -> str:
    """What is wrong, and what was written; not a whole section, of which the words name a key."""
    if problem["type"] == "missing":
        return "it must be given"
    written = problem["input"]
    is_whole = isinstance(written, Mapping) and len(repr(written)) > _LONGEST
    return _said(problem) if is_whole else f"{_said(problem)} (got {_shortened(written)})"


def _said(problem: ErrorDetails) -> str:
    what, context = problem["type"], problem.get("ctx", {})
    if what == "value_error":
        return str(context["error"])
    if what == "union_tag_invalid":
        return f"kind must be one of {context['expected_tags']}"
    if what in _BOUNDS:
        words, name = _BOUNDS[what]
        return f"it must be {words} {_bound(context[name])}"
    for beginning, words in _KINDS.items():
        if what.startswith(beginning):
            return f"it must be {words}"
    return problem["msg"]


def _bound(value: object) -> str:
    return f"{value:g}" if isinstance(value, float) else str(value).replace(" or ", ", ")


def _shortened(value: object) -> str:
    text = repr(value)
    return text if len(text) <= _LONGEST else text[:_LONGEST] + "..."
