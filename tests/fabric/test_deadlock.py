"""A cyclic buffer dependency: three switches in a ring, each waiting for the next, for ever."""

from controller import NextHop, Route, Settings
from params.buffer import Buffer
from params.marking import Ecn
from params.pfc import Pfc
from tests.fabric.testbed import Testbed
from topologies import Fabric, Node, NodeKind

FRAME = 1100
LOSSLESS, WATCHDOG = 3, 9
CLOCKWISE = 2  # the port towards the next leaf of the ring; 1 is the host's


def ring() -> tuple[Fabric, dict[Node, tuple[Route, ...]]]:
    """Every leaf sends what is not its own clockwise: valid routes, and a cycle of buffers."""
    fabric = Fabric()
    leaves = [Node(NodeKind.LEAF, number) for number in (1, 2, 3)]
    for number, leaf in enumerate(leaves, 1):
        fabric.add_host(Node(NodeKind.HOST, number), leaf)
    for leaf, following in zip(leaves, leaves[1:] + leaves[:1], strict=True):
        fabric.add_link(leaf, following)
    routes = {}
    for leaf, following in zip(leaves, leaves[1:] + leaves[:1], strict=True):
        (host,) = fabric.hosts_of(leaf)
        own = Route(fabric.prefix(leaf), (NextHop(1, fabric.mac(host)),))
        hop = NextHop(fabric.port_towards(leaf, following), fabric.mac(following))
        others = tuple(Route(fabric.prefix(peer), (hop,)) for peer in leaves if peer != leaf)
        routes[leaf] = (own, *others)
    return fabric, routes


def locked(watchdog_ns: int) -> Testbed:
    """The ring after a millisecond in which every host sent to the one two leaves on."""
    fabric, routes = ring()
    settings = Settings(
        max_frame=FRAME,
        ecn=Ecn(enabled=False),
        buffer=Buffer(bytes=200_000, alpha=1 / 8),
        pfc=Pfc(response_ns=0, watchdog_ns=watchdog_ns),
    )
    bed = Testbed.build(fabric, settings, routes=routes)
    for src, dst in (("h1", "h3"), ("h2", "h1"), ("h3", "h2")):
        frame = bed.frame(src, dst, size=FRAME)
        bed.host(src).source = lambda _, f=frame: f
        bed.network.start(bed.host(src))
    bed.network.run(1_000_000)
    for host in bed.network.hosts.values():
        host.source = None
    return bed


def held(bed: Testbed) -> int:
    return sum(switch.plane.stats().held for switch in bed.network.switches.values())


def test_without_a_watchdog_it_lasts_for_ever() -> None:
    bed = locked(watchdog_ns=0)
    bed.network.run(2_000_000)
    stuck = held(bed)
    arrived = sum(len(host.arrived) for host in bed.network.hosts.values())
    assert stuck > 0
    bed.network.run(10_000_000)
    assert held(bed) == stuck
    assert sum(len(host.arrived) for host in bed.network.hosts.values()) == arrived
    assert bed.drops() == {}


def test_the_watchdog_detects_names_and_breaks_it() -> None:
    bed = locked(watchdog_ns=2_000_000)
    assert held(bed) > 0
    bed.network.run(10_000_000)
    assert held(bed) == 0
    named = {
        name: [
            port
            for port in bed.fabric.ports(bed.node(name))
            if switch.counter("pause_storms", port * 8 + LOSSLESS)
        ]
        for name, switch in bed.network.switches.items()
    }
    towards_next = {
        leaf.name: [bed.fabric.port_towards(leaf, following)]
        for leaf, following in zip(
            bed.fabric.switches, bed.fabric.switches[1:] + bed.fabric.switches[:1], strict=True
        )
    }
    accused = {name: ports for name, ports in named.items() if ports}
    assert accused
    assert all(ports == towards_next[name] for name, ports in accused.items())
    assert set(bed.drops()) == {"watchdog"}
    bed.check_accounts()

    # And the ring is as good as new.
    before = len(bed.host("h3").arrived)
    bed.send("h1", "h3", 50, size=FRAME)
    bed.network.run(12_000_000)
    assert len(bed.host("h3").arrived) == before + 50
