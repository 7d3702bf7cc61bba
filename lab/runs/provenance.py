"""Where a run's figures come from: which program, by which compiler, of which state of closlab.

Whatever of this can change a figure is told apart from what cannot: a program's hash leaves out
where its sources lie and how they are laid out, so the same program is the same everywhere.
"""

from __future__ import annotations

import hashlib
import platform
import subprocess
from datetime import UTC, datetime
from functools import cache
from importlib.metadata import version
from pathlib import Path

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
        "host": f"{platform.system()} {platform.release()} {platform.machine()}",
    }
    return {key: value for key, value in found.items() if value}


def closlab_now() -> dict[str, str]:
    """Which closlab this is, and when that is."""
    now = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    return {"version": version("closlab"), "commit": commit(), "date": now}


@cache
def commit() -> str:
    """The commit of closlab's sources, and whether they were changed since; empty: no checkout.

    The fabric program does not count: it has a hash of its own.
    """
    if not (ROOT / ".git").exists():
        return ""
    head = _git("rev-parse", "--short=12", "HEAD")
    if not head:
        return ""
    changes = _git("diff", "HEAD", "--", ".", ":!p4src")
    which = hashlib.sha256(changes.encode()).hexdigest()[:8]
    return f"{head} with changes {which}" if changes else head


def _git(*words: str) -> str:
    """What git answers; nothing where it is missing, or mistrusts the folder."""
    argv = ["git", "-C", str(ROOT), "--no-optional-locks", *words]
    try:
        done = subprocess.run(argv, capture_output=True, text=True, check=True, timeout=_GIT_S)
    except (OSError, subprocess.SubprocessError):
        return ""
    return done.stdout.strip()
