"""Packet tests that any v1model switch can be put to, here on ours."""

from pathlib import Path

import pytest

from compiler import compile_program
from switch.stf import run_stf
from tests.fabric.network import FABRIC


@pytest.mark.parametrize("test", sorted(Path(__file__).parent.glob("*.stf")), ids=lambda p: p.stem)
def test_packets(test: Path) -> None:
    result = run_stf(compile_program(FABRIC).json_text.encode(), test)
    assert not result.failures, result.failures
    assert result.expected
