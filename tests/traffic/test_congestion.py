"""What Python reads of congestion controls in their sources is what the compiler makes of them."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from tests.traffic.endpoint.star import SANITIZE, compile_c
from traffic import congestion
from traffic.congestion import CONTROLS, Kind, Parameter
from traffic.endpoint import SOURCES

USERS = {"roce": 1, "uet": 2, "mrc": 4, "sue": 8}
HEARS = ("MARKS", "TELEMETRY", "DELAY", "CREDIT", "CSIG", "ECHOES")


def line_of(parameter: Parameter) -> str:
    """A parameter as the core's `registry` prints it."""
    usual = parameter.usual or 0
    number = parameter.words.index(usual) if isinstance(usual, str) else float(usual)
    least, most = (0, 0) if parameter.kind is Kind.WORD else (parameter.least, parameter.most)
    bounds = f"{number:.17g} {least:.17g} {most:.17g}"
    return f"parameter {parameter.name} {list(Kind).index(parameter.kind)} {bounds} " + " ".join(
        parameter.words
    )


def test_the_registry_is_the_compiled_one() -> None:
    source = Path(__file__).parent / "endpoint" / "unit.c"
    unit = compile_c((source, *SOURCES), *SANITIZE)
    done = subprocess.run([unit], input="registry\n", capture_output=True, text=True, check=True)
    said = []
    for control in CONTROLS.values():
        users = sum(bit for user, bit in USERS.items() if user in control.users)
        hears = HEARS.index(control.hears) if control.hears in HEARS else 0  # none hears nothing
        said.append(f"control {control.name} {users} {hears}")
        said += [line_of(parameter) for parameter in control.parameters]
    assert done.stdout.splitlines() == said
    assert len(said) > 20


@pytest.mark.parametrize(
    "line",
    [
        'CC_TIME(pause, 5us, 1, 10, "How long."),',
        "CC_TIME(pause, 5, 1, 10, ABOUT),",
        'CC_TIME (pause, 5, 1, 10, "How long."),',
        'CC_TIME(pause, 5, 1, 10, "How long.")',
        'CC_TIME(pause, 5, 1, "How long."),',
        'CC_HOUR(pause, 5, 1, 10, "How long."),',
    ],
)
def test_a_line_that_cannot_be_read_is_not_passed_over(line: str) -> None:
    with pytest.raises(ValueError, match=r"not declared|not enough|Kind|invalid literal"):
        list(congestion._declared(f"\n    {line}\n}};\n"))


def test_text_in_pieces_is_one() -> None:
    declared = '\n    CC_REAL(beta, 0.5, 0, 2.5, "One, "\n            "and (two)."),\n};\n'
    (parameter,) = congestion._declared(declared)
    assert parameter.about == "One, and (two)."
    assert (parameter.usual, parameter.least, parameter.most) == (0.5, 0, 2.5)
