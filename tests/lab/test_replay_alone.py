"""A kept run as one file: what the served page shows, without a server."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.lab.browser import browser, needs_chromium
from tests.lab.conftest import closlab


@pytest.mark.slow
@needs_chromium
def test_a_replay_is_one_file(tmp_path: Path) -> None:
    run, page = tmp_path / "run", tmp_path / "replay.html"
    assert closlab("run", "pfc-storm", "--engine", "sim", "--out", str(run)).returncode == 0
    assert closlab("replay", str(run), "--out", str(page)).returncode == 0
    assert page.stat().st_size < 1_000_000
    made = page.read_bytes()
    assert closlab("replay", str(run), "--out", str(page)).returncode == 0
    assert page.read_bytes() == made
    with browser() as found:
        tab = found.open(page.as_uri())
        tab.until("document.querySelector('#state')?.textContent === 'kept run'")
        tab.until("frames.length > 100 && document.querySelector('#clock').textContent !== '0 ns'")
        tab.js("document.activeElement.blur(); stop(); 1")
        tab.key("n")
        tab.until("document.querySelector('#step')?.textContent.startsWith('1 of ')")
        tab.click("#theme")  # it keeps that, where it may
        assert tab.js("performance.getEntriesByType('resource').length") == 0
        assert not tab.complaints()
