"""A quantity over time, from what was noted of it now and then, as a line with not too many points.

Nothing is noted where nothing happens: where for long no note was taken all was idle.
"""

from __future__ import annotations

from collections.abc import Iterable

from views.report.kept import KeptRun
from views.report.svg import Line

LONG = 3  # times the usual distance of notes


def over_time(
    run: KeptRun, values: Iterable[tuple[int, int]], points: int, *, to_the_end: bool = False
) -> Line:
    """Of values at moments, in order, the most of each of so many stretches of a run."""
    stretch = max(1, run.end_ns // points)
    peaks: dict[int, tuple[int, int]] = {}  # by stretch: its last moment, and the most there was
    for at, value in values:
        _, so_far = peaks.get(at // stretch, (0, 0))
        peaks[at // stretch] = at, max(so_far, value)
    interval, long = run.usual_interval_ns, LONG * max(run.usual_interval_ns, stretch)
    line: Line = [(0, 0)]
    for at, value in peaks.values():
        if at - line[-1][0] > long:
            line += [(line[-1][0] + interval, 0), (at - interval, 0)]
        line.append((at, value))
    if to_the_end and run.end_ns - line[-1][0] > long:
        line += [(line[-1][0] + interval, 0), (run.end_ns, 0)]
    return line
