"""What programs of RDMA find on a host: libraries that are an adapter, and the fabric's clock.

Such a program is linked with libibverbs.so.1, and finds the lab's in its place (traffic/verbs) by
LD_LIBRARY_PATH. Its clocks are the fabric's, so that what it measures is the fabric's too.
"""

from __future__ import annotations

import re
import shutil
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from controller.settings import SettingsError
from lab.engines.mininet.programs import INTERFACE
from lab.errors import LabError
from lab.machine.native_host import fabric_clock_library, verbs_libraries
from lab.scenario.controls import values_of
from lab.scenario.experiment import Experiment
from lab.scenario.model import Scenario
from traffic.congestion import CONTROLS, NONE

__all__ = ["Adapter", "VerbsDoor", "uses_verbs_library"]

_LIBRARY = b"libibverbs.so.1"
_ELF = b"\x7fELF"
# Programs of which one waits, and another is given its name: perftest's, and libibverbs' examples.
_PAIRS = re.compile(r"(ib_(write|read|send|atomic)_(bw|lat)|ibv_\w+_pingpong)$")


def uses_verbs_library(program: str) -> bool:
    """Whether a program is linked with libibverbs; of what a script starts nothing is known."""
    found = shutil.which(program)
    if found is None:
        return False
    text = Path(found).read_bytes()
    return text.startswith(_ELF) and _LIBRARY in text


@dataclass(frozen=True, slots=True)
class Adapter:
    """What a host's adapter is told."""

    bps: int
    dscp: int
    control: str = ""  # of congestion, with its parameters; none: as fast as the link


@dataclass(frozen=True)
class VerbsDoor:
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

    def words(self, words: Sequence[str], hosts: Sequence[str], rank: int) -> Sequence[str]:
        """What starts a rank: of a pair whose last word is the first host, that one serves."""
        is_pair = _PAIRS.match(Path(words[0]).name) and words[-1] == hosts[0]
        return words[:-1] if is_pair and rank == 0 else words

    def environment(
        self, base: Mapping[str, str], adapter: Adapter, folder: Path
    ) -> dict[str, str]:
        """What a program is told; a folder gets the libraries, by the names it looks for."""
        for name, path in verbs_libraries().items():
            link = folder / name
            if not link.is_symlink():
                link.symlink_to(path)
        told = {
            **base,
            "CLOSLAB_VERBS_INTERFACE": INTERFACE,
            "CLOSLAB_VERBS_DSCP": str(adapter.dscp),
            "CLOSLAB_LINK_BPS": str(adapter.bps),
            "CLOSLAB_VERBS_CC": adapter.control,
            "LD_LIBRARY_PATH": _joined(str(folder), base.get("LD_LIBRARY_PATH")),
        }
        if self.has_fabric_clock:
            told["CLOSLAB_FABRIC_CLOCK"] = f"{self.monotonic_ns} {self.wall_ns}"
            told["LD_PRELOAD"] = _joined(str(fabric_clock_library()), base.get("LD_PRELOAD"))
        return told


def _control(scenario: Scenario) -> str:
    """The congestion control of a scenario's queue pairs, if an adapter of verbs has it."""
    name = scenario.transport.cc
    if name == NONE or not CONTROLS[name].hears_marks:
        return ""
    given = values_of(scenario.transport, name)
    return " ".join((name, *(f"{key.replace('_', '-')}={value}" for key, value in given.items())))


def _joined(first: str, others: str | None) -> str:
    return f"{first}:{others}" if others else first
