"""``closlab enter``: inside the private namespaces of a lab that runs."""

from __future__ import annotations

import os
from typing import Annotated

import typer

from lab.commands.options import Running
from lab.engines.mininet import running
from lab.runs.adapter_files import found_by

HAS_WORDS_OF_OTHERS = True


def command(
    node: Annotated[str | None, typer.Argument(help="A host or switch; else the sandbox.")] = None,
    words: Annotated[
        list[str] | None, typer.Argument(metavar="command", help="Instead of a shell.")
    ] = None,
    lab: Running = None,
    control: Annotated[
        bool, typer.Option("--control", help="Where the switch's routing daemons run (vtysh).")
    ] = False,
) -> None:
    """Step inside the running lab, or run a command there.

    On a host where a program of RDMA has run, /sys/class/infiniband/closlab0 shows its adapter.
    """
    inside = words or [os.environ.get("SHELL", "/bin/sh")]
    found = running.find(lab)
    if node and not control and (files := found.adapters / node).is_dir():
        inside = ["unshare", "--mount", *found_by(inside, files)]
    if control:
        argv = found.room_command(node, inside)
    else:
        argv = found.node_command(node, inside) if node else found.enter_command(inside)
    os.execvp(argv[0], argv)
