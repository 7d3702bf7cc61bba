"""One controller for all switches: connects, pushes the program, installs, reads.

All switches are worked on at once. A switch that already runs the program keeps it, so a
controller may come and go without a packet noticing.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

import finsy as fy

from controller.routes import Route
from controller.tables import DROP_REASONS, DROPPED, RECEIVED, SENT, entities

_T = TypeVar("_T")
# finsy tells of every switch that offers no gNMI; what matters is raised as an exception.
logging.getLogger("finsy").setLevel(logging.ERROR)

_ENTITIES_PER_WRITE = 512
_CONNECT_TIMEOUT_S = 15.0


class ControllerError(Exception):
    """A switch could not be reached or refused what it was told."""


@dataclass(frozen=True, slots=True)
class Target:
    """A switch as the controller sees it."""

    name: str
    address: str  # host:port of its P4Runtime server
    device_id: int
    p4info: Path
    program: Path


@dataclass(frozen=True, slots=True)
class Counts:
    """A switch's counters: packets and bytes by port, dropped packets by reason."""

    received: dict[int, tuple[int, int]]
    sent: dict[int, tuple[int, int]]
    dropped: dict[str, int]

    def since(self, earlier: Counts) -> Counts:
        """What was counted after an earlier reading."""
        return Counts(
            received=_port_difference(self.received, earlier.received),
            sent=_port_difference(self.sent, earlier.sent),
            dropped={
                reason: packets - earlier.dropped.get(reason, 0)
                for reason, packets in self.dropped.items()
                if packets != earlier.dropped.get(reason, 0)
            },
        )


def _port_difference(
    later: dict[int, tuple[int, int]], earlier: dict[int, tuple[int, int]]
) -> dict[int, tuple[int, int]]:
    return {
        port: (packets - earlier.get(port, (0, 0))[0], size - earlier.get(port, (0, 0))[1])
        for port, (packets, size) in later.items()
    }


def install(
    targets: Iterable[Target],
    routes: dict[str, tuple[Route, ...]],
    done: Callable[[str], None] = lambda _: None,
) -> None:
    """Push the program and the routes to every switch; ``done`` hears of each that is ready."""

    async def install_one(target: Target) -> None:
        async with _connected(target) as switch:
            updates = list(entities(routes[target.name]))
            for at in range(0, len(updates), _ENTITIES_PER_WRITE):
                await switch.write([+entity for entity in updates[at : at + _ENTITIES_PER_WRITE]])
        done(target.name)

    _on_all(targets, install_one)


def read_counts(targets: Iterable[Target]) -> dict[str, Counts]:
    """Read every switch's counters; ports and reasons that saw nothing are left out."""

    async def read_one(target: Target) -> Counts:
        async with _connected(target) as switch:
            return Counts(
                received=await _port_counter(switch, RECEIVED),
                sent=await _port_counter(switch, SENT),
                dropped={
                    DROP_REASONS[index]: packets
                    for index, (packets, _) in (await _port_counter(switch, DROPPED)).items()
                },
            )

    targets = tuple(targets)
    counts = _on_all(targets, read_one)
    return {target.name: count for target, count in zip(targets, counts, strict=True)}


async def _port_counter(switch: fy.Switch, name: str) -> dict[int, tuple[int, int]]:
    cells = {}
    # finsy declares the overloads of read() as coroutines; what it returns is a generator.
    async for cell in switch.read(fy.P4CounterEntry(name)):  # type: ignore[attr-defined]
        if cell.packet_count and cell.index is not None:
            cells[cell.index] = (cell.packet_count, cell.byte_count)
    return cells


def _connected(target: Target) -> fy.Switch:
    return fy.Switch(
        target.name,
        target.address,
        fy.SwitchOptions(p4info=target.p4info, p4blob=target.program, device_id=target.device_id),
    )


def _on_all(targets: Iterable[Target], work: Callable[[Target], Awaitable[_T]]) -> list[_T]:
    """Work on all switches at once; the first failure names its switch."""

    async def one(target: Target) -> _T:
        try:
            async with asyncio.timeout(_CONNECT_TIMEOUT_S):
                return await work(target)
        except TimeoutError:
            raise ControllerError(
                f"{target.name} at {target.address} did not answer within "
                f"{_CONNECT_TIMEOUT_S:.0f} s; is its switch process running?"
            ) from None
        except fy.P4ClientError as error:
            raise ControllerError(f"{target.name} at {target.address} refused: {error}") from error

    async def all_of_them() -> list[_T]:
        return list(await asyncio.gather(*(one(target) for target in targets)))

    return asyncio.run(all_of_them())
