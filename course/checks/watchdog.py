"""Lesson 6: a queue that is paused and does not move for too long is let go."""

from __future__ import annotations

from course.bench import Bench, Switch
from course.check import check
from course.frames import Udp
from course.verdict import Wrong

PROGRAM, ANSWERS = "watchdog.p4", "answers.yaml"
_PORT, _OTHER = 5, 6
_PATIENCE = 1_000_000
_STEP = _PATIENCE // 10
_SOON_NS = 4_000_000
_MANY = (
    "topology.hosts_per_leaf=16",
    "traffic.senders=63",
    "traffic.bytes=1MB",
    "buffer.bytes=6MB",
)
_CIRCLE = ["spine1", "leaf2", "spine2", "leaf4"]
_NODES = {f"{kind}{n}" for kind, count in (("leaf", 4), ("spine", 2)) for n in range(1, count + 1)}


def _pause(quanta: int) -> bytes:
    head = bytes.fromhex("0180c2000001 020000000009 8808 0101 0008")
    return (head + bytes(6) + quanta.to_bytes(2, "big")).ljust(60, b"\0")


class _Port:
    """A port that packets are for, and the neighbour that pauses it."""

    def __init__(self, bench: Bench) -> None:
        self.switch: Switch = bench.switch(
            PROGRAM,
            f"""
            setdefault watchdog waits(patience:{_PATIENCE})
            add routes hdr.ipv4.dst_addr:0x0a000201 forward(port:{_PORT})
            add routes hdr.ipv4.dst_addr:0x0a000202 forward(port:{_OTHER})
            """,
        )
        self.now = 5 * _PATIENCE

    def goes(self, after: int, dst: str = "10.0.2.1") -> bool:
        """Whether a packet leaves that comes so much later."""
        self.now += after
        return bool(self.switch.send(1, Udp(dst=dst).frame, at_ns=self.now))

    def pause(self, after: int, quanta: int = 0xFFFF) -> None:
        """The neighbour says something."""
        self.now += after
        if self.switch.send(_PORT, _pause(quanta), at_ns=self.now):
            raise Wrong("a pause frame was sent on", f"{PROGRAM}: ingress (TODO 1): it ends here")


@check("A port that stands still, paused, for too long is let go", 3)
def lets_go(bench: Bench) -> None:
    """What is for it is dropped, and counted."""
    port = _Port(bench)
    port.goes(_STEP)
    port.pause(_STEP)
    if port.goes(_PATIENCE + _STEP):
        raise Wrong(
            f"a port was paused, and nothing left by it for {_PATIENCE + _STEP:,} ns: a packet for it "
            f"is still let through; patience is {_PATIENCE:,}",
            f"{PROGRAM}: ingress (TODO 1 and 3): since when is it paused, and is that long enough?",
        )
    if not port.goes(0, dst="10.0.2.2"):
        raise Wrong(
            "another port, which nobody paused, is let go too",
            f"{PROGRAM}: ingress (TODO 3): whose pause is that?",
        )


@check("Not before its patience is over, and not one that moves", 3)
def is_patient(bench: Bench) -> None:
    """Congestion is no deadlock."""
    port = _Port(bench)
    if not port.goes(20 * _PATIENCE) or not port.goes(20 * _PATIENCE):
        raise Wrong(
            "a packet for a port that nobody paused was dropped",
            f"{PROGRAM}: ingress (TODO 3): quiet is not stuck",
        )
    port.pause(20 * _PATIENCE)
    if not port.goes(_PATIENCE // 2):
        raise Wrong(
            f"a port was let go {_PATIENCE // 2:,} ns after it was paused; patience is {_PATIENCE:,}",
            f"{PROGRAM}: ingress (TODO 3): since when does it stand still? It was quiet before",
        )
    for _ in range(4):
        if not port.goes(_PATIENCE // 2):
            raise Wrong(
                f"a paused port by which something left {_PATIENCE // 2:,} ns ago was let go",
                f"{PROGRAM}: egress (TODO 2): who writes down that something left?",
            )
    port = _Port(bench)
    port.goes(_STEP)
    for _ in range(5):
        port.pause(_PATIENCE // 2)
    if port.goes(_STEP):
        raise Wrong(
            f"a port is paused for {2 * _PATIENCE:,} ns, its pause renewed now and then, and it is not "
            "let go",
            f"{PROGRAM}: ingress (TODO 1): does a pause that is renewed begin anew?",
        )


@check("XON lets it go on as before", 2)
def goes_on(bench: Bench) -> None:
    """And a later pause begins anew."""
    port = _Port(bench)
    port.pause(_STEP)
    if port.goes(3 * _PATIENCE):
        raise Wrong("a stuck port is not let go", f"{PROGRAM}: ingress (TODO 1 and 3)")
    port.pause(_STEP, quanta=0)
    if not port.goes(3 * _PATIENCE):
        raise Wrong(
            "the neighbour took its pause back, and packets are dropped all the same",
            f"{PROGRAM}: ingress (TODO 1): a pause frame with timer3 0",
        )
    port.pause(3 * _PATIENCE)
    if not port.goes(_STEP):
        raise Wrong(
            "a port that was stuck once is let go at once when it is paused again",
            f"{PROGRAM}: ingress (TODO 1 and 3): what is remembered of the first time?",
        )


@check("answers.yaml: who waits for whom", 2)
def circle(bench: Bench) -> None:
    """From any of them, either way round."""
    answers = bench.answers(ANSWERS, {"circle": list, "watchdog": (int, str)})
    named = [str(name) for name in answers["circle"]]
    where = f"{ANSWERS} (TODO 4)"
    strange = [name for name in named if name not in _NODES]
    if strange:
        raise Wrong(f"{strange[0]} is no switch of this fabric", where)
    if sorted(named) != sorted(_CIRCLE):
        raise Wrong(
            f"{', '.join(named)}: not all of these wait for one another, or some are missing",
            f"{where}: between leaf1 and leaf3 packets go up and down twice: by which switches?",
        )
    at = named.index(_CIRCLE[0])
    if named[at:] + named[:at] not in (_CIRCLE, [_CIRCLE[0], *reversed(_CIRCLE[1:])]):
        raise Wrong(
            f"{', '.join(named)}: two neighbours of these have no cable between them", where
        )


@check("answers.yaml: deadlocks are over soon, and congestion is no deadlock", 3, comes_last=True)
def in_the_fabric(bench: Bench) -> None:
    """The watchdog of every switch in three scenarios."""
    answers = bench.answers(ANSWERS, {"circle": list, "watchdog": (int, str)})
    watchdog = f"pfc.watchdog_ns={answers['watchdog']}"
    where = f"{ANSWERS} (TODO 5)"
    for who, changes in (("seven hosts", ()), ("63 hosts", _MANY)):
        found = bench.run("incast", watchdog, *changes, said=ANSWERS)
        if found.pfc.storms:
            raise Wrong(
                f"{who} write to one, and the watchdog takes that for {sum(found.pfc.storms.values())} "
                f"deadlocks: {found.drops.total:,} packets are dropped",
                f"{where}: how long does a queue wait for its turn in honest congestion?",
            )
    found = bench.run("deadlock", watchdog, "limit_ns=20ms", said=ANSWERS)
    if found.ended or found.duration_ns > _SOON_NS:
        raise Wrong(
            f"the deadlock's messages take {found.duration_ns / 1e6:.1f} ms, of which hardly any is "
            f"spent on sending; {_SOON_NS / 1e6:g} ms will do",
            f"{where}: how long does everybody stand still each time?",
        )
