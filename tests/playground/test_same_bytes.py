"""What a tab simulates is, byte by byte, what the same scenario comes to here.

python -m tests.playground.test_same_bytes PLAYGROUND [SCENARIO or SEED...]

A seed is a scenario by lot, with faults.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from lab.engines import RunOptions
from lab.errors import LabError
from lab.runs import lots
from lab.runs.chaos import quiet
from lab.runs.run import keeping, outcome_of, with_messages
from lab.scenario import catalogue, shipped
from lab.scenario.experiment import Experiment
from views.report import write_and_tell

IN_NODE = Path(__file__).with_name("in_node.mjs")
SIMULATED = [name for name in shipped.names() if "sim" in shipped.engines(name)]
_SAMPLE = ("hello", 183)  # the latter: floats, added up by other Pythons
_WHERE = "provenance"  # of a result: which machine, and when
_FOOTER = re.compile(r"<footer.*?</footer>", re.DOTALL)  # of a report: the same


Asked = str | dict[str, Any]  # a scenario's name, or all of it


def here(asked: Asked, changes: Sequence[str] = (), p4: Path | None = None) -> dict[str, str]:
    """What its files hold if it is simulated on this machine."""
    load = catalogue.load if isinstance(asked, str) else catalogue.made
    with tempfile.TemporaryDirectory() as space:
        folder = Path(space)
        options = RunOptions(out=folder, engine="sim", p4=p4)
        scenario = load(asked, tuple(changes))
        experiment = with_messages(Experiment.of(scenario))
        keeping(options, quiet())(experiment, outcome_of(experiment, options, quiet()))
        report, verdict = write_and_tell(folder)
        found = {path.name: path.read_text() for path in folder.iterdir() if path.is_file()}
        return {**found, "verdict": verdict, report.name: found[report.name]}


@contextmanager
def tab(playground: Path) -> Iterator[Any]:
    """Ask a tab in node for runs."""
    words = ["node", str(IN_NODE), str(playground)]
    pipe = subprocess.PIPE
    with subprocess.Popen(words, stdin=pipe, stdout=pipe, text=True) as process:
        assert process.stdin is not None and process.stdout is not None
        offered = json.loads(process.stdout.readline())

        def ask(asked: Asked, changes: Sequence[str] = ()) -> dict[str, Any]:
            words = json.dumps({"scenario": asked, "changes": list(changes)})
            print(words, file=process.stdin, flush=True)
            return dict(json.loads(process.stdout.readline()))

        ask.offered = offered  # type: ignore[attr-defined]
        yield ask
        process.stdin.close()


def there(answer: dict[str, Any]) -> dict[str, str]:
    if "error" in answer:
        raise LabError(answer["error"])
    return {**answer["files"], "verdict": answer["verdict"], "report.html": answer["report"]}


def placeless(files: dict[str, str]) -> dict[str, str]:
    """The same without what tells where and when it was made."""
    result = json.loads(files["result.json"])
    del result[_WHERE]
    return {
        **files,
        "result.json": json.dumps(result, indent=2),
        "report.html": _FOOTER.sub("", files["report.html"]),
    }


@pytest.mark.slow
def test_a_sample_is_the_same(playground: Path) -> None:
    """A scenario that ships, one by lot, and one that is refused."""
    with tab(playground) as ask:
        assert list(ask.offered["scenarios"]) == SIMULATED
        for each in _SAMPLE:
            asked = each if isinstance(each, str) else by_lot(each)
            assert outcome(partial(there, ask(asked))) == outcome(partial(here, asked)), each
        refused = ask("incast", ["traffic.senders=many"])
        assert "traffic.senders" in refused["error"]


@pytest.mark.slow
@pytest.mark.timeout(3600)
def test_all_scenarios_are_the_same(playground: Path) -> None:
    with tab(playground) as ask:
        for name in SIMULATED:
            assert placeless(there(ask(name))) == placeless(here(name)), name


def by_lot(seed: int) -> dict[str, Any]:
    """A scenario that nobody chose."""
    return dict(lots.drawn(seed, None, eventful=True).content) | {"name": f"lot-{seed}"}


def outcome(make: Callable[[], dict[str, str]]) -> dict[str, str]:
    """What comes of it: files, or what is said if it cannot be."""
    try:
        return placeless(make())
    except LabError as error:
        return {"error": error.message}


def compare(ask: Any, each: str) -> str:
    """How a scenario comes out, in a line."""
    asked: Asked = by_lot(int(each)) if each.isdecimal() else each
    answer = ask(asked)
    began = time.monotonic()
    mine, theirs = outcome(partial(here, asked)), outcome(partial(there, answer))
    took_ms = 1000 * (time.monotonic() - began)
    differ = [name for name in mine if mine[name] != theirs.get(name)] or "same"
    rates = [line for line in answer["told"] if "packet-hops" in line]
    took = f"{answer['took_ms']:.0f} ms there, {took_ms:.0f} here"
    return " ".join((each, str(differ), *filter(None, (mine.get("error"),)), took, *rates))


if __name__ == "__main__":
    with tab(Path(sys.argv[1])) as ask_:
        for word in sys.argv[2:] or SIMULATED:
            first, _, last = word.partition("-")
            numbered = first.isdecimal() and last.isdecimal()
            for one in range(int(first), int(last) + 1) if numbered else (word,):
                print(compare(ask_, str(one)), flush=True)
