"""A large fabric as strips: a cell a switch, as dark as the busiest of its links.

    cores     ▒▒█▒▒▒▒▒
    spines    ▒▒▒▒ ▒▒█▒      a gap between pods
    leaves, up      by spine where there are few: a row a spine, a column a leaf
    leaves, hosts
    paused, dropped, the number of every so manieth leaf, and what is the matter with which

Lines between hundreds of switches show nothing; cells do, and say the rest where a pointer rests.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import field
from itertools import groupby
from typing import NamedTuple

from params.data import Data
from params.quantity import packets, percent
from topologies import Fabric, Link, Node, NodeKind
from views.report.kept import KeptRun
from views.report.palette import DROP, FAINT, PAUSE, TRACK
from views.report.parts import part_of, parts
from views.report.parts import pods as pods_of
from views.report.signs import Sign, shape, signs, wide
from views.report.svg import WIDTH, Drawing, width_of

_LEFT = 76.0  # of the cells, beside the names of rows
_GAP = 3.0  # between pods
_ROW = 16.0
_MAX_CELLS = 1024  # of a matrix
_MIN_PAUSED = 0.01

Shade = Callable[[float], str]


class Cell(NamedTuple):
    """What a switch's cell looks like, and what it tells of which directions."""

    fill: str
    tip: str
    kind: str = ""  # b: how busy they are, p: how long they were paused
    directions: tuple[str, ...] = ()


class Shares(Data):
    """What strips show of a fabric; what was neither paused nor dropped has no row."""

    fabric: Fabric
    busy: Mapping[str, float]  # by direction
    paused: Mapping[str, float] | None = None  # the same; None: nobody knows yet
    dropped: Mapping[str, int] = field(default_factory=dict)  # by switch
    signs: Sequence[Sign] = ()
    parts: Mapping[Node, int] = field(default_factory=dict)  # by switch: which one a click unfolds

    @classmethod
    def of(cls, run: KeptRun, busy: Mapping[str, float]) -> Shares:
        """What came of a run."""
        by_link = run.result.pfc.by_link
        paused = {name: min(1.0, each.paused_ns / run.end_ns) for name, each in by_link.items()}
        by_switch = part_of(parts(run.fabric))
        return cls(run.fabric, busy, paused, run.result.drops.by_switch, signs(run), by_switch)


def strips(drawing: Drawing, shares: Shares, shade: Shade, y: float) -> float:
    """Draw them from this height on downwards; where they end."""
    fabric, busy = shares.fabric, shares.busy
    pods = pods_of(fabric)
    links: dict[Node, list[Link]] = {}
    for link in fabric.links:
        for end in (link.a, link.b):
            links.setdefault(end, []).append(link)

    def busiest(of: Sequence[Link]) -> float:
        return max((busy[name] for link in of for name in link.directions), default=0.0)

    def up(switch: Node) -> list[Link]:
        return [link for link in links[switch] if link.a == switch]

    def down(switch: Node) -> list[Link]:
        return [link for link in links[switch] if link.b == switch]

    def cells(of: Callable[[Node], list[Link]]) -> Callable[[Node], Cell]:
        def cell(switch: Node) -> Cell:
            most = busiest(of(switch))
            tip = f"{switch}: its busiest link {percent(most)}"
            return Cell(shade(most), tip, "b", _directions(of(switch)))

        return cell

    tiers = {kind: list(each) for kind, each in groupby(sorted(fabric.switches), _kind)}
    leaves = sorted(tiers[NodeKind.LEAF], key=lambda leaf: (pods[leaf], leaf))
    for kind in (NodeKind.CORE, NodeKind.SPINE):
        switches = sorted(tiers.get(kind, ()), key=lambda switch: (pods[switch], switch))
        if switches and (kind is NodeKind.CORE or NodeKind.CORE in tiers):
            y = _said(drawing, y, switches, "by their busiest link")
            columns = _Columns(switches, pods, shares.parts)
            y = _row(drawing, y, columns, "", cells(links.__getitem__))
    columns = _Columns(leaves, pods, shares.parts)
    y = _said(drawing, y, leaves, "each a column, by the busier direction of their links")
    spines = tiers.get(NodeKind.SPINE, [])
    is_matrix = NodeKind.CORE not in tiers and len(spines) * len(leaves) <= _MAX_CELLS
    for spine in spines if is_matrix else ():
        y = _row(drawing, y, columns, f"to {spine}", _towards(spine, up, busiest, shade)) - 2
    if not is_matrix:
        y = _row(drawing, y, columns, "links up", cells(up)) - 2
    y = _row(drawing, y + 4, columns, "to hosts", cells(down))
    paused = {leaf: _paused(shares.paused or {}, links[leaf]) for leaf in leaves}
    if shares.paused is None or any(paused.values()):

        def stood(leaf: Node) -> Cell:
            share = paused[leaf]
            tip = f"{leaf}: a direction paused {percent(share)}"
            return Cell(PAUSE if share else TRACK, tip, "p", _directions(links[leaf]))

        strength = {leaf: pause_opacity(share) for leaf, share in paused.items() if share}
        y = _row(drawing, y, columns, "paused", stood, strength)
    dropped = shares.dropped
    if any(leaf.name in dropped for leaf in leaves):

        def lost(leaf: Node) -> Cell:
            count = dropped.get(leaf.name, 0)
            return Cell(DROP if count else TRACK, f"{leaf}: dropped {packets(count)}")

        y = _row(drawing, y, columns, "dropped", lost)
    y = _numbers(drawing, y, columns)
    y = _signs(drawing, y, shares, columns)
    if len(set(pods.values())) > 1:
        drawing.text(0, y + 8, "A gap stands between pods.", class_="tick")
        y += 16
    return y


def pause_opacity(share: float) -> float:
    """How strong the colour of a pause is that took such a share of the run; looks.js has it
    as well."""
    return 0.25 + 0.75 * share


def _numbers(drawing: Drawing, y: float, columns: _Columns) -> float:
    """The number of every so manieth column below it; where that ends."""
    step = next(1 << power for power in range(32) if (1 << power) * columns.step >= 24)
    drawing.text(0, y + 9, "leaf", class_="tick")
    for at in range(0, len(columns.switches), step):
        x = columns.left(at) + columns.wide / 2
        drawing.line(x, y - 4, x, y - 1, stroke=FAINT)
        number = str(columns.switches[at].number)
        drawing.text(x, y + 9, number, text_anchor="middle", class_="tick")
    return y + 16


def _signs(drawing: Drawing, y: float, shares: Shares, columns: _Columns) -> float:
    """Who is to blame and who suffers, below its column; where that ends."""
    fabric = shares.fabric
    for sign in shares.signs:
        begin, _, end = sign.where.partition(">")
        nodes = [fabric.node(name.partition(".")[0]) for name in (begin, end) if name]
        near = [fabric.leaf_of(n) if n.kind is NodeKind.HOST else n for n in nodes]
        leaf = next((node for node in near if node in columns.place), None)
        if leaf is None:
            continue
        x = columns.left(columns.place[leaf]) + columns.wide / 2
        said = f"{sign.what}: {sign.where}" + ("" if leaf in nodes else f" at {leaf}")
        needs = wide(said)
        text = min(max(0.0, x - 7), WIDTH - needs)
        drawing.line(x, y - 4, text + 7, y + 4, stroke=FAINT)
        shape(drawing, text + 7, y + 8, sign.what)
        drawing.text(text + 16, y + 12, said, class_="strong")
        y += 18
    return y


class _Columns:
    """Where the cells of a row are, with gaps between pods."""

    def __init__(
        self, switches: Sequence[Node], pods: Mapping[Node, int], parts: Mapping[Node, int]
    ) -> None:
        self.switches, self.parts = switches, parts
        gaps = pods[switches[-1]] - pods[switches[0]]
        self._gap = min(_GAP, 0.3 * (WIDTH - _LEFT) / max(1, gaps))
        self._before = [pods[switch] - pods[switches[0]] for switch in switches]
        self.step = (WIDTH - _LEFT - gaps * self._gap) / len(switches)
        self.wide = self.step - min(1.0, 0.15 * self.step)
        self.place = {switch: at for at, switch in enumerate(switches)}

    def left(self, at: int) -> float:
        """Where a cell begins."""
        return _LEFT + at * self.step + self._before[at] * self._gap


def _kind(node: Node) -> NodeKind:
    return node.kind


def _towards(
    spine: Node,
    up: Callable[[Node], list[Link]],
    busiest: Callable[[Sequence[Link]], float],
    shade: Shade,
) -> Callable[[Node], Cell]:
    """The cells of a spine's row."""

    def cell(leaf: Node) -> Cell:
        found = [link for link in up(leaf) if link.b == spine]
        most = busiest(found)
        fill = shade(most) if found else "none"
        return Cell(fill, f"{leaf}-{spine}: {percent(most)}", "b", _directions(found))

    return cell


def _directions(links: Sequence[Link]) -> tuple[str, ...]:
    return tuple(name for link in links for name in link.directions)


def _paused(shares: Mapping[str, float], links: Sequence[Link]) -> float:
    """The longest that a direction at a switch stood still, as a share of the time."""
    share = max(shares.get(name, 0.0) for link in links for name in link.directions)
    return share if share >= _MIN_PAUSED else 0.0


def _said(drawing: Drawing, y: float, switches: Sequence[Node], how: str) -> float:
    drawing.text(0, y + 10, f"{min(switches)} to {max(switches)}, {how}", class_="tick")
    return y + 16


def _row(
    drawing: Drawing,
    y: float,
    columns: _Columns,
    name: str,
    cell: Callable[[Node], Cell],
    strength: Mapping[Node, float] | None = None,
) -> float:
    """A cell a switch; where the next row begins."""
    assert width_of(name) <= _LEFT
    drawing.text(0, y + 10, name, class_="tick")
    for at, switch in enumerate(columns.switches):
        shown = cell(switch)
        moves = {f"data_{shown.kind}": drawing.moves(shown.directions)} if shown.kind else {}
        drawing.rect(
            *(columns.left(at), y, columns.wide, _ROW - 5),
            fill=shown.fill,
            fill_opacity=f"{strength[switch]:.2f}" if strength and switch in strength else None,
            tip=shown.tip,
            data_part=columns.parts.get(switch),
            **moves,
        )
    return y + _ROW
