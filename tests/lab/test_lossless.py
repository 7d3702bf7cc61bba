"""Lossless at every speed: nothing is lost where headroom is computed, and pauses are no more
frames than they have to be.

Hosts' links and the fabric's have any two of the usual speeds; what stands in the way is an incast,
a host that pauses its leaf for longer than a slow link's pause lasts, a link slower than others, a
host that takes less than its link brings, or an incast through three tiers. `closlab test` takes a
sample, `closlab test --slow` all of them.
"""

import itertools
import random
from collections.abc import Iterator
from pathlib import Path

import pytest

from controller import headroom
from controller.tables import SwitchSite, headroom_of
from lab.errors import ScenarioError
from lab.results.cautions import cautions
from lab.runs.run import LOSSY, NOT_WHOLE, UNBELIEVED, code_of
from lab.scenario import catalogue
from lab.scenario.experiment import Experiment
from params.classes import LOSSLESS_PRIORITY
from tests.fabric.captures import recorded
from tests.lab.simulated import simulate_sparely
from topologies import Node

GBPS = (25, 50, 100, 200, 400, 800)
MAX_QUANTA, QUANTUM_BITS = 0xFFFF, 512
SHARED = 600_000  # bytes of every switch's memory besides headroom

Case = tuple[int, int, str]

LEAF_SPINE = "topology={kind: leaf-spine, leaves: 4, spines: 4, hosts_per_leaf: 4}"
KINDS = {
    "incast": (LEAF_SPINE, "traffic.senders=15"),
    "storm": (LEAF_SPINE, "traffic.senders=15"),
    "slow-link": (LEAF_SPINE, "traffic.senders=15"),
    "slow-receiver": (LEAF_SPINE, "traffic.senders=15"),
    "3-tier": ("topology={kind: fat-tree, k: 4}", "traffic.senders=15"),
}
CASES: list[Case] = list(itertools.product(GBPS, GBPS, KINDS))
SAMPLE = random.Random(13).sample(CASES, 10)


def quanta_ns(gbps: float) -> float:
    """How long the longest pause lasts at a link's speed."""
    return MAX_QUANTA * QUANTUM_BITS / gbps


def changes_of(case: Case) -> tuple[str, ...]:
    """The incast as a case has it, with just enough memory for headroom and what is shared."""
    host, fabric, kind = case
    # Long enough for several of the fabric's pauses, not so long that the slowest take for ever.
    storm_ns = int(2.5 * quanta_ns(min(host, fabric)))
    own = {
        "storm": (f"faults=[{{at_ns: 1us, action: storm, host: h1, for_ns: {storm_ns}}}]",),
        "slow-link": (f"link.slow={{h1-leaf1: {1 / 8}}}",),
        "slow-receiver": (f"transport.receive_gbps={{h1: {host / 8}}}",),
    }.get(kind, ())
    changes = (
        *KINDS[kind],
        f"link={{rate_gbps: {host}, fabric_rate_gbps: {fabric}, delay_ns: 1000, mtu: 4096}}",
        "traffic.bytes=400KB",
        "pfc.watchdog_ns=0",
        "transport.rto_ns=1s",
        "limit_ns=1s",
        *own,
    )
    roomy = Experiment.of(catalogue.load("incast", (*changes, "buffer.bytes=1GB")))
    sites = (SwitchSite(roomy.fabric, node, roomy.settings) for node in roomy.fabric.switches)
    most = max(sum(headroom_of(site, port) for port in site.ports) for site in sites)
    return (*changes, f"buffer.bytes={most + SHARED}")


def check(case: Case, out: Path) -> None:
    """Nothing is lost, nothing is sent twice, and somebody had to be paused for it."""
    run = simulate_sparely("incast", *changes_of(case), out=out).result
    assert run.drops.total == 0, run.drops
    assert run.fidelity.ok
    assert run.flows.failed == 0
    assert run.roce.retransmitted_packets == 0
    assert run.pfc.xoff_frames


@pytest.mark.parametrize("case", SAMPLE[:5], ids=lambda case: "-".join(map(str, case)))
def test_nothing_is_lost_at_any_speeds(case: Case, tmp_path: Path) -> None:
    check(case, tmp_path)


SPOILT = "faults=[{at_ns: 0, action: corrupt, link: leaf1-spine1, rate: 0.2}]"
SHORT = "buffer.bytes=600KB", "traffic.bytes=400KB", "transport.rto_ns=1ms"


def test_who_computes_too_little_headroom_is_not_believed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is computed is promised to be enough, whoever else gave it."""
    enough = headroom.headroom
    monkeypatch.setattr(headroom, "headroom", lambda *link: enough(*link) // 8)
    for own in ((), ("pfc.headroom=12KB",)):  # which is more than that
        found = simulate_sparely("incast", *SHORT, *own, out=tmp_path).result
        lost = found.drops.by_reason["headroom_full"]
        assert lost
        assert not found.fidelity.ok
        note = f"{lost:,} packets of a lossless class found no headroom"
        assert found.fidelity.note and note in found.fidelity.note
        assert code_of(found) == UNBELIEVED


@pytest.mark.parametrize(
    ("choice", "why"),
    [
        (("pfc.headroom=3KB",), "pfc.headroom is 3,000 bytes, and spine1's links need up to"),
        (("buffer.headroom_pool=90KB",), "ports share 90,000 bytes of it (buffer.headroom_pool)"),
        ((SPOILT, "transport.recovery=selective"), "pauses fail where there are faults such as"),
    ],
    ids=["headroom", "pool", "fault"],
)
def test_what_lossless_classes_lose_by_choice_is_told_as_its_price(
    choice: tuple[str, ...], why: str, tmp_path: Path
) -> None:
    found = simulate_sparely("incast", *SHORT, "limit_ns=100ms", *choice, out=tmp_path).result
    assert found.drops.by_reason["headroom_full"]
    assert found.fidelity.ok  # it is what was asked for,
    assert found.drops.price and why in found.drops.price  # and named
    assert found.drops.price in cautions(found)
    assert code_of(found) == (NOT_WHOLE if found.flows.failed else LOSSY)


def test_a_pool_that_is_too_small_for_one_port_is_refused() -> None:
    with pytest.raises(ScenarioError, match=r"headroom_pool: 1 bytes are less than one class"):
        catalogue.load("incast", ("buffer.headroom_pool=1",))


@pytest.mark.slow
@pytest.mark.parametrize("case", CASES, ids=lambda case: "-".join(map(str, case)))
def test_nothing_is_lost_at_all_speeds(case: Case, tmp_path: Path) -> None:
    check(case, tmp_path)


def xoffs_due(pcap: Path, gbps: float) -> tuple[int, int]:
    """Pauses begun or renewed on a link's way, and how many it takes: seen on the wire alone.

    One to begin, and one whenever half of the longest pause is over. None may run out before it is
    taken back.
    """
    at = 18 + 2 * LOSSLESS_PRIORITY
    sent = due = 0
    began = last = None
    for when, frame, _ in recorded(pcap):
        if frame[12:16] != bytes.fromhex("88080101"):
            continue
        is_xoff = frame[at : at + 2] != b"\0\0"
        sent += is_xoff
        if is_xoff:
            assert last is None or when - last < quanta_ns(gbps), "a pause ran out"
            began, last = when if began is None else began, when
        elif began is not None:
            due += 1 + int((when - began) / (quanta_ns(gbps) / 2))
            began = last = None
    if began is not None and last is not None:
        due += 1 + int((last - began) / (quanta_ns(gbps) / 2))
    return sent, due


AUDITED = {  # three settings that once lost packets, and the ones that ship
    "800G-fabric": (
        "incast",
        *("link.fabric_rate_gbps=800", "topology.spines=4", "topology.hosts_per_leaf=4"),
        *("buffer.bytes=16MB", "traffic.bytes=4MB"),
    ),
    "slow-receiver": (
        "incast",
        *("link.rate_gbps=400", "link.slow={h1-leaf1: 0.0625}", "topology.hosts_per_leaf=4"),
        *("buffer.bytes=9MB", "traffic.bytes=4MB"),
    ),
    "storm": (
        "incast",
        *("link.fabric_rate_gbps=400", "pfc.watchdog_ns=0", "buffer.bytes=8MB"),
        "faults=[{at_ns: 10us, action: storm, host: h1, for_ns: 2ms}]",
    ),
    "incast": ("incast",),
    "deadlock": ("deadlock", "pfc.watchdog_ns=0", "limit_ns=5ms"),
}


@pytest.mark.parametrize("name", AUDITED)
def test_pauses_last_and_are_no_more_frames_than_they_have_to_be(name: str, tmp_path: Path) -> None:
    scenario, *changes = AUDITED[name]
    run = simulate_sparely(scenario, *changes, "measures.pcap=[all]", out=tmp_path)
    assert run.result.drops.total == 0
    assert run.result.fidelity.ok
    counted = [
        xoffs_due(tmp_path / "pcaps" / f"{pauser}-{sender}.pcap", rate / 1e9)
        for pauser, sender, rate in directions(run.experiment)
    ]
    sent, due = map(sum, zip(*counted, strict=True))
    assert sent == run.result.pfc.xoff_frames > 0
    assert sent <= 1.2 * due, f"{sent} sent, {due} due"


def directions(experiment: Experiment) -> Iterator[tuple[Node, Node, int]]:
    """Every switch that may pause another node, and the speed of the link between."""
    for link in experiment.fabric.links:
        rate = experiment.cable(link).rate_bps
        yield link.b, link.a, rate
        if link.joins_switches:
            yield link.a, link.b, rate
