"""``closlab bmwg``: the IETF draft's benchmark of AI training fabrics."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import Annotated

import typer

from lab.commands.options import P4, Changes, Processes, make_out
from lab.errors import LabError


def _tests(begun: str) -> list[str]:
    """For a shell: the tests that begin so."""
    from lab.bmwg.draft import TESTS

    return [test.key for test in TESTS if test.key.startswith(begun)]


def command(
    tests: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[TEST]...",
            help="Which, by name or section of the draft (see --list); without any all of them.",
            autocompletion=_tests,
        ),
    ] = None,
    is_list: Annotated[bool, typer.Option("--list", help="Say which there are.")] = False,
    is_quick: Annotated[
        bool, typer.Option("--quick", help="Few parameters and trials: a first look, in minutes.")
    ] = False,
    trials: Annotated[
        int | None, typer.Option(min=1, max=10_000, help="Trials or iterations of everything.")
    ] = None,
    most: Annotated[
        str, typer.Option(help="What a run may send; what would send more is left out.")
    ] = "1GB",
    device: Annotated[
        str | None,
        typer.Option("--dut", metavar="SCENARIO", help="Whose fabric is the device under test."),
    ] = None,
    changes: Changes = None,
    p4: P4 = None,
    engine: Annotated[str, typer.Option(help="sim or mininet.")] = "sim",
    switch: Annotated[str, typer.Option(help="soft (ours) or bmv2 (mininet).")] = "soft",
    processes: Processes = None,
    compare: Annotated[
        list[Path] | None, typer.Option(metavar="DIR", help="Twice: put two reports side by side.")
    ] = None,
    out: Annotated[Path, typer.Option(help="Folder for the results.")] = Path("runs/bmwg"),
) -> None:
    """Benchmark a fabric as the IETF's draft for AI training has it. What is kept is not run again:
    interrupted, it goes on where it was.
    """
    from lab.bmwg import whole

    if is_list:
        whole.show_tests()
        return
    if compare:
        if len(compare) != 2 or tests:
            raise LabError(
                "--compare takes two reports, and nothing is run",
                "closlab bmwg --compare ONE --compare OTHER",
            )
        whole.compare((compare[0], compare[1]), make_out(out, "bmwg"))
        return
    words = ["closlab", "bmwg", *(tests or ())]
    words += ["--quick"] if is_quick else []
    words += ["--trials", str(trials)] if trials else []
    words += ["--most", most] if most != "1GB" else []
    words += ["--dut", device] if device else []
    for change in changes or ():
        words += ["--set", change]
    words += ["--p4", str(p4)] if p4 else []
    words += ["--engine", engine] if engine != "sim" else []
    words += ["--switch", switch] if switch != "soft" else []
    asked = whole.Asked(
        tuple(tests or ()), is_quick, trials, most, device, tuple(changes or ()), p4, engine, switch
    )
    raise typer.Exit(
        whole.benchmark(asked, make_out(out, "bmwg"), processes, shlex.join([*words, "--out",
                                                                             str(out)]))
    )  # fmt: skip
