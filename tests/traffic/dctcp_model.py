"""DCTCP written a second time, after its paper (Alizadeh et al., SIGCOMM 2010) and RFC 8257.

Bytes and sequence numbers as a TCP sender counts them; what differs from TCP is said where it does:
there is no slow start, and a window is at most what it began with.
"""

from __future__ import annotations

from dataclasses import field

from params.data import Data


class Dctcp(Data, frozen=False):
    """A sender, told of every acknowledgement."""

    cwnd: float
    g: float
    alpha: float
    increase: float
    least: float
    most: float = field(init=False)
    window_end: int | None = None  # RFC 8257's WindowEnd; None: nothing was acknowledged yet
    bytes_acked: float = 0
    bytes_marked: float = 0
    recover: int = 0  # until this is acknowledged, CWR: no second reduction

    def __post_init__(self) -> None:
        self.most = self.cwnd

    def ack(self, bytes_: float, una: int, nxt: int, *, ece: bool) -> None:
        """So many bytes more, everything before `una`; `nxt` is the next to be sent."""
        window_over = self._estimate(bytes_, una, nxt, ece=ece)
        in_cwr = una <= self.recover
        if ece and not in_cwr:
            self.cwnd -= self.cwnd * self.alpha / 2
            self.recover = nxt
        elif window_over and not in_cwr:
            self.cwnd += self.increase
        self.cwnd = min(self.most, max(self.least, self.cwnd))

    def _estimate(self, bytes_: float, una: int, nxt: int, *, ece: bool) -> bool:
        if self.window_end is None:  # the first is no window that could be judged
            self.window_end = nxt
            return True
        self.bytes_acked += bytes_
        if ece:
            self.bytes_marked += bytes_
        if una <= self.window_end:
            return False
        share = self.bytes_marked / self.bytes_acked
        self.alpha = self.alpha * (1 - self.g) + self.g * share
        self.window_end = nxt
        self.bytes_acked = self.bytes_marked = 0
        return True
