"""Double binary tree all-reduce: two trees, half of the data each, both pipelined.

In one binary tree half of the members are leaves, which send what the others forward twice: inner
members are busy while leaves idle. So there are two trees, built so that no member is an inner
node of both; every member then sends and receives at most twice the buffer, as few bytes as a
ring's 2(n-1)/n for many members, in a number of hops that grows with log n.

The first tree numbers the members in order, from 1: leaves are the odd places, and a place whose
lowest set bit is b hangs b above the leaves. The second is its mirror image if n is even, or the
same one place on if n is odd; either way odd places meet even ones.

Where nodes are told, as NCCL has it, only one member of each is in the trees, on every channel
another, and the rest of its node hang below it in a chain.

The trees have queue pairs of their own, or a piece of the one could hold up the other: on c
channels the second tree uses the numbers from c on.

Each half is cut into pieces that climb to the root, reduced on the way, and descend again. Left
alone a leaf would post all its pieces at once and starve what it forwards as an inner node of the
other tree, so no more than an eighth of an edge's pieces are under way, and at most `MAX_WINDOW`:
a send waits for the one that many before it.
"""

from __future__ import annotations

from params.data import Data
from traffic.collectives.collective import Collective, Even
from traffic.collectives.draft import Draft
from traffic.collectives.schedule import Mode

MAX_WINDOW = 8


class Tree(Data):
    """A binary tree of members: parents and children by member, and an order parents first."""

    parent: tuple[int | None, ...]
    children: tuple[tuple[int, ...], ...]
    descending: tuple[int, ...]

    @property
    def root(self) -> int:
        """The member all pieces climb to."""
        return self.descending[0]

    @property
    def leaves(self) -> list[int]:
        """The members without children."""
        return [member for member, below in enumerate(self.children) if not below]


def double_tree(members: int, node: int = 1, channel: int = 0) -> tuple[Tree, Tree]:
    """Both trees of this many members, of which a channel's heads of nodes are in the trees."""
    first = list(range(channel % node, members, node))
    second = first[1:] + first[:1] if len(first) % 2 else first[::-1]
    return _tree(first, node), _tree(second, node)


def trees_of(collective: Collective, channel: int = 0) -> tuple[Tree, Tree]:
    """Those of a channel of a collective."""
    return double_tree(collective.size, collective.node_size or 1, channel)


def layout(collective: Collective) -> Even:
    """Two trees' pieces on every channel."""
    return Even(collective.bytes, 2 * collective.channels * collective.pieces_per_channel)


def all_reduce(draft: Draft) -> None:
    """Climb, reducing, and descend, copying, piece by piece in both trees."""
    channels = draft.collective.channels
    flows = [
        _Flow(draft, tree, channel + number * channels)
        for channel in range(channels)
        for number, tree in enumerate(trees_of(draft.collective, channel))
    ]
    for piece in range(draft.collective.pieces_per_channel):
        for place, flow in enumerate(flows):
            flow.piece(piece * len(flows) + place)


class _Flow:
    """The pieces of one tree on one channel."""

    def __init__(self, draft: Draft, tree: Tree, channel: int) -> None:
        self._draft = draft
        self._tree = tree
        self._channel = channel
        self._window = max(2, min(MAX_WINDOW, draft.collective.pieces_per_channel // 8))
        self._under_way: dict[tuple[int, int], list[int]] = {}

    def piece(self, chunk: int) -> None:
        """Send one piece up and down."""
        tree = self._tree
        climbed: list[list[int]] = [[] for _ in tree.parent]
        for member in reversed(tree.descending):
            parent = tree.parent[member]
            if parent is not None:
                number = self._send(member, parent, chunk, Mode.REDUCE, climbed[member])
                climbed[parent].append(number)
        arrived = {tree.root: climbed[tree.root]}
        for member in tree.descending:
            for child in tree.children[member]:
                number = self._send(member, child, chunk, Mode.COPY, arrived[member])
                arrived[child] = [number]

    def _send(self, src: int, dst: int, chunk: int, mode: Mode, after: list[int]) -> int:
        under_way = self._under_way.setdefault((src, dst), [])
        credit = under_way[:1] if len(under_way) == self._window else []
        number = self._draft.send(
            src, dst, chunk, mode=mode, channel=self._channel, after=[*after, *credit]
        )
        under_way.append(number)
        del under_way[: -self._window]
        return number


def _tree(order: list[int], node: int) -> Tree:
    """The in-order tree of members given in order, each with the rest of its node in a chain."""
    members = node * len(order)
    parent: list[int | None] = [None] * members
    children: list[list[int]] = [[] for _ in range(members)]
    descending: list[int] = []

    def hang(low: int, high: int, above: int | None) -> None:
        """Make a tree of places low to high (from 1) and hang it below a member."""
        if low > high:
            return
        top = low - 1 + (1 << ((high - low + 1).bit_length() - 1))
        member = order[top - 1]
        descending.append(member)
        parent[member] = above
        if above is not None:
            children[above].append(member)
        hang(low, top - 1, member)
        hang(top + 1, high, member)

    hang(1, len(order), None)
    for head in list(descending):
        above, first = head, head - head % node
        for place in range(1, node):
            member = first + (head + place) % node
            descending.append(member)
            parent[member] = above
            children[above].append(member)
            above = member
    return Tree(tuple(parent), tuple(map(tuple, children)), tuple(descending))
