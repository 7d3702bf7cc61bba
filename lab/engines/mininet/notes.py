"""What hosts' programs write down while they send, read from outside of their capsule.

Each has a file of its own, which a program that starts makes anew; `traffic/core/host_main.c` lists
the words. Of several runs, one after the other, the last is told of.
"""

from __future__ import annotations

import os
from collections.abc import Collection
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from lab.engines.mininet.journal import NOTES
from traffic.collectives import NEVER


@dataclass
class _Told:
    """What one of them told so far."""

    file: BinaryIO
    partial: bytes = b""
    epoch_ns: int = 0


class HostNotes:
    """When messages began and arrived, in the fabric's time from when the hosts began."""

    def __init__(self, folder: Path, hosts: Collection[str], transfers: int) -> None:
        self._paths = {host: folder / f"{host}{NOTES}" for host in hosts}
        self._told: dict[str, _Told] = {}
        self._transfers = transfers
        self._begin(0)

    def _begin(self, epoch_ns: int) -> None:
        self.epoch_ns = epoch_ns  # by the machine's monotonic clock; 0: nobody began yet
        self.starts = [NEVER] * self._transfers
        self.ends = [NEVER] * self._transfers

    def read(self) -> None:
        """Take in what is new."""
        for host, path in self._paths.items():
            if host not in self._told:
                with suppress(FileNotFoundError):
                    self._told[host] = _Told(path.open("rb"))
            if told := self._told.get(host):
                is_replaced = not os.fstat(told.file.fileno()).st_nlink  # and nothing will follow
                *lines, told.partial = (told.partial + told.file.read()).split(b"\n")
                for line in lines:
                    self._take(told, line)
                if is_replaced:
                    told.file.close()
                    del self._told[host]

    def _take(self, told: _Told, line: bytes) -> None:
        word, *numbers = line.split()
        match word, [int(number) for number in numbers]:
            case b"epoch", [epoch_ns]:
                told.epoch_ns = epoch_ns
                if epoch_ns > self.epoch_ns:
                    self._begin(epoch_ns)
            case b"began", [number, at_ns] if told.epoch_ns == self.epoch_ns:
                self.starts[number] = at_ns
            case b"ended", [number, at_ns] if told.epoch_ns == self.epoch_ns:
                self.ends[number] = at_ns

    def close(self) -> None:
        """Read no more."""
        for told in self._told.values():
            told.file.close()
        self._told.clear()
