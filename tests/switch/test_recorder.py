"""What switches hold, written down while they run."""

import json
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from switch.dataplane import CounterWrite, Dataplane, Loop, PortStats, RegisterWrite
from switch.recorder import Cells, Recorder
from tests.waiting import LONG_S

from .programs import compiled
from .test_externs import SOURCE, index

pytestmark = pytest.mark.clock

CELLS = Cells(counters={"arrivals": [2, 4]}, registers={"narrow": [0, 8]})


def test_cells_are_written_down_until_it_is_stopped(tmp_path: Path) -> None:
    path = tmp_path / "record"
    with (
        Loop() as loop,
        Dataplane("one", compiled(SOURCE), loop=loop) as one,
        Dataplane("empty", loop=loop) as empty,
    ):
        recorder = Recorder(loop, [(one, CELLS), (empty, Cells())], path, 0.005)
        recorder.start()
        _await_lines(path, 3)
        arrivals, narrow = index(one, "counters", "arrivals"), index(one, "registers", "narrow")
        one.write([CounterWrite(arrivals, cell, cell, 9) for cell in range(8)])
        one.write([RegisterWrite(narrow, 5, 77)])
        _await_lines(path, len(_lines(path)) + 3)
        recorder.stop()
        seen = len(_lines(path))
        time.sleep(0.05)
    lines = _lines(path)
    assert len(lines) == seen
    assert {line["switch"] for line in lines} == {"one"}  # the other runs no program
    assert lines[0]["counters"] == {"arrivals": {}} and lines[0]["registers"] == {"narrow": {}}
    assert lines[-1]["counters"] == {"arrivals": {f"{n}": [n, 9] for n in range(2, 6)}}
    assert lines[-1]["registers"] == {"narrow": {"5": 77}}
    times = [(line["at_ns"], line["now_ns"]) for line in lines]
    assert times == sorted(times)


def test_what_found_no_room_is_written_down_by_port(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    missed = {1: 0, 2: 7, 3: 1}
    with Loop() as loop, Dataplane("one", compiled(SOURCE), loop=loop) as one:
        ports = {
            number: PortStats(0, 0, 0, 0, True, (), (), rx_missed=frames)
            for number, frames in missed.items()
        }
        stats = replace(one.stats(), ports=ports)
        monkeypatch.setattr(one, "stats", lambda: stats)
        recorder = Recorder(loop, [(one, Cells())], tmp_path / "record", 0.001)
        recorder.start()
        _await_lines(tmp_path / "record", 1)
        recorder.stop()
    assert _lines(tmp_path / "record")[0]["missed"] == {"2": 7, "3": 1}


def test_a_program_without_such_cells_is_let_be(tmp_path: Path) -> None:
    with Loop() as loop, Dataplane("one", compiled(SOURCE), loop=loop) as one:
        cells = Cells(counters={"nothing": [0, 1]})
        recorder = Recorder(loop, [(one, cells)], tmp_path / "record", 0.001)
        recorder.start()
        time.sleep(0.05)
        recorder.stop()
    assert _lines(tmp_path / "record") == []


def test_a_file_that_is_too_long_is_begun_anew(tmp_path: Path) -> None:
    path = tmp_path / "record"
    before = tmp_path / "record.before"
    with Loop() as loop, Dataplane("one", compiled(SOURCE), loop=loop) as one:
        recorder = Recorder(loop, [(one, CELLS)], path, 0.001, most_bytes=2000)
        recorder.start()
        deadline = time.monotonic() + LONG_S
        seen: set[int] = set()
        while len(seen) < 3 and time.monotonic() < deadline:
            if before.exists():
                seen.add(before.stat().st_mtime_ns)  # two files may take turns with two inodes
        recorder.stop()
    assert len(seen) == 3
    assert before.stat().st_size < 4000 and path.stat().st_size < 4000
    times: list[Any] = [line["at_ns"] for line in (*_lines(before), *_lines(path))]
    assert times == sorted(times) and len(set(times)) == len(times)


def _lines(path: Path) -> list[dict[str, object]]:
    return [json.loads(line) for line in path.read_text().splitlines()]


def _await_lines(path: Path, count: int) -> None:
    deadline = time.monotonic() + LONG_S
    while len(path.read_text().splitlines()) < count and time.monotonic() < deadline:
        time.sleep(0.005)
