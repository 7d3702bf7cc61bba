"""Adapters that write segment lists themselves: they leave what is drained, and lose nothing."""

from __future__ import annotations

import json
import random
from ipaddress import IPv6Address
from pathlib import Path

import networkx as nx
import pytest

from lab.errors import ScenarioError
from lab.scenario import catalogue
from tests.fabric.captures import Captured, recorded
from tests.lab.simulated import Run, simulate
from topologies import Fabric

STEERS = (
    *("link={rate_gbps: 100, delay_ns: 500, mtu: 4096, ip: 6, fabric_rate_gbps: 400}",),
    *("segments={enabled: true, hosts: true}", "measures.series=false"),
)
IPV6, CARRIED = 0x86DD, 41


def drawn(rng: random.Random) -> str:
    leaves, spines, hosts = rng.randrange(2, 4), rng.randrange(2, 5), rng.randrange(1, 3)
    shape = f"leaves: {leaves}, spines: {spines}, hosts_per_leaf: {hosts}"
    kinds = ("kind: leaf-spine", f"kind: planes, planes: {rng.choice((2, 4))}")
    return rng.choice((*(f"{{{kind}, {shape}}}" for kind in kinds), "{kind: fat-tree, k: 4}"))


def everybody_to_another(rng: random.Random, fabric: Fabric) -> str:
    hosts = [host.name for host in fabric.hosts]
    rng.shuffle(hosts)
    pairs = zip(hosts, [*hosts[1:], hosts[0]], strict=True)
    flows = [{"src": src, "dst": dst, "bytes": "1MB"} for src, dst in pairs]
    return f"traffic={json.dumps({'kind': 'flows', 'flows': flows})}"


@pytest.mark.by_day(2)
@pytest.mark.parametrize("seed", range(120))
def test_a_drained_cable_is_left_after_a_round_trip_and_nothing_is_lost(
    seed: int, tmp_path: Path
) -> None:
    rng = random.Random(seed)
    topology = f"topology={drawn(rng)}"
    fabric = catalogue.load("planes", (topology, "faults=[]")).fabric()
    cables = [link for link in fabric.links if link.joins_switches]
    drained = {
        link.name: rng.randrange(5_000, 60_000) for link in rng.sample(cables, rng.randrange(1, 4))
    }
    ends = {name: rng.randrange(1_000, 20_000) for name in drained if rng.random() < 0.2}
    drains = [
        {"at_ns": at_ns, "action": "drain", "link": name}
        | ({"for_ns": ends[name]} if name in ends else {})
        for name, at_ns in drained.items()
    ]
    kind = rng.choice(("mrc", "uet"))
    found = simulate(
        *("planes", topology, *STEERS, everybody_to_another(rng, fabric)),
        *(f"transport.kind={kind}", f"transport.entropies={rng.choice((16, 128))}"),
        *(
            f"faults={json.dumps(drains)}",
            f"measures.pcap={json.dumps([*drained])}",
        ),
        out=tmp_path,
    )
    result = found.result
    assert result.flows.failed == result.drops.total == result.roce.qp_errors == 0
    assert result.roce.retransmitted_packets == (result.trim.cut_packets if result.trim else 0)
    for link in cables if others_are_as_short(fabric, {*drained}) else ():
        if link.name in drained.keys() - ends.keys():
            left_ns = drained[link.name] + found.experiment.round_trip_ns
            times = [at_ns for way in (link.up, link.down) for at_ns, *_ in on(found, way)]
            assert max(times, default=0) <= left_ns, link.name


def others_are_as_short(fabric: Fabric, names: set[str]) -> bool:
    """Whether all are as near to each other without some cables."""
    whole: nx.Graph[str] = nx.Graph()
    left: nx.Graph[str] = nx.Graph()
    for link in fabric.links:
        if link.joins_switches:
            whole.add_edge(link.a, link.b)
            if link.name not in names:
                left.add_edge(link.a, link.b)
    leaves = [switch for switch in fabric.switches if fabric.hosts_of(switch)]
    far, now = (dict(nx.all_pairs_shortest_path_length(graph)) for graph in (whole, left))
    return all(far[a].get(b) == now.get(a, {}).get(b) for a in leaves for b in leaves)


def on(found: Run, way: str) -> list[Captured]:
    return recorded(found.out / "pcaps" / f"{way.replace('>', '-')}.pcap")


def test_a_carrier_says_of_a_packet_what_the_packet_says_itself(tmp_path: Path) -> None:
    """Class, mark, flow and source; and among a connection's ways are all that there are."""
    topology = "topology={kind: leaf-spine, leaves: 2, spines: 3, hosts_per_leaf: 1}"
    flows = "traffic={kind: flows, flows: [{src: h1, dst: h2, bytes: 500KB}]}"
    kept = ("faults=[]", "measures.pcap=[h1-leaf1, h2-leaf2]")
    found = simulate("planes", topology, *STEERS, flows, *kept, out=tmp_path)
    lists = set()
    for _, frame, _ in on(found, "h1>leaf1"):
        carrier, inside = frame[14:54], frame[54:94]
        assert int.from_bytes(frame[12:14], "big") == IPV6
        assert carrier[6] == CARRIED and carrier[7] > 1
        assert carrier[:4] == inside[:4] and carrier[8:24] == inside[8:24]
        payload = int.from_bytes(carrier[4:6], "big")
        assert payload == int.from_bytes(inside[4:6], "big") + 40
        lists.add(IPv6Address(carrier[24:]))
    assert lists == {IPv6Address(f"fcbb:bb00:200{n}:1002:f000::") for n in (1, 2, 3)}
    for _, frame, _ in on(found, "leaf2>h2"):
        assert frame[14 + 6] != CARRIED  # it was taken off at the last leaf


@pytest.mark.parametrize("kind", ["mrc", "uet"])
def test_what_is_dead_is_denied_too_once_the_controller_has_heard(
    kind: str, tmp_path: Path
) -> None:
    """A spine dies: after a while nothing is sent there any more, not even to ask."""
    found = simulate(
        *("planes", *STEERS, f"transport.kind={kind}", "reroute_ns=20us"),
        *("faults=[{at_ns: 50us, action: down, switch: spine3}]", "measures.pcap=[h1-leaf3]"),
        out=tmp_path,
    )
    assert found.result.flows.failed == 0
    late = [frame for at_ns, frame, _ in on(found, "h1>leaf3") if at_ns > 75_000]
    assert len(late) > 500
    assert {frame[14 + 28 : 14 + 30].hex() for frame in late if frame[20] == CARRIED} == {"2004"}


def test_who_cannot_steer_is_told_what_to_set() -> None:
    for change in ("link.ip=4", "transport.entropy=reps", "transport={kind: roce}"):
        with pytest.raises(ScenarioError, match=r"segments\.hosts: adapters steer IPv6"):
            catalogue.load("planes", (*STEERS, change))
    with pytest.raises(ScenarioError, match="hosts need micro-segments: set enabled to true"):
        catalogue.load("planes", (*STEERS, "segments={hosts: true}"))
