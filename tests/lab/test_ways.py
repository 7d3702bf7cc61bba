"""Ways that are left and come back to (ways.csv), and how soon a host goes on without one.

What a host can have is worked out by hand: P ports of 400 / P Gb/s, of each 4,218 bytes on the wire
4,194 are a frame's, and without one port the others' share is left.
"""

import csv
import random
from bisect import bisect_left
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from lab.results.outcome import WayNote
from tests.lab.conftest import closlab
from tests.lab.simulated import Run, simulate

_WINDOW_NS = 20_000


def seeds(*by_day: int) -> list[Any]:
    """Forty, of which these are run by day."""
    others = (seed for seed in range(40) if seed not in by_day)
    return [*by_day, *(pytest.param(seed, marks=pytest.mark.slow) for seed in others)]


_PLANES = seeds(5, 0)  # eight planes, and four


def carried(run: Run, host: str) -> list[tuple[int, int]]:
    """What all of a host's ports have received, by the time."""
    into: dict[str, int] = {}
    sums: dict[int, int] = {}
    for note in run.outcome.notes:
        if note.link.endswith(f">{host}"):
            into[note.link] = note.bytes
            sums[note.time_ns] = sum(into.values())
    return sorted(sums.items())


def rates(run: Run, host: str, since_ns: int) -> Iterator[tuple[int, float]]:
    """In windows from a time on, until its message is all but there: when it began, and Gb/s."""
    found = carried(run, host)
    over = next(when for when, total in found if total > 0.99 * found[-1][1])
    for begin in range(since_ns, over - _WINDOW_NS, _WINDOW_NS):
        yield begin, (at(found, begin + _WINDOW_NS) - at(found, begin)) * 8 / _WINDOW_NS


def at(found: list[tuple[int, int]], time_ns: int) -> float:
    """What had been received by a time, as if evenly between two looks."""
    after = bisect_left(found, (time_ns, 0))
    (before_ns, before), (after_ns, total) = found[after - 1], found[after]
    return before + (total - before) * (time_ns - before_ns) / (after_ns - before_ns)


def planes(seed: int, fault: str, out: Path) -> tuple[Run, int, int]:
    """Four hosts write to four others, and something dies: the run, how many planes, and when."""
    rng = random.Random(seed)
    count, size = rng.choice((2, 4, 8)), rng.choice((12, 16, 32))
    at_us = rng.randrange(20, int(size * 1e3 * 8 / 400 * 0.45))
    plane, spine = rng.randrange(count), rng.choice((1, 2))
    where = fault.format(here=2 * plane + 1, there=2 * plane + 2, spine=2 * plane + spine)
    flows = ", ".join(f"{{src: h{n}, dst: h{n + 4}, bytes: {size}MB}}" for n in range(1, 5))
    run = simulate(
        "planes",
        f"topology.planes={count}",
        f"link.rate_gbps={400 // count}",
        f"link.fabric_rate_gbps={1600 // count}",
        f"transport.kind={rng.choice(('uet', 'mrc'))}",
        f"transport.entropies={rng.choice((128, 256))}",
        f"faults=[{{at_ns: {at_us}us, action: down, {where}}}]",
        f"traffic={{kind: flows, flows: [{flows}]}}",
        "measures.series_ns=1us",
        f"seed={seed}",
        out=out,
    )
    assert (run.result.flows.failed, run.result.roce.timeouts) == (0, 0)
    return run, count, at_us * 1000


@pytest.mark.by_day(1)
@pytest.mark.parametrize("fault", ["link: h1-leaf{here}", "link: h5-leaf{there}"])
@pytest.mark.parametrize("seed", _PLANES)
def test_a_host_goes_on_with_the_ports_it_has_left(seed: int, fault: str, tmp_path: Path) -> None:
    """A sender's port dies, or a receiver's: soon the others carry all that they can."""
    run, count, died_ns = planes(seed, fault, tmp_path)
    line = 400 * 4194 / 4218
    for host, share in (("h5", 1 - 1 / count), ("h6", 1), ("h7", 1), ("h8", 1)):
        settled = [gbps for begin, gbps in rates(run, host, died_ns) if begin >= died_ns + 80_000]
        packets = 2 * count * 4194 * 8 / _WINDOW_NS  # those at a window's edges
        assert settled and all(gbps > 0.97 * share * line - packets for gbps in settled), host
        assert share == 1 or all(gbps < share * line + packets for gbps in settled), host


@pytest.mark.parametrize("seed", _PLANES)
def test_a_spine_that_dies_costs_no_host_its_rate(seed: int, tmp_path: Path) -> None:
    run, count, died_ns = planes(seed, "switch: spine{spine}", tmp_path)
    packets = 2 * count * 4194 * 8 / _WINDOW_NS
    for host in ("h5", "h6", "h7", "h8"):
        settled = [gbps for begin, gbps in rates(run, host, died_ns) if begin >= died_ns + 80_000]
        least = 0.97 * 400 * 4194 / 4218 - packets
        assert settled and all(gbps > least for gbps in settled), host


def states(run: Run) -> dict[tuple[str, int, int], list[WayNote]]:
    """What became of each way, in order."""
    found: dict[tuple[str, int, int], list[WayNote]] = {}
    for note in run.outcome.ways:
        found.setdefault((note.host, note.queue_pair, note.entropy), []).append(note)
    return found


@pytest.mark.parametrize("seed", seeds(13, 1))  # 13: its last packet is lost
def test_a_way_that_loses_is_left_within_two_round_trips(seed: int, tmp_path: Path) -> None:
    """A fifth of what one of sixteen ways carries is lost; line rate stays, and others are kept."""
    rng = random.Random(seed)
    way, end, values = rng.randrange(16), rng.choice((1, 2)), rng.choice((16, 16, 64))
    at_us, size = rng.randrange(5, 200), 16
    run = simulate(
        "path-health",
        f"transport.kind={rng.choice(('uet', 'mrc'))}",
        f"transport.entropies={values}",
        f"traffic.flows=[{{src: h1, dst: h2, bytes: {size}MB}}]",
        f"faults=[{{at_ns: {at_us}us, action: lose, link: leaf{way // 4 * 2 + end}-spine{way + 1}, "
        "rate: 0.2}]",
        "measures.series_ns=1us",
        f"seed={seed}",
        out=tmp_path,
    )
    assert run.result.drops.total > 0
    lost_ns = min(note.time_ns for note in run.outcome.notes if note.dropped)
    first, *_ = run.outcome.ways
    # Round trip by hand: eight cables of 500 ns, and a packet four times at 100 Gb/s, as each
    # switch has it whole first. It was lost up to 1 us before somebody looked.
    round_trip_ns = 8 * 500 + 4 * 4218 * 8 / 100
    assert (first.host, first.peer, first.state) == ("h1", "h2", "bad")
    assert first.time_ns - (lost_ns - 1000) < 2 * round_trip_ns
    # No more than the values that lead over this spine, in turn left and used again.
    ways = states(run)
    assert len(ways) <= values // 16
    assert len({entropy % 4 for _, _, entropy in ways}) == 1 and first.entropy % 4 == way // 4
    for notes in ways.values():
        assert all(one.state != other.state for one, other in pairwise(notes))
        assert {note.state for note in notes} <= {"bad", "good"}
    fct = run.result.flows.fct_ns
    assert fct is not None
    # If its last packet is lost, a round trip of silence, one of a probe, and one to send it again.
    assert fct.max < 1.03 * size * 1e6 / 4096 * 4218 * 8 / 400 + 4 * round_trip_ns
    least = 0.97 * 400 * 4194 / 4218 - 2 * 4 * 4194 * 8 / _WINDOW_NS
    assert all(gbps > least for _, gbps in rates(run, "h2", 20_000))


def test_what_became_of_ways_is_kept(tmp_path: Path) -> None:
    """As adapters noted it, in order; and nothing is kept where no states are."""
    run = simulate("path-health", "traffic.flows.0.bytes=8MB", out=tmp_path)
    with (tmp_path / "ways.csv").open() as file:
        kept = [WayNote(**row) for row in csv.DictReader(file)]
    assert [tuple(map(str, note)) for note in run.outcome.ways] == [tuple(note) for note in kept]
    simulate("path-health", "transport.entropy=reps", "traffic.flows.0.bytes=1MB", out=tmp_path)
    assert not (tmp_path / "ways.csv").exists()


@pytest.mark.mininet
@pytest.mark.slow
def test_the_way_that_is_left_on_mininet_is_the_simulators(tmp_path: Path) -> None:
    """No other, once it loses, and it is come back to as often as it is left."""
    found = []
    for engine in ("sim", "mininet"):
        out = tmp_path / engine
        done = closlab("run", "path-health", "--engine", engine, "--out", str(out))
        assert done.returncode in (0, 3), done.stderr  # 3: the machine was late
        with (out / "ways.csv").open() as file:
            found.append([WayNote(**row) for row in csv.DictReader(file)])
    for notes in found:
        states = [note.state for note in notes]
        assert states == ["bad", "good"] * (len(states) // 2) + ["bad"] * (len(states) % 2)
        assert int(notes[0].time_ns) > 50_000
    (way,) = {note[1:5] for notes in found for note in notes}
    assert way[:2] == ("h1", "h2")
