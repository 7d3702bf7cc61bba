"""Who imports whom in the whole house, as the sources say today; and a picture of it.

    python -m tests.imports

draws docs/imports.svg anew: each folder, and each of the lab's rooms, on a floor above all that it
imports. What follows from other arrows has none of its own.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterable
from functools import cache
from importlib.util import resolve_name
from itertools import pairwise
from pathlib import Path

import networkx as nx

from views.report.palette import FAINT, INK, RULE, WASH
from views.report.svg import Drawing, width_of

ROOT = Path(__file__).resolve().parent.parent
PICTURE = ROOT / "docs" / "imports.svg"
TOPS = (
    *("compiler", "switch", "topologies", "traffic", "controller", "files", "params"),
    *("lab", "views", "doors", "course", "bench", "closlab"),
)
_WIDTH = 640.0
_HIGH, _APART = 22.0, 48.0  # a box, and from floor to floor
_SWEEPS = 8
_HAVE_ROOMS = "lab", "views"


@cache
def modules() -> dict[str, Path]:
    """Ours, by name; a package's `__init__.py` is named as the package."""
    found = {}
    for top in TOPS:
        for path in (ROOT / f"{top}.py", *(ROOT / top).rglob("*.py")):
            if not path.exists():
                continue
            parts = path.relative_to(ROOT).with_suffix("").parts
            found[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
    return found


def room_of(module: str) -> str:
    """Where a module lives: a folder, or one of its rooms."""
    parts = module.split(".")
    return ".".join(parts[: 2 if parts[0] in _HAVE_ROOMS else 1])


@cache
def uses(module: str) -> frozenset[str]:
    """The modules of ours that one imports, wherever in it."""
    path = modules()[module]
    package = module if path.name == "__init__.py" else module.rpartition(".")[0]
    found: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            origin = resolve_name("." * node.level + (node.module or ""), package)
            whole = {f"{origin}.{alias.name}" for alias in node.names}
            found |= {name if name in modules() else origin for name in whole}
    return frozenset(name for name in found if name in modules() and name != module)


def arrows() -> nx.DiGraph[str]:
    """From room to room, without what follows from others."""
    rooms: nx.DiGraph[str] = nx.DiGraph()
    for module in sorted(modules()):
        for used in sorted(uses(module)):
            ends = room_of(module), room_of(used)
            if ends[0] != ends[1] and "lab" not in ends:
                rooms.add_edge(*ends)
    return nx.transitive_reduction(rooms)


Spot = tuple[str, str]  # a room and nothing; or an arrow's ends, where it passes a floor


def floors(graph: nx.DiGraph[str]) -> dict[str, int]:
    """How high everybody stands: as low as may be, but who carries only one stands next below."""
    found: dict[str, int] = {}
    for room in reversed(list(nx.topological_sort(graph))):
        found[room] = 1 + max((found[below] for below in graph.successors(room)), default=0)
    for room in nx.topological_sort(graph):
        if graph.out_degree(room) == 0 and graph.in_degree(room) == 1:
            found[room] = found[next(graph.predecessors(room))] - 1
    return found


def rows(graph: nx.DiGraph[str]) -> tuple[list[list[Spot]], nx.DiGraph[Spot]]:
    """Each floor's rooms and passing arrows, so that few arrows cross; the ground first."""
    high = floors(graph)
    spots: nx.DiGraph[Spot] = nx.DiGraph()
    spots.add_nodes_from(((room, ""), {"floor": high[room]}) for room in sorted(graph))
    for upper, lower in sorted(graph.edges):
        passed = [(upper, lower)] * (high[upper] - high[lower] - 1)
        way = [(upper, ""), *((f"{a}>{b}", str(n)) for n, (a, b) in enumerate(passed)), (lower, "")]
        for down, spot in enumerate(way):
            spots.add_node(spot, floor=high[upper] - down)
        nx.add_path(spots, way)
    by_floor: dict[int, list[Spot]] = {}
    for spot, floor in spots.nodes(data="floor"):
        by_floor.setdefault(floor, []).append(spot)
    found = [by_floor[floor] for floor in sorted(by_floor)]
    best, least = found, crossings(found, spots)
    for _ in range(_SWEEPS):
        found = _swept(found, spots.successors)
        found = _swept(found[::-1], spots.predecessors)[::-1]
        if (now := crossings(found, spots)) < least:
            best, least = found, now
    return best, spots


def _swept(old: list[list[Spot]], before: Callable[[Spot], Iterable[Spot]]) -> list[list[Spot]]:
    """Each floor in the order of the middles of what its spots are tied to on the one before."""
    places: dict[Spot, float] = {}
    found = []
    for row in old:
        middles = _shares(row)
        for spot in row:
            if near := [places[each] for each in before(spot)]:
                middles[spot] = sum(near) / len(near)
        found.append(sorted(row, key=middles.__getitem__))
        places |= _shares(found[-1])
    return found


def _shares(row: list[Spot]) -> dict[Spot, float]:
    """How far along a row each stands."""
    return {spot: (at + 1) / (len(row) + 1) for at, spot in enumerate(row)}


def crossings(order: list[list[Spot]], spots: nx.DiGraph[Spot]) -> int:
    """How many arrows cross another."""
    count = 0
    for lower, upper in pairwise(order):
        ends = [
            (upper.index(a), lower.index(b)) for a, b in spots.edges if a in upper and b in lower
        ]
        count += sum((a - c) * (b - d) < 0 for a, b in ends for c, d in ends) // 2
    return count


def picture() -> Drawing:
    """The whole house, from the command line down to the ground."""
    order, spots = rows(arrows())
    drawing = Drawing(_APART * (len(order) - 1) + _HIGH, "Who imports whom", _WIDTH)
    at: dict[Spot, tuple[float, float]] = {}
    for floor, row in enumerate(order):
        wide = [_width(spot) for spot in row]
        gap = (_WIDTH - sum(wide)) / (len(row) + 1)
        x = gap
        for spot, width in zip(row, wide, strict=True):
            at[spot] = x + width / 2, _APART * (len(order) - 1 - floor)
            x += width + gap
    for upper, lower in spots.edges:
        (x1, y1), (x2, y2) = at[upper], at[lower]
        start, end = y1 + (0 if upper[1] else _HIGH), y2
        if lower[1]:
            drawing.line(x1, start, x2, end, stroke=FAINT)
        else:
            drawing.arrow(x1, start, x2, end, FAINT)
    for (room, passing), (x, y) in at.items():
        if not passing:
            width = _width((room, passing))
            drawing.rect(x - width / 2, y, width, _HIGH, fill=WASH, stroke=RULE, rx=4.0)
            drawing.text(x, y + 15, _shown(room), text_anchor="middle", fill=INK,
                         class_="" if "." in room else "strong")  # fmt: skip
    return drawing


def _width(spot: Spot) -> float:
    return 0.0 if spot[1] else width_of(_shown(spot[0])) + 16


def _shown(room: str) -> str:
    return room.rpartition(".")[2]


if __name__ == "__main__":
    PICTURE.write_text(picture().to_svg(has_ground=True))
