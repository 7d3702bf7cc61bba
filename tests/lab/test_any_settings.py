"""Settings that nobody tried: whatever a fabric is told, lossless classes lose nothing.

Everything that pauses, buffers, classes, schedules, paths and adapters can be told is drawn by lot,
and so is the fabric: speeds, lengths, sizes of frames and cells, how many classes are lossless, how
little memory there is. `closlab test` takes some, `closlab test --slow` some hundreds.
"""

from __future__ import annotations

import math
import random
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from controller.tables import SwitchSite, pool_of
from lab.errors import LabError
from lab.results.result import Result
from lab.scenario import catalogue
from lab.scenario.experiment import Experiment
from tests.lab.simulated import simulate_sparely

GBPS = (10, 25, 40, 50, 100, 200, 400, 800)
PER_PACKET = ("spray", "adaptive", "drill")
POLICIES = ("ecmp", "flowlet", "dlb", "conga", *PER_PACKET)
CLASSES = range(7)
CONTROL = 6  # the class of CNPs, and of acknowledgements where the scenario says so
DSCP_OF = {0: 0, 1: 8, 2: 16, 3: 26, 4: 32, 5: 40, 6: 48}


@dataclass(frozen=True)
class Drawn:
    """A scenario's changes, and which classes anything in it has."""

    changes: tuple[str, ...]
    lossless: tuple[int, ...]
    carried: tuple[int, ...]

    @property
    def is_lossless(self) -> bool:
        """Whether nothing at all may be lost."""
        return set(self.carried) <= set(self.lossless)


def log_uniform(rng: random.Random, least: float, most: float) -> float:
    """From least to most, each order of magnitude as likely."""
    return math.exp(rng.uniform(math.log(least), math.log(most)))


def fabric_of(rng: random.Random) -> tuple[str, int, list[str]]:
    """A topology, how many hosts it has, and its first links."""
    if rng.random() < 0.25:
        per_leaf = rng.randrange(1, 4)
        return (
            f"{{kind: fat-tree, k: 4, hosts_per_leaf: {per_leaf}}}",
            8 * per_leaf,
            ["h1-leaf1", "leaf1-spine1", "spine1-core1"],
        )
    leaves, spines, per_leaf = rng.randrange(2, 5), rng.randrange(1, 5), rng.randrange(1, 5)
    links = rng.choice((1, 1, 2))
    text = f"{{kind: leaf-spine, leaves: {leaves}, spines: {spines}, hosts_per_leaf: {per_leaf}"
    names = ["h1-leaf1", "leaf1-spine1"]
    return f"{text}, links: {links}}}", leaves * per_leaf, names


def traffic_of(rng: random.Random, hosts: int, priority: int, kb: int) -> str:
    """What one class carries."""
    size = f"bytes: {rng.randrange(max(1, kb // 4), kb + 1)}KB, priority: {priority}"
    senders = rng.randrange(1, min(hosts, 16))
    return rng.choice(
        (
            f"{{kind: incast, senders: {senders}, {size}}}",
            f"{{kind: incast, senders: {senders}, messages: {rng.randrange(1, 5)}, {size}}}",
            f"{{kind: elephants, source_ports: 1, {size}}}",
            f"{{kind: permutation, {size}}}",
        )
    )


def adapters_of(rng: random.Random, policy: str, host_gbps: float) -> Iterator[str]:
    """What hosts do, and which of their packets carry telemetry."""
    recovery = "selective" if policy in PER_PACKET else rng.choice(("go-back-n", "selective"))
    cc = rng.choice(("none", "none", "dcqcn", "hpcc"))
    yield f"transport.recovery={recovery}"
    yield f"transport.cc={cc}"
    if cc == "dcqcn":
        yield f"transport.dcqcn={rng.choice(('paper', 'mlx5', 'hpcc-ns3', 'conweave'))}"
    if cc != "hpcc" and rng.random() < 0.3:  # HPCC's all do
        yield f"int.share={rng.choice((0.01, 1))}"
    yield f"transport.acks={rng.choice(('data', 'control'))}"
    yield f"transport.window={rng.choice((1, 7, 64, 512, 4096))}"
    if rng.random() < 0.2:
        yield f"transport.receive_gbps={{h1: {host_gbps * rng.uniform(0.1, 1.2):.3f}}}"
        yield f"transport.receive_buffer={round(log_uniform(rng, 1, 300_000))}"


def switches_of(rng: random.Random, lossless: list[int], mtu: int) -> Iterator[str]:
    """What switches do, their memory aside."""
    yield f"pfc.priorities={lossless}"
    yield f"pfc.asymmetric={rng.choice(('true', 'false'))}"
    yield f"pfc.response_ns={round(log_uniform(rng, 1, 20_000))}"
    yield f"pfc.watchdog_ns={rng.choice((0, '200ms', '50ms'))}"
    if rng.random() < 0.5:
        yield f"pfc.xon_gap={round(log_uniform(rng, 1, 20 * mtu))}"
    if rng.random() < 0.3:
        yield f"pfc.xon={round(log_uniform(rng, 1, 20 * mtu))}"
    yield f"pfc.xon_follows={rng.choice(('true', 'false'))}"
    kmin = round(log_uniform(rng, 1, 400_000))
    yield (
        f"ecn={{enabled: {rng.choice(('true', 'false'))}, kmin: {kmin}, "
        f"kmax: {kmin + rng.choice((0, 1, 100_000))}, pmax: {rng.random():.3f}}}"
    )
    kind = rng.choice(("strict", "strict", "dwrr", "ets"))
    if kind != "strict":
        weighted = rng.sample(range(6), rng.randrange(1, 4))
        shares = ", ".join(f"{priority}: {rng.randrange(1, 20)}" for priority in weighted)
        yield f"schedule={{kind: {kind}, weights: {{{shares}}}}}"
    if rng.random() < 0.3:
        yield f"buffer.cell={rng.choice((64, 80, 208, 254, 4096))}"
    if rng.random() < 0.3:
        yield f"buffer.reserved={round(log_uniform(rng, 1, 3 * mtu))}"
    if rng.random() < 0.2:
        yield f"buffer.lossy_reserved={round(log_uniform(rng, 1, 3 * mtu))}"
    if rng.random() < 0.2:
        yield f"buffer.static={round(log_uniform(rng, 1, 100 * mtu))}"
    if rng.random() < 0.3:
        yield f"buffer.lossy_alpha={2.0 ** rng.randrange(-8, 8)}"
    yield f"buffer.alpha={2.0 ** rng.randrange(-8, 8)}"
    if rng.random() < 0.3:  # another DSCP for every class
        values = rng.sample(range(64), len(CLASSES))
        usual = {value: 0 for value in DSCP_OF.values() if value}
        told = usual | dict(zip(values, CLASSES, strict=True))
        yield f"classes.dscp={{{', '.join(f'{value}: {told[value]}' for value in sorted(told))}}}"
    yield f"classes.trust={rng.choice(('dscp', 'dscp', 'pcp'))}"


def drawn(seed: int) -> Drawn:
    """A scenario by lot."""
    rng = random.Random(seed)
    topology, hosts, links = fabric_of(rng)
    host, fabric = rng.choice(GBPS), rng.choice(GBPS)
    mtu = rng.choice((256, 1024, 4096, 9000, 8 * rng.randrange(32, 1126)))
    lossless = sorted(rng.sample(CLASSES, rng.choice((1, 1, 2, 3, 7))))
    carried = rng.sample(lossless, rng.randrange(1, min(3, len(lossless)) + 1))
    lossy = [priority for priority in CLASSES if priority not in lossless]
    if lossy and rng.random() < 0.3:
        carried.append(rng.choice(lossy))
    kb = rng.choice((30, 150)) * max(1, mtu // 1024)
    parts = ", ".join(traffic_of(rng, hosts, priority, kb) for priority in carried)
    delays = [round(log_uniform(rng, 10, 50_000)) for _ in range(2)]
    policy = rng.choice(POLICIES)
    adapters = list(adapters_of(rng, policy, host))
    if {"transport.acks=control", "transport.cc=dcqcn"} & set(adapters):
        carried.append(CONTROL)
    changes = [
        f"topology={topology}",
        f"link={{rate_gbps: {host}, fabric_rate_gbps: {fabric}, mtu: {mtu}, "
        f"ip: {6 if seed % 2 else 4}, delay_ns: {delays[0]}, fabric_delay_ns: {delays[1]}}}",
        f"traffic={{kind: mix, parts: [{parts}]}}",
        f"lb.policy={policy}",
        f"seed={seed}",
        "limit_ns=2s",
        *adapters,
        *switches_of(rng, lossless, mtu),
    ]
    if rng.random() < 0.3:
        shares = ", ".join(f"{name}: {rng.uniform(0.02, 1):.4f}" for name in links)
        changes.append(f"link.slow={{{shares}}}")
    if rng.random() < 0.2:
        length = round(log_uniform(rng, 1_000, 3_000_000))
        changes.append(f"faults=[{{at_ns: 5us, action: storm, host: h1, for_ns: {length}}}]")
    changes.append(f"buffer.bytes={memory_for(changes, rng, mtu)}")
    return Drawn(tuple(changes), tuple(lossless), tuple(carried))


def memory_for(changes: list[str], rng: random.Random, mtu: int) -> int:
    """What headroom and reserved bytes need, and from next to nothing to much for all to share."""
    roomy = Experiment.of(catalogue.load("hello", (*changes, "buffer.bytes=4GB")))
    most = max(
        roomy.settings.buffer.size - pool_of(SwitchSite(roomy.fabric, node, roomy.settings))
        for node in roomy.fabric.switches
    )
    return most + round(log_uniform(rng, 2 * mtu, 4_000_000))


def check(seed: int, out: Path) -> Result:
    """Nothing lossless is lost, everything arrives, and the run believes itself."""
    case = drawn(seed)
    said = f"seed {seed}: " + " ".join(f"--set '{change}'" for change in case.changes)
    try:
        run = simulate_sparely("hello", *case.changes, out=out)
    except LabError as error:
        raise AssertionError(f"{said}\nrefused: {error}") from None
    result = run.result
    assert "headroom_full" not in result.drops.by_reason, (said, result.drops)
    assert result.fidelity.ok, (said, result.fidelity)
    if case.is_lossless:  # else a lossy class, served first, may starve others for ever
        assert result.drops.total == 0, (said, result.drops)
        assert result.flows.failed == 0, (said, result.flows)
    return result


@pytest.mark.parametrize(
    "seed",
    [*range(6), *(pytest.param(seed, marks=pytest.mark.slow) for seed in range(6, 12))],
)
def test_nothing_lossless_is_lost(seed: int, tmp_path: Path) -> None:
    check(seed, tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(1000, 1400))
def test_nothing_lossless_is_lost_in_hundreds_of_fabrics(seed: int, tmp_path: Path) -> None:
    check(seed, tmp_path)
