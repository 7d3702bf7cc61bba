"""Building what runs as native code: what keeps this machine from it is the user's to mend."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from lab.errors import LabError
from switch.cache import Unbuildable


@contextmanager
def building() -> Iterator[None]:
    """Say in one message why nothing can be built here, or kept."""
    try:
        yield
    except Unbuildable as error:
        raise LabError(str(error)) from None
