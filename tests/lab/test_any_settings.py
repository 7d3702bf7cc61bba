"""Settings that nobody tried: whatever a fabric is told, lossless classes lose nothing.

Everything that a scenario may say is drawn by lot (`lab/runs/lots`), the fabric, its traffic and
its faults included. `closlab test` takes some, `closlab test --slow` five hundred, and
`python -m tests.lab.any_settings` as many as one likes.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from lab.runs.lots import LEFT_OUT, drawn
from lab.scenario.keys import Key
from lab.scenario.model import SECTION_KINDS, all_keys
from tests.lab.any_settings import check

DRAWN = 1500  # seeds, in which all there is has to come
NIGHT = range(1000, 1500)
Said = tuple[str, str | None]  # a key, and the kind of section it is in


@pytest.mark.parametrize(
    "seed",
    [*range(6), *(pytest.param(seed, marks=pytest.mark.slow) for seed in NIGHT)],
)
def test_nothing_lossless_is_lost(seed: int, tmp_path: Path) -> None:
    check(seed, tmp_path)


def said(content: Mapping[str, Any]) -> Iterator[tuple[Said, Any]]:
    """Each key that a scenario says, with its value; parts and jobs of traffic as of traffic."""
    for name, value in content.items():
        kinds = SECTION_KINDS.get(name)
        kind = value.get("kind", next(iter(kinds))) if kinds else None
        yield (name, None), value
        yield from _within(name, value, kind)


def _within(name: str, value: Any, kind: str | None) -> Iterator[tuple[Said, Any]]:
    for each in value if isinstance(value, list) else [value]:
        if not isinstance(each, dict):
            return
        prefix = f"{name}[]" if isinstance(value, list) else name
        for key, inside in each.items():
            own = None if key == "kind" else kind
            yield (f"{prefix}.{key}", own), inside
            if name == "traffic" and key == "parts":
                for part in inside:
                    yield from said({"traffic": part})
            elif prefix == "traffic.jobs[]" and key == "job":
                yield from said({"traffic": inside})
            else:
                yield from _within(f"{prefix}.{key}", inside, kind)


def choices(key: Key) -> list[str]:
    """What may stand there, if it is one of few."""
    if key.takes == "true or false":
        return ["True", "False"]
    words = key.takes.removeprefix("one of ")
    return [] if words == key.takes else words.split(", ")


def test_all_that_a_scenario_may_say_is_drawn(tmp_path: Path) -> None:
    """Every key of every kind, and of what is one of few each; but for what is left out by name,
    which is there, and not drawn after all."""
    assert {re.split(r"=| \(", name)[0] for name in LEFT_OUT} <= {key.name for key in all_keys()}
    left_out = {kind.partition("=")[2] for kind in LEFT_OUT if kind.startswith("traffic.kind=")}
    wanted = [key for key in all_keys() if key.name not in LEFT_OUT and key.kind not in left_out]
    missing = {
        (key.name, key.kind): name
        for key in wanted
        if (name := f"{key.name} ({key.kind})") not in LEFT_OUT and not key.name.endswith(".kind")
    }
    unchosen = {
        (key.name, choice): name
        for key in wanted
        for choice in choices(key)
        if choice not in (key.default, (key.default or "").capitalize())
        if (name := f"{key.name}={choice}") not in LEFT_OUT
    }
    for seed in range(DRAWN):
        for key, value in said(drawn(seed, tmp_path).content):
            missing.pop(key, None)
            unchosen.pop((key[0], str(value)), None)
            assert f"{key[0]}={value}" not in LEFT_OUT
        if not missing and not unchosen:
            break
    assert not missing | unchosen
