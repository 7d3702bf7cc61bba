"""Where a check has come to, to go back there: for editors, whose programs change near their end.

All that a check has found by then is copied, and put back as copies again: what was made of it
meanwhile stays as it is for whoever has it. Of the entries of the top level only that is copied
which changes after they are declared: whether they are used, and what generic ones were made into.
Whatever else an entry holds is settled with its declaration.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from copy import copy
from typing import Any, TypeVar

from compiler import core as c
from compiler.check.base import (
    BlockEntry,
    Constant,
    Context,
    FunctionEntry,
    GenericStruct,
    Overloads,
)
from compiler.check.names import Names
from compiler.diagnostics import Diagnostics
from params.data import Data

_T = TypeVar("_T")
_CHANGING: dict[type, tuple[str, ...]] = {
    Constant: ("used",), c.Instance: ("used",), c.Action: ("used",), GenericStruct: ("made",),
    Overloads: ("methods", "functions"), FunctionEntry: ("used", "versions"),
    BlockEntry: ("used", "versions"),
}  # fmt: skip


class Mark(Data):
    """What a check knew between two declarations of the top level."""

    _context: dict[str, Any]
    _entries: tuple[tuple[object, str, Any], ...]

    @classmethod
    def of(cls, context: Context) -> Mark:
        """Where a check is."""
        return cls(_apart(vars(context)), tuple(_changing(context.scopes[0].values())))

    def restore(self, context: Context) -> None:
        """Have a check be there again."""
        vars(context).update(_apart(self._context))
        for entry, name, value in self._entries:
            setattr(entry, name, _copied(value))


def _apart(context: dict[str, Any]) -> dict[str, Any]:
    made = {name: _copied(value) for name, value in context.items()}
    made["scopes"] = [copy(scope) for scope in made["scopes"]]
    return made


def _copied(value: _T) -> _T:
    """A copy with containers of its own; what holds none and is none stays."""
    if isinstance(value, list | dict | set):
        return copy(value)
    if isinstance(value, Names | c.Program | Diagnostics):
        made = copy(value)
        for name in getattr(value, "__slots__", None) or vars(value):
            setattr(made, name, _copied(getattr(value, name)))
        return made
    return value


def _changing(entries: Iterable[object]) -> Iterator[tuple[object, str, Any]]:
    for entry in entries:
        for name in _CHANGING.get(type(entry), ()):
            yield entry, name, _copied(getattr(entry, name))
        if isinstance(entry, Overloads):
            yield from _changing(entry.functions)
