"""AddressSanitizer and UBSan watch the run-time and the generated code under random frames."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from .sanitized import __file__ as script
from .sanitized import environment

ROOT = Path(script).resolve().parents[2]
OWN = Path(__file__).parent / "p4"


def has_sanitizers() -> bool:
    probe = subprocess.run(
        ["gcc", "-fsanitize=address,undefined", "-x", "c", "-", "-o", "/dev/null"],
        input="int main(void) { return 0; }", text=True, capture_output=True, check=False,
    )  # fmt: skip
    return probe.returncode == 0


needs_sanitizers = pytest.mark.skipif(
    not has_sanitizers(), reason="gcc cannot build with -fsanitize=address,undefined"
)


def run(frames: int, seed: int, *programs: Path) -> None:
    module = (sys.executable, "-m", "tests.switch.sanitized")
    done = subprocess.run(
        [*module, str(frames), str(seed), *map(str, programs)],
        cwd=ROOT, env=environment(), capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-6000:]


@needs_sanitizers
@pytest.mark.by_day(1)
@pytest.mark.parametrize("program", sorted(OWN.glob("*.p4")), ids=lambda program: program.stem)
def test_own_programs(program: Path) -> None:
    run(5_000, 1, program)


@needs_sanitizers
@pytest.mark.slow
@pytest.mark.timeout(1800)
def test_the_packet_suite_and_a_million_frames() -> None:
    run(1_000_000, 2)
