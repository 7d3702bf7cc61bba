"""The simulator against theory and against itself."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from ipaddress import IPv4Address
from pathlib import Path
from typing import Any

import pytest

from controller import LinkSpec, Loss, Settings, switch_plans
from lab.engines.sim.control import SimulatedSwitches
from lab.engines.sim.simulation import Account, Simulation
from lab.machine import program
from lab.results.conservation import Books, differences, in_a_switch
from tests.traffic.endpoint.star import unfinished
from topologies import Fabric, Node, leaf_spine
from traffic.endpoint import (
    EndpointConfig,
    EndpointPlan,
    EndpointReport,
    QueuePair,
    Recovery,
    Transfer,
    TransferKind,
)
from traffic.frames import FlowAddress

GBPS = 10**9
MTU = 4096
HEADERS = 14 + 20 + 8 + 12 + 4  # Ethernet to BTH, and the ICRC
RETH, IMMEDIATE = 16, 4


class Lab:
    """A fabric in the simulator and flows over it."""

    def __init__(
        self, fabric: Fabric, stack: ExitStack, folder: Path, settings: Settings, seed: int
    ):
        self.fabric, self.wire = fabric, settings.host_link
        self.switches = stack.enter_context(
            SimulatedSwitches(fabric.switches, program.build(folder), lambda _: seed)
        )
        plans = switch_plans(fabric, settings)
        for switch in fabric.switches:
            self.switches.install(switch, plans[switch.name])
        self.simulation = stack.enter_context(
            Simulation(fabric, self.switches.planes, lambda _: self.wire, seed=seed)
        )
        self._pairs: dict[Node, list[QueuePair]] = {}
        self._transfers: dict[Node, list[Transfer]] = {}

    def flow(self, src: Node, dst: Node, size: int) -> int:
        """One message; returns its id."""
        number = sum(map(len, self._pairs.values())) + 0x100
        ends = ((src, dst, number, number + 1), (dst, src, number + 1, number))
        for host, peer, own, other in ends:
            address = FlowAddress(
                src_mac=self.fabric.mac(host),
                dst_mac=self.fabric.mac(self.fabric.leaf_of(host)),
                src=IPv4Address(self.fabric.address(host)),
                dst=IPv4Address(self.fabric.address(peer)),
                src_port=0xC000 + number,
                queue_pair=other,
            )
            self._pairs.setdefault(host, []).append(QueuePair(number=own, flow=address))
        for host, kind, own in (
            (src, TransferKind.SEND, number),
            (dst, TransferKind.RECEIVE, number + 1),
        ):
            transfer = Transfer(id=number, kind=kind, queue_pair=own, size=size)
            self._transfers.setdefault(host, []).append(transfer)
        return number

    def run(self, **settings: object) -> dict[Node, EndpointReport]:
        """Run all flows to their end; every frame is accounted for."""
        config = EndpointConfig.model_validate(
            {"link_bps": self.wire.rate_bps, "mtu": MTU, "payload": "none"} | settings
        )
        for host, pairs in self._pairs.items():
            plan = EndpointPlan(
                config=config,
                queue_pairs=tuple(pairs),
                transfers=tuple(self._transfers.get(host, ())),
            )
            self.simulation.set_plan(host, plan)
        self.simulation.start()
        self.simulation.run(until_ns=10**9)
        for switch in self.fabric.switches:
            kept = self.switches.books(switch)
            assert not [*in_a_switch(switch.name, kept, Books(kept.lines))]
        for link in self.fabric.links:
            for name in (link.up, link.down):
                assert not [*differences(name, Books(self.simulation.books(name)))]
        return {host: self.simulation.report(host) for host in self._pairs}


MakeLab = Callable[..., Lab]


@pytest.fixture
def lab(tmp_path: Path) -> Iterator[MakeLab]:
    with ExitStack() as stack:

        def make(
            leaves: int = 2,
            spines: int = 2,
            hosts: int = 1,
            *,
            gbps: int = 100,
            delay_ns: int = 1000,
            seed: int = 1,
            **settings: Any,
        ) -> Lab:
            link = LinkSpec(gbps * GBPS, delay_ns)
            fabric = leaf_spine(leaves, spines, hosts)
            chosen = Settings(host_link=link, fabric_link=link, **settings)
            return Lab(fabric, stack, tmp_path, chosen, seed)

        yield make


def lasts_ns(frame: int, gbps: int) -> float:
    """How long a frame takes on a wire, with preamble, FCS and gap."""
    return (frame + 24) * 8 / gbps


@pytest.mark.parametrize("gbps", [25, 100, 400])
@pytest.mark.parametrize("payload", ["none", "pattern"])
def test_one_packet_takes_what_four_wires_take(lab: MakeLab, gbps: int, payload: str) -> None:
    """Store and forward: serialisation and propagation on each of four links."""
    net = lab(gbps=gbps, delay_ns=1000)
    h1, h2 = net.fabric.hosts
    number = net.flow(h1, h2, 1024)
    reports = net.run(payload=payload)
    frame = 1024 + HEADERS + RETH + IMMEDIATE
    arrival = reports[h2].transfers[number].end_ns
    assert arrival is not None
    assert arrival == pytest.approx(4 * (lasts_ns(frame, gbps) + 1000), abs=4)


@pytest.mark.parametrize("gbps", [100, 400])
def test_a_long_flow_takes_its_bytes_at_the_rate_of_the_link(lab: MakeLab, gbps: int) -> None:
    net = lab(gbps=gbps)
    h1, h2 = net.fabric.hosts
    packets = 500
    number = net.flow(h1, h2, packets * MTU)
    reports = net.run(window=packets)
    end = reports[h2].transfers[number].end_ns
    first = lasts_ns(MTU + HEADERS + RETH, gbps)
    middle = (packets - 2) * lasts_ns(MTU + HEADERS, gbps)
    last = lasts_ns(MTU + HEADERS + IMMEDIATE, gbps)
    assert end is not None
    # The first link serialises everything; the last packet alone then crosses three more.
    assert end == pytest.approx(first + middle + last + 3 * last + 4 * 1000, abs=5)


def test_the_same_seed_gives_the_same_run_with_and_without_payload(lab: MakeLab) -> None:
    outcomes: list[tuple[Account, object]] = []
    for payload, seed in (("none", 1), ("none", 1), ("pattern", 1), ("none", 2)):
        net = lab(leaves=4, hosts=4, seed=seed)
        hosts = net.fabric.hosts
        for index, host in enumerate(hosts):
            net.flow(host, hosts[(index + 4) % len(hosts)], 200_000)
            net.flow(host, hosts[(index + 7) % len(hosts)], 100_000)
        reports = net.run(payload=payload)
        times = {str(host): report.transfers for host, report in reports.items()}
        outcomes.append((net.simulation.account(), times))
    assert outcomes[0] == outcomes[1] == outcomes[2]
    assert outcomes[0] != outcomes[3]


def test_loss_is_repaired_and_counted(lab: MakeLab) -> None:
    net = lab(losses=tuple(Loss("leaf2", port, 0.01, priority=3) for port in (2, 3)))
    h1, h2 = net.fabric.hosts
    number = net.flow(h1, h2, 2_000_000)
    reports = net.run(recovery=Recovery.SELECTIVE)
    leaf = net.fabric.node("leaf2")
    lost = net.switches.counts(leaf, (), 0).dropped["injected_loss"]
    assert lost > 0
    assert not unfinished(reports[h2])
    assert reports[h1].counters["retransmitted_packets"] >= lost
    assert reports[h2].transfers[number].end_ns is not None


def test_a_run_may_stop_anywhere_and_go_on(lab: MakeLab) -> None:
    """In steps of 500 events or at once: the same."""
    ends = []
    for steps in (1, 50):
        net = lab(seed=5)
        h1, h2 = net.fabric.hosts
        net.flow(h1, h2, 500_000)
        plain_run = net.simulation.run
        if steps > 1:

            def stepwise(until_ns: int | None = None, run: Callable[..., int] = plain_run) -> int:
                for step in range(1, 50):
                    run(until_ns=step * 1000)
                return run(until_ns=until_ns)

            net.simulation.run = stepwise
        net.run()
        ends.append(net.simulation.account())
    assert ends[0] == ends[1]
