"""Any fabric's configurations: a sound one is found sound, and a fault at its place, alone.

    .venv/bin/python -m tests.lab.any_configs [--seed N] [--count N]

checks so many seeds, each a sound fabric and the same with every kind of fault, and names what
fails. It ends with 1 if anything did.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from pathlib import Path

from lab.configs.basis import Options
from lab.configs.fabric import read_fabric
from lab.configs.findings import Finding, write_cured
from lab.configs.rules import check
from tests.lab.config_folders import FAULTS, NO_PATCH, Drawn, faulty, sound


def found_in(drawn: Drawn, folder: Path) -> list[Finding]:
    """What is found of a fabric."""
    for file in folder.glob("*.json"):
        file.unlink()
    return check(read_fabric(drawn.write(folder)), Options())


def complaint(seed: int, fault: str | None, folder: Path) -> str:
    """What should not be; nothing: all is well."""
    if fault is None:
        found = found_in(sound(seed), folder / "a")
        return "; ".join(f"{each.rule} at {each.place}: {each.what}" for each in found)
    drawn, rule, where = faulty(seed, fault)
    found = found_in(drawn, folder / "a")
    places = [(each.rule, each.switch, each.table, each.key) for each in found]
    if places != [(rule, *where)]:
        return f"{rule} at {where} was to be found, and there is {places}"
    if not found[0].patch:
        return "" if rule in NO_PATCH else f"{rule} has no patch"
    cured = folder / f"cured-{fault.replace(' ', '-')}-{seed}"
    write_cured(drawn.switches, found, cured)
    left = check(read_fabric(cured), Options())
    return "; ".join(f"cured, there is {each.rule} at {each.place}" for each in left)


def main() -> int:
    """So many seeds, one after the other."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--count", type=int, default=100)
    asked = parser.parse_args()
    failed = checked = 0
    for seed in range(asked.seed, asked.seed + asked.count):
        with tempfile.TemporaryDirectory() as folder:
            for fault in (None, *FAULTS):
                checked += 1
                if said := complaint(seed, fault, Path(folder)):
                    failed += 1
                    print(f"seed {seed}, {fault or 'sound'}: {said}", flush=True)
    print(f"{checked} fabrics, {failed} failed")
    return int(failed > 0)


if __name__ == "__main__":
    sys.exit(main())
