"""How long a test waits for what has to come.

It says nothing about time: whoever is starved by neighbours, or runs on a machine thirty times
slower, is no reason to fail. What must be quick is judged in `clock` tests, by ratios.
"""

import os

from lab.machine.speed import slowness

_NAME = "CLOSLAB_TESTS_SLOWNESS"  # for the processes that a test run starts: measured once for all

if _NAME not in os.environ:
    os.environ[_NAME] = f"{slowness():.1f}"
SLOWNESS = float(os.environ[_NAME])

LONG_S = 200.0 * SLOWNESS
TEST_S = 1.5 * LONG_S  # a test that hangs is ended
