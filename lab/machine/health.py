"""What this machine can do for the lab, and the cure for what it cannot.

Each check looks, changes nothing, and takes no longer than a second.
"""

from __future__ import annotations

import os
import platform
import shutil
import subprocess
import sys
from collections.abc import Iterator
from enum import Enum
from pathlib import Path

from lab.errors import LabError
from lab.machine import tools
from lab.machine.paths import SHELL_ENVIRONMENT, running_labs
from lab.machine.speed import slowness
from params.data import Data
from params.quantity import size
from switch import build
from switch.build import processors

_ENOUGH_BYTES = 500_000_000  # for runs with captures
_ASK_S = 10


class Health(Enum):
    """What a check came to."""

    GOOD = "ok"
    MISSING = "missing"  # something optional
    BAD = "stops you"  # a README's command will not work


class Finding(Data):
    """One thing that was looked at."""

    what: str
    verdict: Health
    found: str
    cure: str = ""


def examine() -> Iterator[Finding]:
    """All that is worth knowing before a run, in the order in which it is needed."""
    yield _python()
    yield _compiler()
    yield from _emulation()
    yield _namespaces()
    yield _processors()
    yield _disk("results", Path.cwd(), "Work in another folder, or use --out DIR.")
    yield _disk("what is compiled", running_labs().parent, "Set XDG_CACHE_HOME to another folder.")
    yield _program("captures are decoded", "tshark", "apt-get install tshark")
    yield _program("fabrics are drawn (closlab draw)", "dot", "apt-get install graphviz")
    yield _program("iperf at the prompt", "iperf3", "apt-get install iperf3", "iperf")
    yield _program("BMv2 (--switch bmv2)", tools.BMV2, "bash provision/p4lang.sh   (as root)")
    yield _program("p4c, to compare with", "p4c-bm2-ss", "bash provision/p4lang.sh   (as root)")
    yield _shell()


def _python() -> Finding:
    found = f"{platform.python_version()} in {sys.prefix}"
    return Finding("Python", Health.GOOD, found)


def _compiler() -> Finding:
    what = "C compiler"
    try:
        tools.require_compiler()
    except LabError as error:
        if not build.is_brought():
            return Finding(what, Health.BAD, error.message, error.cure or "")
        found = "none; the fabric's program came compiled, changed ones and emulated runs need one"
        return Finding(what, Health.MISSING, found, error.cure or "")
    if aim := build.made_for():
        return Finding(what, Health.GOOD, f"ziglang, for {aim.name}")
    return Finding(what, Health.GOOD, _first_line([*build.compiler(), "--version"]))


def _lacking() -> Health:
    """How bad it is that nothing can be emulated: to who installed what simulates, not at all."""
    return Health.MISSING if build.is_brought() else Health.BAD


def _emulation() -> Iterator[Finding]:
    try:
        tools.require_emulation()
    except LabError as error:
        yield Finding("Mininet", _lacking(), error.message, error.cure or "")
        return
    yield Finding("Mininet", Health.GOOD, str(shutil.which("mnexec")))


def _namespaces() -> Finding:
    """Private namespaces, tried in a process of its own."""
    what, user = "private namespaces", [] if os.geteuid() == 0 else ["--user", "--map-root-user"]
    cure = "closlab run hello says what to allow; --engine sim needs none"
    if shutil.which("unshare") is None:
        return Finding(what, _lacking(), "no unshare on the PATH, which Linux has", cure)
    words = ["unshare", *user, "--net", "--mount", "--pid", "--fork", "true"]
    done = subprocess.run(words, capture_output=True, text=True, timeout=_ASK_S, check=False)
    if done.returncode == 0:
        return Finding(what, Health.GOOD, "as root" if not user else "as an ordinary user")
    return Finding(what, _lacking(), done.stderr.strip(), cure)


def _processors() -> Finding:
    count, times = processors(), slowness()
    found = f"{count} to be used, {platform.machine()}"
    if times == 1:
        return Finding("processors", Health.GOOD, found)
    return Finding(
        "processors",
        Health.MISSING,
        f"{found}; {times:.1f} times slower than Mininet's usual pace supposes",
        "Mininet runs take so much longer; --engine sim runs anywhere",
    )


def _disk(what: str, folder: Path, cure: str) -> Finding:
    """Whether a folder, or the one it would be made in, takes anything."""
    place = next(path for path in (folder, *folder.absolute().parents) if path.exists())
    if not os.access(place, os.W_OK):
        return Finding(f"room for {what}", Health.BAD, f"{place} cannot be written", cure)
    free = shutil.disk_usage(place).free
    verdict = Health.GOOD if free >= _ENOUGH_BYTES else Health.BAD
    return Finding(f"room for {what}", verdict, f"{size(free)} free in {place}", cure)


def _program(what: str, name: str, cure: str, other: str = "") -> Finding:
    path = shutil.which(name) or (shutil.which(other) if other else None)
    if path is None:
        return Finding(what, Health.MISSING, f"no {name} on the PATH", cure)
    return Finding(what, Health.GOOD, path)


def _shell() -> Finding:
    what = "p4runtime-shell (closlab shell)"
    if (SHELL_ENVIRONMENT / "bin" / "python").exists():
        return Finding(what, Health.GOOD, str(SHELL_ENVIRONMENT))
    cure = "./closlab shell brings it when first called"
    return Finding(what, Health.MISSING, "not set up", cure)


def _first_line(words: list[str]) -> str:
    done = subprocess.run(words, capture_output=True, text=True, timeout=_ASK_S, check=False)
    return (done.stdout or done.stderr).partition("\n")[0]
