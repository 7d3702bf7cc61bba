"""Fabrics of any size are drawn legibly: nodes and lines, a ring as one, strips for many."""

import json
import random
import re
import xml.etree.ElementTree as ET
from pathlib import Path
from typing import Any

import pytest

from lab.results.result import Drops, Ecn, Fidelity, Flows, LinkUse, Pause, Pfc, Result, Roce
from lab.scenario import catalogue
from lab.scenario.model import Scenario
from tests.lab.browser import browser, needs_chromium
from views.report import page
from views.report.kept import KeptRun
from views.report.page import Panel
from views.report.svg import WIDTH, width_of
from views.report.topology import is_large, parts, topology


def _run(changes: tuple[str, ...], seed: int) -> KeptRun:
    """A run of no traffic at all, with figures drawn by lot for every direction."""
    lot = random.Random(seed)
    content = catalogue.read("incast", changes).model_dump(mode="json", exclude_none=True)
    scenario = Scenario.model_validate(content)
    fabric = scenario.topology.build()
    names = [name for link in fabric.links for name in (link.up, link.down)]
    paused = {name: Pause(xoff_frames=1, paused_ns=lot.randrange(1000)) for name in names[::3]}
    lost = {str(switch): lot.randrange(1, 9999) for switch in fabric.switches[::2]}
    result = Result(
        **{"scenario": scenario, "engine": "sim", "switch": "soft", "seed": seed, "dilation": 1},
        provenance={},
        duration_ns=1000,
        flows=Flows(count=0, completed=0, failed=0, bytes=0),
        drops=Drops(total=sum(lost.values()), by_reason={}, by_switch=lost),
        ecn=Ecn(marked_packets=0),
        pfc=Pfc(xoff_frames=1, xon_frames=0, paused_ns=1, by_link=paused),
        roce=Roce(**dict.fromkeys(Roce.model_fields, 0)),
        links=tuple(
            LinkUse(name=name, packets=1, bytes=1, utilisation=lot.random()) for name in names
        ),
        fidelity=Fidelity(late_p99_ns=0, ok=True),
    )
    return KeptRun(Path(), result, (), (), ())


def _leaf_spine(leaves: int, spines: int, hosts: int) -> tuple[str, ...]:
    return (f"topology={{kind: leaf-spine, leaves: {leaves}, spines: {spines}, "
            f"hosts_per_leaf: {hosts}}}",)  # fmt: skip


def _boxes_of_texts(drawing: ET.Element) -> list[tuple[float, float, float, float, str]]:
    found = []
    for text in drawing.iter("text"):
        x, y, said = float(text.attrib["x"]), float(text.attrib["y"]), text.text or ""
        wide = width_of(said) * 0.9
        left = x - {"start": 0, "middle": wide / 2, "end": wide}[text.get("text-anchor", "start")]
        found.append((left, y - 9, left + wide, y + 1, said))
    return found


SIZES = {
    "4 hosts": _leaf_spine(2, 2, 2),
    "64 hosts": _leaf_spine(8, 4, 8),
    "16 leaves": _leaf_spine(16, 8, 16),
    "64 leaves": _leaf_spine(64, 32, 16),
    "32 leaves": _leaf_spine(32, 16, 32),  # each spine has a row, of a number with two digits
    "1,024 hosts in pods": ("topology={kind: fat-tree, k: 16}",),
    "4,096 hosts": _leaf_spine(256, 16, 16),
    "rails": ("topology={kind: rail, servers: 16, rails: 8, spines: 4}",),
    "many rails": ("topology={kind: rail, servers: 40, rails: 8, spines: 4}",),
}


@pytest.mark.parametrize("size", SIZES)
def test_no_text_covers_another_and_all_stays_on_the_paper(size: str) -> None:
    text = topology(_run(SIZES[size], 7)).render()
    drawing = ET.fromstring(text)
    height = float(drawing.attrib["viewBox"].split()[3])
    boxes = _boxes_of_texts(drawing)
    for at, (left, top, right, bottom, said) in enumerate(boxes):
        assert left >= -6 and right <= WIDTH + 12 and top >= -2 and bottom <= height + 1, said
        for other in boxes[:at]:
            apart = right <= other[0] or other[2] <= left or bottom <= other[1] or other[3] <= top
            assert apart, (said, other[4])
    for box in drawing.iter("rect"):
        assert 0 <= float(box.attrib["y"]) <= height
    assert len(text) < 500_000


@pytest.mark.parametrize("size", ["16 leaves", "1,024 hosts in pods"])
def test_every_leaf_of_a_large_fabric_has_its_cell_as_dark_as_its_links(size: str) -> None:
    run = _run(SIZES[size], 8)
    assert is_large(run.fabric)
    used = {use.name: use.utilisation or 0 for use in run.result.links}
    drawing = ET.fromstring(topology(run).render())
    cells = {
        title.text: box.get("fill") for box in drawing.iter("rect") for title in box.iter("title")
    }
    for leaf in (s for s in run.fabric.switches if s.name.startswith("leaf")):
        hosts = [link for link in run.fabric.links if link.b == leaf]
        most = max(used[name] for link in hosts for name in (link.up, link.down))
        found = [fill for tip, fill in cells.items() if tip == f"{leaf}: its busiest link "
                 + (f"{100 * most:.0f} %")]  # fmt: skip
        shades = [f"var(--busy{number})" for number in range(1, 5)]
        assert shades[min(3, int(most * 4))] in found, (leaf, most)


def test_a_ring_of_switches_is_drawn_as_one(tmp_path: Path) -> None:
    for count in (3, 4, 7):
        names = [f"s{at}" for at in range(1, count + 1)]
        content = {
            "hosts": {
                f"h{at}": {"ip": f"10.0.{at}.{at}/24", "mac": f"08:00:00:00:00:{at:02x}"}
                for at in range(1, count + 1)
            },
            "switches": {name: {} for name in names},
            "links": [
                *([f"h{at}", f"s{at}-p1"] for at in range(1, count + 1)),
                *([f"s{at}-p2", f"s{at % count + 1}-p3"] for at in range(1, count + 1)),
            ],
        }
        path = tmp_path / f"{count}.json"
        path.write_text(json.dumps(content))
        run = _run((f"topology={{kind: file, path: {path}}}",), count)
        text = topology(run).render()
        places = {
            name: (float(x) + float(wide) / 2, float(y) + float(high) / 2)
            for x, y, wide, high, name in re.findall(
                r'<rect x="([\d.]+)" y="([\d.]+)" width="([\d.]+)" height="([\d.]+)"[^>]*>'
                r"<title>(leaf\d+)[:<]",
                text,
            )
        }
        assert len(places) == count
        middle = [sum(place[at] for place in places.values()) / count for at in (0, 1)]
        far = [
            (((x - middle[0]) / 1.35) ** 2 + (y - middle[1]) ** 2) ** 0.5
            for x, y in places.values()
        ]
        assert max(far) - min(far) < 1 and min(far) > 50


# --- parts, of which one is unfolded --------------------------------------------------------------

_BOX = re.compile(r"M(-?[\d.]+) (-?[\d.]+)h([\d.]+)v([\d.]+)")
Cells = list[tuple[float, float, float, str]]  # top, left, width, colour


def _cells(drawing: ET.Element) -> tuple[Cells, Cells]:
    """What is drawn of links, and the bars below that; from the top, each row from the left."""
    cells: Cells = []
    bars: Cells = []
    for path in drawing.iter("path"):
        colour = str(path.get("fill")).removeprefix("var(--").rstrip(")")
        for x, y, wide, _ in _BOX.findall(path.attrib["d"]):
            found = bars if colour == "pause" else cells
            found.append((float(y), float(x), float(wide), colour))
    return sorted(cells), sorted(bars)


def _up_first(end: str) -> tuple[bool, int]:
    return end[0] == "h", int(re.sub(r"\D", "", end))


def _busy_class(share: float) -> str:
    return f"busy{sum(share >= least for least in (0.01, 0.25, 0.5, 0.75))}"


@pytest.mark.parametrize("size", ["16 leaves", "1,024 hosts in pods", "many rails"])
def test_every_link_has_its_cells_in_one_part(size: str) -> None:
    """A row a switch, up before hosts, by number: told from the fabric's graph alone."""
    run = _run(SIZES[size], 9)
    used = {use.name: use.utilisation or 0 for use in run.result.links}
    drawn, first = parts(run)
    assert 0 <= first < len(drawn) <= 64
    assert len({part.name for part in drawn}) == len(drawn)
    assert sum(len(part.drawing.render()) for part in drawn) < 700_000
    by_leaf: dict[str, list[str]] = {}
    for link in run.fabric.links:
        near = link.a if link.joins_switches else link.b
        by_leaf.setdefault(str(near), []).append(str(link.b if link.joins_switches else link.a))
    seen: list[Any] = []
    for part in drawn:
        root = ET.fromstring(part.drawing.render())
        cells, bars = _cells(root)
        rows: dict[float, Cells] = {}
        for cell in cells:
            rows.setdefault(cell[0], []).append(cell)
        texts = [text.text or "" for text in root.iter("text")]
        names = [text for text in texts if re.fullmatch(r"(leaf|spine)\d+", text)]
        tops = sorted(rows)
        assert len(tops) == 2 * len(names)
        for name, upper, lower in zip(names, tops[::2], tops[1::2], strict=True):
            ends = sorted(by_leaf[name], key=_up_first)
            ways = [(f"{name}>{end}", f"{end}>{name}") if end[0] != "h"
                    else (f"{end}>{name}", f"{name}>{end}") for end in ends]  # fmt: skip
            for top, directions in zip((upper, lower), zip(*ways, strict=True), strict=True):
                assert [c for *_, c in rows[top]] == [_busy_class(used[n]) for n in directions]
                stood = [run.result.pfc.by_link[n].paused_ns / 1000 if n in run.result.pfc.by_link
                         else 0 for n in directions]  # fmt: skip
                marks = [
                    sum(wide for y, x, wide, _ in bars if 6 < y - top < 8 and abs(x - left) < 0.2)
                    / cell_wide
                    for _, left, cell_wide, _ in rows[top]
                ]
                assert marks == pytest.approx(stood, abs=0.15)
                seen += directions
    assert sorted(seen) == sorted(used)


def test_the_part_where_most_is_the_matter_is_unfolded_first() -> None:
    run = _run(SIZES["4,096 hosts"], 3)
    still = {f"h{host}>leaf141": Pause(xoff_frames=1, paused_ns=1000) for host in (2241, 2256)}
    quiet = run.result.model_copy(
        update={"pfc": Pfc(xoff_frames=2, xon_frames=0, paused_ns=2000, by_link=still)}
    )
    drawn, first = parts(KeptRun(Path(), quiet, (), (), ()))
    assert drawn[first].name == "leaf137 to 144"
    assert "2 directions stood still, longest h2256>leaf141 (100 % of the time)" in (
        drawn[first].drawing.title
    )
    assert parts(_run(SIZES["64 hosts"], 3)) == ([], 0)


@needs_chromium
def test_a_click_and_a_key_unfold_a_part_and_fold_the_last(tmp_path: Path) -> None:
    run = _run(SIZES["1,024 hosts in pods"], 5)
    drawn, first = parts(run)
    panels = [Panel("The fabric", topology(run)), Panel("Parts", None, parts=drawn, first=first)]
    path = tmp_path / "page.html"
    path.write_text(page.document("A page", [page.columns(panels, 100), page.script(panels)]))
    opened = "[...document.querySelectorAll('.parts details')].flatMap((d, n) => d.open ? n : [])"
    other = (first + 3) % len(drawn)
    with browser() as chromium:
        tab = chromium.open(path.as_uri())
        tab.until("document.readyState === 'complete'")
        assert tab.js(opened) == [first]
        tab.click(f"svg [data-part='{other}']")
        assert tab.until(f"{opened}.includes({other}) && {opened}") == [other]
        tab.js(f"document.querySelectorAll('.parts summary')[{first}].focus()")
        tab.key("Enter")
        tab.until(f"{opened}[0] === {first}")
        assert tab.js(opened) == [first]
        assert tab.complaints() == []
