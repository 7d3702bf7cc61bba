"""Grading: whatever is handed in there is a grade, in the form that was asked for."""

import json
import math
import shutil
import sys
from collections.abc import Callable, Iterable
from pathlib import Path
from xml.etree import ElementTree

import pytest

from course import grade as grading
from course.formats import FORMATS
from course.grade import grade
from course.lesson import find
from course.verdict import Grade, Judged, State
from lab.cli import main
from lab.machine.speed import processor_slowness
from params.data import Data
from tests.changes import change

PYTHON, P4 = "headroom.py", "pause.p4"
ENDLESS = "    while True:\n        pass\n"
HOSTILE = {
    "loops": (PYTHON, ENDLESS, "gave no answer"),
    "raises": (PYTHON, '    raise RuntimeError("\\0<&>\\x1b[2J")\n', "raised RuntimeError"),
    "exits": (PYTHON, "    import os\n    os._exit(0)\n", "ended Python"),
    "kills-itself": (PYTHON, "    import os\n    os.kill(os.getpid(), 9)\n", "gave no answer"),
    "recurses": (PYTHON, "    return headroom(rate_gbps, delay_ns, frame)\n", "RecursionError"),
    "eats-memory": (PYTHON, "    return len(bytearray(1 << 40))\n", "raised MemoryError"),
    "forges": (PYTHON, '    print(\'["passed", "", "", 0]\')\n    return 0\n', "were lost"),
    "returns-nothing": (PYTHON, "    pass\n", "which is no number"),
    "returns-nan": (PYTHON, '    return float("nan")\n', "in bytes, please"),
}


def submission(tmp_path: Path, number: str = "5") -> Path:
    folder = tmp_path / "handed-in"
    shutil.copytree(find(number).folder / "solution", folder)
    return folder


def hostile(tmp_path: Path, name: str) -> Path:
    """What is handed in, with this instead of its function's body."""
    file, body, _ = HOSTILE[name]
    folder = submission(tmp_path)
    text = (folder / file).read_text()
    (folder / file).write_text(text[: text.index("    on_the_wire")] + body)
    return folder


def some(names: Iterable[str], *quick: str) -> list[object]:
    """These in the default run, the others in the long one."""
    slow = pytest.mark.slow
    return [pytest.param(n, marks=[] if n in quick else [slow]) for n in names]


@pytest.mark.parametrize("name", some(HOSTILE, "forges"))
def test_hostile_python_gets_a_grade(name: str, tmp_path: Path) -> None:
    """What the program in P4 earned stays."""
    *_, expected = HOSTILE[name]
    found = grade(find("5"), hostile(tmp_path, name), processor_s=6)
    assert [v.state for v in found.verdicts[:4]] == [State.PASSED] * 4
    wrong = next(v for v in found.verdicts if v.state is State.WRONG)
    assert expected in f"{wrong.what}\n{wrong.where}"
    for form in FORMATS.values():
        form(found)
    ElementTree.fromstring(FORMATS["junit"](found))


@pytest.mark.slow
def test_a_slow_processor_is_given_as_much_longer(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    times = 3 * processor_slowness()
    monkeypatch.setattr(grading, "processor_slowness", lambda: times)
    found = grade(find("5"), hostile(tmp_path, "loops"), processor_s=2)
    wrong = next(v for v in found.verdicts if v.state is State.WRONG)
    assert wrong.what.endswith(f"gave no answer in {math.ceil(2 * times) // 6} s")


BOMB = "#define X0 x = x + 1;\n" + "".join(
    f"#define X{n} {f'X{n - 1} ' * 10}\n" for n in range(1, 9)
)
MANY = "(" * 5000 + "1" + ")" * 5000
BEGIN, APPLY = "control ingress(", "        profiles.apply();"
P4_HOSTILE = {
    "huge-register": (
        "    apply {\n        routes",
        "    register<bit<2048>>(1 << 27) a;\n    apply {\n        a.write(1, 1);\n        routes",
    ),
    "huge-table": ("        size = 64;", "        size = 0x7FFFFFFF;"),
    "compile-bomb": (
        BEGIN,
        f"{BOMB}control bomb(inout bit<8> x) {{ apply {{ X8 }} }}\n{BEGIN}",
    ),
    "goes-round-for-ever": (APPLY, f"{APPLY}\n        resubmit_preserving_field_list(1);"),
    "includes-itself": ('#include "net.p4"', '#include "pause.p4"'),
    "nested": (APPLY, f"{APPLY}\n        meta.size = {MANY};"),
    "no-text": (BEGIN, "\0\xff"),
}


@pytest.mark.parametrize("name", some(P4_HOSTILE, "compile-bomb"))
def test_hostile_p4_gets_a_grade(name: str, tmp_path: Path) -> None:
    folder = submission(tmp_path)
    old, new = P4_HOSTILE[name]
    text = (folder / P4).read_text()
    assert old in text
    (folder / P4).write_text(text.replace(old, new), encoding="latin-1")
    found = grade(find("5"), folder, processor_s=4)
    assert len(found.verdicts) == 7
    assert not any("defect" in verdict.where for verdict in found.verdicts), found
    assert not found.passed


def test_a_file_that_is_missing_or_far_too_long_is_told(tmp_path: Path) -> None:
    folder = submission(tmp_path)
    (folder / P4).unlink()
    (folder / PYTHON).write_bytes(b"#" * (1 << 20))
    found = grade(find("5"), folder)
    said = [verdict.what for verdict in found.verdicts if verdict.state is State.WRONG]
    assert said == ["there is no pause.p4"]
    assert found.score == 0


GRADE = Grade(
    "05-headroom",
    "5. XOFF, XON and headroom",
    (
        Judged("One", 2, State.PASSED, seconds=0.25),
        Judged("Two <&>", 3, State.WRONG, "line 1\nline 2", "there", 0.5),
        Judged("Three", 1, State.NOT_JUDGED, "because of what is said above"),
    ),
)


def test_a_grade_in_words() -> None:
    assert FORMATS["text"](GRADE) == (
        "Lesson 5. XOFF, XON and headroom\n"
        "  ok    One (2/2)\n"
        "  WRONG Two <&> (0/3)\n"
        "        line 1\n"
        "        line 2\n"
        "        look: there\n"
        "  -     Three (0/1)\n"
        "2 of 6 points"
    )


def test_a_grade_for_machines() -> None:
    grade = json.loads(FORMATS["json"](GRADE))
    assert (grade["score"], grade["max_score"], grade["passed"]) == (2, 6, False)
    assert [c["state"] for c in grade["checks"]] == ["passed", "wrong", "not judged"]
    scope = json.loads(FORMATS["gradescope"](GRADE))
    assert scope["score"] == sum(test["score"] for test in scope["tests"]) == 2
    assert [test["status"] for test in scope["tests"]] == ["passed", "failed", "failed"]
    suite = ElementTree.fromstring(FORMATS["junit"](GRADE))
    assert suite.attrib["tests"] == "3" and suite.attrib["failures"] == "1"
    assert suite.attrib["skipped"] == "1"
    failure = suite.find("testcase/failure")
    assert failure is not None and failure.text == "line 1\nline 2\nthere"


class Said(Data):
    returncode: int
    stdout: str
    stderr: str


Closlab = Callable[..., Said]


@pytest.fixture
def closlab(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Closlab:
    """The command, called in an empty folder."""
    monkeypatch.chdir(tmp_path)

    def call(*words: str) -> Said:
        monkeypatch.setattr(sys, "argv", ["closlab", *words])
        capsys.readouterr()
        with pytest.raises(SystemExit) as ended:
            main()
        said = capsys.readouterr()
        return Said(int(ended.value.code or 0), said.out, said.err)

    return call


def test_a_lesson_is_opened_worked_at_and_graded(tmp_path: Path, closlab: Closlab) -> None:
    listed = closlab("lesson").stdout
    assert "1. Forwarding and ECMP\n" in listed
    opened = closlab("lesson", "1").stdout
    assert "01-forwarding/forward.p4:" in opened and "closlab grade 1" in opened
    mine = tmp_path / "01-forwarding"
    assert {p.name for p in mine.iterdir()} == {
        *("README.md", "picture.svg"),
        *("forward.p4", "net.p4"),
    }
    asked = closlab("grade", "1")
    assert asked.returncode == 1 and "TODO 1" in asked.stdout
    shutil.copy(find("1").folder / "solution" / "forward.p4", mine)
    (mine / "net.p4").write_text("what is not the student's is as it ships")
    again = closlab("lesson", "forwarding").stdout
    assert "All of it is in 01-forwarding/ already." in again and "Next:" in again
    scope = closlab("grade", "1", "--format", "gradescope", "-o", "results.json")
    assert scope.returncode == 0 and scope.stdout == ""
    grade = json.loads((tmp_path / "results.json").read_text())
    assert grade["score"] == grade["max_score"]


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (("lesson", "99"), "there is no lesson '99'"),
        (("lesson", "headrom"), "did you mean 'headroom'?"),
        (("grade", "5", "nowhere"), "there is no folder nowhere"),
        (("grade", "5", "--format", "pdf"), "Choose one of text, json"),
        (("grade", "1", ".", "-o", "no/such/file"), "cannot be written"),
    ],
)
def test_what_is_not_there_is_told(words: tuple[str, ...], expected: str, closlab: Closlab) -> None:
    done = closlab(*words)
    assert done.returncode == (2 if words[0] == "grade" else 1)
    assert expected in done.stderr and "Traceback" not in done.stderr


def test_changes_say_where_they_do_not_fit(tmp_path: Path) -> None:
    (tmp_path / "a").write_text("x\n")
    with pytest.raises(AssertionError, match="0 places"):
        change(tmp_path, "--- a\n@@\n-y\n+z\n")
