"""Trials of turns, times, marks and ways: see `lab/configs/trials.py`."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from lab.configs.trials import (
    CLASS,
    WATCH_SCALE,
    Content,
    Figures,
    Shown,
    Trial,
    changed,
    incast,
    loses,
    no_pauses,
    one_sender,
    storm,
)
from params.marking import gradient

_HOSTS = 4  # below a leaf
_BYTES = 1_000_000
_SLOW_GBPS = 3.3  # of a receiver: its pauses last for some 150 us, as its buffer is 64 KB


def _arrives(before: Figures, after: Figures) -> bool:
    return before.arrived < after.arrived


def _slower(by: float) -> Shown:
    """Whether all takes so much longer; half of what is to be expected is enough."""
    return lambda before, after: (
        before.arrived == after.arrived and before.took_ns > (1 + (by - 1) / 2) * after.took_ns
    )


# --- turns and queues -----------------------------------------------------------------------------


def _turns(facts: Mapping[str, Any], before: Content, limit_ns: int, waits: int) -> Trial:
    """One message of a class that waits, and much of another, to the same host."""
    base = incast(facts, senders=3)
    other = 0 if waits == CLASS else CLASS
    base["traffic"] = {"kind": "mix", "parts": [
        {"kind": "flows", "name": "waits", "priority": waits,
         "flows": [{"src": "h3", "dst": "h4", "bytes": 200_000}]},
        {"kind": "flows", "name": "much", "priority": other,
         "flows": [{"src": f"h{at}", "dst": "h4", "bytes": 8_000_000} for at in (1, 2)]},
    ]}  # fmt: skip
    base = changed(base, buffer={"bytes": base["buffer"]["bytes"] + 64_000_000,
                                 "lossy_static": 32_000_000})  # fmt: skip
    base |= {"limit_ns": limit_ns}
    fair = {"kind": "ets", "weights": {0: 50, CLASS: 50}}
    note = "run until the message that waits would be there with equal turns"
    turns = [(changed(base, schedule=how),) for how in (before, fair)]
    return Trial(turns[0], turns[1], _arrives, note=note)


def _strict(facts: Mapping[str, Any]) -> Trial:
    limit = 4 * 200_000 * 8 / facts["rate_gbps"] + 20 * facts["delay_ns"] + 100_000
    return _turns(facts, {"kind": "ets", "weights": {0: 1}, "strict": [CLASS]}, round(limit), 0)


def _light(facts: Mapping[str, Any]) -> Trial:
    share = facts["share"]
    weights = {0: round(1000 * (1 - share)), CLASS: max(1, round(1000 * share))}
    ways = 20 * facts["delay_ns"] + 20_000
    limit = 200_000 * 8 / facts["rate_gbps"] * 3 + ways
    return _turns(facts, {"kind": "ets", "weights": weights}, round(limit), CLASS)


def _full_queue(facts: Mapping[str, Any]) -> Trial:
    base = incast(facts)
    for flow in base["traffic"]["flows"][:2]:
        flow["bytes"] = max(flow["bytes"], 2 * facts["limit"])
    before = changed(base, pfc={"priorities": [4]}, buffer={"lossy_static": facts["limit"] + 1})
    before["buffer"]["bytes"] += 4 * facts["limit"]
    after = changed(base, buffer={"bytes": before["buffer"]["bytes"]})
    note = "a queue that is full before anybody is paused is run as a class that may lose"
    return Trial((before,), (after,), loses, note=note)


def _flapping(facts: Mapping[str, Any]) -> Trial:
    base = one_sender(facts, 400_000, 4_000_000)
    base["transport"].pop("cc")
    before, after = (changed(base, pfc={"xon_gap": gap}) for gap in (0, 2 * 4096))
    return Trial((before,), (after,), lambda b, a: b.pauses > 1.5 * a.pauses > 0)


_MAX_KMAX = 2**32 - 1


# --- times and marks ------------------------------------------------------------------------------


def _eager(facts: Mapping[str, Any]) -> Trial:
    """A receiver that is slow: it pauses for longer than the one time, and less than the other."""
    base = incast(facts)
    detection, usual = facts["detection_ms"] * WATCH_SCALE, 200 * WATCH_SCALE
    base["traffic"]["flows"] = [{"src": f"h{at}", "dst": "h3", "bytes": 200_000} for at in (1, 2)]
    base = changed(base, transport={"receive_gbps": {"h3": _SLOW_GBPS}, "timeout": 20})
    base["transport"].pop("rto_ns")
    before = changed(base, pfc={"watchdog_ns": detection})
    after = changed(base, pfc={"watchdog_ns": usual})
    note = "a receiver that is slow, and no storm; times are a thousandth"
    return Trial((before,), (after,), loses, note=note)


def _alert_only(facts: Mapping[str, Any]) -> Trial:
    made = storm(facts, 200 * WATCH_SCALE, 200 * WATCH_SCALE, 2_000_000)
    before = changed(made.before[0], pfc={"watchdog_action": "alert"})
    return Trial((before,), made.after, _arrives, note=made.note)


def _flat(facts: Mapping[str, Any]) -> Trial:
    xoff = facts["xoff"]
    base = one_sender(facts, xoff, 5 * xoff)
    pmax = facts["percent"] / 100
    most = min(facts["top"], _MAX_KMAX)  # of a line as steep
    pmax *= (most - facts["kmin"]) / (facts["top"] - facts["kmin"])
    if not gradient(facts["kmin"], most, pmax):
        pmax = 0.0  # less than switches of the lab can draw: next to none is marked
    flat = {"enabled": True, "kmin": facts["kmin"], "kmax": most, "pmax": pmax}
    soon = {"enabled": True, "kmin": facts["low"], "kmax": facts["high"],
            "pmax": max(0.05, pmax)}  # fmt: skip
    seeds = range(1, 9)  # what is marked by lot may be marked at once
    before = tuple({**changed(base, ecn=flat), "seed": seed} for seed in seeds)
    after = tuple({**changed(base, ecn=soon), "seed": seed} for seed in seeds)
    return Trial(before, after, lambda before, after: before.pauses > after.pauses)


# --- ways -----------------------------------------------------------------------------------------


def _fabric(facts: Mapping[str, Any], spines: int, rate: float) -> Content:
    """Two leaves; every host of the one sends to one of the other."""
    base = incast(facts)
    base["topology"] = {"kind": "leaf-spine", "leaves": 2, "spines": spines,
                        "hosts_per_leaf": _HOSTS}  # fmt: skip
    base["link"]["fabric_rate_gbps"] = rate
    base["lb"] = {"policy": "spray"}
    base["traffic"] = {"kind": "flows", "priority": CLASS, "flows": [
        {"src": f"h{at}", "dst": f"h{at + _HOSTS}", "bytes": _BYTES}
        for at in range(1, _HOSTS + 1)
    ]}  # fmt: skip
    return base


def _crowded(facts: Mapping[str, Any]) -> Trial:
    """With what the cables up carry of what hosts send, and with as much."""
    rate = facts["rate_gbps"] * _HOSTS
    before, after = _fabric(facts, 1, rate / facts["ratio"]), _fabric(facts, 1, rate)
    return Trial((before,), (after,), _slower(facts["ratio"]),
                 note=f"{_HOSTS} hosts send to another switch, with such cables and with as much "
                 "as they send")  # fmt: skip


def _slow_way(facts: Mapping[str, Any]) -> Trial:
    base = _fabric(facts, 2, facts["rate_gbps"] * _HOSTS / 2)
    before = changed(base, link={"slow": {"leaf1-spine1": facts["share"]}})
    by = 1 + (1 / facts["share"] - 1) / 2
    return Trial((before,), (base,), _slower(by), note="packets take both ways in turn")


def _fewer(facts: Mapping[str, Any]) -> Trial:
    """So many cables, all at one rate, and one of them as slow as makes up for what is missing."""
    rate = facts["rate_gbps"] * _HOSTS
    before, after = _fabric(facts, 1, rate * facts["share"]), _fabric(facts, 1, rate)
    return Trial((before,), (after,), _slower(1 / facts["share"]),
                 note="the cables that are there, and all of them, each as one")  # fmt: skip


def _cut(facts: Mapping[str, Any]) -> Trial:
    def run(spines: int) -> Content:
        base = _fabric(facts, spines, facts["rate_gbps"] * _HOSTS)
        base |= {"faults": [{"at_ns": 20_000, "action": "down", "link": "leaf1-spine1"}],
                 "reroute_ns": 50_000, "limit_ns": "20ms"}  # fmt: skip
        return base

    return Trial((run(1),), (run(2),), _arrives, note="a cable dies; with a second way, and not")


def _one_way(facts: Mapping[str, Any]) -> Trial:
    """All that one host sends another, in one queue pair for the hash and in many."""
    base = _fabric(facts, 4, facts["rate_gbps"] / 4)
    base["lb"] = {"policy": "ecmp"}
    base["traffic"]["flows"] = [{"src": "h1", "dst": "h5", "bytes": _BYTES}] * 16
    before = changed(base, transport={"queue_pairs": 1})
    after = changed(base, transport={"queue_pairs": 16})
    return Trial((before,), (after,), _slower(1.4),
                 note="queue pairs that a hash does not tell apart are run as one")  # fmt: skip


WAYS: Mapping[str, Callable[[Mapping[str, Any]], Trial | None]] = {
    "pg-shared": no_pauses, "scheduler-strict": _strict, "scheduler-weight": _light,
    "queue-limit": _full_queue, "xon-missing": _flapping,
    "watchdog-eager": _eager, "watchdog-alert": _alert_only,
    "ecn-flat": _flat, "oversubscribed": _crowded, "uplinks-unequal": _slow_way,
    "uplinks-fewer": _fewer, "single-cable": _cut, "unreachable": _cut, "hash-fields": _one_way,
}  # fmt: skip
