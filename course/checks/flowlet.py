"""Lesson 8: a flow that rested for long enough may take another way, and overtakes nothing."""

from __future__ import annotations

from collections import Counter

from course.bench import Bench, Switch
from course.check import check
from course.frames import Udp
from course.verdict import Wrong

PROGRAM, ANSWERS = "flowlet.p4", "answers.yaml"
_GAP = 50_000
_WAYS = 4
_RESTING = (
    "lb.policy=flowlet",
    "traffic.rest_ns=26us",
    "traffic.messages=24",
    "traffic.flows.0.bytes=1MB",
    "traffic.flows.1.bytes=900KB",
)
_BETTER = 0.92  # of the time that messages take which never part


class _Leaf:
    """A switch, and packets that come at chosen times."""

    def __init__(self, bench: Bench) -> None:
        ways = (f"add ways meta.way:{way} to_port(port:{way + 10})" for way in range(_WAYS))
        route = f"to_ways(ways:{_WAYS}, gap:{_GAP})"
        self._switch: Switch = bench.switch(
            PROGRAM, f"add routes hdr.ipv4.dst_addr:0x0a000200/24 {route}\n" + "\n".join(ways)
        )
        self._now = 10**9

    def way(self, after: int, flow: int = 0) -> int:
        """The way of a flow's packet that comes so much later than the last of any; -1: none."""
        self._now += after
        left = self._switch.send(1, Udp(sport=49152 + flow).frame, at_ns=self._now)
        return left[0][0] - 10 if left else -1


@check("A flow that does not rest keeps its way", 3)
def keeps(bench: Bench) -> None:
    """However long it lasts."""
    leaf = _Leaf(bench)
    taken: set[int] = set()
    for flow in range(12):
        ways = [leaf.way(_GAP * 3 // 4, flow) for _ in range(12)]
        if -1 in ways:
            raise Wrong(
                "packets were dropped, for a way that is not there",
                f"{PROGRAM}: ingress (TODO 1): of {_WAYS} ways the last is {_WAYS - 1}",
            )
        if len(set(ways)) > 1:
            raise Wrong(
                f"a flow whose packets come every {_GAP * 3 // 4:,} ns, the gap being {_GAP:,}, took "
                f"ways {', '.join(map(str, ways))}",
                f"{PROGRAM}: ingress (TODO 1 and 2): rested since when?",
            )
        taken |= set(ways)
    if len(taken) == 1:
        raise Wrong(
            f"twelve flows took one of {_WAYS} ways, all the same",
            f"{PROGRAM}: ingress (TODO 1): a flow that is new takes a way by chance",
        )


@check("A flow that rested takes a way by chance, any of them", 3)
def moves(bench: Bench) -> None:
    """New flows too."""
    leaf = _Leaf(bench)
    rested = Counter(leaf.way(_GAP + 1) for _ in range(400))
    leaf = _Leaf(bench)
    new = Counter(leaf.way(10, flow) for flow in range(400))
    for what, found in (("400 new flows", new), ("a flow that rests before each packet", rested)):
        shares = ", ".join(f"way {way}: {found[way]}" for way in range(_WAYS))
        if (
            max(found[way] for way in range(_WAYS)) > 140
            or min(found[w] for w in range(_WAYS)) < 60
        ):
            raise Wrong(
                f"{what} did not take all ways alike ({shares})",
                f"{PROGRAM}: ingress (TODO 1): who draws, from which numbers, and is it remembered?",
            )


@check("Flows rest each for itself", 2)
def apart(bench: Bench) -> None:
    """What one sends is no packet of another's."""
    leaf = _Leaf(bench)
    resting = []
    for _ in range(60):
        resting.append(leaf.way(_GAP // 2, flow=1))
        leaf.way(_GAP // 2 + 1, flow=2)
        leaf.way(_GAP // 2, flow=2)
    if len(set(resting)) == 1:
        raise Wrong(
            "a flow that rested for long enough kept its way, because another flow sent meanwhile",
            f"{PROGRAM}: ingress (TODO 2): under which index is it remembered?",
        )


@check("answers.yaml: flows part, and nothing is reordered", 3)
def in_the_fabric(bench: Bench) -> None:
    """Two elephants that rest between messages."""
    gap = bench.answers(ANSWERS, {"gap": (int, str)})["gap"]
    found = bench.run("two-elephants", *_RESTING, f"lb.flowlet_gap_ns={gap}", said=ANSWERS)
    where = f"{ANSWERS} (TODO 3)"
    if found.roce.out_of_order_packets:
        raise Wrong(
            f"with a gap of {gap} {found.roce.out_of_order_packets} packets came out of order",
            f"{where}: for how long can a packet still be under way in a queue of the old way?",
        )
    together = bench.run("two-elephants", *_RESTING, "lb.policy=ecmp")
    assert found.flows.fct_ns is not None
    assert together.flows.fct_ns is not None
    if found.flows.fct_ns.p50 > _BETTER * together.flows.fct_ns.p50:
        raise Wrong(
            f"with a gap of {gap} messages take {found.flows.fct_ns.p50 / 1e3:.0f} us, and "
            f"{together.flows.fct_ns.p50 / 1e3:.0f} us if flows never part",
            f"{where}: do the senders ever rest for so long?",
        )
