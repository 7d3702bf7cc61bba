"""One run by several ranks: the same bytes, refusals by name, and an end with one message."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from itertools import pairwise
from pathlib import Path

import pytest

from lab.engines.sim.partition import by_rank, partition
from lab.engines.sim.ranks import MPICH, OPEN_MPI, launched
from lab.errors import LabError
from lab.machine.paths import ROOT
from tests.lab import any_ranks, rank_kills
from tests.lab.simulated import simulate
from topologies import Fabric, NodeKind, fat_tree, leaf_spine

MPIRUNS = [found for name in ("mpirun.openmpi", "mpirun.mpich") if (found := shutil.which(name))]
WITH_MPI = pytest.mark.skipif(not MPIRUNS, reason="neither mpirun.openmpi nor mpirun.mpich is here")


def by(ranks: int, mpirun: str, *words: str) -> subprocess.CompletedProcess[str]:
    """A command of closlab's by so many ranks."""
    argv = [*any_ranks.launcher(mpirun, ranks), sys.executable, "-c"]
    return subprocess.run(
        [*argv, "from lab.cli import main; main()", *words],
        capture_output=True, text=True, check=False, cwd=ROOT, timeout=120,
        env=os.environ | any_ranks.as_root(),
    )  # fmt: skip


@WITH_MPI
def test_a_run_by_two_ranks_keeps_the_same_bytes_and_says_so(tmp_path: Path) -> None:
    changes = "traffic.bytes=200KB", "int.share=0.1"
    alone = simulate("hash-collision", *changes, out=tmp_path / "alone")
    words = [word for change in changes for word in ("--set", change)]
    out = tmp_path / "ranks"
    done = by(2, MPIRUNS[0], "run", "hash-collision", "--engine", "sim", *words, "--out", str(out))
    assert done.returncode == 0, done.stderr
    assert "2 ranks" in done.stderr and done.stderr.count("Simulating") == 1
    found = json.loads((out / "result.json").read_text())
    assert found.pop("provenance")["ranks"] == "2"
    expected = alone.result.content()
    del expected["provenance"]
    assert found == json.loads(json.dumps(expected))
    for table in alone.out.glob("*.csv"):
        assert (out / table.name).read_bytes() == table.read_bytes(), table.name


@WITH_MPI
@pytest.mark.slow
@pytest.mark.parametrize("mpirun", MPIRUNS)
def test_scenarios_are_the_same_by_ranks_of_either_mpi(mpirun: str, tmp_path: Path) -> None:
    names = ["deadlock", "link-failure", "in-network-allreduce", "evpn-tenants"]
    lot = any_ranks.scenarios([], 6, 4100, tmp_path)
    assert any_ranks.check([*names, *lot], [1], [2, 3], mpirun, tmp_path) == []


@WITH_MPI
@pytest.mark.slow
@pytest.mark.parametrize("mpirun", MPIRUNS)
def test_a_rank_that_is_killed_ends_the_run(mpirun: str, tmp_path: Path) -> None:
    assert rank_kills.sweep(6, 1, mpirun, tmp_path) == []


@WITH_MPI
@pytest.mark.slow
@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--engine", "mininet"), "--engine mininet is for one"),
        (("--engine", "sim", "--pcap"), "one process keeps packets"),
        (("--engine", "sim", "--checkpoint", "1min", "--out", "{out}"), "--checkpoint keeps one"),
        (("--engine", "sim", "--accuracy", "1%"), "does not go with several ranks"),
        (("--engine", "sim", "--live"), "who watches a run watches one process"),
        (("--engine", "sim", "--set", "traffic.byte=1"), "traffic.byte"),
    ],
)
def test_what_several_cannot_do_is_refused_once(
    words: tuple[str, ...], said: str, tmp_path: Path
) -> None:
    own = [word.format(out=tmp_path / "out") for word in words]
    done = by(2, MPIRUNS[0], "run", "hello", *own)
    assert done.returncode == 1
    assert done.stderr.count("closlab: ") == 1 and said in done.stderr, done.stderr
    assert "Traceback" not in done.stderr
    assert not (tmp_path / "out" / "result.json").exists()


@pytest.mark.parametrize(
    ("variables", "found"),
    [
        ({}, None),
        ({"OMPI_COMM_WORLD_SIZE": "4"}, (4, OPEN_MPI)),
        ({"OMPI_COMM_WORLD_SIZE": "1"}, None),
        ({"PMI_SIZE": "2", "PMI_RANK": "0"}, (2, MPICH)),
        ({"SLURM_STEP_NUM_TASKS": "3", "PMIX_RANK": "2"}, (3, OPEN_MPI)),
        ({"SLURM_STEP_NUM_TASKS": "3", "PMI_RANK": "2"}, (3, MPICH)),
        ({"SLURM_STEP_NUM_TASKS": "1"}, None),
        ({"SLURM_NTASKS": "8"}, None),  # a batch script, of which there is one
    ],
)
def test_a_launcher_is_known_by_what_it_says(
    variables: dict[str, str], found: object, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in [name for name in os.environ if name.startswith(("OMPI_", "PMI", "SLURM_"))]:
        monkeypatch.delenv(name)
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    how = launched()
    assert (how and (how.size, how.whose)) == found


def test_tasks_that_cannot_find_each_other_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in os.environ if name.startswith(("OMPI_", "PMI"))]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("SLURM_STEP_NUM_TASKS", "2")
    with pytest.raises(LabError, match="not so that they find each other"):
        launched()


@pytest.mark.parametrize("ranks", [1, 2, 3, 4, 9])
@pytest.mark.parametrize("fabric", [leaf_spine(4, 2, 3), leaf_spine(3, 1, 1), fat_tree(8)])
def test_each_rank_has_its_share_of_all_switches(fabric: Fabric, ranks: int) -> None:
    before = partition(fabric, 1)
    found, bounds = by_rank(fabric, before, ranks)
    assert sorted(set(found.values())) == sorted(set(before.values()))
    assert bounds[0] == 0 and bounds[-1] == len(fabric.switches) and len(bounds) == ranks + 1
    assert all(begin <= end for begin, end in pairwise(bounds))
    assert all(found[host] == found[fabric.leaf_of(host)] for host in fabric.hosts)
    for kind in (NodeKind.LEAF, NodeKind.SPINE, NodeKind.CORE):
        tier = [found[node] for node in fabric.switches if node.kind is kind]
        shares = [sum(begin <= part < end for part in tier) for begin, end in pairwise(bounds)]
        assert max(shares) - min(shares) <= 1, (kind, shares)


def test_what_is_one_part_is_one_ranks() -> None:
    fabric = leaf_spine(2, 2, 2)
    found, bounds = by_rank(fabric, partition(fabric, 0), 3)
    assert set(found.values()) == {0} and bounds == [0, 1, 1, 1]
