"""The promises of the virtual clock: runs that repeat to the byte, and agree with theory."""

import json
import subprocess
from math import ceil
from pathlib import Path
from random import Random

import pytest
from rich.console import Console

from lab.engines import RunOptions
from lab.runs.run import run_quietly
from lab.scenario import catalogue
from tests.lab.conftest import started
from tests.lab.simulated import simulate
from traffic.collectives import Activity, Schedule, ScheduleBuilder

FILES = ("result.json", "flows.csv", "timeseries.csv")
HEADERS = 14 + 20 + 8 + 12 + 4  # Ethernet to BTH, and the ICRC
RETH, IMMEDIATE, WIRE = 16, 4, 24


def kept(folder: Path) -> list[str]:
    """A run's files, without where they come from and whether frames were to be captured."""
    result = json.loads((folder / "result.json").read_text())
    del result["provenance"]
    del result["scenario"]["measures"]["pcap"]
    return [json.dumps(result), *((folder / name).read_text() for name in FILES[1:])]


@pytest.mark.parametrize(
    "name",
    [
        "lossy-link",
        *(pytest.param(x, marks=pytest.mark.slow) for x in ("incast", "hash-collision")),
    ],
)
def test_the_same_seed_gives_the_same_bytes_whatever_else_happens(
    tmp_path: Path, name: str
) -> None:
    """At once in two processes, one of which captures frames, and once more in this one."""
    changes = ("traffic.bytes=1MB",) if name == "lossy-link" else ()
    words = [word for change in changes for word in ("--set", change)]
    command = ("run", name, "--engine", "sim", "--seed", "7", *words, "--out")
    runs = [
        started(*command, tmp_path / "plain", stderr=subprocess.DEVNULL),
        started(*command, tmp_path / "captured", "--pcap", stderr=subprocess.DEVNULL),
    ]
    assert [run.wait() for run in runs] == [0, 0]
    for out, seed in (("again", 7), ("other", 8)):
        (tmp_path / out).mkdir()
        scenario = catalogue.load(name, (f"seed={seed}", *changes))
        run_quietly(scenario, RunOptions(tmp_path / out, "sim"), Console(quiet=True))
    plain = kept(tmp_path / "plain")
    assert kept(tmp_path / "captured") == plain
    assert kept(tmp_path / "again") == plain
    assert kept(tmp_path / "other") != plain
    assert len(list((tmp_path / "captured" / "pcaps").glob("*.pcap"))) > 16


def flows(hosts: int, messages: list[tuple[int, int, int, int]]) -> Schedule:
    """Messages of (source, destination, size, start)."""
    builder = ScheduleBuilder(hosts)
    activity = builder.activity(Activity("flows", "test"))
    for src, dst, size, start_ns in messages:
        builder.transfer(src, dst, size, activity=activity, delay_ns=start_ns)
    return builder.build()


def crossing_ns(frames: list[int], hops: int, gbps: int, delay_ns: int) -> int:
    """When the last of some frames, sent back to back, has crossed stores that forward.

    A wire is kept to the picosecond, an arrival counts from the next whole nanosecond.
    """
    arrivals = [0] * len(frames)
    for _ in range(hops):
        free_ps = 0
        for at, frame in enumerate(frames):
            begin_ps = free_ps if ceil(free_ps / 1000) >= arrivals[at] else arrivals[at] * 1000
            free_ps = begin_ps + (frame + WIRE) * 8000 // gbps
            arrivals[at] = ceil(free_ps / 1000) + delay_ns
    return arrivals[-1]


@pytest.mark.parametrize("gbps", [25, 100, 400])
@pytest.mark.parametrize("size", [1, 1024, 4096, 4097, 1_000_000])
def test_a_single_flow_takes_its_time_to_the_nanosecond(
    tmp_path: Path, gbps: int, size: int
) -> None:
    """Serialisation, four wires, and switches that take no time of their own."""
    found = simulate(
        "hello",
        *("topology.leaves=2", "topology.spines=1", "topology.hosts_per_leaf=1"),
        *(f"link.rate_gbps={gbps}", "link.delay_ns=1500"),
        out=tmp_path,
        schedule=flows(2, [(0, 1, size, 0)]),
    )
    full, rest = divmod(size, 4096)
    frames = [4096 + HEADERS] * full + ([rest + -rest % 4 + HEADERS] if rest else [])
    frames[0] += RETH
    frames[-1] += IMMEDIATE
    assert list(found.outcome.timeline.end_ns) == [crossing_ns(frames, 4, gbps, 1500)]


@pytest.mark.parametrize("senders", [2, 4, 7])
@pytest.mark.parametrize("gbps", [100, 400])
def test_a_lossless_incast_is_as_fast_as_its_receiver(
    tmp_path: Path, senders: int, gbps: int
) -> None:
    size = 40_000 * gbps
    found = simulate(
        "incast",
        *(f"traffic.senders={senders}", f"traffic.bytes={size}", f"link.rate_gbps={gbps}"),
        "buffer.bytes=4MB",
        out=tmp_path,
    )
    times = found.result.flows.fct_ns
    assert times is not None
    assert found.result.drops.total == 0
    assert found.result.pfc.xoff_frames > 0
    assert times.max == pytest.approx(senders * size * 8 / gbps, rel=0.03)


def waiting_ns(arrivals: list[float], service_ns: float) -> float:
    """The mean time packets wait for a server, by Lindley's recursion."""
    free, total = 0.0, 0.0
    for arrival in arrivals:
        total += max(0.0, free - arrival)
        free = max(free, arrival) + service_ns
    return total / len(arrivals)


@pytest.mark.parametrize(
    "load", [*(pytest.param(x, marks=pytest.mark.slow) for x in (0.5, 0.7)), 0.9]
)
def test_packets_wait_as_in_an_md1_queue(tmp_path: Path, load: float) -> None:
    """One packet a message, at Poisson times, from 120 hosts to one: M/D/1 at its port.

    So few arrivals may stray from the mean of all there could be; the simulator must not stray from
    what these arrivals lead to. (A sender's own port makes a packet wait now and then.)
    """
    hosts, size, count = 121, 4096, 40_000
    service_ns = (size + HEADERS + RETH + IMMEDIATE + WIRE) * 8 / 100
    chance = Random(1)
    now, messages = 0.0, []
    for _ in range(count):
        now += chance.expovariate(load / service_ns)
        messages.append((chance.randrange(1, hosts), 0, size, round(now)))
    found = simulate(
        "hello",
        *("topology.leaves=1", "topology.spines=1", f"topology.hosts_per_leaf={hosts}"),
        *("pfc.enabled=false", "ecn.enabled=false", "buffer.bytes=100MB", "buffer.alpha=8"),
        out=tmp_path,
        schedule=flows(hosts, messages),
    )
    assert found.result.drops.total == 0
    timeline = found.outcome.timeline
    alone_ns = 2 * service_ns + 2 * 1000
    waits = [e - s - alone_ns for s, e in zip(timeline.start_ns, timeline.end_ns, strict=True)]
    mean_ns = sum(waits) / count
    of_these = waiting_ns([float(start) for _, _, _, start in messages], service_ns)
    assert mean_ns == pytest.approx(of_these, rel=0.02)
    assert mean_ns == pytest.approx(load / (2 * (1 - load)) * service_ns, rel=0.03)
