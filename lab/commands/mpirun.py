"""``closlab mpirun``: a program of MPI on the hosts, a rank each, or several."""

from __future__ import annotations

from typing import Annotated

import typer

from lab.commands.exec import Class, Clock, door_of, run
from lab.commands.options import Changes, Dilation, Hosts, On, Out, Running, Stretch, times
from lab.runs.mpi import find_mpirun
from lab.runs.programs import Wanted

HAS_WORDS_OF_OTHERS = True
ENDS_WITH_A_PROGRAM = True


def command(
    words: Annotated[list[str], typer.Argument(metavar="PROGRAM...", help="What to run.")],
    ranks: Annotated[
        int | None,
        typer.Option("-n", min=1, help="How many, evenly over hosts; without it one on each."),
    ] = None,
    hosts: Hosts = None,
    mpirun: Annotated[
        str | None, typer.Option("--with", metavar="MPIRUN", help="Open MPI's, if not on the PATH.")
    ] = None,
    lab: Running = None,
    on: On = None,
    changes: Changes = None,
    dilation: Dilation = None,
    priority: Class = None,
    verbs: Annotated[
        bool, typer.Option("--verbs", help="By UCX and the hosts' adapters of verbs, not by TCP.")
    ] = False,
    clock: Clock = None,
    stretch: Stretch = "1",
    out: Out = None,
) -> None:
    """Run a program of MPI by Open MPI's own mpirun: a rank a host, or several if -n is more.

    On the running lab, or on a fabric of its own (--on). Options come before the program. With
    --verbs messages go by UCX and RoCEv2, and clocks are the fabric's.
    """
    where = hosts or ranks or "all"
    launcher, door = find_mpirun(mpirun), door_of(verbs, clock)
    wanted = Wanted(where, tuple(words), priority, times(stretch), launcher, door, ranks)
    raise typer.Exit(run(wanted, lab, on, changes, dilation, out))
