"""``closlab frames`` as a user meets it."""

from pathlib import Path

import pytest
from scapy.utils import wrpcap

from tests.lab.conftest import closlab
from traffic.samples import KINDS, sample


def test_kinds_are_listed() -> None:
    done = closlab("frames")
    assert done.returncode == 0
    assert [line.split()[0] for line in done.stdout.splitlines()] == list(KINDS)


def test_one_is_shown_field_by_field() -> None:
    done = closlab("frames", "nak", "--set", "BTH.psn=9", "--set", "BTH.icrc=auto")
    assert done.returncode == 0, done.stderr
    assert "RC_ACKNOWLEDGE" in done.stdout
    assert "right" in done.stdout
    assert "0030" in done.stdout  # its bytes


def test_a_capture_is_shown(tmp_path: Path) -> None:
    capture = tmp_path / "x.pcap"
    wrpcap(str(capture), [sample("cnp"), sample("pause"), sample("ack")])
    done = closlab("frames", "--pcap", str(capture), "--most", "2")
    assert done.returncode == 0, done.stderr
    assert "x.pcap, frame 2: 60 bytes" in done.stdout
    assert "CNP" in done.stdout and "PFC" in done.stdout
    assert "frame 3" not in done.stdout


@pytest.mark.parametrize(
    ("words", "complaint"),
    [
        (["writ-only"], "did you mean 'write-only'?"),
        (["ack", "--set", "BTH.psn"], "write it as LAYER.FIELD=VALUE"),
        (["ack", "--set", "BTH.pns=1"], "BTH has no field 'pns'"),
        (["ack", "--send", "nowhere0"], "nothing can be sent by 'nowhere0'"),
        (["--pcap", "no.pcap"], "no.pcap cannot be read"),
        (["--pcap", "pyproject.toml"], "pyproject.toml is no capture"),
    ],
)
def test_bad_input_is_one_message(words: list[str], complaint: str) -> None:
    done = closlab("frames", *words)
    assert done.returncode == 1
    assert complaint in done.stderr
    assert "Traceback" not in done.stderr
