"""Readers of all kinds, and files that nobody means well."""

from __future__ import annotations

from typing import Never

import pytest

from files import FileError, opened, read_text
from lab import cli
from lab.errors import of_the_machine
from tests.fuzz.hostile_files import READERS, sweep
from traffic import reading


def test_one_file_of_each_kind_comes_to_an_end() -> None:
    endings, wrong = sweep(len(READERS), seed=5)
    assert endings.total() == len(READERS) and not wrong, "\n".join(wrong)


@pytest.mark.slow
@pytest.mark.timeout(7200)
def test_a_thousand_come_to_an_end() -> None:
    endings, wrong = sweep(1000, seed=6)
    assert not wrong, "\n".join(wrong)
    assert endings["read"] > 50, endings


def test_a_file_that_fails_as_it_is_read_is_named() -> None:
    """As on a disk that is at its end: of its own memory a process cannot read the beginning."""
    with opened("/proc/self/mem", 1) as file, pytest.raises(FileError, match="self/mem cannot be"):
        file.read(1)
    with pytest.raises(FileError, match="Input/output error"):
        read_text("/proc/self/mem", 1)


def test_what_libyaml_makes_of_no_memory_is_none(monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(_: object) -> Never:
        raise SystemError("error return without exception set")

    monkeypatch.setattr(reading, "_content", fails)
    with pytest.raises(MemoryError):
        reading.parse_yaml("a: 1")


def test_where_memory_ends_what_failed_lets_go_of_its_own(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Or nothing could be said any more."""
    alive = []

    class Large:
        def __init__(self) -> None:
            alive.append(1)

        def __del__(self) -> None:
            alive.clear()

    def fails() -> None:
        large = Large()
        try:
            raise MemoryError
        except MemoryError:
            raise MemoryError(large is None) from None

    def tell(_: object) -> None:
        assert not alive

    monkeypatch.setattr(cli, "_run", fails)
    monkeypatch.setattr("lab.errors.LabError.show", tell)
    with pytest.raises(SystemExit) as ended:
        cli.main()
    assert ended.value.code == 1 and not alive


def test_a_library_without_room_is_told_as_no_memory() -> None:
    error = of_the_machine(OSError("x.so: failed to map segment from shared object"))
    assert error is not None and "no more memory" in error.message
