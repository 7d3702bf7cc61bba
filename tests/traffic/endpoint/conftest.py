"""The endpoint core built for tests: in virtual time, under sanitizers, and as a program."""

from pathlib import Path

import pytest

from tests.traffic.endpoint.star import SANITIZE, compile_c, compile_star
from traffic.endpoint import PROGRAM_SOURCES, SOURCES


@pytest.fixture(scope="session")
def star() -> Path:
    """The virtual-time fabric."""
    return compile_star()


@pytest.fixture(scope="session")
def strict_star() -> Path:
    """The virtual-time fabric under AddressSanitizer and UBSan."""
    return compile_star(*SANITIZE)


@pytest.fixture(scope="session")
def program() -> Path:
    """The native endpoint program."""
    return compile_c(PROGRAM_SOURCES)


@pytest.fixture(scope="session")
def unit() -> Path:
    """A program that runs parts of the core alone, under sanitizers."""
    source = Path(__file__).with_name("unit.c")
    return compile_c((source, *SOURCES), *SANITIZE)
