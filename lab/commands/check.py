"""``closlab check``: what would go wrong in a fabric, by its switches' configurations."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

from controller.asics import ASICS
from files import is_folder
from lab.commands.options import Json
from lab.configs.basis import Options
from lab.configs.config_db import printable
from lab.configs.cures import write_cures
from lab.configs.device import NOT_OF_TEMPLATES, Device, is_device, read_device
from lab.configs.fabric import Fabric, read_fabric
from lab.configs.findings import Finding, Level
from lab.configs.output import content, left_out, lines
from lab.configs.proofs import Proof, prove, written
from lab.configs.rules import check
from lab.configs.sarif import sarif
from lab.configs.scenarios import check_scenario
from lab.errors import LabError, RunError, ScenarioError
from lab.machine.paths import writing_to
from lab.scenario import catalogue

FOUND = 1  # the exit code where faults are found


def command(
    folder: Annotated[
        Path,
        typer.Argument(help="Of switches' configurations; a SKU's of SONiC's; or a scenario."),
    ],
    proved: Annotated[
        bool, typer.Option("--prove", help="Run each finding in the simulator, and its cure.")
    ] = False,
    cured: Annotated[
        Path | None, typer.Option("--cure", help="Write the configurations, patched, to a folder.")
    ] = None,
    profile: Annotated[
        str | None, typer.Option(help="A chip, whose memory comes in cells.")
    ] = None,
    response: Annotated[
        int | None, typer.Option(min=0, max=10**9, help="How many ns a neighbour may take.")
    ] = None,
    hosts: Annotated[
        str | None, typer.Option(help="Which neighbours are hosts, such as 'gpu*'.")
    ] = None,
    common: Annotated[
        Path | None, typer.Option("--templates", help="Of a SKU: where buffers_config.j2 is.")
    ] = None,
    role: Annotated[
        str, typer.Option(help="Of a SKU: what its switch is, such as LeafRouter.")
    ] = "",
    kept: Annotated[
        Path | None, typer.Option("--out", help="With --prove: a folder for the scenarios.")
    ] = None,
    sarif_file: Annotated[
        Path | None, typer.Option("--sarif", help="Write SARIF, for code scanners, to a file.")
    ] = None,
    page_file: Annotated[
        Path | None, typer.Option("--page", help="Write a page, with the fabric drawn, to a file.")
    ] = None,
    is_json: Json = False,
) -> None:
    """Say what would go wrong in a fabric of switches or a scenario, where, and its cure.

    Ends with 1 if anything is found but advice, which is what no run shows.
    """
    if profile is not None and profile not in ASICS:
        raise ScenarioError(f"there is no profile '{profile}'", f"There are {', '.join(ASICS)}.")
    for path in (cured, kept, sarif_file, page_file):
        if path is not None and path.exists():
            raise RunError(f"{path} is there already", "Name another one.")
    if kept is not None and not proved:
        raise LabError("--out is for the scenarios of --prove", "Give --prove too.")
    fabric: Fabric | None = None
    device: Device | None = None
    options = Options(ASICS[profile].cell if profile else 1, response)
    if is_device(folder):
        _refuse("a folder of configurations", hosts=hosts)
        device = read_device(folder, common, role, options)
        fabric = device.fabric
        found = [] if fabric is None else [one for one in check(fabric, options)
                                           if one.table not in NOT_OF_TEMPLATES]  # fmt: skip
    elif is_folder(folder):
        _refuse("a SKU's folder", templates=common, role=role or None)
        fabric = read_fabric(folder, hosts)
        found = check(fabric, options)
    else:
        _refuse("a folder of configurations", profile=profile, response=response, hosts=hosts,
                cure=cured, templates=common, role=role or None)  # fmt: skip
        found = check_scenario(catalogue.load(str(folder)))
    proofs: list[Proof | None] = [None] * len(found)
    if proved:
        found, proofs = _proved(found, kept)
    if cured is not None and fabric is not None:
        with writing_to(cured):
            write_cures(fabric, found, cured)
    pairs = list(zip(found, proofs, strict=True))
    _write(folder, fabric, pairs, sarif_file, page_file)
    if is_json:
        print(json.dumps(content(fabric, pairs, device), indent=2))
    else:
        print("\n".join(map(printable, lines(fabric, pairs, device))))
    if any(one.level is not Level.ADVICE for one in found):
        raise typer.Exit(FOUND)


def _write(
    folder: Path, fabric: Fabric | None, pairs: list[tuple[Finding, Proof | None]],
    sarif_file: Path | None, page_file: Path | None,
) -> None:  # fmt: skip
    """What is asked for as files."""
    if sarif_file is not None:
        with writing_to(sarif_file):
            sarif_file.write_text(json.dumps(sarif(fabric, folder, pairs), indent=1) + "\n")
    if page_file is not None:
        from lab.configs.page import (
            page,  # it takes reports, which who asks for none need not wait for
        )

        with writing_to(page_file):
            page_file.write_text(
                page(folder.name, fabric, pairs, left_out(fabric) if fabric else [])
            )


def _refuse(what: str, **given: object) -> None:
    """Options that are for something else than what is checked."""
    for name, value in given.items():
        if value is not None:
            raise LabError(f"--{name} is for {what}", "Leave it out.")


def _proved(found: list[Finding], kept: Path | None) -> tuple[list[Finding], list[Proof | None]]:
    pairs = prove(found)
    if kept is not None:
        with writing_to(kept):
            _keep(kept, pairs)
    return [one for one, _ in pairs], [proof for _, proof in pairs]


def _keep(folder: Path, pairs: list[tuple[Finding, Proof]]) -> None:
    folder.mkdir(parents=True)
    for at, (one, proof) in enumerate(pairs, 1):
        for name, scenario in zip(("before", "after"), proof.scenarios or (), strict=False):
            (folder / f"{at:03}-{one.rule}-{name}.yaml").write_text(written(scenario))
