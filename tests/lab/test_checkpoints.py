"""A simulated run goes on from its last checkpoint, and from nothing else.

`python -m tests.lab.checkpoint_kills` kills runs by lot at any moment; here one dies at moments
that are chosen.
"""

from __future__ import annotations

import io
import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from textwrap import dedent

import pytest
from rich.console import Console

from lab.engines import RunOptions
from lab.engines.sim import checkpoint
from lab.engines.sim.checkpoint import FILE
from lab.errors import LabError, RunError
from lab.machine.paths import ROOT
from lab.progress import Stages
from lab.runs.run import check, outcome_of
from lab.scenario import catalogue
from lab.scenario.experiment import Experiment
from tests.lab.checkpoint_kills import differences
from tests.lab.simulated import simulate

# A switch starts again, ways change and telemetry is told, so that Python knows something as well.
SCENARIO = {
    "name": "goes-on",
    "topology": {"kind": "leaf-spine", "leaves": 2, "spines": 2, "hosts_per_leaf": 2},
    "traffic": {"kind": "collective", "op": "all-to-all", "bytes": "1MB"},
    "transport": {"timeout": 10},
    "int": {"share": 0.05},
    "reroute_ns": "5us",
    "faults": [
        {"at_ns": "10us", "link": "leaf1-spine1", "action": "down", "for_ns": "30us"},
        {"at_ns": "20us", "switch": "spine2", "action": "restart"},
    ],
}
# By slices of so few events that there are many; it dies when the so manieth checkpoint is written,
# or half of it, or has no room for any.
_RUN = """
import errno, os, signal, sys
from pathlib import Path
from lab.commands.execution import execute
from lab.engines.sim import engine
from lab.engines.sim.checkpoint import Checkpoints

engine._SLICE_EVENTS = 400
file, out, how, last = sys.argv[1], Path(sys.argv[2]), sys.argv[3], int(sys.argv[4])
write, written = Checkpoints._write, []

def die(*_):
    os.kill(os.getpid(), signal.SIGKILL)

def writing(self, path, moment):
    if how == "full":
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
    written.append(path)
    if len(written) == last and how == "half":
        os.fsync = die
    if len(written) > last:
        die()
    write(self, path, moment)

Checkpoints._write = writing
execute(file, (), None, out, engine="sim", prompt=False, jobs=1, checkpoint="0s")
"""


def _run(folder: Path, how: str, last: int = 0) -> subprocess.CompletedProcess[str]:
    words = str(folder / "goes-on.yaml"), str(folder / "out"), how, str(last)
    return subprocess.run(
        [sys.executable, "-c", _RUN, *words],
        cwd=ROOT, capture_output=True, text=True, timeout=300, check=False,
    )  # fmt: skip


@pytest.fixture(scope="module")
def left(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder in which a run died."""
    folder = tmp_path_factory.mktemp("left")
    (folder / "goes-on.yaml").write_text(json.dumps(SCENARIO))
    died = _run(folder, "written", 8)
    assert died.returncode == -signal.SIGKILL, died.stderr
    return folder


def test_a_run_that_died_comes_to_the_same(left: Path, tmp_path: Path) -> None:
    kept = (left / "out" / FILE).read_bytes()
    died = _run(left, "half", 8)
    assert died.returncode == -signal.SIGKILL, died.stderr
    assert (left / "out" / f"{FILE}.part").exists()
    later = (left / "out" / FILE).read_bytes()
    assert later != kept  # it went on, and kept others
    ended = _run(left, "full")
    assert "It goes on from" in ended.stderr
    assert ended.stderr.count("a checkpoint cannot be written") == 1, ended.stderr
    (left / "out" / "report.html").unlink()
    simulate(str(left / "goes-on.yaml"), out=tmp_path)
    assert differences(tmp_path, left / "out") == []
    assert not [*(left / "out").glob(f"{FILE}*")]
    result = json.loads((left / "out" / "result.json").read_text())
    assert result["telemetry"]["reports"] and not result["flows"]["failed"]
    (left / "out" / FILE).write_bytes(kept)  # for who comes next


def _begun(out: Path, *changes: str, threads: int = 1) -> None:
    """Begin it in this process, where it cannot come to have memory of its own."""
    options = RunOptions(out=out, engine="sim", threads=threads, checkpoint_s=60)
    experiment = Experiment.of(catalogue.load(str(out.parent / "goes-on.yaml"), changes))
    outcome_of(experiment, options, Stages(Console(file=io.StringIO())))


def test_what_is_of_something_else_is_refused(left: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    out = left / "out"
    with pytest.raises(RunError, match="of another scenario"):
        _begun(out, "traffic.bytes=1001KB")
    with pytest.raises(RunError, match="--jobs"):
        _begun(out, threads=2)
    monkeypatch.setattr(checkpoint, "_code", lambda: "another")
    with pytest.raises(RunError, match="another state of closlab") as refused:
        _begun(out)
    assert refused.value.cure and "Remove it" in refused.value.cure


@pytest.mark.parametrize("place", [0.0, 0.3, 0.999999])
def test_what_is_damaged_is_refused(left: Path, place: float) -> None:
    file = left / "out" / FILE
    whole = file.read_bytes()
    damaged = bytearray(whole)
    damaged[int(place * len(whole))] ^= 1
    try:
        for content in (bytes(damaged), whole[: int(place * len(whole))], whole + b"0"):
            file.write_bytes(content)
            with pytest.raises(RunError, match="damaged"):
                _begun(left / "out")
        file.unlink()
        os.mkfifo(file)
        with pytest.raises(RunError, match="no file"):
            _begun(left / "out")
    finally:
        file.unlink()
        file.write_bytes(whole)


def test_who_has_another_key_refuses_it(left: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    other = left / "key"
    other.write_bytes(bytes(32))
    monkeypatch.setattr(checkpoint, "kept", lambda *_: other)
    with pytest.raises(RunError, match="no checkpoint that this user's closlab"):
        _begun(left / "out")


def test_what_cannot_have_any_says_so(left: Path) -> None:
    with pytest.raises(LabError, match="cannot keep packets"):
        _begun(left / "out", "measures.pcap=[all]")
    with pytest.raises(LabError, match="control from a file"):
        _begun(left / "out", "transport={kind: uet, cc: pcm, pcm: {file: swift.c}}")
    with pytest.raises(LabError, match="for the simulator"):
        check(RunOptions(out=left, engine="mininet", checkpoint_s=60))


# Blocks by lot, each full of its number, beside a table of them.
_BLOCKS = """
import ctypes, random, sys
from lab.machine import fixed_addresses
from switch.native import runtime

rt, lot, blocks = runtime(), random.Random(int(sys.argv[1])), {}
assert rt.arena_open(fixed_addresses.memory_at()) and not rt.arena_open(fixed_addresses.memory_at())

def fill(at, size, number):
    ctypes.memset(at, number % 251 + 1, size)
    blocks[at] = size, number

for number in range(3000):
    size = lot.choice((0, 1, 16, 17, 240, 257, 5000, 70_000)) + lot.randrange(32)
    match lot.randrange(5):
        case 0:
            at = rt.arena_take(size)
        case 1:
            at = rt.arena_zeros(size, 1)
            assert ctypes.string_at(at, size) == bytes(size)
        case 2:
            align, place = 1 << lot.randrange(4, 13), ctypes.c_void_p()
            assert rt.arena_take_aligned(ctypes.addressof(place), align, size) == 0
            at = place.value
            assert at % align == 0
        case 3 if blocks:
            old = lot.choice([*blocks])
            had, of = blocks.pop(old)
            at = rt.arena_resize(old, size)
            assert ctypes.string_at(at, min(had, size)) == bytes([of % 251 + 1]) * min(had, size)
        case _ if blocks:
            at = lot.choice([*blocks])
            had, of = blocks.pop(at)
            assert ctypes.string_at(at, had) == bytes([of % 251 + 1]) * had
            rt.arena_give(at)
            continue
        case _:
            continue
    assert at % 16 == 0 and rt.arena_holds(at) and at not in blocks
    fill(at, size, number)
taken = sorted((at, at + size) for at, (size, _) in blocks.items())
assert all(end <= begin for (_, end), (begin, _) in zip(taken, taken[1:]))
print(rt.arena_used(), rt.arena_trace())
"""


def test_memory_holds_what_is_put_there_and_lies_alike() -> None:
    results = [
        subprocess.run(
            [sys.executable, "-c", dedent(_BLOCKS), seed],
            cwd=ROOT, capture_output=True, text=True, timeout=120, check=True,
        ).stdout
        for seed in ("1", "1", "2")
    ]  # fmt: skip
    assert results[0] == results[1] != results[2]
