"""Lesson 5: a port that stops its sender before it has to drop, and how much room that takes.

The submission's program runs on a switch whose links have a rate and a length. At one of them sits
a sender that never stops by itself, at the other a receiver that takes next to nothing; the way
back to the sender is busy too, so that a pause frame has to wait for a frame that has begun.
"""

from __future__ import annotations

from dataclasses import field

from course.bench import Bench, Switch
from course.check import check
from course.frames import WIRE_OVERHEAD, Udp
from course.verdict import Wrong
from params.data import Data

PROGRAM, FUNCTION = "pause.p4", "headroom.py"
_SENDER, _RECEIVER = 1, 2
_XOFF, _XON = 21_000, 10_500  # both are met exactly by frames of 1,500 bytes
_ROOM = 1_000_000  # headroom that never ends
_STILL_BPS = 1_000_000  # what a receiver takes that stands still
_LONG_NS = 10**9
_PHASES = 24
_MAX_FRAMES = 200
_LARGEST = 4234  # of the fabric below, with 4096 bytes of payload
_STORM = {
    "name": "receiver-stands-still",
    "topology": {"kind": "leaf-spine", "leaves": 1, "spines": 1, "hosts_per_leaf": 3},
    "buffer": {"bytes": 2_000_000},
    "ecn": {"enabled": False},
    "pfc": {"response_ns": 0, "watchdog_ns": 0},
    "transport": {"rto_ns": 10_000_000},
    "traffic": {"kind": "incast", "receiver": "h2", "senders": 2, "bytes": 1_000_000},
    "faults": [{"at_ns": 0, "action": "storm", "host": "h2", "for_ns": 100_000}],
    "limit_ns": 2_000_000,
}


class Cable(Data):
    """Between the sender and the switch."""

    gbps: int
    delay_ns: int
    frame: int  # bytes of each

    @property
    def frame_ns(self) -> float:
        """What one takes on the wire."""
        return (self.frame + WIRE_OVERHEAD) * 8 / self.gbps

    def __str__(self) -> str:
        return f"{self.gbps} Gb/s, {self.delay_ns} ns and frames of {self.frame:,} bytes"


# What is left over after whole frames is large enough for some phase to bring in one more.
CABLES = (Cable(100, 1130, 1500), Cable(400, 510, 4170), Cable(25, 2030, 1100))
USUAL = CABLES[0]


class Line(Data, frozen=False):
    """A sender at full rate, the switch, and a receiver that stands still."""

    switch: Switch
    cable: Cable
    now_ns: float = 0.0  # when the sender may begin its next frame
    sent: int = 0
    left: int = 0
    pauses: list[tuple[int, int]] = field(default_factory=list)  # when it was there, its quanta

    @property
    def used(self) -> int:
        """What the program says that it holds of the sender's."""
        return self.switch.register("used", _SENDER)

    def count(self, quanta: int) -> int:
        """How many pause frames said so."""
        return sum(sent == quanta for _, sent in self.pauses)

    def send(self, frames: int, *, back_ns: float | None = None) -> None:
        """So many frames at full rate, or until told to stop; the way back is busy from then on."""
        forth = Udp(src="10.0.1.1", dst="10.0.2.1", payload=bytes(self.cable.frame - 42))
        back = forth.but(src="10.0.2.1", dst="10.0.1.1").frame
        for _ in range(frames):
            if self.pauses and self.pauses[-1][1] and self.now_ns >= self.pauses[-1][0]:
                return
            arrives_ns = self.now_ns + self.cable.frame_ns + self.cable.delay_ns
            while back_ns is not None and back_ns <= arrives_ns:
                self._come(_RECEIVER, back, back_ns)
                back_ns += self.cable.frame_ns
            self._come(_SENDER, forth.frame, arrives_ns)
            self.sent += 1
            self.now_ns += self.cable.frame_ns

    def wait(self, ns: int) -> None:
        """Let time pass."""
        self.switch.wait(self.switch.now_ns + ns)
        self._look()

    def _come(self, port: int, frame: bytes, at_ns: float) -> None:
        self.switch.wait(round(at_ns))
        self.switch.dataplane.inject(port, frame, round(at_ns))
        self._look()

    def _look(self) -> None:
        for port, frame, when in self.switch.timed():
            if frame[12:14] == b"\x88\x08":
                if port == _SENDER:
                    self.pauses.append((when, int.from_bytes(frame[24:26], "big")))
            elif port == _RECEIVER:
                self.left += 1


def _line(bench: Bench, cable: Cable = USUAL, room: int = _ROOM) -> Line:
    """Frames fill the port to XOFF exactly: the next one is beyond with all its bytes."""
    xoff = _XOFF // cable.frame * cable.frame
    switch = bench.switch(
        PROGRAM,
        f"""
        add routes hdr.ipv4.dst_addr:0x0a000201 forward(port:{_RECEIVER})
        add routes hdr.ipv4.dst_addr:0x0a000101 forward(port:{_SENDER})
        add profiles ingress_port:{_SENDER} limits(xoff:{xoff}, xon:{_XON}, headroom:{room})
        mirroring_add {_SENDER} {_SENDER}
        mirroring_add {_RECEIVER} {_RECEIVER}
        """,
    )
    switch.dataplane.configure_port(_SENDER, rate_bps=cable.gbps * 10**9, delay_ns=cable.delay_ns)
    switch.dataplane.configure_port(_RECEIVER, rate_bps=_STILL_BPS)
    return Line(switch, cable)


@check("What waits is counted, and what has left no more", 2)
def counts(bench: Bench) -> None:
    """In bytes, by the port that it came from."""
    line = _line(bench)
    line.send(6)
    if line.used == 0:
        raise Wrong(
            "six frames came in, five of them wait, and `used` is 0",
            f"{PROGRAM}: ingress (TODO 1): who writes down that a packet came in?",
        )
    if line.used == 6 * USUAL.frame:
        raise Wrong(
            f"six frames came in, one of them has left, and `used` is still {line.used}",
            f"{PROGRAM}: egress (TODO 3): who takes away what leaves?",
        )
    if line.used != 5 * USUAL.frame:
        raise Wrong(
            f"five frames of {USUAL.frame} bytes wait, and `used` is {line.used}",
            f"{PROGRAM}: ingress (TODO 1): what is a packet's size, and what was there before?",
        )
    line.wait(_LONG_NS)
    if line.used:
        raise Wrong(
            f"all frames have left, and `used` is {line.used}",
            f"{PROGRAM}: egress (TODO 3): by which port, and how much, does it become less?",
        )


@check("XOFF: the sender is told to stop when it goes beyond, once", 2)
def stops(bench: Bench) -> None:
    """And not before."""
    line = _line(bench)
    fits = _XOFF // USUAL.frame + 1  # and one that is on its way out
    line.send(fits)
    line.wait(USUAL.delay_ns * 4)
    if line.pauses:
        raise Wrong(
            f"with {line.used} bytes the sender was told to stop; XOFF is {_XOFF}",
            f"{PROGRAM}: ingress (TODO 2): when is it beyond?",
        )
    line.now_ns = max(line.now_ns, float(line.switch.now_ns))
    line.send(4)
    line.wait(USUAL.delay_ns * 4)
    if not line.pauses:
        raise Wrong(
            f"with {line.used} bytes, XOFF being {_XOFF}, nobody told the sender to stop",
            f"{PROGRAM}: ingress (TODO 2): pause_frame sends one",
        )
    if line.pauses[0][1] == 0:
        raise Wrong(
            "the pause frame says 0 quanta, which means to go on",
            f"{PROGRAM}: ingress (TODO 2): the longest pause there is",
        )
    if len(line.pauses) > 1:
        raise Wrong(
            f"the sender was told {len(line.pauses)} times to stop, with every packet again",
            f"{PROGRAM}: ingress (TODO 2): who remembers that it was told?",
        )


@check("XON: it may go on when enough has left, and not before", 2)
def resumes(bench: Bench) -> None:
    """Once, and then it can be stopped again."""
    line = _line(bench)
    line.send(40)
    if line.pauses and line.pauses[-1][1] == 0:
        raise Wrong(
            "the sender was told to go on although nothing had left",
            f"{PROGRAM}: egress (TODO 4): what does XON mean?",
        )
    step_ns = USUAL.frame * 8 * 10**9 // _STILL_BPS // 2
    held, left = line.used, line.left
    while line.used and not line.count(0):
        if held != line.used:
            left = line.left
        held = line.used
        line.wait(step_ns)
        if line.left > left + 4 and line.used == held:
            raise Wrong(
                f"frames leave, and `used` stays at {held}",
                f"{PROGRAM}: egress (TODO 3): who takes away what leaves?",
            )
    if not line.count(0):
        raise Wrong(
            "all has left, and the sender was never told to go on",
            f"{PROGRAM}: egress (TODO 4): pause_frame(0) tells the port the packet is from",
        )
    if held > _XON + USUAL.frame or held <= _XON:
        raise Wrong(
            f"it was told to go on when {held - USUAL.frame} bytes were left; XON is {_XON}",
            f"{PROGRAM}: egress (TODO 4): after this packet has left, what is held?",
        )
    line.wait(_LONG_NS)
    if line.count(0) > 1:
        raise Wrong(
            f"the sender was told {line.count(0)} times to go on",
            f"{PROGRAM}: egress (TODO 4): only one who was stopped is told",
        )
    line.now_ns = float(line.switch.now_ns)
    line.send(40)
    if line.count(0xFFFF) < 2:
        raise Wrong(
            "a sender that was told to go on is not stopped again",
            f"{PROGRAM}: egress (TODO 4): what is remembered of it?",
        )


@check("Beyond the headroom, and only there, a packet is dropped")
def drops(bench: Bench) -> None:
    """What is dropped holds nothing."""
    room = 4 * USUAL.frame
    line = _line(bench, room=room)
    line.cable = Cable(USUAL.gbps, 1_000_000, USUAL.frame)  # a sender too far to be told in time
    line.send(60)
    held, gone = line.used, line.left
    line.wait(_LONG_NS)
    kept = (line.left - gone) * USUAL.frame
    most = (_XOFF + room) // USUAL.frame * USUAL.frame
    if kept > most:
        raise Wrong(
            f"{kept} bytes were held; XOFF and headroom are {_XOFF + room}",
            f"{PROGRAM}: ingress (TODO 1): what no longer fits must be dropped",
        )
    if kept < most:
        raise Wrong(
            f"no more than {kept} bytes were held; XOFF and headroom are {_XOFF + room}",
            f"{PROGRAM}: ingress (TODO 1): what fits into headroom is held",
        )
    if held != kept or line.used:
        raise Wrong(
            f"when {kept} bytes were held, `used` was {held}, and {line.used} when all had left",
            f"{PROGRAM}: ingress (TODO 1): does a packet count that was dropped?",
        )


def _lost(bench: Bench, cable: Cable, room: int) -> int:
    """The most frames that are lost, whenever the way back begins to be busy."""
    worst = 0
    for at in range(_PHASES):
        line = _line(bench, cable, room)
        line.send(_MAX_FRAMES, back_ns=cable.frame_ns * at / _PHASES)
        inside = line.used // cable.frame
        worst = max(worst, line.sent - line.left - inside)
    return worst


def _room(bench: Bench, cable: Cable) -> int:
    functions = bench.functions(FUNCTION)
    found = functions.number("headroom", cable.gbps, cable.delay_ns, cable.frame)
    if not 0 <= found < 1 << 30:
        raise Wrong(f"headroom for {cable} is {found:,}", f"{FUNCTION}: in bytes, please")
    return int(found)


@check("headroom.py: with so much room nothing is lost, on any cable", 3)
def is_enough(bench: Bench) -> None:
    """Whenever the pause frame has to wait."""
    bench.program(PROGRAM)
    for cable in CABLES:
        room = _room(bench, cable)
        if lost := _lost(bench, cable, room):
            raise Wrong(
                f"{room:,} bytes of headroom for {cable}: {lost} frames were lost",
                f"{FUNCTION}: {_hint(room, cable)}",
            )


@check("headroom.py: with a frame less exactly one frame is lost", 3)
def is_no_more(bench: Bench) -> None:
    """So it is not a byte too much that matters."""
    bench.program(PROGRAM)
    for cable in CABLES:
        room = _room(bench, cable)
        lost = _lost(bench, cable, room - cable.frame) if room > cable.frame else _MAX_FRAMES
        if lost != 1:
            fate = "nothing is lost" if lost == 0 else f"{lost} frames are lost"
            raise Wrong(
                f"{room:,} bytes of headroom for {cable}: with a frame less {fate}",
                f"{FUNCTION}: {_hint(room, cable)}",
            )


def _hint(room: int, cable: Cable) -> str:
    """Which part of the sum is most likely wrong."""
    way = cable.gbps * cable.delay_ns / 8
    frames, best = 0, float("inf")
    ways = 0.0
    for some in range(8):
        for count in (0, 0.25, 1, 2, 3, 4, 16):  # 0.25 and 16: bits taken for bytes
            off = abs(some * cable.frame + count * way - room)
            if off < best:
                best, frames, ways = off, some, count
    if ways in (0.25, 16):
        return "the cable: a byte has 8 bits, and a Gb/s is one bit a nanosecond"
    if ways == 0:
        return "the cable: a bit takes a while, and while it does the sender goes on"
    if ways == 1:
        return "the cable: what was sent before the pause frame arrives, has it arrived here?"
    if ways > 2:
        return "the cable: which ways are there, and who goes them?"
    if frames != 3:
        return (
            "whole frames: the one that went beyond XOFF, what the pause frame waits for, what the "
            "sender had begun; which of them is missing, or counted twice?"
        )
    return (
        "the small things: the pause frame itself takes time on the wire, every frame has "
        f"{WIRE_OVERHEAD} bytes around it there that no buffer sees, and what is not whole is not less"
    )


@check("In the lab's fabric nothing is lost with it either", 2, comes_last=True)
def in_the_fabric(bench: Bench) -> None:
    """An adapter that stands still for a while, and two that send to it."""
    room = _room(bench, Cable(100, 1000, _LARGEST))
    found = bench.run(_STORM, f"pfc.headroom={room}", said=FUNCTION)
    if found.drops.total:
        raise Wrong(
            f"with pfc.headroom={room} an incast lost {found.drops.total} packets",
            f"{FUNCTION}: {_hint(room, Cable(100, 1000, _LARGEST))}",
        )
