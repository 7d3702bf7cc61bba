"""What happens on an emulated fabric while it happens, from what its switches write down.

The process that hosts the switches appends a line for each of them at intervals
(`switch/recorder.py`). Whoever shows progress reads the latest; after the run all of it becomes the
notes that a result keeps over time. Times there are the fabric's: from the moment hosts began,
divided by the dilation.
"""

from __future__ import annotations

import json
import os
from collections import Counter, deque
from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import field
from functools import cached_property
from itertools import chain
from pathlib import Path
from typing import Any, BinaryIO

from controller.tables import DROP_REASONS, IN_SUM, queue_index
from lab.results.counts import QUEUE_GATE, Reading, Wanted
from lab.results.outcome import Gist, Note, PauseNote, Stock, SwitchCounts, Traffic
from params.classes import PRIORITIES
from params.data import Data
from topologies import Fabric, Link, Node

_MAX_NOTES = 100_000
_MAX_SKIMMED = 12_000  # lines: some seconds' work
_NOTHING_READ = Reading({}, {}, 0)
_IN_USED, _IN_HEADROOM, _OUT_USED, _POOL_USED = (
    f"buffer_{name}" for name in ("in_used", "in_headroom", "out_used", "pool_used")
)


def cells_of(fabric: Fabric, switch: Node) -> dict[str, dict[str, tuple[int, int]]]:
    """What is to be written down of a switch, in the words of its configuration."""
    wanted = Wanted.at(fabric.ports(switch))
    queues = wanted.registers[QUEUE_GATE]
    stock = {**dict.fromkeys((_IN_USED, _IN_HEADROOM, _OUT_USED), queues), _POOL_USED: range(1)}
    return {
        "counters": {name: (span.start, len(span)) for name, span in wanted.counters.items()},
        "registers": {
            name: (span.start, len(span)) for name, span in {**wanted.registers, **stock}.items()
        },
    }


class _Line(Data):
    """What one switch wrote down at a time."""

    at_ns: int
    switch: str
    ports: Mapping[int, tuple[int, int, int, int, int]]  # packets and bytes in, out; bytes queued
    cells: Reading
    missed: Mapping[int, int]  # by port, what came by it and found no room
    late: Mapping[int, int]  # how late, in the fabric's ns, switches served how often since before

    @classmethod
    def read(cls, line: bytes) -> _Line:
        """From what is written."""
        record: dict[str, Any] = json.loads(line)
        counters, registers = record["counters"], record["registers"]
        cells = Reading(
            {
                name: {int(cell): Traffic(*counted) for cell, counted in found.items()}
                for name, found in counters.items()
            },
            {
                name: {int(cell): value for cell, value in found.items()}
                for name, found in registers.items()
            },
            record["now_ns"],
            record["lost"],
        )
        ports = {int(port): tuple(counted) for port, counted in record["ports"].items()}
        missed = {int(port): frames for port, frames in record["missed"].items()}
        late = {int(late_ns): often for late_ns, often in record["late"].items()}
        return cls(record["at_ns"], record["switch"], ports, cells, missed, late)

    @property
    def dropped(self) -> int:
        """Packets that the program dropped."""
        reasons = self.cells.counters["dropped"].items()
        return sum(traffic.packets for at, traffic in reasons if DROP_REASONS[at] != IN_SUM)


class Watch(Data, frozen=False):
    """Reads what the switches write down."""

    fabric: Fabric
    path: Path
    remembers: bool = True  # all of it since it last forgot; else the latest only
    _lines: list[_Line] = field(default_factory=list)
    _longest: dict[str, int] = field(default_factory=dict)  # of queues, in what it forgot
    _file: int | None = None  # the one that was read last
    _offset: int = 0

    def read(self) -> None:
        """Take in what is new."""
        lines = self._unread()
        if not self.remembers:
            lines = lines[-self._two_rounds :]
            self._lines = self._lines[-self._two_rounds :]
        self._lines += map(_Line.read, lines)

    def skim(self) -> None:
        """Take in what is new, but of much of it only every so manieth round, and the last.

        What switches write down in an hour takes minutes to read where others want the machine.
        """
        lines = self._unread()
        older, last = lines[: -self._two_rounds], lines[-self._two_rounds :]
        stride = 1 + len(older) // _MAX_SKIMMED
        switches = len(self.fabric.switches)
        older = [line for at, line in enumerate(older) if at // switches % stride == 0]
        self._lines += map(_Line.read, chain(older, last))

    def forget(self) -> None:
        """What was before now counts no more, but for how long queues were.

        Else who keeps a fabric up for a day would keep all that it did.
        """
        latest: deque[_Line] = deque(maxlen=self._two_rounds)
        for line in chain(self._lines, map(_Line.read, self._unread())):
            latest.append(line)
            self._remember_queues([line])
        self._lines = [*latest]

    @property
    def _two_rounds(self) -> int:
        return 2 * len(self.fabric.switches)  # of which one is whole

    def _remember_queues(self, lines: Iterable[_Line]) -> None:
        queueing = (line for line in lines if line.switch in self._links)  # cables have no queues
        noted = longest_queues(note for line in queueing for note in self._notes(line, 0, 1))
        for link, queue_bytes in noted.items():
            self._longest[link] = max(queue_bytes, self._longest.get(link, 0))

    def _unread(self) -> list[bytes]:
        """The lines that are new; the file may have been begun anew meanwhile."""
        try:
            with self.path.open("rb") as file:
                number, lines = os.fstat(file.fileno()).st_ino, []
                if number != self._file:
                    with suppress(OSError), self._former.open("rb") as before:
                        if self._file in (None, os.fstat(before.fileno()).st_ino):
                            lines = self._lines_of(before)
                    self._file, self._offset = number, 0
                return lines + self._lines_of(file)
        except OSError:
            return []

    @property
    def _former(self) -> Path:
        return self.path.with_name(f"{self.path.name}.before")

    def _lines_of(self, file: BinaryIO) -> list[bytes]:
        file.seek(self._offset)
        whole, newline, _ = file.read().rpartition(b"\n")
        self._offset += len(whole) + len(newline)
        return whole.splitlines()

    def gist(self) -> tuple[int, Gist] | None:
        """How things are now, and since when by the monotonic clock."""
        self.read()
        latest = self._latest
        if not latest:
            return None
        notes = self.latest()
        longest = max(notes, key=lambda note: note.queue_bytes)
        held = (line.cells.is_held(port) for line in latest.values() for port in line.ports)
        return max(line.at_ns for line in latest.values()), Gist(
            into_hosts=sum(note.bytes for note in notes if note.link in self._into_hosts),
            longest=longest.link if longest.queue_bytes else None,
            queue_bytes=longest.queue_bytes,
            paused=sum(held),
            dropped=sum(line.dropped for line in latest.values()),
            marked=sum(note.marked for note in notes),
        )

    @property
    def at_ns(self) -> int:
        """When somebody looked last, by the monotonic clock; 0: nobody did."""
        return self._lines[-1].at_ns if self._lines else 0

    def latest(self) -> list[Note]:
        """How every direction of every link is now, if the switches say so."""
        self.read()
        return [note for line in self._latest.values() for note in self._notes(line, 0, 1)]

    def longest_queues(self) -> dict[str, int]:
        """The longest queues since the switches began to write."""
        self.read()
        self._remember_queues(self._lines)
        return dict(self._longest)

    def notes(self, epoch_ns: int, dilation: float) -> tuple[Note, ...]:
        """All of it since the hosts began, as a result keeps it."""
        self.read()
        began: dict[str, Note] = {}
        latest: dict[str, Note] = {}
        kept = []
        stride = max(1, len(self._lines) * len(self.fabric.links) // _MAX_NOTES)
        for number, line in enumerate(self._lines):
            for note in self._notes(line, epoch_ns, dilation):
                if note.time_ns <= 0:
                    began[note.link] = note
                    continue
                since_begun = _since(note, began.get(note.link))
                before = latest.get(note.link)
                if before is not None and since_begun.paused_ns < before.paused_ns:
                    since_begun = since_begun._replace(
                        paused_ns=before.paused_ns
                    )  # of a pause since its `now`
                latest[note.link] = since_begun
                is_news = before is None or since_begun[3:] != before[3:] or since_begun.queue_bytes
                if is_news and number // len(self.fabric.switches) % stride == 0:
                    kept.append(since_begun)
        return tuple(kept)

    def stocks(
        self, epoch_ns: int, dilation: float, lossless: Collection[int]
    ) -> tuple[Stock, ...]:
        """What switches held in their buffers since the hosts began."""
        self.read()
        stride = max(1, len(self._lines) // _MAX_NOTES)
        return tuple(
            stock
            for number, line in enumerate(self._lines)
            if number // len(self.fabric.switches) % stride == 0
            for stock in self._stocks(line, _fabric_ns(line, epoch_ns, dilation), lossless)
            if stock.time_ns > 0
        )

    def _stocks(self, line: _Line, at_ns: int, lossless: Collection[int]) -> list[Stock]:
        """What the classes of a switch held that held anything."""
        registers = line.cells.registers
        pool = registers.get(_POOL_USED, {}).get(0, 0)
        switch, links = self._links[line.switch]
        found = []
        for priority in PRIORITIES:
            cells = {port: queue_index(port, priority) for port in links}

            def of(name: str, cells: dict[int, int] = cells) -> dict[int, int]:
                values = registers.get(name, {})
                return {port: values.get(cell, 0) for port, cell in cells.items()}

            used, held = of(_IN_USED), of(_IN_HEADROOM)
            if not any(used.values()) and not any(held.values()):
                continue
            queues = used if priority in lossless else of(_OUT_USED)
            port, most = max(queues.items(), key=lambda item: item[1])
            link = links[port]
            peer = link.b if link.a == switch else link.a
            name = link.direction(peer if priority in lossless else switch) if most else ""
            sums = sum(used.values()), sum(held.values())
            found.append(Stock(at_ns, switch.name, priority, name, most, *sums, pool))
        return found

    def pauses(self, epoch_ns: int, dilation: float) -> tuple[PauseNote, ...]:
        """When the watchdog let queues go; pause frames themselves are not looked at here."""
        self.read()
        seen: dict[str, Reading] = {}
        found = []
        for line in self._lines:
            switch, links = self._links[line.switch]
            before = seen.get(switch.name, _NOTHING_READ)
            at_ns = _fabric_ns(line, epoch_ns, dilation)
            seen[switch.name] = line.cells
            found += [
                PauseNote(at_ns, link.direction(switch), priority, "stuck")
                for port, link in links.items()
                for priority, storms in line.cells.storms(port).items()
                if at_ns > 0 and storms > before.storms(port).get(priority, 0)
            ]
        return tuple(found)

    def late(self, epoch_ns: int) -> Counter[int]:
        """How late switches did what was due since the hosts began, and how often that late.

        The record's first line after the hosts began may still tell of the time before.
        """
        self.read()
        seen: Counter[int] = Counter()
        for line in self._lines:
            if line.at_ns > epoch_ns:
                seen.update(line.late)
        return seen

    def counts(self) -> dict[Node, SwitchCounts]:
        """What switches had counted when they last wrote it down."""
        self.read()
        latest = self._latest
        return {
            switch: latest[switch.name].cells.counts(self.fabric.ports(switch))
            if switch.name in latest
            else SwitchCounts({}, {})
            for switch in self.fabric.switches
        }

    def lost(self) -> dict[str, Mapping[str, int]]:
        """What switches themselves had dropped by then, of which their programs know nothing."""
        self.read()
        return {name: line.cells.lost for name, line in self._latest.items()}

    def missed(self) -> Counter[str]:
        """By direction of a link, the frames for which a switch had no room when they came."""
        self.read()
        found: Counter[str] = Counter()
        for line in self._latest.values():
            switch, links = self._links[line.switch]
            for port, frames in line.missed.items():
                if port in links:
                    link = links[port]
                    found[link.direction(link.b if link.a == switch else link.a)] += frames
        return found

    @property
    def _latest(self) -> dict[str, _Line]:
        return {line.switch: line for line in self._lines[-len(self.fabric.switches) :]}

    def _notes(self, line: _Line, epoch_ns: int, dilation: float) -> Iterator[Note]:
        """A line as notes of the links that the switch sends into, and of those from hosts."""
        sender, links = self._links[line.switch]
        at_ns = _fabric_ns(line, epoch_ns, dilation)
        for port, (_, received, _, sent, queued) in line.ports.items():
            link = links.get(port)
            if link is None:
                continue  # where reports leave
            marked = line.cells.traffic("marked", port).packets
            paused_ns = sum(line.cells.paused(port).values()) + line.cells.waited_ns(port)
            yield Note(at_ns, link.direction(sender), queued, sent, paused_ns, marked, line.dropped)
            if not link.joins_switches:
                yield Note(at_ns, link.up, 0, received, 0, 0, 0)

    @cached_property
    def _into_hosts(self) -> frozenset[str]:
        return frozenset(link.down for link in self.fabric.links if not link.joins_switches)

    @cached_property
    def _links(self) -> dict[str, tuple[Node, dict[int, Link]]]:
        """By switch's name: the switch, and what hangs at its ports."""
        fabric = self.fabric
        return {
            switch.name: (switch, {p: fabric.link_at(switch, p) for p in fabric.ports(switch)})
            for switch in fabric.switches
        }


def _fabric_ns(line: _Line, epoch_ns: int, dilation: float) -> int:
    return round((line.at_ns - epoch_ns) / dilation)


def longest_queues(notes: Iterable[Note]) -> dict[str, int]:
    """By direction of a link: the longest queue that was noted, where there was any."""
    longest: dict[str, int] = {}
    for note in notes:
        if note.queue_bytes:
            longest[note.link] = max(longest.get(note.link, 0), note.queue_bytes)
    return longest


def _since(note: Note, began: Note | None) -> Note:
    """A note without what had been counted before the run."""
    if began is None:
        return note
    counted = (now - before for now, before in zip(note[3:], began[3:], strict=True))
    return Note(note.time_ns, note.link, note.queue_bytes, *counted)


def but_for(share: float, late: Counter[int]) -> int:
    """How late things were done, but for a share of the times."""
    left = share * late.total()
    for late_ns, often in sorted(late.items(), reverse=True):
        left -= often
        if left < 0:
            return late_ns
    return 0
