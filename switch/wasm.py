"""C for a browser's tab: shared objects of WebAssembly, as Pyodide loads them.

Nothing there compiles C. So what is to run there is built before, under the names that a tab will
ask for: it is a target of ours (`target.py`), and the only one in which this process may be.

    CLOSLAB_TARGET=wasm32    builds for a tab, whatever this machine is

A program that was changed in the tab is compiled there, by a clang that is WebAssembly itself; who
asks for it is told what to compile (`NotBuilt`).

A library's missing functions are looked for among what is loaded, by their names, when they are
first called. So what no simulator calls, sockets above all, may be missing for good.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence
from pathlib import Path

from .target import INSTEAD, OF_A_KERNEL, Target, zig_folder

# What every browser has that can run Pyodide.
_FEATURES = ("bulk-memory", "sign-ext", "mutable-globals", "nontrapping-fptoint")
FLAGS = ("-std=gnu11", "-O2", "-g0", "-fPIC", "-w")
_FOR_ZIG = (
    *("-target", "wasm32-emscripten"),
    f"-mcpu=generic+{'+'.join(_FEATURES).replace('-', '_')}",
)
_FOR_CLANG = (
    "--target=wasm32-unknown-emscripten",
    *(f"-m{feature}" for feature in _FEATURES),
    "-mno-extended-const",
)
_LINKED = (
    *("-shared", "--experimental-pic", "--unresolved-symbols=import-dynamic"),
    *("--export-all", "--no-gc-sections", "-O2"),
)
# musl's headers for a machine of 32 bits whose time has 64, as Emscripten's library is; and the
# compiler's own names for the types of sizes, which are to be the same as there.
HEADERS = ("riscv32-linux-musl", "generic-musl", "riscv-linux-any", "any-linux-any")
_TYPES = (
    *("-U__SIZE_TYPE__", "-D__SIZE_TYPE__=unsigned int"),
    *("-U__PTRDIFF_TYPE__", "-D__PTRDIFF_TYPE__=int"),
)


def is_here() -> bool:
    """Whether this is a tab."""
    return sys.platform == "emscripten"


class NotBuilt(Exception):  # noqa: N818 - it says what is to be done
    """C that a tab has to compile before it can go on: a text, and where the object belongs."""

    def __init__(self, source: str, path: Path) -> None:
        super().__init__("this program is not compiled yet")
        self.source = source
        self.path = path


class _Tab(Target):
    """A tab, for which C's own headers are another's."""

    def compiling(self, words: Sequence[str]) -> list[str]:
        """The command that compiles, to be told what into."""
        folders = (str(headers() / name) for name in HEADERS)
        return super().compiling([*_with_headers(folders), *words])

    def linking(self, parts: Sequence[Path], _words: Sequence[str], _name: str) -> list[str]:
        """The command that links; other libraries' functions are found as they are called."""
        objects = [str(part) for part in parts if part.suffix == ".o"]
        return [sys.executable, "-m", "ziglang", "wasm-ld", *_LINKED, *objects]


TAB = _Tab("wasm32", _FOR_ZIG, FLAGS, (*OF_A_KERNEL, *INSTEAD))


def in_a_tab() -> tuple[list[str], list[str]]:
    """What clang is told there, and the linker; each besides files. Headers are below the root."""
    return [*_FOR_CLANG, *FLAGS, *_with_headers(HEADERS), "-Irt"], [*_LINKED]


def _with_headers(folders: Iterable[str]) -> list[str]:
    return ["-nostdlibinc", *(f"-isystem{folder}" for folder in folders), *_TYPES]


def headers() -> Path:
    """Where the folders of C's own headers are."""
    return zig_folder() / "lib" / "libc" / "include"
