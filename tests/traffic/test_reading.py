"""YAML of others: libyaml and PyYAML's own parser, of which either may be asked, read the same."""

import random

import pytest
import yaml

from lab.machine.paths import SCENARIOS
from traffic import reading
from traffic.reading import NotYamlError, YamlError, parse_yaml

PARTS = (
    *("a", "b", "1", "2.5", "1e3", "0x1f", "1:30", "2020-01-01", "~", "null", "yes", "é", "<<: "),
    *(": ", "- ", ", ", "? ", ":", "-", "{", "}", "[", "]", "&x ", "*x", "!!int ", "!", "|", ">"),
    *("\n", "\n  ", "\n    ", "\n---\n", "...\n", "\t", "\u2028", "\ufeff", "\x07", "\\n", "\\"),
    *("'", '"', "#", " # c", "%", "@", "`", "=", "\ud800"),
)
SHIPPED = {path.stem: path.read_text() for path in sorted(SCENARIOS.glob("*.yaml"))}


def texts(seed: int, count: int) -> list[str]:
    """Half of them a piece of a scenario, damaged."""
    draw, found = random.Random(seed), []
    for number in range(count):
        parts: list[str] = []
        if number % 2:
            whole = draw.choice(list(SHIPPED.values()))
            at = draw.randrange(len(whole) // 2)
            parts = list(whole[at : at + 80])
        for _ in range(draw.randint(1, 3 if parts else 12)):
            parts.insert(draw.randint(0, len(parts)), draw.choice(PARTS))
        found.append("".join(parts))
    return found


def by_pyyaml_alone(text: str) -> object:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(reading, "_QuickLoader", reading._Loader)
        return parse_yaml(text)


def both_ways(text: str) -> tuple[str, str]:
    """What either way comes to: the value, or what is said of the text."""
    found = []
    for parse in (parse_yaml, by_pyyaml_alone):
        try:
            found.append(repr(parse(text)))
        except YamlError as error:
            found.append(str(error))
    return found[0], found[1]


@pytest.mark.parametrize("count", [1_500, pytest.param(150_000, marks=pytest.mark.slow)])
def test_whichever_parser_is_asked_says_the_same(count: int) -> None:
    values = 0
    for text in texts(count, count):
        one, other = both_ways(text)
        assert one == other, repr(text)
        values += "line " not in one
    assert count / 10 < values < count  # some of them say something, and some do not


@pytest.mark.parametrize("name", SHIPPED)
def test_what_ships_is_read_as_ever(name: str) -> None:
    assert parse_yaml(SHIPPED[name]) == yaml.safe_load(SHIPPED[name])


def test_what_is_wrong_is_shown_where_it_stands() -> None:
    with pytest.raises(NotYamlError, match=r"line 2, column 4:\n +b: \]\n +\^"):
        parse_yaml("a: 1\nb: ]\n")
