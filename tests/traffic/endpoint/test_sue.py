"""Scale-up Ethernet between endpoints: packing, order, and what is lost goes again as it was.

The model is of the stores alone: which they are, in which order, and how many fit into a PDU, from
docs/scale-up.md; it reads frames byte by byte.
"""

from __future__ import annotations

import random
import struct
import zlib
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import pytest

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
    unfinished,
)
from traffic.endpoint import EndpointConfig, EndpointPlan, QueuePair, Transfer, TransportKind
from traffic.messages import pattern

_STORE, _COMMAND, _MAX_COMMANDS = 256, 12, 255
_BPS = 400 * GBPS
Store = tuple[int, int, int, int]  # key, offset, bytes, and 1 if it is its message's last


def config(**changes: object) -> EndpointConfig:
    settings: dict[str, object] = {
        "link_bps": _BPS,
        "transport": TransportKind.SUE,
        "mtu": 3840,
        "acks": "data",
        "rto": 200_000,
        "retry_limit": 250,
    }
    return EndpointConfig(**(settings | changes))


class Pdu(NamedTuple):
    """What a frame says."""

    to: int
    channel: int
    psn: int
    stores: tuple[Store, ...]


def read(frame: bytes) -> Pdu | None:
    """A frame with stores, every byte of it right; nothing of one that only answers."""
    assert frame[12:14] == b"\x88\x5b" and len(frame) >= 60
    kind, hops_and_label, _, to = struct.unpack("!xBHHH", frame[14:22])
    assert kind == 253 and hops_and_label >> 12 == 15
    who, psn, channel, _ = struct.unpack("!HHHH", frame[22:30])
    count, size = frame[30], int.from_bytes(frame[32:34], "big")
    assert who >> 14 == 0
    assert frame[34 + size : 38 + size] == zlib.crc32(frame[22 : 34 + size]).to_bytes(4, "big")
    stores, at = [], 34 + count * _COMMAND
    for number in range(count):
        command = frame[34 + number * _COMMAND :][:_COMMAND]
        op, flags, length, key, offset = struct.unpack("!BBHII", command)
        assert op == 1 and length <= _STORE
        assert frame[at : at + length] == pattern(key, offset, length)
        at += length
        stores.append((key, offset, length, flags))
    assert at == 34 + size
    return Pdu(to, channel >> 14, psn, tuple(stores)) if count else None


def stores_of(sizes: Sequence[int], first_id: int = 1) -> Iterator[Store]:
    """What is asked for by messages, in order."""
    for key, size in enumerate(sizes, first_id):
        for offset in range(0, max(size, 1), _STORE):
            yield key, offset, min(_STORE, size - offset), int(offset + _STORE >= size)


def packed(stores: Sequence[Store], mtu: int) -> list[tuple[Store, ...]]:
    """The same in PDUs, if all of it waits from the beginning."""
    room = mtu + mtu // _STORE * _COMMAND
    pdus: list[list[Store]] = [[]]
    for store in stores:
        used = sum(_COMMAND + each[2] for each in pdus[-1])
        if used + _COMMAND + store[2] > room or len(pdus[-1]) == _MAX_COMMANDS:
            pdus.append([])
        pdus[-1].append(store)
    return [tuple(each) for each in pdus]


def sent_by(outcome: Outcome) -> list[Pdu]:
    """The PDUs that the captured host sent."""
    return [pdu for frame in outcome.captured if (pdu := read(frame)) is not None]


@pytest.mark.parametrize(
    ("sizes", "mtu"),
    [
        ([256] * 100, 3840),
        ([64] * 600, 1024),
        ([0, 1, 255, 256, 257, 9000, 0], 512),
        ([100_000], 256),
    ],
)
def test_what_waits_goes_together(strict_star: Path, sizes: list[int], mtu: int) -> None:
    """Stores of several messages in one PDU, as many as fit, in the order they were asked in."""
    plans = one_way(config(mtu=mtu), sizes, transport=TransportKind.SUE)
    outcome = run(strict_star, plans, extra=[f"capture {A}"], rate=_BPS)
    pdus = sent_by(outcome)
    assert [pdu.stores for pdu in pdus] == packed([*stores_of(sizes)], mtu)
    assert [pdu.psn for pdu in pdus] == list(range(len(pdus)))
    assert not unfinished(outcome.hosts[B])
    assert outcome.counters(B)["rx_data_bytes"] == sum(sizes)


def test_nothing_waits_for_company(strict_star: Path) -> None:
    """A store that is alone leaves alone, at once."""
    here, there = ends(A, B, transport=TransportKind.SUE)
    messages = [
        Transfer(id=n, kind="send", queue_pair=here.number, size=256, delay_ns=1000 * n)
        for n in range(5)
    ]
    plans = {
        A: EndpointPlan(config=config(), queue_pairs=(here,), transfers=tuple(messages)),
        B: EndpointPlan(
            config=config(), queue_pairs=(there,), transfers=receives(there, [256] * 5, 0)
        ),
    }
    outcome = run(strict_star, plans, extra=[f"capture {A}"], rate=_BPS, delay=100)
    assert [len(pdu.stores) for pdu in sent_by(outcome)] == [1] * 5
    begun = [outcome.hosts[A].transfers[n] for n in range(5)]
    assert all(each.end_ns - 1000 * n < 1000 for n, each in enumerate(begun))


def _two(rng: random.Random) -> tuple[str, str]:
    one, other = rng.sample((A, B, C), 2)
    return one, other


def assert_in_order(star: Path, seed: int) -> None:
    """Three XPUs, several channels each way, and cables that lose, double, delay and corrupt."""
    rng = random.Random(seed)
    gbps = rng.choice((10, 100, 800))
    own = config(
        link_bps=gbps * GBPS,
        rto=200_000 + 40_000_000 // gbps,  # longer than what waits before a packet takes
        mtu=rng.choice((256, 1024, 3840)),
        window=rng.choice((1, 3, 64, 512)),
        ack_every=rng.choice((1, 4, 16)),
    )
    pairs = [
        ends(*ends_of, number=100 + 2 * n, transport=TransportKind.SUE)
        for n, ends_of in enumerate(_two(rng) for _ in range(4))
    ]
    plans: dict[str, tuple[list[QueuePair], list[Transfer]]] = {
        host: ([], []) for host in (A, B, C)
    }
    asked: dict[tuple[int, int], list[int]] = {}  # by connection and way: sizes
    names = []
    for index, pair in enumerate(pairs):
        hosts = [next(h for h in (A, B, C) if str(end.flow.src) == h) for end in pair]
        names.append(hosts)
        for way in range(2):
            sizes = [
                rng.choice((0, 64, 256, rng.randrange(9000))) for _ in range(rng.randrange(60))
            ]
            asked[index, way] = sizes
            first_id = 1000 * (2 * index + way)
            plans[hosts[way]][1].extend(sends(pair[way], sizes, first_id))
            plans[hosts[1 - way]][1].extend(receives(pair[1 - way], sizes, first_id))
            plans[hosts[way]][0].append(pair[way])
    outcome = run(
        star,
        {
            host: EndpointPlan(config=own, queue_pairs=tuple(ends_), transfers=tuple(transfers))
            for host, (ends_, transfers) in plans.items()
        },
        seed=seed,
        rate=own.link_bps,
        loss=rng.choice((0, 0.002, 0.05)),
        corrupt=rng.choice((0, 0.02)),
        duplicate=rng.choice((0, 0.05)),
        reorder=rng.choice((0, 0.05)),
        shake=rng.choice((1_000, 20_000)),
        limit=rng.choice((1e12, 20_000)),
        timeout=200e9,
        extra=[f"capture {A}"],
    )
    for host, report in outcome.hosts.items():
        assert not report.qp_errors, f"seed {seed}: {report.qp_errors}"
        assert not unfinished(report), f"seed {seed}: {host}"
    for (index, way), sizes in asked.items():
        arrived = outcome.hosts[names[index][1 - way]].transfers
        first_id = 1000 * (2 * index + way)
        times = [arrived[first_id + n].end_ns or 0 for n in range(len(sizes))]
        assert times == sorted(times), f"seed {seed}: one overtook another of its channel"
    by_channel: dict[tuple[int, int], dict[int, tuple[Store, ...]]] = {}
    for pdu in sent_by(outcome):
        known = by_channel.setdefault((pdu.to, pdu.channel), {})
        assert known.setdefault(pdu.psn, pdu.stores) == pdu.stores, f"seed {seed}: not as it was"
    stored = [[s for psn in sorted(each) for s in each[psn]] for each in by_channel.values()]
    wanted = [
        [*stores_of(sizes, 1000 * (2 * index + way))]
        for (index, way), sizes in asked.items()
        if names[index][way] == A and sizes
    ]
    assert sorted(stored) == sorted(wanted), f"seed {seed}"


@pytest.mark.parametrize(
    "seed", [*range(8), *(pytest.param(seed, marks=pytest.mark.slow) for seed in range(8, 400))]
)
def test_a_channel_is_in_order_whatever_cables_do(strict_star: Path, seed: int) -> None:
    assert_in_order(strict_star, seed)


def test_what_is_no_frame_of_a_peer_is_counted(strict_star: Path) -> None:
    """Cut anywhere, and with bits wrong anywhere: nothing is taken in, all arrives at last."""
    for seed in range(6):
        plans = one_way(config(), [700] * 200, transport=TransportKind.SUE)
        outcome = run(strict_star, plans, seed=seed, rate=_BPS, cut=0.1, corrupt=0.1, timeout=200e9)
        assert not unfinished(outcome.hosts[B])
        counted = outcome.counters(B)
        assert counted["rx_data_bytes"] == 140_000
        assert counted["rx_malformed"] + counted["rx_icrc_errors"] + counted["rx_other"] > 0
