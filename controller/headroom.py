"""Headroom, computed: what a link can still deliver after its sender was told to stop.

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

from controller.settings import LinkSpec, RoomError, Settings, SettingsError

WIRE_OVERHEAD = 24
SHORTEST_FRAME = 60
PAUSE_WIRE_BYTES = 60 + WIRE_OVERHEAD
QUANTUM_BITS = 512
_NS = 1_000_000_000


def bytes_in(link: LinkSpec, ns: float) -> float:
    """What a link carries in a time."""
    return link.rate_bps * ns / 8 / _NS


def in_cells(size: int, cell: int) -> int:
    """What a number of bytes takes of memory that comes in cells."""
    return -(-size // cell) * cell


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
