"""From a scenario's traffic to what each host has to send and may expect."""

from __future__ import annotations

import random

from lab.scenario import Scenario
from topologies import Fabric, Node
from traffic import HostPlan, Message

_FIRST_QUEUE_PAIR = 0x100
_TIMEOUT_S = 10.0


def host_plans(scenario: Scenario, fabric: Fabric) -> list[HostPlan]:
    """The plans of all hosts, in their order."""
    messages = _all_pairs(scenario, fabric)
    return [
        HostPlan(
            name=host.name,
            interface=host.interface(0),
            mac=fabric.mac(host),
            gateway_mac=fabric.mac(fabric.leaf_of(host)),
            path_mtu=scenario.link.mtu,
            timeout_s=_TIMEOUT_S,
            sends=tuple(message for (src, _), message in messages.items() if src == host),
            expects=tuple(message for (_, dst), message in messages.items() if dst == host),
        )
        for host in fabric.hosts
    ]


def _all_pairs(scenario: Scenario, fabric: Fabric) -> dict[tuple[Node, Node], Message]:
    """One message from every host to every other; the seed chooses the ports, so the paths."""
    ports = random.Random(scenario.seed)  # noqa: S311  (an experiment's chance, not a secret)
    pairs = [(src, dst) for src in fabric.hosts for dst in fabric.hosts if src != dst]
    return {
        (src, dst): Message(
            src=str(fabric.address(src)),
            dst=str(fabric.address(dst)),
            size=scenario.traffic.bytes,
            queue_pair=_FIRST_QUEUE_PAIR + index,
            src_port=ports.randrange(0xC000, 0x10000),
        )
        for index, (src, dst) in enumerate(pairs)
    }
