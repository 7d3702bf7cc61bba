"""The fabric program, compiled."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from compiler import CompileError, compile_program
from lab.errors import LabError
from lab.paths import FABRIC_PROGRAM


@dataclass(frozen=True, slots=True)
class BuiltProgram:
    """A compiled program's two files."""

    json: Path
    p4info: Path


def build(out: Path, source: Path = FABRIC_PROGRAM) -> BuiltProgram:
    """Compile a program into a folder."""
    from google.protobuf import text_format

    try:
        compiled = compile_program(source)
    except CompileError as error:
        raise LabError(f"{source.name} does not compile:\n{error}") from None
    built = BuiltProgram(out / f"{source.stem}.json", out / f"{source.stem}.p4info.txtpb")
    built.json.write_text(compiled.json_text)
    built.p4info.write_text(text_format.MessageToString(compiled.p4info))
    return built
