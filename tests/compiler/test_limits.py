"""Programs that double at every level, and ones that nest: a message which names the place, soon.

Each case says how to write such a program of a given size. Small ones compile; large ones, which
would take more time and memory than there is, are refused with the code and on the line given.
"""

from __future__ import annotations

import json
import time
from typing import TYPE_CHECKING

import pytest

from compiler import CompileError
from compiler.bmv2 import text_of
from compiler.diagnostics import MAX_WARNINGS
from compiler.parser import MAX_CHAIN
from params.data import Data
from switch.place import JsonError
from switch.program import Program

from .programs import bench, compile_text

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

LARGE = 40


class Case(Data):
    """A program that doubles `n` times, and the word that the refused line of it has."""

    write: Callable[[int], str]
    line: str
    small: int = 4
    code: str = "too-large"


def chain(n: int, first: str, then: Callable[[int], str]) -> str:
    """A declaration, and `n` that each name the one before."""
    return "\n".join([first, *(then(i) for i in range(1, n + 1))])


def controls(n: int, locals_: str, apply: str) -> str:
    """Controls within controls; `P` stands for the one before."""
    return chain(
        n,
        "control c0(inout headers h) { apply { h.data.a = h.data.a + 1; } }",
        lambda i: f"control c{i}(inout headers h) {{ {locals_} apply {{ {apply} }} }}".replace(
            "P", f"c{i - 1}"
        ),
    )


def structs(n: int) -> str:
    return chain(
        n, "struct s0 { bit<8> x; }", lambda i: f"struct s{i} {{ s{i - 1} a; s{i - 1} b; }}"
    )


CASES = {
    "macros": Case(
        lambda n: bench(
            f"hdr.data.a = M{n} 0;",
            top=chain(n, "#define M0 1 +", lambda i: f"#define M{i} M{i - 1} M{i - 1}"),
        ),
        "hdr.data.a = M",
    ),
    "macros with parameters": Case(
        lambda n: bench(
            f"hdr.data.a = M{n}(1) 0;",
            top=chain(n, "#define M0(x) x +", lambda i: f"#define M{i}(x) M{i - 1}(x) M{i - 1}(x)"),
        ),
        "hdr.data.a = M",
    ),
    "arguments of macros": Case(
        lambda n: bench(
            f"hdr.data.a = M{n}(1 +) 0;",
            top=chain(n, "#define M0(x) x", lambda i: f"#define M{i}(x) M{i - 1}(x x)"),
        ),
        "hdr.data.a = M",
    ),
    "macros in a condition": Case(
        lambda n: bench(
            "",
            top=chain(n, "#define M0 0 +", lambda i: f"#define M{i} M{i - 1} M{i - 1}")
            + f"\n#if M{n} 0\n#endif",
        ),
        "#if M",
    ),
    "actions": Case(
        lambda n: bench(
            f"a{n}();",
            chain(
                n,
                "action a0() { hdr.data.a = hdr.data.a + 1; }",
                lambda i: f"action a{i}() {{ a{i - 1}(); a{i - 1}(); }}",
            ),
        ),
        "action a",
    ),
    "actions that do nothing": Case(
        lambda n: bench(
            f"a{n}();",
            chain(n, "action a0() { }", lambda i: f"action a{i}() {{ a{i - 1}(); a{i - 1}(); }}"),
        ),
        "action a",
    ),
    "actions of a table": Case(
        lambda n: bench(
            "t.apply();",
            chain(
                n,
                "action a0() { hdr.data.a = hdr.data.a + 1; }",
                lambda i: f"action a{i}() {{ a{i - 1}(); a{i - 1}(); }}",
            )
            + f"\ntable t {{ actions = {{ a{n}; }} default_action = a{n}(); }}",
        ),
        "action a",
    ),
    "functions": Case(
        lambda n: bench(
            f"hdr.data.d = f{n}(1);",
            top=chain(
                n,
                "bit<8> f0(bit<8> x) { return x + 1; }",
                lambda i: f"bit<8> f{i}(bit<8> x) {{ return f{i - 1}(x) + f{i - 1}(x); }}",
            ),
        ),
        "bit<8> f",
    ),
    "controls": Case(
        lambda n: bench(
            "z.apply(hdr);", f"c{n}() z;", controls(n, "P() x; P() y;", "x.apply(h); y.apply(h);")
        ),
        "control c1",
    ),
    "controls applied twice": Case(
        lambda n: bench(
            "z.apply(hdr);", f"c{n}() z;", controls(n, "P() x;", "x.apply(h); x.apply(h);")
        ),
        "control c",
    ),
    "controls applied by type": Case(
        lambda n: bench(f"c{n}.apply(hdr);", "", controls(n, "", "P.apply(h); P.apply(h);")),
        "control c",
    ),
    "structs": Case(
        lambda n: bench(f"s{n} v; s{n} w; v = w; hdr.data.d = v.{'a.' * n}x;", top=structs(n)),
        "struct s17",
    ),
    "structs in a header": Case(
        lambda n: bench("", "", f"{structs(n)}\nheader q {{ s{n} s; }}"), "struct s17"
    ),
    "tuples": Case(
        lambda n: bench(
            f"t{n} v; t{n} w; v = w;",
            top=chain(
                n, "typedef bit<8> t0;", lambda i: f"typedef tuple<t{i - 1}, t{i - 1}> t{i};"
            ),
        ),
        "typedef tuple<t16",
    ),
    "generic structs": Case(
        lambda n: bench(
            f"t{n} v; t{n} w; v = w;",
            top=chain(
                n,
                "typedef bit<8> t0;",
                lambda i: f"struct p{i}<T> {{ T a; T b; }}\ntypedef p{i}<t{i - 1}> t{i};",
            ),
        ),
        "typedef p",
    ),
    "type arguments": Case(
        lambda n: bench(
            f"t{n} v;",
            top=chain(
                n,
                "typedef bit<8> t0;",
                lambda i: (
                    f"struct p{i}<T, U> {{ bit<8> x; }}\ntypedef p{i}<t{i - 1}, t{i - 1}> t{i};"
                ),
            ),
        ),
        "typedef p",
    ),
    "lists": Case(
        lambda n: bench(
            "",
            top=chain(
                n,
                "typedef bit<8> t0;\nconst t0 k0 = 1;",
                lambda i: (
                    f"typedef tuple<t{i - 1}, t{i - 1}> t{i}; "
                    f"const t{i} k{i} = {{k{i - 1}, k{i - 1}}};"
                ),
            ),
        ),
        "typedef tuple<t16",
    ),
    "stacks": Case(
        lambda n: bench(
            "s v;", top=f"header q {{ bit<8> x; }}\nstruct s {{ q[{100 * n}] a; s0[4] b; }}"
        ).replace("struct s ", structs_of_stacks(n)),
        "struct u",
        small=2,
    ),
    "variables": Case(
        lambda n: bench(
            "\n".join(f"s12 v{i}; v{i}.{'a.' * 12}x = hdr.data.d;" for i in range(n)),
            top=structs(12),
        ),
        "s12 v",
    ),
    "strings": Case(
        lambda n: bench(
            "",
            top=chain(
                n,
                'const string k0 = "abcd";',
                lambda i: f"const string k{i} = k{i - 1} ++ k{i - 1};",
            ),
        ),
        "const string k",
        code="bad-constant",
    ),
    "choices of type arguments": Case(
        lambda n: bench(
            f"hdr.data.d = f{n}(1w1);",
            top=chain(
                n,
                "bit<8> f0<T>(T x) { return 1; }",
                lambda i: (
                    f"bit<8> f{i}<T>(T x) {{ return f{i - 1}<tuple<T, bit<1>>>({{x, 1w1}})"
                    f" + f{i - 1}<tuple<T, bit<2>>>({{x, 2w1}}); }}"
                ),
            ),
        ),
        "bit<8> f",
        small=3,
    ),
}


def structs_of_stacks(n: int) -> str:
    return (
        chain(
            n,
            "struct u0 { q[1000] x; }",
            lambda i: f"struct u{i} {{ u{i - 1} a; u{i - 1} b; }}",
        )
        + f"\nheader s0 {{ bit<8> x; }}\nstruct w {{ u{n} u; }}\nstruct s "
    )


@pytest.mark.by_day(4)
@pytest.mark.parametrize(
    "name",
    [
        pytest.param(name, marks=[pytest.mark.slow] * (at % 2))  # by day every other
        for at, name in enumerate(CASES)
    ],
)
def test_doubling(tmp_path: Path, name: str) -> None:
    case = CASES[name]
    assert compile_text(tmp_path, case.write(case.small)).json_text
    with pytest.raises(CompileError) as refused:
        compile_text(tmp_path, case.write(LARGE))
    first = refused.value.diagnostics[0]
    errors = [d for d in refused.value.diagnostics if d.severity == "error"]
    assert errors[0].code == case.code
    assert errors[0].position is not None, first
    assert case.line in errors[0].position.line_text
    assert len(errors) < 7


def test_files_that_include_each_other_twice(tmp_path: Path) -> None:
    for i in range(30):
        (tmp_path / f"inc{i}.p4").write_text(f'#include "inc{i + 1}.p4"\n' * 2 if i < 29 else "\n")
    (tmp_path / "self.p4").write_text('#include "self.p4"\n' * 2)
    for name, code in (("inc0", "too-large"), ("self", "include-loop"), ("inc25", "no-main")):
        with pytest.raises(CompileError) as refused:
            compile_text(tmp_path, f'#include "{name}.p4"\n')
        assert [d.code for d in refused.value.diagnostics] == [code]


# What nests or goes on, by how many levels; `d` is hdr.data.
DEEP = {
    "terms": lambda n: "d.a = " + " + ".join(["d.b"] * n) + ";",
    "brackets": lambda n: "d.a = " + "(" * n + "d.b" + ")" * n + ";",
    "open brackets": lambda n: "d.a = " + "(" * n,
    "braces": lambda n: "d.a = " + "{" * n + "}" * n + ";",
    "blocks": lambda n: "{" * n + "}" * n,
    "indices": lambda n: "d.a = " + "d.a[" * n + "0" + "]" * n + ";",
    "prefixes": lambda n: "d.a = " + "~" * n + "d.b;",
    "casts": lambda n: "d.a = " + "(bit<8>)" * n + "d.b;",
    "choices": lambda n: "d.a = " + "d.b == 0 ? 32w1 : " * n + "32w2;",
    "members": lambda n: "d.a = d" + ".x" * n + ";",
    "calls": lambda n: "d.a = " + "f(" * n + ")" * n + ";",
    "type arguments": lambda n: "d.a = f" + "<f" * n + ">" * n + "(1);",
    "ifs": lambda n: "if (d.a == 0) " * n + "d.a = 1;",
    "else ifs": lambda n: "if (d.a == 0) { d.a = 1; } else " * n + "{ d.b = 1; }",
    "terms within terms": lambda n: (
        "d.a = " + "(" * 150 + "d.b" + (" + d.b" * (n // 100 + 2) + ")") * 150 + ";"
    ),
}


@pytest.mark.by_day(5)
@pytest.mark.parametrize("name", DEEP)
def test_nesting(tmp_path: Path, name: str) -> None:
    """Twenty thousand levels: one message, on the line where they are."""
    with pytest.raises(CompileError) as refused:
        compile_text(tmp_path, bench(DEEP[name](20_000).replace("d.", "hdr.data.")))
    (error,) = [d for d in refused.value.diagnostics if d.severity == "error"]
    assert error.code == "too-deep"
    assert error.position is not None
    assert "hdr.data." in error.position.line_text or name == "blocks"


@pytest.mark.by_day(1)
@pytest.mark.parametrize("n", [100, 247, MAX_CHAIN])
@pytest.mark.parametrize("name", ["terms", "else ifs", "choices"])
def test_long_is_not_deep(tmp_path: Path, name: str, n: int) -> None:
    """What is long compiles, down to C, and its JSON nests less than BMv2 can read."""
    n = min(n, 150) if name == "choices" else n - 1
    compiled = compile_text(tmp_path, bench(DEEP[name](n).replace("d.", "hdr.data.")))
    depth = most = 0
    for char in compiled.json_text:
        depth += (char in "[{") - (char in "]}")
        most = max(most, depth)
    assert most < 1000
    assert Program.load(compiled.json_text.encode()).tables is not None


def test_json_of_another_compiler_may_nest() -> None:
    """p4c nests as deep as an expression is long."""
    for depth in (900, 9_000, 20_000, 200_000):
        for text in ("[" * depth, "[" * depth + "]" * depth, '{"a":' * depth):
            with pytest.raises(JsonError):
                Program.load(text.encode())


def test_the_text_is_that_of_the_json_module(tmp_path: Path) -> None:
    values = [
        {},
        [],
        {"a": []},
        [[]],
        [{}, {"b": {}}],
        'é\n"\\\u2028',
        [1, -2, True, False, None, 2**70],
        {"x": {"y": [1, [2, {"z": None}], "t"]}, "é": 0},
        (1, (2,)),
        "",
        0,
        None,
    ]
    values.append(compile_text(tmp_path, bench("hdr.data.a = 1;")).json)
    for value in values:
        assert text_of(value) == json.dumps(value, indent=2)


LOOPS = {
    "for (bit<8> i = 0; true; i = i + 1) { hdr.data.a = 1; }": ["endless-loop"],
    "for (; true; ) { }": ["endless-loop"],
    "for (bit<8> i = 0; 1 < 2; i = i + 1) { for (bit<8> j in 0..3) { break; } }": ["endless-loop"],
    "for (; true; ) { act(); }": ["endless-loop"],
    "for (bit<8> i = 0; true; i = i + 1) { if (i == 9) { break; } }": [],
    "for (bit<8> i = 0; true; i = i + 1) { if (i == 9) { return; } else { continue; } }": [],
    "for (bit<8> i = 0; true; i = i + 1) { for (bit<8> j in 0..3) { exit; } }": [],
    "for (; true; ) { leave(); }": [],
    "for (; hdr.data.a > 3; ) { hdr.data.a = hdr.data.a - 1; }": [],
}


@pytest.mark.parametrize("text", LOOPS)
def test_loops_without_an_end(tmp_path: Path, text: str) -> None:
    actions = "action act() { if (hdr.data.a == 1) { return; } } action leave() { exit; }"
    try:
        compile_text(tmp_path, bench(text, actions))
        found = []
    except CompileError as refused:
        found = [d.code for d in refused.diagnostics if d.severity == "error"]
    assert found == LOOPS[text]


# What there may be many of; each was looked at as often as there were others.
MANY = {
    "annotations": lambda n: bench("", top="@x " * n + "const bit<8> x = 1;"),
    "methods": lambda n: bench(
        "", top="extern E { " + "".join(f"void f{i}(in bit<8> x);\n" for i in range(n)) + "}"
    ),
    "parameters": lambda n: bench(
        "", "action a(" + ", ".join(f"bit<8> p{i}" for i in range(n)) + ") { }"
    ),
    "members": lambda n: bench(
        "E e;" + "".join(f"e = E.m{i};\n" for i in range(n)),
        top="enum E { " + ", ".join(f"m{i}" for i in range(n)) + " }",
    ),
}  # fmt: skip


@pytest.mark.by_day(2)
@pytest.mark.parametrize("name", MANY)
def test_many_take_as_much_longer_as_there_are_more(tmp_path: Path, name: str) -> None:
    took = []
    for n in (500, 4_000):
        times = []
        for _ in range(2):
            began = time.process_time()
            compile_text(tmp_path, MANY[name](n), "lower")
            times.append(time.process_time() - began)
        took.append(min(times))
    assert took[1] < 24 * took[0]  # were each to look at all, 64 times


def test_warnings_come_to_an_end(tmp_path: Path) -> None:
    members = ", ".join(f"m{i} = {i}" for i in range(2_000))
    compiled = compile_text(tmp_path, bench("", top=f"enum bit<8> E {{ {members} }}"))
    assert [d.code for d in compiled.diagnostics].count("overflow") == MAX_WARNINGS
    assert compiled.diagnostics[-1].code == "too-many-warnings"
    assert all(len(d.render()) < 800 for d in compiled.diagnostics)


def test_types_on_one_another_come_to_an_end(tmp_path: Path) -> None:
    chained = chain(1_000, "type bit<8> T0;", lambda i: f"type T{i - 1} T{i};")
    with pytest.raises(CompileError) as refused:
        compile_text(tmp_path, bench("", top=chained))
    assert {d.code for d in refused.value.diagnostics if d.severity == "error"} == {"too-deep"}
