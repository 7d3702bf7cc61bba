"""What a run keeps is what its scenario asks for; what it finds out does not depend on that."""

import csv
from pathlib import Path

import pytest

from lab.report import Comparison, read_run, write_comparison, write_report
from lab.result import Result
from tests.lab.conftest import closlab
from tests.lab.simulated import simulate

SMALL = ("traffic.bytes=200KB", "int.share=0.1")
NOTHING = "measures={flows: false, series: false, telemetry: false}"
TABLES = ("flows.csv", "timeseries.csv")


def figures(result: Result) -> dict[str, object]:
    content = result.content()
    return {key: value for key, value in content.items() if key not in ("scenario", "telemetry")}


def test_less_is_kept_and_the_figures_are_the_same(tmp_path: Path) -> None:
    everything = simulate("incast", *SMALL, out=tmp_path / "run")
    assert all((everything.out / name).exists() for name in TABLES)
    whole = read_run(everything.out)
    # Into the same folder: what an earlier run left there is no part of this one.
    nothing = simulate("incast", *SMALL, NOTHING, out=tmp_path / "run")
    assert not any((nothing.out / name).exists() for name in TABLES)
    assert figures(nothing.result) == figures(whole.result)
    assert whole.result.telemetry is not None and whole.result.telemetry.reports > 0
    assert nothing.result.telemetry is None


def test_a_report_says_what_was_not_measured(tmp_path: Path) -> None:
    whole = simulate("incast", *SMALL, out=tmp_path / "whole").out
    bare = simulate("incast", *SMALL, NOTHING, out=tmp_path / "bare").out
    text = write_report(bare).read_text()
    for title, measure in (
        ("Queues, pauses, marks and drops", "series"),
        ("Completion times", "flows"),
        ("Telemetry by hop", "telemetry"),
    ):
        assert f"{title}: Not measured, for measures.{measure} is false." in text
    assert "Not measured" not in write_report(whole).read_text()
    both = write_comparison(Comparison.of([whole, bare]), tmp_path).read_text()
    assert "Not measured, for measures.series is false." in both


def test_notes_are_as_far_apart_as_asked(tmp_path: Path) -> None:
    changes = ("traffic.bytes=200KB", "measures.series_ns=7us")
    out = simulate("incast", *changes, out=tmp_path).out
    with (out / "timeseries.csv").open() as file:
        times = {int(row["time_ns"]) for row in csv.DictReader(file)}
    assert len(times) > 10
    assert all(time % 7000 == 0 for time in times)


@pytest.mark.mininet
def test_mininet_keeps_what_is_asked_for(tmp_path: Path) -> None:
    changes = ("traffic.bytes=100KB", NOTHING, "measures.pcap=[leaf1-spine1, h3-leaf2]")
    words = [word for change in changes for word in ("--set", change)]
    done = closlab("run", "incast", *words, "--out", str(tmp_path))
    assert done.returncode == 0, done.stderr
    assert "Not measured, as the scenario asks: flows, series" in done.stderr
    assert not any((tmp_path / name).exists() for name in TABLES)
    ends = {"leaf1-eth3", "spine1-eth1", "leaf2-eth1"}
    recorded = {f"{end}_{way}.pcap" for end in ends for way in ("in", "out")}
    assert {path.name for path in (tmp_path / "pcaps").iterdir()} == recorded
    assert (tmp_path / "pcaps" / "leaf1-eth3_in.pcap").stat().st_size > 1000
