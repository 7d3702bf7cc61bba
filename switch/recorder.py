"""What switches hold and have counted, written down at intervals while packets pass.

A thread reads each switch between two bursts of packets and appends one line of JSON to a file:

    {"at_ns": ..., "now_ns": ..., "switch": "leaf1",
     "ports": {"1": [received packets, bytes, sent packets, bytes, bytes queued]},
     "counters": {"marked": {"1": [packets, bytes]}}, "registers": {"pause_total": {"11": value}},
     "lost": {"port_down": packets}, "missed": {"1": packets}, "late": {"1500": times}}

`at_ns` is the monotonic clock when the round of all switches began, `now_ns` the switches' own as
this one's registers were read. Cells that are zero are left out. `missed` is what came by a port
and found no room, for nobody had taken in what came before. `late` stands in a round's first line:
how late, in the switches' time, what was due was served since the last round, and how often. A
file that has become too long is called NAME.before from then on, and another is begun.
"""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Mapping, Sequence
from dataclasses import field
from pathlib import Path
from typing import Any

from params.data import Data
from switch.dataplane import Dataplane, DataplaneError, Loop

__all__ = ["Cells", "Recorder"]

_MAX_BYTES = 64_000_000  # of a file


class Cells(Data):
    """What to read of a switch's program: by name, the first cell and how many."""

    counters: Mapping[str, Sequence[int]] = field(default_factory=dict)
    registers: Mapping[str, Sequence[int]] = field(default_factory=dict)


class Recorder:
    """Writes down what some switches hold, until it is stopped."""

    def __init__(
        self,
        loop: Loop,
        switches: Sequence[tuple[Dataplane, Cells]],
        path: Path,
        interval_s: float,
        most_bytes: int = _MAX_BYTES,
    ) -> None:
        self._loop = loop
        self._switches = switches
        self._path = path
        self._most_bytes = most_bytes
        self._former = path.with_name(f"{path.name}.before")
        self._former.unlink(missing_ok=True)
        self._file = path.open("w")
        self._interval_s = interval_s
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._run, name="recorder", daemon=True)

    def start(self) -> None:
        """Begin."""
        self._thread.start()

    def stop(self) -> None:
        """End, with the last line whole."""
        self._ended.set()
        self._thread.join()
        self._file.close()

    def _run(self) -> None:
        while not self._ended.wait(self._interval_s):
            at_ns, late = time.monotonic_ns(), self._loop.lateness_ns()
            try:
                for plane, cells in self._switches:
                    if plane.program is not None:
                        line = self._look(plane, cells, at_ns) | {"late": late}
                        self._file.write(json.dumps(line) + "\n")
                        late = {}  # of all of them, told once
                self._file.flush()
                if self._file.tell() > self._most_bytes:
                    self._begin_anew()
            except (OSError, DataplaneError):
                return  # a full disk, or a program without these cells: nothing to switch less for

    def _begin_anew(self) -> None:
        self._file.close()
        self._path.replace(self._former)
        self._file = self._path.open("w")

    def _look(self, plane: Dataplane, cells: Cells, at_ns: int) -> dict[str, Any]:
        program = plane.program
        assert program is not None
        stats = plane.stats()
        return {
            "at_ns": at_ns,
            "switch": plane.name,
            "ports": {
                number: [
                    *(port.rx_packets, port.rx_bytes, port.tx_packets, port.tx_bytes),
                    sum(port.queue_bytes),
                ]
                for number, port in stats.ports.items()
            },
            "counters": {
                name: {
                    cell: [value.packets, value.bytes]
                    for cell, value in enumerate(
                        plane.read_counter(_index(program.counters, name), range(*_ends(span))),
                        span[0],
                    )
                    if value.packets
                }
                for name, span in cells.counters.items()
            },
            # Packets pass meanwhile: what these hold may be newer than that, and never older.
            "now_ns": self._loop.now_ns(),
            "registers": {
                name: {
                    cell: value
                    for cell, value in enumerate(
                        plane.read_register(_index(program.registers, name), range(*_ends(span))),
                        span[0],
                    )
                    if value
                }
                for name, span in cells.registers.items()
            },
            "lost": stats.drops,
            "missed": {
                number: port.rx_missed for number, port in stats.ports.items() if port.rx_missed
            },
        }


def _ends(span: Sequence[int]) -> tuple[int, int]:
    first, count = span
    return first, first + count


def _index(infos: Sequence[Any], name: str) -> int:
    for info in infos:
        if info.name == name or info.name.endswith(f".{name}"):
            return int(info.index)
    raise DataplaneError(f"the program has no '{name}'")
