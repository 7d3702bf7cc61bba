"""Simulated by any number of threads, whoever simulates what: the same bytes."""

from __future__ import annotations

import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from lab.engines.sim import simulation
from lab.engines.sim.partition import partition
from lab.errors import LabError
from lab.scenario import shipped
from tests.lab.any_settings import written
from tests.lab.simulated import simulate
from topologies import Fabric, Node, fat_tree, leaf_spine

KEPT = "flows.csv", "timeseries.csv"
SMALL = {  # what the order of packets, bad cables, faults and reports could spoil
    "incast": ("traffic.bytes=200KB", "ecn.enabled=true", "transport.cc=dcqcn"),
    "hash-collision": ("lb.policy=conga", "int.share=0.05"),
    "lossy-link": ("transport.recovery=selective", "lb.policy=spray"),
    "link-failure": (),
    "dual-tor": (
        "traffic.steps=1",
        "faults=[{at_ns: 0, action: reorder, link: h1-leaf2, rate: 0.05}]",
    ),
    "alltoall": ("link.delay_ns=0",),  # nobody has a turn before the others
    "hello": ("link.delay_ns=1ms", "buffer.bytes=200MB"),  # turns shorter than cables
}
LARGE = ("link-failure", "dual-tor", "alltoall")
SIMULATED = [name for name in shipped.names() if "sim" in shipped.engines(name)]
# By day, beside small ones: a circle of pauses, tenants, UET with trimmed packets. By night all.
BY_DAY = ("deadlock", "evpn-tenants", "trim-incast")
Share = Callable[[Fabric, int], dict[Node, int]]


@pytest.fixture(autouse=True)
def _always_handed_out(monkeypatch: pytest.MonkeyPatch) -> None:
    """Small fabrics have few events a turn, and would never leave the first thread."""
    monkeypatch.setattr(simulation, "WORTH_EVENTS", 0)


def kept(out: Path, threads: int, name: str, *changes: str) -> dict[str, Any]:
    """All that is kept of a run, its origin aside."""
    run = simulate(name, *changes, out=out / str(threads), threads=threads)
    content = run.result.content()
    del content["provenance"]
    files = (run.out / table for table in KEPT)
    tables = {path.name: path.read_text() for path in files if path.exists()}
    return content | tables | {"events": repr(run.outcome)}


def by_lot(rng: random.Random) -> Share:
    """So many parts, of which some may be empty; switches anywhere, hosts with their leaf."""

    def share(fabric: Fabric, shortest_ns: int) -> dict[Node, int]:
        count = rng.randrange(1, 2 * len(fabric.switches))
        found = {switch: rng.randrange(count) for switch in fabric.switches}
        return found | {host: found[fabric.leaf_of(host)] for host in fabric.hosts}

    return share


def same(out: Path, name: str, *changes: str) -> None:
    """Assert that a run is the same by 1, 2 and 4 threads, and in whichever parts."""
    alone = kept(out, 1, name, *changes)
    for threads in (2, 4):
        found = kept(out, threads, name, *changes)
        assert [key for key in alone if alone[key] != found[key]] == [], threads


@pytest.mark.parametrize(
    "name",
    [pytest.param(each, marks=[pytest.mark.slow] * (each in LARGE)) for each in SMALL],
)
def test_results_do_not_depend_on_the_number_of_threads(name: str, tmp_path: Path) -> None:
    same(tmp_path, name, *SMALL[name])


@pytest.mark.parametrize("seed", range(2))
def test_nor_on_what_is_simulated_at_a_stretch(
    seed: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(simulation, "partition", by_lot(random.Random(seed)))
    same(tmp_path, written(3000 + seed, tmp_path))


@pytest.mark.parametrize(
    "name",
    [pytest.param(n, marks=[] if n in BY_DAY else pytest.mark.slow) for n in SIMULATED],
)
def test_every_scenario_is_the_same_by_any_number_of_threads(name: str, tmp_path: Path) -> None:
    same(tmp_path, name)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(40))
def test_any_settings_are(seed: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(simulation, "partition", by_lot(random.Random(seed)))
    same(tmp_path, written(4000 + seed, tmp_path))


@pytest.mark.parametrize("fabric", [leaf_spine(4, 2, 3), leaf_spine(3, 1, 1), fat_tree(4)])
def test_a_part_is_a_switch_and_hosts_are_with_their_leaf(fabric: Fabric) -> None:
    found = partition(fabric, 1)
    assert sorted(found[switch] for switch in fabric.switches) == [*range(len(fabric.switches))]
    assert all(found[host] == found[fabric.leaf_of(host)] for host in fabric.hosts)
    assert found.keys() == {*fabric.switches, *fabric.hosts}


def test_threads_are_for_the_simulator(tmp_path: Path) -> None:
    from lab.commands.execution import execute

    with pytest.raises(LabError, match="threads of the simulator"):
        execute("hello", (), None, tmp_path, engine="mininet", prompt=False, jobs=2)
