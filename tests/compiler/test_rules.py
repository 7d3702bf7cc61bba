"""Each rule of the language: what keeps it passes, what breaks it is refused, p4c agrees."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from .programs import compile_text, errors_of
from .rules import DOCS, Rule, documented, rules

RULES = rules()
every_rule = pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.name)


@pytest.mark.by_day(40)
@every_rule
def test_rule(rule: Rule, tmp_path: Path) -> None:
    assert {bool(program.codes) for program in rule.programs} == {True, False}
    for program in rule.programs:
        if not program.codes:
            compile_text(tmp_path, program.whole, "types")
            continue
        said = errors_of(tmp_path, program.whole, "types")
        assert program.codes & set(said), f"{program.text}: {said}"


def test_what_rules_allow_in_a_control_is_compiled_to_the_end(tmp_path: Path) -> None:
    """But for what the prelude declares as an extern, which no BMv2 has."""
    bodies = [p for rule in RULES for p in rule.programs if p.in_a_switch and not p.codes]
    assert len(bodies) > 30
    for program in bodies:
        said = errors_of(tmp_path, program.in_a_switch)
        assert said == (["unsupported"] if "any" in program.text else []), program.text


@every_rule
@pytest.mark.reference
def test_p4c_has_the_rule_too(rule: Rule, tmp_path: Path) -> None:
    path = tmp_path / "program.p4"
    for program in rule.programs:
        if program.not_for_p4c:
            continue
        path.write_text(program.whole)
        out = str(tmp_path / "out.json")
        done = subprocess.run(
            ["p4c-bm2-ss", "-o", out, str(path)], capture_output=True, text=True, check=False
        )
        # A program without `main` compiles to nothing, which is no error.
        refused = "error:" in done.stderr or done.returncode not in (0, 1)
        assert refused == bool(program.codes), f"{program.text}\n{done.stderr}"


def test_the_rules_are_documented() -> None:
    assert DOCS.read_text() == documented(), "run: python -m tests.compiler.rules, and review"
