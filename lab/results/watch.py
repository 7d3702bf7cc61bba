"""What happens on an emulated fabric while it happens, from what its switches write down.

The process that hosts the switches appends a line for each of them at intervals
(`switch/recorder.py`). Whoever shows progress reads the latest; after the run all of it becomes the
notes that a result keeps over time. Times there are the fabric's: from the moment hosts began,
divided by the dilation.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

from controller.tables import DROP_REASONS, PRIORITIES, queue_index
from lab.results.counts import PAUSE_TOTAL, QUEUE_GATE, waited_ns
from lab.results.outcome import Glance, Note, PauseNote, PortCounts, Stock, SwitchCounts, Traffic
from topologies import Fabric, Link, Node

_MOST_NOTES = 100_000
_IN_USED, _IN_HEADROOM, _OUT_USED, _POOL_USED = (
    f"buffer_{name}" for name in ("in_used", "in_headroom", "out_used", "pool_used")
)


def cells_of(fabric: Fabric, switch: Node) -> dict[str, Any]:
    """What is to be written down of a switch, in the words of its configuration."""
    ports = sorted(fabric.ports(switch))
    first = queue_index(ports[0], 0)
    queues = [first, queue_index(ports[-1] + 1, 0) - first]
    return {
        "counters": {
            "marked": [0, ports[-1] + 1],
            "dropped": [0, len(DROP_REASONS)],
            "xoff_sent": queues,
            "xon_sent": queues,
            "pause_storms": queues,
        },
        "registers": {
            **dict.fromkeys((PAUSE_TOTAL, QUEUE_GATE, _IN_USED, _IN_HEADROOM, _OUT_USED), queues),
            _POOL_USED: [0, 1],
        },
    }


@dataclass
class Watch:
    """Reads what the switches write down."""

    fabric: Fabric
    path: Path
    _lines: list[dict[str, Any]] = field(default_factory=list)
    _offset: int = 0

    def read(self) -> None:
        """Take in what is new."""
        try:
            with self.path.open("rb") as file:
                file.seek(self._offset)
                text = file.read()
        except OSError:
            return
        whole, newline, _ = text.rpartition(b"\n")
        self._offset += len(whole) + len(newline)
        self._lines += [json.loads(line) for line in whole.splitlines()]

    def glance(self) -> tuple[int, Glance] | None:
        """How things are now, and since when by the monotonic clock."""
        self.read()
        latest = self._latest
        if not latest:
            return None
        notes = self.latest()
        longest = max(notes, key=lambda note: note.queue_bytes)
        held = (_is_held(line, port) for line in latest.values() for port in line["ports"])
        return max(line["at_ns"] for line in latest.values()), Glance(
            into_hosts=sum(note.bytes for note in notes if note.link in self._into_hosts),
            longest=longest.link if longest.queue_bytes else None,
            queue_bytes=longest.queue_bytes,
            paused=sum(held),
            dropped=sum(sum(line["counters"]["dropped"].values()) for line in latest.values()),
            marked=sum(note.marked for note in notes),
        )

    def latest(self) -> list[Note]:
        """How every direction of every link is now, if the switches say so."""
        self.read()
        return [note for line in self._latest.values() for note in self._notes(line, 0, 1)]

    def longest_queues(self) -> dict[str, int]:
        """The longest queues since the switches began to write."""
        self.read()
        return longest_queues(note for line in self._lines for note in self._notes(line, 0, 1))

    def notes(self, epoch_ns: int, dilation: float) -> tuple[Note, ...]:
        """All of it since the hosts began, as a result keeps it."""
        self.read()
        began: dict[str, Note] = {}
        latest: dict[str, Note] = {}
        kept = []
        stride = max(1, len(self._lines) * len(self.fabric.links) // _MOST_NOTES)
        for number, line in enumerate(self._lines):
            for note in self._notes(line, epoch_ns, dilation):
                if note.time_ns <= 0:
                    began[note.link] = note
                    continue
                told = _since(note, began.get(note.link))
                before = latest.get(note.link)
                latest[note.link] = told
                is_news = before is None or told[3:] != before[3:] or told.queue_bytes
                if is_news and number // len(self.fabric.switches) % stride == 0:
                    kept.append(told)
        return tuple(kept)

    def stocks(
        self, epoch_ns: int, dilation: float, lossless: Collection[int]
    ) -> tuple[Stock, ...]:
        """What switches held in their buffers since the hosts began."""
        self.read()
        stride = max(1, len(self._lines) // _MOST_NOTES)
        return tuple(
            stock
            for number, line in enumerate(self._lines)
            if number // len(self.fabric.switches) % stride == 0
            for stock in self._stocks(line, _fabric_ns(line, epoch_ns, dilation), lossless)
            if stock.time_ns > 0
        )

    def _stocks(self, line: dict[str, Any], at_ns: int, lossless: Collection[int]) -> list[Stock]:
        """What the classes of a switch held that held anything."""
        told = line["registers"]
        pool = told.get(_POOL_USED, {}).get("0", 0)
        switch, links = self._links[line["switch"]]
        found = []
        for priority in PRIORITIES:

            def of(name: str, priority: int = priority) -> dict[int, int]:
                cells = told.get(name, {})
                return {p: cells.get(str(queue_index(p, priority)), 0) for p in links}

            used, held = of(_IN_USED), of(_IN_HEADROOM)
            queues = used if priority in lossless else of(_OUT_USED)
            port, most = max(queues.items(), key=lambda item: item[1])
            if not any(used.values()) and not any(held.values()):
                continue
            link = links[port]
            peer = link.b if link.a == switch else link.a
            name = link.direction(peer if priority in lossless else switch) if most else ""
            sums = sum(used.values()), sum(held.values())
            found.append(Stock(at_ns, switch.name, priority, name, most, *sums, pool))
        return found

    def pauses(self, epoch_ns: int, dilation: float) -> tuple[PauseNote, ...]:
        """When the watchdog let queues go; pause frames themselves are not looked at here."""
        self.read()
        seen: dict[str, dict[str, int]] = {}
        found = []
        for line in self._lines:
            switch, links = self._links[line["switch"]]
            storms, before = line["counters"].get("pause_storms", {}), seen.get(switch.name, {})
            at_ns = _fabric_ns(line, epoch_ns, dilation)
            seen[switch.name] = storms
            found += [
                PauseNote(at_ns, link.direction(switch), priority, "stuck")
                for port, link in links.items()
                for priority, queue in _by_priority(str(port)).items()
                if at_ns > 0 and storms.get(queue, 0) > before.get(queue, 0)
            ]
        return tuple(found)

    def counts(self) -> dict[Node, SwitchCounts]:
        """What switches had counted when they last wrote it down."""
        self.read()
        latest = self._latest
        return {
            switch: _counts(latest[switch.name]) if switch.name in latest else SwitchCounts({}, {})
            for switch in self.fabric.switches
        }

    @property
    def _latest(self) -> dict[str, dict[str, Any]]:
        return {line["switch"]: line for line in self._lines[-len(self.fabric.switches) :]}

    def _notes(self, line: dict[str, Any], epoch_ns: int, dilation: float) -> Iterator[Note]:
        """A line as notes of the links that the switch sends into, and of those from hosts."""
        switch = line["switch"]
        at_ns = _fabric_ns(line, epoch_ns, dilation)
        dropped = sum(line["counters"]["dropped"].values())
        for port, (_, received, _, sent, queued) in line["ports"].items():
            sender, links = self._links[switch]
            link = links.get(int(port))
            if link is None:
                continue  # where reports leave
            marked = line["counters"]["marked"].get(port, 0)
            paused_ns = sum(_paused(line, port).values())
            yield Note(at_ns, link.direction(sender), queued, sent, paused_ns, marked, dropped)
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


def _fabric_ns(line: dict[str, Any], epoch_ns: int, dilation: float) -> int:
    since_ns: int = line["at_ns"] - epoch_ns
    return round(since_ns / dilation)


def _counts(line: dict[str, Any]) -> SwitchCounts:
    counters = line["counters"]

    def of(name: str, port: str) -> dict[int, int]:
        queues = _by_priority(port)
        found = {priority: counters[name].get(queue, 0) for priority, queue in queues.items()}
        return {priority: count for priority, count in found.items() if count}

    return SwitchCounts(
        {
            int(port): PortCounts(
                received=Traffic(rx_packets, rx_bytes),
                sent=Traffic(tx_packets, tx_bytes),
                marked=counters["marked"].get(port, 0),
                xoff=of("xoff_sent", port),
                xon_sent=sum(of("xon_sent", port).values()),
                paused=_paused(line, port),
                storms=sum(of("pause_storms", port).values()),
            )
            for port, (rx_packets, rx_bytes, tx_packets, tx_bytes, _) in line["ports"].items()
        },
        {DROP_REASONS[int(reason)]: count for reason, count in counters["dropped"].items()},
    )


def _by_priority(port: str) -> dict[int, str]:
    """A port's queues, as a line names them."""
    return {priority: str(queue_index(int(port), priority)) for priority in PRIORITIES}


def _paused(line: dict[str, Any], port: str) -> dict[int, int]:
    """How long a port's queues stood still."""
    gates, totals = (line["registers"][name] for name in (QUEUE_GATE, PAUSE_TOTAL))
    return {
        priority: waited_ns(totals[queue], gates.get(queue, 0), line["now_ns"])
        for priority, queue in _by_priority(port).items()
        if queue in totals
    }


def _is_held(line: dict[str, Any], port: str) -> bool:
    gates = line["registers"][QUEUE_GATE]
    return any(gates.get(queue, 0) > line["now_ns"] for queue in _by_priority(port).values())


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
