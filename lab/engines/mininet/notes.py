"""What hosts' programs write down while they send, read from outside of their sandbox.

Each has a file of its own, which a program that starts makes anew; `traffic/core/host_main.c` lists
the words. Of several runs, one after the other, the last is told of.
"""

from __future__ import annotations

import os
from collections.abc import Collection
from contextlib import suppress
from pathlib import Path
from typing import BinaryIO

from lab.engines.mininet.journal import NOTES
from params.data import Data
from traffic.collectives import NEVER


class _Followed(Data, frozen=False):
    """What one of them told so far."""

    file: BinaryIO
    partial: bytes = b""
    epoch_ns: int = 0


class HostNotes:
    """When messages began and arrived, in the fabric's time from when the hosts began."""

    def __init__(self, folder: Path, hosts: Collection[str], transfers: int) -> None:
        self._paths = {host: folder / f"{host}{NOTES}" for host in hosts}
        self._followed: dict[str, _Followed] = {}
        self._transfers = transfers
        self._begin(0)

    def _begin(self, epoch_ns: int) -> None:
        self.epoch_ns = epoch_ns  # by the machine's monotonic clock; 0: nobody began yet
        self.starts = [NEVER] * self._transfers
        self.ends = [NEVER] * self._transfers

    def read(self) -> None:
        """Take in what is new."""
        for host, path in self._paths.items():
            if host not in self._followed:
                with suppress(FileNotFoundError):
                    self._followed[host] = _Followed(path.open("rb"))
            if followed := self._followed.get(host):
                links = os.fstat(followed.file.fileno()).st_nlink  # 0: nothing will follow
                *lines, followed.partial = (followed.partial + followed.file.read()).split(b"\n")
                for line in lines:
                    self._take(followed, line)
                if not links:
                    followed.file.close()
                    del self._followed[host]

    def _take(self, followed: _Followed, line: bytes) -> None:
        word, *numbers = line.split()
        match word, [int(number) for number in numbers]:
            case b"epoch", [epoch_ns]:
                followed.epoch_ns = epoch_ns
                if epoch_ns > self.epoch_ns:
                    self._begin(epoch_ns)
            case b"began", [number, at_ns] if followed.epoch_ns == self.epoch_ns:
                self.starts[number] = at_ns
            case b"ended", [number, at_ns] if followed.epoch_ns == self.epoch_ns:
                self.ends[number] = at_ns

    def close(self) -> None:
        """Read no more."""
        for followed in self._followed.values():
            followed.file.close()
        self._followed.clear()
