"""DCTCP: its window after every answer is the paper's, and answers tell senders of marks."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from tests.traffic.dctcp_model import Dctcp
from tests.traffic.endpoint.star import GBPS, A, B, C, ends, one_way, receives, run, sends
from tests.traffic.endpoint.test_core_hpcc import ask
from traffic.endpoint import EndpointConfig, EndpointPlan

FRAME = 4096 + 58


@pytest.mark.by_day(15)
@pytest.mark.parametrize("seed", range(40))
def test_every_window_is_the_model_s(unit: Path, seed: int) -> None:
    rng = random.Random(seed)
    line, base = rng.choice((10, 100, 400)) * GBPS, rng.choice((4_000, 9_329, 60_000))
    packet = rng.choice((1_058, 4_154))
    is_usual = rng.random() < 0.3  # with what it finds itself
    least = rng.choice((GBPS // 10, GBPS, line // 10))
    model = Dctcp(
        cwnd=line / 8e9 * base,
        g=rng.choice((1 / 16, 1 / 256, 1.0)),
        alpha=rng.choice((1.0, 0.0, 0.3)),
        increase=packet if is_usual else rng.choice((1, 80, 50_000)),
        least=packet if is_usual else least / 8e9 * base,
    )
    config = f"dctcp-g={model.g} dctcp-first-alpha={model.alpha}"
    if not is_usual:
        config += f" dctcp-additive={model.increase} dctcp-minimum={least}"
    lines, expected = [f"begin dctcp {line} {base} {packet} 0 4 {config}"], [model.cwnd]
    now, una, nxt, marks = 0, 1, 20, rng.choice((0.01, 0.2, 0.9))
    for _ in range(1_000):
        now += 100
        more = rng.choice((0, 1, 1, 1, 5))
        una += more
        nxt = max(nxt, una + rng.randrange(1, 30))
        ece = rng.random() < marks
        lines.append(f"answer {now} {more * packet} {int(ece)} {una} {nxt}")
        model.ack(more * packet, una, nxt, ece=ece)
        expected.append(model.cwnd)
    assert [window for window, *_ in ask(unit, *lines)] == pytest.approx(expected, rel=1e-9)
    assert len(set(expected)) > 2


def test_one_cut_by_hand(unit: Path) -> None:
    """100 Gb/s and 10 us: 125,000 bytes. All was marked before, so half is left, once a window."""
    *_, first, cut, again, later = ask(
        unit,
        f"begin dctcp {100 * GBPS} 10000 1000 0 4",
        "answer 1000 1000 0 1 100",
        "answer 2000 1000 1 2 101",
        "answer 3000 1000 1 50 102",
        "answer 4000 1000 0 101 103",
    )
    assert first[0] == 125_000
    assert cut[0] == again[0] == later[0] == 62_500
    assert cut[1] == 50e9


def test_answers_tell_what_was_marked(star: Path) -> None:
    """One mark at the switch: no notification, one answer that echoes it, one cut."""
    config = EndpointConfig(link_bps=100 * GBPS, payload="none", base_rtt=5_000)
    extra = [f"mark {B} at=20000", f"sample {A} qp=17 every=1000", f"watch {B}"]
    outcome = run(star, one_way(config, [4_000_000], cc="dctcp"), extra=extra, rate=100e9)
    assert outcome.counters(B)["np_ecn_marked_packets"] == 1
    assert outcome.counters(B)["np_cnp_sent"] == outcome.counters(A)["rp_cnp_handled"] == 0
    assert not [frame for frame in outcome.frames if frame.opcode == 0x81]
    rates = list(dict.fromkeys(s.rate for s in outcome.samples if s.waiting))
    assert rates[0] == 100 * GBPS
    assert min(rates) == rates[1]
    assert rates[1] > 0.5 * rates[0]  # alpha had come down before


def test_a_step_holds_the_queue_and_flows_share(star: Path) -> None:
    """Two senders and a step of 60 KB: the queue stays about there, nobody starves."""
    config = EndpointConfig(link_bps=100 * GBPS, payload="none", base_rtt=9_000)
    size = 100_000_000
    ac, ca = ends(A, C, 17, cc="dctcp")
    bc, cb = ends(B, C, 33, cc="dctcp")
    plans = {
        A: EndpointPlan(config=config, queue_pairs=(ac,), transfers=sends(ac, [size], 1)),
        B: EndpointPlan(config=config, queue_pairs=(bc,), transfers=sends(bc, [size], 2)),
        C: EndpointPlan(
            config=config,
            queue_pairs=(ca, cb),
            transfers=receives(ca, [size], 1) + receives(cb, [size], 2),
        ),
    }
    outcome = run(star, plans, rate=100e9, delay=2_000, kmin=60e3, kmax=60e3, pmax=1)
    assert outcome.dropped == 0
    assert outcome.end_ns < 1.05 * 2 * size * (FRAME + 24) / 4096 * 8 / 100
    assert outcome.longest_queue < 300_000
    assert 0.01 < outcome.marked / (2 * size / 4096) < 0.5
