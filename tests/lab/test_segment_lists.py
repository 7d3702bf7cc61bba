"""Segment lists in words: by which switches each leads, and when it is taken."""

import csv
from ipaddress import IPv6Address
from itertools import permutations
from pathlib import Path

import pytest

from lab.scenario import catalogue
from lab.scenario.lists import lists_of
from tests.lab.simulated import simulate
from views.report import write_report

_KINDS = {1: "leaf", 2: "spine", 3: "core"}
_ALL = "segments={enabled: true, policies: [{at: leaf1, to: leaf2}]}"
_DRAINED = "{at_ns: 100us, action: drain, switch: spine2, for_ns: 50us}"
_DEAD_BEFORE = "{at_ns: 0, action: down, link: leaf2-spine1}"
_CUT = "{at_ns: 170us, action: down, link: leaf2-spine4, for_ns: 30us}"  # heard of 20 us later
_STEERS = "link.ip=6", "transport.kind=mrc", "segments={enabled: true, hosts: true}"


def lists(*changes: str) -> list[tuple[str, str, str, str]]:
    """Of all lists of a scenario where, for what, by which switches and when."""
    name, *others = changes
    scenario = catalogue.load(name, tuple(others))
    found = [*lists_of(scenario, permutations(scenario.fabric().hosts, 2))]
    for each in found:
        path = each.way.path
        assert switches_in(each.written) == [switch.name for switch in path[1:]]
        assert each.begins == path[0]
    return [
        (each.begins.name, each.what, " ".join(n.name for n in each.way.path[1:-1]), each.taken)
        for each in found
    ]


def switches_in(written: str) -> list[str]:
    """What stands in a list's digits: behind the block a switch each, and the end."""
    names = []
    for address in written.split(" then "):
        digits = IPv6Address(address).exploded.replace(":", "")
        assert digits.startswith("fcbbbb00")
        names += [digits[at : at + 4] for at in range(8, 32, 4) if digits[at : at + 4] != "0000"]
    assert names.pop() == "f000"
    return [f"{_KINDS[int(name[0])]}{int(name[1:], 16)}" for name in names]


def test_a_leafs_lists_come_and_go_with_what_the_controller_knows() -> None:
    faults = f"faults=[{_DRAINED}, {_DEAD_BEFORE}, {_CUT}]"
    assert lists("usid-steering", "reroute_ns=20us", _ALL, faults) == [
        ("leaf1", "to leaf2", "spine1", "never"),
        ("leaf1", "to leaf2", "spine2", "until 100 µs, from 150 µs on"),
        ("leaf1", "to leaf2", "spine3", "always"),
        ("leaf1", "to leaf2", "spine4", "until 190 µs, from 220 µs on"),
    ]
    assert lists("usid-steering") == [
        ("leaf1", f"to h{host}", f"spine{host - 4}", "always") for host in range(5, 9)
    ]
    assert not lists("hello")


def test_of_two_policies_the_first_counts_and_tenants_have_their_own() -> None:
    policies = "{at: leaf1, to: h5, via: [[spine%d]]%s}"
    every = [policies % each for each in ((2, ", tenant: red"), (3, ", tenant: red"), (4, ""))]
    assert lists(
        "usid-steering",
        "tenants={blue: [h2, h6], red: [h1, h5]}",
        f"segments.policies=[{', '.join(every)}]",
        "traffic.flows=[{src: h1, dst: h5, bytes: 1KB}]",
    ) == [("leaf1", "to h5 of red", "spine2", "always"), ("leaf1", "to h5", "spine4", "always")]


def test_adapters_have_a_list_for_each_entropy() -> None:
    """Four planes, two spines in each: of a plane's entropies every other one goes by a spine."""
    drained = "faults=[{at_ns: 40us, action: drain, link: leaf4-spine3}]"
    found = lists("planes", *_STEERS, "transport.entropies=16", drained)
    assert len(found) == 2 * 4 * 2  # both directions
    there = [(at, what, by, taken) for at, what, by, taken in found if int(at[4:]) % 2]
    assert there == [
        (
            f"leaf{2 * plane + 1}",
            f"entropies {plane + 4 * turn}, {plane + 4 * turn + 8} to leaf{2 * plane + 2}",
            f"spine{2 * plane + turn + 1}",
            "until 40 µs" if (plane, turn) == (1, 0) else "always",
        )
        for turn in range(2)
        for plane in range(4)
    ]


@pytest.mark.parametrize("flows", [True, False])
def test_a_report_names_the_switches_of_lists_and_so_does_what_became_of_ways(
    flows: bool, tmp_path: Path
) -> None:
    run = simulate(
        *("planes", *_STEERS, "traffic.flows=[{src: h1, dst: h5, bytes: 1MB}]"),
        "faults=[{at_ns: 5us, action: drain, link: leaf1-spine2}]",
        f"measures={{series: false, flows: {str(flows).lower()}}}",
        out=tmp_path,
    )
    page = write_report(tmp_path).read_text()
    assert "Segment lists</" in page
    assert "<td>leaf1 spine2 leaf2</td><td>until 5 µs</td>" in page
    assert "<td>leaf8 spine7 leaf7</td><td>always</td>" in page or flows
    with (tmp_path / "ways.csv").open() as file:
        kept = [*csv.DictReader(file)]
    assert [row["path"] for row in kept] == [note.path for note in run.outcome.ways]
    assert {(row["host"], row["state"], row["path"]) for row in kept} == {
        ("h1", "denied", "leaf1 spine2 leaf2"),
        ("h5", "denied", "leaf2 spine2 leaf1"),
    }
