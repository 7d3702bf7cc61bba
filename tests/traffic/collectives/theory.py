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
    ("all-reduce", "halving-doubling"): _ring(2),
    ("reduce-scatter", "ring"): _ring(1),
    ("reduce-scatter", "halving"): _ring(1),
    ("all-gather", "ring"): _ring(1),
    ("all-gather", "doubling"): _ring(1),
    ("all-to-all", "pairwise"): _all_to_all,
    ("all-to-all", "staggered"): _all_to_all,
    ("broadcast", "ring"): _chain,
    ("broadcast", "binomial"): _binomial,
    ("barrier", "dissemination"): _barrier,
}
