"""Where figures come from: a changed program is a difference; every report can be made again."""

import json
import re
import shlex
import subprocess
from html import unescape
from pathlib import Path
from shutil import copytree

import pytest

from lab.machine import program
from lab.machine.paths import FABRIC_PROGRAM, ROOT
from lab.runs import provenance
from tests.lab.conftest import closlab
from tests.lab.simulated import simulate
from views.report import read_run, write_report
from views.report.again import KEPT_AS, command
from views.report.compare import Comparison, write_comparison

SMALL = ("traffic.bytes=40KB", "traffic.senders=2")


def _edited(folder: Path, old: str, new: str) -> Path:
    """A copy of the fabric program with one thing changed."""
    copytree(FABRIC_PROGRAM.parent, folder)
    path = folder / "path.p4"
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new, 1))
    return folder


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """The same scenario with the program that ships, a copy of it, and one that was changed."""
    folder = tmp_path_factory.mktemp("programs")
    copies = {
        "copy": _edited(folder / "one", "// Path choice:", "// A choice of paths:"),
        "mine": _edited(
            folder / "two", "policy_t policy = policy_t.ECMP;", "policy_t policy = policy_t.SPRAY;"
        ),
    }
    found = {"stock": folder / "stock"}
    simulate("incast", *SMALL, out=found["stock"])
    for name, copy in copies.items():
        found[name] = folder / name
        simulate("incast", *SMALL, out=found[name], p4=copy)
    return found


def test_a_changed_program_is_a_difference_named_first(runs: dict[str, Path]) -> None:
    comparison = Comparison.of([runs["stock"], runs["mine"]])
    hashes = [run.result.provenance["p4_sha256"][:8] for run in comparison.runs]
    assert hashes[0] != hashes[1]
    differences = [settings for _, settings, _ in comparison.legend()]
    assert differences == [f"P4={hashes[0]}", f"P4={runs['mine'].parent}/two ({hashes[1]})"]


def test_words_and_places_of_a_program_are_no_difference(runs: dict[str, Path]) -> None:
    comparison = Comparison.of([runs["stock"], runs["copy"]])
    assert {settings for _, settings, _ in comparison.legend()} == {"the same settings"}


@pytest.mark.parametrize(
    ("key", "place", "other"),
    [
        ("compiler", ("provenance", "compiler"), "p4c-bm2-ss 1.2.5"),
        ("engine", ("engine",), "mininet"),
        ("switch", ("switch",), "bmv2"),
        ("closlab", ("provenance", "version"), "9.9.9"),
        ("closlab", ("provenance", "commit"), "abcdef012345 with changes 01234567"),
    ],
)
def test_what_ran_is_told_before_what_was_asked(
    runs: dict[str, Path], tmp_path: Path, key: str, place: tuple[str, ...], other: str
) -> None:
    copytree(runs["stock"], tmp_path / "other")
    path = tmp_path / "other" / "result.json"
    content = json.loads(path.read_text())
    content["scenario"]["pfc"]["enabled"] = False
    inner = content
    for part in place[:-1]:
        inner = inner[part]
    inner[place[-1]] = other
    path.write_text(json.dumps(content))
    differences = Comparison.of([runs["stock"], tmp_path / "other"]).differences[1]
    assert re.match(rf"{key}=[^,]*{re.escape(other)}[^,]*, PFC off", differences)


def test_every_run_compared_is_named_by_its_own_program_and_command(
    runs: dict[str, Path], tmp_path: Path
) -> None:
    comparison = Comparison.of([runs["stock"], runs["mine"]])
    foot = _foot(write_comparison(comparison, tmp_path))
    for run in comparison.runs:
        assert run.result.provenance["p4_sha256"][:12] in foot
        assert command(run) in foot
        assert run.result.provenance["date"][:10] in foot
    assert "closlab compare" in foot


def _foot(report: Path) -> str:
    found = re.search(r"<footer>.*", report.read_text(), re.S)
    assert found
    return unescape(found[0])


@pytest.mark.by_day(2)
@pytest.mark.parametrize(
    "changes",
    [
        (),
        ("seed=5", "ecn.enabled=true", "transport.cc=dcqcn"),
        ("topology={kind: fat-tree, k: 4}", "traffic.senders=3"),
        ("faults=[{at_ns: 1us, link: leaf1-spine1, action: slow, share: 0.5, for_ns: 2us}]",),
    ],
)
def test_the_command_of_a_report_makes_the_same_run(
    tmp_path: Path, changes: tuple[str, ...]
) -> None:
    one = simulate("incast", *SMALL, *changes, out=tmp_path / "one").out
    write_report(one)
    found = re.search(r"<code>(closlab run [^<]*)</code>", (one / "report.html").read_text())
    assert found
    words = shlex.split(unescape(found[1]))[1:]
    done = closlab(*words, "--out", str(tmp_path / "two"))
    assert done.returncode == 0, done.stderr
    for name in ("result.json", "flows.csv", "timeseries.csv"):
        texts = [(tmp_path / run / name).read_text() for run in ("one", "two")]
        if name == "result.json":
            texts = [json.dumps({**json.loads(t), "provenance": None}) for t in texts]
        assert texts[0] == texts[1]


def test_a_scenario_of_ones_own_is_made_again_from_a_file(
    runs: dict[str, Path], tmp_path: Path
) -> None:
    copytree(runs["stock"], tmp_path / "own")
    path = tmp_path / "own" / "result.json"
    content = json.loads(path.read_text())
    content["scenario"]["name"] = "my-own"
    path.write_text(json.dumps(content))
    run = read_run(tmp_path / "own")
    assert command(run) == f"closlab run {KEPT_AS} --engine sim"
    assert f"its scenario saved as {KEPT_AS}" in _foot(write_report(run.folder))


def test_the_commit_is_that_of_the_checkout(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    def git(*words: str) -> None:
        argv = ["git", "-C", str(tmp_path), "-c", "user.name=n", "-c", "user.email=e", *words]
        subprocess.run(argv, check=True, capture_output=True)

    monkeypatch.setattr(provenance, "ROOT", tmp_path)
    git("init", "-q")
    (tmp_path / "p4src").mkdir()
    for name in ("a", "p4src/b"):
        (tmp_path / name).write_text("1\n")
    git("add", ".")
    git("commit", "-qm", "one")
    provenance.commit.cache_clear()
    clean = provenance.commit()
    assert re.fullmatch("[0-9a-f]{12}", clean)
    commits = []
    for name, text in (("p4src/b", "2\n"), ("a", "2\n"), ("a", "3\n")):
        (tmp_path / name).write_text(text)
        provenance.commit.cache_clear()
        commits.append(provenance.commit())
    assert commits[0] == clean  # a program has a hash of its own
    assert all(text.startswith(f"{clean} with changes ") for text in commits[1:])
    assert commits[1] != commits[2]
    provenance.commit.cache_clear()


def test_another_program_is_given_as_a_folder(tmp_path: Path) -> None:
    done = closlab(
        "run", "incast", "--engine", "sim", "--p4", str(tmp_path), "--out", str(tmp_path)
    )
    assert done.returncode == 1
    assert f"there is no {tmp_path}/fabric.p4" in done.stderr
    assert f"cp -r {ROOT}/p4src" in done.stderr


def test_a_kept_program_says_nothing_of_where_its_sources_lie(tmp_path: Path) -> None:
    mine = tmp_path / "somebody" / "p4src" / "fabric.p4"
    contents = {
        program._wherever(
            f'{{"filename": "{source.parent}/mark.p4", "by": "{ROOT}/compiler/core.p4"}}'.encode(),
            source,
        )
        for source in (FABRIC_PROGRAM, mine)
    }
    assert contents == {b'{"filename": "p4src/mark.p4", "by": "compiler/core.p4"}'}
