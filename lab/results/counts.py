"""What the fabric program has counted: which cells to read, and what they mean.

Cells are read in three ways: from the data plane itself (the simulator), over P4Runtime (here), and
out of what the process that hosts switches writes down (`watch.py`). What they mean is said once.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from dataclasses import field, replace
from functools import cache
from types import MappingProxyType

import finsy as fy

from controller import ControllerError, Target
from controller.client import on_all, reading
from controller.tables import DROP_REASONS, queue_index
from lab.errors import RunError
from lab.results.outcome import TRIES, PortCounts, SwitchCounts, Traffic
from params.classes import PRIORITIES
from params.data import Data

PAUSE_TOTAL, QUEUE_GATE, CLOCK = "pause_total", "queue_gate", "clock"
_BY_PORT = ("received", "sent", "marked")
_BY_QUEUE = (
    *("xoff_sent", "xon_sent", "xoff_received", "pause_storms", "trimmed"),
    *("in_discards", "out_discards"),
    *("credit_grants", "credit_questions"),
)
WAITS, WAITED, TRIED = "credit_waits", "credit_waited", "link_counts"
_BY_THE_PROGRAM = ("ingress", "egress")  # drops that it counts itself, with better reasons


class Wanted(Data):
    """The cells to read of a switch with certain ports, by name."""

    counters: Mapping[str, range]
    registers: Mapping[str, range]

    @classmethod
    def at(cls, ports: Collection[int]) -> Wanted:
        """All that tells what happened at these."""
        first, last = min(ports, default=0), max(ports, default=-1)
        by_port = range(first, last + 1)
        by_queue = range(queue_index(first, 0), queue_index(last + 1, 0))
        return cls(
            {
                **dict.fromkeys(_BY_PORT, by_port),
                **dict.fromkeys(_BY_QUEUE, by_queue),
                "dropped": range(len(DROP_REASONS)),
            },
            dict.fromkeys((PAUSE_TOTAL, QUEUE_GATE, WAITS, WAITED, TRIED), by_queue),
        )


class Reading(Data):
    """The cells of a switch, as they were at a time of its clock; what is not there is zero."""

    counters: Mapping[str, Mapping[int, Traffic]]
    registers: Mapping[str, Mapping[int, int]]
    now: int
    lost: Mapping[str, int] = field(default_factory=dict)  # by the switch itself, by reason

    def counts(self, ports: Iterable[int]) -> SwitchCounts:
        """What they say of some ports, and of drops."""
        drops = Counter(
            {
                DROP_REASONS[at]: traffic.packets
                for at, traffic in self.counters.get("dropped", {}).items()
            }
        )
        for reason, packets in self.lost.items():
            if reason not in _BY_THE_PROGRAM:
                drops[reason] += packets  # both know of ports that are down
        return SwitchCounts(
            {port: self._port(port) for port in ports},
            {reason: packets for reason, packets in drops.items() if packets},
        )

    def paused(self, port: int) -> dict[int, int]:
        """By priority: for how long queues were paused.

        A pause counts when it comes; what of it is to come yet has not been waited for. Of one that
        came after `now`, as who reads cells while packets pass may find, nothing has.
        """
        totals, gates = (self.registers.get(name, {}) for name in (PAUSE_TOTAL, QUEUE_GATE))
        return {
            priority: max(0, totals[cell] - max(0, gates.get(cell, 0) - self.now))
            for priority, cell in _queues(port).items()
            if totals.get(cell)
        }

    def waited_ns(self, port: int) -> int:
        """For how long its queues had no credits, all of them together."""
        return sum(self._cells(WAITED, port).values())

    def is_held(self, port: int) -> bool:
        """Whether a queue of the port stands still now."""
        gates = self.registers.get(QUEUE_GATE, {})
        return any(gates.get(cell, 0) > self.now for cell in _queues(port).values())

    def storms(self, port: int) -> dict[int, int]:
        """By priority: how often the watchdog let a queue go."""
        return self._packets("pause_storms", port)

    def _port(self, port: int) -> PortCounts:
        received, sent, marked = (self.traffic(name, port) for name in _BY_PORT)
        xoff, xon, storms = (
            self._packets(name, port) for name in ("xoff_sent", "xon_sent", "pause_storms")
        )
        cut = {each: self.traffic("trimmed", cell) for each, cell in _queues(port).items()}
        return PortCounts(
            received=received,
            sent=sent,
            marked=marked.packets,
            xoff=xoff,
            xon_sent=sum(xon.values()),
            paused=self.paused(port),
            storms=sum(storms.values()),
            cut={priority: traffic for priority, traffic in cut.items() if traffic.packets},
            grants=sum(self._packets("credit_grants", port).values()),
            questions=sum(self._packets("credit_questions", port).values()),
            waits=sum(self._cells(WAITS, port).values()),
            waited_ns=self.waited_ns(port),
            tries={TRIES[at]: count for at, count in self._cells(TRIED, port).items() if count},
            xoff_heard=self._packets("xoff_received", port),
            discarded_in=self._packets("in_discards", port),
            discarded_out=self._packets("out_discards", port),
        )

    def _cells(self, name: str, port: int) -> dict[int, int]:
        cells = self.registers.get(name, {})
        return {at: cells.get(cell, 0) for at, cell in _queues(port).items()}

    def traffic(self, name: str, cell: int) -> Traffic:
        """A cell of a counter."""
        return self.counters.get(name, {}).get(cell, Traffic())

    def _packets(self, name: str, port: int) -> dict[int, int]:
        found = {p: self.traffic(name, cell).packets for p, cell in _queues(port).items()}
        return {priority: packets for priority, packets in found.items() if packets}


@cache
def _queues(port: int) -> Mapping[int, int]:
    """The cells of a port's queues, by priority."""
    return {priority: queue_index(port, priority) for priority in PRIORITIES}


def read_counts(
    targets: Iterable[Target],
    ports: Mapping[str, Iterable[int]],
    *,
    lost: Mapping[str, Mapping[str, int]] = MappingProxyType({}),
    has_registers: bool = True,
) -> dict[str, SwitchCounts]:
    """What every switch has counted so far, at the ports named for it, over P4Runtime.

    What they lost without their programs' knowing, P4Runtime does not tell: that is ``lost``, by
    reason. How long queues stood still is in registers, which BMv2 does not offer over P4Runtime;
    it is 0 without them.
    """

    async def read_one(target: Target) -> tuple[str, SwitchCounts]:
        async with reading(target) as switch:
            mine = tuple(ports[target.name])
            found = await _read(switch, mine, has_registers)
            found = replace(found, lost=lost.get(target.name, {}))
            return target.name, found.counts(mine)

    try:
        return dict(on_all(targets, read_one))
    except ControllerError as error:
        raise RunError(f"counters cannot be read: {error}") from None


async def _read(switch: fy.Switch, ports: tuple[int, ...], has_registers: bool) -> Reading:
    wanted = Wanted.at(ports)
    registers = {**wanted.registers, CLOCK: range(1)} if has_registers else {}
    cells = [
        *(fy.P4CounterEntry(n, index=at) for n, span in wanted.counters.items() for at in span),
        *(fy.P4RegisterEntry(n, index=at) for n, span in registers.items() for at in span),
    ]
    counted: dict[str, dict[int, Traffic]] = {}
    held: dict[str, dict[int, int]] = {}
    # finsy declares the overloads of read() as coroutines; what it returns is a generator.
    async for cell in switch.read(cells):  # type: ignore[attr-defined]
        if isinstance(cell, fy.P4CounterEntry):
            name = cell.counter_id.split(".")[-1]
            traffic = Traffic(cell.packet_count, cell.byte_count)
            counted.setdefault(name, {})[cell.index or 0] = traffic
        else:
            name = cell.register_id.split(".")[-1]
            held.setdefault(name, {})[cell.index or 0] = int(cell.data)
    return Reading(counted, held, held.get(CLOCK, {}).get(0, 0))
