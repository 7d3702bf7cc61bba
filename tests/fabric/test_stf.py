"""Packet tests that any v1model switch can be put to, here on ours."""

import json
from pathlib import Path
from typing import Any

import pytest

from compiler import compile_program
from lab.machine.program import build_with_p4c
from switch.dataplane import WHOLE
from switch.stf import StfResult, StfRunner
from tests.fabric.network import FABRIC, fabric_program
from tests.p4 import bmv2

all_tests = pytest.mark.parametrize(
    "test", sorted(Path(__file__).parent.glob("*.stf")), ids=lambda p: p.stem
)


def must_pass(result: StfResult) -> None:
    assert not result.failures, result.failures
    assert result.expected


@all_tests
def test_packets(test: Path) -> None:
    for whole in (WHOLE, 0):
        must_pass(StfRunner(fabric_program(), test, whole).run(test.read_text()))


@all_tests
@pytest.mark.reference
def test_packets_on_bmv2(test: Path) -> None:
    must_pass(bmv2.run_stf(compile_program(FABRIC).json, test))


@all_tests
@pytest.mark.reference
def test_packets_of_p4c_on_bmv2(test: Path, tmp_path: Path) -> None:
    theirs: dict[str, Any] = json.loads(build_with_p4c(tmp_path, FABRIC).json.read_text())
    must_pass(bmv2.run_stf(theirs, test))
