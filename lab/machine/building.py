"""Building what runs as native code: what keeps this machine from it is the user's to mend."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from lab.errors import LabError
from lab.machine.stopped import telling_of_stopped
from switch.build import BuildError
from switch.cache import Unbuildable


@contextmanager
def building(what: str) -> Iterator[None]:
    """Say in one message why something cannot be built here, or kept; and who keeps it waiting."""
    try:
        with telling_of_stopped():
            yield
    except Unbuildable as error:
        raise LabError(str(error)) from None
    except BuildError as error:
        raise LabError(f"{what} cannot be built as native code:\n{error}") from None
