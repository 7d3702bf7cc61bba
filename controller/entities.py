"""What a switch can be told, as plain values that can be compared.

A plan for a switch is a set of these. Comparing what a switch has with what it should have is
comparing values; only ``client`` turns them into P4Runtime messages.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping

from params.data import Data

Match = int | tuple[int, int]  # exact; or value and mask (ternary), or value and length (lpm)


class TableEntry(Data):
    """An entry of a table; of ternary ones the highest priority wins."""

    table: str
    match: tuple[tuple[str, Match], ...]
    action: str
    params: tuple[tuple[str, int], ...] = ()
    priority: int = 0

    @property
    def key(self) -> Hashable:
        """What two entries cannot have in common on one switch."""
        return self.table, frozenset(self.match), self.priority


class DefaultAction(Data):
    """What a table does when no entry matches; for a table without a key, always."""

    table: str
    action: str
    params: tuple[tuple[str, int], ...] = ()

    @property
    def key(self) -> Hashable:
        """What two defaults cannot have in common on one switch."""
        return "default", self.table


class CloneSession(Data):
    """Where clones of a session go, and by which queue."""

    session: int
    port: int
    priority: int = 0

    @property
    def key(self) -> Hashable:
        """What two sessions cannot have in common on one switch."""
        return "session", self.session


class MulticastGroup(Data):
    """The ports that each get a copy."""

    group: int
    ports: tuple[int, ...]

    @property
    def key(self) -> Hashable:
        """What two groups cannot have in common on one switch."""
        return "group", self.group


Entity = TableEntry | DefaultAction | CloneSession | MulticastGroup
SwitchPlan = tuple[Entity, ...]


def mac_bits(text: str) -> int:
    """A MAC address as tables have it."""
    return int(text.replace(":", ""), 16)


def mac_text(bits: int) -> str:
    """The same as people write it."""
    return bits.to_bytes(6, "big").hex(":")


def entry(
    table: str, match: Mapping[str, Match], action: str, rank: int = 0, /, **params: int
) -> TableEntry:
    """A table entry, its keys in the order of their names; ``rank`` is its priority."""
    return TableEntry(table, tuple(sorted(match.items())), action, tuple(params.items()), rank)


def default(table: str, action: str, /, **params: int) -> DefaultAction:
    """A default action."""
    return DefaultAction(table, action, tuple(params.items()))


class Changes(Data):
    """What turns one plan into another; an order that never leaves a reference dangling."""

    add: tuple[Entity, ...]
    change: tuple[Entity, ...]
    remove: tuple[Entity, ...]

    def __len__(self) -> int:
        return len(self.add) + len(self.change) + len(self.remove)


def changes(present: SwitchPlan, wanted: SwitchPlan) -> Changes:
    """What to add, to change and to remove, so that a switch has what is wanted and no more.

    Routes are the way in to all else: they come last, and go first.
    """
    had = {entity.key: entity for entity in present}
    wants = {entity.key: entity for entity in wanted}
    added = (entity for key, entity in wants.items() if key not in had)
    return Changes(
        add=tuple(sorted(added, key=_is_route)),
        change=tuple(e for key, e in wants.items() if key in had and had[key] != e),
        # A default cannot be removed, only replaced: one that is not planned is left alone.
        remove=tuple(
            sorted(
                (
                    entity
                    for key, entity in had.items()
                    if key not in wants and not isinstance(entity, DefaultAction)
                ),
                key=lambda entity: not _is_route(entity),
            )
        ),
    )


def _is_route(entity: Entity) -> bool:
    return isinstance(entity, TableEntry) and entity.table.endswith("_routes")
