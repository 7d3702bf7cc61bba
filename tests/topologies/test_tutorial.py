import copy
from typing import Any

import pytest

from controller import routes_of, switch_plans
from topologies import NodeKind, TopologyError, import_tutorial

POD = {
    "hosts": {
        "h1": {"ip": "10.0.1.1/24", "mac": "08:00:00:00:01:11", "commands": ["route add ..."]},
        "h2": {"ip": "10.0.2.2/24", "mac": "08:00:00:00:02:22", "commands": []},
        "h3": {"ip": "10.0.3.3/24", "mac": "08:00:00:00:03:33", "commands": []},
        "h4": {"ip": "10.0.4.4/24", "mac": "08:00:00:00:04:44", "commands": []},
    },
    "switches": {f"s{n}": {"runtime_json": f"s{n}-runtime.json"} for n in (1, 2, 3, 4)},
    "links": [
        *(["h1", "s1-p1"], ["h2", "s1-p2"], ["s1-p3", "s3-p1"], ["s1-p4", "s4-p2"]),
        *(["h3", "s2-p1"], ["s2-p2", "h4", "5ms", 10], ["s2-p3", "s4-p1"]),
        ["s2-p4", "s3-p2", "0", 0.5],
    ],
}


def test_names_ports_addresses_and_speeds_are_the_files() -> None:
    imported = import_tutorial(POD)
    fabric, node = imported.fabric, imported.aliases
    assert node["s1"].kind is NodeKind.LEAF
    assert node["s3"].kind is NodeKind.SPINE
    assert fabric.port_towards(node["s1"], node["s4"]) == 4
    assert fabric.port_towards(node["s2"], node["h4"]) == 2
    assert str(fabric.address(node["h2"])) == "10.0.2.2"
    assert fabric.mac(node["h2"]) == "08:00:00:00:02:22"
    (speed,) = (link.speed for link in fabric.links_between(node["s2"], node["h4"]))
    assert (speed.rate_bps, speed.delay_ns) == (10_000_000, 5_000_000)


def test_every_host_is_routed_to_everywhere() -> None:
    imported = import_tutorial(POD)
    fabric = imported.fabric
    for switch, routes in routes_of(fabric).items():
        for host in fabric.hosts:
            best = max(
                (route for route in routes if fabric.address(host) in route.prefix),
                key=lambda route: route.prefix.prefixlen,
            )
            for hop in best.next_hops:
                peer = fabric.ports(switch)[hop.port]
                assert peer == host or peer.kind is not NodeKind.HOST
                assert host not in fabric.hosts_of(switch) or peer == host
    assert switch_plans(fabric)


def broken(change: str) -> dict[str, Any]:
    content: dict[str, Any] = copy.deepcopy(POD)
    links = content["links"]
    match change:
        case "no links":
            del content["links"]
        case "no such switch":
            links[0][1] = "s9-p1"
        case "no port":
            links[0][1] = "s1"
        case "port twice":
            links[1][1] = "s1-p1"
        case "two hosts":
            links[0] = ["h1", "h2"]
        case "no mac":
            del content["hosts"]["h1"]["mac"]
        case "bad latency":
            links[0] = ["h1", "s1-p1", "soon"]
        case "idle host":
            del links[0]
    return content


@pytest.mark.parametrize(
    ("change", "complaint"),
    [
        ("no links", "'links' is missing"),
        ("no such switch", "'s9-p1' is no end"),
        ("no port", "'s1' is no end"),
        ("port twice", "h2 to s1: port 1 of leaf1 has two links"),
        ("two hosts", "h1 and h2 are both hosts"),
        ("no mac", "host h1: 'ip' and 'mac'"),
        ("bad latency", "'soon' is no delay"),
        ("idle host", "host h1 has no link"),
    ],
)
def test_a_wrong_file_is_refused_by_what_is_wrong(change: str, complaint: str) -> None:
    with pytest.raises(TopologyError, match=complaint):
        import_tutorial(broken(change))
