"""Every way through the switch: clones, resubmission, recirculation, multicast, metadata."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from switch.dataplane import (
    CloneWrite,
    Dataplane,
    MulticastWrite,
    Replica,
    Verb,
)

from .paths import SOURCE, Seen, Want, ask, seen_of
from .programs import compiled

if TYPE_CHECKING:
    from collections.abc import Iterator

NORMAL, INGRESS_CLONE, EGRESS_CLONE, RECIRCULATED, REPLICA = 0, 1, 2, 4, 5


@pytest.fixture
def switch() -> Iterator[Dataplane]:
    with Dataplane("paths", compiled(SOURCE)) as dataplane:
        for port in range(1, 9):
            dataplane.add_port(port)
        replicas = (Replica(2, 20), Replica(3, 30), Replica(3, 31))
        ops = [
            CloneWrite(Verb.INSERT, 5, (Replica(7),)),
            CloneWrite(Verb.INSERT, 6, (Replica(6), Replica(7)), max_bytes=40),
            CloneWrite(Verb.INSERT, 9, (), group=4),
            MulticastWrite(Verb.INSERT, 4, replicas),
            MulticastWrite(Verb.INSERT, 8),
        ]
        assert dataplane.write(ops) == [None] * len(ops)
        yield dataplane
        check_account(dataplane)


def check_account(dataplane: Dataplane) -> None:
    stats = dataplane.stats()
    assert stats.received + stats.copies == stats.sent + sum(stats.drops.values()) + stats.held


def send(
    dataplane: Dataplane, frame: bytes, port: int = 1, now: int = 1000
) -> list[tuple[int, Seen]]:
    dataplane.inject(port, frame, now)
    check_account(dataplane)
    return [(p, seen_of(f)) for p, f, _ in dataplane.outputs()]


def test_forward(switch: Dataplane) -> None:
    ((port, seen),) = send(switch, ask(Want.FORWARD, 2), port=5)
    assert port == seen.egress_port == 2
    assert (seen.instance, seen.ingress_port, seen.length) == (NORMAL, 5, 100)
    assert seen.payload == ask(Want.FORWARD)[-len(seen.payload) :]


@pytest.mark.parametrize(
    ("want", "reason"), [(Want.DROP_INGRESS, "ingress"), (Want.DROP_EGRESS, "egress")]
)
def test_drops(switch: Dataplane, want: Want, reason: str) -> None:
    assert send(switch, ask(want)) == []
    assert switch.stats().drops == {reason: 1}


def test_ingress_clone_is_the_original(switch: Dataplane) -> None:
    sent = dict(send(switch, ask(Want.CLONE_INGRESS, 2, arg=5), port=4))
    assert sent[2].instance == NORMAL
    assert (sent[7].instance, sent[7].ingress_port, sent[7].egress_port) == (INGRESS_CLONE, 0, 7)
    assert sent[7].payload == sent[2].payload


def test_clones_are_truncated_and_go_everywhere(switch: Dataplane) -> None:
    switch.inject(1, ask(Want.CLONE_INGRESS, 2, arg=6), 1)
    sent = {port: frame for port, frame, _ in switch.outputs()}
    assert {p: len(f) for p, f in sent.items()} == {2: 100, 6: 40, 7: 40}
    ports = [p for p, _ in send(switch, ask(Want.CLONE_INGRESS, 2, arg=9))]
    assert sorted(ports) == [2, 2, 3, 3]


def test_clone_to_nowhere(switch: Dataplane) -> None:
    assert [p for p, _ in send(switch, ask(Want.CLONE_INGRESS, 2, arg=1))] == [2]


def test_egress_clone(switch: Dataplane) -> None:
    sent = dict(send(switch, ask(Want.CLONE_EGRESS, 2, arg=5), port=3))
    assert (sent[2].instance, sent[2].ingress_port) == (NORMAL, 3)
    assert (sent[7].instance, sent[7].ingress_port) == (EGRESS_CLONE, 0)


def test_resubmit(switch: Dataplane) -> None:
    """Only the listed fields survive, the ingress port is not among them."""
    ((port, seen),) = send(switch, ask(Want.RESUBMIT, 2, arg=3), port=3)
    assert (port, seen.turns, seen.ingress_port, seen.instance) == (2, 3, 0, NORMAL)


def test_recirculate(switch: Dataplane) -> None:
    ((port, seen),) = send(switch, ask(Want.RECIRCULATE, 2, arg=4), port=3)
    assert (port, seen.turns, seen.ingress_port, seen.instance) == (2, 4, 0, NORMAL)


def test_endless_recirculation_lets_time_pass(switch: Dataplane) -> None:
    """It goes on for 255 turns a packet; more packets than one call may serve do not hang it."""
    for i in range(40):
        switch.inject(1, ask(Want.RECIRCULATE, 2, arg=255), 1000 + i)
        check_account(switch)
    now = 2000
    while (wake := switch.service(now)) is not None:
        now = wake
        check_account(switch)
    assert len(switch.outputs()) == 40


def test_multicast(switch: Dataplane) -> None:
    sent = send(switch, ask(Want.MULTICAST, arg=4), port=5)
    assert [(p, t.rid, t.instance) for p, t in sent] == [
        (2, 20, REPLICA),
        (3, 30, REPLICA),
        (3, 31, REPLICA),
    ]
    assert {t.ingress_port for _, t in sent} == {5}
    assert switch.stats().copies == 2


def test_multicast_to_nobody(switch: Dataplane) -> None:
    assert send(switch, ask(Want.MULTICAST, arg=8)) == []
    assert send(switch, ask(Want.MULTICAST, arg=77)) == []
    assert switch.stats().drops == {"empty_multicast_group": 1, "no_multicast_group": 1}


def test_truncate_and_grow(switch: Dataplane) -> None:
    switch.inject(1, ask(Want.TRUNCATE, 2, arg=50), 1)
    switch.inject(1, ask(Want.GROW, 2), 1)
    (_, short, _), (_, long, _) = switch.outputs()
    assert len(short) == 50
    assert len(long) == 108
    assert seen_of(long).length == 108
    assert bytes.fromhex("0123456789abcdef") in long


def test_exit_keeps_what_was_done(switch: Dataplane) -> None:
    assert [p for p, _ in send(switch, ask(Want.EXIT, 6))] == [6]


def test_a_failed_assertion_costs_the_packet_only(switch: Dataplane) -> None:
    lines: list[str] = []
    switch.set_trace(None, lines.append)
    assert send(switch, ask(Want.ASSERT, 2, arg=1)) == []
    assert switch.stats().drops == {"assert": 1}
    assert "h.ask.arg == 0" in lines[0]
    assert len(send(switch, ask(Want.ASSERT, 2, arg=0))) == 1


def test_short_and_long_frames(switch: Dataplane) -> None:
    for size in range(45):
        switch.inject(1, ask(Want.FORWARD, 2)[:size], 1)
        check_account(switch)
    switch.inject(1, bytes(20_000), 1)
    assert switch.stats().drops["oversize"] == 1
    switch.outputs()
    assert len(send(switch, ask(Want.FORWARD, 2, size=9216))) == 1


def test_unknown_ports(switch: Dataplane) -> None:
    assert send(switch, ask(Want.FORWARD, 77)) == []
    switch.remove_port(2)
    assert send(switch, ask(Want.FORWARD, 2)) == []
    assert switch.stats().drops == {"no_such_port": 2}


def test_priorities_that_do_not_exist() -> None:
    with Dataplane("few", compiled(SOURCE), queues=2) as dataplane:
        dataplane.add_port(2)
        assert len(send(dataplane, ask(Want.FORWARD, 2, prio=1))) == 1
        assert send(dataplane, ask(Want.FORWARD, 2, prio=2)) == []
        assert dataplane.stats().drops == {"no_such_priority": 1}


def test_swapping_the_program_accounts_for_what_was_queued(switch: Dataplane) -> None:
    switch.configure_port(2, rate_bps=1_000_000)
    for i in range(10):
        switch.inject(1, ask(Want.FORWARD, 2), 1000 + i)
    assert switch.stats().held == 9
    switch.load(compiled(SOURCE))
    assert switch.stats().held == 0
    assert switch.stats().drops == {"program_replaced": 9}


def test_without_a_program() -> None:
    with Dataplane("bare") as dataplane:
        dataplane.add_port(1)
        dataplane.inject(1, bytes(60), 1)
        assert dataplane.stats().drops == {"no_program": 1}
