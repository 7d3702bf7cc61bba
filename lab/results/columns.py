"""Tables for programs: columns with names, as CSV or as Parquet."""

from __future__ import annotations

import csv
import importlib
from collections.abc import Iterable, Sequence
from pathlib import Path

from lab.errors import MissingTool

KINDS = ("csv", "parquet")
Cell = int | float | str | None


def require(kind: str) -> None:
    """Fail with what to install, if such a table cannot be written."""
    if kind == "parquet":
        _parquet()


def write(path: Path, kind: str, names: Sequence[str], rows: Iterable[Sequence[Cell]]) -> None:
    """Write rows under these names."""
    if kind == "csv":
        with path.open("w", newline="") as file:
            writer = csv.writer(file, lineterminator="\n")
            writer.writerow(names)
            writer.writerows(rows)
        return
    arrow, parquet = _parquet()
    columns = zip(*rows, strict=True)
    table = arrow.table(  # type: ignore[attr-defined]
        {name: list(next(columns, ())) for name in names}
    )
    parquet.write_table(table, path)  # type: ignore[attr-defined]


def _parquet() -> tuple[object, object]:
    try:
        return importlib.import_module("pyarrow"), importlib.import_module("pyarrow.parquet")
    except ImportError:
        raise MissingTool(
            "Parquet files are written by pyarrow, which is not installed",
            "pip install 'closlab[parquet]', in this folder .venv/bin/pip install -r "
            "requirements-parquet.lock; or ask for csv.",
        ) from None
