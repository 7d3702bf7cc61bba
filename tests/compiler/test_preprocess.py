"""The preprocessor: directives, macros, and the way back to lines and columns."""

import random
import subprocess
from pathlib import Path

import pytest

from compiler import CompileError, CompileOptions, compile_program


def expand(folder: Path, text: str, **files: str) -> list[str]:
    for name, content in files.items():
        (folder / f"{name}.p4").write_text(content)
    path = folder / "main.p4"
    path.write_text(text)
    compiled = compile_program(path, CompileOptions(stop_after="preprocess"))
    assert compiled.text is not None
    return [" ".join(x.split()) for x in compiled.text.text.splitlines() if x.strip()]


@pytest.mark.parametrize(
    ("text", "lines"),
    [
        ("#define A 1\nx A;", ["x 1;"]),
        ("#define A B\n#define B 2\nA", ["2"]),
        ("#define A A B\nA", ["A B"]),
        ("#define F(x, y) x+y\nF(1, (2, 3))", ["1+(2, 3)"]),
        ("#define F(x) x\nF", ["F"]),
        ("#define F(x) <x>\nF(\n1\n)", ["<1>"]),
        ("#define P(a, b) a ## b\nP(x, 1)", ["x1"]),
        ("#define S(a) #a\nS(b c)", ['"b c"']),
        ('#define A 1\n"A" // A\n/* A */ A', ['"A"', "1"]),
        ("#define A \\\n  1 \\\n  2\nA", ["1 2"]),
        ("#define AB_\\\nCD 7\nAB_CD", ["7"]),
        ("#def\\\nine A 1\nA", ["1"]),
        ("one\\\r\ntwo\\ \t\nthree", ["onetwothree"]),
        ('@a("x\\\ny")', ['@a("xy")']),
        ("a // b \\\n c\nd", ["a", "d"]),
        ("a\\", ["a"]),
        ("#if 1 + 1 == 2 && !defined(X)\na\n#else\nb\n#endif", ["a"]),
        ("#define V 3\n#if V < 2\na\n#elif V < 4\nb\n#elif V < 5\nc\n#endif", ["b"]),
        ("#if 0\n#if 1\na\n#endif\n#else\nb\n#endif", ["b"]),
        ("#ifdef X\n#error no\n#endif\na", ["a"]),
        ("#define X\n#undef X\n#ifndef X\na\n#endif", ["a"]),
        ("#if (0x10 | 0b1) == 17\na\n#endif", ["a"]),
        ("#if NOT_DEFINED\na\n#endif\nb", ["b"]),
        ("#pragma anything\na", ["a"]),
        ('# 12 "other.p4"\na\n#line 3\nb\n#4096\nc', ["a", "b", "c"]),
        ("\ufeff#define A 1\r\nA", ["1"]),
        ('@a("x // y\n  /* z */") b // c', ['@a("x // y', '/* z */") b']),
    ],
)
def test_expansion(tmp_path: Path, text: str, lines: list[str]) -> None:
    assert expand(tmp_path, text) == lines


@pytest.mark.parametrize("seed", range(3))
def test_lines_are_joined_as_gcc_joins_them(tmp_path: Path, seed: int) -> None:
    rng = random.Random(seed)
    pieces = ["A_", "B", "7", " ", "\\\n", "\\\n", "\n", "// c ", "/* c */"]
    text = "#define A_\\\nB 9\n" + "".join(rng.choices(pieces, k=300)) + "\n"
    (tmp_path / "given").write_text(text)
    command = ["gcc", "-E", "-P", "-undef", "-nostdinc", "-x", "assembler-with-cpp", "given"]
    theirs = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=True)
    assert " ".join(expand(tmp_path, text)).split() == theirs.stdout.split()


def test_an_error_behind_joined_lines_names_its_own_line(tmp_path: Path) -> None:
    path = tmp_path / "main.p4"
    path.write_text("#define A \\\n 1\nconst bit<8> x\\\n = A;\nconst bit<8> y = nothing;\n")
    with pytest.raises(CompileError) as caught:
        compile_program(path)
    assert "main.p4:5:18" in str(caught.value)


def test_include_is_found_beside_the_including_file(tmp_path: Path) -> None:
    (tmp_path / "inner").mkdir()
    (tmp_path / "inner" / "a.p4").write_text('#include "b.p4"\na')
    (tmp_path / "inner" / "b.p4").write_text("b")
    assert expand(tmp_path, '#include "inner/a.p4"\nc') == ["b", "a", "c"]


def test_a_guarded_include_counts_once(tmp_path: Path) -> None:
    guarded = "#ifndef G\n#define G\nx\n#endif\n"
    assert expand(tmp_path, '#include "g.p4"\n#include "g.p4"\ny', g=guarded) == ["x", "y"]


def test_definitions_from_outside(tmp_path: Path) -> None:
    path = tmp_path / "main.p4"
    path.write_text("#ifdef DEBUG\nLEVEL\n#endif\n")
    options = CompileOptions(defines=("DEBUG", "LEVEL=3"), stop_after="preprocess")
    compiled = compile_program(path, options)
    assert compiled.text is not None
    assert compiled.text.text.split() == ["3"]


def test_an_error_after_a_macro_names_the_column_in_the_source(tmp_path: Path) -> None:
    path = tmp_path / "main.p4"
    path.write_text("#define WIDTH 8 + 8 + 8\nconst bit<(WIDTH)> X = ;\n")
    with pytest.raises(CompileError) as refused:
        compile_program(path)
    position = refused.value.diagnostics[0].position
    assert position is not None
    assert (position.line, position.column) == (2, 24)


def test_an_error_in_an_included_file_names_that_file(tmp_path: Path) -> None:
    (tmp_path / "part.p4").write_text("\n\nconst bit<8> X = ;\n")
    path = tmp_path / "main.p4"
    path.write_text('#include "part.p4"\n')
    with pytest.raises(CompileError) as refused:
        compile_program(path)
    position = refused.value.diagnostics[0].position
    assert position is not None
    assert (Path(position.file).name, position.line) == ("part.p4", 3)


def test_macros_that_grow_without_bound_are_stopped(tmp_path: Path) -> None:
    lines = ["#define A0 x x x x x x x x x x"]
    lines += [f"#define A{i} " + f"A{i - 1} " * 10 for i in range(1, 12)]
    with pytest.raises(CompileError, match="longer than"):
        expand(tmp_path, "\n".join([*lines, "A11"]))


@pytest.mark.parametrize(
    ("before", "place"),
    [
        ('# 12 "other.p4"\n', "other.p4:12:9"),
        ('# 12 "other.p4" 1 3\n\n', "other.p4:13:9"),
        ('#line 7 "a.p4"\n# 9\n', "a.p4:9:9"),
        ('# 12 "other.p4"\n#if 0\n# 40\n#endif\n', "other.p4:15:9"),
        ('# 12 "other.p4"\nconst bit<8> x = 1 +\n 2;\n', "other.p4:14:9"),
    ],
)
def test_messages_name_the_lines_a_preprocessor_before_named(
    tmp_path: Path, before: str, place: str
) -> None:
    path = tmp_path / "main.p4"
    path.write_text(before + "nonsense;\n")
    with pytest.raises(CompileError) as refused:
        compile_program(path)
    assert refused.value.diagnostics[0].render().startswith(place + ": ")


@pytest.mark.parametrize("version", ["-6419018", "0", "20000101"])
def test_a_generation_of_v1model_that_never_was_is_refused(tmp_path: Path, version: str) -> None:
    path = tmp_path / "main.p4"
    path.write_text(f"#define V1MODEL_VERSION {version}\n#include <v1model.p4>\n")
    with pytest.raises(CompileError, match="V1MODEL_VERSION is a date"):
        compile_program(path, CompileOptions(stop_after="types"))
