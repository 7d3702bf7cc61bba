"""What machines have measured of a run, put together as if one had."""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import chain
from operator import attrgetter
from typing import TypeVar

from lab.engines.mininet.endpoints import Doubts, Measured, most_late_ns
from lab.results.outcome import MachinesNote, Outcome
from lab.results.telemetry import Tally
from lab.scenario.experiment import Experiment
from params.quantity import duration
from traffic.collectives import Timeline

K = TypeVar("K")
V = TypeVar("V")
_DRIFT = "clocks of machines pass unlike, which NTP or PTP mends and slower motion does not"
_in_time = attrgetter("time_ns")


def merged(
    experiment: Experiment, parts: Sequence[Measured], note: MachinesNote, names: Mapping[str, str]
) -> Outcome:
    """All of it, judged as one run; ``names`` are those of directions between machines."""
    outcomes = [part.outcome for part in parts]
    fabric = experiment.fabric
    settled = [part.settled for part in parts]
    whole = replace(
        outcomes[0],
        timeline=Timeline(
            _latest([each.timeline.start_ns for each in outcomes]),
            _latest([each.timeline.end_ns for each in outcomes]),
        ),
        switches=_in_order(fabric.switches, [each.switches for each in outcomes]),
        endpoints=_in_order(fabric.hosts, [each.endpoints for each in outcomes]),
        end_ns=max(each.end_ns for each in outcomes),
        max_queue_bytes=_all([each.max_queue_bytes for each in outcomes]),
        books=_in_order(fabric.switches, [each.books for each in outcomes]),
        is_settled=all(each.is_settled for each in outcomes),
        notes=tuple(sorted(chain(*(each.notes for each in outcomes)), key=_in_time)),
        stocks=tuple(sorted(chain(*(each.stocks for each in outcomes)), key=_in_time)),
        pauses=tuple(sorted(chain(*(each.pauses for each in outcomes)), key=_in_time)),
        ways=tuple(sorted(chain(*(each.ways for each in outcomes)), key=_in_time)),
        telemetry=_told([each.telemetry for each in outcomes if each.telemetry is not None]),
        stands=[*chain(*(each.stands for each in outcomes))],
        machines=note,
    )
    return Measured(
        whole,
        None if None in settled else _all([each for each in settled if each is not None]),
        _doubts(experiment, [part.doubts for part in parts], note),
    ).judged(experiment, names)


def _doubts(experiment: Experiment, all_doubts: Sequence[Doubts], note: MachinesNote) -> Doubts:
    """What speaks against any part, and against what lies between them."""
    apart = {}
    because = [each.because for each in all_doubts if each.because]
    most_ns = most_late_ns(experiment)
    if note.clock_error_ns > most_ns:
        times = -(-note.clock_error_ns // most_ns)
        apart[f"clocks of machines were {duration(note.clock_error_ns)} apart"] = int(times)
        if note.drift_ns > most_ns:  # by more, the longer it lasts
            because.append(_DRIFT)
    for link in experiment.fabric.links:
        if extra_ns := note.longer.get(link.name):
            delay_ns = experiment.cable(link).delay_ns
            says = f"{link.name} was {duration(extra_ns)} longer than its {duration(delay_ns)}"
            apart[f"{says}, by the way between its machines"] = -(
                -(extra_ns + delay_ns) // delay_ns
            )
    return Doubts(
        max(each.hosts_late_ns for each in all_doubts),
        max(each.switches_late_ns for each in all_doubts),
        _all([each.lost for each in all_doubts]),
        behind_ns=max(each.behind_ns for each in all_doubts),
        because=", ".join(because) or None,
        apart=apart,
    )


def _told(tallies: Sequence[Tally]) -> Tally | None:
    """What reports told, to whichever machine."""
    if not tallies:
        return None
    whole, *others = tallies
    for other in others:
        whole.add_all(other)
    return whole


def _in_order(keys: Iterable[K], pieces: Sequence[Mapping[K, V]]) -> dict[K, V]:
    """What each has of them, as one would have all."""
    return {key: piece[key] for key in keys for piece in pieces if key in piece}


def _all(pieces: Sequence[Mapping[K, V]]) -> dict[K, V]:
    return {key: value for piece in pieces for key, value in piece.items()}


def _latest(columns: Sequence[Sequence[int]]) -> array[int]:
    """By transfer, what somebody knows who is not `NEVER`."""
    return array("q", map(max, zip(*columns, strict=True)))
