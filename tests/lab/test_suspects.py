"""The story names who suffers and why; of several runs it gives a verdict that figures prove."""

import json
import re
from pathlib import Path
from shutil import copytree

import pytest

from params.quantity import size
from tests.lab.simulated import simulate
from views.report import KeptRun, read_run
from views.report.compare import Comparison
from views.report.messages import messages
from views.report.plots import Limits, balance, drops, queues, uplinks
from views.report.suspects import circle, dead_cables, straggler, victims
from views.report.svg import WIDTH
from views.report.words import comparison, story

SMALL = ("traffic.bytes=400KB", "buffer.bytes=600KB")


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> dict[str, KeptRun]:
    folder = tmp_path_factory.mktemp("suspects")
    wanted = {
        "deadlock": ("deadlock",),
        "victim": ("victim-flow",),
        "straggler": ("straggler", "traffic.steps=1"),
        "even": ("straggler", "traffic.steps=1", "traffic.stragglers=[]"),
        "collision": ("hash-collision",),
        "paused": ("incast", *SMALL),
        "lossy": ("incast", *SMALL, "pfc.enabled=false", "transport.timeout=8"),
    }
    return {
        name: read_run(simulate(scenario, *changes, out=folder / name).out)
        for name, (scenario, *changes) in wanted.items()
    }


def test_the_circle_of_a_deadlock_is_named(runs: dict[str, KeptRun]) -> None:
    ring = circle(runs["deadlock"])
    assert ring[0] == ring[-1]
    assert set(ring) == {"spine1", "spine2", "leaf2", "leaf4"}  # as its scenario explains
    assert f"It was a deadlock: {' waited for '.join(ring)}" in story(runs["deadlock"])
    assert all(not circle(run) for name, run in runs.items() if name != "deadlock")


def test_dead_cables_are_named_and_no_unevenness(runs: dict[str, KeptRun]) -> None:
    run = runs["deadlock"]
    assert dead_cables(run) == {"leaf1-spine2": (0, None), "leaf3-spine1": (0, None)}
    assert "The cables leaf1-spine2 and leaf3-spine1 were dead throughout" in story(run)
    assert {switch.name for switch in uplinks(run)} == {"leaf2", "leaf4"}


def test_acknowledgements_are_not_drawn_like_megabytes(runs: dict[str, KeptRun]) -> None:
    """The receiver's leaf sends up nothing else."""
    run = runs["paused"]
    assert "leaf1" not in {switch.name for switch in uplinks(run)}
    drawing = balance(run)
    assert drawing is not None and "leaf1<" not in drawing.render()


def test_the_victim_is_named_and_nobody_else(runs: dict[str, KeptRun]) -> None:
    assert [(flow.src, flow.dst) for flow in victims(runs["victim"])] == [("h8", "h2")]
    assert "The message from h8 to h2 was a victim" in story(runs["victim"])
    assert all(not victims(run) for name, run in runs.items() if name != "victim")


def test_the_straggler_is_named(runs: dict[str, KeptRun]) -> None:
    found = straggler(runs["straggler"])
    assert found is not None and found[0] == "h6" and found[1] == pytest.approx(2, rel=0.01)
    assert "h6 was the straggler: it computed 2 times" in story(runs["straggler"])
    assert straggler(runs["even"]) is None and "straggler" not in story(runs["even"])


def test_the_verdict_is_that_of_the_figures(runs: dict[str, KeptRun]) -> None:
    names = "lossy", "paused"
    said = comparison(names, [runs[name] for name in names])
    lossy, paused = (runs[name].result for name in names)
    assert paused.duration_ns < lossy.duration_ns
    assert said.startswith("Verdict: paused was done soonest")
    times = lossy.duration_ns / paused.duration_ns
    assert times > 2 and not lossy.flows.failed and f"lossy took {times:.3g} times as long" in said
    assert f"with {lossy.drops.total:,} packets dropped and no pause frames." in said


def test_side_by_side_the_same_length_means_the_same(runs: dict[str, KeptRun]) -> None:
    pair = [runs["lossy"], runs["paused"]]
    limits = Limits.of(pair)
    longest, broken = [], []
    for run in pair:
        drawing = messages(run, limits.end_ns)
        assert drawing is not None
        broken.append("Broken off at the right" in drawing.render())
        boxes = re.findall(r"M([\d.]+) [\d.]+h([\d.]+)v", drawing.render())
        longest.append(max(float(x) + float(width) for x, width in boxes) - 50)
    ends = [max((f.start_ns or 0) + (f.fct_ns or 0) for f in run.flows) for run in pair]
    assert ends[0] > 4 * ends[1]
    wide = WIDTH - 8 - 50
    assert broken == [True, False] and longest[0] == pytest.approx(wide, abs=0.7)
    assert longest[1] / wide == pytest.approx(ends[1] / limits.end_ns, rel=0.05)
    drawings = [queues(run, limits) for run in pair]
    assert drawings[0] is not None and drawings[1] is not None
    assert "cut at " in drawings[0].render() and "cut at " not in drawings[1].render()
    for drawing in drawings:
        beyond = re.findall(r"[ML]([\d.]+) ", drawing.render())
        assert max(map(float, beyond)) <= 453


def test_drops_side_by_side_have_one_scale(runs: dict[str, KeptRun], tmp_path: Path) -> None:
    copytree(runs["lossy"].folder, tmp_path / "less")
    path = tmp_path / "less" / "result.json"
    content = json.loads(path.read_text())
    content["drops"]["by_reason"] = {"buffer_full": content["drops"]["total"] // 4}
    path.write_text(json.dumps(content))
    pair = [runs["lossy"], read_run(tmp_path / "less")]
    limits = Limits.of(pair)
    widths = []
    for run in pair:
        drawing = drops(run, limits)
        assert drawing is not None
        widths.append(float(re.findall(r'<rect [^>]*width="([\d.]+)"', drawing.render())[0]))
    assert widths[0] / widths[1] == pytest.approx(4, rel=0.02)


def test_what_is_the_same_has_no_differences_in_its_verdict(runs: dict[str, KeptRun]) -> None:
    folder = runs["paused"].folder
    said = comparison(("A", "B"), Comparison.of([folder, folder]).runs)
    assert "B took as long." in said


def test_a_chart_tells_the_longest_queue_as_the_table_does(runs: dict[str, KeptRun]) -> None:
    """Also where it was longest between two notes."""
    for name in ("paused", "victim", "collision"):
        run = runs[name]
        drawing = queues(run, Limits.of([run]))
        assert drawing is not None
        peaks = re.findall(r">peak ([^<]*)<", drawing.render())
        names = re.findall(r'class="strong">([^<]*&gt;[^<]*)<', drawing.render())
        longest = {use.name: use.max_queue_bytes or 0 for use in run.result.links}
        assert peaks == [size(longest[each.replace("&gt;", ">")]) for each in names] and peaks
