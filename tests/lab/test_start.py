"""What a command does not need it does not import: the slow ones are half a second each."""

import subprocess
import sys

import pytest

SLOW = ("scapy", "grpc", "finsy", "rich", "mininet", "compiler")


@pytest.mark.parametrize(
    ("module", "may"),
    [
        ("lab.cli", ()),
        ("lab.scenario.catalogue", ()),
        ("lab.report", ()),
        ("lab.engines.sim.engine", ("grpc", "finsy", "rich")),
    ],
)
def test_nothing_slow_is_imported_in_vain(module: str, may: tuple[str, ...]) -> None:
    code = f"import sys, {module}; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert {name for name in SLOW if name in done.stdout.split()} <= {*may}
