"""A search's page: the front, what matters, and the answer beside what is published."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from lab.machine.paths import writing_to
from params.quantity import PER_CENT, percent
from views.report.numbers import BY_KEY
from views.report.page import Panel, document, figure, heading, listing, paragraph, table, tiles
from views.report.palette import FAINT, MARK, SERIES
from views.report.svg import WIDTH, Drawing, linear, x_axis, y_axis

if TYPE_CHECKING:
    from lab.optimise.answer import Compared
    from lab.optimise.search import Asked, Found, Tried

_TOP, _HEIGHT, _AXIS, _LEFT = 14.0, 240.0, 34.0, 60.0
_MAX_ROWS = 24


def optimised(
    found: Found, answer: Tried, compared: Sequence[Compared], others: Sequence[str], path: Path
) -> None:
    """Write the page."""
    asked = found.asked
    front = found.front
    title = ", ".join(asked.scenarios)
    body = [
        heading(1, f"What serves {title} best"),
        tiles((
            ("trials", f"{len(found.tried) + found.stopped:,}"),
            ("of them stopped early", f"{found.stopped:,}"),
            ("on the front", f"{len(front):,}"), ("seeds each", f"{asked.seeds:,}"),
        )),
        paragraph(f"The search is over: {found.why_over}."),
        heading(2, "The answer"), listing(answer.changes),
        paragraph("Changed besides: " + (", ".join(asked.changes) or "nothing") + "."),
    ]  # fmt: skip
    if others:
        body.append(paragraph(f"SONiC's tables do not have: {', '.join(others)}."))
    if len(asked.objectives) > 1:
        caption = (
            "Each point is a trial with all of its seeds; those of the front, which none other is "
            "better than in all, are coloured, and the answer is the large one."
        )
        body.append(figure(Panel("The front", _picture(found, answer), caption), 2))
    body += [heading(2, "The front's trials"), _trials(found, answer)]
    if found.importance:
        names = [BY_KEY[key].name for key in found.importance]
        rows = [
            [
                lever.key,
                *(f"{shares.get(lever.key, 0.0):.0%}" for shares in found.importance.values()),
            ]
            for lever in asked.levers
        ]
        body += [heading(2, "What matters"), table(["key", *names], rows),
                 paragraph("How much of what the best tenth of trials has alike is each key's, by "
                           "PED-ANOVA.")]  # fmt: skip
    body += [heading(2, "With other seeds, and on other workloads"), _table(found, compared)]
    with writing_to(path.parent):
        path.write_text(document(f"closlab optimise: {title}", body))


def _read(asked: Asked, key: str, value: float) -> str:
    """A figure of a trial: of several workloads a share of what it is as they are."""
    return BY_KEY[key].read(value) if len(asked.scenarios) == 1 else percent(value)


def _picture(found: Found, answer: Tried) -> Drawing:
    """The first two objectives of every trial."""
    keys = found.asked.objectives
    x, y = BY_KEY[keys[0]], BY_KEY[keys[1]]
    units = [BY_KEY[key].kind.units if len(found.asked.scenarios) == 1 else PER_CENT
             for key in keys[:2]]  # fmt: skip
    fine = [one for one in found.tried if one.is_allowed]
    across = linear(max(one.values[0] for one in fine) or 1, _LEFT, WIDTH - 8)
    up = linear(max(one.values[1] for one in fine) or 1, _TOP + _HEIGHT, _TOP)
    drawing = Drawing(_TOP + _HEIGHT + _AXIS + 4, "The front")
    y_axis(drawing, up, y.name, units[1], left=_LEFT, right=WIDTH - 8)
    x_axis(drawing, across, _TOP + _HEIGHT, x.name, units[0], top=_TOP)
    numbers = {one.number for one in found.front}
    for one in fine:
        is_best = one.number in numbers
        drawing.add(
            "circle", cx=across(one.values[0]), cy=up(one.values[1]),
            r=6 if one.number == answer.number else 3,
            fill=MARK if one.number == answer.number else SERIES[0] if is_best else FAINT,
        )  # fmt: skip
    return drawing


def _trials(found: Found, answer: Tried) -> str:
    keys = [lever.key for lever in found.asked.levers]
    names = [BY_KEY[key].name for key in found.asked.objectives]
    rows = [
        [f"{one.number}{' (answer)' if one.number == answer.number else ''}",
         *(change.partition("=")[2] for change in one.changes),
         *(_read(found.asked, key, value) for key, value in
           zip(found.asked.objectives, one.values, strict=True))]
        for one in sorted(found.front, key=lambda one: one.values)[:_MAX_ROWS]
    ]  # fmt: skip
    return table(["trial", *keys, *names], rows)


def _rows(found: Found, compared: Sequence[Compared]) -> Iterator[list[str]]:
    for one in compared:
        cells = []
        for key in found.asked.objectives:
            figures_of, above = one.figures.get(key), one.above.get(key)
            read = BY_KEY[key].read
            if figures_of is None:
                cells += ["\N{EN DASH}", ""]
                continue
            cells.append(f"{read(figures_of.mean)} \N{PLUS-MINUS SIGN} {read(figures_of.within)}")
            if above is None or (not above.mean and not above.within):
                cells.append("")
                continue
            is_sure = abs(above.mean) > above.within
            sign = "+" if above.mean > 0 else "-"
            cells.append(f"{sign}{read(abs(above.mean))}{'' if is_sure else ' (not sure)'}")
        yield [one.workload, one.setting, *cells, one.failed or f"{one.lost:,.4g}"]


def _head(found: Found) -> list[str]:
    parts = [(BY_KEY[key].name, "to the answer") for key in found.asked.objectives]
    return ["workload", "setting", *(word for part in parts for word in part), "packets lost"]


def _table(found: Found, compared: Sequence[Compared]) -> str:
    return table(_head(found), _rows(found, compared)) + paragraph(
        "Means with what they are sure within by 95 % of chance, by seeds that the search did not "
        "use; beside them how much more (+) or less (-) than the answer, seed by seed, which is "
        "not sure where 0 is within."
    )


def lines(found: Found, answer: Tried, compared: Sequence[Compared]) -> Iterator[str]:
    """As a terminal has it."""
    asked = found.asked
    yield (f"{len(found.tried)} trials with {asked.seeds} seeds, {found.stopped} stopped early, "
           f"{len(found.front)} on the front: {found.why_over}")  # fmt: skip
    yield f"Found: {' '.join(answer.changes)}"
    for key, shares in found.importance.items():
        parts = sorted(shares.items(), key=lambda pair: -pair[1])
        yield f"{BY_KEY[key].name}: " + ", ".join(f"{name} {share:.0%}" for name, share in parts)
    rows = [_head(found), *_rows(found, compared)]
    wide = [max(len(row[at]) for row in rows) for at in range(len(rows[0]))]
    for row in rows:
        yield "  ".join(cell.ljust(width) for cell, width in zip(row, wide, strict=True)).rstrip()
