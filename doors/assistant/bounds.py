"""How much an assistant may have done, and the walls of the process that does it.

The walls are Python's audit hooks, which nothing takes away again: whatever a scenario names, what
is opened or listed lies in the lab, in Python or in the session's own folders.
"""

from __future__ import annotations

import os
import resource
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from lab.machine.paths import ROOT
from params.data import Data
from switch.cache import cache_dir

_SYSTEM = ("/proc", "/sys", "/dev", "/usr", "/lib", "/lib64", "/bin", "/etc/ld.so.cache")
_WATCHED = frozenset({"open", "os.listdir", "os.scandir", "os.chdir", "os.mkdir", "os.remove",
                      "os.rename", "os.rmdir", "os.link", "os.symlink", "os.truncate"})  # fmt: skip
_FORBIDDEN = frozenset({"os.system", "os.exec", "os.posix_spawn", "socket.connect", "socket.bind"})
_SPAWNS = "subprocess.Popen"
_ROOM = "room-"  # course/sandboxes.py
_MEASURES = str(ROOT / "lab" / "machine" / "speed.py")  # how slow the machine is
_TOOLS = ("sh", "gcc", "cc", "clang", "c99", "zig")  # which the lab itself calls, and what of it


class Bounds(Data):
    """What one session may take."""

    seconds: float = 120.0  # of a call
    memory_bytes: int = 4 << 30  # of the process that carries it out
    runs: int = 200  # in all
    hosts: int = 256  # of a fabric
    messages: int = 200_000  # of a run
    at_once: int = 2  # calls
    answer_bytes: int = 200_000
    file_bytes: int = 1 << 28


def limit(bounds: Bounds) -> None:
    """Let this process have no more than that."""
    resource.setrlimit(resource.RLIMIT_AS, (bounds.memory_bytes, bounds.memory_bytes))
    resource.setrlimit(resource.RLIMIT_FSIZE, (bounds.file_bytes, bounds.file_bytes))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


def wall_in(folders: Iterable[Path]) -> None:
    """Let this process open what lies there, what the lab is made of, and nothing else."""
    python = {sys.prefix, sys.base_prefix, sys.exec_prefix, str(Path(sys.executable).parent)}
    ours = [ROOT, cache_dir(), *map(Path, python), *folders, *map(Path, _SYSTEM)]
    roots = tuple(f"{root}{os.sep}" for root in {*map(os.path.realpath, ours)})
    built = tuple(f"{os.path.realpath(root)}{os.sep}" for root in (ROOT, cache_dir()))

    def is_ours(name: Any, words: Any) -> bool:
        """What the lab calls itself, and what holds a submission in, which the lab has built."""
        program = Path(os.fsdecode(name))
        if [*words] == [sys.executable, "-IS", _MEASURES]:
            return True
        is_room = program.name.startswith(_ROOM) and os.path.realpath(program).startswith(built)
        return is_room or program.name in _TOOLS

    def look(event: str, given: tuple[Any, ...]) -> None:
        if event in _FORBIDDEN:
            raise PermissionError(1, f"{event} is not done for an assistant")
        if event == _SPAWNS and not is_ours(given[0], given[1]):
            raise PermissionError(1, "no program is started for an assistant", str(given[0])[:80])
        if event not in _WATCHED or not given or isinstance(given[0], int):
            return
        try:
            real = os.path.realpath(os.fspath(given[0] if given[0] is not None else "."))
        except (TypeError, ValueError):
            return  # no name that anything could be opened by
        name = os.fsdecode(real)
        if not f"{name}{os.sep}".startswith(roots):
            raise PermissionError(13, "it lies outside the folder of this session", name[:160])

    sys.addaudithook(look)


def is_within(path: Path, folder: Path) -> bool:
    """Whether a path, links followed, leads into a folder."""
    return path.resolve().is_relative_to(folder.resolve())
