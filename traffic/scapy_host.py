"""A host's scapy endpoint as a program: ``python -m traffic.scapy_host``.

It reads and says what the program in C does (`core/host_main.c` lists the words), so that either
may run where the other does: a plan, ``ready``, when to start, what became of it. One nanosecond of
the fabric's time lasts as many real ones as it is told; its cable is part of it too, and hands over
a frame when its last bit would have come.
"""

from __future__ import annotations

import errno
import os
import selectors
import socket
import sys
import time
from collections import Counter, deque
from pathlib import Path
from typing import TextIO

from traffic.endpoint import EndpointError
from traffic.frames import INT_PORT, ROCE_PORT
from traffic.scapy_endpoint import ScapyEndpoint

_ETH_P_ALL = 0x0003
_SOL_PACKET, _PACKET_STATISTICS, _PACKET_IGNORE_OUTGOING = 263, 6, 23
_SO_RCVBUFFORCE = 33
_RECEIVE_BUFFER = 64 << 20
_LARGEST_FRAME = 65535
_LONGEST_NAP_S = 1.0
_RETRY_NS = 1_000_000  # when an interface takes no more
_REFUSED = 2


class Host:
    """An endpoint on an interface, under the real clock."""

    def __init__(self) -> None:
        self._endpoint = ScapyEndpoint(self._transmit)
        self._interface = ""
        self._dilation = self._timeout = self._delay = 0
        self._epoch = 0  # of the monotonic clock, when the fabric's time is 0
        self._wire: deque[tuple[int, bytes]] = deque()  # frames, and when they will have arrived
        self._late: Counter[int] = Counter()
        self._refused = 0
        self._notes: TextIO | None = None
        self._lines: deque[str] = deque()  # heard and not yet taken
        self._partial = b""

    # --- before the start -----------------------------------------------------------------------

    def set_up(self) -> bool:
        """Everything up to ``start``; False if the input is wrong or ends before."""
        number = 0
        while not self._epoch:
            if not self._lines and not self._hear():
                return False
            number += 1
            try:
                self._take(self._lines.popleft())
            except (EndpointError, KeyError, ValueError, OSError) as error:
                print(f"refused {number} {error}", flush=True)
                return False
        return True

    def _hear(self) -> bool:
        """Wait for words; False if there will be none any more."""
        while not self._lines:
            said = os.read(0, 1 << 16)
            if not said:
                return False
            *whole, self._partial = (self._partial + said).split(b"\n")
            self._lines.extend(line.decode() for line in whole)
        return True

    def _take(self, line: str) -> None:
        match line.split():
            case ["host", *words]:
                fields = dict(word.split("=") for word in words)
                self._interface = fields["interface"]
                self._dilation, self._timeout = int(fields["dilation"]), int(fields["timeout"])
                self._delay = int(fields["delay"])
            case ["notes", *_]:
                path = Path(line.removeprefix("notes "))
                path.unlink(missing_ok=True)
                self._notes = path.open("w")
            case ["ready"]:
                self._open()
                print("ready", flush=True)
            case ["link", bps, _]:
                self._endpoint.set_link(int(bps))
            case ["up", _, _]:
                pass  # its one port is all it has, and it sends no pauses
            case ["start", epoch]:
                self._epoch = int(epoch)
                self._endpoint.news.append(f"epoch {epoch}")
            case []:
                pass
            case _:
                self._endpoint.read(line)

    def _open(self) -> None:
        self._socket = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, 0)
        self._socket.setsockopt(_SOL_PACKET, _PACKET_IGNORE_OUTGOING, 1)
        try:
            self._socket.setsockopt(socket.SOL_SOCKET, _SO_RCVBUFFORCE, _RECEIVE_BUFFER)
        except PermissionError:  # root in a user namespace may not
            self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, _RECEIVE_BUFFER)
        self._socket.bind((self._interface, _ETH_P_ALL))
        self._socket.setblocking(False)
        # An adapter takes RoCEv2 before the kernel sees it. Here the kernel would answer every
        # frame with "port unreachable", so sockets that nobody reads own the ports.
        self._owners = [socket.socket(socket.AF_INET, socket.SOCK_DGRAM) for _ in range(2)]
        for owner, port in zip(self._owners, (ROCE_PORT, INT_PORT), strict=True):
            owner.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1)
            owner.bind(("", port))

    # --- under way ------------------------------------------------------------------------------

    def run(self) -> None:
        """Carry out the plan until there is word to stop, or the time is up."""
        time.sleep(max(0, self._epoch - time.monotonic_ns()) / 1e9)
        self._endpoint.start(0)
        has_said = False
        wake: int | None = None
        with selectors.DefaultSelector() as selector:
            selector.register(self._socket, selectors.EVENT_READ)
            selector.register(0, selectors.EVENT_READ)
            while True:
                now = self._now
                if wake is not None and wake <= now:
                    self._late[now - wake] += 1
                wake = self._endpoint.service(now)
                wake = self._deliver(wake)
                while self._endpoint.errors:
                    print(self._endpoint.errors.pop(0), flush=True)
                self._write_down()
                if not has_said and not self._endpoint.open:
                    has_said = True
                    print(f"done {now}", flush=True)
                if self._timeout and now >= self._timeout:
                    return
                for key, _ in selector.select(self._nap_s(wake)):
                    if key.fd == 0 and not self._goes_on():
                        return
                    if key.fd != 0:
                        self._receive()

    @property
    def _now(self) -> int:
        return (time.monotonic_ns() - self._epoch) // self._dilation

    def _nap_s(self, wake: int | None) -> float:
        if wake is None:
            return _LONGEST_NAP_S
        due = self._epoch + wake * self._dilation - time.monotonic_ns()
        return min(_LONGEST_NAP_S, max(0, due) / 1e9)

    def _goes_on(self) -> bool:
        """Take the words that have come; whether none of them is to stop."""
        is_heard = self._hear()
        while self._lines:
            line = self._lines.popleft()
            if not line.startswith(("link ", "up ")):
                return False
            self._take(line)
        return is_heard

    def _transmit(self, frame: bytes, at: int) -> None:
        """Into the cable; without one a frame has arrived when it leaves."""
        way = self._endpoint.wire_ns(len(frame)) + self._delay if self._delay else 0
        self._wire.append((at + way, frame))

    def _deliver(self, wake: int | None) -> int | None:
        """Hand over what has arrived; when to look again, if that is before."""
        while self._wire and self._wire[0][0] <= self._now:
            try:
                self._socket.send(self._wire[0][1])
            except OSError as error:
                if error.errno in (errno.EAGAIN, errno.ENOBUFS):
                    return self._now + max(1, _RETRY_NS // self._dilation)
                self._refused += 1  # lost, as on a cable that is cut
            self._wire.popleft()
        arrival = self._wire[0][0] if self._wire else None
        return min((at for at in (wake, arrival) if at is not None), default=None)

    def _receive(self) -> None:
        """Take in what has come."""
        try:
            while True:
                self._endpoint.receive(self._socket.recv(_LARGEST_FRAME), self._now)
        except BlockingIOError:
            pass
        except OSError as error:
            if error.errno != errno.ENETDOWN:  # its cable was cut
                raise

    def _write_down(self) -> None:
        """What is new, for who watches."""
        if self._notes is not None and self._endpoint.news:
            self._notes.writelines(f"{line}\n" for line in self._endpoint.news)
            self._notes.flush()
        self._endpoint.news.clear()

    # --- afterwards -----------------------------------------------------------------------------

    def report(self) -> None:
        """Say what became of it."""
        for line in self._endpoint.report(self._now):
            print(line)
        dropped = self._socket.getsockopt(_SOL_PACKET, _PACKET_STATISTICS, 8)
        print(f"counter socket_drops {int.from_bytes(dropped[4:8], sys.byteorder)}")
        print(f"counter interface_refused {self._refused}")
        for late_ns, times in self._late.items():
            print(f"late {late_ns} {times}")
        print("end", flush=True)


def main() -> int:
    """Run one host."""
    host = Host()
    if not host.set_up():
        return _REFUSED
    host.run()
    host.report()
    return 0


if __name__ == "__main__":
    sys.exit(main())
