"""UET's security sublayer in a whole fabric: what it costs, who reads what, and new keys."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from cryptography.exceptions import InvalidTag
from scapy.utils import rdpcap

from controller.secure_domains import SecureDomains, association
from lab.errors import ScenarioError
from lab.machine.paths import CONGA_DISSECTOR
from lab.scenario import catalogue
from lab.scenario.experiment import Experiment
from lab.scenario.faults import Rekey, events_of
from tests.lab.conftest import closlab
from tests.lab.simulated import simulate
from tests.lab.test_captures import dissected
from tests.traffic.endpoint.tss_model import header_of, opened

NAME = "encrypted"
KINDS = ("transport.kind=uet", "transport.security.enabled=true")
WIRE = 24  # preamble, gap and FCS
HEADERS = 14 + 20 + 8 + 12 + 44  # Ethernet to SES


@pytest.mark.parametrize("mtu", [256, 4096])
def test_goodput_is_what_the_equation_says(tmp_path: Path, mtu: int) -> None:
    """A flow alone, by the lengths of its frames: 24 bytes more each."""
    took = []
    for more in (0, 24):
        run = simulate(
            "two-elephants",
            "traffic={kind: flows, flows: [{src: h1, dst: h2, bytes: 4MB}]}",
            *("transport.kind=uet", f"transport.security.enabled={'true' if more else 'false'}"),
            *("ecn.enabled=false", f"link.mtu={mtu}", "transport.window=65536"),
            out=tmp_path / str(more),
        )
        frame = HEADERS + mtu + 4 + more + WIRE
        took.append((run.result.flows.fct_ns.max, frame))
    (without, short), (with_it, long) = took
    assert with_it / without == pytest.approx(long / short, rel=0.002)


def test_words_of_keys_wait_for_the_controller() -> None:
    """While it is away nobody gets keys; then each is given before it is used."""
    faults = "faults=[{at_ns: 90us, action: halt, part: controller, for_ns: 150us}]"
    scenario = catalogue.load(NAME, (faults,))
    events = [e for e in events_of(scenario, scenario.fabric()) if isinstance(e, Rekey)]
    assert [(e.at_ns // 1000, e.word.turn, e.word.is_used) for e in events] == [
        *((240, 1, False), (260, 1, True)),
        *((280, 2, False), (300, 2, True)),
    ]


def test_hosts_have_the_keys_of_their_own_domains_alone() -> None:
    scenario = catalogue.load(NAME)
    experiment = Experiment.of(scenario)
    lines = {rank: [*experiment.plan(rank, carries_payload=True).lines()] for rank in range(8)}
    keys = {
        rank: {w.split()[1] for w in words if w.startswith("key ")} for rank, words in lines.items()
    }
    assert [keys[rank] for rank in (0, 1, 4, 5)] == [keys[0]] * 4
    assert [keys[rank] for rank in (2, 3, 6, 7)] == [keys[2]] * 4
    assert len(keys[0]) == len(keys[2]) == 1 and keys[0] != keys[2]


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        (("transport.security.enabled=true",), "set transport.kind=uet"),
        ((*KINDS, "trim.enabled=true", "pfc.enabled=false"), "set trim.size=70"),
        ((*KINDS, "transport.security.rekey_at_ns=[1us, 2us]"), "let keys live longer"),
        (
            (
                *KINDS,
                "traffic={kind: collective, op: all-reduce, algorithm: in-network, bytes: 1MB}",
            ),
            "cannot read",
        ),
    ],
)
def test_what_does_not_go_together_is_refused(wrong: tuple[str, ...], said: str) -> None:
    with pytest.raises(ScenarioError, match=said):
        Experiment.of(catalogue.load("incast", wrong))


@pytest.mark.mininet
@pytest.mark.slow
def test_frames_of_hosts_open_by_another_implementation(tmp_path: Path) -> None:
    """All that hosts put on the wire while keys change: by one key of its domain, by none of the
    other's. Of what a switch has cut nothing can be said."""
    closlab("run", NAME, "--engine", "mininet", "--pcap", "--out", str(tmp_path))
    keys = SecureDomains(1, {})
    turns: dict[int, set[int]] = {1: set(), 2: set()}
    count = 0
    for path in sorted((tmp_path / "pcaps").glob("leaf?-eth*_in.pcap")):
        for frame in map(bytes, rdpcap(str(path))):
            is_cut = int.from_bytes(frame[16:18]) - 20 < int.from_bytes(frame[38:40])
            if int.from_bytes(frame[36:38]) != 4793 or is_cut:
                continue
            header = header_of(frame)
            sdi = int.from_bytes(header[1:4])
            found = [turn for turn in range(3) if _opens(frame, keys.key(sdi, turn))]
            (turn,) = found
            assert association(turn) == header[0] & 1
            assert not _opens(frame, keys.key(3 - sdi, turn))
            turns[sdi].add(turn)
            count += 1
    assert count > 10_000 and {0, 1, 2} in turns.values()


def _opens(frame: bytes, key: bytes) -> bool:
    try:
        opened(frame, key)
    except InvalidTag:
        return False
    return True


@pytest.mark.skipif(shutil.which("tshark") is None, reason="tshark is not installed")
def test_tshark_reads_the_header(tmp_path: Path) -> None:
    simulate(NAME, "measures.pcap=[h1-leaf1]", out=tmp_path)
    capture = str(tmp_path / "pcaps" / "h1-leaf1.pcap")
    names = ("type", "sp", "an", "sdi", "tsc")
    fields = [f"uet.tss.{name}" for name in names]
    rows = dissected(capture, CONGA_DISSECTOR.with_name("uet.lua"), fields)
    frames = [header_of(bytes(frame)) for frame in rdpcap(capture)]
    assert len(rows) == len(frames) > 100
    for row, header in zip(rows, frames, strict=True):
        wanted = [header[0] >> 3, header[0] >> 2 & 1, header[0] & 1]
        wanted += [int.from_bytes(header[1:4]), int.from_bytes(header[-8:])]
        assert [int(word, 0) for word in row] == wanted
    assert {int(row[2], 0) for row in rows} == {0, 1}
