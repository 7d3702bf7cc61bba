"""``closlab stf PROG TEST.stf``: compile if need be, load, run the packet test.

It answers 0: passed, 1: failed, 2: could not be run.
"""

from __future__ import annotations

from pathlib import Path

from compiler.cli import main as compile_main
from lab.machine.scratch import scratch
from switch.stf import main as run_main

COULD_NOT_RUN = 2


def main(arguments: list[str]) -> int:
    """Run a packet test: closlab stf PROG TEST.stf."""
    programs = [word for word in arguments if word.endswith(".p4")]
    if not programs:
        return run_main(arguments)
    source = programs[0]
    with scratch() as folder:
        compiled = folder / f"{Path(source).stem}.json"
        if compile_main([source, "-o", str(compiled)]) != 0:
            return COULD_NOT_RUN
        return run_main([str(compiled) if word == source else word for word in arguments])
