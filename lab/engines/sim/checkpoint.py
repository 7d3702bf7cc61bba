"""Checkpoints: a simulated run as it is, kept in a file, from which the same command goes on.

All that switches, hosts and the net between them consist of lies in one arena
(`switch/rt/arena.h`), and it and the code that it points to are at the same addresses in every
process (`lab/machine/fixed_addresses.py`). So a checkpoint is the arena's bytes, and the little
that Python alone knows of what happened. Who goes on from one builds the fabric as ever, lets
happen what has by then, so that Python knows what switches were told, sees that all blocks of
memory are where they were, and puts the bytes in their place.

The file is written beside the one before it, and takes its name when it is whole on the disk. It
holds addresses of code, so it is taken from nobody but who has this user's key; what is damaged
does not fit that either.
"""

from __future__ import annotations

import ctypes
import errno
import hashlib
import json
import os
import pickle
import secrets
import struct
import sys
import time
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import IO, Any

from files import FileError, opened, read_bytes
from lab.engines import RunOptions
from lab.engines.sim import native
from lab.errors import RunError
from lab.machine import fixed_addresses
from lab.machine.paths import ROOT
from lab.progress import Stages
from lab.results.outcome import Look, SwitchCounts
from lab.results.telemetry import Tally
from lab.scenario.controls import algorithm_file
from lab.scenario.experiment import Experiment
from lab.scenario.model import captured
from params.data import Data
from switch.build import digest, runtime_library
from switch.cache import kept
from switch.native import runtime
from topologies import Node

FILE = "checkpoint"
_HEAD = b"closlab.checkpoint/1\n"
_RECORD = struct.Struct("<QQ")  # where the bytes that follow belong, and how many they are
_END = _RECORD.pack(2**64 - 1, 0)
_BLOCK = 1 << 16
_ZEROS = bytes(_BLOCK)
_KEY_BYTES = _MARK_BYTES = 32
_MAX_BYTES = 1 << 50
_SOURCES = "lab", "controller", "topologies", "traffic", "switch", "params"  # that a run goes by


class Moment(Data):
    """What Python alone knows of a run, between two slices."""

    now_ns: int
    transfers: int  # that were open at first
    before: dict[Node, SwitchCounts]  # what switches had counted that started again
    tally: Tally | None
    looks: list[Look]


class _Origin(Data):
    """What a checkpoint is of; all of it has to be the same for who goes on."""

    scenario: str
    threads: int
    reports: str | None
    code: str
    program: str = ""
    places: tuple[int, ...] = ()
    trace: int = 0


_WORDS = {
    "scenario": "of another scenario, or of other files that it names",
    "threads": "of a run by another number of threads (--jobs)",
    "reports": "of a run with other --reports",
    "code": "of another state of closlab, or of another Python",
    "program": "of another fabric program",
    "places": "of code that this system loads elsewhere",
    "trace": "of a fabric that was built in another way",
}


class Checkpoints:
    """Those of a run: the one that it goes on from, if there is one, and those that it keeps."""

    def __init__(self, experiment: Experiment, options: RunOptions, stages: Stages) -> None:
        """Find out what can be, before anything is built; from now on memory is the arena's."""
        assert options.checkpoint_s is not None
        if captured(experiment.scenario, experiment.fabric):
            raise RunError(
                "a run that keeps checkpoints cannot keep packets (--pcap, measures.pcap)",
                "Leave one of them out.",
            )
        if algorithm_file(experiment.scenario.transport) is not None:
            raise RunError(
                "a run that keeps checkpoints takes no congestion control from a file, whose "
                "memory is its own",
                "Leave out --checkpoint, or take a control of the lab's.",
            )
        self._interval_s = options.checkpoint_s
        self._stages = stages
        self._path = options.out / FILE
        self._has_warned = False
        self._origin = _Origin(_of_scenario(experiment), options.threads, options.reports, _code())
        self._found = _Found.at(self._path) if self._path.exists() else None
        self._compare("scenario", "threads", "reports", "code")
        self._at = fixed_addresses.memory_at()
        places = [
            fixed_addresses.load(library, number)
            for number, library in enumerate((runtime_library(), native.built()))
        ]
        self._origin = replace(self._origin, places=tuple(places))
        if not runtime().arena_open(self._at):
            reason = os.strerror(ctypes.get_errno())
            raise RunError(
                f"checkpoints want memory at an address of their own: {reason}",
                "Leave --checkpoint out.",
            )
        self._written = time.monotonic()

    def _compare(self, *names: str) -> None:
        """Refuse to go on from what is of something else."""
        if self._found is None:
            return
        for name in names:
            if self._found.origin[name] != _plain(getattr(self._origin, name)):
                raise RunError(
                    f"{self._path} is {_WORDS[name]}",
                    "Remove it to begin anew, or give this run a folder of its own with --out.",
                )

    def place(self, program: Path) -> None:
        """Load the fabric program where it is to be."""
        places = *self._origin.places, fixed_addresses.load(program, len(self._origin.places))
        self._origin = replace(self._origin, program=program.name, places=places)
        self._compare("program", "places")

    def begin(self) -> Moment | None:
        """All is built, and nothing has happened: the moment to go on from, if there is one."""
        self._origin = replace(self._origin, trace=runtime().arena_trace())
        self._written = time.monotonic()
        self._compare("trace")
        return self._found.moment if self._found else None

    def bring(self, moment: Moment) -> None:
        """Have everything be as it was at that moment."""
        self._stages.console.print(
            f"It goes on from {moment.now_ns / 1e6:.3f} ms, where {self._path} has it.",
            highlight=False, soft_wrap=True,
        )  # fmt: skip
        assert self._found is not None
        found, self._found = self._found, None
        with found.file as file:
            file.seek(found.memory_at)
            reach = max(found.used, runtime().arena_used())
            if not runtime().arena_reach(reach):
                raise MemoryError
            _fill(self._memory(reach), file)

    def _memory(self, size: int) -> memoryview:
        return memoryview((ctypes.c_char * size).from_address(self._at)).cast("B")

    @property
    def is_due(self) -> bool:
        """Whether it is time for the next."""
        return time.monotonic() - self._written >= self._interval_s

    def keep(self, moment: Moment) -> None:
        """Keep everything as it is now; where that cannot be, the run goes on without."""
        self._written = time.monotonic()
        beside = self._path.with_name(f"{FILE}.part")
        try:
            self._write(beside, moment)
            beside.replace(self._path)
            _settle(self._path.parent)
        except OSError as error:
            with suppress(OSError):
                beside.unlink(missing_ok=True)
            if not self._has_warned:
                self._has_warned = True
                self._stages.warn(
                    f"a checkpoint cannot be written to {beside.parent}: {error.strerror}; the run "
                    f"goes on{', and the one before it stays' if self._path.exists() else ''}"
                )

    def _write(self, path: Path, moment: Moment) -> None:
        used = runtime().arena_used()
        state = pickle.dumps(moment)
        about = {"origin": vars(self._origin), "used": used, "state": len(state)}
        mark = _mark()
        with path.open("wb", buffering=1 << 20) as file:
            for piece in (
                *(_HEAD, json.dumps(about).encode() + b"\n", state),
                *_pieces(self._memory(used)),
                _END,
            ):
                mark.update(piece)
                file.write(piece)
            file.write(mark.digest())
            file.flush()
            os.fsync(file.fileno())


class _Found(Data):
    """A checkpoint that is whole, and this user's."""

    file: IO[bytes]
    origin: dict[str, Any]
    moment: Moment
    used: int
    memory_at: int  # in the file

    @classmethod
    def at(cls, path: Path) -> _Found:
        """Read it but for the memory."""
        try:
            file = opened(path, _MAX_BYTES)
        except FileError as error:
            raise RunError(str(error), "Remove it to begin anew.") from None
        if not _is_whole(file):
            raise RunError(
                f"{path} is damaged, or no checkpoint that this user's closlab has written here",
                "Remove it to begin anew.",
            )
        file.seek(len(_HEAD))
        about = json.loads(file.readline())
        moment: Moment = pickle.loads(file.read(about["state"]))  # noqa: S301 - of this user
        return cls(file, about["origin"], moment, about["used"], file.tell())


def discard(out: Path) -> None:
    """A run that is over needs none."""
    for name in (f"{FILE}.part", FILE):
        (out / name).unlink(missing_ok=True)


def _is_whole(file: IO[bytes]) -> bool:
    """Whether it ends with the mark that all before it gives."""
    left = file.seek(0, os.SEEK_END) - _MARK_BYTES
    file.seek(0)
    if left < len(_HEAD) or file.read(len(_HEAD)) != _HEAD:
        return False
    mark = _mark()
    mark.update(_HEAD)
    left -= len(_HEAD)
    while left and (piece := file.read(min(left, 1 << 20))):
        mark.update(piece)
        left -= len(piece)
    return secrets.compare_digest(file.read(), mark.digest())


def _mark() -> hashlib.blake2b:
    """What is told of a file as it grows, and only by who has this user's key."""
    name = f"checkpoints-{digest('key of checkpoints')}.key"
    key = kept(name, lambda path: path.write_bytes(secrets.token_bytes(_KEY_BYTES)))
    return hashlib.blake2b(key=read_bytes(key, _KEY_BYTES), digest_size=_MARK_BYTES)


def _pieces(memory: memoryview) -> Iterator[bytes]:
    """All of it that is not zeros, each with its place."""
    for at in range(0, len(memory), _BLOCK):
        piece = bytes(memory[at : at + _BLOCK])
        if piece != _ZEROS[: len(piece)]:
            yield _RECORD.pack(at, len(piece))
            yield piece


def _fill(memory: memoryview, file: IO[bytes]) -> None:
    """The reverse."""
    at = 0
    while (head := file.read(_RECORD.size)) != _END:
        start, size = _RECORD.unpack(head)
        _clear(memory[at:start])
        at = start + size
        file.readinto(memory[start:at])  # type: ignore[attr-defined]
    _clear(memory[at:])


def _clear(memory: memoryview) -> None:
    """Make it zeros; what is so is left alone, for it takes no room yet."""
    for at in range(0, len(memory), _BLOCK):
        piece = memory[at : at + _BLOCK]
        if bytes(piece) != _ZEROS[: len(piece)]:
            piece[:] = _ZEROS[: len(piece)]


def _settle(folder: Path) -> None:
    """Have the disk know what a folder holds, where its file system can be told."""
    held = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(held)
    except OSError as error:
        if error.errno != errno.EINVAL:
            raise
    finally:
        os.close(held)


def _plain(value: Any) -> Any:
    """As JSON has it."""
    return list(value) if isinstance(value, tuple) else value


def _of_scenario(experiment: Experiment) -> str:
    """The scenario, and all that is sent by it, whatever files it names."""
    columns = (value for value in vars(experiment.schedule).values())
    return digest(
        experiment.scenario.model_dump_json(),
        *(bytes(each) for each in columns if isinstance(each, memoryview)),
    )


@cache
def _code() -> str:
    """Our own, what is compiled of it, and Python's."""
    files = (path for name in _SOURCES for path in sorted((ROOT / name).rglob("*.py")))
    native_code = runtime_library().name, native.built().name
    return digest(sys.version, *native_code, *(read_bytes(path, 1 << 24) for path in files))
