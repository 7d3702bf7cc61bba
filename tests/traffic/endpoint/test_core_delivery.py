"""Every byte once and right, or an error that says so: loss, copies, disorder and damage."""

import random
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

import pytest

from tests.traffic.endpoint.star import (
    GBPS,
    A,
    B,
    C,
    Outcome,
    Sent,
    ends,
    one_way,
    receives,
    run,
    sends,
    unfinished,
)
from traffic.endpoint import (
    EndpointConfig,
    EndpointPlan,
    Recovery,
    Transfer,
    TransferKind,
    TransferState,
)

CROSSING_NS = 2000  # from one host to another, the frame itself aside
FAULTS = {"loss": 0.01, "duplicate": 0.01, "reorder": 0.02, "corrupt": 0.01, "shake": 5000}
QUICK = {"rto": 100_000}  # virtual time is cheap, but a tail lost at 4 s a time adds up


def sizes_of(rng: random.Random, count: int, most: int = 60_000, mtu: int = 4096) -> list[int]:
    """Sizes about the places where segmenting goes wrong, and any others."""
    return [
        rng.choice((0, 1, 3, 4, 7, 8, mtu - 1, mtu, mtu + 1, 2 * mtu, rng.randrange(most)))
        for _ in range(count)
    ]


def assert_delivered(
    outcome: Outcome, sizes: list[int], sender: str = A, receiver: str = B
) -> None:
    sent, received = outcome.hosts[sender], outcome.hosts[receiver]
    assert not sent.qp_errors
    assert not unfinished(sent) and not unfinished(received)
    assert received.counters["rx_data_bytes"] == sum(sizes)
    assert received.counters["messages_received"] == len(sizes)


@pytest.mark.by_day(1)
@pytest.mark.parametrize("recovery", Recovery)
@pytest.mark.parametrize("seed", range(3))
def test_what_arrives_is_right_whatever_the_network_does(
    strict_star: Path, recovery: Recovery, seed: int
) -> None:
    rng = random.Random(seed)
    mtu = rng.choice((256, 1024, 4000, 4096))
    # A message of many packets never gets through whole: that is go-back-0's own fault.
    restarts = recovery is Recovery.GO_BACK_0
    sizes = sizes_of(rng, 1500, 10 * mtu, mtu) if restarts else sizes_of(rng, 1500, 60_000, mtu)
    config = EndpointConfig(
        link_bps=rng.choice((10, 100, 400)) * GBPS,
        mtu=mtu,
        recovery=recovery,
        window=rng.choice((1, 3, 64, 512)),
        ack_every=rng.choice((1, 4, 64)),
        reorder=0,
        **QUICK,
    )
    psn = rng.choice((0, 0xFFFFF0))
    outcome = run(
        strict_star,
        one_way(config, sizes, psn=psn, remote_psn=psn),
        seed=seed,
        timeout=60e9,
        **FAULTS,
    )
    assert_delivered(outcome, sizes)
    assert outcome.counters(A)["retransmitted_packets"] > 0
    assert outcome.counters(B)["duplicate_request"] > 0
    assert outcome.counters(B)["rx_icrc_errors"] > 0


@pytest.mark.by_day(1)
@pytest.mark.parametrize("recovery", Recovery)
def test_many_messages(star: Path, recovery: Recovery) -> None:
    sizes = sizes_of(random.Random(9), 20_000, 16_000)
    config = EndpointConfig(link_bps=100 * GBPS, recovery=recovery, window=64, **QUICK)
    outcome = run(star, one_way(config, sizes), seed=9, timeout=60e9, **FAULTS)
    assert_delivered(outcome, sizes)


@pytest.mark.slow
@pytest.mark.parametrize("recovery", Recovery)
@pytest.mark.parametrize("seed", range(3))
def test_a_hundred_thousand_messages(star: Path, recovery: Recovery, seed: int) -> None:
    sizes = sizes_of(random.Random(seed), 100_000)
    config = EndpointConfig(link_bps=100 * GBPS, recovery=recovery, window=64, **QUICK)
    outcome = run(star, one_way(config, sizes), seed=seed, timeout=60e9, **FAULTS)
    assert_delivered(outcome, sizes)


def test_many_queue_pairs_both_ways_at_once(strict_star: Path) -> None:
    rng = random.Random(4)
    config = EndpointConfig(link_bps=100 * GBPS, **QUICK)
    pairs = [ends(A, B, 100 + 2 * index) for index in range(40)]
    plans: dict[str, list[Transfer]] = {A: [], B: []}
    total = {A: 0, B: 0}
    for index, (here, there) in enumerate(pairs):
        for way in range(2):
            sizes = sizes_of(rng, 20)
            source, sink = ((A, here), (B, there)) if way == 0 else ((B, there), (A, here))
            first = 1000 * (2 * index + way)
            plans[source[0]] += sends(source[1], sizes, first)
            plans[sink[0]] += receives(sink[1], sizes, first)
            total[sink[0]] += sum(sizes)
    outcome = run(
        strict_star,
        {
            host: EndpointPlan(
                config=config,
                queue_pairs=tuple(pair[0 if host == A else 1] for pair in pairs),
                transfers=tuple(plans[host]),
            )
            for host in (A, B)
        },
        seed=4,
        timeout=60e9,
        **FAULTS,
    )
    for host in (A, B):
        assert not unfinished(outcome.hosts[host])
        assert outcome.counters(host)["rx_data_bytes"] == total[host]


def test_the_same_seed_gives_the_same_run(star: Path) -> None:
    sizes = sizes_of(random.Random(2), 300)
    plans = one_way(EndpointConfig(link_bps=100 * GBPS, **QUICK), sizes)
    first, again, other = (run(star, plans, seed=seed, **FAULTS).text for seed in (7, 7, 8))
    assert first == again
    assert first != other


@pytest.mark.parametrize("recovery", Recovery)
def test_without_faults_nothing_is_sent_twice(star: Path, recovery: Recovery) -> None:
    sizes = sizes_of(random.Random(1), 200)
    outcome = run(star, one_way(EndpointConfig(link_bps=100 * GBPS, recovery=recovery), sizes))
    assert_delivered(outcome, sizes)
    for counter in ("retransmitted_packets", "packet_seq_err", "local_ack_timeout_err"):
        assert outcome.counters(A)[counter] == 0
    for counter in ("out_of_sequence", "duplicate_request", "rx_malformed", "rx_icrc_errors"):
        assert outcome.counters(B)[counter] == 0


def test_what_one_loss_costs(star: Path) -> None:
    """The recoveries as their names say: restart the message, rewind, or fill the hole."""
    resent: dict[Recovery, list[int]] = {}
    for recovery in Recovery:
        config = EndpointConfig(link_bps=100 * GBPS, recovery=recovery, ack_every=1)
        # Seeds are tried until one loses exactly one data packet in the middle of the message.
        for seed in range(60):
            outcome = run(star, one_way(config, [4096 * 400]), seed=seed, loss=0.003)
            if (
                outcome.counters(A)["packet_seq_err"]
                and not outcome.counters(A)["local_ack_timeout_err"]
            ):
                resent.setdefault(recovery, []).append(outcome.counters(A)["retransmitted_packets"])
    average = {recovery: sum(counts) / len(counts) for recovery, counts in resent.items()}
    assert average[Recovery.SELECTIVE] < 5
    assert 5 < average[Recovery.GO_BACK_N] < average[Recovery.GO_BACK_0] / 2


def test_reordering_alone_need_not_cost_selective_anything(star: Path) -> None:
    faults = {"reorder": 0.05, "shake": 3000}
    strict, patient, adaptive = (
        run(
            star,
            one_way(
                EndpointConfig(link_bps=100 * GBPS, recovery=Recovery.SELECTIVE, reorder=degree),
                [4096 * 2000],
            ),
            **faults,
        )
        for degree in (0, 3001, None)
    )
    assert strict.counters(A)["retransmitted_packets"] > 20
    for outcome in (patient, adaptive):
        assert outcome.counters(A)["retransmitted_packets"] == 0
        assert outcome.counters(B)["out_of_sequence"] > 50


def test_a_peer_that_is_not_there_is_an_error_and_no_hang(strict_star: Path) -> None:
    config = EndpointConfig(link_bps=100 * GBPS, rto=50_000, retry_limit=3)
    outcome = run(strict_star, one_way(config, [10_000, 20_000]), loss=1.0)
    sender = outcome.hosts[A]
    assert [error.reason for error in sender.qp_errors] == ["retry-exceeded"]
    # The first time-out and three retries, each as long, and not a packet more.
    assert 4 * 50_000 <= sender.qp_errors[0].at_ns < 4 * 50_000 + 2_000
    assert [report.state for report in sender.transfers.values()] == [TransferState.FAILED] * 2
    assert sender.counters["local_ack_timeout_err"] == 4
    assert sender.counters["qp_errors"] == 1


@pytest.mark.parametrize(
    "limit",
    [
        {"rto": 50_000, "retry_limit": 3},  # of time-outs in a row
        {"rto_first": 50_000, "rto": 200_000, "retry_limit": 2},  # of silence: eight of the first
    ],
    ids=["retries", "silence"],
)
def test_progress_clears_what_counts_against_the_limit(
    strict_star: Path, limit: dict[str, int]
) -> None:
    """Single packets one by one: whatever is lost is noticed by a time-out and by nothing else."""
    config = EndpointConfig(link_bps=100 * GBPS, window=1, **limit)
    sizes = [1000] * 400
    outcome = run(strict_star, one_way(config, sizes), seed=1, loss=0.03, timeout=60e9)
    assert_delivered(outcome, sizes)
    assert outcome.counters(A)["local_ack_timeout_err"] > 3 * 4
    assert outcome.counters(A)["packet_seq_err"] == 0


def silences(outcome: Outcome, rto: int) -> Iterator[int]:
    """The number of each time-out in its row, by what was on the wire.

    An ACK is progress if it says more than any before it; a NAK says that the peer is there, and
    waits for something that was sent. A time-out is when what is awaited is sent again, and it was
    not a NAK that asked for it.
    """
    answers = [frame for frame in outcome.frames if frame.host == B]
    bodies = [frame for frame in outcome.captured if frame[42] == 0x11]
    known = sent = next(frame.psn for frame in outcome.frames if frame.host == A)
    events: list[tuple[int, int, Sent, bool]] = [
        (frame.at_ns + CROSSING_NS, 0, frame, body[54] >> 5 == 3)
        for frame, body in zip(answers, bodies, strict=True)
    ]
    events += [(f.at_ns, 1, f, False) for f in outcome.frames if f.host == A]
    row, asked_at = 0, -1
    for at_ns, is_data, frame, is_nak in sorted(events, key=lambda event: event[:2]):
        if is_data:
            if frame.psn == known and frame.psn < sent and at_ns > asked_at + rto // 2:
                row += 1
                yield row
            sent = max(sent, frame.psn + 1)
        elif (says := frame.psn + (not is_nak)) > known or (is_nak and known <= says < sent):
            known, row, asked_at = says, 0, at_ns


def test_a_nak_is_a_sign_of_life_as_good_as_progress(strict_star: Path) -> None:
    """Frames lost by lot, answers never: it gives up after so many time-outs in a row, and only so.

    Most are lost for a while, and a peer that hears any but the first has only a NAK to say.
    """
    rto, limit, ends_met = 50_000, 2, set()
    config = EndpointConfig(link_bps=100 * GBPS, window=3, rto=rto, retry_limit=limit)
    watched = [f"watch {A}", f"watch {B}", f"capture {B}"]
    for seed in range(24):
        rng, sizes = random.Random(seed), [12_000]
        lost = [f"lose {A} nth={nth}" for nth in range(60) if rng.random() < 0.7]
        outcome = run(strict_star, one_way(config, sizes), extra=watched + lost, timeout=60e9)
        rows, errors = list(silences(outcome, rto)), outcome.hosts[A].qp_errors
        if errors:
            assert [error.reason for error in errors] == ["retry-exceeded"]
            assert rows[-limit:] == [1, 2], (seed, rows)  # and the next was one too many
        else:
            assert_delivered(outcome, sizes)
        assert max(rows, default=0) <= limit, (seed, rows)
        naks = outcome.counters(A)["packet_seq_err"]
        ends_met.add((bool(errors), naks > 0 and outcome.counters(A)["rx_acks"] == 0))
    assert ends_met >= {(True, True), (True, False), (False, False)}


@pytest.mark.parametrize("seed", range(8))
def test_an_adaptive_time_out_doubles_and_the_silence_is_limited(
    strict_star: Path, seed: int
) -> None:
    rng = random.Random(seed)
    first = rng.randrange(5_000, 50_000)
    longest, retries = first * rng.randrange(1, 40), rng.randrange(8)
    config = EndpointConfig(link_bps=100 * GBPS, rto=longest, rto_first=first, retry_limit=retries)
    outcome = run(strict_star, one_way(config, [100]), loss=1.0, timeout=60e9)
    silence = fired = 0
    time_out = first
    while True:
        silence, fired, time_out = silence + time_out, fired + 1, min(2 * time_out, longest)
        if silence >= longest * retries:
            break
    (error,) = outcome.hosts[A].qp_errors
    assert outcome.counters(A)["local_ack_timeout_err"] == fired
    assert silence <= error.at_ns < silence + 1000 * fired


def test_after_progress_an_adaptive_time_out_is_short_again(strict_star: Path) -> None:
    """Each message pays for its own losses, whatever the one before it went through."""
    first = 100_000
    config = EndpointConfig(
        link_bps=100 * GBPS, rto=10**10, rto_first=first, retry_limit=200, window=1
    )
    sizes = [1000] * 300
    plans = one_way(config, sizes)
    outcome = run(strict_star, plans, seed=3, loss=0.3, timeout=60e9)
    assert_delivered(outcome, sizes)
    spans = sorted(outcome.hosts[A].transfers.values(), key=lambda each: each.end_ns or 0)
    ends = [0, *(each.end_ns or 0 for each in spans)]
    for before, after in pairwise(ends):
        lost = max(0, round((after - before) / first + 1).bit_length() - 1)
        assert after - before < first * (2**lost - 1) + 5000 * (lost + 1)
    assert outcome.counters(A)["local_ack_timeout_err"] > 200


def test_a_time_out_of_nothing_never_fires(strict_star: Path) -> None:
    """As verbs have it: 0 is for ever."""
    config = EndpointConfig(link_bps=100 * GBPS, rto=0)
    outcome = run(strict_star, one_way(config, [100]), loss=1.0, timeout=1e12)
    assert not outcome.hosts[A].qp_errors
    assert outcome.counters(A)["local_ack_timeout_err"] == 0


def test_a_peer_that_dies_fails_its_own_transfers_and_no_others(strict_star: Path) -> None:
    config = EndpointConfig(link_bps=100 * GBPS, rto=50_000, retry_limit=3)
    ab, ba = ends(A, B, 17)
    ac, ca = ends(A, C, 33)
    big, small = [50_000_000], [1_000_000] * 20
    waits = Transfer(id=90, kind=TransferKind.SEND, queue_pair=ac.number, size=100, after=(1,))
    plans = {
        A: EndpointPlan(
            config=config,
            queue_pairs=(ab, ac),
            transfers=(*sends(ab, big, 1), *sends(ac, small, 10), waits),
        ),
        B: EndpointPlan(config=config, queue_pairs=(ba,), transfers=receives(ba, big, 1)),
        C: EndpointPlan(config=config, queue_pairs=(ca,), transfers=receives(ca, small, 10)),
    }
    outcome = run(strict_star, plans, extra=[f"kill {B} at=1000000"], timeout=20e6)
    sender = outcome.hosts[A]
    assert [(error.number, error.reason) for error in sender.qp_errors] == [(17, "retry-exceeded")]
    assert sender.transfers[1].state is TransferState.FAILED
    assert sender.transfers[90].state is TransferState.WAITING  # for one that failed
    assert not unfinished(outcome.hosts[C])


def test_a_message_that_nobody_expects_is_refused_by_name(strict_star: Path) -> None:
    config = EndpointConfig(link_bps=100 * GBPS)
    here, there = ends(A, B)
    outcome = run(
        strict_star,
        {
            A: EndpointPlan(config=config, queue_pairs=(here,), transfers=sends(here, [5000], 7)),
            B: EndpointPlan(config=config, queue_pairs=(there,), transfers=()),
        },
    )
    assert [e.reason for e in outcome.hosts[A].qp_errors] == ["local-protection", "remote-access"]


@pytest.mark.parametrize("recovery", Recovery)
def test_a_message_larger_than_expected_is_refused(strict_star: Path, recovery: Recovery) -> None:
    config = EndpointConfig(link_bps=100 * GBPS, recovery=recovery)
    plans = one_way(config, [9000])
    here = plans[A].queue_pairs[0]
    plans[A] = EndpointPlan(config=config, queue_pairs=(here,), transfers=sends(here, [9001]))
    outcome = run(strict_star, plans)
    assert outcome.hosts[A].transfers[1].state is TransferState.FAILED
    assert outcome.hosts[B].transfers[1].state is not TransferState.DONE
    assert "remote-access" in {e.reason for e in outcome.hosts[A].qp_errors}


def test_a_stray_packet_with_a_known_number_is_not_taken(strict_star: Path) -> None:
    """C has a queue pair of the number that A's peer has; what A sends to C is not for it."""
    config = EndpointConfig(link_bps=100 * GBPS, rto=20_000, retry_limit=1)
    ab, ba = ends(A, B, 17)
    astray, _ = ends(A, C, 17)
    plans = {
        A: EndpointPlan(config=config, queue_pairs=(astray,), transfers=sends(astray, [500])),
        B: EndpointPlan(config=config, queue_pairs=(), transfers=()),
        C: EndpointPlan(config=config, queue_pairs=(ends(C, B, 18)[0],), transfers=()),
    }
    assert (ab.number, ba.number) == (17, 18)
    outcome = run(strict_star, plans, timeout=1e6)
    assert outcome.counters(C)["rx_no_queue_pair"] == 2
    assert [error.reason for error in outcome.hosts[A].qp_errors] == ["retry-exceeded"]


def test_selective_recovery_wastes_what_is_lost_and_little_more(star: Path) -> None:
    config = EndpointConfig(link_bps=100 * GBPS, payload="none", recovery=Recovery.SELECTIVE)
    clean, lossy = (
        run(star, one_way(config, [400_000_000]), seed=5, loss=loss) for loss in (0, 0.01)
    )
    share = lossy.counters(A)["retransmitted_packets"] / clean.counters(A)["tx_data_packets"]
    assert 0.009 < share < 0.012
    assert clean.end_ns / lossy.end_ns > 0.93
