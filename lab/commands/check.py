"""``closlab check``: what would go wrong in a fabric, by its switches' configurations."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Annotated

import typer

from controller.asics import ASICS
from lab.commands.options import Json
from lab.errors import LabError, RunError, ScenarioError
from lab.machine.paths import writing_to
from lab.sonic.fabric import Fabric, read_fabric
from lab.sonic.findings import Finding, Level, write_cured
from lab.sonic.proofs import Proof, prove, written
from lab.sonic.rules import Options, check

FOUND = 1  # the exit code where faults are found
_MOST_NAMED = 3


def command(
    folder: Annotated[Path, typer.Argument(help="Of switches' config_db.json, one file each.")],
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
        int | None, typer.Option("--response", min=0, help="How many ns a neighbour may take.")
    ] = None,
    hosts: Annotated[
        str | None, typer.Option("--hosts", help="Which neighbours are hosts, such as 'gpu*'.")
    ] = None,
    kept: Annotated[
        Path | None, typer.Option("--out", help="With --prove: a folder for the scenarios.")
    ] = None,
    is_json: Json = False,
) -> None:
    """Say what would go wrong in a fabric of SONiC switches, where, and what mends it.

    Ends with 1 if anything is found but advice, which is what no run shows.
    """
    if profile is not None and profile not in ASICS:
        raise ScenarioError(f"there is no profile '{profile}'", f"There are {', '.join(ASICS)}.")
    for path in (cured, kept):
        if path is not None and path.exists():
            raise RunError(f"{path} is there already", "Name another folder.")
    if kept is not None and not proved:
        raise LabError("--out is for the scenarios of --prove", "Give --prove too.")
    cell = ASICS[profile].cell if profile else 1
    fabric = read_fabric(folder, hosts)
    found = check(fabric, Options(cell, response))
    proofs: list[Proof | None] = [None] * len(found)
    if proved:
        pairs = prove(found)
        found, proofs = [one for one, _ in pairs], [proof for _, proof in pairs]
        if kept is not None:
            with writing_to(kept):
                _keep(kept, pairs)
    if cured is not None:
        with writing_to(cured):
            write_cured({name: s.tables for name, s in fabric.switches.items()}, found, cured)
    if is_json:
        content = {
            "switches": len(fabric.switches), "cables": len(fabric.cables),
            "left_out": _left_out(fabric),
            "findings": [one.content() | ({"proof": proof.content()} if proof else {})
                         for one, proof in zip(found, proofs, strict=True)],
        }  # fmt: skip
        print(json.dumps(content, indent=2))
    else:
        for line in _lines(fabric, found, proofs):
            print(line)
        if cured is not None:
            print(f"Patched configurations: {cured}")
    if any(one.level is not Level.ADVICE for one in found):
        raise typer.Exit(FOUND)


def _left_out(fabric: Fabric) -> list[str]:
    unread = (f"{name}: {line}" for name, s in fabric.switches.items() for line in s.unread)
    return [*fabric.left_out, *unread]


def _lines(fabric: Fabric, found: list[Finding], proofs: list[Proof | None]) -> Iterable[str]:
    groups: dict[tuple[str, str, str, str], list[tuple[Finding, Proof | None]]] = {}
    for one, proof in zip(found, proofs, strict=True):
        key = one.switch, one.rule, one.table, one.consequence
        groups.setdefault(key, []).append((one, proof))
    for group in groups.values():
        one, proof = group[0]
        keys = [each.key for each, _ in group]
        more = f" and {len(keys) - _MOST_NAMED} more" if len(keys) > _MOST_NAMED else ""
        yield f"{one.level}: {one.rule}: {one.switch} {one.table}|" + (
            f"{', '.join(keys[:_MOST_NAMED])}{more}")  # fmt: skip
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
    yield (
        f"{len(fabric.switches)} switches, {len(fabric.cables)} cables between them: "
        f"{len(found) - advice} {what}, {advice} of advice"
    )
    left = _left_out(fabric)
    if left:
        yield f"{len(left)} things were not understood, or are not read, such as: {left[0]}"
        yield "All of them: --json, or the report of closlab import."


def _keep(folder: Path, pairs: list[tuple[Finding, Proof]]) -> None:
    folder.mkdir(parents=True)
    for at, (one, proof) in enumerate(pairs, 1):
        for name, content in zip(("before", "after"), proof.scenarios or (), strict=False):
            (folder / f"{at:03}-{one.rule}-{name}.yaml").write_text(written(content))
