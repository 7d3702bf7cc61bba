"""A switch's buffer over time against its thresholds: what is shared, headroom, each class."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence

from lab.results.outcome import Stock
from lab.scenario.memory import Memory
from params.data import Data
from params.quantity import NANOSECONDS, duration, size
from views.report.kept import KeptRun
from views.report.noted import over_time
from views.report.palette import DROP, FAINT, PAUSE, QUEUE, QUEUE_FILL
from views.report.svg import WIDTH, Drawing, Line, Scale, linear, x_axis

SCALE_ROOM = 50.0  # on the right of what has a scale of its own in every row
_LEFT, _RIGHT, _AXIS = 126.0, WIDTH - SCALE_ROOM, 32.0
_HEIGHT = 74.0
_POINTS = 260
_LITTLE = 0.02  # of what there is to share: below it there is nothing to see


class _Strip(Data):
    """Something that fills up, and what limits it."""

    name: str
    detail: str
    filled: Line
    limit: Line
    limit_name: str
    colour: str  # of the limit

    @property
    def most(self) -> float:
        """What a scale of its own reaches."""
        return max(_peak(self.filled), _peak(self.limit))


def fullest(runs: Iterable[KeptRun]) -> str | None:
    """The switch that held most, in any of several runs."""
    held: dict[str, int] = {}
    for stock in (stock for run in runs for stock in run.stocks):
        here = stock.pool_bytes + stock.headroom_bytes
        held[stock.switch] = max(held.get(stock.switch, 0), here)
    return max(held, key=lambda name: (held[name], name)) if held else None


def scales(runs: Sequence[KeptRun], name: str) -> dict[str, float]:
    """By strip of a switch's buffer: what its scale must reach, so that it is one for all runs."""
    found: dict[str, float] = {}
    for run in runs if len(runs) > 1 else ():
        mine = [stock for stock in run.stocks if stock.switch == name]
        if mine:
            for strip in _strips(run, name, mine, Memory.of(run.result.scenario, run.fabric, name)):
                found[strip.name] = max(found.get(strip.name, 0.0), strip.most)
    return found


def buffer(
    run: KeptRun, end_ns: float, name: str | None, scales: Mapping[str, float]
) -> Drawing | None:
    """A switch's; nothing of one that held nothing to speak of."""
    mine = [stock for stock in run.stocks if stock.switch == name]
    if name is None or not mine:
        return None
    memory = Memory.of(run.result.scenario, run.fabric, name)
    strips = _strips(run, name, mine, memory)
    if _peak(strips[0].filled) < _LITTLE * memory.pool and not run.result.drops.total:
        return None
    time = linear(end_ns, _LEFT, _RIGHT)
    top = 6.0
    bottom = top + _HEIGHT * len(strips)
    summary = "; ".join(f"{strip.name}: {strip.detail}" for strip in strips)
    drawing = Drawing(
        bottom + _AXIS + 4, f"The buffer of {name} over {duration(run.end_ns)}. {summary}."
    )
    x_axis(drawing, time, bottom, "time", NANOSECONDS, top=top)
    for row, strip in enumerate(strips):
        most = scales.get(strip.name, strip.most)
        _draw(drawing, strip, time, top + row * _HEIGHT, most)
    return drawing


def _strips(run: KeptRun, name: str, mine: Sequence[Stock], memory: Memory) -> list[_Strip]:
    pool = memory.pool
    shared = _line(run, mine, lambda stock: stock.pool_bytes, max)

    def level(held: Line, most: int) -> tuple[str, Line]:
        detail = f"peak {size(_peak(held))}, of {size(most)}"
        return detail, [(0, most), (run.end_ns, most)]

    detail, limit = level(shared, pool)
    strips = [_Strip(f"{name}: shared", detail, shared, limit, "all there is to share", FAINT)]
    if memory.lossless:
        held = _line(run, mine, lambda stock: stock.headroom_bytes, sum)
        detail, limit = level(held, memory.headroom)
        strips.append(_Strip("headroom", detail, held, limit, "full: loss beyond it", DROP))
    for priority in sorted({stock.priority for stock in mine}):
        of_class = [stock for stock in mine if stock.priority == priority]
        most = max(of_class, key=lambda stock: stock.queue_bytes)
        is_lossless = priority in memory.lossless
        strips.append(
            _Strip(
                f"class {priority}: fullest",
                f"peak {size(most.queue_bytes)}, {most.link}",
                _line(run, of_class, lambda stock: stock.queue_bytes, max),
                _thresholds(run, shared, memory, priority),
                "XOFF beyond it" if is_lossless else "drops beyond it",
                PAUSE if is_lossless else DROP,
            )
        )
    return strips


def _thresholds(run: KeptRun, shared: Line, memory: Memory, priority: int) -> Line:
    """What a queue of a class might hold over time, while so much of the pool was taken."""
    held = shared if shared[-1][0] >= run.end_ns else [*shared, (run.end_ns, shared[-1][1])]
    return [(at, memory.threshold(priority, bytes_)) for at, bytes_ in held]


def drop_threshold(run: KeptRun, switch: str) -> Line:
    """What a queue of RoCE's class may hold over time at a switch; nothing if it loses none."""
    scenario = run.result.scenario
    mine = [stock for stock in run.stocks if stock.switch == switch]
    if not mine or scenario.pfc.enabled:
        return []
    memory = Memory.of(scenario, run.fabric, switch)
    shared = _line(run, mine, lambda stock: stock.pool_bytes, max)
    return _thresholds(run, shared, memory, min(scenario.pfc.priorities))


def _line(
    run: KeptRun,
    stocks: Sequence[Stock],
    of: Callable[[Stock], int],
    together: Callable[[Iterable[int]], int],
) -> Line:
    """A quantity over time: of what was noted at a moment, a class each, the most or the sum."""
    by_moment: dict[int, list[Stock]] = {}
    for stock in stocks:
        by_moment.setdefault(stock.time_ns, []).append(stock)
    values = ((at, together(map(of, found))) for at, found in sorted(by_moment.items()))
    return over_time(run, values, _POINTS, to_the_end=True)


def _peak(line: Line) -> float:
    return max(value for _, value in line)


def _draw(drawing: Drawing, strip: _Strip, time: Scale, y: float, most: float) -> None:
    base = y + _HEIGHT - 10
    depth = linear(most, base, y + 18)
    points = [(time(at), depth(value)) for at, value in strip.filled if at <= time.high]
    outline = [(points[0][0], base), *points, (points[-1][0], base)]
    drawing.polyline(outline, fill=QUEUE_FILL, tip=f"{strip.name} {strip.detail}")
    drawing.polyline(points, stroke=QUEUE, stroke_width=1.3)
    drawing.line(time.start, base, time.end, base, stroke=FAINT)
    limit = [(time(at), depth(value)) for at, value in strip.limit if at <= time.high]
    limit.append((time.end, limit[-1][1]))
    drawing.polyline(limit, stroke=strip.colour, stroke_width=1.4, stroke_dasharray="4 3")
    name = strip.limit_name
    drawing.text(time.end, y + 12, name, text_anchor="end", fill=strip.colour, class_="tick")
    drawing.text(
        time.end + 4, depth(_peak(strip.limit)) + 4, size(_peak(strip.limit)), class_="tick"
    )
    drawing.text(0, y + 18, strip.name, class_="strong")
    head, _, rest = strip.detail.partition(", ")
    drawing.text(0, y + 33, head, class_="tick")
    drawing.text(0, y + 47, rest, class_="tick")
