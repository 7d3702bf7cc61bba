"""The command's work: what is asked for is checked, run, shown and written down."""

from __future__ import annotations

from pathlib import Path

from pydantic import TypeAdapter, ValidationError
from rich.console import Console
from rich.table import Table

from lab.bmwg import comparing, page, report
from lab.bmwg.bench import Bench, Extent
from lab.bmwg.draft import NOT_RUN, TESTS, Test, chosen
from lab.bmwg.outcome import KINDS, Outcome
from lab.bmwg.report import KEPT, PAGE, TABLE, Made
from lab.bmwg.running import Workshop, carry_out
from lab.engines import RunOptions
from lab.errors import LabError
from lab.machine.paths import writing_to
from lab.progress import Stages
from lab.runs.run import INTERRUPTED, check
from params.data import Data
from params.units import Size


class Asked(Data):
    """What the command line says."""

    tests: tuple[str, ...]
    is_quick: bool
    trials: int | None
    most: str
    device: str | None
    changes: tuple[str, ...]
    p4: Path | None
    engine: str
    switch: str


def show_tests() -> None:
    """All of them, and what is none."""
    table = Table("section", "name", "what", "on Mininet")
    for test in TESTS:
        table.add_row(test.section, test.key, test.title, "too" if test.on_mininet else "no")
    console = Console()
    console.print(table)
    for section, why in NOT_RUN.items():
        console.print(f"{section}: {why}", highlight=False)


def benchmark(asked: Asked, out: Path, processes: int | None, command: str) -> int:
    """Run what is asked for; the exit code says whether all tests could be carried out."""
    try:
        most = TypeAdapter(Size).validate_python(asked.most)
    except ValidationError:
        raise LabError(f"--most: '{asked.most}' is no size", "Such as 500MB or 20GB.") from None
    check(RunOptions(out=out, engine=asked.engine, switch=asked.switch, p4=asked.p4))
    tests = chosen(asked.tests, asked.engine)
    bench = Bench.of(
        asked.device, asked.changes, extent=Extent(asked.is_quick, asked.trials, most),
        engine=asked.engine, switch=asked.switch, p4=asked.p4,
    )  # fmt: skip
    console = Console(stderr=True)
    workshop = Workshop(bench, out, processes, Stages(console))
    by_key = {test.key: test for test in tests}
    try:
        with writing_to(out):
            done = carry_out({test.key: test.run(bench) for test in tests}, workshop)
            made = Made(bench, command, {by_key[key]: each for key, each in done.items()}, workshop)
            report.write(made, out)
            (out / PAGE).write_text(page.document(made, out))
    except KeyboardInterrupt:
        console.print(
            f"Interrupted: {workshop.made} runs are kept in {out}/ and not made again; "
            "the same command goes on.", highlight=False, soft_wrap=True,
        )  # fmt: skip
        return INTERRUPTED
    _show(made, out)
    return 1 if any(isinstance(each, LabError) for each in made.done.values()) else 0


def _show(made: Made, out: Path) -> None:
    console = Console()
    table = Table("section", "test", "primary figure", "from", "to")
    for test, outcome in made.done.items():
        table.add_row(test.section, test.title, *_range(test, outcome))
    console.print(table)
    if made.bench.extent.is_quick:
        console.print("Quick: few of the draft's parameters and trials. Without --quick it has "
                      "them, as far as --most allows.", highlight=False)  # fmt: skip
    console.print(
        f"{made.workshop.made} runs were made, {made.workshop.kept} look-ups found one kept.",
        highlight=False,
    )
    console.print(f"The report: {out}/{PAGE}; for machines: {out}/{KEPT}, {out}/{TABLE}",
                  highlight=False, soft_wrap=True)  # fmt: skip


def _range(_test: Test, outcome: Outcome | LabError) -> tuple[str, str, str]:
    if isinstance(outcome, LabError):
        return f"failed: {outcome.message.splitlines()[0]}", "", ""
    for table in outcome.tables:
        means = [m for row in table.rows if (m := row.mean(outcome.primary)) is not None]
        if means:
            kind = KINDS[table.units[outcome.primary]]
            return outcome.primary, kind.text(min(means)), kind.text(max(means))
    return outcome.primary or "nothing was run", "", ""


def compare(paths: tuple[Path, Path], out: Path) -> None:
    """Two reports as a page."""
    text = comparing.document(paths)
    with writing_to(out):
        (out / comparing.COMPARED).write_text(text)
    Console().print(f"Side by side: {out}/{comparing.COMPARED}", highlight=False, soft_wrap=True)
