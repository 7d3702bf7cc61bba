"""Keys and values on literal bytes."""

import pytest
from finsy.proto import p4r
from hypothesis import given
from hypothesis import strategies as st

from switch.p4runtime import values
from switch.p4runtime.errors import RequestError
from switch.p4runtime.keys import KeyCodec
from switch.p4runtime.symbols import KeyField, Match

from .rig import between, exact, lpm, optional, ternary

KEY = KeyCodec(
    "table t",
    (
        KeyField(1, "dst", 32, Match.LPM),
        KeyField(2, "vlan", 12, Match.EXACT),
        KeyField(3, "flags", 8, Match.TERNARY),
        KeyField(4, "port", 16, Match.RANGE),
        KeyField(9, "proto", 8, Match.OPTIONAL),
    ),
)


@pytest.mark.parametrize(
    ("given_bytes", "bits", "number"),
    [
        (b"\x00", 1, 0),
        (b"\x01", 1, 1),
        (b"\x00\x00\x00\x00\x01\xff", 9, 0x1FF),
        (b"\x01\xff", 9, 0x1FF),
        (bytes(16), 128, 0),
        (b"\xff" * 16, 128, (1 << 128) - 1),
    ],
)
def test_values_of_any_length_are_read_and_written_back_short(
    given_bytes: bytes, bits: int, number: int
) -> None:
    assert values.decode(given_bytes, bits, "x") == number
    assert values.encode(number) == (given_bytes.lstrip(b"\0") or b"\0")


@pytest.mark.parametrize(("data", "bits"), [(b"\x02", 1), (b"\x02\x00", 9), (b"", 8)])
def test_values_too_wide_or_empty_are_refused(data: bytes, bits: int) -> None:
    with pytest.raises(RequestError, match="what it is"):
        values.decode(data, bits, "what it is")


@given(st.integers(-(1 << 31), (1 << 31) - 1))
def test_signed_values_survive(number: int) -> None:
    data = values.encode_signed(number)
    assert values.decode_signed(data, 32, "x") == number
    shortest = 1 if -128 <= number < 128 else len(data)
    assert len(data) == shortest


def test_fields_come_in_any_order_and_leave_in_the_programs() -> None:
    matches = [
        optional(9, 6),
        between(4, 1, 5),
        exact(2, 7),
        lpm(1, 0x0A000000, 8),
        ternary(3, 1, 3),
    ]
    decoded = KEY.decode(matches)
    assert decoded == ((0x0A000000, 7, 1, 1, 6), (8, 0xFFF, 3, 5, 0xFF))
    assert [match.field_id for match in KEY.encode(*decoded)] == [1, 2, 3, 4, 9]
    assert KEY.decode(KEY.encode(*decoded)) == decoded


def test_fields_left_out_match_everything() -> None:
    decoded = KEY.decode([exact(2, 0)])
    assert decoded == ((0, 0, 0, 0, 0), (0, 0xFFF, 0, 0xFFFF, 0))
    assert KEY.encode(*decoded) == [exact(2, 0)]


def test_long_values_read_back_canonical() -> None:
    padded = p4r.FieldMatch(field_id=2, exact=p4r.FieldMatch.Exact(value=b"\0\0\0\x07"))
    assert KEY.encode(*KEY.decode([padded])) == [exact(2, 7)]


@pytest.mark.parametrize(
    ("matches", "message"),
    [
        ([], "exact field vlan is missing"),
        ([exact(2, 1), exact(2, 1)], "vlan is given twice"),
        ([exact(2, 1), exact(5, 1)], "no field has id 5; its fields are: 1 .dst., 2"),
        ([lpm(2, 1, 12)], "vlan matches exact, not lpm"),
        ([exact(2, 1), exact(1, 1)], "dst matches lpm, not exact"),
        ([p4r.FieldMatch(field_id=2)], "vlan matches exact, not nothing"),
        ([exact(2, 0x1000)], "0x1000 does not fit in 12 bits"),
        ([exact(2, 1), lpm(1, 0, 0)], "prefix length 0 is not allowed; leave the field out"),
        ([exact(2, 1), lpm(1, 0, 33)], "prefix length 33 is not allowed; at most 32"),
        ([exact(2, 1), lpm(1, 0, -1)], "prefix length -1 is not allowed"),
        ([exact(2, 1), lpm(1, 0x0A000001, 8)], "0xa000001 has bits set beyond its /8 prefix"),
        ([exact(2, 1), ternary(3, 0, 0)], "the mask is zero; leave the field out"),
        ([exact(2, 1), ternary(3, 5, 3)], "0x5 has bits set outside its mask 0x3"),
        ([exact(2, 1), ternary(3, 1, 0x100)], "mask: 0x0100 does not fit in 8 bits"),
        ([exact(2, 1), between(4, 6, 5)], "the low end 6 is above the high end 5"),
        ([exact(2, 1), between(4, 0, 0xFFFF)], "the range is everything; leave the field out"),
        ([exact(2, 1), optional(9, 256)], "0x0100 does not fit in 8 bits"),
    ],
)
def test_wrong_keys_are_refused_by_name(matches: list[p4r.FieldMatch], message: str) -> None:
    with pytest.raises(RequestError, match=message) as caught:
        KEY.decode(matches)
    assert str(caught.value).startswith("table t: ")


def test_exact_keys_have_no_masks() -> None:
    codec = KeyCodec(
        "table e", (KeyField(1, "a", 8, Match.EXACT), KeyField(2, "b", 8, Match.EXACT))
    )
    assert codec.decode([exact(2, 2), exact(1, 1)]) == ((1, 2), ())
