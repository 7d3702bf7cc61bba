"""Whether a run says so when what it ran on was late: hosts, and switches as well."""

import json
import os
import random
import signal
import subprocess
import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from controller.tables import queue_index
from lab.engines.mininet.endpoints import _Course
from lab.engines.mininet.engine import usual_dilation
from lab.engines.mininet.switches.soft import SoftSwitches
from lab.results.watch import Watch, but_for
from lab.scenario import catalogue
from lab.scenario.experiment import Experiment
from tests.lab.conftest import has_traffic, started
from tests.waiting import LONG_S
from topologies import leaf_spine

# What stands still may lose frames: who sends them again does not wait as long as NCCL does.
CHANGES = (
    "topology={kind: leaf-spine, leaves: 2, spines: 1, hosts_per_leaf: 2}",
    *("traffic={kind: incast, senders: 3, bytes: 200KB}", "transport.timeout=10"),
)


@pytest.mark.parametrize("seed", range(20))
def test_it_is_the_time_that_few_were_later_than(tmp_path: Path, seed: int) -> None:
    draw = random.Random(seed)
    fabric = leaf_spine(2, 1, 1)
    watch = Watch(fabric, tmp_path / "record.jsonl")
    epoch_ns, share = draw.randrange(10), draw.choice((0.01, 0.1, 0.5))
    lines, counted = [], []
    for at_ns in range(20):
        late = {draw.randrange(2000): draw.randrange(1, 40) for _ in range(draw.randrange(6))}
        if at_ns > epoch_ns:
            counted += [late_ns for late_ns, often in late.items() for _ in range(often)]
        line = {"at_ns": at_ns, "now_ns": 0, "switch": "leaf1", "ports": {}, "counters": {}}
        lines.append(json.dumps({**line, "registers": {}, "lost": {}, "missed": {}, "late": late}))
    watch.path.write_text("\n".join(lines) + "\n")
    found = but_for(share, watch.late(epoch_ns))
    assert sum(late_ns > found for late_ns in counted) <= share * len(counted)
    assert sum(late_ns >= found for late_ns in counted) > share * len(counted)


@pytest.mark.parametrize("seed", range(10))
def test_a_record_begun_anew_is_read_whole_and_forgotten_but_for_queues(
    tmp_path: Path, seed: int
) -> None:
    """Whoever reads it, and whenever; what is forgotten is all but the last two rounds."""
    draw = random.Random(seed)
    fabric, path = leaf_spine(2, 1, 1), tmp_path / "record.jsonl"
    watch = Watch(fabric, path)
    longest, is_unread = 0, False
    kept: list[Any] = []
    for number in range(1, 300):
        roll = draw.random()
        if roll < 0.1 and not is_unread and path.exists():
            path.replace(tmp_path / "record.jsonl.before")
            path.touch()
            is_unread = True  # once between two looks is all that is kept
        elif roll < 0.3:
            assert sorted(watch.late(0).elements()) == kept
            assert watch.longest_queues().get("leaf1>h1", 0) == longest
            is_unread = False
        elif roll < 0.4:
            watch.forget()
            kept, is_unread = kept[-2 * len(fabric.switches) :], False
        else:
            queued = draw.randrange(1000)
            line = {"at_ns": number, "now_ns": 0, "switch": "leaf1", "counters": {"dropped": {}}}
            line |= {
                "ports": {"1": [0, 0, 0, 0, queued]},
                "registers": {},
                "lost": {},
                "missed": {},
            }
            with path.open("a") as file:
                file.write(json.dumps({**line, "late": {number: 1}}) + "\n")
            kept.append(number)
            longest = max(longest, queued)


@pytest.mark.parametrize("seed", range(20))
def test_a_pause_that_comes_while_cells_are_read_is_no_time_before_it(
    tmp_path: Path, seed: int
) -> None:
    """Registers may be newer than the time they are read at; a drawn course of pauses knows how
    long its queue stood still at any time."""
    draw = random.Random(seed)
    fabric = leaf_spine(1, 1, 1)
    stood, gate, total = [0], 0, 0  # by nanosecond: how long until then; what the registers hold
    cells: list[tuple[int, int]] = []
    for now in range(3000):
        if draw.random() < 0.01:
            until = now + draw.choice((0, draw.randrange(1, 200)))
            total += max(0, until - now) - max(0, gate - now)
            gate = until
        cells.append((total, gate))
        stood.append(stood[-1] + (gate > now))
    watch = Watch(fabric, tmp_path / "record.jsonl")
    port = next(p for p, at in fabric.ports(fabric.node("leaf1")).items() if str(at) == "h1")
    cell = queue_index(port, 3)
    looks = []
    with watch.path.open("w") as file:
        for now in range(1, 2900, 50):
            read = now + draw.choice((0, draw.randrange(50)))
            looks.append((now, read))
            held = dict(zip(("pause_total", "queue_gate"), cells[read], strict=True))
            line = {"at_ns": now, "now_ns": now, "switch": "leaf1", "lost": {}, "missed": {}}
            line |= {"counters": {"dropped": {}}, "late": {}}
            line["registers"] = {name: {cell: value} for name, value in held.items() if value}
            line["ports"] = {port: [0, 0, 0, now, 1]}
            file.write(json.dumps(line) + "\n")
    paused = [note.paused_ns for note in watch.notes(0, 1) if note.link == "leaf1>h1"]
    assert paused == sorted(paused) and len(paused) == len(looks)
    for (now, read), paused_ns in zip(looks, paused, strict=True):
        assert 0 <= paused_ns <= stood[read], (now, read)
        if now == read:
            assert paused_ns == stood[now]


class Frames:
    """What stands for a fabric in which frames are lost: at a switch's port, and at a host's."""

    def __init__(self, folder: Path, *changes: str) -> None:
        self.experiment = Experiment.of(catalogue.load("incast", (*CHANGES, *changes)))
        self.fabric = self.experiment.fabric
        self.watch = Watch(self.fabric, folder / "record.jsonl")
        self.switches = self  # as an emulation has them
        self.hosts = {host: SimpleNamespace(lost={}) for host in self.fabric.hosts}
        self.said: list[str] = []

    def note(self, missed: dict[int, int]) -> None:
        line = {"at_ns": 1, "now_ns": 0, "switch": "leaf1", "counters": {}, "registers": {}}
        line |= {"ports": {}, "lost": {}, "missed": missed, "late": {}}
        with self.watch.path.open("a") as file:
            file.write(json.dumps(line) + "\n")

    def course(self, *, hurries: bool) -> _Course:
        given = (self.experiment, self, self.hosts, 1000, None, None)
        return _Course(*given, hurries=hurries, warn=self.said.append)


@pytest.mark.parametrize("hurries", [True, False])
@pytest.mark.parametrize("where", ["switch", "host"])
def test_who_hurries_goes_on_until_frames_are_lost_and_others_are_told_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, where: str, hurries: bool
) -> None:
    monkeypatch.setattr("lab.engines.mininet.endpoints._DOUBT_S", 0)
    frames = Frames(tmp_path)
    frames.note({1: 2})  # in an earlier run of this fabric
    course = frames.course(hurries=hurries)
    course._missed_before = frames.watch.missed()
    assert course._doubt() is None
    if where == "switch":
        frames.note({1: 5})
    else:
        frames.hosts[frames.fabric.node("h1")].lost = {0: 3}
    way = {"switch": "h1>leaf1", "host": "leaf1>h1"}[where]
    doubt = f"3 frames were lost between processes ({way})"
    assert course._doubt() == (doubt if hurries else None)
    assert course.lost == {way: 3}
    assert course._doubt() is None
    assert len(frames.said) == (not hurries) and (hurries or doubt in frames.said[0])


def test_where_nothing_moves_it_is_told_once_what_may_be_waited_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("lab.engines.mininet.endpoints._DOUBT_S", 0)
    frames = Frames(tmp_path)
    course = frames.course(hurries=False)
    course._slowness = 1
    for at_s, came in ((1, 0), (11, 0), (12, 5), (12, 5), (22, 5)):
        gist = at_s * 1_000_000_000, SimpleNamespace(into_hosts=came)
        monkeypatch.setattr(frames.watch, "gist", lambda gist=gist: gist)
        course._silence()
        assert frames.said == []
    for at_s in (23, 24):
        gist = at_s * 1_000_000_000, SimpleNamespace(into_hosts=5)
        monkeypatch.setattr(frames.watch, "gist", lambda gist=gist: gist)
        course._silence()
    (said,) = frames.said
    assert "for 11 s: hosts compute, or wait" in said
    assert "time-out, 4.19 ms of the fabric's time and 4.19 s here" in said


def test_where_datagrams_alone_were_sent_silence_is_the_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two seconds of it; and what hosts may compute meanwhile, and what is to happen yet."""
    monkeypatch.setattr("lab.engines.mininet.endpoints._DOUBT_S", 0)
    frames = Frames(tmp_path, "transport={kind: uet, delivery: uud}")
    course = frames.course(hurries=False)
    course._slowness = 1
    ends = []
    for at_s, came in ((1, 0), (2, 5), (3, 5), (5, 5)):
        gist = at_s * 1_000_000_000, SimpleNamespace(into_hosts=came)
        monkeypatch.setattr(frames.watch, "gist", lambda gist=gist: gist)
        ends.append(course._silence())
    assert ends[:3] == [None, None, None] and "will never come" in (ends[3] or "")
    assert frames.said == []


@pytest.mark.slow
@pytest.mark.mininet
def test_switches_that_seldom_get_their_turn_falsify_a_run(tmp_path: Path) -> None:
    """The process that hosts them stands still most of the time; the hosts do not."""
    running = _run(tmp_path, "--dilation", "1000")
    try:
        switches = _switches_of(running)
        while running.poll() is None:
            for what, lasts_s in ((signal.SIGSTOP, 0.06), (signal.SIGCONT, 0.02)):
                os.kill(switches, what)
                time.sleep(lasts_s)
    except ProcessLookupError:
        pass  # the run is over
    finally:
        said = running.communicate(timeout=LONG_S)[1]
    result = json.loads((tmp_path / "result.json").read_text())
    assert running.returncode == 3, said
    assert not result["fidelity"]["ok"] and "switches were" in result["fidelity"]["note"]
    assert result["fidelity"]["late_p99_ns"] > 2000  # ns of the fabric's


@pytest.mark.slow
@pytest.mark.mininet
def test_a_run_that_hurried_and_is_not_believed_ends_there_and_is_done_again(
    tmp_path: Path,
) -> None:
    """Its switches stand still until they have no room; the next run's do not.

    Who sent last what was lost waits for so long that the run would not end, as time passes here.
    """
    changes = (
        "topology={kind: leaf-spine, leaves: 2, spines: 1, hosts_per_leaf: 3}",
        *("traffic={kind: incast, senders: 5, bytes: 2MB}", "int.share=0.5"),
        "transport.timeout=20",
    )
    words = [word for change in changes for word in ("--set", change)]
    running = _run(tmp_path, *words, "--pcap")  # whose cables are laid twice
    switches = _switches_of(running)
    while not has_traffic(tmp_path / "logs" / "switches.jsonl"):
        assert running.poll() is None
        time.sleep(0.01)
    os.kill(switches, signal.SIGSTOP)
    time.sleep(1)
    os.kill(switches, signal.SIGCONT)
    try:
        said = running.communicate(timeout=LONG_S)[1]
    finally:
        running.kill()
    result = json.loads((tmp_path / "result.json").read_text())
    experiment = Experiment.of(catalogue.load("incast", (*CHANGES, *changes)))
    usual = usual_dilation(experiment, SoftSwitches)
    if result["dilation"] > usual:
        pytest.skip("on a machine that is slow nothing hurries")
    assert "frames were lost between processes" in said and "Once more, in slower motion" in said
    assert result["dilation"] == usual
    assert running.returncode in (0, 3), said  # the machine itself may be busy
    if running.returncode == 0:
        assert result["fidelity"]["note"].startswith("made again in slower motion, for in a hurry")


def _run(out: Path, *words: str) -> "subprocess.Popen[str]":
    changes = [word for change in CHANGES for word in ("--set", change)]
    command = ["run", "incast", "--engine", "mininet", *changes, *words, "--out", str(out)]
    return started(*command, stderr=subprocess.PIPE, text=True)


def _switches_of(running: "subprocess.Popen[str]") -> int:
    """The process that hosts a run's switches, once hosts begin."""
    assert running.stderr is not None
    for line in running.stderr:
        if "Starting endpoints" in line:
            break
    left = [running.pid]
    while left:
        pid = left.pop()
        if b"switch.host" in Path(f"/proc/{pid}/cmdline").read_bytes():
            return pid
        left += map(int, Path(f"/proc/{pid}/task/{pid}/children").read_text().split())
    raise AssertionError("no process hosts switches")
