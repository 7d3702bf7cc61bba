"""What telemetry reports tell of a run: how long packets took at each hop and how long queues were.

In the simulator a switch's reports leave by a port that is no port of the fabric's, and are taken
there. On Mininet that port is a cable of its own for each switch (`leaf1-eth192`), whose other end
(`leaf1-int`) the collector listens at, and whoever likes to look at reports with tshark.
"""

from __future__ import annotations

import selectors
import socket
import threading
from array import array
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass, field

from controller import ReportError, decode
from controller.tables import node_id
from topologies import Fabric, Node
from topologies.ip import add_veths

REPORT_PORT = 192  # above every port of a fabric's
_ALL_PROTOCOLS = 3
_RECEIVE_BUFFER, _FORCED = 16 << 20, 33  # SO_RCVBUFFORCE
_LARGEST = 2048  # a report, which keeps no more than the first bytes of a packet


@dataclass(slots=True)
class HopSeen:
    """What one switch said of the packets that carried telemetry, or that it dropped."""

    latency_ns: array[float] = field(default_factory=lambda: array("d"))
    queue_bytes: array[float] = field(default_factory=lambda: array("d"))


@dataclass(slots=True)
class Tally:
    """All reports of a run."""

    numbers: dict[int, str]  # switches by their number in telemetry
    tick_ns: float = 1.0
    reports: int = 0
    unreadable: int = 0
    mtu_exceeded: int = 0  # reports of packets without room for every hop
    hops: dict[str, HopSeen] = field(default_factory=dict)

    @classmethod
    def of(cls, fabric: Fabric, tick_ns: float = 1.0) -> Tally:
        """An empty one."""
        return cls({node_id(switch): switch.name for switch in fabric.switches}, tick_ns)

    def add(self, frame: bytes) -> None:
        """Take a report into account."""
        try:
            report = decode(frame)
        except ReportError:
            self.unreadable += 1
            return
        self.reports += 1
        self.mtu_exceeded += report.mtu_exceeded
        for hop in report.hops:
            name = None if hop.node is None else self.numbers.get(hop.node)
            if name is None:
                continue
            seen = self.hops.setdefault(name, HopSeen())
            if hop.latency is not None:
                seen.latency_ns.append(hop.latency * self.tick_ns)
            if hop.queue_bytes is not None:
                seen.queue_bytes.append(hop.queue_bytes)


class Collector:
    """Listens at the far ends of the report cables, until it is closed."""

    def __init__(self, fabric: Fabric, take: Callable[[bytes], None]) -> None:
        self._take = take
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
            for listener in ready:
                if listener is not self._stop_reader:
                    self._take_all(listener)  # type: ignore[arg-type]
            if ready == [self._stop_reader]:
                return

    def _take_all(self, listener: socket.socket) -> None:
        with suppress(BlockingIOError):
            while True:
                self._take(listener.recv(_LARGEST))

    def close(self) -> None:
        """Take what has come, and stop."""
        self._stop_writer.send(b"x")
        self._thread.join()
        for key in list(self._selector.get_map().values()):
            key.fileobj.close()  # type: ignore[union-attr]
        self._stop_writer.close()
        self._selector.close()


def switch_named(fabric: Fabric, number: int | None) -> Node | None:
    """The switch of this number in telemetry."""
    return next((switch for switch in fabric.switches if node_id(switch) == number), None)


def far_end(switch: Node) -> str:
    """The interface where a switch's reports come out."""
    return f"{switch}-int"


def lay_report_cables(switches: Iterable[Node]) -> None:
    """Give every switch a cable for its reports."""
    add_veths((switch.interface(REPORT_PORT), far_end(switch)) for switch in switches)


def _listener(interface: str) -> socket.socket:
    listener = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(_ALL_PROTOCOLS))
    listener.setblocking(False)
    with suppress(PermissionError):
        listener.setsockopt(socket.SOL_SOCKET, _FORCED, _RECEIVE_BUFFER)
    listener.bind((interface, 0))
    return listener
