"""`closlab bench whole`: an all-to-all from command to report, phase by phase, and its memory.

    closlab bench whole [--k N] [--bytes N]

Every host of a fat tree writes to every other at 400 Gb/s: 1,024 hosts and 1,047,552 messages,
unless --k says otherwise. It is what `closlab run` does, in a process of its own, with all that is
kept and the report. Of each phase: its time of a processor, and the most memory used until its end.
"""

from __future__ import annotations

import argparse
import resource
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

_MARK = "phase:"
_INSIDE = """
import sys
from contextlib import contextmanager
from bench.whole import tell
from lab import progress, report, start

stage, write_report = progress.Stages.__call__, report.write_report

@contextmanager
def told(stages, title, total=None):
    if title == "Compiling the fabric program":
        tell("scenario, schedule")
    with stage(stages, title, total) as shown:
        yield shown
    tell(title)

def told_report(folder):
    tell("proved, put together, written")
    report = write_report(folder)
    tell("report")
    return report

progress.Stages.__call__, report.write_report = told, told_report
sys.argv = ["closlab", "run", *sys.argv[1:]]
start.main()
"""


def tell(phase: str) -> None:
    """Say how far this process is, and what it took: for who started it."""
    used = resource.getrusage(resource.RUSAGE_SELF)
    print(_MARK, used.ru_utime + used.ru_stime, used.ru_maxrss // 1024, phase, flush=True)


def _run(changes: Sequence[str]) -> int:
    """Run it, and print what it tells; its exit code."""
    with tempfile.TemporaryDirectory() as out:
        words = ["hello", "--engine", "sim", "--out", out]
        words += [word for change in changes for word in ("--set", change)]
        before_s = 0.0
        with subprocess.Popen(
            [sys.executable, "-c", _INSIDE, *words],
            cwd=Path(__file__).parent.parent,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        ) as process:
            for line in process.stdout or ():
                if line.startswith(_MARK):
                    _, used_s, memory_mb, phase = line.strip().split(" ", 3)
                    took_s, before_s = float(used_s) - before_s, float(used_s)
                    print(f"{phase:34}{took_s:7.1f} s {memory_mb:>6} MB", flush=True)
        print(f"{'all':34}{before_s:7.1f} s")
    return process.returncode


def main(arguments: Sequence[str]) -> int:
    """Measure and print."""
    parser = argparse.ArgumentParser(prog="closlab bench whole", description=__doc__)
    parser.add_argument("--k", type=int, default=16, help="the arity of the fat tree")
    parser.add_argument("--bytes", type=int, default=4096, help="a message")
    told = parser.parse_args(arguments)
    each = told.bytes * told.k**3 // 4
    return _run(
        (
            f"topology={{kind: fat-tree, k: {told.k}}}",
            f"traffic={{kind: collective, op: all-to-all, bytes: {each}}}",
            "link.rate_gbps=400",
            "buffer.bytes=16MB",
        )
    )


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
