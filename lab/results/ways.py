"""What became of connections' ways, as their adapters noted it, of all hosts in order."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from operator import attrgetter

from lab.results.outcome import WayNote
from lab.scenario.experiment import Experiment
from topologies import Node
from traffic.endpoint import WayChange


def way_notes(
    experiment: Experiment, changes: Mapping[Node, Iterable[WayChange]]
) -> tuple[WayNote, ...]:
    """Of each host its changes, beside whom the queue pair leads to."""

    def note(host: Node, at_ns: int, pair: int, entropy: int, state: str) -> WayNote:
        peer = experiment.peer_of(pair)
        path = " ".join(map(str, experiment.path_of(host, peer, entropy)))
        return WayNote(at_ns, host.name, peer.name, pair, entropy, state, path)

    notes = (note(host, *change) for host, its in changes.items() for change in its)
    return tuple(sorted(notes, key=attrgetter("time_ns")))
