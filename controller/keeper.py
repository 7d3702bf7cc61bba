"""Keep a fabric as it should be: all switches, all the time.

One task for each switch holds its connection, and comes back when it is lost: a switch that was
away is compared with its plan entry by entry, because it may have lost all it knew. Between times
the task asks the switch which of its ports have no carrier, and reads counters; telemetry reports
are handed on as they come. A port that is dead at either end takes its cable out of the graph;
every switch whose routes that changes is told the difference, and again when it returns. (Until
then the data plane has long gone round the dead port by itself: the keeper repairs what only the
far switches can.)

    keeper = Keeper(fabric, targets, settings)
    async with keeper:
        await keeper.settled()
        ...
    keeper.series.save(path)
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from types import TracebackType
from typing import Self

import finsy as fy

from controller.client import Target, connected, reconcile, write_changes
from controller.entities import Changes, SwitchPlan, changes
from controller.errors import ControllerError
from controller.reports import Report, ReportError, decode
from controller.series import Series
from controller.settings import USUAL, Settings
from controller.tables import DROP_REASONS, PRIORITIES, queue_index, switch_plans
from controller.wire import canonical
from topologies import Fabric, Node

PORT_DOWN = "port_down"
BY_PORT = ("received", "sent", "marked")  # counters
BY_QUEUE = ("xoff_sent", "xoff_received", "pause_storms")
BY_REASON = "dropped"
POOL_USED = "buffer_pool_used"
_RETRY_S = 0.2
_REPORTS_WAITING = 4096  # more are dropped: telemetry must not hold up repairs
_SETTLE_S = 60.0
_LOST = (fy.P4ClientError, ConnectionError, asyncio.IncompleteReadError)


@dataclass(slots=True)
class _Kept:
    """A switch in the keeper's eyes."""

    target: Target
    node: Node
    connection: fy.Switch | None = None
    installed: SwitchPlan = ()  # what it was told last, if it is connected
    dead_ports: frozenset[int] = frozenset()
    knows_registers: bool = True  # BMv2 does not offer them
    turn: asyncio.Lock = field(default_factory=asyncio.Lock)


class Keeper:
    """Keeps a fabric."""

    def __init__(
        self,
        fabric: Fabric,
        targets: Iterable[Target],
        settings: Settings = USUAL,
        *,
        interval_s: float = 0.05,
        on_change: Callable[[str, Changes], None] = lambda _name, _changes: None,
        on_report: Callable[[Report], None] = lambda _report: None,
    ) -> None:
        self.series = Series()
        self.dead: frozenset[str] = frozenset()
        self._fabric = fabric
        self._settings = settings
        self._interval_s = interval_s
        self._on_change = on_change
        self._on_report = on_report
        self._plans = switch_plans(fabric, settings)
        self._kept = {t.name: _Kept(t, fabric.node(t.name)) for t in targets}
        self._tasks: list[asyncio.Task[None]] = []
        self._began = time.monotonic()

    async def __aenter__(self) -> Self:
        self._tasks = [asyncio.create_task(self._keep(kept)) for kept in self._kept.values()]
        return self

    async def __aexit__(
        self,
        exc_type: type[BaseException] | None,
        exc: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def settled(self, timeout_s: float = _SETTLE_S) -> None:
        """Wait until every switch is connected and has its plan."""
        deadline = time.monotonic() + timeout_s
        while waiting := [name for name, kept in self._kept.items() if not self._is_right(kept)]:
            for task in self._tasks:
                if task.done() and not task.cancelled():
                    task.result()
            if time.monotonic() > deadline:
                raise ControllerError(
                    f"after {timeout_s:.0f} s these switches still lack their plan: "
                    f"{', '.join(waiting)}; do they run?"
                )
            await asyncio.sleep(self._interval_s / 4)

    async def change(self, settings: Settings) -> None:
        """Let the fabric have other settings from now on."""
        self._settings = settings
        await self._replan()

    # --- one switch -------------------------------------------------------------------------

    def _is_right(self, kept: _Kept) -> bool:
        return kept.connection is not None and kept.installed == self._plans[kept.target.name]

    async def _keep(self, kept: _Kept) -> None:
        while True:
            with suppress(*_LOST):
                async with connected(kept.target) as connection:
                    await self._take_up(kept, connection)
                    collecting = asyncio.create_task(self._collect(connection))
                    try:
                        while True:
                            await self._look(kept, connection)
                            await asyncio.sleep(self._interval_s)
                    finally:
                        collecting.cancel()
            kept.connection = None
            await asyncio.sleep(_RETRY_S)

    async def _take_up(self, kept: _Kept, connection: fy.Switch) -> None:
        """Compare a switch that came, or came back, with its plan."""
        async with kept.turn:
            plan = self._plans[kept.target.name]
            self._on_change(kept.target.name, await reconcile(connection, plan))
            kept.installed = plan
            kept.connection = connection

    async def _look(self, kept: _Kept, connection: fy.Switch) -> None:
        """Read a switch's ports and counters; of those only what its ports can have moved."""
        ports = sorted(self._fabric.ports(kept.node))
        if kept.knows_registers:
            asked = [fy.P4RegisterEntry(PORT_DOWN, index=port) for port in ports]
            try:
                states = await _readings(connection, [*asked, fy.P4RegisterEntry(POOL_USED)])
            except fy.P4ClientError as error:
                if error.code is not fy.GRPCStatusCode.UNIMPLEMENTED:
                    raise
                kept.knows_registers = False
            else:
                self._note(kept, {POOL_USED: states.pop(POOL_USED)})
                dead = (port for port, is_down in states[PORT_DOWN] if is_down)
                await self._note_dead(kept, frozenset(dead))
        queues = [queue_index(port, priority) for port in ports for priority in PRIORITIES]
        counters = [fy.P4CounterEntry(BY_REASON, index=at) for at in range(len(DROP_REASONS))]
        for names, indices in ((BY_PORT, ports), (BY_QUEUE, queues)):
            counters += [fy.P4CounterEntry(name, index=at) for name in names for at in indices]
        self._note(kept, await _readings(connection, counters))

    def _note(self, kept: _Kept, readings: _Readings) -> None:
        now = time.monotonic() - self._began
        for name, cells in readings.items():
            self.series.add(now, kept.target.name, name, cells)

    async def _collect(self, connection: fy.Switch) -> None:
        """Read the telemetry reports that a switch sends to its CPU port."""
        async for packet in connection.read_packets(queue_size=_REPORTS_WAITING):
            with suppress(ReportError):  # whatever else comes by that port is not ours
                self._on_report(decode(packet.payload))

    # --- all of them ------------------------------------------------------------------------

    async def _note_dead(self, kept: _Kept, dead_ports: frozenset[int]) -> None:
        """Take cables out of the graph, or back into it, and tell whom it concerns."""
        if dead_ports == kept.dead_ports:
            return
        kept.dead_ports = dead_ports
        links = (
            self._fabric.link_at(other.node, port)
            for other in self._kept.values()
            for port in other.dead_ports & self._fabric.ports(other.node).keys()
        )
        # A host's only cable is never taken out: there is no other way to it.
        dead = {link.name for link in links if link.joins_switches}
        if dead != self.dead:
            self.dead = frozenset(dead)
            await self._replan()

    async def _replan(self) -> None:
        self._plans = switch_plans(self._fabric, self._settings, self.dead)
        await asyncio.gather(*(self._update(kept) for kept in self._kept.values()))

    async def _update(self, kept: _Kept) -> None:
        """Tell a switch what is new; one that is away will be told when it returns."""
        async with kept.turn:
            plan = self._plans[kept.target.name]
            if kept.connection is None or kept.installed == plan:
                return
            schema = kept.connection.p4info
            difference = changes(canonical(kept.installed, schema), canonical(plan, schema))
            try:
                await write_changes(kept.connection, difference)
            except _LOST:
                kept.connection = None  # its task will notice, and compare everything
                return
            kept.installed = plan
            self._on_change(kept.target.name, difference)


_Readings = dict[str, list[tuple[int, int]]]  # by array: cells and what they hold


async def _readings(
    connection: fy.Switch, wanted: Sequence[fy.P4RegisterEntry | fy.P4CounterEntry]
) -> _Readings:
    """Read cells of any arrays, all at once."""
    found: _Readings = {}
    # finsy declares the overloads of read() as coroutines; what it returns is a generator.
    async for cell in connection.read(wanted):  # type: ignore[attr-defined]
        if isinstance(cell, fy.P4CounterEntry):
            name, value = cell.counter_id, cell.packet_count
        else:
            name, data = cell.register_id, cell.data
            value = int.from_bytes(data, "big") if isinstance(data, bytes) else data
        found.setdefault(name.split(".")[-1], []).append((cell.index or 0, value))
    return found
