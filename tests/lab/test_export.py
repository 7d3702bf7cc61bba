"""`closlab export`: what others read says what was run."""

from __future__ import annotations

import csv
import importlib.util
import io
import json
from contextlib import redirect_stdout
from pathlib import Path

import pytest

from lab.commands import export
from lab.errors import LabError
from lab.scenario import catalogue
from lab.scenario.traffic import make_workload
from tests.lab.conftest import closlab
from tests.lab.simulated import Run, simulate
from tests.traffic.traces.programs import parsed
from traffic.collectives import symbolic
from traffic.traces import table

SIZES = (100_000, 400_000)


@pytest.fixture(scope="module")
def sweep(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, list[Run]]:
    """An all-gather of two sizes, the larger first."""
    folder = tmp_path_factory.mktemp("sweep")
    changes = ("traffic.op=all-gather", "traffic.algorithm=ring", "traffic.ranks=[h1, h2, h5, h6]")
    return folder, [
        simulate("allreduce-ring", *changes, f"traffic.bytes={size}", out=folder / str(at))
        for at, size in enumerate(reversed(SIZES))
    ]


def test_runs_are_told_as_nccl_tests_tells_them(
    sweep: tuple[Path, list[Run]], tmp_path: Path
) -> None:
    folder, runs = sweep
    done = closlab("export", str(folder), "--as", "nccl-tests")
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    rows = [line.split() for line in lines if not line.startswith("#")]
    assert "# Collective test starting: all_gather_perf" in lines
    assert [line.split()[6] for line in lines if "# " in line and " on " in line] != []
    assert sum(line.startswith("#  Rank") for line in lines) == 4
    written = closlab("export", str(folder), "--as", "nccl-tests", "-o", str(tmp_path / "x.json"))
    assert written.returncode == 0, written.stderr
    content = json.loads((tmp_path / "x.json").read_text())
    assert len(rows) == len(content["results"]) == len(SIZES)
    busbws = []
    for row, result, size, run in zip(rows, content["results"], SIZES, reversed(runs), strict=True):
        assert row[:5] == [str(size), str(size // 4 // 4), "float", "none", "-1"]
        starts, ends = run.outcome.timeline.start_ns, run.outcome.timeline.end_ns
        took_us = (max(ends) - min(starts)) / 1000
        for half in (row[5:9], row[9:13]):
            assert float(half[0]) == pytest.approx(took_us, abs=0.005)
            assert float(half[1]) == pytest.approx(size / took_us / 1000, abs=0.005)
            assert float(half[2]) == pytest.approx(size / took_us / 1000 * 3 / 4, abs=0.005)
            assert half[3] == "N/A"
        busbws.append(size / took_us / 1000 * 3 / 4)
        body = result["out_of_place"]
        assert (result["size"], result["count"]) == (size, size // 16)
        assert body["time"] == pytest.approx(took_us)
        assert body["bus_bw"] == pytest.approx(busbws[-1])
        assert (body["nwrong"], result["in_place"]) == (None, body)
    average = sum(busbws) / 2
    assert content["average_bus_bandwidth"]["bandwidth"] == pytest.approx(average)
    assert float(lines[-3].rpartition(":")[2]) == pytest.approx(average, rel=1e-4)


def test_what_a_run_sent_is_a_workload_again(sweep: tuple[Path, list[Run]], tmp_path: Path) -> None:
    _, (run, _) = sweep
    path = tmp_path / "flows.csv"
    done = closlab("export", str(run.out), "--as", "flows", "-o", str(path))
    assert f"{path}: 12 messages" in done.stdout, done.stderr
    schedule, timeline = run.experiment.schedule, run.outcome.timeline
    again = table.read(path, 8).schedule()
    sent = zip(timeline.start_ns, schedule.src, schedule.dst, schedule.size, strict=True)
    found = zip(again.delay_ns, again.src, again.dst, again.size, strict=True)
    assert sorted(found) == sorted(each for each in sent if each[1] != each[2])
    parquet = tmp_path / "flows.parquet"
    done = closlab("export", str(run.out), "--as", "flows", "-o", str(parquet))
    if importlib.util.find_spec("pyarrow") is None:
        assert "pyarrow, which is not installed" in done.stderr
        return
    columns = importlib.import_module("pyarrow.parquet").read_table(parquet).to_pydict()
    with path.open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert list(columns) == list(rows[0])
    assert columns["bytes"] == [int(row["bytes"]) for row in rows]


def test_traffic_becomes_traces(tmp_path: Path) -> None:
    made = closlab(
        "export", "training-llama", "--as", "chakra", "-o", str(tmp_path / "t" / "llama")
    )
    assert made.returncode == 0, made.stderr
    assert "proven to compute what its collectives promise" in made.stdout
    scenario = catalogue.load("training-llama")
    schedule = make_workload(scenario.traffic, scenario.site(scenario.fabric())).schedule
    sent: list[tuple[int, int, int]] = []
    computed = 0
    for rank in range(schedule.ranks):
        for node in parsed((tmp_path / "t" / f"llama.{rank}.et").read_bytes()):
            about = {each.name: each.int64_val for each in node.attr}
            computed += node.duration_micros if node.type == 4 else 0
            if node.type == 5:
                sent.append((rank, about["comm_dst"], about["comm_size"]))
    want = zip(schedule.src, schedule.dst, schedule.size, strict=True)
    assert sorted(sent) == sorted(each for each in want if each[0] != each[1])
    assert computed == pytest.approx(sum(schedule.delay_ns) / 1000, rel=0.01)


def test_what_is_not_right_is_not_exported_and_what_is_too_large_is_not_called_proven(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def written() -> list[Path]:
        export.command(["allreduce-ring"], "chakra", tmp_path / "ring")
        return [*tmp_path.iterdir()]

    with monkeypatch.context() as wrong:
        wrong.setattr(symbolic, "final", lambda *_: [((0, 0), 1)])  # a ring promises more
        with pytest.raises(LabError, match="member 0 ends with"):
            written()
    assert not [*tmp_path.iterdir()]
    monkeypatch.setattr(symbolic, "MAX_TRANSFERS", 3)
    output = io.StringIO()
    with redirect_stdout(output):
        assert len(written()) == 8
    assert "not proven, for all-reduce ring has 112 transfers" in output.getvalue()


WRONG = {
    ("x", "--as", "pdf"): "there is no kind 'pdf'",
    ("nowhere", "--as", "flows"): "there is no run in nowhere",
    ("hello", "incast", "--as", "chakra"): "takes one name",
    ("nowhere", "--as", "nccl-tests", "--set", "seed=2"): "a run is over",
}


@pytest.mark.parametrize("words", WRONG)
def test_what_cannot_be_exported_is_told(words: tuple[str, ...]) -> None:
    done = closlab("export", *words)
    assert (done.returncode, WRONG[words] in done.stderr.replace("\n", " ")) == (1, True)


def test_a_run_is_a_trace_whose_slices_are_its_own(tmp_path: Path) -> None:
    """By the rules of trace events: on a track nothing overlaps, and every track has a name."""
    run = simulate("pfc-storm", out=tmp_path / "run")
    path = tmp_path / "trace.json"
    done = closlab("export", str(run.out), "--as", "perfetto", "-o", str(path))
    assert done.returncode == 0, done.stderr
    events = json.loads(path.read_text())["traceEvents"]
    names = {
        (each["pid"], each["tid"]): each["args"]["name"]
        for each in events
        if each["name"] == "thread_name"
    }
    ends: dict[tuple[int, int], float] = {}
    slices = [each for each in events if each["ph"] == "X"]
    for each in sorted(slices, key=lambda each: each["ts"]):
        track = each["pid"], each["tid"]
        assert each["ts"] >= ends.get(track, 0.0) - 1e-9 and each["dur"] >= 0, names[track]
        ends[track] = each["ts"] + each["dur"]
    sent = [each for each in slices if each["name"].startswith("to h")]
    timeline, schedule = run.outcome.timeline, run.experiment.schedule
    spans = zip(timeline.start_ns, timeline.end_ns, schedule.size, strict=True)
    assert sorted(
        (round(each["ts"] * 1e3), round((each["ts"] + each["dur"]) * 1e3), each["args"]["bytes"])
        for each in sent
    ) == sorted(spans)
    still = [each for each in slices if each["name"] == "stands still"]
    tracks = {names[each["pid"], each["tid"]] for each in still}
    assert tracks == {*run.result.pfc.by_link}
    for name, pause in run.result.pfc.by_link.items():
        stood = sum(e["dur"] for e in still if names[e["pid"], e["tid"]] == name)
        assert stood * 1e3 == pytest.approx(pause.longest_ns, rel=0.02, abs=2000)
    assert [each["name"] for each in events if each["pid"] == 4 and each["ph"] == "i"][:1] == [
        "h1 storm"
    ]
