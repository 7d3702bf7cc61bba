"""How fast this machine is, beside the one that the emulator's usual pace was measured on.

Measured once, at the start of a run, in a quarter of a second: how much two threads compress and
put into new memory together. That is ordinary work, on as many processors as the pace speaks of.
The memory is asked of the kernel each time: what an allocator has kept from earlier work would make
a process that has run for a while look twice as fast.

Two readings of it are taken, because a machine can be slow in two ways. By processor time: this
processor needs so much longer for the same, as an interpreted one does; others do not disturb that
reading, and it is believed. By the wall's clock: we get so little of a processor, because others
have it or a limit is set. That comes and goes, and a run that was in fact disturbed says so
itself; so only much of it counts.
"""

from __future__ import annotations

import mmap
import threading
import time
import zlib
from functools import cache

_TAKES_S = 0.25
_USUAL_PER_S = 7_500  # blocks of a processor of the machine that the pace was measured on
PROCESSORS = 2
_BLOCK = bytes(range(256)) * 64 + bytes((7 * n * n + n // 3) % 251 for n in range(48 << 10))
_NOTICED = 1.5  # times slower, by processor time
_NOTICED_OUTSIDE = 8.0  # by the wall's clock


@cache
def slowness() -> float:
    """How many times slower than usual this machine is; 1 if it is not."""
    return judged(*_measured())


@cache
def processor_slowness() -> float:
    """How many times more processor time than usual work takes here; 1 if it takes no more."""
    return max(1.0, _inside(*_measured()[:2]))


@cache
def _measured() -> tuple[int, float, float]:
    """Blocks done, and the time they took on processors and by the wall's clock."""
    counts: list[tuple[int, float]] = []
    threads = [threading.Thread(target=lambda: counts.append(_work())) for _ in range(PROCESSORS)]
    began = time.monotonic()
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    took_s = time.monotonic() - began
    return sum(blocks for blocks, _ in counts), sum(used_s for _, used_s in counts), took_s


def _inside(blocks: float, used_s: float) -> float:
    return _USUAL_PER_S * used_s / blocks


def judged(blocks: float, used_s: float, took_s: float) -> float:
    """What it means that so many blocks took so long, on the processors and by the wall's clock."""
    inside = _inside(blocks, used_s)
    outside = PROCESSORS * _USUAL_PER_S * took_s / blocks
    if outside >= _NOTICED_OUTSIDE:
        return max(inside, outside)
    return inside if inside >= _NOTICED else 1.0


def _work() -> tuple[int, float]:
    """Blocks done, and processor time they took."""
    compressor = zlib.compressobj(1)
    until, used_s = time.monotonic() + _TAKES_S, time.thread_time()
    blocks = 0
    while not blocks or time.monotonic() < until:
        compressor.compress(_BLOCK)
        compressor.flush(zlib.Z_FULL_FLUSH)
        with mmap.mmap(-1, len(_BLOCK)) as memory:
            memory.write(_BLOCK)
        blocks += 1
    return blocks, time.thread_time() - used_s
