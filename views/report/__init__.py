"""Reports: what a folder of results shows, as one HTML file that needs nothing else.

    kept ──► suspects ──► words, numbers ──────► page
        └──► topology, plots, climbing, ... ──► svg, pdf

Pictures are shapes in the words of `palette.py`; pages, SVG and PDF are written from the same.

A report is made from the files of a run alone, so it can be made again at any time, and the same
results make the same bytes.
"""

from lab.results.result import REPORT
from views.report.kept import KeptRun, find_runs, read_run
from views.report.run import write_and_tell, write_report
from views.report.verdict import verdict

__all__ = [
    "REPORT",
    "KeptRun",
    "find_runs",
    "read_run",
    "verdict",
    "write_and_tell",
    "write_report",
]
