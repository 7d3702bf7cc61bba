"""What a formula may ask of a run, beside the figures of its result.json.

Which messages are meant is said by `part`, the name of what they belong to or a pair of hosts such
as "h1>h2", and by their sizes: more than `least`, up to `most` bytes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import cached_property
from itertools import pairwise
from pathlib import Path

from lab.errors import LabError
from lab.scenario.keys import nearest
from traffic.measures import percentile
from views.report.kept import KeptFlow, KeptRun, read_run

_BEYOND = 1 << 62


class Observed:
    """A run, and what there is to ask of it; its files are read when somebody does."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    @cached_property
    def run(self) -> KeptRun:
        """The run as it was kept."""
        return read_run(self._folder)

    def figure(self, key: str) -> float:
        """What stands at a place of its result.json."""
        try:
            found = self.run.result.figure(key)
        except AttributeError:
            raise LabError(f"a result has no '{key}'", "result.json shows what it has.") from None
        if not isinstance(found, int | float):
            raise LabError(f"'{key}' is no number of this run")
        return found

    def flows(self, part: str = "", least: float = 0, most: float = _BEYOND) -> list[KeptFlow]:
        """The messages that are meant, all of which must have arrived."""
        src, is_pair, dst = part.partition(">")
        found = [
            flow
            for flow in self.run.flows
            if least < flow.bytes <= most
            and ((flow.src, flow.dst) == (src, dst) if is_pair else part in ("", flow.what))
        ]
        if not found:
            known = ", ".join(sorted({flow.what for flow in self.run.flows})[:8])
            which = f"'{part}' of {least:g} to {most:g} bytes"
            raise LabError(f"there is no message of {which}", f"There are: {known}.")
        return found


def _times(run: Observed, part: str, least: float, most: float) -> list[float]:
    return sorted(
        float(flow.fct_ns) for flow in run.flows(part, least, most) if flow.fct_ns is not None
    )


def fct(
    run: Observed, share: float, part: str = "", least: float = 0, most: float = _BEYOND
) -> float:
    """The completion time that so many per cent of messages do not exceed, in ns."""
    return percentile(_some(_times(run, part, least, most), part), share)


def mean_fct(run: Observed, part: str = "", least: float = 0, most: float = _BEYOND) -> float:
    """The mean completion time, in ns."""
    times = _some(_times(run, part, least, most), part)
    return sum(times) / len(times)


def slowdown(
    run: Observed, share: float, part: str = "", least: float = 0, most: float = _BEYOND
) -> float:
    """The same of how many times as long as alone messages took."""
    return percentile(_some(sorted(_slowdowns(run, part, least, most)), part), share)


def mean_slowdown(run: Observed, part: str = "", least: float = 0, most: float = _BEYOND) -> float:
    """Its mean."""
    found = _some(list(_slowdowns(run, part, least, most)), part)
    return sum(found) / len(found)


def _slowdowns(run: Observed, part: str, least: float, most: float) -> Iterator[float]:
    for flow in run.flows(part, least, most):
        if flow.slowdown is not None:
            yield flow.slowdown


def _some(found: list[float], part: str) -> list[float]:
    if not found:
        raise LabError(f"no message of '{part}' arrived")
    return found


def count(run: Observed, part: str = "", least: float = 0, most: float = _BEYOND) -> float:
    """How many messages there were."""
    return len(run.flows(part, least, most))


def gbps(run: Observed, part: str = "") -> float:
    """How fast messages went, from when the first was posted until the last had arrived."""
    flows = [flow for flow in run.flows(part) if flow.fct_ns is not None]
    began = min((flow.start_ns or 0 for flow in flows), default=0)
    ended = max(((flow.start_ns or 0) + (flow.fct_ns or 0) for flow in flows), default=0)
    return 8 * sum(flow.bytes for flow in flows) / max(1, ended - began)


def queue(
    run: Observed, share: float, link: str, since: float = 0, until: float = _BEYOND
) -> float:
    """The queue for a direction of a link that was not exceeded for so many per cent of time."""
    lengths = sorted(_lengths(run, link, since, until))
    whole = sum(lasted for _, lasted in lengths)
    passed = 0.0
    for length, lasted in lengths:
        passed += lasted
        if passed >= whole * share / 100:
            return length
    raise LabError(f"nothing was noted of {link}", "Set measures.series to true.")


def _lengths(run: Observed, link: str, since: float, until: float) -> Iterator[tuple[int, float]]:
    """Queues, and how long each lasted."""
    notes = run.run.notes_of.get(link, [])
    end = min(until, run.run.end_ns)
    if not notes:
        return
    yield 0, max(0.0, min(notes[0].time_ns, end) - since)
    for before, after in pairwise(
        [(note.time_ns, note.queue_bytes) for note in notes] + [(end, 0)]
    ):
        lasted = min(after[0], end) - max(before[0], since)
        if lasted > 0:
            yield before[1], lasted


def carried(run: Observed, link: str, since: float, until: float) -> float:
    """How fast a direction of a link carried frames in a stretch of time, in Gb/s."""
    notes = run.run.notes_of.get(link, [])
    if not notes:
        raise LabError(f"nothing was noted of {link}", "Set measures.series to true.")
    first, last = (
        max((note.bytes for note in notes if note.time_ns <= at), default=0)
        for at in (since, until)
    )
    return 8 * (last - first) / (until - since)


def utilisation(run: Observed, link: str) -> float:
    """The share of the run in which a direction of a link carried something."""
    found = {use.name: use.utilisation for use in run.run.result.links}
    if link not in found:
        raise LabError(f"there is no direction '{link}'" + nearest(link, found))
    return found[link]


FUNCTIONS: Mapping[str, Callable[..., float]] = {
    "fct": fct,
    "mean_fct": mean_fct,
    "slowdown": slowdown,
    "mean_slowdown": mean_slowdown,
    "count": count,
    "gbps": gbps,
    "queue": queue,
    "carried": carried,
    "utilisation": utilisation,
}
