"""Collectives that switches carry out: every member gives its part, and gets the result.

Nothing is said of what is sent: that is between the members' adapters and the switches
(`traffic/core/inc.h`, `p4src/inc.p4`). Here is what both sides must agree on.
"""

from __future__ import annotations

from traffic.collectives.collective import Collective, Even
from traffic.collectives.draft import Draft

CHUNK_BYTES = 1024  # what a packet carries, 256 numbers
_SUMS = ("all-reduce", "reduce-scatter")


def layout(what: Collective) -> Even:
    """All of it at once."""
    return Even(max(1, what.bytes), 1)


def in_network(draft: Draft) -> None:
    """Everybody takes part."""
    for member in range(draft.size):
        draft.network(member)


def chunks_of(what: Collective, ahead: int = 0) -> int:
    """How many chunks a collective takes (`inc_chunks` of the core).

    Where floats are added up, there are up to `ahead` more, which tell exponents first.
    """
    if what.op == "barrier":
        return 1
    if what.op in ("reduce-scatter", "all-gather"):
        data = what.size * _chunks(-(-what.bytes // what.size))
    else:
        data = _chunks(what.bytes)
    return data + (min(ahead, data) if what.op in _SUMS else 0)


def _chunks(size: int) -> int:
    return -(-size // CHUNK_BYTES)
