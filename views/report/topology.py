"""The fabric drawn: how busy each direction of each link was, who stood still, who dropped."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from itertools import groupby

from lab.results.result import LinkUse
from params.data import Data
from params.quantity import duration, packets, percent, plural, size
from topologies import Fabric, Link, Node, NodeKind
from views.report.kept import KeptRun
from views.report.palette import (
    BUSY,
    DROP,
    FAINT,
    INK,
    PAPER,
    PAUSE,
    QUEUE,
    RULE,
    STRAGGLER,
    TRACK,
    VICTIM,
    WASH,
)
from views.report.parts import Unfolded, unfolded
from views.report.signs import LATE, RECEIVES, STORMS, SUFFERS, Sign, shape, signs, wide
from views.report.signs import below as signs_below
from views.report.signs import key as key_of_signs
from views.report.strips import Shares, pause_opacity, strips
from views.report.suspects import circle, dead_cables, waiting
from views.report.svg import FONT, ROOM, WIDTH, Drawing, width_of

# Darker (at night: lighter) and wider is busier; told apart by lightness alone.
CLASSES = (
    (0.01, BUSY[0], 1.0, "idle"),
    (0.25, BUSY[1], 1.6, "to 25 %"),
    (0.50, BUSY[2], 2.2, "to 50 %"),
    (0.75, BUSY[3], 2.8, "to 75 %"),
    (2.00, BUSY[4], 3.4, "above"),
)
_TIER_HEIGHT = 92.0
_HOST_HEIGHT = 62.0
_MAX_HOSTS = 128  # that are drawn
_MAX_PAIRS = 160  # of links whose two directions are drawn apart
_APART = 2.6
_BOX = 26.0, 9.0  # half of a node's, where there is room for its name
_MIN_PAUSED = 0.01
_MIN_RING = 3

Place = tuple[float, float]
_Box = tuple[float, float, float, float]  # left, top, right, bottom


def topology(run: KeptRun) -> Drawing:
    """The drawing: nodes and lines, or strips where there are too many."""
    if is_large(run.fabric):
        return _as_strips(run)
    places, height, is_ring = _laid_out(run.fabric)
    drawing = Drawing(height, _title(run))
    uses = {use.name: use for use in run.result.links}
    busy = run.busy
    dead = dead_cables(run)
    in_circle = waiting(run)
    lines: dict[str, _Line] = {}
    for link, name, line in _lines(run.fabric, places):
        if dead.get(link.name) == (0, None):
            continue
        lines[name] = line
        is_cut = link.name in dead and dead[link.name][1] is None
        look = _Look(uses[name], busy[name], is_cut=is_cut, in_circle=name in in_circle)
        _direction(drawing, run, look, line)
    arrows = [lines[name].part(0.22, 0.78) for name in sorted(in_circle)]
    for arrow in arrows:
        drawing.arrow(*arrow, PAUSE, stroke_width=2.4)
    taken: list[_Box] = []
    together = Counter(dead.values())  # of several that die at once the key says when
    for link in (link for link in run.fabric.links if link.name in dead):
        since, until = dead[link.name]
        said, tip = "", f"{link.name} is dead"
        if (since, until) != (0, None):
            said = _when_cut(since, until)
            tip = f"{link.name}: {said}"
            said = "" if together[since, until] > 1 else said
        line = _Line(places[link.a], places[link.b], -0.5)
        others = arrows or [each.ends for name, each in lines.items() if link.up != name]
        _dead(drawing, line, others, tip, said, taken, is_cut=until is None)
    found = signs(run)
    for node, place in places.items():
        dropped = run.result.drops.by_switch.get(node.name, 0)
        _node(drawing, node, place, places, _edge(found, node), dropped)
    between = [sign for sign in found if sign.where in lines]
    for sign in between:  # several words would cover one another: then the key names the ports
        word = sign.what if len(between) == 1 else ""
        _congested(drawing, lines[sign.where], sign.what, word, taken)
    height += signs_below(drawing, found, places)
    if not is_ring:
        height += _name_tiers(drawing, run.fabric, places, height + 10)
        _name_planes(drawing, run.fabric, places)
    drawing.height = _key(drawing, height + 24, run, found)
    return drawing


def outline(fabric: Fabric) -> Drawing:
    """A fabric of which nothing is known yet: whatever may move is there, and stands still."""
    drawing = Drawing(0, f"The fabric: {_sizes(fabric)}")
    if is_large(fabric):
        idle = {name: 0.0 for link in fabric.links for name in link.directions}
        drawing.height = strips(drawing, Shares(fabric, idle), lambda _: BUSY[0], 4)
        return drawing
    places, height, is_ring = _laid_out(fabric)
    drawing.height = height + 8
    for _, name, line in _lines(fabric, places):
        _mark(drawing, name, line, CLASSES[0], has_queue=True, paused=0.0)
    for node, place in places.items():
        _node(drawing, node, place, places)
    if not is_ring:
        drawing.height += _name_tiers(drawing, fabric, places, height + 10)
        _name_planes(drawing, fabric, places)
    return drawing


def _laid_out(fabric: Fabric) -> tuple[dict[Node, Place], float, bool]:
    """Where nodes are drawn, how high that is, and whether they are on a ring."""
    ring = _ring(fabric)
    places, height = _round(fabric, ring) if ring else _places(fabric)
    return places, height, bool(ring)


def _lines(fabric: Fabric, places: dict[Node, Place]) -> Iterator[tuple[Link, str, _Line]]:
    """Both directions of every link, and where they are drawn."""
    for link in fabric.links:
        beside = len(fabric.links_between(link.a, link.b))
        aside = 2 * (link.number - (beside + 1) / 2)  # of the middle, in lines' distances
        yield link, link.up, _Line(places[link.a], places[link.b], aside)
        yield link, link.down, _Line(places[link.b], places[link.a], -aside)


def _sizes(fabric: Fabric) -> str:
    return f"{len(fabric.switches)} switches and {plural(len(fabric.hosts), 'host')}"


def _edge(found: Sequence[Sign], node: Node) -> str:
    """The colour of a host that matters."""
    colours = {STORMS: PAUSE, LATE: STRAGGLER, SUFFERS: VICTIM, RECEIVES: VICTIM}
    return next((colours[s.what] for s in found if s.where == node.name and s.what in colours), "")


def _title(run: KeptRun) -> str:
    """What the picture shows, in words."""
    used = [use for use in run.result.links if use.utilisation]
    said = [f"The fabric: {_sizes(run.fabric)}, by how busy links were"]
    if used:
        most = max(used, key=lambda use: run.busy[use.name])
        said.append(f"the busiest is {most.name}, {percent(run.busy[most.name])}")
    by_link = run.result.pfc.by_link
    paused = {n: p.longest_ns / run.end_ns for n, p in by_link.items()}
    long = [name for name, share in paused.items() if share >= _MIN_PAUSED]
    if long:
        most_paused = max(long, key=lambda name: paused[name])
        said.append(
            f"{plural(len(long), 'direction')} stood still, longest {most_paused} "
            f"({percent(paused[most_paused])} of the time)"
        )
    dead = dead_cables(run)
    if dead:
        said.append(f"cut: {', '.join(dead)}")
    ring = circle(run)
    if ring:
        said.append(f"a deadlock: {' waits for '.join(ring)}")
    dropped = run.result.drops.by_switch
    if dropped:
        said.append(
            "dropped: " + ", ".join(f"{packets(n)} at {at}" for at, n in list(dropped.items())[:4])
        )
    said += [f"{sign.what}: {sign.where}" for sign in signs(run)]
    return "; ".join(said) + "."


def caption(fabric: Fabric) -> str:
    """How to read the drawing."""
    if is_large(fabric):
        return (
            "Bolder is busier; rest on a cell to read which switch and how much, and click on "
            "it to unfold its part."
        )
    if _ring(fabric):
        return "Each link as two lines, one for each direction: leaf1>leaf2 leads from leaf1."
    return "Each link as two lines: leaf1>spine1 leads upwards, and is the left one of its two."


def is_large(fabric: Fabric) -> bool:
    """Whether there are too many links to draw each."""
    return len(fabric.links) > _MAX_PAIRS or len(fabric.hosts) > _MAX_HOSTS


def _as_strips(run: KeptRun) -> Drawing:
    drawing = Drawing(0, _title(run))
    y = strips(drawing, Shares.of(run, run.busy), lambda busy: _class_of(busy)[1], 4)
    dead = dead_cables(run)
    for name, (since, until) in list(dead.items())[:4]:
        y += FONT + 4
        said = "dead throughout" if (since, until) == (0, None) else f"cut at {duration(since)}"
        drawing.text(0, y, f"\N{MULTIPLICATION X} {name}: {said}", fill=DROP)
    drawing.height = _key_of_cells(drawing, y + 18, run)
    return drawing


def parts(run: KeptRun) -> tuple[list[Unfolded], int]:
    """What a page unfolds of a large fabric, and which part at first; nothing of others."""
    if not is_large(run.fabric):
        return [], 0
    return unfolded(run, run.busy, [(most, colour) for most, colour, _, _ in CLASSES])


def _ring(fabric: Fabric) -> list[Node]:
    """The switches in the order in which they stand on a circle, if they are of one tier: as they
    are cabled if that is a ring, else by number, so that those of a group are neighbours."""
    switches, around = fabric.switches, fabric.joined
    if len({switch.kind for switch in switches}) > 1 or len(switches) < _MIN_RING:
        return []
    order = [min(switches)]
    while beside := [node for node in around[order[-1]] if node not in order]:
        order.append(min(beside))
    is_ring = len(order) == len(switches) and all(len(beside) == 2 for beside in around.values())
    return order if is_ring else sorted(switches)


def _round(fabric: Fabric, ring: list[Node]) -> tuple[dict[Node, Place], float]:
    """Where nodes of a ring are drawn: switches on a circle, hosts outside of theirs."""
    radius = max(84.0, 12.0 * len(ring))  # so that names do not cover each other
    outside = radius + 54
    x0, y0 = WIDTH / 2, outside + 22
    places: dict[Node, Place] = {}

    def at(angle: float, far: float) -> Place:
        across = min(1.35 * far, x0 - 24 - (outside - far))
        return x0 + across * math.sin(angle), y0 - far * math.cos(angle)

    for number, switch in enumerate(ring):
        angle = 2 * math.pi * number / len(ring)
        places[switch] = at(angle, radius)
        hosts = [host for host in fabric.hosts if fabric.leaf_of(host) == switch]
        room = 2 * math.pi / len(ring) / max(1, len(hosts))
        for slot, host in enumerate(hosts):
            places[host] = at(angle + room * (slot - (len(hosts) - 1) / 2), outside)
    return places, y0 + outside


def _places(fabric: Fabric) -> tuple[dict[Node, Place], float]:
    """Where nodes are drawn: tiers from the top down, hosts below their leaf."""
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


def _class_of(utilisation: float) -> tuple[float, str, float, str]:
    return next(c for c in CLASSES if utilisation < c[0] or c is CLASSES[-1])


class _Line:
    """A direction of a link, on its own side of the middle."""

    def __init__(self, start: Place, end: Place, aside: float) -> None:
        (x1, y1), (x2, y2) = start, end
        self.length = math.hypot(x2 - x1, y2 - y1)
        apart = _APART * (1 + 2 * aside)
        dx, dy = (y2 - y1) / self.length * apart, (x1 - x2) / self.length * apart
        self.ends = x1 + dx, y1 + dy, x2 + dx, y2 + dy

    @property
    def hidden(self) -> float:
        """How much of its beginning is under the box of a node."""
        x1, y1, x2, y2 = self.ends
        across, down = abs(x2 - x1) / self.length, abs(y2 - y1) / self.length
        return min(_BOX[0] / max(across, 0.01), _BOX[1] / max(down, 0.01))

    def at(self, share: float) -> Place:
        """A place on the way."""
        x1, y1, x2, y2 = self.ends
        return x1 + (x2 - x1) * share, y1 + (y2 - y1) * share

    def part(self, start: float, end: float) -> tuple[float, float, float, float]:
        """A part of it."""
        return (*self.at(start), *self.at(end))


class _Look(Data):
    """What is told of a direction of a link."""

    use: LinkUse
    busy: float
    is_cut: bool
    in_circle: bool  # of a deadlock


def _direction(drawing: Drawing, run: KeptRun, look: _Look, line: _Line) -> None:
    """One direction of a link, and a mark where it was paused; what was cut is live no more."""
    use = look.use
    share = run.stood(use.name)
    story = f"{use.name}: {packets(use.packets)}, {percent(look.busy)} busy"
    if use.max_queue_bytes:
        story += f", longest queue {size(use.max_queue_bytes)}"
    if share:
        story += f", paused {percent(share)} of the time"
    has_queue = bool(use.max_queue_bytes)
    kind = (0.0, RULE, 1.0, "cut") if look.is_cut else _class_of(look.busy)
    # Of a deadlock's circle an arrow says it, and its mark is seen at moments only.
    paused = (0.0 if look.in_circle else share) if share else None
    _mark(drawing, use.name, line, kind, story, has_queue=has_queue, paused=paused)


def _mark(
    drawing: Drawing,
    name: str,
    line: _Line,
    kind: tuple[float, str, float, str],
    story: str = "",
    *,
    has_queue: bool,
    paused: float | None,
) -> None:
    """A direction's line, and what may change on it."""
    _, colour, width, _ = kind
    moving = drawing.moves((name,))
    x1, y1, x2, y2 = line.ends
    style = {"stroke": colour, "stroke_width": width, "tip": story, "data_b": moving}
    drawing.line(x1, y1, x2, y2, **style)
    if has_queue:  # nothing to see of it but at a moment
        x, y = line.at(min(0.3, (line.hidden + 8) / line.length))
        drawing.rect(x, y, 0, 0, fill=QUEUE, stroke=PAPER, stroke_width=0.8, data_q=moving)
    if paused is not None:
        x, y = line.at(min(0.42, (line.hidden + 18) / line.length))
        drawing.add(
            "circle",
            cx=x,
            cy=y,
            fill=PAUSE,
            stroke=PAPER,
            stroke_width=0.8,
            r=2.0 + 3.5 * min(1.0, paused) if paused >= _MIN_PAUSED else 0.0,
            tip=story,
            data_p=moving,
        )


def _dead(
    drawing: Drawing,
    line: _Line,
    others: Sequence[_Box],
    tip: str,
    said: str,
    taken: list[_Box],
    *,
    is_cut: bool,
) -> None:
    """A cable that was cut: torn where it is farthest from others; said when if it was whole."""
    if is_cut:
        x1, y1, x2, y2 = line.ends
        drawing.line(x1, y1, x2, y2, stroke=DROP, stroke_width=1.4, stroke_dasharray="5 4", tip=tip)
    needs = 11 + ROOM * width_of(said) if said else 0.0
    places = [line.at(share / 100) for share in range(30, 71, 2)]
    free = [(x, y) for x, y in places if _is_free(_around(x, y, needs), taken)] or places
    x, y = max(free, key=lambda place: min((_far(place, each) for each in others), default=0.0))
    taken.append(_around(x, y, needs))
    drawing.add("circle", cx=x, cy=y, r=7.0, fill=PAPER, stroke=DROP, stroke_width=1.4, tip=tip)
    for turn in (1, -1):
        drawing.line(x - 3.5, y - 3.5 * turn, x + 3.5, y + 3.5 * turn, stroke=DROP, stroke_width=2)
    if said:
        drawing.rect(x + 9, y - 7, needs - 9, 14, fill=PAPER, fill_opacity=0.85)
        drawing.text(x + 11, y + 4, said, fill=DROP, class_="tick strong halo")


def _when_cut(since: int, until: int | None) -> str:
    return f"cut at {duration(since)}" + (f", back at {duration(until)}" if until else "")


def _congested(drawing: Drawing, line: _Line, what: str, word: str, taken: list[_Box]) -> None:
    """A port between switches, marked on its way out."""
    needs = wide(word) if word else 0.0
    places = [line.at(share / 100) for share in (32, 38, 44, 26, 50, 56)]
    boxes = [(place, _around(*place, needs)) for place in places]
    boxes += [((x, y), _around(x, y, needs, to_the_left=True)) for x, y in places]
    inside = [each for each in boxes if each[1][0] >= 0 and each[1][2] <= WIDTH]
    (x, y), box = next((each for each in inside if _is_free(each[1], taken)), inside[0])
    taken.append(box)
    shape(drawing, x, y, what)
    style = {"text_anchor": "end"} if box[0] < x - 8 else {}
    if word:
        drawing.text(x - 8 if style else x + 8, y + 4, word, class_="strong halo", **style)


def _around(x: float, y: float, needs: float, *, to_the_left: bool = False) -> _Box:
    """What a mark covers with a word beside it."""
    left, right = (max(8.0, needs), 8.0) if to_the_left else (8.0, max(8.0, needs))
    return x - left, y - 8, x + right, y + 8


def _is_free(box: _Box, taken: Sequence[_Box]) -> bool:
    left, top, right, bottom = box
    return all(right <= x1 or x2 <= left or bottom <= y1 or y2 <= top for x1, y1, x2, y2 in taken)


def _far(place: Place, line: _Box) -> float:
    """How far a place is from a line."""
    (x, y), (x1, y1, x2, y2) = place, line
    dx, dy = x2 - x1, y2 - y1
    share = ((x - x1) * dx + (y - y1) * dy) / (dx * dx + dy * dy)
    share = min(1.0, max(0.0, share))
    return math.hypot(x - x1 - share * dx, y - y1 - share * dy)


def _node(
    drawing: Drawing,
    node: Node,
    place: Place,
    places: dict[Node, Place],
    mark: str = "",
    dropped: int = 0,
) -> None:
    """A box with a name, as far as there is room for it."""
    x, y = place
    room = WIDTH / sum(1 for other in places.values() if other[1] == y)
    is_host = node.kind is NodeKind.HOST
    label = _label(node, room, places)
    lost = f"\N{MINUS SIGN}{dropped:,}" if dropped else ""
    if lost and room < ROOM * width_of(lost) + 8:
        lost = ""
    width = min(room * 0.9, ROOM * width_of(max(label, lost, key=len)) + 12 if label else 10)
    edge = mark or (DROP if dropped else FAINT)
    tall = 32 if lost and label else 18  # two lines: what is above it hides where lines end
    drawing.rect(
        *(x - width / 2, y - tall / 2, width, tall),
        rx=9 if is_host else 3,
        fill=PAPER if not is_host else WASH,
        stroke=edge,
        stroke_width=1 if edge == FAINT else 2.4,
        tip=f"{node}" + (f": dropped {packets(dropped)}" if dropped else ""),
    )
    drawing.text(x, y + (4 if tall == 18 else -3), label, text_anchor="middle", fill=INK)
    if lost and label:
        drawing.text(x, y + 12, lost, text_anchor="middle", fill=DROP, class_="strong")
    elif lost:
        drawing.text(x, y - 13, lost, text_anchor="middle", fill=DROP, class_="strong halo")


def _name_tiers(drawing: Drawing, fabric: Fabric, places: dict[Node, Place], below: float) -> float:
    """Say what is in a row whose nodes have no room for their names, of hosts below all; how much
    that takes."""
    needs = 0.0
    top = min(y for _, y in places.values()) if _planes_abreast(fabric, places) else -1.0
    for y, tier in groupby(places.items(), key=lambda item: item[1][1]):
        nodes = [node for node, _ in tier]
        is_short = _label(nodes[0], WIDTH / len(nodes), places) != nodes[0].name
        if is_short and y != top:  # where its planes say what is in them
            said = f"{min(nodes)} to {max(nodes)}"
            is_host = nodes[0].kind is NodeKind.HOST  # below which no line leads
            drawing.text(0, below if is_host else y - 13, said, class_="tick halo")
            needs += FONT * is_host
    return needs


def _name_planes(drawing: Drawing, fabric: Fabric, places: dict[Node, Place]) -> None:
    """Say which switches are of which plane, where there are several: they stand side by side."""
    planes = _planes_abreast(fabric, places)
    lowest = max(places[switch][1] for switch in fabric.switches)
    highest = min(places[switch][1] for switch in fabric.switches)
    before = left = 0.0
    for plane in planes:
        switches = [each for each in fabric.switches if fabric.plane_of(each) == plane]
        own = [places[each] for each in switches]
        top = [x for x, y in own if y == highest]
        name = f"plane {plane + 1}" if fabric.is_spread else ("back end", "front end")[plane]
        upper = [each for each in switches if places[each][1] == highest]
        row = sum(y == highest for _, y in places.values())
        named = f"{name}: {min(upper)} to {max(upper).number}"
        if _label(upper[0], WIDTH / row, places) != upper[0].name and (
            ROOM * width_of(named) < max(top) - min(top)
        ):
            name = named
        middle = (min(top) + max(top)) / 2
        drawing.text(middle, 11, name, text_anchor="middle", class_="tick halo")
        if plane:
            ends = (before + min(top)) / 2, (left + min(x for x, y in own if y == lowest)) / 2
            drawing.line(
                *(ends[0], 4, ends[1], lowest),
                stroke=RULE, stroke_width=1, stroke_dasharray="2 4",
            )  # fmt: skip
        before, left = max(top), max(x for x, y in own if y == lowest)


def _planes_abreast(fabric: Fabric, places: dict[Node, Place]) -> list[int]:
    """The planes that reach the highest row, if there are several: servers' own switches do not."""
    highest = min(places[switch][1] for switch in fabric.switches)
    reach = {fabric.plane_of(each) for each in fabric.switches if places[each][1] == highest}
    return sorted(reach) if len(reach) > 1 else []


def _label(node: Node, room: float, places: dict[Node, Place]) -> str:
    """A name, a number or nothing: what there is room for at each node of the tier."""
    numbers = [other.number for other in places if other.kind is node.kind]
    longest = Node(node.kind, max(numbers))
    for label, most in ((node.name, longest.name), (str(node.number), str(longest.number))):
        if ROOM * width_of(most) + 6 <= room:
            return label
    return ""


def _key(drawing: Drawing, y: float, run: KeptRun, found: Sequence[Sign]) -> float:
    """What lines and marks mean, in as many rows as that takes; where it ends."""
    what = "busy:"
    drawing.text(0, y, what)
    x = ROOM * width_of(what) + 4
    for _, colour, width, name in CLASSES:
        drawing.line(x, y - 4, x + 16, y - 4, stroke=colour, stroke_width=width)
        drawing.text(x + 20, y, name)
        x += 24 + ROOM * width_of(name)
    result, dead = run.result, dead_cables(run)
    together = Counter(when for when in dead.values() if when != (0, None))
    many = [
        f"{count} {_when_cut(*when).removeprefix('cut ')}"
        for when, count in together.items()
        if count > 1
    ]
    marks: tuple[tuple[object, str, Callable[[Drawing, float, float], None]], ...] = (
        (result.pfc.by_link, "a paused sender, the larger the longer", _paused_sign),
        (circle(run), "each waits for the next: a deadlock", _waiting_sign),
        (result.drops.by_switch, "\N{MINUS SIGN}N: dropped N packets", _dropped_sign),
        (dead, ", ".join(["cut", *many]), _cut_sign),
    )
    x, y = WIDTH, y + 1
    for happened, text, draw in marks:
        if not happened:
            continue
        needs = 18 + ROOM * width_of(text)
        if x + needs > WIDTH:
            x, y = 0.0, y + FONT + 5
        draw(drawing, x, y)
        drawing.text(x + 18, y, text)
        x += needs + 12
    return key_of_signs(drawing, y, found) + 8


def _key_of_cells(drawing: Drawing, y: float, run: KeptRun) -> float:
    """What the shades of cells mean; where it ends."""

    def cells(y: float, what: str, shades: Sequence[tuple[str, str | None, str]]) -> None:
        drawing.text(0, y, what)
        x = ROOM * width_of(what) + 6
        for colour, strength, name in shades:
            drawing.rect(x, y - 10, 12, 11, fill=colour, fill_opacity=strength)
            drawing.text(x + 16, y, name)
            x += 24 + ROOM * width_of(name)

    cells(y, "busy:", [(colour, None, name) for _, colour, _, name in CLASSES])
    if run.result.pfc.by_link:
        y += FONT + 5
        shares = (0.0, 0.25, 0.5, 0.75, 1.0)
        shades = [(PAUSE, f"{pause_opacity(share):.2f}", percent(share)) for share in shares[1:]]
        cells(y, "paused:", [(TRACK, None, "never"), *shades])
    return key_of_signs(drawing, y, signs(run)) + 8


# What the marks of the key look like.


def _paused_sign(drawing: Drawing, x: float, y: float) -> None:
    drawing.add("circle", cx=x + 7, cy=y - 4, r=4, fill=PAUSE)


def _waiting_sign(drawing: Drawing, x: float, y: float) -> None:
    drawing.arrow(x, y - 4, x + 15, y - 4, PAUSE, stroke_width=2.4)


def _dropped_sign(drawing: Drawing, x: float, y: float) -> None:
    drawing.rect(x + 1, y - 9, 13, 10, rx=3, fill="none", stroke=DROP, stroke_width=2)


def _cut_sign(drawing: Drawing, x: float, y: float) -> None:
    for turn in (1, -1):
        ends = x + 4, y - 4 - 3.5 * turn, x + 11, y - 4 + 3.5 * turn
        drawing.line(*ends, stroke=DROP, stroke_width=2)
