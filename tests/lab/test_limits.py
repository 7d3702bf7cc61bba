"""docs/limits.md: what is at most is taken, what is more is refused in words that name it."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest

from lab.errors import LabError
from lab.scenario import catalogue
from lab.scenario.experiment import Experiment
from topologies import fat_tree

PAGE = (Path(__file__).parents[2] / "docs" / "limits.md").read_text()
ROOM = "buffer.bytes=4GB"
PERMUTATION = "traffic={kind: permutation, bytes: 1KB}"


def clos(leaves: int = 2, spines: int = 2, hosts: int = 2, links: int = 1) -> str:
    return (
        f"topology={{kind: leaf-spine, leaves: {leaves}, spines: {spines}, "
        f"hosts_per_leaf: {hosts}, links: {links}}}"
    )


def rail(spines: int) -> str:
    return f"topology={{kind: rail, servers: 4, rails: 4, spines: {spines}}}"


def broadcast(size: int) -> str:
    return f"traffic={{kind: collective, op: broadcast, channels: 64, pieces: 64, bytes: {size}}}"


# By its line in the page: the figure there, settings that reach it, settings beyond, what is said.
LIMITS: dict[str, tuple[str, Sequence[str], Sequence[str], str]] = {
    "ports of a switch": ("508", [clos(508, 1, 1)], [clos(509, 1, 1)], "its last one is 508"),
    "hosts below a leaf": ("253", [clos(hosts=253)], [clos(hosts=254)], "from 1 to 253"),
    "ways to one destination": ("64", [clos(spines=64)], [clos(spines=65)], "a group holds 64"),
    "arity of a fat-tree": ("64", [], ["topology={kind: fat-tree, k: 66}"], "from 2 to 64"),
    "spines of a rail fabric": ("64", [rail(64)], [rail(65)], "from 1 to 64"),
    "links between a leaf and a spine": (
        "64", [clos(spines=1, links=64)], [clos(spines=1, links=65)], "from 1 to 64",
    ),
    "a message": (
        "2,147,483,648", ["traffic={kind: incast, bytes: 2147483648}"],
        ["traffic={kind: incast, bytes: 2147483649}"], "carries 1 to 2147483648",
    ),
    "data of a collective": (
        "1,099,511,627,776", [broadcast(1 << 40)], [broadcast((1 << 40) + 1)], "1 to 1099511627776",
    ),
    "payload of a packet": ("9,000", ["link.mtu=9000"], ["link.mtu=9008"], "at most 9000"),
    "rate of a link": (
        "10,000", ["link.rate_gbps=10000", "link.delay_ns=1"], ["link.rate_gbps=10001"],
        "at most 10000",
    ),
    "delay of a link": (
        "1 s", ["link.delay_ns=1s", "link.rate_gbps=1"], ["link.delay_ns=1001ms"],
        "at most 1000000000",
    ),
    "buffer of a switch": (
        "4,294,967,295", ["buffer.bytes=4294967295"], ["buffer.bytes=4294967296"],
        "at most 4294967295",
    ),
}  # fmt: skip


def made(changes: Sequence[str]) -> Experiment:
    return Experiment.of(catalogue.load("incast", (ROOM, PERMUTATION, *changes)))


@pytest.mark.by_day(5)
@pytest.mark.parametrize("what", LIMITS)
def test_what_is_at_most(what: str) -> None:
    figure, reached, beyond, said = LIMITS[what]
    assert f"| {figure}" in next(line for line in PAGE.splitlines() if line.startswith(f"| {what}"))
    made(reached)
    with pytest.raises(LabError, match=said):
        made(beyond)


def test_a_fat_tree_of_65536_hosts() -> None:
    """Its switches, with one host of 32 at each leaf: all of it takes a minute."""
    fabric = fat_tree(64, hosts_per_leaf=1)
    assert (32 * len(fabric.hosts), len(fabric.switches)) == (65536, 5120)
    assert "65,536 hosts, 5,120 switches" in PAGE


def test_reports_of_telemetry_have_a_port_of_their_own() -> None:
    """A spine with so many leaves once had one of them where its reports left."""
    experiment = made([clos(200, 1, 1), "int.share=1"])
    spine = next(node for node in experiment.fabric.switches if node.name == "spine1")
    assert experiment.settings.telemetry.report_port not in experiment.fabric.ports(spine)
