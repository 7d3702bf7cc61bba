"""A page of what was found: the fabric drawn, each finding at its place, and what it says."""

from __future__ import annotations

from lab.configs.book import BOOK
from lab.configs.config_db import printable
from lab.configs.fabric import Fabric
from lab.configs.findings import Finding, Level
from lab.configs.proofs import Proof
from views.report.page import Panel, document, figure, heading, listing, paragraph, tiles
from views.report.palette import DROP, FAINT, INK, MARK, RULE, WARN
from views.report.svg import Drawing

Pairs = list[tuple[Finding, Proof | None]]
_BETWEEN, _HIGH, _WIDE = 96.0, 22.0, 920.0
_LONGEST = 12  # letters of a switch's name in the picture
_COLOURS = {Level.FAULT: DROP, Level.FINDING: DROP, Level.ADVICE: WARN}
_ORDER = [Level.FAULT, Level.FINDING, Level.ADVICE]
_MAX_SHOWN = 400


def page(name: str, fabric: Fabric | None, pairs: Pairs, lines: list[str]) -> str:
    """The whole of it; ``lines`` are what else is to be listed."""
    advice = sum(one.level is Level.ADVICE for one, _ in pairs)
    proved = sum(proof is not None and proof.is_shown for _, proof in pairs)
    body = [heading(1, f"What was found in {printable(name)}")]
    figures = [("faults" if proved else "findings", f"{len(pairs) - advice:,}"),
               ("of advice", f"{advice:,}")]  # fmt: skip
    if proved:
        figures.append(("shown by a run", f"{proved:,}"))
    if fabric is not None:
        figures += [("switches", f"{len(fabric.switches):,}"),
                    ("cables between them", f"{len(fabric.cables):,}")]  # fmt: skip
    body.append(tiles(figures))
    if fabric is not None:
        caption = "Red: something that a run shows or is to show; amber: advice; numbers: how much."
        body.append(figure(Panel("The fabric", picture(fabric, pairs), caption), 2))
    body.append(heading(2, "Findings"))
    if not pairs:
        body.append(paragraph("Nothing was found."))
    body += [_section(at, one, proof) for at, (one, proof) in enumerate(pairs[:_MAX_SHOWN])]
    if len(pairs) > _MAX_SHOWN:
        body.append(paragraph(f"{len(pairs) - _MAX_SHOWN:,} more: --json has them all."))
    if lines:
        body += [heading(2, "Not understood, or not read"),
                 listing(map(printable, lines[:_MAX_SHOWN]))]  # fmt: skip
    return document(f"closlab check: {printable(name)}", body)


def _section(at: int, one: Finding, proof: Proof | None) -> str:
    about = BOOK[one.rule]
    said = [f"{one.what}.", f"Then {one.consequence}.", f"Cure: {one.cure}"]
    if proof is not None and proof.before is not None:
        said += [f"Run: {proof.before}.", f"Cured: {proof.after}."]
    if proof is not None and proof.note:
        said.append(f"Of the run: {proof.note}.")
    said.append(f"Reference: {about.reference}.")
    title = f"{one.level}: {one.rule}: {one.place}"
    return (
        f'<section id="f{at}">{heading(3, printable(title))}'
        f"{paragraph(about.title, 'about')}{listing(map(printable, said))}</section>"
    )


def picture(fabric: Fabric, pairs: Pairs) -> Drawing:
    """Switches in tiers, those with hosts at the bottom; cables; and how much was found at each."""
    tiers = _tiers(fabric)
    most = max(len(tier) for tier in tiers)
    wide = max(_WIDE, 18.0 * most)
    drawing = Drawing(_BETWEEN * len(tiers) + 30, "The fabric, with findings", width=wide)
    places: dict[str, tuple[float, float]] = {}
    for level, tier in enumerate(tiers):
        y = 30 + _BETWEEN * (len(tiers) - 1 - level)
        for at, name in enumerate(tier):
            places[name] = wide * (at + 0.5) / len(tier), y
    at_switch: dict[str, list[Finding]] = {}
    at_port: dict[tuple[str, str], list[Finding]] = {}
    for one, _ in pairs:
        at_switch.setdefault(one.switch, []).append(one)
        for part in (one.key, one.key.partition("|")[0], one.key.rpartition("|")[2]):
            at_port.setdefault((one.switch, part), []).append(one)
    for cable in fabric.cables:
        found = [f for end in (cable.a, cable.b) for f in at_port.get((end.switch, end.port), ())]
        (x1, y1), (x2, y2) = places[cable.a.switch], places[cable.b.switch]
        tip = printable("; ".join([f"{cable.a} to {cable.b}", *sorted({f.rule for f in found})]))
        drawing.line(x1, y1 + 11, x2, y2 + 11, stroke=_worst(found) or RULE,
                     stroke_width=2.5 if found else 1, tip=tip)  # fmt: skip
    hosts = _hosts(fabric)
    box = min(96.0, 0.9 * wide / most)
    for name, (x, y) in places.items():
        found = at_switch.get(name, [])
        rules = ", ".join(sorted({f.rule for f in found})) or "nothing found"
        tip = printable(f"{name}: {rules}; {hosts.get(name, 0)} hosts")
        drawing.rect(x - box / 2, y, box, _HIGH, fill="var(--paper)", stroke=_worst(found) or MARK,
                     stroke_width=2, rx=4, tip=tip)  # fmt: skip
        if box > 60:
            short = name if len(name) <= _LONGEST else f"{name[: _LONGEST - 2]}.."
            drawing.text(x, y + 15, printable(short), text_anchor="middle", fill=INK)
        if found:
            drawing.text(x + box / 2, y - 3, str(len(found)), text_anchor="end",
                         class_="tick strong", fill=_worst(found))  # fmt: skip
        if hosts.get(name) and box > 60:
            drawing.text(x, y + 37, f"{hosts[name]} hosts", text_anchor="middle", class_="tick",
                         fill=FAINT)  # fmt: skip
    return drawing


def _worst(found: list[Finding]) -> str:
    return next((_COLOURS[level] for level in _ORDER if any(f.level is level for f in found)), "")


def _hosts(fabric: Fabric) -> dict[str, int]:
    counts: dict[str, int] = {}
    for places in fabric.hosts.values():
        for place in places:
            counts[place.switch] = counts.get(place.switch, 0) + 1
    return counts


def _tiers(fabric: Fabric) -> list[list[str]]:
    """Those with hosts, then their neighbours, and so on; without hosts all side by side."""
    hosts = _hosts(fabric)
    left = set(fabric.switches)
    tier = [name for name in sorted(left) if name in hosts] or sorted(left)
    tiers: list[list[str]] = []
    beside: dict[str, set[str]] = {name: set() for name in left}
    for cable in fabric.cables:
        beside[cable.a.switch].add(cable.b.switch)
        beside[cable.b.switch].add(cable.a.switch)
    while tier:
        tiers.append(tier)
        left -= set(tier)
        tier = sorted({other for name in tier for other in beside[name]} & left)
    if left:
        tiers.append(sorted(left))
    return tiers
