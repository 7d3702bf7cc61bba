"""Sections of what people write, checked key by key."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cache
from typing import Any, Literal, Self, get_args, get_origin

from pydantic import BaseModel, ConfigDict, ValidationError, model_validator
from pydantic_core import InitErrorDetails


class Strict(BaseModel):
    """What takes `true` for no number, as pydantic does: a switch of it is none of 1."""

    @model_validator(mode="before")
    @classmethod
    def _numbers_are_numbers(cls, data: object) -> object:
        if isinstance(data, Mapping):
            numbers = _numbers(cls)
            found: list[InitErrorDetails] = [
                {"type": numbers[name], "loc": (name, *place), "input": inside}
                for name, value in data.items()
                if name in numbers
                for place, inside in _truths(value)
            ]
            if found:
                raise ValidationError.from_exception_data(cls.__name__, found)
        return data


@cache
def _numbers(model: type[BaseModel]) -> dict[str, Literal["int_type", "float_type"]]:
    """The keys of a model that take numbers or lists of them, and no truth values."""
    found: dict[str, Literal["int_type", "float_type"]] = {}
    for name, field in model.model_fields.items():
        kinds = set(_leaves(field.annotation))
        if bool not in kinds and kinds & {int, float}:
            found[field.alias or name] = "float_type" if float in kinds else "int_type"
    return found


def _leaves(kind: object) -> Iterator[object]:
    """The types that a type's values are made of: what they are named by is none of them."""
    kind = getattr(kind, "written", kind)
    inner = get_args(kind)
    for each in inner[1:] if get_origin(kind) in (dict, Mapping) else inner:
        yield from _leaves(each)
    if not inner:
        yield kind


def _truths(value: object) -> Iterator[tuple[tuple[int | str, ...], bool]]:
    """Where true or false stands in a value."""
    if isinstance(value, bool):
        yield (), value
    elif isinstance(value, Mapping):
        for key, each in value.items():
            yield from (((str(key), *place), found) for place, found in _truths(each))
    elif isinstance(value, list | tuple):
        for at, each in enumerate(value):
            yield from (((at, *place), found) for place, found in _truths(each))


class Section(Strict):
    """Part of a scenario."""

    model_config = ConfigDict(
        frozen=True, extra="forbid", serialize_by_alias=True, defer_build=True
    )

    def but(self, **changes: Any) -> Self:
        """The same with some values of its own changed, and checked."""
        return type(self).model_validate({**dict(self), **changes}, by_name=True)
