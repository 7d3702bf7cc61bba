"""Tables applied in more than one place.

BMv2 knows a table once. So all places lead to one node: each notes its own number in a field,
and behind the table the number tells where to go on. Only places that go different ways need
this; it costs nothing otherwise.
"""

from __future__ import annotations

from compiler import ir
from compiler import types as t
from compiler.diagnostics import Diagnostics
from compiler.lower.graph import reachable
from compiler.lower.storage import Storage

_NUMBER = t.Bits(16)


def share(entry: ir.Block, storage: Storage, diagnostics: Diagnostics) -> None:
    """Join the places where the same table is applied."""
    places: dict[int, list[ir.Block]] = {}
    for block in reachable(entry):
        if isinstance(block.end, ir.Apply):
            places.setdefault(id(block.end.table), []).append(block)
    for blocks in places.values():
        if len(blocks) > 1:
            _join(blocks, storage, diagnostics)


def _join(blocks: list[ir.Block], storage: Storage, diagnostics: Diagnostics) -> None:
    """One node for all places of a table; behind each of its edges the places part again."""
    ends = [block.end for block in blocks if isinstance(block.end, ir.Apply)]
    table = ends[0].table
    span = ends[0].span or table.span
    by_hit = any(end.by_hit for end in ends)
    by_action = any(end.by_action for end in ends)
    if by_hit and by_action:
        diagnostics.error(
            "applied-twice",
            span,
            f"table '{table.name}' is asked for hit in one place and for action_run in another",
            "ask for action_run in both",
        )
        return
    number = storage.scalar("place", _NUMBER)
    shared = ir.Apply(table, None, span=span)
    node = ir.Block(end=shared, span=span)

    def ways(targets: list[ir.Block | None]) -> ir.Block | None:
        """Where to go on, by the number of the place."""
        if all(target is targets[0] for target in targets):
            return targets[0]
        return ir.by_number(number, _NUMBER, targets, span)

    if by_hit:
        shared.by_hit = True
        shared.hit = ways([end.hit if end.by_hit else end.after for end in ends])
        shared.miss = ways([end.miss if end.by_hit else end.after for end in ends])
    elif by_action:
        for action in table.actions:
            shared.by_action[action.name] = ways(
                [end.by_action.get(action.name, end.after) for end in ends]
            )
    shared.after = ways([end.after for end in ends])
    for index, block in enumerate(blocks):
        block.ops.append(ir.Operation("assign", (number, ir.Lit(_NUMBER, index)), span))
        block.end = ir.Jump(node)
