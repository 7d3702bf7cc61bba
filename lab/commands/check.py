"""``closlab check``: what would go wrong in a fabric, by its switches' configurations."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Annotated, Any

import typer

from controller.asics import ASICS
from files import is_folder
from lab.commands.options import Json
from lab.errors import LabError, RunError, ScenarioError
from lab.machine.paths import writing_to
from lab.scenario import catalogue
from lab.sonic.config_db import printable
from lab.sonic.fabric import Fabric, read_fabric
from lab.sonic.findings import Finding, Level, write_cured
from lab.sonic.proofs import Proof, prove, written
from lab.sonic.rules import Options, check
from lab.sonic.scenarios import check_scenario

FOUND = 1  # the exit code where faults are found
_MOST_NAMED = 3


def command(
    folder: Annotated[
        Path, typer.Argument(help="Of switches' config_db.json, one file each; or a scenario.")
    ],
    proved: Annotated[
        bool, typer.Option("--prove", help="Run each finding in the simulator, and its cure.")
    ] = False,
    cured: Annotated[
        Path | None, typer.Option("--cure", help="Write the configurations, patched, to a folder.")
    ] = None,
    profile: Annotated[
        str | None, typer.Option("--profile", help="A chip, whose memory comes in cells.")
    ] = None,
    response: Annotated[
        int | None,
        typer.Option("--response", min=0, max=10**9, help="How many ns a neighbour may take."),
    ] = None,
    hosts: Annotated[
        str | None, typer.Option("--hosts", help="Which neighbours are hosts, such as 'gpu*'.")
    ] = None,
    kept: Annotated[
        Path | None, typer.Option("--out", help="With --prove: a folder for the scenarios.")
    ] = None,
    is_json: Json = False,
) -> None:
    """Say what would go wrong in a fabric of SONiC switches or a scenario, where, and its cure.

    Ends with 1 if anything is found but advice, which is what no run shows.
    """
    if profile is not None and profile not in ASICS:
        raise ScenarioError(f"there is no profile '{profile}'", f"There are {', '.join(ASICS)}.")
    for path in (cured, kept):
        if path is not None and path.exists():
            raise RunError(f"{path} is there already", "Name another folder.")
    if kept is not None and not proved:
        raise LabError("--out is for the scenarios of --prove", "Give --prove too.")
    fabric = None
    if is_folder(folder):
        fabric = read_fabric(folder, hosts)
        found = check(fabric, Options(ASICS[profile].cell if profile else 1, response))
    else:
        _refuse(profile=profile, response=response, hosts=hosts, cure=cured)
        found = check_scenario(catalogue.load(str(folder)))
    proofs: list[Proof | None] = [None] * len(found)
    if proved:
        found, proofs = _proved(found, kept)
    if cured is not None and fabric is not None:
        with writing_to(cured):
            write_cured({name: s.tables for name, s in fabric.switches.items()}, found, cured)
    if is_json:
        print(json.dumps(_content(fabric, found, proofs), indent=2))
    else:
        print("\n".join(map(printable, _lines(fabric, found, proofs))))
    if any(one.level is not Level.ADVICE for one in found):
        raise typer.Exit(FOUND)


def _refuse(**of_folders: object) -> None:
    """What is for a folder alone, and was given for a scenario."""
    for name, value in of_folders.items():
        if value is not None:
            raise LabError(f"--{name} is for a folder of configurations", "Leave it out.")


def _proved(found: list[Finding], kept: Path | None) -> tuple[list[Finding], list[Proof | None]]:
    pairs = prove(found)
    if kept is not None:
        with writing_to(kept):
            _keep(kept, pairs)
    return [one for one, _ in pairs], [proof for _, proof in pairs]


def _content(
    fabric: Fabric | None, found: list[Finding], proofs: list[Proof | None]
) -> dict[str, Any]:
    return {
        "switches": len(fabric.switches) if fabric else None,
        "cables": len(fabric.cables) if fabric else None,
        "left_out": _left_out(fabric) if fabric else [],
        "findings": [one.content() | ({"proof": proof.content()} if proof else {})
                     for one, proof in zip(found, proofs, strict=True)],
    }  # fmt: skip


def _left_out(fabric: Fabric) -> list[str]:
    unread = (f"{name}: {line}" for name, s in fabric.switches.items() for line in s.unread)
    return [*fabric.left_out, *unread]


def _lines(
    fabric: Fabric | None, found: list[Finding], proofs: list[Proof | None]
) -> Iterable[str]:
    groups: dict[tuple[str, str, str, str], list[tuple[Finding, Proof | None]]] = {}
    for one, proof in zip(found, proofs, strict=True):
        key = one.switch, one.rule, one.table, one.consequence
        groups.setdefault(key, []).append((one, proof))
    for group in groups.values():
        one, proof = group[0]
        keys = [each.key for each, _ in group]
        more = f" and {len(keys) - _MOST_NAMED} more" if len(keys) > _MOST_NAMED else ""
        named = f"{', '.join(keys[:_MOST_NAMED])}{more}"
        place = f"{one.table}.{named}" if fabric is None else f"{one.switch} {one.table}|{named}"
        yield f"{one.level}: {one.rule}: {place}"
        yield f"  {one.what}"
        yield f"  Then {one.consequence}."
        yield f"  {one.cure}"
        if proof is not None and proof.before is not None:
            yield f"  Run:   {proof.before}"
            yield f"  Cured: {proof.after}"
        if proof is not None and not proof.is_shown:
            yield f"  Advice: {proof.note}."
        yield ""
    advice = sum(one.level is Level.ADVICE for one in found)
    what = "faults" if any(proofs) else "findings"
    told = f"{len(found) - advice} {what}, {advice} of advice"
    if fabric is None:
        yield told
        return
    yield f"{len(fabric.switches)} switches, {len(fabric.cables)} cables between them: {told}"
    left = _left_out(fabric)
    if left:
        yield f"{len(left)} things were not understood, or are not read, such as: {left[0]}"
        yield "All of them: --json, or the report of closlab import."


def _keep(folder: Path, pairs: list[tuple[Finding, Proof]]) -> None:
    folder.mkdir(parents=True)
    for at, (one, proof) in enumerate(pairs, 1):
        for name, content in zip(("before", "after"), proof.scenarios or (), strict=False):
            (folder / f"{at:03}-{one.rule}-{name}.yaml").write_text(written(content))
