"""What telemetry tells: where packets waited."""


def way(report):
    """The switches a packet passed, in the order it passed them.

    report: what they said, as it stands in the packet: [switch, waited_ns, queue_bytes] each.
    """
    return [switch for switch, _, _ in reversed(report)]


def slowest(reports):
    """The switch at which packets waited longest, on average of those that passed it."""
    waits = {}
    for report in reports:
        for switch, waited, _ in report:
            waits.setdefault(switch, []).append(waited)
    return max(waits, key=lambda switch: sum(waits[switch]) / len(waits[switch]))
