"""How DCQCN and HPCC choose a sender's rate."""

G = 1 / 256  # how fast alpha follows
FAST_ROUNDS = 5
ADDITIVE = 40.0  # Mb/s
HYPER = 400.0  # Mb/s
ETA = 0.95  # of a link: what HPCC aims at


def cut(rate, alpha):
    """DCQCN, when a notification comes: [rate, target, alpha] from now on."""
    return [rate * (1 - alpha / 2), rate, (1 - G) * alpha + G]


def calm(alpha):
    """DCQCN, when an interval passed without a notification: alpha from now on."""
    return (1 - G) * alpha


def climb(rate, target, by_time, by_bytes):
    """DCQCN, when a timer or a byte counter is over: [rate, target] from now on.

    by_time, by_bytes: how often each of them was over since the last cut, this one included.
    """
    if max(by_time, by_bytes) > FAST_ROUNDS:
        both = min(by_time, by_bytes) - FAST_ROUNDS
        target += both * HYPER if both > 0 else ADDITIVE
    return [(rate + target) / 2, target]


def load(queue_bytes, sent_gbps, line_gbps, rtt_ns):
    """HPCC: what a link carries and holds, as a share of what it can carry in a round trip."""
    return queue_bytes * 8 / (line_gbps * rtt_ns) + sent_gbps / line_gbps


def window(reference, loads, additive):
    """HPCC: the window from now on, for the loads of all links on the way; all in bytes."""
    busiest = max(loads)
    if busiest < ETA:
        return reference + additive
    return reference * ETA / busiest + additive
