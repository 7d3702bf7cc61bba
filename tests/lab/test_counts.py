"""What counters say over P4Runtime, held against a clock."""

import asyncio
import random
import time
from pathlib import Path

import pytest

from controller import LinkSpec, Settings, install, plans_of
from lab.results.counts import read_counts
from tests.controller.conftest import asynchronous, program_in, switches, targets_of
from tests.fabric.test_pause import pause_frame
from topologies import leaf_spine

pytestmark = pytest.mark.clock

MBPS = 1_000_000


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    return program_in(tmp_path_factory.mktemp("program"))


@pytest.mark.parametrize("seed", range(2))
@asynchronous
async def test_a_pause_counts_as_far_as_it_has_come(program: tuple[Path, Path], seed: int) -> None:
    """One that lasts for seconds, read while it does, and one that has run out."""
    draw = random.Random(seed)
    fabric = leaf_spine(1, 1, 2)
    # 65,535 quanta last 3.4 s at 10 Mb/s.
    settings = Settings(host_link=LinkSpec(10 * MBPS, 1000), fabric_link=LinkSpec(10 * MBPS, 1000))
    async with switches(fabric) as (host, addresses):
        targets = targets_of(fabric, addresses, program)
        await asyncio.to_thread(install, targets, plans_of(fabric, settings))
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
            assert least <= ports[1].paused_ns <= most
            assert ports[2].paused_ns == pytest.approx(short * 512 * 100, abs=2)
            assert ports[3].paused_ns == 0
