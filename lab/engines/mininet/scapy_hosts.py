"""What the scapy hosts of the all-pairs exchange are told, and what their reports mean."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from lab.scenario.experiment import Experiment
from topologies import Node
from traffic import HostPlan, HostReport, Message
from traffic.collectives import Timeline

_FIRST_QUEUE_PAIR = 0x100


def host_plans(experiment: Experiment) -> list[HostPlan]:
    """The plans of all hosts, in their order; a message's queue pair tells its transfer."""
    fabric, schedule = experiment.fabric, experiment.schedule
    messages = {
        (fabric.hosts[transfer.src], fabric.hosts[transfer.dst]): Message(
            src=str(fabric.address(fabric.hosts[transfer.src])),
            dst=str(fabric.address(fabric.hosts[transfer.dst])),
            size=transfer.size,
            queue_pair=_FIRST_QUEUE_PAIR + transfer.id,
            src_port=experiment.source_port((transfer.src, transfer.dst, transfer.channel)),
        )
        for transfer in schedule
    }
    return [
        HostPlan(
            name=host.name,
            interface=host.interface(0),
            mac=fabric.mac(host),
            gateway_mac=fabric.mac(fabric.leaf_of(host)),
            path_mtu=experiment.scenario.link.mtu,
            sends=tuple(message for (src, _), message in messages.items() if src == host),
            expects=tuple(message for (_, dst), message in messages.items() if dst == host),
        )
        for host in fabric.hosts
    ]


def timeline_of(experiment: Experiment, reports: Sequence[HostReport]) -> Timeline:
    """When messages were sent and had arrived; time 0 is when the first host began."""
    starts = {
        pair - _FIRST_QUEUE_PAIR: at for report in reports for pair, at in report.start_ns.items()
    }
    ends = {
        message.message.queue_pair - _FIRST_QUEUE_PAIR: message.end_ns
        for report in reports
        for message in report.received
        if message.complete and message.end_ns is not None
    }
    began = began_ns(reports)
    return Timeline.gather(
        len(experiment.schedule),
        {number: at - began for number, at in starts.items()},
        {number: at - began for number, at in ends.items()},
    )


def began_ns(reports: Sequence[HostReport]) -> int:
    """When the first host began, by the machine's monotonic clock."""
    return min((at for report in reports for at in report.start_ns.values()), default=0)


def counters_of(
    experiment: Experiment, reports: Sequence[HostReport]
) -> dict[Node, Mapping[str, int]]:
    """What the hosts counted, under the names of an adapter's counters."""
    return {
        host: {
            "tx_data_packets": report.sent_packets,
            "tx_data_bytes": report.sent_bytes,
            "out_of_sequence": sum(message.out_of_order for message in report.received),
        }
        for host, report in zip(experiment.fabric.hosts, reports, strict=True)
    }
