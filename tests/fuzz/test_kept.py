"""Kept runs and captures that somebody damaged: a report or a reason, never a traceback."""

from __future__ import annotations

import logging
from pathlib import Path

import pytest

from lab.errors import LabError
from tests.fuzz.kept import CORPUS, fuzz, one_capture
from views.report import find_runs, read_run, write_report


@pytest.fixture(autouse=True)
def _without_scapys_warnings() -> None:
    logging.getLogger("scapy.runtime").setLevel(logging.CRITICAL)


@pytest.mark.slow
def test_damaged_files_are_refused_in_words_or_reported() -> None:
    ends = fuzz(60, seed=1, most=90)
    assert min(ends["refused"], ends["reported"], ends["shown"]) > 3, ends


@pytest.mark.slow
@pytest.mark.timeout(3600)
def test_thousands_of_damaged_files() -> None:
    assert fuzz(1200, seed=100_000, most=4000).total() == 4000


def test_the_corpus_is_a_run(tmp_path: Path) -> None:
    """Or nothing above shows anything."""
    assert next(read_run(found).flows for found in find_runs(CORPUS / "result"))
    assert one_capture(3, tmp_path / "run") in ("shown", "refused")


@pytest.mark.parametrize(
    ("file", "old", "new", "why"),
    [
        ("result.json", '"leaf1>h1"', '"leaf7>h1"', "there is no 'leaf7>h1' in its fabric"),
        ("timeseries.csv", "h2>leaf1", "h2>leaf9", "there is no 'h2>leaf9' in its fabric"),
        ("flows.csv", "h2,", "h77,", "there is no 'h77' in its fabric"),
        ("result.json", '"kind": "incast"', '"kind": "outcast"', "there is no kind 'outcast'"),
    ],
)
def test_names_that_the_fabric_has_not(
    tmp_path: Path, file: str, old: str, new: str, why: str
) -> None:
    for kept in (CORPUS / "result").iterdir():
        text = kept.read_text()
        if kept.name == file:
            assert old in text
            text = text.replace(old, new)
        (tmp_path / kept.name).write_text(text)
    with pytest.raises(LabError, match=why):
        write_report(tmp_path)
