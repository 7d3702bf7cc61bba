"""How soon a lever's change is on the screen, for levers by lot in all scenarios.

    python -m tests.lab.any_sliders --seed 1 --turns 5

Each scenario that the simulator runs with at most 64 hosts is opened in Chromium as `closlab tune`
shows it, and again with 64 hosts where it is a leaf-spine of traffic that any number of hosts can
have. Timed is from the change to the second frame that the browser draws of what becomes of it.
What lasts is shown as far as it is by then, and a verdict for which the same is simulated without
what it asks about comes later: nobody waits for either here.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import random
import sys
from collections.abc import Iterator, Sequence

from lab.errors import LabError
from lab.scenario import catalogue, shipped
from tests.lab.browser import Browser, Tab, browser
from tests.lab.test_live import page
from tests.lab.test_tune import DONE
from traffic.measures import percentile

_MAX_HOSTS = 64
_LARGE = "topology={kind: leaf-spine, leaves: 8, spines: 4, hosts_per_leaf: 8}"
_ANY_SIZE = {
    "alltoall": ("traffic.bytes=16KB",),
    "incast": ("traffic.senders=63", "traffic.bytes=100KB", "buffer.bytes=4MB"),
    "spray-permutation": (),
}
_ENDED = f"{DONE} || $('tuned').classList.contains('wrong')"
_SHOWN = f"/^(shown|the first)/.test($('tuned').textContent) || {_ENDED}"
_DRAWN = (
    "new Promise(done => requestAnimationFrame(() => requestAnimationFrame("
    "() => done(performance.now() - turnedAt))))"
)


def cases() -> Iterator[tuple[str, tuple[str, ...]]]:
    """Scenarios, and what is set in them."""
    for name in shipped.names():
        hosts = len(catalogue.load(name).fabric().hosts)
        if "sim" in shipped.engines(name) and hosts <= _MAX_HOSTS:
            yield name, ()
    for name, sets in _ANY_SIZE.items():
        yield name, (_LARGE, *sets)


def turned(tab: Tab, drawn: random.Random, turns: int) -> Iterator[tuple[str, float, bool]]:
    """What was turned, how many ms passed until it was seen, and whether it was refused."""
    for _ in range(turns):
        lever = drawn.choice([each for each in tab.js("levers") if each["stops"]])
        stop = drawn.choice([each for each in lever["stops"] if each != lever["now"]])
        change = f"change({json.dumps(lever['key'])}, {json.dumps(stop)})"
        tab.js(f"window.turnedAt = performance.now(); {change}; 1")
        tab.until(_SHOWN)
        ms = tab.js(_DRAWN)
        yield f"{lever['key']}={stop}", ms, tab.js("$('tuned').classList.contains('wrong')")
        tab.js("window.turnedAt = performance.now(); apply({}); 1")
        tab.until(_ENDED)


def look(chromium: Browser, name: str, sets: Sequence[str], seed: int, turns: int) -> list[float]:
    """Turn some levers of a scenario; tell of each."""
    words = [word for each in sets for word in ("--set", each)]
    took = []
    with page("tune", name, *words) as shown:
        tab = chromium.open(shown.url)
        tab.until("document.readyState === 'complete' && first && isOver()")
        for what, ms, is_refused in turned(tab, random.Random(f"{seed} {name}"), turns):
            print(f"{name:24} {ms:6.0f} ms  {what}{'  refused' if is_refused else ''}", flush=True)
            if not is_refused:
                took.append(ms)
        tab.close()
    return took


def main() -> int:
    """Turn them; fail if one in twenty takes more than a second."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--turns", type=int, default=5)
    parser.add_argument("names", nargs="*")
    asked = parser.parse_args()
    took: list[float] = []
    with browser() as chromium:
        for name, sets in cases():
            if asked.names and name not in asked.names:
                continue
            with contextlib.suppress(LabError):
                took += look(chromium, name, sets, asked.seed, asked.turns)
    late = sum(ms > 1000 for ms in took)
    print(
        f"{len(took)} changes: half within {percentile(took, 50):.0f} ms, 95 of 100 within "
        f"{percentile(took, 95):.0f} ms; {late} took more than a second"
    )
    return int(late > len(took) / 20)


if __name__ == "__main__":
    sys.exit(main())
