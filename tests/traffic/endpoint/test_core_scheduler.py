"""Who sends when: fair shares, rates, pause frames."""

import random
from pathlib import Path

import pytest

from tests.traffic.endpoint.star import (
    GBPS,
    A,
    B,
    Outcome,
    Sent,
    ends,
    one_way,
    receives,
    run,
    sends,
    unfinished,
)
from traffic.endpoint import EndpointConfig, EndpointPlan, QueuePair

FAST = EndpointConfig(link_bps=100 * GBPS, payload="none")


def side_by_side(
    star: Path,
    pairs: list[tuple[QueuePair, ...]],
    sizes: list[list[int]],
    *extra: str,
    config: EndpointConfig = FAST,
    **fabric: float,
) -> Outcome:
    """A sends to B on several queue pairs at once."""
    plans = {
        host: EndpointPlan(
            config=config,
            queue_pairs=tuple(pair[side] for pair in pairs),
            transfers=tuple(
                transfer
                for index, pair in enumerate(pairs)
                for transfer in (sends, receives)[side](pair[side], sizes[index], 10_000 * index)
            ),
        )
        for side, host in enumerate((A, B))
    }
    return run(star, plans, extra=[f"watch {A}", *extra], **fabric)


def data(outcome: Outcome, priority: int | None = None) -> list[Sent]:
    return [
        frame
        for frame in outcome.frames
        if frame.host == A and frame.opcode < 0x10 and priority in (None, frame.priority)
    ]


@pytest.mark.parametrize("recovery", ["go-back-0", "go-back-n", "selective"])
@pytest.mark.parametrize("loss", [0, 0.02])
def test_queue_pairs_that_have_nothing_to_do_keep_nothing(
    star: Path, recovery: str, loss: float
) -> None:
    """What they know while they send and receive is given back, and made again for the next."""
    config = EndpointConfig(link_bps=100 * GBPS, payload="none", recovery=recovery, rto=100_000)
    pairs = [ends(A, B, 17 + 2 * number) for number in range(8)]
    for sizes in [30_000], [30_000, 1, 100_000]:
        outcome = side_by_side(star, pairs, [sizes] * 8, config=config, loss=loss, seed=7)
        assert not unfinished(outcome.hosts[A])
        assert outcome.halves == {A: 0, B: 0}


def test_a_congestion_control_is_kept_by_who_sent(star: Path) -> None:
    """Others, and those that never sent, keep nothing."""
    busy = ends(A, B, 17, cc="dcqcn")
    idle = ends(A, B, 33, cc="dcqcn")
    outcome = side_by_side(star, [busy, idle], [[100_000], []])
    assert outcome.halves == {A: 1, B: 0}


def test_queue_pairs_share_by_bytes_and_not_by_packets(star: Path) -> None:
    """One sends whole packets, the other messages of 200 bytes: the same bytes in the same time."""
    pairs = [ends(A, B, 17), ends(A, B, 33)]
    outcome = side_by_side(star, pairs, [[4096 * 200], [200] * 3000])
    first, second = (t for t in (outcome.hosts[A].transfers[0], outcome.hosts[A].transfers[12_999]))
    assert second.end_ns is not None and first.end_ns is not None
    small_bytes = 3000 * (200 + 58 + 20)
    done = [f for f in data(outcome) if f.at_ns <= second.end_ns - 2_500 and f.wire > 1000]
    assert sum(frame.wire for frame in done) == pytest.approx(small_bytes, rel=0.05)


def test_a_hundred_queue_pairs_end_together(star: Path) -> None:
    pairs = [ends(A, B, 100 + 2 * index) for index in range(100)]
    outcome = side_by_side(star, pairs, [[4096 * 50]] * 100)
    done = [t.end_ns or 0 for t in outcome.hosts[A].transfers.values()]
    assert max(done) - min(done) < 0.03 * max(done)


@pytest.mark.parametrize("mbps", [10, 100, 1_000, 25_000, 99_000])
def test_a_rate_is_held(star: Path, mbps: int) -> None:
    rate = mbps * 1_000_000
    plans = one_way(FAST, [4096 * 200], rate_bps=rate)
    outcome = run(star, plans, extra=[f"watch {A}"])
    frames = data(outcome)
    between = frames[-1].at_ns - frames[0].at_ns
    sent = sum(frame.wire for frame in frames[:-1])
    assert sent * 8e9 / between == pytest.approx(rate, rel=1e-3)
    assert outcome.counters(A)["local_ack_timeout_err"] == 0  # however long the next ACK takes


@pytest.mark.parametrize("mbps", [1_000, 25_000, 0])
def test_a_late_host_makes_up_for_its_lateness_and_no_more(star: Path, mbps: int) -> None:
    """Woken up to 20 us late every time, a rate is held, and a pause is not made up for."""
    config = EndpointConfig(link_bps=100 * GBPS, payload="none", catch_up=50_000, window=5_000)
    plans = one_way(config, [4096 * 3000], rate_bps=mbps * 1_000_000)
    pause = f"pause {A} at=50000 priority=3 quanta=20000"
    outcome = run(star, plans, extra=[f"watch {A}", pause], late=20_000)
    frames = data(outcome)
    resumed = 50_000 + 102_400
    assert not [frame for frame in frames if 50_000 < frame.at_ns < resumed]
    after = [frame for frame in frames if frame.at_ns >= resumed]
    rate = mbps * 1e6 or 100e9 * 4154 / (4154 + 24)
    sent = sum(frame.wire for frame in after[:-1])
    assert sent * 8e9 / (after[-1].at_ns - after[0].at_ns) == pytest.approx(rate, rel=0.01)


def test_a_slow_queue_pair_does_not_hold_up_a_fast_one(star: Path) -> None:
    pairs = [ends(A, B, 17, rate_bps=GBPS), ends(A, B, 33)]
    outcome = side_by_side(star, pairs, [[4096 * 20], [4096 * 2000]])
    fast = outcome.hosts[A].transfers[10_000]
    assert fast.end_ns is not None
    assert 4096 * 2000 * 8 / fast.end_ns > 95 * 4096 / (4096 + 82)


def test_a_pause_stops_its_priority_and_no_other(star: Path) -> None:
    pairs = [ends(A, B, 17, priority=3), ends(A, B, 33, priority=0, dscp=0)]
    quanta = 1000  # of 512 bit times: 5.12 us at 100 Gb/s
    outcome = side_by_side(
        star, pairs, [[4096 * 200], [4096 * 200]], f"pause {A} at=20000 priority=3 quanta={quanta}"
    )
    resumed = 20_000 + 5_120
    during = [f for f in data(outcome) if 20_000 < f.at_ns < resumed]
    assert during and all(frame.priority == 0 for frame in during)
    after = [f for f in data(outcome, 3) if f.at_ns >= resumed]
    assert after[0].at_ns < resumed + 700  # at most one frame of the other was on the wire
    assert outcome.counters(A)["rx_pfc_frames"] == 1
    assert outcome.counters(A)["rx_pause_transitions"] == 1
    assert outcome.hosts[A].paused_ns == {3: 5_120}


def test_a_pause_is_renewed_and_lifted(star: Path) -> None:
    outcome = side_by_side(
        star,
        [ends(A, B, 17)],
        [[4096 * 400]],
        f"pause {A} at=20000 priority=3 quanta=2000",
        f"pause {A} at=25000 priority=3 quanta=65535",
        f"pause {A} at=60000 priority=3 quanta=0",
    )
    sent = [frame.at_ns for frame in data(outcome)]
    assert not [at for at in sent if 20_000 < at < 60_000]
    assert 60_000 in sent
    assert outcome.counters(A)["rx_pfc_frames"] == 3
    assert outcome.counters(A)["rx_pause_transitions"] == 1
    assert outcome.hosts[A].paused_ns == {3: 40_000}


@pytest.mark.parametrize(("acks", "waits"), [(None, True), ("data", True), ("control", False)])
def test_a_pause_holds_acknowledgements_unless_they_have_a_class_of_their_own(
    star: Path, acks: str | None, waits: bool
) -> None:
    outcome = side_by_side(
        star,
        [ends(A, B, 17)],
        [[4096 * 100]],
        f"pause {B} at=1 priority=3 quanta=65535",
        config=EndpointConfig(link_bps=100 * GBPS, acks=acks),
    )
    assert not unfinished(outcome.hosts[A])
    assert (outcome.end_ns > 65535 * 512 // 100) is waits


def test_a_pause_of_data_does_not_hold_notices_of_congestion(star: Path) -> None:
    """They have the control class, whatever acknowledgements have."""
    outcome = side_by_side(
        star,
        [ends(A, B, 17, cc="dcqcn")],
        [[4096 * 100]],
        f"pause {B} at=1 priority=3 quanta=65535",
        f"mark {B} at=5000",
        f"watch {B}",
    )
    cnps = [frame for frame in outcome.frames if frame.opcode == 0x81]
    acks = [frame for frame in outcome.frames if frame.opcode == 0x11]
    assert cnps and all(frame.priority == 6 for frame in cnps)
    assert acks and all(frame.priority == 3 for frame in acks)
    assert cnps[0].at_ns < 65535 * 512 // 100 < acks[0].at_ns


def test_a_long_pause_is_no_silence_of_the_peer(star: Path) -> None:
    """Nothing can leave, so time-outs say nothing about the peer: the queue pair survives."""
    config = EndpointConfig(link_bps=100 * GBPS, payload="none", rto=20_000, retry_limit=2)
    pauses = [f"pause {A} at={at} priority=3 quanta=65535" for at in range(5_000, 900_000, 100_000)]
    outcome = side_by_side(star, [ends(A, B, 17)], [[4096 * 400]], *pauses, config=config)
    assert not outcome.hosts[A].qp_errors
    assert not unfinished(outcome.hosts[B])


def test_incast_overflows_and_recovers_without_pause(star: Path) -> None:
    outcome = side_by_side(
        star,
        [ends(A, B, 17 + 2 * index) for index in range(4)],
        [[1_000_000]] * 4,
        config=EndpointConfig(link_bps=200 * GBPS, payload="none", rto=200_000),
        limit=200_000,
    )
    assert outcome.dropped > 0
    assert not unfinished(outcome.hosts[B])


def turns(by_number: bool) -> EndpointConfig:
    return EndpointConfig(link_bps=100 * GBPS, payload="none", by_number=int(by_number))


def turns_by_number(
    wires: list[list[int]], rates: list[int], overhead: int
) -> list[tuple[int, int]]:
    """Who sends, and when in ps: one frame at a time, of those that are due the next by number."""
    ready, sent = [0] * len(wires), [0] * len(wires)
    free, last, found = 0, 0, []
    while waiting := [who for who, its in enumerate(wires) if sent[who] < len(its)]:
        now = -(-max(free, min(ready[who] for who in waiting)) // 1000) * 1000  # it wakes each ns
        due = [who for who in waiting if ready[who] <= now]
        last = min(due, key=lambda who: (who - last - 1) % len(wires))
        at = max(ready[last], free, now - 999)
        wire = wires[last][sent[last]]
        found.append((last, at))
        sent[last] += 1
        free = at + (wire + overhead) * 8 * 10**12 // FAST.link_bps
        ready[last] = at + wire * 8 * 10**12 // rates[last]
    return found


@pytest.mark.parametrize("seed", range(6))
def test_turns_by_number_are_those_of_a_model(star: Path, seed: int) -> None:
    """Frames leave in the model's order, at its times; by the queue others do."""
    rng = random.Random(seed)
    count = rng.randint(3, 9)
    rates = [rng.choice((3, 10, 27, 50, 99, 100)) * GBPS for _ in range(count)]
    pairs = [
        ends(A, B, 17 + 2 * who, rate_bps=rate, psn=who << 16, remote_psn=who << 16)
        for who, rate in enumerate(rates)
    ]
    sizes = [[4096 * rng.randint(5, 40) + rng.randrange(4096)] for _ in range(count)]
    orders = []
    for by_number in (True, False):
        config = turns(by_number)
        frames = data(side_by_side(star, pairs, sizes, config=config))
        orders.append([(frame.psn >> 16, frame.at_ns) for frame in frames])
        if by_number:
            wires = [[f.wire for f in frames if f.psn >> 16 == who] for who in range(count)]
    expected = [(who, -(-at // 1000)) for who, at in turns_by_number(wires, rates, overhead=24)]
    assert orders[0] == expected, f"seed {seed}"
    assert orders[1] != expected


def test_who_sends_slowly_waits_less_by_number(star: Path) -> None:
    """Beside one at the link's rate: for the rest of its frame, not for a whole one besides."""
    waits = []
    for by_number in (False, True):
        config = turns(by_number)
        pairs = [ends(A, B, 17, rate_bps=7 * GBPS), ends(A, B, 33, psn=1 << 16, remote_psn=1 << 16)]
        outcome = side_by_side(star, pairs, [[4096 * 100], [4096 * 2000]], config=config)
        slow = [frame for frame in data(outcome) if frame.psn < 1 << 16]
        gap_ns = (slow[-1].at_ns - slow[0].at_ns) / (len(slow) - 1)
        waits.append(gap_ns - 8 * slow[1].wire / 7)
    frame_ns = 8 * (4096 + 58 + 24) / 100
    assert 0 < waits[1] < frame_ns < waits[0] < 2 * frame_ns
