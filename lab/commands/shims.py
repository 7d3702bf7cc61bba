"""``closlab shims``: for what calls p4c and BMv2 by their names."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from switch.shims import write_shims


def command(
    folder: Annotated[Path, typer.Argument(help="Put it first in PATH.")],
) -> None:
    """Write programs named p4c, simple_switch_grpc..."""
    for path in write_shims(folder):
        print(path)
