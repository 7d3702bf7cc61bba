"""Golden files: what the compiler says about bad programs, and what it makes of good ones.

    python -m tests.compiler.goldens        writes them all anew; review the difference like code

`errors/STAGE/*.p4` are refused by that stage and no earlier one (`warnings/` are accepted);
`stages/*.p4` are shown after every stage.
"""

from __future__ import annotations

import os
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from compiler import STAGES, CompileError, CompileOptions, compile_program
from compiler.dump import dump

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

HERE = Path(__file__).parent
ERRORS = HERE / "errors"
STAGE_PROGRAMS = HERE / "stages"


def bad_programs() -> list[Path]:
    """The programs that are refused, or warned about."""
    return sorted(ERRORS.glob("*/*.p4"))


def diagnose(program: Path, stage: str) -> str:
    """What the compiler says about a program, up to and including a stage."""
    before = Path.cwd()
    os.chdir(program.parent)  # so that messages name the file alone
    try:
        options = CompileOptions(stop_after="json" if stage == "lower" else stage)
        compiled = compile_program(Path(program.name), options)
        found = compiled.diagnostics
    except CompileError as refused:
        found = refused.diagnostics
    finally:
        os.chdir(before)
    return "".join(d.render() + "\n" for d in found)


def stage_text(program: Path, stage: str) -> str:
    """A program after a stage."""
    before = Path.cwd()
    os.chdir(program.parent)
    try:
        return dump(compile_program(Path(program.name)), stage).rstrip("\n") + "\n"
    finally:
        os.chdir(before)


def all_goldens() -> Iterator[tuple[Path, Callable[[], str]]]:
    """Every golden file, and how to find what should be in it."""
    for program in bad_programs():
        stage = program.parent.name
        upto = "json" if stage == "warnings" else stage
        yield program.with_suffix(".txt"), partial(diagnose, program, upto)
    for program in sorted(STAGE_PROGRAMS.glob("*.p4")):
        for stage in STAGES[1:]:
            yield program.with_suffix(f".{stage}.txt"), partial(stage_text, program, stage)


def main() -> None:
    for path, find in all_goldens():
        text = find()
        if not path.exists() or path.read_text() != text:
            print(f"wrote {path.relative_to(HERE)}")
            path.write_text(text)


if __name__ == "__main__":
    main()
