"""TIMELY written a second time, after Algorithm 1 of its paper (Mittal et al., SIGCOMM 2015).

`OncePerRound` is what HPCC's simulator makes of it.
"""

from __future__ import annotations

from params.data import Data


class Timely(Data, frozen=False):
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


class OncePerRound(Data, frozen=False):
    """HPCC's simulator's: sequence numbers say which answer counts, and any rise leads to hyper.

    The first answer only begins; then one counts once what was sent after the last is answered.
    """

    line: float
    delta: float
    weight: float
    rate: float = 0.0
    rtt_diff: float = 0.0
    last_rtt: float = 0.0
    last_update: int = 0
    inc_stage: int = 0
    T_LOW, T_HIGH, MIN_RTT, BETA, MIN = 50_000, 500_000, 20_000, 0.8, 1e9

    def __post_init__(self) -> None:
        self.rate = self.line

    def answer(self, acked: int, following: int, rtt: float) -> None:
        """Everything before `acked` has arrived; `following` is the next to leave."""
        if acked <= self.last_update:
            return
        if self.last_update:
            diff = (1 - self.weight) * self.rtt_diff + self.weight * (rtt - self.last_rtt)
            self.rtt_diff = diff
            self._move(rtt, diff / self.MIN_RTT)
        self.last_rtt, self.last_update = rtt, following

    def _move(self, rtt: float, gradient: float) -> None:
        if rtt < self.T_LOW or (rtt <= self.T_HIGH and gradient <= 0):
            self.rate += self.delta if self.inc_stage < 5 else 5 * self.delta
            self.inc_stage += 1
        else:
            over = gradient if rtt <= self.T_HIGH else 1 - self.T_HIGH / rtt
            self.rate *= max(0.0, 1 - self.BETA * over)
            self.inc_stage = 0
        self.rate = min(self.line, max(self.MIN, self.rate))
