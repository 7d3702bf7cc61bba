"""Engines: what runs an experiment.

An engine is a function ``run(experiment, options, stages) -> Outcome``. It builds the fabric, lets
the hosts carry out their plans, and hands back what happened; what that means is for `lab.results`.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

ENGINES = ("mininet", "sim")
SWITCHES = ("soft", "bmv2")  # of the Mininet engine


@dataclass(frozen=True, slots=True)
class RunOptions:
    """How an experiment is to be run."""

    out: Path
    engine: str = "mininet"
    switch: str = "soft"
    prompt: bool = False
    is_json: bool = False  # the result is for a machine that reads our output
    dilation: int | None = None  # none: chosen by the engine
    p4: Path | None = None  # the folder of another fabric program than the one that ships
