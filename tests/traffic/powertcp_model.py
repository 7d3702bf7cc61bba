"""PowerTCP written a second time, after Algorithm 1 of its paper (Addanki et al., NSDI 2022).

Hops tell what the paper has them tell: queue length, time stamp, bytes sent so far, bandwidth.
"""

from __future__ import annotations

from dataclasses import field
from typing import NamedTuple

from params.data import Data


class Int(NamedTuple):
    """A hop's metadata; bytes, ns, bytes a ns."""

    qlen: float
    ts: float
    tx_bytes: float
    b: float


class PowerTcp(Data, frozen=False):
    """A sender's window in bytes."""

    host_bw: float  # bytes a ns
    tau: float  # base round trip
    gamma: float
    flows: int
    cwnd: float = field(init=False)
    cwnd_old: float = field(init=False)
    prev_int: list[Int] = field(default_factory=list)
    smooth: float = 1.0  # power, of an uncongested path
    last_seq: int = 0

    def __post_init__(self) -> None:
        self.cwnd = self.cwnd_old = self.host_bw * self.tau

    def new_ack(self, seq: int, snd_nxt: int, hops: list[Int]) -> None:
        """An acknowledgement of all before `seq`."""
        before, self.prev_int = self.prev_int, hops
        if not before:
            return
        power = self._norm_power(before, hops)
        beta = self.host_bw * self.tau / self.flows
        aim = self.cwnd_old / power if power else self.host_bw * self.tau
        self.cwnd = self.gamma * (aim + beta) + (1 - self.gamma) * self.cwnd
        self.cwnd = min(self.cwnd, self.host_bw * self.tau)
        if seq > self.last_seq:  # once a round trip
            self.cwnd_old, self.last_seq = self.cwnd, snd_nxt

    def _norm_power(self, before: list[Int], hops: list[Int]) -> float:
        largest, delta_t = 0.0, hops[0].ts - before[0].ts if hops else 0.0
        for then, hop in zip(before, hops, strict=True):
            dt = hop.ts - then.ts
            current = (hop.qlen - then.qlen) / dt + (hop.tx_bytes - then.tx_bytes) / dt
            voltage = hop.qlen + hop.b * self.tau
            power = current * voltage / (hop.b**2 * self.tau)
            if power > largest:
                largest, delta_t = power, dt
        delta_t = min(delta_t, self.tau)
        self.smooth = (self.smooth * (self.tau - delta_t) + largest * delta_t) / self.tau
        return self.smooth
