"""Where a report draws what happened when: the bars are found again in what the run kept."""

import csv
import re
import xml.etree.ElementTree as ET
from collections import Counter
from pathlib import Path

import pytest

from tests.lab.simulated import simulate
from views.report import write_report
from views.report.palette import DROP, MARK

CASES = {
    "marked": (MARK, "ecn.enabled=true", "ecn.kmin=20KB", "transport.cc=dcqcn"),
    "dropped": (DROP, "pfc.enabled=false"),
}
HIGHEST, GAP = 28.0, 0.4  # of a bar, and between two, in the drawing's units


def events(folder: Path, what: str) -> Counter[int]:
    """How many when, from what was kept: a link tells its own marks, and its switch's drops."""
    found: Counter[int] = Counter()
    before: Counter[str] = Counter()
    for row in csv.DictReader((folder / "timeseries.csv").open()):
        place = row["link"].partition(">")[0] if what == "dropped" else row["link"]
        grown = int(row[what]) - before[place]
        if grown > 0:
            found[int(row["time_ns"])] += grown
            before[place] += grown
    return found


@pytest.mark.parametrize("what", CASES)
def test_marks_and_drops_are_drawn_when_they_were(what: str, tmp_path: Path) -> None:
    colour, *changes = CASES[what]
    small = ("traffic.bytes=400KB", "buffer.bytes=600KB")
    run = simulate("incast", *small, *changes, out=tmp_path)
    write_report(tmp_path)
    text = (tmp_path / "report.html").read_text()
    (strips,) = re.findall(r"<svg [^>]*The longest queues over.*?</svg>", text, re.S)
    drawing = ET.fromstring(strips)
    (path,) = (path for path in drawing.iter("path") if path.get("fill") == f"var(--{colour})")
    bars = [
        tuple(map(float, bar))
        for bar in re.findall(r"M([\d.]+) [\d.]+h([\d.]+)v([\d.]+)", path.attrib["d"])
    ]
    # The time axis is as long as the lines that strips stand on; a bar takes a share of it.
    start = min(float(line.attrib["x1"]) for line in drawing.iter("line"))
    end = max(float(line.attrib["x2"]) for line in drawing.iter("line"))
    shares = round((end - start) / (bars[0][1] + GAP))
    happened = events(tmp_path, what)
    assert max(happened) - min(happened) > run.result.duration_ns / 10  # else any place would do
    expected: Counter[int] = Counter()
    for at, count in happened.items():
        expected[min(shares - 1, at * shares // run.result.duration_ns)] += count
    most = max(expected.values())
    for (left, _, tall), (share, count) in zip(bars, sorted(expected.items()), strict=True):
        assert left == pytest.approx(start + share * (end - start) / shares, abs=0.1)
        assert tall == pytest.approx(HIGHEST * count / most, abs=0.1)
