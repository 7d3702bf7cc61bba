"""Building C: the run-time once, each program once, kept in a cache by content.

What is built is named by a hash over everything that goes into it: sources, compiler, flags. So a
cached file is never stale, and two builders of the same thing write the same bytes (`cache.py`).

The compiler is this machine's own. Where it has none ziglang takes its place, if that is installed;
and what was built before by that, for a target (`target.py`), and came with the installation, asks
for no compiler. A program that is changed is linked to the run-time that came.
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
import sys
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from functools import cache, lru_cache, partial
from pathlib import Path

from . import target, wasm
from .c_files import apart
from .cache import BUILT, Unbuildable, cache_dir, is_kept, kept, kept_at
from .target import Target

RUNTIME = Path(__file__).parent / "rt"
# What C outside of the run-time reads there.
LENT = (RUNTIME / "arrival_times.h", RUNTIME / "invariant.h")
# For tests and chaos: claims that take a walk to look at are looked at too (`invariant.h`).
CHECKED = "-DCLOSLAB_CHECKED"
CFLAGS = (
    *("-std=gnu11", "-O2", "-g1", "-fPIC", "-shared", "-fno-plt", "-fno-semantic-interposition"),
    "-Wl,-Bsymbolic",
    "-ffp-contract=off",  # so that all processors round alike
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


_COMPILERS = ("cc", "gcc", "clang")
_TARGETS = {each.name: each for each in (wasm.TAB, *target.NATIVE)}


class CompilerMissing(Unbuildable):
    """There is no C compiler; the text says how to get one."""

    def __init__(self, reason: str, cure: str) -> None:
        super().__init__(f"{reason}: {cure}")
        self.reason, self.cure = reason, cure


class BuildError(Exception):
    """The C compiler refused; the text is what it said. This is a defect, not the user's fault."""


def made_for() -> Target | None:
    """What ziglang compiles C for; nothing where a compiler of this machine's does it for this."""
    if wasm.is_here():
        return wasm.TAB
    if asked := target.asked_for():
        if asked not in _TARGETS:
            known = ", ".join(_TARGETS)
            raise Unbuildable(f"{target.VARIABLE} is {asked!r}, and not one of {known}")
        return _TARGETS[asked]
    if _named() or _found() or not target.has_zig():
        return None
    return target.of_this_machine()


def _named() -> str | None:
    """The compiler that is to be taken, if one is; elsewhere than on Linux that is ziglang."""
    return os.environ.get("CC") if sys.platform == "linux" else None


def _found() -> str | None:
    found = filter(shutil.which, _COMPILERS)
    return next(found, None) if sys.platform == "linux" else None


def compiler() -> tuple[str, ...]:
    """The command of this machine's C compiler: $CC, or the first of cc, gcc and clang."""
    if wanted := _named():
        command = shlex.split(wanted)
        if not command or shutil.which(command[0]) is None:
            reason = f"$CC is {wanted!r}, which is not there"
            raise CompilerMissing(reason, "unset CC or install it")
        return tuple(command)
    if found := _found():
        return (found,)
    raise CompilerMissing(
        "no C compiler found, and the switch needs one to run P4 that was not compiled before",
        "apt-get install gcc libc6-dev, or " * (sys.platform == "linux") + target.CURE,
    )


def require_compiler() -> None:
    """Fail if C cannot be compiled for this machine."""
    if made_for() is None:
        compiler()


@cache
def compiler_id() -> str:
    """What tells compilers, and the machines they compile for, apart."""
    if aim := made_for():
        return aim.name
    command = compiler()
    path = shutil.which(command[0]) or command[0]
    stat = Path(path).resolve().stat()
    return f"{command} {stat.st_size} {stat.st_mtime_ns} {platform.machine()}"


def flags() -> list[str]:
    """All compiler flags."""
    if aim := made_for():
        return [*aim.flags]
    counts_bits = ["-mpopcnt"] * ("popcnt" in (target.features() or ()))
    return [*CFLAGS, *counts_bits, *shlex.split(os.environ.get(EXTRA_VARIABLE, ""))]


@cache
def runtime_sources(aim: Target | None) -> dict[str, bytes]:
    """The run-time's files by name."""
    left_out = aim.left_out if aim else target.INSTEAD
    files = sorted(RUNTIME.glob("*.[ch]"))
    files = [path for path in files if path.suffix == ".h" or path.stem not in left_out]
    return {path.name: path.read_bytes() for path in files}


def digest(*parts: bytes | str) -> str:
    """A name for what is built from these."""
    hasher = hashlib.sha256()
    for part in parts:
        data = part.encode() if isinstance(part, str) else part
        hasher.update(len(data).to_bytes(8, "little"))
        hasher.update(data)  # which may be megabytes: they are not copied
    return hasher.hexdigest()[:24]


def _identity(aim: Target | None) -> tuple[str, list[str]]:
    """By what, and how, C is compiled for a target, or here."""
    return (aim.name, [*aim.flags]) if aim else (compiler_id(), flags())


def _came(name_for: Callable[[Target], str]) -> Path | None:
    """What came with the installation, by the name it has there: unless it is to be compiled by
    one's own compiler or with flags of one's own."""
    if not BUILT.is_dir() or _named() or os.environ.get(EXTRA_VARIABLE):
        return None
    aim = made_for() or target.of_this_machine()
    there = BUILT / name_for(aim) if aim else None
    return there if there and there.is_file() else None


def is_brought() -> bool:
    """Whether a run-time came with the installation, so that there is no need for a compiler."""
    return _came(_runtime_for) is not None


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
        aim = made_for() if options is None else None
        if "-c" in words or (len(units) < 2 and not aim):
            return _compile([*chosen, *map(str, sources), *words], output)
        objects = [output.with_name(f"{number}.o") for number in range(len(units))]
        parts = [[*chosen, "-c", str(unit), *words] for unit in units]
        others = [path for path in sources if path.suffix != ".c"]
        _side_by_side(parts, objects, [unit.stat().st_size for unit in units])
        if aim:
            return _run(aim.linking([*objects, *others], words, name), output)
        return _compile([*chosen, *map(str, (*objects, *others)), *words], output)

    return kept(name, make)


def _side_by_side(parts: list[list[str]], outputs: list[Path], sizes: list[int]) -> None:
    """Compile on all processors; what takes long begins first."""
    order = sorted(range(len(parts)), key=lambda i: -sizes[i])
    with ThreadPoolExecutor(processors()) as workers:
        under_way = [workers.submit(_compile, parts[i], outputs[i]) for i in order]
        try:
            for one in under_way:
                one.result()
        finally:
            workers.shutdown(wait=False, cancel_futures=True)


def _compile(arguments: Sequence[str], output: Path) -> None:
    aim = made_for()
    _run(aim.compiling(arguments) if aim else [*compiler(), *arguments], output)


def processors() -> int:
    """As many as this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def _run(words: Sequence[str], output: Path) -> None:
    command = [*words, "-o", str(output)]
    # Killed, it leaves its own files where they are found.
    environment = os.environ | {"TMPDIR": str(output.parent)}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    if os.strerror(errno.ENOSPC) in done.stderr:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
    if done.returncode != 0:
        how = f"was killed ({signal.Signals(-done.returncode).name})" if done.returncode < 0 else ""
        words = shlex.join(command), how, done.stderr.strip()
        raise BuildError("\n".join(filter(None, words)))


def runtime_library() -> Path:
    """The run-time's shared object, built if need be."""
    if there := _came(_runtime_for):
        return there
    aim = made_for()
    sources = [RUNTIME / n for n in runtime_sources(aim) if n.endswith(".c")]
    return compiled(_runtime_for(aim), sources, ["-pthread"])


def _runtime_for(aim: Target | None) -> str:
    made_by, options = _identity(aim)
    return _runtime_of(tuple(runtime_sources(aim).items()), made_by, " ".join(options))


@lru_cache(maxsize=4)
def _runtime_of(sources: tuple[tuple[str, bytes], ...], made_by: str, options: str) -> str:
    parts = [x for name, text in sources for x in (name.encode(), text)]
    return f"rt-{digest(made_by, options, *parts)}.so"


def _runtime_name() -> str:
    there = _came(_runtime_for)
    return there.name if there else _runtime_for(made_for())


def runtime_ahead() -> None:
    """Begin to build the run-time, if need be, beside what is done before it is asked for.

    What goes wrong with it is told to who asks.
    """
    if wasm.is_here() or is_brought():
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
    if not trace and (there := _came(partial(_linked_for, source))):
        return there
    aim = made_for()
    extra = _options(aim, trace=trace, quickly=quickly)
    name = _program_name(source, aim, extra)
    if there := kept_at(_linked(name, _runtime_name())):
        return there
    if wasm.is_here():
        raise wasm.NotBuilt(source, cache_dir() / _linked(name, _runtime_name()))
    text, beside = _written(name, source)
    options = [*extra, f"-I{RUNTIME}", *(f"-I{folder}" for folder in beside)]
    halves = {"-1": ["-DSW_HALF=1"], "-2": ["-DSW_HALF=2"]} if len(source) >= _LONG else {"": []}
    with ThreadPoolExecutor(len(halves)) as side_by_side:
        unlinked = [
            side_by_side.submit(compiled, f"{name}{half}.o", [text], ["-c", *options, *words])
            for half, words in halves.items()
        ]
        objects = [one.result() for one in unlinked]
    return compiled(_linked(name, _runtime_name()), [*objects, runtime_library()])


def _written(name: str, source: str) -> tuple[Path, list[Path]]:
    """A generated program's file; a long one includes others, that lie in these folders."""
    if len(source) < _LONG:
        return kept(f"{name}.c", lambda path: path.write_text(source)), []
    files = []
    for part, text in apart(source):
        stem, ending = part.rsplit(".", 1)
        write = partial(Path.write_text, data=text)
        files.append(kept(f"{stem}-{digest(text)}.{ending}", write))
    whole = "".join(f'#include "{file.name}"\n' for file in files)
    main = kept(f"{name}.c", lambda path: path.write_text(whole))
    return main, sorted({file.parent for file in files} - {main.parent})


def is_built(source: str) -> bool:
    """Whether a program's shared object is there, built as well as can be."""
    if _came(partial(_linked_for, source)):
        return True
    aim = made_for()
    return is_kept(_linked(_program_name(source, aim, _options(aim)), _runtime_name()))


def _options(aim: Target | None, *, trace: bool = False, quickly: bool = False) -> list[str]:
    """What the compiler is told of a program besides all flags."""
    if aim:
        return ["-DSW_TRACING"] * trace
    return [*PROGRAM_FLAGS, *(["-DSW_TRACING"] * trace), *(_QUICKLY * quickly)]


def _linked_for(source: str, aim: Target) -> str:
    return _linked(_program_name(source, aim, _options(aim)), _runtime_for(aim))


def _program_name(source: str, aim: Target | None, options: Sequence[str]) -> str:
    headers = (text for name, text in runtime_sources(aim).items() if name.endswith(".h"))
    made_by, always = _identity(aim)
    return f"p4-{digest(_digest_of(source), made_by, *always, *options, *headers)}"


@lru_cache(maxsize=4)
def _digest_of(source: str) -> str:
    """Of a megabyte of C, for which a start asks several times."""
    return digest(source)


def _linked(name: str, runtime: str) -> str:
    return f"p4-{digest(name, runtime)}.so"


def beside_runtime(source: Path) -> Path:
    """A C file's shared object, linked to the run-time, built if need be."""
    runtime = runtime_library()
    name = f"{source.stem}-{digest(source.read_bytes(), runtime.name)}.so"
    return compiled(name, [source, runtime], [f"-I{RUNTIME}"])
