"""One simulation by several processes, which a launcher of MPI has started: ranks.

Every rank builds the whole fabric and goes the same way through the same code. It simulates its
own parts, and what is decided follows from what all ranks know. So the engine reads as if there
were one process, but where something is told to all (`everywhere`) or to rank 0 (`at_first`), which
alone writes and speaks.
"""

from __future__ import annotations

import ctypes
import os
import pickle
import platform
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, TypeVar

from lab.engines.sim import native
from lab.errors import LabError, MissingTool, RunError
from params.data import Data

T = TypeVar("T")

OPEN_MPI, MPICH = "Open MPI", "MPICH"
# By what a launcher tells of itself: how many there are, and whose MPI it speaks.
_LAUNCHERS = {
    "OMPI_COMM_WORLD_SIZE": OPEN_MPI,
    "PMI_SIZE": MPICH,
}
_SLURM = "SLURM_STEP_NUM_TASKS"  # beside which stands how tasks are to find each other:
_SLURM_SPEAKS = {"PMIX_RANK": OPEN_MPI, "PMI_RANK": MPICH}
_LIBRARIES = {
    OPEN_MPI: ("libmpi.so.40",),
    MPICH: ("libmpich.so.12", "libmpi.so.12"),  # Debian's name, and everybody's
}


class RankIsDone(Exception):  # noqa: N818 - nothing is wrong
    """This rank has done its part; what came of all is rank 0's."""


class Launched(Data):
    """How this process was started, by a launcher of MPI."""

    size: int
    whose: str


def launched() -> Launched | None:
    """By which launcher, if it started more than one."""
    environ = os.environ
    found = next(((environ[n], whose) for n, whose in _LAUNCHERS.items() if n in environ), None)
    if found is None and _SLURM in environ:
        whose = next((whose for n, whose in _SLURM_SPEAKS.items() if n in environ), "")
        found = environ[_SLURM], whose
    if found is None or not found[0].isdecimal() or int(found[0]) < 2:
        return None
    if not found[1]:
        raise RunError(
            f"srun started {found[0]} of this, and not so that they find each other",
            "Say --mpi=pmix for Open MPI, --mpi=pmi2 for MPICH, or -n 1.",
        )
    return Launched(int(found[0]), found[1])


def join(how: Launched) -> Ranks:
    """Meet the others."""
    library = native.library()
    for name in _names(how.whose):
        if handle := library.ranks_join(os.fsencode(name)):
            ranks = Ranks(handle)
            if ranks.size != how.size:
                raise RunError(
                    f"{how.size} were started by a launcher of {how.whose}'s kind, and {name} "
                    f"finds {ranks.size}",
                    "Take the mpirun that belongs to it: mpirun.openmpi, mpirun.mpich.",
                )
            return ranks
    raise MissingTool(
        f"the launcher is {how.whose}'s, and its library is not found here",
        f"Install it (Debian: {'libopenmpi3' if how.whose == OPEN_MPI else 'libmpich12'}), or "
        "name its folder in LD_LIBRARY_PATH.",
    )


def _names(whose: str) -> Iterator[str]:
    """Of the library: as the system finds it, or beside the launcher."""
    yield from _LIBRARIES[whose]
    if mpirun := shutil.which("mpirun"):
        beside = Path(mpirun).resolve().parent.parent / "lib"
        yield from (str(beside / name) for name in _LIBRARIES[whose])


class Ranks:
    """All of them, as one of them sees it."""

    def __init__(self, handle: int) -> None:
        self.handle = handle
        self._native = native.library()
        self.number = int(self._native.ranks_number(handle))
        self.size = int(self._native.ranks_size(handle))
        self.has_begun = False  # all have agreed to
        self.has_left = False
        self._before = self._account()
        self.traffic = ""  # at rank 0, in the end
        self.threads_each = self._threads_each()

    @property
    def is_first(self) -> bool:
        """Whether this is who writes, and says what there is to say."""
        return self.number == 0

    def everywhere(self, mine: T) -> list[T]:
        """What each rank has, at all of them."""
        text = pickle.dumps(mine, pickle.HIGHEST_PROTOCOL)
        self._tell(text, self.size)
        return [mine if rank == self.number else self._said(rank) for rank in range(self.size)]

    def at_first(self, mine: T) -> list[T]:
        """What each rank has, at rank 0; the others get none of it."""
        text = pickle.dumps(mine, pickle.HIGHEST_PROTOCOL) if self.number else b""
        self._tell(text, 1)
        return [mine, *(self._said(rank) for rank in range(1, self.size))] if self.is_first else []

    def _tell(self, text: bytes, to: int) -> None:
        if not self._native.ranks_tell(self.handle, text, len(text), to):
            raise MemoryError

    def _said(self, rank: int) -> Any:
        size = ctypes.c_uint64()
        text = self._native.ranks_said(self.handle, rank, ctypes.byref(size))
        return pickle.loads(ctypes.string_at(text, size.value))  # noqa: S301 - by this program

    def agree(self, complaint: LabError | None = None) -> None:
        """Whether all can begin. If one cannot it ends for all, and rank 0 tells why."""
        self.has_begun = True
        reason = None if complaint is None else (complaint.message, complaint.cure)
        found = [(rank, said) for rank, said in enumerate(self.everywhere(reason)) if said]
        self._before = self._account()
        if not found:
            return
        self.leave()
        if not self.is_first:
            raise RankIsDone
        if complaint is not None:
            raise complaint
        rank, (message, cure) = found[0]
        raise RunError(f"rank {rank}: {message}", cure)

    def _threads_each(self) -> int:
        """Of the processors that this rank may use its share, for others may use them, too."""
        allowed = os.sched_getaffinity(0) if hasattr(os, "sched_getaffinity") else set()
        mine = platform.node(), allowed or {*range(os.cpu_count() or 1)}
        beside = [
            cpus for node, cpus in self.everywhere(mine) if node == mine[0] and cpus & mine[1]
        ]
        return max(1, len(mine[1]) // len(beside))

    def tell_traffic(self, took_s: float) -> None:
        """Have rank 0 know what all of them sent, and how long they waited for each other."""
        before, found = self._before, self._account()
        sent, waited = found.sent - before.sent, found.waited - before.waited
        all_of_them = self.at_first((sent, waited / 1e9 / took_s))
        if all_of_them:
            all_sent, all_waited = zip(*all_of_them, strict=True)
            self.traffic = (
                f"{sum(all_sent):,} bytes in {found.exchanges - before.exchanges:,} exchanges, "
                f"waiting {min(all_waited):.0%} to {max(all_waited):.0%} of the time"
            )

    def _account(self) -> native.RanksAccount:
        found = native.RanksAccount()
        self._native.ranks_account(self.handle, ctypes.byref(found))
        return found

    def leave(self) -> None:
        """Part in peace; all do."""
        if not self.has_left:
            self.has_left = True
            self._native.ranks_leave(self.handle)

    def abort(self, code: int) -> None:
        """End all of them, this one too."""
        sys.stdout.flush()
        sys.stderr.flush()
        self._native.ranks_abort(self.handle, code)
