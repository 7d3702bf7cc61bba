"""A run as a process of its own, as a capsule wants it."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from lab.errors import RunError


def run_apart(
    scenario: str, changes: Sequence[str], engine: str, out: Path, options: Sequence[str] = ()
) -> Path:
    """Run a scenario; its result.json, beside which said.txt has what it said."""
    out.mkdir(parents=True, exist_ok=True)
    words = [sys.executable, "-c", "from lab.cli import main; main()", "run", scenario]
    words += ["--engine", engine, "--out", str(out)]
    for change in changes:
        words += ["--set", change]
    done = subprocess.run([*words, *options], capture_output=True, text=True, check=False)
    (out / "said.txt").write_text(done.stderr)
    result = out / "result.json"
    if not result.exists():
        raise RunError(done.stderr.strip()[-300:])
    return result
