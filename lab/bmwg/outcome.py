"""What a test hands back: tables of figures with the runs they come from, drawings, deviations."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import field
from statistics import fmean
from typing import Literal

from lab.bmwg.arithmetic import variation
from lab.bmwg.bench import KIB, MIB, in_words
from lab.bmwg.case import Case
from params.data import Data
from params.quantity import PLAIN, Unit
from views.report.numbers import COUNT, DURATION, FACTOR, RATE, SHARE, SIZE, Kind

KINDS: Mapping[str, Kind] = {
    "ns": DURATION, "bytes": SIZE, "gbps": RATE, "share": SHARE, "times": FACTOR, "count": COUNT,
    "index": Kind("{:.3f}".format, PLAIN), "change": SHARE, "yes": SHARE,
    "message": Kind(in_words, (Unit("B", 1), Unit("KiB", KIB), Unit("MiB", MIB))),
}  # fmt: skip
"""By unit, how figures read. A ``change`` lies about 0, ``yes`` is 1 or 0 a trial."""
_VARIES = KINDS.keys() - {"change", "yes"}  # of the others a deviation by the mean says nothing


class Row(Data):
    """One setting of a test's parameters: what was measured there, in every trial."""

    of: Mapping[str, str]  # parameters, as they read
    figures: Mapping[str, Sequence[float]]  # by name, a value a trial; none: could not be measured
    cases: Sequence[Case]  # the runs they come from

    def mean(self, figure: str) -> float | None:
        """Over the trials."""
        values = self.figures.get(figure, ())
        return fmean(values) if values else None


class Table(Data):
    """Rows with the same parameters and figures."""

    title: str
    units: Mapping[str, str]  # by figure: a key of KINDS
    rows: Sequence[Row]

    def variation(self, row: Row, figure: str) -> float | None:
        """Between a row's trials, as a share of their mean, where that is a measure."""
        is_one = self.units[figure] in _VARIES
        return variation(row.figures.get(figure, ())) if is_one else None


class Plot(Data):
    """A drawing of figures: lines over a number, or bars beside names."""

    title: str
    x: tuple[str, str]  # what it is, and a key of KINDS
    y: tuple[str, str]
    series: Mapping[str, Mapping[float, float]]
    is_log: bool = False
    kind: Literal["lines", "bars"] = "lines"
    bars: Mapping[str, float] = field(default_factory=dict)
    caption: str = ""


class Outcome(Data):
    """All that came of a test."""

    tables: Sequence[Table]
    primary: str  # the figure whose variation tells whether it can be repeated
    plots: Sequence[Plot] = ()
    deviations: Sequence[str] = ()  # where the draft's procedure was not followed, and why
    left_out: Sequence[str] = ()  # parameters of the draft that were not run
    anomalies: Sequence[str] = ()  # what was not to be expected

    @property
    def cases(self) -> list[Case]:
        """All its runs, each once."""
        return list(
            dict.fromkeys(case for table in self.tables for row in table.rows for case in row.cases)
        )
