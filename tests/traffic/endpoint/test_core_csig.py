"""CSIG at the hosts: tags asked for, read and reflected; Poseidon by a model of its paper."""

from __future__ import annotations

import random
import subprocess
from dataclasses import replace
from ipaddress import IPv4Address
from pathlib import Path

import pytest

from params.csig import Signal, Tag, buckets
from tests.fabric.test_csig import ALL_ONES, read, tag
from tests.traffic.endpoint.star import GBPS, A, B, ends, one_way, receives, run, sends, unfinished
from tests.traffic.poseidon_model import Flow
from traffic.endpoint import EndpointConfig, EndpointPlan, Recovery
from traffic.frames import icrc


def ask(unit: Path, *lines: str) -> list[str]:
    text = "\n".join((*lines, ""))
    done = subprocess.run([unit], input=text, capture_output=True, text=True, check=True)
    return done.stdout.splitlines()


def test_a_sender_reads_what_hops_write(unit: Path) -> None:
    """Every bucket, and steps by lot: the least value it holds; types and locators as they are."""
    draw, lines, wanted = random.Random(1), [], []
    for signal in Signal:
        for bucket in buckets(signal):
            where, cut = draw.randrange(128), draw.random() < 0.5
            lines.append(tag(Tag.COMPACT, signal, bucket.number, where, cut=cut).hex())
            wanted.append(f"{signal.value} {cut:d} {where} {bucket.least} 1")
        for _ in range(40):
            value, where = draw.randrange(1 << draw.randrange(1, 21)), draw.randrange(1 << 16)
            lines.append(tag(Tag.WIDE, signal, value, where).hex())
            wanted.append(f"{signal.value} 0 {where} {value << signal.shift} 1")
    lines += [tag(Tag.COMPACT, 7, 3, 5).hex(), tag(Tag.WIDE, 15, 3, 5).hex(), "88b50000"]
    wanted += ["7 0 5 0 1", "15 0 5 0 1", "0 0 0 0 0"]
    assert ask(unit, *(f"tag {line}" for line in lines)) == wanted


def test_a_sender_asks_as_the_drafts_have_it(unit: Path) -> None:
    for kind in Tag:
        for signal in Signal:
            start = ALL_ONES[kind] if signal < 2 else 0
            (said,) = ask(unit, f"ask {kind.bytes} {signal.value}")
            assert said == tag(kind, signal, start).hex()


@pytest.mark.parametrize("seed", range(12))
def test_every_rate_is_the_model_s(unit: Path, seed: int) -> None:
    draw = random.Random(seed)
    line, round_ns = draw.choice((10, 100, 400)) * GBPS, draw.choice((4_000, 9_329, 60_000))
    config = {
        "range": draw.choice((0.3, 1.0, 4.0)), "least": draw.choice((0.05, 0.1, 1.0)),
        "step": draw.choice((0.1, 0.25, 0.9)), "claim": draw.choice((0.1, 0.25, 1.0)),
    }  # fmt: skip
    words = " ".join(f"poseidon-{name}={value}" for name, value in config.items())
    lines, model, wanted = [f"begin poseidon {line} {round_ns} 4170 0 4 {words}"], None, []
    model = Flow(line, round_ns, **config)
    now = 1_000_000
    for _ in range(400):
        now += draw.choice((100, 1_000, round_ns, 3 * round_ns))
        acked = draw.choice((0, 4170, 4170, 40_000))
        kind, signal = (
            draw.choice(list(Tag)),
            draw.choice((*Signal, *(Signal.ABW, Signal.DELAY) * 3)),
        )
        where = draw.choice((0, 1, 17, 127))
        value = draw.randrange(1 << draw.randrange(1, 21 if kind is Tag.WIDE else 6))
        if draw.random() < 0.05:
            lines.append(f"reflects {now} {acked}")
        else:
            lines.append(f"reflects {now} {acked} {tag(kind, signal, value, where).hex()}")
            least = value << signal.shift
            if kind is Tag.COMPACT:
                least = next(b.least for b in buckets(signal) if b.number == value)
            if signal is Signal.DELAY:
                model.delayed(now, least, acked)
            elif signal is Signal.ABW and where:
                model.is_free(least, acked)
        wanted.append(model.rate)
    for step, said, rate in zip(lines[1:], ask(unit, *lines)[1:], wanted, strict=True):
        window = float(said.split()[0])
        assert window * 8e9 / round_ns == pytest.approx(rate, rel=1e-9), step


@pytest.mark.by_day(4)
@pytest.mark.parametrize("ip", [4, 6])
@pytest.mark.parametrize("recovery", Recovery)
@pytest.mark.parametrize("kind", Tag)
def test_tags_go_out_and_come_back(star: Path, kind: Tag, recovery: Recovery, ip: int) -> None:
    """Data has a tag, an answer reflects the last that came; nothing else is other."""
    config = EndpointConfig(
        link_bps=100 * GBPS, mtu=1024, ip=ip, csig=kind.bytes, recovery=recovery, rto=50_000
    )
    plans = one_way(config, [100, 9000, 1024], cc="poseidon")
    extra = [f"capture {A}", f"capture {B}"]
    outcome = run(star, plans, extra=extra, loss=0.05, seed=4)
    assert not any(unfinished(report) for report in outcome.hosts.values())
    at = 14 + (40 if ip == 6 else 20) + 8
    data, reflections = 0, 0
    for frame in outcome.captured:
        tagged = frame[12:14] in (b"\x99\x00", b"\x99\x01")
        plain = frame[:12] + frame[12 + kind.bytes :] if tagged else frame
        assert int.from_bytes(plain[-4:], "little") == icrc(plain[14:-4])
        if tagged:
            found, signal, value, where = read(frame)
            assert (found, where) == (kind, 0)
            assert signal == (Signal.DELAY, Signal.ABW)[plain[at + 11] & 1]
            assert value == (ALL_ONES[kind] if signal == Signal.ABW else 0)
            data += 1
            continue
        assert plain[at] == 0x11
        if plain[at + 4] & 1:
            found, signal, value, where = read(bytes(12) + plain[at + 16 : -4])
            assert found == kind
            reflections += 1
    assert data >= 11
    assert reflections >= 5


@pytest.mark.parametrize("bad", ["9900", "9902 0000", "9901 0000 0000", ""])
def test_a_reflection_that_is_none_is_malformed(star: Path, bad: str) -> None:
    """An answer that says it reflects a tag, and has none or half of one."""
    config = EndpointConfig(link_bps=100 * GBPS, mtu=1024, csig=4, rto=50_000)
    plans = one_way(config, [9000], cc="poseidon")
    outcome = run(star, plans, extra=[f"capture {B}"])
    answer = next(frame for frame in outcome.captured if frame[42] == 0x11 and frame[46] & 1)
    end = bytes.fromhex(bad.replace(" ", ""))
    packet = bytearray(answer[14:58] + end)
    packet[2:4] = (len(packet) + 4).to_bytes(2, "big")
    packet[24:26] = (len(packet) + 4 - 20).to_bytes(2, "big")
    packet[10:12] = bytes(2)
    total = sum(int.from_bytes(packet[n : n + 2], "big") for n in range(0, 20, 2))
    total = (total & 0xFFFF) + (total >> 16)
    packet[10:12] = (~total & 0xFFFF).to_bytes(2, "big")
    frame = answer[:14] + packet + icrc(bytes(packet)).to_bytes(4, "little")
    again = run(star, plans, extra=[f"inject {A} at=1000 {frame.hex()}"])
    assert again.counters(A)["rx_malformed"] == 1
    assert not any(unfinished(report) for report in again.hosts.values())


def test_other_sizes_of_tags_are_refused(star: Path) -> None:
    with pytest.raises(ValueError, match="csig"):
        EndpointConfig(link_bps=GBPS, csig=5)


def test_a_switch_s_notification_slows_the_flow_it_is_about(star: Path) -> None:
    """Queue pairs of several peers have the same number there: the address tells them apart."""
    config = EndpointConfig(link_bps=100 * GBPS, mtu=1024)
    peers = ("10.0.0.2", "10.0.0.3", "10.0.0.4")
    pairs = [ends(A, peer, 10 + 2 * n, cc="dcqcn") for n, peer in enumerate(peers)]
    flows = [replace(pair[0].flow, queue_pair=9) for pair in pairs]
    mine = tuple(
        pair[0].model_copy(update={"flow": flow}) for pair, flow in zip(pairs, flows, strict=True)
    )
    theirs = [pair[1].model_copy(update={"number": 9}) for pair in pairs]
    sizes = [200_000]
    moves = tuple(move for n, pair in enumerate(mine) for move in sends(pair, sizes, 100 * n))
    plans = {A: EndpointPlan(config=config, queue_pairs=mine, transfers=moves)}
    for n, (peer, pair) in enumerate(zip(peers, theirs, strict=True)):
        plans[peer] = EndpointPlan(
            config=config, queue_pairs=(pair,), transfers=receives(pair, sizes, 100 * n)
        )

    def notice(address: str, number: int = 9) -> str:
        bth = bytes((0x81, 0x40, 255, 255, 0x40)) + number.to_bytes(3, "big") + bytes(4)
        udp = (49152).to_bytes(2, "big") + (4791).to_bytes(2, "big") + (40).to_bytes(2, "big")
        body = udp + bytes(2) + bth + IPv4Address(address).packed.ljust(16, b"\0")
        head = bytes((0x45, 0xC2, 0, 60, 0, 0, 64, 0, 64, 17, 0, 0))
        packet = head + IPv4Address("10.255.16.1").packed + IPv4Address(A).packed + body
        frame = bytes(12) + b"\x08\x00" + packet + icrc(packet).to_bytes(4, "little")
        return frame.hex()

    plain = run(star, plans)
    strays = [notice("10.0.0.9"), notice(peers[0], 8)]
    extra = [f"inject {A} at={1000 + n} {frame}" for n, frame in enumerate(strays)]
    unmoved = run(star, plans, extra=extra)
    assert unmoved.end_ns == plain.end_ns
    assert unmoved.counters(A)["rp_fast_cnps"] == unmoved.counters(A)["rx_no_queue_pair"] == 2
    for slowed in range(3):
        extra = [f"inject {A} at=1000 {notice(peers[slowed])}"]
        outcome = run(star, plans, extra=extra)
        counters = outcome.counters(A)
        assert (counters["rp_fast_cnps"], counters["rp_cnp_handled"]) == (1, 1)
        last = {n: outcome.hosts[A].transfers[100 * n].end_ns or 0 for n in range(3)}
        assert max(last, key=lambda n: last[n]) == slowed
