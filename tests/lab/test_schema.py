"""closlab explain --schema: takes what a run takes, and refuses most of what it refuses."""

import json

import pytest
from jsonschema import Draft7Validator

from lab.machine.paths import SCENARIOS as SCENARIOS_DIR
from lab.scenario import shipped
from lab.scenario.model import all_keys
from lab.scenario.schema import schema
from tests.lab import schemas
from tests.lab.conftest import closlab
from traffic.reading import read_yaml

SCENARIOS = [*shipped.names()]
SMALL = {"name": "small", "traffic": {"kind": "incast", "senders": 3, "bytes": "4MB"}}


def test_it_is_a_schema_and_the_command_prints_it() -> None:
    done = closlab("explain", "--schema")
    assert done.returncode == 0 and json.loads(done.stdout) == json.loads(json.dumps(schema()))
    Draft7Validator.check_schema(json.loads(done.stdout))
    assert "of all keys" in closlab("explain", "--schema", "pfc").stderr


def test_what_ships_is_valid() -> None:
    assert len(SCENARIOS) > 30
    for name in SCENARIOS:
        content = schemas.as_json(read_yaml(SCENARIOS_DIR / f"{name}.yaml"))
        assert [*schemas.validator().iter_errors(content)] == [], name


def test_every_key_is_in_it_with_what_is_said_of_it() -> None:
    text = json.dumps(schema(), ensure_ascii=False)
    for key in all_keys():
        assert json.dumps(key.name.rpartition(".")[2].removesuffix("[]")) in text, key.name
        if not key.name.endswith(".kind"):  # which section has what is each kind's own to say
            assert json.dumps(key.about, ensure_ascii=False)[1:-1] in text, key.name


@pytest.mark.parametrize(
    ("key", "value", "is_right"),
    [
        ("pfc", {"enabled": False}, True),
        ("pfc", {"enbled": False}, False),
        ("buffer", {"bytes": "9.5MB"}, True),
        ("buffer", {"bytes": "16 parsecs"}, False),
        ("lb", {"policy": "conga"}, True),
        ("lb", {"policy": "congaa"}, False),
        ("topology", {"kind": "fat-tree", "k": 4}, True),
        ("topology", {"kind": "fat-tree", "leaves": 4}, False),
        ("traffic", {"kind": "incast", "senders": 3, "bytes": "4MB", "receiver": "h1"}, True),
        ("traffic", {"kind": "incast", "senders": 3, "bytes": "4MB", "receiver": "x1"}, False),
        ("traffic", {"kind": "mix", "parts": [{"kind": "elephants", "flow": 1}]}, False),
        ("ecn", {"pmax": 2}, False),
        ("seed", True, False),
    ],
)
def test_a_key_is_right_or_wrong_as_a_run_has_it(key: str, value: object, is_right: bool) -> None:
    content = {**SMALL, key: value}
    assert schemas.takes(content) is schemas.runs(content) is is_right


def test_no_run_is_refused_and_most_that_is_wrong_is() -> None:
    found, wrong = schemas.sweep(60, 3)
    assert wrong == []
    refused = sum(n for what, n in found.items() if "both refuse" in what)
    missed = sum(n for what, n in found.items() if "only a run" in what)
    assert refused > 15 and refused > 5 * missed
