"""Which of a test's cases a run was asked for."""

from collections.abc import Iterator
from typing import Any

import pytest


def chosen(request: pytest.FixtureRequest, parameter: str) -> Iterator[Any]:
    """What the tests of this run, and of this file, that ask for this fixture are run for."""
    for item in request.session.items:
        if (
            isinstance(item, pytest.Function)
            and item.module is request.module
            and request.fixturename in item.fixturenames
        ):
            yield item.callspec.params[parameter]
