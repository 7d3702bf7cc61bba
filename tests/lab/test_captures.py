"""Captures: what crossed a link, and how tshark reads what CONGA adds."""

import os
import shutil
import subprocess
from collections import Counter
from collections.abc import Iterable
from pathlib import Path

import pytest
from scapy.layers.inet import IP, UDP
from scapy.layers.l2 import Ether
from scapy.packet import Packet
from scapy.utils import rdpcap

from lab.engines.mininet.tap import NOT_ROOT, conga_hint
from lab.machine.paths import CONGA_DISSECTOR
from tests.lab.simulated import simulate
from traffic.layers import BTH, METH, NETH, PETH, RETH, SETH, Conga, Csig, CsigWide
from traffic.sue_layers import SuePdu, SueRh, Sunh
from traffic.uet_layers import UetPds, UetSes, UetSesShort


def dissected(capture: str, dissector: Path, fields: Iterable[str]) -> list[list[str]]:
    """What tshark tells of each frame's fields by a dissector of ours."""
    who = NOT_ROOT if os.geteuid() == 0 else ()
    words = [*who, "tshark", "-X", f"lua_script:{dissector}", "-r", capture, "-T", "fields"]
    shown = [word for field in fields for word in ("-e", field)]
    done = subprocess.run([*words, *shown], capture_output=True, text=True, check=True)
    return [line.split("\t") for line in done.stdout.splitlines()]


def read_twice(
    folder: Path, link: str, dissector: str, fields: Iterable[str]
) -> list[tuple[list[str], Packet]]:
    """What tshark and scapy tell of each frame that a link carried, either way, in a run.

    Where the simulator kept headers only, the rest is zeros.
    """
    one, other = link.split("-")
    there, back = (folder / f"pcaps/{a}-{b}.pcap" for a, b in ((one, other), (other, one)))
    both = folder / "both.pcap"
    both.write_bytes(there.read_bytes() + back.read_bytes()[24:])  # tshark takes long to start
    rows = dissected(str(both), CONGA_DISSECTOR.with_name(f"{dissector}.lua"), fields)
    frames = (Ether(bytes(kept).ljust(kept.wirelen, b"\0")) for kept in rdpcap(str(both)))
    return list(zip(rows, frames, strict=True))


@pytest.mark.skipif(shutil.which("tshark") is None, reason="tshark is not installed")
def test_tshark_reads_what_is_behind_congas_header(tmp_path: Path) -> None:
    simulate("degraded-path", "measures.pcap=[leaf1-spine2]", "traffic.messages=1", out=tmp_path)
    capture = str(tmp_path / "pcaps" / "leaf1-spine2.pcap")
    fields = "conga.leaf", "conga.path", "ip.dst", "infiniband.bth.opcode"
    rows = dissected(capture, CONGA_DISSECTOR, fields)
    frame = rdpcap(capture)[0]
    assert frame[Conga].leaf == 1 and frame[IP].dst.startswith("10.0.2.") and BTH in frame
    assert len(rows) > 20
    assert all(len(row) == 4 and row[0] == "1" and row[2].startswith("10.0.2.") for row in rows)
    assert all(row[3] for row in rows), "the RoCEv2 header is found"
    assert len({row[1] for row in rows}) == 1, "one link is one of the leaf's ways"
    assert f"lua_script:{CONGA_DISSECTOR} -r {capture}" in conga_hint(capture)


@pytest.mark.skipif(shutil.which("tshark") is None, reason="tshark is not installed")
def test_tshark_reads_parts_and_results(tmp_path: Path) -> None:
    """A chunk goes up once and comes down once; member m gives m + 1 times the first one's."""
    simulate("in-network-allreduce", "traffic.bytes=16KB", "measures.pcap=[h1-leaf1]", out=tmp_path)
    fields = [f"inc.{name}" for name in ("kind", "data", "job", "chunk", "owner", "number")]
    given: dict[str, list[int]] = {}  # by chunk: of the first member
    for name, kind, times in (("h1-leaf1.pcap", 0x11, 1), ("leaf1-h1.pcap", 0x12, 8 * 9 // 2)):
        rows = dissected(
            str(tmp_path / "pcaps" / name), CONGA_DISSECTOR.with_name("inc.lua"), fields
        )
        assert [_number(row[3]) for row in rows] == list(range(1, 17))
        for row in rows:
            assert [_number(row[at]) for at in (0, 2, 4)] == [kind, 1, 0xFFFF]
            numbers = [int(word) for word in row[5].split(",")]
            assert len(numbers) == 256
            first = given.setdefault(row[3], numbers)
            assert numbers == [times * each % 2**32 for each in first]


@pytest.mark.by_day(1)
@pytest.mark.skipif(shutil.which("tshark") is None, reason="tshark is not installed")
@pytest.mark.parametrize("wide", [False, True])
def test_tshark_and_scapy_read_the_same_of_csig(tmp_path: Path, wide: bool) -> None:
    """Tags on their way, and as answers reflect them; RoCEv2 is found behind both."""
    simulate(
        "incast",
        *("transport.cc=poseidon", f"csig.tag={'wide' if wide else 'compact'}"),
        *("traffic.bytes=100KB", "measures.pcap=[h1-leaf1]"),
        out=tmp_path,
    )
    layer, size = (CsigWide, 8) if wide else (Csig, 4)
    names = ("signal", "d", "code", "locator", "reflected", "wide")
    fields = [*(f"csig.{name}" for name in names), "infiniband.bth.opcode"]
    reflected, seen = 0, Counter[int]()
    both = read_twice(tmp_path, "h1-leaf1", "csig", fields)
    assert len(both) > 200
    for row, frame in both:
        values = [_number(word) for word in row]
        assert values[6] == frame[BTH].opcode
        if layer in frame:
            tag = frame[layer]
            assert values[4] is None
        else:
            raw = bytes(frame)
            assert (values[6], raw[46] & 1) == (0x11, 1)
            tag = layer(raw[60 : 58 + size] + b"\x08\x00")
            assert values[4] == 1
            reflected += 1
        assert values[:4] == [tag.t, tag.d, tag.s, tag.lm]
        assert values[5] == wide
        seen[tag.t] += 1
    assert reflected > 100
    assert min(seen[0], seen[2]) > 100


@pytest.mark.skipif(shutil.which("tshark") is None, reason="tshark is not installed")
def test_tshark_reads_traces_with_nothing_of_ours(tmp_path: Path) -> None:
    """Its own dissector of IPv6's options finds each hop's words, and RoCEv2 in what is inside."""
    link = "core2-spine1"
    simulate("path-trace", "traffic.bytes=40KB", f"measures.pcap=[spine1-{link[:5]}]", out=tmp_path)
    capture = str(tmp_path / "pcaps" / f"{link}.pcap")
    own = ("ns", "nodelen", "remlen", "type", "flag.o", "node.hlim", "node.id", "node.iif")
    fields = [f"ipv6.opt.ioam.trace.{name}" for name in own]
    more = ("infiniband.bth.opcode", "ipv6.dst", "_ws.expert.message", "_ws.malformed")
    rows = dissected(capture, CONGA_DISSECTOR, [*fields, *more])
    assert len(rows) == 10
    for row in rows:
        assert [int(word, 0) for word in row[:4]] == [0xC105, 6, 6, 0xCE1000]
        assert row[4] in ("0", "False")
        assert row[5] == "62,63,64"  # the newest first
        kinds = [int(word, 0) >> 16 for word in row[6].split(",")]
        assert kinds == [3, 2, 1] and len(row[7].split(",")) == 3  # core, spine, leaf
        assert row[8] and row[9] == "fcbb:bb00:1001::"
        assert not any("nvalid" in word or "ismatch" in word for word in row[10:])


@pytest.mark.skipif(shutil.which("tshark") is None, reason="tshark is not installed")
def test_tshark_and_scapy_read_the_same_of_scale_up_ethernet(tmp_path: Path) -> None:
    """Stores, answers and refusals."""
    simulate(
        "scale-up",
        *("link.cbfc=false", "loss.rate=0.02", "transport.rto_ns=50us", "traffic.tokens=8"),
        "measures.pcap=[h1-leaf1]",
        out=tmp_path,
    )
    names = ("sunh.src", "sunh.dst", "sunh.hlim", "sue.op", "sue.npsn", "sue.vc", "sue.apsn")
    fields = [*names, "sue.commands", "sue.length", "sue.key", "sue.offset"]
    stores, refusals = 0, 0
    both = read_twice(tmp_path, "h1-leaf1", "sue", fields)
    assert len(both) > 200
    for row, frame in both:
        network, rh, pdu = frame[Sunh], frame[SueRh], frame[SuePdu]
        found = [_number(word) for word in row[: len(names) + 1]]
        wanted = [network.src, network.dst, network.hlim, rh.op, rh.npsn, rh.vc, rh.apsn]
        assert found == [*wanted, pdu.count]
        for at, key in enumerate(("length", "key", "offset"), len(names) + 1):
            words = [int(word, 0) for word in row[at].split(",") if word]
            assert words == [getattr(command, key) for command in pdu.commands]
        stores += pdu.count
        refusals += rh.op
    assert stores > 1000
    assert refusals > 0


UET_FIELDS = ("type", "psn", "cack_psn", "ack_sack_bitmap", "nack_code", "nack_psn", "spdcid")


@pytest.mark.skipif(shutil.which("tshark") is None, reason="tshark is not installed")
def test_tshark_and_scapy_read_the_same_of_uet(tmp_path: Path) -> None:
    """Requests, cut ones, answers, NACKs and credits, as an incast has them."""
    simulate(
        "incast",
        *("pfc.enabled=false", "trim.enabled=true", "trim.threshold=50KB"),
        *("transport.kind=uet", "transport.cc=rccc", "traffic.bytes=100KB"),
        "measures.pcap=[h1-leaf1]",
        out=tmp_path,
    )
    more = "uet.ses.std.request_length", "uet.cut"
    fields = [*(f"uet.pds.{field}" for field in UET_FIELDS), *more]
    seen: dict[int, int] = {}
    cut = 0
    both = read_twice(tmp_path, "h1-leaf1", "uet", fields)
    assert len(both) > 200
    for row, frame in both:
        pds = frame[UetPds]
        wanted = [
            *(pds.type, pds.psn, pds.cack_psn, pds.sack_bitmap, pds.nack_code, pds.nack_psn),
            *(pds.spdcid, frame[UetSes].request_length if UetSes in frame else None),
        ]
        is_cut = frame[UDP].len + 20 > frame[IP].len
        if is_cut:
            wanted[-1] = None  # of which nothing is left
        assert [int(word, 0) if word else None for word in row[:-1]] == wanted
        assert row[-1] in (("1", "True") if is_cut else ("0", "False"))
        seen[pds.type] = seen.get(pds.type, 0) + 1
        cut += is_cut
    assert set(seen) == {8, 10, 11, 13}
    assert seen[10] == cut > 10


@pytest.mark.by_day(3)
@pytest.mark.skipif(shutil.which("tshark") is None, reason="tshark is not installed")
@pytest.mark.parametrize(
    ("mode", "headers", "kinds"),
    [
        *(("rod", "standard", {3, 8, 11}), ("rudi", "standard", {4, 5}), ("uud", "standard", {6})),
        *(("rud", "medium", {2, 8}), ("rudi", "small", {4, 5}), ("uud", "medium", {6})),
    ],
)
def test_tshark_and_scapy_read_the_same_of_each_delivery(
    tmp_path: Path, mode: str, headers: str, kinds: set[int]
) -> None:
    simulate(
        "incast",
        f"transport={{kind: uet, delivery: {mode}, headers: {headers}}}",
        f"traffic.bytes={'40KB' if headers == 'standard' else '2KB'}",
        "measures.pcap=[h2-leaf1]",
        out=tmp_path,
    )
    form = "std" if headers == "standard" else "short"
    own = "pds.type", "pds.psn", "pds.rudi_pkt_id", "ses.std.job_id", f"ses.{form}.request_length"
    places = "ses.short.buffer_offset", "ses.std.mem_key_match_bits"
    seen = set[int]()
    fields = [f"uet.{field}" for field in (*own, *places)]
    both = read_twice(tmp_path, "h2-leaf1", "uet", fields)
    for row, frame in both:
        pds, ses = frame[UetPds], frame.getlayer(UetSes) or frame.getlayer(UetSesShort)
        said = ("job_id", "request_length", "memory_key")
        job, length, key = (getattr(ses, field) if ses else None for field in said)
        place = ses.buffer_offset if UetSesShort in frame else None
        wanted = [pds.type, pds.psn, pds.packet_id, job, length, place, key]
        assert [int(word, 0) if word else None for word in row] == wanted
        assert (key is None) == (ses is None or headers == "small")
        seen.add(pds.type)
    assert seen == kinds


MRC_FIELDS = {  # of tshark, and of scapy
    "opcode": (BTH, "opcode"), "dqp": (BTH, "dqpn"), "psn": (BTH, "psn"), "msn": (METH, "msn"),
    "va": (RETH, "va"), "dma_length": (RETH, "dmalen"), "m": (SETH, "m"), "pr": (SETH, "pr"),
    "cack_psn": (SETH, "cack_psn"), "sack_bitmap": (SETH, "sack_bitmap"),
    "rcvd_bytes": (SETH, "rcvd_bytes"), "nack_psn": (NETH, "nack_psn"),
    "nack_reason": (NETH, "reason"), "probe_id": (PETH, "probe_id"),
}  # fmt: skip


@pytest.mark.skipif(shutil.which("tshark") is None, reason="tshark is not installed")
def test_tshark_and_scapy_read_the_same_of_mrc(tmp_path: Path) -> None:
    """Writes, cut ones, SACKs, NACKs and probes of ways, as a lossy incast has them."""
    simulate(
        "incast",
        *("pfc.enabled=false", "trim.enabled=true", "trim.threshold=50KB", "loss.rate=0.02"),
        *("transport={kind: mrc, cc: nscc, timeout: 10}", "traffic.bytes=100KB"),
        "measures.pcap=[h1-leaf1]",
        out=tmp_path,
    )
    fields = [f"mrc.{name}" for name in (*MRC_FIELDS, "cut")]
    seen: Counter[int] = Counter()
    cut = 0
    both = read_twice(tmp_path, "h1-leaf1", "mrc", fields)
    assert len(both) > 200
    for row, frame in both:
        is_cut = frame[UDP].len + 20 > frame[IP].len
        opcode = frame[BTH].opcode
        wanted: list[int | None] = [
            getattr(frame[layer], field) if layer in frame else None
            for layer, field in MRC_FIELDS.values()
        ]
        if is_cut:
            wanted[4:6] = None, None  # of which nothing, or not all, is left
        values = [_number(word) for word in row[:-1]]
        values[6] = values[6] if opcode == 0xDC else None  # NACKs have it too
        values[13] = values[13] if opcode == 0xDE else None  # a probe's answer too
        assert values == wanted
        assert (_number(row[-1]) == 1) == is_cut
        seen[opcode] += 1
        cut += is_cut
    assert {0xC6, 0xC7, 0xC9, 0xDC, 0xDD, 0xDE} <= set(seen)
    assert seen[0xDD] >= cut > 10


def _number(word: str) -> int | None:
    return int(word == "True") if word in ("True", "False") else int(word, 0) if word else None


@pytest.mark.skipif(shutil.which("tshark") is None, reason="tshark is not installed")
def test_tshark_reads_a_switchs_own_notifications(tmp_path: Path) -> None:
    """As any CNP: to the sender, from the switch's loopback, about the receiver's queue pair."""
    simulate(
        "incast",
        *("ecn.enabled=true", "ecn.kmin=20KB", "ecn.kmax=80KB", "ecn.fast_cnp=true"),
        *("transport.cc=dcqcn", "traffic.bytes=500KB", "measures.pcap=[h2-leaf1]"),
        out=tmp_path,
    )
    capture = str(tmp_path / "pcaps" / "leaf1-h2.pcap")
    fields = ["ip.src", "infiniband.bth.opcode", "infiniband.bth.destqp"]
    rows = dissected(capture, CONGA_DISSECTOR, fields)
    sent = 0
    for row, frame in zip(rows, rdpcap(capture), strict=True):
        if IP not in frame:
            continue  # a pause
        assert row[:2] == [frame[IP].src, str(frame[BTH].opcode)]
        if frame[BTH].opcode == 0x81 and frame[IP].src.startswith("10.255."):
            assert int(row[2], 0) == frame[BTH].dqpn
            sent += 1
    assert sent > 0
