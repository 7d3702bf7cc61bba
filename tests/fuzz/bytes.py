"""Bytes changed by lot: what every fuzz of files here begins with."""

from __future__ import annotations

import random

# What numbers and words in a file might become.
WORDS = (
    *(b"", b"0", b"-1", b"1e999", b"NaN", b"null", b"true", b"[]", b"{}", b'"', b",", b"\n", b"\0"),
    *(b"9" * 40, b"4294967296", b"-9223372036854775809", b"\xff\xfe", b"\xed\xa0\x80", b"h1>h1"),
    *(b"<script>", b"../../x", b"1.5", b"[" * 50),
)


def changed(rng: random.Random, data: bytes) -> bytes:
    """One to three changes: bytes flipped, pieces cut out, doubled, moved or replaced."""
    for _ in range(rng.randrange(1, 4)):
        at = rng.randrange(len(data) + 1)
        end = min(len(data), at + rng.choice((1, 1, 2, 8, 64, 512)))
        match rng.randrange(7):
            case 0 if at < len(data):
                data = data[:at] + bytes([data[at] ^ 1 << rng.randrange(8)]) + data[at + 1 :]
            case 1:
                data = data[:at] + data[end:]
            case 2:
                data = data[:end] + data[at:]
            case 3:
                data = data[:at]
            case 4 | 5:
                data = data[:at] + rng.choice(WORDS) + data[end:]
            case _:
                there = rng.randrange(len(data) + 1)
                data = data[:there] + data[at:end] + data[there:]
    return data
