"""Sweeps: every combination once, in any number of processes, and a table of all."""

import csv
import io
import multiprocessing
import threading
import time
from dataclasses import replace
from itertools import product
from multiprocessing import resource_tracker
from pathlib import Path

import pytest
from rich.console import Console

from lab.engines import RunOptions
from lab.errors import RunError
from lab.machine import parallel
from lab.machine.parallel import in_parallel, own_semaphores
from lab.progress import Hear, Stages
from lab.runs.run import run_quietly
from lab.runs.sweep import sweep, values_of
from lab.scenario import catalogue
from lab.scenario.model import Scenario
from params.quantity import BYTES, PLAIN
from tests.lab.conftest import closlab
from tests.lab.pages import Page
from views.report.charts import Spread, lines
from views.report.sweep import Sweep, SweptRun, figures_of, read_sweep, write_sweep


def table(folder: Path) -> list[dict[str, str]]:
    with (folder / "sweep.csv").open() as file:
        return list(csv.DictReader(file))


def test_every_combination_is_run_and_says_the_same_in_any_number_of_processes(
    tmp_path: Path,
) -> None:
    words = ["sweep", "incast", "--set", "traffic.bytes=200KB", "--vary", "seed=1..2"]
    words += ["--vary", "pfc.enabled=true,false"]
    for processes in ("1", "2"):
        done = closlab(*words, "--processes", processes, "--out", str(tmp_path / processes))
        assert done.returncode == 0, done.stderr
    rows = table(tmp_path / "2")
    assert rows == table(tmp_path / "1")
    asked = [(row["seed"], row["pfc.enabled"]) for row in rows]
    assert asked == [("1", "true"), ("1", "false"), ("2", "true"), ("2", "false")]
    drops = {(row["seed"], row["pfc.enabled"]): int(row["drops.total"]) for row in rows}
    assert drops["1", "true"] == drops["2", "true"] == 0
    assert (tmp_path / "2" / "4" / "result.json").exists()
    page, foot = _parted(tmp_path / "2")
    assert page == _parted(tmp_path / "1")[0]
    assert "closlab sweep incast --set" in foot and "--vary seed=1..2" in foot
    assert "2 of 4 runs dropped packets." in page
    assert "the mean of all seeds" in page
    assert ">PFC off</text>" in page and "packets dropped" in page


def test_who_listens_no_more_leaves_neither_process_nor_thread() -> None:
    """A thread that is left ends beside Python, which may then complain of what it has closed."""
    threads, children = set(threading.enumerate()), set(multiprocessing.active_children())
    runs = in_parallel(time.sleep, [0, 1000], 2, Stages(Console(file=io.StringIO())))
    assert next(runs) == (0, None)
    runs.close()  # type: ignore[attr-defined] # it is a generator
    assert set(threading.enumerate()) == threads
    assert set(multiprocessing.active_children()) == children


def test_workers_that_cannot_be_had_are_told_of(monkeypatch: pytest.MonkeyPatch) -> None:
    """Python's tracker is killed before it is a program: what it is told breaks a pipe."""

    def broken(*_: object, **__: object) -> None:
        raise BrokenPipeError

    monkeypatch.setattr(parallel, "ProcessPoolExecutor", broken)
    with pytest.raises(RunError, match=r"resource_tracker.* was killed"):
        next(in_parallel(time.sleep, [0], 1, Stages(Console(file=io.StringIO()))))


def _parted(folder: Path) -> tuple[str, str]:
    """A sweep's page and its foot, which bears the date."""
    page, _, foot = (folder / "report.html").read_text().partition("<footer>")
    return page, foot


def swept(*runs: tuple[tuple[str, ...], float], keys: tuple[str, ...], asked: int = 0) -> Sweep:
    """A sweep of runs that took so long, and of which none dropped anything."""
    return Sweep(
        scenario="incast",
        about="About it.",
        fixed=("seed=2",),
        keys=keys,
        runs=tuple(
            SweptRun(number, values, {"duration_ns": took, "drops.total": 0})
            for number, (values, took) in enumerate(runs, 1)
        ),
        asked=asked or len(runs),
    )


def written(sweep: Sweep, folder: Path) -> str:
    """Its page, which is well formed and needs nothing else."""
    write_sweep(sweep, folder / "report.html")
    text = (folder / "report.html").read_text()
    page = Page()
    page.feed(text)
    assert page.open == [] and page.loads == []
    return text


@pytest.mark.parametrize(
    "keys", [("seed",), ("seed", "traffic.bytes"), ("seed", "pfc.enabled")], ids=len
)
def test_figures_of_a_sweep_are_those_of_its_page(keys: tuple[str, ...], tmp_path: Path) -> None:
    values = {"traffic.bytes": ("1KB", "2KB", "4KB"), "pfc.enabled": ("true", "false")}
    asked = list(product(("1", "2", "3"), *(values[key] for key in keys[1:])))
    runs = [(each, 1000.0 * (at + 1)) for at, each in enumerate(asked)]
    write_sweep(swept(*runs, keys=keys), tmp_path / "report.html")
    found = figures_of(read_sweep(tmp_path))
    drawing = found["duration_ns"][1]()
    assert drawing is not None and drawing.render() in (tmp_path / "report.html").read_text()
    texts = [shape.text for shape in drawing.shapes]
    assert "whole run (µs)" in texts  # an axis, with its unit
    if len(keys) == 2:
        assert "least to most of all seeds" in texts
    if "traffic.bytes" in keys:
        assert "traffic.bytes (KB)" in texts and "mean" in texts
    done = closlab("figure", str(tmp_path), "duration_ns", "-o", str(tmp_path / "f.pdf"))
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "f.pdf").read_bytes().startswith(b"%PDF")
    (tmp_path / "sweep.json").write_text("{")
    assert "sweep.json cannot be read" in closlab("figure", str(tmp_path)).stderr


def test_values_that_are_numbers_make_an_axis(tmp_path: Path) -> None:
    sizes = [(("100KB", "ecmp"), 10.0), (("1MB", "ecmp"), 20.0), (("2MB", "ecmp"), 50.0)]
    page = written(swept(*sizes, keys=("traffic.bytes", "lb.policy")), tmp_path)
    assert ">traffic.bytes (MB)</text>" in page or ">traffic.bytes (KB)</text>" in page
    assert ">policy=ecmp</text>" in page
    assert "Here with seed=2." in page
    names = [(("ecmp",), 10.0), (("spray",), 20.0), (("dlb",), 30.0)]
    assert ">policy=spray</text>" in written(swept(*names, keys=("lb.policy",)), tmp_path)


def test_what_no_run_can_pass_is_drawn_beside_the_runs(tmp_path: Path) -> None:
    found = swept(*(((f"{n}MB",), 10.0 * n) for n in (1, 2, 3)), keys=("traffic.bytes",))
    assert "the bound" not in written(found, tmp_path)
    bounded = replace(found, bounds={"duration_ns": {"1MB": 20.0, "3MB": 40.0, "9MB": 60.0}})
    assert "the bound" in written(bounded, tmp_path)
    assert read_sweep(tmp_path).bounds == bounded.bounds


def test_a_sweep_that_is_not_whole_says_so(tmp_path: Path) -> None:
    page = written(swept((("1",), 10.0), keys=("seed",), asked=40), tmp_path)
    assert "Only 1 of 40 runs are here. No run dropped a packet." in page


@pytest.mark.parametrize(
    ("vary", "complaint"),
    [
        (("--vary", "pfc.enabld=true,false"), "did you mean 'pfc.enabled'"),
        (("--vary", "seed"), "write it as KEY=VALUE,VALUE"),
        (("--vary", "seed=9..1"), "no range"),
        ((), "nothing to vary"),
    ],
)
def test_what_makes_no_sense_is_refused_before_anything_runs(
    tmp_path: Path, vary: tuple[str, ...], complaint: str
) -> None:
    done = closlab("sweep", "incast", *vary, "--out", str(tmp_path))
    assert done.returncode == 1
    assert complaint in done.stderr
    assert list(tmp_path.iterdir()) == []


def test_ranges_and_lists() -> None:
    assert values_of("seed=2..4") == ["seed=2", "seed=3", "seed=4"]
    assert values_of("lb.policy=ecmp,spray") == ["lb.policy=ecmp", "lb.policy=spray"]
    with pytest.raises(RunError):
        values_of("=1,2")


def test_the_spread_of_seeds_is_drawn_and_its_confidence_is_students() -> None:
    """Against a table of Student's t made elsewhere: 5 values, 4 degrees of freedom, 2.776."""
    values = [3.0, 5.0, 4.0, 6.0, 7.0]
    spread = Spread.of(values)
    assert (spread.mean, spread.least, spread.most) == (5, 3, 7)
    assert spread.within == pytest.approx(2.776 * 2.5**0.5 / 5**0.5, rel=1e-3)
    assert Spread.of([4.0]).within == 0
    many = Spread.of([float(at % 2) for at in range(42)])  # 41 degrees of freedom: 2.0195
    assert many.within == pytest.approx(2.0195 * (42 / 41 * 0.25) ** 0.5 / 42**0.5, rel=0.005)
    lines_ = lines("t", ("x", PLAIN), ("y", PLAIN), {"a": {1.0: 5.0}}, spreads={"a": {1.0: spread}})
    tall = [
        abs(float(str(shape.style["y2"])) - float(str(shape.style["y1"])))
        for shape in lines_.shapes
        if shape.name == "line" and shape.style["stroke"] == "series0"
    ][:2]
    assert tall[0] / tall[1] == pytest.approx(4 / (2 * spread.within), rel=0.02)


@pytest.mark.parametrize(
    ("sizes", "sizes_text"),
    [
        ((4e6, 64e6, 1e9), ["4 MB", "64 MB", "1 GB", "bytes"]),
        ((4e6, 64e6, 512e6), ["4", "64", "512", "bytes (MB)"]),
    ],
)
def test_an_axis_over_several_units_names_each_and_one_upwards_ends_where_it_is_round(
    sizes: tuple[float, ...], sizes_text: list[str]
) -> None:
    points = dict(zip(sizes, (95.0, 277.0, 392.0), strict=True))
    drawing = lines("t", ("bytes", BYTES), ("y", PLAIN), {"a": points}, is_log=True)
    texts = [shape.text for shape in drawing.shapes if shape.text]
    assert texts == ["0", "100", "200", "300", "400", "y", *sizes_text, "a"]


def test_a_sweep_runs_on_mininet_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What is run is said by another test; here that every variant is, and is kept and drawn."""
    asked = []

    def child(scenario: Scenario, options: RunOptions, _hear: Hear) -> int:
        asked.append((scenario, options.engine))
        run_quietly(scenario, replace(options, engine="sim"), Console(file=io.StringIO()))
        return 0

    monkeypatch.setattr("lab.runs.sweep.run_in_child", child)
    console = Console(file=io.StringIO())
    changes = ("traffic.bytes=100KB",)
    assert sweep("incast", changes, ("seed=1..2",), tmp_path, None, console, "mininet") == 0
    assert asked == [
        (catalogue.load("incast", (*changes, f"seed={seed}")), "mininet") for seed in (1, 2)
    ]
    text = (tmp_path / "report.html").read_text()
    assert "on Mininet." in text and "closlab sweep incast --engine mininet" in text
    assert len((tmp_path / "sweep.csv").read_text().splitlines()) == 3


def test_a_semaphore_that_no_tracker_knows_is_removed(monkeypatch: pytest.MonkeyPatch) -> None:
    """One that was made just as Python's tracker was killed."""

    def killed(*_: object) -> None:
        raise BrokenPipeError

    monkeypatch.setattr(resource_tracker, "register", killed)
    context = multiprocessing.get_context("spawn")
    before = {*parallel._SEMAPHORES.glob("sem.*")}
    with pytest.raises(BrokenPipeError):
        context.Lock()
    left = {*parallel._SEMAPHORES.glob("sem.mp-*")} - before
    assert len(left) == 1  # which is what Python leaves
    left.pop().unlink()
    with pytest.raises(BrokenPipeError), own_semaphores():
        context.Lock()
    assert not {*parallel._SEMAPHORES.glob("sem.closlab-*")} - before
