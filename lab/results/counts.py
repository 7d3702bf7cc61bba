"""The fabric program's counters and registers, read over P4Runtime."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping

import finsy as fy

from controller import Target
from controller.tables import DROP_REASONS, PRIORITIES, queue_index
from lab.errors import RunError
from lab.results.outcome import PortCounts, SwitchCounts, Traffic

_ANSWER_TIMEOUT_S = 60.0


def read_counts(
    targets: Iterable[Target], ports: Mapping[str, Iterable[int]], *, has_registers: bool = True
) -> dict[str, SwitchCounts]:
    """What every switch has counted so far, at the ports named for it.

    How long queues stood still is in registers, which BMv2 does not offer over P4Runtime; it is 0
    without them.
    """

    async def read_one(target: Target) -> tuple[str, SwitchCounts]:
        options = fy.SwitchOptions(
            p4info=target.p4info, p4blob=target.program, device_id=target.device_id
        )
        async with fy.Switch(target.name, target.address, options) as switch:
            return target.name, await _counts(switch, tuple(ports[target.name]), has_registers)

    async def read_all() -> dict[str, SwitchCounts]:
        return dict(await asyncio.gather(*map(read_one, targets)))

    try:
        return asyncio.run(asyncio.wait_for(read_all(), _ANSWER_TIMEOUT_S))
    except TimeoutError:
        raise RunError("the switches did not tell their counters in time") from None
    except fy.P4ClientError as error:
        raise RunError(f"a switch would not tell its counters: {error}") from None


async def _counts(switch: fy.Switch, ports: tuple[int, ...], has_registers: bool) -> SwitchCounts:
    by_port = [fy.P4CounterEntry(name, index=port) for name in _BY_PORT for port in ports]
    by_queue = [
        fy.P4CounterEntry(name, index=queue_index(port, priority))
        for name in _BY_QUEUE
        for port in ports
        for priority in PRIORITIES
    ]
    reasons = [fy.P4CounterEntry("dropped", index=at) for at in range(len(DROP_REASONS))]
    queues = [(port, priority) for port in ports for priority in PRIORITIES]
    pauses = [
        fy.P4RegisterEntry(name, index=index)
        for name, index in (
            *((name, queue_index(*at)) for name in (PAUSE_TOTAL, QUEUE_GATE) for at in queues),
            (CLOCK, 0),
        )
        if has_registers
    ]
    counters: dict[tuple[str, int], Traffic] = {}
    registers: dict[tuple[str, int], int] = {}
    # finsy declares the overloads of read() as coroutines; what it returns is a generator.
    async for cell in switch.read([*by_port, *by_queue, *reasons, *pauses]):  # type: ignore[attr-defined]
        if isinstance(cell, fy.P4CounterEntry):
            key = (cell.counter_id.split(".")[-1], cell.index or 0)
            counters[key] = Traffic(cell.packet_count, cell.byte_count)
        else:
            registers[cell.register_id.split(".")[-1], cell.index or 0] = int(cell.data)

    def packets(name: str, port: int) -> dict[int, int]:
        found = {p: counters[name, queue_index(port, p)].packets for p in PRIORITIES}
        return {priority: count for priority, count in found.items() if count}

    def paused(port: int) -> dict[int, int]:
        if not has_registers:
            return {}
        cells = {p: queue_index(port, p) for p in PRIORITIES}
        return {
            priority: waited_ns(granted, registers[QUEUE_GATE, cell], registers[CLOCK, 0])
            for priority, cell in cells.items()
            if (granted := registers[PAUSE_TOTAL, cell])
        }

    return SwitchCounts(
        {
            port: PortCounts(
                received=counters["received", port],
                sent=counters["sent", port],
                marked=counters["marked", port].packets,
                xoff=packets("xoff_sent", port),
                xon_sent=sum(packets("xon_sent", port).values()),
                paused=paused(port),
                storms=sum(packets("pause_storms", port).values()),
            )
            for port in ports
        },
        {
            reason: counters["dropped", at].packets
            for at, reason in enumerate(DROP_REASONS)
            if counters["dropped", at].packets
        },
    )


def waited_ns(granted: int, until: int, now: int) -> int:
    """How long a queue stood still: what of a pause is to come has not been waited for."""
    return granted - max(0, until - now)


PAUSE_TOTAL, QUEUE_GATE, CLOCK = "pause_total", "queue_gate", "clock"
_BY_PORT = ("received", "sent", "marked")
_BY_QUEUE = ("xoff_sent", "xon_sent", "pause_storms")
