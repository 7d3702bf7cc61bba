"""A run that a test asks for, and what it found."""

from __future__ import annotations

import json
from collections.abc import Generator, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any, TypeVar

from lab.bmwg.arithmetic import carried_by
from lab.results.result import Result
from lab.scenario import catalogue
from lab.scenario.model import Scenario
from params.data import Data
from views.report.kept import KeptFlow, KeptRun, read_result, read_run

T = TypeVar("T")
SCENARIO = "scenario.yaml"
TABLE = "offered.csv"  # messages by their times, where a test says when each is to be sent


class Case(Data):
    """A run: a scenario's keys as JSON, and the table of messages that it reads, if it does."""

    section: str  # of the draft, which asks for it first
    keys: str
    table: str = ""

    @property
    def content(self) -> dict[str, Any]:
        """The scenario's keys."""
        found: dict[str, Any] = json.loads(self.keys)
        return found

    def scenario(self, folder: Path) -> Scenario:
        """What is run; a table lies in this folder."""
        content = self.content
        if self.table:
            content["traffic"]["file"] = str(folder / TABLE)
        return catalogue.made(content, (), f"of section {self.section}")


class Found:
    """What a run found; its files are read when somebody asks."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._carried: dict[str, list[tuple[int, int]]] = {}

    @cached_property
    def run(self) -> KeptRun:
        """The run as it was kept."""
        return read_run(self.folder)

    @cached_property
    def result(self) -> Result:
        """Its figures; they are there without what happened when."""
        return (vars(self).get("run") or read_result(self.folder)).result

    @property
    def flows(self) -> tuple[KeptFlow, ...]:
        """Its messages."""
        return self.run.flows

    @property
    def is_whole(self) -> bool:
        """Whether all messages arrived."""
        return not self.result.flows.failed and not self.result.ended

    @property
    def losses(self) -> int:
        """Packets that were lost in the fabric, or sent again."""
        return self.result.drops.total + self.result.roce.retransmitted_packets

    def figure(self, key: str) -> float:
        """What stands at a place of result.json; 0 where it does not apply."""
        return self.result.figure(key) or 0.0

    def carried(self, link: str) -> list[tuple[int, int]]:
        """What a direction of a link had carried by when: (ns, bytes), from nothing at 0."""
        if link not in self._carried:
            notes = self.run.notes_of.get(link, ())
            self._carried[link] = [(0, 0), *((note.time_ns, note.bytes) for note in notes)]
        return self._carried[link]

    def gbps(self, link: str, since: float, until: float) -> float:
        """How fast a direction of a link carried frames meanwhile."""
        story = self.carried(link)
        return 8 * (carried_by(story, until) - carried_by(story, since)) / (until - since)

    def stretches(self) -> list[tuple[int, int]]:
        """Of each iteration of a collective: from its first message's post to its last's arrival.

        Iterations are told apart by steps, and by activities where a step has several of them.
        """
        spans: dict[tuple[int, str], tuple[int, int]] = {}
        for flow in self.flows:
            if flow.start_ns is None or flow.fct_ns is None:
                continue
            key, end = (flow.step, flow.what), flow.start_ns + flow.fct_ns
            first, last = spans.get(key, (flow.start_ns, end))
            spans[key] = min(first, flow.start_ns), max(last, end)
        return sorted(spans.values())


Asks = Generator[Sequence[Case], Sequence[Found], T]
"""What asks for runs, is sent what they found in their order, and comes to something."""


def together(asking: Sequence[Asks[T]]) -> Asks[list[T]]:
    """Several at once: what all of them ask for next is asked for as one."""
    done: dict[int, T] = {}
    wanted: dict[int, Sequence[Case]] = {}
    answers: Mapping[int, Sequence[Found] | None] = dict.fromkeys(range(len(asking)))
    while answers:
        wanted = {}
        for at, found in answers.items():
            try:
                wanted[at] = asking[at].send(found)  # type: ignore[arg-type]  # None begins it
            except StopIteration as stop:
                done[at] = stop.value
        if not wanted:
            break
        came = iter((yield [case for cases in wanted.values() for case in cases]))
        answers = {at: [next(came) for _ in cases] for at, cases in wanted.items()}
    return [done[at] for at in range(len(asking))]
