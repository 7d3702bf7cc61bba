"""The fabric program, compiled: to BMv2 JSON and P4Info, and from there to native code.

Both are kept, by the content of all they are made from, so that only the first run waits for them.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from functools import cache, lru_cache, partial
from pathlib import Path
from typing import Any

from finsy.proto import p4i

from files import FileError, is_file, opened, read_bytes, shown
from lab.errors import LabError
from lab.machine.building import building
from lab.machine.paths import FABRIC_PROGRAM, ROOT
from lab.machine.patience import Patience, Still
from params.data import Data
from switch.build import digest, runtime_ahead
from switch.cache import kept
from switch.dataplane import Program

P4C = "p4c-bm2-ss"
_SOURCE_BYTES = 32 << 20
_BESIDE_THE_POINT = ("source_info", "program")  # of a compiled program: where its sources lie
_THRIFTY = {"GC_FREE_SPACE_DIVISOR": "8"}  # p4c's heap: half as much, for a fifth more time
_MUCH_MEMORY = "It takes 2 GB: give the machine more, or leave p4c off the PATH."
_LOOK_S = 0.5  # between two looks at how p4c gets on


class BuiltProgram(Data):
    """A compiled program's two files."""

    json: Path
    p4info: Path


def build(
    out: Path,
    source: Path = FABRIC_PROGRAM,
    defines: tuple[str, ...] = (),
    *,
    soon: bool = False,
) -> BuiltProgram:
    """Compile a program into a folder, for our own switches, which may want it ``soon``."""
    built = _ours(out, source, defines)
    # Now, because a controller would not wait for the C compiler on a slow machine; and as bytes,
    # as switches are given it, because to build it under another name is to build anew.
    with building(source.name):
        Program.load(built.json.read_bytes(), soon=soon)
    return built


def build_for_bmv2(
    out: Path,
    source: Path = FABRIC_PROGRAM,
    still: Still = lambda *_: None,
    defines: tuple[str, ...] = (),
) -> BuiltProgram:
    """Compile a program into a folder, for switches whose queues cannot stand still.

    By p4c where it is installed, by our compiler otherwise.
    """
    defines = ("PARKING", *defines)
    return build_with_p4c(out, source, defines, still) if has_p4c() else _ours(out, source, defines)


def build_with_p4c(
    out: Path, source: Path, defines: tuple[str, ...] = (), still: Still = lambda *_: None
) -> BuiltProgram:
    """Compile a program into a folder with p4c.

    That needs half a minute for the fabric's, and on a slow machine as many times that as it is
    slower: ``still`` is told of it.
    """
    return _kept(out, source, (*defines, *_this_p4c()), lambda: _by_p4c(source, defines, still))


def p4info_of(text: str) -> p4i.P4Info:
    """A P4Info that was kept as text, which takes long to read."""
    return p4i.P4Info.FromString(_p4info_of(text).read_bytes())


def _p4info_of(text: str) -> Path:
    from google.protobuf import text_format

    def write(path: Path) -> None:
        read = text_format.Parse(text, p4i.P4Info())
        path.write_bytes(read.SerializeToString(deterministic=True))

    return kept(f"p4info-{digest(text)}", write)


def parts_of_stock() -> Iterator[Path]:
    """What a run of the stock program reads of it, where it is kept."""
    stock = _placed(FABRIC_PROGRAM, (), lambda: _compile(FABRIC_PROGRAM, ()))
    yield from (stock.json, stock.p4info)
    yield _said_by(stock.json.read_bytes())
    yield _p4info_of(stock.p4info.read_text())


def hash_of(compiled: Path) -> str:
    """The hash of what a compiled program says, wherever it was compiled."""
    return _hash_of(compiled.read_bytes())


@lru_cache(maxsize=4)  # who runs many scenarios runs them with one program
def _hash_of(compiled: bytes) -> str:
    return _said_by(compiled).read_text()


def _said_by(compiled: bytes) -> Path:
    """Worked out once and kept: to read a program takes longer than to run a small scenario."""

    def work_out(path: Path) -> None:
        said = json.loads(compiled, object_pairs_hook=_without_places)
        text = json.dumps(said, separators=(",", ":"))
        path.write_text(hashlib.sha256(text.encode()).hexdigest())

    return kept(f"said-{digest(*_BESIDE_THE_POINT, compiled)}", work_out)


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
    version = subprocess.run([P4C, "--version"], capture_output=True, text=True, check=False).stdout
    return " ".join((version.strip().splitlines() or [P4C])[-1].split())


def source_in(folder: Path | None) -> Path:
    """The program in somebody's own copy of p4src; without one, that which ships."""
    if folder is None:
        return FABRIC_PROGRAM
    source = folder / FABRIC_PROGRAM.name
    cure = f"Give a folder made with:  cp -r {FABRIC_PROGRAM.parent} MINE"
    if not is_file(source):
        raise LabError(f"there is no {shown(source)}", cure)
    try:
        for file in folder.glob("*.p4"):
            opened(file, _SOURCE_BYTES).close()
    except FileError as error:
        raise LabError(str(error), cure) from None
    return source


def _ours(out: Path, source: Path, defines: tuple[str, ...]) -> BuiltProgram:
    """A program's files, by our compiler."""
    return _kept(out, source, defines, lambda: _compile(source, defines))


def _kept(
    out: Path, source: Path, by: tuple[str, ...], compiled: Callable[[], tuple[str, str]]
) -> BuiltProgram:
    """A program's files in a folder."""
    built = BuiltProgram(out / f"{source.stem}.json", out / f"{source.stem}.p4info.txtpb")
    placed = _placed(source, by, compiled)
    built.json.write_bytes(placed.json.read_bytes())
    built.p4info.write_bytes(placed.p4info.read_bytes())
    return built


def _placed(
    source: Path, by: tuple[str, ...], compiled: Callable[[], tuple[str, str]]
) -> BuiltProgram:
    """The same where they are kept, compiled only if that was not done before by the same.

    Our compiler counts always: it may go by the name of p4c (see switch/shims).
    """
    sources = _content(source.parent, source.parent.glob("*.p4"))
    folder = source.parent.absolute().name  # by which the program names its sources
    name = f"{source.stem}-{digest(*by, folder, sources, _our_compiler())}"
    texts = cache(compiled)

    def place(path: Path, text: str) -> None:
        path.write_bytes(_wherever(text.encode(), source))

    with building(source.name):
        compiled_json = kept(f"placed-{name}.json", lambda path: place(path, texts()[0]))
        p4info = kept(f"{name}.p4info", lambda path: path.write_text(texts()[1]))
    return BuiltProgram(compiled_json, p4info)


def _wherever(compiled: bytes, source: Path) -> bytes:
    """A program that names its sources by where they lie in the tree, wherever that lies."""
    for folder, name in ((source.parent, source.parent.name), (ROOT, "")):
        for each in (folder, folder.absolute(), folder.resolve()):
            there = json.dumps(f"{each}/")[1:-1].encode()
            compiled = compiled.replace(b'"' + there, b'"' + (f"{name}/" if name else "").encode())
    return compiled


@cache
def _our_compiler() -> str:
    """A name for our compiler as it was when this process first asked."""
    return _content(ROOT, (ROOT / "compiler").rglob("*.p[y4]"))


def _content(folder: Path, files: Iterable[Path]) -> str:
    """What files hold, by their names in a folder: wherever that lies, they are the same."""
    held = ((str(f.relative_to(folder)), read_bytes(f, _SOURCE_BYTES)) for f in sorted(files))
    return digest(*(part for each in held for part in each))


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


def _this_p4c() -> tuple[str, ...]:
    """What tells the p4c that is found from another, or from what it was before."""
    file = Path(shutil.which(P4C) or P4C).resolve()
    about = file.stat()
    return str(file), str(about.st_size), str(about.st_mtime_ns), compiler("bmv2")


def _by_p4c(source: Path, defines: tuple[str, ...], still: Still) -> tuple[str, str]:
    """A program's JSON and P4Info, by p4c."""
    with tempfile.TemporaryDirectory() as folder:
        made = Path(folder) / "made.json", Path(folder) / "made.p4info.txt"
        words = [P4C, "--p4v", "16", "--Wdisable", *(f"-D{name}" for name in defines)]
        words += ["-o", str(made[0]), "--p4runtime-files", str(made[1]), str(source)]
        process = subprocess.Popen(
            words,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
            env=_THRIFTY | os.environ,
        )
        with process:
            try:
                said = _last_words(process, source, still)
            finally:
                process.kill()
        if process.returncode == -signal.SIGKILL:
            raise LabError(f"{P4C} was killed while it compiled {source.name}", _MUCH_MEMORY)
        if process.returncode != 0:
            raise LabError(f"{source.name} does not compile with {P4C}:\n{said.strip()}")
        return made[0].read_text(), made[1].read_text()


def _last_words(process: subprocess.Popen[str], source: Path, still: Still) -> str:
    """What p4c says, when it has ended."""
    patience = Patience([process.pid], tell=partial(still, f"{P4C} to compile {source.name}"))
    while not patience.is_over():
        with suppress(subprocess.TimeoutExpired):
            return process.communicate(timeout=_LOOK_S)[1]
    raise LabError(f"{P4C} does nothing any more, and has not compiled {source.name}")
