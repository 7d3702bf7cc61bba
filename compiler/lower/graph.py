"""Tidying the graph of blocks: empty blocks vanish, chains become one block.

Fewer blocks mean fewer actions and conditions in BMv2, and straight-line code that stays in one
action stays atomic there.
"""

from __future__ import annotations

from collections.abc import Callable

from compiler import ir


def successors(block: ir.Block) -> list[ir.Block | None]:
    """Where a block may go."""
    end = block.end
    if isinstance(end, ir.Jump):
        return [end.target]
    if isinstance(end, ir.Branch):
        return [end.yes, end.no]
    if isinstance(end, ir.Apply):
        if end.by_hit:
            return [end.hit, end.miss]
        if end.by_action:
            return [*end.by_action.values(), end.after]
        return [end.after]
    if isinstance(end, ir.Select):
        return [case.target for case in end.cases]
    return []


def reachable(entry: ir.Block | None) -> list[ir.Block]:
    """All blocks that can be reached, in the order a reader would expect."""
    found: list[ir.Block] = []
    seen: set[int] = set()
    work = [entry]
    while work:
        block = work.pop()
        if block is None or id(block) in seen:
            continue
        seen.add(id(block))
        found.append(block)
        work.extend(reversed(successors(block)))
    return found


def _thread(block: ir.Block | None) -> ir.Block | None:
    """Skip blocks that do nothing but jump."""
    seen: set[int] = set()
    while block is not None and not block.ops and not block.inner and id(block) not in seen:
        seen.add(id(block))
        end = block.end
        if end is None:
            return None
        if not isinstance(end, ir.Jump):
            return block
        block = end.target
    if block is not None and id(block) in seen:
        return None
    return block


def retarget(block: ir.Block, change: Callable[[ir.Block | None], ir.Block | None]) -> None:
    """Lead every way out of a block elsewhere."""
    end = block.end
    if end is None:
        block.end = ir.Jump(change(None))
    elif isinstance(end, ir.Jump):
        end.target = change(end.target)
    elif isinstance(end, ir.Branch):
        end.yes, end.no = change(end.yes), change(end.no)
    elif isinstance(end, ir.Apply):
        end.after, end.hit, end.miss = change(end.after), change(end.hit), change(end.miss)
        end.by_action = {name: change(target) for name, target in end.by_action.items()}
    elif isinstance(end, ir.Select):
        end.cases = [
            ir.SelectCase(case.values, case.value_set, change(case.target)) for case in end.cases
        ]


def _tidy(block: ir.Block) -> bool:
    """Skip empty blocks on every way out, and drop choices that make no difference.

    True if that left the block itself empty: then those before it are to skip it too.
    """
    retarget(block, _thread)
    end = block.end
    if isinstance(end, ir.Branch) and end.yes is end.no:
        block.end = ir.Jump(end.yes)
        return not (block.ops or block.inner)
    if isinstance(end, ir.Apply):
        _simplify_apply(end)
    return False


def _simplify_apply(end: ir.Apply) -> None:
    """An apply whose ways all lead to one place needs no ways."""
    if end.by_hit and end.hit is end.miss:
        end.by_hit, end.after = False, end.hit
        end.hit = end.miss = None
    if end.by_action:
        targets = list(end.by_action.values())
        if all(target is end.after for target in targets):
            end.after, end.by_action = targets[0], {}


def simplify(entry: ir.Block, *, merge_named: bool = True) -> ir.Block | None:
    """Tidy the graph from `entry`; the new entry."""
    first: ir.Block | None = entry
    is_stable = False
    while not is_stable:
        if first is not None and (merge_named or not first.name):
            first = _thread(first)
        # From the end on, so that most of what becomes empty is known to those before it.
        emptied = [_tidy(block) for block in reversed(reachable(first))]
        is_stable = not any(emptied)
    blocks = reachable(first)
    counts: dict[int, int] = {}
    for block in blocks:
        for target in successors(block):
            if target is not None:
                counts[id(target)] = counts.get(id(target), 0) + 1
    for block in blocks:
        while isinstance(block.end, ir.Jump):
            target = block.end.target
            if (
                target is None
                or target.inner
                or counts.get(id(target)) != 1
                or target is block
                or (target is first or (target.name and not merge_named))
            ):
                break
            block.ops.extend(target.ops)
            block.end = target.end
            counts[id(target)] = 0
    return first
