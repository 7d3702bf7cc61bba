"""Programs that grow at random, and do what the language says they do (tests/p4/grown).

Always: a few, through our compiler on our switch, as it is and with its cleverness taken away.
`closlab test --slow`: 200. `closlab test --reference`: 20 on BMv2, and 20 through p4c on our
switch; with `--slow` 2,000 and 500. A program that differs is written by its number, with its
packet test: `python -m tests.p4.grown NUMBER FOLDER`.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import pytest

from .p4.grown.program import Program
from .p4.grown.trials import RefusedError, differences

SHOWN = 3
TOGETHER = 20  # programs of a test: BMv2 waits more than it works
SIDE_BY_SIDE = 4
# What has to grow, and go through packets, sooner or later.
WORDS = """
header_union; .setValid(); .setInvalid(); push_front; pop_front; hdr.s.next; select; verify(;
|+|; |-|; ++; >>; <<; /; %; ?; [3:; int<; bit<200>; (bool); == error.; .isValid(); return; exit;
switch; action_run; .hit; .miss; exact; lpm; ternary; range; optional; const entries; NoAction;
default_action; register<; .read(; .write(; counter(; .count(; crc16; crc32; csum16; xor16;
verify_checksum; update_checksum; @field_list; mark_to_drop; mcast_grp; CloneType.I2E;
CloneType.E2E; resubmit_preserving_field_list; recirculate_preserving_field_list; lookahead;
.advance(; for (; ..; break; continue; +=; |-|=; <<=; %=;
_instance.apply; inout; out; else
"""


def must_agree(numbers: range, on: str) -> int:
    """How many programs were tried; all that were do as they must."""

    def tried(number: int) -> list[str] | None:
        try:
            return differences(Program(number), on)
        except RefusedError:
            return None

    with ThreadPoolExecutor(SIDE_BY_SIDE) as pool:
        found = list(pool.map(tried, numbers))
    wrong = [line for lines in found for line in (lines or [])[:SHOWN]]
    assert not wrong, "\n".join(wrong)
    return sum(lines is not None for lines in found)


def batches(first: int, count: int) -> pytest.MarkDecorator:
    """So many programs, some in each test."""
    numbers = [range(at, at + TOGETHER) for at in range(first, first + count, TOGETHER)]
    return pytest.mark.parametrize("numbers", numbers, ids=lambda r: f"{r.start}-{r.stop - 1}")


@pytest.mark.by_day(2)
@pytest.mark.parametrize("on", ["ours", "plain"])
@pytest.mark.parametrize("number", [1, 2, 3, 1009])  # the last hashes where nobody comes
def test_a_grown_program_does_what_it_says(number: int, on: str) -> None:
    assert not differences(Program(number), on)[:SHOWN]


@pytest.mark.slow
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("on", ["ours", "plain"])
@batches(100, 200)
def test_many_do(numbers: range, on: str) -> None:
    for number in numbers:  # one by one: `plain` changes the compiler for all
        assert not differences(Program(number), on)[:SHOWN], number


@pytest.mark.reference
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("on", ["bmv2", "p4c"])
def test_others_agree(on: str) -> None:
    assert must_agree(range(1000, 1020), on) >= 5


@pytest.mark.reference
@pytest.mark.slow
@pytest.mark.timeout(3600)
@batches(2000, 2000)
def test_bmv2_agrees(numbers: range) -> None:
    assert must_agree(numbers, "bmv2") == len(numbers)


@pytest.mark.reference
@pytest.mark.slow
@pytest.mark.timeout(3600)
@batches(4000, 500)
def test_p4c_agrees(numbers: range) -> None:
    assert must_agree(numbers, "p4c") >= len(numbers) // 4


def test_a_number_is_a_program() -> None:
    one, again = Program(7), Program(7)
    assert (one.text(), one.test()) == (again.text(), again.test())
    assert one.text() != Program(8).text()


def test_all_sorts_grow() -> None:
    text = "\n".join(Program(number).text() for number in range(30))
    wanted = [part.strip() for part in WORDS.split(";")]
    assert not [word for word in wanted if word not in text]
