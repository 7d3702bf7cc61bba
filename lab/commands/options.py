"""What several commands share: their options, and a folder for what they write."""

from __future__ import annotations

import atexit
import math
import os
import re
import time
from contextlib import suppress
from pathlib import Path
from typing import Annotated

import typer

from lab.errors import LabError, RunError
from lab.machine.paths import cannot_write, taken_for_good
from lab.scenario import shipped


def _scenarios(begun: str) -> list[str]:
    """For a shell: the scenarios that begin so."""
    return [name for name in shipped.names() if name.startswith(begun)]


def complete_keys(begun: str) -> list[str]:
    """For a shell: the keys that begin so."""
    from lab.scenario.model import all_keys  # only who goes on with a key waits for it

    return [f"{key.name}=" for key in all_keys() if key.name.startswith(begun)]


Name = Annotated[
    str,
    typer.Argument(help="A name from 'closlab list', or a .yaml file.", autocompletion=_scenarios),
]
Changes = Annotated[
    list[str] | None,
    typer.Option("--set", metavar="KEY=VALUE", help="Change a key.", autocompletion=complete_keys),
]
Seed = Annotated[int | None, typer.Option(help="Instead of the scenario's seed.")]
Out = Annotated[Path | None, typer.Option(help="Folder for the results.")]
Json = Annotated[bool, typer.Option("--json", help="Tell the result to a machine.")]
Processes = Annotated[int | None, typer.Option(min=1)]
Jobs = Annotated[
    int | None,
    typer.Option(min=1, help="Threads that simulate it (sim); as a rule all processors."),
]
Dilation = Annotated[
    int | None, typer.Option(min=1, help="Slow time down so many times (mininet).")
]
P4 = Annotated[
    Path | None, typer.Option(metavar="DIR", help="Your own copy of p4src, instead of it.")
]
Folders = Annotated[list[Path], typer.Argument(help="Of runs, or of several runs.")]
PagePort = Annotated[
    int, typer.Option(min=0, max=65535, help="Of the live page; otherwise any that is free.")
]
GnmiPort = Annotated[
    int | None,
    typer.Option(min=0, max=65535, help="Answer gNMI at this port too; 0: any free one."),
]
Hosts = Annotated[str | None, typer.Option(help="Which, such as h1,h5; otherwise the first.")]
On = Annotated[
    str | None, typer.Option(metavar="SCENARIO", help="Bring its fabric up for this alone.")
]
Stretch = Annotated[
    str,
    typer.Option(
        metavar="TIMES",
        help="Let programs compute so many times more slowly; 'dilation': as time passes.",
    ),
]
Running = Annotated[str | None, typer.Option(help="Which, if several run.")]


def times(stretch: str) -> float | None:
    """What --stretch says: so many times; None: as many as time is dilated."""
    if stretch == "dilation":
        return None
    try:
        wanted = float(stretch)
    except ValueError:
        wanted = 0.0
    if not 1 <= wanted < math.inf:
        raise LabError(f"--stretch: '{stretch}' is no number from 1 on", "Or write dilation.")
    return wanted


_SECONDS = {"s": 1, "min": 60, "h": 3600}


def seconds_of(option: str, duration_text: str) -> float:
    """What is written as 90s, 30min or 2h."""
    found = re.fullmatch(r"(\d+(?:\.\d+)?)(s|min|h)", duration_text)
    if found is None:
        raise RunError(f"{option} {duration_text}: that is no time", "Write 90s, 30min or 2h.")
    return float(found[1]) * _SECONDS[found[2]]


def make_out(out: Path | None, name: str) -> Path:
    """The run's folder; without a choice one of its own, made now so that no other run takes it."""
    if out is not None:
        is_new = not out.exists()
        wanted = taken_for_good(out)
        if is_new:
            atexit.register(_remove_if_empty, wanted, os.getpid())
        return wanted
    stamp = time.strftime("%Y%m%d-%H%M%S")
    for suffix in ("", *(f"-{number}" for number in range(2, 100))):
        own = Path("runs") / f"{name}-{stamp}{suffix}"
        try:
            own.mkdir(parents=True)
        except FileExistsError:
            continue
        except OSError as error:
            raise cannot_write("runs/", error) from None
        atexit.register(_remove_if_empty, own, os.getpid())
        return own
    raise RunError("too many runs in the same second", "Give each its folder with --out DIR.")


def _remove_if_empty(folder: Path, owner: int) -> None:
    """A run that came to nothing leaves no folder."""
    if os.getpid() == owner:
        with suppress(OSError):
            folder.rmdir()
