"""Wrong scenarios by lot, held against what a run refuses: how far the schema for editors agrees.

    python -m tests.lab.schemas --count 2000 --seed 1

Scenarios that make sense are drawn by lot, and half of them are damaged in one place: a key is
misspelt, a value has another type, lies outside its bounds or is none of those there are, or a part
is missing. What a run takes the schema has to take. Of what a run refuses it has to refuse most:
what only the whole tells (a link that is not there, a buffer too small) it cannot know.
"""

from __future__ import annotations

import argparse
import copy
import random
import sys
from collections import Counter
from collections.abc import Iterator
from functools import cache
from typing import Any

from jsonschema import Draft7Validator

from lab.errors import LabError
from lab.runs.lots import drawn as lot
from lab.scenario import catalogue
from lab.scenario.schema import schema

_WRONG: tuple[Any, ...] = (
    *(-1, 10**12, 0.5, 1e300, "no-such-word", "12 parsecs", True, None),
    *([], {}, [1]),
)


@cache
def validator() -> Draft7Validator:
    """What an editor does with the schema."""
    return Draft7Validator(schema())


def as_json(value: Any) -> Any:
    """As editors see YAML: keys are text, and lists are lists."""
    if isinstance(value, dict):
        return {str(key): as_json(each) for key, each in value.items()}
    return [as_json(each) for each in value] if isinstance(value, list | tuple) else value


def takes(content: Any) -> bool:
    """Whether the schema does."""
    return bool(validator().is_valid(as_json(content)))


def runs(content: dict[str, Any]) -> bool:
    """Whether a run does."""
    try:
        catalogue.made(copy.deepcopy(content))
    except LabError:
        return False
    return True


def _places(content: Any) -> Iterator[tuple[Any, Any]]:
    """Everything that something stands at: its section or list, and its key or number there."""
    items = content.items() if isinstance(content, dict) else enumerate(content)
    for key, value in [*items]:
        yield content, key
        if isinstance(value, dict | list):
            yield from _places(value)


def damaged(content: dict[str, Any], drawn: random.Random) -> str:
    """Damage a scenario in one place, and say how."""
    section, key = drawn.choice([*_places(content)])
    how = drawn.choice(("value", "value", "key", "gone"))
    if how == "key" and isinstance(section, dict):
        section[f"{key}x"] = section.pop(key)
    elif how == "gone":
        del section[key]
    else:
        how, section[key] = "value", copy.deepcopy(drawn.choice(_WRONG))
    return how


def sweep(count: int, seed: int) -> tuple[Counter[str], list[str]]:
    """How often both take, both refuse, only a run refuses; and where only the schema does."""
    drawn = random.Random(seed)
    found: Counter[str] = Counter()
    wrong: list[str] = []
    for at in range(count):
        content = as_plain(lot(drawn.randrange(10**6), None).content)
        how = damaged(content, drawn) if at % 2 else "whole"
        by_run, by_schema = runs(content), takes(content)
        found[f"{how}: " + _SAID[by_run, by_schema]] += 1
        if by_run and not by_schema:
            error = next(validator().iter_errors(as_json(content)))
            wrong.append(f"{how}: {'.'.join(map(str, error.absolute_path))}: {error.message[:200]}")
    return found, wrong


_SAID = {
    (True, True): "both take it",
    (False, False): "both refuse it",
    (False, True): "only a run refuses it",
    (True, False): "only the schema refuses it",
}


def as_plain(value: Any) -> Any:
    """A lot's content as YAML would have it."""
    if isinstance(value, dict):
        return {key: as_plain(each) for key, each in value.items()}
    return [as_plain(each) for each in value] if isinstance(value, list | tuple) else value


def main() -> None:
    """Sweep and tell."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--count", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=1)
    given = parser.parse_args()
    found, wrong = sweep(given.count, given.seed)
    for what, many in sorted(found.items()):
        print(f"{many:6} {what}")
    print("\n".join(wrong))
    sys.exit(bool(wrong))


if __name__ == "__main__":
    main()
