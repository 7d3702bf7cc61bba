"""Capture files: what goes in comes out of scapy's reader, and who cannot write is told."""

import os
import random
from pathlib import Path

import pytest
from scapy.utils import RawPcapNgReader, RawPcapReader

from switch.capture import Capture


@pytest.mark.parametrize("seed", range(5))
def test_what_is_written_is_read(tmp_path: Path, seed: int) -> None:
    draw = random.Random(seed)
    frames = [
        (draw.randbytes(draw.choice((14, 60, 1514, 9018))), draw.randrange(2**32 * 10**9))
        for _ in range(20)
    ]
    path = tmp_path / "made.pcap"
    with path.open("wb") as file, Capture(file.fileno()) as capture:
        for number, (frame, when_ns) in enumerate(frames, 1):
            capture.write(frame, when_ns)
            assert len(_read(path)) == number  # it is there at once
    assert _read(path) == frames


def _read(path: Path) -> list[tuple[bytes, int]]:
    with RawPcapReader(str(path)) as reader:
        assert not isinstance(reader, RawPcapNgReader)
        return [(bytes(frame), meta.sec * 10**9 + meta.usec) for frame, meta in reader]


def test_a_reader_that_is_gone_is_noticed() -> None:
    read, write = os.pipe()
    with Capture(write) as capture:
        os.close(read)
        with pytest.raises(BrokenPipeError):
            capture.write(bytes(60), 0)
    os.close(write)


def test_a_full_disk_is_noticed() -> None:
    with Path("/dev/full").open("wb") as file, pytest.raises(OSError, match="No space left"):
        Capture(file.fileno())
