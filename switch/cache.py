"""The cache: what was built, kept by content, in a folder that nobody else writes to.

What lies there is loaded into this process, so a file counts only if it is its user's own and
nobody else could have written it; any other is made anew and takes its place. A folder of somebody
else's, where two users share one cache, is left alone, and the next name taken.
"""

from __future__ import annotations

import fcntl
import os
import stat
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from itertools import chain
from pathlib import Path

_MOST_USERS = 100
_OTHERS_WRITE = stat.S_IWGRP | stat.S_IWOTH


class Unbuildable(Exception):  # noqa: N818 - the name says it
    """This machine cannot build anything; the text says why, and how it could."""


class CacheError(Unbuildable):
    """What is built cannot be kept; the text names the folder and the cure."""

    def __init__(self, folder: Path, reason: str) -> None:
        super().__init__(
            f"{folder}, where what is built is kept, cannot be used: {reason}; make room there, or "
            "set XDG_CACHE_HOME to a folder of your own"
        )


def cache_dir() -> Path:
    """Where built objects are kept: this user's own folder, made if need be."""
    return _own_folder(Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"))


@cache
def _own_folder(base: Path) -> Path:
    names = chain(["closlab"], (f"closlab-{number}" for number in range(2, _MOST_USERS)))
    for folder in (base / name for name in names):
        try:
            base.mkdir(parents=True, exist_ok=True)
            folder.mkdir(mode=0o700, exist_ok=True)
            found = folder.stat()
            if found.st_uid != os.geteuid():
                continue
            if found.st_mode & _OTHERS_WRITE:
                folder.chmod(0o700)
        except OSError as error:
            raise CacheError(folder, error.strerror or str(error)) from None
        return folder
    raise CacheError(base / "closlab", "it and all names beside it are others' folders")


def kept(name: str, make: Callable[[Path], object]) -> Path:
    """The file of that name; if there is none to be trusted, ``make`` is given a place to write it.

    Nobody sees half of it: it is made under another name. Of several who want it at the same time
    one makes it, and the others wait.
    """
    path = cache_dir() / name
    if not _is_own(path):
        try:
            with _one_at_a_time(path):
                if not _is_own(path):
                    _put(path, make)
        except OSError as error:
            raise CacheError(path.parent, error.strerror or str(error)) from None
    return path


def _put(path: Path, make: Callable[[Path], object]) -> None:
    handle, made = tempfile.mkstemp(prefix=f"{path.name}.", suffix=".tmp", dir=path.parent)
    os.close(handle)
    try:
        make(Path(made))
        Path(made).chmod(0o700)
        Path(made).replace(path)
    finally:
        Path(made).unlink(missing_ok=True)


@contextmanager
def _one_at_a_time(path: Path) -> Iterator[None]:
    """Wait until nobody else makes this file; who dies over it lets go.

    A lock's file goes with who made it, so that one who waited for it and one who came later may
    both be at it. Then it is made twice, which costs time and nothing else.
    """
    lock = path.with_name(f"{path.name}.lock")
    held = os.open(lock, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(held, fcntl.LOCK_EX)
        yield
    finally:
        lock.unlink(missing_ok=True)
        os.close(held)


def _is_own(path: Path) -> bool:
    """Whether there is such a file, and only this user can have written it."""
    try:
        found = path.lstat()
    except FileNotFoundError:
        return False
    except OSError as error:
        raise CacheError(path.parent, error.strerror or str(error)) from None
    is_mine = found.st_uid == os.geteuid() and not found.st_mode & _OTHERS_WRITE
    return stat.S_ISREG(found.st_mode) and is_mine
