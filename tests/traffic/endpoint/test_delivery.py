"""UET's other modes of delivery: in order (ROD), to a target that keeps nothing (RUDI), none (UUD).

How often packets go is held against what textbooks have of go-back-n and selective repeat, which
know of these endpoints nothing but their link's rate, its length and how many frames it loses.
"""

from __future__ import annotations

import random
import struct
from math import ceil
from pathlib import Path

import pytest

from tests.traffic.endpoint.star import (
    A,
    B,
    C,
    Outcome,
    ends,
    one_way,
    receives,
    run,
    sends,
    unfinished,
)
from tests.traffic.endpoint.test_uet import config, uet_frame, uet_pair
from traffic.endpoint import Delivery, EndpointConfig, EndpointPlan, Entropy, Headers

RELIABLE = [Delivery.ROD, Delivery.RUDI]
HEADERS = {Delivery.RUD: 12, Delivery.ROD: 12, Delivery.RUDI: 8, Delivery.UUD: 4}
FORMS = {Headers.STANDARD: (3, 44), Headers.MEDIUM: (2, 32), Headers.SMALL: (1, 20)}
TYPES = {Delivery.RUD: 2, Delivery.ROD: 3, Delivery.RUDI: 4, Delivery.UUD: 6}


def mode(delivery: Delivery, **changes: object) -> EndpointConfig:
    ways = Entropy.SINGLE if delivery is Delivery.ROD else Entropy.OBLIVIOUS
    return config(**({"delivery": delivery, "entropy": ways} | changes))


@pytest.mark.parametrize("delivery", RELIABLE)
@pytest.mark.parametrize(
    "seed", [*range(4), *(pytest.param(seed, marks=pytest.mark.slow) for seed in range(4, 150))]
)
def test_a_random_world_comes_right(strict_star: Path, seed: int, delivery: Delivery) -> None:
    """Messages both ways among losses, cuts, doubles and reordering; each comes once, and whole."""
    rng = random.Random(seed)
    own = mode(
        delivery,
        headers=[*Headers][seed % 3],
        mtu=rng.choice((256, 1024, 4096)),
        window=rng.choice((1, 7, 64, 512)),
        entropies=rng.choice((1, 64)),
        rto=6_000_000,
        ip=4 + 2 * (seed % 2),
        seed=seed,
        acks="lossless" if seed % 5 < 2 else "control",
        lossless=1 << 3 if seed % 5 < 2 else 0,
    )
    cc = rng.choice(("none", "nscc", "swift"))
    pair = ends(A, B, 100, ip=own.ip, **uet_pair(cc=cc))
    most = rng.choice((400, 60_000))
    sizes = [[rng.randrange(most) for _ in range(rng.choice((1, 20)))] for _ in range(2)]
    transfers = [
        (
            *sends(pair[side], sizes[side], 1000 * side),
            *receives(pair[side], sizes[1 - side], 1000 * (1 - side)),
        )
        for side in range(2)
    ]
    plans = {
        host: EndpointPlan(config=own, queue_pairs=(pair[side],), transfers=transfers[side])
        for side, host in enumerate((A, B))
    }
    outcome = run(
        strict_star,
        plans,
        seed=seed,
        loss=rng.choice((0, 0.003, 0.03)),
        corrupt=rng.choice((0, 0.01)),
        duplicate=rng.choice((0, 0.02)),
        reorder=0 if delivery is Delivery.ROD else rng.choice((0, 0.05)),
        limit=rng.choice((1e12, 50_000)),
        trim=rng.choice((0, 1)),
        timeout=200e9,
    )
    for side, host in enumerate((A, B)):
        report = outcome.hosts[host]
        assert not report.qp_errors and not unfinished(report), f"seed {seed}"
        assert report.counters["rx_data_bytes"] == sum(sizes[1 - side]), f"seed {seed}"


# --- how often packets go ------------------------------------------------------------------------

MTU, PACKETS, DELAY_NS, GBPS = 1024, 60_000, 1000, 100


def lossy(star: Path, delivery: Delivery, loss: float, seed: int, **changes: object) -> Outcome:
    own = mode(delivery, mtu=MTU, window=1024, has_trimming=0, retry_limit=250, **changes)
    plans = one_way(own, [MTU * PACKETS], **uet_pair())
    return run(star, plans, seed=seed, loss=loss, delay=DELAY_NS, timeout=200e9)


def bits_ns(frame: int) -> float:
    return (frame + 24) * 8 / GBPS


def sent_for_each(delivery: Delivery, loss: float) -> float:
    """Transmissions by packet that arrives, after Bertsekas and Gallager, 2.4.

    Go-back-n: a loss wastes all that leaves until the sender hears of it, which is when the packet
    behind the lost one has come, and its answer has. Selective repeat: a packet goes again where it
    is lost, or, if answers tell of one packet each, its answer.
    """
    if delivery is Delivery.ROD:
        packet, answer = bits_ns(14 + 20 + 8 + 12 + 44 + MTU + 4), bits_ns(14 + 20 + 8 + 16 + 4)
        heard = 3 * packet + 2 * answer + 4 * DELAY_NS
        return 1 + loss / (1 - loss) * ceil(heard / packet)
    return 1 / (1 - loss) ** (2 if delivery is Delivery.RUDI else 1)


@pytest.mark.parametrize("delivery", [Delivery.RUD, *RELIABLE])
@pytest.mark.parametrize("loss", [0.002, pytest.param(0.01, marks=pytest.mark.slow)])
def test_as_often_as_theory_says(star: Path, delivery: Delivery, loss: float) -> None:
    again = 0
    for seed in range(4):
        outcome = lossy(star, delivery, loss, seed)
        assert not unfinished(outcome.hosts[B])
        again += outcome.counters(A)["retransmitted_packets"]
    sent = 1 + again / (4 * PACKETS)
    expected = sent_for_each(delivery, loss)
    assert sent == pytest.approx(expected, rel=0.05)
    assert sent - 1 == pytest.approx(expected - 1, rel=0.12)  # of few losses


@pytest.mark.parametrize("loss", [0, 0.05])
def test_a_datagram_is_sent_once_and_never_answered(star: Path, loss: float) -> None:
    own = mode(Delivery.UUD, mtu=MTU)
    plans = one_way(own, [MTU] * 4000, **uet_pair())
    outcome = run(star, plans, seed=1, loss=loss)
    sender, receiver = outcome.counters(A), outcome.counters(B)
    assert not unfinished(outcome.hosts[A])
    assert sender["tx_data_packets"] == 4000
    assert sender["retransmitted_packets"] == 0
    assert receiver["tx_acks"] == receiver["tx_naks"] == sender["rx_acks"] == 0
    arrived = 4000 - len(unfinished(outcome.hosts[B]))
    assert receiver["rx_data_packets"] == arrived
    assert arrived == pytest.approx(4000 * (1 - loss) ** (1 if loss else 0), rel=0.03)


# --- on the wire ---------------------------------------------------------------------------------


@pytest.mark.parametrize("delivery", list(Delivery))
def test_headers_are_the_specifications(star: Path, delivery: Delivery) -> None:
    """Types and fields by its tables 3-33, 3-39 and 3-42, and where a job is told."""
    own = mode(delivery, mtu=256)
    outcome = run(star, one_way(own, [700], **uet_pair()), extra=[f"capture {A}"])
    frames = [frame[42:] for frame in outcome.captured]
    assert [frame[0] >> 3 for frame in frames] == [TYPES[delivery]] * 3
    pds = HEADERS[delivery]
    assert [len(frame) for frame in frames] == [pds + 44 + n + 4 for n in (256, 256, 188)]
    assert {frame[0] & 7 << 8 | frame[1] >> 7 for frame in frames} <= {1}  # next: SES, standard
    if delivery is Delivery.RUDI:
        ids = [int.from_bytes(frame[4:8], "big") for frame in frames]
        assert [each - ids[0] for each in ids] == [0, 1, 2]
    if pds < 12:
        assert {frame[2:4] for frame in frames} == {b"\0\0"}
        (job,) = {int.from_bytes(frame[pds + 5 : pds + 8], "big") for frame in frames}
        assert job == int(one_way(own, [1], **uet_pair())[B].queue_pairs[0].number)


@pytest.mark.parametrize("headers", list(Headers))
@pytest.mark.parametrize("delivery", list(Delivery))
def test_a_message_of_a_packet_may_have_shorter_ones(
    star: Path, delivery: Delivery, headers: Headers
) -> None:
    """Of 32 or 20 bytes in place of 44, and of no other message."""
    own = mode(delivery, mtu=256, headers=headers, entropy=Entropy.SINGLE)
    outcome = run(star, one_way(own, [200, 700, 256, 0], **uet_pair()), extra=[f"capture {A}"])
    assert not unfinished(outcome.hosts[B])
    pds, (form, size) = HEADERS[delivery], FORMS[headers]
    said = sorted(
        (len(frame) - pds - 4, (frame[0] & 7) << 1 | frame[1] >> 7, frame[pds + 1] & 3)
        for frame in (frame[42:] for frame in outcome.captured)
        if frame[0] >> 3 == TYPES[delivery]
    )
    whole = [(size + n, form, 3) for n in (0, 200, 256)]
    parts = [(44 + 256, 3, 1), (44 + 256, 3, 0), (44 + 188, 3, 2)]
    assert said == sorted([*whole, *parts])


@pytest.mark.parametrize("headers", [Headers.MEDIUM, Headers.SMALL])
def test_short_headers_that_are_wrong_are_refused_and_counted(
    strict_star: Path, headers: Headers
) -> None:
    """A packet of another length than it says, of one of several, of nobody's memory, cut short, or
    of a form that there is not; as it was it is taken, and ends the run before A's own comes."""
    plans = one_way(mode(Delivery.UUD, mtu=256, headers=headers), [40], **uet_pair())
    sent = run(strict_star, plans, extra=[f"capture {A}"]).captured[0][42:-4]
    key = 4 + (24 if headers is Headers.MEDIUM else 12)  # or the place, which begins with it

    def with_bits(at: int, bits: int) -> bytes:
        return sent[:at] + bytes([sent[at] ^ bits]) + sent[at + 1 :]

    bad = [
        *(sent[:-1], sent[:20], sent[:3], sent + bytes(1), with_bits(7, 1), with_bits(6, 4)),
        *(with_bits(5, 1), with_bits(5, 2), with_bits(4, 2), with_bits(key, 0x80)),
        *(with_bits(0, 4), with_bits(9, 0x20), with_bits(0, 0x40)),
    ]
    assert len({sent, *bad}) == 1 + len(bad)
    words = [
        f"inject {B} at={5 * at} {uet_frame(body, src=A, dst=B, dscp=26).hex()}"
        for at, body in enumerate([*bad, sent])
    ]
    outcome = run(strict_star, plans, extra=words)
    counters = outcome.counters(B)
    reasons = ("rx_refused", "rx_malformed", "rx_no_queue_pair")
    assert sum(counters[name] for name in reasons) == len(bad)
    assert all(counters[name] for name in reasons)
    assert counters["rx_data_bytes"] == 40 and not outcome.hosts[B].qp_errors


def test_what_comes_early_is_refused_and_says_what_is_expected(star: Path) -> None:
    own = mode(Delivery.ROD, mtu=256)
    outcome = run(
        star, one_way(own, [256 * 2000], **uet_pair()), extra=[f"capture {B}"], loss=0.01, seed=3
    )
    assert not unfinished(outcome.hosts[B])
    refusals = [frame[42:58] for frame in outcome.captured if frame[42] >> 3 == 10]
    assert len(refusals) > 10
    for refusal in refusals:
        code, psn = refusal[2], int.from_bytes(refusal[4:8], "big")
        expected = int.from_bytes(refusal[12:16], "big")
        assert code == 13 and expected < psn


@pytest.mark.parametrize("delivery", [Delivery.ROD, Delivery.RUDI, Delivery.UUD])
def test_strangers_and_other_modes_change_nothing(strict_star: Path, delivery: Delivery) -> None:
    """Packets of every type and of random bytes, by the peer and by somebody else."""
    rng = random.Random(str(delivery))
    plans = one_way(mode(delivery, mtu=256), [256 * 50], **uet_pair())
    there = plans[B].queue_pairs[0].number
    words = []
    for at in range(300):
        kind, src = rng.choice((0, 1, 2, 3, 4, 5, 6, 8, 10, 11, 13, 14, 31)), rng.choice((A, C))
        body = struct.pack(
            "!HHIHH", kind << 11 | 3 << 7 | rng.randrange(128), 0, there << 16, 17, there
        )
        body += rng.randbytes(rng.choice((0, 4, 20, 44, 100)))
        dst = rng.choice((A, B))
        if src != dst:
            frame = uet_frame(body[rng.choice((0, 0, 4)) :], src=src, dst=dst)
            words.append(f"inject {dst} at={at * 7} {frame.hex()}")
    outcome = run(strict_star, plans, extra=words)
    assert not unfinished(outcome.hosts[B])
    assert not outcome.hosts[A].qp_errors and not outcome.hosts[B].qp_errors
    assert outcome.counters(B)["rx_data_bytes"] == 256 * 50
