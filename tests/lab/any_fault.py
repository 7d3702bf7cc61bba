"""Any fabric with one fault: it is found, nothing else is said, a run shows it, and it is mended.

    .venv/bin/python -m tests.lab.any_fault [--seed N] [--count N] [--no-runs]

draws so many fabrics by lot, of two tiers and three and in any dialect, checks each as it is drawn
and with one fault, proves what was to be found by its runs, and applies its patch as RFC 6902 says.
Fabrics, faults and answers are made without the rules' code. It prints a line for all that is
amiss, and ends with 1 if less than 98 % are found, if of more than 2 % of fabrics anything is said
that is not so, or if a run does not show what docs/production.md says that it shows.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
import tempfile
from collections import Counter
from copy import deepcopy
from dataclasses import field
from pathlib import Path
from random import Random
from typing import Any

from lab.configs.basis import Options
from lab.configs.fabric import read_fabric
from lab.configs.findings import Finding, Op, grounded, patch_of
from lab.configs.proofs import prove
from lab.configs.rules import check
from lab.errors import LabError
from params.data import Data
from tests.lab.fabrics_by_lot import Fabric, sound
from tests.lab.faults_by_lot import ALSO, KINDS, Answer

_TABLE = Path(__file__).parents[2] / "docs" / "production.md"
_MIN_FOUND, _MAX_FALSE = 0.98, 0.02


class Tally(Data, frozen=False):
    """What came of them."""

    drawn: int = 0
    found: int = 0
    false: int = 0  # fabrics, sound or not, of which something is said that is not so
    shown: int = 0
    to_show: int = 0
    mended: int = 0
    to_mend: int = 0
    rules: Counter[str] = field(default_factory=Counter)

    def __str__(self) -> str:
        """In a line."""
        return (
            f"{self.drawn} fabrics with one fault ({len(self.rules)} rules): {self.found} found; "
            f"of {2 * self.drawn} fabrics, half of them sound, {self.false} with a false alarm; "
            f"{self.shown} of {self.to_show} shown by a run; {self.mended} of {self.to_mend} "
            "mended by their patch"
        )

    @property
    def is_well(self) -> bool:
        """Whether all of it is as it should be."""
        return (
            self.found >= _MIN_FOUND * self.drawn
            and self.false <= _MAX_FALSE * 2 * self.drawn
            and self.shown >= _MIN_FOUND * self.to_show
            and self.mended == self.to_mend
        )


def of_advice(rules: set[str]) -> set[str]:
    """Rules that the documents say no run shows."""
    found = set()
    for line in _TABLE.read_text().splitlines():
        cells = [cell.strip() for cell in line.split("|")]
        if len(cells) == 5 and cells[3].startswith("advice"):
            found |= set(re.findall(r"`([a-z-]+)`", cells[1])) & rules
    return found


def with_fault(seed: int) -> tuple[Fabric, Fabric, str, Answer]:
    """A sound fabric, the same with a fault, the fault's kind, and what is to be said."""
    kinds = list(KINDS)
    kind = kinds[seed % len(kinds)]
    for again in range(1000):
        fine = sound(seed + 1_000_003 * again)
        broken = fine.copy()
        broken.rng = Random(seed)
        answer = KINDS[kind](broken)
        if answer is not None:
            return fine, broken, kind, answer
    raise AssertionError(f"no fabric can have '{kind}'")


def is_answer(finding: Finding, answer: Answer) -> bool:
    """Whether a finding says what was to be said; a circle or a last cable has many places."""
    place = finding.rule, finding.switch, finding.table, finding.key
    rule, switch, *_ = answer
    return finding.rule == rule if not switch else place == answer


def is_false(finding: Finding, answer: Answer, kind: str) -> bool:
    """Whether something is said that is not so, and does not follow either."""
    if finding.rule in ALSO.get(kind, ()):
        return False
    return finding.rule != answer[0] or not is_answer(finding, answer)


def applied(tables: dict[str, Any], ops: list[dict[str, Any]]) -> dict[str, Any]:
    """A patch as RFC 6902, 4.1 has it: what holds the place has to be there."""
    made = deepcopy(tables)
    for op in ops:
        at: Any = made
        *path, last = (
            part.replace("~1", "/").replace("~0", "~") for part in op["path"].split("/")[1:]
        )
        for part in path:
            at = at[part]
        at[last] = op["value"]
    return made


def look(seed: int, folder: Path, tally: Tally, with_runs: bool) -> list[str]:
    """Whatever is amiss with one seed."""
    fine, broken, kind, answer = with_fault(seed)
    amiss = []
    tally.drawn += 1
    tally.rules[answer[0]] += 1
    said = check(read_fabric(fine.write(folder / "sound")), Options())
    if said:
        tally.false += 1
        amiss.append(f"sound, and {said[0].rule} at {said[0].place} is told: {said[0].what}")
    read = read_fabric(broken.write(folder / "broken"))
    said = check(read, Options())
    found = [one for one in said if is_answer(one, answer)]
    others = [one for one in said if is_false(one, answer, kind)]
    if others:
        tally.false += 1
        amiss += [f"{one.rule} at {one.place} is told: {one.what}" for one in others[:3]]
    if not found:
        return [f"{answer} is not found", *amiss]
    tally.found += 1
    if with_runs and answer[0] not in of_advice({answer[0]}):
        tally.to_show += 1
        ((_, proof),) = prove(found[:1])
        tally.shown += proof.is_shown
        if not proof.is_shown:
            amiss.append(f"{answer} is not shown: {proof.note}; {proof.before}; {proof.after}")
    if found[0].patch:
        tally.to_mend += 1
        tables = {name: switch.tables for name, switch in read.switches.items()}
        ops = patch_of(one for one in said if one.rule == answer[0])
        left = _mended(tables, ops, folder)
        tally.mended += not left
        amiss += [f"{answer} is not mended: {left}"] if left else []
    return amiss


def _mended(tables: dict[str, Any], ops: dict[str, list[Op]], folder: Path) -> str:
    """What is left of a fault when all its patches are applied; nothing: it is gone."""
    try:
        (folder / "mended").mkdir()
        for name, content in tables.items():
            made = applied(content, grounded(content, ops.get(name, []))[0])
            (folder / "mended" / f"{name}.json").write_text(json.dumps(made))
        left = check(read_fabric(folder / "mended"), Options())
    except KeyError as error:
        return f"the patch names {error}, which is not there"
    except LabError as error:
        return error.message
    return ", ".join(f"{one.rule} at {one.place}" for one in left)


def main() -> int:
    """So many, one after the other."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--count", type=int, default=500)
    parser.add_argument("--no-runs", action="store_true", help="check only; prove nothing")
    asked = parser.parse_args()
    tally = Tally()
    for seed in range(asked.seed, asked.seed + asked.count):
        with tempfile.TemporaryDirectory() as folder:
            for line in look(seed, Path(folder), tally, not asked.no_runs):
                kind = list(KINDS)[seed % len(KINDS)]
                print(f"seed {seed}, {kind}: {line}", flush=True)
    print(tally)
    return int(not tally.is_well)


if __name__ == "__main__":
    sys.exit(main())
