"""Which word means which declaration: noted while a program is checked, for editors who ask.

Places are offsets, where a name begins in the preprocessed text; of one written `.name`, those of
the dot. What is declared is the checker's own: a variable, a field, a table, a type's entry.
"""

from __future__ import annotations

from dataclasses import field

from compiler import types as t
from compiler.source import Span
from params.data import Data


class Member(Data, eq=False):
    """A member of an enum, an error, or a match kind; `of` says of what it is one."""

    name: str
    of: str
    type: t.Type | None = None
    value: int | None = None


class Names(Data, frozen=False):
    """What names mean, by where they stand."""

    uses: dict[int, int] = field(default_factory=dict)  # and where what they mean is declared
    declared: dict[int, object] = field(default_factory=dict)
    _places: dict[int, int] = field(default_factory=dict)  # by identity of what is declared
    _kept: list[object] = field(default_factory=list)  # so that no identity is used again
    _members: dict[tuple[str, str], int] = field(default_factory=dict)
    _literals: dict[int, tuple[tuple[str, Span], ...]] = field(default_factory=dict)

    def declare(self, span: Span, what: object) -> None:
        """A name that stands there declares this."""
        self.declared[span.start] = what
        self._places[id(what)] = span.start
        self._kept.append(what)
        if isinstance(what, Member):
            self._members.setdefault((what.of, what.name), span.start)

    def mean(self, span: Span, what: object) -> None:
        """A name that stands there means this."""
        place = self._places.get(id(what))
        if place is not None:
            self.uses[span.start] = place

    def lead(self, span: Span, to: Span | None) -> None:
        """A name that stands there means what is declared there."""
        if to is not None:
            self.uses[span.start] = to.start

    def mean_member(self, span: Span, of: str, name: str) -> None:
        """A name that stands there means a member of an enum, an error or a match kind."""
        place = self._members.get((of, name))
        if place is not None:
            self.uses[span.start] = place

    def await_fields(self, span: Span, fields: tuple[tuple[str, Span], ...]) -> None:
        """Fields named in a structure whose type is not known yet."""
        self._literals[span.start] = fields

    def lead_fields(self, span: Span, by_name: dict[str, t.Field]) -> None:
        """The type of a structure that stands there is known now."""
        for name, where in self._literals.get(span.start, ()):
            if name in by_name:
                self.lead(where, by_name[name].span)
