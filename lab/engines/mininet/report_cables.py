"""Where telemetry reports come out of an emulated fabric.

In the simulator a switch's reports leave by a port that is no port of the fabric's, and are taken
there. On Mininet that port is a cable of its own for each switch (`leaf1-eth192`), whose other end
(`leaf1-int`) the collector listens at, and whoever likes to look at reports with tshark.
"""

from __future__ import annotations

import selectors
import socket
import threading
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager, suppress

from lab.scenario.translate import REPORT_PORT
from topologies import Fabric, Node
from topologies.ip import add_veths, run_ip

_ALL_PROTOCOLS = 3
_RECEIVE_BUFFER, _FORCED = 16 << 20, 33  # SO_RCVBUFFORCE
_LARGEST = 2048  # a report, which keeps no more than the first bytes of a packet


class Collector:
    """Listens at the far ends of the report cables, until it is closed."""

    def __init__(self, fabric: Fabric, take: Callable[[bytes], None]) -> None:
        self._take = take
        self._may_take = threading.Event()
        self._may_take.set()
        self._selector = selectors.DefaultSelector()
        self._stop_reader, self._stop_writer = socket.socketpair()
        self._selector.register(self._stop_reader, selectors.EVENT_READ)
        for switch in fabric.switches:
            self._selector.register(_listener(far_end(switch)), selectors.EVENT_READ)
        self._thread = threading.Thread(target=self._listen, name="telemetry", daemon=True)
        self._thread.start()

    def _listen(self) -> None:
        while True:
            ready = [key.fileobj for key, _ in self._selector.select()]
            self._may_take.wait()
            for listener in ready:
                if listener is not self._stop_reader:
                    self._take_all(listener)  # type: ignore[arg-type]
            if ready == [self._stop_reader]:
                return

    def _take_all(self, listener: socket.socket) -> None:
        with suppress(BlockingIOError):
            while True:
                self._take(listener.recv(_LARGEST))

    def halt(self, *, is_halted: bool) -> None:
        """Take nothing from now on, or go on."""
        if is_halted:
            self._may_take.clear()
        else:
            self._may_take.set()

    def close(self) -> None:
        """Take what has come, and stop."""
        self.halt(is_halted=False)
        self._stop_writer.send(b"x")
        self._thread.join()
        for key in list(self._selector.get_map().values()):
            key.fileobj.close()  # type: ignore[union-attr]
        self._stop_writer.close()
        self._selector.close()


def far_end(switch: Node) -> str:
    """The interface where a switch's reports come out."""
    return f"{switch}-int"


@contextmanager
def report_cables(switches: Collection[Node]) -> Iterator[None]:
    """Give every switch a cable for its reports, for as long as the context lasts."""
    add_veths((switch.interface(REPORT_PORT), far_end(switch)) for switch in switches)
    try:
        yield
    finally:
        run_ip(f"link del {far_end(switch)}" for switch in switches)


def _listener(interface: str) -> socket.socket:
    listener = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(_ALL_PROTOCOLS))
    listener.setblocking(False)
    with suppress(PermissionError):
        listener.setsockopt(socket.SOL_SOCKET, _FORCED, _RECEIVE_BUFFER)
    listener.bind((interface, 0))
    return listener
