"""The adapter between a host's kernel and the fabric (traffic/core/nic_main.c), on veths."""

import subprocess

import pytest

from lab.machine.native_host import nic_program
from tests.switch.test_interfaces import run_in_namespaces
from tests.traffic.nic.cases import cases

pytestmark = [pytest.mark.mininet, pytest.mark.ordinary]


@pytest.mark.parametrize("case", cases)
def test_nic(case: str) -> None:
    run_in_namespaces("tests.traffic.nic.cases", case, str(nic_program()))


def test_words_that_make_no_sense_are_refused() -> None:
    done = subprocess.run([nic_program(), "a"], capture_output=True, text=True, check=False)
    assert done.returncode == 2 and "the arguments are" in done.stderr
