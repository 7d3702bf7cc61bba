"""TIMELY: its rate after every answer is that of a model of the paper, and round trips are true."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from tests.traffic.endpoint.star import GBPS, A, B, one_way, run
from tests.traffic.endpoint.test_core_hpcc import ask
from tests.traffic.timely_model import OncePerRound, Timely
from traffic.endpoint import EndpointConfig

UNTOLD = 2**64 - 1


@pytest.mark.by_day(15)
@pytest.mark.parametrize("seed", range(40))
def test_every_rate_is_the_model_s(unit: Path, seed: int) -> None:
    rng = random.Random(seed)
    line, base = rng.choice((10, 100, 400)) * GBPS, rng.choice((4_000, 9_329, 60_000))
    is_usual = rng.random() < 0.3  # with what it finds itself
    model = Timely(
        line=line,
        t_low=2.5 * base if is_usual else rng.choice((base + 1, 50_000)),
        t_high=25 * base if is_usual else rng.choice((70_000, 500_000)),
        min_rtt=base if is_usual else rng.choice((base, 20_000)),
        delta=line / 1000 if is_usual else rng.choice((10_000_000, line // 50)),
        beta=rng.choice((0.8, 0.25, 1.0)),
        alpha=rng.choice((0.875, 0.02, 1.0)),
        hai_after=rng.choice((5, 1, 20)),
        hai_steps=rng.choice((5, 1, 10)),
        least=line / 100 if is_usual else rng.choice((1_000_000, line // 10)),
    )
    given = {"beta": model.beta, "weight": model.alpha}
    given |= {"hyper-rounds": model.hai_after, "hyper": model.hai_steps}
    if not is_usual:
        given |= {"low-rtt": model.t_low, "high-rtt": model.t_high, "least-rtt": model.min_rtt}
        given |= {"additive": model.delta, "minimum": model.least}
    config = " ".join(f"timely-{key}={value}" for key, value in given.items())
    lines, expected, now, rtt = (
        [f"begin timely {line} {base} 4170 0 4 {config}"],
        [model.rate],
        0,
        base,
    )
    for step in range(400):
        now += 1_000
        rtt = max(base, rtt + rng.choice((-3_000, -100, 0, 0, 100, 2_000)))
        if step % 40 == 0:
            rtt = rng.choice((base, int(model.t_low), int(model.t_high), 2 * int(model.t_high)))
        if rng.random() < 0.1:
            lines.append(f"acked {now} 4170 {UNTOLD} 0 0")  # one that nobody timed
        else:
            model.complete(rtt)
            lines.append(f"acked {now} 16680 {rtt} 0 0")
        expected.append(model.rate)
    assert [found[1] for found in ask(unit, *lines)] == pytest.approx(expected, rel=1e-6, abs=1)
    assert len(set(expected)) > 50


def test_one_rise_and_one_fall_by_hand(unit: Path) -> None:
    """100 Gb/s and 10 us: 30 us, then 35: the gradient is 0.5 / 8, and costs 0.8 of that."""
    *_, first, rises, falls = ask(
        unit,
        f"begin timely {100 * GBPS} 10000 4170 0 4",
        "acked 1000 0 30000 0 0",
        "acked 2000 0 35000 0 0",
        "acked 3000 0 25000 0 0",
    )
    assert first[1] == 100e9
    assert rises[1] == pytest.approx(100e9 * (1 - 0.8 * 0.0625))
    assert falls[1] == pytest.approx(rises[1] + 100e6)


def test_a_flow_alone_measures_what_its_packets_take(star: Path) -> None:
    """In an empty fabric round trips are short of T_low, and the rate stays the line's."""
    config = EndpointConfig(link_bps=100 * GBPS, payload="none", base_rtt=5_000)
    plans = one_way(config, [4_000_000], cc="timely")
    extra = [f"sample {A} qp=17 every=10000"]
    alone = run(star, plans, extra=extra, rate=100e9)
    assert {sample.rate for sample in alone.samples if sample.waiting} == {100 * GBPS}
    slow = run(star, plans, extra=extra, rate=25e9)  # the switch's link to B is a bottleneck
    rates = [sample.rate for sample in slow.samples if sample.waiting]
    assert min(rates) < 25 * GBPS
    assert slow.counters(B)["messages_received"] == 1


@pytest.mark.parametrize("recovery", ["go-back-n", "selective", "go-back-0"])
def test_what_is_sent_again_times_nothing(strict_star: Path, recovery: str) -> None:
    """A packet lost now and then is no long round trip: the rate stays the line's."""
    config = EndpointConfig(
        link_bps=100 * GBPS, payload="none", recovery=recovery, rto=10_000_000, base_rtt=5_000
    )
    plans = one_way(config, [98 * 4096], cc="timely")
    extra = [f"sample {A} qp=17 every=10000", *(f"lose {A} nth={n}" for n in (20, 97))]
    outcome = run(strict_star, plans, extra=extra, timeout=200e6)
    assert outcome.counters(A)["retransmitted_packets"] > 0
    assert outcome.counters(B)["messages_received"] == 1
    assert outcome.counters(A)["local_ack_timeout_err"] <= 1
    assert {sample.rate for sample in outcome.samples} == {100 * GBPS}


@pytest.mark.by_day(4)
@pytest.mark.parametrize("seed", range(10))
def test_the_profile_of_hpcc_s_simulator_is_its_model(unit: Path, seed: int) -> None:
    """One answer a round trip counts, whatever is told between; five rises, and they are hyper."""
    rng = random.Random(seed)
    line, base = rng.choice((25, 100, 400)) * GBPS, 9_329
    model = OncePerRound(line=line, delta=line / 1000, weight=0.875)
    lines, expected = [f"begin timely {line} {base} 1058 0 4 timely-profile=hpcc-ns3"], [model.rate]
    following, rtt = 40, base
    for acked in range(1, 4_001):
        following = max(following, acked + rng.randrange(60))
        rtt = max(base, rtt + rng.choice((-2_000, -300, 0, 300)))
        if rng.random() < 0.05:
            rtt = rng.choice((base, 49_000, 60_000, 200_000, 700_000))
        lines.append(f"answer {100 * acked} 1058 0 {acked} {following} {rtt}")
        model.answer(acked, following, rtt)
        expected.append(model.rate)
    assert [found[1] for found in ask(unit, *lines)] == pytest.approx(expected, rel=1e-6, abs=1)
    assert len(set(expected)) > 5


def test_where_rounds_are_timed_each_is(star: Path) -> None:
    """However many packets are under way, the one that begins a round trip is timed."""
    cc = {"timely_profile": "hpcc-ns3", "timely_minimum": GBPS, "timely_low_rtt": 4_000}
    config = EndpointConfig(link_bps=100 * GBPS, payload="none", base_rtt=5_000, mtu=1024, cc=cc)
    plans = one_way(config, [4_000_000], cc="timely")
    extra = [f"sample {A} qp=17 every=10000"]
    slow = run(star, plans, extra=extra, rate=25e9)
    rates = [sample.rate for sample in slow.samples if sample.waiting]
    assert min(rates) < 25 * GBPS  # of a queue that grows it is told again and again
    assert slow.counters(B)["messages_received"] == 1
