"""Why a message, a job or a run was slow, as it is kept: ``causes.json``.

The time it lost is told as shares of roots: what gave how much of it back
when it was taken away from the same run, one after the other. So the shares add up. The chain is
what was seen on the way: who stood still, because of whom.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Literal

from pydantic import Field, ValidationError

from files import FileError, parse_plain_json, read_text
from lab.results.part import Part
from lab.results.result import CAUSES
from params.quantity import duration, energy, number, percent

LATER = 1.15  # times the median work of a host, from which on others wait for it
MAX_SHARES = 4
RUN = "run"  # all of it, where one asks about that
SCHEMA = "closlab.causes/1"
_MAX_BYTES = 1 << 26
_HARDLY = 0.02  # of the time alone: so little lost is nothing
_MIN = 0.01  # of the time lost: less that nothing gave back is not named

RootKind = Literal[
    "fault", "loss", "slow link", "straggler", "messages", "setting"
]  # fmt: skip


class Root(Part):
    """Something without which a run is another."""

    kind: RootKind
    what: str  # in words, as in "without ..."
    keys: tuple[str, ...] = ()  # of the scenario, by which it is taken away
    begins_ns: int = 0


class Share(Part):
    """What it comes to when roots are gone, besides those of the shares before."""

    roots: tuple[Root, ...]  # of several each would be enough to hold it up
    took_ns: int | None = None  # without them; none: it does not end then either
    gained_ns: int
    share: float  # of the time lost

    @property
    def named(self) -> str:
        """What its roots are."""
        what = " and ".join(root.what for root in self.roots)
        return what if len(self.roots) == 1 else f"{what}, each of which holds it up alone"


class Held(Part):
    """A direction of a link that stood still while the message was under way."""

    link: str
    stood_ns: int
    share: float  # of the time of the one before, or of the message


class Why(Part):
    """A message, a job or a whole run, and what it was held up by."""

    what: str  # SRC-DST, job NAME, or RUN
    src: str = ""  # of a message
    dst: str = ""
    start_ns: int
    took_ns: int | None = None  # in the simulator; none: it did not come to its end
    alone_ns: int = Field(ge=1)  # in an empty fabric; else with all gone that can be taken away
    lost_ns: int = Field(ge=0)
    measured_ns: int | None = None  # by the run itself, where that was no simulation
    shares: tuple[Share, ...] = Field(default=(), max_length=MAX_SHARES)
    rest_ns: int = 0  # nothing that could be taken away gave it back
    chain: tuple[Held, ...] = ()
    idle_w: float | None = Field(default=None, ge=0)  # of all there is, if more than a message
    tried: int = 0  # runs that were made to find out

    def sentences(self) -> Iterator[str]:
        """What came of it in sentences, the main thing first."""
        yield f"{self._begun()}."
        if self.measured_ns is not None:
            yield (
                "That is in the simulator, which can take things away; the run itself measured "
                f"{duration(self.measured_ns)}."
            )
        more = ""
        for share in self.shares:
            then = "does not arrive either"
            if share.took_ns is not None:
                then = f"takes {duration(share.took_ns)}"
            lost = f"{percent(share.share)} of the time lost"
            yield f"{lost}: {share.named}. Without that{more} it {then}."
            more = " as well"
        if self.rest_ns > _MIN * self.lost_ns > 0 and self.lost_ns > _HARDLY * self.alone_ns:
            what = f"{percent(self.rest_ns / self.lost_ns)} of it" if more else "that"
            yield f"Nothing that could be taken away gave {what} back."
        if self.idle_w and self.lost_ns > _HARDLY * self.alone_ns:
            yield (
                "In the time lost the fabric and its adapters take "
                f"{energy(self.idle_w * self.lost_ns / 1e9)}, even where nothing moves."
            )
        if self.chain:
            yield f"Meanwhile {self._chained()}."

    def _begun(self) -> str:
        """How long it took, and might have."""
        who = f"{self.src}'s message to {self.dst}" if self.src else f"The {self.what}"
        took = "did not come to its end"
        if self.took_ns is not None:
            took = f"took {duration(self.took_ns)}"
        if not self.src:
            return f"{who} {took}; without all that can be taken away {duration(self.alone_ns)}"
        if self.took_ns is None:
            return f"{who} did not arrive; alone it takes {duration(self.alone_ns)}"
        if self.lost_ns <= _HARDLY * self.alone_ns:
            return f"{who} {took}, as long as alone"
        return f"{who} {took}, {number(self.took_ns / self.alone_ns)} times as long as alone"

    def _chained(self) -> str:
        """Who stood still because of whom."""
        first, *others = self.chain
        stood = f"{duration(first.stood_ns)}, {percent(first.share)} of its time"
        because = (f"; {percent(held.share)} of that because {held.link} did" for held in others)
        return f"{first.link} stood still for {stood}{''.join(because)}"

    def __str__(self) -> str:
        """All of it."""
        return " ".join(self.sentences())


def write_causes(folder: Path, found: Why) -> Path:
    """Keep it beside those that were asked for before; of the same message the last is kept."""
    others = [each for each in read_causes(folder) if each.what != found.what]
    path = folder / CAUSES
    messages = [each.model_dump(mode="json", exclude_none=True) for each in (*others, found)]
    path.write_text(json.dumps({"schema": SCHEMA, "found": messages}, indent=2) + "\n")
    return path


def read_causes(folder: Path) -> Sequence[Why]:
    """What is kept of a run; nothing where nobody asked, or the file is of another version."""
    path = folder / CAUSES
    if not path.exists():
        return ()
    try:
        found = parse_plain_json(read_text(path, _MAX_BYTES))
        if not isinstance(found, dict) or found.get("schema") != SCHEMA:
            return ()
        return tuple(Why.model_validate(each) for each in found["found"])
    except (FileError, ValueError, ValidationError, KeyError, TypeError):
        return ()
