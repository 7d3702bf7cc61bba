"""The rules of the language: each with a program that must pass and ones that must be refused.

    python -m tests.compiler.rules         writes the table in docs/p4-language.md anew

`rules/*.rules` hold them, by chapter of the specification; a line begins with

    ? SECTION | the rule, as docs/p4-language.md says it
    + PROGRAM            that must be accepted
    - CODE | PROGRAM     that must be refused, with one of these codes
    ~ REASON             why p4c 1.2.4.2 thinks otherwise of the program in the line above

A program in braces is the body of the control in `body.p4`, and `main.p4` is a switch around it;
all begin with `prelude.p4`.
"""

from __future__ import annotations

from dataclasses import field
from pathlib import Path

from params.data import Data

HERE = Path(__file__).parent / "rules"
PRELUDE = (HERE / "prelude.p4").read_text()
BODY = (HERE / "body.p4").read_text()
MAIN = (HERE / "main.p4").read_text()
DOCS = Path(__file__).resolve().parents[2] / "docs" / "p4-language.md"
BEGIN = "<!-- rules: written by python -m tests.compiler.rules -->\n"
END = "<!-- end of rules -->\n"
FILES = ("types", "expressions", "blocks")


class Program(Data, frozen=False):
    """A program and the codes it may be refused with; none if it keeps the rule."""

    text: str
    codes: frozenset[str] = frozenset()
    not_for_p4c: str = ""

    @property
    def whole(self) -> str:
        """The program as it is compiled."""
        inside = BODY.replace("@@@", self.text) if self.text.startswith("{") else self.text + "\n"
        return PRELUDE + inside

    @property
    def in_a_switch(self) -> str:
        """The body of a control within a switch; nothing if the program is none."""
        return self.whole + MAIN if self.text.startswith("{") else ""


class Rule(Data, frozen=False):
    """A rule, and programs that keep it and that break it."""

    section: str
    text: str
    programs: list[Program] = field(default_factory=list)

    @property
    def name(self) -> str:
        """How tests call it."""
        return f"{self.section} {self.text}"


def rules() -> list[Rule]:
    """All rules, in the specification's order."""
    found: list[Rule] = []
    for name in FILES:
        for line in (HERE / f"{name}.rules").read_text().splitlines():
            mark, _, rest = line.partition(" ")
            if mark == "?":
                section, _, text = rest.partition(" | ")
                found.append(Rule(section, text))
            elif mark == "+":
                found[-1].programs.append(Program(rest))
            elif mark == "-":
                codes, _, program = rest.partition(" | ")
                found[-1].programs.append(Program(program, frozenset(codes.split())))
            elif mark == "~":
                found[-1].programs[-1].not_for_p4c = rest
            else:
                raise ValueError(line)
    return found


def table() -> str:
    """The rules as docs/p4-language.md shows them."""
    lines = ["| section | rule | refused otherwise with |", "|---|---|---|"]
    for rule in rules():
        codes = sorted(set().union(*(program.codes for program in rule.programs)))
        cells = [rule.section, rule.text, ", ".join(f"`{c}`" for c in codes)]
        lines.append("| " + " | ".join(cells) + " |")
    return "\n".join(lines) + "\n"


def documented() -> str:
    """docs/p4-language.md with the table as it should be."""
    before, _, rest = DOCS.read_text().partition(BEGIN)
    _, _, after = rest.partition(END)
    return before + BEGIN + table() + END + after


if __name__ == "__main__":
    DOCS.write_text(documented())
