"""What programs of verbs did, as a workload: the same bytes between the same hosts, in an order."""

from __future__ import annotations

import csv
from collections import Counter
from pathlib import Path

import pytest

from lab.commands import exec as exec_
from lab.errors import LabError
from lab.runs.recording import write_recorded
from tests.lab.conftest import closlab
from tests.verbs.model import Opcode, Plan
from tests.verbs.random_operations import Round, compile_player
from tests.verbs.test_verbs import SMALL, need
from tests.verbs.wire import libraries_in, over_wire
from traffic.traces import goal

HOSTS = ("h1", "h2")
GIDS = ("::1", "::2")
# h1 sends at 1000, h2 answers 500 later, and h1 reads 2000 after that has come.
PING_PONG = (
    """adapter ::1
pair 900 7 ::2 9
done 1700 7 1000 2 100 1 ::2
came 2000 7
done 5000 7 4000 4 4096 1 ::2
done 6000 7 5500""",  # it was killed in the middle of a line
    """adapter ::2
pair 900 9 ::1 7
came 1500 9
done 2200 9 2000 0 50 0 ::1
""",
)
PLAYED = """num_ranks 2
rank 0 {
  l4: recv 4096b from 1 tag 1
  l5: recv 50b from 1 tag 2
  l6: calc 0
  l7: send 100b to 1 tag 0
  l7 requires l6
  l8: calc 200
  l8 requires l6
  l8 requires l7
  l8 requires l5
  l9: send 1b to 1 tag 1
  l9 requires l8
}
rank 1 {
  l1: recv 100b from 0 tag 0
  l2: recv 1b from 0 tag 1
  l3: send 4096b to 0 tag 1
  l3 requires l2
  l10: calc 50
  l10 requires l1
  l11: send 50b to 0 tag 2
  l11 requires l10
}
"""


def write_lines(folder: Path, *texts: str) -> None:
    for host, lines in zip(HOSTS, texts, strict=True):
        (folder / host).mkdir(parents=True)
        (folder / host / "1-1").write_text(lines)


def bytes_asked(plan: Plan) -> Counter[tuple[bool, int]]:
    """How often so many bytes go from who asks (True), or come to it."""
    found: Counter[tuple[bool, int]] = Counter()
    for one in plan.operations:
        found[not one.opcode.fetches, max(1, one.length)] += 1
        found[True, 1] += one.opcode.fetches  # what it asks by
    return found


def moved(path: Path) -> Counter[tuple[int, int]]:
    """Who sends, and how many bytes."""
    schedule = goal.read(path).schedule()
    return Counter((one.src, one.size) for one in schedule if one.src != one.dst)


def test_a_program_goes_on_after_what_it_waited_for(tmp_path: Path) -> None:
    write_lines(tmp_path, *PING_PONG)
    file = tmp_path / "w.goal"
    said = write_recorded(tmp_path, HOSTS, 10, file)
    assert "Recorded 3 requests, 4.25 KB" in said
    assert file.read_text() == PLAYED
    assert moved(file) == {(0, 100): 1, (0, 1): 1, (1, 50): 1, (1, 4096): 1}


def test_nothing_done_is_no_workload(tmp_path: Path) -> None:
    to_itself = "adapter ::1\npair 1 7 ::1 8\ndone 3 7 2 0 10 1 ::1\n"
    write_lines(tmp_path, to_itself, "adapter ::2\n")
    said = write_recorded(tmp_path, HOSTS, 1, tmp_path / "w.goal")
    assert "no program sent another host anything" in said
    assert not (tmp_path / "w.goal").exists()


@pytest.mark.parametrize("seed", [3, 9])
def test_all_that_programs_ask_for_is_in_it(tmp_path: Path, seed: int) -> None:
    """Random operations of all kinds, in both directions at once, some of them repeated."""
    libraries = libraries_in(tmp_path)
    played, folder = Round(seed, 400, tmp_path), tmp_path / "record"
    commands = []
    for host, command in zip(HOSTS, played.write(compile_player(libraries)), strict=True):
        (folder / host).mkdir(parents=True)
        commands.append(f"env CLOSLAB_VERBS_RECORD={folder / host} {command}")
    ended = over_wire(libraries, *commands, loss=0.01, seed=seed)
    assert [code for code, _ in ended] == [0, 0], ended
    file = tmp_path / "w.goal"
    write_recorded(folder, HOSTS, 1, file)
    due: Counter[tuple[int, int]] = Counter()
    for end, plan in enumerate(played.plans):
        assert any(one.opcode is Opcode.READ for one in plan.operations)
        for (is_mine, size), count in bytes_asked(plan).items():
            due[end if is_mine else 1 - end, size] += count
    assert moved(file) == due


def test_only_programs_of_verbs_are_recorded(tmp_path: Path) -> None:
    with pytest.raises(LabError, match="--record is for programs that use verbs"):
        exec_.command("h1", ["--", "true"], record=tmp_path / "w")
    with pytest.raises(LabError, match="there is no folder"):
        exec_.command("h1", ["--", "true"], record=tmp_path / "no" / "w", verbs=True)


@pytest.mark.mininet
@pytest.mark.slow
def test_the_simulator_moves_what_a_program_did(tmp_path: Path) -> None:
    """ib_write_bw's 50 messages, between the hosts that it ran on."""
    need("ib_write_bw")
    file = tmp_path / "w.goal"
    words = ("--record", str(file), "h3,h1", "--", "ib_write_bw", "-n", "50", "h3")
    done = closlab("exec", *SMALL, *words)
    assert done.returncode == 0, done.stdout + done.stderr
    traffic = f"traffic={{kind: goal, file: {file}}}"
    _, scenario, *settings = SMALL
    options = ("--set", traffic, "--engine", "sim", "--out", str(tmp_path / "run"))
    done = closlab("run", scenario, *settings, *options)
    assert done.returncode == 0, done.stdout + done.stderr
    with (tmp_path / "run" / "flows.csv").open() as flows:
        rows = [(row["src"], row["dst"], row["bytes"]) for row in csv.DictReader(flows)]
    assert rows == [("h1", "h3", "65536")] * 50
