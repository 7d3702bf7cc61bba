"""A large fabric's parts, of which a page unfolds one at a time: each link, which strips leave out.

A part is a pod or, of a fabric without pods, some leaves in a row. A row is a switch, a column what
its links lead to, and every link has two cells:

    leaf9    ▀▀▀▀▀▀▀▀  ▀▀▀▀▀▀▀▀    above what goes up, below what goes down, as dark as it was busy;
             ▄▄▄▄▄▄▄▄  ▄▄▄▄▄▄▄▄    below each a bar as long as the share of the run it stood still
             to spines  to hosts
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import field
from typing import NamedTuple

from params.data import Data
from params.quantity import packets, percent, plural
from topologies import Fabric, Link, Node, NodeKind
from views.report.kept import KeptRun
from views.report.palette import DROP, INK, PAUSE
from views.report.signs import Sign, shape, signs
from views.report.suspects import dead_cables
from views.report.svg import FONT, WIDTH, Drawing

_LEAVES = 8  # of a part, where there are no pods
_LEFT, _BETWEEN = 124.0, 10.0
_WIDEST = 22.0  # of a cell
_HALF, _BAR, _ROW = 7.0, 3.0, 27.0
_HEAD = 18.0


def pods(fabric: Fabric) -> dict[Node, int]:
    """By switch: its pod's number; cores are in none, and have the first one's."""
    import networkx as nx

    below = [switch for switch in fabric.switches if switch.kind is not NodeKind.CORE]
    graph = fabric.graph.subgraph(below)
    found = dict.fromkeys(fabric.switches, 0)
    for number, pod in enumerate(sorted(nx.connected_components(graph), key=min)):
        found.update(dict.fromkeys(pod, number))
    return found


class Part(Data):
    """Switches that are drawn together."""

    name: str
    rows: tuple[Node, ...]


def parts(fabric: Fabric) -> list[Part]:
    """All of them, none without hosts."""
    numbers = pods(fabric)
    leaves = [switch for switch in fabric.switches if switch.kind is NodeKind.LEAF]
    if len({numbers[leaf] for leaf in leaves}) == 1:
        rows = [tuple(leaves[at : at + _LEAVES]) for at in range(0, len(leaves), _LEAVES)]
        return [Part(_from_to(each), each) for each in rows]
    by_pod: dict[int, list[Node]] = {}
    for switch in sorted(fabric.switches):
        if switch.kind is not NodeKind.CORE:
            by_pod.setdefault(numbers[switch], []).append(switch)
    return [Part(f"pod {number + 1}", tuple(each)) for number, each in sorted(by_pod.items())]


def part_of(all_parts: Iterable[Part]) -> dict[Node, int]:
    """By switch: which part it is in."""
    return {switch: number for number, part in enumerate(all_parts) for switch in part.rows}


class Unfolded(NamedTuple):
    """A part as it is drawn."""

    name: str
    drawing: Drawing


def unfolded(
    run: KeptRun, busy: Mapping[str, float], shades: Sequence[tuple[float, str]]
) -> tuple[list[Unfolded], int]:
    """Every part drawn, and the one that says most of what was the matter: with the most signs of
    trouble, else the longest pauses, else the busiest.

    ``shades`` are colours, each up to so busy.
    """
    found = parts(run.fabric)
    all_signs = signs(run)
    used = _Use(run, busy, tuple(shades))
    drawn = [Unfolded(part.name, _drawn(used, part, _of(part, run.fabric, all_signs)))
             for part in found]  # fmt: skip

    def matters(at: int) -> tuple[int, float, float, int]:
        ways = _directions(found[at], run.fabric)
        return (
            len(_of(found[at], run.fabric, all_signs)),
            sum(used.stood(name) for name in ways),
            sum(busy[name] for name in ways),
            -at,
        )

    return drawn, max(range(len(found)), key=matters)


class _Use(Data):
    """How links were used."""

    run: KeptRun
    busy: Mapping[str, float]
    shades: tuple[tuple[float, str], ...]

    def stood(self, direction: str) -> float:
        """What share of the run it stood still."""
        return min(1.0, self.run.stood(direction))

    def shade(self, direction: str) -> str:
        """As dark as it was busy."""
        share = self.busy[direction]
        return next((c for most, c in self.shades if share < most), self.shades[-1][1])


def _links(fabric: Fabric, switch: Node) -> list[Link]:
    return [fabric.link_at(switch, port) for port in sorted(fabric.ports(switch))]


def _directions(part: Part, fabric: Fabric) -> list[str]:
    """Those of all links at a part's switches; of one between two of these twice."""
    links = (link for switch in part.rows for link in _links(fabric, switch))
    return [name for link in links for name in link.directions]


def _of(part: Part, fabric: Fabric, found: Sequence[Sign]) -> list[Sign]:
    """Those of a part's own switches, and of hosts and links there."""
    here = {switch.name for switch in part.rows}
    here |= {host.name for leaf in part.rows for host in _hosts(fabric, leaf)}
    return [sign for sign in found if here & set(_ends(sign.where))]


def _ends(where: str) -> list[str]:
    return [end.partition(".")[0] for end in where.split(">")]


def _hosts(fabric: Fabric, leaf: Node) -> list[Node]:
    return [link.a for link in _links(fabric, leaf) if link.a.kind is NodeKind.HOST]


class _Cells(Data):
    """What rows are made of: drawn when all of them are there, a colour at a time."""

    used: _Use
    busy: dict[str, list[tuple[float, float, float, float]]] = field(default_factory=dict)
    paused: list[tuple[float, float, float, float]] = field(default_factory=list)
    # Of links, of their directions, and of what is at their lower ends.
    places: dict[str, tuple[float, float]] = field(default_factory=dict)

    def add(self, link: Link, x: float, y: float, wide: float) -> None:
        """A link's two."""
        gap = min(1.0, 0.15 * wide)
        for name, top in ((link.up, y), (link.down, y + _HALF + _BAR + 1)):
            box = (x, top, wide - gap, _HALF)
            self.busy.setdefault(self.used.shade(name), []).append(box)
            if share := self.used.stood(name):
                long = max(0.6, share * (wide - gap))
                self.paused.append((x, top + _HALF, long, _BAR))
            self.places[name] = x + (wide - gap) / 2, top + _HALF / 2
        self.places[link.name] = x + (wide - gap) / 2, y + _HALF + 2
        self.places.setdefault(link.a.name, self.places[link.down])

    def draw(self, drawing: Drawing) -> None:
        """All of them, and a cross over each that was cut and stayed so."""
        for colour, boxes in self.busy.items():
            drawing.boxes(boxes, fill=colour)
        drawing.boxes(self.paused, fill=PAUSE)
        dead = {name for name, (_, until) in dead_cables(self.used.run).items() if until is None}
        for name in dead & self.places.keys():
            x, middle = self.places[name]
            for turn in (1, -1):
                drawing.line(x - 4, middle - 4 * turn, x + 4, middle + 4 * turn, stroke=DROP,
                             stroke_width=2, tip=f"{name} was cut")  # fmt: skip


def _drawn(used: _Use, part: Part, found: Sequence[Sign]) -> Drawing:
    """The rows of a part, leaves first."""
    drawing = Drawing(0, _title(used, part, found))
    cells = _Cells(used)
    y = 0.0
    for kind in (NodeKind.LEAF, NodeKind.SPINE):
        rows = [switch for switch in part.rows if switch.kind is kind]
        if rows:
            y = _put_rows(drawing, cells, y, rows)
    cells.draw(drawing)
    drawing.height = _key(drawing, y, found, cells.places)
    return drawing


def _put_rows(drawing: Drawing, cells: _Cells, y: float, rows: Sequence[Node]) -> float:
    """Switches of a kind under what their columns lead to; where they end."""
    run = cells.used.run
    links = {switch: _links(run.fabric, switch) for switch in rows}
    ups = {switch: [link for link in links[switch] if link.a == switch] for switch in rows}
    hosts = {switch: [link for link in links[switch] if link.a.kind is NodeKind.HOST]
             for switch in rows}  # fmt: skip
    most_up, most_hosts = (max(map(len, each.values())) for each in (ups, hosts))
    room = WIDTH - _LEFT - (_BETWEEN if most_hosts else 0)
    wide = min(_WIDEST, room / max(1, most_up + most_hosts))
    beside = _LEFT + most_up * wide + _BETWEEN
    if any(ups.values()):
        ends = {link.b for each in ups.values() for link in each}
        drawing.text(_LEFT, y + 11, f"up: {_from_to(sorted(ends))}", class_="tick")
    if most_hosts:
        end = beside + most_hosts * wide
        drawing.text(end, y + 11, "down: hosts", text_anchor="end", class_="tick")
    y += _HEAD
    for switch in rows:
        for left, its in ((_LEFT, ups[switch]), (beside, hosts[switch])):
            for at, link in enumerate(its):
                cells.add(link, left + at * wide, y, wide)
        _name(drawing, run, switch, y, hosts[switch])
        y += _ROW
    return y


def _name(drawing: Drawing, run: KeptRun, switch: Node, y: float, hosts: Sequence[Link]) -> None:
    """A row's: the switch, its hosts, and what it dropped."""
    drawing.text(0, y + 8, switch.name, class_="strong")
    dropped = run.result.drops.by_switch.get(switch.name)
    if dropped:
        drawing.text(0, y + 20, f"\N{MINUS SIGN}{packets(dropped)}", fill=DROP, class_="tick")
    if hosts:
        ends = [link.a for link in hosts]
        drawing.text(_LEFT - 6, y + 8, _short(ends), text_anchor="end", class_="tick")


def _short(nodes: Sequence[Node]) -> str:
    first, last = min(nodes), max(nodes)
    return str(first) if first == last else f"{first}\N{EN DASH}{last.number}"


def _from_to(nodes: Sequence[Node]) -> str:
    first, last = min(nodes), max(nodes)
    return str(first) if first == last else f"{first} to {last.number}"


def _key(
    drawing: Drawing,
    y: float,
    found: Sequence[Sign],
    places: Mapping[str, tuple[float, float]],
) -> float:
    """Who is to blame and who suffers, on their cells; and what cells mean."""
    for sign in found:
        if sign.where in places:
            shape(drawing, *places[sign.where], sign.what)
    for sign in found:
        y += FONT + 5
        shape(drawing, 7, y - 4, sign.what)
        drawing.text(18, y, f"{sign.what}: {sign.where}", fill=INK)
    return y + 8


def _title(used: _Use, part: Part, found: Sequence[Sign]) -> str:
    """What the picture shows, in words."""
    ways = _directions(part, used.run.fabric)
    busiest = max(ways, key=lambda name: (used.busy[name], name))
    still = [name for name in ways if used.stood(name) >= 0.01]
    said = [f"{part.name}: the busiest link is {busiest}, {percent(used.busy[busiest])}"]
    if still:
        longest = max(still, key=lambda name: (used.stood(name), name))
        said.append(f"{plural(len(still), 'direction')} stood still, longest {longest} "
                    f"({percent(used.stood(longest))} of the time)")  # fmt: skip
    said += [f"{sign.what}: {sign.where}" for sign in found]
    return "; ".join(said) + "."
