"""What can be wrong with a description of traffic, said in one message that names the cure.

TrafficError                anything a user can mend
|-- RankError               ranks with a gap, a duplicate or a stranger; groups that do not divide
|-- SizeError               nothing to send, or more than can be
|-- AlgorithmError          an operation or algorithm nobody knows, or a setting it cannot take
|-- ScheduleError           a graph of transfers that breaks its rules, or computes the wrong thing
|-- PlacementError          more ranks than hosts, or a policy that does not fit the racks
`-- SpecError               YAML that describes no traffic
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable


class TrafficError(Exception):
    """A mistake in a description of traffic, and its cure where there is one."""

    def __init__(self, message: str, cure: str | None = None) -> None:
        super().__init__(f"{message}; {cure}" if cure else message)
        self.message = message
        self.cure = cure


class RankError(TrafficError):
    """Ranks with a gap, a duplicate or a stranger; groups that do not divide."""


class SizeError(TrafficError):
    """Nothing to send, or more than can be."""


class AlgorithmError(TrafficError):
    """An operation or algorithm nobody knows, or a setting it cannot take."""


class ScheduleError(TrafficError):
    """A graph of transfers that breaks its rules, or computes the wrong thing."""


class PlacementError(TrafficError):
    """More ranks than hosts, or a policy that does not fit the racks."""


class SpecError(TrafficError):
    """YAML that describes no traffic."""


def nearest(word: str, known: Iterable[str]) -> str:
    """A cure for a misspelt word: the known one that looks most like it, and all of them."""
    names = list(known)
    near = difflib.get_close_matches(word, names, n=1, cutoff=0.5)
    hint = f"did you mean '{near[0]}'? " if near else ""
    return f"{hint}known: {', '.join(names)}"
