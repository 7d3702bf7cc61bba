"""UET's security sublayer: frames open by another implementation, and hostile ones do nothing."""

from __future__ import annotations

import random
import struct
from collections import Counter
from pathlib import Path

import pytest
from cryptography.exceptions import InvalidTag

from tests.traffic.endpoint.star import A, B, C, Outcome, ends, receives, run, sends, unfinished
from tests.traffic.endpoint.test_uet import config, uet_pair
from tests.traffic.endpoint.tss_model import ICV, header_of, opened, sealed
from traffic.endpoint import (
    Delivery,
    EndpointConfig,
    EndpointPlan,
    Entropy,
    QueuePair,
    SecureKey,
)
from traffic.messages import pattern

SDI = 0xABCDE
KEYS = [bytes(random.Random(n).randbytes(32)) for n in range(4)]
REFUSED = [
    *("rx_tss_unprotected", "rx_tss_unknown", "rx_tss_forged", "rx_tss_replayed", "rx_tss_late"),
    *("rx_malformed", "rx_other", "rx_no_queue_pair", "rx_refused"),
]


def secure(**changes: object) -> EndpointConfig:
    return config(security=1, mtu=1024, **changes)


def plans(own: EndpointConfig, sizes: list[int], **settings: object) -> dict[str, EndpointPlan]:
    """A sends messages to B, both of one domain."""
    here, there = ends(A, B, ip=own.ip or 4, **uet_pair(sdi=SDI, **settings))
    keys = (SecureKey(SDI, 0, KEYS[0]),) if own.security else ()
    return {
        A: EndpointPlan(config=own, queue_pairs=(here,), transfers=sends(here, sizes), keys=keys),
        B: EndpointPlan(
            config=own, queue_pairs=(there,), transfers=receives(there, sizes), keys=keys
        ),
    }


def whole(outcome: Outcome, sizes: list[int]) -> bool:
    counted = outcome.counters(B)
    return not unfinished(outcome.hosts[B]) and counted["rx_data_bytes"] == sum(sizes)


@pytest.mark.parametrize("ip", [4, 6])
@pytest.mark.parametrize("delivery", list(Delivery))
def test_what_is_sent_opens_by_another_implementation(
    strict_star: Path, ip: int, delivery: Delivery
) -> None:
    ways = Entropy.SINGLE if delivery is Delivery.ROD else Entropy.OBLIVIOUS
    own = secure(ip=ip, delivery=delivery, entropy=ways)
    said = {}
    for host in (A, B):
        outcome = run(strict_star, plans(own, [5000]), extra=[f"capture {host}"])
        assert whole(outcome, [5000])
        said[host] = [opened(frame, KEYS[0]) for frame in outcome.captured]
        assert [each.count for each in said[host]] == list(range(len(said[host])))
        assert {(each.an, each.sdi, each.ssi) for each in said[host]} <= {(0, SDI, None)}
        for frame in outcome.captured:
            with pytest.raises(InvalidTag):
                opened(frame, KEYS[1])
            assert opened(frame, KEYS[0]).pds[-16:] not in frame
    headers = {Delivery.RUD: 12, Delivery.ROD: 12, Delivery.RUDI: 8, Delivery.UUD: 4}[delivery] + 44
    data = b"".join(each.pds[headers:] for each in said[A])
    assert data == pattern(1, 0, 5000)
    assert bool(said[B]) != (delivery is Delivery.UUD)


@pytest.mark.parametrize("ip", [4, 6])
def test_frames_are_as_long_as_the_equation_says(star: Path, ip: int) -> None:
    """A header of 12 bytes and an ICV of 16 in place of a CRC of 4."""
    lengths = []
    for security in (0, 1):
        own = secure(ip=ip).model_copy(update={"security": security})
        outcome = run(star, plans(own, [3000]), extra=[f"capture {A}", f"capture {B}"])
        lengths.append(sorted(len(frame) for frame in outcome.captured))
    without, with_it = lengths
    assert [long - short for short, long in zip(without, with_it, strict=True)] == [
        12 + ICV - 4
    ] * len(without)


def test_in_the_simulator_frames_have_the_same_header(star: Path) -> None:
    """Where payloads are left out all but encryption is the same."""
    heads = []
    for payload in ("pattern", "none"):
        outcome = run(star, plans(secure(payload=payload), [9000]), extra=[f"watch {A}"])
        heads.append([(frame.at_ns, frame.wire) for frame in outcome.frames])
    assert heads[0] == heads[1]


@pytest.mark.parametrize(
    "seed", [*range(3), *(pytest.param(seed, marks=pytest.mark.slow) for seed in range(3, 60))]
)
def test_a_random_world_comes_right_while_keys_change(strict_star: Path, seed: int) -> None:
    """Losses, cuts, doubles, corruption: and each packet that comes twice is told as such."""
    rng = random.Random(seed)
    own = secure(ip=4 + 2 * (seed % 2), entropies=64, seed=seed)
    sizes = [rng.randrange(60_000) for _ in range(40)]
    words = []
    for turn in range(1, 4):
        an, at = turn % 2, turn * 20_000
        for host in (A, B):
            key = SecureKey(SDI, an, KEYS[turn])
            words += [f"tell {host} at={at} {key.line()}"]
            words += [f"tell {host} at={at + 9000 + rng.randrange(500)} {key.use_line()}"]
    cc = rng.choice(("none", "nscc", "rccc"))
    outcome = run(
        strict_star,
        plans(own, sizes, cc=cc),
        extra=words,
        seed=seed,
        loss=rng.choice((0, 0.01)),
        corrupt=rng.choice((0, 0.01)),
        duplicate=rng.choice((0, 0.02)),
        reorder=rng.choice((0, 0.05)),
        limit=rng.choice((1e12, 50_000)),
        trim=1,
        keep=70,
        timeout=20e9,
    )
    assert whole(outcome, sizes), f"seed {seed}"


def test_keys_change_without_a_loss(star: Path) -> None:
    """Nothing is lost, sent again or refused; both keys were used, each count from 0."""
    own = secure()
    words = [f"capture {A}"]
    for turn in (1, 2, 3):
        key = SecureKey(SDI, turn % 2, KEYS[turn])
        for host in (A, B):
            words += [f"tell {host} at={turn * 20_000} {key.line()}"]
            words += [f"tell {host} at={turn * 20_000 + 8000} {key.use_line()}"]
    outcome = run(star, plans(own, [1_000_000]), extra=words)
    assert whole(outcome, [1_000_000])
    counted = outcome.counters(A)
    assert counted["retransmitted_packets"] == counted["local_ack_timeout_err"] == 0
    assert not any(outcome.counters(host)[name] for host in (A, B) for name in REFUSED)
    turns: list[list[bytes]] = [[]]
    for frame in outcome.captured:
        header = header_of(frame)
        if turns[-1] and header_of(turns[-1][-1])[0] != header[0]:
            turns.append([])
        turns[-1].append(frame)
    assert len(turns) == 4
    for key_of, frames in zip(KEYS, turns, strict=True):
        assert [opened(frame, key_of).count for frame in frames] == list(range(len(frames)))


def test_what_is_cut_is_sent_again(star: Path) -> None:
    """Its header is decrypted, though nobody can vouch for it, and all of it is asked for."""
    sizes = [200_000]
    own = secure()
    pair = [ends(host, B, number, **uet_pair(sdi=SDI)) for host, number in ((A, 17), (C, 27))]
    keys = (SecureKey(SDI, 0, KEYS[0]),)
    given = {
        host: EndpointPlan(
            config=own,
            queue_pairs=(pair[n][0],),
            transfers=sends(pair[n][0], sizes, 1 + n),
            keys=keys,
        )
        for n, host in enumerate((A, C))
    }
    given[B] = EndpointPlan(
        config=own,
        queue_pairs=(pair[0][1], pair[1][1]),
        transfers=(*receives(pair[0][1], sizes), *receives(pair[1][1], sizes, 2)),
        keys=keys,
    )
    outcome = run(star, given, limit=20_000, trim=1, keep=70, timeout=1e9)
    counted = outcome.counters(B)
    assert not unfinished(outcome.hosts[B]) and counted["rx_data_bytes"] == 2 * sum(sizes)
    assert counted["rx_cut_packets"] > 50
    assert counted["tx_naks"] >= counted["rx_cut_packets"] - counted["cut_packets_known"] - 64
    assert outcome.counters(A)["local_ack_timeout_err"] == 0


def hostile(rng: random.Random, true: list[bytes]) -> tuple[str, bytes]:
    """A frame by somebody who sees all that is sent, and knows another domain's key."""
    kind = rng.choice(
        (
            "flip",
            "truncate",
            "replay",
            "other-key",
            "random",
            "plain",
            "other-domain",
            "spoof",
            "cut",
        )
    )
    frame = bytearray(rng.choice(true))
    if kind == "flip":
        frame[rng.randrange(26, len(frame))] ^= 1 << rng.randrange(8)
    elif kind == "truncate":
        frame = frame[: rng.randrange(len(frame))]
    elif kind == "other-key":
        struct.pack_into("!Q", frame, 46, 1 << 40 | rng.getrandbits(30))
        frame = bytearray(sealed(bytes(frame), KEYS[1]))
    elif kind == "other-domain":
        frame[43:46] = rng.randbytes(3)
        frame = bytearray(sealed(bytes(frame), KEYS[1]))
    elif kind == "random":
        frame[54:] = rng.randbytes(len(frame) - 54)
        struct.pack_into("!Q", frame, 46, 1 << 40 | rng.getrandbits(30))
    elif kind == "plain":
        frame[42] = rng.choice((2, 8, 10, 11)) << 3
    elif kind == "spoof":  # of another source, by whom the source's own key is not
        frame[29] ^= rng.randrange(1, 256)
    elif kind == "cut":  # as a switch would: it is not authentic, and nothing of it is taken
        left = rng.randrange(42, 80)
        frame = frame[:left]
        struct.pack_into("!H", frame, 16, max(0, left - 14))
        frame[42 + 12 :] = rng.randbytes(max(0, left - 54))
    return kind, bytes(frame)


@pytest.mark.parametrize(
    "seed", [*range(2), *(pytest.param(seed, marks=pytest.mark.slow) for seed in range(2, 50))]
)
def test_hostile_frames_are_refused_with_a_reason(strict_star: Path, seed: int) -> None:
    """None is accepted: each stands under a reason, and what was sent arrives once."""
    rng = random.Random(seed)
    sizes = [50_000]
    seen = run(strict_star, plans(secure(), sizes), extra=[f"capture {A}"]).captured
    end_ns = 200_000  # all that is true has come
    drawn = [hostile(rng, seen) for _ in range(400)]
    words = [
        f"inject {B} at={end_ns + n * 50} {frame.hex()}"
        for n, (_, frame) in enumerate(drawn)
        if frame
    ]
    late = plans(secure(), [*sizes, 10])
    # The last message begins when all of that has been refused.
    late[A] = late[A].model_copy(
        update={
            "transfers": tuple(
                each.model_copy(update={"delay_ns": 400_000}) if each.size == 10 else each
                for each in late[A].transfers
            )
        }
    )
    outcome = run(strict_star, late, extra=words)
    quiet = run(strict_star, late)
    assert whole(outcome, [*sizes, 10])
    counted, usual = outcome.counters(B), quiet.counters(B)
    assert counted["rx_data_packets"] == usual["rx_data_packets"]
    assert counted["rx_data_bytes"] == usual["rx_data_bytes"]
    # Of a packet whose UDP length says that a switch has cut it nothing is taken, and its sender is
    # told that it had come.
    refused = sum(counted[name] for name in (*REFUSED, "cut_packets_known"))
    assert refused == sum(1 for _, frame in drawn if frame), Counter(kind for kind, _ in drawn)
    assert min(counted[name] for name in REFUSED[:4]) > 0


def test_who_is_of_no_domain_is_told(star: Path) -> None:
    given = plans(secure(), [10])
    stranger: QueuePair = given[A].queue_pairs[0].model_copy(update={"sdi": SDI + 1})
    given[A] = given[A].model_copy(update={"queue_pairs": (stranger,)})
    with pytest.raises(AssertionError, match="its domain"):
        run(star, given)
