"""Lets the interfaces in switches' rooms have the carriers of the front ports.

A veth has a carrier as long as its other end is up, so that is what is switched, as the kernel
tells of the front port.
"""

from __future__ import annotations

import os
import select
import threading
from collections.abc import Mapping

from controller.kernel import CARRIERS, Events, View, carriers_of
from topologies.ip import turn


class Carriers:
    """Of front ports, by the name of the interface that has to have the same."""

    def __init__(self, ends: Mapping[str, str]) -> None:
        self._ends = ends
        self._is_up = dict.fromkeys(ends, True)
        self._stop = os.eventfd(0)
        self._thread = threading.Thread(target=self._follow, name="carriers", daemon=True)
        self._view: View | None = None

    def start(self) -> None:
        """Follow from now on."""
        self._view = View(CARRIERS)
        self._hear(self._view.everything())
        self._thread.start()

    def stop(self) -> None:
        """Follow no more."""
        if self._view is not None:
            os.eventfd_write(self._stop, 1)
            self._thread.join()
            self._view.close()
            self._view = None

    def _follow(self) -> None:
        assert self._view is not None
        poll = select.poll()
        poll.register(self._view.news, select.POLLIN)
        poll.register(self._stop, select.POLLIN)
        while all(ready != self._stop for ready, _ in poll.poll()):
            self._view.tell(self._hear, self._hear)

    def _hear(self, events: Events) -> None:
        for name, is_up in carriers_of(events):
            if name in self._ends and self._is_up[name] != is_up:
                self._is_up[name] = is_up
                turn(self._ends[name], is_up=is_up)
