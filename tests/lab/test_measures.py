"""What a run keeps is what its scenario asks for; what it finds out does not depend on that."""

import csv
from pathlib import Path

import pytest

from lab.results.result import Result
from lab.runs.run import UNBELIEVED
from tests.lab.conftest import closlab
from tests.lab.simulated import simulate
from views.report import read_run, write_report
from views.report.compare import Comparison, write_comparison

SMALL = ("traffic.bytes=200KB", "int.share=0.1")
NOTHING = "measures={flows: false, series: false, telemetry: false}"
TABLES = ("flows.csv", "timeseries.csv")


def figures(result: Result) -> dict[str, object]:
    content = result.content()
    # What differs, when it was, and books that have telemetry's own packets in them.
    asked = ("scenario", "telemetry", "provenance", "conservation")
    return {key: value for key, value in content.items() if key not in asked}


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


def test_a_dead_run_ends_when_it_died_whatever_is_kept(tmp_path: Path) -> None:
    dead = (
        *("traffic.bytes=200KB", "transport.rto_ns=1ms", "transport.retry_limit=3"),
        "faults=[{at_ns: 20us, action: down, link: h1-leaf1}]",
    )
    runs = [
        simulate("incast", *dead, measures, out=tmp_path / str(number)).result
        for number, measures in enumerate(
            (NOTHING, "measures.series=true", "measures={series_ns: 7us}")
        )
    ]
    assert figures(runs[0]) == figures(runs[1]) == figures(runs[2])
    # Four time-outs of a millisecond one after the other, and nothing after the last.
    assert all(run.ended and "will never end" in run.ended for run in runs)
    assert 4_000_000 < runs[0].duration_ns < 4_200_000


def test_where_nothing_happens_nothing_is_looked_for_and_nothing_missed(tmp_path: Path) -> None:
    """A second of silence between two messages, and notes of both."""
    rests = (
        "traffic={kind: flows, messages: 2, rest_ns: 1s, flows: [{src: h1, dst: h3, bytes: 50KB}]}"
    )
    run = simulate("incast", rests, out=tmp_path)
    with (run.out / "timeseries.csv").open() as file:
        times = [int(row["time_ns"]) for row in csv.DictReader(file)]
    assert run.result.duration_ns > 10**9
    assert all(time % 1000 == 0 for time in times)
    early, late = ([t for t in times if (t > 5 * 10**8) is after] for after in (False, True))
    assert max(early) < 10**8 and min(late) > 10**9
    assert abs(len(early) - len(late)) < 0.2 * len(early)


def test_a_report_says_what_was_not_measured(tmp_path: Path) -> None:
    whole = simulate("incast", *SMALL, out=tmp_path / "whole").out
    bare = simulate("incast", *SMALL, NOTHING, out=tmp_path / "bare").out
    text = write_report(bare).read_text()
    for title, measure in (
        ("Queues, marks and drops", "series"),
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
    changes = (
        "topology={kind: leaf-spine, leaves: 2, spines: 1, hosts_per_leaf: 2}",
        "traffic={kind: incast, senders: 3, bytes: 100KB}",
        *(NOTHING, "measures.pcap=[leaf1-spine1, h3-leaf2]"),
    )
    words = [word for change in changes for word in ("--set", change)]
    done = closlab("run", "incast", *words, "--out", str(tmp_path))
    assert done.returncode in (0, UNBELIEVED), done.stderr  # how late hosts were is not the point
    assert "Not measured, as the scenario asks: flows, series" in done.stderr
    assert not any((tmp_path / name).exists() for name in TABLES)
    ends = {"leaf1-eth3", "spine1-eth1", "leaf2-eth1"}
    recorded = {f"{end}_{way}.pcap" for end in ends for way in ("in", "out")}
    assert {path.name for path in (tmp_path / "pcaps").iterdir()} == recorded
    assert (tmp_path / "pcaps" / "leaf1-eth3_in.pcap").stat().st_size > 1000
