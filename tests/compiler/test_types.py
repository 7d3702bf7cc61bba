"""The checker: what is accepted, and what expressions become. What it refuses is in errors/."""

from pathlib import Path

import pytest

from compiler import core as c
from compiler import folding
from compiler import types as t

from .programs import bench, compile_text, errors_of


def constant(folder: Path, type_: str, expr: str, before: str = "") -> object:
    """The folded value of a constant expression."""
    text = bench(f"{type_} result = {expr}; hdr.data.a = (bit<32>)1;", "", before)
    compiled = compile_text(folder, text, "types")
    assert compiled.core is not None
    block = next(b for b in compiled.core.blocks if b.name == "MyIngress")
    assert isinstance(block, c.Control)
    assert block.body is not None
    declared = block.body.body[0]
    assert isinstance(declared, c.Declare)
    assert isinstance(declared.init, c.Const), declared.init
    return declared.init.value


@pytest.mark.parametrize(
    ("type_", "expr", "value"),
    [
        ("bit<8>", "8w255 + 8w1", 0),
        ("bit<8>", "8w0 - 1", 255),
        ("int<8>", "8s127 + 1", -128),
        ("int<8>", "-8s128", -128),
        ("bit<8>", "8w200 |+| 8w100", 255),
        ("int<8>", "8s100 |+| 8s100", 127),
        ("int<8>", "-8s100 |-| 8s100", -128),
        ("bit<16>", "8w1 ++ 8w2", 258),
        ("bit<8>", "16w0x1234[11:4]", 0x23),
        ("bit<8>", "(bit<8>)16w0x1234", 0x34),
        ("int<8>", "(int<8>)8w255", -1),
        ("bit<16>", "(bit<16>)(int<16>)(int<8>)8w255", 65535),
        ("bit<32>", "1 << 31", 1 << 31),
        ("bit<8>", "(1 << 100) >> 98", 4),
        ("bit<8>", "7 / 2 + 7 % 2", 4),
        ("bool", "5 > 3 && !(2 >= 3)", True),
        ("bit<8>", "true ? 8w1 : 8w2", 1),
        ("bit<8>", "~8w0x0F", 0xF0),
        ("bit<8>", "8w1 << 9", 0),
        ("int<8>", "-8s1 >> 3", -1),
    ],
)
def test_folding(tmp_path: Path, type_: str, expr: str, value: object) -> None:
    assert constant(tmp_path, type_, expr) == value


@pytest.mark.parametrize("width", [1, 7, 8, 33, 128])
def test_wrap_agrees_with_arithmetic(width: int) -> None:
    unsigned, signed = t.Bits(width), t.Bits(width, True)
    for value in (-(1 << width) - 3, -5, -1, 0, 1, (1 << width) - 1, 1 << width, 3 << width):
        assert folding.wrap(value, unsigned) == value % (1 << width)
        assert (folding.wrap(value, signed) - value) % (1 << width) == 0
        assert -(1 << (width - 1)) <= folding.wrap(value, signed) < 1 << (width - 1)


@pytest.mark.parametrize(
    "statement",
    [
        "hdr.data.d = 5;",
        "hdr.data.d = E.one;",
        "E e = (E)hdr.data.d;",
        "bit<8> x = e1();",
        "s_t s = { 1, 2 };",
        "s_t s = { y = 1, x = 2 };",
        "tuple<bit<8>, bit<16>> p = { 1, 2 };",
        "hdr.data = { 1, 2, 3, 4, 5 };",
        "hdr.data = {#};",
        "if (hdr.data == { 1, 2, 3, 4, 5 }) {}",
        "bool b = { 8w1, 8w2 } == { 8w1, 8w2 };",
        "hdr.data.d = hdr.data.d << hdr.data.a;",
        "bit<8> n = (hdr.data.d == 1) ? 8w1 : 2;",
        'log_msg("x", { hdr.data.a, 8w5 });',
        "random(hdr.data.d, 0, 10);",
        "hash(hdr.data.c, HashAlgorithm.crc16, 16w0, { hdr.data.a }, 16w4);",
    ],
)
def test_accepted(tmp_path: Path, statement: str) -> None:
    top = """
        enum bit<8> E { one = 1 }
        struct s_t { bit<8> x; bit<16> y; }
        bit<8> e1() { return E.one; }"""
    assert errors_of(tmp_path, bench(statement, "", top)) == []


def test_type_arguments_are_inferred(tmp_path: Path) -> None:
    text = bench(
        "hdr.data.c = first(hdr.data.c, hdr.data.d);",
        "",
        "T first<T, U>(in T x, in U y) { return x; }",
    )
    assert errors_of(tmp_path, text) == []


def test_a_generic_function_is_checked_once_for_each_choice(tmp_path: Path) -> None:
    text = bench(
        "hdr.data.c = id(hdr.data.c); hdr.data.d = id(hdr.data.d);",
        "",
        "T id<T>(in T x) { return x; }",
    )
    assert errors_of(tmp_path, text) == []


def test_symbols_must_be_declared_before_use(tmp_path: Path) -> None:
    text = bench("hdr.data.d = late();") + "\nbit<8> late() { return 1; }\n"
    assert errors_of(tmp_path, text, "types") == ["unknown-name"]
