"""Scheduling: which class a port serves next, and how fast; see p4src/schedule.p4."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, model_validator

from params.classes import CONTROL_PRIORITY, ByClass, ClassSet
from params.rates import Gbps, bps
from params.section import Section
from params.units import Size

Weight = Annotated[int, Field(ge=1, le=10_000)]


class Schedule(Section):
    """In which order switches serve a port's classes; adapters let theirs take turns by packet."""

    kind: Literal["strict", "dwrr", "ets"] = "strict"
    """strict: 6 first; dwrr: 0 to 5 by weight; ets: those with a weight share what others leave."""
    weights: ByClass[Weight] = {}
    """By class: its share of the link, in bytes of the wire; with dwrr 1 if not given."""
    strict: ClassSet = ClassSet()
    """Which classes go before all with a weight (ets): a reminder, as all without one do."""
    shape: ByClass[Gbps] = {}
    """By class: the most it may send, in Gb/s, on every port."""
    port_gbps: Gbps | None = None
    """The most that a port of switches may send, all classes together but for pause frames."""
    burst: Size | None = Field(default=None, ge=0, le=2**31)
    """What may exceed shape or port_gbps at once; without it two frames, 0 spaces evenly."""

    @model_validator(mode="after")
    def _check(self) -> Schedule:
        if self.kind == "strict" and (self.weights or self.strict):
            raise ValueError("weights and strict are for kind ets or dwrr: give a kind")
        if self.kind == "ets" and not self.weights:
            raise ValueError("ets needs weights, such as {0: 50, 3: 50}")
        if self.kind == "dwrr" and self.strict:
            raise ValueError("strict classes beside weighted ones are kind ets")
        both = sorted(self.strict & self.weights.keys())
        if both:
            raise ValueError(f"class {both[0]} is strict and has a weight: choose")
        return self

    @property
    def shares(self) -> dict[int, int]:
        """The weights of all classes that have one."""
        usual = dict.fromkeys(range(CONTROL_PRIORITY), 1) if self.kind == "dwrr" else {}
        return usual | self.weights

    @property
    def limits(self) -> dict[int, int]:
        """By class: the most it may send, in bits a second."""
        return {priority: bps(gbps) for priority, gbps in self.shape.items()}

    @property
    def port_limit(self) -> int:
        """The most that a port may send, in bits a second; 0: what its link carries."""
        return bps(self.port_gbps or 0)
