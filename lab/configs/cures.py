"""Cures in the words of a switch: a patched config_db.json, or commands as one types them.

An EOS text has its commands at its end, where they hold; NVUE's are a NAME.nv beside its YAML. What
a system's text has no words for is a comment in it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from shutil import copyfile

from lab.configs import eos, nvue
from lab.configs.fabric import Fabric
from lab.configs.findings import Finding, Op, patch_of, write_cured
from lab.configs.lines import text_of
from lab.configs.sources import beside

_COMMANDS: Mapping[str, Callable[[Iterable[Op]], list[str]]] = {
    eos.KIND: eos.commands, nvue.KIND: nvue.commands,
}  # fmt: skip


def commands_of(fabric: Fabric, findings: Iterable[Finding]) -> dict[str, list[str]]:
    """By switch whose configuration is a text: what mends all that is found of it."""
    return {
        name: _COMMANDS[fabric.switches[name].kind](ops)
        for name, ops in patch_of(findings).items()
        if fabric.switches[name].kind in _COMMANDS
    }


def write_cures(fabric: Fabric, findings: list[Finding], out: Path) -> None:
    """Every switch's configuration, mended, and what stands beside them."""
    sonic = {name: s.tables for name, s in fabric.switches.items() if s.kind not in _COMMANDS}
    write_cured(sonic, findings, out)
    made = commands_of(fabric, findings)
    for name, switch in fabric.switches.items():
        if switch.kind not in _COMMANDS:
            continue
        lines = made.get(name, [])
        if switch.kind == eos.KIND:
            text = text_of(switch.file).rstrip("\n")
            (out / f"{name}.eos").write_text("\n".join([text, *lines, ""]))
        else:
            own = switch.file.with_suffix(".nv")
            before = text_of(own).splitlines() if own.is_file() else []
            if own != switch.file:
                copyfile(switch.file, out / f"{name}.yaml")
            (out / f"{name}.nv").write_text("\n".join([*before, *lines, ""]))
    for path in beside(fabric.folder):
        copyfile(path, out / path.name)
