"""What the command line finds: words, runs on a disk, this machine, how a line may go on."""

import json
import re
import shutil
import subprocess
from pathlib import Path

import pytest
from rich.console import Console

from lab.commands.compare import show_table
from lab.machine.paths import ROOT
from lab.scenario import catalogue, glossary
from lab.scenario.explain import explain
from tests.lab.conftest import closlab, started
from tests.lab.simulated import simulate
from tests.waiting import LONG_S
from views.report.compare import Comparison


def test_the_page_of_words_is_what_the_command_line_tells() -> None:
    assert (ROOT / "docs" / "glossary.md").read_text() == glossary.markdown()
    assert [word.name.lower() for word in glossary.WORDS] == sorted(
        word.name.lower() for word in glossary.WORDS
    )


@pytest.mark.parametrize("word", glossary.WORDS, ids=lambda word: word.name)
def test_where_a_word_is_to_be_seen_exists(word: glossary.Word) -> None:
    assert word.meaning in " ".join(explain(word.name).split())
    if not word.see:
        return
    _, command, *rest = word.see.split()
    if command == "explain":
        assert explain(rest[0])
    elif command == "run":
        catalogue.load(
            rest[0], tuple(rest[rest.index("--set") + 1 :: 2] if "--set" in rest else ())
        )
    else:
        assert command == "frames"


@pytest.mark.parametrize(
    "term", ["XOFF", "xon", "HOL blocking", "head of line blocking", "PFC-storm"]
)
def test_a_word_is_found_by_its_other_names(term: str) -> None:
    assert glossary.found(term) is not None


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder in which somebody has worked: three runs, one of them named by its user."""
    place = tmp_path_factory.mktemp("work")
    for words in ((), ("--set", "traffic.bytes=8KB", "--seed", "2"), ("--out", "runs/mine")):
        done = closlab("run", "hello", "--engine", "sim", *words, cwd=place)
        assert done.returncode == 0, done.stderr
    (place / "runs" / "hello-20200101-000000").mkdir()
    return place / "runs"


def test_runs_are_told_with_what_was_changed(runs: Path) -> None:
    rows = json.loads(closlab("runs", str(runs), "--json").stdout)
    assert len(rows) == 4
    by_name = {each["run"]: each for each in rows}
    assert by_name["mine"]["changed"] == "" and by_name["mine"]["to be believed"] == "yes"
    assert "traffic.bytes=8000" in {each["changed"] for each in rows}
    assert by_name["hello-20200101-000000"]["what"].startswith("no run")


@pytest.mark.parametrize("date", ["", "yesterday", "2026-114222.0:31:42Z", "0001-01-01T00:00:00Z"])
def test_a_date_that_is_none_is_that_of_the_folder(runs: Path, tmp_path: Path, date: str) -> None:
    shutil.copytree(runs / "mine", tmp_path / "mine")
    kept = json.loads((tmp_path / "mine" / "result.json").read_text())
    kept["provenance"]["date"] = date
    (tmp_path / "mine" / "result.json").write_text(json.dumps(kept))
    (row,) = json.loads(closlab("runs", str(tmp_path), "--json").stdout)
    assert row["what"].startswith("hello, simulated")
    assert re.fullmatch(r"\d+-\d\d-\d\d \d\d:\d\d", row["when"])


def test_the_index_leads_to_the_reports(runs: Path) -> None:
    assert closlab("runs", str(runs), "--html").returncode == 0
    links = re.findall(r'href="([^"]+)"', (runs / "index.html").read_text())
    assert len(links) == 3
    assert all((runs / link).exists() for link in links)


def test_pruning_leaves_the_latest_and_what_bears_a_users_name(runs: Path, tmp_path: Path) -> None:
    copy = tmp_path / "runs"
    shutil.copytree(runs, copy)
    asked = started("runs", copy, "--prune", "1", stdin=subprocess.PIPE, text=True)
    asked.communicate("n\n", timeout=LONG_S)
    assert asked.returncode == 1 and len([*copy.iterdir()]) >= 4
    done = closlab("runs", str(copy), "--prune", "1", "--yes")
    assert done.returncode == 0, done.stderr
    left = {path.name for path in copy.iterdir() if path.is_dir()}
    assert "mine" in left and len(left) == 2


@pytest.mark.slow
def test_a_full_disk_is_a_sentence_for_all_that_writes_pages(runs: Path, tmp_path: Path) -> None:
    copy = tmp_path / "runs"
    shutil.copytree(runs, copy)
    mine, full = str(copy / "mine"), str(copy / "full")
    for page, words in (
        ("mine/report.html", ("report", mine)),
        ("index.html", ("runs", str(copy), "--html")),
        ("full/report.html", ("compare", mine, mine, "--out", full)),
        ("full/sweep.csv", ("sweep", "hello", "--vary", "seed=1,2", "--out", full)),
    ):
        (copy / page).parent.mkdir(exist_ok=True)
        (copy / page).unlink(missing_ok=True)
        (copy / page).symlink_to("/dev/full")
        done = closlab(*words)
        assert done.returncode == 1 and "Traceback" not in done.stderr, words
        assert "cannot be written: No space left" in done.stderr


def test_what_cannot_be_pruned_is_a_sentence(runs: Path, tmp_path: Path) -> None:
    (tmp_path / "hello-20200101-000000").symlink_to(runs / "mine")
    done = closlab("runs", str(tmp_path), "--prune", "0", "--yes")
    assert done.returncode == 1 and "Traceback" not in done.stderr
    assert "hello-20200101-000000 cannot be removed" in done.stderr
    assert (runs / "mine" / "result.json").exists()


def test_no_folder_of_runs_is_a_sentence(tmp_path: Path) -> None:
    done = closlab("runs", str(tmp_path / "none"))
    assert done.returncode == 1 and "cannot be read" in done.stderr


def test_comparisons_never_cut_a_figure(runs: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folders = sorted(path.parent for path in runs.glob("*/result.json"))
    comparison = Comparison.of(folders * 3)
    for width in (50, 80, 200):
        show_table(comparison, Console(width=width))
        output = capsys.readouterr().out
        assert "…" not in output
        for row in comparison.rows():
            words = re.findall(rf"^│ {re.escape(row[0])} +(│.*)$", output, re.M)
            cells = [cell.strip() for line in words for cell in line.strip("│").split("│")]
            assert cells == list(row[1:]), row[0]


def test_the_doctor_tells_what_is_missing_and_its_cure() -> None:
    done = closlab("doctor", "--json")
    checks = {each["what"]: each for each in json.loads(done.stdout)}
    stops = [each for each in checks.values() if each["verdict"] == "stops you"]
    assert done.returncode == bool(stops)
    assert checks["C compiler"]["verdict"] == "ok"  # else no test would run
    assert all(each["cure"] for each in checks.values() if each["verdict"] != "ok")
    ill = closlab("doctor", CC="no-such-compiler")
    assert ill.returncode == 1
    assert "no-such-compiler" in ill.stdout and "unset CC" in ill.stdout


@pytest.mark.parametrize(
    ("line", "wanted"),
    [
        ("closlab doc", {"docs", "doctor"}),
        ("closlab run inc", {"incast"}),
        ("closlab run incast --set pfc.watchdog_p", {"pfc.watchdog_poll_ns="}),
        ("closlab sweep incast --vary seed", {"seed="}),
    ],
)
def test_a_shell_is_told_how_to_go_on(line: str, wanted: set[str]) -> None:
    at = len(line.split()) - 1
    done = closlab(COMP_WORDS=line, COMP_CWORD=str(at), _CLOSLAB_COMPLETE="complete_bash")
    assert set(done.stdout.split()) == wanted


def test_ones_own_program_with_another_name_gets_a_sentence(tmp_path: Path) -> None:
    own = tmp_path / "p4"
    shutil.copytree(ROOT / "p4src", own)
    for file in own.glob("*.p4"):
        text = file.read_text().replace("ipv4_routes", "my_routes")
        file.write_text(text.replace("ipv6_routes", "mine_for_the_other_version"))
    words = ("run", "hello", "--engine", "sim", "--p4", str(own), "--out", str(tmp_path / "out"))
    done = closlab(*words)
    assert done.returncode == 1
    assert "'ipv4_routes'" in done.stderr and "my_routes" in done.stderr
    assert "Traceback" not in done.stderr


def test_a_described_fabric_says_which_names_its_nodes_have_here(tmp_path: Path) -> None:
    hosts = {
        name: {"ip": f"10.0.{n}.{n}/24", "mac": f"08:00:00:00:0{n}:0{n}"}
        for n, name in ((1, "alice"), (2, "h2"))
    }
    links = [["alice", "s1-p1"], ["h2", "s2-p1"], ["s1-p2", "s2-p2"]]
    file = tmp_path / "topology.json"
    file.write_text(json.dumps({"hosts": hosts, "switches": {"s1": {}, "s2": {}}, "links": links}))
    done = closlab(
        *("run", "hello", "--engine", "sim", "--out", str(tmp_path / "out")),
        *("--set", f"topology={{kind: file, path: {file}}}"),
    )
    assert done.returncode == 0, done.stderr
    assert "alice is h1, s1 is leaf1, s2 is leaf2." in done.stderr


def test_what_the_readme_says_of_ecn_is_what_comes_of_it(tmp_path: Path) -> None:
    said = " ".join((ROOT / "README.md").read_text().split())
    figures = re.search(
        r"it took (\d+) % longer, ([\d.]+) ms against ([\d.]+) ms, .* busy for (\d+) % of the run "
        r"instead of (\d+) %\. It saves (\d+) % of the pause frames",
        said,
    )
    assert figures is not None
    with_pauses = simulate("incast", out=tmp_path / "pfc").result
    with_marks = simulate(
        "incast", "ecn.enabled=true", "transport.cc=dcqcn", out=tmp_path / "ecn"
    ).result
    busiest = [max(use.utilisation or 0 for use in r.links) for r in (with_marks, with_pauses)]
    assert [float(word) for word in figures.groups()] == pytest.approx(
        [
            round(100 * (with_marks.duration_ns / with_pauses.duration_ns - 1)),
            round(with_marks.duration_ns / 1e6, 2),
            round(with_pauses.duration_ns / 1e6, 2),
            *(round(100 * share) for share in busiest),
            round(100 * (1 - with_marks.pfc.xoff_frames / with_pauses.pfc.xoff_frames)),
        ]
    )
