"""Models as a job needs to know them: how much there is to compute, to hold and to exchange."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field, model_validator

from files import FileError
from params.units import Count
from traffic.collectives import Spec, SpecError
from traffic.collectives.errors import nearest
from traffic.reading import read_yaml

_MODELS = Path(__file__).parent / "models"
_BYTES = {"fp8": 1, "bf16": 2, "fp16": 2, "fp32": 4}

Precision = Literal["fp8", "bf16", "fp16", "fp32"]
Positive = Annotated[int, Field(ge=1, le=10**7)]
Parameters = Annotated[Count, Field(ge=1, le=10**15)]


class Experts(Spec):
    """The experts of a mixture."""

    count: Positive
    """How many there are in a layer."""
    active: Positive
    """How many serve a token."""
    parameters: Parameters
    """Of all of them, in all layers."""

    @model_validator(mode="after")
    def _check(self) -> Experts:
        if self.active > self.count:
            raise ValueError(f"{self.active} active experts of {self.count}")
        return self


class Model(Spec):
    """A transformer."""

    name: str = Field(pattern=r"^[a-z0-9][a-z0-9.-]*$")
    """What it is called."""
    parameters: Parameters
    """All of them."""
    layers: Positive
    """How many."""
    hidden: Positive
    """The width of a layer."""
    heads: Positive
    """Of attention, in a layer."""
    sequence: Positive
    """Tokens in a sequence."""
    precision: Precision = "bf16"
    """Of weights and activations."""
    gradient_precision: Precision | None = None
    """Of gradients; without it that of weights."""
    experts: Experts | None = None
    """Those of a mixture."""

    @model_validator(mode="after")
    def _check(self) -> Model:
        if self.hidden % self.heads:
            raise ValueError(f"hidden {self.hidden} does not divide among {self.heads} heads")
        if self.experts is not None and self.experts.parameters > self.parameters:
            raise ValueError("the experts have more parameters than the model")
        return self

    @property
    def expert_parameters(self) -> int:
        """Those that expert parallelism spreads."""
        return 0 if self.experts is None else self.experts.parameters

    @property
    def dense_parameters(self) -> int:
        """Those that every token meets."""
        return self.parameters - self.expert_parameters

    @property
    def active_parameters(self) -> int:
        """Those that one token meets: what there is to compute follows from them."""
        if self.experts is None:
            return self.parameters
        share = self.experts.parameters * self.experts.active // self.experts.count
        return self.dense_parameters + share

    @property
    def bytes_per_value(self) -> int:
        """Of weights and activations."""
        return _BYTES[self.precision]

    @property
    def bytes_per_gradient(self) -> int:
        """Of gradients."""
        return _BYTES[self.gradient_precision or self.precision]


def model_names() -> list[str]:
    """The models that ship."""
    return sorted(path.stem for path in _MODELS.glob("*.yaml"))


def load_model(name: str) -> Model:
    """A model that ships, by its name, or one of your own, by its file."""
    path = Path(name) if name.endswith((".yaml", ".yml")) else _MODELS / f"{name}.yaml"
    if path.parent == _MODELS and path.stem not in model_names():
        raise SpecError(f"there is no model '{name}'", nearest(name, model_names()))
    try:
        content = read_yaml(path)
    except FileError as error:
        raise SpecError(f"the model file {error}") from None
    return Model.read(content, "model")


def _by_name(value: Any) -> Any:
    try:
        return load_model(value) if isinstance(value, str) else value
    except SpecError as error:
        raise ValueError(str(error)) from None


NamedModel = Annotated[Model, BeforeValidator(_by_name)]
