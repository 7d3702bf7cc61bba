"""What counters say over P4Runtime, held against a clock, and whoever reads them the same."""

import asyncio
import random
import time
from pathlib import Path

import pytest
from scapy.layers.inet import IP, UDP
from scapy.layers.l2 import Ether

from controller import LinkSpec, Settings, install, switch_plans
from lab.engines.sim.control import read
from lab.results.counts import read_counts
from lab.results.watch import Watch, cells_of
from switch.recorder import Cells, Recorder
from tests.controller.conftest import asynchronous, program_in, switches, targets_of
from tests.fabric.test_pause import pause_frame
from topologies import Fabric, leaf_spine

pytestmark = pytest.mark.clock

MBPS = 1_000_000


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    return program_in(tmp_path_factory.mktemp("program"))


LONGEST_NS = 0xFFFF * 512 * 100  # 65,535 quanta at 10 Mb/s


@pytest.mark.by_day(1)
@pytest.mark.parametrize("seed", range(2))
@asynchronous
async def test_a_pause_counts_as_far_as_it_has_come(program: tuple[Path, Path], seed: int) -> None:
    """One that lasts for seconds, read while it does, and one that has run out."""
    draw = random.Random(seed)
    fabric = leaf_spine(1, 1, 2)
    settings = Settings(host_link=LinkSpec(10 * MBPS, 1000), fabric_link=LinkSpec(10 * MBPS, 1000))
    async with switches(fabric) as (host, addresses):
        targets = targets_of(fabric, addresses, program)
        await asyncio.to_thread(install, targets, switch_plans(fabric, settings))
        leaf = fabric.node("leaf1")
        plane = host.devices["leaf1"].plane
        short = draw.randrange(100, 1000)  # quanta: some 5 to 50 ms
        before = time.monotonic_ns()
        plane.inject(1, pause_frame(0xFFFF), 0)
        plane.inject(2, pause_frame(short), 0)
        after = time.monotonic_ns()
        for _ in range(3):
            await asyncio.sleep(draw.uniform(0.06, 0.2))
            least = time.monotonic_ns() - after
            counts = await asyncio.to_thread(
                read_counts, targets[:1], {"leaf1": sorted(fabric.ports(leaf))}
            )
            most = time.monotonic_ns() - before
            ports = counts["leaf1"].ports
            assert min(least, LONGEST_NS) <= ports[1].paused_ns <= min(most, LONGEST_NS)
            assert ports[2].paused_ns == pytest.approx(short * 512 * 100, abs=2)
            assert ports[3].paused_ns == 0


@pytest.mark.parametrize("seed", range(3))
@asynchronous
async def test_three_readers_read_the_same(
    program: tuple[Path, Path], tmp_path: Path, seed: int
) -> None:
    """Over P4Runtime, out of what is written down, and from the data plane itself."""
    draw = random.Random(seed)
    fabric = leaf_spine(2, draw.choice((1, 2)), draw.choice((2, 3)))
    link = LinkSpec(1000 * MBPS, 1000)
    settings = Settings(host_link=link, fabric_link=link)
    async with switches(fabric) as (host, addresses):
        targets = targets_of(fabric, addresses, program)
        await asyncio.to_thread(install, targets, switch_plans(fabric, settings))
        leaf = fabric.node("leaf1")
        plane, ports = host.devices["leaf1"].plane, sorted(fabric.ports(leaf))
        for _ in range(draw.randrange(20, 60)):
            port = draw.choice(ports)
            if draw.random() < 0.3:
                plane.inject(port, pause_frame(draw.randrange(2000)), 0)
            else:
                plane.inject(port, _frame(draw, fabric), 0)
        await asyncio.sleep(0.1)  # 2,000 quanta last 1 ms
        watch = Watch(fabric, tmp_path / "record.jsonl")
        cells = Cells(**cells_of(fabric, leaf))
        recorder = Recorder(host._loop, [(plane, cells)], watch.path, 0.01)
        recorder.start()
        await asyncio.sleep(0.1)
        recorder.stop()
        watch.read()
        written = watch.counts()[leaf]
        lost = watch.lost()
        counts = await asyncio.to_thread(read_counts, targets[:1], {"leaf1": ports}, lost=lost)
        assert written == counts["leaf1"] == read(plane, ports, time.monotonic_ns()).counts(ports)
        assert sum(counts.received.packets for counts in written.ports.values())
        assert sum(counts.sent.packets for counts in written.ports.values())
        assert sum(counts.paused_ns for counts in written.ports.values())
        assert written.dropped


def _frame(draw: random.Random, fabric: Fabric) -> bytes:
    """A packet from somewhere, to a host or to nobody."""
    known = [str(fabric.address(host)) for host in fabric.hosts]
    to = draw.choice([*known, "192.0.2.1"])
    mac = str(fabric.mac(fabric.node("leaf1")))
    header = Ether(dst=mac) / IP(src=known[0], dst=to, tos=26 << 2) / UDP(dport=4791)
    return bytes(header / bytes(draw.randrange(20, 900)))
