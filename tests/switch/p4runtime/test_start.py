"""How soon a switch with a program is ready, in processor time.

Four seconds if its program is new and a third of one if not is what it takes on a quiet machine.
How much that is on a busy one, whose caches are worn out, is measured beside it: what it takes to
compile a file of the run-time, and to read the code.
"""

import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from switch import build

from .rig import ROOT, Built, compile_p4
from .test_host import host, settings

pytestmark = pytest.mark.clock

TRIES = 3
AS_LONG_AS_A_FILE = 12  # a new program is compiled at most; measured: 6.5
AS_LONG_AS_READING = 2.5  # the code a start takes at most; measured: 1.2


@pytest.fixture(scope="module")
def fabric(tmp_path_factory: pytest.TempPathFactory) -> Built:
    return compile_p4(ROOT / "p4src" / "fabric.p4", tmp_path_factory.mktemp("fabric"))


@contextmanager
def measured() -> Iterator[list[float]]:
    """The processor time of what is started and waited for meanwhile."""
    found: list[float] = []
    before = os.times()
    yield found
    after = os.times()
    used = after.children_user + after.children_system
    found.append(used - before.children_user - before.children_system)


def seconds_to_start(program: Built, folder: Path, cache: Path) -> float:
    """What starting and ending one switch costs, the C compiler's share included."""
    switch = settings(1, program=str(program.json), p4info=str(program.p4info))
    words = [sys.executable, *host(folder / "switch.json", [switch])]
    with (
        measured() as took,
        subprocess.Popen(
            words,
            stdout=subprocess.PIPE,
            text=True,
            cwd=ROOT,
            env=os.environ | {"XDG_CACHE_HOME": str(cache)},
        ) as child,
    ):
        assert child.stdout is not None
        assert child.stdout.readline() == "ready\n"
        child.send_signal(signal.SIGTERM)
    return took[0]


def seconds_for(*words: str) -> float:
    with measured() as took:
        subprocess.run(words, check=True, cwd=ROOT)
    return took[0]


def seconds_to_compile(folder: Path) -> float:
    """What a file of the run-time costs."""
    file = str(build.RUNTIME / "sw.c")
    return seconds_for(*build.compiler(), *build.flags(), file, "-o", str(folder / "sw.so"))


@pytest.mark.slow
def test_a_switch_starts_soon_and_sooner_when_its_program_is_built(
    fabric: Built, tmp_path: Path
) -> None:
    runtime = build.runtime_library()
    cache = tmp_path / "cache"
    (cache / "closlab").mkdir(parents=True)
    shutil.copy(runtime, cache / "closlab")
    around = [seconds_to_compile(tmp_path)]
    new = seconds_to_start(fabric, tmp_path, cache)
    around.append(seconds_to_compile(tmp_path))
    built = min(seconds_to_start(fabric, tmp_path, cache) for _ in range(TRIES))
    read = min(seconds_for(sys.executable, "-c", "import switch.host") for _ in range(TRIES))
    file = max(around)
    print(f"a file {file:.2f} s, the program {new:.2f} s; read {read:.2f} s, built {built:.2f} s")
    assert new < AS_LONG_AS_A_FILE * file
    assert built < min(AS_LONG_AS_READING * read, new / 3)
