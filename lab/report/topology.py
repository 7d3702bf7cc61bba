"""The fabric drawn: how busy each direction of each link was, who stood still, who dropped."""

from __future__ import annotations

import math
from itertools import groupby

import networkx as nx

from lab.quantity import duration, packets, percent, size
from lab.report.kept import KeptRun
from lab.report.strips import strips
from lab.report.svg import DROP, FAINT, FONT, INK, PAUSE, WIDTH, Drawing, width_of
from lab.results.result import LinkUse
from topologies import Node, NodeKind

# Darker and wider is busier; told apart by lightness alone.
CLASSES = (
    (0.01, "#e0e6eb", 1.0, "idle"),
    (0.25, "#a8c8e0", 1.6, "to 25 %"),
    (0.50, "#5c9bc9", 2.2, "to 50 %"),
    (0.75, "#2171b5", 2.8, "to 75 %"),
    (2.00, "#08306b", 3.4, "above"),
)
_TIER_HEIGHT = 92.0
_HOST_HEIGHT = 62.0
_MOST_HOSTS = 128  # that are drawn
_MOST_PAIRS = 160  # of links whose two directions are drawn apart
_APART = 2.6
_LEAST_PAUSED = 0.01
_LEAST_RING = 3

Place = tuple[float, float]


def topology(run: KeptRun) -> Drawing:
    """The drawing: nodes and lines, or strips where there are too many."""
    if is_large(run):
        return _as_strips(run)
    ring = _ring(run)
    places, height = _round(run, ring) if ring else _places(run)
    drawing = Drawing(height + 44, "The fabric and how busy its links were")
    uses = {use.name: use for use in run.result.links}
    busy = _busy(run)
    for link in run.fabric.links:
        beside = len(run.fabric.links_between(link.a, link.b))
        aside = 2 * (link.number - (beside + 1) / 2)  # of the middle, in lines' distances
        for name, start, end, side in (
            (link.up, link.a, link.b, aside),
            (link.down, link.b, link.a, -aside),
        ):
            ends = places[start], places[end]
            _direction(drawing, run, uses[name], busy[name], *ends, aside=side)
    for node, place in places.items():
        _node(drawing, run, node, place, places)
    if not ring:
        _name_tiers(drawing, places)
    _key(
        drawing,
        height + 24,
        _measure(run),
        is_paused=bool(run.result.pfc.by_link),
        is_dropping=bool(run.result.drops.by_switch),
    )
    return drawing


def is_large(run: KeptRun) -> bool:
    """Whether there are too many links to draw each."""
    return len(run.fabric.links) > _MOST_PAIRS or len(run.fabric.hosts) > _MOST_HOSTS


def _as_strips(run: KeptRun) -> Drawing:
    drawing = Drawing(0, "The switches of the fabric and how busy their links were")
    y = strips(drawing, run, _busy(run), lambda busy: _class_of(busy)[1], 4)
    _key(drawing, y + 16, _measure(run), is_paused=False, is_dropping=False)
    drawing.height = y + 24
    return drawing


def _measure(run: KeptRun) -> str:
    return "busy:" if run.result.clock == "fabric" else "of the busiest:"


def _ring(run: KeptRun) -> list[Node]:
    """The switches in their order, if they are cabled as a ring and not in tiers."""
    fabric = run.fabric
    switches = set(fabric.switches)
    around = fabric.graph.subgraph(switches)
    if len({switch.kind for switch in switches}) > 1 or len(switches) < _LEAST_RING:
        return []
    if any(degree != 2 for _, degree in around.degree) or not nx.is_connected(around):
        return []
    order = [min(switches)]
    while len(order) < len(switches):
        order.append(min(node for node in around[order[-1]] if node not in order))
    return order


def _round(run: KeptRun, ring: list[Node]) -> tuple[dict[Node, Place], float]:
    """Where nodes of a ring are drawn: switches on a circle, hosts outside of theirs."""
    radius, outside = 84.0, 138.0
    x0, y0 = WIDTH / 2, outside + 22
    places: dict[Node, Place] = {}

    def at(angle: float, far: float) -> Place:
        return x0 + 1.35 * far * math.sin(angle), y0 - far * math.cos(angle)

    for number, switch in enumerate(ring):
        angle = 2 * math.pi * number / len(ring)
        places[switch] = at(angle, radius)
        hosts = [host for host in run.fabric.hosts if run.fabric.leaf_of(host) == switch]
        room = 2 * math.pi / len(ring) / max(1, len(hosts))
        for slot, host in enumerate(hosts):
            places[host] = at(angle + room * (slot - (len(hosts) - 1) / 2), outside)
    return places, y0 + outside


def _places(run: KeptRun) -> tuple[dict[Node, Place], float]:
    """Where nodes are drawn: tiers from the top down, hosts below their leaf."""
    fabric = run.fabric
    tiers = [list(tier) for _, tier in groupby(sorted(fabric.switches), key=lambda n: n.kind)]
    leaves = {leaf: at for at, leaf in enumerate(tiers[0])}
    tiers.insert(0, sorted(fabric.hosts, key=lambda host: leaves[fabric.leaf_of(host)]))
    places: dict[Node, Place] = {}
    y = 26.0
    for tier in reversed(tiers):
        for at, node in enumerate(tier):
            places[node] = (WIDTH * (at + 0.5) / len(tier), y)
        is_above_hosts = tier[0].kind is NodeKind.LEAF
        y += _HOST_HEIGHT if is_above_hosts else _TIER_HEIGHT
    return places, y - _TIER_HEIGHT + 12


def _busy(run: KeptRun) -> dict[str, float]:
    """By direction: how busy it was; where links have no rate, what it carried, of the most."""
    most = max((use.bytes for use in run.result.links), default=0) or 1
    return {
        use.name: use.bytes / most if use.utilisation is None else use.utilisation
        for use in run.result.links
    }


def _class_of(utilisation: float) -> tuple[float, str, float, str]:
    return next(c for c in CLASSES if utilisation < c[0] or c is CLASSES[-1])


def _direction(
    drawing: Drawing,
    run: KeptRun,
    use: LinkUse,
    busy: float,
    start: Place,
    end: Place,
    *,
    aside: float,
) -> None:
    """One direction of a link, on its own side of the middle, and a mark where it was paused."""
    (x1, y1), (x2, y2) = start, end
    length = ((x2 - x1) ** 2 + (y2 - y1) ** 2) ** 0.5
    apart = _APART * (1 + 2 * aside)
    dx, dy = (y2 - y1) / length * apart, (x1 - x2) / length * apart
    _, colour, width, _ = _class_of(busy)
    pause = run.result.pfc.by_link.get(use.name)
    share = pause.longest_ns / run.end_ns if pause else 0
    story = f"{use.name}: {packets(use.packets)}"
    if use.utilisation is not None:
        story += f", {percent(use.utilisation)} busy"
    if use.max_queue_bytes:
        story += f", longest queue {size(use.max_queue_bytes)}"
    if pause:
        story += f", paused for {duration(pause.paused_ns)} ({percent(share)})"
    drawing.line(
        *(x1 + dx, y1 + dy, x2 + dx, y2 + dy), stroke=colour, stroke_width=width, tip=story
    )
    if share >= _LEAST_PAUSED:
        at = min(0.42, 20 / length)
        drawing.add(
            "circle",
            cx=x1 + dx + (x2 - x1) * at,
            cy=y1 + dy + (y2 - y1) * at,
            r=2.0 + 3.5 * min(1.0, share),
            fill=PAUSE,
            stroke="#fff",
            stroke_width=0.8,
            tip=story,
        )


def _node(
    drawing: Drawing, run: KeptRun, node: Node, place: Place, places: dict[Node, Place]
) -> None:
    """A box with a name, as far as there is room for it."""
    x, y = place
    room = WIDTH / sum(1 for other in places.values() if other[1] == y)
    dropped = run.result.drops.by_switch.get(node.name, 0)
    is_host = node.kind is NodeKind.HOST
    label = _label(node, room, places)
    width = min(room * 0.9, width_of(label) + 12 if label else 10)
    drawing.rect(
        *(x - width / 2, y - 9, width, 18),
        rx=9 if is_host else 3,
        fill="#fff" if not is_host else "#f3f6f8",
        stroke=DROP if dropped else FAINT,
        stroke_width=2 if dropped else 1,
        tip=f"{node}" + (f": dropped {packets(dropped)}" if dropped else ""),
    )
    drawing.text(x, y + 4, label, text_anchor="middle", fill=INK)
    if dropped and room >= width_of(lost := f"\N{MINUS SIGN}{dropped:,}"):
        drawing.text(x, y - 13, lost, text_anchor="middle", fill=DROP, class_="strong halo")


def _name_tiers(drawing: Drawing, places: dict[Node, Place]) -> None:
    """Say what is in a row whose nodes have no room for their names."""
    for y, tier in groupby(places.items(), key=lambda item: item[1][1]):
        nodes = [node for node, _ in tier]
        if _label(nodes[0], WIDTH / len(nodes), places) != nodes[0].name:
            said = f"{min(nodes)} to {max(nodes)}"
            drawing.text(0, y - 13, said, class_="tick halo")


def _label(node: Node, room: float, places: dict[Node, Place]) -> str:
    """A name, a number or nothing: what there is room for at each node of the tier."""
    numbers = [other.number for other in places if other.kind is node.kind]
    longest = Node(node.kind, max(numbers))
    for label, most in ((node.name, longest.name), (str(node.number), str(longest.number))):
        if width_of(most) + 8 <= room:
            return label
    return ""


def _key(drawing: Drawing, y: float, what: str, *, is_paused: bool, is_dropping: bool) -> None:
    drawing.text(0, y, what)
    x = width_of(what) + 4
    for _, colour, width, name in CLASSES:
        drawing.line(x, y - 4, x + 16, y - 4, stroke=colour, stroke_width=width)
        drawing.text(x + 20, y, name)
        x += 30 + width_of(name)
    y += FONT + 5
    x = 0.0
    if is_paused:
        drawing.add("circle", cx=6.0, cy=y - 4, r=4, fill=PAUSE)
        drawing.text(16, y, "a sender that was paused, for long if large")
        x = 286.0
    if is_dropping:
        drawing.text(x, y, "\N{MINUS SIGN}N: dropped N packets", fill=DROP)
