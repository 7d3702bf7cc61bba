"""BMv2 JSON that cannot run is refused with the place and the reason, whatever is wrong with it."""

from __future__ import annotations

import copy
import json
import random
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from switch import codegen
from switch.dataplane import Program
from switch.place import JsonError
from switch.read import read_program

from .programs import assign, compiled, const, field, one_action, op

if TYPE_CHECKING:
    from collections.abc import Iterator

P4 = Path(__file__).parent / "p4"
FIELDS = [("a", 8, False), ("b", 16, False)]


def program() -> dict[str, Any]:
    return one_action({"h": FIELDS}, [assign(field("h", "a"), const(1))])


def test_a_good_one() -> None:
    parsed = read_program(program())
    assert [t.name for t in parsed.tables] == ["run"]
    assert "do_act" in codegen.generate(parsed)


@pytest.mark.parametrize(
    ("path", "value", "message"),
    [
        (("__meta__", "version"), [3, 0], "$.__meta__.version: this switch reads version 2"),
        (("header_types", 0, "fields", 0), ["a"], "$.header_types[0].fields: a field is [name"),
        (("header_types", 0, "fields", 0), ["a", 0], "fields[0][1]: expected a number from 1"),
        (("header_types", 0, "fields", 1), ["a", 16], "two fields have the same name"),
        (("header_types", 0, "fields", 0), ["a", 7], "$.headers[0]: 23 bits are not a whole"),
        (("headers", 0, "header_type"), "x", "$.headers[0].header_type: there is no header type"),
        (("parsers", 0, "init_state"), "x", "$.parsers[0].init_state: there is no state 'x'"),
        (("parsers",), [], "$.parsers: expected one element, found 0"),
        (("deparsers", 0, "order"), ["x"], "$.deparsers[0].order[0]: there is no header 'x'"),
        (
            ("actions", 0, "primitives", 0, "op"),
            "fly",
            "primitives[0]: primitive 'fly' is not part",
        ),
        (
            ("actions", 0, "primitives", 0, "parameters", 1),
            {"type": "hexstr", "value": "zz"},
            "parameters[1].value: expected a hexadecimal number, found 'zz'",
        ),
        (
            ("actions", 0, "primitives", 0, "parameters", 1),
            field("h", "c"),
            "parameters[1].value[1]: header 'h' has no field 'c'",
        ),
        (
            ("actions", 0, "primitives", 0, "parameters", 1),
            {"type": "runtime_data", "value": 0},
            "$.actions[0].primitives[0]: the action has 0 parameters",
        ),
        (("pipelines", 0, "name"), "main", "$.pipelines: there is no pipeline named 'ingress'"),
        (("pipelines", 0, "init_table"), "x", "control goes to 'x'"),
        (("pipelines", 0, "tables", 0, "action_ids"), [7], "there is no action with id 7"),
        (("pipelines", 0, "tables", 0, "match_type"), "fuzzy", "match type 'fuzzy' is not known"),
        (
            ("pipelines", 0, "tables", 0, "default_entry", "action_data"),
            ["0x1"],
            "action 'act' takes 0 arguments, found 1",
        ),
        (
            ("pipelines", 0, "tables", 0, "key"),
            [{"match_type": "valid", "target": []}],
            "key[0].target: expected two elements, found 0",
        ),
        (
            ("header_unions",),
            [{"name": "u", "id": 0, "union_type": "x", "header_ids": []}],
            "$.header_unions[0]: it does not have the members of union type 'x'",
        ),
        (("extern_instances",), [{"type": "magic"}], "extern 'magic' is not part of v1model"),
    ],
)
def test_places_and_reasons(path: tuple[Any, ...], value: object, message: str) -> None:
    root = program()
    place: Any = root
    for step in path[:-1]:
        place = place[step]
    place[path[-1]] = value
    with pytest.raises(JsonError) as error:
        codegen.generate(read_program(root))
    assert message in str(error.value)


@pytest.mark.parametrize("text", ["", "{", "[]", "null", '{"a": NaN}', "[" * 100_000])
def test_not_a_program(text: str) -> None:
    with pytest.raises(JsonError):
        read_program(text)


@pytest.mark.parametrize("number", [-1, 1 << 32, 1 << 70])
def test_an_error_has_as_many_bits_as_its_field(number: int) -> None:
    root = json.loads(compiled(P4 / "paths.p4").source)
    root["errors"] = [["NoError", 0], ["Last", (1 << 32) - 1]]
    Program.load(root)
    root["errors"].append(["TooMany", number])
    with pytest.raises(JsonError, match=r"errors\[2\].*: an error's number has 32 bits"):
        Program.load(root)


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(JsonError, match="cannot be read"):
        Program.load(tmp_path / "none.json")


def test_names_that_are_no_identifiers() -> None:
    """Any name will do: keywords, spaces, quotes, names that collide once they are C."""
    fields = [("int", 8, False), ("a b", 8, False), ("a.b", 8, False), ("9", 8, False)]
    body = [assign(field("h", "a.b"), op("+", field("h", "a b"), field("h", "int")))]
    root = one_action({"h": fields}, body)
    root["actions"][0]["name"] = 'say "%s" */ \\'
    Program.load(root, trace=True)


MARK = "INTRUDER"
WAYS_OUT = (
    '"); {}(); /*',
    "*/ {}(); /*",
    "\n{}();\n",
    "\\\n{}();//",
    "%s%n{}",
    "\u2028{}",
    "??/{}",
    "{} ;}}",
)
IN_QUOTES = re.compile(
    r'"(?:\\.|[^"\\\n])*"' + r"|/\*.*?\*/|//[^\n]*|'(?:\\.|[^'\\\n])*'", re.DOTALL
)


def renamed(value: Any, names: dict[str, str]) -> Any:
    """The same with other names, wherever they stand."""
    if isinstance(value, dict):
        return {names.get(key, key): renamed(inner, names) for key, inner in value.items()}
    if isinstance(value, list):
        return [renamed(inner, names) for inner in value]
    return names.get(value, value) if isinstance(value, str) else value


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("name", ["tables", "externs"])
def test_no_name_becomes_code(name: str, seed: int) -> None:
    """Whatever things are called, that is in strings and comments alone, and the C is the same."""
    rng = random.Random(seed)
    root = json.loads(compiled(P4 / f"{name}.p4").source)
    kinds = ("actions", "header_types", "register_arrays", "counter_arrays", "meter_arrays")
    found = [each["name"] for kind in kinds for each in root[kind]]
    found += [table["name"] for pipeline in root["pipelines"] for table in pipeline["tables"]]
    known = {"standard_metadata", "scalars_0"}
    names = {old: f"{old} {rng.choice(WAYS_OUT).format(MARK)}" for old in found if old not in known}
    assert len(names) > 8
    plain, evil = (codegen.generate(read_program(each)) for each in (root, renamed(root, names)))
    assert MARK in evil
    assert not re.search(rf"\b{MARK}\b", IN_QUOTES.sub("", evil))
    assert _shape(evil) == _shape(plain)


def _shape(text: str) -> str:
    """Everything but what things are called, and what is said of them."""
    quoted = IN_QUOTES.sub(lambda found: '""' if found[0][0] == '"' else "", text)
    return re.sub(r"[\w\s]", "", re.sub(r'(?:""\s*)+', '""', quoted))


def paths_in(value: object, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    yield path
    items = value.items() if isinstance(value, dict) else enumerate(value)
    for key, inner in items:
        if isinstance(inner, dict | list):
            yield from paths_in(inner, (*path, key))
        else:
            yield (*path, key)


ODD: list[Any] = [None, True, -1, 0, 99999, 10**30, "", "x", "0x0", [], {}, [[]], 1.5]


def damaged(rng: random.Random, root: dict[str, Any]) -> dict[str, Any]:
    """A copy with something missing, of another kind, moved or repeated."""
    root = copy.deepcopy(root)
    paths = [p for p in paths_in(root) if p]
    path = rng.choice(paths)
    place: Any = root
    for step in path[:-1]:
        place = place[step]
    roll = rng.random()
    if roll < 0.3:
        del place[path[-1]]
    elif roll < 0.7:
        place[path[-1]] = rng.choice(ODD)
    else:
        other: Any = root
        for step in rng.choice(paths):
            other = other[step]
        place[path[-1]] = copy.deepcopy(other)
    return root


@pytest.mark.parametrize("name", ["paths", "externs", "tables"])
def test_damage_is_noticed_or_harmless(name: str) -> None:
    """No traceback, whatever is damaged: a `JsonError`, or a program."""
    rng = random.Random(name)
    root = json.loads(compiled(P4 / f"{name}.p4").source)
    refused = 0
    for _ in range(60):
        try:
            codegen.generate(read_program(damaged(rng, root)))
        except JsonError as error:
            assert str(error).startswith("$") or "primitive" in str(error) or str(error)
            refused += 1
    assert refused > 12
