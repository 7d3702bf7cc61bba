"""DCQCN: event by event against a model with real timers, and as a whole on a shared link."""

from __future__ import annotations

import random
import subprocess
from itertools import pairwise
from pathlib import Path

import pytest

from tests.traffic import dcqcn_model
from tests.traffic.dcqcn_model import Parameters, reaction_point
from tests.traffic.endpoint.star import (
    GBPS,
    A,
    B,
    C,
    Outcome,
    ends,
    one_way,
    receives,
    run,
    sends,
)
from traffic.endpoint import EndpointConfig, EndpointPlan, Transfer, TransferKind

LINE = 100 * GBPS
PROFILES = ("paper", "mlx5", "hpcc-ns3", "conweave")
ECN = {"kmin": 100e3, "kmax": 400e3, "pmax": 0.2}


def ask(unit: Path, *lines: str) -> list[list[float]]:
    text = "\n".join((*lines, ""))
    done = subprocess.run([unit], input=text, capture_output=True, text=True, check=True)
    return [[float(word) for word in line.split()] for line in done.stdout.splitlines()]


def states(unit: Path, *lines: str) -> list[tuple[float, float, float]]:
    """Rate, target and alpha after each."""
    return [(rate, target, alpha) for _, rate, alpha, target in ask(unit, *lines)]


def begun(line: int, **parameters: object) -> str:
    """The line that begins a flow with them."""
    words = " ".join(
        f"dcqcn-{name.replace('_', '-')}={value}" for name, value in parameters.items()
    )
    return f"begin dcqcn {line} 10000 4170 0 4 {words}"


def words_of(of: Parameters) -> dict[str, object]:
    """A model's parameters in the core's words."""
    return {
        "reaction": "periodic" if of.periodic else "at-once",
        "cnp_interval": int(of.cnp_ns),
        "alpha_interval": int(of.alpha_ns),
        "cut_interval": int(of.cut_ns),
        "increase_interval": int(of.up_ns),
        "byte_counter": int(of.up_bytes),
        "g": f"{of.g:.17g}",
        "first_alpha": f"{of.first_alpha:.17g}",
        "fast_rounds": of.rounds,
        "additive": int(of.additive),
        "hyper": int(of.hyper),
        "minimum": int(of.least),
        "clamp_target": str(of.clamp).lower(),
    }


@pytest.mark.parametrize("name", PROFILES)
@pytest.mark.parametrize("gbps", [10, 25, 40, 100, 400])
def test_the_profiles_are_their_sources(unit: Path, name: str, gbps: int) -> None:
    _, printed = ask(unit, begun(gbps * GBPS, profile=name), "values")
    source = words_of(dcqcn_model.profile(name, gbps * GBPS))
    _, expected = ask(unit, begun(gbps * GBPS, **source), "values")
    assert printed[1:] == pytest.approx(expected[1:], rel=1e-9)
    assert printed[0] == PROFILES.index(name)


def test_the_rate_after_one_notification(unit: Path) -> None:
    """By hand: halved at once (alpha is 1), then half of the way back every 55 us."""
    steps = [0, 1, 54_999, 55_000, 110_000, 165_000, 220_000, 275_000, 330_000]
    _, cut, *seen = states(unit, begun(LINE), "cnp 0", *(f"look {at}" for at in steps))
    assert cut[:2] == (50e9, 100e9)
    assert [rate / 1e9 for rate, _, _ in seen] == pytest.approx(
        [50, 50, 50, 75, 87.5, 93.75, 96.875, 98.4375, 99.21875], abs=1e-8
    )
    decays = [at // 55_000 for at in steps]
    assert [alpha for _, _, alpha in seen] == pytest.approx([(255 / 256) ** n for n in decays])


def test_additive_and_hyper_increase(unit: Path) -> None:
    """Cut twice, the target is 50 Gb/s: five rounds towards it, then 100 Mb/s of target a round.

    (That is 40 Mb/s on links of 40 Gb/s.)
    """
    looks = [50_000 + 55_000 * n for n in range(1, 9)]
    _, _, cut, *seen = states(
        unit, begun(LINE), "cnp 0", "cnp 50000", *(f"look {at}" for at in looks)
    )
    assert cut[:2] == (25e9, 50e9)
    rates, targets = [], []
    rate, target = cut[0], 50e9
    for round_number in range(8):
        target += 100e6 if round_number >= 5 else 0
        rate = (rate + target) / 2
        rates.append(rate)
        targets.append(target)
    assert [rate for rate, _, _ in seen] == pytest.approx(rates, abs=4)
    assert [target for _, target, _ in seen] == pytest.approx(targets)


def history(rng: random.Random, steps: int) -> list[str]:
    """CNPs, bytes sent and looks at random times, some of which fall on a timer's tick."""
    lines, now = [], 0
    for _ in range(steps):
        now += rng.choice((0, 10, 900, 1_000, 4_000, 30_000, 60_000, 300_000, 3_000_000))
        kind = rng.choice(("cnp", "cnp", "sent", "sent", "look"))
        lines.append(f"{kind} {now}" + (f" {rng.randrange(8_000_000)} 0" if kind == "sent" else ""))
    return lines


def follow(unit: Path, start: str, parameters: Parameters, line: int, steps: list[str]) -> None:
    """Hold rate, target and alpha after every step to those of the model."""
    _, *seen = states(unit, start, *steps)
    model = reaction_point(parameters, line)
    for step, (rate, target, alpha) in zip(steps, seen, strict=True):
        kind, at, *size = step.split()
        if kind == "cnp":
            model.cnp(int(at))
        elif kind == "sent":
            model.sent(int(at), int(size[0]))
        else:
            model.run_to(int(at))
        where = f"{start}: {step}"
        assert (rate, target) == pytest.approx((model.rate, model.target), rel=1e-5), where
        assert alpha == pytest.approx(model.alpha, rel=1e-9, abs=1e-12), where


@pytest.mark.by_day(2)
@pytest.mark.parametrize("name", PROFILES)
@pytest.mark.parametrize("seed", range(4))
def test_every_step_is_the_model_s(unit: Path, name: str, seed: int) -> None:
    line = random.Random(seed).choice((10, 25, 100, 400)) * GBPS
    steps = history(random.Random(seed), 400)
    follow(unit, begun(line, profile=name), dcqcn_model.profile(name, line), line, steps)


@pytest.mark.by_day(15)
@pytest.mark.parametrize("seed", range(40))
def test_every_step_is_the_model_s_whatever_the_parameters(unit: Path, seed: int) -> None:
    rng = random.Random(seed)
    line = rng.choice((1, 25, 100, 800)) * GBPS
    periodic = rng.random() < 0.6
    parameters = Parameters(
        periodic=periodic,
        clamp=rng.random() < 0.5,
        rounds=rng.choice((0, 1, 3, 5)),
        cnp_ns=0,
        alpha_ns=rng.choice((1_000, 4_000, 7_777, 55_000)),
        cut_ns=rng.choice((0, 1_000, 4_000, 5_001, 50_000)),
        up_ns=rng.choice((4_000, 55_000, 300_000, 1_500_000)),
        up_bytes=rng.choice((0, 150_000, 10_000_000)),
        g=rng.choice((1 / 1024, 1 / 256, 1 / 16, 1.0)),
        first_alpha=rng.choice((1.0, 0.5, 0.0)),
        additive=rng.choice((0, 5_000_000, 40_000_000, line // 50)),
        hyper=rng.choice((0, 50_000_000, line // 10)),
        least=rng.choice((1_000_000, 100_000_000, min(2 * line, 10**12))),
    )
    follow(unit, begun(line, **words_of(parameters)), parameters, line, history(rng, 300))


def test_one_marked_packet_slows_its_flow_as_the_algorithm_says(star: Path) -> None:
    """From the mark at the switch to the pace of frames: the rates that come by, in their order."""
    config = EndpointConfig(link_bps=LINE, payload="none", cc={"dcqcn_profile": "paper"})
    outcome = run(
        star,
        one_way(config, [40_000_000], cc="dcqcn"),
        extra=[f"mark {B} at=100000", f"sample {A} qp=17 every=1000", f"watch {B}"],
    )
    assert outcome.counters(B)["np_ecn_marked_packets"] == 1
    assert outcome.counters(B)["np_cnp_sent"] == outcome.counters(A)["rp_cnp_handled"] == 1
    (cnp,) = (frame for frame in outcome.frames if frame.opcode == 0x81)
    assert cnp.priority == 6
    rates = list(dict.fromkeys(sample.rate for sample in outcome.samples))
    assert [rate / 1e9 for rate in rates[:7]] == pytest.approx(
        [100, 50, 75, 87.5, 93.75, 96.875, 98.4375], abs=1e-6
    )
    cut = next(sample.at_ns for sample in outcome.samples if sample.rate < LINE)
    assert 0 <= cut - cnp.at_ns < 4_000  # it crossed two links
    slow = [s for s in outcome.samples if cut + 5_000 <= s.at_ns < cut + 50_000]
    packets = (slow[0].waiting - slow[-1].waiting) * (4096 + 58)
    assert packets * 8e9 / (slow[-1].at_ns - slow[0].at_ns) == pytest.approx(50e9, rel=0.02)


def test_the_receiver_limits_its_notifications(star: Path) -> None:
    config = EndpointConfig(
        link_bps=LINE,
        payload="none",
        cc={"dcqcn_cnp_interval": 50_000, "dcqcn_minimum": LINE},
    )
    outcome = run(
        star,
        one_way(config, [20_000_000], cc="dcqcn"),
        extra=[f"watch {B}"],
        kmin=0,
        kmax=1,
    )
    sent = [frame.at_ns for frame in outcome.frames if frame.opcode == 0x81]
    assert outcome.counters(B)["np_ecn_marked_packets"] > 1000
    assert len(sent) == outcome.counters(B)["np_cnp_sent"] > 10
    assert all(later - earlier >= 49_000 for earlier, later in pairwise(sent))


def test_without_dcqcn_marks_change_nothing(star: Path) -> None:
    config = EndpointConfig(link_bps=LINE, payload="none")
    plain = run(star, one_way(config, [4_000_000]))
    marked = run(star, one_way(config, [4_000_000]), kmin=0, kmax=1)
    assert marked.counters(B)["np_ecn_marked_packets"] > 0
    assert marked.counters(B)["np_cnp_sent"] == 0
    assert marked.end_ns == plain.end_ns


def two_flows(star: Path, profile: str, cc: str, first: int, second: int, run_ms: float) -> Outcome:
    """A sends to C; 2 ms later B does too, over the same last link."""
    config = EndpointConfig(
        link_bps=LINE, payload="none", cc={"dcqcn_profile": profile}, base_rtt=9_000,
        ack_every=1 if cc == "hpcc" else 16,
    )  # fmt: skip
    ac, ca = ends(A, C, 17, cc=cc)
    bc, cb = ends(B, C, 33, cc=cc)
    wait = Transfer(id=9, kind=TransferKind.COMPUTE, delay_ns=2_000_000)
    late = Transfer(id=2, kind=TransferKind.SEND, queue_pair=33, size=second, after=(9,))
    plans = {
        A: EndpointPlan(config=config, queue_pairs=(ac,), transfers=sends(ac, [first], 1)),
        B: EndpointPlan(config=config, queue_pairs=(bc,), transfers=(wait, late)),
        C: EndpointPlan(
            config=config,
            queue_pairs=(ca, cb),
            transfers=receives(ca, [first], 1) + receives(cb, [second], 2),
        ),
    }
    extra = [f"sample {A} qp=17 every=1000000", f"sample {B} qp=33 every=1000000"]
    return run(star, plans, extra=extra, timeout=run_ms * 1e6, **ECN)


def goodput(outcome: Outcome, host: str, start_ms: int, stop_ms: int) -> float:
    """Gb/s of payload that left a host for good."""
    left = {
        s.at_ns // 1_000_000: s.waiting + s.in_flight for s in outcome.samples if s.host == host
    }
    return (left[start_ms] - left[stop_ms]) * 4096 * 8 / ((stop_ms - start_ms) * 1e6)


def jain(*rates: float) -> float:
    return sum(rates) ** 2 / (len(rates) * sum(rate * rate for rate in rates))


@pytest.mark.parametrize(
    ("profile", "cc", "settled_ms"),
    [
        ("hpcc-ns3", "dcqcn", 20),
        ("conweave", "dcqcn", 20),
        ("paper", "dcqcn", 150),
        ("paper", "hpcc", 5),
    ],
)
def test_two_flows_come_to_share_a_link(star: Path, profile: str, cc: str, settled_ms: int) -> None:
    stop = settled_ms + 30
    outcome = two_flows(star, profile, cc, 2_000_000_000, 2_000_000_000, stop + 1)
    rates = [goodput(outcome, host, settled_ms, stop) for host in (A, B)]
    assert jain(*rates) >= 0.98, rates
    assert sum(rates) >= 0.9 * 100 * 4096 / (4096 + 82), rates
    assert outcome.dropped == 0


def test_a_victim_recovers_when_the_other_has_gone(star: Path) -> None:
    outcome = two_flows(star, "paper", "dcqcn", 2_000_000_000, 30_000_000, 60)
    (gone,) = (t.end_ns for t in outcome.hosts[C].transfers.values() if t.id == 2)
    gone_ms = gone // 1_000_000 + 1
    assert goodput(outcome, A, 3, gone_ms - 1) < 75
    assert goodput(outcome, A, gone_ms + 25, gone_ms + 30) > 0.95 * 100 * 4096 / (4096 + 82)


def test_hpcc_keeps_queues_short(star: Path) -> None:
    """What it is for: the same two flows, a fraction of the queue that DCQCN needs."""
    queues = {
        cc: two_flows(star, "hpcc-ns3", cc, 100_000_000, 100_000_000, 40).longest_queue
        for cc in ("dcqcn", "hpcc")
    }
    assert queues["hpcc"] < queues["dcqcn"] / 2
