"""Where things lie."""

from __future__ import annotations

import errno
import fcntl
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from lab.errors import RunError, unheard
from switch.cache import Unbuildable, cache_dir, is_closed, made_own

ROOT = Path(__file__).resolve().parent.parent.parent
FABRIC_PROGRAM = ROOT / "p4src" / "fabric.p4"
SCENARIOS = ROOT / "scenarios"
EXERCISES = ROOT / "exercises"
CONGA_DISSECTOR = ROOT / "lab" / "wireshark" / "conga.lua"
SHELL_ENVIRONMENT = ROOT / ".venv-shell"
DOCS_ENVIRONMENT = ROOT / ".venv-docs"


# What a folder that is full, forbidden or gone answers.
_CANNOT_WRITE = (
    errno.ENOSPC,
    errno.EDQUOT,
    errno.EFBIG,
    errno.EROFS,
    errno.EACCES,
    errno.EPERM,
    errno.EIO,
    errno.ENOENT,
)
_OURS: set[tuple[int, int]] = set()  # folders this process has taken for good
_ELSEWHERE = (
    "Make room, or give another folder with --out DIR; what is kept there may not be whole, what "
    "is shown above is."
)


def writable(out: Path) -> Path:
    """A folder for results, made if it is not there."""
    try:
        out.mkdir(parents=True, exist_ok=True)
        if not os.access(out, os.W_OK):
            raise PermissionError
    except OSError as error:
        raise cannot_write(str(out), error) from None
    return out


@contextmanager
def alone_in(out: Path) -> Iterator[Path]:
    """Such a folder, which nobody else writes to meanwhile."""
    folder = writable(out)
    held = _taken(folder)
    try:
        yield folder
    finally:
        os.close(held)


def taken_for_good(out: Path) -> Path:
    """The same, for as long as this process lives, which may ask for it again."""
    folder = writable(out)
    about = folder.stat()
    name = about.st_dev, about.st_ino
    if name not in _OURS:
        _taken(folder)
        _OURS.add(name)
    return folder


def _taken(folder: Path) -> int:
    """A folder, open and locked: the lock goes with who has it open, however that ends."""
    held = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(held)
        raise RunError(
            f"another run is writing to {folder}",
            "Wait until it is over, or give this one a folder of its own with --out DIR.",
        ) from None
    except OSError:  # a file system that knows no locks
        pass
    return held


@contextmanager
def writing_to(out: Path, cure: str = _ELSEWHERE) -> Iterator[None]:
    """Say in one message when a folder takes no more."""
    try:
        yield
    except OSError as error:
        if error.errno not in _CANNOT_WRITE:
            raise
        if known := unheard(error):
            raise known from None
        where = error.filename or out
        raise RunError(f"{where} cannot be written: {error.strerror}", cure) from None


def cannot_write(where: str, error: OSError) -> RunError:
    """What to say of it."""
    return RunError(
        f"the results cannot be written to {where}: {error.strerror or 'not allowed'}",
        "Give a folder you may write to with --out DIR.",
    )


def running_labs() -> Path:
    """The folder in which running labs leave word of themselves."""
    if chosen := os.environ.get("CLOSLAB_RUNNING"):
        return Path(chosen)
    try:
        folder = cache_dir() / "labs"
        if made_own(folder):
            return folder
    except Unbuildable as error:
        raise RunError(str(error)) from None
    raise RunError(
        f"{folder}, where running labs leave word, is a link or somebody else's",
        "Remove it, or set XDG_CACHE_HOME to a folder of your own.",
    )


def keep_bytecode() -> None:
    """For who wants no bytecode in the tree: it is kept with all else that is built.

    Tests start Python some hundred times, and half of a start would go into reading sources anew.
    Python asks nobody whose bytecode is: where others could have written it, none is kept.
    """
    if not sys.dont_write_bytecode:
        return
    folder = cache_dir() / "bytecode"
    with suppress(FileExistsError):
        folder.mkdir(mode=0o700)
    if is_closed(folder):
        sys.dont_write_bytecode = False
        sys.pycache_prefix = os.environ["PYTHONPYCACHEPREFIX"] = str(folder)
        os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
