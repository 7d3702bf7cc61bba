"""Lesson 12: packets that carry what every switch on their way says of them."""

from __future__ import annotations

import random

from course.bench import Bench, Switch
from course.check import check
from course.frames import Seen, Udp
from course.verdict import Wrong
from params.data import Data

PROGRAM, FUNCTIONS, ANSWERS = "telemetry.p4", "find.py", "answers.yaml"
_PORT, _DPORT = 5, 20052
_WORDS = 12  # bytes that a switch adds
_AT = 42  # of a frame: where telemetry begins, after Ethernet, IPv4 and UDP
_STILL_BPS = 8_000_000  # a byte a microsecond


def _packet(room: int = 6, said: int = 0, dport: int = _DPORT) -> Udp:
    return Udp(dport=dport, payload=bytes((said, room)) + b"gradients!")


def _switch(bench: Bench, number: int | None) -> Switch:
    name = "" if number is None else f"setdefault me say(switch_id:{number})\n"
    route = f"add routes hdr.ipv4.dst_addr:0x0a000201 forward(port:{_PORT})"
    return bench.switch(PROGRAM, name + route)


class _Report(Data):
    """A packet that carries telemetry, taken apart."""

    frame: bytes

    @property
    def said(self) -> int:
        return self.frame[_AT]

    @property
    def room(self) -> int:
        return self.frame[_AT + 1]

    @property
    def hops(self) -> list[tuple[int, int, int]]:
        """By as many as there is room for in the frame."""
        found = []
        for at in range(_AT + 2, len(self.frame) - 10, _WORDS):
            words = self.frame[at : at + _WORDS]
            found.append(tuple(int.from_bytes(words[n : n + 4], "big") for n in (0, 4, 8)))
        return found  # type: ignore[return-value]


def _through(switch: Switch, frame: bytes) -> bytes:
    left = switch.send(1, frame)
    if not left:
        raise Wrong("a packet was dropped", f"{PROGRAM}: nothing is to be dropped here")
    return left[0][1]


@check("Every switch adds its name in front of what the others said", 3)
def names(bench: Bench) -> None:
    """And counts."""
    frame = _packet().frame
    for number in (11, 22, 33):
        frame = _through(_switch(bench, number), frame)
    report = _Report(frame)
    if len(frame) == len(_packet().frame):
        raise Wrong(
            "a packet passed three switches, and is as long as before",
            f"{PROGRAM}: say (TODO 1): when is a header part of a packet?",
        )
    if len(frame) != len(_packet().frame) + 3 * _WORDS or not frame.endswith(b"gradients!"):
        raise Wrong(
            f"three switches added {len(frame) - len(_packet().frame)} bytes; each has {_WORDS} to say",
            f"{PROGRAM}: say (TODO 1)",
        )
    if [hop[0] for hop in report.hops] != [33, 22, 11]:
        raise Wrong(
            f"a packet that passed 11, 22 and 33 tells of {[hop[0] for hop in report.hops]}; the last "
            "one comes first",
            f"{PROGRAM}: say (TODO 1): what is this switch called?",
        )
    if (report.said, report.room) != (3, 3):
        raise Wrong(
            f"after three switches of six `said` is {report.said}, `room` {report.room}",
            f"{PROGRAM}: say (TODO 2)",
        )


@check("What is said is true: the wait and the queue", 3)
def true(bench: Bench) -> None:
    """Of a port that sends a byte a microsecond."""
    switch = _switch(bench, 7)
    switch.dataplane.configure_port(_PORT, rate_bps=_STILL_BPS, overhead_bytes=0)
    size = len(_packet().frame)
    for _ in range(4):
        switch.dataplane.inject(1, _packet().frame, switch.now_ns + 1000)
    switch.wait(switch.now_ns + 10**9)
    found = [_Report(frame).hops for _, frame in switch.left()]
    if len(found) != 4:
        raise Wrong(
            f"of four packets that came at once {len(found)} left",
            f"{PROGRAM}: nothing is to be dropped here",
        )
    if not all(found):
        raise Wrong("packets tell nothing", f"{PROGRAM}: say (TODO 1)")
    waits = [hops[0][1] for hops in found]
    sent_ns = (size + _WORDS) * 1000
    wanted = [number * sent_ns for number in range(4)]
    if any(abs(wait - want) > 2000 for wait, want in zip(waits, wanted, strict=True)):
        raise Wrong(
            f"four packets came at once to a port that takes {sent_ns:,} ns for each; they say they "
            f"waited {waits} ns",
            f"{PROGRAM}: say (TODO 3): from which time to which?",
        )
    queues = [hops[0][2] for hops in found]
    if queues != [size, 3 * size, 2 * size, size]:
        raise Wrong(
            f"four packets of {size} bytes came at once, and they say of the queue {queues}",
            f"{PROGRAM}: say (TODO 4): `waiting` is what waited, this packet included",
        )


@check("Lengths and checksum stay true", 2)
def lengths(bench: Bench) -> None:
    """IPv4's and UDP's."""
    frame = _through(_switch(bench, 7), _packet().frame)
    seen, where = Seen(frame), f"{PROGRAM}: say (TODO 2)"
    if len(frame) == len(_packet().frame):
        raise Wrong("nothing was added", f"{PROGRAM}: say (TODO 1)")
    if seen.total_length != len(frame) - 14:
        raise Wrong(f"IPv4 says {seen.total_length} bytes, and there are {len(frame) - 14}", where)
    if int.from_bytes(frame[38:40], "big") != len(frame) - 34:
        raise Wrong("UDP's length is not what there is", f"{where}: it has one of its own")
    if not seen.has_right_checksum:
        raise Wrong("IPv4's checksum is wrong", where)


@check("Who is not asked says nothing", 2)
def silent(bench: Bench) -> None:
    """Other packets, no room, no name."""
    for what, number, packet in (
        ("a packet to another port", 7, _packet(dport=4791)),
        ("a packet without room", 7, _packet(room=0, said=6)),
        ("a packet at a switch without a name", None, _packet()),
    ):
        if _through(_switch(bench, number), packet.frame) != packet.frame:
            raise Wrong(
                f"{what} was changed", f"{PROGRAM}: egress (TODO 2 and 5): who is to say something?"
            )
    full = _through(_switch(bench, 7), _packet(room=1).frame)
    if len(full) != len(_packet().frame) + _WORDS or _Report(full).room:
        raise Wrong(
            "a packet with room for one does not tell of one",
            f"{PROGRAM}: egress (TODO 2 and 5): how much room was there, and is there now?",
        )


@check("find.py: the way of a packet, and where packets wait", 2)
def found(bench: Bench) -> None:
    """Of reports as they stand in packets."""
    draw = random.Random(12)
    functions = bench.functions(FUNCTIONS)
    way = functions.call("way", [[33, 5, 0], [22, 9, 1], [11, 7, 2]])
    if way != [11, 22, 33]:
        raise Wrong(
            f"way gives {way} for a packet that passed 11, 22 and 33",
            f"{FUNCTIONS}: way (TODO 6): who stands first in a packet?",
        )
    for slow in (3, 1):
        reports = [
            [[s, draw.randrange(50, 150) + (900 if s == slow else 0), 1] for s in (9, spine, 8)]
            for spine in [slow] * 5 + [2] * 40 + [4] * 10
        ]
        reports[10][0][1] = 20_000  # one of many that waited once
        got = functions.call("slowest", reports)
        if got != slow:
            raise Wrong(
                f"slowest gives {got}; packets that pass {slow} wait ten times as long as elsewhere",
                f"{FUNCTIONS}: slowest (TODO 7): few packets may pass a switch, and one may have bad luck",
            )


@check("answers.yaml: which switch it is", 2)
def in_the_fabric(bench: Bench) -> None:
    """By the median of what packets say."""
    slowest = bench.answers(ANSWERS, {"slowest": str})["slowest"]
    telemetry = bench.run("victim-flow", "int.share=0.05").telemetry
    assert telemetry is not None
    waits = {
        name: hop.latency_ns.p50 for name, hop in telemetry.by_switch.items() if hop.latency_ns
    }
    if slowest not in waits:
        raise Wrong(f"{slowest} said nothing", f"{ANSWERS} (TODO 8): these did: {', '.join(waits)}")
    if slowest != max(waits, key=lambda name: waits[name]):
        raise Wrong(
            f"half of the packets wait less than {waits[slowest]:,.0f} ns at {slowest}; elsewhere more",
            f"{ANSWERS} (TODO 8): result.json, telemetry.by_switch",
        )
