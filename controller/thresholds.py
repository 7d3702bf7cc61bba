"""Thresholds, computed: what a link can still deliver after its sender was told to stop.

A pause frame is asked for when a packet has arrived that no longer fits. What comes after it:

    that packet                                 one frame
    while the pause frame waits                 one frame (another may just have started)
    while it is sent, travels, and is obeyed    2 x delay + response, at the link's rate
    what the sender has just started            one frame

The wire carries 24 bytes for every frame that never reach the buffer: preamble, FCS and gap. The
worst case for the buffer is therefore frames of full size, and it is met exactly. Where memory
comes in cells, it is frames that just need one more, the shortest or those of two cells: whatever
the pause frame waits for, they come meanwhile.
"""

from __future__ import annotations

import math
from collections.abc import Mapping

from controller.settings import LinkSpec, RoomError, Settings, SettingsError
from params.load_balancing import LoadBalancing

WIRE_OVERHEAD = 24
SHORTEST_FRAME = 60
PAUSE_WIRE_BYTES = 60 + WIRE_OVERHEAD
QUANTUM_BITS = 512
_NS = 1_000_000_000


def bytes_in(link: LinkSpec, ns: float) -> float:
    """What a link carries in a time."""
    return link.rate_bps * ns / 8 / _NS


def headroom(
    link: LinkSpec, max_frame: int, response_ns: int = 0, cell: int = 1, share_back: float = 1.0
) -> int:
    """Bytes that can arrive between the first packet in headroom and the sender's silence.

    The way back, of pause frames, may have less than the link's rate: a share of it.
    """
    reaction = bytes_in(link, 2 * link.delay_ns + response_ns)
    # The pause frame, and what it waits for.
    reaction += (PAUSE_WIRE_BYTES + max_frame + WIRE_OVERHEAD) / share_back
    if cell == 1:
        return 2 * max_frame + math.ceil(reaction * max_frame / (max_frame + WIRE_OVERHEAD))
    # Most memory for its time on the link: the shortest frame of all that take as many cells.
    frames = {max_frame} | {max(SHORTEST_FRAME, at + 1) for at in range(0, max_frame, cell)}
    worst = max(in_cells(frame, cell) / (frame + WIRE_OVERHEAD) for frame in frames)
    return 2 * in_cells(max_frame, cell) + in_cells(math.ceil(reaction * worst), cell)


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


def replay_room(link: LinkSpec, max_frame: int) -> int:
    """Bytes a link keeps: what it carries until the last of them must have been answered."""
    timeout_ns = replay_timeout_ns(link, max_frame)
    return math.ceil(2 * bytes_in(link, timeout_ns)) + 4 * max_frame


def in_cells(size: int, cell: int) -> int:
    """What a number of bytes takes of memory that comes in cells."""
    return -(-size // cell) * cell


def pause_ns(link: LinkSpec, quanta: int) -> float:
    """How long a pause of so many quanta lasts on a link."""
    return quanta * QUANTUM_BITS * _NS / link.rate_bps


def renewal_ns(link: LinkSpec, quanta: int) -> float:
    """When a pause is sent again: when half of what it grants is over."""
    return pause_ns(link, quanta) / 2


def pool(settings: Settings, headrooms: list[int], queues: int, lossy: int = 0) -> int:
    """What of a switch's memory is left for all to share."""
    buffer = settings.buffer
    shared = sum(headrooms) if buffer.headroom_pool is None else buffer.headroom_pool
    largest = max(headrooms, default=0)
    if shared < largest:
        raise SettingsError(
            f"buffer.headroom_pool: {shared:,} bytes are less than one class of one port may need, "
            f"{largest:,}: ports would share what none of them can use; give it from that to "
            f"{sum(headrooms):,}, which is what all of them need at once"
        )
    set_aside = shared + queues * buffer.reserved + lossy  # what these have to themselves
    left = buffer.bytes - set_aside
    if left < settings.max_frame:
        enough = set_aside + 16 * settings.max_frame
        raise RoomError(
            f"buffer.bytes: {buffer.bytes:,} are too small: headroom and reserved bytes "
            f"take {set_aside:,}; give it {enough:,} or more, or use shorter or slower links",
            enough,
        )
    return left


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
