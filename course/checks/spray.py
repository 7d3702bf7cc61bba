"""Lesson 9: every packet takes a way of its own, if its receiver can put them in order again."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from itertools import pairwise

from course.bench import Bench, Kind, Switch
from course.check import check
from course.frames import Udp
from course.verdict import Wrong

PROGRAM, ANSWERS = "spray.p4", "answers.yaml"
_WAYS = 4
_MANY = 800
_KINDS: Mapping[str, Kind] = {"recovery": str, "reorder": (int, str), "ecmp_takes": (int, float)}
_LATE_NS = 1_000_000  # of half of the messages, where packets are really lost


def _switch(bench: Bench, count: int = _WAYS) -> Switch:
    ways = (f"add ways meta.way:{way} to_port(port:{way + 10})" for way in range(count))
    route = f"add routes hdr.ipv4.dst_addr:0x0a000200/24 to_ways(ways:{count})"
    return bench.switch(PROGRAM, "\n".join((route, *ways)))


def _ways(switch: Switch, frames: Iterable[bytes]) -> list[int]:
    """Which way each took."""
    found = []
    for frame in frames:
        left = switch.send(1, frame)
        if not left:
            raise Wrong(
                "a packet was dropped, for a way that is not there, or none",
                f"{PROGRAM}: ingress (TODO 1)",
            )
        found.append(left[0][0] - 10)
    return found


@check("Packets of one RoCE flow are spread over all ways, evenly", 3)
def sprays(bench: Bench) -> None:
    """By chance, so that senders do not fall into step."""
    where = f"{PROGRAM}: ingress (TODO 1)"
    for count in (4, 3):
        ways = _ways(_switch(bench, count), [Udp().frame] * _MANY)
        found = Counter(ways)
        shares = ", ".join(f"way {way}: {found[way]}" for way in range(count))
        if len(found) == 1:
            raise Wrong(f"all packets of a RoCE flow take one way ({shares})", where)
        fair = _MANY / count
        if max(found.values()) > 1.3 * fair or min(found[way] for way in range(count)) < 0.7 * fair:
            raise Wrong(f"packets are not spread evenly ({shares})", f"{where}: from which range?")
        steps = Counter((after - before) % count for before, after in pairwise(ways))
        if len(steps) == 1:
            raise Wrong(
                "packets take ways in turn, always the same turn: two senders in step meet every time",
                f"{where}: by chance",
            )


@check("Other packets keep to their flow's way", 3)
def keeps(bench: Bench) -> None:
    """And flows are spread."""
    switch = _switch(bench)
    where = f"{PROGRAM}: ingress (TODO 2)"
    for name, flow in (
        ("to another UDP port", Udp(dport=53)),
        ("from RoCE's port to another", Udp(sport=4791, dport=53)),
    ):
        ways = set(_ways(switch, [flow.frame] * 40))
        if len(ways) > 1:
            raise Wrong(
                f"packets of one flow {name} took ways {sorted(ways)}: they come out of order",
                f"{where}: which packets are RoCE's?",
            )
    tcp = Udp().frame[:23] + b"\x06" + Udp().frame[24:]
    if len(set(_ways(switch, [tcp] * 40))) > 1:
        raise Wrong("packets of one TCP flow took several ways", f"{where}: is there UDP at all?")
    flows = Counter(_ways(switch, (Udp(dport=53, sport=2000 + n).frame for n in range(_MANY))))
    if len(flows) < _WAYS or max(flows.values()) > 1.4 * _MANY / _WAYS:
        raise Wrong(
            f"{_MANY} other flows are not spread evenly over {_WAYS} ways "
            f"({', '.join(f'{way}: {flows[way]}' for way in range(_WAYS))})",
            f"{where}: a hash of the flow, as large as the other draw",
        )


@check("answers.yaml: sprayed, nothing sent twice, and sooner done", 4)
def in_the_fabric(bench: Bench) -> None:
    """Sixteen elephants over four spines."""
    answers = bench.answers(ANSWERS, _KINDS)
    ecmp = bench.run("hash-collision")
    changes = (
        f"transport.recovery={answers['recovery']}",
        f"transport.reorder={answers['reorder']}",
    )
    found = bench.run("hash-collision", "lb.policy=spray", *changes, said=ANSWERS)
    if answers["recovery"] != "selective" and found.roce.retransmitted_packets:
        raise Wrong(
            f"{found.roce.retransmitted_packets:,} packets were sent again, and none was lost",
            f"{ANSWERS} (TODO 3): what does such an adapter do about a packet that came too early?",
        )
    if found.roce.retransmitted_packets:
        raise Wrong(
            f"{found.roce.retransmitted_packets:,} packets were sent again, and none was lost",
            f"{ANSWERS} (TODO 4): who says after which time that a packet is lost?",
        )
    lossy = bench.run(
        "lossy-link",
        *changes,
        "lb.policy=spray",
        "traffic.bytes=2MB",
        "loss.rate=0.005",  # so that next to no message is spared
        said=ANSWERS,
    )
    if lossy.flows.fct_ns is None or lossy.flows.fct_ns.p50 > _LATE_NS:
        raise Wrong(
            "where packets are really lost, half of the messages take too long",
            f"{ANSWERS} (TODO 4): how long does it take to find out?",
        )
    times = ecmp.duration_ns / found.duration_ns
    if abs(times - answers["ecmp_takes"]) > 0.1:
        raise Wrong(
            f"without spraying it does not take {answers['ecmp_takes']} times as long",
            f"{ANSWERS} (TODO 5): closlab compare shows both",
        )
