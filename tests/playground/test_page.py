"""The page as somebody uses it, in a real browser: by night, since each tab reads all of the lab.

What it asks the lab for is answered by day (`test_answers.py`).
"""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import pytest

from lab.machine.paths import FABRIC_PROGRAM
from tests.lab.browser import Browser, Tab, needs_chromium
from tests.playground.conftest import serving
from tests.playground.test_same_bytes import here
from tests.waiting import LONG_S

pytestmark = [needs_chromium, pytest.mark.slow]
_LOADS_S = 3 * LONG_S
_READY = "document.readyState === 'complete' && document.querySelector('#run')?.disabled === false"
_FAILED = "!!document.querySelector('#progress')?.classList.contains('failed')"
_ANEW = "performance.getEntriesByType('navigation')[0].type === 'reload'"


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
        f"document.documentElement.dataset.ran === '{times}' || {_FAILED}",
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


def test_what_is_turned_is_a_setting(chromium: Browser, address: str) -> None:
    """By a slider or a choice, there and back; what is typed turns them in its turn."""
    tab = opened(chromium, address, scenario="hello", set=["seed=5"])
    typed = "document.querySelector('#changes').value"
    tab.until("document.querySelectorAll('#levers .lever').length > 5", _LOADS_S)
    assert tab.js("document.querySelector('[id=\"lever-seed\"]').value") == "5"
    choice = "document.querySelector('[id=\"lever-pfc.enabled-easy\"]')"
    tab.js(f"{choice}.value = 'false'; {choice}.dispatchEvent(new Event('change')); 1")
    assert tab.js(typed) == "seed=5\npfc.enabled=false"
    assert "pfc.enabled%3Dfalse" in tab.js("location.hash")
    assert ran(tab) == here("hello", ["seed=5", "pfc.enabled=false"])["verdict"]
    tab.js(f"{choice}.value = 'true'; {choice}.dispatchEvent(new Event('change')); 1")
    assert tab.js(typed) == "seed=5"
    tab.js(
        "{ const it = document.querySelector('#changes'); it.value = 'pfc.enabled=false';"
        "it.dispatchEvent(new Event('input')); } 1"
    )
    assert tab.js(f"{choice}.value") == "false"
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


def test_it_opens_without_a_network_once_it_was_loaded(chromium: Browser, playground: Path) -> None:
    with serving(playground) as address:
        tab = opened(chromium, address, scenario="hello")
        tab.until("navigator.serviceWorker.ready.then((it) => !!it.active)", _LOADS_S)
    tab.js("location.hash = 'lesson=5'; location.reload(); 1")
    tab.until(f"{_ANEW} && {_READY}", _LOADS_S)
    assert "headroom" in tab.js("document.querySelector('#text').textContent")
    tab.js("location.hash = 'scenario=hello'; 1")
    assert ran(tab) == here("hello")["verdict"]
    tab.close()


@pytest.mark.parametrize("missing", ["WebAssembly", "Worker", "BigInt64Array"])
def test_a_browser_without_what_is_needed_says_which(
    chromium: Browser, address: str, missing: str
) -> None:
    tab = chromium.open("about:blank")
    tab.call("Page.addScriptToEvaluateOnNewDocument", source=f"delete globalThis.{missing};")
    tab.call("Page.navigate", url=address)
    tab.until(_FAILED, _LOADS_S)
    assert said(tab).startswith("This browser has no ")
    assert tab.js("document.querySelector('#run').disabled")
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


def test_an_error_is_shown_where_it_is(chromium: Browser, address: str) -> None:
    tab = opened(chromium, address, scenario="hello")
    wrong = (
        (FABRIC_PROGRAM.parent / "mark.p4").read_text().replace("out_used >", "out_used_up >", 1)
    )
    line = next(n for n, each in enumerate(wrong.split("\n"), 1) if "out_used_up" in each)
    _edit(tab, "mark.p4", wrong)
    tab.js("const f = document.querySelector('#file'); f.value = 'pause.p4';"
           "f.dispatchEvent(new Event('change')); 1")  # fmt: skip
    assert f"mark.p4:{line}" in ran(tab)
    assert tab.js("document.querySelector('#file').value") == "mark.p4"
    shown = "document.querySelector('#p4 .CodeMirror').CodeMirror"
    assert tab.js(f"{shown}.getCursor().line") == line - 1
    assert "out_used_up" in tab.js("document.querySelector('#p4 .said').textContent")
    tab.js("document.querySelector('#reset').click(); 1")
    assert tab.js("document.querySelector('#p4 .said')") is None
    tab.close()


def test_a_run_is_played_back_and_compared(chromium: Browser, address: str) -> None:
    tab = opened(chromium, address, scenario="incast", set=["traffic.bytes=500KB"])
    first = ran(tab)
    assert tab.js("document.querySelector('#compare').hidden")
    shown = "document.querySelector('#report').srcdoc"
    tab.click("#replay")
    tab.until(f"{shown}.includes('id=\"held\"') || {_FAILED}", _LOADS_S)
    assert said(tab) == first
    tab.js("document.querySelector('#changes').value = 'traffic.bytes=300KB'; 1")
    second = ran(tab, 2)
    assert first in tab.js("document.querySelector('#before').textContent") and first != second
    tab.click("#compare")
    tab.until(f"document.querySelector('#compare').ariaPressed === 'true' || {_FAILED}", _LOADS_S)
    assert said(tab) == second
    assert "now" in tab.js(shown) and "before" in tab.js(shown)
    tab.click("#told")
    assert file(tab, "report.html") == tab.js(shown)
    assert not tab.complaints()  # no script was kept from running
    tab.close()


def _edit(tab: Tab, name: str, text: str) -> None:
    tab.js(
        "{ const chosen = document.querySelector('#file');"
        f"chosen.value = {json.dumps(name)}; chosen.dispatchEvent(new Event('change'));"
        f"const it = document.querySelector('#p4 .CodeMirror').CodeMirror; it.setSelection("
        "{line: 0, ch: 0}, {line: it.lineCount(), ch: 0});"
        f"it.replaceSelection({json.dumps(text)}); }} 1"
    )
