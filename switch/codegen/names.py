"""C identifiers for P4 names: readable, unique, and the same on every run."""

from __future__ import annotations

import re

C_WORDS = frozenset(
    [
        "auto",
        "break",
        "case",
        "char",
        "const",
        "continue",
        "default",
        "do",
        "double",
        "else",
        "enum",
        "extern",
        "float",
        "for",
        "goto",
        "if",
        "inline",
        "int",
        "long",
        "register",
        "restrict",
        "return",
        "short",
        "signed",
        "sizeof",
        "static",
        "struct",
        "switch",
        "typedef",
        "union",
        "unsigned",
        "void",
        "volatile",
        "while",
        "bool",
        "true",
        "false",
        "asm",
        "typeof",
        "h",
        "r",
        "a",
        "p",
        "is_valid",
    ]
)


def identifier(name: str) -> str:
    """The closest C identifier."""
    text = re.sub(r"\W+", "_", name, flags=re.ASCII).strip("_") or "unnamed"
    return f"_{text}" if text[0].isdigit() else text


class Names:
    """Hands out identifiers within one C scope."""

    def __init__(self, reserved: frozenset[str] = C_WORDS) -> None:
        self.taken = set(reserved)

    def new(self, name: str) -> str:
        """An identifier for a name, numbered if the plain one is taken."""
        base = text = identifier(name)
        number = 1
        while text in self.taken:
            number += 1
            text = f"{base}_{number}"
        self.taken.add(text)
        return text


_IN_C_STRING = {byte: f"\\{byte:03o}" for byte in range(256) if not 32 <= byte < 127}
_IN_C_STRING |= {ord(char): f"\\{char}" for char in '"\\'}


def c_string(text: str) -> str:
    """A C string literal."""
    escaped = text.encode().decode("latin-1").translate(_IN_C_STRING)
    return '"' + escaped.replace("??", '?""?') + '"'


def spoken(text: str) -> str:
    """Text within a C format string, quotes not included."""
    return c_string(text.replace("%", "%%"))[1:-1]


def comment(text: str) -> str:
    """Text within a C comment: names come from a file and may hold anything."""
    plain = re.sub(r"[^ -~]|\\", "?", text)
    return plain.replace("*/", "* /").replace("/*", "/ *")
