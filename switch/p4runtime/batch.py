"""A batch of updates on its way to the data plane.

Each update is checked against the store as the updates before it left it, changes the store at
once, and leaves operations for the data plane. The data plane carries them all out in one call and
may refuse some (a table is full); what a refused update changed in the store is then taken back
from the journal, latest first.

The data plane can do entries, members, groups and replicas all or nothing, because it can undo
them. Cells, rates and subscriptions it cannot undo, but neither can they fail once they passed the
checks here. So what must be whole is done in two calls: first what may be refused, then the rest.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Protocol

from switch import dataplane as dp
from switch.p4runtime.errors import RequestError, aborted

_ABSENT = object()

Change = tuple[int, dict[Any, Any], Any, Any]
"""An update's number, and a container, a key and what was there before."""

_CANNOT_FAIL = (
    dp.CounterWrite,
    dp.DirectCounterWrite,
    dp.MeterWrite,
    dp.DirectMeterWrite,
    dp.RegisterWrite,
    dp.ValueSetWrite,
    dp.DigestWrite,
)


class Plane(Protocol):
    """What the entities ask of a data plane."""

    def write(
        self, ops: Sequence[dp.Op], *, all_or_nothing: bool = False
    ) -> list[dp.OpError | None]:
        """Carry out operations in order."""

    def pack(self, op: dp.Op) -> bytes | dp.OpError:
        """Put an operation into the words of every data plane that runs the same program."""

    def write_packed(
        self, ops: Sequence[dp.Op], packed: Sequence[bytes | dp.OpError]
    ) -> list[dp.OpError | None]:
        """Carry out operations that were packed before."""

    def write_many(
        self, packed: bytes, count: int, orders: Iterable[dp.TableWrite]
    ) -> dp.OpError | None:
        """Carry out so many operations in one string; return what was refused first."""

    def entries(self, table: int) -> list[dp.EntryState]:
        """Return every entry of a table."""

    def entry(self, key: dp.Entry) -> dp.EntryState | None:
        """Return one entry."""

    def default_entry(self, table: int) -> dp.EntryState:
        """Return a table's default."""

    def read_counter(self, counter: int, index: int | None = None) -> list[dp.CounterValue]:
        """Return cells of a counter."""

    def read_meter(self, meter: int, index: int | None = None) -> list[dp.MeterRates | None]:
        """Return cells of a meter."""

    def read_register(self, register: int, index: int | None = None) -> list[int]:
        """Return cells of a register."""


class Batch:
    """The operations of a batch, and the way back."""

    def __init__(self) -> None:
        self.ops: list[dp.Op] = []
        self._ends: list[int] = []
        self._journal: list[Change] = []

    def put(self, container: dict[Any, Any], key: Any, value: Any) -> None:
        """Set an item of the store."""
        self._journal.append((len(self._ends), container, key, container.get(key, _ABSENT)))
        container[key] = value

    def drop(self, container: dict[Any, Any], key: Any) -> None:
        """Remove an item of the store."""
        self._journal.append((len(self._ends), container, key, container.pop(key)))

    def close_update(self) -> None:
        """End an update that passed its checks."""
        self._ends.append(len(self.ops))

    def fail_update(self) -> None:
        """End an update that did not, and undo what it did."""
        del self.ops[self._ends[-1] if self._ends else 0 :]
        while self._journal and self._journal[-1][0] == len(self._ends):
            _take_back(self._journal.pop())
        self._ends.append(len(self.ops))

    def undo(self) -> None:
        """Take back the whole batch from the store."""
        self._undo(set(range(len(self._ends))))

    def apply(self, plane: Plane) -> dict[int, RequestError]:
        """Carry out each update on its own; return those the data plane refused."""
        refused: dict[int, RequestError] = {}
        for first, last in self._runs():
            start = self._ends[first - 1] if first else 0
            ops = self.ops[start : self._ends[last - 1]]
            if not ops:
                continue
            if last - first == 1 and len(ops) > 1:
                error = _cause(_write_whole(plane, ops))
                if error is not None:
                    refused[first] = error
                continue
            answers = plane.write(ops)
            owners = (i for i in range(first, last) if self._length(i))
            for owner, answer in zip(owners, answers, strict=True):
                if answer is not None:
                    refused[owner] = RequestError(answer.code, answer.message)
        if refused:
            self._undo(set(refused))
        return refused

    def apply_atomically(self, plane: Plane) -> dict[int, RequestError]:
        """Carry out the batch whole or not at all; in the latter case every update has an error."""
        answers = _write_whole(plane, self.ops)
        if all(answer is None for answer in answers):
            return {}
        self.undo()
        errors = {}
        for index in range(len(self._ends)):
            start = self._ends[index - 1] if index else 0
            cause = _cause(answers[start : self._ends[index]])
            errors[index] = cause or aborted("undone: another update of this batch failed")
        return errors

    @property
    def is_one_step(self) -> bool:
        """Tell whether the data plane can do the batch between two packets, whole or not at all."""
        return len({isinstance(op, _CANNOT_FAIL) for op in self.ops}) <= 1

    def _length(self, update: int) -> int:
        return self._ends[update] - (self._ends[update - 1] if update else 0)

    def _runs(self) -> list[tuple[int, int]]:
        """Split the updates: those of several operations stand alone, the rest go together."""
        runs = []
        first = 0
        for index in range(len(self._ends)):
            if self._length(index) > 1:
                if first < index:
                    runs.append((first, index))
                runs.append((index, index + 1))
                first = index + 1
        if first < len(self._ends):
            runs.append((first, len(self._ends)))
        return runs

    def _undo(self, updates: set[int]) -> None:
        for change in reversed(self._journal):
            if change[0] in updates:
                _take_back(change)
        self._journal = [change for change in self._journal if change[0] not in updates]


def _take_back(change: Change) -> None:
    _, container, key, old = change
    if old is _ABSENT:
        container.pop(key, None)
    else:
        container[key] = old


def _write_whole(plane: Plane, ops: Sequence[dp.Op]) -> list[dp.OpError | None]:
    """Carry out operations whole or not at all; return an answer each."""
    answers: list[dp.OpError | None] = [None] * len(ops)
    may_fail = [i for i, op in enumerate(ops) if not isinstance(op, _CANNOT_FAIL)]
    cannot = [i for i, op in enumerate(ops) if isinstance(op, _CANNOT_FAIL)]
    if may_fail:
        found = plane.write([ops[i] for i in may_fail], all_or_nothing=True)
        if any(found):
            aborted_too = dp.OpError(dp.Code.ABORTED, "another operation of the batch failed")
            answers = [aborted_too] * len(ops)
            for i, answer in zip(may_fail, found, strict=True):
                answers[i] = answer or aborted_too
            return answers
    if cannot:
        for answer in plane.write([ops[i] for i in cannot]):
            # The batch itself may have deleted the entry whose counter it set before.
            assert answer is None or answer.code == dp.Code.NOT_FOUND, answer
    return answers


def _cause(answers: Sequence[dp.OpError | None]) -> RequestError | None:
    """Return the refusal that undid the others, if there is one."""
    refusals = [answer for answer in answers if answer is not None]
    for answer in refusals:
        if answer.code != dp.Code.ABORTED:
            return RequestError(answer.code, answer.message)
    return RequestError(refusals[0].code, refusals[0].message) if refusals else None
