"""How fast this machine is, beside the one that the emulator's usual pace was measured on.

Measured at the start of a run, in a quarter of a second: how much two threads compress and put into
new memory together. That is ordinary work, on as many processors as the pace speaks of.
The memory is asked of the kernel each time: what an allocator has kept from earlier work would make
a process that has run for a while look twice as fast.

Two readings of it are taken, because a machine can be slow in two ways. By processor time: this
processor needs so much longer for the same, as an interpreted one does; others do not disturb that
reading, and it is believed. By the wall's clock: we get so little of a processor, because others
have it or a limit is set. That comes and goes, and a run that was in fact disturbed says so
itself; so only much of it counts.

What others do for a moment can spoil either, above all another run, which comes first
(`sched_priority.py`). So a machine that seems slow is measured again, a few times, by a process
that is lent what a run's programs are; and is as slow as it was when it was quickest.

Who starts runs by the hundred, as tests do, measures once for all of them (`hand_down`).
"""

from __future__ import annotations

import json
import mmap
import os
import subprocess
import sys
import threading
import time
import zlib
from collections.abc import Callable
from contextlib import suppress
from functools import cache
from typing import NamedTuple

_TAKES_S = 0.25
_MEASURES = 4  # at most
_USUAL_PER_S = 7_500  # blocks of a processor of the machine that the pace was measured on
PROCESSORS = 2
_NOTICED = 1.5  # times slower, by processor time
_NOTICED_OUTSIDE = 8.0  # by the wall's clock
_HANDED_DOWN = "CLOSLAB_MEASURES"


class Measure(NamedTuple):
    """Blocks done, and the time they took on processors and by the wall's clock."""

    blocks: float
    used_s: float
    took_s: float

    @property
    def inside(self) -> float:
        """How many times more processor time than usual they took."""
        return _USUAL_PER_S * self.used_s / self.blocks

    @property
    def slowness(self) -> float:
        """How many times slower than usual a machine is on which they took so long."""
        outside = PROCESSORS * _USUAL_PER_S * self.took_s / self.blocks
        if outside >= _NOTICED_OUTSIDE:
            return max(self.inside, outside)
        return self.inside if self.inside >= _NOTICED else 1.0


@cache
def slowness() -> float:
    """How many times slower than usual this machine is; 1 if it is not."""
    return min(each.slowness for each in _measures())


@cache
def processor_slowness() -> float:
    """How many times more processor time than usual work takes here; 1 if it takes no more."""
    return max(1.0, min(each.inside for each in _measures()))


@cache
def _measures() -> list[Measure]:
    if known := os.environ.get(_HANDED_DOWN):
        return [Measure(*each) for each in json.loads(known)]
    return measured(_measure, _measure_apart)


def hand_down() -> None:
    """Have all that this process starts from now on take its measures, and make none."""
    os.environ[_HANDED_DOWN] = json.dumps(_measures())


def measured(first: Callable[[], Measure], again: Callable[[], Measure]) -> list[Measure]:
    """Measure, and again while the machine seems slow."""
    found = [first()]
    while found[-1].slowness > 1 and len(found) < _MEASURES:
        found.append(again())
    return found


def _measure_apart() -> Measure:
    """In a session of its own, which is lent precedence."""
    from lab.machine.sched_priority import lend_sched_priority
    from lab.machine.stopped import telling_of_stopped  # this file is a program as well

    words = [sys.executable, "-IS", __file__]
    pipe = subprocess.PIPE
    with (
        telling_of_stopped(),
        subprocess.Popen(words, stdout=pipe, text=True, start_new_session=True) as child,
    ):
        lend_sched_priority(child.pid)
        output, _ = child.communicate()
    if child.returncode:  # it was killed
        return _measure()
    return Measure(*map(float, output.split()))


def _measure() -> Measure:
    counts: list[tuple[int, float]] = []
    _block()  # is made before time runs
    threads = [threading.Thread(target=lambda: counts.append(_work())) for _ in range(PROCESSORS)]
    began = time.monotonic()
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    took_s = time.monotonic() - began
    blocks, used_s = map(sum, zip(*counts, strict=True))
    return Measure(blocks, used_s, took_s)


@cache
def _block() -> bytes:
    return bytes(range(256)) * 64 + bytes((7 * n * n + n // 3) % 251 for n in range(48 << 10))


def _work() -> tuple[int, float]:
    """Blocks done, and processor time they took."""
    compressor, block = zlib.compressobj(1), _block()
    until, used_s = time.monotonic() + _TAKES_S, time.thread_time()
    blocks = 0
    while not blocks or time.monotonic() < until:
        compressor.compress(block)
        compressor.flush(zlib.Z_FULL_FLUSH)
        with mmap.mmap(-1, len(block)) as memory:
            memory.write(block)
        blocks += 1
    return blocks, time.thread_time() - used_s


if __name__ == "__main__":
    with suppress(BrokenPipeError):  # who asked was ended meanwhile; print would tell of it
        os.write(1, " ".join(map(str, _measure())).encode())
