"""``closlab report``: from what runs kept, however old, the reports of today."""

from __future__ import annotations

from lab.commands.options import Folders
from lab.machine.paths import writing_to
from views.report import find_runs, write_report


def command(folders: Folders) -> None:
    """Write the reports of runs anew."""
    for folder in folders:
        for found in find_runs(folder):
            with writing_to(found, "Copy the run's folder to where you may write."):
                print(write_report(found))
