"""What endpoints put on the wire, as tshark, scapy and a second ICRC see it."""

import random
import shutil
import subprocess
import zlib
from pathlib import Path

import pytest
from scapy.contrib.roce import AETH, BTH, CNPPadding
from scapy.layers.inet import IP, UDP
from scapy.layers.inet6 import IPv6
from scapy.layers.l2 import Ether
from scapy.packet import Raw
from scapy.utils import wrpcap

from tests.traffic.endpoint.star import GBPS, A, B, Outcome, ends, one_way, run, sends, unfinished
from tests.traffic.reader import read_frame
from traffic.congestion import CONTROLS
from traffic.endpoint import CORE, EndpointConfig, EndpointPlan, Recovery
from traffic.frames import icrc
from traffic.layers import (
    INT_PORT,
    REPORT_PORT,
    RETH,
    ROCE_PORT,
    ImmDt,
    IntHeader,
    IntShim,
    Report,
    ReportGroup,
)
from traffic.messages import traffic_class
from traffic.samples import icrc_is_right

BOTH = [f"capture {A}", f"capture {B}"]
WRITES = {0x06, 0x07, 0x08, 0x09, 0x0A, 0x0B}


@pytest.fixture(scope="module", params=[4, 6])
def every_kind(star: Path, request: pytest.FixtureRequest) -> list[bytes]:
    """Frames of every kind an endpoint sends."""
    ip = request.param
    config = EndpointConfig(link_bps=100 * GBPS, rto=50_000, mtu=1024, ip=ip)
    plans = one_way(config, [1, 5, 3000, 0, 1024] * 5, cc="dcqcn")
    frames = run(star, plans, extra=[*BOTH, f"mark {B} at=0"], loss=0.1, seed=3).captured
    frames += run(
        star,
        one_way(EndpointConfig(link_bps=100 * GBPS, recovery=Recovery.SELECTIVE, ip=ip), [9000]),
        extra=BOTH,
    ).captured
    plans[A] = EndpointPlan(
        config=config,
        queue_pairs=plans[A].queue_pairs,
        transfers=sends(plans[A].queue_pairs[0], [77], 99),
    )
    return frames + run(star, plans, extra=BOTH).captured


def ip_bytes(frame: bytes) -> int:
    return 40 if frame[14] >> 4 == 6 else 20


def bth(frame: bytes) -> bytes:
    return frame[14 + ip_bytes(frame) + 8 :]


def opcode(frame: bytes) -> int:
    return bth(frame)[0]


def test_every_kind_is_there(every_kind: list[bytes]) -> None:
    assert {opcode(frame) for frame in every_kind} == {0x06, 0x07, 0x09, 0x0A, 0x0B, 0x11, 0x81}
    answers = {bth(frame)[12] for frame in every_kind if opcode(frame) == 0x11}
    assert answers == {0x1F, 0x60, 0x62}  # ACK, sequence error, remote access error


def test_every_icrc_is_right(every_kind: list[bytes]) -> None:
    for frame in every_kind:
        assert int.from_bytes(frame[-4:], "little") == icrc(frame[14:-4])
        packet = Ether(frame)
        stored = packet[BTH].icrc
        packet[BTH].icrc = None
        assert Ether(bytes(packet))[BTH].icrc == stored
        assert icrc_is_right(frame)
        inner = 41 if IPv6 in packet else 4
        carrier = IPv6(src="fc00::1", dst="fc00:1:2::", plen=len(frame) - 14, nh=inner)
        assert icrc_is_right(frame[:12] + b"\x86\xdd" + bytes(carrier) + frame[14:])


def test_ip_headers_are_right(every_kind: list[bytes]) -> None:
    for frame in every_kind:
        packet = Ether(frame)
        assert packet[UDP].len == len(frame) - 14 - ip_bytes(frame)
        is_notice = opcode(frame) == 0x81
        assert traffic_class(packet) == ((48 if is_notice else 26) << 2 | 0b10)
        if IPv6 in packet:
            assert packet[IPv6].plen == packet[UDP].len
            assert packet[IPv6].fl == packet[UDP].sport
            continue
        assert packet[IP].len == len(frame) - 14
        stored = packet[IP].chksum
        del packet[IP].chksum
        assert Ether(bytes(packet))[IP].chksum == stored


def test_scapy_rebuilds_them_to_the_byte(every_kind: list[bytes]) -> None:
    for frame in every_kind:
        packet = Ether(frame)
        assert bytes(packet) == frame
        number = opcode(frame)
        assert (RETH in packet) == (number in (0x06, 0x0A, 0x0B))
        assert (ImmDt in packet) == (number in (0x09, 0x0B))
        assert (AETH in packet) == (number == 0x11)
        assert (CNPPadding in packet) == (number == 0x81)


def test_tshark_decodes_every_kind(every_kind: list[bytes], tmp_path: Path) -> None:
    if shutil.which("tshark") is None:
        pytest.skip("tshark is not installed")
    capture = tmp_path / "kinds.pcap"
    wrpcap(str(capture), [Ether(frame) for frame in every_kind])
    fields = (
        "infiniband.bth.opcode",
        "infiniband.bth.psn",
        "infiniband.reth.r_key",
        "infiniband.immdt",
        "infiniband.aeth.syndrome",
        "infiniband.invariant.crc",
        "_ws.malformed",
        "_ws.expert.message",
    )
    command = ["tshark", "-r", str(capture), "-T", "fields", "-E", "separator=|"]
    for name in fields:
        command += ["-e", name]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    rows = done.stdout.splitlines()
    assert len(rows) == len(every_kind)
    for row, frame in zip(rows, every_kind, strict=True):
        number, psn, rkey, immediate, syndrome, crc, malformed, expert = row.split("|")
        assert (int(number), int(psn)) == (opcode(frame), int.from_bytes(bth(frame)[9:12], "big"))
        assert bool(rkey) == (opcode(frame) in (0x06, 0x0A, 0x0B))
        assert bool(immediate) == (opcode(frame) in (0x09, 0x0B))
        assert bool(syndrome) == (opcode(frame) == 0x11)
        if opcode(frame) != 0x81:  # tshark shows no ICRC of a CNP, ours or an adapter's
            assert int(crc, 16).to_bytes(4, "big") == frame[-4:]
        # As adapters do, the UDP checksum stays 0 over IPv6 too: the ICRC covers more.
        known = "Illegal checksum value (0)" if ip_bytes(frame) == 40 else ""
        assert not malformed and expert == known, row


def pattern(message: int, size: int) -> bytes:
    """The bytes of a message as pattern.h defines them, written again."""
    words = bytearray()
    for index in range(-(-size // 8)):
        word = (index + 1) * 0x9E3779B97F4A7C15 ^ message * 0xD6E8FEB86659FD93
        word &= (1 << 64) - 1
        words += (word ^ word >> 29).to_bytes(8, "little")
    return bytes(words[:size])


@pytest.mark.parametrize("recovery", Recovery)
def test_messages_put_together_from_captured_frames(star: Path, recovery: Recovery) -> None:
    """The frames alone, read by other code, give every message as it should be."""
    sizes = [1, 8, 4095, 4097, 20_001, 0]
    config = EndpointConfig(link_bps=100 * GBPS, recovery=recovery)
    outcome = run(star, one_way(config, sizes), extra=[f"capture {A}"])
    memory = {number: bytearray(size) for number, size in enumerate(sizes, 1)}
    at = message = 0
    for captured in outcome.captured:
        frame, packet = read_frame(captured), Ether(captured)
        assert frame is not None
        if frame.va is not None:
            message, at = packet[RETH].rkey, frame.va
        memory[message][at : at + len(frame.payload)] = frame.payload
        at += len(frame.payload)
        assert frame.immediate == (packet[ImmDt].data if ImmDt in packet else None)
        assert frame.immediate in (None, message)
    for number, size in enumerate(sizes, 1):
        assert memory[number] == pattern(number, size)


def without_int(frame: bytes) -> bytes:
    """What an INT sink makes of a frame: lengths and port as before."""
    packet = Ether(frame)
    cut = 4 + 4 * packet[IntShim].length
    ip, udp, rest = bytearray(frame[14:34]), bytearray(frame[34:42]), frame[42 + cut :]
    ip[2:4] = (packet[IP].len - cut).to_bytes(2, "big")
    udp[2:4] = packet[IntShim].port.to_bytes(2, "big")
    udp[4:6] = (packet[UDP].len - cut).to_bytes(2, "big")
    return bytes(ip + udp) + rest


@pytest.fixture(scope="module")
def with_int(star: Path) -> Outcome:
    config = EndpointConfig(link_bps=100 * GBPS, ack_every=1)
    return run(star, one_way(config, [200_000], cc="hpcc"), extra=BOTH)


def test_int_travels_to_the_receiver_and_back(with_int: Outcome) -> None:
    assert not unfinished(with_int.hosts[B])
    assert with_int.counters(B)["rx_icrc_errors"] == 0
    data = [frame for frame in with_int.captured if IntShim in Ether(frame) and len(frame) > 1000]
    acks = [frame for frame in with_int.captured if AETH in Ether(frame)]
    assert data and acks
    for frame in data:
        assert Ether(frame)[UDP].dport == INT_PORT
        assert Ether(frame)[IntHeader].hops() == []
    for frame in acks:
        header = Ether(frame)[IntHeader]
        assert header.remaining_hops == 0  # nobody adds to it on the way back
        (hop,) = header.hops()
        assert hop["queue"] == 3
        assert hop["link_mbps"] == 100_000


def test_the_icrc_is_that_of_the_packet_without_int(with_int: Outcome) -> None:
    for frame in with_int.captured:
        assert bytes(Ether(frame)) == frame
        plain = without_int(frame)
        assert int.from_bytes(plain[-4:], "little") == icrc(plain[:-4])
        assert Ether(frame)[BTH].opcode in (*WRITES, 0x11)


def test_a_notification_captured_from_an_adapter() -> None:
    """A CNP that a ConnectX-4 Lx sent (scapy's own tests hold it) comes apart and together."""
    frame = bytes.fromhex(
        "e41d2dab2bc27cfe90643b32080045c2003c718c40004011"
        "91610a0011010a001201000012b7002800008100ffff4000"
        "01180000000000000000000000000000000000000000"
        "82fd002a"
    )
    packet = Ether(frame)
    assert packet[BTH].opcode == 0x81 and packet[BTH].becn and packet[BTH].dqpn == 0x118
    assert bytes(packet) == frame
    packet[BTH].icrc = None
    assert bytes(packet) == frame
    assert int.from_bytes(frame[-4:], "little") == icrc(frame[14:-4])


def test_a_send_of_an_adapter() -> None:
    """The same for a SEND of an unreliable connection, whose checksums are known."""
    frame = bytes(
        Ether(dst="24:8a:07:a8:fa:22", src="24:8a:07:a8:fa:22")
        / IP(tos=1, id=1144, flags="DF", src="192.168.0.7", dst="192.168.0.7")
        / UDP(sport=49152, dport=ROCE_PORT)
        / BTH(opcode=0x24, migreq=1, padcount=2, dqpn=211, psn=13571856)
        / Raw(bytes.fromhex("4630818be28935d90e9a95505401be885e500000"))
    )
    packet = Ether(frame)
    assert (packet[IP].chksum, packet[UDP].chksum) == (0xB4D5, 0xACA2)
    assert packet[BTH].icrc == 0x78F353F3
    assert int.from_bytes(frame[-4:], "little") == icrc(frame[14:-4])
    assert bytes(packet) == frame


def test_telemetry_reports_come_apart_and_together() -> None:
    inner = Ether() / IP(src="10.0.1.1", dst="10.0.2.1") / UDP(dport=53) / b"abcd"
    report = Report(dropped=1, bits=0x9001, metadata=[7, 3 << 24 | 500, 3 << 24 | 9 << 16])
    frame = bytes(
        Ether() / IP() / UDP(dport=REPORT_PORT) / ReportGroup(sequence=5, node=7) / report / inner
    )
    packet = Ether(frame)
    assert bytes(packet) == frame
    assert packet[ReportGroup].sequence == 5
    assert packet[Report].metadata_words == 3
    assert packet[Report].length == (8 + 12 + len(inner) + 3) // 4
    assert packet[Report].values() == {
        "node": 7,
        "queue": 3,
        "queue_occupancy": 500,
        "drop_reason": 9,
        "pad": 0,
    }
    assert bytes(packet[Report].payload) == bytes(inner)


def test_the_crc_is_zlib_s_for_every_length(unit: Path) -> None:
    rng = random.Random(5)
    lengths = [*range(300), *(rng.randrange(10_000) for _ in range(60))]
    data = [rng.randbytes(length) for length in lengths]
    text = "".join(f"crc {piece.hex()}\n" for piece in data)
    done = subprocess.run([unit], input=text, capture_output=True, text=True, check=True)
    for line, piece in zip(done.stdout.splitlines(), data, strict=True):
        assert line == f"{zlib.crc32(piece)} {zlib.crc32(piece)}"


def test_the_folding_constants() -> None:
    """Powers of x modulo the polynomial, reflected and shifted up by one, as icrc.c says."""

    def power(exponent: int) -> int:
        value = 1
        for _ in range(exponent):
            value <<= 1
            value ^= 0x104C11DB7 if value >> 32 else 0
        return int(f"{value:032b}"[::-1], 2) << 1

    source = (CORE / "icrc.c").read_text()
    for distance in (512, 128):
        assert f"(0x{power(distance - 32):09x}, 0x{power(distance + 32):09x})" in source


@pytest.mark.parametrize("recovery", Recovery)
def test_garbage_is_counted_and_changes_nothing(strict_star: Path, recovery: Recovery) -> None:
    """Every second frame is damaged: nothing crashes, nothing wrong gets through."""
    config = EndpointConfig(link_bps=100 * GBPS, recovery=recovery, rto=20_000, retry_limit=250)
    outcome = run(strict_star, one_way(config, [5000] * 30), corrupt=0.5, timeout=1e9, seed=11)
    assert not unfinished(outcome.hosts[B])
    counters = outcome.counters(B)
    assert counters["rx_icrc_errors"] + counters["rx_malformed"] + counters["rx_other"] > 20


@pytest.mark.by_day(8)
@pytest.mark.parametrize("seed", range(24))
def test_any_bytes_behind_a_missing_icrc_break_nothing(strict_star: Path, seed: int) -> None:
    """With no ICRC to stop them damaged headers get all the way in: no crash, hang or overrun."""
    rng = random.Random(seed)
    cc = rng.choice([name for name, each in CONTROLS.items() if "roce" in each.users])
    config = EndpointConfig(
        link_bps=100 * GBPS,
        payload="none",
        recovery=rng.choice(list(Recovery)),
        window=rng.choice((1, 7, 512)),
        rto=20_000,
        retry_limit=20,
    )
    sizes = [rng.randrange(30_000) for _ in range(100)]
    corrupt = rng.choice((0.05, 0.5, 1))
    faults = {"corrupt": corrupt, "cut": 0.05, "duplicate": 0.05, "reorder": 0.1, "loss": 0.01}
    run(strict_star, one_way(config, sizes, cc=cc), seed=seed, timeout=20e6, **faults)


def test_sequence_numbers_start_where_they_are_told(star: Path) -> None:
    here, _ = ends(A, B, psn=0xFFFFFE, remote_psn=5)
    assert here.psn == 0xFFFFFE
    config = EndpointConfig(link_bps=100 * GBPS)
    plans = one_way(config, [4096 * 4], psn=0xFFFFFE, remote_psn=0xFFFFFE)
    outcome = run(star, plans, extra=[f"watch {A}"])
    assert [frame.psn for frame in outcome.frames] == [0xFFFFFE, 0xFFFFFF, 0, 1]
