"""How many times as long as alone messages took, by their sizes.

Messages are put in order of their sizes and cut into bins of about as many each; those of one size
stay together. Of each bin there is what half of them did not exceed, and 95, 99 and 99.9 per cent:
what papers on congestion control draw of a load of mixed flows.
"""

from __future__ import annotations

from typing import NamedTuple

from params.quantity import BYTES, PLAIN, number, size
from traffic.measures import percentile
from views.report.charts import lines
from views.report.kept import KeptRun
from views.report.svg import Drawing

_BINS = 10
_ENOUGH, _VARIED = 200, 5  # messages, and bins, of which it says something
_SHARES = (50, 95, 99, 99.9)
NAMES = ("median", "95 %", "99 %", "99.9 %")


class SizeBin(NamedTuple):
    """Messages of similar sizes."""

    least: int  # bytes
    most: int
    messages: int
    p50: float
    p95: float
    p99: float
    p99_9: float


def by_size(run: KeptRun) -> list[SizeBin]:
    """The bins of all messages that arrived, the smallest first."""
    whole = sorted((flow.bytes, flow.slowdown) for flow in run.flows if flow.slowdown is not None)
    bins: list[SizeBin] = []
    begun = 0
    for at, (of_bytes, _) in enumerate(whole, 1):
        is_last_of_size = at == len(whole) or whole[at][0] != of_bytes
        is_full = (at - begun) * (_BINS - len(bins)) >= len(whole) - begun
        if is_last_of_size and is_full:
            inside = sorted(slowdown for _, slowdown in whole[begun:at])
            bins.append(_bin(whole[begun][0], of_bytes, inside))
            begun = at
    return bins


def _bin(least: int, most: int, ordered: list[float]) -> SizeBin:
    found = (percentile(ordered, share) for share in _SHARES)
    return SizeBin(least, most, len(ordered), *found)


def slowdowns(run: KeptRun) -> Drawing | None:
    """The same as lines over sizes; None where messages are few, or all alike."""
    bins = by_size(run)
    if sum(each.messages for each in bins) < _ENOUGH or len(bins) < _VARIED:
        return None
    middle = [(each.least * each.most) ** 0.5 for each in bins]
    series = {
        name: dict(zip(middle, (each[3 + at] for each in bins), strict=True))
        for at, name in enumerate(NAMES)
    }
    first, last = bins[0], bins[-1]
    rows = (
        f"How many times as long as alone messages took, by size: up to {size(first.most)} half "
        f"took {number(first.p50)} times or less and 99 % {number(first.p99)}, from "
        f"{size(last.least)} on {number(last.p50)} and {number(last.p99)}."
    )
    return lines(rows, ("bytes", BYTES), ("times as long as alone", PLAIN), series, is_log=True)
