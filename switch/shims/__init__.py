"""Executables under BMv2's and p4c's names, so that other labs run on this switch and compiler."""

from __future__ import annotations

import shlex
import sys
from pathlib import Path

__all__ = ["NAMES", "write_shims"]

NAMES = ("p4c", "p4c-bm2-ss", "simple_switch", "simple_switch_grpc", "simple_switch_CLI")


def write_shims(folder: Path) -> list[Path]:
    """Write the executables into a folder and return them; put the folder first in PATH."""
    folder.mkdir(parents=True, exist_ok=True)
    written = []
    for name in NAMES:
        path = folder / name
        path.write_text(
            "#!/bin/sh\n"
            f"# {name}, played by closlab.\n"
            f'exec {shlex.quote(sys.executable)} -m switch.shims {name} "$@"\n'
        )
        path.chmod(0o755)
        written.append(path)
    return written
