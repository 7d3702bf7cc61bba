"""Telemetry in a run: what reports sum up to, and that carrying it disturbs nothing."""

import csv
import itertools
import json
from pathlib import Path

import pytest

from lab.errors import ScenarioError
from lab.results.result import Result
from lab.scenario.catalogue import load
from tests.lab.conftest import closlab
from tests.lab.simulated import simulate


def incast(out: Path, *changes: str) -> Result:
    return simulate("incast", "traffic.bytes=500KB", *changes, out=out).result


def test_reports_tell_of_every_switch_and_of_queues_that_stood(tmp_path: Path) -> None:
    telemetry = incast(tmp_path, "int.share=1").telemetry
    assert telemetry is not None and telemetry.hop_latency_ns and telemetry.queue_bytes
    assert set(telemetry.by_switch) == {f"leaf{n}" for n in range(1, 5)} | {"spine1", "spine2"}
    leaf1 = telemetry.by_switch["leaf1"]
    assert leaf1.latency_ns is not None and leaf1.queue_bytes is not None
    # h1 pauses nobody, so what stands in the queue towards it leaves at 12.5 bytes a nanosecond.
    assert leaf1.latency_ns.max == pytest.approx(leaf1.queue_bytes.max / 12.5, rel=0.05)
    assert leaf1.queue_bytes.max > 100_000


def test_telemetry_loses_no_pause_and_no_resumption(tmp_path: Path) -> None:
    """A packet makes one copy of itself: where both are due, the pause frame goes first.

    A resumption that is forgotten shows at once: its sender stands still until the pause runs out,
    335 us, which is as long as the whole incast takes.
    """
    without = incast(tmp_path / "0")
    carrying = incast(tmp_path / "1", "int.share=1")
    assert without.telemetry is None
    assert carrying.drops.total == 0
    assert carrying.flows.fct_ns is not None and without.flows.fct_ns is not None
    assert carrying.flows.fct_ns.max < 1.05 * without.flows.fct_ns.max
    assert carrying.pfc.xon_frames == pytest.approx(without.pfc.xon_frames, rel=0.25)


def test_the_same_seed_gives_the_same_reports(tmp_path: Path) -> None:
    first, again = (incast(tmp_path / name, "int.share=0.2").telemetry for name in "ab")
    assert first is not None and first.reports > 0
    assert first == again


def test_hpcc_keeps_queues_short_by_telemetry(tmp_path: Path) -> None:
    blind = incast(tmp_path / "0", "traffic.bytes=2MB")
    seeing = incast(tmp_path / "1", "traffic.bytes=2MB", "transport.cc=hpcc")
    assert seeing.flows.completed == 7 and seeing.drops.total == 0
    assert seeing.pfc.paused_ns < 0.1 * blind.pfc.paused_ns


def test_hpcc_and_reports_exclude_each_other() -> None:
    with pytest.raises(ScenarioError, match=r"int\.share.*HPCC"):
        load("incast", ("transport.cc=hpcc", "int.share=0.5"))


@pytest.mark.slow
@pytest.mark.mininet
def test_an_emulated_run_collects_reports_too(tmp_path: Path) -> None:
    words = ("run", "incast", "--set", "traffic.bytes=200KB", "--set", "int.share=0.5")
    done = closlab(*words, "--out", str(tmp_path))
    assert done.returncode in (0, 3), done.stderr  # whether it was on time is no matter here
    telemetry = json.loads((tmp_path / "result.json").read_text())["telemetry"]
    packets = 7 * -(-200_000 // 4096)
    assert 0.3 * packets < telemetry["reports"] < packets  # acknowledgements carry it as well
    assert set(telemetry["by_switch"]) >= {"leaf1", "leaf2", "leaf3", "leaf4"}
    assert telemetry["by_switch"]["leaf1"]["queue_bytes"]["max"] > 50_000


def test_reports_are_kept_where_they_are_asked_for(tmp_path: Path) -> None:
    words = ("run", "incast", "--engine", "sim", "--set", "traffic.bytes=40KB")
    done = closlab(*words, "--set", "int.share=1", "--reports", "csv", "--out", str(tmp_path))
    assert done.returncode == 0, done.stderr
    telemetry = json.loads((tmp_path / "result.json").read_text())["telemetry"]
    with (tmp_path / "reports.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert len({row["report"] for row in rows}) == telemetry["reports"] > 10
    latencies = [float(row["latency_ns"]) for row in rows if row["latency_ns"]]
    assert max(latencies) == telemetry["hop_latency_ns"]["max"]
    assert max(int(row["queue_bytes"] or 0) for row in rows) == telemetry["queue_bytes"]["max"]
    for _, group in itertools.groupby(rows, key=lambda row: row["report"]):
        hops = list(group)
        assert [int(hop["hop"]) for hop in hops] == [*range(1, len(hops) + 1)]
        assert hops[-1]["switch"] == hops[-1]["reporter"]
        assert hops[0]["dst"] == "10.0.1.1" or hops[0]["src"] == "10.0.1.1"


@pytest.mark.parametrize(
    ("more", "said"),
    [
        (("--reports", "csv"), "no packet of this scenario carries telemetry"),
        (("--reports", "xml", "--set", "int.share=1"), "there is no kind 'xml'"),
    ],
)
def test_reports_that_cannot_be_kept_are_said(more: tuple[str, ...], said: str) -> None:
    done = closlab("run", "incast", "--engine", "sim", *more)
    assert done.returncode == 1 and said in done.stderr
