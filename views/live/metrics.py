"""The latest snapshot as Prometheus reads it: its text format, version 0.0.4, or OpenMetrics.

Names end in their units, base units as Prometheus asks; counts since the run began end in `_total`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from lab.results.snapshot import Books, Snapshot
from topologies import Fabric
from views.live.hub import Hub

KIND = "text/plain; version=0.0.4; charset=utf-8"
OPEN = "application/openmetrics-text"
OPEN_KIND = f"{OPEN}; version=1.0.0; charset=utf-8"
Labels = Mapping[str, str]
Samples = Iterable[tuple[Labels, float]]


def wants_open(accepted: str) -> bool:
    """Whether who accepts this would rather have OpenMetrics."""
    wanted = {
        kind.strip(): _share(rest)
        for kind, _, rest in (each.partition(";") for each in accepted.lower().split(","))
    }
    other = max(wanted.get(kind, 0.0) for kind in ("text/plain", "text/*"))
    return wanted.get(OPEN, 0.0) > 0 and wanted[OPEN] >= other


def _share(parameters: str) -> float:
    """The weight of what is accepted: its q, and without one 1."""
    for each in parameters.split(";"):
        name, _, value = each.strip().partition("=")
        if name == "q":
            try:
                return float(value)
            except ValueError:
                return 0.0
    return 1.0


def exposition(hub: Hub, *, is_open: bool = False) -> str:
    """All of it; OpenMetrics names a counter's family without `_total`, and says that it ends."""
    lines = _lines(hub)
    if is_open:
        comments = "# HELP ", "# TYPE "
        lines = (
            line.replace("_total ", " ", 1) if line.startswith(comments) else line for line in lines
        )
    return "\n".join([*lines, *(["# EOF"] if is_open else [])]) + "\n"


def _lines(hub: Hub) -> Iterator[str]:
    scene, latest = hub.scene, hub.latest
    info = {"scenario": scene.scenario.name, "engine": scene.engine}
    yield from _family(
        "closlab_run_info", "gauge", "What is run, and on which engine.", [(info, 1)]
    )
    rates = [({"link": name}, rate * 1e9) for name, rate in scene.rates.items() if rate]
    yield from _family(
        "closlab_link_rate_bytes_per_second", "gauge", "What a direction could carry.", rates
    )
    if latest is not None:
        yield from _of(latest.snapshot)
        if latest.snapshot.books is not None:
            yield from _of_books(scene.fabric, latest.snapshot.books)
    yield from _of_adapters(scene.adapters_counted())


def _of(snapshot: Snapshot) -> Iterator[str]:
    def ways(field: str, scale: float = 1) -> Samples:
        return [({"link": n}, getattr(way, field) * scale) for n, way in snapshot.links.items()]

    dropped: dict[str, int] = {}  # all directions out of a switch tell the same
    for name, way in snapshot.links.items():
        switch = name.partition(">")[0]
        dropped[switch] = max(dropped.get(switch, 0), way.dropped)
    messages = snapshot.messages
    known = {"done": messages.done, "all": messages.count}
    at_s: Samples = [({}, snapshot.time_ns / 1e9)]
    yield from _family("closlab_time_seconds", "gauge", "The fabric's time.", at_s)
    over: Samples = [({}, float(snapshot.is_last))]
    yield from _family("closlab_run_over", "gauge", "1 if the run is over.", over)
    for name, kind, about, samples in (
        (
            "closlab_queue_bytes",
            "gauge",
            "Data that waits to be sent into a direction.",
            ways("queue_bytes"),
        ),
        (
            "closlab_link_utilisation_ratio",
            "gauge",
            "Share of its rate that a direction carried since the snapshot before.",
            ways("utilisation"),
        ),
        (
            "closlab_link_paused_ratio",
            "gauge",
            "Share of the time since the snapshot before that its sender stood still.",
            ways("paused"),
        ),
        ("closlab_link_bytes_total", "counter", "Carried by a direction.", ways("bytes")),
        (
            "closlab_link_paused_seconds_total",
            "counter",
            "How long a direction's sender stood still, its classes added up; the fabric's time.",
            ways("paused_ns", 1e-9),
        ),
        (
            "closlab_marked_packets_total",
            "counter",
            "Packets marked (ECN) as they were sent into a direction.",
            ways("marked"),
        ),
        (
            "closlab_dropped_packets_total",
            "counter",
            "Packets dropped by a node.",
            [({"node": switch}, float(count)) for switch, count in dropped.items()],
        ),
        (
            "closlab_cable_cut",
            "gauge",
            "1 for every cable that is cut.",
            [({"cable": name}, 1.0) for name in sorted(snapshot.dead)],
        ),
        (
            "closlab_messages",
            "gauge",
            "Messages of the traffic, and those that have arrived.",
            [({"state": state}, float(n)) for state, n in known.items() if n is not None],
        ),
    ):
        yield from _family(name, kind, about, samples)


def _of_books(fabric: Fabric, books: Books) -> Iterator[str]:
    """Of what switches have counted; directions are those that a switch sends into."""
    counted = [
        ({"link": fabric.link_at(switch, number).direction(switch)}, found)
        for switch in fabric.switches
        if switch.name in books.switches
        for number, found in books.switches[switch.name].ports.items()
        if number in fabric.ports(switch)
    ]

    def by_priority(field: str, scale: float = 1) -> Samples:
        return [
            ({**labels, "priority": str(priority)}, value * scale)
            for labels, found in counted
            for priority, value in getattr(found, field).items()
        ]

    dropped: Samples = [
        ({"node": name, "reason": reason}, float(packets))
        for name, found in books.switches.items()
        for reason, packets in found.dropped.items()
    ]
    longest: Samples = [({"link": name}, float(size)) for name, size in books.longest.items()]
    storms: Samples = [(labels, float(found.storms)) for labels, found in counted]
    for name, kind, about, samples in (
        (
            "closlab_pfc_xoff_frames_total",
            "counter",
            "Pause frames that a switch sent, by the class that they stop.",
            by_priority("xoff"),
        ),
        (
            "closlab_priority_paused_seconds_total",
            "counter",
            "How long a class stood still at a switch's port; the fabric's time.",
            by_priority("paused", 1e-9),
        ),
        ("closlab_drops_total", "counter", "Packets dropped by a switch, by the reason.", dropped),
        (
            "closlab_queue_watermark_bytes",
            "gauge",
            "The most data that has waited to be sent into a direction.",
            longest,
        ),
        (
            "closlab_watchdog_total",
            "counter",
            "How often the PFC watchdog let a port's queues go.",
            storms,
        ),
    ):
        yield from _family(name, kind, about, samples)


def _of_adapters(counted: Mapping[str, Mapping[str, int]]) -> Iterator[str]:
    """Of adapters of verbs, by the names that NVIDIA's have."""
    for name in next(iter(counted.values()), ()):
        samples: Samples = [
            ({"host": host}, float(counts[name]))
            for host, counts in counted.items()
            if name in counts
        ]
        about = f"{name} of a host's adapter of verbs."
        yield from _family(f"closlab_adapter_{name}_total", "counter", about, samples)


def _family(name: str, kind: str, about: str, samples: Samples) -> Iterator[str]:
    found = [f"{name}{_labels(labels)} {_number(value)}" for labels, value in samples]
    if found:
        yield f"# HELP {name} {about}"
        yield f"# TYPE {name} {kind}"
        yield from found


def _labels(labels: Labels) -> str:
    if not labels:
        return ""
    return "{" + ",".join(f'{key}="{_escaped(value)}"' for key, value in labels.items()) + "}"


def _escaped(text: str) -> str:
    return text.replace("\\", r"\\").replace('"', r"\"").replace("\n", r"\n")


def _number(value: float) -> str:
    return str(int(value)) if value == int(value) else repr(value)
