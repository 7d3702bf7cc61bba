"""A collective: what is to be computed, by which algorithm, among whom, in which chunks.

The buffer of a collective is cut into numbered chunks. A *layout* says how many there are and how
many bytes a run of them has; algorithms speak only of chunks, so their bytes add up by
construction, and `traffic.collectives.symbolic` can say what each chunk must hold in the end.
Sizes follow nccl-tests: ``bytes`` is the whole buffer of a rank, the larger of its input and its
output.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from itertools import accumulate
from typing import Protocol

from params.data import Data
from traffic.collectives.errors import AlgorithmError, RankError, SizeError
from traffic.collectives.nccl import COSTS, RINGS, SWITCHES, TREES, Cost, NcclProtocol

MAX_BYTES = 1 << 40
MAX_CHANNELS = 64
MAX_PIECES = 4096
IN_NETWORK = "in-network"
BARRIER_BYTES = 8  # a barrier's token: any message will do, an empty one would hide in counters
_PIECE_BYTES = 1 << 17
_DEFAULT_PIECES = 64


class Collective(Data):
    """One collective operation. Members are numbered by their place in ``ranks``."""

    op: str
    algorithm: str
    bytes: int
    ranks: tuple[int, ...]
    channels: int = 1
    root: int = 0  # a member's number, for broadcast
    node_size: int | None = None  # ranks of one node; None: up to 8 that divide
    pieces: int | None = None  # per channel, for what is pipelined; None: about 128 KiB each
    protocol: NcclProtocol | None = None  # of NCCL; None: messages cost nothing but their bytes

    @property
    def size(self) -> int:
        """How many members there are."""
        return len(self.ranks)

    @property
    def members_per_node(self) -> int:
        """The node size in force."""
        if self.node_size is not None:
            return self.node_size
        return max(size for size in range(1, 9) if self.size % size == 0)

    @property
    def cost(self) -> Cost | None:
        """What each message costs beside its bytes."""
        if self.protocol is None:
            return None
        kind = TREES if "tree" in self.algorithm else RINGS
        return COSTS[self.protocol, SWITCHES if self.algorithm == IN_NETWORK else kind]

    @cached_property
    def _place(self) -> dict[int, int]:
        return {rank: place for place, rank in enumerate(self.ranks)}

    def are_together(self, src: int, dst: int) -> bool:
        """Whether two ranks are of one node."""
        node = self.members_per_node
        return self._place[src] // node == self._place[dst] // node

    def sharers(self, src: int, dst: int) -> int:
        """How many channels share a port evenly, each of which takes no more than its part: of a
        ring under NCCL's protocols; otherwise 1."""
        if self.protocol is None or self.algorithm != "ring":
            return 1
        if self.are_together(src, dst) or self.node_size is None:
            return self.channels
        return -(-self.channels // self.node_size)

    @property
    def pieces_per_channel(self) -> int:
        """The pipeline's length in force."""
        if self.pieces is not None:
            return self.pieces
        share = self.bytes // self.channels
        return max(1, min(_DEFAULT_PIECES, share // _PIECE_BYTES))


class Layout(Protocol):
    """How a buffer is cut into chunks."""

    @property
    def count(self) -> int:
        """How many chunks there are."""

    def bytes(self, first: int, count: int) -> int:
        """The bytes of a run of chunks."""


class Even:
    """A buffer cut evenly: neighbouring chunks differ by a byte at most."""

    def __init__(self, total: int, count: int) -> None:
        _require_bytes(total, count)
        self.count = count
        self._total = total

    def bytes(self, first: int, count: int) -> int:
        """The bytes of a run of chunks."""
        return self._total * (first + count) // self.count - self._total * first // self.count


class Sharded:
    """A buffer of shards, each cut among the channels; chunk = channel x shards + shard.

    So the neighbouring shards of one channel are neighbours, and travel together.
    """

    def __init__(self, total: int, shards: int, channels: int) -> None:
        _require_bytes(total, shards * channels)
        self.count = shards * channels
        cuts = Even(total, shards)
        sizes = (
            Even(cuts.bytes(shard, 1), channels).bytes(channel, 1)
            for channel in range(channels)
            for shard in range(shards)
        )
        self._edges = list(accumulate(sizes, initial=0))

    def bytes(self, first: int, count: int) -> int:
        """The bytes of a run of chunks."""
        return self._edges[first + count] - self._edges[first]


class Exchange:
    """Every member's block for every member; chunk = (src x members + dst) x channels + channel."""

    def __init__(self, total: int, members: int, channels: int) -> None:
        _require_bytes(total, members * channels)
        self.count = members * members * channels
        cuts = Even(total, members)
        self._sizes = [
            Even(cuts.bytes(dst, 1), channels).bytes(channel, 1)
            for dst in range(members)
            for channel in range(channels)
        ]

    def bytes(self, first: int, count: int) -> int:
        """The bytes of a run of chunks."""
        sizes = self._sizes
        return sum(sizes[chunk % len(sizes)] for chunk in range(first, first + count))


def check_members(ranks: Sequence[int], world: int | None) -> None:
    """Refuse a list of ranks with duplicates, strangers or, unless a world is given, gaps."""
    for rank in ranks:
        if not isinstance(rank, int) or isinstance(rank, bool) or rank < 0:
            raise RankError(f"{rank!r} is not a rank", "ranks are numbered from 0")
    if len(ranks) < 2:
        raise RankError("a collective needs at least two ranks", "name more of them")
    seen: set[int] = set()
    for rank in ranks:
        if rank in seen:
            raise RankError(f"rank {rank} is named twice", "name every rank once")
        seen.add(rank)
    highest = max(ranks)
    if world is None and highest >= len(ranks):
        missing = next(rank for rank in range(highest) if rank not in seen)
        raise RankError(
            f"the ranks up to {highest} leave out {missing}",
            f"number them 0 to {len(ranks) - 1}, or say how many ranks the world has"
            " if a part of it is meant",
        )
    if world is not None and highest >= world:
        raise RankError(f"there is no rank {highest}", f"the world has ranks 0 to {world - 1}")


def check_amounts(collective: Collective) -> None:
    """Refuse sizes and counts that make no sense."""
    if collective.op == "barrier":
        if collective.bytes:
            raise SizeError("a barrier carries no data", "leave its bytes out")
    elif not 1 <= collective.bytes <= MAX_BYTES:
        raise SizeError(
            f"{collective.op} of {collective.bytes} bytes", f"give 1 to {MAX_BYTES} bytes"
        )
    if not 1 <= collective.channels <= MAX_CHANNELS:
        raise SizeError(f"{collective.channels} channels", f"give 1 to {MAX_CHANNELS}")
    if collective.pieces is not None and not 1 <= collective.pieces <= MAX_PIECES:
        raise SizeError(f"{collective.pieces} pieces", f"give 1 to {MAX_PIECES}")
    if not 0 <= collective.root < collective.size:
        raise RankError(
            f"the root {collective.root} is no member", f"members are 0 to {collective.size - 1}"
        )
    flagged = (NcclProtocol.LL, NcclProtocol.LL128)
    if collective.algorithm == IN_NETWORK and collective.protocol in flagged:
        raise AlgorithmError(
            f"{IN_NETWORK} with protocol {collective.protocol}", "only simple goes through switches"
        )
    node = collective.node_size
    if node is not None and (node < 1 or collective.size % node):
        raise RankError(
            f"{collective.size} ranks do not divide into nodes of {node}",
            f"use a node size that divides {collective.size}",
        )


def _require_bytes(total: int, chunks: int) -> None:
    if total < chunks:
        raise SizeError(
            f"{total} bytes cannot be cut into {chunks} chunks",
            f"give at least {chunks} bytes, or fewer channels, pieces or ranks",
        )
