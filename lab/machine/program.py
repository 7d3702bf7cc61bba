"""The fabric program, compiled: to BMv2 JSON and P4Info, and from there to native code.

Both are kept, by the content of all they are made from, so that only the first run waits for them.
"""

from __future__ import annotations

import hashlib
import json
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cache, lru_cache
from pathlib import Path
from typing import Any

from finsy.proto import p4i

from lab.errors import LabError
from lab.machine.building import building
from lab.machine.paths import FABRIC_PROGRAM, ROOT
from switch.build import BuildError, digest, runtime_ahead
from switch.cache import kept
from switch.dataplane import Program

P4C = "p4c-bm2-ss"
_BESIDE_THE_POINT = ("source_info", "program")  # of a compiled program: where its sources lie
_Compiler = Callable[[Path, tuple[str, ...]], tuple[str, str]]


@dataclass(frozen=True, slots=True)
class BuiltProgram:
    """A compiled program's two files."""

    json: Path
    p4info: Path


def build(out: Path, source: Path = FABRIC_PROGRAM, *, soon: bool = False) -> BuiltProgram:
    """Compile a program into a folder, for our own switches, which may want it ``soon``."""
    built = _kept(out, source, (), _compile)
    try:
        # Now, because a controller would not wait for the C compiler on a slow machine; and as
        # bytes, as switches are given it, because to build it under another name is to build anew.
        with building():
            Program.load(built.json.read_bytes(), soon=soon)
    except BuildError as error:
        raise LabError(f"{source.name} cannot be built as native code:\n{error}") from None
    return built


def build_for_bmv2(out: Path, source: Path = FABRIC_PROGRAM) -> BuiltProgram:
    """Compile a program into a folder, for switches whose queues cannot stand still.

    By p4c where it is installed, by our compiler otherwise.
    """
    return _kept(out, source, ("PARKING",), _compile_with_p4c if has_p4c() else _compile)


def p4info_of(text: str) -> p4i.P4Info:
    """A P4Info that was kept as text, which takes long to read."""
    from google.protobuf import text_format

    def read(path: Path) -> None:
        path.write_bytes(text_format.Parse(text, p4i.P4Info()).SerializeToString())

    return p4i.P4Info.FromString(kept(f"p4info-{digest(text)}", read).read_bytes())


def hash_of(compiled: Path) -> str:
    """The hash of what a compiled program says, wherever it was compiled."""
    return _hash_of(compiled.read_bytes())


@lru_cache(maxsize=4)  # who runs many scenarios runs them with one program
def _hash_of(compiled: bytes) -> str:
    """Worked out once and kept: to read a program takes longer than to run a small scenario."""

    def work_out(path: Path) -> None:
        said = json.loads(compiled, object_pairs_hook=_without_places)
        text = json.dumps(said, separators=(",", ":"))
        path.write_text(hashlib.sha256(text.encode()).hexdigest())

    return kept(f"said-{digest(*_BESIDE_THE_POINT, compiled)}", work_out).read_text()


def _without_places(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    return {key: value for key, value in pairs if key not in _BESIDE_THE_POINT}


def has_p4c() -> bool:
    """Whether BMv2's own compiler is on the PATH."""
    return shutil.which(P4C) is not None


@cache
def compiler(switch: str) -> str:
    """What compiles the program for such switches; ours is of the version that closlab is."""
    if switch != "bmv2" or not has_p4c():
        return "closlab"
    told = subprocess.run([P4C, "--version"], capture_output=True, text=True, check=False).stdout
    return " ".join((told.strip().splitlines() or [P4C])[-1].split())


def source_in(folder: Path | None) -> Path:
    """The program in somebody's own copy of p4src; without one, that which ships."""
    if folder is None:
        return FABRIC_PROGRAM
    source = folder / FABRIC_PROGRAM.name
    if not source.is_file():
        raise LabError(
            f"there is no {source}",
            f"Give a folder made with:  cp -r {FABRIC_PROGRAM.parent} MINE",
        )
    return source


def _kept(out: Path, source: Path, defines: tuple[str, ...], compiler: _Compiler) -> BuiltProgram:
    """A program's files in a folder, compiled only if that was not done before."""
    built = BuiltProgram(out / f"{source.stem}.json", out / f"{source.stem}.p4info.txtpb")
    name = f"{source.stem}-{_ingredients(source, compiler.__name__, *defines)}"
    texts = cache(lambda: compiler(source, defines))
    with building():
        json = kept(f"{name}.json", lambda path: path.write_text(texts()[0]))
        p4info = kept(f"{name}.p4info", lambda path: path.write_text(texts()[1]))
    built.json.write_bytes(json.read_bytes())
    built.p4info.write_bytes(p4info.read_bytes())
    return built


def _ingredients(source: Path, *words: str) -> str:
    """A name for what a program is made from: its sources, the compiler's, and what it is told."""
    return digest(*words, _content(source.parent.glob("*.p4")), _our_compiler())


@cache
def _our_compiler() -> str:
    """A name for our compiler as it was when this process first asked."""
    return _content((ROOT / "compiler").rglob("*.p[y4]"))


def _content(files: Iterable[Path]) -> str:
    return digest(*(part for f in sorted(files) for part in (str(f), f.read_bytes())))


def _compile(source: Path, defines: tuple[str, ...]) -> tuple[str, str]:
    """A program's BMv2 JSON and its P4Info as text."""
    from google.protobuf import text_format

    runtime_ahead()
    from compiler import CompileError, CompileOptions, compile_program  # only the first run waits

    try:
        compiled = compile_program(source, CompileOptions(defines=defines))
    except CompileError as error:
        raise LabError(f"{source.name} does not compile:\n{error}") from None
    return compiled.json_text, text_format.MessageToString(compiled.p4info)


def _compile_with_p4c(source: Path, defines: tuple[str, ...]) -> tuple[str, str]:
    """The same, by p4c."""
    with tempfile.TemporaryDirectory() as folder:
        made = Path(folder) / "made.json", Path(folder) / "made.p4info.txt"
        words = [P4C, "--p4v", "16", "--Wdisable", *(f"-D{name}" for name in defines)]
        words += ["-o", str(made[0]), "--p4runtime-files", str(made[1]), str(source)]
        done = subprocess.run(words, capture_output=True, text=True, check=False)
        if done.returncode != 0:
            raise LabError(f"{source.name} does not compile with {P4C}:\n{done.stderr.strip()}")
        return made[0].read_text(), made[1].read_text()
