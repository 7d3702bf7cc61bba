"""Building C: the run-time once, each program once, kept in a cache by content.

What is built is named by a hash over everything that goes into it: sources, compiler, flags. So a
cached file is never stale, and two builders of the same thing write the same bytes; each writes to
a file of its own and renames it into place. Nothing is ever deleted.
"""

from __future__ import annotations

import hashlib
import os
import platform
import shlex
import shutil
import subprocess
import tempfile
from functools import cache
from pathlib import Path

RUNTIME = Path(__file__).parent / "rt"
CFLAGS = (
    *("-std=gnu11", "-O2", "-g1", "-fPIC", "-shared", "-fno-plt", "-fno-semantic-interposition"),
    *("-Wall", "-Wextra"),
)
# A P4 program may well compare a field with itself, or a number with what it cannot be, or compute
# what it has no use for.
PROGRAM_FLAGS = (
    *("-Wno-type-limits", "-Wno-tautological-compare", "-Wno-bool-compare", "-Wno-bool-operation"),
    *("-Wno-int-in-bool-context", "-Wno-parentheses-equality", "-Wno-overflow"),
    "-Wno-unused-but-set-variable",
)
# For tests: -Werror, the sanitizers. Warnings are no errors to users, whose compiler may know more
# of them than ours. Part of the cache key.
EXTRA_VARIABLE = "CLOSLAB_CFLAGS"


class CompilerMissing(Exception):  # noqa: N818 - the name says it
    """There is no C compiler; the text says how to get one."""


class BuildError(Exception):
    """The C compiler refused; the text is what it said. This is a defect, not the user's fault."""


def cache_dir() -> Path:
    """Where built objects are kept."""
    base = os.environ.get("XDG_CACHE_HOME") or str(Path.home() / ".cache")
    return Path(base) / "closlab"


@cache
def compiler() -> tuple[str, ...]:
    """The C compiler's command: $CC, or the first of cc, gcc and clang."""
    wanted = os.environ.get("CC")
    if wanted:
        command = shlex.split(wanted)
        if not command or shutil.which(command[0]) is None:
            raise CompilerMissing(f"$CC is {wanted!r}, which is not there: unset it or install it")
        return tuple(command)
    for name in ("cc", "gcc", "clang"):
        if shutil.which(name):
            return (name,)
    raise CompilerMissing(
        "no C compiler found, and the switch needs one to run P4: "
        "apt-get install gcc libc6-dev (or set $CC)"
    )


@cache
def compiler_id() -> str:
    """What tells compilers, and the machines they compile for, apart."""
    command = compiler()
    path = shutil.which(command[0]) or command[0]
    stat = Path(path).resolve().stat()
    return f"{command} {stat.st_size} {stat.st_mtime_ns} {platform.machine()}"


@cache
def machine_flags() -> tuple[str, ...]:
    """What this processor can do beyond its family's least: the lookups count bits."""
    try:
        features = Path("/proc/cpuinfo").read_text().split()
    except OSError:
        return ()
    return ("-mpopcnt",) if platform.machine() == "x86_64" and "popcnt" in features else ()


def flags() -> list[str]:
    """All compiler flags."""
    return [*CFLAGS, *machine_flags(), *shlex.split(os.environ.get(EXTRA_VARIABLE, ""))]


@cache
def runtime_sources() -> dict[str, bytes]:
    """The run-time's files by name."""
    return {p.name: p.read_bytes() for p in sorted(RUNTIME.glob("*.[ch]"))}


def digest(*parts: bytes | str) -> str:
    """A name for what is built from these."""
    hasher = hashlib.sha256()
    for part in parts:
        data = part.encode() if isinstance(part, str) else part
        hasher.update(len(data).to_bytes(8, "little") + data)
    return hasher.hexdigest()[:24]


def runtime_digest() -> str:
    """A name for the run-time as it is here."""
    parts = [x for name, text in runtime_sources().items() for x in (name.encode(), text)]
    return digest(compiler_id(), " ".join(flags()), *parts)


def run_compiler(arguments: list[str], output: Path) -> None:
    """Compile into a temporary file beside `output`, then move it there."""
    output.parent.mkdir(parents=True, exist_ok=True)
    handle, name = tempfile.mkstemp(prefix=output.stem + ".", suffix=".tmp", dir=output.parent)
    os.close(handle)
    made = Path(name)
    try:
        command = [*compiler(), *flags(), *arguments, "-o", str(made)]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode != 0:
            raise BuildError(f"{shlex.join(command)}\n{done.stderr.strip()}")
        made.replace(output)
    finally:
        made.unlink(missing_ok=True)


def runtime_library() -> Path:
    """The run-time's shared object, built if need be."""
    output = cache_dir() / f"rt-{runtime_digest()}.so"
    if not output.exists():
        sources = [str(RUNTIME / n) for n in runtime_sources() if n.endswith(".c")]
        run_compiler([*sources, "-pthread"], output)
    return output


def program_library(source: str, *, trace: bool = False) -> Path:
    """A generated program's shared object, built if need be."""
    defines = ["-DSW_TRACING"] if trace else []
    runtime = runtime_library()
    output = cache_dir() / f"p4-{digest(source, runtime.name, *PROGRAM_FLAGS, *defines)}.so"
    if not output.exists():
        text = output.with_suffix(".c")
        write_whole(text, source)
        options = [*PROGRAM_FLAGS, *defines, f"-I{RUNTIME}"]
        run_compiler([*options, str(text), str(runtime)], output)
    return output


def write_whole(path: Path, text: str) -> None:
    """Write a file so that nobody sees half of it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.NamedTemporaryFile("w", dir=path.parent, delete=False) as file:
        file.write(text)
    Path(file.name).replace(path)
