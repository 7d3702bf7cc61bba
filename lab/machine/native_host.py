"""The program that is a host's RoCEv2 adapter under the real clock, built once and kept."""

from __future__ import annotations

from pathlib import Path

from lab.machine.building import building
from switch import build
from traffic.endpoint import PROGRAM_SOURCES

_FLAGS = ["-std=gnu11", "-O2", "-g1", "-Wall", "-Wextra"]


def endpoint_program() -> Path:
    """The built program."""
    headers = sorted(PROGRAM_SOURCES[0].parent.glob("*.h"))
    texts = (path.read_bytes() for path in (*PROGRAM_SOURCES, *headers))
    name = f"host-{build.digest(build.compiler_id(), *_FLAGS, *texts)}"
    with building():
        return build.compiled(name, [*map(str, PROGRAM_SOURCES), "-lm"], _FLAGS)
