"""closlab reproduce: files are sound, formulas ask for figures alone, verdicts follow from both."""

import json
from pathlib import Path
from typing import Any

import pytest

from lab.errors import LabError
from lab.reproduce import names, paper, read
from lab.reproduce.formula import Formula, FormulaError
from lab.reproduce.observed import Observed
from lab.reproduce.paper import Line, Reproduction
from lab.reproduce.running import KEPT, PAGE, SCHEMA
from lab.reproduce.verdict import Verdict, compared, took_s
from tests.lab.conftest import closlab


class MadeUp(Observed):
    """A run whose figures are said."""

    def __init__(self, **figures: float) -> None:
        super().__init__(Path("/nowhere"))
        self.figures = figures

    def figure(self, key: str) -> float:
        return self.figures[key.replace(".", "_")]


RUNS = {"a": MadeUp(pfc_xoff_frames=3, duration_ns=4000), "b": MadeUp(duration_ns=1000)}


@pytest.mark.parametrize("name", names())
def test_every_reproduction_is_sound(name: str) -> None:
    found = read(name)
    assert found.theirs.strip().endswith(".") and found.here.strip().endswith(".")
    assert found.source.read.strip().endswith(".") and found.source.licence.strip().endswith(".")
    for line in (*found.lines, *found.causes):
        assert line.reason == "" or line.reason.strip().endswith(".")
    used = {case for line in (*found.lines, *found.causes) for case in line.formula.cases}
    assert used == set(found.cases)  # nothing is run for nothing


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("a.duration_ns / b.duration_ns", 4),
        ("a.duration_ns - 2us + 1KB", 3000),
        ("-min(a.duration_ns, b.duration_ns)", -1000),
        ("b.duration_ns < a.duration_ns", 1),
        ("a.duration_ns < b.duration_ns < 5us", 0),
        ("a.pfc.xoff_frames == 3 and not b.duration_ns > 1us", 1),
    ],
)
def test_formulas_come_to_what_they_say(text: str, value: float) -> None:
    formula = Formula.of(text)
    formula.check(set(RUNS))
    assert formula.value(RUNS) == value


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a.duration_ns +", "is no formula"),
        ("__import__('os').system('true')", "there is no function"),
        ("[a for a in b]", "is not for formulas"),
        ("(lambda: 1)()", "is not for formulas"),
        ("a['x']", "is not for formulas"),
        ("c.duration_ns", "there is no case 'c'"),
        ("slowdwn(a, 99)", "there is no function 'slowdwn'; did you mean 'slowdown'"),
        ("a.duration_ns + 1.2345ns", "is no whole number"),
        ("1" * 3000, "characters"),
    ],
)
def test_what_is_no_formula_is_told(text: str, expected: str) -> None:
    with pytest.raises(FormulaError, match=expected.replace("(", r"\(")):
        Formula.of(text).check(set(RUNS))


@pytest.mark.parametrize("text", ["a.duration_ns / 0", "a"])
def test_formulas_that_come_to_nothing_are_told(text: str) -> None:
    with pytest.raises(FormulaError):
        Formula.of(text).value(RUNS)


@pytest.mark.parametrize(
    ("line", "ours", "held"),
    [
        ({"theirs": 10, "within": "10%"}, 10.9, True),
        ({"theirs": 10, "within": "10%"}, 11.1, False),
        ({"theirs": [30, 100], "within": "10%"}, 27.5, True),
        ({"theirs": [30, 100], "within": "10%"}, 26.5, False),
        ({"theirs": "35us", "unit": "ns", "within": 0.1}, 38_000, True),
        ({"least": 2, "most": 3}, 2.5, True),
        ({"least": 2, "most": 3}, 3.5, False),
        ({"theirs": 10}, 99, None),
    ],
)
def test_criteria_hold_or_do_not(line: dict[str, Any], ours: float, held: bool | None) -> None:
    assert Line.model_validate({"what": "it", "ours": "1", **line}).judge(ours) is held


def reproduction(**changes: object) -> dict[str, Any]:
    source = {
        "paper": "A", "venue": "B", "where": "C", "link": "doi:10.1/1",
        "read": "D.", "licence": "E.",
    }  # fmt: skip
    lines = [{"what": "it", "theirs": 4, "ours": "a.duration_ns / b.duration_ns", "within": "10%"}]
    return {
        "title": "T", "source": source, "theirs": "F.", "here": "G.", "scenario": {},
        "cases": {"a": [], "b": []}, "lines": lines, **changes,
    }  # fmt: skip


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({"lines": [{"what": "it", "ours": "a.duration_ns"}]}, "no line has a criterion"),
        ({"lines": [{"what": "it", "ours": "x.duration_ns", "most": 1}]}, "no case 'x'"),
        ({"lines": [{"what": "it", "most": 1}]}, "give ours"),
        ({"lines": [{"what": "it", "ours": "1", "within": "10%"}]}, "give theirs as a number"),
        ({"lines": [{"what": "it", "ours": "1", "theirs": 1, "within": "ten"}]}, "write 10%"),
        ({"cases": {"a-1": []}}, "letters, digits and _"),
        ({"unfinished": ["c"]}, "there is no case 'c'"),
        ({"sceanrio": {}}, "unknown key 'sceanrio'; did you mean 'scenario'"),
        ({"scenario": {"topolgy": {}}}, "unknown key 'topolgy'"),
    ],
)
def test_what_is_wrong_with_a_file_is_told_with_its_place(
    tmp_path: Path, changes: dict[str, Any], expected: str
) -> None:
    (tmp_path / "one").mkdir()
    (tmp_path / "one" / paper.FILE).write_text(json.dumps(reproduction(**changes)))
    with pytest.raises(LabError) as caught:
        read("one", tmp_path)
    assert expected in caught.value.message
    assert "paper.yaml" in caught.value.message


def test_verdicts_are_by_the_median_of_seeds_and_memory_counts_for_nothing() -> None:
    found = Reproduction.model_validate(reproduction())
    slow = {"a": MadeUp(duration_ns=9000), "b": MadeUp(duration_ns=1000)}
    judged = compared("one", found, [RUNS, RUNS, slow])
    assert judged.lines[0].by_seed == (4, 4, 9)
    assert judged.verdict is Verdict.WITHIN and judged.lines[0].seeds_held == 2
    assert compared("one", found, [RUNS, slow, slow]).verdict is Verdict.OUTSIDE
    source = {**reproduction()["source"], "verified": False}
    unverified = Reproduction.model_validate(reproduction(source=source))
    assert compared("one", unverified, [RUNS]).verdict is Verdict.UNVERIFIED


@pytest.mark.slow
def test_a_reproduction_runs_once_and_is_written_down(tmp_path: Path) -> None:
    first = closlab("reproduce", "mrc-port-down", "--out", str(tmp_path))
    assert first.returncode == 0, first.stderr
    assert "mrc-port-down: within its criterion: 3 of 3 lines are met" in first.stdout
    content = json.loads((tmp_path / "mrc-port-down" / KEPT).read_text())
    assert content["schema"] == SCHEMA
    assert [line["holds"] for line in content["lines"]] == [True] * 3
    assert content["took_s"] >= max(run["processor_s"] for run in content["runs"]) > 0
    page = (tmp_path / "mrc-port-down" / PAGE).read_text()
    assert "bandwidth left with one of eight ports down" in page and "arXiv:2605.04333" in page
    kept = tmp_path / "mrc-port-down" / "whole" / "1"
    before = (kept / "result.json").stat().st_mtime_ns
    (tmp_path / "mrc-port-down" / "one_down" / "1" / "inputs.txt").write_text("of another code\n")
    again = closlab("reproduce", "mrc-port-down", "--out", str(tmp_path))
    assert again.returncode == 0 and "1 runs" in again.stderr
    assert (kept / "result.json").stat().st_mtime_ns == before
    one = closlab(
        "run", str(kept / "scenario.yaml"), "--engine", "sim", "--out", str(tmp_path / "again")
    )
    assert one.returncode == 0, one.stderr
    durations = [
        json.loads((f / "result.json").read_text())["duration_ns"]
        for f in (kept, tmp_path / "again")
    ]
    assert durations[0] == durations[1]


@pytest.mark.parametrize(
    ("times", "took"),
    [([], 0), ([7], 7), ([1, 1, 1, 1], 1), ([1, 1, 1, 1, 1], 2), ([5, 1, 1, 1, 1, 1, 1], 5),
     ([1, 2, 3, 4, 4], 5)],
)  # fmt: skip
def test_jobs_are_taken_as_a_processor_is_free(times: list[float], took: float) -> None:
    assert took_s(times) == took


def test_what_does_not_exist_is_told(tmp_path: Path) -> None:
    done = closlab("reproduce", "mrc-rign", "--out", str(tmp_path))
    assert done.returncode == 1
    assert "there is no reproduction 'mrc-rign'; did you mean 'mrc-ring'" in done.stderr
