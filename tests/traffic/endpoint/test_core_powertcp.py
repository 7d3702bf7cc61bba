"""PowerTCP: its window after every answer is that of a model of the paper."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from tests.traffic.endpoint.star import GBPS
from tests.traffic.endpoint.test_core_hpcc import ALL, LEFT, SENT, UNTOLD, ask
from tests.traffic.powertcp_model import Int, PowerTcp


@pytest.mark.by_day(15)
@pytest.mark.parametrize("seed", range(40))
def test_every_window_is_the_model_s(unit: Path, seed: int) -> None:
    rng = random.Random(seed)
    line, tau = rng.choice((10, 100, 400)) * GBPS, rng.choice((4_000, 9_329, 60_000))
    gamma, flows, packet = rng.choice((0.9, 0.5, 1.0)), rng.choice((5, 10, 100)), 4170
    own, count = rng.random() < 0.7, rng.randrange(1, 7)
    mbps = [rng.choice((25_000, 100_000, 400_000)) if own else UNTOLD for _ in range(count)]
    rates = [line / 8e9 if each == UNTOLD else each / 8e3 for each in mbps]
    model = PowerTcp(line / 8e9, tau, gamma, flows)
    config = f"powertcp-gamma={gamma} powertcp-flows={flows}"
    lines, expected = [f"begin powertcp {line} {tau} {packet} 0 4 {config}"], []
    now, acked, sent, queues = 1_000, 100, [0] * count, [0] * count
    for _ in range(300):
        passed = rng.choice((80, 333, 2_000, tau, 3 * tau))
        now, acked = now + passed, acked + 1
        following, hops, words = acked + rng.randrange(1, 30), [], []
        for hop, rate in enumerate(rates):
            queues[hop] = max(0, queues[hop] + rng.choice((0, 0, packet, -packet, 9 * packet)))
            queues[hop] = 0 if rng.random() < 0.02 else queues[hop]
            sent[hop] += int(rng.choice((1, 1, 1, rng.random())) * rate * passed)
            hops.append(Int(queues[hop], now, sent[hop], rate))
            words.append(f"{queues[hop] + packet} {mbps[hop]} {now} {sent[hop]}")
        asked = ALL if own else LEFT | SENT
        lines.append(f"ack {now} {acked} {following} {asked:x} 9 {count} {' '.join(words)}")
        model.new_ack(acked, following, hops)
        expected.append(model.cwnd)
    seen = [window for window, *_ in ask(unit, *lines)[1:]]
    assert seen == pytest.approx(expected, rel=1e-6)
    assert len(set(expected)) > 20


def test_a_queue_that_stands_by_hand(unit: Path) -> None:
    """A bandwidth-delay product waits before a busy link: power is 2, windows halve."""
    product = 125_000  # 100 Gb/s, 10 us
    window = ask(
        unit,
        f"begin powertcp {100 * GBPS} 10000 4000 0 4 powertcp-gamma=1 powertcp-flows=1000000",
        f"ack 10000 100 110 e000 0 1 {product + 4000} 100000 9000 0",
        f"ack 20000 101 110 e000 0 1 {product + 4000} 100000 19000 {product}",
    )[-1]
    assert window[2] == pytest.approx(2)
    assert window[0] == pytest.approx(product / 2 + product / 1e6)


def test_a_second_answer_at_one_time_changes_nothing(unit: Path) -> None:
    """What a queue grew by in no time cannot be told."""
    begin = f"begin powertcp {100 * GBPS} 10000 4000 0 4"
    first, second, again = (
        f"ack {now} 100 110 e000 0 1 {queue} 100000 {now - 1000} 0"
        for now, queue in ((10000, 4000), (20000, 5000), (20000, 5000))
    )
    *_, one, same = ask(unit, begin, first, second, again)
    assert same == one
