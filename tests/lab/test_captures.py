"""Captures: what crossed a link, and how tshark reads what CONGA adds."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest
from scapy.layers.inet import IP
from scapy.utils import rdpcap

from lab.engines.mininet.tap import NOT_ROOT, conga_hint
from lab.machine.paths import CONGA_DISSECTOR
from tests.lab.simulated import simulate
from traffic.layers import BTH, Conga


@pytest.mark.skipif(shutil.which("tshark") is None, reason="tshark is not installed")
def test_tshark_reads_what_is_behind_congas_header(tmp_path: Path) -> None:
    simulate("degraded-path", "measures.pcap=[leaf1-spine2]", "traffic.messages=1", out=tmp_path)
    capture = str(tmp_path / "pcaps" / "leaf1-spine2.pcap")
    shown = [word for name in ("conga.leaf", "conga.path", "ip.dst") for word in ("-e", name)]
    who = NOT_ROOT if os.geteuid() == 0 else ()
    script = f"lua_script:{CONGA_DISSECTOR}"
    words = [*who, "tshark", "-X", script, "-r", capture, "-T", "fields", *shown]
    done = subprocess.run(
        [*words, "-e", "infiniband.bth.opcode"], capture_output=True, text=True, check=True
    )
    frame = rdpcap(capture)[0]
    assert frame[Conga].leaf == 1 and frame[IP].dst.startswith("10.0.2.") and BTH in frame
    rows = [line.split("\t") for line in done.stdout.splitlines()]
    assert len(rows) > 20
    assert all(len(row) == 4 and row[0] == "1" and row[2].startswith("10.0.2.") for row in rows)
    assert all(row[3] for row in rows), "the RoCEv2 header is found"
    assert len({row[1] for row in rows}) == 1, "one link is one of the leaf's ways"
    assert f"{script} -r {capture}" in conga_hint(capture)
