"""A collective while it is written into a schedule."""

from __future__ import annotations

from collections.abc import Sequence

from params.data import Data
from traffic.collectives.collective import Collective, Layout
from traffic.collectives.schedule import Mode, ScheduleBuilder


class Draft(Data):
    """Where an algorithm adds its transfers, speaking of members and chunks.

    A member's gate holds back everything it sends, for it may send on what others gave it only
    once it has something of its own to add.
    """

    builder: ScheduleBuilder
    collective: Collective
    layout: Layout
    activity: int
    first_channel: int = 0
    gates: Sequence[Sequence[int]] | None = None

    @property
    def size(self) -> int:
        """How many members there are."""
        return self.collective.size

    def network(self, member: int) -> int:
        """Let switches do a member's part; the transfer's id."""
        gate = self.gates[member] if self.gates is not None else ()
        rank, cost = self.collective.ranks[member], self.collective.cost
        if cost is not None:
            stays = self.size == self.collective.members_per_node
            late_ns = cost.launch_ns + cost.inside_ns + (0 if stays else cost.across_ns)
            gate = (self.builder.work(rank, late_ns, activity=self.activity, after=gate),)
        return self.builder.network(rank, activity=self.activity, after=gate)

    def send(
        self,
        src: int,
        dst: int,
        chunk: int,
        count: int = 1,
        *,
        mode: Mode = Mode.COPY,
        channel: int = 0,
        after: Sequence[int] = (),
    ) -> int:
        """Send a run of chunks from a member to another; the transfer's id."""
        ranks, cost, delay_ns = self.collective.ranks, self.collective.cost, 0
        size = self.layout.bytes(chunk, count)
        if cost is not None:
            is_inside = self.collective.are_together(ranks[src], ranks[dst])
            stays = self.size == self.collective.members_per_node
            delay_ns = cost.step_ns(is_inside=is_inside, stays=stays)
            delay_ns += 0 if after else cost.launch_ns
            size = cost.bytes(size)
        if self.gates is not None:
            after = (*self.gates[src], *after)
        return self.builder.transfer(
            ranks[src],
            ranks[dst],
            size,
            activity=self.activity,
            channel=self.first_channel + channel,
            delay_ns=delay_ns,
            after=after,
            first_chunk=chunk,
            chunks=count,
            mode=mode,
        )
