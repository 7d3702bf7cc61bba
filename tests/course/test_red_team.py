"""Hostile submissions: each gets its honest grade, reads and changes nothing, and leaves nothing.

Most are judged in this process, by their own room alone; all that must be refused once more in one
submission as `closlab grade` does it, in a room within the judge's.
"""

from __future__ import annotations

import ctypes
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from course import isolated, sandboxes
from course.checks import checks_of
from course.grade import grade
from course.inside import verdicts
from course.lesson import find
from course.submission import files_in
from course.verdict import Grade, Judged, State, shown
from lab.machine.paths import ROOT
from tests.course.attacks import FATAL, HELP, REFUSED

CANARY = f"closlab-red-team-{os.getpid()}"
FUNCTIONS = 10  # points of lesson 7 that its functions earn
SECRET = "root:$6$the-secret"
_SUBREAPER = 36
_SUBMISSION = (
    b"What a student's file in "  # begins what runs it, after all rooms are tried and made
)


@pytest.fixture(autouse=True)
def nothing_left(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Neither processes, which would become this one's children, nor files."""
    mine = tmp_path / "tmp"
    mine.mkdir()
    monkeypatch.setenv("TMPDIR", str(mine))
    monkeypatch.setattr("tempfile.tempdir", None)
    ctypes.CDLL(None).prctl(_SUBREAPER, 1, 0, 0, 0)
    before = children()
    yield
    ctypes.CDLL(None).prctl(_SUBREAPER, 0, 0, 0, 0)
    until = time.monotonic() + 10  # who is killed is gone in a moment
    while not children() <= before and time.monotonic() < until:
        time.sleep(0.01)
    assert children() <= before
    assert list(mine.iterdir()) == []
    places = ("/tmp", "/dev/shm", "/var/tmp", "/", str(Path.home()), str(Path.cwd()))
    assert not [place for place in places if (Path(place) / CANARY).exists()]


def children() -> set[str]:
    """Those that live: who has died and waits to be asked after counts as gone."""
    tasks = Path("/proc/self/task").glob("*/children")
    found = {pid for task in tasks for pid in task.read_text().split()}
    return {pid for pid in found if not _is_dead(pid)}


def below(pid: str) -> list[str]:
    """A process's children, theirs, and so on."""
    try:
        tasks = list(Path(f"/proc/{pid}/task").glob("*/children"))
        found = [child for task in tasks for child in task.read_text().split()]
    except OSError:
        return []
    return [*found, *(each for child in found for each in below(child))]


def _is_submission(pid: str) -> bool:
    try:
        return _SUBMISSION in Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return False


def _is_dead(pid: str) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z"
    except OSError:
        return True


def hostile(tmp_path: Path, lines: str) -> Path:
    """Right functions, and lines before those that take their place if they have their names."""
    folder = tmp_path / "handed-in"
    folder.mkdir()
    secret = tmp_path / "secret.txt"
    secret.write_text(SECRET)
    solution = find("7").folder / "solution" / "rates.py"
    known = f"CANARY, SECRET, SOLUTION = {CANARY!r}, {str(secret)!r}, {str(solution)!r}\n"
    text = solution.read_text()
    for line in lines.splitlines():
        if line.startswith("def "):
            text = text.replace(line.partition("(")[0] + "(", "def unused(")
    (folder / "rates.py").write_text(f"{HELP}\n{known}\n{lines}\n{text}")
    return folder


def said(found: Grade) -> str:
    return "\n".join(f"{v.what}\n{v.where}" for v in found.verdicts if v.state is State.WRONG)


def judged(number: str, folder: Path) -> Grade:
    """The grade, by a judge who is in no room himself."""
    lesson = find(number)
    found = (
        Judged(v.says, v.points, v.state, shown(v.what), shown(v.where))
        for v in verdicts(lesson, files_in(folder))
    )
    return Grade(lesson.name, lesson.title, tuple(found))


@pytest.mark.ordinary
def test_what_must_be_refused_is(tmp_path: Path) -> None:
    """All of it, one after the other, and the work beside it counts."""
    found = grade(find("7"), hostile(tmp_path, "\n".join(REFUSED.values())))
    assert found.score == FUNCTIONS, said(found)
    assert said(found).startswith("there is no answers.yaml")


@pytest.mark.slow
@pytest.mark.parametrize("name", REFUSED)
def test_each_alone_is_refused(name: str, tmp_path: Path) -> None:
    found = judged("7", hostile(tmp_path, REFUSED[name]))
    assert found.score == FUNCTIONS, said(found)


# One of each class in the default run, and none that has to be waited for.
QUICK = ("forge/no-object", "output/a-terminal-is-steered", "die/later", "memory/at-once")


@pytest.mark.parametrize(
    "name", [n if n in QUICK else pytest.param(n, marks=pytest.mark.slow) for n in FATAL]
)
def test_what_harms_its_author(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(isolated, "_USUAL_S", 6)
    lines, points, expected = FATAL[name]
    found = judged("7", hostile(tmp_path, lines))
    assert found.score == points, said(found)
    assert expected in said(found)
    assert "defect" not in said(found)
    assert all(c.isprintable() or c == "\n" for c in said(found))


def a_link(file: Path, secret: Path) -> None:
    file.symlink_to(secret)


def a_second_name(file: Path, secret: Path) -> None:
    file.hardlink_to(secret)


def a_pipe(file: Path, _secret: Path) -> None:
    os.mkfifo(file)


def a_link_to_a_device(file: Path, _secret: Path) -> None:
    file.symlink_to("/dev/zero")


def a_device(file: Path, _secret: Path) -> None:
    try:
        os.mknod(file, 0o20666, os.makedev(1, 5))
    except PermissionError:
        pytest.skip("only root can make a device")


def a_folder(file: Path, _secret: Path) -> None:
    file.mkdir()


def a_loop(file: Path, _secret: Path) -> None:
    file.symlink_to(file.name)


def an_include_of_a_path(file: Path, secret: Path) -> None:
    file.write_text(f'#include "{secret}"\n')


def an_include_of_a_system_path(file: Path, secret: Path) -> None:
    file.write_text(f"#include <{secret}>\n")


def an_include_upwards(file: Path, secret: Path) -> None:
    up = "../" * 12
    file.write_text(f'#include "{up}{str(secret)[1:]}"\n#include "{up}etc/shadow"\n')


def an_include_by_a_macro(file: Path, secret: Path) -> None:
    file.write_text(f'#define PLACE "{secret}"\n#include PLACE\n')


def an_include_of_a_link(file: Path, secret: Path) -> None:
    file.with_name("mine.p4").symlink_to(secret)
    file.write_text('#include "mine.p4"\n')


def an_include_of_a_linked_folder(file: Path, secret: Path) -> None:
    file.with_name("there").symlink_to(secret.parent)
    file.write_text(f'#include "there/{secret.name}"\n')


def an_include_of_a_device(file: Path, _secret: Path) -> None:
    file.write_text('#include "/dev/zero"\n#include "/dev/stdin"\n#include "/proc/self/environ"\n')


def a_line_of_another_file(file: Path, secret: Path) -> None:
    file.write_text(f'# 1 "{secret}"\nsyntax error here\n')


def a_thousand_files(file: Path, _secret: Path) -> None:
    for number in range(1_000):
        file.with_name(f"a{number}.p4").touch()
    file.touch()


def terminals_steered_by_p4(file: Path, _secret: Path) -> None:
    file.write_text("\x1b[2J\x1b]0;owned\x07 \u202e\n")


Plant = Callable[[Path, Path], None]
PLANTED: tuple[Plant, ...] = (
    *(a_link, a_second_name, a_pipe, a_link_to_a_device, a_device, a_folder, a_loop),
    *(an_include_of_a_path, an_include_of_a_system_path, an_include_upwards, an_include_by_a_macro),
    *(an_include_of_a_link, an_include_of_a_linked_folder, an_include_of_a_device),
    *(a_line_of_another_file, a_thousand_files, terminals_steered_by_p4),
)


@pytest.mark.ordinary
@pytest.mark.parametrize("plant", PLANTED)
def test_what_lies_elsewhere_is_not_told(plant: Plant, tmp_path: Path) -> None:
    """Of a program in P4, which is read, compiled and quoted."""
    secret = tmp_path / "secret.txt"
    secret.write_text(SECRET)
    folder = tmp_path / "handed-in"
    folder.mkdir()
    plant(folder / "forward.p4", secret)
    found = judged("1", folder)
    assert found.score == 0
    text = said(found)
    assert "$6$" not in text and "root:" not in text
    assert text and "defect" not in text
    assert all(c.isprintable() or c == "\n" for c in text)


INJECTIONS = (
    '@name("*/ int evil(void) { return system(\\"touch {place}\\"); } /*")',
    '@name("x\\"; __attribute__((constructor)) void f() {{ system(\\"touch {place}\\"); }} //")',
    '@name("a\\n#include \\"/etc/shadow\\"\\n")',
)


@pytest.mark.slow
@pytest.mark.parametrize("annotation", INJECTIONS)
def test_no_name_in_p4_becomes_code(annotation: str, tmp_path: Path) -> None:
    """A name may hold anything, and is a comment or a string in the C that is made of it."""
    folder = tmp_path / "handed-in"
    shutil.copytree(find("1").folder / "solution", folder)
    file = folder / "forward.p4"
    text = file.read_text()
    assert "    table " in text
    named = annotation.replace("{place}", f"/tmp/{CANARY}")
    file.write_text(text.replace("    table ", f"    {named}\n    table ", 1))
    text = said(judged("1", folder))
    assert "root:" not in text and "defect" not in text


# --- kernels that give less

_WITHOUT = """
import ctypes, os, struct, sys
from lab.cli import main
libc = ctypes.CDLL(None, use_errno=True)
numbers = [int(word) for word in sys.argv.pop(1).split(",") if word]
code = struct.pack("HBBI", 0x20, 0, 0, 0)
for n in numbers:
    code += struct.pack("HBBI", 0x15, 0, 1, n) + struct.pack("HBBI", 0x06, 0, 0, 0x50000 | 38)
code += struct.pack("HBBI", 0x06, 0, 0, 0x7FFF0000)
kept = ctypes.create_string_buffer(code)
program = struct.pack("HxxxxxxP", len(code) // 8, ctypes.addressof(kept))
assert libc.prctl(38, 1, 0, 0, 0) == 0
assert libc.prctl(22, 2, ctypes.create_string_buffer(program), 0, 0) == 0
sys.argv[0] = "closlab"
main()
"""
_UNSHARE = 97 if os.uname().machine == "aarch64" else 272
_LANDLOCK = 444


def graded_without(*calls: int, words: tuple[str, ...]) -> subprocess.CompletedProcess[str]:
    """What the command does on a kernel that has not these system calls."""
    numbers = ",".join(map(str, calls))
    return subprocess.run(
        [sys.executable, "-c", _WITHOUT, numbers, "grade", *words],
        capture_output=True,
        text=True,
        cwd=ROOT,
        check=False,
    )


@pytest.mark.slow
@pytest.mark.parametrize(
    "missing", [(_UNSHARE,), pytest.param((_LANDLOCK,), marks=pytest.mark.slow)], ids=str
)
def test_one_wall_is_enough(missing: tuple[int, ...], tmp_path: Path) -> None:
    folder = hostile(tmp_path, "\n".join(REFUSED.values()))
    done = graded_without(*missing, words=("7", str(folder), "--format", "json"))
    assert json.loads(done.stdout)["score"] == FUNCTIONS, done.stdout + done.stderr


def test_nothing_beside_it_takes_the_judges_place(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whoever grades stands in the folder, where a kernel without namespaces leaves the judge."""
    folder = hostile(tmp_path, "")
    forged = b'["passed", "", "", 0.0]\\n' * len(checks_of(7))
    (folder / "json.py").write_text(f"import os; os.write(1, {forged!r}); os._exit(0)")
    monkeypatch.chdir(folder)
    monkeypatch.setattr(sandboxes, "judges_room", lambda _desk, command: list(command))
    monkeypatch.setattr(sandboxes, "walls", frozenset)
    found = grade(find("7"), Path(), is_trusted=True)
    assert found.score == FUNCTIONS, said(found)


@pytest.mark.ordinary
@pytest.mark.parametrize(
    "how", [signal.SIGKILL, pytest.param(signal.SIGTERM, marks=pytest.mark.slow)]
)
def test_nothing_outlives_who_asked(how: signal.Signals, tmp_path: Path) -> None:
    folder = hostile(tmp_path, "time.sleep(1e6)")
    words = [sys.executable, "-c", "from lab.start import main; main()", "grade", "7", str(folder)]
    asked = subprocess.Popen(words, cwd=ROOT, stdout=subprocess.DEVNULL)
    until = time.monotonic() + 60
    while not any(map(_is_submission, below(str(asked.pid)))) and time.monotonic() < until:
        assert asked.poll() is None
        time.sleep(0.05)
    has_begun = any(map(_is_submission, below(str(asked.pid))))
    asked.send_signal(how)
    asked.wait()  # `nothing_left` sees to it that they go
    assert has_begun


@pytest.mark.slow
def test_without_any_nothing_is_judged_unless_it_is_trusted(tmp_path: Path) -> None:
    folder = hostile(tmp_path, "")
    missing = (_UNSHARE, _LANDLOCK)
    done = graded_without(*missing, words=("7", str(folder)))
    assert done.returncode == 2 and done.stdout == ""
    assert "cannot shut a submission in" in done.stderr and "--trusted" in done.stderr
    done = graded_without(*missing, words=("7", str(folder), "--trusted", "--format", "json"))
    assert json.loads(done.stdout)["score"] == FUNCTIONS, done.stdout + done.stderr
