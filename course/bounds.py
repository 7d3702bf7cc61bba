"""Bounds on what a submission may take, kept by the kernel, and waiting that has an end.

Processor time is what counts, as a busy machine is nobody's fault; the wall's clock is there for
those who only wait.
"""

from __future__ import annotations

import resource
import select
import time
from collections.abc import Iterator
from os import read

from course.verdict import MEMORY_BYTES
from lab.machine.speed import processor_slowness, slowness

_FILE_BYTES = 1 << 28
_MAX_OF_A_LINE = 1 << 20  # beyond that it is no answer
_PATIENCE = 5  # times longer by the wall's clock, for one who gets a whole processor


def bound(processor_s: int) -> None:
    """Bound this process, and each that it starts."""
    for what, most in (
        (resource.RLIMIT_AS, MEMORY_BYTES),
        (resource.RLIMIT_FSIZE, _FILE_BYTES),
        (resource.RLIMIT_CPU, processor_s),
        (resource.RLIMIT_CORE, 0),
    ):
        _, hard = resource.getrlimit(what)
        least = most if hard == resource.RLIM_INFINITY else min(most, hard)
        resource.setrlimit(what, (least, least))


def lines_of(pipe: int, processor_s: float) -> Iterator[str]:
    """Lines as they come, until the pipe is closed or it took too long for one who works.

    A line without an end is none.
    """
    others = max(1.0, slowness() / processor_slowness())  # have so many shares of it besides
    until = time.monotonic() + _PATIENCE * processor_s * others
    received = b""
    poll = select.poll()
    poll.register(pipe, select.POLLIN)
    while poll.poll(max(0.0, until - time.monotonic()) * 1000):
        chunk = read(pipe, 1 << 16)
        if not chunk:
            return
        *lines, received = (received + chunk).split(b"\n")
        for line in lines:
            yield line.decode(errors="replace")
        if len(received) > _MAX_OF_A_LINE:
            return
