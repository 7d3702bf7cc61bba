"""The link level: frames sent again, and credits; see p4src/link.p4 and p4src/credit.p4."""

from __future__ import annotations

from enum import Enum

from pydantic import Field

from params.section import Section
from params.units import Size


class Replay(Enum):
    """What a link sends again of what it lost; see switch/rt/llr.h."""

    NONE = "none"
    GO_BACK_N = "go-back-n"
    SELECTIVE = "selective"

    @classmethod
    def _missing_(cls, value: object) -> Replay | None:
        """Yes is the one that costs what is lost, on a link of any length; no is none."""
        if isinstance(value, bool):
            return cls.SELECTIVE if value else cls.NONE
        return None


class LinkLevel(Section):
    """What a link does besides carrying."""

    llr: Replay = Replay.NONE
    """LLR: links between switches send again what they lost, alone (selective, which true means) or
    with all that followed it (go-back-n), which costs a round trip of the link for each."""
    llr_hosts: bool = False
    """LLR on hosts' links, too: adapters do what switches do. In the simulator alone."""
    cbfc: bool = False
    """Whether pfc.priorities go by credits, on all links, and nobody is paused: CBFC."""
    credit: Size | None = Field(default=None, ge=1, le=2**31 - 1)
    """What each of these classes has of a switch's buffer at every port; without it what the port's
    link needs."""
