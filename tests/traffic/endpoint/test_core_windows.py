"""NSCC, Swift and RCCC: after every acknowledgement they are where models of them are."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from tests.traffic.endpoint.star import GBPS
from tests.traffic.endpoint.test_core_hpcc import ask
from tests.traffic.window_models import Link, Nscc, Rccc, Swift

STEPS = 400
UNTOLD = 2**64 - 1


def link_of(rng: random.Random) -> Link:
    return Link(
        bps=rng.choice((10, 25, 100, 400, 800)) * GBPS,
        rtt=rng.choice((3_000, 8_000, 12_000, 13_994, 60_000)),
        mtu=rng.choice((1_100, 4_198, 9_102)),
        trims=rng.random() < 0.7,
        hops=rng.randrange(1, 7),
    )


def start(name: str, link: Link) -> str:
    return f"begin {name} {link.bps} {link.rtt} {link.mtu} {int(link.trims)} {link.hops}"


def delay_of(rng: random.Random, link: Link, mood: float) -> int:
    """What a packet found: next to nothing, about the target, or far beyond it."""
    usual = (rng.randrange(1_000), rng.randrange(link.rtt), rng.randrange(2 * link.rtt))
    return 5 * link.rtt if rng.random() < mood / 10 else usual[int(mood * 2.99)]


def known(rng: random.Random, delay: int) -> int | None:
    """What a sender knows of it: nothing, now and then, of what it sent twice."""
    return None if rng.random() < 0.1 else delay


@pytest.mark.by_day(20)
@pytest.mark.parametrize("seed", range(60))
def test_nscc_s_window_is_the_model_s(unit: Path, seed: int) -> None:
    rng = random.Random(seed)
    link = link_of(rng)
    model = Nscc(link)
    lines, expected, now, mood = [start("nscc", link)], [model.cwnd], link.rtt, rng.random()
    for step in range(STEPS):
        if step % 50 == 0:
            mood = rng.random()
        now += rng.choice((1, 300, 1_000, link.rtt // 3, 2 * link.rtt))
        in_flight = rng.randrange(0, max(1, int(model.maxwnd)))
        size = rng.choice((link.mtu, link.mtu // 2))
        if rng.random() < 0.05:
            model.sent(now)
            lines.append(f"sent {now} {size} {size}")
            expected.append(model.cwnd)
            now += 1
        if rng.random() < mood / 3:
            what, happens = rng.choice((("cut", model.nack), ("lost", model.lose)))
            happens(now, size, in_flight)
            lines.append(f"{what} {now} {size} {in_flight}")
        else:
            acked = link.mtu * rng.choice((1, 1, 1, 4))
            delay, marked = known(rng, delay_of(rng, link, mood)), rng.random() < mood
            model.ack(now, acked, delay, in_flight, skip=marked)
            words = UNTOLD if delay is None else link.rtt + delay
            lines.append(f"acked {now} {acked} {words} {int(marked)} {in_flight}")
        expected.append(model.cwnd)
    assert [found[0] for found in ask(unit, *lines)] == pytest.approx(expected, rel=1e-9)
    assert len(set(expected)) > STEPS / 20 or model.maxwnd < 4 * link.mtu  # it moved


@pytest.mark.by_day(15)
@pytest.mark.parametrize("seed", range(40))
def test_swift_s_window_is_the_model_s(unit: Path, seed: int) -> None:
    rng = random.Random(seed)
    link = link_of(rng)
    model = Swift(link)
    lines, expected, now, mood = [start("swift", link)], [model.cwnd * link.mtu], link.rtt, 0.5
    for step in range(STEPS):
        if step % 50 == 0:
            mood = rng.random()
        now += rng.choice((1, 300, 1_000, link.rtt // 3, 2 * link.rtt))
        if rng.random() < mood / 10:
            model.lose(now)
            lines.append(f"{rng.choice(('cut', 'lost'))} {now} {link.mtu} 0")
        else:
            acked, delay = link.mtu * rng.choice((1, 1, 3)), known(rng, delay_of(rng, link, mood))
            model.ack(now, acked, delay)
            lines.append(f"acked {now} {acked} {UNTOLD if delay is None else link.rtt + delay} 0 0")
        expected.append(model.cwnd * link.mtu)
    assert [found[0] for found in ask(unit, *lines)] == pytest.approx(expected, rel=1e-6)


@pytest.mark.by_day(15)
@pytest.mark.parametrize("seed", range(40))
def test_rccc_s_credit_is_the_model_s(unit: Path, seed: int) -> None:
    rng = random.Random(seed)
    link = link_of(rng)
    model = Rccc(link)
    lines, expected, count = [start("rccc", link)], [], 0
    for _ in range(STEPS):
        size = rng.choice((link.mtu, 64, link.mtu * 100))
        lines.append(f"may {size}")
        expected.append(float(model.may_send(size)))
        if model.may_send(size) and rng.random() < 0.8:
            model.spent += size
            lines.append(f"sent 0 {size} {size}")
        if rng.random() < 0.5:
            count += rng.choice((1, 16, 1 << 12, (1 << 23) - 1))
            low = max(0, count - rng.choice((0, 0, 0, 1, 40)))  # an older one, now and then
            model.grant(low & 0xFFFFFF)
            count = max(count, model.granted)
            lines.append(f"granted {low & 0xFFFFFF}")
    said = [found[0] for found in ask(unit, *lines) if len(found) == 1]
    assert said == expected
