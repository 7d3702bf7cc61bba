"""HPCC: its window after every ACK is that of a model written from the paper."""

from __future__ import annotations

import random
import subprocess
from pathlib import Path

import pytest

from params.data import Data
from tests.traffic.endpoint.star import GBPS
from tests.traffic.hpcc_model import Hop, Window

UNTOLD = 0xFFFFFFFF
RATE, LEFT, SENT = 0x8000, 0x4000, 0x2000  # our domain's words
ALL = RATE | LEFT | SENT


def ask(unit: Path, *lines: str) -> list[list[float]]:
    text = "\n".join((*lines, ""))
    done = subprocess.run([unit], input=text, capture_output=True, text=True, check=True)
    return [[float(word) for word in line.split()] for line in done.stdout.splitlines()]


class Link(Data, frozen=False):
    """A hop that counts without end, and tells what 32 bits hold."""

    mbps: int
    packet: int
    sent: int = 0
    queue: int = 0

    def bps(self, asked: int, line: int) -> float:
        """Its rate, as a sender has it."""
        return self.mbps * 1e6 if asked & RATE and self.mbps not in (0, UNTOLD) else line

    def tell(self, rng: random.Random, at: int, passed: int, bps: float) -> tuple[int, ...]:
        """Its words: queue, which counts the packet itself, rate, time, bytes."""
        share = rng.choice((0, 0.5, 0.9, 0.94, 0.95, 1.0))
        self.sent += int(share * passed * bps / 8e9)
        self.queue = rng.choice((0, self.packet, self.packet * rng.randrange(40), 0xFFFFFE))
        self.queue = rng.choice((self.queue, self.queue, self.queue, UNTOLD))
        return self.queue, self.mbps, at % 2**32, self.sent % 2**32

    def hop(self, at: int, asked: int, line: int) -> Hop:
        """The same as the model has it; what is not told counts nothing, or is the sender's own."""
        return Hop(
            queue=0 if self.queue == UNTOLD else max(0, self.queue - self.packet),
            bps=self.bps(asked, line),
            at=at if asked & LEFT and at % 2**32 != UNTOLD else None,
            sent=self.sent if asked & SENT and self.sent % 2**32 != UNTOLD else None,
        )


@pytest.mark.by_day(12)
@pytest.mark.parametrize("seed", range(60))
def test_every_window_is_the_model_s(unit: Path, seed: int) -> None:
    """Over a path or several, counters that come round, answers that are late or out of order."""
    rng = random.Random(seed)
    line, round_ns = rng.choice((10, 100, 400)) * GBPS, rng.choice((4_000, 9_329, 60_000))
    eta, stages = rng.choice((0.95, 0.98, 1.0)), rng.choice((0, 1, 5))
    additive, packet = rng.choice((0, 80, 5_000)), rng.choice((1_100, 4_170))
    minimum = rng.choice((0, line // 100))
    asked = rng.choice((ALL, ALL, ALL, LEFT | SENT, RATE | LEFT, RATE, 0))
    config = f"hpcc-eta={eta} hpcc-max-stage={stages} hpcc-additive={additive}"
    config += f" hpcc-minimum={minimum}" if minimum else ""
    lines = [f"begin hpcc {line} {round_ns} {packet} 0 4 {config}"]
    model = Window(line, round_ns, eta, stages, additive, minimum)
    rates = (25_000, 100_000, 400_000, 800_000, 800_000, 0, UNTOLD)
    hops = rng.randrange(1, 7)
    paths = {
        path: [Link(rng.choice(rates), packet, rng.randrange(2**32)) for _ in range(hops)]
        for path in rng.sample(range(1 << 16), rng.choice((1, 1, 2, 6)))
    }
    expected, acked, now = [], 100, 2**32 - rng.randrange(1, 1_000_000)
    then = dict.fromkeys(paths, now)
    for _ in range(300):
        now += rng.choice((0, 300, 2_000, round_ns, 3 * round_ns))
        now += rng.choice((0,) * 60 + (2**20, 2**29, 2**31, 2**33))
        acked += 1
        following, path = acked + rng.randrange(1, 30), rng.choice([*paths])
        is_late = now - then[path] < 2**20 and rng.random() < 0.03
        at = then[path] - 5 if is_late else now - 1_000
        words: list[int] = []
        links = paths[path][: rng.choice((hops,) * 30 + (1,))]
        for link in links:
            words += link.tell(rng, at, max(0, at - then[path]), link.bps(asked, line))
        then[path] = at
        given = " ".join(map(str, words))
        lines.append(f"ack {now} {acked} {following} {asked:x} {path} {len(links)} {given}")
        stamps = [link.hop(at, asked, line) for link in links]
        model.answer(now, acked, following, path, stamps)
        expected.append([model.size, model.rate, model.load])
    for step, (*seen, _), wanted in zip(lines[1:], ask(unit, *lines)[1:], expected, strict=True):
        assert seen == pytest.approx(wanted, rel=1e-6), f"{lines[0]}: {step}"


def test_a_queue_weighs_by_its_own_link(unit: Path) -> None:
    """The same 100 KB are 8 us of 100 Gb/s and 1 us of 800 Gb/s: by hand."""
    for gbps, load in ((100, 0.8), (800, 0.1)):
        *_, (_, _, seen, _) = ask(
            unit,
            "begin hpcc 100000000000 10000 4000 0 4 hpcc-max-stage=0 hpcc-additive=0",
            f"ack 10000 101 110 e000 0 1 104000 {gbps * 1000} 9000 0",
            f"ack 20000 111 120 e000 0 1 104000 {gbps * 1000} 19000 0",
        )
        assert seen == pytest.approx(load)


def test_a_link_is_as_busy_as_its_bytes_say(unit: Path) -> None:
    """75 KB in 10 us are 60 % of 100 Gb/s, with counters that come round meanwhile: by hand."""
    *_, (_, _, seen, _) = ask(
        unit,
        "begin hpcc 100000000000 10000 4000 0 4",
        f"ack 10000 101 110 e000 7 1 4000 100000 {2**32 - 4000} {2**32 - 70_000}",
        "ack 20000 111 120 e000 7 1 4000 100000 6000 5000",
    )
    assert seen == pytest.approx(0.6)
