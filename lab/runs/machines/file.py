"""Which machines share in a run: a file, as docs/howto.md describes it."""

from __future__ import annotations

import shlex
import sys
from ipaddress import IPv4Address
from pathlib import Path
from typing import Annotated

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError

from files import FileError
from lab.errors import LabError
from traffic.reading import NotYamlError, YamlError, read_yaml

_HERE = (sys.executable, "-c", "from lab.start import main; main()")


def _split(words: object) -> object:
    return shlex.split(words) if isinstance(words, str) else words


Words = Annotated[tuple[str, ...], BeforeValidator(_split)]


class Machine(BaseModel):
    """One of them."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    name: Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9.-]*$")]
    start: Words = ()  # what a command is put behind to be carried out there
    closlab: Words = ("closlab",)  # what it is called there
    address: IPv4Address | None = None  # by which the others reach it; none: it knows

    @property
    def words(self) -> tuple[str, ...]:
        """How its part is started."""
        if not self.start and self.closlab == ("closlab",):
            return (*_HERE, "part")
        return (*self.start, *self.closlab, "part")


class Machines(BaseModel):
    """All of them."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    machines: Annotated[tuple[Machine, ...], Field(min_length=1)]


def read(path: Path) -> tuple[Machine, ...]:
    """The machines that a file names."""
    try:
        machines = Machines.model_validate(read_yaml(path)).machines
    except (FileError, NotYamlError, YamlError) as error:
        raise LabError(f"{path}: {error}", _CURE) from None
    except ValidationError as error:
        first = error.errors()[0]
        place = ".".join(map(str, first["loc"])) or "it"
        raise LabError(f"{path}: {place}: {first['msg']}", _CURE) from None
    names = [machine.name for machine in machines]
    if twice := next((name for name in names if names.count(name) > 1), None):
        raise LabError(f"{path}: two machines are called {twice}", _CURE)
    return machines


_CURE = (
    "It is a list of machines, such as\n"
    "  machines: [{name: here, address: 10.0.0.1}, "
    "{name: there, start: ssh me@there, address: 10.0.0.2}]"
)
