"""Load balancing: which of several ways a packet takes; see p4src/path.p4."""

from __future__ import annotations

from enum import Enum

from pydantic import Field

from params.section import Section
from params.units import DurationNs


class Policy(Enum):
    """How a switch chooses among equally good ways; see p4src/path.p4."""

    ECMP = "ecmp"
    FLOWLET = "flowlet"
    DLB = "dlb"
    CONGA = "conga"
    SPRAY = "spray"
    ADAPTIVE = "adaptive"
    DRILL = "drill"
    STRUCTURED = "structured"


class LoadBalancing(Section):
    """How a switch chooses among equally good next hops."""

    policy: Policy = Policy.ECMP
    """ecmp, flowlet, dlb, conga, spray, adaptive, drill or structured: p4src/path.p4 says what each
    does."""
    flowlet_gap_ns: DurationNs = Field(default=50_000, ge=1, le=10**9)
    """How long a flow must rest before it may take another path."""
