"""A generated program as C: one text for whoever compiles it, and the files that it is read in.

A long program is told apart by what its parts are of: each file of P4 has its actions in one of its
own, so that a debugger, a profiler or a complaint of the compiler names that.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

_BEGIN = "/* ---- {} ---- */"
_FOUND = re.compile(r"^/\* ---- (\S+) ---- \*/\n", re.MULTILINE)


def joined(parts: Mapping[str, Iterable[str]]) -> str:
    """The text, by the files that it may lie in; where nothing is in one there is none."""
    texts = {name: "\n\n".join(filter(None, texts)) for name, texts in parts.items()}
    return "\n".join(f"{_BEGIN.format(name)}\n{text}\n" for name, text in texts.items() if text)


def apart(text: str) -> list[tuple[str, str]]:
    """The files of a text, by their names, in the order in which they are to be compiled."""
    _, *found = _FOUND.split(text)
    return list(zip(found[::2], found[1::2], strict=True))
