"""Loops without tables become one action.

BMv2's pipeline is a graph of tables and conditions that a packet should pass once. A loop whose
body applies no table need not be part of it: it becomes a graph of its own, run inside a single
action by jumps. The strongly connected parts of the graph are found by Tarjan's algorithm, here
with an explicit stack. A loop that can be left in several ways notes which one it took.
"""

from __future__ import annotations

from compiler import ir
from compiler import types as t
from compiler.lower.graph import reachable, retarget, successors
from compiler.lower.storage import Storage
from compiler.source import Span

_WAY = t.Bits(8)


def fold_loops(entry: ir.Block, storage: Storage, span: Span) -> ir.Block:
    """Fold every loop that applies no table; the entry may be part of one."""
    outside = ir.Block(end=ir.Jump(entry))
    for part in _components(outside):
        inside = {id(block) for block in part}
        loops = len(part) > 1 or any(s is part[0] for s in successors(part[0]))
        if loops and not any(isinstance(block.end, ir.Apply) for block in part):
            _fold(outside, part, inside, storage, span)
    return outside


def _fold(
    outside: ir.Block, part: list[ir.Block], inside: set[int], storage: Storage, span: Span
) -> None:
    """Put one block in a loop's place, if the loop is entered in one place only.

    What left the loop leaves that block: by one way as it did, by several on the number of the way
    that was noted, compared behind it.
    """
    before = [b for b in reachable(outside) if id(b) not in inside]
    entries = {id(s): s for b in before for s in successors(b) if s is not None and id(s) in inside}
    if len(entries) != 1:
        return
    first = next(iter(entries.values()))
    exits: list[ir.Block | None] = []
    for block in part:
        for target in successors(block):
            if (target is None or id(target) not in inside) and not any(
                target is known for known in exits
            ):
                exits.append(target)
    folded = ir.Block(span=span, inner=first)
    for block in before:
        retarget(block, lambda s: folded if s is first else s)
    if len(exits) <= 1:
        for block in part:
            retarget(block, lambda s: s if s is not None and id(s) in inside else None)
        folded.end = ir.Jump(exits[0] if exits else None)
        return
    way = storage.scalar("way", _WAY)
    stubs = [
        ir.Block(ops=[ir.Operation("assign", (way, ir.Lit(_WAY, i)), span)], end=ir.Jump(None))
        for i in range(len(exits))
    ]

    def leave(target: ir.Block | None) -> ir.Block | None:
        if target is not None and id(target) in inside:
            return target
        return stubs[next(i for i, known in enumerate(exits) if known is target)]

    for block in part:
        retarget(block, leave)
    folded.end = ir.Jump(ir.by_number(way, _WAY, exits, span))


def _components(entry: ir.Block) -> list[list[ir.Block]]:
    """The strongly connected parts, innermost first (Tarjan: SIAM J. Comput. 1972)."""
    order: dict[int, int] = {}
    low: dict[int, int] = {}
    stack: list[ir.Block] = []
    on_stack: set[int] = set()
    found: list[list[ir.Block]] = []
    work: list[tuple[ir.Block, list[ir.Block]]] = []

    def visit(block: ir.Block) -> None:
        order[id(block)] = low[id(block)] = len(order)
        stack.append(block)
        on_stack.add(id(block))
        work.append((block, [s for s in successors(block) if s is not None]))

    visit(entry)
    while work:
        block, rest = work[-1]
        if rest:
            following = rest.pop(0)
            if id(following) not in order:
                visit(following)
            elif id(following) in on_stack:
                low[id(block)] = min(low[id(block)], order[id(following)])
            continue
        work.pop()
        if work:
            parent = work[-1][0]
            low[id(parent)] = min(low[id(parent)], low[id(block)])
        if low[id(block)] == order[id(block)]:
            part: list[ir.Block] = []
            while True:
                member = stack.pop()
                on_stack.discard(id(member))
                part.append(member)
                if member is block:
                    break
            found.append(part)
    return found
