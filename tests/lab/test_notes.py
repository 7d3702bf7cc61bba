"""What is looked at while a simulation runs: it is right, and looking changes nothing."""

import io
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from rich.console import Console

from lab.engines.sim import engine as sim
from lab.engines.sim.control import SimulatedSwitches
from lab.engines.sim.simulation import Simulation
from lab.progress import Stages
from lab.scenario import catalogue
from lab.scenario.experiment import Experiment

CHANGES = ("traffic.bytes=400KB", "ecn.enabled=true", "transport.cc=dcqcn")


@contextmanager
def built(out: Path) -> Iterator[tuple[SimulatedSwitches, Simulation, Experiment]]:
    """An incast, ready to start."""
    experiment = Experiment.of(catalogue.load("incast", CHANGES))
    stages = Stages(Console(file=io.StringIO()))
    with ExitStack() as stack:
        yield *sim.build(experiment, out, stages, stack), experiment


def test_a_gist_tells_how_things_are(tmp_path: Path) -> None:
    with built(tmp_path) as (switches, simulation, _):
        simulation.sample(switches.watch([3]), 1000, 1000)
        simulation.start()
        simulation.run(40_000)
        early = simulation.gist()
        assert early.longest is not None and early.queue_bytes > 10_000
        assert early.dropped == 0
        simulation.run(60_000)
        late = simulation.gist()
        rate_gbps = (late.into_hosts - early.into_hosts) * 8 / 20_000
        assert 90 < rate_gbps < 102  # a port of 100 Gb/s, and what senders hear back
        assert late.text(early, 20_000).startswith(f"{rate_gbps:.3g} Gb/s into hosts, ")


def test_looking_changes_nothing(tmp_path: Path) -> None:
    found = []
    for interval_ns in (None, 100, 7777):
        with built(tmp_path) as (switches, simulation, experiment):
            if interval_ns is not None:
                simulation.sample(switches.watch([3]), interval_ns, 20_000)
            simulation.start()
            while simulation.open_transfers:
                simulation.run(most_events=1000)
                if interval_ns is not None:
                    simulation.gist()
            fabric = experiment.fabric
            timeline = simulation.timeline(fabric.hosts, len(experiment.schedule))
            counts = [
                switches.counts(switch, fabric.ports(switch), simulation.now_ns)
                for switch in fabric.switches
            ]
            counters = [simulation.counters(host) for host in fabric.hosts]
            found.append((list(timeline.start_ns), list(timeline.end_ns), counts, counters))
    assert found[0] == found[1] == found[2]


def test_notes_are_never_more_than_asked_for(tmp_path: Path) -> None:
    with built(tmp_path) as (switches, simulation, _):
        simulation.sample(switches.watch([3]), 100, 500)
        simulation.start()
        simulation.run()
        notes = simulation.samples()
        assert 100 < len(notes) <= 500
        assert [note.time_ns for note in notes] == sorted(note.time_ns for note in notes)
