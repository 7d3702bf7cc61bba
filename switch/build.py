"""Building C: the run-time once, each program once, kept in a cache by content.

What is built is named by a hash over everything that goes into it: sources, compiler, flags. So a
cached file is never stale, and two builders of the same thing write the same bytes (`cache.py`).
"""

from __future__ import annotations

import errno
import hashlib
import os
import platform
import shlex
import shutil
import signal
import subprocess
import threading
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from functools import cache, lru_cache
from pathlib import Path

from . import wasm
from .cache import Unbuildable, cache_dir, is_kept, kept, kept_at

RUNTIME = Path(__file__).parent / "rt"
# What C outside of the run-time reads there.
LENT = (RUNTIME / "arrival_times.h", RUNTIME / "invariant.h")
# For tests and chaos: claims that take a walk to look at are looked at too (`invariant.h`).
CHECKED = "-DCLOSLAB_CHECKED"
CFLAGS = (
    *("-std=gnu11", "-O2", "-g1", "-fPIC", "-shared", "-fno-plt", "-fno-semantic-interposition"),
    *("-Wall", "-Wextra"),
)
# A P4 program may well compare a field with itself, or a number with what it cannot be, or compute
# what it has no use for.
PROGRAM_FLAGS = (
    *("-Wno-type-limits", "-Wno-tautological-compare", "-Wno-bool-compare", "-Wno-bool-operation"),
    *("-Wno-int-in-bool-context", "-Wno-parentheses-equality", "-Wno-overflow"),
    "-Wno-sign-compare",  # of an inverted field that is narrower than its type
    *("-Wno-unused-but-set-variable", "-Wno-unused-function"),
    # All of a pipeline is one function, and what is called once in it belongs into it, however long
    # that function has become.
    "--param=large-function-growth=1000",
)
# For tests: -Werror, the sanitizers. Warnings are no errors to users, whose compiler may know more
# of them than ours. Part of the cache key.
EXTRA_VARIABLE = "CLOSLAB_CFLAGS"
# For a program that is to run soon: gcc takes two fifths of the time, packets a third more.
_QUICKLY = ("-Og", "-g0", "-w")
_LONG = 1 << 18  # characters of C from which on two halves side by side are quicker than the whole


class CompilerMissing(Unbuildable):
    """There is no C compiler; the text says how to get one."""


class BuildError(Exception):
    """The C compiler refused; the text is what it said. This is a defect, not the user's fault."""


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
    if wasm.is_target():
        return wasm.TARGET
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
    if wasm.is_target():
        return [*wasm.FLAGS]
    return [*CFLAGS, *machine_flags(), *shlex.split(os.environ.get(EXTRA_VARIABLE, ""))]


@cache
def runtime_sources() -> dict[str, bytes]:
    """The run-time's files by name."""
    files = sorted(RUNTIME.glob("*.[ch]"))
    if wasm.is_target():
        files = [p for p in files if p.suffix == ".h" or p.stem not in wasm.OF_A_KERNEL]
    return {p.name: p.read_bytes() for p in files}


def digest(*parts: bytes | str) -> str:
    """A name for what is built from these."""
    hasher = hashlib.sha256()
    for part in parts:
        data = part.encode() if isinstance(part, str) else part
        hasher.update(len(data).to_bytes(8, "little"))
        hasher.update(data)  # which may be megabytes: they are not copied
    return hasher.hexdigest()[:24]


def runtime_digest() -> str:
    """A name for the run-time as it is here."""
    parts = [x for name, text in runtime_sources().items() for x in (name.encode(), text)]
    return digest(compiler_id(), " ".join(flags()), *parts)


def compiled(
    name: str,
    sources: Sequence[Path],
    words: Sequence[str] = (),
    options: Sequence[str] | None = None,
) -> Path:
    """What the compiler makes of these sources, kept under that name.

    Several are compiled side by side, and then linked; ``words`` follow them, each time.
    ``options`` take the place of the flags that all shared objects are built with.
    """
    chosen = flags() if options is None else options

    def make(output: Path) -> None:
        units = [path for path in sources if path.suffix == ".c"]
        if "-c" in words or (len(units) < 2 and not wasm.is_target()):
            return _compile([*chosen, *map(str, sources), *words], output)
        objects = [output.with_name(f"{number}.o") for number in range(len(units))]
        parts = [[*chosen, "-c", str(unit), *words] for unit in units]
        others = [path for path in sources if path.suffix != ".c"]
        _side_by_side(parts, objects, [unit.stat().st_size for unit in units])
        if wasm.is_target():  # the others' functions are found as they are called
            objects += [path for path in others if path.suffix == ".o"]
            return _run(wasm.linking(objects), output)
        return _compile([*chosen, *map(str, (*objects, *others)), *words], output)

    return kept(name, make)


def _side_by_side(parts: list[list[str]], outputs: list[Path], sizes: list[int]) -> None:
    """Compile on all processors; what takes long begins first."""
    order = sorted(range(len(parts)), key=lambda i: -sizes[i])
    with ThreadPoolExecutor(len(os.sched_getaffinity(0))) as workers:
        under_way = [workers.submit(_compile, parts[i], outputs[i]) for i in order]
        try:
            for one in under_way:
                one.result()
        finally:
            workers.shutdown(wait=False, cancel_futures=True)


def _compile(arguments: Sequence[str], output: Path) -> None:
    _run(wasm.compiling(arguments) if wasm.is_target() else [*compiler(), *arguments], output)


def _run(words: Sequence[str], output: Path) -> None:
    command = [*words, "-o", str(output)]
    # Killed, it leaves its own files where they are found.
    told = os.environ | {"TMPDIR": str(output.parent)}
    done = subprocess.run(command, env=told, capture_output=True, text=True, check=False)
    if os.strerror(errno.ENOSPC) in done.stderr:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
    if done.returncode != 0:
        how = f"was killed ({signal.Signals(-done.returncode).name})" if done.returncode < 0 else ""
        words = shlex.join(command), how, done.stderr.strip()
        raise BuildError("\n".join(filter(None, words)))


def runtime_library() -> Path:
    """The run-time's shared object, built if need be."""
    sources = [RUNTIME / n for n in runtime_sources() if n.endswith(".c")]
    return compiled(_runtime_name(), sources, ["-pthread"])


def _runtime_name() -> str:
    return f"rt-{runtime_digest()}.so"


def runtime_ahead() -> None:
    """Begin to build the run-time, if need be, beside what is done before it is asked for.

    What goes wrong with it is told to who asks.
    """
    if wasm.is_here():
        return

    def build() -> None:
        with suppress(Exception):
            runtime_library()

    threading.Thread(target=build, name="run-time").start()


def program_library(source: str, *, trace: bool = False, quickly: bool = False) -> Path:
    """A generated program's shared object, built if need be.

    One that is built ``quickly`` does the same, more slowly. To compile takes ten times as long as
    to link, and asks no more of the run-time than its headers: a change of anything else in it has
    programs linked anew only.
    """
    told = _told(trace=trace, quickly=quickly)
    name = _program_name(source, told)
    if there := kept_at(_linked(name)):
        return there
    if wasm.is_here():
        raise wasm.NotBuilt(source, cache_dir() / _linked(name))
    text = kept(f"{name}.c", lambda path: path.write_text(source))
    options = [*told, f"-I{RUNTIME}"]
    halves = {"-1": ["-DSW_HALF=1"], "-2": ["-DSW_HALF=2"]} if len(source) >= _LONG else {"": []}
    with ThreadPoolExecutor(len(halves)) as side_by_side:
        unlinked = [
            side_by_side.submit(compiled, f"{name}{half}.o", [text], ["-c", *options, *words])
            for half, words in halves.items()
        ]
        objects = [one.result() for one in unlinked]
    return compiled(_linked(name), [*objects, runtime_library()])


def is_built(source: str) -> bool:
    """Whether a program's shared object is there, built as well as can be."""
    return is_kept(_linked(_program_name(source, _told())))


def _told(*, trace: bool = False, quickly: bool = False) -> list[str]:
    """What the compiler is told of a program besides all flags."""
    if wasm.is_target():
        return ["-DSW_TRACING"] * trace
    return [*PROGRAM_FLAGS, *(["-DSW_TRACING"] * trace), *(_QUICKLY * quickly)]


def _program_name(source: str, told: Sequence[str]) -> str:
    headers = (text for name, text in runtime_sources().items() if name.endswith(".h"))
    return f"p4-{digest(_digest_of(source), compiler_id(), *flags(), *told, *headers)}"


@lru_cache(maxsize=4)
def _digest_of(source: str) -> str:
    """Of a megabyte of C, for which a start asks several times."""
    return digest(source)


def _linked(name: str) -> str:
    return f"p4-{digest(name, _runtime_name())}.so"


def beside_runtime(source: Path) -> Path:
    """A C file's shared object, linked to the run-time, built if need be."""
    runtime = runtime_library()
    name = f"{source.stem}-{digest(source.read_bytes(), runtime.name)}.so"
    return compiled(name, [source, runtime], [f"-I{RUNTIME}"])
