"""Packets of the fabric program in a long queue take little memory, and leave as they would."""

from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path

from controller import Settings, switch_plans
from params.buffer import Buffer
from switch.dataplane import WHOLE
from tests.fabric.network import Switch
from tests.fabric.testbed import ipv4_frame
from topologies import leaf_spine

FABRIC = leaf_spine(2, 2, 2)
FRAMES = 3000
PAGE = 4096
MIN = 3  # times less memory than as it is


def resident() -> int:
    """Bytes of this process that are in memory."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * PAGE


def through_a_queue(whole: int) -> tuple[list[bytes], int]:
    """What leaves by a slow port after having waited there, and what it took meanwhile."""
    source, to = (str(FABRIC.address(FABRIC.node(name))) for name in ("h1", "h2"))
    frames = [
        ipv4_frame(source, to, size=70 + n % 40, ecn=n % 4, src_port=49152 + n)
        for n in range(FRAMES)
    ]
    switch = Switch.make("leaf1", whole=whole)
    settings = Settings(buffer=Buffer(bytes=64 << 20, alpha=8))
    switch.tell(switch_plans(FABRIC, settings)["leaf1"])
    for port in range(1, 5):
        switch.add_port(port, 10**9, 0)
    before = resident()
    for frame in frames:
        switch.plane.inject(1, frame, 1000)
    took = resident() - before
    assert switch.plane.stats().held >= FRAMES - 1
    wake = switch.plane.service(1000)
    while wake is not None and switch.plane.stats().held:
        wake = switch.plane.service(wake)
    left = [frame for port, frame, _ in switch.plane.outputs() if port == 2]
    switch.plane.close()
    return left, took


def by_itself(whole: int) -> tuple[list[bytes], int]:
    """The same in a process that has kept no memory of earlier work, which would be used first."""
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as process:
        return process.submit(through_a_queue, whole).result()


def test_a_packet_in_a_long_queue_takes_little_and_leaves_as_it_would() -> None:
    as_they_are, most = by_itself(whole=FRAMES)
    packed, took = by_itself(whole=WHOLE)
    assert len(packed) == FRAMES
    assert packed == as_they_are
    assert MIN * took < most, f"{took / FRAMES:.0f} bytes a packet, {most / FRAMES:.0f} as it is"
