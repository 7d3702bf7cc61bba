"""Scale-up Ethernet's frames in numbers (`core/sue_wire.h` has the fields)."""

from __future__ import annotations

ETHERTYPE_SUNH = 0x885B
NEXT_HEADER = 253  # for experiments (RFC 3692)
STORE_BYTES = 256
"""What a command stores at most."""
COMMAND_BYTES = 12
WINDOW_MAX = 1 << 15
CHANNELS = 4
"""Between two XPUs."""
_AROUND = 14 + 8 + 8 + 4 + 4  # Ethernet, SUNH, RH, the PDU's first word, and the R-CRC


def sue_headers_bytes(commands: int) -> int:
    """What a frame with so many commands has besides what they store."""
    return _AROUND + commands * COMMAND_BYTES
