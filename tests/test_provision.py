"""The virtual machine's recipe: what can be told of it without making one."""

import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.stand_ins import stand_in
from tests.veths import alone

ROOT = Path(__file__).resolve().parent.parent
SCRIPTS = sorted((ROOT / "provision").glob("*.sh"))


@pytest.mark.skipif(shutil.which("vagrant") is None, reason="vagrant is not on PATH")
def test_vagrant_finds_the_recipe_valid(tmp_path: Path) -> None:
    done = subprocess.run(
        ["vagrant", "validate", "--ignore-provider"],
        cwd=ROOT,
        env={**os.environ, "VAGRANT_HOME": str(tmp_path), "VAGRANT_DOTFILE_PATH": str(tmp_path)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda script: script.name)
def test_scripts_are_shell(script: Path) -> None:
    subprocess.run(["bash", "-n", script], check=True)


@pytest.mark.skipif(shutil.which("rsync") is None, reason="rsync is not on PATH")
@pytest.mark.parametrize("recipe", ["Vagrantfile", "provision/box.sh", "provision/provision.sh"])
def test_nothing_that_a_machine_needs_is_left_out_of_its_copy(recipe: str, tmp_path: Path) -> None:
    text = (ROOT / recipe).read_text()
    left_out = re.findall(r"--exclude='?([^\s']+)", text)
    for words in re.findall(r"%w\[(.*?)\]", text, re.DOTALL):
        left_out += words.split()
    assert len(left_out) > 4
    copied = subprocess.run(
        ["rsync", "-an", "--out-format=%n", *map("--exclude={}".format, left_out), "./", tmp_path],
        cwd=ROOT, capture_output=True, text=True, check=True,
    ).stdout.splitlines()  # fmt: skip
    folders = [path for path in ROOT.iterdir() if path.is_dir() and path.name[0] != "."]
    needed = {str(path.relative_to(ROOT)) for folder in folders for path in folder.rglob("*.py")}
    assert {name for name in needed if not name.startswith("runs/")} - set(copied) == set()


@pytest.mark.skipif(shutil.which("simple_switch_grpc") is not None, reason="BMv2 is installed")
@pytest.mark.parametrize(("curl", "words", "code"), [(6, (), 4), (22, (), 3), (6, ("--hlep",), 2)])
def test_a_machine_that_cannot_have_bmv2_is_told_why(
    curl: int, words: tuple[str, ...], code: int, tmp_path: Path
) -> None:
    """By a curl that fails, after which nothing is written."""
    stand_in(tmp_path / "curl", f"exit {curl}")
    done = subprocess.run(
        [*alone(), "bash", ROOT / "provision" / "p4lang.sh", *words],
        env={**os.environ, "PATH": f"{tmp_path}:{os.environ['PATH']}"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == code, done.stderr
    assert ("the lab uses its own compiler and switch" in done.stderr) == (code != 2)


def built(source: Path) -> Path:
    """A folder with what builds of p4c and BMv2 leave in their checkouts."""
    targets = source / "behavioral-model" / "targets"
    for program in (
        source / "p4c" / "build" / "p4c-bm2-ss",
        targets / "simple_switch" / "simple_switch",
        targets / "simple_switch_grpc" / "simple_switch_grpc",
    ):
        program.parent.mkdir(parents=True)
        # As p4c says it: by several lines, and not where others do.
        stand_in(program, f"echo {program.name}; echo Version 1.2.3 >&2; echo")
        (program.parent / ".libs").mkdir()
        stand_in(program.parent / ".libs" / program.name, "echo not by itself; exit 1")
    (source / "p4c" / "p4include").mkdir()
    (source / "p4c" / "p4include" / "core.p4").touch()
    prompt = targets / "simple_switch" / "sswitch_CLI.py"
    prompt.write_text("import runtime_CLI, bmpy_utils, bm_runtime, sswitch_runtime\n"
                      "def main(): print('the prompt')\n")  # fmt: skip
    tools = source / "behavioral-model" / "tools"
    for part in ("runtime_CLI.py", "bmpy_utils.py", "bm_runtime/__init__.py"):
        (tools / part).parent.mkdir(parents=True, exist_ok=True)
        (tools / part).touch()
    (targets / "simple_switch" / "sswitch_runtime").mkdir()
    (targets / "simple_switch" / "sswitch_runtime" / "__init__.py").touch()
    return source


def taken_from(source: Path, into: Path) -> subprocess.CompletedProcess[str]:
    """What the recipe says that takes what is built there."""
    return subprocess.run(
        ["bash", ROOT / "provision" / "p4lang.sh", "--from-source", source, into],
        capture_output=True,
        text=True,
        check=False,
    )


def test_p4c_and_bmv2_are_taken_from_where_they_were_built(tmp_path: Path) -> None:
    programs = tmp_path / "bin"
    done = taken_from(built(tmp_path / "our source"), programs)
    assert done.returncode == 0, done.stderr
    said = {
        program.name: subprocess.run([program], capture_output=True, text=True, check=True).stdout
        for program in programs.iterdir()
    }
    own = {name: f"{name}\n\n" for name in ("p4c-bm2-ss", "simple_switch", "simple_switch_grpc")}
    assert said == own | {"simple_switch_CLI": "the prompt\n"}
    assert f"{programs}/p4c-bm2-ss: Version 1.2.3" in done.stderr


@pytest.mark.parametrize("name", ["p4c-bm2-ss", "simple_switch_grpc", "runtime_CLI.py"])
@pytest.mark.parametrize("is_broken", [False, True])
def test_what_is_not_built_there_is_named(name: str, is_broken: bool, tmp_path: Path) -> None:
    source = built(tmp_path)
    for path in [path for path in source.rglob(name) if path.is_file()]:
        path.unlink()
        if is_broken:
            stand_in(path, "echo it lacks a library; exit 127")
    done = taken_from(source, tmp_path / "bin")
    assert done.returncode == 6
    right = ("1.2.3", "the prompt", "on your PATH")
    (line,) = (line for line in done.stderr.splitlines() if not line.endswith(right))
    assert "does not run" in line if is_broken else "build" in line


def test_a_folder_that_is_not_there_is_named(tmp_path: Path) -> None:
    done = taken_from(tmp_path / "nowhere", tmp_path / "bin")
    assert done.returncode == 6
    assert f"there is no folder {tmp_path}/nowhere" in done.stderr
    assert not (tmp_path / "bin").exists()


def test_a_box_is_made_where_nobody_else_sees_its_disk(tmp_path: Path) -> None:
    """Or whoever makes a namespace meanwhile keeps it mounted, and what is packed is not whole."""
    tools, seen = tmp_path / "tools", tmp_path / "seen"
    tools.mkdir()
    for name in ("extlinux", "sfdisk", "qemu-img", "dd", "losetup", "mkfs.ext4", "mount"):
        stand_in(tools / name)
    stand_in(tools / "dpkg", "echo amd64")
    stand_in(tools / "debootstrap", f"readlink /proc/self/ns/mnt >'{seen}'; exit 1")
    done = subprocess.run(
        [
            *alone("--mount"),
            *("bash", "-c", 'readlink /proc/self/ns/mnt; "$@"', "--"),
            *("bash", ROOT / "provision" / "box.sh", "--bare", tmp_path / "boxes"),
        ],
        env={"PATH": f"{tools}:{os.environ['PATH']}:/usr/sbin:/sbin"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 1 and "debootstrap failed" in done.stderr, done.stderr
    assert seen.read_text() != done.stdout
    assert list((tmp_path / "boxes").iterdir()) == []
