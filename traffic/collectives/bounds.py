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
from traffic.collectives.halving import power_of_two
from traffic.collectives.tree import Tree, double_tree


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


def halving_all_reduce(what: Collective, alpha: float, beta: float) -> float:
    """Halving and doubling among a power of two, and the whole buffer twice for a folded pair."""
    halves = [Rounds(1, what.bytes / 2**k) for k in range(1, what.size.bit_length())]
    fold = [Rounds(1, what.bytes)] * _folds(what)
    return _in_rounds(what, [*fold, *halves, *reversed(halves), *fold], alpha, beta)


def halving_reduce_scatter(what: Collective, alpha: float, beta: float) -> float:
    """Rounds as long as their largest block; a folded pair adds the buffer and one shard."""
    fold = [Rounds(1, what.bytes)] * _folds(what)
    unfold = [Rounds(1, what.bytes / what.size)] * _folds(what)
    return _in_rounds(what, [*fold, *_shard_rounds(what), *unfold], alpha, beta)


def doubling_all_gather(what: Collective, alpha: float, beta: float) -> float:
    """The same backwards, except that an even member need not be sent its own shard."""
    shard = what.bytes / what.size
    fold = [Rounds(1, shard)] * _folds(what)
    unfold = [Rounds(1, what.bytes - shard)] * _folds(what)
    return _in_rounds(what, [*fold, *reversed(_shard_rounds(what)), *unfold], alpha, beta)


def double_binary_tree(what: Collective, alpha: float, beta: float) -> float:
    """The first piece's way up and down the trees, and then the rest of the busiest port's bytes.

    A hop to or from a member with two children takes two pieces' time: one port serves both.
    """
    trees = double_tree(what.size)
    pieces = what.channels * what.pieces_per_channel
    piece = what.bytes / 2 / pieces
    way = max(_way(tree, member, alpha, piece * beta) for tree in trees for member in tree.leaves)
    rest = tree_load(what.size) * what.bytes * (pieces - 1) / pieces
    return 2 * way + rest * beta


def tree_load(members: int) -> float:
    """How many times the buffer the busiest member of a double binary tree sends."""
    trees = double_tree(members)
    return max(
        sum((tree.parent[member] is not None) + len(tree.children[member]) for tree in trees) / 2
        for member in range(members)
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


def _in_rounds(what: Collective, stages: list[Rounds], alpha: float, beta: float) -> float:
    channels = what.channels
    total, hidden = 0.0, 0.0
    for stage in stages:
        if stage.repeat:
            busy = stage.bytes * beta
            total += stage.repeat * max(alpha + busy / channels, busy)
            hidden = min(alpha, busy - busy / channels)
    return total + hidden


def _folds(what: Collective) -> int:
    return int(what.size > power_of_two(what.size))


def _shard_rounds(what: Collective) -> list[Rounds]:
    """Halving over shards, where the first 2r of n members act in pairs."""
    acting = power_of_two(what.size)
    pairs = what.size - acting
    halves = [acting >> k for k in range(1, acting.bit_length())]
    return [Rounds(1, (half + min(half, pairs)) * what.bytes / what.size) for half in halves]


def _way(tree: Tree, member: int, alpha: float, piece: float) -> float:
    """From a member to the root."""
    total = 0.0
    while (parent := tree.parent[member]) is not None:
        total += alpha + len(tree.children[parent]) * piece
        member = parent
    return total
