"""``closlab report``: from what runs kept, however old, the reports of today."""

from __future__ import annotations

from lab.commands.options import Folders
from lab.report import find_runs, write_report


def command(folders: Folders) -> None:
    """Write the reports of runs anew."""
    for folder in folders:
        for found in find_runs(folder):
            print(write_report(found))
