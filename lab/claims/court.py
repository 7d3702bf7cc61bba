"""``closlab claims``: runs what claims need, has them judged, and writes down what came of it.

The same run serves every claim that asks for it. ``claims.json`` holds words, verdicts and figures,
``claims.html`` the same with diagrams and with the commands that repeat each run.
"""

from __future__ import annotations

import io
import json
import shlex
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from lab.claims.claim import Case, Claim, Found, Judgement, Verdict
from lab.claims.energy import ENERGY_CLAIMS
from lab.claims.fabric import FABRIC_CLAIMS
from lab.claims.loss import LOSS_CLAIMS
from lab.claims.scale_up import SCALE_UP_CLAIMS
from lab.engines import RunOptions
from lab.errors import LabError, RunError
from lab.machine.parallel import in_parallel
from lab.machine.paths import writing_to
from lab.machine.scratch import scratch
from lab.progress import Stages
from lab.runs.provenance import closlab_now
from lab.runs.run import INTERRUPTED, measure
from lab.scenario import catalogue
from lab.scenario.keys import nearest
from views.report import page
from views.report.again import closlab_of
from views.report.page import Panel

CLAIMS: tuple[Claim, ...] = (
    *LOSS_CLAIMS,
    *FABRIC_CLAIMS,
    *ENERGY_CLAIMS,
    *SCALE_UP_CLAIMS,
)
_COLOURS = {
    Verdict.HOLDS: "green", Verdict.SOMETIMES: "yellow", Verdict.FAILS: "red",
}  # fmt: skip


def claims(
    keys: Sequence[str], out: Path, processes: int | None, console: Console, *, is_json: bool
) -> int:
    """Put claims to the test: those named, or all. The exit code says whether all were judged."""
    asked = _chosen(keys)
    judgements = try_claims(asked, processes, console)
    chosen = [claim for claim in asked if claim.key in judgements]
    if not chosen:
        console.print("Interrupted before any claim had all its runs; nothing is kept.")
        return INTERRUPTED
    content = json.dumps(_content(chosen, judgements), indent=2) + "\n"
    html = page.document("Claims about AI fabrics · closlab", _body(chosen, judgements))
    with writing_to(out):
        (out / "claims.json").write_text(content)
        (out / "claims.html").write_text(html)
    if is_json:
        print(content, end="")
    else:
        Console().print(_table(chosen, judgements))
        print(f"With diagrams and commands: {out}/claims.html; for machines: {out}/claims.json")
    if len(chosen) < len(asked):
        console.print(f"Interrupted: {len(chosen)} of {len(asked)} claims are judged and kept.")
        return INTERRUPTED
    return 0


def try_claims(
    chosen: Sequence[Claim], processes: int | None, console: Console
) -> dict[str, Judgement]:
    """Every claim's judgement, by its key; if interrupted, of those that have all their runs."""
    cases = list(dict.fromkeys(case for claim in chosen for case in claim.cases.values()))
    found: dict[Case, Found] = {}
    with suppress(KeyboardInterrupt):
        for case, outcome in in_parallel(run_case, cases, processes, Stages(console)):
            if isinstance(outcome, str):
                raise RunError(f"{outcome}\n  in: {case.command}")
            found[case] = outcome
    return {
        claim.key: claim.judge({name: found[case] for name, case in claim.cases.items()})
        for claim in chosen
        if all(case in found for case in claim.cases.values())
    }


def run_case(case: Case) -> Found | str:
    """Run a case in this process: what it found, or what went wrong."""
    try:
        with scratch() as folder:
            options = RunOptions(out=folder, engine="sim")
            chosen = catalogue.load(case.scenario, case.changes)
            return Found.of(measure(chosen, options, Console(file=io.StringIO())))
    except LabError as error:
        return error.message
    except OSError as error:
        return str(error)


def _chosen(keys: Sequence[str]) -> tuple[Claim, ...]:
    known = {claim.key: claim for claim in CLAIMS}
    for key in keys:
        if key not in known:
            raise RunError(
                f"there is no claim '{key}'" + nearest(key, known), f"There are: {', '.join(known)}"
            )
    return tuple(claim for claim in CLAIMS if not keys or claim.key in keys)


def _content(chosen: Sequence[Claim], judgements: Mapping[str, Judgement]) -> dict[str, Any]:
    """All of it for machines."""
    return {
        "schema": "closlab.claims/1",
        "claims": [
            {
                "key": claim.key,
                "words": claim.words,
                "source": claim.source,
                "experiment": claim.experiment,
                "verdict": judgements[claim.key].verdict.value,
                "finding": judgements[claim.key].finding,
                "figures": dict(judgements[claim.key].figures),
                "commands": {name: case.command for name, case in claim.cases.items()},
            }
            for claim in chosen
        ],
    }


def _table(chosen: Sequence[Claim], judgements: Mapping[str, Judgement]) -> Table:
    table = Table(show_lines=True)
    table.add_column("claim")
    table.add_column("verdict", min_width=10)
    table.add_column("what the simulator found")
    for claim in chosen:
        judgement = judgements[claim.key]
        colour = _COLOURS[judgement.verdict]
        verdict = f"[{colour}]{judgement.verdict.value}[/]"
        table.add_row(f"{claim.words}\n[dim]{claim.key}[/]", verdict, judgement.finding)
    return table


def _body(chosen: Sequence[Claim], judgements: Mapping[str, Judgement]) -> Iterator[str]:
    yield page.heading(1, "Claims about AI fabrics, put to the test")
    yield page.paragraph(
        "Each claim was tried in the simulator, with the same compiled P4 and the same RoCEv2 "
        "endpoints as the emulated fabric has. A verdict follows from the figures beside it.",
        "about",
    )
    rows = ((claim.words, judgements[claim.key].verdict.value) for claim in chosen)
    yield page.table(("claim", "verdict"), rows, "texts")
    for claim in chosen:
        judgement = judgements[claim.key]
        yield page.heading(2, claim.words)
        kind = "story" if judgement.verdict is Verdict.HOLDS else "story warning"
        yield page.paragraph(f"It {judgement.verdict.value}. {judgement.finding}", kind)
        yield page.paragraph(claim.source, "about")
        yield page.paragraph(claim.experiment, "about")
        yield page.grid([Panel(judgement.drawing.title, judgement.drawing)])
        figures = [(name, f"{value:,.6g}") for name, value in judgement.figures.items()]
        yield page.folded("The figures", page.table(("figure", "value"), figures))
        commands = "\n".join(f"{case.command}   # {name}" for name, case in claim.cases.items())
        yield page.folded("The runs", page.preformatted(commands))
    command = shlex.join(("closlab", "claims", *(claim.key for claim in chosen)))
    yield page.foot(f"Measured by {closlab_of(closlab_now())}, in the simulator.", command)
