"""p4runtime-shell on a switch of a running lab, in the Python environment of its own it needs."""

from __future__ import annotations

import os
from typing import Annotated

import typer

from lab.commands.options import Running
from lab.engines.mininet import running
from lab.engines.mininet.running import RunningLab
from lab.errors import LabError, MissingTool
from lab.machine.paths import SHELL_ENVIRONMENT

HAS_WORDS_OF_OTHERS = True


def command(
    switch: Annotated[str, typer.Argument(help="Such as leaf1.")],
    arguments: Annotated[list[str] | None, typer.Argument(help="For p4runtime-shell.")] = None,
    lab: Running = None,
) -> None:
    """Open p4runtime-shell on a switch of the running lab."""
    argv = shell_command(running.find(lab), switch, arguments or [])
    os.execvp(argv[0], argv)


def shell_command(lab: RunningLab, switch: str, arguments: list[str]) -> list[str]:
    """The command that opens the shell inside the lab's sandbox."""
    if switch not in lab.switches:
        raise LabError(
            f"there is no switch '{switch}' in the running lab",
            f"It has {', '.join(lab.switches)}.",
        )
    python = SHELL_ENVIRONMENT / "bin" / "python"
    if not python.exists():
        raise MissingTool(
            "p4runtime-shell is not installed",
            "./closlab shell installs it; the console script inside the environment does not.",
        )
    address, device = lab.switches[switch]
    proof: list[str] = []
    if of := lab.certificates:
        proof = ["--ssl", "--cacert", str(of.authority)]
        proof += ["--cert", str(of.certificate("operator"))]
        proof += ["--private-key", str(of.key("operator"))]
    return lab.enter_command(
        [
            *(str(python), "-m", "p4runtime_sh"),
            *("--grpc-addr", address, "--device-id", str(device)),
            *("--election-id", "0,1"),
            *proof,
            *arguments,
        ]
    )
