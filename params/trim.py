"""Trimming: what becomes of packets for which there is no room; see p4src/trim.p4."""

from __future__ import annotations

from pydantic import Field

from params.classes import ClassSet, Dscp, Priority
from params.section import Section
from params.units import MAX_MEMORY, Size


class Trim(Section):
    """Trimming: where there is no room for a packet, its headers go on alone and say so."""

    enabled: bool = False
    """Whether switches cut what they would drop; only classes that are not paused are cut."""
    classes: ClassSet = ClassSet((3,))
    """The classes whose packets are cut."""
    size: Size = Field(default=64, ge=58, le=1024)
    """What is left of a frame, from Ethernet on: at least IP, UDP and 16 bytes (SONiC: 128)."""
    priority: Priority = 5
    """The class of what was cut; under schedule it has a share like any other."""
    dscp: Dscp = 41
    """The DSCP of what was cut,"""
    last_hop_dscp: Dscp = 42
    """and of what was cut at the port to its receiver, which more ways would not have helped."""
    reserved: Size = Field(default=20_000, ge=0, le=MAX_MEMORY)
    """What cut packets have to themselves at every port; where that is full nothing is cut."""
    threshold: Size | None = Field(default=None, ge=1, le=MAX_MEMORY)
    """The queue above which packets are cut; without it what the buffer grants the class."""

    @property
    def cut(self) -> ClassSet:
        """The classes whose packets are cut, if any are."""
        return self.classes if self.enabled else ClassSet()

    @property
    def by_dscp(self) -> dict[int, int]:
        """The class of what was cut, by its DSCPs."""
        return dict.fromkeys((self.dscp, self.last_hop_dscp), self.priority) if self.enabled else {}
