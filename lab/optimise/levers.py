"""What may be turned, and how far: `--over ecn`, `--over KEY=LOW..HIGH`, `--over KEY=A,B`."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from lab.errors import RunError, ScenarioError
from lab.scenario import catalogue
from lab.scenario.keys import nearest
from lab.scenario.model import Scenario, all_keys
from params.data import Data
from params.units import written

_LOG_FROM = 8  # times as much at one end as at the other: then halves count as much as doubles
_CENT = "ecn.pmax"  # switches take whole per cents of it


class Lever(Data):
    """A key, and what it may be: one of some words, or a number in a range."""

    key: str
    words: tuple[str, ...] = ()
    low: float = 0
    high: float = 0
    unit: str = ""
    is_whole: bool = True
    is_power: bool = False  # of two; ends are their logarithms

    @property
    def is_log(self) -> bool:
        """Whether it is searched by its logarithm."""
        return not self.is_power and self.low > 0 and self.high >= _LOG_FROM * self.low

    def said(self, value: float | str) -> str:
        """A value as --set takes it."""
        if isinstance(value, str):
            return value
        if self.is_power:
            return f"{2.0**value:.12g}"
        if self.key == _CENT:
            return f"{value / 100:.12g}"
        return written(round(value), self.unit) if self.is_whole and self.unit else f"{value:.6g}"

    def found(self, scenario: Scenario) -> float | str | None:
        """Where it stands in a scenario; None: it stands nowhere in what is searched."""
        at: object = scenario
        for part in self.key.split("."):
            at = at.get(part) if isinstance(at, dict) else getattr(at, part, None)
        if at is None:
            return None
        if self.words:
            said = str(at).lower() if isinstance(at, bool) else str(getattr(at, "value", at))
            return said if said in self.words else None
        if not isinstance(at, int | float):
            return None
        value = float(at)
        if self.is_power:
            value = math.log2(value)
        elif self.key == _CENT:
            value *= 100
        value = round(value) if self.is_whole or self.is_power else value
        return value if self.low <= value <= self.high else None


class Group(Data):
    """Levers that belong together, and what has to be so that they do anything."""

    ranges: tuple[str, ...]
    fixed: tuple[str, ...] = ()


GROUPS: Mapping[str, Group] = {
    "ecn": Group(
        ("ecn.kmin=4KB..1MB", "ecn.kmax=16KB..4MB", "ecn.pmax=0.01..1"), ("ecn.enabled=true",)
    ),
    "buffer": Group(("buffer.alpha=0.015625..8",)),
    "dcqcn": Group(
        (
            "transport.dcqcn.additive_mbps=5..2000",
            "transport.dcqcn.increase_interval_ns=10us..1500us",
            "transport.dcqcn.cnp_interval_ns=2us..200us",
            "transport.dcqcn.g=0.001..0.25",
        ),
        ("transport.cc=dcqcn", "ecn.enabled=true"),
    ),
    "lb": Group(("lb.policy=ecmp,flowlet,dlb",)),
    "pfc": Group(("pfc.xon_gap=1KB..256KB",)),
}


def levers_of(
    names: Sequence[str], changes: Sequence[str], asked: Sequence[str]
) -> tuple[tuple[Lever, ...], tuple[str, ...]]:
    """What is asked for, and all that is changed besides; each end makes sense by itself."""
    fixed, ranges = list(changes), []
    set_already = set(map(_key, changes))
    for one in asked:
        group = GROUPS.get(one)
        if group is None and "=" not in one:
            raise RunError(
                f"--over {one}: there is no such group{nearest(one, GROUPS)}",
                f"There are {', '.join(GROUPS)}; or write KEY=LOW..HIGH or KEY=A,B.",
            )
        ranges += list(group.ranges) if group else [one]
        fixed += [each for each in (group.fixed if group else ()) if _key(each) not in set_already]
    found = {lever.key: lever for lever in map(_lever, ranges)}
    if not found:
        raise RunError("there is nothing to search", f"Add --over: {', '.join(GROUPS)}, or a key.")
    both = tuple(dict.fromkeys(fixed))
    levers = tuple(found.values())
    for end in (0, -1):
        values = {one.key: (one.words or (one.low, one.high))[end] for one in levers}
        for name in names:
            catalogue.load(name, (*both, *said(levers, values)))
    return levers, both


def _key(change: str) -> str:
    return change.partition("=")[0]


def said(levers: Sequence[Lever], values: Mapping[str, float | str]) -> tuple[str, ...]:
    """Values of levers, as --set takes them; marks end where they begin, or above."""
    both = dict(values)
    low, high = (both.get(f"ecn.{end}") for end in ("kmin", "kmax"))
    if isinstance(low, int | float) and isinstance(high, int | float):
        both["ecn.kmax"] = max(low, high)
    return tuple(f"{one.key}={one.said(both[one.key])}" for one in levers)


def _lever(text: str) -> Lever:
    key, _, given = text.partition("=")
    known = next((one for one in all_keys() if one.name == key and not one.is_section), None)
    if known is None:
        near = nearest(key, [one.name for one in all_keys()])
        raise ScenarioError(f"--over {text}: there is no key '{key}'{near}")
    low, dots, high = given.partition("..")
    values = known.values
    if not dots:
        words = tuple(dict.fromkeys(given.split(",")))
        if not all(words) or len(words) < 2:
            raise RunError(f"--over {text}: there is nothing to choose from", "Write KEY=A,B.")
        return Lever(key, words)
    if values.unit is None:
        raise RunError(f"--over {text}: {key} is no number", "Write KEY=A,B.")
    ends = [_number(text, end, values.unit) for end in (low, high)]
    if values.is_power:
        if min(ends) <= 0:
            raise RunError(f"--over {text}: a power of two is more than 0")
        ends = [math.log2(end) for end in ends]
    elif key == _CENT:
        ends = [max(1.0, 100 * ends[0]), 100 * ends[1]]
    if not ends[0] < ends[1]:
        raise RunError(f"--over {text}: that is no range", "Such as ecn.kmin=10KB..1MB.")
    is_whole = values.is_whole or values.is_power or key == _CENT
    if is_whole:
        ends = [math.ceil(ends[0]), math.floor(ends[1])]
    return Lever(key, (), ends[0], ends[1], values.unit, is_whole, values.is_power)


_SCALES = {"B": {"KB": 10**3, "MB": 10**6, "GB": 10**9, "B": 1},
           "ns": {"us": 10**3, "ms": 10**6, "ns": 1, "s": 10**9}}  # fmt: skip


def _number(text: str, said: str, unit: str) -> float:
    """An end of a range, with its unit or without."""
    scales = _SCALES.get(unit, {})
    end = next((name for name in scales if said.endswith(name)), "")
    try:
        value = float(said.removesuffix(end)) * scales.get(end, 1)
    except ValueError:
        value = math.nan
    if not math.isfinite(value):
        raise RunError(f"--over {text}: '{said}' is no number", "Such as ecn.kmin=10KB..1MB.")
    return value
