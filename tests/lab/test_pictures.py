"""Pictures say what was measured, in colours one can see, and as files for a paper too."""

import json
import re
import subprocess
import xml.etree.ElementTree as ET
import zlib
from collections import Counter
from itertools import product
from math import hypot
from pathlib import Path

import pytest

from controller.tables import DROP_REASONS, SwitchSite, pool_of
from lab.errors import LabError
from lab.results.outcome import Note
from lab.results.result import CORRUPTED, CUT, HALTED, RECEIVER
from lab.scenario.experiment import Experiment
from tests.lab.conftest import closlab
from tests.lab.simulated import simulate
from views.report import KeptRun, read_run, write_report
from views.report.climbing import the_rest
from views.report.figures import PICTURES, figure, figures_of, write_figure
from views.report.moments import moments
from views.report.palette import (
    DAY,
    FAINT,
    GROUNDS,
    GUIDES,
    INK,
    NIGHT,
    ON,
    PAPER,
    PLAIN_GROUNDS,
    TEXTS,
)
from views.report.plots import Limits
from views.report.reasons import REASONS
from views.report.standing import paused
from views.report.suspects import waiting
from views.report.svg import WIDTH, Drawing, Shape, width_of
from views.report.truetype import Font


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> dict[str, KeptRun]:
    folder = tmp_path_factory.mktemp("pictures")
    wanted = {
        "deadlock": ("deadlock",),
        "victim": ("victim-flow",),
        "straggler": ("straggler", "traffic.steps=2"),
        "lossy": ("incast", "traffic.bytes=400KB", "buffer.bytes=600KB", "pfc.enabled=false",
                  "transport.timeout=8", "ecn.enabled=true", "int.share=0.1"),
        "cut": ("link-failure", "traffic.bytes=2MB"),
        "storm": ("pfc-storm", "traffic.bytes=4MB"),
        "training": ("training-gpt3", "topology.servers=4", "traffic={kind: training, model: "
                     "gpt3-175b, parallelism: {tensor: 4, pipeline: 2, data: 2}, node: {gpus: 4}, "
                     "batch: {sequences: 16}, placement: rail-aligned, scale: 0.0001}"),
        "parts": ("noisy-neighbour", "traffic.parts.0.bytes=2MB"),
        "many": ("incast", "topology.hosts_per_leaf=16", "traffic.senders=50", "buffer.bytes=4MB",
                 "traffic.bytes=40KB"),
    }  # fmt: skip
    return {
        name: read_run(simulate(scenario, *changes, out=folder / name).out)
        for name, (scenario, *changes) in wanted.items()
    }


def _drawn(run: KeptRun) -> dict[str, Drawing]:
    limits = Limits.of([run])
    found = {name: draw(run, limits) for name, (_, draw) in PICTURES.items()}
    return {name: drawing for name, drawing in found.items() if drawing is not None}


# --- colours --------------------------------------------------------------------------------------


def _contrast(one: str, other: str) -> float:
    """As WCAG 2.2 computes it."""

    def luminance(colour: str) -> float:
        parts = [int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5)]
        linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in parts]
        return sum(w * c for w, c in zip((0.2126, 0.7152, 0.0722), linear, strict=True))

    low, high = sorted((luminance(one), luminance(other)))
    return (high + 0.05) / (low + 0.05)


@pytest.mark.parametrize("colours", [DAY, NIGHT], ids=["day", "night"])
def test_text_and_lines_contrast_with_what_they_stand_on(colours: dict[str, str]) -> None:
    for text, ground in product(TEXTS, GROUNDS):
        assert _contrast(colours[text], colours[ground]) >= 4.5, (text, ground)
    for text, ground in product((INK, FAINT), PLAIN_GROUNDS):
        assert _contrast(colours[text], colours[ground]) >= 4.5, (text, ground)
    for under, text in ON.items():
        assert _contrast(colours[text], colours[under]) >= 4.5, (text, under)
    on_boxes = set(ON.values())
    for name in colours.keys() - {*GROUNDS, *PLAIN_GROUNDS, *GUIDES, *on_boxes}:
        assert _contrast(colours[name], colours[PAPER]) >= 3, name


def _box(shape: Shape) -> tuple[float, float, float, float] | None:
    """A filled box: left, top, right, bottom."""
    if shape.name == "rect":
        x, y = shape.number("x"), shape.number("y")
        return x, y, x + shape.number("width"), y + shape.number("height")
    found = re.fullmatch(r"M(\S+) (\S+)h(\S+)v(\S+)h-\S+z", str(shape.style.get("d", "")))
    if not found:
        return None
    x, y, wide, high = map(float, found.groups())
    return x, y, x + wide, y + high


@pytest.mark.slow
def test_every_pair_of_colours_that_a_picture_uses_is_one_of_those(
    runs: dict[str, KeptRun],
) -> None:
    pairs = set()
    for run in runs.values():
        for drawing in _drawn(run).values():
            boxes: list[tuple[tuple[float, float, float, float], str]] = []
            for shape in drawing.shapes:
                fill, stroke = (str(shape.style.get(key, "none")) for key in ("fill", "stroke"))
                assert {fill, stroke} <= DAY.keys() | {"none"}, shape
                if shape.name != "text":
                    box = _box(shape)
                    if box and fill != "none":
                        boxes.append((box, fill))
                    continue
                x, y = shape.number("x"), shape.number("y") - 4
                under = [
                    ground
                    for (left, top, right, bottom), ground in boxes
                    if left <= x <= right and top <= y <= bottom
                ]
                ink = "ink" if fill == "none" else fill
                pairs.add((ink, under[-1] if under and not shape.has("halo") else PAPER))
    assert len(pairs) > 6
    for ink, ground in pairs:
        assert (ground in GROUNDS and ink in TEXTS) or ON.get(ground) == ink, (ink, ground)


# --- what they show -------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["victim", "deadlock", "cut"])
def test_a_pause_stands_below_the_latest_one_that_can_have_led_to_it(
    runs: dict[str, KeptRun], name: str
) -> None:
    run = runs[name]
    rows = paused(run)
    order = [row.name for row in rows]
    for row in rows:
        stops = [n for n in run.pauses if n.link == row.name and n.what == "xoff"]
        first = min((note.time_ns for note in stops), default=-1)
        back, switch = row.name.split(">")  # to which nothing turns round
        # Who of those had been told to stand still, not to go on since, and did: since when.
        since: dict[str, int] = {}
        for note in sorted(run.pauses, key=lambda note: note.time_ns):
            leads_on = note.link.startswith(f"{switch}>") and note.link != f"{switch}>{back}"
            if note.time_ns < first and leads_on:
                if note.what == "xoff":
                    since.setdefault(note.link, note.time_ns)
                elif note.what == "xon":
                    since.pop(note.link, None)
        since = {link: at for link, at in since.items() if _stood(run, link, first)}
        assert (row.cause or None) in (
            {k for k, at in since.items() if at == max(since.values())} or {None}
        )
        if row.cause:
            assert order.index(row.cause) < order.index(row.name)
    begun = [row.first_ns for row in rows if not row.cause]
    assert begun == sorted(begun) and begun[0] == min(row.first_ns for row in rows)
    assert any(row.cause for row in rows)


def _stood(run: KeptRun, link: str, at_ns: int) -> bool:
    """Whether the time it stood still grew about then."""
    notes = run.notes_of[link]
    before = max((n.paused_ns for n in notes if n.time_ns <= at_ns - 2_000), default=0)
    return max((n.paused_ns for n in notes if n.time_ns <= at_ns + 3_000), default=0) > before


@pytest.mark.by_day(1)
@pytest.mark.parametrize("name", ["victim", "deadlock", "cut"])
def test_what_held_a_pause_on_is_who_stood_still_beside_it(
    runs: dict[str, KeptRun], name: str
) -> None:
    """Looked at in twenty thousand instants."""
    rows = paused(runs[name])
    instants = [runs[name].end_ns * at / 20_000 for at in range(20_000)]
    stood = {
        row.name: {at for at, t in enumerate(instants) if any(a <= t < b for a, b in row.spans)}
        for row in rows
    }
    for row in rows:
        mine, switch = stood[row.name], row.name.partition(">")[2]
        if len(mine) < 200:
            continue
        shares = {
            other: len(mine & theirs) / len(mine)
            for other, theirs in stood.items()
            if other.startswith(f"{switch}>")
        }
        most = max(shares.values(), default=0.0)
        assert row.held == pytest.approx(most if row.held_by else 0.0, abs=0.03)
        assert row.held_by or most < 0.08
        assert not row.held_by or shares[row.held_by] > most - 0.03
    assert any(row.held_by and not row.cause for row in rows) or name != "deadlock"


def test_no_pause_is_lost(runs: dict[str, KeptRun]) -> None:
    run = runs["victim"]
    rows = paused(run)
    assert {row.name for row in rows} == {
        name for name, pause in run.result.pfc.by_link.items() if pause.paused_ns
    }
    drawing = _drawn(run)["pauses"]
    names = Counter(shape.text for shape in drawing.shapes if ">" in shape.text)
    # Near, and over the whole run; the queue that was first too long may be one of them.
    assert sorted({names[row.name] for row in rows}) in ([2], [2, 3])
    assert sum(names[row.name] == 3 for row in rows) <= 1
    first = run.pauses[0].time_ns
    begin = max(0, first - 2000)
    zoom = Limits.of([run]).zoom
    assert zoom is not None and zoom.begin_ns == begin and zoom.end_ns >= begin + 50_000
    noted = Counter(note.what for note in run.pauses if note.time_ns <= zoom.end_ns)
    signs = Counter(shape.tip[:4] for shape in drawing.shapes if " for class 3 at " in shape.tip)
    assert signs == {"XOFF": noted["xoff"], "XON ": noted["xon"]} and noted["xoff"] > 20


@pytest.mark.parametrize("name", ["victim", "many", "parts"])
def test_what_the_first_switch_holds_stands_against_xoff_and_xon(
    runs: dict[str, KeptRun], name: str
) -> None:
    """XOFF at an eighth of what is free, XON two of the largest frames below, or at nothing."""
    run = runs[name]
    drawing = _drawn(run)["pauses"]
    first = min((note for note in run.pauses if note.what == "xoff"), key=lambda n: n.time_ns)
    switch = first.link.partition(">")[2]
    zoom = Limits.of([run]).zoom
    assert zoom is not None
    begin, end = zoom.begin_ns, zoom.end_ns
    seen = [s for s in run.stocks if s.switch == switch and begin <= s.time_ns <= end]
    lines = {
        dash: [tuple(map(float, at.split())) for at in str(s.style["d"])[1:].split("L")]
        for s in drawing.shapes
        if s.name == "path" and (dash := str(s.style.get("stroke_dasharray", ""))) in ("4 3", "1 2")
    }
    (held,) = (s for s in drawing.shapes if s.tip == switch and s.style.get("fill") == "queue-fill")
    base, *filled = [float(at.split()[1]) for at in str(held.style["d"])[1:].split("L")][:-1]
    scale = max(stock.queue_bytes for stock in seen) / (base - min(filled))  # bytes a pixel
    settings = Experiment.of(run.result.scenario).settings
    pool = pool_of(SwitchSite(run.fabric, run.fabric.node(switch), settings))
    assert settings.buffer.alpha == 1 / 8
    assert len(seen) == len(filled) == len(lines["4 3"]) > 10
    for stock, y, (_, xoff), (_, xon) in zip(seen, filled, lines["4 3"], lines["1 2"], strict=True):
        assert (base - y) * scale == pytest.approx(stock.queue_bytes, abs=scale)
        threshold = (pool - stock.pool_bytes) / 8
        assert (base - xoff) * scale == pytest.approx(threshold, abs=scale)
        below = max(0.0, threshold - 2 * settings.max_frame)
        assert (base - xon) * scale == pytest.approx(below, abs=scale)
    texts = {shape.text: shape.number("x") for shape in drawing.shapes}
    assert texts["XOFF"] and f"{switch} holds" in texts


def test_directions_that_have_no_room_are_counted(runs: dict[str, KeptRun]) -> None:
    run = runs["deadlock"]
    rows = paused(run)
    assert len(rows) > 14
    texts = [shape.text for shape in _drawn(run)["pauses"].shapes]
    assert f"{len(rows) - 14} of {len(rows)} paused directions are not shown" in texts
    whole = the_rest(run, run.end_ns)
    assert whole is not None and whole.name == f"All {len(rows)} paused directions"
    assert {row.name for row in rows} <= {shape.text for shape in whole.drawing.shapes}


def test_a_message_is_as_long_as_it_took_and_says_what_it_is(runs: dict[str, KeptRun]) -> None:
    run = runs["victim"]
    boxes = {
        shape.tip.partition(",")[0]: (_box(shape), shape.style["fill"])
        for shape in _drawn(run)["messages"].shapes
        if " times as long as alone" in shape.tip
    }
    assert len(boxes) == len(run.flows) == 7
    scales = set()
    for flow in run.flows:
        box, colour = boxes[f"{flow.src} to {flow.dst}"]
        assert box is not None and flow.fct_ns is not None and flow.start_ns is not None
        assert colour == ("victim" if flow.src == "h8" else "aggressor")
        scales.add(round(flow.fct_ns / (box[2] - box[0] + 0.6) / 10))
    assert max(scales) - min(scales) <= 1
    victim = next(flow.slowdown for flow in run.flows if flow.src == "h8")
    assert victim is not None
    times = f"{victim:.3g}".rstrip("0").rstrip(".")
    assert any(times in s.text and "victim" in s.text for s in _drawn(run)["messages"].shapes)


def test_a_diamond_is_where_a_message_would_have_ended_alone(runs: dict[str, KeptRun]) -> None:
    run = runs["victim"]
    shapes = _drawn(run)["messages"].shapes
    boxes = {
        shape.tip.partition(",")[0]: box
        for shape in shapes
        if " times as long as alone" in shape.tip and (box := _box(shape))
    }
    marks = [
        (sum(xs) / 4, sum(ys) / 4)
        for shape in shapes
        if shape.tip.startswith("alone it would have ended here, at")
        for xs, ys in [_corners(str(shape.style["d"]))]
    ]
    assert len(marks) == len(run.flows)
    for flow in run.flows:
        left, top, right, bottom = boxes[f"{flow.src} to {flow.dst}"]
        (x,) = (x for x, y in marks if top <= y <= bottom)
        assert (right + 0.6 - left) / (x - left) == pytest.approx(flow.slowdown, rel=0.02)
    texts = {shape.text for shape in _drawn(runs["parts"])["messages"].shapes}
    for flow in (flow for flow in runs["parts"].flows if flow.what == "red"):
        times = f"{flow.slowdown:.3g}".rstrip("0").rstrip(".")
        assert any(f"\N{RIGHTWARDS ARROW}h2 {times}" in text for text in texts), (flow, texts)


def _corners(path: str) -> tuple[list[float], list[float]]:
    """Of a closed shape, each once."""
    places = [tuple(map(float, each.split())) for each in path.lstrip("M").split("L")][:-1]
    return [x for x, _ in places], [y for _, y in places]


def test_who_computes_longest_and_the_steps_of_a_job_are_told(runs: dict[str, KeptRun]) -> None:
    drawing = _drawn(runs["straggler"])["messages"]
    late = [shape for shape in drawing.shapes if shape.style.get("fill") == "straggler"]
    assert any(shape.text == "h6" for shape in late)
    assert all("h6: compute" in shape.tip for shape in late if shape.tip) and len(late) == 3
    texts = {shape.text for shape in drawing.shapes}
    assert {"step 0", "step 1", "compute", "all-reduce ring"} <= texts


def test_passes_of_training_are_told_apart(runs: dict[str, KeptRun]) -> None:
    run = runs["training"]
    shapes = _drawn(run)["messages"].shapes
    of_kind = {
        what: {str(s.style["fill"]) for s in shapes if f": {what}, step" in s.tip}
        for what in ("forward", "backward", "inside nodes")
    }
    assert all(len(colours) == 1 for colours in of_kind.values())
    assert len(set.union(*of_kind.values())) == 3
    assert {"forward", "backward", "forward pass", "backward pass"} <= {s.text for s in shapes}
    spent = Counter[str]()
    for work in run.work:
        spent[work.what] += work.end_ns - work.start_ns
    assert spent["backward"] == pytest.approx(2 * spent["forward"], rel=0.01)  # no recomputation


def test_the_buffer_stands_against_thresholds_computed_otherwise(runs: dict[str, KeptRun]) -> None:
    """victim-flow: 1 MB, alpha an eighth; what is not headroom is shared."""
    run = runs["victim"]
    drawing = _drawn(run)["buffer"]
    text = " ".join(shape.text for shape in drawing.shapes)
    shared, headroom = re.search(r"of (\d+) KB.* of (\d+) KB", text).groups()
    assert int(shared) + int(headroom) == 1000
    assert f"{int(shared) / 8:.3g} KB" in text  # XOFF of a queue while all of it is free
    most = max(stock.pool_bytes for stock in run.stocks)
    assert f"{most / 1000:.3g} KB" in drawing.title


def test_a_dead_cable_is_torn_and_the_circle_of_a_deadlock_drawn(runs: dict[str, KeptRun]) -> None:
    drawing = _drawn(runs["deadlock"])["fabric"]
    tips = Counter(shape.tip for shape in drawing.shapes)
    for name in ("leaf1-spine2", "leaf3-spine1"):
        assert tips[f"{name} is dead"] == 2
        assert not any(tip.startswith(name.replace("-", ">") + ":") for tip in tips)
    arrows = [s for s in drawing.shapes if s.name == "path" and s.style.get("fill") == "pause"]
    assert len(arrows) == 4 + 1  # and one in the key
    shafts = [s for s in drawing.shapes if s.name == "line" and s.style.get("stroke") == "pause"]
    torn = [s for s in drawing.shapes if s.name == "circle" and s.style.get("stroke") == "drop"]
    for mark, shaft in product(torn, shafts[:4]):
        assert _distance(mark, shaft) > 9, (mark, shaft)  # whose radius is 7
    texts = {s.text: s for s in drawing.shapes if s.text.startswith("\N{MINUS SIGN}")}
    for switch, lost in runs["deadlock"].result.drops.by_switch.items():
        (name,) = (s for s in drawing.shapes if s.text == switch)
        number = texts[f"\N{MINUS SIGN}{lost:,}"]
        inside = [
            box for s in drawing.shapes
            if s.style.get("stroke") == "drop" and (box := _box(s))
            and all(box[1] < t.number("y") < box[3] and box[0] < t.number("x") < box[2]
                    for t in (name, number))
        ]  # fmt: skip
        assert inside, switch
    assert "a deadlock: " in drawing.title and "cut: leaf1-spine2, leaf3-spine1" in drawing.title
    rows = {shape.text for shape in _drawn(runs["deadlock"])["pauses"].shapes}
    circled = waiting(runs["deadlock"])
    assert len(circled) == 4 and circled <= rows
    shapes = _drawn(runs["cut"])["fabric"].shapes
    assert "cut at 100 µs" in [shape.text for shape in shapes]
    names = "leaf1>spine1:", "spine1>leaf1:"
    cut = [s for s in shapes if s.name == "line" and s.tip.startswith(names)]
    assert [s.style["stroke"] for s in cut] == ["rule", "rule"]  # none of a live link's


def _distance(circle: Shape, line: Shape) -> float:
    """Of a circle's middle from a line, by going along it."""
    x, y = circle.number("cx"), circle.number("cy")
    x1, y1, x2, y2 = (line.number(key) for key in ("x1", "y1", "x2", "y2"))
    steps = [at / 200 for at in range(201)]
    return min(hypot(x1 + (x2 - x1) * s - x, y1 + (y2 - y1) * s - y) for s in steps)


def test_who_is_to_blame_has_a_word_and_a_shape_of_its_own(runs: dict[str, KeptRun]) -> None:
    """In each drawing the word is beside its host, or on its link, and no colour stands alone."""
    wanted = {
        "victim": {"its link is full": "h1", "victim": "h8", "victim's receiver": "h2"},
        "storm": {"storms": "h1"},
        "straggler": {"straggler": "h6"},
        "lossy": {"its link is full": "h1"},
        "deadlock": {},
        "training": {},
    }
    known = {"its link is full", "victim", "victim's receiver", "storms", "straggler"}
    looks: dict[str, set[str]] = {}
    for name, hosts_by_word in wanted.items():
        drawing = _drawn(runs[name])["fabric"]
        words = {s.text: s for s in drawing.shapes if s.text in known}
        assert hosts_by_word.keys() <= words.keys() and (hosts_by_word or not words), name
        for word, host in hosts_by_word.items():
            (box,) = (s for s in drawing.shapes if s.text == host)
            at = words[word]
            assert abs(at.number("x") - 15 - box.number("x")) < 16, (word, host)
            assert 0 < at.number("y") - box.number("y") < 70
            drawn = [s for s in drawing.shapes if _is_beside(s, at)]
            looks.setdefault(word, set()).add(" ".join(map(_look, drawn)))
        for colour in ("victim", "straggler"):
            edged = [s for s in drawing.shapes if s.style.get("stroke") == colour]
            assert not edged or colour in words, name
    assert all(len(each) == 1 for each in looks.values())
    assert len(set.union(*looks.values())) == len(known) and "" not in set.union(*looks.values())


def _look(shape: Shape) -> str:
    """What a shape is like, wherever it stands and of whatever colour."""
    if shape.name != "path":
        return shape.name
    xs, ys = _corners(str(shape.style["d"]))
    return str(
        [(round((x - xs[0]) / 3), round((y - ys[0]) / 3)) for x, y in zip(xs, ys, strict=True)]
    )


def _is_beside(shape: Shape, word: Shape) -> bool:
    """Whether it is what stands to the left of a word."""
    x, y = word.number("x") - 8, word.number("y") - 4
    if shape.name == "circle":
        return hypot(shape.number("cx") - x, shape.number("cy") - y) < 1
    path = str(shape.style.get("d", ""))
    if shape.name != "path" or "h" in path:
        return False
    xs, ys = _corners(path)
    return hypot((min(xs) + max(xs)) / 2 - x, (min(ys) + max(ys)) / 2 - y) < 1


def test_of_many_hosts_the_slowest_and_the_fastest_of_each_leaf_are_shown(
    runs: dict[str, KeptRun],
) -> None:
    run = runs["many"]
    by_leaf: dict[int, list[tuple[float, str]]] = {}
    for flow in run.flows:
        leaf = (int(flow.src[1:]) - 1) // 16
        by_leaf.setdefault(leaf, []).append((flow.slowdown or 0, flow.src))
    shapes = _drawn(run)["messages"].shapes
    rows = [s.text for s in shapes if s.style.get("text_anchor") == "end" and s.text[:1] == "h"]
    assert len(rows) == 2 * len(by_leaf) == 8
    slowest, fastest = ({f(each)[0] for each in by_leaf.values()} for f in (max, min))
    slowdowns = {flow.src: flow.slowdown for flow in run.flows}
    assert [slowdowns[host] in slowest for host in rows[::2]] == [True] * 4
    assert [slowdowns[host] in fastest for host in rows[1::2]] == [True] * 4
    texts = [shape.text for shape in shapes]
    assert {"leaf1", "leaf2", "leaf3", "leaf4"} <= set(texts)
    assert "of each leaf: 8 of 50 hosts." in texts


def test_names_of_thresholds_and_events_stand_beside_what_they_name(
    runs: dict[str, KeptRun],
) -> None:
    shapes = _drawn(runs["lossy"])["queues"].shapes
    ends = max(max(_places(s)) for s in shapes if s.style.get("stroke") == "queue")
    named = [s for s in shapes if s.text in ("Kmin", "drops")]
    assert len(named) >= 4 and all(s.number("x") > ends for s in named)
    for name in ("queues", "pauses"):
        drawing = _drawn(runs["storm"])[name]
        texts = {shape.text for shape in drawing.shapes}
        assert {"h1 storm", "watchdog: leaf1>h1"} <= texts, name
        dashed = [s for s in drawing.shapes if s.style.get("stroke_dasharray") == "5 3"]
        (label,) = (s for s in drawing.shapes if s.text == "watchdog: leaf1>h1")
        (line,) = (s for s in dashed if s.tip == "watchdog: leaf1>h1")
        assert abs(label.number("x") - line.number("x1")) < 5
        assert label.number("y") <= line.number("y1")


def _places(shape: Shape) -> list[float]:
    return [float(x) for x in re.findall(r"[ML](-?[\d.]+) ", str(shape.style.get("d", "")))] or [0]


def test_even_shares_are_drawn_between_bars_and_every_share_has_a_name(
    runs: dict[str, KeptRun],
) -> None:
    for name in ("deadlock", "many", "storm"):
        drawing = _drawn(runs[name])["balance"]
        bars = [box for s in drawing.shapes if s.name == "rect" and (box := _box(s))]
        lines = [s for s in drawing.shapes if s.name == "line" and s.style.get("stroke") == "ink"]
        upright = [s for s in lines if s.number("x1") == s.number("x2")]
        assert upright
        order = {id(shape): at for at, shape in enumerate(drawing.shapes)}
        for line, text in product(upright, (s for s in drawing.shapes if s.text)):
            wide = width_of(text.text) / 2
            hit = (
                abs(text.number("x") - line.number("x1")) < wide
                and line.number("y1") < text.number("y") < line.number("y2") + 8
                and text.style.get("text_anchor") == "middle"
                and any(top < text.number("y") < bottom for _, top, _, bottom in bars)
            )
            assert not hit or order[id(line)] < order[id(text)], (name, text.text)
        wide_ones = [box for box in bars if box[2] - box[0] > 20]
        for left, top, right, bottom in wide_ones:
            assert any(
                left < s.number("x") < right and top < s.number("y") < bottom
                for s in drawing.shapes
                if s.text
            ), name


# --- on a phone -----------------------------------------------------------------------------------

PHONE = 13.0  # of letters on a phone, in a drawing's units: there 400 pixels are 514 of these


def test_no_text_covers_another_on_a_phone(runs: dict[str, KeptRun]) -> None:
    """With letters as wide as they are in DejaVu Sans, the widest of those that pages ask for."""
    fonts = {is_bold: Font.find(is_bold=is_bold) for is_bold in (False, True)}
    for run_name, run in runs.items():
        for name, drawing in _drawn(run).items():
            boxes: list[tuple[float, float, float, float, str]] = []
            for text in (shape for shape in drawing.shapes if shape.text):
                wide = fonts[text.has("strong")].width(text.text, PHONE)
                anchor = str(text.style.get("text_anchor", "start"))
                left = text.number("x") - {"start": 0, "middle": wide / 2, "end": wide}[anchor]
                top = text.number("y") - 0.7 * PHONE
                box = (left, top, left + wide, text.number("y"), text.text)
                assert box[0] > -14 and box[2] < WIDTH + 14, (run_name, name, text.text)
                for other in boxes:
                    apart = (
                        box[2] <= other[0] or other[2] <= box[0]
                        or box[3] <= other[1] or other[3] <= box[1]
                    )  # fmt: skip
                    assert apart, (run_name, name, text.text, other[4])
                boxes.append(box)


def test_moments_add_up_to_the_run(runs: dict[str, KeptRun]) -> None:
    for run in runs.values():
        drawing = _drawn(run)["fabric"]
        film = json.loads(moments(run, drawing))
        assert 2 <= len(film["frames"]) == len(film["said"]) <= 80
        assert all(len(frame) == 3 * len(drawing.moving) for frame in film["frames"])
        for directions, at in drawing.moving.items():
            stood = sum(int(frame[3 * at + 1], 36) for frame in film["frames"]) / 35
            pause = run.result.pfc.by_link.get(directions[0])
            notes = run.notes_of.get(directions[0]) or [Note(0, "", 0, 0, 0, 0, 0)]
            paused_ns = pause.paused_ns if pause else notes[-1].paused_ns
            share = min(1.0, paused_ns / run.end_ns)
            # Each digit is rounded up by less than a thirty-fifth.
            assert -0.01 <= stood / len(film["frames"]) - share <= 1 / 35 + 0.01
    said = json.loads(moments(runs["cut"], _drawn(runs["cut"])["fabric"]))
    assert "leaf1-spine1 down" in [what for _, what in said["marks"]]
    assert "is cut" not in said["said"][0] and "leaf1-spine1 is cut" in said["said"][-1]
    dead = json.loads(moments(runs["deadlock"], _drawn(runs["deadlock"])["fabric"]))
    assert any(what.startswith("watchdog: ") for _, what in dead["marks"])


def test_a_report_is_whole_without_its_script(runs: dict[str, KeptRun]) -> None:
    text = write_report(runs["victim"].folder).read_text()
    assert '<div class="moments" hidden>' in text
    without = re.sub(r"<script.*?</script>", "", text, flags=re.S)
    assert without.count("<svg ") == len(_drawn(runs["victim"]))
    assert "prefers-color-scheme:dark" in text


def test_alternative_texts_say_what_there_is_to_see(runs: dict[str, KeptRun]) -> None:
    victim = _drawn(runs["victim"])
    assert "the message from h8 to h2 is a victim" in victim["messages"].title
    assert "h6 is a straggler" in _drawn(runs["straggler"])["messages"].title
    assert (
        "first leaf" in victim["pauses"].title and "began by themselves" in victim["pauses"].title
    )
    lost = runs["lossy"].result.drops.total
    assert f"buffer_full {lost:,}" in _drawn(runs["lossy"])["drops"].title
    titles = [drawing.title for run in runs.values() for drawing in _drawn(run).values()]
    assert len(set(titles)) == len(titles) and all(len(title) > 40 for title in titles)


# --- files ----------------------------------------------------------------------------------------


def _pdf_texts(content: bytes) -> list[str]:
    """What a PDF shows, by its own account of what its codes mean."""
    streams = [
        zlib.decompress(packed)
        for packed in re.findall(rb"/FlateDecode >>\nstream\n(.*?)\nendstream", content, re.S)
    ]
    meanings = [
        {m[1]: chr(int(m[2], 16)) for m in re.finditer(r"<(\w{4})> <(\w{4})>\n", s.decode())}
        for s in streams
        if s.startswith(b"/CIDInit")
    ]
    page = streams[0].decode()
    shown = re.findall(r"/F(\d) \S+ Tf [^<]*<(\w*)> Tj", page)
    order = sorted({number for number, _ in shown})
    found = []
    for number, codes in shown:
        known = meanings[order.index(number)]
        found.append("".join(known[codes[at : at + 4]] for at in range(0, len(codes), 4)))
    return found


def test_every_figure_is_a_file_with_all_of_its_text(
    runs: dict[str, KeptRun], tmp_path: Path
) -> None:
    seen = set()
    for run in (runs[name] for name in ("deadlock", "victim", "straggler", "lossy", "cut")):
        for name, drawing in _drawn(run).items():
            seen.add(name)
            texts = {shape.text for shape in drawing.shapes if shape.text}
            svg, pdf = tmp_path / "f.svg", tmp_path / "f.pdf"
            for path in (svg, pdf):
                write_figure(drawing, path)
            root = ET.fromstring(svg.read_text())
            assert {text.text for text in root.iter("{http://www.w3.org/2000/svg}text")} >= texts
            assert "var(" not in svg.read_text() and "url(" not in svg.read_text()
            content = pdf.read_bytes()
            assert set(_pdf_texts(content)) == texts
            assert b"/FontFile2" in content and b"/Image" not in content
            for number, place in enumerate(re.findall(rb"(\d{10}) 00000 n", content), 1):
                assert content[int(place) :].startswith(b"%d 0 obj" % number)
            write_figure(figure(figures_of(run), name), pdf)
            assert pdf.read_bytes() == content
    assert seen == PICTURES.keys() - {"cluster", "slowdowns"}  # which only runs of a kind have


def test_what_cannot_be_drawn_is_said(runs: dict[str, KeptRun], tmp_path: Path) -> None:
    with pytest.raises(LabError, match="nothing to draw as 'drops'"):
        figure(figures_of(runs["victim"]), "drops")
    with pytest.raises(LabError) as unknown:
        figure(figures_of(runs["victim"]), "queue")
    assert "Choose one of fabric, queues" in (unknown.value.cure or "")
    with pytest.raises(LabError, match=r"\.svg or \.pdf"):
        write_figure(figure(figures_of(runs["victim"]), "queues"), tmp_path / "a.png")
    made = closlab("figure", str(runs["victim"].folder), "queues", "-o", str(tmp_path / "a.pdf"))
    assert made.returncode == 0, made.stderr
    assert (tmp_path / "a.pdf").read_bytes().startswith(b"%PDF-1.7")


def test_an_embedded_font_is_one_that_others_read(tmp_path: Path) -> None:
    whole = Font.find(is_bold=False)
    glyphs = [whole.glyph(letter) for letter in "Häµ→≤ﬁ"]
    assert all(glyphs)
    part = Font(whole.subset(glyphs) + b"")
    assert [part.advance(glyph) for glyph in glyphs] == [whole.advance(g) for g in glyphs]
    path = tmp_path / "part.ttf"
    path.write_bytes(whole.subset(glyphs))
    assert path.stat().st_size < 100_000
    done = subprocess.run(
        ["fc-scan", "-f", "%{fontformat}", path], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0 and done.stdout.startswith("TrueType")


def test_every_reason_for_which_packets_end_has_a_meaning() -> None:
    """But for those that go on: the program has numbers for them too."""
    go_on = {"none", "trimmed", "credit_used", "for_control", "for_tunnel", "in_sum"}
    assert set(DROP_REASONS) >= go_on
    assert set(REASONS) == set(DROP_REASONS) - go_on | {CORRUPTED, CUT, HALTED, RECEIVER}
