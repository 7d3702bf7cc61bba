"""Our switch and real BMv2, fed the same random and mutated frames: the same must come out.

The programs are those of tests/p4, through our compiler; the frames grow from their packet tests.
Left out is what BMv2 itself does not repeat: random numbers, clocks and queue depths; recirculated
packets and registers that its ingress and egress threads race for; and indices out of bounds, on
which it ends. Frames are never shorter than the test's own, since what BMv2 reads from a header
that is not there is left over from another packet.
"""

from __future__ import annotations

import json
import random
import re
from functools import cache
from pathlib import Path

import pytest

from switch.dataplane import Program

from .reference import PORTS, SIMPLE_SWITCH, Frames, bmv2, ours

P4 = Path(__file__).parent.parent / "p4"
FRAMES = 60
UNREPEATABLE = re.compile(
    r"\brandom\(|_timestamp|_qdepth|deq_timedelta|HashAlgorithm\.random|meter|advance\("
    r"|recirculate|packet_length|\bassert\(|\bassume\("
)
RACING = frozenset(("register_shared", "telemetry"))
ENDING = frozenset(("stack_index_runtime",))

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(SIMPLE_SWITCH is None, reason="simple_switch is not on PATH"),
]


def programs() -> list[Path]:
    """Programs with a packet test, and nothing in them that BMv2 does not repeat."""
    found = sorted(P4.rglob("*.p4"))
    return [
        p
        for p in found
        if p.with_suffix(".stf").exists()
        and p.stem not in RACING | ENDING
        and not UNREPEATABLE.search(p.read_text())
    ]


@cache
def json_of(path: Path) -> bytes:
    from compiler.driver import compile_program

    return json.dumps(compile_program(path).json).encode()


def packets_in(stf: Path) -> Frames:
    """The packets of a test that enter by a port we have."""
    found = []
    for match in re.finditer(r"^\s*packet\s+(\d+)\s+([0-9a-fA-F \t]+)", stf.read_text(), re.M):
        digits = re.sub(r"\s", "", match.group(2))
        if int(match.group(1)) in PORTS and digits and len(digits) % 2 == 0:
            found.append((int(match.group(1)), bytes.fromhex(digits)))
    return found


def mutated(rng: random.Random, frame: bytes) -> bytes:
    """A frame with a few bytes changed, perhaps longer."""
    data = bytearray(frame)
    for _ in range(rng.choice([0, 1, 1, 2, 4])):
        data[rng.randrange(len(data))] = rng.choice([0, 1, 255, rng.getrandbits(8)])
    if rng.random() < 0.3:
        data += rng.randbytes(rng.randrange(40))
    return bytes(data)


def frames_for(path: Path, seed: int) -> Frames:
    rng = random.Random(f"{path.stem} {seed}")
    known = packets_in(path.with_suffix(".stf"))
    longest = max((len(frame) for _, frame in known), default=60)
    frames = []
    for _ in range(FRAMES):
        if known and rng.random() < 0.85:
            port, frame = rng.choice(known)
            frames.append((rng.choice([port, rng.choice(PORTS)]), mutated(rng, frame)))
        else:
            frames.append((rng.choice(PORTS), rng.randbytes(longest + rng.randrange(100))))
    return frames


@pytest.mark.parametrize("path", programs(), ids=lambda p: p.stem)
def test_same_as_bmv2(path: Path) -> None:
    source = json_of(path)
    frames = frames_for(path, 1)
    got, want = ours(Program.load(source), frames), bmv2(source, frames)
    for port in PORTS:
        assert [f.hex() for f in got.of(port)] == [f.hex() for f in want.of(port)], f"port {port}"
