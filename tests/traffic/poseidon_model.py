"""Poseidon written a second time, after its paper (Wang et al., NSDI 2023): the law of rates, and
what is added of what is free.
"""

from __future__ import annotations

from dataclasses import field
from math import exp, log

from params.data import Data

SLOWEST = 1000  # times slower than the link


class Flow(Data, frozen=False):
    """A flow's rate, in bits a second, by what its answers tell."""

    line: float
    round_ns: float
    range: float = 1.0
    least: float = 0.1
    step: float = 0.25
    claim: float = 0.25
    rate: float = field(init=False)
    delay: float = 0.0
    cut_at: float | None = None

    def __post_init__(self) -> None:
        self.rate = self.line

    @property
    def target(self) -> float:
        """The delay that is right for who has such a rate."""
        span = log(self.line) - log(self.line / SLOWEST)
        slack = (log(self.line) - log(self.rate)) / span
        return self.round_ns * (self.range * slack + self.least)

    def _share(self, acked: float) -> float:
        """Of the answers of a round trip, of which half are of a kind."""
        return min(1.0, 2 * acked * 8e9 / (self.rate * self.round_ns))

    def delayed(self, now: float, delay: float, acked: float) -> None:
        """The worst hop took so long."""
        self.delay = delay
        span = log(SLOWEST)
        exponent = self.step * (self.target - delay) / (self.range * self.round_ns) * span
        if exponent >= 0:
            self.rate *= exp(min(exponent, 1.0) * self._share(acked))
        elif self.cut_at is None or now - self.cut_at >= self.round_ns + delay:
            self.rate *= exp(max(exponent, -1.0))
            self.cut_at = now
        self._bound()

    def is_free(self, mbps: float, acked: float) -> None:
        """The fullest hop had so much to spare."""
        if self.delay < self.target:
            self.rate += self.claim * mbps * 1e6 * self._share(acked)
        self._bound()

    def _bound(self) -> None:
        self.rate = min(self.line, max(self.rate, self.line / SLOWEST))
