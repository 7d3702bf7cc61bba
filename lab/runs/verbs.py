"""What programs of RDMA find on a host: libraries that are an adapter, and the fabric's clock.

Such a program is linked with libibverbs.so.1, and finds the lab's in its place (traffic/verbs) by
LD_LIBRARY_PATH. Its clocks are the fabric's, so that what it measures is the fabric's too.
"""

from __future__ import annotations

import math
import re
import shutil
import time
from collections.abc import Mapping, Sequence
from dataclasses import field
from pathlib import Path

from controller.settings import SettingsError
from lab.engines.mininet.programs import INTERFACE
from lab.errors import LabError
from lab.machine.native_host import fabric_clock_library, verbs_libraries
from lab.runs.adapter_files import found_by, lay_out
from lab.scenario.controls import values_of
from lab.scenario.experiment import Experiment
from lab.scenario.model import Scenario
from params.data import Data
from traffic.congestion import CONTROLS, NONE

__all__ = ["Adapter", "VerbsDoor", "bytes_of_pair", "uses_verbs_library"]

# Or one that loads it when it is asked for.
_LIBRARIES = (b"libibverbs.so.1", b"libuct.so.0", b"libucp.so.0", b"libfabric.so.1")
_ELF = b"\x7fELF"
_PORT = 18515  # at which they meet, if they are not told
# Programs of which one waits, and another is given its name: perftest's, libibverbs' examples, and
# those of UCX and libfabric.
_PAIRS = re.compile(
    r"(ib_(write|read|send|atomic)_(bw|lat)|ibv_\w+_pingpong|ucx_perftest|fi_pingpong)$"
)


_BANDWIDTH = re.compile(r"ib_(write|read|send)_bw$")  # which send so many bytes, or these
_MESSAGES, _MESSAGE_BYTES = 5000, 65536


def bytes_of_pair(words: Sequence[str]) -> int | None:
    """What a client of perftest's passes on one way, if it is told how much that is to be."""
    args = {*words}
    if _BANDWIDTH.match(Path(words[0]).name) is None or args & {"-a", "--all", "-D", "--duration"}:
        return None
    numbers = [
        _number(words, names, otherwise)
        for names, otherwise in (
            (("-n", "--iters"), _MESSAGES),
            (("-s", "--size"), _MESSAGE_BYTES),
            (("-q", "--qp"), 1),
        )
    ]
    return math.prod(numbers)


def _number(words: Sequence[str], names: tuple[str, str], otherwise: int) -> int:
    """What follows an option; what is no number is for the program to refuse."""
    for word, after in zip(words, (*words[1:], ""), strict=True):
        name, equals, text = word.partition("=")
        if name in names:
            number = text if equals else after
            return int(number) if number.isdecimal() else otherwise
    return otherwise


def uses_verbs_library(program: str) -> bool:
    """Whether a program is linked for verbs; of what a script starts nothing is known."""
    found = shutil.which(program)
    if found is None:
        return False
    text = Path(found).read_bytes()
    return text.startswith(_ELF) and any(name in text for name in _LIBRARIES)


class Adapter(Data):
    """What a host's adapter is told."""

    bps: int
    dscp: int
    control: str = ""  # of congestion, with its parameters; none: as fast as the link


class VerbsDoor(Data):
    """The adapter of programs that use verbs."""

    has_fabric_clock: bool = True
    monotonic_ns: int = field(default_factory=time.monotonic_ns)  # both at the same instant
    wall_ns: int = field(default_factory=time.time_ns)

    def adapters(self, scenario: Scenario | None, priority: int | None) -> dict[str, Adapter]:
        """By host, what adapters are told of links and classes."""
        if scenario is None:
            raise LabError("adapters of verbs need to know the fabric's scenario")
        experiment = Experiment.of(scenario)
        lossless = list(experiment.settings.lossless)
        chosen = priority if priority is not None else min(lossless, default=0)
        try:
            dscp = experiment.settings.dscp_of(chosen)
        except SettingsError as error:
            raise LabError(str(error)) from None
        control = _control(scenario)
        return {
            host.name: Adapter(experiment.cable(link).rate_bps, dscp, control)
            for host, link in experiment.host_links.items()
        }

    def starts(
        self, words: Sequence[str], hosts: Sequence[str], rank: int
    ) -> list[tuple[str, ...]]:
        """What starts a rank: of pairs whose last word is the first host, that one serves.

        A server of these programs has one client. So for each there is one, at ports in a row.
        """
        if not _is_pair(words, hosts):
            return [(*words,)]
        *own, first = words
        if len(hosts) == 2:
            return [(*own, first)] if rank else [(*own,)]
        own, port = _without_port(own)
        if rank:
            return [(*own, "-p", str(port + rank - 1), first)]
        return [(*own, "-p", str(port + client)) for client in range(len(hosts) - 1)]

    def together(
        self, words: Sequence[str], hosts: Sequence[str], rank: int, folder: Path
    ) -> dict[str, str]:
        """What lets the clients of several pairs begin at once; a folder is where they meet."""
        clients = len(hosts) - 1
        if not rank or clients == 1 or not _is_pair(words, hosts):
            return {}
        meet = folder / f"meet-{hosts[0]}"
        meet.mkdir(exist_ok=True)
        return {"CLOSLAB_VERBS_TOGETHER": f"{meet} {clients} {rank}"}

    def found_by(
        self, words: Sequence[str], host: str, adapter: Adapter, folder: Path
    ) -> tuple[str, ...]:
        """A command that finds the adapter of a host where the kernel would show it."""
        lay_out(folder / host, adapter.bps / 1e9)
        return found_by(words, folder / host)

    def environment(
        self, base: Mapping[str, str], adapter: Adapter, folder: Path
    ) -> dict[str, str]:
        """What a program is told; a folder gets the libraries, by the names it looks for."""
        for name, path in verbs_libraries().items():
            link = folder / name
            if not link.is_symlink():
                link.symlink_to(path)
        environment = {
            **base,
            "CLOSLAB_VERBS_INTERFACE": INTERFACE,
            "CLOSLAB_VERBS_DSCP": str(adapter.dscp),
            "CLOSLAB_LINK_BPS": str(adapter.bps),
            "CLOSLAB_VERBS_CC": adapter.control,
            "LD_LIBRARY_PATH": _joined(str(folder), base.get("LD_LIBRARY_PATH")),
        }
        if self.has_fabric_clock:
            environment["CLOSLAB_FABRIC_CLOCK"] = f"{self.monotonic_ns} {self.wall_ns}"
            environment["LD_PRELOAD"] = _joined(str(fabric_clock_library()), base.get("LD_PRELOAD"))
        return environment


def _is_pair(words: Sequence[str], hosts: Sequence[str]) -> bool:
    return _PAIRS.match(Path(words[0]).name) is not None and words[-1] == hosts[0]


def _without_port(words: Sequence[str]) -> tuple[list[str], int]:
    """Words without those that name a port, and which they name."""
    kept, port, rest = [], _PORT, iter(words)
    for word in rest:
        if word in ("-p", "--port"):
            text = next(rest, "")
        elif word.startswith("--port="):
            text = word.partition("=")[2]
        else:
            kept.append(word)
            continue
        if not text.isdecimal():
            raise LabError(f"'{text}' after {word.partition('=')[0]} is no port")
        port = int(text)
    return kept, port


def _control(scenario: Scenario) -> str:
    """The congestion control of a scenario's queue pairs, if an adapter of verbs has it."""
    name = scenario.transport.cc
    if name == NONE or not CONTROLS[name].hears_marks:
        return ""
    given = values_of(scenario.transport, name)
    return " ".join((name, *(f"{key.replace('_', '-')}={value}" for key, value in given.items())))


def _joined(first: str, others: str | None) -> str:
    return f"{first}:{others}" if others else first
