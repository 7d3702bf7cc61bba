"""The JSON as text, laid out as `json.dumps(..., indent=2)` lays it out.

Written with a stack of its own: an expression of a thousand terms is a tree a thousand deep, which
recursion, and generators within generators above all, are no match for.
"""

from __future__ import annotations

from collections.abc import Iterator
from json.encoder import encode_basestring_ascii as quoted
from typing import Any


def text_of(value: Any) -> str:  # noqa: PLR0912 - one branch per kind
    """A value of dictionaries, lists, strings, numbers, booleans and None."""
    out: list[str] = []
    # What is open: the rest of its items, whether they have names, and how it closes.
    work: list[tuple[Iterator[Any], bool, str]] = []
    put = out.append
    line = "\n"
    first = True

    while True:
        kind = type(value)
        if kind is str:
            put(quoted(value))
        elif value is True:
            put("true")
        elif value is False:
            put("false")
        elif value is None:
            put("null")
        elif kind is dict or kind is list or kind is tuple:
            named = kind is dict
            if value:
                work.append((iter(value.items() if named else value), named, "}" if named else "]"))
                put("{" if named else "[")
                line += "  "
                first = True
            else:
                put("{}" if named else "[]")
        else:
            put(int.__repr__(value))
        while work:
            items, named, close = work[-1]
            item = next(items, items)
            if item is not items:
                break
            work.pop()
            line = line[:-2]
            put(line)
            put(close)
            first = False
        else:
            return "".join(out)
        put(line if first else "," + line)
        first = False
        if named:
            name, value = item
            put(quoted(name))
            put(": ")
        else:
            value = item
