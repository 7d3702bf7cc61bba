"""Golden files: messages by the stage that must give them, and a program after every stage."""

from pathlib import Path

import pytest

from compiler import STAGES, CompileError, CompileOptions, compile_program

from .goldens import ERRORS, all_goldens, bad_programs

GOLDENS = dict(all_goldens())


@pytest.mark.parametrize("path", GOLDENS, ids=lambda p: f"{p.parent.name}-{p.stem}")
def test_golden(path: Path) -> None:
    assert path.exists(), "run: python -m tests.compiler.goldens"
    assert GOLDENS[path]() == path.read_text(), "run: python -m tests.compiler.goldens, and review"


@pytest.mark.parametrize("program", bad_programs(), ids=lambda p: f"{p.parent.name}-{p.stem}")
def test_refused_by_its_stage_and_no_earlier_one(
    program: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(program.parent)
    stage = program.parent.name
    name = Path(program.name)
    if stage == "warnings":
        found = compile_program(name).diagnostics
        assert found
        assert all(d.severity == "warning" for d in found)
        with pytest.raises(CompileError):
            compile_program(name, CompileOptions(werror=True))
        return
    index = STAGES.index(stage)
    with pytest.raises(CompileError):
        compile_program(name, CompileOptions(stop_after=stage))
    if index:
        compile_program(name, CompileOptions(stop_after=STAGES[index - 1]))


def test_every_error_says_where() -> None:
    for path in sorted(ERRORS.glob("*/*.txt")):
        for line in path.read_text().splitlines():
            if "error[" in line and "no-main" not in line:
                assert line.split(": error[")[0].count(":") == 2, f"{path.name}: {line}"
