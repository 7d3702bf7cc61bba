"""``closlab demo``: the five-minute story, ending with a report.

First a question, answered in the simulator at 100 Gb/s: what becomes of an incast without pause
frames, with them, and with ECN besides? Then the same P4 as the switches of a fabric of real
namespaces and packets.
"""

from __future__ import annotations

from pathlib import Path

from rich.console import Console

from lab import catalogue
from lab.compare import show_table
from lab.engines import RunOptions
from lab.report import Comparison, write_comparison, write_report
from lab.run import run_quietly, writing_to
from lab.show import Stages

_SCENARIO = "incast"
_VARIANTS = {
    "pfc-off": ("pfc.enabled=false", "transport.timeout=10"),  # 4.2 ms; NCCL waits for 4.3 s
    "pfc-on": (),
    "pfc-and-ecn": ("ecn.enabled=true", "transport.cc=dcqcn"),
}


def compare_pauses(out: Path, seed: tuple[str, ...], console: Console) -> Path:
    """Simulate the incast three times and put the results side by side; the report's place."""
    with (
        writing_to(out),
        Stages(console)("Seven hosts write to one, simulated", len(_VARIANTS)) as stage,
    ):
        for name, changes in _VARIANTS.items():
            folder = out / name
            folder.mkdir(exist_ok=True)
            options = RunOptions(out=folder, engine="sim")
            run_quietly(catalogue.load(_SCENARIO, (*changes, *seed)), options, Console(quiet=True))
            write_report(folder)
            stage.advance()
        stage.note = "without pause frames, with them, and with ECN besides"
        comparison = Comparison.of([out / name for name in _VARIANTS])
        report = write_comparison(comparison, out)
    show_table(comparison, console)
    return report
