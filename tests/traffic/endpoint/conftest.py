"""The endpoint core built for tests: in virtual time, under sanitizers, and as a program."""

from pathlib import Path

import pytest

from tests.traffic.endpoint.star import SANITIZE, compile_c, compile_star
from traffic.endpoint import PROGRAM_SOURCES, SOURCES


@pytest.fixture(scope="session")
def star(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The virtual-time fabric."""
    return compile_star(tmp_path_factory.mktemp("star") / "star")


@pytest.fixture(scope="session")
def strict_star(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The virtual-time fabric under AddressSanitizer and UBSan."""
    return compile_star(tmp_path_factory.mktemp("star") / "strict-star", *SANITIZE)


@pytest.fixture(scope="session")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The native endpoint program."""
    return compile_c(tmp_path_factory.mktemp("program") / "closlab-endpoint", PROGRAM_SOURCES)


@pytest.fixture(scope="session")
def unit(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A program that runs parts of the core alone, under sanitizers."""
    source = Path(__file__).with_name("unit.c")
    return compile_c(tmp_path_factory.mktemp("unit") / "unit", (source, *SOURCES), *SANITIZE)
