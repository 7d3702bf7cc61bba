"""Benchmarks: each module is one, and `closlab bench NAME` runs its `main`."""

import sys

CLOSLAB = (sys.executable, "-c", "from lab.cli import main; main()")  # in a process of its own
