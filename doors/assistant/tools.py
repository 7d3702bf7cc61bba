"""The tools: what each takes, checked before anything is done, and what it does.

A tool is a model of its arguments, whose text is what an assistant reads of it, and a function of
the desk. Arguments that no tool has are refused, as are those that it does not take.
"""

from __future__ import annotations

import threading
from collections.abc import Mapping
from dataclasses import field
from itertools import islice
from pathlib import Path
from typing import Annotated, Any, ClassVar

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from doors.assistant import work
from doors.assistant.bounds import Bounds, is_within
from doors.assistant.cell import Answer, Cell
from files import shown
from lab.errors import LabError
from lab.results.result import RESULT
from lab.scenario import explain, shipped
from params.data import Data

Stop = threading.Event
_MAX_LISTED = 500
_DEPTHS = "", "*/", "*/*/"  # where runs are looked for: it may be a large folder

Name = Annotated[str, Field(max_length=200)]
RunName = Annotated[str, Field(max_length=200, description="As run or list_runs names it.")]


class Desk(Data, frozen=False):
    """What a session has: its runs, the folder it may read, and where calls are carried out."""

    bounds: Bounds
    cell: Cell
    own: Path  # where its runs are kept
    folder: Path | None  # that it may read
    runs: dict[str, Path] = field(default_factory=dict)
    made: int = 0
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def found(self, name: str) -> Path:
        """The folder of a run."""
        if name in self.runs:
            return self.runs[name]
        if self.folder is not None and "\0" not in name and name.strip("./"):
            path = self.folder / name
            if is_within(path, self.folder) and (path / RESULT).is_file():
                return path
        known = ", ".join([*self.runs][-12:]) or "none yet"
        raise LabError(f"there is no run '{shown(name)}' in this session", f"There are: {known}.")

    def inside(self, name: str) -> Path:
        """A folder of the one that it may read."""
        if self.folder is None:
            raise LabError(
                f"{shown(name)}: this session has no folder to read from",
                "Start it as: closlab mcp --folder DIR",
            )
        path = self.folder / name
        if "\0" in name or not is_within(path, self.folder):
            raise LabError(f"{shown(name)} lies outside the folder of this session")
        if not path.is_dir():
            raise LabError(f"there is no folder {shown(name)}")
        return path

    def new(self) -> tuple[str, Path]:
        """A name and a place for one more."""
        with self._lock:
            if self.made >= self.bounds.runs:
                raise LabError(
                    f"this session has made its {self.bounds.runs} runs",
                    "Start another, or start it with --runs N.",
                )
            self.made += 1
            while (path := self.own / f"run-{self.made}").exists():
                self.made += 1  # kept by a session before
            return path.name, path

    def kept(self) -> dict[str, Path]:
        """All runs it can name: its own, and those of its folder."""
        found = dict(self.runs)
        if self.folder is not None:
            deep = (path for depth in _DEPTHS for path in self.folder.glob(f"{depth}{RESULT}"))
            for path in sorted(islice(deep, _MAX_LISTED)):
                if is_within(path, self.folder) and path.parent not in found.values():
                    found.setdefault(str(path.parent.relative_to(self.folder)), path.parent)
        return found


class Tool(BaseModel):
    """Arguments, and what is done with them."""

    model_config = ConfigDict(extra="forbid", strict=True)
    called: ClassVar[str]
    changes: ClassVar[bool] = False

    def do(self, desk: Desk, stop: Stop) -> Answer:
        """What comes of it."""
        raise NotImplementedError


class ListScenarios(Tool):
    """The scenarios that ship, and what each shows. A good place to begin."""

    called = "list_scenarios"
    containing: Name = Field("", description="Only those whose name or text has this in it.")

    def do(self, desk: Desk, stop: Stop) -> Answer:
        """List them."""
        word = self.containing.casefold()
        every = {name: shipped.about(name) for name in shipped.names()}
        found = {n: about for n, about in every.items() if word in f"{n} {about}".casefold()}
        return {"scenarios": found}


class Explain(Tool):
    """What a key of a scenario means, takes and is if not given, or what a word of the field means
    (XOFF, DCQCN, headroom). Without a word: all sections."""

    called = "explain"
    word: Name | None = Field(None, description="Such as pfc, ecn.kmin, traffic.incast or XOFF.")

    def do(self, desk: Desk, stop: Stop) -> Answer:
        """Explain it."""
        return {"told": explain.explain(self.word or None)}


class Run(Tool):
    """Run a scenario in the simulator. Says who suffered, from whom and by how much, all figures,
    and the command that gives the same at a terminal."""

    called = "run"
    changes = True
    scenario: Annotated[str, Field(max_length=200)] | dict[str, Any] = Field(
        description="The name of one that ships, a .yaml file of the folder, or a scenario's keys."
    )
    set: dict[Annotated[str, Field(max_length=200)], Any] = Field(
        default_factory=dict,
        max_length=100,
        description='Keys to change, such as {"pfc.enabled": false, "traffic.bytes": "1MB"}.',
    )
    seed: int | None = Field(None, ge=0, lt=1 << 63, description="Instead of the scenario's own.")

    def do(self, desk: Desk, stop: Stop) -> Answer:
        """Run it."""
        name, out = desk.new()
        answer = desk.cell.call(
            work.run,
            stop,
            scenario=self.scenario,
            changes=self.set,
            seed=self.seed,
            folder=desk.folder,
            out=out,
        )
        desk.runs[name] = out
        return {"run": name, **answer}


class ListRuns(Tool):
    """The runs that this session has made, and those of its folder."""

    called = "list_runs"

    def do(self, desk: Desk, stop: Stop) -> Answer:
        """List them."""
        return {"runs": sorted(desk.kept())}


class ReadRun(Tool):
    """What a run came to: its verdict and all figures."""

    called = "read_run"
    run: RunName

    def do(self, desk: Desk, stop: Stop) -> Answer:
        """Read it."""
        return desk.cell.call(work.gist_of, stop, folder=desk.found(self.run))


class Slowest(Tool):
    """The messages of a run that were slowed most, against being alone in the fabric."""

    called = "slowest_messages"
    run: RunName
    host: Name | None = Field(None, description="Only those from or to it, such as h8.")
    most: int = Field(10, ge=1, le=200)

    def do(self, desk: Desk, stop: Stop) -> Answer:
        """Find them."""
        folder = desk.found(self.run)
        return desk.cell.call(work.slowest, stop, folder=folder, host=self.host, most=self.most)


class Why(Tool):
    """Why something of a run was slow, proved: the run is made again without what may have caused
    it, and what that gives back is told in shares. Ask this for "why was h8 slow?"."""

    called = "why"
    run: RunName
    what: Name | None = Field(
        None, description="A host (h8), a message (h8-h1), a job, or run; else the worst message."
    )

    def do(self, desk: Desk, stop: Stop) -> Answer:
        """Find out."""
        folder = desk.found(self.run)
        return desk.cell.call(work.reason, stop, folder=folder, what=self.what)


class Compare(Tool):
    """Runs side by side: what differs in their settings, and a figure a row."""

    called = "compare"
    runs: list[RunName] = Field(min_length=2, max_length=12)

    def do(self, desk: Desk, stop: Stop) -> Answer:
        """Compare them."""
        folders = [desk.found(run) for run in self.runs]
        return desk.cell.call(work.compared, stop, folders=folders)


class Figure(Tool):
    """A figure of a run as SVG. Without a name: which there are."""

    called = "figure"
    run: RunName
    name: Name | None = Field(None, description="Such as queues, flows, climbing or completion.")

    def do(self, desk: Desk, stop: Stop) -> Answer:
        """Draw it."""
        return desk.cell.call(work.drawn, stop, folder=desk.found(self.run), name=self.name)


class Grade(Tool):
    """Judge a solution of one of the course's lessons: which checks pass, and of those that do not
    what is wrong and where to look. It is judged shut in, as by `closlab grade`."""

    called = "grade"
    lesson: Name = Field(description="Its number or name, such as 2 or ecn.")
    files: dict[
        Annotated[str, Field(max_length=100)], Annotated[str, Field(max_length=1 << 18)]
    ] = Field(default_factory=dict, max_length=64, description="What is handed in, by its name.")
    folder: Name | None = Field(None, description="Where it lies in the session's, in their place.")

    def do(self, desk: Desk, stop: Stop) -> Answer:
        """Judge it."""
        handed_in = None
        if self.folder is not None:
            handed_in = desk.inside(self.folder)
        if (handed_in is None) == (not self.files):
            raise LabError("grade: nothing, or two things are handed in", "Give files or a folder.")
        return desk.cell.call(
            work.graded,
            stop,
            lesson=self.lesson,
            files=self.files,
            folder=handed_in,
        )


TOOLS: Mapping[str, type[Tool]] = {
    tool.called: tool
    for tool in (
        *(ListScenarios, Explain, Run, ListRuns, ReadRun),
        *(Slowest, Why, Compare, Figure, Grade),
    )
}


def asked(name: str, arguments: Mapping[str, Any]) -> Tool:
    """A call, understood; `LabError` tells what is wrong with it."""
    try:
        return TOOLS[name].model_validate(dict(arguments))
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        where = ".".join(map(str, first["loc"]))[:80]
        takes = ", ".join(TOOLS[name].model_fields) or "nothing"
        raise LabError(f"{name}: {where}: {first['msg']}", f"It takes {takes}.") from None
    except RecursionError:
        raise LabError(f"{name}: its arguments are nested too deeply") from None
