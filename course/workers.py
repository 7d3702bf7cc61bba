"""Workers that let a switch add up their vectors, with links that have a rate, a length and losses.

Each sends a chunk for every slot, and the next for a slot when it has the result of the last: so as
many chunks are under way as there are slots. What has no result in time is sent again.
"""

from __future__ import annotations

import heapq
import random
import struct
from collections.abc import Iterator, Sequence
from dataclasses import field

from course.bench import Switch
from course.frames import WIRE_OVERHEAD
from params.data import Data

SLOTS, LANES = 64, 256  # chunks under way, and numbers in each
GBPS, DELAY_NS = 100, 1_000
HEAD = 14 + 8  # Ethernet, and what says whose chunk it is
FRAME_BYTES = HEAD + 4 * LANES
_FRAME_NS = (FRAME_BYTES + WIRE_OVERHEAD) * 8 / GBPS
_RETRY_NS = 12_000
_LOOK_NS = 1_000_000  # a reduction that is not over by then never is

Numbers = tuple[int, ...]
_VECTOR = struct.Struct(f">{LANES}I")


def numbers_in(data: bytes) -> Numbers:
    """What a frame carries."""
    return _VECTOR.unpack(data[HEAD:])


def summed(vectors: Sequence[Numbers]) -> Numbers:
    """What the switch should make of them."""
    return tuple(total & 0xFFFFFFFF for total in map(sum, zip(*vectors, strict=True)))


def frame(worker: int, workers: int, chunk: int, values: Numbers) -> bytes:
    """A chunk on its way to the switch."""
    version = chunk // SLOTS % 2
    head = bytes((worker, workers)) + (chunk % SLOTS).to_bytes(2, "big")
    macs = bytes.fromhex("020000000001") + bytes((2, 0, 0, 0, 0, 0x10 + worker))
    return (
        macs
        + b"\x88\xb6"
        + head
        + bytes((version,))
        + chunk.to_bytes(3, "big")
        + _VECTOR.pack(*values)
    )


class Worker(Data, frozen=False):
    """One of them."""

    number: int
    chunks: list[Numbers]
    results: dict[int, Numbers] = field(default_factory=dict)
    free_ns: float = 0.0  # when its link may take the next frame
    done_ns: float = 0.0


class Reduction(Data, frozen=False):
    """An all-reduce, and what came of it."""

    switch: Switch
    workers: list[Worker]
    loss: float
    seed: int
    # When, the how-manieth, whose, and what: a frame for the switch, or a chunk to look after.
    _events: list[tuple[float, int, int, bytes | int]] = field(default_factory=list)
    _count: int = 0

    @classmethod
    def of(
        cls, switch: Switch, workers: int, chunks: int, loss: float = 0.0, seed: int = 1
    ) -> Reduction:
        """Workers with numbers of their own, at ports from 1."""
        draw = random.Random(seed)  # noqa: S311 - repeatable
        vectors = (
            [_VECTOR.unpack(draw.randbytes(4 * LANES)) for _ in range(chunks)]
            for _ in range(workers)
        )
        found = [Worker(number, vector) for number, vector in enumerate(vectors)]
        lines = [
            f"mc_mgrp_create 1\nmc_node_create 1 {' '.join(str(w + 1) for w in range(workers))}"
        ]
        switch.configure("\n".join((*lines, "mc_node_associate 1 0")))
        for worker in range(workers):
            switch.dataplane.configure_port(worker + 1, rate_bps=GBPS * 10**9, delay_ns=DELAY_NS)
        return cls(switch, found, loss, seed)

    def run(self) -> Reduction:
        """Until everybody has everything, or nothing happens any more."""
        draw = random.Random(self.seed + 1)  # noqa: S311 - repeatable
        for worker in self.workers:
            for chunk in range(min(SLOTS, len(worker.chunks))):
                self._send(worker, chunk, 0.0, draw)
        while self._events and not self.is_whole:
            at_ns, _, who, what = heapq.heappop(self._events)
            if at_ns > _LOOK_NS:
                break
            worker = self.workers[who]
            if isinstance(what, bytes):
                self.switch.wait(round(at_ns))
                self.switch.dataplane.inject(who + 1, what, round(at_ns))
            elif what not in worker.results:
                self._send(worker, what, at_ns, draw)
            else:
                continue
            for port, left, when in self.switch.timed():
                if 0 < port <= len(self.workers) and draw.random() >= self.loss:
                    self._receive(self.workers[port - 1], left, when, draw)
        return self

    def _put(self, at_ns: float, who: int, what: bytes | int) -> None:
        self._count += 1
        heapq.heappush(self._events, (at_ns, self._count, who, what))

    def _send(self, worker: Worker, chunk: int, now_ns: float, draw: random.Random) -> None:
        start = max(now_ns, worker.free_ns)
        worker.free_ns = start + _FRAME_NS
        if draw.random() >= self.loss:
            data = frame(worker.number, len(self.workers), chunk, worker.chunks[chunk])
            self._put(worker.free_ns + DELAY_NS, worker.number, data)
        self._put(worker.free_ns + _RETRY_NS, worker.number, chunk)

    def _receive(self, worker: Worker, data: bytes, when: int, draw: random.Random) -> None:
        chunk = int.from_bytes(data[19:22], "big")
        is_one = len(data) == FRAME_BYTES and chunk < len(worker.chunks)
        if is_one and chunk not in worker.results:
            worker.results[chunk] = numbers_in(data)
            worker.done_ns = max(worker.done_ns, when)
            if chunk + SLOTS < len(worker.chunks):
                self._send(worker, chunk + SLOTS, when, draw)

    @property
    def is_whole(self) -> bool:
        """Whether everybody has every chunk."""
        return all(len(worker.results) == len(worker.chunks) for worker in self.workers)

    @property
    def gbps(self) -> float:
        """The vector's bytes by the time it took."""
        bits = 32 * LANES * len(self.workers[0].chunks)
        return bits / max(worker.done_ns for worker in self.workers)

    def errors(self) -> Iterator[tuple[int, int, int, int]]:
        """What is not the sum: chunk, lane, what it is, what it should be."""
        for chunk in range(len(self.workers[0].chunks)):
            right = summed([worker.chunks[chunk] for worker in self.workers])
            for worker in self.workers:
                got = worker.results.get(chunk, right)
                if got != right:
                    lane = next(at for at in range(LANES) if got[at] != right[at])
                    yield chunk, lane, got[lane], right[lane]
