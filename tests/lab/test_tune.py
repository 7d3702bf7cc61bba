"""A scenario is tuned: what its levers offer can be had, and the page shows what `run` would."""

import json
import random
import shlex
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

import closlab
from lab.errors import LabError, ScenarioError
from lab.scenario import catalogue, shipped
from lab.scenario.levers import lever, levers, offered
from tests.lab.browser import Browser, Tab, browser, needs_chromium
from tests.lab.test_live import Page, page
from views.live.tuning import Overtaken, Tuning

pytest.importorskip("starlette")
DONE = "$('tuned').textContent.startsWith('simulated')"
NOW, WAS, CHANGE = (f"$('{name}').textContent" for name in ("now", "was", "change"))


@pytest.fixture(scope="module")
def chromium() -> Iterator[Browser]:
    with browser() as found:
        yield found


@pytest.fixture
def tuned(tmp_path: Path) -> Tuning:
    found = Tuning("incast", ("traffic.bytes=200KB",), tmp_path)
    found.begin()
    return found


@pytest.mark.by_day(6)
@pytest.mark.parametrize("name", shipped.names())
def test_a_lever_stands_where_the_scenario_has_it(name: str) -> None:
    """To choose what is there already changes nothing; a slider's stops are in order."""
    scenario = catalogue.load(name)
    found = levers(scenario)
    assert len({each.key for each in found}) == len(found) >= 14
    for each in found:
        assert each.about and each.now in each.stops
        assert catalogue.load(name, (f"{each.key}={each.now or 'null'}",)) == scenario, each.key


def test_what_a_lever_offers_is_taken_or_refused_in_words() -> None:
    """For a hundred keys of scenarios drawn: no stop is nonsense for its key alone."""
    drawn = random.Random(5)
    refused = 0
    tried = 0
    for _ in range(100):
        name = drawn.choice(shipped.names())
        scenario = catalogue.load(name)
        each = lever(scenario, drawn.choice([key.name for key in offered(scenario)]))
        for stop in drawn.sample(each.stops, min(3, len(each.stops))):
            tried += 1
            try:
                catalogue.read(name, (f"{each.key}={stop or 'null'}",))
            except LabError as error:
                refused += 1
                assert not error.message.startswith("unknown"), error.message
    assert tried > 150
    assert refused < tried / 5  # where other keys do not go with it


def test_a_lever_of_no_key_is_refused_with_the_nearest() -> None:
    with pytest.raises(ScenarioError, match=r"did you mean 'pfc\.headroom'"):
        lever(catalogue.load("incast"), "pfc.hedroom")
    with pytest.raises(ScenarioError, match="no single value"):
        lever(catalogue.load("incast"), "faults.0.at_ns")


def test_what_is_shown_is_what_the_command_would_give(tuned: Tuning) -> None:
    settings = {"pfc.enabled": "false", "transport.timeout": "5", "pfc.headroom": ""}
    answer = tuned.tried(settings)
    words = shlex.split(answer["command"])
    assert words[:5] == ["closlab", "run", "incast", "--engine", "sim"]
    changes = [words[at + 1] for at, word in enumerate(words) if word == "--set"]
    run = closlab.run(catalogue.load("incast", tuple(changes)))
    assert answer["verdict"] is None  # another run tells what it cost
    assert tuned.price(settings)["verdict"] == run.verdict
    assert answer["frames"][-1]["t"] == run.result.duration_ns
    counts = [frame["m"][:2] for frame in answer["frames"] if "m" in frame]
    assert counts[-1] == [7, run.result.flows.completed]
    figures = {name: now for name, _, now in answer["figures"]}
    assert figures["packets dropped"] == f"{run.result.drops.total:,}" != "0"
    assert "packets dropped" in answer["change"]
    assert not [*tuned.space.iterdir()]  # nothing is left


def test_what_is_the_same_is_told_as_that(tuned: Tuning) -> None:
    settings = {"pfc.response_ns": "4us"}
    answer = tuned.tried(settings)
    assert (answer["figures"], answer["change"]) == ([], "")
    assert tuned.price(settings)["verdict"] == tuned.offer()["verdict"]
    with pytest.raises(Overtaken, match="something else"):
        tuned.price({})


def test_the_latest_is_answered_and_a_long_one_can_be_stopped(tuned: Tuning) -> None:
    long = {"traffic.bytes": "2GB", "measures.series": "false"}
    became: list[object] = []

    def turn() -> None:
        try:
            became.append(tuned.tried(long))
        except LabError as error:
            became.append(error)

    for end in (lambda: tuned.tried({"seed": "2"}), tuned.stop):
        waiting = threading.Thread(target=turn)
        waiting.start()
        while not [*tuned.space.glob("[2-9]*")]:
            pass  # until it has begun
        end()
        waiting.join()
        assert isinstance(became.pop(), Overtaken)
        assert not [*tuned.space.iterdir()]


def test_what_lasts_is_shown_as_far_as_it_is(
    tuned: Tuning, monkeypatch: pytest.MonkeyPatch
) -> None:
    long = {"traffic.bytes": "50MB"}
    whole = tuned.tried(long, whole=True)
    assert whole["whole"]
    monkeypatch.setattr("views.live.tuning._SOON_S", 0.01)
    part = tuned.tried(long)
    assert (part["whole"], part["verdict"], part["figures"], part["change"]) == (
        False,
        None,
        [],
        "",
    )
    assert 0 < part["frames"][-1]["t"] < whole["frames"][-1]["t"]
    assert not [*tuned.space.iterdir()]


def test_what_is_nonsense_is_told_with_its_place_and_changes_nothing() -> None:
    with page("tune", "incast", "--set", "traffic.bytes=100KB") as shown:
        own = {"X_Closlab_Token": shown.token}

        def ask(settings: object, what: str = "set") -> tuple[int, dict[str, str]]:
            status, text = shown.ask("/tune", json.dumps({what: settings}), **own)
            return status, json.loads(text)

        assert shown.ask("/tune", json.dumps({"set": {}}))[0] == 403
        assert shown.ask("/tune?key=pfc.xn")[0] == 400
        for settings, named in (
            ({"pfc.enabled": "perhaps"}, "pfc.enabled"),
            ({"pfc.enabld": "true"}, "did you mean 'pfc.enabled'"),
            ({"buffer.bytes": "1KB"}, "buffer"),
            ({"name": "<script>"}, "name"),
            ({"topology": "{kind: file, path: /dev/zero}"}, "/dev/zero"),
            ({"topology": "{kind: fat-tree, k: 1000}"}, "k is 1000"),
            ({f"x{n}": "1" for n in range(100)}, "100 settings"),
            ({"": ""}, "KEY=VALUE"),
        ):
            status, answer = ask(settings)
            assert status == 400, (settings, answer)
            assert named in answer["error"], (settings, answer)
        for said in ("", "[]", "{", '{"set": 1}', '{"price": []}', "[" * 10_000, "\0"):
            assert shown.ask("/tune", said, **own) == (200, "{}"), said[:20]
        assert shown.ask("/tune", "x" * 20_000, **own)[0] == 413
        status, answer = ask({"pfc.enabled": "false"})
        assert (status, answer["verdict"]) == (200, None)
        assert ask({"pfc.enabled": "true"}, "price")[0] == 400  # which nobody tried
        status, answer = ask({"pfc.enabled": "false"}, "price")
        assert status == 200
        assert answer["verdict"]


@pytest.mark.slow
@needs_chromium
def test_a_turn_is_seen_over_what_was_before_and_undone(chromium: Browser) -> None:
    with page("tune", "incast") as shown:
        tab = _opened(chromium, shown)
        verdict = tab.js(NOW)
        assert "7 hosts wrote to h1 at once" in verdict
        tab.js("toggle([scene.directions.indexOf('leaf1>h1')])")
        assert tab.js("charts[0].series.length") == 2
        tab.js("(e => { e.value = 'spray'; e.onchange(); })($('lever-lb.policy-easy'))")
        tab.until(DONE)
        assert tab.js(CHANGE).startswith("It took")
        assert "7 hosts wrote to h1 at once" in tab.js(NOW)
        assert tab.js("charts[0].series.length") == 3  # what was before, dashed
        assert tab.js("charts[0].data[2].some((kb) => kb > 100)")
        assert "--set lb.policy=spray" in tab.js("$('command').textContent")
        assert tab.js("location.hash") == "#&lb.policy=spray"

        tab.js("(e => { e.value = 0; e.oninput(); e.onchange(); })($('lever-buffer.bytes-easy'))")
        tab.until("$('tuned').classList.contains('wrong')")  # too little for headroom
        assert "buffer" in tab.js("$('tuned').textContent")
        assert "lb.policy=spray" in tab.js("$('command').textContent")  # still what is shown
        tab.click("#undo")
        tab.until(DONE)
        assert tab.js("settings")["lb.policy"] == "spray"
        assert tab.js("$('lever-buffer.bytes').value") == "1MB"
        tab.js("$('another').value = 'pfc.xon_gap'; $('another').onchange()")
        tab.until("!!$('lever-pfc.xon_gap')")
        tab.js("window.isOld = true; location.reload()")  # keeps what was turned
        tab.until(f"!window.isOld && document.readyState === 'complete' && {DONE}")
        assert tab.js("$('lever-lb.policy-easy').value") == "spray"
        tab.click("#reset")
        tab.until(f"{NOW} === {json.dumps(verdict)}")
        assert tab.js(f"$('was').hidden && {CHANGE}") == ""
        assert all("(Bad Request)" in said for said in tab.complaints())  # of the buffer
        tab.close()

        other = chromium.open(f"{shown.url}&pfc.enabled=false&transport.timeout=5", 400, 800)
        other.until(f"document.readyState === 'complete' && {DONE}")  # a link carries settings
        assert "incomplete" in other.js(CHANGE)
        assert other.js("document.documentElement.scrollWidth") == 400
        other.close()


def _opened(chromium: Browser, shown: Page) -> Tab:
    tab = chromium.open(shown.url)
    tab.until("document.readyState === 'complete' && first && isOver()")
    return tab
