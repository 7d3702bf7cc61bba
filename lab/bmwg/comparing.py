"""Two reports side by side: the comparability set first, then every figure that both have."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from lab.bmwg.outcome import KINDS
from lab.bmwg.report import read
from lab.errors import LabError
from lab.runs.provenance import closlab_now
from views.report import page
from views.report.again import closlab_of

Key = tuple[str, str, str, str]  # section, table, parameters, figure
COMPARED = "compared.html"


def figures(report: Mapping[str, Any]) -> dict[Key, tuple[str, float]]:
    """Every figure of a report: its unit and mean."""
    found: dict[Key, tuple[str, float]] = {}
    try:
        for test in report["results"]:
            for table in test.get("tables", ()):
                for row in table["rows"]:
                    of = ", ".join(f"{name} {value}" for name, value in row["of"].items())
                    for name, figure in row["figures"].items():
                        if figure is not None:
                            key = str(test["section"]), str(table["title"]), of, str(name)
                            found[key] = str(table["units"][name]), float(figure["mean"])
    except (KeyError, TypeError, ValueError, AttributeError):
        raise LabError(
            "a report is not as bmwg writes it", "It may be damaged: make it again."
        ) from None
    return found


def differing(one: Mapping[str, Any], other: Mapping[str, Any]) -> dict[str, tuple[str, str]]:
    """Parameters of the comparability set that are not the same."""
    ours, theirs = one["comparability"], other["comparability"]
    return {
        name: (str(ours.get(name)), str(theirs.get(name)))
        for name in dict.fromkeys((*ours, *theirs))
        if ours.get(name) != theirs.get(name)
    }


def document(paths: tuple[Path, Path]) -> str:
    """The page of both."""
    one, other = map(read, paths)
    return page.document("Two benchmarks · closlab", _body(one, other, paths), is_wide=True)


def _body(one: Mapping[str, Any], other: Mapping[str, Any], paths: tuple[Path, Path]
          ) -> Iterator[str]:  # fmt: skip
    yield page.heading(1, "Two benchmarks side by side")
    yield page.paragraph(f"{paths[0]} and {paths[1]}; both by {one.get('draft', '')}.", "about")
    differ = differing(one, other)
    if differ:
        yield page.paragraph(
            f"They differ in {', '.join(differ)}: by section 3.2 of the draft their figures stand "
            "side by side, and are not combined into one.", "story warning",
        )  # fmt: skip
    else:
        yield page.paragraph(
            "Every parameter of the comparability set is the same: figures may be compared "
            "directly.", "story",
        )  # fmt: skip
    yield page.heading(2, "Comparability statement")
    sets = one["comparability"], other["comparability"]
    yield page.table(
        ("parameter", "first", "second", ""),
        (
            (name, str(sets[0].get(name)), str(sets[1].get(name)),
             page.Decisive("differs") if name in differ else "the same")
            for name in dict.fromkeys((*sets[0], *sets[1]))
        ), "texts",
    )  # fmt: skip
    ours, theirs = figures(one), figures(other)
    shared = [key for key in ours if key in theirs]
    yield page.heading(2, "Figures that both have")
    for section in dict.fromkeys(key[0] for key in shared):
        rows = []
        for key in (key for key in shared if key[0] == section):
            unit, first = ours[key]
            second = theirs[key][1]
            kind = KINDS.get(unit, KINDS["count"])
            times = f"{second / first:.3f}" if first and not differ else ""
            rows.append((f"{key[1]}: {key[2]}, {key[3]}", kind.text(first), kind.text(second),
                         times))  # fmt: skip
        moved = sum(ours[key][1] != theirs[key][1] for key in shared if key[0] == section)
        head = ("figure", "first", "second", "" if differ else "second / first")
        yield page.folded(f"Section {section}: {moved} of {len(rows)} differ",
                          page.table(head, rows))  # fmt: skip
    alone = len(ours) + len(theirs) - 2 * len(shared)
    if alone:
        yield page.paragraph(f"{alone} figures are in one of the two alone.", "about")
    yield page.foot(f"Made by {closlab_of(closlab_now())}.",
                    f"closlab bmwg --compare {paths[0]} --compare {paths[1]}")  # fmt: skip
