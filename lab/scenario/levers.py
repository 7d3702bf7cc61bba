"""A scenario's keys as levers: what one would change to see what it does, and to which values.

Those come first that the scenario says itself, then those that such fabrics are tuned by. Any other
key can be had by its name.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import yaml

from lab.errors import ScenarioError
from lab.scenario import model
from lab.scenario.keys import Key, Values, nearest_key, without_numbers
from lab.scenario.model import Scenario
from params.data import Data
from params.shares import ALPHAS
from params.units import written

_TUNED = (
    "pfc.enabled", "ecn.enabled", "transport.cc", "lb.policy", "transport.recovery",
    "transport.kind", "buffer.bytes", "buffer.alpha", "ecn.kmin", "ecn.kmax", "ecn.pmax",
    "pfc.headroom", "link.rate_gbps", "link.delay_ns", "loss.rate", "seed",
)  # fmt: skip
_NOT_TURNED = "name", "about", "question", "measures", "limit_ns", "control", "traffic.model"
_ASKS_FOR_OTHERS = ".action"  # keys, so that it is not turned alone
_LATER = "link", "topology"  # of its own keys: what is turned less
_MAX_OWN = 12  # of the scenario's own
_DECADE = 1, 1.5, 2, 3, 5, 7
_SHARES = 0, 0.001, 0.002, 0.005, *(n / 100 for n in (1, 2, 5, 10, 20, 30, 50, 70, 90)), 1
_USUAL = {"B": 100_000, "ns": 10_000}  # where nothing is given, and the key has no bounds
_FEW = 16  # what is counted up to there is counted one by one


class Lever(Data):
    """A key, what it is now, and what one may choose, all of it as --set has it."""

    key: str
    about: str
    takes: str
    now: str  # empty: nothing
    stops: tuple[str, ...]  # in their order; none: it wants words
    is_number: bool  # so that stops are more and less of the same


def levers(scenario: Scenario) -> list[Lever]:
    """The first ones."""
    said = [
        key
        for key in _said(scenario)
        if not key.startswith(_NOT_TURNED) and not key.endswith(_ASKS_FOR_OTHERS)
    ]
    own = [key for key in said if not key.startswith(_LATER)][:_MAX_OWN]
    names = dict.fromkeys((*own, *_TUNED, *(key for key in said if key.startswith(_LATER))))
    content = scenario.model_dump(mode="json")
    made = (_made(scenario, content, name) for name in names)
    return [each for each in made if each and each.stops]


def lever(scenario: Scenario, key: str) -> Lever:
    """Any of them by its key."""
    made = _made(scenario, scenario.model_dump(mode="json"), key)
    if made is None:
        raise ScenarioError(
            f"'{key}' is no single value of this scenario"
            + nearest_key(key, [known.name for known in offered(scenario)])
        )
    return made


def offered(scenario: Scenario) -> Iterator[Key]:
    """The keys that a scenario of its kinds may have, but for entries of lists."""
    for key in model.all_keys():
        if not key.is_section and "[]" not in key.name and _fits(scenario, key):
            yield key


def _fits(scenario: Scenario, key: Key) -> bool:
    if key.kind is None:
        return True
    kind = getattr(getattr(scenario, key.name.partition(".")[0]), "kind", None)
    return kind == key.kind


def _made(scenario: Scenario, content: dict[str, Any], name: str) -> Lever | None:
    general = without_numbers(name)
    known = (key for key in model.all_keys() if key.name == general and not key.is_section)
    key = next((key for key in known if _fits(scenario, key)), None)
    if key is None:
        return None
    try:
        now = _value(content, name)
    except IndexError:
        return None
    if isinstance(now, dict | list):
        text = yaml.safe_dump(now, default_flow_style=True, width=math.inf).strip()
        return Lever(name, key.about, key.takes, text, (), is_number=False)
    values = key.values
    is_number = values.unit is not None
    text = _written(now, values.unit or "") if now is not None else ""
    stops = tuple(dict.fromkeys(_stops(key, now, text)))
    return Lever(name, key.about, key.takes, text, stops, is_number=is_number)


def _stops(key: Key, now: Any, text: str) -> Iterator[str]:
    values = key.values
    if values.unit is None and not values.choices:
        return
    if now is None or key.default == "":
        yield ""  # as it is where nothing is said
    if values.unit is None:
        yield from values.choices
        return
    numbers = {*_numbers(values, now)}
    if now is not None:
        numbers.add(now)
    yield from (
        text if number == now else _written(number, values.unit) for number in sorted(numbers)
    )


def _numbers(values: Values, now: float | None) -> Iterator[float]:
    """What a number might be instead: more and less of it."""
    if values.is_power:
        yield from ALPHAS
        return
    if not values.is_whole and (values.least, values.most) == (0, 1):
        yield from _SHARES
        return
    if values.unit == "" and values.is_whole and (now is None or now <= _FEW):
        few = range(max(0, math.ceil(values.least)) if math.isfinite(values.least) else 1, _FEW + 1)
        yield from (number for number in few if number <= values.most)
        return
    middle = now if now else _USUAL.get(values.unit or "", max(1.0, min(100.0, values.most)))
    decade = math.floor(math.log10(middle))
    for exponent in range(decade - 2, decade + 3):
        for factor in _DECADE:
            number = factor * 10.0**exponent
            near = middle / 40 <= number <= middle * 40
            if near and values.least <= number <= values.most:
                if not values.is_whole:
                    yield float(f"{number:.3g}")
                elif number >= 1:
                    yield max(1, round(number / values.step)) * values.step
    if values.least == 0:
        yield 0


def _said(scenario: Scenario) -> Iterator[str]:
    """The keys of single values that a scenario gives."""

    def inside(content: Any, place: str) -> Iterator[str]:
        if isinstance(content, dict):
            for key, value in content.items():
                yield from inside(value, f"{place}.{key}" if place else str(key))
        elif isinstance(content, list):
            for at, value in enumerate(content):
                if isinstance(value, dict):
                    yield from inside(value, f"{place}.{at}")
        elif content is not None:
            yield place

    yield from inside(scenario.model_dump(mode="json", exclude_unset=True), "")


def _value(content: Any, name: str) -> Any:
    for part in name.split("."):
        if isinstance(content, list):
            content = content[int(part)] if part.isdigit() else None
        elif isinstance(content, dict):
            content = content.get(part)
    return content


def _written(value: Any, unit: str) -> str:
    """A value as --set takes it, as short as it can be said without a loss."""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, int) and unit:
        return written(value, unit)
    return f"{value:.12g}" if isinstance(value, float) else str(value)
