"""Marking: the curve along which a queue's packets are marked (ECN) or dropped (WRED)."""

from __future__ import annotations

from pydantic import Field, model_validator

from params.classes import ByClass, ClassSet
from params.section import Section
from params.units import MAX_MEMORY, DurationNs, Size

_STEEPEST = 0xFFFFFFFF


def gradient(kmin: int, kmax: int, pmax: float) -> int:
    """The slope of a curve as p4src/mark.p4 takes it; a step has none."""
    return min(int(pmax * 2**32 / (kmax - kmin)), _STEEPEST) if kmax > kmin else 0


class Marking(Section):
    """A curve: none below kmin, then more and more up to pmax, all from kmax."""

    kmin: Size = Field(default=100_000, ge=0, le=MAX_MEMORY)
    """The queue from which on packets may be marked."""
    kmax: Size = Field(default=400_000, ge=1, le=MAX_MEMORY)
    """The queue from which on all of them are; the same as kmin makes a step, as for DCTCP."""
    pmax: float = Field(default=0.2, ge=0, le=1)
    """The probability of a mark just below kmax; it rises from 0 at kmin."""

    @model_validator(mode="after")
    def _rises(self) -> Marking:
        wide = self.kmax - self.kmin
        if wide < 0:
            raise ValueError(
                f"kmin is {self.kmin:,} bytes, kmax {self.kmax:,}; kmin must not be more"
            )
        if wide and self.pmax and not gradient(self.kmin, self.kmax, self.pmax):
            raise ValueError(
                f"pmax is {self.pmax:g} over {wide:,} bytes, as good as 0: give it 0, or at least "
                f"{wide / 2**32:.2g}, or a kmin nearer to kmax"
            )
        return self


class ClassMarking(Marking):
    """Marking in one class."""

    drop: bool = False
    """Whether packets that cannot be marked are dropped where others are (WRED)."""


class _CanMark(Section):
    enabled: bool = True
    """Whether switches mark; only transport.cc does something about it."""


class Ecn(Marking, _CanMark):
    """Marking, by the length of the queue a packet leaves."""

    fast_cnp: bool = False
    """Whether a switch tells senders itself (fast CNP) where it would mark; transport.cc=dcqcn."""
    fast_cnp_ns: DurationNs = Field(default=50_000, ge=1, le=10**9)
    """The least time between two fast CNPs of a switch to the sender of one flow."""
    classes: ByClass[ClassMarking] = {}
    """By class: kmin, kmax, pmax and drop; without it lossless classes have these, others none."""

    def curves(self, lossless: ClassSet) -> dict[int, Marking]:
        """The curve of each class that is marked."""
        own = {priority: self.classes[priority] for priority in sorted(self.classes)}
        return {**dict.fromkeys(lossless, self), **own} if self.enabled else {}
