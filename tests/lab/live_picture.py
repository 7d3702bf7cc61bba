"""Makes the README's picture of the live page: the storm of `pfc-storm`, climbing.

.venv/bin/python -m tests.lab.live_picture docs/live.png
"""

import re
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import closlab
from tests.lab.browser import browser
from tests.lab.conftest import CLOSLAB

_MOMENT_NS = 790_000
_CHOSEN = "leaf1>h1", "spine1>leaf1", "leaf4>spine1"
_SETTLED_S = 0.5


def main(path: Path) -> None:
    with tempfile.TemporaryDirectory() as folder:
        closlab.run("pfc-storm", out=folder)
        replay = subprocess.Popen(
            [*CLOSLAB, "replay", folder],
            stderr=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            text=True,
        )
        try:
            assert replay.stderr is not None
            found = re.search(r"http\S+", replay.stderr.readline())
            assert found
            with browser() as chromium:
                tab = chromium.open(found[0], 1160, 700)
                tab.until("document.querySelector('#state')?.dataset.is === 'over'")
                tab.js(f"stop(); leap({_MOMENT_NS})")
                for name in _CHOSEN:
                    tab.js(f"toggle([scene.directions.indexOf('{name}')])")
                tab.js("refresh()")
                time.sleep(_SETTLED_S)
                tab.picture(path, whole=False)
        finally:
            replay.kill()
            replay.wait()


if __name__ == "__main__":
    main(Path(sys.argv[1]))
