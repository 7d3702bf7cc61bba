"""The shortest run that shows a finding: packets lost, pauses, a circle; and the same run, cured.

A trial is no run of the whole fabric. It is what is around one port: a switch, a few hosts whose
cables are like the port's, and the values that the configuration has; then those of the cure. The
time in which a neighbour obeys, and for which a pause frame waits for the longest frame of another
class, lies on the cable, half of it each way. Times of the watchdog are a thousandth of what they
are.

A finding that no trial shows is advice: so is one about what the lab's model does not have.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from copy import deepcopy
from dataclasses import dataclass, replace
from io import StringIO
from itertools import pairwise
from pathlib import Path
from typing import Any

import yaml
from rich.console import Console

from lab.engines import RunOptions
from lab.errors import LabError
from lab.machine.scratch import scratch
from lab.runs.run import measure
from lab.scenario import catalogue
from lab.sonic.findings import Finding, Level

Content = dict[str, Any]
_CLASS = 3
_PHASES = 8
_MOST_SENDERS = 16
_USUAL = {"rate_gbps": 100.0, "delay_ns": 500, "mtu": 4096, "extra_ns": 2000, "cell": 1}
_WATCH_SCALE = 1000  # a millisecond of the watchdog's is run as a microsecond
_MOST_BYTES = 64_000_000  # on a cable or in a queue: more would be run for minutes
_TOO_MUCH = "it takes too many bytes, or too little is told of the port, to be run"
_NO_RUN = {
    "mtu-differs": "all links of the lab have one MTU",
    "speed-differs": "a cable of the lab has one rate",
    "cable-differs": "a cable of the lab has one length; what headroom it needs is told by itself",
    "neighbour-missing": "packets do not read DEVICE_NEIGHBOR",
    "neighbour-contradicts": "packets do not read DEVICE_NEIGHBOR",
    "pfc-nowhere": "there is nothing to be run",
    "pg-not-told": "what is not told cannot be run",
    "alpha-range": "the lab's switches have no such alpha",
}


@dataclass(frozen=True, slots=True)
class Figures:
    """What a run came to."""

    lost: int
    paused_ns: int
    pauses: int
    marks: int
    arrived: int
    messages: int
    took_ns: int

    def content(self) -> dict[str, int]:
        """As JSON has it."""
        return {name: getattr(self, name) for name in self.__slots__}

    def __str__(self) -> str:
        """In a line."""
        return (
            f"{self.lost:,} packets lost, {self.pauses:,} pauses, "
            f"{self.paused_ns / 1000:,.0f} us paused, {self.marks:,} marks, "
            f"{self.arrived} of {self.messages} messages in {self.took_ns / 1000:,.0f} us"
        )


Shown = Callable[[Figures, Figures], bool]


@dataclass(frozen=True, slots=True)
class Trial:
    """Two scenarios, and how to tell that they differ as the finding says."""

    before: tuple[Content, ...]  # tried one after the other until one shows it
    after: tuple[Content, ...]
    is_shown: Shown
    graphs: tuple[Content, Content] | None = None  # for topologies of kind file
    note: str = ""


@dataclass(frozen=True, slots=True)
class Proof:
    """What became of a trial."""

    before: Figures | None
    after: Figures | None
    is_shown: bool
    note: str
    scenarios: tuple[Content, Content] | None = None

    def content(self) -> dict[str, Any]:
        """As JSON has it."""
        return {
            "shown": self.is_shown, "note": self.note,
            "before": self.before and self.before.content(),
            "after": self.after and self.after.content(),
            "scenarios": self.scenarios and list(self.scenarios),
        }  # fmt: skip


def prove(findings: list[Finding]) -> list[tuple[Finding, Proof]]:
    """Each with its proof; those that need the same run share it. What none shows is advice."""
    known: dict[str, Proof] = {}
    proved = []
    for finding in findings:
        trial = trial_of(finding)
        if trial is None:
            proof = Proof(None, None, False, _NO_RUN.get(finding.rule, _TOO_MUCH))
        else:
            key = _key(finding, trial)
            proof = known[key] = known.get(key) or _tried(trial)
        level = Level.FAULT if proof.is_shown else Level.ADVICE
        proved.append((replace(finding, level=level), proof))
    return proved


def _key(finding: Finding, trial: Trial) -> str:
    return json.dumps([finding.rule, trial.before, trial.graphs], sort_keys=True)


def _tried(trial: Trial) -> Proof:
    try:
        return _carried_out(trial)
    except LabError as error:  # values that no scenario can have
        return Proof(None, None, False, f"it cannot be run: {error.message}")


def _carried_out(trial: Trial) -> Proof:
    with scratch() as space:
        graphs = []
        for at, graph in enumerate(trial.graphs or ()):
            graphs.append(space / f"graph{at}.json")
            graphs[-1].write_text(json.dumps(graph))
        last: tuple[Figures, Figures, tuple[Content, Content]] | None = None
        for before, after in zip(trial.before, trial.after, strict=True):
            found = _run(before, space, graphs[0] if graphs else None)
            cured = _run(after, space, graphs[1] if graphs else None)
            last = found, cured, (before, after)
            if trial.is_shown(found, cured):
                return Proof(found, cured, True, trial.note, last[2])
        assert last is not None
        tries = f"none of {len(trial.before)} runs shows it" if len(trial.before) > 1 else (
            "the run does not show it")  # fmt: skip
        return Proof(last[0], last[1], False, f"{trial.note}; {tries}".lstrip("; "), last[2])


def _run(content: Content, space: Path, graph: Path | None) -> Figures:
    told = deepcopy(content)
    if graph is not None:
        told["topology"]["path"] = str(graph)
    scenario = catalogue.made(told)
    options = RunOptions(space, "sim")
    result = measure(scenario, options, Console(file=StringIO()))
    flows, pfc = result.flows, result.pfc
    return Figures(
        result.drops.total, pfc.paused_ns, pfc.xoff_frames, result.ecn.marked_packets,
        flows.completed, flows.count, result.duration_ns,
    )  # fmt: skip


def written(content: Content) -> str:
    """A trial's scenario as a file has it."""
    return yaml.safe_dump(content, sort_keys=False)


# --- trials ---------------------------------------------------------------------------------------


def trial_of(finding: Finding) -> Trial | None:
    """The trial of a finding; None: there is none."""
    make = _TRIALS.get(finding.rule)
    facts = {**_USUAL, **finding.facts}
    on_its_way = facts["rate_gbps"] / 8 * (2 * facts["delay_ns"] + facts["extra_ns"])
    sizes = (facts.get(name) or 0 for name in ("xoff", "kmin", "kmax"))
    if make is None or max(on_its_way, *sizes) > _MOST_BYTES:
        return None
    return make(facts)


def _incast(facts: Mapping[str, Any], *, senders: int = 2, is_bare: bool = True) -> Content:
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
        "traffic": {"kind": "flows", "priority": _CLASS, "flows": flows},
        "limit_ns": "50ms",
    }  # fmt: skip


def _with(content: Content, **sections: Mapping[str, Any]) -> Content:
    made = deepcopy(content)
    for name, section in sections.items():
        made[name] = {**made.get(name, {}), **section}
    return made


def _loses(before: Figures, after: Figures) -> bool:
    return before.lost > 0 and after.lost == 0


def _headroom_trial(facts: Mapping[str, Any], configured: int, enough: int) -> Trial:
    """Nothing leaves, as the receiver pauses, so that all that comes is there at once.

    In several phases: how long a pause frame waits depends on what is just being sent.
    """
    frame_ns = (facts["mtu"] + 200) * 8 / facts["rate_gbps"]
    before, after = [], []
    for phase in range(_PHASES):
        base = _incast(facts)
        flows = base["traffic"]["flows"]
        fill_ns = flows[0]["bytes"] * 8 / facts["rate_gbps"]
        delay_ns = base["link"]["delay_ns"]
        base["faults"] = [{"at_ns": 0, "action": "storm", "host": "h3",
                           "for_ns": round(fill_ns + 6 * delay_ns + 20 * frame_ns)}]  # fmt: skip
        for flow in flows[2:]:
            flow["at_ns"] = round(phase * frame_ns / _PHASES)
        before.append(_with(base, pfc={"headroom": configured}))
        after.append(_with(base, pfc={"headroom": enough}))
    note = "the time in which the neighbour obeys lies on the cable; the receiver pauses meanwhile"
    return Trial(tuple(before), tuple(after), _loses, note=note)


def _headroom(facts: Mapping[str, Any]) -> Trial:
    return _headroom_trial(facts, facts["configured"], facts["need"])


def _no_group(facts: Mapping[str, Any]) -> Trial | None:
    return _headroom_trial(facts, 0, facts["need"]) if "need" in facts else None


def _pool(facts: Mapping[str, Any]) -> Trial:
    if facts["have"] < facts["largest"] and "need" in facts:
        enough = max(facts["need"], facts["largest"])
        return _headroom_trial(facts, min(facts["have"], facts["largest"]), enough)
    senders = min(_MOST_SENDERS, max(2, facts["ports"]))
    base = _incast(facts, senders=senders)
    own = {"headroom": facts["largest"]}
    least = max(facts["have"] * senders // facts["ports"], facts["largest"])
    before = _with(base, pfc=own, buffer={"headroom_pool": least})
    return Trial((before,), (_with(base, pfc=own),), _loses,
                 note=f"{senders} ports at once, with their share of what is there")  # fmt: skip


def _no_pauses(facts: Mapping[str, Any]) -> Trial:
    base = _incast(facts)
    before = _with(base, pfc={"enabled": False})
    return Trial((before,), (base,), _loses, note="a pause that stops nobody is run as none")


def _other_class(facts: Mapping[str, Any]) -> Trial:
    base = _incast(facts)
    lossy = _with(base, traffic={"priority": 1})
    if facts.get("lost", True):
        return Trial((lossy,), (base,), _loses)
    return Trial((base,), (lossy,), lambda before, after: before.pauses > 0 == after.pauses)


def _drops(facts: Mapping[str, Any]) -> Trial:
    kmin, kmax = facts.get("kmin") or 0, max(facts.get("kmax") or 0, 1)
    curve = {"kmin": kmin, "kmax": kmax, "pmax": facts.get("percent", 100) / 100, "drop": True}
    base = _with(
        _incast(facts),
        buffer={"bytes": 64 * kmax + 20_000_000, "lossy_static": 16 * kmax + 1_000_000},
        pfc={"priorities": [4]},
        ecn={"enabled": True, "classes": {_CLASS: curve}},
    )
    for flow in base["traffic"]["flows"]:
        flow["bytes"] = min(2 * kmax, 4_000_000_000)
    before = _with(base, traffic={"ecn_capable": False})
    note = "the queue is given room for all, and ecn_none is run as packets that cannot be marked"
    return Trial((before,), (base,), _loses, note=note)


def _one_sender(facts: Mapping[str, Any], xoff: int, sent: int) -> Content:
    """One host sends to another whose cable has half of its rate; DCQCN heeds marks."""
    base = _incast(facts)
    return _with(
        base,
        link={"slow": {"h2-leaf1": 0.5}},
        buffer={"bytes": 8 * xoff + 20_000_000, "static": xoff},
        traffic={"flows": [{"src": "h1", "dst": "h2", "bytes": sent}]},
        transport={"cc": "dcqcn"},
    )


def _late(facts: Mapping[str, Any]) -> Trial:
    xoff = facts["xoff"]
    base = _one_sender(facts, xoff, 5 * xoff)
    late = {"enabled": True, "kmin": facts["kmin"], "kmax": max(facts["kmax"] or 0, facts["kmin"])}
    soon = {"enabled": True, "kmin": facts["low"], "kmax": facts["high"]}
    return Trial((_with(base, ecn=late),), (_with(base, ecn=soon),),
                 lambda before, after: before.pauses > 0 == before.marks
                 and after.marks > 0 and after.pauses < before.pauses)  # fmt: skip


def _unmarked(facts: Mapping[str, Any]) -> Trial:
    base = _one_sender(facts, 400_000, 4_000_000)
    marks = {"enabled": True, "kmin": 20_000, "kmax": 80_000}
    return Trial((base,), (_with(base, ecn=marks),),
                 lambda before, after: before.pauses > after.pauses and after.marks > 0,
                 note="with a profile of the lab's own that marks")  # fmt: skip


def _storm(facts: Mapping[str, Any], watchdog: int, cured: int, limit: int) -> Trial:
    base = _with(
        _incast(facts),
        traffic={"flows": [{"src": "h1", "dst": "h2", "bytes": 400_000, "at_ns": 20_000},
                           {"src": "h1", "dst": "h3", "bytes": 400_000}]},
    )  # fmt: skip
    base |= {"limit_ns": limit, "faults": [
        {"at_ns": 1000, "action": "storm", "host": "h3", "for_ns": 10 * limit}]}  # fmt: skip
    before = _with(base, pfc={"watchdog_ns": watchdog})
    after = _with(base, pfc={"watchdog_ns": cured})
    return Trial((before,), (after,), lambda before, after: before.arrived < after.arrived,
                 note="an adapter pauses without end; times are a thousandth")  # fmt: skip


def _unwatched(facts: Mapping[str, Any]) -> Trial:
    return _storm(facts, 0, 200 * _WATCH_SCALE, 2_000_000)


def _slowly_watched(facts: Mapping[str, Any]) -> Trial:
    poll, detection = (facts[name] * _WATCH_SCALE for name in ("poll_ms", "detection_ms"))
    return _storm(facts, poll, detection, max(poll - 1000, detection + 300_000))


def _circle(facts: Mapping[str, Any]) -> Trial:
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


_TRIALS: Mapping[str, Callable[[Mapping[str, Any]], Trial | None]] = {
    "headroom-small": _headroom, "pg-missing": _no_group, "pool-oversubscribed": _pool,
    "pfc-one-end": _no_pauses, "pfc-off": _no_pauses, "queue-map": _no_pauses,
    "dscp-map": _other_class, "pg-map": _other_class, "wred-drop": _drops,
    "ecn-late": _late, "ecn-missing": _unmarked, "watchdog-missing": _unwatched,
    "watchdog-slow": _slowly_watched, "deadlock": _circle,
}  # fmt: skip
