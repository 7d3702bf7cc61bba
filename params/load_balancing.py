"""Load balancing: which of several ways a packet takes; see p4src/path.p4."""

from __future__ import annotations

from enum import Enum

from pydantic import Field

from params.section import Section
from params.units import DurationNs


class Moves(Enum):
    """What goes another way than what its flow sent before."""

    NOTHING = 0  # but where its sender says so
    FLOWLETS = 1
    PACKETS = 2


class Policy(Enum):
    """How a switch chooses among equally good ways: one line for each.

    Its name, what it moves, and what `use_NAME` of p4src/path.p4 is told (controller/tables.py).
    """

    ECMP = "ecmp"
    FLOWLET = "flowlet", Moves.FLOWLETS, "flowlet_gap"
    DLB = "dlb", Moves.FLOWLETS, "flowlet_gap", "load_window_shift"
    CONGA = "conga", Moves.FLOWLETS, "flowlet_gap", "load_window_shift", "leaf", "age"
    SPRAY = "spray", Moves.PACKETS
    ADAPTIVE = "adaptive", Moves.PACKETS, "queue_quantum_shift"
    DRILL = "drill", Moves.PACKETS
    STRUCTURED = "structured", Moves.NOTHING, "entropy_shift"

    moves: Moves
    takes: tuple[str, ...]

    def __new__(cls, name: str, moves: Moves = Moves.NOTHING, *takes: str) -> Policy:
        """A line; its value is the name."""
        made = object.__new__(cls)
        made._value_, made.moves, made.takes = name, moves, takes
        return made

    @property
    def goes_by_load(self) -> bool:
        """Whether it asks how busy links are."""
        return "load_window_shift" in self.takes


class LoadBalancing(Section):
    """How a switch chooses among equally good next hops."""

    policy: Policy = Policy.ECMP
    """Which of them a packet takes; p4src/path.p4 says what each policy does."""
    flowlet_gap_ns: DurationNs = Field(default=50_000, ge=1, le=10**9)
    """How long a flow must rest before it may take another path."""
