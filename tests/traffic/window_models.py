"""UET's windows written a second time: Swift's, and RCCC's credit.

Swift goes by its paper (Kumar et al., SIGCOMM 2020) with delays as the paper has them, whole round
trips. RCCC's credit is a sum that 24 bits of a packet tell in units of 256 bytes.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field


@dataclass
class Link:
    """What a window starts from."""

    bps: int
    rtt: int
    mtu: int
    trims: bool
    hops: int

    @property
    def bdp(self) -> float:
        return self.bps / 8e9 * self.rtt


@dataclass
class Swift:
    """A sender's window, in packets, under whole round trips."""

    link: Link
    cwnd: float = field(init=False)
    last_decrease: int = 0
    rtt: int = field(init=False)

    def __post_init__(self) -> None:
        self.most = 1.5 * self.link.bdp / self.link.mtu
        self.cwnd = max(1.0, self.most)
        self.rtt = self.link.rtt

    @property
    def target(self) -> float:
        """The base, a share for each hop, and flow scaling: more for small windows."""
        base = 0.25 * self.link.rtt
        fs_range, fs_min, fs_max = 5 * base, 0.1, 100.0
        alpha = fs_range / (1 / math.sqrt(fs_min) - 1 / math.sqrt(fs_max))
        beta = -alpha / math.sqrt(fs_max)
        scaling = max(0.0, min(alpha / math.sqrt(self.cwnd) + beta, fs_range))
        return self.link.rtt + base + self.link.hops * base / 6.55 + scaling

    def bounds(self) -> None:
        self.cwnd = max(1.0, min(self.cwnd, self.most))

    def ack(self, now: int, acked: int, delay: int) -> None:
        rtt = self.link.rtt + delay
        self.rtt = rtt
        if rtt < self.target:
            self.cwnd += acked / self.link.mtu / self.cwnd
        elif now - self.last_decrease > rtt:
            self.cwnd *= max(1 - 0.8 * (rtt - self.target) / rtt, 0.5)
            self.last_decrease = now
        self.bounds()

    def lose(self, now: int) -> None:
        if now - self.last_decrease > self.rtt:
            self.cwnd *= 0.5
            self.last_decrease = now
            self.bounds()


@dataclass
class Rccc:
    """What a sender may still send of what its receiver granted."""

    link: Link
    spent: int = 0
    granted: int = 0  # units, as the receiver counts them: never too few bits

    @property
    def first(self) -> int:
        return max(self.link.mtu, int(1.5 * self.link.bdp))

    def told(self, low: int) -> None:
        """24 bits of the receiver's count: the number nearest to what is known, if it is more."""
        for candidate in (low + (self.granted >> 24 << 24) + turn for turn in (0, 1 << 24)):
            if 0 <= candidate - self.granted < 1 << 23:
                self.granted = candidate

    def may_send(self, size: int) -> bool:
        return self.spent + size <= self.first + 256 * self.granted
