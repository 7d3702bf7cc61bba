"""DCQCN written a second time, from its sources and not from the code under test.

`AtOnce` is the reaction point of the SIGCOMM 2015 paper, `Periodic` that of adapters and of the
simulators of the HPCC and ConWeave papers, timer by timer: every timer is an entry with the time at
which it next fires, and fires one tick after the other. `share` is a whole loop of N such senders
around one queue, packet by packet, to say what rate and what queue they should come to.

The profiles' values are those of the sources:

paper     Zhu et al., SIGCOMM 2015, sections 3 and 5: CNPs at most every 50 us, alpha's timer 55 us,
          timer 55 us, byte counter 10 MB, F 5, g 1/256, R_AI 40 Mb/s, on links of 40 Gb/s; R_HAI
          200 Mb/s and the least rate, 100 Mb/s, from its authors' simulator bobzhuyb/ns3-rdma.
mlx5      mlxconfig on ConnectX-5 and 6: RPG_TIME_RESET 300, RPG_BYTE_RESET 32767 (of 64 bytes),
          RPG_THRESHOLD 1, RPG_AI_RATE 5, RPG_HAI_RATE 50, RPG_GD 11, RPG_MIN_RATE 1,
          DCE_TCP_G 1019, DCE_TCP_RTT 1, RATE_REDUCE_MONITOR_PERIOD 4, INITIAL_ALPHA_VALUE 1023,
          MIN_TIME_BETWEEN_CNPS 4, CLAMP_TGT_RATE no, CLAMP_TGT_RATE_AFTER_TIME_INC yes.
hpcc-ns3  alibaba-edu/High-Precision-Congestion-Control, simulation/run.py, `dcqcn`: alpha 1 us,
          decrease 4 us, timer 300 us, g 0.00390625, AI 5 bw/25, HAI 50 bw/25, least 1000 Mb/s,
          FAST_RECOVERY_TIMES 1, CLAMP_TARGET_RATE 0; every ACK of a marked packet says so.
conweave  conweave-project/conweave-ns3, run.py: the same but AI 10 bw/25, HAI 25 bw/25, 100 Mb/s.
"""

from __future__ import annotations

import heapq
import math
import random
from collections import deque
from dataclasses import replace

from params.data import Data


class Parameters(Data):
    """All that DCQCN is told; times in ns, rates in bits a second."""

    periodic: bool
    clamp: bool
    rounds: int
    cnp_ns: int
    alpha_ns: int
    cut_ns: int
    up_ns: int
    up_bytes: int
    g: float
    first_alpha: float
    additive: float
    hyper: float
    least: float

    def for_line(self, line: float, increments_for: float) -> Parameters:
        """With increments in proportion to the link."""
        scale = line / increments_for
        return replace(self, additive=self.additive * scale, hyper=self.hyper * scale)


def profile(name: str, line: float) -> Parameters:
    """A source's values for a link of this rate."""
    timers = {"alpha_ns": 1_000, "cut_ns": 4_000, "up_ns": 300_000}
    if name == "paper":
        return Parameters(
            periodic=False, clamp=True, rounds=5, cnp_ns=50_000, alpha_ns=55_000, cut_ns=0,
            up_ns=55_000, up_bytes=10_000_000, g=1 / 256, first_alpha=1.0,
            additive=40e6, hyper=200e6, least=100e6,
        ).for_line(line, 40e9)  # fmt: skip
    if name == "mlx5":
        return Parameters(
            periodic=True, clamp=False, rounds=1, cnp_ns=4_000, **timers, up_bytes=2_097_088,
            g=5 / 1024, first_alpha=1023 / 1024, additive=5e6, hyper=50e6, least=1e6,
        )  # fmt: skip
    additive, hyper, least = {"hpcc-ns3": (5e6, 50e6, 1e9), "conweave": (10e6, 25e6, 1e8)}[name]
    return Parameters(
        periodic=True, clamp=False, rounds=1, cnp_ns=0, **timers, up_bytes=0,
        g=0.00390625, first_alpha=1.0, additive=additive, hyper=hyper, least=least,
    ).for_line(line, 25e9)  # fmt: skip


class AtOnce:
    """The paper's reaction point."""

    def __init__(self, parameters: Parameters, line: float) -> None:
        self.p = parameters
        self.line = self.rate = self.target = float(line)
        self.alpha = 0.0
        self.by_time = self.by_bytes = self.bytes = 0
        self.alpha_at: int | None = None
        self.up_at = self.cut_at = 0

    def run_to(self, now: int) -> None:
        """Let the timers fire that are due."""
        while self.alpha_at is not None and min(self.alpha_at, self.up_at) <= now:
            if self.alpha_at <= self.up_at:
                self.alpha *= 1 - self.p.g
                self.alpha_at += self.p.alpha_ns
            else:
                self.climb_by_time()

    def climb_by_time(self) -> None:
        if self.rate < self.line:
            self.climb()
            self.by_time += 1
        self.up_at += self.p.up_ns

    def climb(self) -> None:
        stages = (self.by_time, self.by_bytes if self.p.up_bytes else self.by_time)
        if min(stages) > self.p.rounds:
            self.target += self.p.hyper
        elif max(stages) >= self.p.rounds:
            self.target += self.p.additive
        self.target = min(self.target, self.line)
        self.rate = (self.rate + self.target) / 2

    def cut(self, now: int) -> None:
        if self.p.clamp or self.by_time or self.by_bytes:
            self.target = self.rate
        self.rate = max(min(self.p.least, self.line), self.rate * (1 - self.alpha / 2))
        self.by_time = self.by_bytes = self.bytes = 0
        self.cut_at, self.up_at = now, now + self.p.up_ns

    def cnp(self, now: int) -> None:
        self.run_to(now)
        if self.alpha_at is None:
            self.alpha = self.p.first_alpha
            self.cut(now)
        elif now - self.cut_at >= self.p.cut_ns:
            self.cut(now)
        self.alpha = (1 - self.p.g) * self.alpha + self.p.g
        self.alpha_at = now + self.p.alpha_ns

    def sent(self, now: int, size: int) -> None:
        self.run_to(now)
        if self.alpha_at is None or not self.p.up_bytes:
            return
        self.bytes += size
        while self.bytes >= self.p.up_bytes:
            self.bytes -= self.p.up_bytes
            self.climb()
            self.by_bytes += 1


class Periodic(AtOnce):
    """The adapters' reaction point: two clocks that look whether a CNP came."""

    def __init__(self, parameters: Parameters, line: float) -> None:
        super().__init__(parameters, line)
        self.came_for_alpha = self.came_for_cut = False
        self.look_at = 0.0  # when the clock of cuts next ticks

    def run_to(self, now: int) -> None:
        while self.alpha_at is not None:
            due = min(self.alpha_at, self.up_at, self.look_at)
            if due > now:
                return
            if due == self.alpha_at:
                self.alpha *= 1 - self.p.g
                if self.came_for_alpha:
                    self.alpha += self.p.g
                self.came_for_alpha = False
                self.alpha_at += self.p.alpha_ns
            elif due == self.up_at:
                self.climb_by_time()
            else:
                if self.came_for_cut:
                    self.cut(now=due)
                self.came_for_cut = False
                self.look_at += self.p.cut_ns

    def cnp(self, now: int) -> None:
        self.run_to(now)
        self.came_for_cut = self.p.cut_ns > 0
        if self.alpha_at is not None:
            self.came_for_alpha = True
        else:
            self.alpha = self.p.first_alpha
            self.alpha_at = now + self.p.alpha_ns
            self.look_at = now + self.p.cut_ns if self.p.cut_ns else math.inf
            self.up_at = now + self.p.up_ns
        if not self.p.cut_ns:
            self.cut(now)


def reaction_point(parameters: Parameters, line: float) -> AtOnce:
    """The one that these parameters are for."""
    return (Periodic if parameters.periodic else AtOnce)(parameters, line)


class Marking(Data):
    """When a switch marks: by the queue that a packet leaves, itself included."""

    kmin: float
    kmax: float
    pmax: float

    def chance(self, queue: float) -> float:
        """The probability of a mark."""
        if queue <= self.kmin:
            return 0.0
        if queue >= self.kmax:
            return 1.0
        return self.pmax * (queue - self.kmin) / (self.kmax - self.kmin)


class Shared(Data):
    """What N senders came to, after they settled."""

    gbps: float  # wire bytes without what a frame costs beside them
    queue: float  # bytes, averaged over time
    shares: tuple[float, ...]  # of each sender, by bytes that left the queue
    marked: int


class Pausing:
    """A lossless pool: who holds how much of it, and whom that pauses."""

    def __init__(self, pool: float, alpha: float, gap: float, senders: int) -> None:
        self.pool, self.alpha, self.gap = pool, alpha, gap
        self.held = [0] * senders  # in the pool
        self.beyond = [0] * senders  # in headroom
        self.resume_at: list[float | None] = [None] * senders
        self.used = 0

    def admit(self, sender: int, frame: int) -> bool:
        """Take a frame in; whether its sender is to be paused."""
        free = self.pool - self.used
        if self.held[sender] + frame <= self.alpha * free:
            self.held[sender] += frame
            self.used += frame
            return False
        self.beyond[sender] += frame
        if self.resume_at[sender] is not None:
            return False
        self.resume_at[sender] = max(0, self.held[sender] - self.gap)
        return True

    def release(self, sender: int, frame: int) -> bool:
        """Let a frame go, out of headroom first; whether its sender may go on."""
        spare = min(self.beyond[sender], frame)
        self.beyond[sender] -= spare
        self.held[sender] -= frame - spare
        self.used -= frame - spare
        level = self.resume_at[sender]
        if level is None or self.beyond[sender] or self.held[sender] > level:
            return False
        self.resume_at[sender] = None
        return True


NEVER = float("inf")


class Loop:
    """N senders at links of one rate, one queue, one receiver; all begin at 0 and never end.

    Packets leave at the rate of their sender and cross its link, wait, are marked as they leave the
    queue, and cross the receiver's link; a CNP takes two links back. Who fills the pool is paused.
    """

    def __init__(
        self,
        parameters: Parameters,
        senders: int,
        line: float,
        marking: Marking,
        *,
        pool: float = 1e12,
        frame: int = 4096 + 58,
        overhead: int = 24,
        delay_ns: int = 1_000,
        seed: int = 1,
    ) -> None:
        self.parameters, self.marking = parameters, marking
        self.frame, self.delay_ns = frame, delay_ns
        self.draw = random.Random(seed)
        self.on_wire = (frame + overhead) * 8e9 / line
        self.one_back = delay_ns + (60 + overhead) * 8e9 / line
        self.points = [reaction_point(parameters, line) for _ in range(senders)]
        self.pausing = Pausing(pool, 1 / 8, 2 * frame, senders)
        self.notified = [-(10.0**18)] * senders  # when the receiver last sent a CNP to it
        self.leaving = [(self.draw.random(), number) for number in range(senders)]
        heapq.heapify(self.leaving)
        self.coming: deque[tuple[float, int]] = deque()
        self.waiting: deque[int] = deque()
        self.cnps: deque[tuple[float, int]] = deque()
        self.pauses: deque[tuple[float, int]] = deque()  # each turns its sender's state over
        self.held: dict[int, float] = {}  # who stands still, and when it might have sent
        self.now = self.free_at = self.area = 0.0
        self.marked = 0
        self.carried = [0] * senders

    def run(self, until_ns: float) -> None:
        """Let time pass."""
        while True:
            queues = (self.cnps, self.pauses, self.leaving, self.coming)
            cnp, pause, leaves, comes = (queue[0][0] if queue else NEVER for queue in queues)
            goes = self.free_at if self.waiting else NEVER
            then = min(cnp, pause, leaves, comes, goes, until_ns)
            self.area += len(self.waiting) * self.frame * (then - self.now)
            self.now = then
            if then == until_ns:
                return
            if then == cnp:
                self.points[self.cnps.popleft()[1]].cnp(int(then))
            elif then == pause:
                self._turn(self.pauses.popleft()[1])
            elif then == leaves:
                self._leave()
            elif then == comes:
                self._come(self.coming.popleft()[1])
            else:
                self._go(self.waiting.popleft())

    def _turn(self, number: int) -> None:
        """A sender hears that it is paused, or that it is not any more."""
        if number in self.held:
            heapq.heappush(self.leaving, (max(self.now, self.held.pop(number)), number))
            return
        (self.held[number],) = (at for at, which in self.leaving if which == number)
        self.leaving = [entry for entry in self.leaving if entry[1] != number]
        heapq.heapify(self.leaving)

    def _leave(self) -> None:
        number = self.leaving[0][1]
        point = self.points[number]
        point.run_to(int(self.now))
        pace = max(self.frame * 8e9 / point.rate, self.on_wire)
        point.sent(int(self.now), self.frame)
        heapq.heapreplace(self.leaving, (self.now + pace, number))
        self.coming.append((self.now + self.on_wire + self.delay_ns, number))

    def _come(self, number: int) -> None:
        if not self.waiting:
            self.free_at = max(self.free_at, self.now)
        self.waiting.append(number)
        if self.pausing.admit(number, self.frame):
            self.pauses.append((self.now + self.one_back, number))

    def _go(self, number: int) -> None:
        chance = self.marking.chance((len(self.waiting) + 1) * self.frame)
        self.free_at = self.now + self.on_wire
        self.carried[number] += self.frame
        if self.pausing.release(number, self.frame):
            self.pauses.append((self.now + self.one_back, number))
        if not chance or self.draw.random() >= chance:
            return
        self.marked += 1
        arrives = self.free_at + self.delay_ns
        if arrives - self.notified[number] >= self.parameters.cnp_ns:
            self.notified[number] = arrives
            self.cnps.append((arrives + 2 * self.one_back, number))


def share(
    parameters: Parameters,
    senders: int,
    line: float,
    marking: Marking,
    *,
    settled_ns: int,
    until_ns: int,
    pool: float = 1e12,
    seed: int = 1,
) -> Shared:
    """What so many senders come to between two times."""
    loop = Loop(parameters, senders, line, marking, pool=pool, seed=seed)
    loop.run(settled_ns)
    area, marked, carried = loop.area, loop.marked, list(loop.carried)
    loop.run(until_ns)
    took = until_ns - settled_ns
    sent = [after - before for before, after in zip(carried, loop.carried, strict=True)]
    return Shared(
        gbps=sum(sent) * 8 / took,
        queue=(loop.area - area) / took,
        shares=tuple(each / sum(sent) for each in sent),
        marked=loop.marked - marked,
    )
