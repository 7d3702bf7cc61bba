"""``closlab exec``: a program on several hosts at once, as a launcher of jobs starts it."""

from __future__ import annotations

import sys
from typing import Annotated

import typer
from rich.console import Console

from lab.commands.options import Changes, Class, Dilation, On, Out, Running, Stretch, times
from lab.engines.mininet import hands, running
from lab.errors import LabError
from lab.progress import Stages
from lab.runs.programs import Ground, Wanted, launch, launch_on, told
from lab.scenario import catalogue

HAS_WORDS_OF_OTHERS = True


def command(
    hosts: Annotated[str, typer.Argument(help="Such as h1,h2,h3, or all.")],
    words: Annotated[list[str], typer.Argument(metavar="-- PROGRAM...", help="What to run.")],
    lab: Running = None,
    on: On = None,
    changes: Changes = None,
    dilation: Dilation = None,
    priority: Class = 0,
    stretch: Stretch = "1",
    out: Out = None,
) -> None:
    """Run a program on hosts of the running lab, or on a fabric of its own.

    Each is told its rank and the others in RANK, WORLD_SIZE, MASTER_ADDR, MASTER_PORT and
    GLOO_SOCKET_IFNAME, as torch.distributed has them, and in CLOSLAB_HOST, CLOSLAB_HOSTS and
    CLOSLAB_DILATION. Hosts of tenants with networks of their own are a job for each tenant. If one
    fails, the others are ended.
    """
    wanted = Wanted(hosts, tuple(words), priority, times(stretch))
    raise typer.Exit(run(wanted, lab, on, changes, dilation, out))


def run(
    wanted: Wanted,
    lab: str | None,
    on: str | None,
    changes: list[str] | None,
    dilation: int | None,
    out: Out,
) -> int:
    """Run it where it is to be run; the exit code."""
    if on is not None:
        if lab is not None:
            raise LabError("--lab is a fabric that runs, --on one that is brought up: choose")
        scenario = catalogue.load(on, tuple(changes or ()))
        return launch_on(scenario, wanted, out, dilation, Stages(Console(stderr=True)))
    if changes or dilation or out:
        raise LabError("--set, --dilation and --out are for a fabric of its own", "Say --on too.")
    found = running.find(lab)
    ground = Ground.of_running(found)
    ended = launch(wanted, ground)
    print(told(ended, ground.dilation), file=sys.stderr)
    if died := hands.befallen(found.folder):
        print(f"Meanwhile {died}: the fabric was not whole.", file=sys.stderr)
    return ended.code or bool(died)
