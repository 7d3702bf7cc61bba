"""Rows of bars in a report: all that was kept is there; a browser zooms into it and searches."""

import json
from pathlib import Path

import pytest

from tests.lab.browser import browser, needs_chromium
from tests.lab.simulated import simulate
from views.report import read_run, traces, write_report
from views.report.kept import KeptRun
from views.report.standing import paused

SHORT = ("traffic.bytes=4MB", "faults.0.for_ns=500us")


@pytest.fixture(scope="module")
def storm(tmp_path_factory: pytest.TempPathFactory) -> KeptRun:
    return read_run(simulate("pfc-storm", *SHORT, out=tmp_path_factory.mktemp("storm")).out)


def _bars(text: str) -> list[tuple[str, int, int, str]]:
    """Row by row: its name, when a bar begins, how long it is, and what it says."""
    content = json.loads(text)
    return [
        (name, *bars[at : at + 2], content["words"][bars[at + 2]])
        for name, bars in content["rows"]
        for at in range(0, len(bars), 4)
    ]


def test_every_message_and_every_pause_has_its_bar(storm: KeptRun) -> None:
    bars = _bars(traces.traces(storm))
    messages = [bar for bar in bars if bar[0].endswith("sends")]
    assert {(name.split()[0], begin, lasts) for name, begin, lasts, _ in messages} == {
        (flow.src, flow.start_ns, flow.fct_ns) for flow in storm.flows
    }
    spans = [(row.name, round(a), round(b - a)) for row in paused(storm) for a, b in row.spans]
    still = [(name, begin, lasts) for name, begin, lasts, _ in bars if ">" in name]
    assert sorted(still) == sorted(spans)
    assert json.loads(traces.traces(storm))["bars"] == len(bars)


def test_what_did_not_arrive_is_red_and_says_so(tmp_path: Path) -> None:
    changes = ("pfc.enabled=false", "limit_ns=1ms", "traffic.bytes=300KB", "buffer.bytes=300KB")
    run = read_run(simulate("incast", *changes, out=tmp_path).out)
    assert run.result.flows.failed
    drawn = traces.traces(run)
    lost = [bar for bar in _bars(drawn) if bar[3].endswith("did not arrive")]
    assert len(lost) == run.result.flows.failed
    assert all(begin + lasts == run.end_ns for _, begin, lasts, _ in lost)


def test_of_too_many_those_are_kept_that_lasted_longest(
    storm: KeptRun, monkeypatch: pytest.MonkeyPatch
) -> None:
    every = sorted((lasts for _, _, lasts, _ in _bars(traces.traces(storm))), reverse=True)
    monkeypatch.setattr(traces, "_MAX", 20)
    drawn = traces.traces(storm)
    assert sorted((lasts for _, _, lasts, _ in _bars(drawn)), reverse=True) == every[:20]
    assert json.loads(drawn)["bars"] == len(every)


def test_where_nothing_was_kept_there_are_none(tmp_path: Path) -> None:
    changes = ("measures.flows=false", "measures.series=false", "traffic.bytes=10KB")
    run = read_run(simulate("hello", *changes, out=tmp_path).out)
    assert traces.traces(run) == ""
    assert "Every message" not in write_report(tmp_path).read_text()


@pytest.mark.slow
@needs_chromium
def test_a_browser_zooms_moves_and_searches(storm: KeptRun) -> None:
    page = write_report(storm.folder)
    with browser() as chromium:
        tab = chromium.open(page.as_uri(), 1000, 800)
        tab.until("document.readyState === 'complete' && !!document.querySelector('.traces')")
        box, text = "document.querySelector('.traces')", "document.querySelector('.traces output')"
        tab.js(f"{box}.closest('details').open = true")
        tab.until(f"!!{box}.dataset.to")

        def shown() -> tuple[int, int]:
            return int(tab.js(f"{box}.dataset.from")), int(tab.js(f"{box}.dataset.to"))

        assert shown() == (0, storm.end_ns)
        assert " bars" in tab.js(f"{text}.textContent")
        tab.js(f"{box}.querySelector('.view').focus()")
        tab.key("w")
        begin, end = shown()
        assert end - begin == pytest.approx(storm.end_ns / 2, abs=2)
        tab.key("d")
        assert shown()[0] == pytest.approx(begin + storm.end_ns / 8, abs=2)
        for _ in range(60):
            tab.key("+")
        begin, end = shown()
        assert end - begin == 10  # nanoseconds are the least there is
        tab.key("0")
        assert shown() == (0, storm.end_ns)
        for sought, said in (("leaf1>h1", "1 rows"), ("to h1,", "7 bars"), ("nothing", "0 bars")):
            tab.js(f"(i => {{ i.value = {sought!r}; i.oninput(); }})({box}.querySelector('input'))")
            assert said in tab.js(f"{text}.textContent")
        assert not tab.complaints()
