"""HPCC written a second time, after Algorithm 1 of its paper (Li et al., SIGCOMM 2019).

`Window` is one sender's window under what INT says of each hop. `settle` is a whole loop of N
senders around one queue, packet by packet, in which the hop tells what the paper has it tell: bytes
sent so far, the time, the queue left behind a packet, and the link's rate.
"""

from __future__ import annotations

import heapq
import random
from collections import deque
from dataclasses import field
from typing import NamedTuple

from params.data import Data

ETA, MAX_STAGE, ADDITIVE = 0.95, 5, 80.0
PLACES = (
    4  # where what is known of paths is kept: one place for all whose numbers agree modulo this
)
ROUND = 2**31  # of a nanosecond or byte count of 32 bits, half


class Hop(NamedTuple):
    """What a hop tells: its queue behind the packet, its rate, the time and its bytes, if so."""

    queue: float
    bps: float
    at: float | None
    sent: float | None


class Window(Data, frozen=False):
    """A sender's: bytes in flight, and the rate they leave at."""

    line: float
    round_ns: float
    eta: float = ETA
    max_stage: int = MAX_STAGE
    additive: float = ADDITIVE
    size: float = field(init=False)
    reference: float = field(init=False)
    most: float = field(init=False)
    minimum: float = 0.0
    load: float = 1.0
    stage: int = 0
    update_after: int | None = None
    known: dict[int, tuple[int, float, list[Hop]]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.most = self.line / 8e9 * self.round_ns
        self.size = self.reference = self.most

    @property
    def rate(self) -> float:
        """Window over round trip, the link's at most and a thousandth of it at least."""
        return min(self.line, max(self.size * 8e9 / self.round_ns, self.line / 1000))

    def answer(self, now: float, acked: int, following: int, path: int, hops: list[Hop]) -> None:
        """An ACK of all before `acked` came, when `following` was next to be sent."""
        before = self.known.get(path % PLACES)
        self.known[path % PLACES] = path, now, hops
        if self.update_after is None:
            self.update_after = following
        if before is None or before[0] != path or len(before[2]) != len(hops):
            return
        waited, pairs = now - before[1], [*zip(before[2], hops, strict=True)]
        if any(not self._is_sound(waited, *pair) for pair in pairs):
            return
        self._smooth([self._use(*pair) for pair in pairs])
        self._move(acked, following)

    @staticmethod
    def _is_sound(waited: float, then: Hop, hop: Hop) -> bool:
        """Whether counts of 32 bits are known not to have come round, nor to go back."""
        is_known = then.at is not None and hop.at is not None
        passed = (hop.at or 0) - (then.at or 0) if is_known else 0
        most = max(waited, passed)
        return passed >= 0 and most < ROUND and most * hop.bps / 8e9 < ROUND

    def _use(self, then: Hop, hop: Hop) -> tuple[float, float]:
        """How full a hop's link is, and of how long that is said."""
        if then.at is None or hop.at is None or hop.at == then.at:
            return 0.0, 0.0
        passed, rate = hop.at - then.at, hop.bps / 8e9
        sent = 0.0 if hop.sent is None or then.sent is None else hop.sent - then.sent
        queue = min(hop.queue, then.queue)
        return queue / (rate * self.round_ns) + sent / passed / rate, passed

    def _smooth(self, uses: list[tuple[float, float]]) -> None:
        use, passed = max(uses, default=(0.0, 0.0))
        share = min(passed, self.round_ns) / self.round_ns
        self.load = (1 - share) * self.load + share * use

    def _move(self, acked: int, following: int) -> None:
        is_full = self.load >= self.eta or self.stage >= self.max_stage
        factor = 1.0
        if is_full:
            factor = self.eta / self.load if self.load else float("inf")
        least = self.minimum / 8e9 * self.round_ns
        self.size = min(self.most, max(least, self.reference * factor + self.additive))
        assert self.update_after is not None
        if acked > self.update_after:
            self.reference, self.update_after = self.size, following
            self.stage = 0 if is_full else self.stage + 1


class Echo(NamedTuple):
    """What an ACK brings: its packet, bytes the hop had sent, when, and the queue behind."""

    packet: int
    sent: float
    at: float
    behind: float


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
        seed: int,
    ) -> None:
        draw = random.Random(seed)
        self.frame, self.round_ns, self.line = frame, round_ns, line
        self.on_wire = (frame + overhead) * 8e9 / line
        self.there = self.back = round_ns / 2 - self.on_wire
        self.windows = [Window(line, round_ns) for _ in range(senders)]
        self.next = [0] * senders
        self.acked = [0] * senders
        self.ready = [draw.random() * 100 for _ in range(senders)]
        self.leaving = [(at, number) for number, at in enumerate(self.ready)]
        heapq.heapify(self.leaving)
        self.queued = set(range(senders))
        self.coming: deque[tuple[float, int, int]] = deque()
        self.waiting: deque[tuple[int, int]] = deque()
        self.acks: deque[tuple[float, int, Echo]] = deque()
        self.free_at = self.area = self.now = 0.0
        self.sent = 0

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
                echo = Echo(packet, self.sent, then, len(self.waiting) * self.frame)
                self.sent += self.frame
                self.free_at = then + self.on_wire
                self.acks.append((self.free_at + self.back, number, echo))

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

    def _answer(self, number: int, echo: Echo) -> None:
        self.acked[number] = echo.packet + 1
        hop = Hop(echo.behind, self.line, echo.at, echo.sent)
        self.windows[number].answer(self.now, self.acked[number], self.next[number], 0, [hop])
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
    seed: int = 1,
) -> tuple[float, float]:
    """The rate in Gb/s, and the mean queue, that so many senders come to between two times."""
    loop = Loop(senders, line, round_ns, frame=frame, overhead=overhead, seed=seed)
    loop.run(settled_ns)
    sent, area = loop.sent, loop.area
    loop.run(until_ns)
    took = until_ns - settled_ns
    return (loop.sent - sent) * 8 / took, (loop.area - area) / took
