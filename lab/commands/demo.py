"""``closlab demo``: the five-minute story, ending with a report.

First a question, answered in the simulator at 100 Gb/s: what becomes of an incast without pause
frames, with them, and with ECN besides? Then the same P4 as the switches of a fabric of real
namespaces and packets; a machine that has none is told how it comes by them.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from rich.console import Console

from lab.api import compare, run
from lab.commands.compare import show_table
from lab.commands.execution import execute
from lab.commands.options import Out, Seed, make_out
from lab.errors import LabError, SandboxError
from lab.machine import tools
from lab.machine.paths import writing_to
from lab.progress import Stages

_SCENARIO = "incast"
_LEISURE = 4  # times slower than usual: of so short a run nobody notices, and no host is late
_VARIANTS: dict[str, dict[str, object]] = {
    "pfc-off": {"pfc.enabled": False, "transport.timeout": 10},  # 4.2 ms; NCCL waits for 4.3 s
    "pfc-on": {},
    "pfc-and-ecn": {"ecn.enabled": True, "transport.cc": "dcqcn"},
}


def command(out: Out = None, seed: Seed = None) -> None:
    """Show what pauses do, and send through a real fabric."""
    tools.require_native()
    folder = make_out(out, "demo")
    console = Console(stderr=True)
    report = compare_pauses(folder, seed, console)
    console.print("\nThe same P4 on real namespaces and packets:", highlight=False)
    try:
        if lacking := [*_lacking()]:
            _tell_left_out(lacking, console)
        else:
            execute(
                *("hello", (), seed, folder / "hello"),
                engine="mininet",
                prompt=False,
                leisure=_LEISURE,
            )
    except SandboxError as error:
        _tell_left_out([error], console)
    finally:
        console.print(f"The incast, side by side: {report}", highlight=False, soft_wrap=True)


def _lacking() -> Iterator[LabError]:
    """What a fabric of namespaces needs and is not installed."""
    for require in (tools.require_emulation, tools.require_compiler):
        try:
            require()
        except LabError as error:
            yield error


def _tell_left_out(lacking: Sequence[LabError], console: Console) -> None:
    lines = "\n".join(f"{error.message}\n{error.cure}" for error in lacking)
    console.print(f"Left out: {lines}\n", highlight=False, markup=False, soft_wrap=True)


def compare_pauses(out: Path, seed: int | None, console: Console) -> Path:
    """Simulate the incast three times and put the results side by side; the report's place."""
    with (
        writing_to(out),
        Stages(console)("Seven hosts write to one, simulated", len(_VARIANTS)) as stage,
    ):
        runs = []
        for name, changes in _VARIANTS.items():
            made = run(_SCENARIO, set=changes, seed=seed, out=out / name)
            made.report()
            runs.append(made)
            stage.advance()
        stage.note = "without pause frames, with them, and with ECN besides"
        comparison = compare(*runs, out=out)
        report = comparison.report()
    show_table(comparison.compared, console)
    return report
