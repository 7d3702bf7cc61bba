"""A report's first sentence: of every scenario that ships it names who suffers, and why."""

import re
from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest
from rich.console import Console

import closlab as closlab_api
from lab.engines import RunOptions
from lab.runs.lots import drawn
from lab.runs.run import run_quietly
from lab.scenario import catalogue, shipped
from lab.scenario.questions import Question
from tests.lab.conftest import closlab
from tests.lab.simulated import simulate
from views.report import read_run, write_report
from views.report.kept import KeptRun
from views.report.verdict import verdict
from views.report.words import sentences

# By scenario: what an engineer who sees it would name.
NAMES = {
    "allreduce-tree": ("Its messages are small",),
    "alltoall": ("leaf3 sent 67 % of its upward bytes via spine1", "416 KB waited before"),
    "deadlock": ("A deadlock", "leaf2 → spine2 → leaf4 → spine1 → leaf2", "watchdog discarded"),
    "checkpoint-burst": (
        "Beside a checkpoint the job took 587 µs, 16 % longer than alone (506 µs)",
    ),
    "degraded-path": ("25 % of its rate", "spine1>leaf2", "in use 30 %", "2.6 % longer"),
    "degraded-spray": ("10 % of its rate", "leaf1>spine1"),
    "degraded-uplink": ("25 % of its rate", "3.83 times as long as without"),
    "hash-collision": ("No: leaf2 sent 67 %", "an even share is 25 %"),
    "hot-experts": (
        "All wait for h16 and h3",
        "24 % longer than if all were as quick as the typical host",
    ),
    "incast": ("7 hosts wrote to h1 at once", "h8's message to h1 suffers most"),
    "kv-cache": ("leaf1>spine3", "had the first token within 169 µs", "the slowest after 287 µs"),
    "link-failure": ("With leaf1-spine1 down", "whose link was down", "time-outs expired"),
    "lossy-link": ("lost (at random)", "With 0.1 % of data packets lost", "20 % longer than"),
    "pfc-storm": (
        "A pause storm from h1",
        "22 of 32 link directions stood",
        "discarded 8,516 packets",
    ),
    "noisy-neighbour": (
        "Beside red (h4, h6 and h8 to h2)",
        "2.27 times as long as alone",
        "pause frames stopped",
    ),
    "north-south": ("no room in the shared buffer, mostly of leaf1",),
    "path-health": ("Nothing: with leaf1-spine3 losing 20 %", "as long as without"),
    "pfc-or-trim": ("h8 to h2 took 1.01 times as long as alone meanwhile",),
    "spray-permutation": ("Not quite, and nobody suffered: ", "an even share is 25 %"),
    "two-fabrics": ("Nothing: beside a checkpoint the job took 506 µs, as long as alone",),
    "straggler": (
        "All wait for h6",
        "2 times as long as a typical host",
        "70 % longer than if all",
    ),
    "training-gpt3": (
        "Job 'scattered'",
        "at random",
        "times as long as 'aligned'",
        "instead of 73 %",
    ),
    "two-elephants": ("No: leaf1 sent 100 % of its upward bytes via", "2 times as long"),
    "usid-steering": ("Yes: every switch sent 25 % of what went up", "no message took longer"),
    "victim-flow": ("h8's message to h2 is the victim", "to h1"),
}


def _run(name: str, out: Path) -> KeptRun:
    """As somebody who asked for it sees it."""
    run_quietly(catalogue.load(name), RunOptions(out, "sim"), Console(quiet=True))
    return read_run(out)


# The others at night: of those that are here each begins with words of its own.
BY_DAY = ("incast", "hash-collision", "straggler", "victim-flow")


@pytest.mark.parametrize(
    "name",
    [pytest.param(each, marks=[pytest.mark.slow] * (each not in BY_DAY)) for each in NAMES],
)
def test_the_first_sentence_names_who_suffers_and_why(name: str, tmp_path: Path) -> None:
    run = _run(name, tmp_path)
    said = verdict(run)
    assert [word for word in NAMES[name] if word not in said] == [], said


# The same run asked for something else: where nothing of that is there, what explains most is told.
ANSWERS = {
    "suffers": "7 hosts wrote to h1 at once",
    "waits": "7 hosts wrote to h1 at once",
    "costs": "7 hosts wrote to h1 at once",
    "speed": "7 hosts wrote to h1 at once",
    "lossless": "Nothing was lost: 7 messages in",
    "balance": "No: leaf4 sent 100 % of its upward bytes via spine1",
}


def test_what_is_asked_is_answered_first(tmp_path: Path) -> None:
    for question, answer in ANSWERS.items():
        changes = (f"question={question}", "traffic.bytes=200KB")
        run = read_run(simulate("incast", *changes, out=tmp_path / question).out)
        said = verdict(run)
        assert answer in said
        words = run.result.scenario.question.words
        page = write_report(run.folder).read_text()
        places = (f'class="question">{words}', 'class="story verdict', "All that the figures say")
        assert [*map(page.index, places)] == sorted(map(page.index, places))


BY_NIGHT = (pytest.param(seed, marks=pytest.mark.slow) for seed in range(8, 100))


@pytest.mark.by_day(4)
@pytest.mark.parametrize("seed", [*range(8), *BY_NIGHT])
def test_any_run_answers_any_question(seed: int, tmp_path: Path) -> None:
    """In a sentence; and its page, with steps, chains and rows, can be written."""
    case = drawn(9_100_000 + seed, tmp_path)
    options = RunOptions(tmp_path / "run", "sim")
    options.out.mkdir()
    run_quietly(case.scenario, options, Console(quiet=True))
    run = read_run(options.out)
    for question in (None, *Question):
        scenario = run.result.scenario.model_copy(update={"question": question})
        asked = replace(run, result=run.result.model_copy(update={"scenario": scenario}))
        said = verdict(asked)
        assert said.endswith("."), said
        assert not re.search(r"  |None|nan|\.\.|: \.|, \.", said), said
    assert "story verdict" in write_report(options.out).read_text()


def test_every_scenario_asks_something() -> None:
    asked = Counter(catalogue.load(name).question for name in shipped.names())
    assert None not in asked and len(asked) == len(Question)


@pytest.mark.slow
@pytest.mark.parametrize("name", [n for n in shipped.names() if "sim" in shipped.engines(n)])
def test_every_scenario_has_one_sentence_and_more_for_who_asks(name: str, tmp_path: Path) -> None:
    run = _run(name, tmp_path)
    said = verdict(run)
    assert said.endswith(".") and 30 < len(said) < 330, said
    assert len(list(sentences(run))) > 3


def test_it_is_said_at_the_terminal_and_from_python(tmp_path: Path) -> None:
    done = closlab("run", "incast", "--engine", "sim", "--out", str(tmp_path / "run"))
    said = closlab_api.run("incast", out=tmp_path / "again").verdict
    assert said == verdict(read_run(tmp_path / "run"))
    assert said in done.stderr.splitlines()


def test_what_failed_goes_before_everything_else(tmp_path: Path) -> None:
    changes = ("pfc.enabled=false", "buffer.bytes=150KB", "transport.retry_limit=0")
    run = read_run(simulate("incast", *changes, out=tmp_path).out)
    assert run.result.flows.failed
    said = verdict(run)
    assert f"{run.result.flows.failed} of 7 messages did not arrive" in said
