"""The program on a port, spoken to in lines: it sends, counts and captures (traffic/tester)."""

from __future__ import annotations

import json
import os
import selectors
import subprocess
import time
from collections.abc import Iterable
from contextlib import suppress
from typing import Any

from doors.tester.models import Refused
from doors.tester.site import Place
from lab.machine.native_host import tester_program

CAPTURE_BYTES = 64 << 20  # that a port keeps
_ANSWER_S = 30.0
_CHUNK = 1 << 16
_END_S = 2.0


class Port:
    """A port that is up; whoever closes it, or dies, ends what it sends."""

    def __init__(self, place: Place, epoch_ns: int) -> None:
        self.place = place
        self._silence()
        self._kept = os.memfd_create("capture", os.MFD_CLOEXEC)
        words = [
            *place.command,
            *(str(tester_program()), place.interface),
            *map(str, (place.bps, place.dilation, place.delay_ns, place.overhead)),
            *map(str, (self._kept, CAPTURE_BYTES, epoch_ns)),
        ]
        self._process = subprocess.Popen(
            words,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            pass_fds=(self._kept,),
            start_new_session=True,  # Ctrl-C is the server's
        )
        self._rest = b""
        self._expect("ready")

    def _silence(self) -> None:
        """What comes is the tester's: the kernel is to answer none of it."""
        own = self.place.ends.mac
        words = ["ip", "link", "set", "dev", self.place.interface]
        self._carry_out([*words, "address", "02:ff:" + own.split(":", 2)[2]])

    def tell(self, lines: Iterable[str]) -> None:
        """Have it do something."""
        assert self._process.stdin is not None
        try:
            self._process.stdin.write("".join(f"{line}\n" for line in lines).encode())
            self._process.stdin.flush()
        except OSError:
            raise self._gone() from None

    def counts(self) -> dict[str, Any]:
        """What it counted, and what its flows are at."""
        self.tell(["tell"])
        found: dict[str, Any] = json.loads(self._line())
        return found

    def captured(self) -> bytes:
        """What it has captured, as a pcap."""
        self.counts()  # which it answers when it has done all that it was told before
        return os.pread(self._kept, os.fstat(self._kept).st_size, 0)

    def turn(self, *, is_up: bool) -> None:
        """Take its link up, or down."""
        words = ["ip", "link", "set", "dev", self.place.interface]
        self._carry_out([*words, "up" if is_up else "down"])

    def _carry_out(self, words: list[str]) -> None:
        done = subprocess.run(
            [*self.place.command, *words], capture_output=True, text=True, check=False
        )
        if done.returncode:
            raise Refused(500, f"{self.place.location}: {done.stderr.strip()}", kind="internal")

    def close(self) -> None:
        """End it."""
        assert self._process.stdin is not None and self._process.stdout is not None
        with suppress(OSError):
            self._process.stdin.close()
        try:
            self._process.wait(_END_S)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._process.stdout.close()
        os.close(self._kept)

    def _expect(self, word: str) -> None:
        if (said := self._line()) != word:
            self._process.kill()
            raise Refused(500, f"{self.place.location}: {said}", kind="internal")

    def _line(self) -> str:
        """The next line it says."""
        assert self._process.stdout is not None
        until = time.monotonic() + _ANSWER_S
        with selectors.DefaultSelector() as selector:
            selector.register(self._process.stdout, selectors.EVENT_READ)
            while b"\n" not in self._rest:
                if not selector.select(max(0.0, until - time.monotonic())):
                    raise self._gone("does not answer")
                piece = os.read(self._process.stdout.fileno(), _CHUNK)
                if not piece:
                    raise self._gone()
                self._rest += piece
        line, _, self._rest = self._rest.partition(b"\n")
        return line.decode()

    def _gone(self, how: str = "is gone: its lab has ended, or it was killed") -> Refused:
        return Refused(500, f"the port at {self.place.location} {how}", kind="internal")
