"""HPCC: its window after every ACK is that of a model written from the paper."""

from __future__ import annotations

import random
import subprocess
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.traffic.endpoint.star import GBPS
from tests.traffic.hpcc_model import Hop, Window

UNTOLD = 0xFFFFFFFF


def ask(unit: Path, *lines: str) -> list[list[float]]:
    text = "\n".join((*lines, ""))
    done = subprocess.run([unit], input=text, capture_output=True, text=True, check=True)
    return [[float(word) for word in line.split()] for line in done.stdout.splitlines()]


@dataclass
class Written:
    """What a hop wrote into a packet: the queue counts the packet itself."""

    queue: int
    utilisation: int
    mbps: int

    def as_hop(self, packet: int, line: int) -> Hop:
        """What the model makes of it; what is not told counts nothing, or is the sender's own."""
        return Hop(
            use=0 if self.utilisation == UNTOLD else self.utilisation / 65536,
            queue=0 if self.queue == UNTOLD else max(0, self.queue - packet),
            bps=line if self.mbps in (0, UNTOLD) else self.mbps * 1e6,
        )


def random_hop(rng: random.Random, packet: int, own: bool) -> Written:
    return Written(
        queue=rng.choice((0, packet, packet * rng.randrange(40), 0xFFFFFE)),
        utilisation=rng.choice((0, UNTOLD, 62_000, 65_536, rng.randrange(90_000))),
        mbps=rng.choice((25_000, 100_000, 400_000, 800_000, 0, UNTOLD)) if own else UNTOLD,
    )


@pytest.mark.parametrize(
    "seed",
    [*range(12), *(pytest.param(seed, marks=pytest.mark.slow) for seed in range(12, 30))],
)
def test_every_window_is_the_model_s(unit: Path, seed: int) -> None:
    rng = random.Random(seed)
    line, round_ns = rng.choice((10, 100, 400)) * GBPS, rng.choice((4_000, 9_329, 60_000))
    eta, stages = rng.choice((0.95, 0.98, 1.0)), rng.choice((0, 1, 5))
    additive, packet = rng.choice((0, 80, 5_000)), rng.choice((1_100, 4_170))
    own, count = rng.random() < 0.7, rng.randrange(1, 7)
    told = f"hpcc-eta={eta} hpcc-max-stage={stages} hpcc-additive={additive}"
    lines = [f"begin hpcc {line} {round_ns} {packet} 0 4 {told}"]
    model = Window(line, round_ns, eta, stages, additive)
    expected, now, acked, update_after = [], 0, 100, 0
    for _ in range(300):
        passed = rng.choice((0, 300, 2_000, round_ns, 3 * round_ns))
        now, acked = now + passed, acked + 1
        following = acked + rng.randrange(1, 30)
        hops = [random_hop(rng, packet, own) for _ in range(count)]
        words = " ".join(f"{hop.queue} {hop.utilisation} {hop.mbps}" for hop in hops)
        lines.append(f"ack {now} {acked} {following} {int(own)} {count} {words}")
        told = [hop.as_hop(packet, line) for hop in hops]
        model.answer(told, passed, ends_round=acked > update_after)
        if acked > update_after:
            update_after = following
        expected.append([model.size, model.rate, model.load])
    for step, (*seen, _), wanted in zip(lines[1:], ask(unit, *lines)[1:], expected, strict=True):
        assert seen == pytest.approx(wanted, rel=1e-6), f"{lines[0]}: {step}"


def test_a_queue_weighs_by_its_own_link(unit: Path) -> None:
    """The same 100 KB are 8 us of 100 Gb/s and 1 us of 800 Gb/s: by hand."""
    for gbps, load in ((100, 0.8), (800, 0.1)):
        *_, (_, _, seen, _) = ask(
            unit,
            "begin hpcc 100000000000 10000 4000 0 4 hpcc-max-stage=0 hpcc-additive=0",
            f"ack 10000 101 110 1 1 104000 0 {gbps * 1000}",
            f"ack 20000 111 120 1 1 104000 0 {gbps * 1000}",
        )
        assert seen == pytest.approx(load)
