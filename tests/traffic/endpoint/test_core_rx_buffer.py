"""A receive buffer, held against a list: order, bytes, times and thresholds, under sanitizers."""

import random
import subprocess
from pathlib import Path

import pytest


@pytest.mark.by_day(6)
@pytest.mark.parametrize("seed", range(12))
def test_frames_come_out_as_they_went_in_and_when_they_are_due(unit: Path, seed: int) -> None:
    draw = random.Random(seed)
    rate = draw.choice((10**9, 25 * 10**9, 123_456_789_012))
    room = draw.randrange(2_000, 200_000)
    xoff = draw.randrange(1, room)
    xon = draw.randrange(0, xoff + 1)
    lines, expected = [f"rx_buffer {rate} {room} {xoff} {xon}"], []
    held: list[tuple[int, int, int, int]] = []  # the model: due, stored, wire, byte
    now, free_at_ps, full, taken = 0, 0, False, 0
    for _ in range(4000):
        now += draw.choice((0, 1, draw.randrange(2000)))
        if draw.random() < 0.7:
            wire = draw.choice((60, 64, draw.randrange(60, 9000)))
            stored = draw.choice((60, min(wire, 100), wire))
            byte = draw.randrange(256)
            may_be_lost = draw.random() < 0.3  # then it leaves what is behind XOFF to the others
            present = sum(frame[2] for frame in held)
            fits = present + wire <= room and not (may_be_lost and present > xoff)
            lines.append(f"put {now} {stored} {wire} {byte} {int(may_be_lost)}")
            expected.append(str(int(fits)))
            if fits:
                free_at_ps = max(free_at_ps, now * 1000) + wire * 8 * 10**12 // rate
                held.append((-(-free_at_ps // 1000), stored, wire, byte))
                full = full or sum(frame[2] for frame in held) > xoff
        else:
            out = []
            while held and held[0][0] <= now:
                _, stored, wire, byte = held.pop(0)
                out.append(f"{stored}:{wire}:{byte} ")
                full = full and sum(frame[2] for frame in held) > xon
            taken += len(out)
            lines.append(f"take {now}")
            expected.append("".join(out) + f"{sum(f[2] for f in held)} {int(full)}")
    text = "\n".join(lines) + "\n"
    done = subprocess.run([unit], input=text, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == expected
    assert taken > 50


@pytest.mark.parametrize(
    "words", ["1000 100 50 10", "1000000000 100 100 10", "1000000000 100 50 60"]
)
def test_what_cannot_be_is_refused(unit: Path, words: str) -> None:
    done = subprocess.run([unit], input=f"rx_buffer {words}\n", text=True, check=False)
    assert done.returncode == 2
