"""All SKUs of a tree of sonic-buildimage: which are read whole, and their rows beside our headroom.

    .venv/bin/python -m tests.lab.sku_table TREE [--rows]

prints the table of docs/production.md: by speed and length the least, the middle and the largest
xoff that is shipped, what the lab asks for, and how many files have less. With --rows templates are
not rendered, which takes minutes.
"""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from pathlib import Path
from statistics import median

from controller.asics import ASICS
from lab.configs.basis import Options
from lab.configs.device import Compared, compared_row, is_device, read_device
from lab.configs.lookup import FILE, read_rows
from lab.configs.rules import check
from lab.errors import LabError

_METRES, _MIN_MBPS = (5, 40, 300), 10_000
_CELL = Options(ASICS["tomahawk4-like"].cell)


def skus(tree: Path) -> list[Path]:
    """The folders of all SKUs, by vendor and platform."""
    return sorted(one for one in tree.glob("device/*/*/*") if one.is_dir() and is_device(one))


def table(compared: list[Compared]) -> list[str]:
    """Of all rows, those of some lengths."""
    by: dict[tuple[int, float], list[Compared]] = {}
    for one in compared:
        by.setdefault((one.row.speed_mbps, one.row.metres), []).append(one)
    lines = []
    for (speed, metres), rows in sorted(by.items()):
        if metres not in _METRES or speed < _MIN_MBPS:
            continue
        xoffs = [one.row.xoff for one in rows]
        one = rows[0]
        lines.append(" | ".join([
            f"| {speed / 1000:g}", f"{metres:g}", str(len(rows)), f"{min(xoffs):,}",
            f"{median(xoffs):,.0f}", f"{max(xoffs):,}", f"{one.large:,}", f"{one.small:,}",
            f"{one.cells:,}", str(sum(x < one.large for x in xoffs)),
            f"{sum(x < one.small for x in xoffs)} |",
        ]))  # fmt: skip
    return lines


def main() -> int:
    """The whole tree."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("tree", type=Path)
    parser.add_argument("--rows", action="store_true")
    asked = parser.parse_args()
    came: Counter[str] = Counter()
    compared: dict[Path, list[Compared]] = {}
    for folder in skus(asked.tree):
        if (folder / FILE).is_file():
            compared[folder] = [compared_row(row, _CELL) for row in read_rows(folder / FILE)]
        if asked.rows:
            continue
        try:
            device = read_device(folder, None, "", Options())
        except LabError as error:
            came["refused"] += 1
            print(f"{folder}: {error.message}", file=sys.stderr)
            continue
        came["read whole" if device.fabric else "rows alone"] += 1
        if device.fabric:
            check(device.fabric, Options())
    rows = [row for each in compared.values() for row in each]
    print(f"{len(compared)} files, {len(rows):,} rows; "
          f"{sum(r.row.xoff < r.large for r in rows):,} below what 4096-byte packets need, "
          f"{sum(r.row.xoff < r.small for r in rows):,} below what 1024-byte ones do; "
          f"of {len(skus(asked.tree))} SKUs {dict(came)}")  # fmt: skip
    print("\n".join(table(rows)))
    return 0


if __name__ == "__main__":
    sys.exit(main())
