"""What telemetry tells: where packets waited."""


def way(report):
    """The switches a packet passed, in the order it passed them.

    report: what they said, as it stands in the packet: [switch, waited_ns, queue_bytes] each.
    """
    # TODO 6
    return []


def slowest(reports):
    """The switch at which packets waited longest, on average of those that passed it."""
    # TODO 7
    return 0
