"""htsim's connection matrices.

    Nodes 16
    Connections 3
    Triggers 1
    0->1 id 1 start 0 size 2000000 recv_done_trigger 1      start in picoseconds
    1->2 id 2 trigger 1 size 2000000
    3->2 start 5000000 size 4096
    trigger id 1 oneshot                                    or multishot, or barrier count 8

In htsim a flow of size 0 sends until the simulation is stopped; here it is told how much.

A trigger fires when a flow that names it is sent, or received, to the end; oneshot and multishot
after the first (there, a flow begins once), a barrier after so many. In htsim it is heard
everywhere at once. Hosts here know what they did themselves, so whoever begins a flow by what
another host saw is told by a message of one byte over the fabric: by way of the first of those who
wait, if several have to be asked or told.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from dataclasses import field
from pathlib import Path

from params.data import Data
from traffic.traces.graph import MAX_DEEDS, MAX_RANKS, Graph, TraceError
from traffic.traces.text import lines_of, whole

_HEADS = {  # and what their numbers may be
    "Nodes": (1, MAX_RANKS), "Connections": (0, MAX_DEEDS), "Triggers": (0, MAX_DEEDS),
    "Failures": (0, MAX_DEEDS),
}  # fmt: skip
_WORDS = ("id", "start", "size", "trigger", "send_done_trigger", "recv_done_trigger", "prio")
_TELLING_BYTES = 1
_TAG = 1  # of what tells of triggers; flows have 0


class _Flow(Data, frozen=False):
    place: str
    src: int
    dst: int
    size: int
    start_ns: int = 0
    trigger: int = 0
    send_done: int = 0
    receive_done: int = 0


class _Trigger(Data, frozen=False):
    place: str
    fires_after: int
    sent: list[int] = field(default_factory=list)  # flows that fire it at their source
    received: list[int] = field(default_factory=list)
    starts: list[int] = field(default_factory=list)


def read(path: Path, endless: int | None = None) -> Graph:
    """The flows of a file; ``endless``: what those of size 0 send."""
    nodes, flows, triggers = _parse(path, endless)
    graph = Graph(nodes, path.stem)
    channels: Counter[tuple[int, int]] = Counter()
    deeds: dict[int, int] = {}
    arrivals: dict[int, int] = {}

    def begin(number: int, after: list[int]) -> None:
        flow = flows[number]
        ends = flow.src, flow.dst
        deeds[number] = graph.send(
            *ends,
            flow.size,
            tag=2 + number,
            channel=channels[ends],
            delay_ns=flow.start_ns,
            after=after,
        )
        arrivals[number] = graph.receive(flow.dst, flow.src, tag=2 + number)
        channels[ends] += 1

    for number, flow in enumerate(flows):
        if not flow.trigger:
            begin(number, [])
    waiting = dict(triggers)
    while waiting:
        ready = [
            name
            for name, trigger in waiting.items()
            if all(number in deeds for number in (*trigger.sent, *trigger.received))
        ]
        if not ready:
            first = next(iter(waiting.values()))
            raise TraceError(f"{first.place}: it waits for flows that begin after it")
        for name in ready:
            trigger = waiting.pop(name)
            seen = [deeds[number] for number in trigger.sent]
            seen += [arrivals[number] for number in trigger.received]
            seen = seen[: trigger.fires_after]
            starts = _tell(graph, seen, {flows[number].src for number in trigger.starts})
            for number in trigger.starts:
                begin(number, starts[flows[number].src])
    return graph


def _tell(graph: Graph, seen: list[int], who: set[int]) -> dict[int, list[int]]:
    """By host that has to know: what it waits for to know that all of it has been seen."""
    by_host: dict[int, list[int]] = defaultdict(list)
    for deed in seen:
        by_host[graph.rank_of(deed)].append(deed)
    if not who or (set(by_host) == who and len(who) == 1):
        return by_host
    middle = min(who)
    heard = list(by_host.pop(middle, []))
    for host, deeds in by_host.items():
        graph.send(host, middle, _TELLING_BYTES, tag=_TAG, after=deeds)
        heard.append(graph.receive(middle, host, tag=_TAG))
    starts = {middle: heard}
    for host in sorted(who - {middle}):
        graph.send(middle, host, _TELLING_BYTES, tag=_TAG, after=heard)
        starts[host] = [graph.receive(host, middle, tag=_TAG)]
    return starts


def _parse(path: Path, endless: int | None) -> tuple[int, list[_Flow], dict[int, _Trigger]]:
    """How many nodes a file speaks of, its flows, and its triggers by their names."""
    heads: dict[str, int] = {}
    flows: list[_Flow] = []
    triggers: dict[int, _Trigger] = {}
    for number, line in lines_of(path):
        place = f"{path}:{number}"
        words = line.split()
        try:
            if words[0] in _HEADS:
                least, most = _HEADS[words[0]]
                heads[words[0]] = whole(words[1] if len(words) == 2 else "", words[0], least, most)
            elif words[0] == "trigger":
                name, trigger = _trigger(words, place)
                if triggers.setdefault(name, trigger) is not trigger:
                    raise TraceError(f"trigger {name} is there twice")
            elif words[0] == "failure":
                raise TraceError(
                    "failures are the fabric's", "take them out, and name 'faults' in a scenario"
                )
            elif "->" in words[0]:
                flows.append(_flow(words, place, _nodes(heads), endless))
            else:
                raise TraceError(f"'{words[0][:40]}' is not understood")
        except TraceError as error:
            raise TraceError(f"{place}: {error}") from None
        if len(flows) > MAX_DEEDS // 4:
            raise TraceError(f"{path}: more than {MAX_DEEDS // 4:,} flows")
    for what, count in (("Connections", len(flows)), ("Triggers", len(triggers))):
        if heads.get(what, count if what == "Connections" else 0) != count:
            raise TraceError(f"{path}: it says {what} {heads.get(what, 0)}, and has {count}")
    if not flows:
        raise TraceError(f"{path} names no flow")
    _join(flows, triggers)
    return heads["Nodes"], flows, triggers


def _nodes(heads: dict[str, int]) -> int:
    if "Nodes" not in heads:
        raise TraceError("it does not say 'Nodes N'", "htsim's .cm files begin so")
    return heads["Nodes"]


def _flow(words: list[str], place: str, nodes: int, endless: int | None) -> _Flow:
    src, _, dst = words[0].partition("->")
    ends = [whole(end, "a node", 0, 10**9) for end in (src, dst)]
    for end in ends:
        if end >= nodes:
            raise TraceError(f"there is no node {end}", f"they are 0 to {nodes - 1}")
    if ends[0] == ends[1]:
        raise TraceError(f"node {ends[0]} sends to itself")
    said: dict[str, int] = {}
    rest = iter(words[1:])
    for word in rest:
        if word not in _WORDS:
            raise TraceError(f"'{word[:40]}' is not understood", f"known: {', '.join(_WORDS)}")
        said[word] = whole(next(rest, ""), word, 0)
    if ("start" in said) == ("trigger" in said):
        raise TraceError("a flow has a start or a trigger")
    size = said.get("size", 0) or endless
    if size is None:
        raise TraceError(
            "a flow of 0 bytes never ends in htsim",
            "say what it sends: --bytes 10MB, as a key bytes",
        )
    if size > 1 << 31:
        raise TraceError(f"a flow of {size:,} bytes", "1 to 2^31 can be")
    return _Flow(
        place, ends[0], ends[1], size, said.get("start", 0) // 1000, said.get("trigger", 0),
        said.get("send_done_trigger", 0), said.get("recv_done_trigger", 0),
    )  # fmt: skip


def _trigger(words: list[str], place: str) -> tuple[int, _Trigger]:
    name = count = 0
    kind = ""
    rest = iter(words[1:])
    for word in rest:
        if word == "id":
            name = whole(next(rest, ""), "id", 1)
        elif word == "count":
            count = whole(next(rest, ""), "count", 1)
        elif word in ("oneshot", "multishot", "barrier") and not kind:
            kind = word
        else:
            raise TraceError(f"'{word[:40]}' is not understood")
    if not name or not kind or (kind == "barrier") != bool(count):
        raise TraceError("a trigger is: trigger id N, then oneshot, multishot or barrier count M")
    return name, _Trigger(place, count or 1)


def _join(flows: list[_Flow], triggers: dict[int, _Trigger]) -> None:
    """Tell triggers who fires them and whom they start."""

    def named(name: int, flow: _Flow) -> _Trigger:
        if name not in triggers:
            raise TraceError(f"{flow.place}: there is no trigger {name}")
        return triggers[name]

    for number, flow in enumerate(flows):
        if flow.trigger:
            named(flow.trigger, flow).starts.append(number)
        if flow.send_done:
            named(flow.send_done, flow).sent.append(number)
        if flow.receive_done:
            named(flow.receive_done, flow).received.append(number)
    for name, trigger in triggers.items():
        fired = len(trigger.sent) + len(trigger.received)
        if trigger.starts and fired < trigger.fires_after:
            raise TraceError(
                f"{trigger.place}: trigger {name} needs {trigger.fires_after} flow(s) to fire it, "
                f"and {fired} name it"
            )
