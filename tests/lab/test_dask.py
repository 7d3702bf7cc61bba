"""Sweeps on a Dask cluster: the same as here, also when a worker is lost."""

import io
import json
import os
import signal
import threading
import time
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, cast

import pytest
from rich.console import Console

from lab.errors import MissingTool, RunError
from lab.machine import dask_cluster
from lab.progress import Stages
from lab.runs.sweep import Grid, Made, brought_home, lay_out, make, run_away, values_of
from lab.scenario import catalogue
from tests.lab.conftest import closlab

if TYPE_CHECKING:
    from distributed import Client

SMALL = ("traffic.bytes=100KB", "measures.series=false")


def grid(out: Path, seeds: str) -> Grid:
    out.mkdir()
    varied = [values_of(f"seed={seeds}")]
    return lay_out(lambda changes: catalogue.load("incast", changes), SMALL, varied, out)


def made(grid: Grid, cluster: str | None = None) -> Made:
    return make(grid, 2, Stages(Console(file=io.StringIO())), cluster)


def contents(folder: Path) -> dict[str, object]:
    """All a sweep keeps, without dates."""
    found: dict[str, object] = {}
    for path in sorted(folder.rglob("*")):
        name = str(path.relative_to(folder))
        if path.name == "result.json":
            result = json.loads(path.read_text())
            del result["provenance"]["date"]
            found[name] = result
        elif path.is_file() and name not in ("report.html", "sweep.json"):  # which have dates too
            found[name] = path.read_bytes()
    return found


def test_what_was_run_away_is_brought_home_as_if_it_had_been_run_here(tmp_path: Path) -> None:
    here = grid(tmp_path / "here", "3,4")
    made(here)
    there = grid(tmp_path / "there", "3,4")
    outcomes = list(brought_home((variant, run_away(variant)) for variant in there.variants))
    assert [isinstance(outcome, dict) for _, outcome in outcomes] == [True, True]
    kept = contents(tmp_path / "here")
    del kept["sweep.csv"]
    assert contents(tmp_path / "there") == kept


def test_what_failed_has_nothing_to_bring(tmp_path: Path) -> None:
    (variant, _) = grid(tmp_path / "a", "1,2").variants
    assert list(brought_home([(variant, "a worker was lost")])) == [(variant, "a worker was lost")]
    assert not variant.out.exists()


def test_without_dask_it_is_told_what_brings_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda _name: None)
    with pytest.raises(MissingTool, match="not installed"):
        dask_cluster.require_dask()


class Asked:
    """A client whose scheduler does something when it is asked."""

    def __init__(self, error: Exception) -> None:
        self.scheduler = self
        self._error = error

    def identity(self) -> None:
        """What it is asked."""

    def sync(self, *_: object, **__: object) -> None:
        """It is."""
        raise self._error


def test_a_scheduler_that_does_not_answer_is_waited_for_by_name() -> None:
    said = io.StringIO()
    stages = Stages(Console(file=said))
    workers = dask_cluster._Workers(cast("Client", Asked(TimeoutError())), "tcp://there:1", stages)
    assert workers.look() == 0
    assert said.getvalue() == "still waiting for the Dask scheduler at tcp://there:1, 5 s by now\n"


def test_a_worker_that_is_not_heard_of_any_more_is_waited_for_by_name(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Its scheduler believes for minutes that it is there. Another speaks, and is not named."""
    monkeypatch.setattr(dask_cluster, "_SILENT_S", 0.05)
    monkeypatch.setattr(dask_cluster, "_TELL_S", 0.0)
    said, asked = io.StringIO(), Asked(TimeoutError())
    workers = dask_cluster._Workers(cast("Client", asked), "tcp://it:1", Stages(Console(file=said)))
    for spoke in range(3):
        seen = {"tcp://dead:2": {"last_seen": 7.0}, "tcp://well:3": {"last_seen": float(spoke)}}
        monkeypatch.setattr(asked, "sync", lambda *_, seen=seen, **__: {"workers": seen})
        assert workers.look() == 2
        time.sleep(0.06)
    words = "still waiting for Dask's worker at tcp://dead:2 to be heard of, 0 s by now\n"
    assert said.getvalue() == 2 * words


def test_a_scheduler_that_is_lost_is_told_by_name() -> None:
    stages = Stages(Console(file=io.StringIO()))
    workers = dask_cluster._Workers(cast("Client", Asked(OSError())), "tcp://there:1", stages)
    with pytest.raises(RunError, match="the Dask scheduler at tcp://there:1 was lost"):
        workers.look()


def test_a_result_that_went_with_its_worker_is_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    distributed = pytest.importorskip("distributed")

    class Lost:
        """Done, and its result is gone, until another has made it again."""

        asked = 0

        def exception(self, **_: object) -> None:
            Lost.asked += 1
            if Lost.asked < 3:
                raise TimeoutError

        def result(self, **_: object) -> str:
            return "made again"

    class Here:
        """A client, and the workers as they are looked at."""

        status, looks = "closed", 0

        def submit(self, *_: object, **__: object) -> Lost:
            return Lost()

        def look(self) -> None:
            Here.looks += 1

    monkeypatch.setattr(distributed, "wait", lambda pending, *_: SimpleNamespace(done={*pending}))
    here, stages = Here(), Stages(Console(file=io.StringIO()))
    with stages("Running", 1) as stage:
        done = [*dask_cluster._done(here, str, [7], here, stage)]
    assert done == [(7, "made again")] and Here.looks == 2


def test_a_connection_that_is_not_answered_is_waited_for_by_name(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(dask_cluster, "_TELL_S", 0.01)
    said = io.StringIO()
    with dask_cluster._telling("the scheduler", Stages(Console(file=said))):
        while not said.getvalue():
            time.sleep(0.001)
    assert said.getvalue().startswith("still waiting for the scheduler, 0 s by now\n")


def test_a_cluster_that_does_not_start_is_one_message() -> None:
    with (
        pytest.raises(RunError, match="workers did not start here: Nanny"),
        dask_cluster._starting(),
    ):
        raise RuntimeError("Nanny failed to start.")


def test_mininets_runs_stay_here(tmp_path: Path) -> None:
    words = ("--vary", "seed=1,2", "--on", "dask", "--engine", "mininet", "--out", str(tmp_path))
    done = closlab("sweep", "incast", *words)
    assert done.returncode == 1 and "--on is for the simulator" in done.stderr, done.stderr


@pytest.mark.slow
def test_a_lost_worker_costs_only_what_it_was_at(tmp_path: Path) -> None:
    distributed = pytest.importorskip("distributed")
    made(grid(tmp_path / "here", "1..8"))
    with (
        distributed.LocalCluster(
            n_workers=2, threads_per_worker=1, dashboard_address=None
        ) as cluster,
        distributed.Client(cluster) as client,
    ):
        pids = client.run(os.getpid)
        assert len(pids) == 2
        away = grid(tmp_path / "away", "1..8")
        killed = threading.Event()

        def kill_one() -> None:
            while not any(variant.out.exists() for variant in away.variants):
                time.sleep(0.01)
            os.kill(next(iter(pids.values())), signal.SIGKILL)
            killed.set()

        threading.Thread(target=kill_one, daemon=True).start()
        found = made(away, cluster.scheduler_address)
    assert killed.is_set() and found.failures == () and found.is_whole
    assert contents(tmp_path / "away") == contents(tmp_path / "here")


@pytest.mark.slow
def test_a_scheduler_that_is_not_there_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("distributed")
    monkeypatch.setattr(dask_cluster, "_MEETS_S", 1.0)
    with pytest.raises(RunError, match=r"no Dask scheduler answers at tcp://127\.0\.0\.1:1"):
        made(grid(tmp_path / "a", "1,2"), "tcp://127.0.0.1:1")


@pytest.mark.slow
def test_a_scheduler_without_workers_is_waited_for_with_a_word_and_not_for_ever(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    distributed = pytest.importorskip("distributed")
    monkeypatch.setattr(dask_cluster, "_TELL_S", 0.3)
    monkeypatch.setattr(dask_cluster, "_WORKERS_S", 1.0)
    waits: list[str] = []
    monkeypatch.setattr(Stages, "still_waiting", lambda _self, what, _s: waits.append(what))
    with distributed.LocalCluster(n_workers=0, dashboard_address=None) as cluster:
        address = cluster.scheduler_address
        with pytest.raises(RunError, match="has had no workers for 1 s"):
            made(grid(tmp_path / "a", "1,2"), address)
        assert waits and all(address in what for what in waits)
