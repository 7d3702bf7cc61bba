"""Capture files, written by the run-time's own writer."""

from __future__ import annotations

import ctypes
import os
from types import TracebackType
from typing import Self

from .native import runtime

__all__ = ["Capture"]


class Capture:
    """A capture under way, into an open file that it leaves open; who reads it sees it grow."""

    def __init__(self, descriptor: int) -> None:
        """Begin it; fails with OSError if nothing can be written there."""
        self._native = runtime()
        self._pcap = self._native.pcap_on(os.dup(descriptor), True)
        if not self._pcap:
            raise _failure()

    def write(self, frame: bytes, when_ns: int) -> None:
        """Add a frame; fails with OSError."""
        if not self._native.pcap_write(self._pcap, frame, len(frame), len(frame), when_ns):
            raise _failure()

    def close(self) -> None:
        """End it."""
        self._native.pcap_close(self._pcap)
        self._pcap = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        _kind: type[BaseException] | None,
        _error: BaseException | None,
        _where: TracebackType | None,
    ) -> None:
        self.close()


def _failure() -> OSError:
    number = ctypes.get_errno()
    return OSError(number, os.strerror(number))
