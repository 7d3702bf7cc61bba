"""The pages of reproductions: theirs beside ours, the verdict, and what each run showed."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Mapping, Sequence

from lab.reproduce.paper import Line
from lab.reproduce.verdict import PROCESSORS, Compared, Judged, Verdict
from lab.runs.provenance import closlab_now
from params.quantity import number
from views.report import page
from views.report.again import closlab_of
from views.report.charts import Spread, bars
from views.report.page import Decisive, Link, Panel

_HELD = {True: "met", False: "not met", None: ""}


def theirs(line: Line) -> str:
    """What was published, as people read it."""
    if not line.published:
        return "" if line.theirs is None else str(line.theirs)
    return " to ".join(line.kind.text(each) for each in line.published)


def ours(compared: Compared) -> str:
    """What the lab comes to; of several seeds the least and the most as well."""
    line, seeds = compared.line, compared.by_seed
    if line.holds is not None:
        held = sum(each >= 1 for each in seeds)
        return ("yes" if compared.holds else "no") + (
            f" ({held} of {len(seeds)} seeds)" if len(seeds) > 1 else ""
        )
    text = line.kind.text(compared.ours)
    if len(seeds) == 1:
        return text
    return f"{text} ({line.kind.text(min(seeds))} to {line.kind.text(max(seeds))})"


def document(
    judged: Judged, links: Mapping[tuple[str, int], str], commands: Mapping[str, str]
) -> str:
    """The page of one; links lead to the reports of its runs, by case and seed."""
    title = f"{judged.paper.title} · reproduced"
    return page.document(f"{title} · closlab", _body(judged, links, commands), is_wide=True)


def _body(
    judged: Judged, links: Mapping[tuple[str, int], str], commands: Mapping[str, str]
) -> Iterator[str]:
    paper, source = judged.paper, judged.paper.source
    yield page.heading(1, paper.title)
    yield page.paragraph(f"{source.paper}. {source.venue}, {source.where}. {source.link}", "about")
    kind = "story" if judged.verdict is Verdict.WITHIN else "story warning"
    yield page.paragraph(f"{judged.sentence[0].upper()}{judged.sentence[1:]}.", kind)
    yield _table(judged.lines)
    if ratios := _ratios(judged.lines):
        yield page.grid([ratios], level=2)
    if any(line.line.reason for line in judged.lines):
        yield page.heading(2, "Why ours is another")
        yield page.listing(
            f"{line.line.what}: {line.line.reason.strip()}"
            for line in judged.lines
            if line.line.reason
        )
    if judged.causes:
        yield page.heading(2, "Experiments on what differs")
        yield _table(judged.causes)
        causes = [line for line in judged.causes if line.line.reason]
        yield page.listing(f"{line.line.what}: {line.line.reason.strip()}" for line in causes)
    yield page.heading(2, "What they did")
    yield page.paragraph(paper.theirs.strip())
    yield page.heading(2, "What is done here")
    yield page.paragraph(paper.here.strip())
    yield page.heading(2, "Where the figures are from")
    verified = "" if source.verified else " No text was there to check them by."
    yield page.paragraph(f"{source.read.strip()}{verified} {source.licence.strip()}")
    yield page.heading(2, "The runs")
    seeds = sorted({seed for _, seed in links})
    yield page.table(
        ("case", *(f"seed {seed}" for seed in seeds), "changed in the scenario"),
        (
            (
                case,
                *(Link("report", links[case, seed]) for seed in seeds),
                ", ".join(changes) or "nothing",
            )
            for case, changes in paper.cases.items()
        ),
        "texts",
    )
    yield page.folded("Their commands", page.preformatted("\n".join(commands.values())))
    formulas = [(line.line.what, line.line.formula.text) for line in judged.lines]
    yield page.folded("The formulas", page.table(("what", "formula"), formulas, "texts"))
    command = shlex.join(("closlab", "reproduce", judged.name))
    yield page.foot(f"Measured by {closlab_of(closlab_now())}, in the simulator.", command)


def _table(lines: Sequence[Compared]) -> str:
    head = ("what", "theirs", "ours", "ours / theirs", "criterion", "")
    return page.table(
        head,
        (
            (
                line.line.what,
                theirs(line.line),
                ours(line),
                f"{line.ratio:.3f}" if line.ratio is not None else "",
                line.line.criterion,
                Decisive(_HELD[line.holds]) if line.holds is False else _HELD[line.holds],
            )
            for line in lines
        ),
        "texts",
    )


def _ratios(lines: Sequence[Compared]) -> Panel | None:
    """Ours over theirs, a bar a line."""
    compared = {line.line.what: line for line in lines if line.ratio is not None}
    if not compared:
        return None
    spreads = {
        what: Spread.of([each / line.line.published[0] for each in line.by_seed])
        for what, line in compared.items()
        if len(line.by_seed) > 1
    }
    drawing = bars(
        "Ours over theirs",
        {what: line.ratio or 0.0 for what, line in compared.items()},
        number,
        spreads,
    )
    return Panel("Ours over theirs", drawing, "1 is the published figure.")


def summary(judged: Sequence[Judged]) -> str:
    """The page of all of them."""
    within = sum(each.verdict is Verdict.WITHIN for each in judged)
    rows = (
        (
            Link(each.name, f"{each.name}/index.html"),
            each.paper.title,
            f"{each.paper.source.venue}, {each.paper.source.where}",
            each.sentence,
            f"{each.took_s:.0f} s",
        )
        for each in judged
    )
    body = (
        page.heading(1, "Published results, made again"),
        page.paragraph(
            f"{within} of {len(judged)} are within the criterion that was written down before the "
            "run.",
            "story" if within == len(judged) else "story warning",
        ),
        page.table(
            ("name", "what", "published", "verdict", f"on {PROCESSORS} processors"), rows, "texts"
        ),
        page.foot(
            f"Measured by {closlab_of(closlab_now())}, in the simulator.",
            "closlab reproduce --all",
        ),
    )
    return page.document("Published results, made again · closlab", body, is_wide=True)
