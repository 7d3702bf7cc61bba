"""What slowdowns are measured by: against the simulator, and against packets counted one by one.

Cables have speeds and delays drawn at random, so that any of them may be the narrowest, and each
message's size may end in a packet of any length.
"""

import random
from collections.abc import Iterator
from fractions import Fraction
from itertools import product
from pathlib import Path

import pytest

from lab.results.alone import Alone, Message, crossing_ns
from lab.scenario import catalogue
from lab.scenario.experiment import Experiment
from tests.lab.simulated import simulate_sparely

SIZES = (1, 63, 1000, 4096, 4097, 8191, 12_289, 100_003, 1_000_000)


def changes_of(rng: random.Random) -> tuple[str, ...]:
    """One message over cables of which no two need be alike."""
    tiers = rng.choice((2, 2, 3))
    topology = (
        f"{{kind: leaf-spine, leaves: 2, spines: {rng.choice((1, 2, 3))}, hosts_per_leaf: 2}}"
        if tiers == 2
        else "{kind: fat-tree, k: 4, hosts_per_leaf: 1}"
    )
    bare = Experiment.of(catalogue.load("hello", [f"topology={topology}"]))
    shares = {
        link.name: rng.choice((1, 0.5, 0.25, 0.1))
        for link in bare.fabric.links
        if rng.random() < 0.7
    }
    hosts = rng.sample([host.name for host in bare.fabric.hosts], 2)
    return (
        f"topology={topology}",
        f"link={{rate_gbps: {rng.choice((10, 25, 100, 400))}, mtu: {rng.choice((256, 1024, 4096))},"
        f" fabric_rate_gbps: {rng.choice((25, 100, 800))}, delay_ns: {rng.randrange(5000)},"
        f" fabric_delay_ns: {rng.randrange(5000)}, slow: {shares},"
        f" overhead: {rng.choice((24, 0, 100))}}}",
        "buffer={bytes: 64MB, alpha: 4}",  # nobody is paused
        "transport.window=100000",
        f"transport.recovery={rng.choice(('go-back-n', 'selective'))}",
        f"traffic={{kind: flows, flows: [{{src: {hosts[0]}, dst: {hosts[1]}, "
        f"bytes: {rng.choice(SIZES)}}}]}}",
        f"seed={rng.randrange(1000)}",
    )


def one_by_one_ns(experiment: Experiment, number: int = 0) -> float:
    """The quickest of all shortest ways, each packet followed over each cable of it."""
    src = experiment.fabric.hosts[experiment.schedule.src[number]]
    dst = experiment.fabric.hosts[experiment.schedule.dst[number]]
    size, mtu = experiment.schedule.size[number], experiment.scenario.link.mtu
    selective = experiment.scenario.transport.recovery == "selective"
    sizes = [min(mtu, size - at) for at in range(0, size, mtu)]
    around = 58 + experiment.scenario.link.overhead
    wire = [
        n + -n % 4 + around + 16 * (at == 0 or selective) + 4 * (at == len(sizes) - 1)
        for at, n in enumerate(sizes)
    ]
    links: dict[object, list[tuple[object, object]]] = {}
    for link in experiment.fabric.links:
        links.setdefault(link.a, []).append((link.b, link))
        links.setdefault(link.b, []).append((link.a, link))

    def ways(here: object, left: int, been: tuple[object, ...]) -> Iterator[list[object]]:
        if here is dst:
            yield []
        if left and here is not dst:
            for there, link in links[here]:
                if there not in been:
                    for way in ways(there, left - 1, (*been, there)):
                        yield [link, *way]

    found: list[list[object]] = []
    for length in range(1, 8):
        found = list(ways(src, length, (src,)))
        if found:
            break
    times = []
    for way in found:
        come = [Fraction(0)] * len(wire)
        for link in way:
            cable, free = experiment.cable(link), Fraction(0)
            for at, n in enumerate(wire):
                free = max(free, come[at]) + Fraction(n * 8 * 10**9, cable.rate_bps)
                come[at] = free + cable.delay_ns
        times.append(max(come))
    return float(min(times))


@pytest.mark.by_day(6)
@pytest.mark.parametrize("seed", range(12))
def test_a_lone_message_takes_as_long_as_said(seed: int, tmp_path: Path) -> None:
    rng = random.Random(seed)
    changes = changes_of(rng)
    found = simulate_sparely("hello", *changes, out=tmp_path)
    ideal = one_by_one_ns(found.experiment)
    assert Alone(found.experiment).takes_ns(0) == pytest.approx(ideal, abs=0.01), changes
    fct = found.result.flows.fct_ns
    assert fct is not None and found.result.drops.total == 0
    assert fct.max > ideal - 1, changes
    if "spines: 1" in changes[0]:  # one way only: no hash leads it to a slower one
        assert fct.max < ideal + 5, changes  # each cable may round up to a whole nanosecond
        slowdown = found.result.flows.slowdown
        assert slowdown is not None and slowdown.max == pytest.approx(1, abs=0.02)


@pytest.mark.parametrize("seed", range(40))
def test_the_longest_chain_is_found_whatever_the_cables(seed: int) -> None:
    """The formula against the packets, over ways that no topology of ours has."""
    rng = random.Random(seed)
    experiment = Experiment.of(catalogue.load("hello"))
    cable = experiment.settings.host_link
    way = tuple(cable.slowed(rng.choice((1, 0.5, 0.3, 0.01))) for _ in range(rng.randrange(1, 8)))
    for size, each in product(SIZES, (False, True)):
        message = Message.of(size, 1024, 82, each_has_reth=each)
        packets = [message.first, *[message.between] * message.n_between]
        packets += [] if message.last is None else [message.last]
        come = [0.0] * len(packets)
        for link in way:
            free = 0.0
            for at, n in enumerate(packets):
                free = max(free, come[at]) + n * 8e9 / link.rate_bps
                come[at] = free + link.delay_ns
        assert crossing_ns(message, way) == pytest.approx(max(come)), (size, each, way)
