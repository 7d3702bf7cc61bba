"""A published result as its file tells it: `reproduce/NAME/paper.yaml`.

What the paper did and where that stands, what of it is done here, the scenario with its cases, and
the lines of the comparison: a published figure, the formula of ours, and the criterion by which the
two are judged, which stands in the file before anything runs.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from copy import deepcopy
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import Field, TypeAdapter, ValidationError, field_validator, model_validator

from files import FileError, is_file, shown
from lab.errors import LabError, ScenarioError
from lab.machine.paths import ROOT
from lab.reproduce.formula import Formula, FormulaError
from lab.scenario import catalogue
from lab.scenario.keys import nearest
from lab.scenario.model import Scenario, explained
from params.section import Section
from params.shares import Share
from params.units import DurationNs, Size
from traffic.reading import read_yaml
from views.report.numbers import COUNT, DURATION, FACTOR, RATE, SHARE, SIZE, Kind

FOLDER = ROOT / "reproduce"
FILE = "paper.yaml"
KINDS: Mapping[str, Kind] = {
    "ns": DURATION, "bytes": SIZE, "gbps": RATE, "share": SHARE, "times": FACTOR, "count": COUNT,
}  # fmt: skip
_MAX_SEEDS = 100


class Source(Section):
    """Where a result was published."""

    paper: str
    """Authors and title."""
    venue: str
    """Where and when."""
    where: str
    """The figure, table or section."""
    link: str = Field(pattern=r"^(https://|arXiv:|doi:)\S+$")
    """Where it can be looked up."""
    read: str
    """How the figures came here: from which text."""
    licence: str
    """What may be done with them."""
    verified: bool = True
    """Whether a text was there to read them from; what is from memory counts for nothing."""


class Line(Section):
    """One line of the comparison."""

    what: str
    """What is measured."""
    theirs: float | str | tuple[float | str, float | str] | None = None
    """The published figure, or its range, or what was said in words."""
    ours: str | None = None
    """The formula of ours."""
    unit: Literal["ns", "bytes", "gbps", "share", "times", "count"] = "times"
    """What kind of quantity both are."""
    within: Share | None = None
    """The criterion: how far ours may be from theirs, as a share of it."""
    least: float | None = None
    """Or the least that ours may be,"""
    most: float | None = None
    """or the most."""
    holds: str | None = None
    """Or a comparison that must hold, such as an order of methods."""
    reason: str = ""
    """Why ours is another, where that is known."""

    @model_validator(mode="before")
    @classmethod
    def _shares(cls, data: object) -> object:
        """Let 10 per cent be written so."""
        if isinstance(data, dict) and isinstance(said := data.get("within"), str):
            if not said.endswith("%") or not said[:-1].strip().replace(".", "", 1).isdigit():
                raise ValueError(f"within: '{said}' is no share; write 10%, or 0.1")
            return {**data, "within": float(said[:-1]) / 100}
        return data

    @model_validator(mode="after")
    def _check(self) -> Line:
        if (self.ours is None) == (self.holds is None):
            raise ValueError("give ours, a formula, or holds, a comparison")
        if self.within is not None and not self.published:
            raise ValueError("within is against a published figure: give theirs as a number")
        for text in (self.ours, self.holds):
            if text is not None:
                Formula.of(text)
        return self

    @property
    def formula(self) -> Formula:
        """What is computed of the runs."""
        return Formula.of(self.ours if self.ours is not None else self.holds or "")

    @property
    def published(self) -> tuple[float, ...]:
        """The published figure, or the ends of its range; nothing of what was said in words."""
        if self.holds is not None or self.theirs is None:
            return ()
        values = self.theirs if isinstance(self.theirs, tuple) else (self.theirs,)
        found = [_number(each, self.unit) for each in values]
        return tuple(each for each in found if each is not None) if None not in found else ()

    @property
    def kind(self) -> Kind:
        """How it reads."""
        return KINDS[self.unit]

    @property
    def is_judged(self) -> bool:
        """Whether it counts, or is only shown."""
        return any(each is not None for each in (self.within, self.least, self.most, self.holds))

    @property
    def criterion(self) -> str:
        """What must hold, in words."""
        if self.holds is not None:
            return "holds"
        criteria = [f"within {self.within:.0%}"] if self.within is not None else []
        criteria += [f"at least {self.kind.text(self.least)}"] if self.least is not None else []
        criteria += [f"at most {self.kind.text(self.most)}"] if self.most is not None else []
        return ", ".join(criteria) or "only shown"

    def judge(self, ours: float) -> bool | None:
        """Whether ours meets the criterion; None where there is none."""
        if not self.is_judged:
            return None
        if self.holds is not None:
            return ours >= 1
        held = [self.least is None or ours >= self.least, self.most is None or ours <= self.most]
        if self.within is not None:
            low, high = min(self.published), max(self.published)
            held.append(low * (1 - self.within) <= ours <= high * (1 + self.within))
        return all(held)


def _number(value: float | str, unit: str) -> float | None:
    """A figure; None of words."""
    if isinstance(value, int | float):
        return value
    if unit not in ("ns", "bytes"):
        return None
    try:
        return float(TypeAdapter(DurationNs if unit == "ns" else Size).validate_python(value))
    except ValidationError:
        return None


class Reproduction(Section):
    """A published result, and how the lab makes it again."""

    title: str
    """What it is about."""
    source: Source
    """Where it was published."""
    theirs: str
    """What they did."""
    here: str
    """What is done here, and what of it is scaled down or otherwise."""
    scenario: dict[str, Any]
    """The scenario that all cases are made of."""
    seeds: int = Field(default=1, ge=1, le=_MAX_SEEDS)
    """Runs of each case, each with chances of its own; the median is judged."""
    cases: dict[str, tuple[str, ...]]
    """What is run, by name: what is changed in the scenario, as `--set` has it."""
    unfinished: tuple[str, ...] = ()
    """Cases that are not expected to come to an end."""
    lines: Annotated[tuple[Line, ...], Field(min_length=1)]
    """The comparison."""
    causes: tuple[Line, ...] = ()
    """Experiments that show why something differs; they do not count."""

    @field_validator("cases")
    @classmethod
    def _names(cls, cases: dict[str, tuple[str, ...]]) -> dict[str, tuple[str, ...]]:
        for name in cases:
            if not name.isidentifier():
                raise ValueError(f"a case is called '{name}'; formulas need letters, digits and _")
        return cases

    @model_validator(mode="after")
    def _check(self) -> Reproduction:
        if not any(line.is_judged for line in self.lines):
            raise ValueError("no line has a criterion: give within, least, most or holds")
        for name in self.unfinished:
            if name not in self.cases:
                raise ValueError(f"unfinished: there is no case '{name}'")
        for line in (*self.lines, *self.causes):
            try:
                line.formula.check(set(self.cases))
            except FormulaError as error:
                raise ValueError(error.message) from None
        return self

    def scenario_of(self, case: str, seed: int, changes: Sequence[str] = ()) -> Scenario:
        """What is run, with what is changed besides."""
        content = {"name": case.replace("_", "-").lower(), "about": self.title, **self.scenario}
        return catalogue.made(
            deepcopy(content), (*self.cases[case], *changes, f"seed={seed}"), case
        )


def names() -> list[str]:
    """All that can be made again."""
    return sorted(path.parent.name for path in FOLDER.glob(f"*/{FILE}"))


def chosen(asked: Sequence[str]) -> list[str]:
    """Those that are asked for, if they exist."""
    known = names()
    for name in asked:
        if name not in known:
            raise LabError(
                f"there is no reproduction '{shown(name)}'" + nearest(name, known),
                f"There are: {', '.join(known)}.",
            )
    return list(dict.fromkeys(asked))


def read(name: str, folder: Path = FOLDER) -> Reproduction:
    """One by its name."""
    path = folder / name / FILE
    if not is_file(path):
        raise LabError(f"there is no {shown(path)}")
    try:
        content = read_yaml(path)
    except FileError as error:
        raise LabError(str(error)) from None
    if not isinstance(content, dict):
        raise LabError(f"{path} holds no reproduction: its top level must be keys and values")
    if isinstance(content.get("scenario"), dict):
        catalogue.look_beside(content["scenario"], path.parent)
    try:
        found = Reproduction.model_validate(content)
        for case in found.cases:
            found.scenario_of(case, 1)
    except ValidationError as error:
        raise LabError(f"{path}: {explained(error, Reproduction)}") from None
    except ScenarioError as error:
        raise LabError(f"{path}: {error.message}", error.cure) from None
    return found
