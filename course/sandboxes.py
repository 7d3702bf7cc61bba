"""Rooms in which submissions are judged: what is shown there, and whether this kernel can make any.

    grade ──► the judge's room: closlab, the compiler, the submission; it writes into memory
                 └──► the room of a student's Python: Python's own library, and nothing else

`room.c` puts up the walls, and tells which there are. A judge is in a room too, because a program
in P4 becomes native code in it. Where users may not make namespaces (in most containers) Landlock
and the filter of system calls stand alone. Without them nothing untrusted is judged.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import sysconfig
from collections.abc import Iterable, Iterator, Sequence
from functools import cache
from pathlib import Path

from lab.errors import LabError
from lab.machine.building import building
from lab.machine.paths import ROOT
from switch import build
from switch.cache import BESIDE_VARIABLE, cache_dir

UNMADE = 125  # room's exit code if there is no room
ANYWAY_VARIABLE = "CLOSLAB_GRADE_ANYWAY"  # tells the judge that it was told so

_SOURCE = Path(__file__).with_name("room.c")
_FLAGS = ["-std=gnu11", "-O2", "-Wall", "-Wextra"]
_SYSTEM = ("/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32")
_SETTINGS = ("/etc/alternatives", "/etc/ld.so.cache", "/etc/ld.so.conf", "/etc/localtime")
_DEVICES = ("/dev/null", "/dev/zero", "/dev/urandom")
_OTHERS_PACKAGES = ("site-packages", "dist-packages")


def program() -> str:
    """What makes rooms, built if need be."""
    name = f"room-{build.digest(build.compiler_id(), *_FLAGS, _SOURCE.read_bytes())}"
    with building("what holds a submission"):
        return str(build.compiled(name, (_SOURCE,), (), _FLAGS))


@cache
def walls() -> frozenset[str]:
    """Which walls this kernel gives: namespaces, landlock, seccomp."""
    output = subprocess.run([program(), "--walls"], capture_output=True, text=True, check=False)
    return frozenset(output.stdout.split())


def require_walls() -> None:
    """Refuse where what a stranger wrote could not be kept in."""
    if "namespaces" in walls() or {"landlock", "seccomp"} <= walls():
        return
    raise LabError(
        "this machine cannot shut a submission in: its kernel lets you make no namespaces, and has "
        "no Landlock with a filter of system calls",
        "Judge where users may make namespaces, or Linux is 5.13 or later; or, if you would run "
        "the submission yourself, say so:  closlab grade ... --trusted",
    )


def judges_room(desk: Path, command: Sequence[str]) -> list[str]:
    """A command, to be run where a judge works: he writes at his desk alone."""
    where = build.compiler()[0]
    compiler = Path(shutil.which(where) or where).resolve().parent.parent
    shown = {
        *(Path(each) for each in (*_SYSTEM, *_SETTINGS)),
        *(Path(each).absolute() for each in sys.path if each),
        *(ROOT, Path(sys.prefix), Path(sys.base_prefix), compiler, cache_dir()),
    } - {Path("/"), Path.home()}
    words = [program(), "--proc", "--desk", str(desk), *_each("--show", _outermost(shown))]
    return [*words, *_each("--device", _DEVICES), "--", *command]


def judges_surroundings(desk: Path, *, is_trusted: bool) -> dict[str, str]:
    """Variables for the judge: what he builds stays at his desk, what is built already is used."""
    paths = filter(None, (str(ROOT), os.environ.get("PYTHONPATH")))
    return {
        **os.environ,
        "PYTHONPATH": os.pathsep.join(paths),
        "TMPDIR": str(desk),
        "XDG_CACHE_HOME": str(desk / "cache"),
        BESIDE_VARIABLE: str(cache_dir()),
        ANYWAY_VARIABLE: "1" if is_trusted else "",
    }


def students_room(code: str, *arguments: str) -> list[str]:
    """A command that runs Python code where there is Python, and nothing else."""
    python = _python()
    listed = [Path(sysconfig.get_path(name)) for name in ("stdlib", "platstdlib")]
    words = [program(), "--strict", *(["--anyway"] * bool(os.environ.get(ANYWAY_VARIABLE)))]
    words += [*_each("--names", _outermost(listed)), *_each("--show", _of_python(python, listed))]
    return [*words, "--", str(python), "-I", "-S", "-B", "-c", code, *arguments]


def _python() -> Path:
    """The interpreter itself, of which an environment has a link."""
    return Path(getattr(sys, "_base_executable", None) or sys.executable).resolve()


def _of_python(python: Path, listed: Sequence[Path]) -> Iterator[Path]:
    """What it takes to run it; packages of others are not shown, closlab may be among them."""
    several = sysconfig.get_config_var("MULTIARCH")
    libraries = [Path("/lib") / several, Path("/usr/lib") / several] if several else []
    yield from (python, Path("/etc/ld.so.cache"), Path("/lib64"), Path("/usr/lib64"), *libraries)
    yield from sorted(Path("/lib").glob("ld-*"))
    yield from sorted(Path(sysconfig.get_config_var("LIBDIR") or "/usr/lib").glob("libpython*.so*"))
    for folder in _outermost(listed):
        yield from sorted(each for each in folder.iterdir() if each.name not in _OTHERS_PACKAGES)


def _outermost(folders: Iterable[Path]) -> list[Path]:
    """All of them, those without which lie in another; by length, an outer before an inner."""
    found: list[Path] = []
    for folder in sorted(set(folders), key=lambda each: (len(each.parts), each)):
        if not any(folder.is_relative_to(outer) for outer in found):
            found.append(folder)
    return found


def _each(option: str, values: Iterable[object]) -> Iterator[str]:
    for value in values:
        yield from (option, str(value))
