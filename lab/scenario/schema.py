"""`closlab explain --schema`: what a scenario may say as a JSON schema, which editors of YAML know.

It comes from the models that check a scenario, with what `closlab explain` says of each key, so
there is nothing to keep in step. Whatever a run takes it takes, but for numbers and truth values
in quotes. What it refuses a run refuses; what only the whole tells it does not know: that a link is
there, that buffers suffice, how large a number with a unit may be.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any, get_args

from pydantic.json_schema import GenerateJsonSchema, JsonSchemaValue

from lab.scenario.keys import about
from lab.scenario.model import SECTION_KINDS, Scenario
from params.units import Count, DurationNs, Host, Size

_DRAFT = "http://json-schema.org/draft-07/schema#"
_NUMBER = r"^\s*\d+(\.\d+)?([eE]\d+)?\s*"
_WRITTEN = {
    Size: _NUMBER + "([KMGTkmgt][iI]?)?[bB]?\\s*$",
    DurationNs: _NUMBER + "([nNuUmM]?[sS])?\\s*$",
    Count: _NUMBER + "[KMBTkmbt]?\\s*$",
    Host: "^h[1-9]\\d*$",
}
# A reader of text with units, and how that text looks.
_READERS: Mapping[Callable[..., Any], str] = {
    get_args(kind)[1].func: pattern for kind, pattern in _WRITTEN.items()
}
_BOUNDS = {"ge": "minimum", "gt": "exclusiveMinimum", "le": "maximum", "lt": "exclusiveMaximum",
           "multiple_of": "multipleOf"}  # fmt: skip


class _Generator(GenerateJsonSchema):
    """Pydantic's own, which knows what is written with units, and what keys mean."""

    def function_before_schema(self, schema: Any) -> JsonSchemaValue:
        """What is read from text may be text of that form."""
        inner = super().function_before_schema(schema)
        pattern = _READERS.get(schema["function"]["function"])
        if pattern:
            return {"anyOf": [inner, {"type": "string", "pattern": pattern}]}
        if schema["schema"]["type"] not in ("function-after", "literal") or "items" in inner:
            return inner
        return {"anyOf": [inner, {"type": "string"}]}  # by the name of what stands for it

    def model_schema(self, schema: Any) -> JsonSchemaValue:
        """A section with what is said of its keys."""
        made = super().model_schema(schema)
        model = schema["cls"]
        for name, field in model.model_fields.items():
            inside = made.get("properties", {}).get(field.alias or name)
            said = about(model, name)
            if inside is not None and said:
                inside["description"] = said
        return made


def schema() -> dict[str, Any]:
    """The schema of a scenario."""
    made = Scenario.model_json_schema(by_alias=True, schema_generator=_Generator)
    defined = made.pop("$defs")
    for section, kinds in SECTION_KINDS.items():
        for kind, model in kinds.items():
            own = model.model_json_schema(by_alias=True, schema_generator=_Generator)
            defined |= own.pop("$defs", {})
            defined[f"{section}.{kind}"] = own
        text = made["properties"][section].get("description", "")
        made["properties"][section] = {"$ref": f"#/$defs/{section}"}
        defined[section] = {"description": text, **_of_kinds(section, [*kinds])}
    defined["traffic.mix"]["properties"]["parts"]["items"] = {"$ref": "#/$defs/traffic"}
    return {"$schema": _DRAFT, **_tidy({**made, "title": "A scenario of closlab"}),
            "$defs": _tidy(defined)}  # fmt: skip


def _of_kinds(section: str, kinds: list[str]) -> dict[str, Any]:
    """A section that is of one of several kinds, the first where none is named."""
    cases = [
        {
            "if": {"properties": {"kind": {"const": kind}}, "required": ["kind"]},
            "then": {"$ref": f"#/$defs/{section}.{kind}"},
        }
        for kind in kinds
    ]
    return {
        "type": "object",
        "properties": {"kind": {"enum": kinds}},
        "allOf": [
            *cases,
            {
                "if": {"not": {"required": ["kind"]}},
                "then": {"$ref": f"#/$defs/{section}.{kinds[0]}"},
            },
        ],
    }


def _tidy(value: Any) -> Any:
    """Bounds by the schema's words for them, and no titles that only repeat a key."""
    if isinstance(value, list):
        return [_tidy(each) for each in value]
    if not isinstance(value, dict):
        return value
    is_schema = isinstance(value.get("type"), str) or "$ref" in value or "anyOf" in value
    found = {}
    for key, each in value.items():
        if is_schema and key == "title" and isinstance(each, str) and value is not each:
            continue
        name = _BOUNDS.get(key, key) if isinstance(each, int | float) else key
        found[name] = each if key == "default" else _tidy(each)
    return found


def text() -> str:
    """The schema as it is printed."""
    return json.dumps(schema(), indent=1, ensure_ascii=False, default=_plain)


def _plain(value: object) -> Any:
    return list(value) if isinstance(value, tuple | set | frozenset) else str(value)
