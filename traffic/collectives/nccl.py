"""What NCCL adds to a collective's messages: a kernel's launch, steps' latency, protocols' flags.

A step is more than its bytes on a wire. A GPU's threads copy, wait for memory to be seen by others,
and, between servers, tell a proxy thread to post to the adapter. How long that takes depends on the
protocol. *Simple* sends data alone and synchronises around whole chunks. *LL* sends four bytes of
flag with four of data, which is seen at once and costs half of the bandwidth. *LL128* has eight
bytes of flag in 128, which needs NVLink.

Where a ring leaves its server, a proxy thread posts to the adapter for each step, and steps inside
are not sooner done than it has posted: thrice a step with Simple, which is less than what that
takes anyway.

Where switches add up (NVLink SHARP), a GPU writes and reads what all have written, once each. That
is done with Simple alone, and its latency is told as one for the whole.

All figures are those that NCCL's own tuner reckons with (`src/graph/tuning.cc` and `topo.h`, 2.28
to 2.30, x86): its authors measured them. None is set to anything that this lab compares itself
with. The latency of a step is that of a whole hop, so a fabric's own delays come on top.
"""

from __future__ import annotations

from enum import StrEnum

from params.data import Data

RINGS, TREES, SWITCHES = "ring", "tree", "switch"


class NcclProtocol(StrEnum):
    """How GPUs hand data to each other."""

    SIMPLE = "simple"
    LL128 = "ll128"
    LL = "ll"


class Cost(Data):
    """What a message costs beside its own bytes on the wire."""

    launch_ns: int  # once, before the first
    inside_ns: int  # of a step within a server, over NVLink
    across_ns: int  # of a step from server to server
    posted_ns: int  # what a step takes at least where a proxy thread posts
    whole: int  # so many bytes on the wire
    data: int  # carry so many of data

    def bytes(self, data: int) -> int:
        """What goes over the wire for so much data."""
        return -(-data * self.whole // self.data)

    def step_ns(self, *, is_inside: bool, stays: bool) -> int:
        """The latency of a step of a collective, which stays in one server or does not."""
        if not is_inside:
            return self.across_ns
        return self.inside_ns if stays else max(self.inside_ns, self.posted_ns)


# By protocol and kind of algorithm: launch, NVLink, network, post, and bytes per bytes of data.
COSTS = {
    (NcclProtocol.SIMPLE, RINGS): Cost(8400, 3400, 14_000, 3000, 1, 1),
    (NcclProtocol.SIMPLE, TREES): Cost(8400, 4000, 14_000, 0, 1, 1),
    (NcclProtocol.SIMPLE, SWITCHES): Cost(0, 25_000, 20_900, 0, 1, 1),
    (NcclProtocol.LL128, RINGS): Cost(14_000, 1900, 4000, 1000, 128, 120),
    (NcclProtocol.LL128, TREES): Cost(14_000, 1250, 8500, 0, 128, 120),
    (NcclProtocol.LL, RINGS): Cost(6600, 600, 2700, 1000, 2, 1),
    (NcclProtocol.LL, TREES): Cost(6800, 600, 5000, 0, 2, 1),
}
