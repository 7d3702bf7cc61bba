"""The report of section 13 for people: the eight parts that the draft names, in its order."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path

from lab.bmwg.draft import CHAPTERS, DRAFT, LINK, NOT_RUN, Test
from lab.bmwg.outcome import KINDS, Outcome, Plot, Row, Table
from lab.bmwg.report import PAGE, TABLE, Made, host_configuration, identification, structure
from lab.errors import LabError
from lab.runs.provenance import closlab_now
from params.quantity import percent, plural
from views.report import page
from views.report.again import closlab_of
from views.report.charts import bars, lines
from views.report.differences import flat, written
from views.report.page import Panel
from views.report.svg import Drawing

_STEADY = 0.05  # the draft's illustrative reference point for CV
_REFERENCES = {
    "JCT ratio": "1.05, or 1.15 as acceptable", "BusBW": "90 % of line rate",
    "dropped": "0 in lossless profiles",
}  # fmt: skip


def document(made: Made, out: Path) -> str:
    """The page."""
    title = "Benchmark of an AI training fabric"
    return page.document(f"{title} · closlab", _body(made, title, out), is_wide=True)


def _body(made: Made, title: str, out: Path) -> Iterator[str]:
    bench = made.bench
    yield page.heading(1, title)
    yield page.paragraph(f"{bench.name}, by {DRAFT}. {LINK}", "about")
    measured = [o for o in made.done.values() if isinstance(o, Outcome)]
    failed = len(made.done) - len(measured)
    quick = (
        " Quick: few of the draft's parameters and trials, so these figures are a first look and "
        "no benchmark result." if bench.extent.is_quick else ""
    )  # fmt: skip
    where = "simulator" if bench.engine == "sim" else "emulator on Mininet"
    runs, behind_figures = made.workshop.asked, made.behind_figures
    searched = (
        f"; {behind_figures:,} of them stand behind figures, the others were steps of searches"
        if runs > behind_figures else ""
    )  # fmt: skip
    yield page.paragraph(
        f"{plural(len(measured), 'test')} of sections 5 to 12 by {plural(runs, 'run')} in the "
        f"{where}{searched}." + (f" {failed} failed." if failed else "") + quick,
        "story warning" if failed or bench.extent.is_quick else "story",
    )  # fmt: skip
    yield page.tiles(_first(made))
    yield page.paragraph(
        "The draft defines what is measured and no acceptance criteria; nor does this page. "
        "Its appendix names, as references that bind nobody: "
        + "; ".join(f"{name} {said}" for name, said in _REFERENCES.items()) + ".", "about",
    )  # fmt: skip
    yield page.heading(2, "1. DUT identification")
    yield page.table(("parameter", "here"), list(identification(made).items()), "texts")
    yield page.heading(2, "2. Test topology")
    cells = {name: _said(value) for name, value in structure(bench).items()}
    yield page.table(("parameter", "here"), list(cells.items()), "texts")
    yield page.heading(2, "3. Test configuration")
    settings = [(key, written(value)) for key, value in _settings(made)]
    yield page.folded("All keys of the device", page.table(("key", "value"), settings, "texts"))
    yield page.heading(2, "4. Host configuration")
    hosts = {name: _said(value) for name, value in host_configuration(bench).items()}
    yield page.table(("parameter", "here"), list(hosts.items()), "texts")
    yield page.heading(2, "5. Test results")
    yield page.paragraph(
        "A figure is the mean of its trials; what stands behind \N{PLUS-MINUS SIGN} is their "
        "coefficient of variation, the standard deviation as a share of that mean.",
        "about",
    )
    chapter = 0
    for test, outcome in made.done.items():
        if test.chapter != chapter:
            chapter = test.chapter
            yield page.heading(2, f"Section {chapter}: {CHAPTERS[chapter]}")
        yield from _test(made, test, outcome)
    yield page.heading(2, "6. Anomalies")
    yield page.listing([*made.anomalies(), *(f"{s} was not run. {why}" for s, why in
                                             NOT_RUN.items())])  # fmt: skip
    yield page.heading(2, "7. Repeatability")
    yield page.paragraph(
        f"Trials and coefficient of variation of each test's primary figure, the largest of its "
        f"table; {percent(_STEADY)} is the draft's illustrative point. In the simulator a trial "
        "is another seed, so what chance has no part in varies by 0; of collectives and jobs a "
        "trial is an iteration.", "about",
    )  # fmt: skip
    head = ("test", "primary figure", "trials", "largest CV")
    yield page.table(head, list(_repeatability(made)), "texts")
    yield page.heading(2, "8. Comparability")
    yield page.paragraph(
        f"One fabric: closlab bmwg --compare {out} --compare OTHER puts another beside it."
    )
    yield page.paragraph(f"Every figure, a line each, with its command: {TABLE}.", "about")
    yield page.foot(f"Measured by {closlab_of(closlab_now())}.", made.command)


def _said(value: object) -> str:
    return "does not apply" if value is None else f"{value:g}" if isinstance(value, float) else (
        str(value)
    )  # fmt: skip


def _settings(made: Made) -> Iterator[tuple[str, object]]:
    found = flat(made.bench.scenario)
    roots = {*made.bench.device}
    yield from ((key, value) for key, value in found.items() if key.partition(".")[0] in roots)


def _first(made: Made) -> Iterator[tuple[str, str]]:
    """What one looks at first: the primary KPIs as far as they were measured, and of which
    parameters they are."""
    wanted = (
        ("throughput", "payload by line rate", "most payload by line rate", max),
        ("jct", "whole JCT ratio", "lowest JCT ratio", min),
        ("allreduce", "BusBW", "highest AllReduce BusBW", max),
        ("fairness", "JFI", "highest JFI", max),
        ("bursts", "absorbed", "largest burst absorbed", max),
        ("tenants", "interference factor", "worst interference", max),
    )
    by_key = {test.key: outcome for test, outcome in made.done.items()}
    for key, figure, name, choose in wanted:
        outcome = by_key.get(key)
        if isinstance(outcome, Outcome) and outcome.tables:
            table = outcome.tables[0]
            means = [(mean, row) for row in table.rows if (mean := row.mean(figure)) is not None]
            if means:
                mean, row = choose(means, key=lambda each: each[0])
                of = ", ".join(f"{key} {value}" for key, value in row.of.items())
                yield f"{name}: {of}", KINDS[table.units[figure]].text(mean)


def _test(made: Made, test: Test, outcome: Outcome | LabError) -> Iterator[str]:
    yield page.heading(3, f"{test.section} {test.title}")
    if isinstance(outcome, LabError):
        yield page.paragraph(f"It failed: {outcome.message}", "story warning")
        return
    drawings = [_drawn(plot) for plot in outcome.plots]
    shown = [Panel(plot.title, drawing, plot.caption)
             for plot, drawing in zip(outcome.plots, drawings, strict=True) if drawing]  # fmt: skip
    for table in outcome.tables:
        if len(outcome.tables) > 1:
            yield page.paragraph(table.title, "about")
        yield _table(table)
    if shown:
        yield page.grid(shown)
    said = [*outcome.deviations, *(f"Not run: {each}." for each in outcome.left_out)]
    if said:
        yield page.folded("Deviations from the draft", page.listing(said))
    commands = dict.fromkeys(
        command for table in outcome.tables for row in table.rows for command in made.commands(row)
    )
    yield page.folded(f"The {len(commands)} runs", page.preformatted("\n".join(commands)))


def _table(table: Table) -> str:
    parameters = list(dict.fromkeys(name for row in table.rows for name in row.of))
    return page.table(
        (*parameters, *table.units),
        (
            (
                *(row.of.get(name, "") for name in parameters),
                *(_cell(table, row, figure) for figure in table.units),
            )
            for row in table.rows
        ),
    )


def _cell(table: Table, row: Row, figure: str) -> str:
    """The mean, and how far trials lay apart where they did."""
    mean, apart = row.mean(figure), table.variation(row, figure)
    if mean is None:
        return "\N{EN DASH}"
    text = KINDS[table.units[figure]].text(mean)
    return f"{text} \N{PLUS-MINUS SIGN} {percent(abs(apart))}" if apart and abs(
        apart) >= 0.001 else text  # fmt: skip


def _drawn(plot: Plot) -> Drawing | None:
    unit = KINDS[plot.y[1]]
    if plot.kind == "bars":
        return bars(plot.title, plot.bars, unit.text) if plot.bars else None
    series: Mapping[str, Mapping[float, float]] = {
        name: points for name, points in plot.series.items() if points
    }
    if not series:
        return None
    x = plot.x[0], KINDS[plot.x[1]].units
    return lines(plot.title, x, (plot.y[0], unit.units), series, is_log=plot.is_log)


def _repeatability(made: Made) -> Iterator[tuple[str, str, str, str]]:
    for test, outcome in made.done.items():
        if isinstance(outcome, LabError) or not outcome.primary:
            continue
        rows = [(table, row) for table in outcome.tables for row in table.rows
                if row.figures.get(outcome.primary)]  # fmt: skip
        if not rows:
            continue
        trials = max(len(row.figures[outcome.primary]) for _, row in rows)
        found = [abs(each) for table, row in rows
                 if (each := table.variation(row, outcome.primary)) is not None]  # fmt: skip
        yield (
            f"{test.section} {test.title}", outcome.primary, str(trials),
            percent(max(found)) if found else "one trial",
        )  # fmt: skip


__all__ = ["PAGE", "document"]
