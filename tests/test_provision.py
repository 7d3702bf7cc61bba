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
@pytest.mark.parametrize(("curl", "words", "code"), [(6, (), 4), (22, (), 3), (6, ("--help",), 2)])
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
