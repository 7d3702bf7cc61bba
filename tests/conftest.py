"""What all tests share."""

import gc
import os
import signal
from collections.abc import Iterator
from functools import cache
from inspect import isfunction
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

from lab.machine.paths import keep_bytecode
from lab.machine.speed import hand_down
from lab.machine.tools import add_mininet, add_system_programs
from tests import costs, depth
from tests.waiting import SLOWNESS, TEST_S

# `closlab test` did both already; here for who calls pytest.
keep_bytecode()
hand_down()

# No deadlines, and none for making examples: machines are noisy, and a first call may compile C.
# Who changes the code hears of what the change broke, not of what nobody drew so far: the examples
# are always the same. `--hypothesis-profile=anew` draws others, as every night does, and a failure
# prints how to repeat it.
settings.register_profile(
    "closlab",
    deadline=None,
    derandomize=True,
    max_examples=depth.of(40),
    suppress_health_check=[HealthCheck.too_slow],
)
settings.register_profile(
    "anew",
    settings.get_profile("closlab"),
    derandomize=False,
    max_examples=depth.of(100),
    print_blob=True,
)
settings.load_profile("closlab")

# Whoever started us may have had us ignore interrupts, as nohup and a shell's `&` do; what tests
# start would inherit that, and tests of interruptions would test nothing.
signal.signal(signal.SIGINT, signal.default_int_handler)

# ip and tc, which Debian keeps from ordinary users, and Mininet, which it keeps from environments.
add_system_programs()
add_mininet()


# On a slow machine a test may take as much longer, unless who calls says otherwise.
os.environ.setdefault("PYTEST_TIMEOUT", f"{TEST_S:.0f}")


@pytest.fixture(autouse=True)
def _stays_where_it_began() -> Iterator[None]:
    """A test that leaves its process in a folder of its own fails all that come after it there."""
    before = Path.cwd()
    yield
    after = Path.cwd()
    os.chdir(before)
    assert after == before, "the test changed the working directory: use monkeypatch.chdir"


KINDS = ("clock", "mininet", "ordinary", "reference", "slow")


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--quick", action="store_true", help="only the most tests for little time")
    parser.addoption("--costs", type=Path, metavar="FILE", help="note what each test costs")


def pytest_configure(config: pytest.Config) -> None:
    if path := config.getoption("--costs"):
        config.pluginmanager.register(costs.Recorder(path.absolute()))


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """A file none of whose tests is of the kind that is asked for need not be read."""
    wanted = config.option.markexpr.split(" and ")
    if collection_path.suffix != ".py" or " or " in config.option.markexpr:
        return None
    text = collection_path.read_text()
    lacks = any(kind in KINDS and not _has(kind, text) for kind in wanted)
    unwanted = (each.removeprefix("not ") for each in wanted if each.startswith("not "))
    return lacks or any(f"\npytestmark = pytest.mark.{kind}\n" in text for kind in unwanted) or None


def pytest_pycollect_makeitem(collector: pytest.Collector, obj: object) -> list[pytest.Item] | None:
    """By day half of all cases would be made to be left out."""
    is_day = "not slow" in collector.config.option.markexpr.split(" and ")
    marks = getattr(obj, "pytestmark", ()) if isfunction(obj) else ()
    return [] if is_day and any(mark.name == "slow" for mark in marks) else None


def _has(kind: str, text: str) -> bool:
    return f"mark.{kind}" in text or (kind == "slow" and "mark.by_day" in text)


def pytest_itemcollected(item: pytest.Item) -> None:
    """So whoever bears a mark has to have it in its file; a slow machine is given time."""
    if mark := item.get_closest_marker("timeout"):
        item.add_marker(pytest.mark.timeout(mark.args[0] * SLOWNESS), append=False)
    for kind in item.iter_markers():
        if kind.name in KINDS and f"mark.{kind.name}" not in _text(item.path):
            raise pytest.UsageError(f"write @pytest.mark.{kind.name} in {item.path}: {item.name}")


@cache
def _text(path: Path) -> str:
    return path.read_text()


def pytest_collection() -> None:
    gc.disable()  # thousands of tests come, and none of them goes


def pytest_report_header() -> str | None:
    return depth.header()


@pytest.hookimpl(tryfirst=True)  # pytest itself chooses by marks after it
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    depth.leave_to_night(items)
    depth.leave_out(config, items)
    if config.getoption("--quick"):
        costs.leave_out(config, items)


def pytest_collection_finish() -> None:
    gc.enable()
    gc.freeze()  # they stay till the end, and no collection need look at them again
