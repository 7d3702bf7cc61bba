"""Mutated programs: an answer for each, no traceback, none slow. `mutate.py` runs many more."""

from pathlib import Path

import pytest

from compiler import compile_program

from .mutate import FOLDERS, corpus, joined, options_of, run, split


def check(seed: int, count: int) -> None:
    print(f"seed {seed}, {count} mutations")
    outcome = run(seed, 0, count, FOLDERS)
    assert not outcome.failures, outcome.failures[0]
    assert outcome.accepted
    assert outcome.rejected > outcome.accepted


@pytest.mark.parametrize("name", ["externs/hash_range", "v1model/resubmit_before_drop"])
def test_words_put_together_again_are_the_program(name: str, tmp_path: Path) -> None:
    """Else no mutation of words comes further than the first word out of its place."""
    (source,) = (path for path in corpus(FOLDERS) if str(path).endswith(f"{name}.p4"))
    again = tmp_path / source.name
    again.write_text(joined(split(source.read_bytes())))
    words = [compile_program(each, options_of(source)).tokens for each in (again, source)]
    assert words[0] is not None and words[1] is not None
    assert words[0].texts == words[1].texts


def test_some() -> None:
    check(seed=1, count=120)


@pytest.mark.slow
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("seed", [2, 3, 4])
def test_many(seed: int) -> None:
    check(seed, count=20_000)
