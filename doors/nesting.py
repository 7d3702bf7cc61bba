"""How deeply what a stranger sends is nested: known before anybody takes it apart."""

from __future__ import annotations

import re

_NO_BRACKETS = re.compile(rb'"(?:[^"\\]|\\.)*"?|[^\[\]{}"]+', re.DOTALL)


def is_deeper(json: bytes, most: int) -> bool:
    """Whether arrays and objects within each other are more than that, sound or not; brackets in
    strings are none."""
    if json.count(b"{") + json.count(b"[") <= most:
        return False
    deepest = now = 0
    for sign in _NO_BRACKETS.sub(b"", json):
        now += 1 if sign in b"[{" else -1
        deepest = max(deepest, now)
    return deepest > most
