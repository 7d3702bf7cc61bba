"""Parallel links in the simulator: each is used, slowed, cut and reported by its own name."""

import random
from collections import Counter
from pathlib import Path

import pytest

from lab.scenario.experiment import Experiment
from tests.lab.simulated import simulate
from views.report import write_report

QUICK = ("buffer.bytes=12MB", "traffic.bytes=300KB", "transport.recovery=selective")


@pytest.mark.parametrize("seed", range(4))
def test_all_are_used_and_what_is_cut_is_not(seed: int, tmp_path: Path) -> None:
    draw = random.Random(seed)
    links, spines = draw.choice(((2, 2), (3, 1), (4, 2), (2, 3)))
    cut = f"leaf1-spine{draw.randrange(1, spines + 1)}.{draw.randrange(2, links + 1)}"
    run = simulate(
        "alltoall",
        *QUICK,
        f"topology={{links: {links}, spines: {spines}}}",
        f"lb.policy={draw.choice(('spray', 'adaptive', 'drill'))}",
        f"faults=[{{at_ns: 0, link: {cut}, action: down}}]",
        "reroute_ns=0",
        f"seed={seed + 1}",
        out=tmp_path,
    )
    assert run.result.flows.failed == 0
    assert run.result.drops.total == 0
    used = {use.name: use.packets for use in run.result.links}
    assert len(used) == 2 * (8 + 4 * spines * links)
    for link in run.experiment.fabric.links:
        assert bool(used[link.up]) == bool(used[link.down]) == (link.name != cut), link.name
    ups = Counter({name: n for name, n in used.items() if name.startswith("leaf2>spine")})
    # To leaf1 one way is missing; to the others all are alike.
    assert min(ups.values()) > 0.4 * max(ups.values()), ups


def test_headroom_is_computed_for_each(tmp_path: Path) -> None:
    """Three senders fill a port behind parallel links; no lossless packet is lost, ports pause."""
    changes = ("topology={links: 3, spines: 1, hosts_per_leaf: 2}", "lb.policy=spray")
    run = simulate(
        "incast", *changes, "buffer.bytes=1400KB", "transport.recovery=selective", out=tmp_path
    )
    assert run.result.drops.total == 0
    paused = {name for name in run.result.pfc.by_link if name.startswith("spine1>leaf1")}
    assert paused == {"spine1>leaf1", "spine1>leaf1.2", "spine1>leaf1.3"}


def test_one_of_them_may_be_slow(tmp_path: Path) -> None:
    change = "link.slow={leaf1-spine1.2: 0.25}"
    run = simulate("alltoall", *QUICK, "topology.links=2", change, out=tmp_path)
    experiment: Experiment = run.experiment
    rates = {link.name: experiment.cable(link).rate_bps for link in experiment.fabric.links}
    assert rates.pop("leaf1-spine1.2") == 25_000_000_000
    assert set(rates.values()) == {100_000_000_000}
    spray = ("lb.policy=spray", "transport.window=64")
    used = simulate("alltoall", *QUICK, "topology.links=2", change, *spray, out=tmp_path).links(
        "leaf1>spine"
    )
    assert used["leaf1>spine1.2"] < 0.45 * used["leaf1>spine1"]


def test_captures_and_pictures_tell_them_apart(tmp_path: Path) -> None:
    capture = "measures.pcap=[leaf1-spine1.2]"
    simulate("alltoall", *QUICK, "topology.links=2", capture, out=tmp_path)
    assert {path.name for path in (tmp_path / "pcaps").iterdir()} == {
        "leaf1-spine1.2.pcap", "spine1-leaf1.2.pcap",
    }  # fmt: skip
    write_report(tmp_path)
    page = (tmp_path / "report.html").read_text()
    assert all(f"{name}:" in page for name in ("leaf1&gt;spine1.2", "spine1&gt;leaf1.2"))
