"""What is said of a submission: verdicts, and the grade that they make."""

from __future__ import annotations

from enum import Enum

from params.data import Data

NOT_JUDGED = "because of what is said above"
MEMORY_BYTES = 3 << 30  # that a submission may take
TOO_MUCH_MEMORY = (
    f"it takes more than {MEMORY_BYTES >> 30} GiB of memory",
    "is there a table, register, number or macro in it that is larger than the lesson needs?",
)

_MAX_LINES = 30
_BEGINS, _ENDS = 200, 100  # characters of a long line: a quotation is in its middle


def shown(words: str) -> str:
    """What is said of a submission, which may quote it: as much as helps, and nothing but text."""
    lines = words.split("\n")
    cut = [
        line if len(line) <= _BEGINS + _ENDS else f"{line[:_BEGINS]}...{line[-_ENDS:]}"
        for line in lines
    ]
    more = ["..."] * (len(lines) > _MAX_LINES)
    return "\n".join((*map(_printable, cut[:_MAX_LINES]), *more))


def _printable(line: str) -> str:
    """Control characters, which would steer a terminal, as they are written in Python."""
    return "".join(c if c.isprintable() or c == "\t" else repr(c)[1:-1] for c in line)


class Wrong(Exception):  # noqa: N818 - of a submission, not of the program
    """A check's finding: what is wrong, and where to look; never how to do it."""

    def __init__(self, what: str, where: str) -> None:
        super().__init__(what)
        self.what = what
        self.where = where


class AsAbove(Wrong):
    """What kept an earlier check from judging keeps this one too."""


class State(Enum):
    """How a check went."""

    PASSED = "passed"
    WRONG = "wrong"
    NOT_JUDGED = "not judged"


class Judged(Data):
    """How a submission did at a check."""

    says: str
    points: int
    state: State
    what: str = ""
    where: str = ""
    seconds: float = 0.0

    @property
    def earned(self) -> int:
        """Points."""
        return self.points if self.state is State.PASSED else 0


class Grade(Data):
    """All verdicts on a submission."""

    lesson: str
    title: str
    verdicts: tuple[Judged, ...]

    @property
    def score(self) -> int:
        """Points earned."""
        return sum(verdict.earned for verdict in self.verdicts)

    @property
    def most(self) -> int:
        """Points there are."""
        return sum(verdict.points for verdict in self.verdicts)

    @property
    def passed(self) -> bool:
        """Whether nothing is wrong."""
        return all(verdict.state is State.PASSED for verdict in self.verdicts)
