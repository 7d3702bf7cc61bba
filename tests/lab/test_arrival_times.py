"""The memory in which an emulated cable's ends tell each other when frames are due."""

import errno
import os
from pathlib import Path

import pytest

from lab.engines.mininet.arrival_times import ArrivalTimes
from lab.errors import RunError
from switch.layout import ARRIVAL_BYTES
from topologies import leaf_spine

FABRIC = leaf_spine(2, 2, 2)


def test_each_direction_of_a_link_has_a_piece_where_one_end_reads_what_the_other_notes() -> None:
    with ArrivalTimes(FABRIC) as arrival_times:
        seen = set()
        for link in FABRIC.links:
            reads, notes = arrival_times.of(link.a, link.a_port)
            assert arrival_times.of(link.b, link.b_port) == (notes, reads)
            seen |= {reads, notes}
        assert seen == {number * ARRIVAL_BYTES for number in range(2 * len(FABRIC.links))}


def test_it_is_there_before_it_is_mapped_and_stays_as_large_as_it_is() -> None:
    """Who maps what is cut off, or was never to be had, dies of it when he writes there."""
    with ArrivalTimes(FABRIC) as arrival_times:
        found = os.fstat(arrival_times.file)
        assert found.st_size == 2 * len(FABRIC.links) * ARRIVAL_BYTES <= 512 * found.st_blocks
        for size in (0, found.st_size - 1, found.st_size + 1):
            with pytest.raises(PermissionError):
                os.truncate(arrival_times.file, size)
        assert not os.get_inheritable(arrival_times.file)


def test_a_switch_that_is_alone_on_its_machine_needs_none_and_can_be_up() -> None:
    fabric = leaf_spine(2, 1, 2)
    with ArrivalTimes(fabric.part(frozenset([fabric.node("spine1")]))) as arrival_times:
        assert os.fstat(arrival_times.file).st_size == ARRIVAL_BYTES


def _open_files() -> int:
    return len([*Path("/proc/self/fd").iterdir()])


@pytest.mark.parametrize("call", ["memfd_create", "posix_fallocate"])
@pytest.mark.parametrize(
    ("number", "cure"),
    [
        (errno.ENOSPC, "Let other programs end"),
        (errno.ENOMEM, "Let other programs end"),
        (errno.EACCES, "--engine sim needs none"),
    ],
)
def test_where_there_is_no_such_memory_the_run_says_how_much_and_why(
    monkeypatch: pytest.MonkeyPatch, call: str, number: int, cure: str
) -> None:
    before = _open_files()

    def fail(*_: object) -> None:
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(os, call, fail)
    with pytest.raises(RunError) as caught:
        ArrivalTimes(FABRIC)
    assert "0.3 MB" in caught.value.message and os.strerror(number) in caught.value.message
    assert cure in (caught.value.cure or "")
    assert _open_files() == before
