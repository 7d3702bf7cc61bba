"""Lesson 2: switches of several tiers that must not draw alike."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Sequence

from course.bench import Bench, Switch
from course.check import check
from course.frames import Udp
from course.verdict import Wrong

PROGRAM = "tiers.p4"
_FACTORS = (0x9E3779B1, 0x85EBCA6B, 0xC2B2AE35)
_FLOWS = [
    Udp(src=f"10.1.{n % 7}.{n % 31 + 1}", dst=f"10.0.2.{n % 13 + 1}", sport=49152 + n).frame
    for n in range(960)
]


def _tier(bench: Bench, number: int, ways: int) -> Switch:
    entries = (
        f"add ways meta.group:1 meta.way:{way} to_port(port:{way + 1})" for way in range(ways)
    )
    return bench.switch(
        PROGRAM,
        f"""
        setdefault tier of_tier(factor:{_FACTORS[number]})
        add routes hdr.ipv4.dst_addr:0x0a000200/24 to_group(group:1, ways:{ways})
        """
        + "\n".join(entries),
    )


def _ways(switch: Switch, frames: Sequence[bytes]) -> list[int]:
    """Which way each took, from 0; -1: none."""
    found = []
    for frame in frames:
        left = switch.send(100, frame)
        found.append(left[0][0] - 1 if left else -1)
    return found


def _check_even(ways: Sequence[int], count: int, what: str, where: str) -> None:
    found = Counter(ways)
    if found[-1]:
        raise Wrong(
            f"{what}: {found[-1]} of {len(ways)} flows were dropped, for a way that is not there",
            f"{where}: does the draw stay below the number of ways?",
        )
    fair = len(ways) / count
    if max(found.values()) > 1.6 * fair or len(found) < count:
        shares = ", ".join(f"{found[way]} took way {way}" for way in range(count))
        raise Wrong(f"{what}: of {len(ways)} flows {shares}", where)


@check("One tier alone spreads flows over two, three and eight ways", 2)
def alone(bench: Bench) -> None:
    """And each flow keeps to its own."""
    for count in (2, 3, 8):
        switch = _tier(bench, 0, count)
        ways = _ways(switch, _FLOWS)
        where = f"{PROGRAM}: apply (TODO 1)"
        if set(ways) == {0}:
            raise Wrong(f"all flows take the first of {count} ways", where)
        _check_even(ways, count, f"one tier with {count} ways", where)
        again = _ways(switch, _FLOWS)
        if ways != again:
            raise Wrong(
                "flows that come again take another way than before",
                f"{where}: what is drawn follows from the flow, and from nothing else",
            )


@check("The tier behind it uses all of its ways, whichever way flows came", 4)
def second(bench: Bench) -> None:
    """What reaches one switch of the second tier has one thing in common: the first tier's draw."""
    _apart(bench, 0, 1)


@check("So does a third tier", 2)
def third(bench: Bench) -> None:
    """And any two of them are apart."""
    _apart(bench, 0, 2)
    _apart(bench, 1, 2)


def _apart(bench: Bench, first: int, then: int) -> None:
    where = f"{PROGRAM}: apply (TODO 2)"
    stuck: list[dict[int, int]] = []  # for counts of ways: the one way on, by the way of coming
    for count in (2, 4):
        found = _behind(bench, first, then, count)
        if all(len(set(ways)) == 1 for ways in found.values()):
            stuck.append({way: ways[0] for way, ways in sorted(found.items())})
        elif not stuck:
            for way, ways in sorted(found.items()):
                _check_even(
                    ways, count, f"behind way {way} of tier {first + 1}", f"{where}: evenly?"
                )
    if not stuck:
        return
    pairs = "; ".join(f"by {came}, on by {goes}" for came, goes in stuck[-1].items())
    what = f"what came by one way takes one way on, and the others stand idle ({pairs})"
    if all(came == goes for ways in stuck for came, goes in ways.items()):
        raise Wrong(what, f"{where}: both tiers ask the same of the same flow")
    raise Wrong(
        what,
        f"{where}: what one puts into a CRC besides the flow turns the same bits over for all flows; "
        "where in the draw would it mix?",
    )


def _behind(bench: Bench, first: int, then: int, count: int) -> dict[int, list[int]]:
    """The ways that flows take on, by the way they came."""
    ways = _ways(_tier(bench, first, count), _FLOWS)
    reached: dict[int, list[bytes]] = defaultdict(list)
    for way, frame in zip(ways, _FLOWS, strict=True):
        reached[way].append(frame)
    if len(reached) < count:
        raise Wrong("the first tier does not spread flows", f"{PROGRAM}: apply (TODO 1)")
    following = _tier(bench, then, count)
    return {way: _ways(following, frames) for way, frames in reached.items()}
