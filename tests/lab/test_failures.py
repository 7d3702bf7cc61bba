"""What goes wrong in the middle of a run: a message, what was measured till then, nothing left."""

import json
import os
import select
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from lab.engines.mininet.endpoints import _Course
from lab.machine.paths import FABRIC_PROGRAM, ROOT
from lab.scenario import catalogue
from lab.scenario.experiment import Experiment
from params.quantity import duration
from tests.lab.conftest import CLOSLAB, closlab, has_traffic, session_of, started
from tests.lab.simulated import simulate
from tests.lab.test_prompt import Prompt
from tests.lab.test_sandbox import in_namespace
from tests.waiting import LONG_S
from views.report import read_run

_LONG = (  # a minute, unless it is ended
    *("--set", "topology={kind: leaf-spine, leaves: 2, spines: 1, hosts_per_leaf: 2}"),
    *("--set", "traffic={kind: incast, senders: 3, bytes: 40MB}", "--dilation", "20000"),
)


def _sandbox(run: subprocess.Popen[Any]) -> int:
    """The first process of a run's sandbox."""
    children = Path(f"/proc/{run.pid}/task/{run.pid}/children").read_text().split()
    ours = Path("/proc/self/ns/pid").readlink()
    (first,) = (each for each in children if Path(f"/proc/{each}/ns/pid").readlink() != ours)
    return int(first)


def _inside(first: int, word: str) -> list[int]:
    """Processes of a sandbox whose command has a word in it."""
    space = (Path("/proc") / str(first) / "ns" / "pid").readlink()
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        try:
            is_inside = (process / "ns" / "pid").readlink() == space
            if is_inside and word.encode() in (process / "cmdline").read_bytes():
                found.append(int(process.name))
        except OSError:
            continue
    return found


@contextmanager
def _under_way(out: Path, *words: str) -> Iterator[subprocess.Popen[str]]:
    """A run on Mininet whose hosts are sending, and after which nothing may be left."""
    run = started("run", *words, "--out", out, stderr=subprocess.PIPE, text=True)
    record = out / "logs" / "switches.jsonl"
    deadline = time.monotonic() + LONG_S
    while time.monotonic() < deadline and not has_traffic(record):
        assert run.poll() is None, run.communicate()[1]
        time.sleep(0.05)
    network = (Path("/proc") / str(_sandbox(run)) / "ns" / "net").readlink()
    yield run
    deadline = time.monotonic() + LONG_S
    while in_namespace(network) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert in_namespace(network) == []


def _kept(out: Path, run: subprocess.Popen[str], code: int, *expected: str) -> None:
    """The run ended so, said this, and kept what it had seen."""
    _, err = run.communicate(timeout=LONG_S)
    assert run.returncode == code, err
    assert "Traceback" not in err
    for word in expected:
        assert word in err, err
    kept = read_run(out)
    assert kept.result.ended
    assert kept.result.flows.failed > 0
    assert sum(use.packets for use in kept.result.links) > 0
    assert kept.notes
    assert "The run is not whole" in (out / "report.html").read_text()


def _end(kind: str) -> Callable[[subprocess.Popen[str]], None]:
    def end(run: subprocess.Popen[str]) -> None:
        if kind == "interrupt":  # the terminal tells all of the foreground
            os.kill(_sandbox(run), signal.SIGINT)
            run.send_signal(signal.SIGINT)
            return
        if kind == "alone":
            run.send_signal(signal.SIGINT)
            return
        word = {"endpoint": "/host-", "switches": "switch.host"}[kind]
        os.kill(_inside(_sandbox(run), word)[0], signal.SIGKILL)

    return end


@pytest.mark.mininet
@pytest.mark.ordinary  # takes down what it may not kill from outside
@pytest.mark.parametrize(
    ("kind", "code", "expected"),
    [
        ("interrupt", 130, ["Not whole: interrupted", "until then is kept in"]),
        pytest.param(
            *("alone", 130, ["Not whole: interrupted", "until then is kept in"]),
            marks=pytest.mark.slow,
        ),
        pytest.param(
            *("endpoint", 1, ["Not whole: the endpoint of h", "died"]), marks=pytest.mark.slow
        ),
        pytest.param(*("switches", 1, ["Not whole: the switches died"]), marks=pytest.mark.slow),
    ],
)
def test_a_run_that_is_cut_short_keeps_what_it_saw(
    tmp_path: Path, own_cache: Path, kind: str, code: int, expected: list[str]
) -> None:
    with _under_way(tmp_path, "incast", *_LONG) as run:
        _end(kind)(run)
        _kept(tmp_path, run, code, *expected)
    assert list(own_cache.glob("*")) == []


@pytest.mark.mininet
@pytest.mark.ordinary  # shares what memory an ordinary user may have
@pytest.mark.slow
def test_two_runs_at_once_do_not_meet(tmp_path: Path, own_cache: Path) -> None:
    """Each tells what is due in memory of its own."""
    outs = [tmp_path / name for name in "ab"]
    words = ("run", "incast", "--engine", "mininet", "--set", "traffic.bytes=500KB")
    runs = [started(*words, "--out", out, stderr=subprocess.PIPE, text=True) for out in outs]
    for run, out in zip(runs, outs, strict=True):
        _, err = run.communicate(timeout=LONG_S)
        assert run.returncode in (0, 3), err  # in each other's way they may be
        assert "Traceback" not in err
        assert read_run(out).result.flows.completed == 7
    assert list(own_cache.glob("*")) == []


@pytest.mark.clock
def test_an_interrupted_simulation_keeps_what_it_saw(tmp_path: Path) -> None:
    words = ("run", "incast", "--engine", "sim")
    run = subprocess.Popen(
        [*CLOSLAB, *words, "--set", "traffic.bytes=1GB", "--out", str(tmp_path)],
        stderr=subprocess.PIPE,
        text=True,
    )
    assert run.stderr is not None
    for line in run.stderr:
        if "Giving hosts their plans" in line:
            break
    time.sleep(0.3)
    run.send_signal(signal.SIGINT)
    _kept(tmp_path, run, 130, "Not whole: interrupted", f"until then is kept in {tmp_path}/")


@pytest.mark.slow
@pytest.mark.clock
@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (("run", "lossy-link", "--engine", "sim"), "before anything was measured: no result"),
        (("sweep", "lossy-link", "--vary", "seed=1..2"), "Interrupted: not one run was over yet"),
    ],
)
def test_what_is_interrupted_too_soon_says_that_there_is_nothing(
    tmp_path: Path, words: tuple[str, ...], expected: str
) -> None:
    """And shows nothing of an earlier run in the same folder."""
    (tmp_path / "result.json").write_text("{}")
    large = ("--set", "topology={kind: fat-tree, k: 16}")
    run = subprocess.Popen(
        [*CLOSLAB, *words, *large, "--out", str(tmp_path)],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    assert run.stderr is not None
    if words[0] == "run":
        assert "Compiling" in run.stderr.readline()
    else:  # until those are there that are to run
        while len(session_of(run.pid)) < 3:
            assert run.poll() is None
            time.sleep(0.05)
    run.send_signal(signal.SIGINT)
    _, err = run.communicate(timeout=LONG_S)
    assert run.returncode == 130, err
    assert expected in err
    assert "Traceback" not in err
    assert words[0] == "sweep" or not (tmp_path / "result.json").exists()


@pytest.mark.clock
def test_an_interrupt_while_all_is_still_read_ends_in_silence(tmp_path: Path) -> None:
    (tmp_path / "typer.py").write_text(
        "import time\nprint('reading', flush=True)\ntime.sleep(1000)"
    )
    run = subprocess.Popen(
        [sys.executable, "-c", "from lab.start import main; main()"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=os.environ | {"PYTHONPATH": str(tmp_path)},
        cwd=ROOT,
    )
    assert run.stdout is not None
    assert run.stdout.readline() == "reading\n"
    run.send_signal(signal.SIGINT)
    _, err = run.communicate(timeout=LONG_S)
    assert (run.returncode, err) == (-signal.SIGINT, "")


def _with_mount(options: str, folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    """Run closlab where a folder is a small or a sealed disk."""
    folder.mkdir()
    script = 'mount -t tmpfs -o "$1" none "$2" && shift 2 && exec "$@"'
    return subprocess.run(
        [
            *("unshare", "--user", "--map-root-user", "--mount", "sh", "-c", script, "sh"),
            *(options, str(folder), *CLOSLAB, *words, "--out", str(folder)),
        ],
        capture_output=True,
        text=True,
        check=False,
        timeout=LONG_S,
    )


def test_a_disk_too_small_for_anything_is_told(tmp_path: Path) -> None:
    done = _with_mount("size=1m", tmp_path / "disk", "run", "incast", "--engine", "sim")
    assert done.returncode == 1
    assert "disk cannot be written: No space left" in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize(
    "engine",
    ["sim", pytest.param("mininet", marks=[pytest.mark.mininet, pytest.mark.slow])],
)
def test_on_a_disk_that_fills_up_the_results_go_first(tmp_path: Path, engine: str) -> None:
    shutil.copytree(FABRIC_PROGRAM.parent, tmp_path / "p4")
    words = ("run", "incast", "--engine", engine, "--json", "--p4", str(tmp_path / "p4"))
    whole = tmp_path / "whole"
    simulate("incast", out=whole, p4=tmp_path / "p4")
    sizes = {path.name: path.stat().st_size for path in whole.iterdir()}
    # The program and a little more: the results only fit in its place.
    room = sizes["fabric.json"] + (sum(sizes.values()) - sizes["fabric.json"]) // 4
    done = _with_mount(f"size={room}", tmp_path / "disk", *words)
    assert done.returncode == 0, done.stderr
    assert "The disk is full: fabric.json gave way to the results" in done.stderr
    assert "All of it, with pictures" in done.stderr
    assert json.loads(done.stdout)["flows"]["completed"] == 7


@pytest.mark.parametrize("engine", ["sim", "mininet"])
def test_a_folder_that_may_not_be_written_is_told_at_once(tmp_path: Path, engine: str) -> None:
    done = _with_mount("ro", tmp_path / "disk", "run", "incast", "--engine", engine)
    assert done.returncode == 1
    assert "the results cannot be written to" in done.stderr
    assert "Traceback" not in done.stderr
    (tmp_path / "file").write_text("")
    done = closlab("run", "incast", "--engine", engine, "--out", str(tmp_path / "file" / "below"))
    assert done.returncode == 1
    assert "Not a directory" in done.stderr


def test_a_limit_says_whose_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    """The scenario's is in the fabric's time; ours is how long an emulator may take."""
    monkeypatch.setattr("lab.engines.mininet.endpoints.slowness", lambda: 1.0)
    experiment = Experiment.of(catalogue.load("incast", ["limit_ns=2ms"]))
    course = _Course(experiment, None, {}, 100_000, None, None)
    assert course._limit_reached(1_999_999) is None
    assert course._limit_reached(2_000_001) == "the limit of 2,000,000 ns was reached"
    slower = _Course(experiment, None, {}, 1_000_000, None, None)
    message = slower._limit_reached(600_001)
    assert message is not None and "at most 600 s" in message and duration(600_001) in message
    assert "limit of" not in message


@pytest.mark.slow
@pytest.mark.mininet
def test_a_program_whose_fabric_died_under_it_did_not_go_well(
    tmp_path: Path, own_cache: Path
) -> None:
    """Even if it ends with 0: what it saw of the network was not the fabric."""
    lab = Prompt(tmp_path / "out", "--set", "topology.leaves=2")
    goes = f"touch {tmp_path}/goes; until [ -e {tmp_path}/go ]; do sleep 0.02; done"
    exec_words = ("exec", "h1", "--", "sh", "-c", goes)
    program = started(*exec_words, stderr=subprocess.PIPE, text=True)
    while not (tmp_path / "goes").exists():
        assert program.poll() is None
        time.sleep(0.05)
    switches = os.pidfd_open(_inside(_sandbox(lab.process), "switch.host")[0])
    signal.pidfd_send_signal(switches, signal.SIGKILL)
    assert select.select([switches], [], [], LONG_S)[0]
    os.close(switches)
    (tmp_path / "go").touch()
    err = program.communicate(timeout=LONG_S)[1]
    assert program.returncode == 1, err
    assert "Meanwhile the process of the switches died (SIGKILL): the fabric was not whole" in err
    said, _ = lab.process.communicate(timeout=LONG_S)
    assert b"the process of the switches died (SIGKILL)" in said
