"""One packet of each kind: sound, dissected field by field, changed."""

import shutil
import subprocess
from pathlib import Path

import pytest
from scapy.layers.inet import IP
from scapy.layers.l2 import Ether
from scapy.utils import wrpcap

from tests.traffic.reader import read_frame
from traffic.frames import FrameError
from traffic.layers import BTH
from traffic.samples import KINDS, change, dissect, icrc_is_right, sample

CUT = ("uet-cut", "mrc-cut")
ROCE = [kind for kind in KINDS if kind not in ("pause", "report", *CUT) and kind[:4] != "sue-"]


def fields(frame: bytes, layer: str) -> dict[str, str]:
    """What is shown of a layer."""
    shown: dict[str, str] = {}
    current = ""
    for field in dissect(frame):
        current = field.layer or current
        if current == layer:
            shown[field.name] = field.value
    return shown


@pytest.mark.parametrize("kind", KINDS)
def test_it_is_the_same_after_dissecting_and_building(kind: str) -> None:
    frame = bytes(sample(kind))
    assert bytes(Ether(frame)) == frame
    assert icrc_is_right(frame) is (True if kind in ROCE else None)


@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind.startswith("write-")])
def test_the_reader_takes_every_write(kind: str) -> None:
    read = read_frame(bytes(sample(kind)))
    if kind == "write-int":
        assert read is None  # INT goes to a port of its own, until the sink takes it off
    else:
        assert read is not None
        assert read.payload == b"Remote DMA data."


def test_fields_are_shown() -> None:
    frame = bytes(sample("write-int"))
    assert fields(frame, "IntHeader")["hop 1"] == "node 2, hop_latency 340"
    assert fields(frame, "BTH")["opcode"] == "RC_RDMA_WRITE_ONLY"
    assert fields(frame, "BTH")["icrc"].endswith(", right")
    assert fields(frame, "RETH")["dmalen"] == "16"
    assert fields(bytes(sample("pause")), "PFC")["c3_pause_time"] == "65535"
    assert fields(bytes(sample("report")), "Report")["metadata"] == "[0x1, 0x78]"


def test_a_changed_packet_has_a_wrong_icrc_until_that_is_made_anew() -> None:
    packet = sample("write-only")
    change(packet, "bth.psn", "0x9")
    assert icrc_is_right(bytes(packet)) is False
    assert "WRONG" in fields(bytes(packet), "BTH")["icrc"]
    change(packet, "BTH.icrc", "auto")
    assert icrc_is_right(bytes(packet)) is True
    assert Ether(bytes(packet))[BTH].psn == 9


def test_what_switches_may_change_leaves_the_icrc_right() -> None:
    packet = sample("ack")
    change(packet, "IP.ttl", "3")
    change(packet, "IP.tos", "255")
    change(packet, "IP.src", "10.0.1.1")
    assert icrc_is_right(bytes(packet)) is True
    assert Ether(bytes(packet))[IP].ttl == 3


@pytest.mark.parametrize(
    ("place", "value", "words"),
    [
        ("BTX.psn", "1", "no layer 'BTX'; it has Ether, IP, UDP, BTH"),
        ("BTH.pns", "1", "no field 'pns'; it has opcode"),
        ("BTH.psn", "0x1000000", "it has 24 bits"),
        ("BTH.psn", "many", "'many' is no value for BTH.psn"),
    ],
)
def test_a_change_that_cannot_be_made_is_refused(place: str, value: str, words: str) -> None:
    with pytest.raises(FrameError, match=words):
        change(sample("ack"), place, value)


def test_a_frame_that_was_cut_is_dissected_as_far_as_it_goes() -> None:
    frame = bytes(sample("write-int"))
    for length in range(14, len(frame)):
        dissect(frame[:length])
    assert fields(frame[:-20], "BTH")["icrc"].endswith("cut off")


def test_tshark_finds_nothing_wrong(tmp_path: Path) -> None:
    if shutil.which("tshark") is None:
        pytest.skip("tshark is not installed")
    capture = tmp_path / "samples.pcap"
    wrpcap(str(capture), [sample(kind) for kind in KINDS])
    words = ["-T", "fields", "-e", "frame.protocols", "-e", "_ws.malformed"]
    said = subprocess.run(
        ["tshark", "-r", str(capture), *words], capture_output=True, text=True, check=True
    ).stdout.splitlines()
    assert len(said) == len(KINDS)
    for kind, line in zip(KINDS, said, strict=True):
        protocols, _, malformed = line.partition("\t")
        # A packet that a switch cut is shorter than UDP says; this tshark knows no UET.
        assert bool(malformed) == (kind in CUT), kind
        if kind in ROCE and kind != "write-int" and not kind.startswith("uet"):  # INT: our port
            assert "infiniband" in protocols, kind
