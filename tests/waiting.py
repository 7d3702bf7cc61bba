"""How long a test waits for what has to come.

It says nothing about time: whoever is starved by neighbours, or runs on a machine thirty times
slower, is no reason to fail. What must be quick is judged in `clock` tests, by ratios.
"""

import os

from lab.machine.speed import slowness

_TOLD = "CLOSLAB_TESTS_SLOWNESS"  # to the processes that a test run starts: measured once for all

if _TOLD not in os.environ:
    os.environ[_TOLD] = f"{slowness():.1f}"
SLOWNESS = float(os.environ[_TOLD])

LONG_S = 200.0 * SLOWNESS
TEST_S = 1.5 * LONG_S  # a test that hangs is ended
