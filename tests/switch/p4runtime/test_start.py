"""How soon a switch with a program is ready, in processor time.

Four seconds if its program is new and half a second if not is what it takes on a quiet machine; the
bounds here leave room for other work, which wears caches out.
"""

import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from lab.machine.speed import processor_slowness
from switch import build

from .rig import ROOT, Built, compile_p4
from .test_host import host, settings

pytestmark = pytest.mark.clock

TRIES = 3


@pytest.fixture(scope="module")
def fabric(tmp_path_factory: pytest.TempPathFactory) -> Built:
    return compile_p4(ROOT / "p4src" / "fabric.p4", tmp_path_factory.mktemp("fabric"))


def seconds_to_start(program: Built, folder: Path, cache: Path) -> float:
    """What starting and ending one switch costs, the C compiler's share included."""
    switch = settings(1, program=str(program.json), p4info=str(program.p4info))
    before = os.times()
    with subprocess.Popen(
        [sys.executable, *host(folder / "switch.json", [switch])],
        stdout=subprocess.PIPE,
        text=True,
        cwd=ROOT,
        env=os.environ | {"XDG_CACHE_HOME": str(cache)},
    ) as child:
        assert child.stdout is not None
        assert child.stdout.readline() == "ready\n"
        child.send_signal(signal.SIGTERM)
    after = os.times()
    used = after.children_user + after.children_system
    return used - before.children_user - before.children_system


def test_a_switch_starts_soon_and_sooner_when_its_program_is_built(fabric: Built, tmp_path: Path):
    runtime = build.runtime_library()
    cache = tmp_path / "cache"
    (cache / "closlab").mkdir(parents=True)
    shutil.copy(runtime, cache / "closlab")
    new = seconds_to_start(fabric, tmp_path, cache)
    built = min(seconds_to_start(fabric, tmp_path, cache) for _ in range(TRIES))
    print(f"the fabric program, new: {new:.2f} s; built before: {built:.2f} s")
    assert new < 6 * processor_slowness()
    assert built < min(0.8 * processor_slowness(), new / 3)
