"""UET's windows written a second time: NSCC, RCCC's credit, and Swift.

NSCC goes by the rules of UET's reference simulator (htsim, uec.cpp), case by case, by its names:
what an acknowledgement and a NACK do to cwnd, and when. Where closlab
differs on purpose it says so.

Swift goes by its paper (Kumar et al., SIGCOMM 2020) with delays as the paper has them, whole round
trips. RCCC's credit is a sum that 24 bits of a packet tell in units of 256 bytes.
"""

from __future__ import annotations

import math
from dataclasses import field

from params.data import Data

REFERENCE_RTT = 12_000.0  # ns, at 100 Gb/s: what htsim's constants are for
REFERENCE_BDP = 12.5 * REFERENCE_RTT


class Link(Data, frozen=False):
    """What a window starts from."""

    bps: int
    rtt: int
    mtu: int
    trims: bool
    hops: int

    @property
    def bdp(self) -> float:
        return self.bps / 8e9 * self.rtt


class Nscc(Data, frozen=False):
    """A sender's window."""

    link: Link
    cwnd: float = 0.0
    inc_bytes: float = 0.0
    received_bytes: float = 0.0
    achieved_bytes: float = 0.0
    avg_delay: float = 0.0
    fi_count: float = 0.0
    increase: bool = False
    trigger_qa: bool = False
    qa_endtime: int = 0
    bytes_to_ignore: float = 0.0
    bytes_ignored: float = 0.0
    last_dec_time: int = 0
    last_adjust_time: int = 0
    heard: int = 0

    def __post_init__(self) -> None:
        link = self.link
        a = link.bdp / REFERENCE_BDP
        self.target = link.rtt * 3 // 4 if link.trims else link.rtt
        self.alpha = 4 * link.mtu * a * (self.target / REFERENCE_RTT) / self.target
        self.fi, self.eta, self.fi_scale = 5 * link.mtu * a, 0.15 * link.mtu * a, 0.25 * a
        self.maxwnd = 1.5 * link.bdp
        self.cwnd = self.maxwnd
        self.bounds()

    def bounds(self) -> None:
        # htsim's last word is maxwnd's, even where that is less than a packet; here a packet's.
        self.cwnd = max(min(self.cwnd, self.maxwnd), self.link.mtu)

    def update_delay(self, delay: float, *, skip: bool) -> None:
        sample = 0.25 * self.link.rtt if not skip and delay > self.target else delay
        self.avg_delay = 0.0125 * sample + (1 - 0.0125) * self.avg_delay

    def quick_adapt(
        self, now: int, in_flight: float, delay: float, *, is_loss: bool, skip: bool
    ) -> bool:
        done = False
        if self.bytes_ignored < self.bytes_to_ignore and skip:
            done = True
        elif now > self.qa_endtime:
            is_bad = self.trigger_qa or is_loss or delay > 4 * self.target
            # htsim remarks that the window should not grow by this; here it does not.
            is_less = self.achieved_bytes < min(self.maxwnd / 8, self.cwnd)
            if self.qa_endtime != 0 and is_bad and is_less:
                self.cwnd = self.achieved_bytes
                self.bounds()
                self.bytes_to_ignore, self.bytes_ignored = in_flight, 0.0
                self.trigger_qa = False
                done = True
            self.achieved_bytes = 0.0
            self.qa_endtime = now + self.link.rtt + self.target
        if done:
            self.inc_bytes = self.received_bytes = 0.0
        return done

    def ack(self, now: int, acked: int, known: int | None, in_flight: int, *, skip: bool) -> None:
        self.heard = now
        self.achieved_bytes += acked
        self.received_bytes += acked
        self.bytes_ignored += acked
        delay = int(self.avg_delay) if known is None else known
        if known is not None:
            self.update_delay(known, skip=skip)
        if self.quick_adapt(now, in_flight, delay, is_loss=False, skip=skip):
            return
        if not skip and delay >= self.target:
            self.inc_bytes += self.fi * acked
        elif not skip:
            self.proportional_increase(acked, delay)
        elif delay >= self.target:
            self.multiplicative_decrease(now)
        self.bounds()
        is_due = now - self.last_adjust_time > self.link.rtt
        if self.received_bytes > 8 * self.link.mtu or is_due:
            self.cwnd += self.inc_bytes / self.cwnd
            if now - self.last_adjust_time >= self.link.rtt:
                self.cwnd += self.eta
                self.last_adjust_time = now
            self.inc_bytes = self.received_bytes = 0.0
        self.bounds()

    def proportional_increase(self, acked: int, delay: int) -> None:
        if delay < 1000:
            self.fi_count += acked
            if self.fi_count > self.cwnd or self.increase:
                self.cwnd += acked * self.fi_scale
                self.increase = True
                return
        else:
            self.fi_count = 0.0
        self.increase = False
        self.inc_bytes += self.alpha * acked * (self.target - delay)

    def multiplicative_decrease(self, now: int) -> None:
        self.increase, self.fi_count = False, 0.0
        if self.avg_delay > self.target and now - self.last_dec_time > self.link.rtt:
            self.cwnd *= max(1 - 0.8 * (self.avg_delay - self.target) / self.avg_delay, 0.5)
            self.last_dec_time = now

    def nack(self, now: int, size: int, in_flight: int) -> None:
        self.update_delay(self.link.rtt, skip=True)
        self.lose(now, size, in_flight)

    def lose(self, now: int, size: int, in_flight: int) -> None:
        """Nobody says why: htsim takes it for a NACK's fault, here it tells no delay."""
        self.heard = now
        self.bytes_ignored += size
        self.trigger_qa = True
        if not self.quick_adapt(now, in_flight + size, 0, is_loss=True, skip=True):
            self.cwnd -= size
            self.bounds()

    def sent(self, now: int) -> None:
        """Nothing else flies; htsim never rests."""
        if now - self.heard > self.link.rtt:
            self.qa_endtime, self.achieved_bytes = 0, 0.0


class Swift(Data, frozen=False):
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

    def ack(self, now: int, acked: int, delay: int | None) -> None:
        rtt = self.rtt = self.rtt if delay is None else self.link.rtt + delay
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


class Rccc(Data, frozen=False):
    """What a sender may still send of what its receiver granted."""

    link: Link
    spent: int = 0
    granted: int = 0  # units, as the receiver counts them: never too few bits

    @property
    def first(self) -> int:
        return max(self.link.mtu, int(1.5 * self.link.bdp))

    def grant(self, low: int) -> None:
        """24 bits of the receiver's count: the number nearest to what is known, if it is more."""
        for candidate in (low + (self.granted >> 24 << 24) + turn for turn in (0, 1 << 24)):
            if 0 <= candidate - self.granted < 1 << 23:
                self.granted = candidate

    def may_send(self, size: int) -> bool:
        return self.spent + size <= self.first + 256 * self.granted
