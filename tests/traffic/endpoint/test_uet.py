"""UET between two endpoints: random worlds, strangers, and what is lost is sent again alone."""

from __future__ import annotations

import random
import struct
from collections.abc import Sequence
from pathlib import Path

import pytest
from scapy.layers.inet import UDP
from scapy.layers.l2 import Ether
from scapy.packet import Raw

from tests.traffic.endpoint.star import (
    GBPS,
    A,
    B,
    Outcome,
    ends,
    one_way,
    receives,
    run,
    sends,
    unfinished,
)
from traffic.endpoint import (
    MRC_OPTIONS,
    EndpointConfig,
    EndpointPlan,
    Entropy,
    QueuePair,
    Transfer,
    TransportKind,
    mask_of,
)
from traffic.frames import icrc
from traffic.layers import BTH, METH, RETH, SETH, ImmDt
from traffic.messages import pattern
from traffic.samples import icrc_is_right

Ends = tuple[QueuePair, ...]
CCS = ["none", "nscc", "rccc"]
CCS += ["swift"]


def config(**changes: object) -> EndpointConfig:
    settings: dict[str, object] = {
        "link_bps": 100 * GBPS,
        "transport": TransportKind.UET,
        "acks": "control",
        "rto": 4_000_000,
        "retry_limit": 100,
        "has_trimming": 1,
    }
    return EndpointConfig(**(settings | changes))


def uet_pair(**settings: object) -> dict[str, object]:
    return {"transport": TransportKind.UET} | settings


def draw_world(star: Path, seed: int) -> tuple[Outcome, dict[str, int], bool]:
    """A run, the bytes that each host is to receive, and whether anything can be lost."""
    rng = random.Random(seed)
    gbps = rng.choice((1, 10, 100, 400))
    own = config(
        link_bps=gbps * GBPS,
        mtu=rng.choice((256, 1024, 4096, 9000)),
        window=rng.choice((1, 2, 7, 64, 512)),
        rto=2_000_000 + 400_000_000 // gbps,
        entropy=rng.choice(list(Entropy)),
        entropies=rng.choice((1, 2, 64, 256)),
        base_rtt=rng.choice((4_000, 12_000, 100_000)),
        ip=6 if seed % 2 else 4,
        seed=seed,
        # Of two worlds in five one class is said to lose nothing, though faults take from it too.
        acks="lossless" if seed % 5 < 2 else "control",
        lossless=1 << 3 if seed % 5 < 2 else 0,
        multipath=int(seed % 5 == 1),
    )
    cc = rng.choice(CCS)
    if seed % 3 == 2:
        cc = "none" if cc == "rccc" else cc
        asks = {key: seed // 3 >> bit & 1 for bit, key in enumerate(MRC_OPTIONS)}
        own = own.model_copy(update={"transport": TransportKind.MRC, **asks})
    transfers: dict[str, list[Transfer]] = {A: [], B: []}
    total = {A: 0, B: 0}
    pairs: list[Ends] = []
    for index in range(rng.choice((1, 3, 20))):
        psn = dict.fromkeys(("psn", "remote_psn"), rng.choice((0, 0xFFFFF0)))
        priority = rng.choice((0, 3))
        pair: Ends = ends(
            A,
            B,
            100 + 2 * index,
            ip=own.ip,
            **uet_pair(cc=cc, priority=priority, transport=own.transport, **psn),
        )
        pairs.append(pair)
        for way in range(2):
            sizes = [rng.randrange(60_000) for _ in range(rng.choice((1, 10, 60)))]
            sizes[0] = rng.choice((0, sizes[0]))
            first_id = 1000 * (2 * index + way)
            source, sink = ((A, B), (B, A))[way]
            transfers[source] += sends(pair[way], sizes, first_id)
            transfers[sink] += receives(pair[1 - way], sizes, first_id)
            total[sink] += sum(sizes)
    faults = {
        "corrupt": rng.choice((0, 0.02)),
        "loss": rng.choice((0, 0.001, 0.03)),
    }
    outcome = run(
        star,
        {
            host: EndpointPlan(
                config=own,
                queue_pairs=tuple(pair[side] for pair in pairs),
                transfers=tuple(transfers[host]),
            )
            for side, host in enumerate((A, B))
        },
        seed=seed,
        rate=own.link_bps,
        **faults,
        duplicate=rng.choice((0, 0.02)),
        reorder=rng.choice((0, 0.05)),
        shake=rng.choice((1_000, 20_000)),
        kmin=rng.choice((0, 10_000)),
        kmax=rng.choice((0, 50_000)),
        pmax=0.2,
        limit=rng.choice((1e12, 100_000, 20_000)),
        trim=rng.choice((0, 1)),
        timeout=200e9,
        extra=denials(random.Random(~seed), own, pairs),
    )
    return outcome, total, any(faults.values())


def denials(rng: random.Random, own: EndpointConfig, pairs: Sequence[Ends]) -> list[str]:
    """Words of a controller to either end of every connection, some of which leave no way."""
    words = []
    for index in range(2 * len(pairs)):
        host, number = ((A, B)[index % 2], pairs[index // 2][index % 2].number)
        for _ in range(rng.choice((0, 1, 4))):
            bits = rng.getrandbits(own.entropies or 1) | rng.getrandbits(own.entropies or 1)
            words.append(f"deny {host} at={rng.randrange(1_000_000)} {number} {bits:x}")
    return words


def assert_right(star: Path, seed: int) -> None:
    outcome, total, has_faults = draw_world(star, seed)
    for host, peer in ((A, B), (B, A)):
        report = outcome.hosts[host]
        assert not report.qp_errors, f"seed {seed}: {report.qp_errors}"
        assert not unfinished(report), f"seed {seed}: {host} has {len(unfinished(report))} open"
        counters = report.counters
        assert counters["rx_data_bytes"] == total[host], f"seed {seed}"
        known = counters["tx_naks"] + counters["cut_packets_known"] + counters["answers_withheld"]
        if not has_faults:
            refused = counters["rx_refused"]
            # Some may still wait to be told when everything is over.
            assert known <= counters["rx_cut_packets"] <= known + refused + 64, f"seed {seed}"
            assert counters["packet_seq_err"] <= outcome.counters(peer)["tx_naks"] * 2


@pytest.mark.by_day(4)
@pytest.mark.parametrize("seed", range(24))
def test_a_random_world_comes_right(strict_star: Path, seed: int) -> None:
    assert_right(strict_star, seed)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(1000, 1300))
def test_many_random_worlds_come_right(strict_star: Path, seed: int) -> None:
    assert_right(strict_star, seed)


def eight_to_one(star: Path, cc: str, size: int, **fabric: float) -> Outcome:
    """Eight senders of one message each into one port, where packets are cut."""
    senders = {}
    pairs = [ends(f"10.0.0.{2 + n}", A, 100 + 2 * n, **uet_pair(cc=cc)) for n in range(8)]
    for n, (here, _) in enumerate(pairs):
        senders[f"10.0.0.{2 + n}"] = EndpointPlan(
            config=config(), queue_pairs=(here,), transfers=sends(here, [size], n)
        )
    sink = EndpointPlan(
        config=config(),
        queue_pairs=tuple(there for _, there in pairs),
        transfers=tuple(
            t for n, (_, there) in enumerate(pairs) for t in receives(there, [size], n)
        ),
    )
    outcome = run(star, {A: sink, **senders}, trim=1, limit=100_000, **fabric)
    assert outcome.counters(A)["rx_data_bytes"] == 8 * size
    return outcome


@pytest.mark.parametrize("cc", CCS, ids=str)
def test_what_is_cut_is_sent_again_and_nothing_else(strict_star: Path, cc: str) -> None:
    """Every cut packet is told, and goes again once a cut."""
    outcome = eight_to_one(strict_star, cc, 400_000)
    again = (counted["retransmitted_packets"] for counted in map(outcome.counters, outcome.hosts))
    got = outcome.counters(A)
    assert got["rx_cut_packets"] == got["tx_naks"] > 50
    assert sum(again) == got["tx_naks"]
    assert got["duplicate_request"] == 0
    assert outcome.end_ns < 1.35 * 8 * 400_000 * 8 / 100  # and the link is never idle for long


def test_a_window_hears_of_marks_that_answers_tell_of(strict_star: Path) -> None:
    """NSCC shrinks for what is both marked and late; without marks it is cut packets that tell."""
    marks = {"kmin": 20_000, "kmax": 80_000, "pmax": 1.0}
    deaf, hearing = (eight_to_one(strict_star, "nscc", 2_000_000, **each) for each in ({}, marks))
    assert hearing.marked > 500
    cut = [outcome.counters(A)["rx_cut_packets"] for outcome in (hearing, deaf)]
    assert cut[0] < cut[1] / 2


@pytest.mark.parametrize("lost", ["all", "tail"])
def test_a_lost_tail_is_probed_for(strict_star: Path, lost: str) -> None:
    """Losses in both directions, no trimming: nothing waits for the longest time-out."""
    size = 40_000 if lost == "tail" else 1_000_000
    ends_ns = []
    for seed in range(8):
        plans = one_way(config(has_trimming=0, rto=4_000_000_000), [size], **uet_pair())
        outcome = run(strict_star, plans, seed=seed, loss=0.02, delay=1000)
        assert not unfinished(outcome.hosts[B])
        ends_ns.append(outcome.end_ns)
    assert max(ends_ns) < size * 8 / 100 * 1.5 + 500_000


def entropies_of(frames: Sequence[bytes]) -> list[int]:
    """Of the requests among what a host sent, in order."""
    requests = [(frame[42] >> 3, int.from_bytes(frame[34:36], "big") - 0xC000) for frame in frames]
    return [entropy for kind, entropy in requests if kind == 2]


@pytest.mark.by_day(1)
@pytest.mark.parametrize("seed", range(12))
def test_denied_ways_are_not_used(strict_star: Path, seed: int) -> None:
    """First some, then others; a word that would leave none is not heard."""
    rng = random.Random(seed)
    count = rng.choice((4, 64, 256))
    first = frozenset(rng.sample(range(count), count // 2))
    others = frozenset(rng.sample([*({*range(count)} - {min(first)})], count // 2))
    own = config(entropy=Entropy.MRC, entropies=count)
    words = [
        f"deny {A} at=0 17 {mask_of(first):x}",
        f"deny {A} at=60000 17 {mask_of(others):x}",
        f"deny {A} at=90000 17 {mask_of(range(count)):x}",
        f"capture {A}",
    ]
    plans = one_way(own, [8_000_000], **uet_pair())
    outcome = run(strict_star, plans, extra=words, seed=seed, loss=rng.choice((0, 0.02)))
    assert not unfinished(outcome.hosts[B])
    used = entropies_of(outcome.captured)[1:]  # one leaves before anything is said
    turned = next(at for at, entropy in enumerate(used) if entropy in first)
    assert set(used[turned:]) == set(range(count)) - others
    assert set(used[:turned]) == set(range(count)) - first
    noted = [way for way in outcome.hosts[A].ways if way.state == "denied"]
    assert {way.entropy for way in noted if way.at_ns == 0} == first
    assert {way.entropy for way in noted if way.at_ns == 60_000} == others - first


def uet_frame(
    pds: bytes, *, src: str = B, dst: str = A, dscp: int = 48, was: int = 0, port: int = 4793
) -> bytes:
    """A frame as B's endpoint would send it, its CRC right; `was`: how much more UDP says."""

    def address(text: str) -> bytes:
        return bytes(int(part) for part in text.split("."))

    total = 20 + 8 + len(pds) + 4
    ip = struct.pack(
        "!BBHHHBBH4s4s",
        0x45,
        dscp << 2 | 2,
        total,
        0,
        0x4000,
        64,
        17,
        0,
        address(src),
        address(dst),
    )
    udp = struct.pack("!HHHH", 0xC000, port, total - 20 + was, 0)
    packet = ip + udp + pds
    return bytes(12) + b"\x08\x00" + packet + icrc(packet).to_bytes(4, "little")


def request(psn: int, spdcid: int, dpdcid: int, body: bytes = b"") -> bytes:
    return struct.pack("!HhIHH", 2 << 11 | 3 << 7, 0, psn, spdcid, dpdcid) + body


def ack(cack: int, offset: int, spdcid: int, dpdcid: int, bitmap: int = 0) -> bytes:
    head = struct.pack("!HhIHH", 8 << 11, offset, cack, spdcid, dpdcid)
    return head + struct.pack("!BBHQQ", 0, 0, 1, bitmap, 0)


def nack(psn: int, spdcid: int, dpdcid: int, code: int = 1) -> bytes:
    return struct.pack("!HBBIHHI", 10 << 11, code, 0, psn, spdcid, dpdcid, 0)


def control(kind: int, payload: int, spdcid: int, dpdcid: int) -> bytes:
    return struct.pack("!HHIHHI", 11 << 11 | kind << 7, 0, 0, spdcid, dpdcid, payload)


C = "10.0.0.3"
FIRST = 1 << 24  # PSNs have 32 bits here, and start above those that 24 hold


@pytest.mark.parametrize("cc", CCS, ids=str)
def test_strangers_change_nothing_and_are_counted(strict_star: Path, cc: str) -> None:
    """Cut packets, NACKs, answers and credits of others, or about what nobody sent or asked for."""
    rng = random.Random(str(cc))

    def frames(src: str, spdcid: int, dpdcid: int) -> list[bytes]:
        far = FIRST + rng.choice((5_000_000, 0x7FFFFFFF, 0x80000000))
        made = [
            uet_frame(nack(far, spdcid, dpdcid), src=src),
            uet_frame(nack(FIRST + 3, spdcid, dpdcid, code=200), src=src),
            uet_frame(ack(far, 0, spdcid, dpdcid, 2**64 - 1), src=src),
            uet_frame(ack(FIRST - 1, 32767, spdcid, dpdcid), src=src),
            uet_frame(control(9, 0, spdcid, dpdcid), src=src),
            uet_frame(request(far, spdcid, dpdcid), src=src, dscp=41, was=4096),
            uet_frame(request(FIRST + 2, spdcid, dpdcid, bytes(44)), src=src, dscp=26),
            uet_frame(request(far, spdcid, dpdcid, bytes(144)), src=src, dscp=26),
        ]
        if cc != "rccc" or src == C:
            made.append(uet_frame(control(7, 0x7FFFFF, spdcid, dpdcid), src=src))
            made.append(uet_frame(control(8, 0x7FFFFF, spdcid, dpdcid), src=src))
        return made

    plans = one_way(config(), [2_000_000], **uet_pair(cc=cc))
    quiet = run(strict_star, plans)
    others = frames(C, 18, 17) + frames(B, 99, 17) + frames(B, 18, 99)
    peers = frames(B, 18, 17)
    lines = [
        f"inject {A} at={rng.randrange(1000, 150_000)} {frame.hex()}" for frame in others + peers
    ]
    noisy = run(strict_star, plans, extra=lines)
    assert not noisy.hosts[A].qp_errors
    assert noisy.end_ns == quiet.end_ns
    before, after = quiet.counters(A), noisy.counters(A)
    assert after["rx_no_queue_pair"] == len(others)
    assert after["rx_refused"] == len(peers)
    changed = {name for name in after if after[name] != before[name]}
    assert changed <= {
        *("rx_packets", "rx_bytes", "rx_no_queue_pair", "rx_refused", "rx_cut_packets"),
    }


def bth(opcode: int, to: int, psn: int) -> bytes:
    return struct.pack("!BBHII", opcode, 0, 0xFFFF, to, 0x80 << 24 | psn & 0xFFFFFF)


def mrc_write(to: int, psn: int, offset: int = 0, key: int = 1) -> bytes:
    """Four kilobytes in the middle of a message that nobody posted, or of the wrong bytes."""
    return bth(0xC7, to, psn) + struct.pack("!HHQII", 1, 1, offset, key, 2_000_000) + bytes(4096)


def mrc_answer(psn: int, ids: tuple[int, int], *, ahead: int = 0, bitmap: int = 0) -> bytes:
    head = struct.pack("!HhIHHI", 0, ahead, 0xC000_0000, *ids, psn & 0xFFFFFF)
    return bth(0xDC, ids[1], 7) + head + struct.pack("!BBHQQ", 0, 0, 1, bitmap, 0)


def mrc_nack(psn: int, ids: tuple[int, int], reason: int = 1) -> bytes:
    said = struct.pack("!HBBIHHII", 0, reason, 0, 0xC000_0000, *ids, psn & 0xFFFFFF, 0)
    return bth(0xDD, ids[1], psn) + said


def mrc_probe(psn: int, ids: tuple[int, int], number: int = 0) -> bytes:
    said = struct.pack("!HBBHHHHI", 0, 0, 0, number, 0, *ids, 0)
    return bth(0xDE, ids[1], psn) + said


def mrc_requests(to: int, operation: int, mask: int = 0) -> list[bytes]:
    """A request of an adapter, of which ports are none of it unless told, and an answer to none."""
    request = struct.pack("!HHIIHH", operation, 0, mask, 0, 0, 1)
    return [
        bth(0xD8, to, 5) + request,
        bth(0xD9, to, 5) + struct.pack("!H26xHHI", operation << 2, 0, 0, 0),
    ]


@pytest.mark.parametrize("seed", range(4))
def test_strangers_change_nothing_of_mrc(strict_star: Path, seed: int) -> None:
    """Answers, probes and writes of others, or of a peer about what nobody sent or asked for."""
    rng = random.Random(seed)
    ip = {"port": 4791}
    mine = (18, 17)

    def answers(src: str, ids: tuple[int, int]) -> list[bytes]:
        far = rng.choice((5_000_000, 0x7FFFFF, 0x800000))
        return [
            uet_frame(said, src=src, **ip)
            for said in (
                mrc_nack(far, ids),
                mrc_nack(3, ids, reason=200),
                mrc_answer(far, ids, bitmap=2**64 - 1),
                mrc_answer(-1, ids, ahead=32767),
                mrc_probe(far, ids),
                mrc_probe(far, ids, number=3),
            )
        ]

    def writes(src: str, to: int) -> list[bytes]:
        far = rng.choice((5_000_000, 0x7FFFFF))
        return [
            uet_frame(mrc_write(to, 2, 4096), src=src, dscp=26, **ip),
            uet_frame(mrc_write(to, far, 4096), src=src, dscp=26, **ip),
            uet_frame(bth(0xC7, to, far), src=src, dscp=41, was=4000, **ip),
        ]

    own = config(transport=TransportKind.MRC, entropy=Entropy.MRC)
    plans = one_way(own, [2_000_000], **uet_pair(transport=TransportKind.MRC))
    quiet = run(strict_star, plans)
    others = answers(C, mine) + answers(B, (99, 17)) + answers(B, (18, 99))
    others += writes(C, 17) + writes(B, 99)
    peers = answers(B, mine) + writes(B, 17)
    others += [uet_frame(said, src=C, **ip) for said in mrc_requests(2, 1, mask=2)]
    others += [uet_frame(said, src=B, **ip) for said in mrc_requests(17, 1, mask=2)]
    for operation in (0, 2, 3):
        peers += [uet_frame(said, src=B, **ip) for said in mrc_requests(2, operation)]
    opcodes = (0x06, 0xC5, 0xDF, 0xD7)
    unknown = [uet_frame(bth(opcode, 17, 3) + bytes(64), **ip) for opcode in opcodes]
    cut_off = (mrc_nack(3, mine)[:20], mrc_answer(3, mine)[:40], mrc_probe(3, mine)[:24])
    cut_off += tuple(said[:27] for said in mrc_requests(17, 1))
    short = [uet_frame(said, **ip) for said in cut_off]
    lines = [
        f"inject {A} at={rng.randrange(1000, 150_000)} {frame.hex()}"
        for frame in others + peers + unknown + short
    ]
    noisy = run(strict_star, plans, extra=lines)
    assert not noisy.hosts[A].qp_errors
    assert noisy.end_ns == quiet.end_ns
    before, after = quiet.counters(A), noisy.counters(A)
    assert after["rx_no_queue_pair"] == len(others)
    assert after["rx_refused"] == len(peers)
    assert after["rx_malformed"] == len(unknown + short)
    changed = {name for name in after if after[name] != before[name]}
    assert changed <= {
        *("rx_packets", "rx_bytes", "rx_no_queue_pair", "rx_refused", "rx_cut_packets"),
        "rx_malformed",
    }


def random_uet(rng: random.Random, cc: str, ids: tuple[int, int], psn: int, src: str) -> bytes:
    """A packet of UET of which only its ends and its number are not by lot."""
    kind = rng.choice((2, 7, 8, 9, 10, 11, 11, 12, 13, rng.randrange(32)))
    what = rng.choice((0, 3, 6, 7, 8, rng.randrange(16)))
    if cc == "rccc" and kind == 11 and what in (7, 8) and src == B:
        what = 6  # the peer may grant credit and ask for it, whatever the number
    head = struct.pack("!HHIHH", kind << 11 | what << 7 | rng.randrange(128),
                       rng.randrange(1 << 16), psn, *ids)  # fmt: skip
    probed = psn.to_bytes(4, "big") if kind == 11 else rng.randbytes(4)
    said = head + probed + rng.randbytes(rng.choice((0, 3, 8, 16, 20, 44, 200)))
    return uet_frame(said, src=src, dscp=rng.choice((26, 41, 42, 48)), was=rng.choice((0, 0, 4096)))


def random_mrc(rng: random.Random, _cc: str, ids: tuple[int, int], psn: int, src: str) -> bytes:
    """The same of MRC; a write does not say who sent it."""
    opcodes = [0xDC, 0xDD, 0xDE, *([0xD9] if src == C or ids == (18, 17) else [])]
    opcodes += [*range(0xC6, 0xCC), rng.randrange(256)] if ids[0] == 18 or ids[1] != 17 else []
    opcode, psn = rng.choice(opcodes), psn & 0xFFFFFF
    flags = rng.randbytes(1)
    to = 2 if opcode == 0xD9 else ids[1]
    head = struct.pack("!BcHII", opcode, flags, 0xFFFF, to, rng.randrange(256) << 24 | psn)
    said = head + rng.randbytes(8) + struct.pack("!HHI", *ids, psn)
    said += rng.randbytes(rng.choice((20, 44, 200)))
    return uet_frame(said, src=src, dscp=rng.choice((26, 41, 48)), was=rng.choice((0, 0, 4000)),
                     port=4791)  # fmt: skip


@pytest.mark.parametrize("cc", [*CCS, None], ids=lambda cc: str(cc or "mrc"))
def test_what_strangers_say_at_random_is_counted_and_nothing_else(
    strict_star: Path, cc: str | None
) -> None:
    """Any type, flags, codes, maps, entropies, credits and lengths; a peer's with far numbers."""
    rng = random.Random(str(cc))
    kind = TransportKind.UET if cc else TransportKind.MRC
    own = config() if cc else config(transport=kind, entropy=Entropy.MRC)
    made, most = (random_uet, 1 << 31) if cc else (random_mrc, 1 << 23)
    pair = uet_pair(cc=cc) if cc else uet_pair(transport=kind)
    plans = one_way(own, [2_000_000], **pair)

    def frames(src: str, ids: tuple[int, int]) -> list[bytes]:
        far = (FIRST + rng.randrange(1 << 20, most - (1 << 20)) for _ in range(60))
        near = (FIRST + rng.randrange(500) for _ in range(60))
        psns = far if (src, ids) == (B, (18, 17)) else near
        return [made(rng, str(cc), ids, psn, src) for psn in psns]

    others = frames(C, (18, 17)) + frames(B, (99, 17)) + frames(B, (18, 99))
    peers = frames(B, (18, 17))
    quiet = run(strict_star, plans)
    noisy = run(
        strict_star,
        plans,
        extra=[
            f"inject {A} at={rng.randrange(1000, 150_000)} {frame.hex()}"
            for frame in others + peers
        ],
    )
    assert not noisy.hosts[A].qp_errors
    assert noisy.end_ns == quiet.end_ns
    before, after = quiet.counters(A), noisy.counters(A)
    assert after["rx_no_queue_pair"] == len(others)
    assert after["rx_refused"] + after["rx_malformed"] == len(peers)
    assert min(after["rx_refused"], after["rx_malformed"], after["rx_cut_packets"]) > 0
    changed = {name for name in after if after[name] != before[name]}
    assert changed <= {
        *("rx_packets", "rx_bytes", "rx_no_queue_pair", "rx_refused", "rx_cut_packets"),
        "rx_malformed",
    }


def test_mrc_knows_writes_alone_and_their_headers(strict_star: Path) -> None:
    """What is on the wire, read by scapy: every packet places itself, each is answered."""
    kind = {"transport": TransportKind.MRC}
    own = config(**kind, entropy=Entropy.MRC, entropies=16)
    sizes = [3 * 4096 + 5, 0, 4096, 9000]
    captures = [f"capture {A}", f"capture {B}"]
    outcome = run(strict_star, one_way(own, sizes, **uet_pair(**kind)), extra=captures)
    packets = [Ether(frame) for frame in outcome.captured]
    assert all(icrc_is_right(frame) for frame in outcome.captured)
    written = {number: bytearray(size) for number, size in enumerate(sizes, 1)}
    immediates = []
    for packet in packets:
        if METH not in packet:
            continue
        reth, number = packet[RETH], packet[METH].msn
        data = bytes(packet[Raw])[: -packet[BTH].padcount or None] if Raw in packet else b""
        written[number][reth.va : reth.va + len(data)] = data
        assert reth.dmalen == sizes[number - 1] and reth.rkey == number
        immediates += [packet[ImmDt].data] if ImmDt in packet else []
    assert immediates == [1, 2, 3, 4]
    for number, data in written.items():
        assert bytes(data) == pattern(number, 0, len(data))
    answered = [packet[SETH] for packet in packets if SETH in packet]
    assert {packet[BTH].opcode for packet in packets} == {0xC6, 0xC7, 0xC9, 0xCB, 0xDC}
    sent = [packet for packet in packets if METH in packet]
    assert [seth.entropy >> 16 for seth in answered] == [packet[UDP].sport for packet in sent]
    assert answered[-1].cack_psn == len(sent) - 1


def test_roce_frames_to_a_connection_are_not_its_own(strict_star: Path) -> None:
    """Not even those of its peer: they would owe answers that UET does not have."""
    plans = one_way(config(), [200_000], **uet_pair())
    quiet = run(strict_star, plans)
    spoken = run(strict_star, one_way(EndpointConfig(link_bps=100 * GBPS), [9000]),
                 extra=[f"capture {A}", f"capture {B}"]).captured  # fmt: skip
    assert {frame[42] for frame in spoken} >= {0x06, 0x11}  # data, and what answers it
    at = range(1000, 1000 + 3000 * len(spoken), 3000)
    lines = [
        f"inject {host} at={when} {frame.hex()}"
        for when, frame in zip(at, spoken, strict=True)
        for host in (A, B)
    ]
    noisy = run(strict_star, plans, extra=lines)
    assert noisy.end_ns == quiet.end_ns
    for host in (A, B):
        assert noisy.counters(host)["rx_other"] == len(spoken)


@pytest.mark.parametrize("limit", [0, 1, 3])
@pytest.mark.parametrize("cc", CCS)
def test_who_hears_nothing_gives_up_after_whole_time_outs(
    strict_star: Path, limit: int, cc: str
) -> None:
    """Questions are asked sooner, and their silence is no time-out: 0 retries are one of these."""
    rto, rtt = 400_000, 4_000
    own = config(rto=rto, retry_limit=limit, base_rtt=rtt)
    pair = ends(A, B, 100, **uet_pair(cc=cc))
    plan = EndpointPlan(config=own, queue_pairs=[pair[0]], transfers=sends(pair[0], [9000], 0))
    outcome = run(strict_star, {A: plan}, loss=1.0, timeout=60e9)
    (error,) = outcome.hosts[A].qp_errors
    silence, wait = 0, rtt
    while silence < rto * max(1, limit):
        silence, wait = silence + wait, min(2 * wait, rto)
    assert error.reason == "retry-exceeded"
    assert silence <= error.at_ns < silence + 2 * rtt
