"""What a tab simulates is, byte by byte, what the same scenario comes to here.

python -m tests.playground.test_same_bytes PLAYGROUND [SCENARIO...]
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from lab.engines import RunOptions
from lab.runs.chaos import quiet
from lab.runs.run import keep, outcome_of
from lab.scenario import catalogue, shipped
from lab.scenario.experiment import Experiment
from views.report import write_and_tell

IN_NODE = Path(__file__).with_name("in_node.mjs")
SIMULATED = [name for name in shipped.names() if "sim" in shipped.engines(name)]
_SAMPLE = ("incast", "lossy-link", "spray-permutation")
_WHERE = "provenance"  # of a result: which machine, and when
_FOOTER = re.compile(r"<footer.*?</footer>", re.DOTALL)  # of a report: the same


def here(name: str, changes: Sequence[str] = ()) -> dict[str, str]:
    """What its files hold if it is simulated on this machine."""
    with tempfile.TemporaryDirectory() as space:
        folder = Path(space)
        options = RunOptions(out=folder, engine="sim")
        experiment = Experiment.of(catalogue.load(name, tuple(changes)))
        keep(experiment, outcome_of(experiment, options, quiet()), options)
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

        def ask(name: str, changes: Sequence[str] = ()) -> dict[str, Any]:
            asked = {"scenario": name, "changes": list(changes)}
            print(json.dumps(asked), file=process.stdin, flush=True)
            return dict(json.loads(process.stdout.readline()))

        ask.offered = offered  # type: ignore[attr-defined]
        yield ask
        process.stdin.close()


def there(answer: dict[str, Any]) -> dict[str, str]:
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


def test_a_sample_of_scenarios_is_the_same(playground: Path) -> None:
    with tab(playground) as ask:
        assert list(ask.offered["scenarios"]) == SIMULATED
        for name in _SAMPLE:
            assert placeless(there(ask(name))) == placeless(here(name)), name
        refused = ask("incast", ["traffic.senders=many"])
        assert "traffic.senders" in refused["error"]


@pytest.mark.slow
@pytest.mark.timeout(3600)
def test_all_scenarios_are_the_same(playground: Path) -> None:
    with tab(playground) as ask:
        for name in SIMULATED:
            assert placeless(there(ask(name))) == placeless(here(name)), name


if __name__ == "__main__":
    import time

    with tab(Path(sys.argv[1])) as ask_:
        for each in sys.argv[2:] or SIMULATED:
            answer = ask_(each)
            if "error" in answer:
                print(each, answer["error"])
                continue
            began = time.monotonic()
            mine = placeless(here(each))
            took_ms = 1000 * (time.monotonic() - began)
            theirs = placeless(there(answer))
            differ = [file for file in mine if mine[file] != theirs.get(file)]
            rates = [line for line in answer["told"] if "packet-hops" in line]
            took = f"{answer['took_ms']:.0f} ms there, {took_ms:.0f} here"
            print(each, differ or "same", took, *rates, flush=True)
