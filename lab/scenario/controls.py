"""What a scenario may say of congestion controls, made of what these declare themselves.

A control that has parameters has a section below `transport` with a key for each; names, bounds and
words are those of `traffic/congestion.py`, which reads them where the control is written.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, Literal, TypeVar

from pydantic import BaseModel, Field, create_model, field_validator, model_validator

from params.rates import MBPS, Mbps, bps
from params.section import Section
from params.units import DurationNs, Size
from traffic.congestion import CONTROLS, Control, Kind, Parameter, Value

_FORMER_PROFILES = {"hpcc-paper": "hpcc-ns3"}
_TYPES: dict[Kind, Any] = {
    Kind.TIME: DurationNs, Kind.SIZE: Size, Kind.NUMBER: int, Kind.RATE: Mbps,
    Kind.REAL: float, Kind.SHARE: float, Kind.FLAG: bool, Kind.FILE: str,
}  # fmt: skip

if TYPE_CHECKING:
    CongestionControl = str
else:
    CongestionControl = Literal[tuple(CONTROLS)]

_Model = TypeVar("_Model", bound=BaseModel)


class ControlSettings(Section):
    """A control's parameters: what is given differs from what it usually has."""

    @model_validator(mode="before")
    @classmethod
    def _named(cls, data: object) -> object:
        """A name alone is a profile, if there are any."""
        is_profile = isinstance(data, str) and "profile" in cls.model_fields
        return {"profile": data} if is_profile else data

    @field_validator("profile", mode="before", check_fields=False)
    @classmethod
    def _as_now_called(cls, named: object) -> object:
        return _FORMER_PROFILES.get(named, named) if isinstance(named, str) else named


def _field(parameter: Parameter) -> tuple[Any, Any]:
    """A parameter as a key of a section."""
    kind: Any = _TYPES.get(parameter.kind)
    bounds: dict[str, Any] = {}
    per = MBPS if parameter.kind is Kind.RATE else 1
    if parameter.kind is Kind.WORD:
        kind = Literal[parameter.words]
    elif parameter.kind is Kind.SHARE:
        bounds = {"gt": 0, "le": 1}
    elif parameter.kind not in (Kind.FLAG, Kind.FILE):
        bounds = {"ge": _whole(parameter.least / per), "le": _whole(parameter.most / per)}
    usual = parameter.usual
    if isinstance(usual, int | float) and per > 1:
        usual = usual / per
    inside = Annotated[kind, Field(**bounds)] if bounds else kind
    return (inside if usual is not None else inside | None), Field(
        usual, description=parameter.about
    )


def _whole(number: float) -> float:
    return int(number) if number == int(number) else number


def _section(control: Control) -> type[ControlSettings]:
    fields: dict[str, Any] = {each.key: _field(each) for each in control.parameters}
    name = f"{control.name.capitalize()}Settings"
    return create_model(name, __base__=ControlSettings, __module__=__name__, **fields)


SECTIONS = {control.name: _section(control) for control in CONTROLS.values() if control.parameters}
globals().update({section.__name__: section for section in SECTIONS.values()})  # for pickles


def with_controls(model: type[_Model]) -> type[_Model]:
    """The same with a section for each control that has parameters."""
    fields: dict[str, Any] = {
        name: (section, Field(section(), description=_said(name, section)))
        for name, section in SECTIONS.items()
    }
    return create_model(
        model.__name__,
        __base__=model,
        __module__=model.__module__,
        __doc__=model.__doc__,
        **fields,
    )


def _said(name: str, section: type[ControlSettings]) -> str:
    has_profiles = "profile" in section.model_fields
    more = ": a profile by name, or a section of them" if has_profiles else ""
    return f"Parameters of the congestion control {name}{more}."


def values_of(transport: BaseModel, name: str) -> dict[str, Value]:
    """What a scenario says of a control, in an endpoint's words and units."""
    section = getattr(transport, name, None)
    said: dict[str, Value] = {}
    for parameter in CONTROLS[name].parameters:
        value = getattr(section, parameter.key)
        if value is not None:
            is_rate = parameter.kind is Kind.RATE
            said[f"{name}_{parameter.name}"] = bps(value, MBPS) if is_rate else value
    return said


def algorithm_file(transport: BaseModel) -> str | None:
    """The algorithm that senders go by, if somebody brought it."""
    is_asked = getattr(transport, "cc", None) == "pcm"
    return getattr(transport, "pcm").file if is_asked else None  # noqa: B009  (made, not declared)
