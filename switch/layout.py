"""How keys, action parameters and table entries lie in memory.

The generated C, the run-time and the Python binding all go by this one description: a key is packed
into 64-bit words, parameters into a C struct, an entry is a header, the key words, what the table
measures per entry, and the parameters. Everything is little-endian, so a key or a parameter block
is also one large integer, which is how Python packs it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from params.data import Data

if TYPE_CHECKING:
    from collections.abc import Sequence

    from .bmv2 import Action, Program, Table

WORD = 64
ENTRY_HEAD = 8  # action and position
COUNTER_BYTES = 16
TIME_BYTES = 8
METER_BYTES = 72  # sizeof(struct sw_meter)
ARRIVAL_BYTES = 16_384  # sizeof(struct arrival_times), as its header asserts
LINE = 64


class KeyLayout(Data):
    """Where each field of a key lies: the place of its lowest bit, and how many words there are."""

    shifts: tuple[int, ...]
    words: int


def key_layout(widths: Sequence[int]) -> KeyLayout:
    """Pack fields in order; one of up to 64 bits stays in one word, a wider one has words alone."""
    shifts = []
    bit = 0
    for width in widths:
        if width > WORD or bit % WORD + width > WORD:
            bit = -(-bit // WORD) * WORD
        shifts.append(bit)
        bit += width if width <= WORD else -(-width // WORD) * WORD
    return KeyLayout(tuple(shifts), -(-bit // WORD))


SMALL_KEY_BITS = 16  # SW_DIRECT_BITS in rt/table.h


def is_small(widths: Sequence[int]) -> bool:
    """Whether an exact table has a place for every key it may be asked for."""
    return sum(widths) <= SMALL_KEY_BITS


KEY_WORDS_MAX = 64  # TABLE_KEY_WORDS_MAX in rt/table.h


def cell_bytes(width: int) -> int:
    """The bytes a value takes in memory: 1, 2, 4, 8, or whole words."""
    for size in (1, 2, 4, 8):
        if width <= size * 8:
            return size
    return -(-width // WORD) * 8


class ParamLayout(Data):
    """The offset of each parameter, and the size of all, in bytes."""

    offsets: tuple[int, ...]
    size: int


def param_layout(widths: Sequence[int]) -> ParamLayout:
    """Lay parameters out as a C compiler does, and pad to whole words."""
    offsets = []
    at = 0
    for width in widths:
        size = cell_bytes(width)
        align = min(size, 8)
        at = -(-at // align) * align
        offsets.append(at)
        at += size
    return ParamLayout(tuple(offsets), -(-at // 8) * 8)


class EntryLayout(Data):
    """Offsets within a table entry (0: it has none) and its size, in bytes."""

    order_at: int
    counter_at: int
    hit_at: int
    meter_at: int
    data_at: int
    stride: int


def uses_trie(table: Table, widths: Sequence[int]) -> bool:
    """Whether a table is found by the trie: one prefix of up to 64 bits."""
    return table.match == "lpm" and len(widths) == 1 and widths[0] <= WORD


def is_warmed(program: Program, table: Table) -> bool:
    """Whether what packets will look for in a table is looked up ahead, for many at once."""
    widths = [program.field_of(k.target).width for k in table.keys]
    is_hashed = bool(widths) and table.match == "exact" and not is_small(widths)
    return is_hashed or uses_trie(table, widths)


def entry_layout(program: Program, table: Table) -> EntryLayout:
    """Lay out a table's entries."""
    widths = [program.field_of(k.target).width for k in table.keys]
    at = ENTRY_HEAD + 8 * key_layout(widths).words

    def place(size: int, wanted: bool) -> int:
        nonlocal at
        if not wanted:
            return 0
        here, at = at, at + size
        return here

    has_counters = table.with_counters or any(
        c.binding == table.name for c in program.counters.values()
    )
    order_at = place(8, table.match != "exact" and not uses_trie(table, widths))
    counter_at = place(COUNTER_BYTES, has_counters)
    hit_at = place(TIME_BYTES, table.support_timeout)
    meter_at = place(METER_BYTES, table.direct_meter is not None)
    sizes = [action_size(program.actions[a]) for a in table.actions]
    if table.default is not None:
        sizes.append(action_size(program.actions[table.default.action]))
    size = 0 if table.profile else max(sizes, default=0)
    return EntryLayout(order_at, counter_at, hit_at, meter_at, at, unstraddled(at + size))


def unstraddled(size: int) -> int:
    """A size at which items of an array do not lie across cache lines without need."""
    for whole in (16, 32, LINE):
        if size <= whole:
            return whole
    return -(-size // LINE) * LINE


def action_size(action: Action) -> int:
    """The bytes of an action's parameters."""
    return param_layout([p.width for p in action.params]).size


def profile_actions(program: Program, name: str) -> list[int]:
    """The actions that members of a profile may name: those of its tables."""
    offered = (a for t in program.tables if t.profile == name for a in t.actions)
    return list(dict.fromkeys(offered))


def member_stride(program: Program, name: str) -> int:
    """The size of a member of a profile."""
    sizes = (action_size(program.actions[a]) for a in profile_actions(program, name))
    return ENTRY_HEAD + max(sizes, default=0)
