"""Engines: what runs an experiment.

An engine is a function ``bring_up(experiment, options, stages)``, a context in which the fabric is
up. There the hosts may be let carry out their plans, and what happened is handed back; what that
means is for `lab.results`, what is shown of it and what else is done meanwhile for who asked.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from contextlib import AbstractContextManager
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from lab.progress import Stages
from lab.results.outcome import Outcome
from lab.scenario.experiment import Experiment
from lab.scenario.live_actions import LiveAction
from params.data import Data

if TYPE_CHECKING:
    from lab.engines.mininet.machines import Machines
    from lab.engines.sim.ranks import Ranks
    from lab.results.snapshot import Snapshot

ENGINES = ("mininet", "sim")
EXACT, *ABOUT = ACCURACIES = "exact", "1%", "5%"  # of the sim engine
SWITCHES = ("soft", "bmv2")  # of the Mininet engine


class RunOptions(Data):
    """How an experiment is to be run."""

    out: Path
    engine: str = "mininet"
    switch: str = "soft"
    prompt: bool = False  # somebody will look into the fabric: whatever it can tell, it does
    dilation: int | None = None  # none: chosen by the engine, which heeds what follows only then
    leisure: int = 1  # times what it chooses
    hurry: bool = False  # as quick as two processors to themselves; not believed, it is done again
    reports: str | None = None  # keep each telemetry report, in a table of this kind
    tls: bool = False  # whether the controller and the switches prove to each other who they are
    p4: Path | None = None  # the folder of another fabric program than the one that ships
    checkpoint_s: float | None = None  # how often the simulator keeps how far it is
    accuracy: str = EXACT  # of the simulator, which may leave out what repeats
    threads: int = 1  # of the simulator; which run by itself may have all processors
    ranks: Ranks | None = None  # of the simulator: the processes that share in the run
    machines: Machines | None = None  # of Mininet: the machines that do


class Audience(Protocol):
    """Who watches a run in the simulator. What happens does not depend on it, but for wishes.

    To look may take as long as one likes: virtual time waits.
    """

    @property
    def reads_books(self) -> bool:
        """Whether it asks what switches have counted."""

    @property
    def next_ns(self) -> int:
        """When it wants to look, not before it last did."""

    def see(self, snapshot: Snapshot) -> Iterable[LiveAction]:
        """Look; what it would have done to the fabric now. A KeyboardInterrupt ends the run."""


class Up(Protocol):
    """A fabric that is up, its hosts with their plans."""

    def measure(self) -> Outcome:
        """Let the hosts carry out their plans; what happened."""

    def strays(self, end_ns: int) -> list[str]:
        """What switches then have and should not, or lack, if a run ended at that time."""


Engine = Callable[[Experiment, RunOptions, Stages], AbstractContextManager[Up]]
