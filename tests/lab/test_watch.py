"""Runs that are watched: by a program, in turns. The run is the same, and so are its figures."""

import csv
import json
import random
import threading
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

import closlab
from lab.engines.mininet.running import RunningLab
from lab.results.outcome import Note
from lab.results.watch import Watch as Record
from lab.scenario import catalogue
from lab.scenario.live_actions import ByHand, as_it_was
from topologies import leaf_spine
from views.live.tail import Tail

LITTLE = {"traffic.bytes": "100KB", "traffic.senders": 3}
CUT = [{"at_ns": "8us", "link": "leaf1-spine1", "action": "down", "for_ns": "20us"}]


def files_of(folder: Path) -> dict[str, bytes]:
    """What is kept of a run, provenance and the report's foot aside."""
    found = {path.name: path.read_bytes() for path in folder.iterdir() if path.suffix == ".csv"}
    result = json.loads((folder / "result.json").read_text())
    del result["provenance"]
    return {**found, "result.json": json.dumps(result).encode()}


def watched(folder: Path, *args: Any, **words: Any) -> tuple[list[closlab.Snapshot], closlab.Run]:
    watch = closlab.watch(*args, **words, out=folder)
    snapshots = list(watch)
    assert watch.run is not None
    return snapshots, watch.run


@pytest.mark.parametrize(
    ("name", "changes"),
    [
        ("incast", LITTLE),
        ("link-failure", {"faults": CUT, "reroute_ns": "5us", "traffic.bytes": "60KB"}),
        ("lossy-link", {"int.share": 0.5, "traffic.bytes": "60KB"}),
        pytest.param("incast", {"measures.series": False}, marks=pytest.mark.slow),
        pytest.param("pfc-storm", {}, marks=pytest.mark.slow),
        pytest.param("deadlock", {}, marks=pytest.mark.slow),
        pytest.param("training-gpt3", {}, marks=pytest.mark.slow),
    ],
)
def test_a_run_is_the_same_watched_or_not(
    name: str, changes: dict[str, object], tmp_path: Path
) -> None:
    alone = closlab.run(name, set=changes, out=tmp_path / "alone")
    every_ns = random.Random(name).randrange(700, 9_000)
    snapshots, run = watched(tmp_path / "watched", name, set=changes, every=every_ns)
    assert files_of(run.folder) == files_of(alone.folder), f"every {every_ns} ns"
    assert [g.is_last for g in snapshots] == [False] * (len(snapshots) - 1) + [True]
    assert all(after.time_ns > before.time_ns for before, after in pairwise(snapshots))
    busy = [b.time_ns - a.time_ns for a, b in pairwise(snapshots) if a.messages.under_way]
    assert sorted(busy)[len(busy) // 2] == every_ns
    assert not [t for t in threading.enumerate() if t.name == "closlab-watched"]


def test_snapshots_are_what_the_run_itself_notes(tmp_path: Path) -> None:
    """A direction in use is noted every microsecond: the same, read by other code."""
    changes = {**LITTLE, "traffic.bytes": "400KB"}
    snapshots, run = watched(tmp_path, "incast", set=changes, every="2us")
    with (run.folder / "timeseries.csv").open() as file:
        noted = {(int(row["time_ns"]), row["link"]): row for row in csv.DictReader(file)}
    compared = 0
    for before, snapshot in pairwise(snapshots):
        for name, way in snapshot.links.items():
            row = noted.get((snapshot.time_ns, name))
            if row is None:
                assert way.queue_bytes == 0 or snapshot.is_last
                continue
            compared += 1
            assert way.queue_bytes == int(row["queue_bytes"])
            assert way.bytes == int(row["bytes"])
            assert way.paused_ns == int(row["paused_ns"])
            took_ns = snapshot.time_ns - before.time_ns
            carried = way.bytes - before.links[name].bytes
            assert way.utilisation == pytest.approx(carried * 8 / took_ns / 100)  # 100 Gb/s
    assert compared > 100
    done = [snapshot.messages.done for snapshot in snapshots]
    assert done == sorted(done, key=lambda n: n or 0) and done[-1] == 3
    for snapshot in snapshots:
        ended = [
            f for f in closlab.records(run.flows) if f["start_ns"] + f["fct_ns"] <= snapshot.time_ns
        ]
        assert snapshot.messages.done == len(ended)


def test_a_kept_run_is_seen_as_it_was_seen_when_it_lasted(tmp_path: Path) -> None:
    live, run = watched(tmp_path, "incast", set=LITTLE, every="1us")
    again = {snapshot.time_ns: snapshot for snapshot in closlab.watch(closlab.read(run.folder))}
    both = [(snapshot, again[snapshot.time_ns]) for snapshot in live if snapshot.time_ns in again]
    assert len(both) > 20
    for one, other in both:
        for name, way in one.links.items():
            assert way[:2] == other.links[name][:2], (one.time_ns, name)
        assert one.messages == other.messages
    events = [event.what for snapshot in again.values() for event in snapshot.events]
    assert events and events == [event.what for snapshot in live for event in snapshot.events]


def test_what_is_done_by_hand_is_kept_and_can_be_repeated(tmp_path: Path) -> None:
    changes = {"traffic.bytes": "200KB", "reroute_ns": "10us"}
    hands = {20_000: "fail leaf4-spine1", 60_000: "mend leaf4-spine1"}
    with closlab.watch("incast", set=changes, every="10us", out=tmp_path / "hand") as watch:
        seen = []
        for snapshot in watch:
            seen.append((snapshot.time_ns, snapshot.dead))
            if snapshot.time_ns in hands:
                watch.do(hands[snapshot.time_ns])
    assert watch.run is not None
    assert {at for at, dead in seen if dead} == {30_000, 40_000, 50_000, 60_000}
    result = watch.run.result
    assert result.by_hand is not None
    assert [(hand.at_ns, hand.what) for hand in result.by_hand] == sorted(hands.items())
    assert "fail leaf4-spine1 at 20 µs" in watch.run.cautions[-1]
    again = closlab.run(result.scenario, out=tmp_path / "again")
    first, second = files_of(tmp_path / "hand"), files_of(tmp_path / "again")
    result = json.loads(first.pop("result.json"))
    assert result.pop("by_hand")
    assert result == json.loads(second.pop("result.json"))
    assert first == second
    assert again.result.by_hand is None


def test_the_load_balancer_changes_when_it_is_told_to(tmp_path: Path) -> None:
    def uplinks_used(hand: str | None) -> int:
        flow = {"src": "h8", "dst": "h1", "bytes": "400KB"}
        traffic = {"kind": "flows", "flows": [flow]}
        changes = {"topology.spines": 4, "lb.policy": "ecmp", "traffic": traffic}
        watch = closlab.watch("incast", set=changes, every="5us")
        with watch:
            snapshots = []
            for snapshot in watch:
                snapshots.append(snapshot)
                if len(snapshots) == 2 and hand:
                    watch.do(hand)
        return sum(
            way.bytes > 10_000 for name, way in snapshots[-1].links.items() if ">spine" in name
        )

    assert uplinks_used(None) <= 1
    assert uplinks_used("lb spray") >= 3


def test_who_has_seen_enough_ends_the_run(tmp_path: Path) -> None:
    with closlab.watch(
        "incast", set={"traffic.bytes": "50MB"}, every="10us", out=tmp_path
    ) as watch:
        assert next(watch).time_ns == 10_000
    assert json.loads((tmp_path / "result.json").read_text())["ended"] == "interrupted"
    assert not [t for t in threading.enumerate() if t.name == "closlab-watched"]
    with pytest.raises(StopIteration):
        next(watch)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("fail leaf1-spine9", "no cable between switches 'leaf1-spine9'"),
        ("fail h1-leaf1", "no cable between switches 'h1-leaf1'"),
        ("lb random", "no policy 'random'"),
        ("exit", "nobody here knows the word 'exit'"),
        ("", "nobody here knows the word ''"),
    ],
)
def test_what_cannot_be_done_is_said(words: str, said: str) -> None:
    with closlab.watch("incast", set=LITTLE) as watch, pytest.raises(closlab.LabError, match=said):
        watch.do(words)


def test_a_time_is_a_time() -> None:
    with pytest.raises(closlab.LabError, match="'often' is no time"):
        closlab.watch("incast", every="often")
    with pytest.raises(closlab.LabError, match="'0' is no time"):
        closlab.watch("incast", every=0)


@pytest.mark.slow
@pytest.mark.mininet
def test_a_run_on_mininet_is_watched_and_interfered_with(own_cache: Path, tmp_path: Path) -> None:
    changes = {"traffic.bytes": "1MB", "transport.rto_ns": "500us"}
    seen: list[closlab.Snapshot] = []
    with closlab.watch("incast", engine="mininet", set=changes, out=tmp_path) as watch:
        with pytest.raises(closlab.RunError, match="not up yet"):
            watch.do("fail leaf4-spine1")
        for snapshot in watch:
            seen.append(snapshot)
            if snapshot.messages.under_way and not snapshot.dead:
                watch.do("fail leaf4-spine1")
        with pytest.raises(closlab.LabError, match="leaf9"):
            watch.do("fail leaf9-spine1")
    assert [snapshot.is_last for snapshot in seen] == [False] * (len(seen) - 1) + [True]
    assert all(after.time_ns > before.time_ns for before, after in pairwise(seen))
    done = [snapshot.messages.done or 0 for snapshot in seen]
    assert done == sorted(done) and (done[0], done[-1]) == (0, 7)
    assert {snapshot.messages.count for snapshot in seen} == {7}
    assert max(way.queue_bytes for snapshot in seen for way in snapshot.links.values()) > 10_000
    assert any("leaf4-spine1" in snapshot.dead for snapshot in seen)
    assert watch.run is not None and watch.run.result.engine == "mininet"
    assert {hand.what for hand in watch.run.result.by_hand or ()} == {"fail leaf4-spine1"}
    assert watch.run.result.flows.completed == 7
    begun = {m.src: m.since_ns for snapshot in seen for m in snapshot.messages.under_way}
    assert set(begun) == {f"h{n}" for n in range(2, 9)}
    assert all(at_ns >= seen[0].time_ns for at_ns in begun.values())
    assert not list(own_cache.glob("*"))


@pytest.mark.parametrize("seed", range(20))
def test_snapshots_at_a_lab_are_as_far_apart_as_they_say(
    seed: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whenever somebody looks, before the hosts begin or later; the first one comes at once."""
    drawn = random.Random(seed)
    dilation, since_ns = drawn.choice([1.0, 4070.0, 251253.0]), drawn.randrange(1, 10**14)
    every_ns = drawn.choice([0, drawn.randrange(1, 10**4), drawn.randrange(1, 10**9)])
    step_ns = max(1, round(every_ns * dilation * drawn.choice([0.1, 1, 3])))
    looks = [max(1, since_ns - step_ns * drawn.randrange(4))]
    for _ in range(50):
        looks.append(looks[-1] + drawn.randrange(1, 2 * step_ns))
    (tmp_path / "record").touch()
    watch = {
        "scenario": catalogue.load("hello").model_dump(mode="json"),
        "record": str(tmp_path / "record"),
        "since_ns": since_ns,
        "dilation": dilation,
    }
    tail = Tail(RunningLab("x", 1, {}, {}, {}, watch), every_ns)
    note = Note(0, next(iter(tail.hub.scene.rates)), 0, 0, 0, 0, 0)
    monkeypatch.setattr(Record, "latest", lambda _self: [note])
    seen = []
    for at_ns in looks:
        monkeypatch.setattr(Record, "at_ns", at_ns)
        if (snapshot := tail._look()) is not None:
            seen.append(snapshot.time_ns)
    due: list[int] = []
    for time_ns in (max(0, round((at_ns - since_ns) / dilation)) for at_ns in looks):
        if not due or time_ns >= due[-1] + every_ns:
            due.append(time_ns)
    assert seen == due


def test_of_a_long_day_at_a_prompt_some_rounds_are_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """So that `exit` does not read for minutes: what is kept is true, the last of it whole."""
    monkeypatch.setattr("lab.results.watch._MAX_SKIMMED", 30)
    fabric, path = leaf_spine(2, 1, 1), tmp_path / "switches.jsonl"
    nothing = {"now_ns": 0, "lost": {}, "missed": {}, "late": {}}
    lines = [
        {"at_ns": at, "switch": switch.name, "ports": {"1": [0, 0, at, at, 0]}, **nothing}
        | {"counters": {"sent": {"1": [at, at]}, "dropped": {}}, "registers": {}}
        for at in range(1, 500)
        for switch in fabric.switches
    ]
    path.write_text("".join(f"{json.dumps(line)}\n" for line in lines))
    whole, some = Record(fabric, path), Record(fabric, path)
    some.skim()
    assert some.counts() == whole.counts()
    assert some.counts()[fabric.node("leaf1")].port(1).sent.packets == 499
    notes = some.notes(0, 1.0)
    assert {*notes} < {*whole.notes(0, 1.0)}
    assert 20 < len(notes) <= 2 * (30 + 2 * len(fabric.switches))  # of a link to a host two


@pytest.mark.slow
@pytest.mark.mininet
def test_who_has_seen_enough_of_a_lab_ends_it(own_cache: Path, tmp_path: Path) -> None:
    changes = {"traffic.bytes": "5MB"}
    with closlab.watch("incast", engine="mininet", set=changes, every="1us") as watch:
        first, second = next(watch), next(watch)
    assert second.time_ns >= first.time_ns + 1000 and not second.is_last
    assert not list(own_cache.glob("*"))
    assert not [t for t in threading.enumerate() if t.name == "closlab-watched"]
    assert next(watch, None) is None
    (tmp_path / "fabric.p4").write_text("nothing")
    with pytest.raises(closlab.LabError, match=r"fabric\.p4"):
        next(closlab.watch("incast", engine="mininet", p4=tmp_path))


def test_what_hands_did_before_a_run_holds_from_its_beginning() -> None:
    """And what they took back before does not; a choice that came later has no place."""
    scenario = catalogue.load("hello", ())
    done = [
        ByHand(0, "fail leaf1-spine1"), ByHand(0, "fail leaf2-spine1"), ByHand(0, "lb spray"),
        ByHand(0, "mend leaf1-spine1"), ByHand(0, "lb conga"), ByHand(0, "controller restart"),
        ByHand(7, "drain leaf3-spine2"), ByHand(9, "lb ecmp"),
    ]  # fmt: skip
    found = as_it_was(scenario, scenario.fabric(), done)
    assert found.lb.policy.value == "conga"
    faults = [(fault.at_ns, fault.action, fault.link) for fault in found.faults]
    assert faults == [(0, "down", "leaf2-spine1"), (7, "drain", "leaf3-spine2")]
