"""``closlab nccl-tests``: collectives with real data over adapters of verbs, told as NCCL's are."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace
from typing import Annotated

import typer

from lab.commands.exec import Class, run
from lab.commands.options import Changes, Dilation, Hosts, On, Out, Running
from lab.errors import LabError
from lab.runs.nccl_tests import NcclWanted
from lab.runs.verbs import VerbsDoor
from lab.scenario.keys import nearest
from traffic.collectives import TrafficError
from traffic.nccl_tests import PROGRAMS, REDOPS, TYPES, Test, plan_texts, sizes

_UNITS = {"": 0, "k": 10, "m": 20, "g": 30}


def _bytes(text: str, option: str) -> int:
    """A size as nccl-tests reads it: K, M and G are powers of two."""
    number, unit = (text[:-1], text[-1].lower()) if text[-1:].isalpha() else (text, "")
    try:
        return round(float(number) * (1 << _UNITS[unit]))
    except (ValueError, KeyError, OverflowError):
        raise LabError(
            f"{option}: '{text}' is no size", "Write it as 8, 64K, 1.5M or 1G."
        ) from None


def _one_of(text: str, known: Collection[str], what: str) -> None:
    if text not in known:
        raise LabError(
            f"there is no {what} '{text}'{nearest(text, known)}", f"Take {_listed(known)}."
        )


def _listed(known: Collection[str]) -> str:
    *most, last = known
    return f"{', '.join(most)} or {last}"


def command(
    program: Annotated[str, typer.Argument(help=", ".join(PROGRAMS))],
    minbytes: Annotated[str, typer.Option("-b", "--minbytes")] = "32M",
    maxbytes: Annotated[str, typer.Option("-e", "--maxbytes")] = "32M",
    stepbytes: Annotated[str, typer.Option("-i", "--stepbytes")] = "1M",
    stepfactor: Annotated[int, typer.Option("-f", "--stepfactor", min=1)] = 1,
    ngpus: Annotated[
        int | None, typer.Option("-g", "--ngpus", min=2, help="Ranks; without it one a host.")
    ] = None,
    iters: Annotated[int, typer.Option("-n", "--iters", min=1)] = 20,
    warmup_iters: Annotated[int, typer.Option("-w", "--warmup_iters", min=0)] = 1,
    check: Annotated[int, typer.Option("-c", "--check", min=0)] = 1,
    op: Annotated[str, typer.Option("-o", "--op", help=_listed(REDOPS))] = "sum",
    datatype: Annotated[str, typer.Option("-d", "--datatype", help=_listed(TYPES))] = "float",
    root: Annotated[int, typer.Option("-r", "--root", min=0, help="Of a broadcast.")] = 0,
    algorithm: Annotated[
        str | None, typer.Option(help="As traffic.algorithm of a scenario.")
    ] = None,
    channels: Annotated[
        int, typer.Option(min=1, max=64, help="Connections of a pair of ranks.")
    ] = 1,
    hosts: Hosts = None,
    lab: Running = None,
    on: On = None,
    changes: Changes = None,
    dilation: Dilation = None,
    priority: Class = None,
    out: Out = None,
) -> None:
    """Measure collectives with real data, as NVIDIA's nccl-tests do, on the hosts' adapters.

    Each rank holds its data in memory and sends it by NCCL's network plugin over verbs; times are
    the fabric's. Options are those of nccl-tests. More ranks than hosts share them evenly.
    """
    _one_of(program, PROGRAMS, "program")
    _one_of(op, REDOPS, "operation")
    _one_of(datatype, TYPES, "type")
    asked = (_bytes(minbytes, "-b"), _bytes(maxbytes, "-e"), _bytes(stepbytes, "-i"))
    try:
        test = Test(
            program=program,
            ranks=ngpus or 0,
            sizes=sizes(*asked, stepfactor),
            iterations=iters,
            warmups=warmup_iters,
            checks=check,
            redop=op,
            type=datatype,
            root=root,
            algorithm=algorithm,
            channels=channels,
        )
        # What cannot be planned is told before a fabric is there.
        list(plan_texts(replace(test, ranks=ngpus or max(2, root + 1), sizes=test.sizes[-1:])))
    except TrafficError as error:
        raise LabError(str(error)) from None
    where = ngpus if ngpus and hosts is None else hosts or "all"
    wanted = NcclWanted(where, (), priority, verbs=VerbsDoor(), ranks=ngpus, test=test)
    raise typer.Exit(run(wanted, lab, on, changes, dilation, out))
