"""What an algorithm should take in the alpha-beta model: alpha a message, beta a byte.

Most algorithms go in rounds, each as long as the largest part a member sends in it. On one channel
a round takes alpha + bytes x beta. On c channels the part is cut into c messages: one's alpha
hides behind the bytes of the others, so a round takes the larger of alpha + bytes x beta / c (the
next message of a channel waits for its last) and bytes x beta (the port is never idle). What hides
in one round shows after the last.

Pipelines take the first piece's whole way and then what the busiest port still has to carry.
"""

from __future__ import annotations

from typing import NamedTuple

from traffic.collectives.collective import BARRIER_BYTES, Collective
from traffic.collectives.halving import round_sizes
from traffic.collectives.tree import Tree, trees_of


class Rounds(NamedTuple):
    """So many rounds in which the busiest member sends so many bytes, over all channels."""

    repeat: int
    bytes: float


def ring_pass(what: Collective, alpha: float, beta: float) -> float:
    """Once around."""
    return _in_rounds(what, [Rounds(what.size - 1, what.bytes / what.size)], alpha, beta)


def ring_all_reduce(what: Collective, alpha: float, beta: float) -> float:
    """Twice around."""
    return _in_rounds(what, [Rounds(2 * (what.size - 1), what.bytes / what.size)], alpha, beta)


def hierarchical(what: Collective, alpha: float, beta: float) -> float:
    """A walk in the node, two on the rail, a walk in the node."""
    local = what.members_per_node
    inside = Rounds(local - 1, what.bytes / local)
    rail = Rounds(2 * (what.size // local - 1), what.bytes / what.size)
    return _in_rounds(what, [inside, rail, inside], alpha, beta)


def halving_pass(what: Collective, alpha: float, beta: float) -> float:
    """The rounds of halving, or of doubling."""
    return _in_rounds(what, _halves(what), alpha, beta)


def halving_all_reduce(what: Collective, alpha: float, beta: float) -> float:
    """The rounds of both."""
    halves = _halves(what)
    return _in_rounds(what, [*reversed(halves), *halves], alpha, beta)


def double_binary_tree(what: Collective, alpha: float, beta: float) -> float:
    """The first piece's way up and down the trees, and then the rest of the busiest port's bytes.

    A hop to or from a member with two children takes two pieces' time: one port serves both.
    """
    trees = trees_of(what)
    pieces = what.channels * what.pieces_per_channel
    piece = what.bytes / 2 / pieces
    way = max(_way(tree, member, alpha, piece * beta) for tree in trees for member in tree.leaves)
    rest = tree_load(trees) * what.bytes * (pieces - 1) / pieces
    return 2 * way + rest * beta


def tree_load(trees: tuple[Tree, ...]) -> float:
    """How many times the buffer the busiest member of a double binary tree sends."""
    return max(
        sum((tree.parent[member] is not None) + len(tree.children[member]) for tree in trees) / 2
        for member in range(len(trees[0].parent))
    )


def staggered(what: Collective, alpha: float, beta: float) -> float:
    """All blocks back to back, and the way of the last."""
    return alpha + (what.size - 1) / what.size * what.bytes * beta


def ring_broadcast(what: Collective, alpha: float, beta: float) -> float:
    """The first piece's way down the chain, and then the rest."""
    piece = what.bytes / (what.pieces_per_channel * what.channels)
    return (what.size - 1) * (alpha + piece * beta) + (what.bytes - piece) * beta


def binomial_broadcast(what: Collective, alpha: float, beta: float) -> float:
    """The whole buffer in every round."""
    return _in_rounds(what, [Rounds((what.size - 1).bit_length(), what.bytes)], alpha, beta)


def dissemination(what: Collective, alpha: float, beta: float) -> float:
    """A token in every round."""
    return (what.size - 1).bit_length() * (alpha + BARRIER_BYTES * beta)


def in_network(what: Collective, alpha: float, beta: float) -> float:
    """Up the tree, and down again: every byte once each way."""
    return 2 * alpha + what.bytes * beta


def _in_rounds(what: Collective, stages: list[Rounds], alpha: float, beta: float) -> float:
    channels = what.channels
    total, hidden = 0.0, 0.0
    for stage in stages:
        if stage.repeat:
            busy = stage.bytes * beta
            total += stage.repeat * max(alpha + busy / channels, busy)
            hidden = min(alpha, busy - busy / channels)
    return total + hidden


def _halves(what: Collective) -> list[Rounds]:
    return [Rounds(1, count * what.bytes / what.size) for count in round_sizes(what.size)]


def _way(tree: Tree, member: int, alpha: float, piece: float) -> float:
    """From a member to the root."""
    total = 0.0
    while (parent := tree.parent[member]) is not None:
        total += alpha + len(tree.children[parent]) * piece
        member = parent
    return total
