"""RoCEv2 frames on literal bytes, against scapy, and against tshark's own dissector."""

import contextlib
import shutil
import subprocess
from ipaddress import IPv4Address
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scapy.layers.inet import IP, UDP
from scapy.layers.l2 import Ether
from scapy.utils import wrpcap

from tests.traffic.reader import read_frame
from traffic.frames import (
    DSCP_CONTROL,
    DSCP_ROCE,
    ECN_CAPABLE,
    FlowAddress,
    FrameError,
    Opcode,
    ends_of,
    icrc,
    template_of,
)
from traffic.layers import BTH, INT_DOMAIN, INT_PORT, RETH, ROCE_PORT, ImmDt, IntHeader, IntShim
from traffic.messages import ACK, answer_frame, data_frame, headers, packets_of, pattern

FLOW = FlowAddress(
    src_mac="02:00:0a:00:01:01",
    dst_mac="02:01:01:00:00:01",
    src=IPv4Address("10.0.1.1"),
    dst=IPv4Address("10.0.2.1"),
    src_port=0xC123,
    queue_pair=0x101,
)


def template(tos: int, telemetry: int = 0, own: int = 0) -> bytes:
    """The flow's headers, Ethernet to BTH."""
    found = template_of(4, tos, telemetry, own)
    return found.addressed(ends_of(FLOW), FLOW.src_port, FLOW.queue_pair)


DATA, CONTROL = (template(dscp << 2 | ECN_CAPABLE) for dscp in (DSCP_ROCE, DSCP_CONTROL))


def message(number: int, size: int, *, mtu: int = 4096, psn: int = 0) -> list[bytes]:
    """The frames of a message."""
    count = packets_of(size, mtu)
    return [
        data_frame(
            headers(DATA),
            FLOW.queue_pair,
            psn + index,
            message=number,
            size=size,
            index=index,
            mtu=mtu,
            wants_answer=index + 1 == count,
        )
        for index in range(count)
    ]


words = st.integers(0, 0xFFFF)


@given(dscp=st.integers(0, 63), ecn=st.booleans(), telemetry=words, own=words)
def test_templates_are_what_scapy_builds(dscp: int, ecn: bool, telemetry: int, own: int) -> None:
    own = own if telemetry else 0
    frame = template(dscp << 2 | 2 * ecn, telemetry, own)
    wide = (4, 5, 6)  # INT's instructions of 64 bits a hop; 9 to 14 are of nothing
    per_hop = sum((bit in wide) + (bit not in range(9, 15)) for bit in range(16)
                  if telemetry & 0x8000 >> bit)  # fmt: skip
    on_board = IntShim() / IntHeader(
        hop_words=per_hop + own.bit_count(),
        remaining_hops=8,
        instructions=telemetry,
        domain=INT_DOMAIN if own else 0,
        domain_instructions=own,
    )
    head = Ether(src=FLOW.src_mac, dst=FLOW.dst_mac)
    head /= IP(src=0, dst=0, tos=dscp << 2 | 2 * ecn, flags="DF", id=0)
    head /= UDP(sport=FLOW.src_port, dport=INT_PORT if telemetry else ROCE_PORT, chksum=0)
    bth = BTH(dqpn=FLOW.queue_pair, icrc=0)
    expected = bytearray(bytes(head / on_board / bth if telemetry else head / bth)[:-4])
    expected[26:34] = FLOW.src.packed + FLOW.dst.packed  # no part of the sum yet
    assert frame == bytes(expected)


def test_a_message_of_one_frame_byte_by_byte() -> None:
    (frame,) = message(0xABCD, 5, psn=7)
    assert frame[:14].hex() == "02010100000102000a0001010800"
    assert frame[14:16] == bytes((0x45, 26 << 2 | 0b10))
    assert frame[16:18] == (20 + 8 + 12 + 16 + 4 + 8 + 4).to_bytes(2, "big")
    assert frame[34:38].hex() == "c12312b7"  # ports
    bth, reth, immediate = frame[42:54], frame[54:70], frame[70:74]
    assert bth.hex() == "0b30ffff0000010180000007"  # only, 3 bytes of padding, ack wanted
    assert reth.hex() == "00000000000000000000abcd00000005"
    assert immediate.hex() == "0000abcd"
    assert frame[74:82] == pattern(0xABCD, 0, 5) + bytes(3)


def test_an_answer_byte_by_byte() -> None:
    frame = answer_frame(headers(CONTROL), 0x100, -1, syndrome=ACK, msn=1 << 24 | 5)
    assert frame[14:16] == bytes((0x45, 48 << 2 | 0b10))
    assert frame[42:54].hex() == "1100ffff0000010000ffffff"
    assert frame[54:-4].hex() == "1f000005"
    assert int.from_bytes(frame[-4:], "little") == icrc(frame[14:-4])


@given(size=st.integers(0, 20_000), mtu=st.sampled_from([256, 1024, 4096]))
def test_what_is_written_is_read_back(size: int, mtu: int) -> None:
    frames = [read_frame(frame) for frame in message(3, size, mtu=mtu, psn=0xFFFFFE)]

    assert b"".join(frame.payload for frame in frames if frame) == pattern(3, 0, size)
    assert len(frames) == max(1, -(-size // mtu))
    first, last = frames[0], frames[-1]
    assert first is not None and last is not None
    assert first.opcode.starts and last.opcode.ends
    assert first.message_bytes == size
    assert last.immediate == 3
    assert [frame.psn for frame in frames if frame] == [
        (0xFFFFFE + index) & 0xFFFFFF for index in range(len(frames))
    ]


@given(number=st.integers(0, 2**32 - 1), words=st.integers(0, 60), size=st.integers(0, 300))
def test_a_part_of_a_message_is_what_it_is_in_the_whole(number: int, words: int, size: int) -> None:
    assert pattern(number, 8 * words, size) == pattern(number, 0, 8 * words + size)[8 * words :]


def test_switches_may_change_ttl_tos_and_checksums_and_nothing_else() -> None:
    (frame,) = message(3, 64)
    allowed = {15, 22, 24, 25, 40, 41, 46}  # TOS, TTL, two checksums, FECN and BECN
    for place in range(14, len(frame)):
        changed = bytearray(frame)
        changed[place] ^= 0x04
        try:
            sound = read_frame(bytes(changed)) is not None
        except FrameError:
            sound = False
        assert sound == (place in allowed), f"byte {place}"


@given(st.binary(max_size=200))
def test_any_bytes_are_read_without_a_crash(data: bytes) -> None:
    with contextlib.suppress(FrameError):
        read_frame(data)


@given(st.data())
def test_a_damaged_frame_is_never_taken_for_a_sound_one(data: st.DataObject) -> None:
    (frame,) = message(3, 8)
    cut = data.draw(st.integers(0, len(frame) - 1))
    with contextlib.suppress(FrameError):
        assert read_frame(frame[:cut]) is None


def test_scapy_dissects_what_we_wrote_and_agrees_on_the_icrc() -> None:
    (frame,) = message(0x42, 3)
    packet = Ether(frame)
    assert packet[BTH].opcode == Opcode.WRITE_ONLY_IMMEDIATE
    assert packet[RETH].rkey == packet[ImmDt].data == 0x42
    assert packet[BTH].icrc == int.from_bytes(icrc(frame[14:-4]).to_bytes(4, "little"), "big")


def test_tshark_finds_nothing_wrong(tmp_path: Path) -> None:
    if shutil.which("tshark") is None:
        pytest.skip("tshark is not installed")
    capture = tmp_path / "write.pcap"
    wrpcap(str(capture), [Ether(frame) for frame in message(3, 9000)])
    fields = _tshark(capture, "-T", "fields", "-e", "infiniband.bth.opcode", "-e", "_ws.malformed")
    assert fields.split("\n")[:3] == ["6\t", "7\t", "9\t"]
    assert "RDMA Extended Transport Header" in _tshark(capture, "-V")


def _tshark(capture: Path, *words: str) -> str:
    return subprocess.run(
        ["tshark", "-r", str(capture), *words], capture_output=True, text=True, check=True
    ).stdout
