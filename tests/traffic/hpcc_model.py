"""HPCC written a second time, after Algorithm 1 of its paper (Li et al., SIGCOMM 2019).

`Window` is one sender's window under what INT says of each hop. `settle` is a whole loop of N
senders around one queue, packet by packet, in which the hop tells what the paper has it tell: bytes
sent so far, the time, the queue left behind a packet, and the link's rate. closlab's hops tell a
utilisation instead of the first two, as INT-MD defines it, measured over a window of their own: the
loop can be told to do so as well.
"""

from __future__ import annotations

import heapq
import random
from collections import deque
from dataclasses import dataclass, field
from typing import NamedTuple

ETA, MAX_STAGE, ADDITIVE = 0.95, 5, 80.0


class Hop(NamedTuple):
    """What a hop is known by: its share of use, its queue behind the packet, its rate."""

    use: float
    queue: float
    bps: float


@dataclass
class Window:
    """A sender's: bytes in flight, and the rate they leave at."""

    line: float
    round_ns: float
    eta: float = ETA
    max_stage: int = MAX_STAGE
    additive: float = ADDITIVE
    size: float = field(init=False)
    reference: float = field(init=False)
    most: float = field(init=False)
    load: float = 0.0
    stage: int = 0
    before: dict[int, float] = field(default_factory=dict)  # each hop's queue, last time

    def __post_init__(self) -> None:
        self.most = self.line / 8e9 * self.round_ns
        self.size = self.reference = self.most

    @property
    def rate(self) -> float:
        """Window over round trip, the link's at most and a thousandth of it at least."""
        return min(self.line, max(self.size * 8e9 / self.round_ns, self.line / 1000))

    def answer(self, hops: list[Hop], passed_ns: float, *, ends_round: bool) -> None:
        """An ACK came, so long after the one before."""
        loads = []
        for number, hop in enumerate(hops):
            queue = min(hop.queue, self.before.get(number, 0.0))
            self.before[number] = hop.queue
            loads.append(hop.use + queue / (hop.bps / 8e9 * self.round_ns))
        share = min(passed_ns, self.round_ns) / self.round_ns
        self.load = (1 - share) * self.load + share * max(loads, default=0.0)
        is_full = self.load >= self.eta or self.stage >= self.max_stage
        if is_full:
            factor = self.eta / self.load if self.load else float("inf")
            self.size = min(self.most, self.reference * factor + self.additive)
        else:
            self.size = min(self.most, self.reference + self.additive)
        if ends_round:
            self.reference = self.size
            self.stage = 0 if is_full else self.stage + 1


class Told(NamedTuple):
    """What an ACK brings: its packet, bytes the hop had sent, when, and the queue behind."""

    packet: int
    sent: float
    at: float
    behind: float
    use: float | None  # of the link, where the hop measures that itself


class Loop:
    """N senders, one queue; an ACK takes what is left of the round trip."""

    def __init__(
        self,
        senders: int,
        line: float,
        round_ns: float,
        *,
        frame: int,
        overhead: int,
        window_ns: float | None,
        seed: int,
    ) -> None:
        draw = random.Random(seed)
        self.frame, self.round_ns, self.line = frame, round_ns, line
        self.on_wire = (frame + overhead) * 8e9 / line
        self.there = self.back = round_ns / 2 - self.on_wire
        self.windows = [Window(line, round_ns) for _ in range(senders)]
        self.next = [0] * senders
        self.acked = [0] * senders
        self.update_after = [0] * senders
        self.last_ack = [0.0] * senders
        self.told: list[Told | None] = [None] * senders
        self.ready = [draw.random() * 100 for _ in range(senders)]
        self.leaving = [(at, number) for number, at in enumerate(self.ready)]
        heapq.heapify(self.leaving)
        self.queued = set(range(senders))
        self.coming: deque[tuple[float, int, int]] = deque()
        self.waiting: deque[tuple[int, int]] = deque()
        self.acks: deque[tuple[float, int, Told]] = deque()
        self.free_at = self.area = self.now = 0.0
        self.sent = 0
        self.window_ns = window_ns
        self.kept = self.kept_at = 0.0  # bytes of the last window, as of the last packet

    def run(self, until: float) -> None:
        never = float("inf")
        while True:
            heads = (self.leaving, self.coming, self.acks)
            leaves, comes, answers = (queue[0][0] if queue else never for queue in heads)
            goes = self.free_at if self.waiting else never
            then = min(leaves, comes, answers, goes, until)
            self.area += len(self.waiting) * self.frame * (then - self.now)
            self.now = then
            if then == until:
                return
            if then == leaves:
                self._leave(heapq.heappop(self.leaving)[1])
            elif then == comes:
                if not self.waiting:
                    self.free_at = max(self.free_at, then)
                self.waiting.append(self.coming.popleft()[1:])
            elif then == answers:
                self._answer(*self.acks.popleft()[1:])
            else:
                number, packet = self.waiting.popleft()
                self.sent += self.frame
                self.free_at = then + self.on_wire
                behind = len(self.waiting) * self.frame
                told = Told(packet, self.sent, then, behind, self._measured())
                self.acks.append((self.free_at + self.back, number, told))

    def _measured(self) -> float | None:
        """The link's use over a window from which bytes fade evenly."""
        if self.window_ns is None:
            return None
        faded = min(1.0, (self.now - self.kept_at) / self.window_ns)
        self.kept = self.kept * (1 - faded) + self.frame
        self.kept_at = self.now
        return self.kept * 8e9 / self.window_ns / self.line

    def _offer(self, number: int) -> None:
        flying = (self.next[number] - self.acked[number]) * self.frame
        if number not in self.queued and flying < self.windows[number].size:
            self.queued.add(number)
            heapq.heappush(self.leaving, (max(self.now, self.ready[number]), number))

    def _leave(self, number: int) -> None:
        self.queued.discard(number)
        self.coming.append((self.now + self.on_wire + self.there, number, self.next[number]))
        self.next[number] += 1
        pace = self.frame * 8e9 / self.windows[number].rate
        self.ready[number] = self.now + max(pace, self.on_wire)
        self._offer(number)

    def _answer(self, number: int, told: Told) -> None:
        """The paper's: bytes over time between two answers is how busy the link was."""
        before, self.told[number] = self.told[number], told
        self.acked[number] = told.packet + 1
        if before is not None:
            passed = told.at - before.at
            between = (told.sent - before.sent) * 8e9 / passed / self.line
            hop = Hop(between if told.use is None else told.use, told.behind, self.line)
            ends = self.acked[number] > self.update_after[number]
            self.windows[number].answer([hop], passed, ends_round=ends)
            if ends:
                self.update_after[number] = self.next[number]
        self._offer(number)


def settle(
    senders: int,
    line: float,
    round_ns: float,
    *,
    settled_ns: float,
    until_ns: float,
    frame: int = 4096 + 74,
    overhead: int = 24,
    window_ns: float | None = None,
    seed: int = 1,
) -> tuple[float, float]:
    """The rate in Gb/s, and the mean queue, that so many senders come to between two times.

    With a window the hop tells a utilisation that it measured over that, as closlab's do.
    """
    loop = Loop(
        senders, line, round_ns, frame=frame, overhead=overhead, window_ns=window_ns, seed=seed
    )
    loop.run(settled_ns)
    sent, area = loop.sent, loop.area
    loop.run(until_ns)
    took = until_ns - settled_ns
    return (loop.sent - sent) * 8 / took, (loop.area - area) / took
