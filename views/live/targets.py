"""A switch as a gNMI target of its own, as SONiC has one: what there is to tell, by its path.

Paths are OpenConfig's, and those of SONiC's COUNTERS_DB, whose fields have SAI's names. What the
lab's switches do not count is not told.

    /interfaces/interface[name=leaf1-eth3]/state, .../state/counters, .../ethernet/state
    /qos/interfaces/interface[interface-id=...]/output/queues/queue[name=data]/state
    /system/state, /components/component[name=...]/state and the reasons of drops
    /network-instances/network-instance[name=default]/protocols/protocol[identifier=BGP][name=bgp]
    /COUNTERS/leaf1-eth3/SAI_PORT_STAT_..., /COUNTERS/leaf1-eth3:3/SAI_QUEUE_STAT_...
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from ipaddress import IPv4Address

from lab.results.outcome import PortCounts, SwitchCounts
from lab.results.snapshot import Books
from params.classes import PRIORITIES
from topologies import Fabric, Node
from views.live.hub import Frame, Scene

Step = tuple[str, tuple[tuple[str, str], ...]]  # an element's name, and its keys
Path = tuple[Step, ...]
Value = int | str
Leaves = dict[Path, Value]

MAX_TARGETS = 64  # switches that are targets of their own
MODELS = (
    ("openconfig-interfaces", "OpenConfig working group", "3.0.0"),
    ("openconfig-if-ethernet", "OpenConfig working group", "2.12.0"),
    ("openconfig-qos", "OpenConfig working group", "0.11.0"),
    ("openconfig-system", "OpenConfig working group", "2.0.0"),
    ("openconfig-platform", "OpenConfig working group", "0.26.0"),
    ("openconfig-network-instance", "OpenConfig working group", "4.1.0"),
    ("closlab-pfc", "closlab", "1.0.0"),
)
_BGP = ("protocol", (("identifier", "BGP"), ("name", "bgp")))


def path_of(*steps: str | Step) -> Path:
    """A path of elements, with keys or without."""
    return tuple((step, ()) if isinstance(step, str) else step for step in steps)


def keyed(name: str, key: str, value: str) -> Step:
    """An element of a list."""
    return name, ((key, value),)


def targets(fabric: Fabric) -> dict[Node, str]:
    """The switches that are targets, and the addresses of this machine's loopback they are at."""
    if len(fabric.switches) > MAX_TARGETS:
        return {}
    own = 127 << 24 | 255 << 16
    return {s: str(IPv4Address(own | int(fabric.loopback(s)) & 0xFFFF)) for s in fabric.switches}


def switch_leaves(switch: Node, scene: Scene, frame: Frame) -> Leaves:
    """All that a switch tells."""
    books = frame.snapshot.books or Books(0, {}, {})
    counts = books.switches.get(switch.name) or SwitchCounts({}, {})
    found: Leaves = {
        path_of("system", "state", "hostname"): switch.name,
        path_of("system", "state", "up-time"): frame.snapshot.time_ns,
    }
    chassis = keyed("component", "name", "chassis")
    found[path_of("components", chassis, "state", "type")] = "CHASSIS"
    found[path_of("components", chassis, "state", "description")] = f"{scene.engine} {switch}"
    found |= _dropped(counts.dropped)
    for port, peer in scene.fabric.ports(switch).items():
        link = scene.fabric.link_at(switch, port)
        status = "DOWN" if link.name in frame.snapshot.dead else "UP"
        way = frame.snapshot.links[link.direction(switch)]
        name = switch.interface(port)
        port_counts = counts.port(port)
        longest = books.longest.get(link.direction(switch), 0)
        found |= _interface(name, f"to {peer}", status, port_counts)
        found |= _queue(name, way.queue_bytes, longest, port_counts)
        found |= {
            path_of("COUNTERS", owner, field): value
            for owner, field, value in _sonic(name, way.queue_bytes, longest, port_counts)
        }
    return found | _bgp(scene.routing().get(switch.name, {}))


def _interface(name: str, what: str, status: str, counts: PortCounts) -> Leaves:
    interface = keyed("interface", "name", name)
    state: Mapping[str, Value] = {
        "name": name,
        "description": what,
        "oper-status": status,
        "admin-status": "UP",
    }
    counters = {
        "in-octets": counts.received.bytes,
        "out-octets": counts.sent.bytes,
        "in-pkts": counts.received.packets,
        "out-pkts": counts.sent.packets,
        "in-discards": sum(counts.discarded_in.values()),
        "out-discards": sum(counts.discarded_out.values()),
        # Of a link that tries again: frames that came and were not sound.
        "in-errors": counts.tries.get("unfit", 0) + counts.tries.get("spoilt", 0),
    }
    found: Leaves = {path_of("interfaces", interface, "state", k): v for k, v in state.items()}
    for key, count in counters.items():
        found[path_of("interfaces", interface, "state", "counters", key)] = count
    pauses = path_of("interfaces", interface, "ethernet", "state", "counters")
    found[(*pauses, ("out-mac-pause-frames", ()))] = counts.xoff_sent + counts.xon_sent
    return found


def _queue(name: str, now: int, longest: int, counts: PortCounts) -> Leaves:
    state = path_of(
        *("qos", "interfaces", keyed("interface", "interface-id", name), "output", "queues"),
        *(keyed("queue", "name", "data"), "state"),
    )
    values: Mapping[str, Value] = {
        "name": "data",
        "transmit-octets": counts.sent.bytes,
        "transmit-pkts": counts.sent.packets,
        "ecn-marked-pkts": counts.marked,
        "max-queue-len": longest,
        "queue-len": now,
    }
    return {(*state, (key, ())): value for key, value in values.items()}


def _dropped(by_reason: Mapping[str, int]) -> Leaves:
    """All drops, and each reason; OpenConfig leaves a place for reasons of one's own."""
    circuit = path_of(
        *("components", keyed("component", "name", "pipeline"), "integrated-circuit"),
        *("pipeline-counters", "drop"),
    )
    found: Leaves = {(*circuit, *path_of("state", "total")): sum(by_reason.values())}
    for reason, count in by_reason.items():
        place = path_of("vendor", "closlab", keyed("reason", "name", reason), "state", "count")
        found[(*circuit, *place)] = count
    return found


def _sonic(name: str, now: int, longest: int, counts: PortCounts) -> Iterator[tuple[str, str, int]]:
    """As SONiC has it: of a port, and of its queues by their numbers."""
    port = "SAI_PORT_STAT_"
    yield name, f"{port}IF_IN_OCTETS", counts.received.bytes
    yield name, f"{port}IF_OUT_OCTETS", counts.sent.bytes
    yield name, f"{port}IF_IN_UCAST_PKTS", counts.received.packets
    yield name, f"{port}IF_OUT_UCAST_PKTS", counts.sent.packets
    yield name, f"{port}IF_IN_DISCARDS", sum(counts.discarded_in.values())
    yield name, f"{port}IF_OUT_DISCARDS", sum(counts.discarded_out.values())
    yield name, f"{port}ECN_MARKED_PACKETS", counts.marked
    yield name, f"{port}OUT_CURR_OCCUPANCY_BYTES", now
    yield name, f"{port}OUT_WATERMARK_BYTES", longest
    yield name, "PFC_WD_QUEUE_STATS_DEADLOCK_DETECTED", counts.storms
    for priority in PRIORITIES:
        pfc = f"{port}PFC_{priority}"
        yield name, f"{pfc}_TX_PKTS", counts.xoff.get(priority, 0)
        yield name, f"{pfc}_RX_PKTS", counts.xoff_heard.get(priority, 0)
        yield name, f"{pfc}_RX_PAUSE_DURATION_US", counts.paused.get(priority, 0) // 1000
        cut = counts.cut.get(priority)
        queue = f"{name}:{priority}"
        yield queue, "SAI_QUEUE_STAT_TRIM_PACKETS", cut.packets if cut else 0
        yield queue, "SAI_QUEUE_STAT_DROPPED_PACKETS", counts.discarded_out.get(priority, 0)
        group = "SAI_INGRESS_PRIORITY_GROUP_STAT_DROPPED_PACKETS"
        yield queue, group, counts.discarded_in.get(priority, 0)


def _bgp(summary: Mapping[str, Mapping[str, object]]) -> Leaves:
    """Of `show bgp summary json`: a session for each family, told once."""
    found: Leaves = {}
    here = "network-instances", keyed("network-instance", "name", "default"), "protocols", _BGP
    for family in summary.values():
        numbers = {"as": family.get("as"), "router-id": family.get("routerId")}
        for key, value in numbers.items():
            if isinstance(value, int | str):
                found[path_of(*here, "bgp", "global", "state", key)] = value
        peers = family.get("peers")
        for address, peer in peers.items() if isinstance(peers, dict) else ():
            neighbor = keyed("neighbor", "neighbor-address", address)
            state = path_of(*here, "bgp", "neighbors", neighbor, "state")
            found[(*state, ("session-state", ()))] = str(peer["state"]).upper()
            found[(*state, ("peer-as", ()))] = int(peer["remoteAs"])
            found[(*state, ("established-transitions", ()))] = int(peer["connectionsEstablished"])
    return found
