"""`closlab bench whole`: an all-to-all from scenario to report, phase by phase, and its memory.

    closlab bench whole [--k N] [--bytes N]

Every host of a fat tree writes to every other at 400 Gb/s: 1,024 hosts and 1,047,552 messages,
unless --k says otherwise; everything is kept, and the report made. Of each phase: its time of a
processor, and the most memory that the process had until its end.
"""

from __future__ import annotations

import argparse
import resource
import sys
import tempfile
import time
from collections.abc import Sequence

from lab import api
from lab.progress import Progress


class _Phases:
    """What each took, told when it is over."""

    def __init__(self) -> None:
        self._began = self._last = time.process_time()
        self._is_first = True

    def hear(self, now: Progress) -> None:
        """Of the run's own stages."""
        if self._is_first:
            self.over("scenario, schedule")
            self._is_first = False
        if now.is_over:
            self.over(now.stage)

    def over(self, phase: str) -> None:
        """Print a line."""
        before, self._last = self._last, time.process_time()
        most_mb = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024
        print(f"{phase:34}{self._last - before:7.1f} s {most_mb:>6} MB", flush=True)

    def end(self) -> None:
        """And all of them."""
        print(f"{'all':34}{self._last - self._began:7.1f} s")


def main(arguments: Sequence[str]) -> int:
    """Measure and print."""
    parser = argparse.ArgumentParser(prog="closlab bench whole", description=__doc__)
    parser.add_argument("--k", type=int, default=16, help="the arity of the fat tree")
    parser.add_argument("--bytes", type=int, default=4096, help="a message")
    given = parser.parse_args(arguments)
    scenario = {
        "topology": {"kind": "fat-tree", "k": given.k},
        "traffic": {
            "kind": "collective",
            "op": "all-to-all",
            "bytes": given.bytes * given.k**3 // 4,
        },
        "link.rate_gbps": 400,
        "buffer.bytes": "16MB",
    }
    phases = _Phases()
    with tempfile.TemporaryDirectory() as folder:
        run = api.run("hello", set=scenario, out=folder, progress=phases.hear)
        phases.over("proved, put together, written")
        run.report()
        phases.over("report")
    phases.end()
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
