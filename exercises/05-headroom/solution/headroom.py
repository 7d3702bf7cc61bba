"""How much room a port needs for what comes after its sender was told to stop."""

PAUSE_FRAME = 60  # bytes in the frame
OVERHEAD = 24  # bytes around every frame on the wire that no buffer sees


def headroom(rate_gbps, delay_ns, frame):
    """Bytes that can arrive between the first byte beyond XOFF and the sender's silence.

    rate_gbps: of the link, both ways; delay_ns: that a bit takes from one end to the other; frame:
    the bytes of the largest frame. Senders obey at once when a pause frame is there.
    """
    on_the_wire = rate_gbps * 2 * delay_ns / 8 + PAUSE_FRAME + OVERHEAD
    stored = -(-on_the_wire * frame // (frame + OVERHEAD))
    return int(3 * frame + stored)
