"""The Python API: the command's own results, and nothing left behind however a run ends."""

import asyncio
import enum
import gc
import html
import json
import multiprocessing
import os
import random
import re
import signal
import subprocess
import sys
import threading
import time
import traceback
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
import yaml

import closlab
from lab.api import change_of
from lab.machine.paths import SCENARIOS
from lab.scenario import catalogue
from lab.scenario.model import Scenario
from tests.lab.conftest import closlab as command
from tests.waiting import LONG_S

LONG = {"traffic.bytes": "50MB"}  # many slices of the simulator, and minutes of Mininet's time
LITTLE = {"traffic.bytes": "100KB"}


@pytest.fixture(scope="module")
def run() -> closlab.Run:
    return closlab.run("incast", set=LITTLE)


# --- what comes of it ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "changes"),
    [
        (
            "incast",
            {
                "pfc.enabled": False,
                "transport.timeout": 10,
                "traffic.bytes": "200KB",
                "measures.pcap": ["leaf1-spine1"],
            },
        ),
        pytest.param("hash-collision", {"lb.policy": "spray", "seed": 5}, marks=pytest.mark.slow),
        pytest.param("lossy-link", {"int.share": 0.5}, marks=pytest.mark.slow),
    ],
)
def test_results_are_the_bytes_of_the_command(
    name: str, changes: dict[str, object], tmp_path: Path
) -> None:
    words = [w for key, value in changes.items() for w in ("--set", f"{key}={json.dumps(value)}")]
    done = command("run", name, "--engine", "sim", "--out", str(tmp_path / "command"), *words)
    assert done.returncode == 0, done.stderr
    closlab.run(name, set=changes, out=tmp_path / "api")
    kept = {path.relative_to(tmp_path / "api") for path in (tmp_path / "api").rglob("*.*")}
    assert {Path("result.json"), Path("flows.csv"), Path("timeseries.csv")} <= kept
    for file in kept:
        ours, theirs = ((tmp_path / who / file).read_bytes() for who in ("api", "command"))
        if file.name == "result.json":  # all but the second in which it was made
            ours, theirs = (re.sub(rb'"date": "[^"]*"', b"", text) for text in (ours, theirs))
        assert ours == theirs, file


def test_a_run_is_what_its_files_say(run: closlab.Run) -> None:
    flows = closlab.records(run.flows)
    assert len(flows) == run.result.flows.count == 7
    assert max(flow["fct_ns"] for flow in flows) == run.result.flows.fct_ns.max
    series = closlab.records(run.timeseries)
    assert max(note["queue_bytes"] for note in series) <= max(
        link.max_queue_bytes or 0 for link in run.result.links
    )
    assert run.code == 0
    assert closlab.read(run.folder).result == run.result
    assert repr(run).startswith("<closlab.Run of incast on sim: 7 of 7 messages in ")


def test_a_notebook_shows_the_report_in_a_frame_of_its_own(run: closlab.Run) -> None:
    shown = run._repr_html_()
    found = re.fullmatch(
        r'<iframe srcdoc="([^"]*)" sandbox="allow-scripts" [^<>]*></iframe>', shown
    )
    assert found is not None
    assert html.unescape(found[1]) == run.report().read_text()


def test_a_notebook_has_a_loop_that_runs_already() -> None:
    async def cell() -> closlab.Run:
        return closlab.run("hello", set={"traffic.bytes": "1KB"})

    assert asyncio.run(cell()).result.flows.completed == 56


def test_tables_are_data_frames_where_pandas_is(
    run: closlab.Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    class DataFrame:
        def __init__(self, rows: list[Any], columns: list[str]) -> None:
            self.rows, self.columns = rows, columns

    plain = closlab.records(run.flows)
    pandas = ModuleType("pandas")
    pandas.DataFrame = DataFrame  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "pandas", pandas)
    frame = closlab.read(run.folder).flows
    assert isinstance(frame, DataFrame)
    assert [dict(zip(frame.columns, row, strict=True)) for row in frame.rows] == plain


# --- what is asked for ---------------------------------------------------------------------------


class Word(enum.Enum):
    """What somebody may have made of a key's values."""

    SPRAY = "spray"


def some_value(chance: random.Random, depth: int = 0) -> object:
    """Any value of Python that a key could have."""
    if depth < 3 and chance.random() < 0.3:
        inside = [some_value(chance, depth + 1) for _ in range(chance.randrange(4))]
        return inside if chance.random() < 0.5 else {f"k{at}": v for at, v in enumerate(inside)}
    letters = "ab:#'\"{}[],&*!|>%@` \t\n\\-~0189.eE+_\N{MICRO SIGN}"
    return chance.choice(
        [
            chance.randrange(-(10**12), 10**12),
            chance.uniform(-1, 1) * 10 ** chance.randrange(-20, 20),
            chance.random() < 0.5,
            None,
            "".join(chance.choice(letters) for _ in range(chance.randrange(150))),
            chance.choice(["true", "null", "1e3", "50us", "1MB", "~", "yes", "0x1f", "..."]),
        ]
    )


@pytest.mark.parametrize("seed", range(20))
def test_any_value_is_understood_as_it_was_meant(seed: int) -> None:
    chance = random.Random(seed)
    for _ in range(20):
        value = some_value(chance)
        key, _, text = change_of("traffic.bytes", value).partition("=")
        assert (key, yaml.safe_load(text)) == ("traffic.bytes", value), repr(value)


def test_values_of_other_kinds_are_understood(tmp_path: Path) -> None:
    def understood(value: object) -> object:
        return yaml.safe_load(change_of("key", value).partition("=")[2])

    class Number:  # as numpy's are
        def tolist(self) -> int:
            return 7

    assert understood(Word.SPRAY) == "spray"
    assert understood(range(3)) == understood((0, 1, 2)) == [0, 1, 2]
    assert understood(tmp_path) == str(tmp_path)
    assert understood({"rate": Number()}) == {"rate": 7}


def test_scenarios_stay_what_they_are(tmp_path: Path) -> None:
    """By name, by file, by their keys, as themselves, and on the way to another process."""
    for name in closlab.scenarios():
        found = closlab.scenario(name)
        assert found == catalogue.load(name)
        assert closlab.scenario(found) == found
        assert Scenario.model_validate(found.model_dump(mode="json")) == found
    keys = yaml.safe_load((SCENARIOS / "hello.yaml").read_text())
    file = tmp_path / "mine.yaml"
    file.write_text(yaml.safe_dump(keys))
    changes = {"buffer.profile": "tomahawk-like", "link.delay_ns": "2us"}
    wanted = catalogue.load("hello", ("buffer.profile=tomahawk-like", "link.delay_ns=2000"))
    for said in ("hello", file, keys, catalogue.load("hello")):
        assert closlab.scenario(said, set=changes) == wanted
    assert closlab.scenario(**keys) == catalogue.load("hello")


def test_what_is_wrong_is_said_with_its_cure(tmp_path: Path) -> None:
    with pytest.raises(closlab.ScenarioError, match="there is no scenario 'incats'") as found:
        closlab.run("incats")
    assert found.value.cure is not None and "incast" in found.value.cure
    text = "".join(traceback.format_exception(found.value))
    assert found.value.cure in text
    for wrong, kind, said in (
        ({"engine": "ns3"}, closlab.RunError, "there is no engine 'ns3'"),
        ({"switch": "bmv2"}, closlab.RunError, "the simulator's switches are our own"),
        ({"p4": tmp_path}, closlab.LabError, "fabric.p4"),
        ({"set": {"link.rat_gbps": 5}}, closlab.ScenarioError, "link.rate_gbps"),
        ({"out": tmp_path / "file" / "x"}, closlab.RunError, "cannot be written"),
    ):
        (tmp_path / "file").touch()
        with pytest.raises(kind, match=said):
            closlab.run("incast", **wrong)
    with pytest.raises(closlab.LabError, match="no run in"):
        closlab.read(tmp_path)
    with pytest.raises(closlab.LabError, match="nothing to compare with"):
        closlab.compare()
    with pytest.raises(closlab.ScenarioError, match="a name, a file or its keys"):
        closlab.scenario()


# --- how it ends ---------------------------------------------------------------------------------


def test_a_comparison_never_shows_the_report_of_another(run: closlab.Run, tmp_path: Path) -> None:
    other = closlab.run("incast", set={**LITTLE, "pfc.enabled": False, "transport.timeout": 10})
    before = closlab.compare(run, run, out=tmp_path).report().read_text()
    after = closlab.compare(run, other, out=tmp_path).report().read_text()
    assert "PFC off" in after and "PFC off" not in before


def test_a_run_that_is_cancelled_has_what_was_measured() -> None:
    enough = threading.Event()
    stages = []

    def hear(now: closlab.Progress) -> None:
        stages.append(now.stage)
        if now.stage == "Simulating" and now.note:  # a slice is over
            enough.set()

    with pytest.raises(closlab.Cancelled) as found:
        closlab.run("incast", set=LONG, progress=hear, cancel=enough)
    assert stages[-1] == "Simulating"
    run = found.value.run
    assert run is not None and run.result.ended == "interrupted"
    assert 0 <= run.result.flows.completed < run.result.flows.count == 7
    assert run.code == 130
    folder = run.folder
    del run, found
    gc.collect()
    assert not folder.exists()


def test_another_thread_cancels() -> None:
    enough, ended = threading.Event(), []
    under_way = threading.Event()

    def work() -> None:
        try:
            closlab.run("incast", set=LONG, progress=lambda _: under_way.set(), cancel=enough)
        except closlab.Cancelled as cancelled:
            ended.append(cancelled)

    worker = threading.Thread(target=work)
    worker.start()
    assert under_way.wait(LONG_S)
    enough.set()
    worker.join(LONG_S)
    assert len(ended) == 1
    with pytest.raises(closlab.Cancelled):  # before it began
        closlab.run("incast", cancel=enough)


def test_an_interrupt_is_one(tmp_path: Path) -> None:
    def hear(now: closlab.Progress) -> None:
        if now.stage == "Simulating" and now.note and not now.is_over:
            os.kill(os.getpid(), signal.SIGINT)

    with pytest.raises(KeyboardInterrupt):
        closlab.run("incast", set=LONG, progress=hear, out=tmp_path)
    assert closlab.read(tmp_path).result.ended == "interrupted"


def test_what_the_callers_own_function_raises_comes_through() -> None:
    def hear(now: closlab.Progress) -> None:
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        closlab.run("incast", progress=hear)


# --- many ----------------------------------------------------------------------------------------


def test_a_script_needs_no_guard_for_a_sweep(tmp_path: Path) -> None:
    script = tmp_path / "script.py"
    script.write_text(
        "import closlab\n"
        "print('once')\n"
        "vary = {'traffic.bytes': ['50KB'], 'pfc.enabled': [True]}\n"
        "found = closlab.sweep('incast', vary)\n"
        "for row in found.table:\n"
        "    print(row['run'], row['traffic.bytes'], row['pfc.enabled'], row['roce.data_bytes'])\n"
    )
    done = subprocess.run(
        [sys.executable, script], capture_output=True, text=True, check=False, cwd=tmp_path
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == ["once", "1 50000 True 350000"]
    assert [path.name for path in tmp_path.iterdir()] == ["script.py"]


def test_a_sweep_is_its_runs_and_ends_when_it_is_told() -> None:
    enough = threading.Event()

    def hear(now: closlab.Progress) -> None:
        if now.done == 1:
            enough.set()

    strangers = set(multiprocessing.active_children())  # of what else this process tests
    with pytest.raises(closlab.Cancelled, match="1 of 4 runs"):
        closlab.sweep(
            closlab.scenario("incast", set=LITTLE),
            {"seed": range(1, 5)},
            processes=1,
            progress=hear,
            cancel=enough,
        )
    until = time.monotonic() + LONG_S  # to join it would be to race with the pool, which does
    while (left := set(multiprocessing.active_children()) - strangers) and time.monotonic() < until:
        time.sleep(0.05)
    assert not left
    with pytest.raises(closlab.ScenarioError, match=r"lb\.policy"):
        closlab.sweep("incast", {"lb.policy": ["ecmp", "best"]})
    with pytest.raises(closlab.RunError, match="nothing to vary"):
        closlab.sweep("incast", {"seed": []})


# --- on Mininet ----------------------------------------------------------------------------------

_DIES = """
import json, os, signal, sys
import closlab
from lab.machine.paths import running_labs

def hear(now):
    if now.stage == "Starting switches":
        for path in running_labs().glob("*/sandbox.json"):
            print(json.loads(path.read_text())["pid"], flush=True)
        os.kill(os.getpid(), signal.SIGKILL)

closlab.run("incast", engine="mininet", progress=hear)
"""


def labs(own_cache: Path) -> list[int]:
    """The processes at the head of labs that left word of themselves."""
    return [json.loads(path.read_text())["pid"] for path in own_cache.glob("*/sandbox.json")]


@pytest.mark.slow
@pytest.mark.mininet
def test_an_emulated_run_ends_when_it_is_told(own_cache: Path) -> None:
    enough, heads = threading.Event(), []

    def hear(now: closlab.Progress) -> None:
        if now.stage == "Starting switches":
            heads.extend(labs(own_cache))
            enough.set()

    with pytest.raises(closlab.Cancelled):
        closlab.run("incast", engine="mininet", progress=hear, cancel=enough)
    assert heads and not any(Path(f"/proc/{head}").exists() for head in heads)
    assert labs(own_cache) == []


@pytest.mark.slow
@pytest.mark.mininet
@pytest.mark.parametrize("number", [signal.SIGHUP, signal.SIGTERM, signal.SIGINT])
def test_who_did_not_interrupt_a_run_is_told_that_somebody_did(
    own_cache: Path, number: signal.Signals
) -> None:
    """As a terminal that is closed does to all who are in it."""

    def hear(now: closlab.Progress) -> None:
        if now.stage == "Starting switches" and not now.is_over:
            for head in labs(own_cache):
                os.kill(head, number)

    with pytest.raises(closlab.RunError, match=r"somebody else|was killed|ended"):
        closlab.run("incast", engine="mininet", progress=hear)


@pytest.mark.slow
@pytest.mark.mininet
def test_a_lab_dies_with_the_script_that_wants_it(own_cache: Path) -> None:
    """Who sees to its folder may have taken its word back by then: the script tells whom it had."""
    script = subprocess.Popen([sys.executable, "-c", _DIES], stdout=subprocess.PIPE, text=True)
    said, _ = script.communicate(timeout=LONG_S)
    assert script.returncode == -signal.SIGKILL
    heads = [int(line) for line in said.split()]
    assert heads and own_cache
    until = time.monotonic() + LONG_S
    while any(Path(f"/proc/{head}").exists() for head in heads) and time.monotonic() < until:
        time.sleep(0.1)
    assert not any(Path(f"/proc/{head}").exists() for head in heads)


@pytest.mark.slow
@pytest.mark.mininet
def test_what_goes_wrong_in_the_sandbox_is_said(own_cache: Path, tmp_path: Path) -> None:
    (tmp_path / "fabric.p4").write_text("control")
    with pytest.raises(closlab.LabError, match=r"fabric.p4 does not compile"):
        closlab.run("hello", engine="mininet", p4=tmp_path)


def test_a_script_that_is_killed_leaves_no_folder(tmp_path: Path) -> None:
    script = (
        "import closlab, os, signal\n"
        f"run = closlab.run('incast', set={LITTLE})\n"
        "print(run.folder, flush=True)\n"
        "os.kill(os.getpid(), signal.SIGKILL)\n"
    )
    environment = os.environ | {"TMPDIR": str(tmp_path)}
    words = [sys.executable, "-c", script]
    done = subprocess.run(words, capture_output=True, text=True, check=False, env=environment)
    assert done.returncode == -signal.SIGKILL, done.stderr
    assert Path(done.stdout.strip()).parent == tmp_path
    deadline = time.monotonic() + LONG_S
    while any(tmp_path.iterdir()):
        assert time.monotonic() < deadline, [*tmp_path.iterdir()]
        time.sleep(0.05)
