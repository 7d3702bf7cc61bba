"""TIMELY written a second time, after Algorithm 1 of its paper (Mittal et al., SIGCOMM 2015)."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass
class Timely:
    """A sender's rate in bits a second, moved by each completion event's round trip."""

    line: float
    t_low: float  # ns
    t_high: float
    min_rtt: float
    delta: float  # bits a second
    beta: float
    alpha: float
    hai_after: int  # completion events
    hai_steps: int
    least: float
    rate: float = 0.0
    rtt_diff: float = 0.0
    prev_rtt: float | None = None
    completions: int = 0  # in a row with a gradient that does not rise

    def __post_init__(self) -> None:
        self.rate = self.line

    def complete(self, new_rtt: float) -> None:
        """A segment was answered."""
        new_rtt_diff = 0.0 if self.prev_rtt is None else new_rtt - self.prev_rtt
        self.prev_rtt = new_rtt
        self.rtt_diff = (1 - self.alpha) * self.rtt_diff + self.alpha * new_rtt_diff
        self.rate = min(self.line, max(self.least, self._moved(new_rtt)))

    def _moved(self, new_rtt: float) -> float:
        normalized_gradient = self.rtt_diff / self.min_rtt
        if new_rtt < self.t_low:
            return self.rate + self.delta
        if new_rtt > self.t_high:
            return self.rate * (1 - self.beta * (1 - self.t_high / new_rtt))
        if normalized_gradient <= 0:
            self.completions += 1
            n = self.hai_steps if self.completions >= self.hai_after else 1
            return self.rate + n * self.delta
        self.completions = 0
        return self.rate * (1 - self.beta * normalized_gradient)
