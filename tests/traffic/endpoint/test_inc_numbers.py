"""Floats that switches add up: fixed point by exact fractions, and what counts as a right sum."""

from __future__ import annotations

import ctypes
import random
import struct
import subprocess
from fractions import Fraction

import pytest

from traffic.endpoint import CORE

LANES, WORD = 256, 1 << 32
Numbers = list[int]

GLUE = """
#include "inc_numbers.h"
#define JOB {.number = number, .member = member, .members = members}
uint32_t exponent(uint16_t number, uint16_t member, uint16_t members, uint32_t chunk)
{
    struct inc_job_config job = JOB;
    return inc_exponent(&job, chunk);
}
void floats(uint16_t number, uint16_t member, uint16_t members, uint32_t chunk, uint8_t by,
            uint32_t *numbers)
{
    struct inc_job_config job = JOB;
    inc_floats(&job, chunk, by, numbers);
}
bool are_floats(uint16_t number, uint16_t member, uint16_t members, uint32_t chunk, uint8_t by,
                const uint32_t *numbers)
{
    struct inc_job_config job = JOB;
    return inc_are_floats(&job, chunk, by, numbers);
}
"""


@pytest.fixture(scope="module")
def core(tmp_path_factory: pytest.TempPathFactory) -> ctypes.CDLL:
    folder = tmp_path_factory.mktemp("numbers")
    (folder / "glue.c").write_text(GLUE)
    words = ["gcc", "-std=gnu11", "-O1", "-shared", "-fPIC", f"-I{CORE}", "-o", "numbers.so"]
    subprocess.run([*words, "glue.c", CORE / "inc_numbers.c"], cwd=folder, check=True)
    found = ctypes.CDLL(str(folder / "numbers.so"))
    found.are_floats.restype = ctypes.c_bool
    return found


def mixed(job: int, chunk: int, lane: int) -> int:
    bits = ((chunk << 8 | lane) * 0x9E3779B1 + job * 0x85EBCA77) % WORD
    return bits ^ bits >> 15


def given(job: int, member: int, chunk: int) -> list[Fraction]:
    """A member's floats, as inc_numbers.h has them; each is one of 32 bits."""
    magnitude = mixed(job, (~chunk) % WORD, 0) % 64 - 32
    found = []
    for lane in range(LANES):
        bits = mixed(job, chunk, lane)
        sign, significant, smaller = 1 - 2 * (bits >> 31), 128 + bits % 128, bits // 256 % 256 % 24
        found.append((member + 1) * sign * significant * Fraction(2) ** (magnitude - smaller - 7))
    assert all(struct.unpack("f", struct.pack("f", float(x)))[0] == x for x in found)
    return found


def exponent(number: Fraction) -> int:
    """As IEEE 754 has it in a float's bits."""
    return int(struct.unpack("I", struct.pack("f", float(number)))[0] >> 23 & 0xFF)


def fixed(number: Fraction, unit: Fraction) -> int:
    size = int(abs(number) / unit + Fraction(1, 2))
    return size if number > 0 else -size


@pytest.mark.parametrize("seed", range(12))
def test_floats_are_added_up_in_fixed_point(seed: int, core: ctypes.CDLL) -> None:
    draw = random.Random(seed)
    members, job = draw.choice((1, 2, 3, 7, 8, 16)), draw.randrange(1, 1 << 16)
    chunk = draw.randrange(1, 1 << 32)
    floats = [given(job, member, chunk) for member in range(members)]
    own = [max(map(exponent, numbers)) for numbers in floats]
    assert own == [core.exponent(job, at, members, chunk) for at in range(members)]
    unit = Fraction(2) ** (max(own) - 126 - 30 + (members - 1).bit_length())

    array = ctypes.c_uint32 * LANES

    def part(member: int) -> Numbers:
        into = array()
        core.floats(job, member, members, chunk, max(own), into)
        return list(into)

    parts = [part(member) for member in range(members)]
    assert parts == [[fixed(x, unit) % WORD for x in numbers] for numbers in floats]
    total = [sum(column) % WORD for column in zip(*parts, strict=True)]
    signed = [number - WORD if number >> 31 else number for number in total]
    for number, column in zip(signed, zip(*floats, strict=True), strict=True):
        assert abs(number * unit - sum(column)) <= unit * members / 2  # and so no sum overflowed

    def is_right(by: int, numbers: Numbers) -> bool:
        found: bool = core.are_floats(job, 0, members, chunk, by, array(*numbers))
        return found

    assert is_right(max(own), total)
    assert not is_right(max(own) - 1, total) and not is_right(max(own) + 1, total)
    for _ in range(20):  # any number that is off by more than rounding may be
        wrong, lane = list(total), draw.randrange(LANES)
        off = draw.choice((members + 1, 1 << draw.randrange(5, 31)))
        wrong[lane] = (wrong[lane] + draw.choice((-1, 1)) * off) % WORD
        assert not is_right(max(own), wrong)
