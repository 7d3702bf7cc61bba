"""Trials: for each kind of finding the runs that show it, and those that show it mended.

A trial has what is around one port: a switch, a few hosts whose cables are like the port's, and the
values of the configuration; then those of the cure.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping
from copy import deepcopy
from itertools import pairwise
from math import ceil
from typing import Any

from params.data import Data

Content = dict[str, Any]
CLASS = 3
_PHASES = 8
_MAX_SENDERS = 16
_STORM_NS = 800_000
WATCH_SCALE = 1000  # a millisecond of the watchdog's is run as a microsecond


class Figures(Data):
    """What a run came to."""

    lost: int
    paused_ns: int
    pauses: int
    marks: int
    arrived: int
    messages: int
    took_ns: int

    def __str__(self) -> str:
        """In a line."""
        return (
            f"{self.lost:,} packets lost, {self.pauses:,} pauses, "
            f"{self.paused_ns / 1000:,.0f} us paused, {self.marks:,} marks, "
            f"{self.arrived} of {self.messages} messages in {self.took_ns / 1000:,.0f} us"
        )


Shown = Callable[[Figures, Figures], bool]


class Trial(Data):
    """Two scenarios, and how to tell that they differ as the finding says."""

    before: tuple[Content, ...]  # tried one after the other until one shows it
    after: tuple[Content, ...]
    is_shown: Shown
    graphs: tuple[Content, Content] | None = None  # for topologies of kind file
    note: str = ""


def incast(facts: Mapping[str, Any], *, senders: int = 2, is_bare: bool = True) -> Content:
    """So many hosts send to another, and hear as much from others: pauses wait for frames."""
    rate, delay = facts["rate_gbps"], int(facts["delay_ns"])
    delay += int(facts["extra_ns"]) // 2 if is_bare else 0
    window = max(200_000, round(4 * rate / 8 * 2 * delay))  # bytes: a few round trips
    flows = [{"src": f"h{at}", "dst": f"h{senders + 1}", "bytes": 2 * window}
             for at in range(1, senders + 1)]  # fmt: skip
    flows += [{"src": f"h{senders + 2}", "dst": f"h{at}", "bytes": window}
              for at in range(1, senders + 1)]  # fmt: skip
    return {
        "name": "trial",
        "topology": {
            "kind": "leaf-spine", "leaves": 1, "spines": 1, "hosts_per_leaf": senders + 2,
        },
        "link": {"rate_gbps": rate, "delay_ns": delay, "mtu": facts["mtu"]},
        "buffer": {"bytes": 200_000 + 16 * senders * window, "static": 60_000,
                   "cell": facts["cell"]},
        "pfc": {"watchdog_ns": 0, "response_ns": 0},
        "ecn": {"enabled": False},
        "transport": {"recovery": "selective", "rto_ns": "1ms", "window": 1 << 16},
        "traffic": {"kind": "flows", "priority": CLASS, "flows": flows},
        "limit_ns": "50ms",
    }  # fmt: skip


def changed(content: Content, **sections: Mapping[str, Any]) -> Content:
    """A scenario with keys of some sections changed."""
    made = deepcopy(content)
    for name, section in sections.items():
        made[name] = {**made.get(name, {}), **section}
    return made


def loses(before: Figures, after: Figures) -> bool:
    """Whether packets are lost, and none when mended."""
    return before.lost > 0 and after.lost == 0


def _headroom_trial(facts: Mapping[str, Any], configured: int, enough: int) -> Trial:
    """Nothing leaves, as the receiver pauses, so that all that comes is there at once.

    In several phases: how long a pause frame waits depends on what is just being sent.
    """
    frame_ns = (facts["mtu"] + 200) * 8 / facts["rate_gbps"]
    before, after = [], []
    for phase in range(_PHASES):
        base = incast(facts)
        flows = base["traffic"]["flows"]
        fill_ns = flows[0]["bytes"] * 8 / facts["rate_gbps"]
        delay_ns = base["link"]["delay_ns"]
        base["faults"] = [{"at_ns": 0, "action": "storm", "host": "h3",
                           "for_ns": round(fill_ns + 6 * delay_ns + 20 * frame_ns)}]  # fmt: skip
        for flow in flows[2:]:
            flow["at_ns"] = round(phase * frame_ns / _PHASES)
        before.append(changed(base, pfc={"headroom": configured}))
        after.append(changed(base, pfc={"headroom": enough}))
    note = "the time in which the neighbour obeys lies on the cable; the receiver pauses meanwhile"
    return Trial(tuple(before), tuple(after), loses, note=note)


def _headroom(facts: Mapping[str, Any]) -> Trial:
    return _headroom_trial(facts, facts["configured"], facts["need"])


def _no_group(facts: Mapping[str, Any]) -> Trial | None:
    return _headroom_trial(facts, 0, facts["need"]) if "need" in facts else None


def _pool(facts: Mapping[str, Any]) -> Trial:
    if facts["have"] < facts["largest"] and "need" in facts:
        enough = max(facts["need"], facts["largest"])
        return _headroom_trial(facts, min(facts["have"], facts["largest"]), enough)
    senders = min(_MAX_SENDERS, max(2, facts["ports"]))
    base = incast(facts, senders=senders)
    own = {"headroom": facts["largest"]}
    least = max(facts["have"] * senders // facts["ports"], facts["largest"])
    before = changed(base, pfc=own, buffer={"headroom_pool": least})
    return Trial((before,), (changed(base, pfc=own),), loses,
                 note=f"{senders} ports at once, with their share of what is there")  # fmt: skip


def no_pauses(facts: Mapping[str, Any]) -> Trial:
    """Pauses that stop nobody, and such as do."""
    base = incast(facts)
    before = changed(base, pfc={"enabled": False})
    return Trial((before,), (base,), loses, note="a pause that stops nobody is run as none")


def other_class(facts: Mapping[str, Any]) -> Trial:
    """Traffic in a class that may lose instead of one that may not, or the other way round."""
    base = incast(facts)
    lossy = changed(base, traffic={"priority": 1})
    if facts.get("lost", True):
        return Trial((lossy,), (base,), loses)
    return Trial((base,), (lossy,), lambda before, after: before.pauses > 0 == after.pauses)


def _drops(facts: Mapping[str, Any]) -> Trial:
    kmin, kmax = facts.get("kmin") or 0, max(facts.get("kmax") or 0, 1)
    curve = {"kmin": kmin, "kmax": kmax, "pmax": facts.get("percent", 100) / 100, "drop": True}
    base = changed(
        incast(facts),
        buffer={"bytes": 64 * kmax + 20_000_000, "lossy_static": 16 * kmax + 1_000_000},
        pfc={"priorities": [4]},
        ecn={"enabled": True, "classes": {CLASS: curve}},
    )
    for flow in base["traffic"]["flows"]:
        flow["bytes"] = min(2 * kmax, 4_000_000_000)
    before = changed(base, traffic={"ecn_capable": False})
    note = "the queue is given room for all, and ecn_none is run as packets that cannot be marked"
    return Trial((before,), (base,), loses, note=note)


def one_sender(facts: Mapping[str, Any], xoff: int, sent: int) -> Content:
    """One host sends to another whose cable has half of its rate; DCQCN heeds marks."""
    base = incast(facts)
    return changed(
        base,
        link={"slow": {"h2-leaf1": 0.5}},
        buffer={"bytes": 8 * xoff + 20_000_000, "static": xoff},
        traffic={"flows": [{"src": "h1", "dst": "h2", "bytes": sent}]},
        transport={"cc": "dcqcn"},
    )


def _late(facts: Mapping[str, Any]) -> Trial:
    xoff = facts["xoff"]
    base = one_sender(facts, xoff, 5 * xoff)
    late = {"enabled": True, "kmin": facts["kmin"], "kmax": max(facts["kmax"] or 0, facts["kmin"])}
    soon = {"enabled": True, "kmin": facts["low"], "kmax": facts["high"]}
    return Trial((changed(base, ecn=late),), (changed(base, ecn=soon),),
                 lambda before, after: before.pauses > 0 == before.marks
                 and after.marks > 0 and after.pauses < before.pauses)  # fmt: skip


def _unmarked(facts: Mapping[str, Any]) -> Trial:
    base = one_sender(facts, 400_000, 4_000_000)
    marks = {"enabled": True, "kmin": 20_000, "kmax": 80_000}
    return Trial((base,), (changed(base, ecn=marks),),
                 lambda before, after: before.pauses > after.pauses and after.marks > 0,
                 note="with a profile of the lab's own that marks")  # fmt: skip


def storm(facts: Mapping[str, Any], watchdog: int, cured: int, limit: int) -> Trial:
    """An adapter pauses without end, and a message goes to somebody else by the same switch."""
    base = changed(
        incast(facts),
        traffic={"flows": [{"src": "h1", "dst": "h2", "bytes": 400_000, "at_ns": 20_000},
                           {"src": "h1", "dst": "h3", "bytes": 400_000}]},
    )  # fmt: skip
    base |= {"limit_ns": limit, "faults": [
        {"at_ns": 1000, "action": "storm", "host": "h3", "for_ns": 10 * limit}]}  # fmt: skip
    before = changed(base, pfc={"watchdog_ns": watchdog})
    after = changed(base, pfc={"watchdog_ns": cured})
    return Trial((before,), (after,), lambda before, after: before.arrived < after.arrived,
                 note="an adapter pauses without end; times are a thousandth")  # fmt: skip


def _unwatched(facts: Mapping[str, Any]) -> Trial:
    return storm(facts, 0, 200 * WATCH_SCALE, 2_000_000)


def _slowly_watched(facts: Mapping[str, Any]) -> Trial:
    poll, detection = facts["poll_ms"], facts["detection_ms"]
    scale = max(WATCH_SCALE, ceil(_STORM_NS / (poll - detection)))  # messages arrive in between
    made = storm(facts, poll * scale, detection * scale, detection * scale + _STORM_NS // 2)
    note = f"an adapter pauses without end; times are 1/{10**6 / scale:,.0f}"
    return dataclasses.replace(made, note=note)


def circle(facts: Mapping[str, Any]) -> Trial:
    """The circle's switches alone, two hosts at each; everybody sends to half round it."""
    around: list[str] = facts["circle"]
    hosts = [(f"{name}-{which}", name) for name in around for which in "ab"]
    nodes = [{"id": name, "kind": "switch"} for name in around]
    nodes += [{"id": host, "kind": "host"} for host, _ in hosts]
    edges = [{"source": host, "target": name} for host, name in hosts]
    ring = [{"source": a, "target": b} for a, b in pairwise((*around, around[0]))]
    count = len(hosts)
    half = 2 * (len(around) // 2)
    flows = [{"src": f"h{at + 1}", "dst": f"h{(at + half) % count + 1}", "bytes": 1_000_000}
             for at in range(count)]  # fmt: skip
    base: Content = {
        "name": "trial",
        "topology": {"kind": "file", "path": "graph.json"},
        "link": {"rate_gbps": 100, "delay_ns": 500, "mtu": 4096},
        "buffer": {"bytes": "2MB", "static": 60_000},
        "pfc": {"watchdog_ns": 0},
        "ecn": {"enabled": False},
        "lb": {"policy": "spray"},
        "transport": {"recovery": "selective", "rto_ns": "1ms", "retry_limit": 50},
        "traffic": {"kind": "flows", "flows": flows},
        "limit_ns": "5ms",
    }
    graphs = tuple({"nodes": nodes, "links": [*edges, *links]} for links in (ring, ring[:-1]))
    return Trial(
        (base,), (base,),
        lambda before, after: before.arrived < before.messages == after.arrived,
        graphs=(graphs[0], graphs[1]), note="the circle's switches alone, without a watchdog",
    )  # fmt: skip


def _deaf(facts: Mapping[str, Any]) -> Trial:
    """Marks that nobody heeds, and such as DCQCN does."""
    base = one_sender(facts, 400_000, 4_000_000)
    marked = changed(base, ecn={"enabled": True, "kmin": 20_000, "kmax": 80_000})
    return Trial((changed(marked, transport={"cc": "none"}),), (marked,),
                 lambda before, after: before.marks > 0 and before.pauses > after.pauses,
                 note="an adapter that does not heed marks is run without congestion control"
                 )  # fmt: skip


TRIALS: Mapping[str, Callable[[Mapping[str, Any]], Trial | None]] = {
    "headroom-small": _headroom, "pg-missing": _no_group, "pool-oversubscribed": _pool,
    "pfc-one-end": no_pauses, "pfc-off": no_pauses, "pfc-path": no_pauses,
    "queue-map": no_pauses, "dscp-map": other_class, "dscp-untrusted": other_class,
    "pg-map": other_class, "queue-shared": other_class, "wred-drop": _drops,
    "ecn-late": _late, "ecn-missing": _unmarked, "watchdog-missing": _unwatched,
    "adapter-pfc": no_pauses, "adapter-trust": other_class, "adapter-dscp": other_class,
    "adapter-ecn": _deaf,
    "watchdog-slow": _slowly_watched, "deadlock": circle, "deadlock-failure": circle,
}  # fmt: skip
