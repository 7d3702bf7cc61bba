"""A claim: what is said, how it is tested, and who judges."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Iterable, Mapping
from dataclasses import field
from enum import Enum

from lab.results.result import Result
from params.data import Data
from traffic.jobs import SimpleJob
from views.report.svg import Drawing

UNSOURCED = "No source found"


class Verdict(Enum):
    """How a claim stands."""

    HOLDS = "holds"
    SOMETIMES = "holds under conditions"
    FAILS = "does not hold"

    @classmethod
    def of(cls, agrees: Iterable[bool]) -> Verdict:
        """By how many of what was tried agree with a claim: all, some or none."""
        each = list(agrees)
        return cls.HOLDS if all(each) else cls.SOMETIMES if any(each) else cls.FAILS


class Case(Data):
    """One run of a claim's experiment."""

    scenario: str
    changes: tuple[str, ...] = ()

    @property
    def command(self) -> str:
        """What repeats it."""
        words = ["closlab", "run", self.scenario, "--engine", "sim"]
        for change in self.changes:
            words += ["--set", change]
        return shlex.join(words)


class Found(Data):
    """What a run found, as far as claims ask."""

    is_whole: bool = True
    duration_ns: int = 0
    jct_ns: int | None = None
    utilisation: float | None = None  # of a job that did not end: what it can be at most
    busbw_gbps: float | None = None
    fct_max_ns: float | None = None
    part_fct_ns: Mapping[str, float] = field(default_factory=dict)  # the longest of each part
    drops: int = 0
    paused_ns: int = 0
    energy_j: float = 0.0
    links: Mapping[str, int] = field(default_factory=dict)  # bytes, by direction

    @classmethod
    def of(cls, result: Result) -> Found:
        """What a claim may ask of a result."""
        fct = result.flows.fct_ns
        return cls(
            is_whole=not result.flows.failed and not result.ended,
            duration_ns=result.duration_ns,
            jct_ns=result.jct_ns,
            utilisation=_utilisation(result),
            busbw_gbps=result.collective.busbw_gbps if result.collective else None,
            fct_max_ns=fct.max if fct else None,
            part_fct_ns={
                name: part.fct_ns.max for name, part in (result.parts or {}).items() if part.fct_ns
            },
            drops=result.drops.total,
            paused_ns=result.pfc.paused_ns,
            energy_j=result.energy.total_j if result.energy else 0.0,
            links={use.name: use.bytes for use in result.links},
        )


def _utilisation(result: Result) -> float | None:
    """The share of its time a GPU computed; at most, if the job did not end."""
    traffic = result.scenario.traffic
    if result.gpu_utilisation is None and result.ended and isinstance(traffic, SimpleJob):
        return min(1.0, traffic.steps * traffic.compute_ns / result.duration_ns)
    return result.gpu_utilisation


class Judgement(Data):
    """What the runs say of a claim."""

    verdict: Verdict
    finding: str  # what was found, and under which conditions
    figures: Mapping[str, float]  # the numbers it rests on, by name
    drawing: Drawing


class Claim(Data):
    """Something that is said."""

    key: str
    words: str
    source: str  # who says so, to be looked up; or that nobody was found who does
    experiment: str
    cases: Mapping[str, Case]  # by a name the judge knows them by
    judge: Callable[[Mapping[str, Found]], Judgement]
