"""An index of the runs on a disk: what each was, when, and what came of it."""

from __future__ import annotations

import re
import shutil
from collections.abc import Sequence
from contextlib import suppress
from datetime import UTC, datetime
from functools import cached_property
from pathlib import Path

from lab.errors import LabError
from lab.results.result import REPORT, RESULT
from params.data import Data
from params.quantity import size
from views.report import page
from views.report.differences import since_shipped
from views.report.kept import KeptRun, read_result
from views.report.numbers import BY_KEY

_OWN_NAME = re.compile(r".+-\d{8}-\d{6}(-\d+)?")  # what a run without --out calls its folder
_SHOWN = ("duration_ns", "gpu_utilisation", "drops.total", "pfc.xoff_frames", "flows.fct_ns.max")
HEAD = ("run", "when", "what", "changed", *(BY_KEY[key].name for key in _SHOWN), "to be believed")


class Entry(Data):
    """A folder of the index: a run, or several side by side, or what came to nothing."""

    folder: Path

    @cached_property
    def run(self) -> KeptRun | None:
        """The run, if it can be read."""
        try:
            return read_result(self.folder)
        except LabError:
            return None

    @property
    def is_own(self) -> bool:
        """Whether closlab chose its name, so that nobody counts on it."""
        return _OWN_NAME.fullmatch(self.folder.name) is not None

    @cached_property
    def changed_s(self) -> float:
        """When it was written."""
        return self.folder.stat().st_mtime

    @cached_property
    def bytes(self) -> int:
        """What it takes of the disk."""
        return sum(file.lstat().st_size for file in self.folder.rglob("*") if not file.is_dir())

    def row(self) -> tuple[str, ...]:
        """What it was, and its figures; one by one as HEAD has them."""
        when = datetime.fromtimestamp(self.changed_s).astimezone().strftime("%Y-%m-%d %H:%M")
        if self.run is None:
            return (self.folder.name, when, self._other(), "", *("" for _ in _SHOWN), "")
        result = self.run.result
        made = result.provenance.get("date", "")
        with suppress(ValueError, OverflowError):  # of one that somebody changed
            began = datetime.strptime(made, "%Y-%m-%dT%H:%M:%SZ").replace(tzinfo=UTC)
            when = began.astimezone().strftime("%Y-%m-%d %H:%M")
        engine = "simulated" if result.engine == "sim" else f"Mininet, {result.switch}"
        believed = "ended early" if result.ended else "yes" if result.fidelity.ok else "no"
        figures = (BY_KEY[key].text(result) for key in _SHOWN)
        what = f"{result.scenario.name}, {engine}, seed {result.seed}"
        return (self.folder.name, when, what, since_shipped(self.run), *figures, believed)

    def _other(self) -> str:
        if (self.folder / RESULT).exists():
            return "a run of another version"
        within = sum(1 for _ in self.folder.glob(f"*/{RESULT}"))
        return f"{within} runs side by side" if within else "no run, or one that ended early"


def entries(folder: Path) -> list[Entry]:
    """All that a folder holds, the latest first."""
    try:
        found = [Entry(path) for path in folder.iterdir() if path.is_dir()]
    except OSError as error:
        raise LabError(
            f"{folder} cannot be read: {error.strerror}",
            "Runs are kept in runs/ where they were started; name another folder if that is not "
            "here:  closlab runs DIR",
        ) from None
    return sorted(found, key=lambda entry: (-entry.changed_s, entry.folder.name))


def prunable(found: Sequence[Entry], keep: int) -> list[Entry]:
    """All but the latest, of those that bear a name of closlab's choice."""
    return [entry for entry in found if entry.is_own][keep:]


def prune(doomed: Sequence[Entry]) -> int:
    """Remove them; how many bytes that makes free."""
    freed = 0
    for entry in doomed:
        size_bytes = entry.bytes
        try:
            shutil.rmtree(entry.folder)
        except OSError as error:
            raise LabError(
                f"{entry.folder} cannot be removed: {error.strerror or error}",
                "Its owner may remove it; what is told of above it is gone.",
            ) from None
        freed += size_bytes
    return freed


def write_index(found: Sequence[Entry], folder: Path) -> Path:
    """Write the index as a page, with links to the reports, into the folder."""
    path = folder / "index.html"
    rows = []
    for entry in found:
        name, *rest = entry.row()
        has_report = (entry.folder / REPORT).exists()
        rows.append([page.Link(name, f"{name}/{REPORT}") if has_report else name, *rest])
    total = size(sum(entry.bytes for entry in found))
    body = [
        page.heading(1, "Runs"),
        page.paragraph(f"{len(found)} in {folder}/, the latest first; they take {total}.", "about"),
        page.table(HEAD, rows, "texts"),
    ]
    path.write_text(page.document("runs \N{MIDDLE DOT} closlab", body, is_wide=True))
    return path
