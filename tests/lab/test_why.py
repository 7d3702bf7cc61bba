"""Why something was slow: the root that is told, taken away by other hands, gives back as much."""

import json
import os
import shutil
from pathlib import Path
from typing import Any

import pytest

import closlab as api
from lab.results.causes import Why
from lab.scenario import catalogue
from tests.lab.conftest import closlab

# A scenario, what is asked about, and the root by its words and keys.
ROOTS = {
    ("pfc-storm", None): ("fault", "h1 storming at", ("faults.0",)),
    ("victim-flow", "h8-h2"): ("messages", "6 messages to h1", None),
    ("incast", "h8-h1"): ("messages", "6 messages to h1", None),
    ("incast", "h8"): ("messages", "6 messages to h1", None),
    ("hash-collision", "h5-h11"): ("messages", "the message h6-h9", ("h6-h9",)),
    ("straggler", "run"): ("straggler", "h6's work, 2 times", None),
    ("lossy-link", "run"): ("loss", "losing 0.001", ("loss.rate",)),
}


LARGE = ("pfc-storm", "hash-collision", "lossy-link")


@pytest.mark.parametrize(
    ("name", "what"),
    [pytest.param(*each, marks=[pytest.mark.slow] * (each[0] in LARGE)) for each in ROOTS],
)
def test_the_root_is_named_and_the_shares_add_up(
    name: str, what: str | None, tmp_path: Path
) -> None:
    why = api.run(name, out=tmp_path).why(what)
    kind, words, keys = ROOTS[name, what]
    (root,) = why.shares[0].roots
    assert root.kind == kind
    assert root.what.startswith(words)
    assert keys in (None, root.keys)
    assert why.shares[0].share > 0.95
    assert sum(share.gained_ns for share in why.shares) + why.rest_ns == why.lost_ns
    kept = json.loads((tmp_path / "causes.json").read_text())
    assert kept["schema"] == "closlab.causes/1"
    assert Why.model_validate(kept["found"][0]) == why


def _two_faults(**others: Any) -> dict[str, Any]:
    return {
        "name": "two-faults",
        "topology": {"kind": "leaf-spine", "leaves": 2, "spines": 1, "hosts_per_leaf": 2},
        "traffic": {"kind": "flows", "flows": [{"src": "h1", "dst": "h3", "bytes": "1MB"}]},
        **others,
    }


SLOW = {"at_ns": 0, "action": "slow", "link": "leaf1-spine1", "share": 0.25}
STORM = {"at_ns": "50us", "action": "storm", "host": "h3", "for_ns": "900us"}


def test_what_is_taken_away_by_hand_gives_back_what_was_told() -> None:
    """A slow link and a receiver that storms, one after the other, each without the other."""
    run = api.run(_two_faults(faults=[SLOW, STORM]))
    why = run.why()
    assert [share.roots[0].keys for share in why.shares] == [("faults.1",), ("faults.0",)]
    (took,) = (flow["fct_ns"] for flow in api.records(run.flows))
    without_storm = api.run(_two_faults(faults=[SLOW])).result.flows
    without_both = api.run(_two_faults()).result.flows
    assert without_storm.fct_ns is not None
    assert without_both.fct_ns is not None
    assert why.took_ns == took
    assert [share.took_ns for share in why.shares] == [
        without_storm.fct_ns.max,
        without_both.fct_ns.max,
    ]
    assert why.shares[0].gained_ns == took - without_storm.fct_ns.max


def test_two_that_are_each_enough_are_told_together() -> None:
    """Without either alone it takes as long: two links of its only way that are as slow."""
    why = api.run(_two_faults(faults=[SLOW, SLOW | {"link": "leaf2-spine1"}])).why("h1-h3")
    (share,) = why.shares
    assert {root.keys for root in share.roots} == {("faults.0",), ("faults.1",)}
    assert share.share > 0.95
    assert "each of which holds it up alone" in str(why)


def test_the_chain_leads_from_the_victim_to_who_was_full(tmp_path: Path) -> None:
    why = api.run("victim-flow", out=tmp_path).why("h8-h2")
    assert [held.link for held in why.chain] == ["h8>leaf2", "leaf2>spine1", "spine1>leaf1"]
    assert all(0.5 < held.share <= 1 for held in why.chain)


def test_the_command_says_it_keeps_it_and_the_report_shows_it(tmp_path: Path) -> None:
    run = ("run", "incast", "--engine", "sim", "--set", "topology.leaves=2", "--out", str(tmp_path))
    assert closlab(*run).returncode == 0
    asked = closlab("why", str(tmp_path), "h4-h1")
    assert asked.returncode == 0, asked.stderr
    assert "2 messages to h1. Without that it takes" in asked.stdout
    page = (tmp_path / "report.html").read_text()
    assert "Why did h4-h1 take so long?" in page
    done = closlab("why", str(tmp_path), "h4-h1", "--json")
    assert json.loads(done.stdout)["shares"][0]["roots"][0]["kind"] == "messages"
    assert len(json.loads((tmp_path / "causes.json").read_text())["found"]) == 1
    again = closlab(*run)
    assert again.returncode == 0
    assert not (tmp_path / "causes.json").exists()


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("h4-h9",), "the run has no message and no job h4-h9"),
        (("h2-h1", "--p4", "nowhere"), "nowhere"),
    ],
)
def test_what_cannot_be_asked(words: tuple[str, ...], said: str, kept: Path) -> None:
    asked = closlab("why", str(kept), *words)
    assert asked.returncode == 1
    assert "Traceback" not in asked.stderr
    assert said in asked.stderr


def test_scenarios_are_left_as_they_were() -> None:
    """Taking something away changes no scenario that others hold."""
    before = catalogue.load("straggler", ())
    api.run(before).why()
    assert catalogue.load("straggler", ()) == before


def test_what_bounds_a_sender_is_a_root_too() -> None:
    why = api.run(_two_faults(transport={"window": 1})).why()
    (share,) = why.shares
    assert [root.keys for root in share.roots] == [("transport.window",)]
    without = api.run(_two_faults()).result.flows.fct_ns
    assert without is not None
    assert share.took_ns == without.max


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run that is kept, with its report."""
    folder = tmp_path_factory.mktemp("small")
    api.run("incast", set={"topology.leaves": 2}, out=folder).report()
    return folder


@pytest.fixture
def kept(small: Path, tmp_path: Path) -> Path:
    """A copy of it."""
    return Path(shutil.copytree(small, tmp_path, dirs_exist_ok=True))


def _damaged(folder: Path, how: str) -> None:
    """A kept run that somebody laid hands on."""
    result, causes = folder / "result.json", folder / "causes.json"
    content = json.loads(result.read_text())
    if how == "no such switch":
        content["scenario"]["faults"] = [{"action": "restart", "at_ns": 10, "switch": "leaf9"}]
    elif how == "no such cable":
        content["scenario"]["link"] |= {"slow": {"leaf9-spine9": 0.5}}
    elif how == "no memory":
        content["scenario"]["buffer"] |= {"bytes": 1}
    elif how == "too large a number":
        content["duration_ns"] = 10**400
    elif how == "no number":
        content["gpu_utilisation"] = float("nan")
    elif how == "half a character":
        content["scenario"]["about"] = "\ud800"
    elif how == "a row of nothing":
        lines = (folder / "flows.csv").read_text().splitlines()
        lines[1] = ",".join([*lines[1].split(",")[:6], "nan", *lines[1].split(",")[7:]])
        (folder / "flows.csv").write_text("\n".join(lines))
    elif how == "a pipe for causes":
        os.mkfifo(causes)
    elif how == "causes without end":
        causes.symlink_to("/dev/zero")
    elif how == "nothing took nothing":
        found = {"what": "h1-h2", "start_ns": 0, "alone_ns": 0, "lost_ns": 0}
        causes.write_text(json.dumps({"schema": "closlab.causes/1", "found": [found]}))
    elif how == "a pipe for the report":
        (folder / "report.html").unlink()
        os.mkfifo(folder / "report.html")
    result.write_text(json.dumps(content))


@pytest.mark.by_day(4)
@pytest.mark.parametrize(
    ("how", "code"),
    [
        ("no such switch", 1), ("no such cable", 1), ("no memory", 1), ("too large a number", 1),
        ("no number", 1), ("half a character", 1), ("a row of nothing", 1),
        ("a pipe for causes", 0), ("causes without end", 0), ("nothing took nothing", 0),
        ("a pipe for the report", 1),
    ],
)  # fmt: skip
def test_a_run_that_somebody_changed_is_told_in_words(how: str, code: int, kept: Path) -> None:
    _damaged(kept, how)
    for words in (("report", str(kept)), ("export", str(kept), "--as", "perfetto")):
        done = closlab(*words, "-o", str(kept / "t.json")) if "export" in words else closlab(*words)
        assert "Traceback" not in done.stderr, done.stderr
        if words[0] == "report":
            assert done.returncode == code, done.stderr


def test_what_was_found_out_is_told_even_if_it_cannot_be_kept(kept: Path) -> None:
    (kept / "causes.json").mkdir()
    asked = closlab("why", str(kept), "h4-h1")
    assert asked.returncode == 1
    assert "2 messages to h1. Without that it takes" in asked.stdout
    assert "Traceback" not in asked.stderr
