"""The live page: what it serves to whom, and what somebody sees who opens it in a browser."""

import http.client
import json
import re
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

import closlab
from lab.machine.speed import processor_slowness
from lab.results.outcome import Note
from lab.results.snapshot import Looker, rates_of
from lab.runs.run import UNBELIEVED
from lab.scenario import catalogue
from lab.scenario.experiment import Experiment
from params.inc import PORT as INC_PORT
from tests.lab.browser import Browser, Tab, browser, needs_chromium
from tests.lab.conftest import closlab as closlab_command
from tests.lab.conftest import started
from tests.lab.listeners import listeners
from tests.waiting import LONG_S, SLOWNESS
from traffic.frames import INT_PORT, ROCE_PORT, UET_PORT
from views.live import server
from views.live.hub import Hub, Scene

pytest.importorskip("starlette")
STORM = {"limit_ns": "450us", "measures.series_ns": "1us"}
CUT = "[...cables].filter(([_, cable]) => cable.isDead).map(([name]) => name).join()"
AT_100_US = "now() && now().t > 100000"


class Page:
    """A command that serves a page."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self.process = process
        assert process.stderr is not None
        self.said = ""
        while not (found := re.search(r"http://127\.0\.0\.1:(\d+)/#(\S+)", self.said)):
            line = process.stderr.readline()
            assert line, self.said
            self.said += line
        self.url, self.port, self.token = found[0], int(found[1]), found[2]

    def ask(
        self, path: str, words: str | None = None, method: str | None = None, **headers: str
    ) -> tuple[int, str]:
        """What is answered, and with which status."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=LONG_S)
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        verb = method or ("GET" if words is None else "POST")
        connection.request(verb, path, words, named)
        answer = connection.getresponse()
        text = answer.read().decode()
        connection.close()
        return answer.status, text

    def do(self, words: str) -> tuple[int, str]:
        """Ask for something to be done, with the token."""
        return self.ask("/do", words, X_Closlab_Token=self.token)

    def longest_queue(self) -> float:
        """In bytes, by the figures for Prometheus; -1 before there are any."""
        found = re.findall(
            r"^closlab_queue_bytes\{.*\} (\S+)$", self.ask("/metrics")[1], re.MULTILINE
        )
        return max(map(float, found), default=-1)

    def until(self, condition: Callable[[], bool], most_s: float = LONG_S) -> None:
        deadline = time.monotonic() + most_s
        while not condition():
            if time.monotonic() > deadline:
                self.process.kill()
                assert self.process.stderr is not None
                pytest.fail(f"it did not come to that: {self.said}{self.process.stderr.read()}")
            time.sleep(0.05)

    def tell(self, line: str) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(line + "\n")
        self.process.stdin.flush()


@contextmanager
def page(*words: str) -> Iterator[Page]:
    process = started(
        *words,
        stderr=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        stdin=subprocess.PIPE,
        text=True,
    )
    try:
        yield Page(process)
    finally:
        process.kill()
        process.wait()


@contextmanager
def live(out: Path, *words: str, pace: str = "100us/s") -> Iterator[Page]:
    with page(
        *("run", "incast", "--engine", "sim", "--live", "--pace", pace, "--out", str(out)), *words
    ) as found:
        yield found


@pytest.fixture(scope="module")
def chromium() -> Iterator[Browser]:
    with browser() as found:
        yield found


def opened(chromium: Browser, page: Page, state: str, **words: Any) -> Tab:
    tab = chromium.open(page.url, **words)
    tab.until(f"document.querySelector('#state')?.dataset.is === '{state}'")
    return tab


def test_it_is_for_this_machine_and_who_has_the_token(tmp_path: Path) -> None:
    with live(tmp_path) as page:
        here = f"127.0.0.1:{page.port}"
        assert page.ask("/")[0] == page.ask("/scene")[0] == 200
        assert page.ask("/", Host=f"localhost:{page.port}")[0] == 200
        for host in ("evil.example", f"evil.example:{page.port}", "127.0.0.1", f"{here}.evil", ""):
            for path in ("/", "/scene", "/frames", "/metrics", "/nothing"):
                assert page.ask(path, Host=host)[0] == 403, (host, path)
        own, cut = {"X_Closlab_Token": page.token}, "fail leaf1-spine1"
        for origin in ("http://evil.example", "null", f"https://{here}", "http://127.0.0.1"):
            assert page.ask("/do", cut, Origin=origin, **own)[0] == 403, origin
            assert page.ask("/scene", Origin=origin)[0] == 403, origin
        for token in ("", "x", page.token[:-1], page.token + "x", page.token.swapcase()):
            assert page.ask("/do", cut, X_Closlab_Token=token)[0] == 403, token
        assert page.ask("/do", cut)[0] == 403
        for path in ("/../pyproject.toml", "/%2e%2e/index.html", "/vendor/", "/page.js/.."):
            assert page.ask(path)[0] == 404, path
        for method in ("PUT", "DELETE", "OPTIONS"):
            assert page.ask("/do", cut, method=method, **own)[0] == 405
        for words in ("exit", "", "fail leaf1-spine9", "lb best", "pace never", "x" * 10_000):
            status, answer = page.do(words)
            assert status == (413 if len(words) > 1000 else 400), words
            assert json.loads(answer)["error"], words
        _, measured = page.ask("/metrics")
        assert "closlab_cable_cut" not in measured  # nothing of all this did anything
        assert page.do(cut)[0] == 200
        listening = [
            fields[1]
            for table in ("tcp", "tcp6")
            for fields in map(str.split, Path(f"/proc/net/{table}").read_text().splitlines())
            if fields[1].endswith(f":{page.port:04X}") and fields[3] == "0A"
        ]
        assert listening == [f"0100007F:{page.port:04X}"]


def test_frames_tell_what_the_run_noted_which_is_the_same_without(tmp_path: Path) -> None:
    """Differences are put together again by code of the test's own."""
    little = ("--set", "traffic.bytes=300KB", "--set", "int.share=0.3")
    with live(tmp_path / "live", *little, pace="500us/s") as page:
        directions = json.loads(page.ask("/scene")[1])["directions"]
        text = page.ask("/frames")[1]
        page.process.communicate(timeout=LONG_S)
    found = [json.loads(each) for each in re.findall(r"^data: (\{\".*)$", text, re.MULTILINE)]
    cells: dict[str, tuple[int, ...]] = dict.fromkeys(directions, (0,) * 5)
    for frame in found:
        changes = frame["d"]
        for at in range(0, len(changes), 6):
            cells[directions[changes[at]]] = tuple(changes[at + 1 : at + 6])
    assert [f["t"] for f in found] == sorted({f["t"] for f in found})
    assert found[-1]["last"] and "event: over" in text
    assert found[-1]["m"][:2] == [7, 7]
    result = closlab.read(tmp_path / "live").result
    assert found[-1]["t"] == result.duration_ns
    assert all(queue == 0 for queue, *_ in cells.values())
    stood = {what for f in found for _, kind, what, _ in f.get("e", []) if kind == "pause"}
    series = closlab.records(closlab.read(tmp_path / "live").timeseries)
    noted = {note["link"] for note in series if note["paused_ns"]}
    assert stood == {f"{name} stands still" for name in noted}
    changes = {"traffic.bytes": "300KB", "int.share": 0.3}
    alone = closlab.run("incast", set=changes, out=tmp_path / "alone").folder
    for name in ("flows.csv", "timeseries.csv", "pauses.csv", "buffers.csv"):
        assert (tmp_path / "live" / name).read_bytes() == (alone / name).read_bytes(), name
    one, two = (json.loads((tmp_path / n / "result.json").read_text()) for n in ("live", "alone"))
    assert one.pop("provenance") and two.pop("provenance") and one == two


@needs_chromium
def test_it_draws_and_a_cut_is_seen(chromium: Browser, tmp_path: Path) -> None:
    with live(tmp_path, "--set", "reroute_ns=20us") as page:
        assert page.do("stop")[0] == 200  # or it is over before a browser in want of time looks
        tab, other = (opened(chromium, page, "live", width=w) for w in (1400, 400))
        assert tab.js("document.querySelectorAll('#drawing .hit').length") == 32
        assert tab.js("location.hash") == ""  # the token is not left to be seen
        assert page.do("pace 20us")[0] == page.do("go")[0] == 200
        tab.until(AT_100_US)
        assert page.do("pace 2us")[0] == 200
        squares = "[...document.querySelectorAll('#drawing [data-q]')]"
        assert tab.js(f"{squares}.filter((q) => +q.getAttribute('width') > 0).length > 2")
        for each, name in ((tab, "leaf1>h1"), (other, "leaf2>spine1")):
            each.click(f".hit[aria-label='{name}']")
            assert each.js("document.querySelector('#chosen').textContent") == name
            assert each.js("charts.length") == 3
        shown = tab.js("Math.max(...charts[0].data[1])")
        assert 100 < shown < 1000  # KB before the receiver
        assert other.js("document.documentElement.scrollWidth") == 400

        tab.js("document.querySelector('#cable').value = 'leaf3-spine2'")
        tab.click("#cut")
        for each in (other, tab):
            each.until(f"{CUT} === 'leaf3-spine2'")
        assert page.do("pace 20us")[0] == 200
        events = "document.querySelector('#events').textContent"
        tab.until(f"{events}.includes('routes know of leaf3-spine2')")
        other.close()  # a browser that is closed ends nothing
        tab.js("window.then = now().t")
        tab.until("now().t > then + 50000")
        assert not tab.complaints()

        page.process.send_signal(signal.SIGINT)  # the server dies with the run
        page.process.communicate(timeout=LONG_S)
        tab.until("['over', 'lost'].includes(document.querySelector('#state').dataset.is)")
        with pytest.raises(ConnectionRefusedError):
            page.ask("/")
        before = tab.js("now().t")
        tab.key("ArrowLeft")  # what was seen can still be looked at
        assert tab.js("now().t") < before
        tab.close()


@pytest.mark.slow
@needs_chromium
def test_a_page_that_is_hidden_before_it_is_drawn_stays_up_to_date(
    chromium: Browser, tmp_path: Path
) -> None:
    with live(tmp_path, pace="10us/s") as page:
        tab = opened(chromium, page, "live")
        tab.js("window.requestAnimationFrame = () => 0")
        tab.until("isStale")
        other = opened(chromium, page, "live")
        tab.until("document.hidden")
        tab.until(f"at > {tab.js('frames.length')}")
        tab.close()
        other.close()


@pytest.mark.slow
@needs_chromium
def test_a_storm_is_seen_climbing_hop_by_hop(chromium: Browser, tmp_path: Path) -> None:
    closlab.run("pfc-storm", set=STORM, out=tmp_path)
    with page("replay", str(tmp_path)) as shown:
        tab = opened(chromium, shown, "over")
        tab.js("stop()")
        tab.key("Home")
        tab.js("leap(95000)")
        # By steps, as with the arrow key: when the mark of each direction is there first.
        first = tab.js(
            "(() => { const seen = {}; const marks = shapes.filter((s) => s.kind === 'p'); "
            "while (at < frames.length - 1) { show(at + 1); for (const m of marks) { "
            "const name = scene.directions[m.directions[0]]; "
            "if (+m.shape.getAttribute('r') > 0 && !(name in seen)) seen[name] = now().t; } } "
            "return seen; })()"
        )
        hops = ["leaf1>h1", "spine1>leaf1", "leaf4>spine1"]
        times = [first[name] for name in hops]
        assert 100_000 <= times[0] < times[1] < times[2] < 400_000, times
        assert any(first.get(host, 0) > times[2] for host in ("h7>leaf4", "h8>leaf4"))
        assert tab.js("at") == tab.js("frames.length") - 1
        tab.key("Home")
        tab.key("ArrowRight")
        assert tab.js("at") == 1
        steps = tab.js("scene.steps")
        for number, (at_ns, said, links) in enumerate(steps, 1):
            tab.key("n")
            assert tab.js("$('step').textContent") == f"{number} of {len(steps)}. {said}"
            near = f"frames.findLast((f) => f.t <= {at_ns}) ?? frames[0]"
            assert tab.js(f"now().t === ({near}).t"), said
            assert tab.js("document.querySelectorAll('.hit.lit').length") >= bool(links)
        tab.key("b")
        tab.click("#ask")
        tab.key("n")
        assert "What happens?" in tab.js("$('step').textContent")
        tab.key("n")
        assert tab.js("$('step').textContent").endswith(said)
        assert tab.js("$('step-on').disabled")
        tab.js("document.activeElement.blur()")  # a button takes the space bar for itself
        tab.key("Home")
        tab.key("ArrowRight")
        tab.js("(() => { $('speed').selectedIndex = 9; $('speed').onchange(); })()")
        tab.key(" ")
        tab.until("at === frames.length - 1")  # played to its end
        assert tab.js("document.querySelector('#hands').hidden")  # what is over cannot be changed
        assert not tab.complaints()
        tab.close()


@pytest.mark.slow
@pytest.mark.mininet
@pytest.mark.clock
@needs_chromium
def test_a_lab_on_mininet_is_watched_from_outside(
    chromium: Browser, tmp_path: Path, own_cache: Path
) -> None:
    """By the run's own page and by a second terminal's; what they ask for is done, and told."""
    words = ("run", "incast", "--live", "--cli", "--out", str(tmp_path / "out"))
    soon = ("--set", "traffic.bytes=3MB", "--set", "transport.rto_ns=500us")  # what a cut loses
    with page(*words, *soon) as shown:
        tab = opened(chromium, shown, "live")
        (written,) = own_cache.glob("*/lab.json")
        watch = json.loads(written.read_text())["watch"]
        with page("watch") as second:
            other = opened(chromium, second, "live", width=400, dark=True)
            done = "now().messages.slice(0, 2).join()"
            tab.until(f"{done} === '7,0'")
            tab.click("#traffic")
            tab.until("frames.some((f) => f.messages[2].length > 0)")  # those under way
            full = "scene.directions.some((_, d) => cell(f, d, QUEUE) > 50000)"
            for each in (tab, other):
                each.until(f"frames.some((f) => {full})")
            ages_s = []
            for _ in range(20):  # how old is the newest that is on the screen?
                shown_ns = tab.js("now().t") * watch["dilation"] + watch["since_ns"]
                ages_s.append((time.monotonic_ns() - shown_ns) / 1e9)
                time.sleep(0.05)
            assert sorted(ages_s)[10] < SLOWNESS, ages_s
            other.js("document.querySelector('#cable').value = 'leaf4-spine1'")
            other.click("#cut")
            for each in (tab, other):
                each.until(f"{CUT} === 'leaf4-spine1'")
            second.process.send_signal(signal.SIGINT)  # who no longer watches ends nothing
            assert second.process.wait(timeout=LONG_S) == 0
        events = "document.querySelector('#events').textContent"
        tab.until(f"{events}.includes('routes know of leaf4-spine1')")
        tab.until(f"{events}.includes('the hosts have sent')")
        tab.until(f"{done} === '7,7' && !now().messages[2].length")
        assert shown.process.poll() is None
        assert shown.process.stdin is not None
        shown.process.stdin.write("exit\n")
        shown.process.stdin.close()
        tab.until("document.querySelector('#state').dataset.is === 'over'")
        assert shown.process.wait(timeout=LONG_S) == 0
        assert not tab.complaints()
        with pytest.raises(ConnectionRefusedError):
            shown.ask("/")
        tab.close()
        other.close()
    result = closlab.read(tmp_path / "out").result
    assert [hand.what for hand in result.by_hand or ()] == ["fail leaf4-spine1"]


@pytest.mark.slow
@pytest.mark.mininet
@pytest.mark.clock
def test_traffic_that_the_page_started_is_ended_at_the_prompt(tmp_path: Path) -> None:
    """By Ctrl-C, after which hosts may send again, and by leaving; either way it is concluded.

    Meanwhile nobody comes to what this lab listens at, but to adapters by the fabric.
    """
    words = ("run", "incast", "--live", "--gnmi", "0", "--cli", "--out", str(tmp_path))
    result = tmp_path / "result.json"
    incast = catalogue.load("incast").fabric()

    # It lasts for minutes, and on a slow machine not for hours, which would be refused.
    with page(*words, "--set", "traffic.bytes=15MB", "--dilation", "65000") as shown:
        for end in (lambda: shown.process.send_signal(signal.SIGINT), lambda: shown.tell("exit")):
            shown.until(lambda: shown.longest_queue() == 0)
            assert shown.do("traffic")[0] == 200
            shown.until(lambda: shown.longest_queue() > 50_000)
            status, answer = shown.do("traffic")
            assert status == 400 and "sending already" in answer
            found = listeners(shown.process.pid)
            outside = {each.port for each in found if not each.is_inside}
            assert shown.port in outside and len(outside) == 2  # gNMI's is the other
            assert len(found) >= 2 + len(incast.switches)  # which speak P4Runtime
            ports = {(each.is_inside, each.port) for each in found if not each.is_local}
            assert ports <= {(True, port) for port in (ROCE_PORT, UET_PORT, INT_PORT, INC_PORT)}
            end()
            shown.until((tmp_path / "report.html").exists)  # which is written last
            kept = json.loads(result.read_text())
            assert "interrupted" in kept["ended"] and kept["flows"]["completed"] == 0
            (tmp_path / "report.html").unlink()
        assert shown.process.wait(timeout=LONG_S) in (0, UNBELIEVED)
        assert shown.process.stderr is not None
        assert "Traceback" not in shown.process.stderr.read()


@pytest.mark.clock
def test_sixty_four_ports_ten_times_a_second_cost_little() -> None:
    """A page that reads, and Prometheus once a second: as a share of one core."""
    experiment = Experiment.of(catalogue.load("incast", ("topology.leaves=8",)))
    fabric = experiment.fabric
    rates = rates_of(fabric, {link.name: 10**11 for link in fabric.links})
    assert len(rates) == 64
    hub, looker = Hub(Scene(experiment.scenario, fabric, rates, "sim")), Looker(rates)
    with server.serving(hub) as address:
        reader = subprocess.Popen(
            [
                *("sh", "-c"),
                "while sleep 1; do curl -s $0metrics; done & curl -sN $0frames; kill $!",
                address.url.partition("#")[0],
            ],
            stdout=subprocess.DEVNULL,
        )
        time.sleep(0.5)
        cpu_s, began = time.process_time(), time.monotonic()
        for moment in range(1, 26):
            at_ns = moment * 10**5
            notes = [Note(at_ns, n, moment * 1000, at_ns, at_ns // 2, moment, 0) for n in rates]
            hub.publish(looker.look(at_ns, notes, is_last=moment == 25))
            time.sleep(0.1)
        share = (time.process_time() - cpu_s) / (time.monotonic() - began)
        reader.wait(timeout=LONG_S)
    assert share < 0.05 * processor_slowness()


def test_a_slow_reader_holds_up_nobody(tmp_path: Path) -> None:
    """A connection that never reads: the run ends all the same, in its time."""
    with live(tmp_path, "--set", "traffic.bytes=100KB", pace="1ms/s") as page:
        idle = http.client.HTTPConnection("127.0.0.1", page.port)
        idle.request("GET", "/frames")
        page.process.communicate(timeout=LONG_S)
        assert page.process.returncode == 0
        idle.close()


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("run", "incast", "--engine", "sim", "--pace", "1us/s"), "--pace is for the simulator"),
        pytest.param(
            ("run", "incast", "--live", "--pace", "1us/s"),
            "--pace is for the simulator",
            marks=pytest.mark.slow,
        ),
        (("run", "incast", "--engine", "sim", "--live", "--pace", "fast"), "'fast' is no time"),
        pytest.param(
            ("run", "incast", "--engine", "sim", "--live", "--pace", "1us/h"),
            "'1us/h' is no pace",
            marks=pytest.mark.slow,
        ),
        (("replay", "nowhere"), "there is no run in nowhere"),
    ],
)
def test_what_cannot_be_shown_is_said(words: tuple[str, ...], said: str, tmp_path: Path) -> None:
    done = closlab_command(*words, cwd=tmp_path)
    assert done.returncode == 1 and said in done.stderr, done.stderr
    assert not list(tmp_path.iterdir())
