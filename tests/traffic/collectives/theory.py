"""The bytes each member sends, as the literature has them, in exact fractions of the buffer.

Written from the definitions of the algorithms, not from the code that carries them out.
"""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction

BARRIER_TOKEN = 8


def sent(op: str, algorithm: str, n: int, size: int, *, node: int, root: int = 0) -> list[Fraction]:
    """What every member sends in all."""
    return _RULES[op, algorithm](n, Fraction(size), node, root)


def _ring(turns: int) -> Callable[[int, Fraction, int, int], list[Fraction]]:
    return lambda n, size, _node, _root: [turns * (n - 1) * size / n] * n


def _hierarchical(n: int, size: Fraction, node: int, _: int) -> list[Fraction]:
    nodes = n // node
    each = 2 * (node - 1) * size / node + 2 * (nodes - 1) * size / n
    return [each] * n


def _acting(n: int) -> int:
    power = 1
    while power * 2 <= n:
        power *= 2
    return power


def _halving_doubling(n: int, size: Fraction, _node: int, _root: int) -> list[Fraction]:
    """Pairs fold the whole buffer over and back; the acting members swap all but one block."""
    acting = _acting(n)
    swap = 2 * (acting - 1) * size / acting
    folded = 2 * (n - acting)
    return [
        size if member < folded and member % 2 == 0 else swap + (size if member < folded else 0)
        for member in range(n)
    ]


def _shard_counts(n: int) -> list[list[int]]:
    """By acting member, the members it acts for."""
    acting = _acting(n)
    pairs = n - acting
    return [[2 * p, 2 * p + 1] for p in range(pairs)] + [[m] for m in range(2 * pairs, n)]


def _halving(n: int, size: Fraction, _node: int, _root: int) -> list[Fraction]:
    """Each acting member sends everyone else's shards but in halves: all it does not keep."""
    totals = [Fraction(0)] * n
    for acts_for in _shard_counts(n):
        totals[acts_for[-1]] += (n - len(acts_for)) * size / n
        if len(acts_for) == 2:
            totals[acts_for[0]] += size
            totals[acts_for[1]] += size / n
    return totals


def _doubling(n: int, size: Fraction, _node: int, _root: int) -> list[Fraction]:
    """In round k an acting member sends all shards its group of 2^k has."""
    counts = _shard_counts(n)
    totals = [Fraction(0)] * n
    for place, acts_for in enumerate(counts):
        group = 1
        while group < len(counts):
            first = place // group * group
            totals[acts_for[-1]] += sum(map(len, counts[first : first + group])) * size / n
            group *= 2
        if len(acts_for) == 2:
            totals[acts_for[0]] += size / n
            totals[acts_for[1]] += (n - 1) * size / n
    return totals


def _all_to_all(n: int, size: Fraction, _node: int, _root: int) -> list[Fraction]:
    return [(n - 1) * size / n] * n


def _chain(n: int, size: Fraction, _node: int, root: int) -> list[Fraction]:
    last = (root - 1) % n
    return [Fraction(0) if member == last else size for member in range(n)]


def _binomial(n: int, size: Fraction, _node: int, root: int) -> list[Fraction]:
    """Place p, counted from the root, joins in the round of its highest bit and sends after it."""
    totals = [Fraction(0)] * n
    for place in range(1, n):
        parent = place - (1 << (place.bit_length() - 1))
        totals[(parent + root) % n] += size
    return totals


def _barrier(n: int, _size: Fraction, _node: int, _root: int) -> list[Fraction]:
    return [Fraction(BARRIER_TOKEN * (n - 1).bit_length())] * n


_RULES: dict[tuple[str, str], Callable[[int, Fraction, int, int], list[Fraction]]] = {
    ("all-reduce", "ring"): _ring(2),
    ("all-reduce", "hierarchical"): _hierarchical,
    ("all-reduce", "halving-doubling"): _halving_doubling,
    ("reduce-scatter", "ring"): _ring(1),
    ("reduce-scatter", "halving"): _halving,
    ("all-gather", "ring"): _ring(1),
    ("all-gather", "doubling"): _doubling,
    ("all-to-all", "pairwise"): _all_to_all,
    ("all-to-all", "staggered"): _all_to_all,
    ("broadcast", "ring"): _chain,
    ("broadcast", "binomial"): _binomial,
    ("barrier", "dissemination"): _barrier,
}
