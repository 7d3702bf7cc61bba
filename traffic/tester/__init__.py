"""A port of a traffic generator, as a program: what it is compiled from.

`main.c` says how it is told what to send, `tester.h` what of.
"""

from pathlib import Path

__all__ = ["SOURCES"]

_HERE = Path(__file__).parent
SOURCES = (*(_HERE / f"{name}.c" for name in ("main", "flow", "port", "capture")),
           _HERE.parent / "core" / "icrc.c")  # fmt: skip
