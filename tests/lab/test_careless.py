"""What slips from a hand: nothing after --out, a full device to tell things to, a folder twice."""

import os
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

import closlab
from lab.errors import LabError, RunError
from lab.machine.paths import alone_in
from lab.scenario import catalogue
from tests.lab.conftest import closlab as command

NAME = "x" * 300
CLOSLAB = sys.executable, "-c", "from lab.start import main; main()"


def said(*words: str, before: str = "", after: str = "", **env: str) -> tuple[int, str]:
    """How a command ends and what it says on either output, by a shell."""
    line = f'{before} "$@" {after}'
    done = subprocess.run(
        ["bash", "-c", line, "bash", *CLOSLAB, *words],
        capture_output=True, env=os.environ | env, check=False,
    )  # fmt: skip
    return done.returncode, (done.stderr + done.stdout).decode()


@pytest.mark.parametrize(
    ("code", "expected", "ends"),
    [
        (1, "standard output cannot be written", lambda: said("list", after=">/dev/full")),
        (1, "--out is followed by nothing", lambda: said("run", "hello", "--out", "")),
        (1, "gives it no more memory", lambda: said("list", before="ulimit -v 40000;")),
        (0, "victim-flow", lambda: said("list", LC_ALL="C", PYTHONUTF8="0")),
    ],
)  # fmt: skip
def test_what_slipped_is_named(
    code: int, expected: str, ends: Callable[[], tuple[int, str]]
) -> None:
    found = ends()
    assert found[0] == code and expected in found[1] and "Traceback" not in found[1], found


@pytest.mark.parametrize(
    "change",
    [
        "topology.leaves=true", "pfc.priorities=[true]", "traffic.bytes=true", "seed=yes",
        "link.rate_gbps=true", "about=!!binary aGVsbG8=", f"topology={{kind: file, path: {NAME}}}",
        "topology={kind: file, path: " + "y" * 10_000 + "}",
    ],
)  # fmt: skip
def test_what_is_no_number_and_no_name_is_none(change: str) -> None:
    with pytest.raises(LabError) as refused:
        catalogue.load("incast", (change,))
    assert len(refused.value.message) < 1000


def test_names_of_any_length_are_named() -> None:
    for name in (NAME, f"{NAME}.yaml"):
        with pytest.raises(LabError, match="there is no scenario"):
            catalogue.load(name)


def test_two_runs_do_not_share_a_folder(tmp_path: Path) -> None:
    with alone_in(tmp_path):
        with pytest.raises(RunError, match="another run is writing to"), alone_in(tmp_path):
            pass
        words = f"from lab.machine.paths import *; taken_for_good(Path({str(tmp_path)!r}))"
        done = subprocess.run([sys.executable, "-c", words], capture_output=True, check=False)
        assert b"another run is writing to" in done.stderr
    with alone_in(tmp_path):
        pass  # it is free again
    words += f"; taken_for_good(Path({str(tmp_path)!r}))"
    assert subprocess.run([sys.executable, "-c", words], check=False).returncode == 0


@pytest.mark.slow
def test_a_run_writes_to_its_folder_and_not_where_links_lead(tmp_path: Path) -> None:
    """Whoever planted them there, for whatever is written."""
    precious, out = tmp_path / "precious", tmp_path / "out"
    precious.mkdir()
    words = ("run", "hello", "--engine", "sim", "--pcap", "--out")
    assert said(*words, str(tmp_path / "first"))[0] == 0
    names = {path.name for path in (tmp_path / "first").iterdir()}
    assert {"result.json", "flows.csv", "pcaps"} <= names
    planted = names | {"fabric.json", "fabric.p4info.txtpb"}  # which are there meanwhile
    out.mkdir()
    for name in planted:
        target = precious / name
        target.mkdir() if name == "pcaps" else target.write_text("mine")
        (out / name).symlink_to(target)
    assert said(*words, str(out))[0] == 0
    assert {path.name for path in out.iterdir() if not path.is_symlink()} == names
    assert not list((precious / "pcaps").iterdir())
    assert {(precious / name).read_text() for name in planted - {"pcaps"}} == {"mine"}


def test_a_run_that_is_refused_leaves_no_folder(tmp_path: Path) -> None:
    for out in (tmp_path / "new", tmp_path / "deep" / "er"):
        assert command("run", "bgp-clos", "--engine", "sim", "--out", str(out)).returncode == 1
        assert not out.exists()
    (tmp_path / "mine").mkdir()
    words = ("run", "bgp-clos", "--engine", "sim", "--out", str(tmp_path / "mine"))
    assert command(*words).returncode == 1
    assert (tmp_path / "mine").exists()


def test_of_two_at_once_one_is_refused(tmp_path: Path) -> None:
    """By the Python API, from threads of one process."""
    ended: list[str] = []

    def run() -> None:
        try:
            closlab.run("hello", out=tmp_path)
            ended.append("kept")
        except LabError as error:
            ended.append(error.message)

    with alone_in(tmp_path):
        other = threading.Thread(target=run)
        other.start()
        other.join()
    run()
    assert ended == [f"another run is writing to {tmp_path}", "kept"]


def test_a_run_of_nothing_is_none(tmp_path: Path) -> None:
    scenario = tmp_path / "mine.yaml"
    scenario.write_text(
        "name: mine\ntraffic: {kind: job, compute_ns: 1us, steps: 1,"
        " collective: {op: all-reduce, bytes: 1KB, ranks: [h1]}}\n"
    )
    with pytest.raises(LabError, match=r"0 messages|rank"):
        closlab.run(str(scenario), out=tmp_path / "out")
