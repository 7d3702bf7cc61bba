"""What ranks do, as traces tell it, and how it becomes a schedule.

A trace names what a rank does and what each deed waits for: work, messages, collectives. A receive
meets its send by source, destination and tag, in the order both ranks name them, as MPI does; a
collective meets those of its group's other members, the first the first and so on. Collectives of
one group run one after the other, as they do on a communicator.
"""

from __future__ import annotations

from array import array
from collections import defaultdict, deque
from collections.abc import Sequence
from dataclasses import field
from enum import IntEnum
from heapq import heapify, heappop, heappush

from params.data import Data
from traffic.collectives import Activity, Schedule, ScheduleBuilder, TrafficError, add_collective
from traffic.collectives.algorithms import channel_room, collective
from traffic.collectives.collective import Collective

MAX_DEEDS = 1 << 23
MAX_RANKS = 1 << 16
UNMET = -(1 << 62)  # the tag of a send that no receive belongs to
_ROOM = channel_room(1)  # of the channels of a group's collectives
_LATEST = 1 << 62
_NOT_YET: tuple[int, ...] = ()


class TraceError(TrafficError):
    """A file that is no trace, or one that cannot be run; the text begins with the place."""


class _Kind(IntEnum):
    WORK = 0
    SEND = 1
    RECEIVE = 2
    COLLECTIVE = 3


class _Meeting(Data, frozen=False):
    """A collective while its members gather."""

    what: Collective
    group: int
    deeds: dict[int, int] = field(default_factory=dict)  # by rank


class Graph:
    """The deeds of all ranks; each is named by its number."""

    def __init__(self, ranks: int, name: str) -> None:
        if not 1 <= ranks <= MAX_RANKS:
            raise TraceError(f"{ranks} ranks", f"1 to {MAX_RANKS:,} can be")
        self.ranks = ranks
        self._name = name
        self._kind, self._rank = array("B"), array("i")
        self._peer, self._tag = array("i"), array("q")  # of a collective: which meeting
        self._size, self._channel = array("q"), array("i")
        self._delay_ns = array("q")  # of work: how long it lasts
        self._wait_start, self._wait = array("q", [0]), array("i")
        self._turn = array("q")
        self.turn: int | None = None
        """Of deeds that may begin at once, those named under a smaller one come first in the
        schedule; None: those that were named first."""
        self._groups: dict[tuple[int, ...], int] = {}
        self._turns: dict[tuple[int, int], int] = defaultdict(int)  # by group and rank
        self._last: dict[tuple[int, int], int] = {}
        self._meetings: list[_Meeting] = []
        self._meeting_of: dict[tuple[int, int], int] = {}  # by group and turn

    def __len__(self) -> int:
        return len(self._kind)

    def rank_of(self, deed: int) -> int:
        """Whose deed it is."""
        return self._rank[deed]

    def work(self, rank: int, duration_ns: int = 0, *, after: Sequence[int] = ()) -> int:
        """A rank computes, or only waits for several deeds of its own."""
        return self._add(_Kind.WORK, rank, rank, after, delay_ns=duration_ns)

    def send(
        self, rank: int, peer: int, size: int, *, tag: int = 0, channel: int = 0,
        delay_ns: int = 0, after: Sequence[int] = (),
    ) -> int:  # fmt: skip
        """A message, begun so long after what it waits for, over when it has been delivered.

        With the tag UNMET nobody has to receive it.
        """
        if rank == peer:
            raise TraceError(f"rank {rank} sends to itself", "name two ranks")
        return self._add(
            _Kind.SEND, rank, peer, after, size=size, tag=tag, channel=channel, delay_ns=delay_ns
        )

    def receive(self, rank: int, peer: int, *, tag: int = 0, after: Sequence[int] = ()) -> int:
        """The end of a message that a peer sends."""
        return self._add(_Kind.RECEIVE, rank, peer, after, tag=tag)

    def collective(
        self, rank: int, op: str, members: Sequence[int], size: int, *, root: int = 0,
        after: Sequence[int] = (),
    ) -> int:  # fmt: skip
        """A rank's part in a collective of a group; the ranks of it in their order."""
        group_of = tuple(members)
        if rank not in group_of:
            raise TraceError(f"rank {rank} is no member of the group {list(group_of)[:8]}")
        group = self._groups.setdefault(group_of, len(self._groups))
        turn = self._turns[group, rank]
        self._turns[group, rank] += 1
        what = collective(op, group_of, size, world=self.ranks, root=root)
        at = self._meeting_of.get((group, turn))
        if at is None:
            at = self._meeting_of[group, turn] = len(self._meetings)
            self._meetings.append(_Meeting(what, group))
        elif self._meetings[at].what != what:
            other = self._meetings[at].what
            raise TraceError(
                f"rank {rank} comes to a {op} of {size:,} bytes where others of its group are at a "
                f"{other.op} of {other.bytes:,}",
                "the members of a group name its collectives in one order",
            )
        before = self._last.get((group, rank))
        waits = after if before is None else [*after, before]
        deed = self._add(_Kind.COLLECTIVE, rank, at, waits)
        self._last[group, rank] = deed
        self._meetings[at].deeds[rank] = deed
        return deed

    def _add(
        self, kind: _Kind, rank: int, peer: int, after: Sequence[int], *, size: int = 0,
        tag: int = 0, channel: int = 0, delay_ns: int = 0,
    ) -> int:  # fmt: skip
        if len(self._kind) >= MAX_DEEDS:
            raise TraceError(f"more than {MAX_DEEDS:,} deeds", "cut the trace")
        for who in (rank, peer) if kind is not _Kind.COLLECTIVE else (rank,):
            if not 0 <= who < self.ranks:
                raise TraceError(f"there is no rank {who}", f"they are 0 to {self.ranks - 1}")
        for deed in after:
            if self._rank[deed] != rank:
                raise TraceError(
                    f"rank {rank} waits for what rank {self._rank[deed]} does",
                    "a rank knows what it did itself: let it wait for a message",
                )
        self._kind.append(kind)
        self._rank.append(rank)
        self._peer.append(peer)
        self._size.append(size)
        self._tag.append(tag)
        self._channel.append(channel)
        self._delay_ns.append(delay_ns)
        self._turn.append(len(self._turn) if self.turn is None else min(self.turn, _LATEST))
        self._wait.extend(after)
        self._wait_start.append(len(self._wait))
        return len(self._kind) - 1

    def _waits(self, deed: int) -> array[int]:
        return self._wait[self._wait_start[deed] : self._wait_start[deed + 1]]

    # --- the schedule ----------------------------------------------------------------------------

    def schedule(self) -> Schedule:
        """All of it; each send has to have its receive, and the other way round."""
        sends = self._met()
        for meeting in self._meetings:
            missing = [rank for rank in meeting.what.ranks if rank not in meeting.deeds]
            if missing:
                raise TraceError(
                    f"rank {missing[0]} never comes to a {meeting.what.op} of "
                    f"{meeting.what.bytes:,} bytes that {len(meeting.deeds)} of its group begin"
                )
        builder = ScheduleBuilder(self.ranks)
        activity = builder.activity(Activity("flows", self._name))
        compute = builder.activity(Activity("compute", "compute", job=self._name))
        first_channel = max(self._channel, default=-1) + 1
        steps: dict[int, int] = defaultdict(int)
        over: list[tuple[int, ...]] = [_NOT_YET] * len(self)

        def awaited(deed: int) -> list[int]:
            return list(dict.fromkeys(end for one in self._waits(deed) for end in over[one]))

        for deed in self._in_order(sends):
            kind, rank = self._kind[deed], self._rank[deed]
            if kind == _Kind.SEND:
                over[deed] = (
                    builder.transfer(
                        rank, self._peer[deed], self._size[deed], activity=activity,
                        channel=self._channel[deed], delay_ns=self._delay_ns[deed],
                        after=awaited(deed),
                    ),
                )  # fmt: skip
            elif kind == _Kind.COLLECTIVE:
                meeting = self._meetings[self._peer[deed]]
                members = [meeting.deeds[member] for member in meeting.what.ranks]
                if len(members) == 1:
                    over[deed] = tuple(awaited(deed))
                    continue
                ends = add_collective(
                    builder, meeting.what, gates=[awaited(member) for member in members],
                    first_channel=first_channel + _ROOM * meeting.group,
                    job=self._name, step=steps[meeting.group],
                )  # fmt: skip
                steps[meeting.group] += 1
                for member, end in zip(members, ends, strict=True):
                    over[member] = tuple(end)
            else:
                waits = awaited(deed)
                if kind == _Kind.RECEIVE:
                    waits = list(dict.fromkeys([*over[sends[deed]], *waits]))
                if len(waits) == 1 and (kind == _Kind.RECEIVE or not self._delay_ns[deed]):
                    over[deed] = (waits[0],)
                else:
                    lasts = self._delay_ns[deed]
                    over[deed] = (builder.work(rank, lasts, activity=compute, after=waits),)
        return builder.build()

    def _met(self) -> dict[int, int]:
        """By receive, its send."""
        free: dict[tuple[int, int, int], deque[int]] = defaultdict(deque)
        for deed, kind in enumerate(self._kind):
            if kind == _Kind.SEND and self._tag[deed] != UNMET:
                free[self._rank[deed], self._peer[deed], self._tag[deed]].append(deed)
        sends = {}
        for deed, kind in enumerate(self._kind):
            if kind == _Kind.RECEIVE:
                path = self._peer[deed], self._rank[deed], self._tag[deed]
                if not free.get(path):
                    raise TraceError(
                        f"rank {path[1]} waits for a message of rank {path[0]} with the tag "
                        f"{path[2]} that is never sent"
                    )
                sends[deed] = free[path].popleft()
        for (src, dst, tag), left in free.items():
            if left:
                raise TraceError(
                    f"rank {src} sends {len(left)} message(s) with the tag {tag} that rank {dst} "
                    "does not receive"
                )
        return sends

    def _in_order(self, sends: dict[int, int]) -> list[int]:
        """The deeds so that each comes after all it waits for; a collective with its last part."""
        count = len(self)
        nodes = list(range(count))  # the deed that stands for it
        for meeting in self._meetings:
            last = max(meeting.deeds.values())
            for deed in meeting.deeds.values():
                nodes[deed] = last
        followers: list[list[int]] = [[] for _ in range(count)]
        waiting = array("i", bytes(4 * count))
        for deed in range(count):
            for one in self._waits(deed):
                followers[nodes[one]].append(nodes[deed])
                waiting[nodes[deed]] += 1
        for receive, send in sends.items():
            followers[send].append(receive)
            waiting[receive] += 1
        turns = self._turn
        ready = [
            (turns[deed], deed)
            for deed in range(count)
            if nodes[deed] == deed and not waiting[deed]
        ]
        heapify(ready)
        order = []
        while ready:
            _, deed = heappop(ready)
            order.append(deed)
            for follower in followers[deed]:
                waiting[follower] -= 1
                if not waiting[follower]:
                    heappush(ready, (turns[follower], follower))
        if len(order) < sum(nodes[deed] == deed for deed in range(count)):
            stuck = min(deed for deed in range(count) if waiting[deed])
            raise TraceError(
                f"rank {self._rank[stuck]} waits in a circle: its deed number "
                f"{stuck + 1} can never begin"
            )
        return order
