"""A value in JSON that knows where it is, so that every complaint can name the place."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from params.data import Data


class JsonError(Exception):
    """The JSON is not a program this switch can run; the text names the place and the reason."""


class At(Data):
    """A value in the JSON together with the path to it."""

    value: Any
    path: str

    def fail(self, reason: str) -> JsonError:
        """Make (not raise) the error for this place."""
        return JsonError(f"{self.path}: {reason}")

    def __getitem__(self, key: str) -> At:
        members = self.members()
        if key not in members:
            raise self.fail(f"member {key!r} is missing")
        return At(members[key], f"{self.path}.{key}")

    def get(self, key: str, default: Any = None) -> At:
        """A member, or the default in its place."""
        return At(self.members().get(key, default), f"{self.path}.{key}")

    def items(self) -> Iterator[At]:
        """The elements of a list."""
        if not isinstance(self.value, list):
            raise self.fail(f"expected a list, found {kind_of(self.value)}")
        for i, item in enumerate(self.value):
            yield At(item, f"{self.path}[{i}]")

    def pair(self) -> tuple[At, At]:
        """The two elements of a list of two."""
        both = list(self.items())
        if len(both) != 2:
            raise self.fail(f"expected two elements, found {len(both)}")
        return both[0], both[1]

    def members(self) -> dict[str, Any]:
        """The value as an object."""
        if not isinstance(self.value, dict):
            raise self.fail(f"expected an object, found {kind_of(self.value)}")
        return self.value

    def text(self) -> str:
        """The value as a string."""
        if not isinstance(self.value, str):
            raise self.fail(f"expected a string, found {kind_of(self.value)}")
        return self.value

    def number(self) -> int:
        """The value as a number."""
        if not isinstance(self.value, int) or isinstance(self.value, bool):
            raise self.fail(f"expected a number, found {kind_of(self.value)}")
        return self.value

    def size(self, least: int = 0) -> int:
        """The value as a number that counts something."""
        number = self.number()
        if not least <= number <= MAX_SIZE:
            raise self.fail(f"expected a number from {least} to {MAX_SIZE}, found {number}")
        return number

    def flag(self) -> bool:
        """The value as a truth value."""
        if not isinstance(self.value, bool):
            raise self.fail(f"expected true or false, found {kind_of(self.value)}")
        return self.value

    def hex(self) -> int:
        """The value as a hexadecimal number, perhaps negative."""
        text = self.text()
        try:
            return int(text, 16)
        except ValueError:
            raise self.fail(f"expected a hexadecimal number, found {text!r}") from None

    @property
    def is_null(self) -> bool:
        """Whether there is nothing here."""
        return self.value is None


MAX_SIZE = 1 << 28


def kind_of(value: object) -> str:
    """A JSON value's kind, for messages."""
    names = {dict: "an object", list: "a list", str: "a string", bool: "a truth value"}
    return "nothing" if value is None else names.get(type(value), "a number")
