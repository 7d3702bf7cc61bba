"""Makes the README's picture of a report: the beginning of `victim-flow`'s.

.venv/bin/python -m tests.lab.report_picture docs/report.png
"""

import sys
import tempfile
from pathlib import Path

import closlab
from tests.lab.browser import browser

_WIDE, _HIGH = 1080, 1045  # its story, the figures one looks at first, and the first pictures


def main(path: Path) -> None:
    with tempfile.TemporaryDirectory() as folder:
        page = closlab.run("victim-flow", out=folder).report()
        with browser() as chromium:
            tab = chromium.open(page.as_uri(), _WIDE, _HIGH)
            tab.until("document.readyState === 'complete'")
            tab.picture(path, whole=False)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
