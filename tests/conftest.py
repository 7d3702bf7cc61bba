"""What all tests share."""

import gc
import os
import signal
import sys
from pathlib import Path

import pytest
from hypothesis import settings

from lab.machine.tools import add_mininet, add_system_programs
from switch.cache import cache_dir
from tests import costs

# Who wants no bytecode in the tree has it kept with all else that is built: tests start Python some
# hundred times, and half of a start would go into reading our sources anew.
if sys.dont_write_bytecode:
    sys.dont_write_bytecode = False
    sys.pycache_prefix = os.environ["PYTHONPYCACHEPREFIX"] = str(cache_dir() / "bytecode")
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)

# No deadlines: machines are noisy, and a first call may compile C. A failure prints how to repeat
# it; `--hypothesis-seed` takes the seed.
settings.register_profile("closlab", deadline=None, print_blob=True)
settings.load_profile("closlab")

# Whoever started us may have had us ignore interrupts, as nohup and a shell's `&` do; what tests
# start would inherit that, and tests of interruptions would test nothing.
signal.signal(signal.SIGINT, signal.default_int_handler)

# ip and tc, which Debian keeps from ordinary users, and Mininet, which it keeps from environments.
add_system_programs()
add_mininet()


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--quick", action="store_true", help="only the most tests for little time")
    parser.addoption("--costs", type=Path, metavar="FILE", help="note what each test costs")


def pytest_configure(config: pytest.Config) -> None:
    if path := config.getoption("--costs"):
        config.pluginmanager.register(costs.Recorder(path.absolute()))


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    if config.getoption("--quick"):
        costs.leave_out(config, items)


def pytest_collection_finish() -> None:
    # Thousands of tests stay till the end: no garbage collection need look at them again.
    gc.collect()
    gc.freeze()
