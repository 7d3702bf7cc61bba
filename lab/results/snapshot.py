"""A run at a moment, for whoever watches it: a program, the page, a metrics collector.

    Note, of every direction ─► Looker ─► Snapshot ─► lab/api.py, views/live/

Where the notes come from differs: from the simulator between two slices, from what emulated
switches write down, or from a run that was kept. What is made of them does not.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import field
from typing import NamedTuple

from lab.results.outcome import Note, SwitchCounts
from params.data import Data
from topologies import Fabric


class Way(NamedTuple):
    """A direction of a link at a moment."""

    queue_bytes: int  # of data that waits to be sent into it
    bytes: int  # carried since the run began
    utilisation: float  # share of its rate, since the snapshot before
    paused: float  # share of the time since the snapshot before that its sender stood still
    paused_ns: int  # since the run began, all classes together
    marked: int  # packets, since the run began
    dropped: int  # packets, since the run began, by the switch that sends into it


class Happening(NamedTuple):
    """Something that happened."""

    time_ns: int
    kind: str  # fault, reroute, storm, watchdog, pause, drop, hand
    what: str  # in words
    link: str = ""  # the direction or cable it happened to, if to one


class Message(NamedTuple):
    """A message under way."""

    src: str
    dst: str
    bytes: int
    since_ns: int
    what: str = ""  # the activity it belongs to


class Messages(Data):
    """How far messages are."""

    count: int | None = None  # that there are; None: nobody knows
    done: int | None = None
    under_way: tuple[Message, ...] = ()  # the first of them


class Books(Data):
    """What switches have counted by some time, as a result has it at the end."""

    time_ns: int
    switches: Mapping[str, SwitchCounts]
    longest: Mapping[str, int]  # by direction: the most bytes that its queue held


class Snapshot(Data):
    """How everything is at a moment."""

    time_ns: int
    links: Mapping[str, Way]  # by direction, such as leaf1>spine2
    messages: Messages = Messages()
    events: tuple[Happening, ...] = ()  # since the snapshot before
    dead: frozenset[str] = frozenset()  # cables that are cut
    is_last: bool = False  # the run is over
    books: Books | None = None  # the latest; none: nobody has any


class Looker(Data, frozen=False):
    """Makes snapshots of notes, one after the other."""

    rates: Mapping[str, float]  # by direction: bytes a nanosecond; 0: nobody knows
    _before: dict[str, Note] = field(default_factory=dict)
    _at_ns: int = 0
    _seen: set[str] = field(default_factory=set)  # what is told once

    def look(
        self,
        time_ns: int,
        notes: Iterable[Note],
        messages: Messages = Messages(),
        events: Iterable[Happening] = (),
        dead: frozenset[str] = frozenset(),
        *,
        is_last: bool = False,
    ) -> Snapshot:
        """How things are now; a direction that nobody noted has not moved, and holds nothing."""
        took_ns = time_ns - self._at_ns
        news = list(events)
        now = {note.link: note for note in notes}
        links = {}
        for name, rate in self.rates.items():
            before = self._before.get(name) or Note(0, name, 0, 0, 0, 0, 0)
            note = now.get(name) or before
            if note is before and before.queue_bytes:
                note = before._replace(queue_bytes=0)
            carried, stood = note.bytes - before.bytes, note.paused_ns - before.paused_ns
            links[name] = Way(
                note.queue_bytes,
                note.bytes,
                carried / took_ns / rate if took_ns > 0 and rate else 0.0,
                min(1.0, max(0.0, stood / took_ns)) if took_ns > 0 else 0.0,
                note.paused_ns,
                note.marked,
                note.dropped,
            )
            if note is not before:
                news += self._firsts(time_ns, note)
                self._before[name] = note
        self._at_ns = time_ns
        news.sort(key=lambda event: event.time_ns)
        return Snapshot(time_ns, links, messages, tuple(news), dead, is_last)

    def _firsts(self, time_ns: int, note: Note) -> list[Happening]:
        """What of a direction happened for the first time."""
        found = []
        sender = note.link.partition(">")[0]
        if note.paused_ns > 0 and self._is_new(f"pause {note.link}"):
            found.append(Happening(time_ns, "pause", f"{note.link} stands still", note.link))
        if note.dropped > 0 and self._is_new(f"drop {sender}"):
            found.append(Happening(time_ns, "drop", f"{sender} drops packets", note.link))
        return found

    def _is_new(self, what: str) -> bool:
        if what in self._seen:
            return False
        self._seen.add(what)
        return True


def rates_of(fabric: Fabric, bps: Mapping[str, int]) -> dict[str, float]:
    """The directions of all links in their order, and their rates in bytes a nanosecond."""
    return {name: bps.get(link.name, 0) / 8e9 for link in fabric.links for name in link.directions}
