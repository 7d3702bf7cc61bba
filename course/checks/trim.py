"""Lesson 10: a packet that finds no room leaves its payload behind and goes on as a header."""

from __future__ import annotations

from course.bench import Bench, Switch
from course.check import check
from course.frames import Seen, Udp
from course.verdict import Wrong

PROGRAM = "trim.p4"
_ROOM, _SIZE, _HEADERS, _TRIMMED = 20_000, 1_000, 42, 5
_PORT = 5
_RATE_BPS = 1_000_000_000
_LONG_NS = 10**10
_FITS = _ROOM // _SIZE


class _Burst:
    """A burst for one port, and what came of it."""

    def __init__(self, bench: Bench, packets: int) -> None:
        self.switch: Switch = bench.switch(
            PROGRAM,
            f"add routes hdr.ipv4.dst_addr:0x0a000201 forward(port:{_PORT}, room:{_ROOM})",
        )
        self.switch.dataplane.configure_port(_PORT, rate_bps=_RATE_BPS)
        self.sent = [packet(number) for number in range(packets)]
        left: list[tuple[int, bytes]] = []
        for sent in self.sent:
            left += self.switch.send(1, sent.frame, at_ns=self.switch.now_ns + 1)
        self.used = self.switch.register("queued", _PORT)
        self.switch.wait(_LONG_NS)
        left += self.switch.left()
        self.left = [Seen(frame) for _, frame in left]
        self.whole = [seen for seen in self.left if len(seen.frame) == _SIZE]
        self.trimmed = [seen for seen in self.left if len(seen.frame) != _SIZE]


def packet(number: int) -> Udp:
    """One of a burst."""
    return Udp(identification=number, payload=bytes([number % 251]) * (_SIZE - _HEADERS))


@check("A burst that fits goes through whole, and leaves nothing behind", 2)
def fits(bench: Bench) -> None:
    """As it was, in order."""
    burst = _Burst(bench, _FITS)
    if burst.trimmed or len(burst.whole) != len(burst.sent):
        raise Wrong(
            f"{len(burst.sent)} packets of {_SIZE} bytes, room for {_ROOM:,}: {len(burst.whole)} came "
            f"out whole, {len(burst.trimmed)} trimmed",
            f"{PROGRAM}: ingress (TODO 1): what is free?",
        )
    if not burst.used:
        raise Wrong(
            f"{len(burst.sent)} packets wait, and `queued` is 0", f"{PROGRAM}: ingress (TODO 1)"
        )
    if burst.switch.register("queued", _PORT):
        raise Wrong(
            "all packets have left, and `queued` is not 0",
            f"{PROGRAM}: ingress (TODO 1): what is it that a packet takes along to egress?",
        )


@check("What finds no room is trimmed, and nothing is lost", 3)
def trims(bench: Bench) -> None:
    """Every packet comes out, whole or as its headers."""
    burst = _Burst(bench, 3 * _FITS)
    lost = len(burst.sent) - len(burst.left)
    if lost:
        raise Wrong(
            f"of {len(burst.sent)} packets {lost} came out neither whole nor trimmed",
            f"{PROGRAM}: ingress (TODO 2): nothing of UDP is dropped",
        )
    if len(burst.whole) > _FITS + 1:
        raise Wrong(
            f"{len(burst.whole)} packets of {_SIZE} bytes came out whole at once; there is room for "
            f"{_ROOM:,} bytes",
            f"{PROGRAM}: ingress (TODO 1 and 2): when is there no room?",
        )
    if len(burst.whole) < _FITS:
        raise Wrong(
            f"only {len(burst.whole)} packets of {_SIZE} bytes came out whole, with room for {_ROOM:,}",
            f"{PROGRAM}: ingress (TODO 1): do trimmed packets take room from whole ones?",
        )
    sizes = {len(seen.frame) for seen in burst.trimmed}
    if sizes != {_HEADERS}:
        raise Wrong(
            f"trimmed packets have {', '.join(map(str, sorted(sizes)))} bytes; the headers are "
            f"{_HEADERS}",
            f"{PROGRAM}: ingress (TODO 2)",
        )
    numbers = sorted(seen.identification for seen in burst.left)
    if numbers != list(range(len(burst.sent))):
        raise Wrong(
            "trimmed packets no longer tell which they were", f"{PROGRAM}: ingress (TODO 3)"
        )


@check("The headers tell that they were trimmed, and are true", 3)
def tells(bench: Bench) -> None:
    """DSCP, lengths, checksums."""
    burst = _Burst(bench, 2 * _FITS)
    where = f"{PROGRAM}: ingress (TODO 3)"
    if not burst.trimmed:
        raise Wrong("nothing was trimmed that could tell", f"{PROGRAM}: ingress (TODO 2)")
    if any(seen.dscp == _TRIMMED for seen in burst.whole):
        raise Wrong("a packet that is whole says that it was trimmed", where)
    for seen in burst.trimmed:
        if seen.dscp != _TRIMMED:
            raise Wrong(f"a trimmed packet has DSCP {seen.dscp}, not {_TRIMMED}", where)
        if seen.total_length != _HEADERS - 14:
            raise Wrong(
                f"IPv4 says {seen.total_length} bytes, and there are {_HEADERS - 14}",
                f"{where}: which length is that, and what does it count?",
            )
        if int.from_bytes(seen.frame[38:40], "big") != _HEADERS - 34:
            raise Wrong(
                f"UDP says {int.from_bytes(seen.frame[38:40], 'big')} bytes, and there are "
                f"{_HEADERS - 34}",
                f"{where}: UDP has a length of its own",
            )
        if not seen.has_right_checksum:
            raise Wrong("IPv4's checksum is wrong", f"{where}: net.p4 computes it after egress")


@check("Trimmed packets overtake what waits", 2)
def overtakes(bench: Bench) -> None:
    """So the receiver asks for the payload while there is still time."""
    burst = _Burst(bench, 3 * _FITS)
    first = [seen for seen in burst.left[: len(burst.trimmed) + 3] if len(seen.frame) != _SIZE]
    if not burst.trimmed or len(first) < len(burst.trimmed) - 2:
        raise Wrong(
            f"of {len(burst.trimmed)} trimmed packets {len(first)} left before the whole ones that "
            "waited",
            f"{PROGRAM}: ingress (TODO 4): which queue do they wait in?",
        )
    if not burst.whole:
        raise Wrong("every packet was trimmed", f"{PROGRAM}: ingress (TODO 1): what is free?")
    numbers = [seen.identification for seen in burst.whole]
    if numbers[0] != 0 or numbers != sorted(numbers):
        raise Wrong(
            "whole packets overtake one another", f"{PROGRAM}: ingress (TODO 4): whose priority?"
        )


@check("What is not UDP is dropped when there is no room")
def others(bench: Bench) -> None:
    """Nobody at its end would know what to make of half of it."""
    burst = _Burst(bench, 0)
    frame = packet(0).frame
    tcp = frame[:23] + b"\x06" + frame[24:]
    left = []
    for _ in range(3 * _FITS):
        left += burst.switch.send(1, tcp, at_ns=burst.switch.now_ns + 1)
    burst.switch.wait(burst.switch.now_ns + _LONG_NS)
    left += burst.switch.left()
    if any(len(found) != _SIZE for _, found in left):
        raise Wrong(
            "a TCP packet was trimmed", f"{PROGRAM}: ingress (TODO 2 and 5): who is to be trimmed?"
        )
    if not _FITS <= len(left) <= _FITS + 1:
        raise Wrong(
            f"{len(left)} TCP packets of {_SIZE} bytes came out, with room for {_ROOM:,} bytes",
            f"{PROGRAM}: ingress (TODO 5)",
        )
