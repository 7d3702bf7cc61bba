"""Reports: sound pages that say what the figures say, the same every time."""

import json
import math
import re
import xml.etree.ElementTree as ET
from collections.abc import Iterable
from dataclasses import replace
from itertools import combinations, pairwise
from pathlib import Path
from shutil import copytree

import pytest

from lab.errors import LabError
from lab.machine.paths import ROOT
from lab.results.cluster import fragmentation
from lab.results.outcome import Note, PauseNote, Stock
from lab.results.result import Result
from params.quantity import size
from tests.lab.conftest import closlab
from tests.lab.pages import Page
from tests.lab.simulated import simulate
from views.report import compare, read_run, write_report
from views.report.buffers import buffer
from views.report.climbing import climbing
from views.report.cluster import cluster
from views.report.compare import Comparison, write_comparison
from views.report.figures import PICTURES, write_figure
from views.report.palette import DAY, NIGHT, SERIES
from views.report.plots import Limits, queues
from views.report.standing import paused
from views.report.svg import WIDTH, linear, spread, width_of
from views.report.topology import CLASSES
from views.report.words import story

SMALL = ("traffic.bytes=400KB", "buffer.bytes=600KB")


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """An incast three times, an all-reduce of a job, and a fabric of three tiers."""
    folder = tmp_path_factory.mktemp("runs")
    wanted = {
        "lossy": ("incast", *SMALL, "pfc.enabled=false"),
        "paused": ("incast", *SMALL),
        "marked": ("incast", *SMALL, "ecn.enabled=true", "ecn.kmin=20KB", "transport.cc=dcqcn"),
        "telemetry": ("incast", *SMALL, "int.share=0.2"),
        "ring": ("allreduce-ring", "traffic.bytes=1MB"),
        "tiers": ("alltoall", "topology={kind: fat-tree, k: 4}", "traffic.bytes=200KB"),
    }
    for name, (scenario, *changes) in wanted.items():
        simulate(scenario, *changes, out=folder / name)
        write_report(folder / name)
    return {name: folder / name for name in wanted}


def test_a_report_needs_nothing_else_and_is_well_formed(runs: dict[str, Path]) -> None:
    for folder in runs.values():
        text = (folder / "report.html").read_text()
        page = Page()
        page.feed(text)
        assert page.open == []
        assert page.loads == []
        assert "url(" not in text and "@import" not in text
        assert len(text) < 200_000


def test_nothing_is_drawn_beyond_the_paper_and_every_axis_has_its_unit(
    runs: dict[str, Path],
) -> None:
    for name, folder in runs.items():
        drawings = re.findall(r"<svg .*?</svg>", (folder / "report.html").read_text(), re.S)
        assert len(drawings) >= 5
        for drawing in map(ET.fromstring, drawings):
            width, height = map(float, drawing.attrib["viewBox"].split()[2:])
            for text in drawing.iter("text"):
                x, y = float(text.attrib["x"]), float(text.attrib["y"])
                wide = width_of(text.text or "")
                anchor = text.attrib.get("text-anchor", "start")
                left = x - {"start": 0, "middle": wide / 2, "end": wide}[anchor]
                assert left >= -6 and left + wide <= width + 12, (name, text.text)
                assert 0 <= y <= height, (name, text.text)
            labels = [text.text or "" for text in drawing.iter("text")]
            is_fabric = "busy:" in labels  # whose hosts may be told apart by numbers
            if not is_fabric and any(re.fullmatch(r"[\d,.]+", label) for label in labels):
                assert any(re.search(r"\((ns|µs|ms|s|%)\)$", label) for label in labels), labels


def test_the_words_are_those_of_the_figures(runs: dict[str, Path]) -> None:
    lossy, paused, marked = (read_run(runs[name]) for name in ("lossy", "paused", "marked"))
    drops = lossy.result.drops.total
    assert drops > 0
    assert f"{drops:,} packets were dropped, all for one reason: no room" in story(lossy)
    assert "pause frame" not in story(lossy)
    assert "No packet was dropped." in story(paused)
    assert f"{paused.result.pfc.xoff_frames:,} pause frames" in story(paused)
    assert "marked" not in story(paused)
    assert f"{marked.result.ecn.marked_packets:,} packets were marked by ECN" in story(marked)
    telemetry = read_run(runs["telemetry"]).result
    assert telemetry.telemetry is not None
    assert "Packets that carried telemetry stayed" in story(read_run(runs["telemetry"]))
    assert "Telemetry by hop" in (runs["telemetry"] / "report.html").read_text()
    assert f"answered by {marked.result.roce.cnps:,} notification" in story(marked)


def test_the_same_run_makes_the_same_bytes(runs: dict[str, Path], tmp_path: Path) -> None:
    again = simulate("incast", *SMALL, out=tmp_path).out
    write_report(again)
    for name in ("timeseries.csv", "flows.csv"):
        assert (again / name).read_bytes() == (runs["paused"] / name).read_bytes()
    one, other = (
        (folder / "report.html").read_text().partition("<footer>")  # whose date tells them apart
        for folder in (again, runs["paused"])
    )
    assert one[0] == other[0] and one[1]
    report = (again / "report.html").read_bytes()
    write_report(again)
    assert (again / "report.html").read_bytes() == report


def test_what_was_noted_over_time_ends_in_what_was_counted(runs: dict[str, Path]) -> None:
    """The last note of each link comes at most a microsecond before the end."""
    lossy, paused, marked = (read_run(runs[name]) for name in ("lossy", "paused", "marked"))
    assert max(note.queue_bytes for note in paused.notes) > 100_000
    dropped = {note.link.partition(">")[0]: note.dropped for note in lossy.notes if note.dropped}
    assert dropped == lossy.result.drops.by_switch
    stories = marked.notes_of.values()
    assert sum(story[-1].marked for story in stories) == marked.result.ecn.marked_packets
    for name, pause in paused.result.pfc.by_link.items():
        noted = paused.notes_of[name][-1].paused_ns
        assert pause.paused_ns - 2000 <= noted <= pause.paused_ns
    for run in (lossy, paused, marked):
        for notes in run.notes_of.values():
            for earlier, later in pairwise(notes):
                assert all(was <= now for was, now in zip(earlier[3:], later[3:], strict=True))


def _seen_by(kind: str, colour: str) -> tuple[float, float, float]:
    """A colour as somebody sees it who lacks one kind of cone (Viénot and others, 1999), in Lab."""
    rgb = [int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5)]
    r, g, b = (c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in rgb)
    if kind == "protan":
        r, g, b = 0.11238 * r + 0.88762 * g, 0.11238 * r + 0.88762 * g, 0.00401 * (r - g) + b
    elif kind == "deutan":
        r, g, b = 0.29275 * r + 0.70725 * g, 0.29275 * r + 0.70725 * g, -0.02234 * (r - g) + b
    x, y, z = (
        sum(w * c for w, c in zip(row, (r, g, b), strict=True))
        for row in ((0.4124, 0.3576, 0.1805), (0.2126, 0.7152, 0.0722), (0.0193, 0.1192, 0.9505))
    )
    fx, fy, fz = (
        t ** (1 / 3) if t > 0.008856 else 7.787 * t + 16 / 116 for t in (x / 0.9505, y, z / 1.089)
    )
    return 116 * fy - 16, 500 * (fx - fy), 200 * (fy - fz)


@pytest.mark.parametrize("colours", [DAY, NIGHT], ids=["day", "night"])
@pytest.mark.parametrize("kind", ["normal", "protan", "deutan"])
def test_colours_can_be_told_apart_with_any_colour_vision(
    kind: str, colours: dict[str, str]
) -> None:
    def least(names: Iterable[str]) -> float:
        seen = [_seen_by(kind, colours[name]) for name in names]
        return min(math.dist(one, other) for one, other in combinations(seen, 2))

    assert least(SERIES[:4]) > 20
    assert least(("pause", "mark", "drop", "queue")) > 11
    assert least(("victim", "aggressor", "straggler", "message", "work")) > 8
    lightness = [_seen_by(kind, colours[colour])[0] for _, colour, _, _ in CLASSES]
    assert all(abs(a - b) > 7 for a, b in pairwise(lightness))
    assert lightness == sorted(lightness, reverse=colours is DAY)


def test_scales_have_round_ticks_within_them() -> None:
    assert linear(1149, 0, 100).ticks(6) == [0, 200, 400, 600, 800, 1000]
    scale = spread([900, 31_000], 0, 100)
    assert scale.is_log
    assert scale.ticks(6) == [1000, 2000, 5000, 10_000, 20_000]
    assert scale(1000) == pytest.approx(100 * 0.0557, rel=0.05)


def test_runs_are_named_shortly_and_a_legend_says_what_differs(
    runs: dict[str, Path], tmp_path: Path
) -> None:
    comparison = Comparison.of([runs["lossy"], runs["paused"], runs["marked"]])
    assert comparison.names == ("lossy", "paused", "marked")
    assert [(name, settings) for name, settings, _ in comparison.legend()] == [
        ("lossy", "PFC off, ECN off, kmin=100000, cc=none"),
        ("paused", "PFC on, ECN off, kmin=100000, cc=none"),
        ("marked", "PFC on, ECN on, kmin=20000, cc=dcqcn"),
    ]
    path = write_comparison(comparison, tmp_path)
    page = Page()
    page.feed(path.read_text())
    assert page.open == [] and page.loads == []
    same = Comparison.of([runs["lossy"], runs["lossy"]])
    assert same.names == ("A", "B")
    assert {settings for _, settings, _ in same.legend()} == {"the same settings"}
    # Folders that nobody gave a name are none.
    by_number = {name: tmp_path / str(at) for at, name in enumerate(("ring", "lossy", "paused"))}
    for name, link in by_number.items():
        copytree(runs[name], link)
    others = Comparison.of(list(by_number.values()))
    assert others.names == ("allreduce-ring", "incast: PFC off", "incast: PFC on")


def test_what_a_scenario_says_of_itself_is_not_said_of_a_changed_run(
    runs: dict[str, Path],
) -> None:
    text = (runs["lossy"] / "report.html").read_text()
    assert "The scenario as it ships: Seven hosts" in text
    assert "Here with buffer.bytes=600000, pfc.enabled=false, traffic.bytes=400000." in text


def test_compare_tells_people_and_machines(runs: dict[str, Path], tmp_path: Path) -> None:
    words = ("compare", str(runs["paused"]), str(runs["lossy"]), "--out", str(tmp_path))
    table = closlab(*words)
    assert table.returncode == 0, table.stderr
    drops = read_run(runs["lossy"]).result.drops.total
    assert "packets dropped" in table.stdout and f"{drops:,}" in table.stdout
    found = json.loads(closlab(*words, "--json").stdout)
    assert [run["figures"]["drops.total"] for run in found["runs"]] == [0, drops]
    assert Path(found["report"]).exists()
    all_of_them = closlab("compare", str(runs["paused"].parent), "--out", str(tmp_path), "--json")
    assert len(json.loads(all_of_them.stdout)["runs"]) == len(runs)


def test_run_and_list_tell_machines(tmp_path: Path) -> None:
    done = closlab("run", "incast", "--engine", "sim", "--json", "--out", str(tmp_path))
    assert json.loads(done.stdout) == json.loads((tmp_path / "result.json").read_text())
    assert "\x1b" not in done.stderr and "\r" not in done.stderr  # nobody watches: nothing moves
    names = [scenario["name"] for scenario in json.loads(closlab("list", "--json").stdout)]
    assert "incast" in names and names == sorted(names)
    output = closlab("list", "incast").stdout
    assert "watch its leaf fill up" in output and "closlab run incast" in output
    assert re.fullmatch(r"closlab \d+\.\d+\.\d+\n", closlab("--version").stdout)


@pytest.mark.parametrize(
    ("name", "content", "complaint"),
    [
        ("result.json", None, "there is no run in"),
        ("result.json", "{", "result.json cannot be read"),
        ("result.json", '{"schema": "other/9"}', "its schema is not closlab.result/1"),
        ("result.json", '{"schema": "closlab.result/1"}', "scenario: it must be given"),
        (
            "timeseries.csv",
            "time_ns,link\n1,a>b\n",
            "timeseries.csv cannot be read: its first line lacks",
        ),
        (
            "flows.csv",
            "src,dst,bytes,start_ns,fct_ns,slowdown\nh1,h2,many,0,,\n",
            "flows.csv cannot be read: line 2",
        ),
    ],
)
def test_damaged_folders_are_named(
    runs: dict[str, Path], tmp_path: Path, name: str, content: str | None, complaint: str
) -> None:
    for kept in ("result.json", "flows.csv", "timeseries.csv"):
        (tmp_path / kept).write_bytes((runs["paused"] / kept).read_bytes())
    if content is None:
        (tmp_path / name).unlink()
    else:
        (tmp_path / name).write_text(content)
    with pytest.raises(LabError, match=re.escape(complaint)):
        read_run(tmp_path)


def test_the_documentation_names_every_key_and_column() -> None:
    text = (ROOT / "docs" / "results.md").read_text()
    documented = set(re.findall(r"`(\w+)[`.]", text))
    columns = {*Note._fields, *Stock._fields, *PauseNote._fields}
    assert {*columns, *Result.model_fields} - {"schema_"} <= documented


def test_what_is_compared_has_its_rows_in_one_order(runs: dict[str, Path]) -> None:
    comparison = Comparison.of([runs["lossy"], runs["paused"], runs["marked"]])
    limits = Limits.of(comparison.runs)
    peaks: dict[str, int] = {}
    labels = []
    for run in comparison.runs:
        for note in run.notes:
            peaks[note.link] = max(peaks.get(note.link, 0), note.queue_bytes)
        drawing = queues(run, limits)
        assert drawing is not None
        labels.append([s.text for s in drawing.shapes if ">" in s.text and s.has("strong")])
    assert labels[0] == labels[1] == labels[2] and len(labels[0]) == 4
    wanted = sorted(peaks, key=lambda name: (-peaks[name], name))[:4]
    assert labels[0] == wanted
    buffers = {
        next(s.text for s in drawing.shapes if s.text.endswith(": shared"))
        for run in comparison.runs
        if (drawing := buffer(run, limits.end_ns, limits.buffer, limits.buffer_scales))
    }
    assert len(buffers) == 1


def test_buffers_that_are_compared_have_one_scale(runs: dict[str, Path], tmp_path: Path) -> None:
    """The same run, of twice the memory as it says of itself: what was held looks as high."""
    content = json.loads((runs["paused"] / "result.json").read_text())
    copytree(runs["paused"], tmp_path / "more")
    content["scenario"]["buffer"]["bytes"] *= 2
    (tmp_path / "more" / "result.json").write_text(json.dumps(content))
    pair = [read_run(runs["paused"]), read_run(tmp_path / "more")]
    limits = Limits.of(pair)
    filled = []
    for run in pair:
        drawing = buffer(run, limits.end_ns, limits.buffer, limits.buffer_scales)
        assert drawing is not None
        (shared,) = (s for s in drawing.shapes if s.text.endswith(": shared"))
        lines = [s for s in drawing.shapes if s.style.get("stroke") == "queue"]
        filled.append([s.style["d"] for s in lines[:2]])
        assert shared.number("y") < 30
    assert filled[0] == filled[1] and len(filled[0]) == 2
    alone = buffer(pair[0], limits.end_ns, limits.buffer, {})
    assert alone is not None
    drawn = [s.style["d"] for s in alone.shapes if s.style.get("stroke") == "queue"]
    assert drawn[0] != filled[0][0]


def test_headroom_is_that_of_all_classes_together(runs: dict[str, Path]) -> None:
    """Also where as much of it was held at first as of what is shared: nothing."""
    run = read_run(runs["paused"])
    limits = Limits.of([run])
    mine = [stock for stock in run.stocks if stock.switch == limits.buffer]
    idle = mine[0]._replace(queue_bytes=0, used_bytes=0, headroom_bytes=0, pool_bytes=0)
    two = [each._replace(priority=priority) for each in (idle, *mine[1:]) for priority in (3, 4)]
    drawing = buffer(replace(run, stocks=tuple(two)), limits.end_ns, limits.buffer, {})
    assert drawing is not None
    texts = [shape.text for shape in drawing.shapes]
    most = max(stock.headroom_bytes for stock in mine[1:])
    assert most > 0
    assert texts[texts.index("headroom") + 1] == f"peak {size(2 * most)}"


def test_what_was_switched_on_and_did_nothing_is_named(tmp_path: Path) -> None:
    """Three congestion controls with the same figures leave nobody wondering why."""
    on = {
        "transport.cc=dcqcn": ("ecn.enabled=true", "transport.cc=dcqcn"),
        "trim": ("trim.enabled=true", "trim.classes=[0]"),
        "link.llr": ("link.llr=selective",),
        "loss": ("loss.rate=0.0000001",),
        "int": ("int.share=0.0000001",),
    }
    changes = [change for each in on.values() for change in each]
    text = story(read_run(simulate("hello", *changes, out=tmp_path / "idle").out))
    said = text.partition("Switched on, and without effect: ")[2]
    assert [name for name in on if f"{name} (" not in said] == []
    busy = ("transport.cc=dcqcn", "ecn.enabled=true", "ecn.kmin=5KB", "ecn.kmax=10KB")
    text = story(read_run(simulate("incast", *busy, out=tmp_path / "busy").out))
    assert "without effect" not in text


def test_pauses_that_are_compared_are_looked_at_in_the_same_time_and_scale(
    runs: dict[str, Path],
) -> None:
    """However early each began: the same microseconds, and what is held as high."""
    pair = [read_run(runs[name]) for name in ("paused", "marked")]
    late = replace(
        pair[1],
        pauses=tuple(n._replace(time_ns=n.time_ns + 7_000) for n in pair[1].pauses),
        stocks=tuple(
            stock._replace(queue_bytes=stock.queue_bytes // 2) for stock in pair[1].stocks
        ),
    )
    limits = Limits.of([pair[0], late])
    assert limits.zoom is not None
    begun = [min(n.time_ns for n in run.pauses if n.what == "xoff") for run in (pair[0], late)]
    assert limits.zoom.begin_ns == max(0, min(begun) - 2_000) and begun[0] != begun[1]
    switch = min(n for n in pair[0].pauses if n.what == "xoff").link.partition(">")[2]
    heights = []
    wide = limits.zoom.end_ns - limits.zoom.begin_ns
    assert wide >= 50_000
    for run in (pair[0], late):
        drawing = climbing(run, limits.end_ns, limits.zoom)
        assert drawing is not None
        signs = [s for s in drawing.shapes if " for class 3 at " in s.tip]
        places = [float(re.findall(r"M(\S+) ", s.style["d"])[0]) for s in signs]
        since = [n.time_ns - limits.zoom.begin_ns for row in paused(run) for n in row.notes]
        wanted = [112 + (WIDTH - 36 - 112) * at / wide for at in since if at <= wide]
        assert sorted(places) == pytest.approx(sorted(wanted), abs=0.1) and wanted
        (fill,) = (s for s in drawing.shapes if s.style.get("fill") == "queue-fill")
        heights.append([float(y) for _, y in re.findall(r"([\d.]+) ([\d.]+)", fill.style["d"])])
    base = max(heights[0])
    assert max(heights[1]) == base
    tall = [base - min(each) for each in heights]
    held = [
        max(
            stock.queue_bytes
            for stock in run.stocks
            if stock.switch == switch and 0 <= stock.time_ns - limits.zoom.begin_ns <= wide
        )
        for run in (pair[0], late)
    ]
    assert tall[1] / tall[0] == pytest.approx(held[1] / held[0], rel=0.02)


def test_figures_of_a_comparison_stand_side_by_side(runs: dict[str, Path], tmp_path: Path) -> None:
    folders = [runs["lossy"], runs["paused"], runs["marked"]]
    write_comparison(Comparison.of(folders), tmp_path)
    found = compare.figures_of(compare.read_comparison(tmp_path))
    assert {"completion", "fabric", "queues", "pauses", "messages"} <= found.keys()
    for name, (_, draw) in found.items():
        drawing = draw()
        if drawing is None:
            assert name in ("telemetry", "cluster", "slowdowns")
            continue
        for path in (tmp_path / f"{name}.svg", tmp_path / f"{name}.pdf"):
            write_figure(drawing, path)
        ET.fromstring((tmp_path / f"{name}.svg").read_text())
        if name == "completion":
            continue
        limits = Limits.of(list(map(read_run, folders)))
        alone = [PICTURES[name][1](read_run(folder), limits) for folder in folders]
        for column, each in enumerate(alone):
            for shape in each.shapes if each else ():
                if shape.text:
                    x, y = shape.number("x") + column * (WIDTH + 24), shape.number("y") + 30
                    assert any(
                        s.text == shape.text
                        and abs(s.number("x") - x) < 0.1
                        and abs(s.number("y") - y) < 0.1
                        for s in drawing.shapes
                    ), (name, shape.text)
        assert max(s.number("x") for s in drawing.shapes if s.text) <= drawing.width + 12
    done = closlab("figure", str(tmp_path))
    assert done.returncode == 0 and "completion" in done.stdout
    (tmp_path / "comparison.json").write_text('{"schema": "closlab.comparison/1"}')
    done = closlab("figure", str(tmp_path), "queues")
    assert done.returncode == 1 and "it has no 'runs'" in done.stderr


def test_one_run_is_nothing_to_compare(runs: dict[str, Path]) -> None:
    done = closlab("compare", str(runs["paused"]))
    assert done.returncode == 1
    assert "nothing to compare" in done.stderr


def test_a_cluster_is_drawn_with_every_job_and_its_result_adds_up(tmp_path: Path) -> None:
    job = (
        "{kind: job, name: a, ranks: 3, compute_ns: 5us, collective: {op: all-reduce, bytes: 30KB}}"
    )
    traffic = f"traffic={{kind: cluster, jobs: [{{at_ns: [0, 1us, 2us, 90us], job: {job}}}]}}"
    result = simulate("hello", traffic, out=tmp_path).result
    found = result.cluster
    assert found is not None and found.completed == 4
    queued = [each.queued_ns for each in found.jobs if each.queued_ns is not None]
    assert max(queued) == found.queued_ns.max if found.queued_ns else False
    assert sum(each > 20_000 for each in queued) == 1  # of eight hosts two are left for the third
    last = max(each.ended_ns or 0 for each in found.jobs)
    given = sum(len(h) * (end - start) for each in found.jobs for h, start, end in each.pieces)
    assert found.allocated == pytest.approx(given / (8 * last))
    assert found.utilisation == pytest.approx(4 * 3 * 5000 / (8 * last), rel=0.01)
    drawing = cluster(read_run(tmp_path))
    assert drawing is not None
    tips = [shape.tip.partition(":")[0] for shape in drawing.shapes if shape.tip]
    assert sorted(tips) == ["a-1", "a-2", "a-3", "a-4"]


def test_free_hosts_are_broken_where_others_of_their_rack_are_taken() -> None:
    racks = [(0, 1), (2, 3)]
    assert fragmentation(racks, [((0, 2), 0, 10)]) == 1.0  # one free in each
    assert fragmentation(racks, [((0, 1), 0, 10)]) == 0.0  # a whole rack free
    assert fragmentation(racks, [((0,), 0, 10), ((2, 3), 10, 30)]) == pytest.approx(10 / 70)
    assert fragmentation(racks, [((0, 1, 2, 3), 0, 10)]) == 0.0
