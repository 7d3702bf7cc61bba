"""Lesson 3: marks, the more of them the longer the queue."""

from __future__ import annotations

from collections.abc import Mapping

from course.bench import Bench, Kind
from course.check import check
from course.frames import Seen, Udp
from course.verdict import Wrong

PROGRAM, ANSWERS = "ramp.p4", "answers.yaml"
_KMIN, _KMAX, _PMAX = 100_000, 400_000, 0.5
_PORT = 5
_MANY = 800
_GRADIENT = int(_PMAX * 2**32 / (_KMAX - _KMIN))
_KINDS: Mapping[str, Kind] = {"kmin": (int, str), "kmax": (int, str), "pmax": (int, float)}
_BYTES = 10_000_000
_TWO_TO_ONE = {
    "name": "two-to-one",
    "topology": {"kind": "leaf-spine", "leaves": 1, "spines": 1, "hosts_per_leaf": 3},
    "buffer": {"bytes": 1_000_000},
    "transport": {"cc": "dcqcn"},
    "traffic": {"kind": "incast", "receiver": "h1", "senders": 2, "bytes": _BYTES},
    "limit_ns": 10_000_000,
}
_IDEAL_NS = 2 * _BYTES * 8 / 100
_SLOWER = 1.2


def _share(bench: Bench, queue: int, ecn: int = 2, profile: str = "") -> float:
    """How many of the packets are marked that meet a queue so long."""
    profile = profile or f"ramp(kmin:{_KMIN}, kmax:{_KMAX}, gradient:{_GRADIENT})"
    packet = Udp(ecn=ecn)
    switch = bench.switch(
        PROGRAM,
        f"""
        add routes hdr.ipv4.dst_addr:0x0a000201 forward(port:{_PORT})
        add profiles standard_metadata.egress_port:{_PORT} {profile}
        register_write queued {_PORT} {queue - len(packet.frame)}
        """,
    )
    marked = 0
    for _ in range(_MANY):
        left = switch.send(1, packet.frame)
        if not left:
            raise Wrong("a packet was dropped; it was to be marked at most", f"{PROGRAM}: egress")
        seen = Seen(left[0][1])
        if seen.dscp != packet.dscp or not seen.has_right_checksum:
            raise Wrong("more was written than the mark", f"{PROGRAM}: egress: hdr.ipv4.ecn alone")
        marked += seen.ecn == 3
    return marked / _MANY


@check("A short queue marks nothing, a long one everything", 2)
def ends(bench: Bench) -> None:
    """Kmin and Kmax."""
    if not _share(bench, 2 * _KMAX):
        raise Wrong(
            f"no packet is marked in a queue of {2 * _KMAX:,} bytes; kmax is {_KMAX:,}",
            f"{PROGRAM}: egress (TODO 1): a mark is the value 3 in hdr.ipv4.ecn",
        )
    for queue, share in ((_KMIN // 2, 0.0), (_KMIN, 0.0), (_KMAX, 1.0), (2 * _KMAX, 1.0)):
        found = _share(bench, queue)
        if found != share:
            raise Wrong(
                f"{found:.0%} of the packets are marked in a queue of {queue:,} bytes; kmin is "
                f"{_KMIN:,}, kmax {_KMAX:,}",
                f"{PROGRAM}: egress (TODO 1): on which side of the thresholds is that?",
            )


@check("Between them the share of marks rises with the queue", 3)
def ramp(bench: Bench) -> None:
    """From 0 to Pmax."""
    found = {}
    for part in (0.25, 0.5, 0.9):
        found[part] = _share(bench, round(_KMIN + part * (_KMAX - _KMIN)))
    where = f"{PROGRAM}: egress (TODO 2)"
    ramps = ", ".join(f"{share:.0%} at {part:.0%} of the way" for part, share in found.items())
    what = f"Pmax is {_PMAX:.0%}, and marked are {ramps} from kmin to kmax"
    if len(set(found.values())) == 1:
        raise Wrong(what, f"{where}: a chance that grows with the queue, and a draw against it")
    for part, share in found.items():
        if abs(share - part * _PMAX) > 0.06:
            raise Wrong(
                what,
                f"{where}: how many bytes beyond kmin are there, each of which is worth `gradient`?",
            )
    step = f"ramp(kmin:{_KMIN}, kmax:{_KMIN}, gradient:0)"
    if _share(bench, _KMIN - 1000, profile=step) or _share(bench, _KMIN + 1, profile=step) != 1:
        raise Wrong(
            "with kmin and kmax the same it is not a step", f"{where}: kmax has the last word"
        )


@check("Only who understands marks is marked", 2)
def capable(bench: Bench) -> None:
    """ECN 0 stays 0, 1 becomes 3, 3 stays 3."""
    if _share(bench, 2 * _KMAX, ecn=0):
        raise Wrong(
            "packets whose sender does not understand marks (ECN 0) are marked",
            f"{PROGRAM}: egress (TODO 3)",
        )
    if _share(bench, 2 * _KMAX, ecn=1) != 1:
        raise Wrong(
            "packets with ECN 1 are not marked; it means the same as 2",
            f"{PROGRAM}: egress (TODO 3): which values does the field have, and what do they mean?",
        )
    if _share(bench, _KMIN // 2, ecn=3) != 1:
        raise Wrong("a mark that was there is taken back", f"{PROGRAM}: egress (TODO 3)")


@check("answers.yaml: no pause, and the link is busy", 3)
def tuned(bench: Bench) -> None:
    """With DCQCN at both senders."""
    answers = bench.answers(ANSWERS, _KINDS)
    changes = (f"ecn.{key}={value}" for key, value in answers.items())
    found = bench.run(_TWO_TO_ONE, *changes, said=ANSWERS)
    slower = found.duration_ns / _IDEAL_NS
    where = (
        f"{ANSWERS} (TODO 4): closlab run two-to-one.yaml, as the README has it, shows the queue"
    )
    if found.ended or slower > _SLOWER:
        raise Wrong(
            f"it takes {slower:.1f} times as long as the link takes to carry it"
            + (", and is not done" if found.ended else ""),
            f"{where}: are senders slowed down although hardly anything waits?",
        )
    if found.pfc.xoff_frames:
        raise Wrong(
            f"the switch still sends {found.pfc.xoff_frames} pause frames, with "
            f"{found.ecn.marked_packets} packets marked",
            f"{where}: do marks come early enough, and are there enough of them?",
        )
