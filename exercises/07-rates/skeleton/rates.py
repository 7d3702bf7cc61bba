"""How DCQCN and HPCC choose a sender's rate."""

G = 1 / 256  # how fast alpha follows
FAST_ROUNDS = 5
ADDITIVE = 40.0  # Mb/s
HYPER = 400.0  # Mb/s
ETA = 0.95  # of a link: what HPCC aims at


def cut(rate, alpha):
    """DCQCN, when a notification comes: [rate, target, alpha] from now on."""
    # TODO 1: three new values
    return [0, 0, 0]


def calm(alpha):
    """DCQCN, when an interval passed without a notification: alpha from now on."""
    # TODO 2
    return 0


def climb(rate, target, by_time, by_bytes):
    """DCQCN, when a timer or a byte counter is over: [rate, target] from now on.

    by_time, by_bytes: how often each of them was over since the last cut, this one included.
    """
    # TODO 3: first the target, by how many rounds there were, then the rate
    return [0, 0]


def load(queue_bytes, sent_gbps, line_gbps, rtt_ns):
    """HPCC: what a link carries and holds, as a share of what it can carry in a round trip."""
    # TODO 4
    return 0


def window(reference, loads, additive):
    """HPCC: the window from now on, for the loads of all links on the way; all in bytes."""
    # TODO 5
    return 0
