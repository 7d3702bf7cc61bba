"""The fabric program, compiled: to BMv2 JSON and P4Info, and from there to native code.

Both are kept, by the content of all they are made from, so that only the first run waits for them.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from compiler import CompileError, compile_program
from lab.errors import LabError
from lab.paths import FABRIC_PROGRAM, ROOT
from switch.build import BuildError, cache_dir, digest, write_whole
from switch.dataplane import Program


@dataclass(frozen=True, slots=True)
class BuiltProgram:
    """A compiled program's two files."""

    json: Path
    p4info: Path


def build(out: Path, source: Path = FABRIC_PROGRAM) -> BuiltProgram:
    """Compile a program into a folder."""
    built = BuiltProgram(out / f"{source.stem}.json", out / f"{source.stem}.p4info.txtpb")
    kept = cache_dir() / f"{source.stem}-{_ingredients(source)}"
    texts = [kept.with_suffix(suffix) for suffix in (".json", ".p4info")]
    if not all(text.exists() for text in texts):
        for text, content in zip(texts, _compile(source), strict=True):
            write_whole(text, content)
    for text, file in zip(texts, (built.json, built.p4info), strict=True):
        file.write_bytes(text.read_bytes())
    try:
        # Now, because a controller would not wait for the C compiler on a slow machine.
        Program.load(built.json)
    except BuildError as error:
        raise LabError(f"{source.name} cannot be built as native code:\n{error}") from None
    return built


def _ingredients(source: Path) -> str:
    """A name for what a program is made from: its sources, and the compiler's."""
    files = [*source.parent.glob("*.p4"), *(ROOT / "compiler").rglob("*.p[y4]")]
    return digest(*(part for file in sorted(files) for part in (str(file), file.read_bytes())))


def _compile(source: Path) -> tuple[str, str]:
    """A program's BMv2 JSON and its P4Info as text."""
    from google.protobuf import text_format

    try:
        compiled = compile_program(source)
    except CompileError as error:
        raise LabError(f"{source.name} does not compile:\n{error}") from None
    return compiled.json_text, text_format.MessageToString(compiled.p4info)
