"""``closlab stf PROG TEST.stf``: compile if need be, load, run the packet test."""

from __future__ import annotations

import sys
from pathlib import Path


def main(arguments: list[str]) -> int:
    """Run a packet test: 0 it passed, 1 it failed, 2 it could not be run."""
    if len(arguments) != 2:
        print("usage: closlab stf PROG.p4|PROG.json TEST.stf", file=sys.stderr)
        return 2
    program, test = Path(arguments[0]), Path(arguments[1])
    ...
