"""Benchmarks: each module is one, and `closlab bench NAME` runs its `main`.

Private, as all but `closlab.py` is: it may change from one commit to the next.
"""

import argparse
import resource
import sys
from collections.abc import Iterable

CLOSLAB = (sys.executable, "-c", "from lab.cli import main; main()")  # in a process of its own


def add_cases(parser: argparse.ArgumentParser, names: Iterable[str]) -> None:
    """Let cases be named: those told are ``cases``, or all of them if none is."""
    known = tuple(names)

    def case(word: str) -> str:
        if word not in known:
            raise argparse.ArgumentTypeError(f"none is called '{word}'; there are {among}")
        return word

    among = ", ".join(known)
    parser.add_argument(
        "cases", nargs="*", type=case, default=known, metavar="CASE", help=f"{among}; or all"
    )


def children_s() -> float:
    """Processor time of all processes that this one began and that have ended."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime
