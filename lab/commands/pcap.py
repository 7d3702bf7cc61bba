"""``closlab pcap``: what crosses a link of a lab that runs; `engines/mininet/tap.py` records it."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Annotated

import typer

from lab.commands.options import Running
from lab.engines.mininet import running, tap


def command(
    link: Annotated[str, typer.Argument(help="Such as leaf1-spine2.")],
    file: Annotated[
        Path | None, typer.Option("--out", help="Instead of LINK.pcap; - is standard output.")
    ] = None,
    packets: Annotated[int | None, typer.Option(min=1, help="Stop after so many.")] = None,
    lab: Running = None,
) -> None:
    """Record what crosses a link of the running lab."""
    found = running.find(lab)
    words = [found.link_interface(link), str(file or f"{link}.pcap"), str(packets or 0)]
    argv = found.enter_command([sys.executable, "-m", tap.__name__, *words])
    os.execvp(argv[0], argv)
