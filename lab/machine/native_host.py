"""The program that is a host's RoCEv2 adapter under the real clock, built once and kept."""

from __future__ import annotations

import os
import subprocess
import tempfile
from pathlib import Path

from lab.errors import LabError
from switch import build
from traffic.endpoint import PROGRAM_SOURCES

_FLAGS = ("-std=gnu11", "-O2", "-g1", "-Wall", "-Wextra")


def endpoint_program() -> Path:
    """The built program."""
    headers = sorted(PROGRAM_SOURCES[0].parent.glob("*.h"))
    texts = (path.read_bytes() for path in (*PROGRAM_SOURCES, *headers))
    output = build.cache_dir() / f"host-{build.digest(build.compiler_id(), *_FLAGS, *texts)}"
    if not output.exists():
        _compile(output)
    return output


def _compile(output: Path) -> None:
    output.parent.mkdir(parents=True, exist_ok=True)
    handle, name = tempfile.mkstemp(prefix=output.name, suffix=".tmp", dir=output.parent)
    os.close(handle)
    made = Path(name)
    try:
        sources = map(str, PROGRAM_SOURCES)
        command = [*build.compiler(), *_FLAGS, *sources, "-lm", "-o", str(made)]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode != 0:
            raise LabError(f"the hosts' program does not build:\n{done.stderr.strip()}")
        made.chmod(0o755)
        made.replace(output)
    finally:
        made.unlink(missing_ok=True)
