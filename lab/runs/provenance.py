"""Where a run's figures come from: which program, by which compiler, of which state of closlab.

Whatever of this can change a figure is told apart from what cannot: a program's hash leaves out
where its sources lie and how they are laid out, so the same program is the same everywhere.
"""

from __future__ import annotations

import hashlib
import platform
from datetime import UTC, datetime
from functools import cache
from importlib.metadata import version
from pathlib import Path
from subprocess import DEVNULL, PIPE, Popen, TimeoutExpired

from lab.engines import RunOptions
from lab.machine import program
from lab.machine.paths import ROOT

_GIT_S = 10


def provenance(options: RunOptions, compiled: Path) -> dict[str, str]:
    """All that is kept of it; what is not known is left out."""
    found = {
        **closlab_now(),
        "p4_sha256": program.hash_of(compiled),
        "p4": "" if options.p4 is None else str(options.p4),
        "compiler": program.compiler(options.switch),
        "ranks": "" if options.ranks is None else str(options.ranks.size),
        "host": f"{platform.system()} {platform.release()} {platform.machine()}",
    }
    return {key: value for key, value in found.items() if value}


def closlab_now() -> dict[str, str]:
    """Which closlab this is, and when that is."""
    now = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    return {"version": version("closlab"), "commit": commit(), "date": now}


_asked: list[tuple[Popen[str], Popen[str]] | None] = []  # for who will want to know


def ask_ahead() -> None:
    """Have git look at closlab's sources while others work, unless it has."""
    if not _asked and not commit.cache_info().currsize:
        _asked.append(_ask())


def _ask() -> tuple[Popen[str], Popen[str]] | None:
    if not (ROOT / ".git").exists():
        return None
    try:
        return _git("rev-parse", "--short=12", "HEAD"), _git("diff", "HEAD", "--", ".", ":!p4src")
    except OSError:  # there is no git
        return None


@cache
def commit() -> str:
    """The commit of closlab's sources, and whether they were changed since; empty: no checkout.

    The fabric program does not count: it has a hash of its own.
    """
    asked = _asked.pop() if _asked else _ask()
    head, changes = map(_answer, asked) if asked else ("", "")
    if not head:
        return ""
    which = hashlib.sha256(changes.encode()).hexdigest()[:8]
    return f"{head} with changes {which}" if changes else head


def _git(*words: str) -> Popen[str]:
    argv = ["git", "-C", str(ROOT), "--no-optional-locks", *words]
    return Popen(argv, stdin=DEVNULL, stdout=PIPE, stderr=DEVNULL, text=True)


def _answer(git: Popen[str]) -> str:
    """What git answers; nothing if it mistrusts the folder."""
    try:
        said, _ = git.communicate(timeout=_GIT_S)
    except TimeoutExpired:
        git.kill()
        git.communicate()
        return ""
    return "" if git.returncode else said.strip()
