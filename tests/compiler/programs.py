"""Programs for tests: a body in, a whole v1model program out."""

from __future__ import annotations

from pathlib import Path

from compiler import Compiled, CompileError, CompileOptions, compile_program

P4 = Path(__file__).resolve().parents[1] / "p4"
STAGES = Path(__file__).parent / "stages"


def bench(apply: str, locals_: str = "", top: str = "") -> str:
    """A program around the apply block of an ingress control, on the header `hdr.data`."""
    return f"""#include "include/data.p4"
{top}
control MyIngress(inout headers hdr, inout metadata meta, inout standard_metadata_t std) {{
{locals_}
    apply {{
{apply}
    }}
}}
#include "include/main.p4"
"""


def compile_text(folder: Path, text: str, stop_after: str = "json") -> Compiled:
    """Compile a text as `program.p4`."""
    path = folder / "program.p4"
    path.write_text(text)
    return compile_program(path, CompileOptions(include_dirs=(P4,), stop_after=stop_after))


def errors_of(folder: Path, text: str, stop_after: str = "json") -> list[str]:
    """The codes of a text's errors, in order."""
    try:
        compile_text(folder, text, stop_after)
    except CompileError as refused:
        return [d.code for d in refused.diagnostics if d.severity == "error"]
    return []
