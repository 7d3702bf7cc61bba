"""Machines that share in a run, as one of them sees it: what is here, and the cables that leave.

Each machine emulates its part of the fabric as if that were all of it. A cable to another machine's
part ends here in a VXLAN interface, which bears the port's name and belongs to the sandbox, while
what it wraps goes by the network of the machine outside. So it goes with the sandbox, whatever ends
that, and a name server, a bridge or a table of addresses is not needed: each cable has a number of
its own, and one other end.

The ends of such a cable share no memory in which to tell when frames are due (arrival_times.py). So
who sends keeps a frame until it is due, less what the way between the machines takes, and who
receives takes it as it comes.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Sequence
from dataclasses import replace

from controller import LinkSpec
from lab.errors import RunError
from params.data import Data
from topologies import Node, TopologyError
from topologies.ip import run_ip
from topologies.offload import switch_off_checksum_offload

VXLAN_PORT = 4789
WRAPPING = 20 + 8 + 8  # bytes of IPv4, UDP and VXLAN around a frame


class Crossing(Data):
    """This machine's end of a cable to another."""

    node: Node
    port: int
    number: int  # of the cable, the same at both ends: its VXLAN network identifier
    local: str
    remote: str
    way_ns: int  # that a frame takes between the machines, by the fabric's time

    @property
    def interface(self) -> str:
        """What it is called here."""
        return self.node.interface(self.port)


class Machines(Data, ABC, frozen=False):
    """All machines of a run."""

    nodes: Collection[Node]  # that are here
    crossings: Sequence[Crossing]
    outside: int  # an open descriptor of the machine's own network

    def lay_cables(self, max_frame: int) -> None:
        """Make this machine's ends of the cables that leave it."""
        try:  # from outside, so that what is wrapped goes by the machine's network
            run_ip(
                (
                    f"link add name {each.interface} netns 1 mtu {max_frame} type vxlan "
                    f"id {each.number} local {each.local} remote {each.remote} "
                    f"dstport {VXLAN_PORT} nolearning"
                    for each in self.crossings
                ),
                self.outside,
            )
        except TopologyError as error:
            raise RunError(
                f"the ends of cables to other machines could not be made: {error}",
                "It takes a kernel with VXLAN, and that no other run has such cables between the "
                "same machines.",
            ) from None
        for each in self.crossings:
            switch_off_checksum_offload(each.interface)

    def shortened(self, cable: Callable[[Node, int], LinkSpec]) -> Callable[[Node, int], LinkSpec]:
        """Cables as their senders here have to make them: the way between machines is part."""
        ways = {(each.node, each.port): each.way_ns for each in self.crossings}

        def at(node: Node, port: int) -> LinkSpec:
            link = cable(node, port)
            return replace(link, delay_ns=max(0, link.delay_ns - ways.get((node, port), 0)))

        return at

    # --- what all do together -------------------------------------------------------------

    @property
    @abstractmethod
    def ended(self) -> str | None:
        """Why it ended early elsewhere, if it did."""

    @abstractmethod
    def begin(self) -> int:
        """Wait until all are ready; when all begin, by this machine's monotonic clock."""

    @abstractmethod
    def are_done(self, *, is_done: bool) -> bool:
        """Whether all hosts are done, once those here are or are not."""

    @abstractmethod
    def are_silent(self, *, is_silent: bool) -> bool:
        """Whether nothing comes to any host, once that is or is not so of those here."""

    @abstractmethod
    def have_ended(self, why: str | None) -> str | None:
        """It has ended here, early if there is a reason; wait for all, and why it ended for all."""

    @abstractmethod
    def meet(self) -> None:
        """Wait until all have come to this place."""
