"""Why messages did not arrive: each verdict by a scenario that leaves no other, and who waits for
whom against networkx, which asks from where an end can be reached."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import networkx as nx
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lab.results.cautions import cautions
from lab.results.outcome import Look, Wait
from lab.results.stalls import VERDICTS, Queue, Stall, Standing, stalls
from tests.lab.simulated import Run, simulate_sparely
from traffic.endpoint import Stand

PAIR = "topology={kind: leaf-spine, leaves: 2, spines: 1, hosts_per_leaf: 2}"
ONE = "traffic={kind: flows, flows: [{src: h1, dst: h3, bytes: 100KB}]}"
LATE = "traffic={kind: flows, flows: [{src: h1, dst: h3, bytes: 4KB, at_ns: 5ms}]}"
LONG = "traffic={kind: flows, flows: [{src: h1, dst: h3, bytes: 1GB}]}"
CUT = "faults=[{at_ns: 5us, action: down, link: leaf1-spine1}]"
DEAF = "faults=[{at_ns: 5us, action: corrupt, link: leaf1-spine1, rate: 1}]"
SOON = "transport.rto_ns=50us"
GIVES_UP = SOON, "transport.retry_limit=2"
LOSES = "loss={rate: 1, links: [h3-leaf2]}"
ENDS = "limit_ns=3ms"
INCAST = "traffic={kind: incast, receiver: h3, senders: 3, bytes: 1MB}"

SCENARIOS: dict[str, tuple[str, tuple[str, ...], str]] = {
    "a cut, patiently": ("no-route", (ONE, CUT, ENDS), "leaf1-spine1 cut"),
    "a cut, until one gives up": ("no-route", (ONE, CUT, *GIVES_UP), "leaf1-spine1 cut"),
    "a host that is dead": (
        "halted",
        (ONE, "faults=[{at_ns: 5us, action: halt, host: h3}]", *GIVES_UP),
        "h3 stands still",
    ),
    "a storm": (
        "paused",
        (ONE, "faults=[{at_ns: 5us, action: storm, host: h3, for_ns: 8ms}]", ENDS),
        "h3 pauses",
    ),
    "all lost, patiently": ("time-out", (ONE, LOSES, ENDS), "only a time-out"),
    "all lost": ("retries", (ONE, LOSES, *GIVES_UP), "were lost"),
    "too little time": (
        "retries",
        (INCAST, "transport.rto_ns=10us", "transport.retry_limit=0"),
        "nothing was lost",
    ),
    "a NAK and no more": (
        "nak",
        (ONE, "loss={rate: 0.3, links: [h3-leaf2]}", "seed=3", ENDS),
        "but once",
    ),
    "overtaken": (
        "time-out",
        (
            "topology={kind: rail, servers: 4, rails: 4, spines: 2}",
            "traffic={kind: elephants, source_ports: 1, bytes: 400KB}",
            "link={rate_gbps: 25, fabric_rate_gbps: 10}",
            *("transport.cc=hpcc", "transport.window=7", "lb.policy=adaptive", "seed=266"),
            *("buffer.bytes=500KB", ENDS),
        ),
        "packets overtook each other",
    ),
    "no credits by a link": (
        "credit",
        (ONE, "link={cbfc: true, credit: 20KB}", DEAF, ENDS),
        "has no credits",
    ),
    "credits on their way": (
        "moving",
        (LONG, "link={cbfc: true, credit: 20KB, delay_ns: 20us}", "limit_ns=2ms"),
        "under way",
    ),
    "no time-outs": ("lost", (ONE, LOSES, "transport.timeout=0", ENDS), "no time-outs"),
    "too long": ("moving", (LONG, "limit_ns=100us"), "under way"),
    "too far": (
        "moving",
        (ONE, "link.delay_ns=200us", "transport.window=2", "buffer.bytes=64MB", ENDS),
        "under way",
    ),
    "a datagram": (
        "datagram",
        (ONE, "loss.rate=0.2", "transport={kind: uet, delivery: uud}", ENDS),
        "sends nothing again",
    ),
    "a datagram behind a storm": (
        "paused",
        (
            *(ONE, "transport={kind: uet, delivery: uud}", ENDS),
            "faults=[{at_ns: 2us, action: storm, host: h3, for_ns: 8ms}]",
        ),
        "h3 pauses",
    ),
    "too early": ("due", (LATE, "limit_ns=100us"), "not due before 5 ms"),
    "restarts for ever": (
        "resending",
        (
            INCAST,
            "transport.recovery=go-back-0",
            "transport.rto_ns=20us",
            "transport.retry_limit=250",
            "limit_ns=1ms",
        ),
        "gets nowhere",
    ),
}
DEADLOCK = "deadlock", "pfc.watchdog_ns=0", "limit_ns=2ms"


def of(run: Run) -> tuple[Stall, ...]:
    """The verdicts of a run, which are on all that did not arrive."""
    found = run.result.stalls or ()
    assert sum(stall.messages for stall in found) == run.result.flows.failed
    assert not any(stall.verdict == "untold" for stall in found)
    return found


@pytest.mark.by_day(8)
@pytest.mark.parametrize("name", SCENARIOS)
def test_each_verdict_has_its_scenario(name: str, tmp_path: Path) -> None:
    verdict, changes, why = SCENARIOS[name]
    run = simulate_sparely("hello", PAIR, *changes, out=tmp_path)
    found = of(run)
    assert [stall.verdict for stall in found] == [verdict], found
    assert why in found[0].why
    assert any(why in caution for caution in cautions(run.result))
    assert run.result.content()["stalls"][0]["verdict"] == verdict


@pytest.mark.parametrize(
    ("stand", "verdict", "why"),
    [
        (Stand(0, "ok", "waits", 0, 25, 9, None), "credit", "not granted"),
        (Stand(0, "remote-access", "waits", 3, 0, None, 7), "error", "remote-access"),
        (Stand(0, "local-data", "asked", 0, 0, None, None), "error", "local-data"),
        (None, "untold", "h1 did not say"),
    ],
)
def test_what_endpoints_say_of_themselves_is_heard(
    stand: Stand | None, verdict: str, why: str, tmp_path: Path
) -> None:
    """What no sound run comes to, as if hosts had said it."""
    run = simulate_sparely("hello", PAIR, ONE, LOSES, ENDS, out=tmp_path)
    said = [each for each in run.outcome.stands if stand is None or not stand.is_senders]
    said = [] if stand is None else [*said, stand]
    outcome = replace(run.outcome, stands=said)
    (found,) = stalls(run.experiment, outcome, [0], resent=0, lost=0)
    assert found.verdict == verdict and why in found.why


def test_what_arrives_is_no_stall(tmp_path: Path) -> None:
    run = simulate_sparely("hello", PAIR, ONE, out=tmp_path)
    assert run.result.stalls is None and "stalls" not in run.result.content()


def test_who_is_behind_others_shares_their_verdict(tmp_path: Path) -> None:
    chain = "traffic={kind: collective, op: all-reduce, algorithm: ring, bytes: 400KB}"
    run = simulate_sparely("hello", PAIR, chain, CUT, *GIVES_UP, out=tmp_path)
    found = of(run)
    assert {stall.verdict for stall in found} == {"no-route"}
    assert 0 < sum(stall.behind for stall in found) < run.result.flows.failed


# --- circles -------------------------------------------------------------------------------------


def test_a_deadlock_is_named_by_its_circle(tmp_path: Path) -> None:
    run = simulate_sparely(*DEADLOCK, out=tmp_path)
    found = of(run)
    assert {stall.verdict for stall in found} == {"deadlock"}
    for stall in found:
        circle = stall.circle or ()
        _check_circle(circle, 3, run.outcome.looks[-1])
        assert " waits for ".join((*circle, circle[0])) in stall.why


def _check_circle(circle: tuple[str, ...], priority: int, look: Look) -> None:
    """Each direction's class stands still, and packets that came by it wait before the next."""
    waits = [wait for wait in look.waits if wait.priority == priority]
    assert len(set(circle)) == len(circle) > 1
    for link, then in zip(circle, (*circle[1:], circle[0]), strict=True):
        assert link.split(">")[1] == then.split(">")[0]
        assert any(wait.link == link and wait.hold == "pause" for wait in waits)
        assert any(wait.link == then and wait.came == link and wait.packets for wait in waits)


def test_a_dragonfly_of_one_class_locks_itself(tmp_path: Path) -> None:
    """Minimal ways from group to group wait in a ring of groups, with one class for all."""
    run = simulate_sparely(
        "hello",
        "topology={kind: dragonfly, groups: 5, switches: 2, hosts_per_leaf: 2, global_links: 2}",
        "traffic={kind: all-pairs, bytes: 400KB}",
        *("buffer.bytes=1MB", "pfc.watchdog_ns=0", "link.fabric_rate_gbps=25", "limit_ns=1ms"),
        out=tmp_path,
    )
    (stall,) = of(run)
    assert stall.verdict == "deadlock" and stall.messages == run.result.flows.count
    _check_circle(stall.circle or (), 3, run.outcome.looks[-1])


QUEUES: list[Queue] = [(f"q{n}", 3) for n in range(6)]


@st.composite
def looks(draw: st.DrawFn) -> Look:
    """Queues at a moment: who stands still, and where that waits which came from it."""
    held = {queue: draw(st.booleans()) for queue in QUEUES}
    edges = draw(st.sets(st.tuples(st.sampled_from(QUEUES), st.sampled_from(QUEUES)), max_size=10))
    waits = [
        Wait(then[0], 3, one[0], 1, 100, 0, "pause" if held[then] else "", 9)
        for one, then in sorted(edges)
        if one != then
    ]
    waits += [Wait(queue[0], 3, "", 0, 0, 0, "pause", 9) for queue in QUEUES if held[queue]]
    return Look(0, tuple(waits))


@given(looks())
def test_what_is_dead_never_moves_and_all_else_may(look: Look) -> None:
    standing = Standing(look)
    edges = [(one, then) for one, beyond in standing.beyond.items() for then in beyond]
    waits: nx.DiGraph[Queue] = nx.DiGraph()
    waits.add_nodes_from(QUEUES)
    waits.add_edges_from(edges)
    # Dead: it stands still, and so does all that can be reached from it, to no end but a circle.
    ends = {q for q in QUEUES if q not in standing.held or not standing.beyond.get(q)}
    free = ends.union(*(nx.ancestors(waits, end) for end in ends))
    assert standing.dead == set(QUEUES) - free
    for queue in standing.dead:
        circle = standing.circle(queue)
        assert all(then in waits[one] for one, then in _round([(name, 3) for name in circle]))


def _round(queues: list[Queue]) -> list[tuple[Queue, Queue]]:
    return list(zip(queues, queues[1:] + queues[:1], strict=True))


def test_all_verdicts_are_documented() -> None:
    text = (Path(__file__).parents[2] / "docs" / "results.md").read_text()
    assert [verdict for verdict in VERDICTS if f"| `{verdict}` |" not in text] == []


PLANES = "topology={kind: planes, planes: 2, leaves: 2, spines: 1, hosts_per_leaf: 2}"


@pytest.mark.parametrize(
    ("topology", "cut", "transport", "where"),
    [
        (PLANES, "plane: 2", "roce", " in plane 2"),
        (PLANES, "link: h3-leaf2", "roce", " in plane 1"),
        ("topology={kind: two-fabrics}", "link: h3-leaf1", "roce", " in plane 1"),
        (PLANES, "switch: leaf2", "mrc", None),  # whose connections go by both
        ("topology={kind: dual-tor}", "link: h3-leaf1", "roce", None),  # whose ports stand in
    ],
)
def test_a_host_of_several_planes_has_ways_by_each_for_what_goes_by_that(
    topology: str, cut: str, transport: str, where: str | None, tmp_path: Path
) -> None:
    """Neither by another host, nor by a plane that its connection does not use."""
    kind = f"transport={{kind: {transport}, rto_ns: 100us}}"
    faults = f"faults=[{{at_ns: 1us, action: down, {cut}}}]"
    run = simulate_sparely("hello", topology, kind, faults, "limit_ns=20ms", out=tmp_path)
    found = of(run) if run.result.flows.failed else []
    if where is None:
        assert not any(stall.verdict == "no-route" for stall in found), found
        return
    roots = [stall for stall in found if stall.verdict == "no-route"]
    assert sum(stall.messages for stall in roots) == run.result.flows.failed, found
    assert all(f"no way is left{where}: " in stall.why for stall in roots)
