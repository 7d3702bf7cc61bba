"""What a scenario asks: its report answers that before anything else."""

from __future__ import annotations

from enum import StrEnum


class Question(StrEnum):
    """A question, by the word that scenarios have for it."""

    SUFFERS = "suffers"
    WAITS = "waits"
    COSTS = "costs"
    SPEED = "speed"
    LOSSLESS = "lossless"
    BALANCE = "balance"

    @property
    def words(self) -> str:
        """As a report asks it."""
        return _WORDS[self]


_WORDS = {
    Question.SUFFERS: "Who suffers, and because of whom?",
    Question.WAITS: "Who waits for whom?",
    Question.COSTS: "What does it cost?",
    Question.SPEED: "How fast is it?",
    Question.LOSSLESS: "Is anything lost?",
    Question.BALANCE: "Are all ways used alike?",
}
