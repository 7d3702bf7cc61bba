"""What else a link's rate and delay decide: credits, a replay buffer, turns, windows of load."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import NamedTuple

from controller.headroom import PAUSE_WIRE_BYTES, WIRE_OVERHEAD, bytes_in, in_cells
from controller.settings import LinkSpec
from params.load_balancing import LoadBalancing

_NS = 1_000_000_000


def grant_least(link: LinkSpec, max_frame: int, response_ns: int = 0) -> int:
    """What is worth a word of credits: two frames, or an eighth of what a round trip holds."""
    return max(2 * max_frame, math.ceil(bytes_in(link, _loop_ns(link, response_ns)) / 8))


def credit(link: LinkSpec, max_frame: int, response_ns: int = 0, cell: int = 1) -> int:
    """Bytes of buffer with which a link never waits for credits of a receiver that is not in need.

    From a frame's first bit to the word that it has left again: it has to be there as a whole, and
    the word waits for a frame the other way, is sent and travels. Meanwhile the sender goes on; and
    up to `grant_least` and a frame that it has to see room for are not at its disposal.
    """
    frames = 3 * (max_frame + WIRE_OVERHEAD) + PAUSE_WIRE_BYTES
    loop = math.ceil(bytes_in(link, _loop_ns(link, response_ns))) + frames
    return in_cells(loop + grant_least(link, max_frame, response_ns) + max_frame, cell)


def _loop_ns(link: LinkSpec, response_ns: int) -> int:
    return 2 * link.delay_ns + response_ns


def ask_after_ns(link: LinkSpec, max_frame: int, credit_bytes: int, response_ns: int = 0) -> int:
    """How long to wait for credits before saying so: all of them could have come back by then."""
    frame_ns = (max_frame + credit_bytes) * 8 * _NS / link.rate_bps
    return math.ceil(4 * (_loop_ns(link, response_ns) + frame_ns))


def replay_timeout_ns(link: LinkSpec, max_frame: int) -> int:
    """How long a frame goes unanswered: four times what its answer takes at most.

    Three frames' time: until it is there, until the answer may begin, and until a replay may.
    """
    frames_ns = 3 * (max_frame + WIRE_OVERHEAD) * 8 * _NS / link.rate_bps
    return math.ceil(4 * (2 * link.delay_ns + frames_ns))


class ReplayBuffer(NamedTuple):
    """What an end of a link that tries again is set to."""

    room: int  # bytes
    timeout_ns: int
    ack_every: int  # bytes


def replay(link: LinkSpec, max_frame: int) -> ReplayBuffer:
    """It keeps what the link carries until the last of it must have been answered."""
    timeout_ns = replay_timeout_ns(link, max_frame)
    room = math.ceil(2 * bytes_in(link, timeout_ns)) + 4 * max_frame
    return ReplayBuffer(room, timeout_ns, ack_every=room // 8)


def quanta(weights: Mapping[int, int], max_frame: int) -> dict[int, int]:
    """What a turn is worth to each weighted priority, in bytes of the wire.

    Exactly in proportion, and no more than it takes: the heaviest gets a frame a turn, the others
    wait a few turns for one, so that no burst is longer than it has to be.
    """
    unit = max(1, (max_frame + WIRE_OVERHEAD) // max(weights.values(), default=1))
    return {priority: weight * unit for priority, weight in weights.items()}


def load_window_ns(lb: LoadBalancing, links: list[LinkSpec], max_frame: int) -> float:
    """The window over which load is measured.

    A quarter of the flowlet gap: a flow that rested for the gap, and may choose anew, must not take
    for a busy link what it has itself sent. But some frames of the slowest link: less would be full
    with one of them.
    """
    frame_ns = max((max_frame + WIRE_OVERHEAD) * 8 * _NS / link.rate_bps for link in links)
    return max(lb.flowlet_gap_ns / 4, 4 * frame_ns)


def metric_age_ns(lb: LoadBalancing) -> int:
    """How long what was heard of a path counts: as long as a few flowlets stay away from it."""
    return 10 * lb.flowlet_gap_ns
