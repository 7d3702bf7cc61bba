"""A loop that nobody holds any more is gone, with what it had open."""

import gc
from pathlib import Path

from switch.dataplane import Dataplane, Loop


def _open() -> int:
    return len(list(Path("/proc/self/fd").iterdir()))


def test_a_loop_goes_with_whoever_held_it() -> None:
    Loop().stop()  # what is opened once for all
    gc.collect()
    before = _open()
    for number in range(20):
        with Loop() as loop, Dataplane(f"s{number}", loop=loop):
            pass
        if number % 2:
            Loop()  # never started
    del loop
    gc.collect()
    assert _open() == before


def test_a_loop_outlives_the_last_reference_while_a_switch_is_in_it() -> None:
    loop = Loop()
    plane = Dataplane("s", loop=loop)
    loop.start()
    loop.stop()
    del loop
    gc.collect()
    assert plane.stats().received == 0
    plane.close()
