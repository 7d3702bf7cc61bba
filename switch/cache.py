"""The cache: what was built, kept by content, in a folder that nobody else writes to.

What lies there is loaded into this process, so a file counts only if it is its user's own and
nobody else could have written it; any other is made anew and takes its place. A folder of somebody
else's, where two users share one cache, is left alone, and the next name taken.

Links are followed nowhere: neither to a folder nor to a file. And nothing is removed but what the
cache itself has made, which it knows by its name and its owner, and that in the folder it has open,
whatever else has taken that folder's name meanwhile.

It keeps what was lately used: beyond some size what nobody has asked for the longest goes. That
harms nobody, for what is gone is made anew, and what is loaded stays loaded.
"""

from __future__ import annotations

import errno
import fcntl
import os
import re
import shutil
import stat
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import cache, lru_cache
from itertools import chain
from pathlib import Path

_MAX_USERS = 100
_OTHERS_WRITE = stat.S_IWGRP | stat.S_IWOTH
_MAX_BYTES = 2 << 30  # of what is kept
_NOTED_S = 3600.0  # that a file is used is noted no more often
_IN_USE_S = 2 * _NOTED_S  # what was used this lately may be about to be used, and stays
_TRIM_EVERY_S = 600.0
_MAKING = "making-"  # how folders begin in which something is being made
# What was made here: named by what it is and the digest of what went into it (build.py), with a
# word or an ending; a lock is named after what is being made, a workshop by `tempfile`.
_BUILT = re.compile(r"[\w.-]*-[0-9a-f]{24}(-\d)?(\.\w+)?")
_LEFT = re.compile(rf"{_MAKING}[a-z0-9_]{{8}}|{_BUILT.pattern}\.lock")
_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
# What came with the installation (`target.py`): nothing is written there, and nobody asks whose it
# is, no more than of the code beside it.
BUILT = Path(__file__).parent / "built"
# Names a second cache, in which what is there already is looked for, and nothing is written.
BESIDE_VARIABLE = "CLOSLAB_CACHE_BESIDE"
_SAID = "CLOSLAB_CACHE_SAID"  # that a link was passed over
_ABANDONED_S = 60.0  # after which one that nobody holds was left by who was killed


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
    names = chain(["closlab"], (f"closlab-{number}" for number in range(2, _MAX_USERS)))
    for folder in (base / name for name in names):
        try:
            base.mkdir(parents=True, exist_ok=True)
            if made_own(folder):
                return folder
            if folder.is_symlink():
                _tell(f"{folder} is a link, which is not followed: the next name is taken")
        except OSError as error:
            raise CacheError(folder, error.strerror or str(error)) from None
    raise CacheError(base / "closlab", "it and all names beside it are others' folders")


def _tell(what: str) -> None:
    """Say it once, for all processes that this one starts."""
    if _SAID not in os.environ:
        os.environ[_SAID] = "1"
        print(f"closlab: {what}", file=sys.stderr, flush=True)


def _user() -> int:
    """Who this process works for; in a browser's tab there is one user, and no such word for it."""
    return os.geteuid() if hasattr(os, "geteuid") else os.getuid()


def is_closed(folder: Path) -> bool:
    """Whether a folder is this user's own, and nobody else could ever write to it as it is."""
    try:
        found = folder.lstat()
    except FileNotFoundError:
        return False
    is_mine = found.st_uid == _user() and not found.st_mode & _OTHERS_WRITE
    return stat.S_ISDIR(found.st_mode) and is_mine


def made_own(folder: Path) -> bool:
    """Make a folder that is closed to others, if it is not there; whether it is this user's own.

    What others could write to so far is closed to them. A link is nobody's own, wherever it leads.
    """
    with suppress(FileExistsError):
        folder.mkdir(mode=0o700)
    try:
        held = os.open(folder, _FOLDER)
    except OSError as error:
        if error.errno == errno.EACCES or folder.is_symlink():
            return False
        raise
    try:
        found = os.fstat(held)
        if found.st_uid != _user():
            return False
        if found.st_mode & _OTHERS_WRITE:
            os.fchmod(held, 0o700)
    finally:
        os.close(held)
    return True


def kept(name: str, make: Callable[[Path], object]) -> Path:
    """The file of that name; if there is none to be trusted, ``make`` is given a place to write it.

    Nobody sees half of it: it is made in a folder of its own, whose other files go with that.
    Of several who want it at the same time one makes it, and the others wait.
    """
    if (there := kept_at(name)) is not None:
        return there
    path = cache_dir() / name
    try:
        with _one_at_a_time(path):
            if not _is_own(path):
                _put(path, make)
        _trim(path.parent, int(time.monotonic() / _TRIM_EVERY_S))
    except OSError as error:
        raise CacheError(path.parent, error.strerror or str(error)) from None
    return path


def is_kept(name: str) -> bool:
    """Whether there is a file of that name, to be trusted."""
    return kept_at(name) is not None


def kept_at(name: str) -> Path | None:
    """Where it is, if it is there and to be trusted; others may be making it at this moment."""
    if (BUILT / name).is_file():
        return BUILT / name
    beside = os.environ.get(BESIDE_VARIABLE)
    folders = cache_dir(), *((Path(beside),) if beside else ())
    return next((folder / name for folder in folders if _is_own(folder / name)), None)


def _put(path: Path, make: Callable[[Path], object]) -> None:
    with _workshop(path.parent) as folder:
        made = folder / path.name
        make(made)
        made.chmod(0o700)
        made.replace(path)


@contextmanager
def _workshop(base: Path) -> Iterator[Path]:
    """A folder in which something is made, and which is locked for so long."""
    folder = Path(tempfile.mkdtemp(prefix=_MAKING, dir=base))
    held = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        fcntl.flock(held, fcntl.LOCK_SH)
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)
        os.close(held)


@lru_cache(maxsize=1)
def _trim(base: Path, _when: int) -> None:
    """Remove what was left by makers that were killed, and what is used least; now and then."""
    held = os.open(base, _FOLDER)
    try:
        if os.fstat(held).st_uid == _user():
            _trim_within(held)
    finally:
        os.close(held)


def _trim_within(base: int) -> None:
    now = time.time()
    files = []
    for name in os.listdir(base):
        with suppress(OSError):  # it is gone by now
            found = os.stat(name, dir_fd=base, follow_symlinks=False)
            unused_s = now - found.st_mtime
            if found.st_uid != _user():
                continue
            if _LEFT.fullmatch(name):
                if unused_s > _ABANDONED_S:
                    _remove_unless_held(base, name)
            elif stat.S_ISREG(found.st_mode) and _BUILT.fullmatch(name):
                files.append((unused_s, found.st_blocks * 512, name))
    size = sum(taken for _, taken, _ in files)
    for unused_s, taken, name in sorted(files, reverse=True):
        if size <= _MAX_BYTES or unused_s < _IN_USE_S:
            break
        with suppress(FileNotFoundError):
            os.unlink(name, dir_fd=base)
        size -= taken


def _remove_unless_held(base: int, name: str) -> None:
    """Remove a folder or a lock's file whose maker is dead: a lock goes with who holds it."""
    held = os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, dir_fd=base)
    try:
        fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
        if stat.S_ISDIR(os.fstat(held).st_mode):
            shutil.rmtree(name, ignore_errors=True, dir_fd=base)
        else:
            os.unlink(name, dir_fd=base)
    finally:
        os.close(held)


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
    is_mine = found.st_uid == _user() and not found.st_mode & _OTHERS_WRITE
    if not (stat.S_ISREG(found.st_mode) and is_mine):
        return False
    if time.time() - found.st_mtime > _NOTED_S:
        with suppress(OSError):  # a cache that nobody may write to can be read all the same
            os.utime(path)
    return True
