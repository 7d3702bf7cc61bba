"""What C is compiled for, where that is not this machine by its own compiler.

A target is built for by ``ziglang``, a package of Python's that brings a compiler and the C
libraries of all of them. Its flags are fixed, and a name of what is built holds the target's name
instead of a compiler's: wherever it is made, it is the same, and has the same name.

    CLOSLAB_TARGET=aarch64-linux    builds for it, whatever this machine is

What a simulation of the stock program needs is built so before wheels are made (`provision/`), and
lies in them, in `built/` beside this file, where `cache.py` finds it. A browser's tab is a target
as well (`wasm.py`).
"""

from __future__ import annotations

import importlib.util
import os
import platform
import sys
from collections.abc import Sequence
from contextlib import suppress
from functools import cache
from pathlib import Path

from params.data import Data

from .cache import Unbuildable

VARIABLE = "CLOSLAB_TARGET"
CURE = "pip install 'closlab[compile]'"
# The run-time's files that speak to Linux' kernel, and what stands in for them elsewhere.
OF_A_KERNEL = ("burst_send", "loop", "port_socket", "kernel_qdisc", "taps", "xdp_send")
INSTEAD = ("no_kernel",)


class Target(Data):
    """A kind of machine, and how ziglang is told of it."""

    name: str
    words: tuple[str, ...]
    flags: tuple[str, ...] = (
        *("-std=gnu11", "-O2", "-g0", "-fPIC", "-ffp-contract=off", "-fno-semantic-interposition"),
        "-w",
    )

    left_out: tuple[str, ...] = INSTEAD  # of the run-time's files

    def compiling(self, words: Sequence[str]) -> list[str]:
        """The command that compiles, to be told what into; where it is done is told nobody."""
        nowhere = f"-fmacro-prefix-map={Path(__file__).parents[1]}/="
        return [*_zig(), "cc", *self.words, nowhere, *words]

    def linking(self, parts: Sequence[Path], words: Sequence[str], name: str) -> list[str]:
        """The command that makes a shared object of that name: all that it calls must be there.

        Who needs it names no folder, for nobody knows yet where it will lie; it is found beside who
        needs it, or where it was when that was linked, unless that was for another machine.
        """
        places = {str(part.parent) for part in parts if part.suffix == ".so" and not asked_for()}
        if self.name.endswith(_LINUX):
            how = ["-shared", f"-Wl,-soname,{name}", "-Wl,-z,defs", "-Wl,-rpath,$ORIGIN"]
        else:
            how = ["-dynamiclib", f"-Wl,-install_name,@rpath/{name}", "-Wl,-rpath,@loader_path"]
        how += [f"-Wl,-rpath,{place}" for place in sorted(places)]
        return [*_zig(), "cc", *self.words, "-s", *how, *map(str, parts), *words]


_LINUX = "-linux"


def _linux(processor: str, least: str) -> Target:
    """Every Linux with glibc 2.28 or later, which is what manylinux_2_28 stands for."""
    return Target(processor + _LINUX, ("-target", f"{processor}-linux-gnu.2.28", least))


def _macos(processor: str, least: str) -> Target:
    words = "-target", f"{processor}-macos.11.0", least
    return Target(f"{processor}-macos", words, left_out=OF_A_KERNEL)


_POPCNT = "-mcpu=x86_64_v2"  # since 2009 all count bits, which lookups do; an emulated one may not
NATIVE = (
    _linux("x86_64", _POPCNT),
    _linux("aarch64", "-mcpu=generic"),
    _macos("x86_64", _POPCNT),
    _macos("aarch64", "-mcpu=generic"),
)
_SINCE_2009 = {"popcnt", "sse4_2"}
_SYSTEMS = {"linux": "linux", "darwin": "macos"}
_PROCESSORS = {"AMD64": "x86_64", "arm64": "aarch64"}


def asked_for() -> str | None:
    """The name of a target that is not to be this machine."""
    return os.environ.get(VARIABLE) or None


@cache
def features() -> frozenset[str] | None:
    """What a processor of the x86's can do beyond its family's least, where Linux tells."""
    with suppress(OSError):
        if platform.machine() == "x86_64":
            return frozenset(Path("/proc/cpuinfo").read_text().split())
    return None


@cache
def of_this_machine() -> Target | None:
    """What is built for it elsewhere, if anything is."""
    processor, has = platform.machine(), features()
    if has is not None and _SINCE_2009 - has:
        return None
    name = f"{_PROCESSORS.get(processor, processor)}-{_SYSTEMS.get(sys.platform)}"
    return next((target for target in NATIVE if target.name == name), None)


def has_zig() -> bool:
    """Whether ziglang is installed."""
    return importlib.util.find_spec("ziglang") is not None


def zig_folder() -> Path:
    """Where ziglang is; fail if it is not here."""
    found = importlib.util.find_spec("ziglang")
    if found is None or found.origin is None:
        raise Unbuildable(f"C for other machines is compiled by ziglang, not here: {CURE}")
    return Path(found.origin).parent


def _zig() -> list[str]:
    zig_folder()
    return [sys.executable, "-m", "ziglang"]
