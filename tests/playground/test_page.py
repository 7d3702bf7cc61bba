"""The page as somebody uses it, in a real browser."""

from __future__ import annotations

import functools
import http.server
import json
import shutil
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import pytest

from lab.machine.paths import FABRIC_PROGRAM
from tests.lab.browser import Browser, Tab, browser, needs_chromium
from tests.playground.test_same_bytes import here
from tests.waiting import LONG_S

pytestmark = needs_chromium
_LOADS_S = 3 * LONG_S
_READY = "document.readyState === 'complete' && document.querySelector('#run')?.disabled === false"
_ANEW = "performance.getEntriesByType('navigation')[0].type === 'reload'"


class _Files(http.server.SimpleHTTPRequestHandler):
    extensions_map = http.server.SimpleHTTPRequestHandler.extensions_map | {
        ".mjs": "text/javascript",
        ".wasm": "application/wasm",
    }

    def log_message(self, *_: Any) -> None:
        """Nobody is told."""


@pytest.fixture(scope="module")
def address(playground: Path) -> Iterator[str]:
    files = functools.partial(_Files, directory=str(playground))
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), files) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}/index.html"
        server.shutdown()


@pytest.fixture(scope="module")
def chromium() -> Iterator[Browser]:
    with browser() as found:
        yield found


def said(tab: Tab) -> str:
    return str(tab.js("(document.getElementById('progress') ?? {}).textContent ?? ''"))


def opened(chromium: Browser, address: str, **asked: Any) -> Tab:
    """The page, once it is ready; what is asked stands in its address."""
    words = urlencode(asked, doseq=True)
    tab = chromium.open(f"{address}#{words}" if asked else address)
    tab.until(_READY, _LOADS_S)
    return tab


def ran(tab: Tab, times: int = 1) -> str:
    """What is said when it has run; what is made for download meanwhile is kept."""
    tab.js(
        "if (!window.kept) { window.kept = []; const make = URL.createObjectURL;"
        "URL.createObjectURL = (blob) => { kept.push(blob); return make.call(URL, blob); }; } 1"
    )
    tab.click("#run")
    tab.until(
        f"document.documentElement.dataset.ran === '{times}'"
        " || document.querySelector('#progress').classList.contains('failed')",
        _LOADS_S,
    )
    return said(tab)


def file(tab: Tab, name: str) -> str:
    """What is offered for download under that name."""
    return str(
        tab.js(
            "kept.at([...document.querySelectorAll('#files a')]"
            f".findIndex((a) => a.download === '{name}') - "
            "document.querySelectorAll('#files a').length).text()"
        )
    )


def test_a_link_is_opened_run_changed_and_reloaded(chromium: Browser, address: str) -> None:
    tab = opened(chromium, address, scenario="hello", set=["seed=5"])
    expected = here("hello", ["seed=5"])
    assert tab.js("document.querySelector('#command').textContent").endswith("--set seed=5")
    assert ran(tab) == expected["verdict"]
    assert file(tab, "flows.csv") == expected["flows.csv"]
    tab.js("document.querySelector('#changes').value = 'pfc.alpha=much'; 1")
    assert "pfc.alpha" in ran(tab, 2)
    tab.js(
        "const typed = document.querySelector('#changes'); typed.value = 'seed=6';"
        "typed.dispatchEvent(new Event('input')); location.reload(); 1"
    )
    tab.until(f"{_ANEW} && {_READY}", _LOADS_S)
    assert tab.js("document.querySelector('#changes').value") == "seed=6"
    tab.close()


def test_no_script_comes_in_by_a_link(chromium: Browser, address: str) -> None:
    """Its words are text wherever they are shown, in the report as well."""
    evil = "<img src=x onerror=\"document.title='taken'\"><script>document.title='taken'</script>"
    tab = opened(chromium, address, scenario="hello", set=[f"about={evil}"])
    verdict = here("hello", [f"about={evil}"])["verdict"]
    assert ran(tab) == verdict
    assert "taken" not in tab.js("document.title")
    assert evil in file(tab, "result.json").replace('\\"', '"')
    assert not [said for said in tab.complaints() if "taken" in said]
    tab.close()


def test_a_run_is_stopped_and_the_page_lives(chromium: Browser, address: str) -> None:
    tab = opened(chromium, address, scenario="cluster-day")
    tab.click("#run")
    tab.until("!document.querySelector('#stop').disabled")
    tab.click("#stop")
    assert "topped" in said(tab) or "oad" in said(tab)
    tab.until("!document.querySelector('#run').disabled", _LOADS_S)
    assert tab.js("document.querySelector('#scenario').value") == "cluster-day"
    tab.js(
        "const chosen = document.querySelector('#scenario'); chosen.value = 'hello';"
        "chosen.dispatchEvent(new Event('input')); 1"
    )
    assert ran(tab) == here("hello")["verdict"]
    tab.close()


def test_a_threshold_in_p4_is_edited_compiled_and_run(
    chromium: Browser, address: str, tmp_path: Path
) -> None:
    """As by --p4 here; what does not compile is told with its place, and what ships comes back."""
    stock = FABRIC_PROGRAM.parent
    later = (stock / "mark.p4").read_text().replace("out_used > kmin", "out_used > kmin + 30000")
    mine = tmp_path / "p4src"
    shutil.copytree(stock, mine)
    (mine / "mark.p4").write_text(later)
    marks = ["ecn.enabled=true", "transport.cc=dcqcn"]
    ships, expected = here("incast", marks), here("incast", marks, mine)
    assert ships["flows.csv"] != expected["flows.csv"]
    tab = opened(chromium, address, scenario="incast", set=marks)
    _edit(tab, "mark.p4", later)
    assert ran(tab) == expected["verdict"]
    assert file(tab, "flows.csv") == expected["flows.csv"]
    assert file(tab, "timeseries.csv") == expected["timeseries.csv"]
    _edit(tab, "mark.p4", later.replace("kmin + 30000", "kmin + nothing"))
    assert "mark.p4" in ran(tab, 2) and "nothing" in said(tab)
    tab.js("document.querySelector('#reset').click(); 1")
    assert ran(tab, 2) == ships["verdict"]
    assert file(tab, "flows.csv") == ships["flows.csv"]
    tab.close()


def _edit(tab: Tab, name: str, text: str) -> None:
    tab.js(
        "{ const chosen = document.querySelector('#file'), typed = document.querySelector('#p4');"
        f"chosen.value = {json.dumps(name)}; chosen.dispatchEvent(new Event('change'));"
        f"typed.value = {json.dumps(text)}; typed.dispatchEvent(new Event('input')); }} 1"
    )
