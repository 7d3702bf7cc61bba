"""Makes the README's animation: a pause storm told step by step, as its report presents it.

.venv/bin/python -m tests.lab.report_animation docs/storm.png
"""

import struct
import sys
import tempfile
import time
import zlib
from collections.abc import Iterator, Sequence
from pathlib import Path

import closlab
from tests.lab.browser import browser

_WIDE, _HIGH = 880, 600
_STEP_MS, _LAST_MS = 1400, 2400
_SETTLES_S = 0.2  # what changes in a page, before it is taken
_BEGINS = b"\x89PNG\r\n\x1a\n"


def main(path: Path) -> None:
    with tempfile.TemporaryDirectory() as folder, browser() as chromium:
        page = closlab.run("pfc-storm", out=folder).report()
        tab = chromium.open(page.as_uri(), _WIDE, _HIGH)
        tab.until("!!document.querySelector('.steps:not([hidden])')")
        tab.js("document.querySelector('.steps button:last-child').click()")
        frames = []
        while True:
            time.sleep(_SETTLES_S)
            shot = Path(folder) / "shot.png"
            tab.picture(shot, whole=False)
            frames.append(shot.read_bytes())
            if tab.js("document.querySelector(\".steps [aria-label='Next step']\").disabled"):
                break
            tab.key("ArrowRight")
    path.write_bytes(animated(frames, [_STEP_MS] * (len(frames) - 1) + [_LAST_MS]))


def animated(frames: Sequence[bytes], lasts_ms: Sequence[int]) -> bytes:
    """Pictures of one size as one that moves, again and again: APNG."""
    heads = {next(_chunks(frame)) for frame in frames}
    assert len(heads) == 1, "they are of different kinds"
    ((_, head),) = heads
    size, turn = head[:8], 0
    made = [_chunk(b"IHDR", head), _chunk(b"acTL", struct.pack(">II", len(frames), 0))]
    for at, (frame, lasts) in enumerate(zip(frames, lasts_ms, strict=True)):
        control = struct.pack(">I", turn) + size + struct.pack(">IIHHBB", 0, 0, lasts, 1000, 0, 0)
        made.append(_chunk(b"fcTL", control))
        turn += 1
        for content in (content for kind, content in _chunks(frame) if kind == b"IDAT"):
            if at:
                made.append(_chunk(b"fdAT", struct.pack(">I", turn) + content))
                turn += 1
            else:
                made.append(_chunk(b"IDAT", content))
    return b"".join((_BEGINS, *made, _chunk(b"IEND", b"")))


def _chunks(picture: bytes) -> Iterator[tuple[bytes, bytes]]:
    at = len(_BEGINS)
    while at < len(picture):
        (long,) = struct.unpack_from(">I", picture, at)
        yield picture[at + 4 : at + 8], picture[at + 8 : at + 8 + long]
        at += 12 + long


def _chunk(kind: bytes, content: bytes) -> bytes:
    check = zlib.crc32(kind + content)
    return struct.pack(">I", len(content)) + kind + content + struct.pack(">I", check)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
