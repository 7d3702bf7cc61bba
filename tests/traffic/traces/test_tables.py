"""Flows in tables and htsim's matrices: what is read is what was written, and when it begins."""

from __future__ import annotations

from pathlib import Path
from random import Random
from typing import Any

import pytest

from tests.traffic.traces.programs import ALPHA_NS, fabric
from traffic.collectives import Site
from traffic.jobs import make_workload, read_traffic
from traffic.traces import TraceError, htsim, kind_of, table

SLACK_NS = 45


@pytest.mark.parametrize("seed", range(15))
def test_flows_of_a_table(seed: int, tmp_path: Path) -> None:
    chance = Random(seed)
    hosts = chance.randint(2, 40)
    flows = []
    for _ in range(chance.randint(1, 60)):
        src, dst = chance.sample(range(hosts), 2)
        flows.append((chance.randrange(10**6), src, dst, chance.randint(1, 10**6)))
    columns = chance.sample(["start_ns", "src", "dst", "bytes", "note"], 5)
    path = tmp_path / "flows.csv"
    lines = [",".join(columns)]
    for start, src, dst, size in flows:
        by_name = {"start_ns": str(start), "src": f"h{src + 1}", "dst": str(dst),
                   "bytes": str(size), "note": '"a, b"'}  # fmt: skip
        lines.append(",".join(by_name[name] for name in columns))
    path.write_text("\n".join(lines))
    assert kind_of(path) == "table"
    read = table.read(path, hosts).schedule()
    found = zip(read.delay_ns, read.src, read.dst, read.size, strict=True)
    assert list(found) == flows
    assert len(set(zip(read.src, read.dst, read.channel, strict=True))) == len(flows)


@pytest.mark.parametrize("seed", range(25))
def test_triggers_fire_when_what_they_wait_for_has_been_seen(seed: int, tmp_path: Path) -> None:
    """Waves one after the other: who knows begins at once, who has to be told is in two steps."""
    chance = Random(seed)
    hosts = chance.randint(3, 12)
    lines: list[list[Any]] = []
    triggers, number, waves = [], 0, chance.randint(1, 4)
    due = 0
    wave: list[tuple[int, int, int]] = []
    for at in range(waves):
        size = chance.randint(1, 5)
        flows = []
        for _ in range(size):
            src, dst = chance.sample(range(hosts), 2)
            number += 1
            start = f"trigger {at}" if at else f"start {chance.randint(0, 3) * 1_000_000}"
            flows.append((src, dst, number))
            lines.append([f"{src}->{dst} id {number} {start} size 64", at])
        if at:
            seen = {src if sends else dst for src, dst, _, sends in wave}
            who = {src for src, _, _ in flows}
            if seen != who or len(who) > 1:
                middle = min(who)
                due += ALPHA_NS * bool(seen - {middle}) + ALPHA_NS * bool(who - {middle})
        begins = max(int(line.split("start ")[1].split()[0]) // 1000
                     for line, of in lines if of == 0) if not at else 0  # fmt: skip
        due += begins + ALPHA_NS
        if at + 1 < waves:
            wave = []
            for src, dst, flow in flows:
                sends = chance.random() < 0.5
                wave.append((src, dst, flow, sends))
                which = "send" if sends else "recv"
                place = next(i for i, (line, _) in enumerate(lines) if f" id {flow} " in line)
                lines[place][0] += f" {which}_done_trigger {at + 1}"
            triggers.append(f"trigger id {at + 1} barrier count {size}")
    text = [f"Nodes {hosts}", f"Connections {number}"]
    text += [f"Triggers {len(triggers)}"] if triggers else []
    path = tmp_path / "x.cm"
    path.write_text("\n".join([*text, *(line for line, _ in lines), *triggers]) + "\n")
    assert kind_of(path) == "htsim"
    schedule = htsim.read(path).schedule()
    big = [at for at in range(len(schedule)) if schedule.size[at] == 64]
    assert len(big) == number
    # What arrives before the barrier's last makes nothing earlier: due is the longest way.
    assert fabric.run(schedule).finish_ns <= due + SLACK_NS
    assert fabric.run(schedule).finish_ns >= waves * ALPHA_NS


def test_a_trigger_of_ones_own_costs_nothing(tmp_path: Path) -> None:
    path = tmp_path / "x.cm"
    path.write_text(
        "Nodes 3\nConnections 2\nTriggers 1\n0->1 id 1 start 2000000 size 9 recv_done_trigger 4\n"
        "1->2 id 2 trigger 4 size 9\ntrigger id 4 oneshot\n"
    )
    schedule = htsim.read(path).schedule()
    assert list(schedule.size) == [9, 9]
    assert fabric.run(schedule).finish_ns == pytest.approx(2000 + 2 * ALPHA_NS, abs=2)


def test_a_barrier_waits_for_all_and_oneshot_for_the_first(tmp_path: Path) -> None:
    for kind, due in (("oneshot", 1000), ("barrier count 2", 9000)):
        path = tmp_path / "x.cm"
        path.write_text(
            "Nodes 3\nConnections 3\nTriggers 1\n"
            "0->1 id 1 start 0 size 9 send_done_trigger 4\n"
            "0->1 id 2 start 8000000 size 9 send_done_trigger 4\n"
            f"0->2 id 3 trigger 4 size 9\ntrigger id 4 {kind}\n"
        )
        schedule = htsim.read(path).schedule()
        timeline = fabric.run(schedule)
        third = next(at for at in range(3) if schedule.dst[at] == 2)
        assert timeline.start_ns[third] == pytest.approx(due, abs=2)


WRONG = {
    "Nodes 2\nConnections 2\n0->1 start 0 size 5\n": "says Connections 2, and has 1",
    "Nodes 2\nConnections 1\n0->2 start 0 size 5\n": r":3: there is no node 2; they are 0 to 1",
    "Nodes 2\nConnections 1\n0->1 start 0\n": ":3: a flow of 0 bytes",
    "Nodes 2\nConnections 1\n0->1 size 5\n": ":3: a flow has a start or a trigger",
    "Nodes 2\nConnections 1\n0->1 start 0 size 5 speed 9\n": ":3: 'speed' is not understood",
    "Nodes 2\nConnections 1\n0->1 id 1 trigger 3 size 5\n": ":3: there is no trigger 3",
    "Nodes 2\nConnections 1\nTriggers 1\n0->1 id 1 trigger 3 size 5\ntrigger id 3 oneshot\n": (
        "trigger 3 needs 1 flow"
    ),
    "Connections 1\n0->1 start 0 size 5\n": "it does not say 'Nodes N'",
    "Nodes 2\nConnections 1\n0->1 start 0 size 5\nfailure switch_type TOR\n": "the fabric's",
}


@pytest.mark.parametrize("text", WRONG)
def test_what_is_wrong_in_a_matrix_is_named(text: str, tmp_path: Path) -> None:
    path = tmp_path / "x.cm"
    path.write_text(text)
    with pytest.raises(TraceError, match=WRONG[text]):
        make_workload(read_traffic({"kind": "htsim", "file": str(path)}), Site(8))


@pytest.mark.parametrize(
    ("text", "wrong"),
    [
        ("src,dst,bytes\n", ":1: no column start_ns; the first line names the columns"),
        ("start_ns,src,dst,bytes\n0,h1,h2\n", ":2: 3 values, and 4 columns"),
        ("start_ns,src,dst,bytes\n0,h1,h2,5\n\n0,h9,h2,5\n", ":4: there is no h9; they are h1"),
        ("start_ns,src,dst,bytes\n0,h1,h2,-5\n", ":2: bytes: '-5' is no whole number from 1"),
        ("start_ns,src,dst,bytes\n0,h1,h1,5\n", ":2: rank 0 sends to itself"),
        ("start_ns,src,dst,bytes\n", "names no flow"),
    ],
)
def test_what_is_wrong_in_a_table_is_named(text: str, wrong: str, tmp_path: Path) -> None:
    path = tmp_path / "x.csv"
    path.write_text(text)
    with pytest.raises(TraceError, match=wrong):
        table.read(path, 4)
