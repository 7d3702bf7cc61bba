"""``closlab exec``: a program on several hosts at once, as a launcher of jobs starts it."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated, Literal

import typer
from rich.console import Console

from lab.commands.options import Changes, Dilation, On, Out, Running, Stretch, times
from lab.engines.mininet import hands, running
from lab.errors import LabError
from lab.progress import Stages
from lab.runs.programs import Ground, Wanted, ending, launch, launch_on
from lab.runs.verbs import VerbsDoor, uses_verbs_library
from lab.scenario import catalogue

HAS_WORDS_OF_OTHERS = True
Class = Annotated[
    int | None,
    typer.Option(
        "--class",
        min=0,
        max=6,
        help="The class that what programs send goes in; 0, of verbs the first lossless one.",
    ),
]
Verbs = Annotated[
    bool | None,
    typer.Option(
        "--verbs/--no-verbs",
        help="Hosts have an adapter of verbs, closlab0: told from what the program is linked with.",
        show_default=False,
    ),
]
Clock = Annotated[
    Literal["fabric", "machine"] | None,
    typer.Option(help="What clocks programs see; the fabric's if they use verbs."),
]

Record = Annotated[
    Path | None,
    typer.Option(
        metavar="FILE",
        help="Write what programs of verbs did as a workload, which the simulator runs.",
        show_default=False,
    ),
]


def command(
    hosts: Annotated[str, typer.Argument(help="Such as h1,h2,h3, or all.")],
    words: Annotated[list[str], typer.Argument(metavar="-- PROGRAM...", help="What to run.")],
    lab: Running = None,
    on: On = None,
    changes: Changes = None,
    dilation: Dilation = None,
    priority: Class = None,
    stretch: Stretch = "1",
    verbs: Verbs = None,
    clock: Clock = None,
    record: Record = None,
    out: Out = None,
) -> None:
    """Run a program on hosts of the running lab, or on a fabric of its own.

    Each is told its rank and the others in RANK, WORLD_SIZE, MASTER_ADDR, MASTER_PORT and
    GLOO_SOCKET_IFNAME, as torch.distributed has them, and in CLOSLAB_HOST, CLOSLAB_HOSTS and
    CLOSLAB_DILATION. Hosts of tenants with networks of their own are a job for each tenant. If one
    fails, the others are ended.

    Programs of RDMA (ib_write_bw and others) have an adapter on each host; if they end with the
    first host's name, that one serves and the others are its clients.
    """
    words = words[words[0] == "--" :] or words
    uses_verbs = uses_verbs_library(words[0]) if verbs is None else verbs
    door = door_of(uses_verbs, clock)
    if record is not None and door is None:
        raise LabError("--record is for programs that use verbs", "Say --verbs too.")
    if record is not None and not record.parent.is_dir():
        raise LabError(f"--record: there is no folder {record.parent}")
    wanted = Wanted(hosts, tuple(words), priority, times(stretch), verbs=door, record=record)
    raise typer.Exit(run(wanted, lab, on, changes, dilation, out))


def door_of(uses_verbs: bool, clock: str | None) -> VerbsDoor | None:
    """What programs find of an adapter, if they use verbs."""
    if clock == "fabric" and not uses_verbs:
        raise LabError("--clock fabric is for programs that use verbs", "Say --verbs too.")
    return VerbsDoor(clock != "machine") if uses_verbs else None


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
    print(ending(ended, ground.dilation), file=sys.stderr)
    if died := hands.befallen(found.folder):
        print(f"Meanwhile {died}: the fabric was not whole.", file=sys.stderr)
    return ended.code or bool(died)
