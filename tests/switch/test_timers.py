"""Timers: packets that a program orders for a time, held against a model of who rings when."""

import random
from pathlib import Path

import pytest

from compiler import compile_program
from switch.dataplane import Dataplane, DataplaneError, Program, RegisterWrite, Role

CELLS = 20
PROGRAM = """
#include <core.p4>
#include <v1model.p4>

header order_t { bit<32> cell; bit<WIDTH> at; }
header rang_t { bit<32> cell; }
struct headers_t { order_t order; rang_t rang; }
struct metadata_t {}

@timer
register<bit<WIDTH>>(CELLS + 1) timers;

parser p(packet_in packet, out headers_t hdr, inout metadata_t meta,
         inout standard_metadata_t standard_metadata) {
    state start {
        transition select(standard_metadata.instance_type) {
            7: rang;
            default: order;
        }
    }
    state order { packet.extract(hdr.order); transition accept; }
    state rang { packet.extract(hdr.rang); transition accept; }
}

control ingress(inout headers_t hdr, inout metadata_t meta,
                inout standard_metadata_t standard_metadata) {
    action set() {
        bit<WIDTH> earliest;
        timers.read(earliest, CELLS);
        bool is_earlier = hdr.order.at != 0 && (earliest == 0 || hdr.order.at < earliest);
        timers.write(CELLS, is_earlier ? hdr.order.at : earliest);
        timers.write(hdr.order.cell, hdr.order.at);
    }
    apply {
        if (hdr.rang.isValid()) {
            standard_metadata.egress_spec = 2;
        } else {
            set();
            mark_to_drop(standard_metadata);
        }
    }
}

control nothing(inout headers_t hdr, inout metadata_t meta) { apply {} }
control egress(inout headers_t hdr, inout metadata_t meta,
               inout standard_metadata_t standard_metadata) { apply {} }
control deparser(packet_out packet, in headers_t hdr) { apply { packet.emit(hdr.rang); } }

V1Switch(p(), nothing(), ingress(), egress(), nothing(), deparser()) main;
"""


@pytest.fixture(scope="module", params=[32, 48, 64])
def width(request: pytest.FixtureRequest) -> int:
    return int(request.param)


@pytest.fixture
def switch(width: int, tmp_path: Path) -> Dataplane:
    source = tmp_path / "timers.p4"
    source.write_text(PROGRAM.replace("WIDTH", str(width)).replace("CELLS", str(CELLS)))
    switch = Dataplane("s", Program.load(compile_program(source).json))
    for port in (1, 2):
        switch.add_port(port)
    switch.share_register(Role.TIMER, 0)
    return switch


def order(switch: Dataplane, width: int, cell: int, at: int, now: int) -> None:
    switch.inject(1, cell.to_bytes(4, "big") + at.to_bytes(width // 8, "big"), now)


def rung(switch: Dataplane) -> list[tuple[int, int]]:
    """When, and which."""
    return [(when, int.from_bytes(frame[:4], "big")) for _, frame, when in switch.outputs()]


@pytest.mark.parametrize("seed", range(6))
def test_timers_ring_once_and_when_they_are_due(switch: Dataplane, width: int, seed: int) -> None:
    draw = random.Random(seed)
    orders = sorted((draw.randrange(1, 50_000), draw.randrange(CELLS)) for _ in range(300))
    due: dict[int, int] = {}  # the model: by cell
    expected: list[tuple[int, int]] = []
    now, heard = 0, []

    def pass_time(until: int) -> None:
        nonlocal now
        while True:
            wake = switch.service(now)
            heard.extend(rung(switch))
            if wake is None or wake > until:
                break
            now = wake
        ringing = sorted((at, cell) for cell, at in due.items() if at <= until)
        expected.extend(ringing)
        for _, cell in ringing:
            del due[cell]
        now = until

    for when, cell in orders:
        if when > now:
            pass_time(when)
        at = draw.choice([0, when + 1 + draw.randrange(3000)])
        order(switch, width, cell, at, now)
        due.pop(cell, None)
        if at:
            due[cell] = at
    pass_time(100_000)
    assert heard == expected
    assert switch.service(now) is None
    stats = switch.stats()
    assert stats.copies == len(heard) > 50
    assert stats.received + stats.copies == stats.sent + sum(stats.drops.values()) + stats.held


def test_a_deadline_gone_by_rings_at_once_and_time_goes_on(switch: Dataplane, width: int) -> None:
    order(switch, width, 3, 5, now=1000)
    order(switch, width, 4, 999, now=1000)
    assert switch.service(1000) is None
    assert sorted(rung(switch)) == [(1000, 3), (1000, 4)]


def test_timers_are_nobodys_when_the_register_is_shared_no_more(
    switch: Dataplane, width: int
) -> None:
    order(switch, width, 3, 5000, now=10)
    switch.share_register(Role.TIMER, None)
    assert switch.service(6000) is None
    assert rung(switch) == []
    switch.share_register(Role.TIMER, 0)
    switch.write([RegisterWrite(0, 3, 0)])
    switch.service(7000)
    assert rung(switch) == []


def test_registers_that_hold_no_times_are_refused(switch: Dataplane) -> None:
    with pytest.raises(DataplaneError, match="cannot be the timer"):
        switch.share_register(Role.TIMER, 1)


def test_what_time_it_is_can_be_read(switch: Dataplane) -> None:
    switch.share_register(Role.TIMER, None)
    switch.share_register(Role.CLOCK, 0)
    switch.service(123_456)
    assert switch.read_register(0)[0] == 123_456


def test_a_ports_timers_ring_when_it_comes_up(switch: Dataplane, width: int) -> None:
    """Its first cells are by queue: what they sent while it was down is lost."""
    for cell in (7, 8, 11, 15, 16):
        order(switch, width, cell, 5000 + cell, now=10)
    switch.set_port_up(1, False)
    assert switch.service(30) == 5007
    switch.set_port_up(1, True)
    switch.service(30)
    assert sorted(rung(switch)) == [(30, 8), (30, 11), (30, 15)]
    assert switch.service(5007) == 5016
    assert rung(switch) == [(5007, 7)]
