"""What was found, as a terminal, a program or a code scanner has it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from lab.configs.cures import commands_of
from lab.configs.device import Device
from lab.configs.fabric import Fabric
from lab.configs.findings import Finding, Level, grounded, patch_of
from lab.configs.proofs import Proof

Pairs = list[tuple[Finding, Proof | None]]
_MAX_NAMED = 3
_ROWS = ("Gb/s", "m", "xoff", "needs", "of 1024", "in cells", "short")


def content(fabric: Fabric | None, pairs: Pairs, device: Device | None) -> dict[str, Any]:
    """As JSON has it."""
    switches = fabric.switches.items() if fabric else ()
    tables = {name: switch.tables for name, switch in switches}
    content: dict[str, Any] = {
        "switches": len(fabric.switches) if fabric else None,
        "cables": len(fabric.cables) if fabric else None,
        "left_out": left_out(fabric) if fabric else [],
        "findings": [one.content(tables) | ({"proof": proof.content()} if proof else {})
                     for one, proof in pairs],
        "patch": {name: grounded(tables.get(name, {}), ops)[0]
                  for name, ops in patch_of(one for one, _ in pairs).items()},
    }  # fmt: skip
    if fabric is not None:
        content["commands"] = commands_of(fabric, [one for one, _ in pairs])
    if device is not None:
        content["rows"] = [row.content() for row in device.rows]
        content["not_rendered"] = device.not_rendered
    return content


def left_out(fabric: Fabric) -> list[str]:
    """What was not understood, or is not read."""
    unread = (f"{name}: {line}" for name, s in fabric.switches.items() for line in s.unread)
    return [*fabric.left_out, *unread]


def lines(fabric: Fabric | None, pairs: Pairs, device: Device | None) -> Iterator[str]:
    """As a terminal has it."""
    yield from _findings(fabric, pairs)
    if device is not None:
        yield from _rows(device)
    advice = sum(one.level is Level.ADVICE for one, _ in pairs)
    what = "faults" if any(proof for _, proof in pairs) else "findings"
    summary = f"{len(pairs) - advice} {what}, {advice} of advice"
    if fabric is None:
        yield summary
        return
    ports = sum(len(switch.ports) for switch in fabric.switches.values())
    cables = f"{len(fabric.cables)} cables between them" if device is None else f"{ports} ports"
    count = len(fabric.switches)
    yield f"{count} switch{'es' if count != 1 else ''}, {cables}: {summary}"
    left = left_out(fabric)
    if left:
        yield f"{len(left)} things were not understood, or are not read, such as: {left[0]}"
        yield "All of them: --json, or the report of closlab import."


def _findings(fabric: Fabric | None, pairs: Pairs) -> Iterable[str]:
    groups: dict[tuple[str, str, str, str], Pairs] = {}
    for one, proof in pairs:
        key = one.switch, one.rule, one.table, one.consequence
        groups.setdefault(key, []).append((one, proof))
    for group in groups.values():
        one, proof = group[0]
        line = fabric.line_of(one) if fabric is not None else None
        keys = [each.key for each, _ in group]
        more = f" and {len(keys) - _MAX_NAMED} more" if len(keys) > _MAX_NAMED else ""
        named = f"{', '.join(keys[:_MAX_NAMED])}{more}"
        place = f"{one.table}.{named}" if fabric is None else f"{one.switch} {one.table}|{named}"
        at = f" ({fabric.file_of(one).name}:{line})" if fabric is not None and line else ""
        yield f"{one.level}: {one.rule}: {place}{at}"
        yield f"  {one.what}"
        yield f"  Then {one.consequence}."
        yield f"  {one.cure}"
        if proof is not None and proof.before is not None:
            yield f"  Run:   {proof.before}"
            yield f"  Cured: {proof.after}"
        if proof is not None and not proof.is_shown:
            yield f"  Advice: {proof.note}."
        yield ""


def _rows(device: Device) -> Iterator[str]:
    if device.not_rendered:
        yield f"Only the rows are checked, not what the switch would run: {device.not_rendered}"
        yield ""
    if not device.rows:
        return
    cells = any(row.cells for row in device.rows)
    titles = [title for title in _ROWS if cells or title != "in cells"]
    yield "Headroom in bytes: xoff of pg_profile_lookup.ini, and what 4096-byte packets need"
    yield "  " + "".join(f"{title:>10}" for title in titles)
    for one in device.rows:
        row_cells = [f"{one.row.speed_mbps / 1000:g}", f"{one.row.metres:g}", f"{one.row.xoff:,}",
                f"{one.large:,}", f"{one.small:,}", *([f"{one.cells:,}"] if cells else []),
                f"{one.short:,}" if one.short else ""]  # fmt: skip
        yield ("  " + "".join(f"{text:>10}" for text in row_cells)).rstrip()
    yield ""
