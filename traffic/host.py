"""A host: sends its messages, checks those it receives, reports.

``python -m traffic.host`` reads a plan from its standard input (one line of JSON), prints
``ready`` when it listens, waits for a line to start, and prints its report as one line of JSON:
once all has come, or it is told with another line that nothing more will.
"""

from __future__ import annotations

import errno
import selectors
import socket
import sys
import time
from dataclasses import dataclass, field
from ipaddress import IPv4Address

from traffic.frames import ROCE_PORT, FlowAddress, FrameError, RoceFrame, read_frame
from traffic.messages import write_frames
from traffic.plan import HostPlan, HostReport, Message, MessageReport

_ETH_P_IP = 0x0800
_RECEIVE_BUFFER = 64 << 20
_LARGEST_FRAME = 65535
_PAUSE_ON_FULL_QUEUE_S = 0.001
_SO_RCVBUFFORCE = 33


@dataclass
class _Arrival:
    """A message under way: its bytes so far."""

    message: Message
    mtu: int
    data: bytearray
    next_psn: int = 0
    packets: int = 0
    out_of_order: int = 0
    ttl: int | None = None
    end_ns: int | None = None
    filled: set[int] = field(default_factory=set)

    def take(self, frame: RoceFrame) -> None:
        """Put a frame's payload in its place."""
        self.packets += 1
        self.ttl = frame.ttl
        if frame.psn != self.next_psn:
            self.out_of_order += 1
        self.next_psn = frame.psn + 1
        at = frame.psn * self.mtu
        if at + len(frame.payload) > len(self.data):
            raise FrameError(f"PSN {frame.psn} lies behind the message's {len(self.data)} bytes")
        if frame.opcode.starts and frame.message_bytes != len(self.data):
            raise FrameError(f"the RETH says {frame.message_bytes} bytes, not {len(self.data)}")
        self.data[at : at + len(frame.payload)] = frame.payload
        self.filled.add(frame.psn)
        if self.end_ns is None and self.complete:
            self.end_ns = time.monotonic_ns()

    @property
    def complete(self) -> bool:
        """Whether every byte is in its place and right."""
        frames = -(-len(self.data) // self.mtu)
        return len(self.filled) == frames and self.data == self.message.data()


class Host:
    """One host's part in an exchange of messages."""

    def __init__(self, plan: HostPlan) -> None:
        self._plan = plan
        self._arrivals = {
            message.queue_pair: _Arrival(message, plan.path_mtu, bytearray(message.size))
            for message in plan.expects
        }
        self._damaged: list[str] = []
        self._stray = 0
        self._sent_packets = 0
        self._sent_bytes = 0
        self._start_ns: dict[int, int] = {}
        self._socket = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(_ETH_P_IP))
        _enlarge_receive_buffer(self._socket)
        self._socket.bind((plan.interface, _ETH_P_IP))
        self._socket.setblocking(False)
        # An adapter takes RoCEv2 before the kernel sees it. Here the kernel would answer every
        # frame with "port unreachable", so a socket nobody reads owns the port.
        self._port_owner = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self._port_owner.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1)
        self._port_owner.bind(("", ROCE_PORT))

    def exchange(self) -> HostReport:
        """Send everything, receive until all has come or there is word on standard input."""
        with selectors.DefaultSelector() as selector:
            selector.register(self._socket, selectors.EVENT_READ)
            selector.register(sys.stdin, selectors.EVENT_READ)
            for message in self._plan.sends:
                self._send(message)
                self._drain()
            while not self._done():
                ready = {key.fileobj for key, _ in selector.select()}
                self._drain()
                if sys.stdin in ready:
                    break
        return self._report()

    def _send(self, message: Message) -> None:
        flow = FlowAddress(
            src_mac=self._plan.mac,
            dst_mac=self._plan.gateway_mac,
            src=IPv4Address(message.src),
            dst=IPv4Address(message.dst),
            src_port=message.src_port,
            queue_pair=message.queue_pair,
        )
        self._start_ns[message.queue_pair] = time.monotonic_ns()
        for frame in write_frames(flow, message.data(), mtu=self._plan.path_mtu):
            self._transmit(frame)
        self._sent_bytes += message.size

    def _transmit(self, frame: bytes) -> None:
        while True:
            try:
                self._socket.send(frame)
            except OSError as error:
                if error.errno not in (errno.EAGAIN, errno.ENOBUFS):
                    raise
                time.sleep(_PAUSE_ON_FULL_QUEUE_S)
            else:
                self._sent_packets += 1
                return

    def _drain(self) -> None:
        while True:
            try:
                frame, address = self._socket.recvfrom(_LARGEST_FRAME)
            except BlockingIOError:
                return
            if address[2] != socket.PACKET_OUTGOING:
                self._receive(frame)

    def _receive(self, data: bytes) -> None:
        try:
            frame = read_frame(data)
            if frame is None:
                return
            arrival = self._arrivals.get(frame.queue_pair)
            if arrival is None or str(frame.src) != arrival.message.src:
                self._stray += 1
                return
            arrival.take(frame)
        except FrameError as error:
            self._damaged.append(str(error))

    def _done(self) -> bool:
        return all(arrival.end_ns is not None for arrival in self._arrivals.values())

    def _report(self) -> HostReport:
        return HostReport(
            name=self._plan.name,
            sent_packets=self._sent_packets,
            sent_bytes=self._sent_bytes,
            start_ns=self._start_ns,
            received=tuple(
                MessageReport(
                    message=arrival.message,
                    complete=arrival.complete,
                    packets=arrival.packets,
                    out_of_order=arrival.out_of_order,
                    ttl=arrival.ttl,
                    end_ns=arrival.end_ns,
                )
                for arrival in self._arrivals.values()
            ),
            damaged=tuple(self._damaged),
            stray_packets=self._stray,
        )


def _enlarge_receive_buffer(receiver: socket.socket) -> None:
    """Make room for a burst: beyond the machine's limit if we may, else up to it."""
    try:
        receiver.setsockopt(socket.SOL_SOCKET, _SO_RCVBUFFORCE, _RECEIVE_BUFFER)
    except PermissionError:  # root in a user namespace may not
        receiver.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, _RECEIVE_BUFFER)


def main() -> int:
    """Run one host."""
    host = Host(HostPlan.model_validate_json(sys.stdin.readline()))
    print("ready", flush=True)
    if not sys.stdin.readline():
        return 1  # whoever was to give the start is gone
    print(host.exchange().model_dump_json(), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
