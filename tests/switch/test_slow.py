"""A slow interface builds a queue where the program can see it, and marks and records tell of it.

Each case runs in namespaces of its own, see slow.py.
"""

import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack
from typing import IO

import pytest

from tests.chosen import chosen
from tests.switch.slow import cases
from tests.switch.test_interfaces import ROOT
from tests.veths import unshare
from tests.waiting import LONG_S

pytestmark = [pytest.mark.mininet, pytest.mark.clock]

Running = dict[str, tuple[subprocess.Popen[str], IO[str]]]


@pytest.fixture(scope="module")
def running(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Running]:
    """The cases that were chosen, all at once: they wait for slow links, and hardly work."""
    with ExitStack() as stack:
        started: Running = {}
        for case in chosen(request, "case"):
            folder = tmp_path_factory.mktemp(case)
            said = stack.enter_context((folder / "said").open("w+"))
            program = (sys.executable, "-m", "tests.switch.slow", case, str(folder))
            process = subprocess.Popen(
                [*unshare("--mount"), *program],
                stdout=said, stderr=subprocess.STDOUT, text=True, cwd=ROOT,
            )  # fmt: skip
            stack.callback(process.kill)
            started[case] = process, said
        yield started


@pytest.mark.by_day(2)
@pytest.mark.parametrize(
    "case",
    [
        pytest.param(case, marks=pytest.mark.reference if case.startswith("bmv2") else ())
        for case in cases
    ],
)
def test_slow(case: str, running: Running) -> None:
    process, file = running[case]
    code = process.wait(LONG_S)
    file.seek(0)
    said = file.read()
    if said.startswith("SKIP "):
        pytest.skip(said.removeprefix("SKIP ").strip())
    assert code == 0, said
