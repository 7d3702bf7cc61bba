"""What C is compiled for: names that are the same wherever they are asked for."""

import os
import platform
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from provision.wheels import PLATFORMS
from switch import build, target, wasm
from switch.cache import Unbuildable

ROOT = Path(__file__).resolve().parent.parent.parent
_NAMES = """
from lab.machine import program
from switch import build, target
print([build._runtime_for(aim) for aim in target.NATIVE])
print(build._linked_for("int x;", target.NATIVE[0]))
print(program._our_compiler(), program._placed.__name__)
print(program._content(program.FABRIC_PROGRAM.parent, program.FABRIC_PROGRAM.parent.glob("*.p4")))
"""


def test_every_target_has_a_wheel() -> None:
    assert {*PLATFORMS} == {each.name for each in target.NATIVE}


def test_names_tell_nothing_of_the_machine_they_are_made_on(tmp_path: Path) -> None:
    """A copy of the tree elsewhere, another compiler and other flags make no difference."""
    for name in (
        "compiler",
        "controller",
        "files",
        "lab",
        "p4src",
        "params",
        "switch",
        "topologies",
        "traffic",
    ):
        shutil.copytree(ROOT / name, tmp_path / name, ignore=shutil.ignore_patterns("__pycache__"))

    def said(tree: Path, **more: str) -> str:
        env = {**os.environ, "PYTHONPATH": str(tree), "PYTHONDONTWRITEBYTECODE": "1", **more}
        words = [sys.executable, "-c", _NAMES]
        return subprocess.run(
            words, cwd=tree, env=env, capture_output=True, text=True, check=True
        ).stdout

    here = said(ROOT)
    assert said(tmp_path, CC="nobody's", CLOSLAB_CFLAGS="-DOTHER", PATH="/nowhere") == here
    runtime = tmp_path / "switch" / "rt" / "sw.c"
    runtime.write_text(runtime.read_text() + "\n")
    assert said(tmp_path) != here


def test_no_two_targets_share_a_name() -> None:
    aims = [wasm.TAB, *target.NATIVE]
    assert len({build._runtime_for(aim) for aim in aims}) == len(aims)


def test_only_linux_has_the_files_of_its_kernel() -> None:
    for aim in (None, wasm.TAB, *target.NATIVE):
        files = {Path(name).stem for name in build.runtime_sources(aim) if name.endswith(".c")}
        has_kernel = aim is None or aim.name.endswith("-linux")
        assert ({*target.OF_A_KERNEL} <= files) == has_kernel
        assert {*target.OF_A_KERNEL}.isdisjoint(files) != has_kernel
        stands_in = aim is not None and aim.name.endswith("-macos")
        assert ({*target.INSTEAD} <= files) == stands_in


def test_an_unknown_target_is_told_with_those_there_are(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(target.VARIABLE, "pdp11")
    with pytest.raises(Unbuildable, match=r"'pdp11', and not one of wasm32, x86_64-linux"):
        build.made_for()


def test_only_a_processor_that_is_known_to_be_older_gets_nothing(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Where /proc is not mounted nothing is known."""
    monkeypatch.setattr(platform, "machine", lambda: "x86_64")
    for features, name in (
        (None, "x86_64-linux"),
        ({"popcnt", "sse4_2", "avx"}, "x86_64-linux"),
        ({"sse2"}, None),
    ):
        monkeypatch.setattr(target, "features", lambda features=features: features)
        found = target.of_this_machine.__wrapped__()
        assert (found and found.name) == name
