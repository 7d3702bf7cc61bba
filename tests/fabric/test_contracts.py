"""What stands on top of each file of the fabric program is what the compiler finds in it."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.fabric import contracts
from tests.fabric.contracts import FOLDER, Contract, done, order, wrong
from tests.imports import ROOT

DECLARE = {
    *("fabric.p4", "headers.p4", "sizes.p4", "types.p4"),
    *("ports.p4", "timers.p4"),  # registers that others read
}
BLOCKS = sorted({path.name for path in FOLDER.glob("*.p4")} - DECLARE)


def test_every_block_has_a_contract() -> None:
    """Those of the diagram; what only declares has none."""
    assert len(done()) >= 24
    assert sorted(done()) == BLOCKS


@pytest.mark.parametrize("file", BLOCKS)
def test_it_reads_and_writes_what_its_top_says(file: str) -> None:
    complaints = list(wrong(file, done()[file]))
    assert not complaints, "\n".join(complaints)


@pytest.mark.parametrize(
    ("control", "begins"), [("fabric_ingress", "Ingress: "), ("fabric_egress", "Egress: ")]
)
def test_the_internals_name_blocks_in_the_order_of_the_program(control: str, begins: str) -> None:
    text = (ROOT / "docs" / "internals.md").read_text()
    (paragraph,) = (each for each in text.split("\n\n") if each.startswith(begins))
    assert re.findall(r"`(\w+)`", paragraph) == order(control)


PROGRAM = """// A block.
//
// Reads:  {reads}.
// Writes: {writes}.
//         {more}
register<bit<8>>(4) own;
"""


@pytest.mark.parametrize(
    ("reads", "writes", "more", "complaints"),
    [
        (
            "meta.a, the port",
            "hdr.ipv4.ttl, own_cell",
            "",
            ["Writes names own_cell, and it does not"],
        ),
        ("meta.a, the port", "hdr.ipv4.ttl", "", []),
        ("meta.*, the port", "the IP header", "", []),
        ("meta.a, meta.b, the port", "hdr.ipv4", "", ["Reads names meta.b, and it does not"]),
        ("the port", "hdr.ipv4", "", ["Reads leaves out meta.a"]),
        ("meta.a", "hdr.ipv4", "", ["Reads leaves out standard_metadata.egress_port"]),
        ("meta.a, the port", "nothing", "", ["Writes leaves out hdr.ipv4"]),
        ("meta.a, the port", "nothing,", "hdr.ipv4.", []),
    ],
)
def test_what_is_left_out_or_made_up_is_told(
    reads: str, writes: str, more: str, complaints: list[str], tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    monkeypatch.setattr(contracts, "FOLDER", tmp_path)
    (tmp_path / "block.p4").write_text(PROGRAM.format(reads=reads, writes=writes, more=more))
    does = Contract({"meta.a", "standard_metadata.egress_port"}, {"hdr.ipv4"})
    assert list(wrong("block.p4", does)) == [f"block.p4: {each}" for each in complaints]
