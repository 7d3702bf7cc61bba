"""What a control plane can reach besides tables, and what the switch says of its own accord."""

from __future__ import annotations

import os
import random
import resource
import struct
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from lab.machine.paths import ROOT
from params.data import Data
from switch.dataplane import (
    Code,
    CounterValue,
    CounterWrite,
    Dataplane,
    DataplaneError,
    DigestAck,
    DigestList,
    DigestWrite,
    DirectCounterWrite,
    DirectMeterWrite,
    Entry,
    GroupMember,
    GroupWrite,
    IdleTimeout,
    MemberWrite,
    MeterRates,
    MeterWrite,
    PacketIn,
    PortState,
    Program,
    RegisterWrite,
    TableWrite,
    ValueSetWrite,
    Verb,
)

from .programs import compiled, one_action

if TYPE_CHECKING:
    from collections.abc import Iterator
from contextlib import contextmanager

SOURCE = Path(__file__).parent / "p4" / "externs.p4"
H = struct.Struct(">HHBBBBQ")
SECOND = 1_000_000_000
GREEN, YELLOW, RED = 0, 1, 2


class Seen(Data):
    key: int
    sel: int
    member: int
    color: int
    direct_color: int
    known: int
    flow: int


@contextmanager
def load() -> Iterator[Dataplane]:
    """A switch with the program, and ports."""
    with Dataplane("externs", compiled(SOURCE), cpu_port=64) as dataplane:
        for port in range(1, 5):
            dataplane.add_port(port)
        dataplane.drain()
        yield dataplane


@pytest.fixture
def switch() -> Iterator[Dataplane]:
    with load() as dataplane:
        yield dataplane


def send(
    dataplane: Dataplane, key: int = 0, *, sel: int = 0, flow: int = 0, port: int = 1, now: int = 1
) -> Seen:
    dataplane.inject(port, H.pack(key, sel, 0, 0, 0, 0, flow) + bytes(84), now)
    ((_, frame, _),) = dataplane.outputs()
    return Seen(*H.unpack_from(frame))


def index(dataplane: Dataplane, kind: str, name: str) -> int:
    things = getattr(dataplane.program, kind)
    return int(next(t.index for t in things if t.name.rpartition(".")[2] == name))


def action(dataplane: Dataplane, table: str, name: str) -> int:
    assert dataplane.program is not None
    info = dataplane.program.tables[index(dataplane, "tables", table)]
    return next(a for a in info.actions if dataplane.program.actions[a].name.endswith(name))


def flow_entry(dataplane: Dataplane, key: int, timeout: int = 0) -> Entry:
    table = index(dataplane, "tables", "flows")
    chosen = action(dataplane, "flows", "seen")
    return Entry(table, (key,), action=chosen, idle_timeout_ns=timeout)


def test_counters(switch: Dataplane) -> None:
    arrivals = index(switch, "counters", "arrivals")
    send(switch, port=2)
    send(switch, port=2)
    assert switch.read_counter(arrivals, 2) == [CounterValue(2, 200)]
    assert sum(c.packets for c in switch.read_counter(arrivals)) == 2
    assert switch.write([CounterWrite(arrivals, 3, 7, 8), CounterWrite(arrivals, 16, 1, 1)])[1]
    assert switch.read_counter(arrivals, 3) == [CounterValue(7, 8)]
    switch.write([CounterWrite(arrivals, None, 0, 0)])
    assert set(switch.read_counter(arrivals)) == {CounterValue(0, 0)}
    with pytest.raises(DataplaneError, match="beyond"):
        switch.read_counter(arrivals, 16)


def test_direct_counters(switch: Dataplane) -> None:
    entry = flow_entry(switch, 5)
    switch.write([TableWrite(Verb.INSERT, entry)])
    send(switch, 5)
    send(switch, 6)
    state = switch.entry(entry)
    assert state is not None
    assert state.counter == CounterValue(1, 100)
    assert switch.write([DirectCounterWrite(entry, 10, 20)]) == [None]
    send(switch, 5)
    state = switch.entry(entry)
    assert state is not None
    assert state.counter == CounterValue(11, 120)
    assert switch.entry(flow_entry(switch, 77)) is None


def test_a_cell_of_any_width_is_read_as_written() -> None:
    widths = (1, 7, 8, 9, 16, 17, 32, 33, 64, 65, 200)
    root = one_action({"h": [("a", 8, False)]}, [])
    root["register_arrays"] = [
        {"name": f"r{width}", "id": n, "size": 3, "bitwidth": width}
        for n, width in enumerate(widths)
    ]
    with Dataplane("s", Program.load(root)) as switch:
        for register, width in enumerate(widths):
            for value in ((1 << width) - 1, 1 << width - 1, 0x0102030405060708 % (1 << width)):
                assert switch.write([RegisterWrite(register, 1, value)]) == [None]
                assert switch.read_register(register) == [0, value, 0]


def test_registers_of_all_widths(switch: Dataplane) -> None:
    narrow, wide = index(switch, "registers", "narrow"), index(switch, "registers", "wide")
    send(switch, 7, flow=9, now=123_456)
    assert switch.read_register(narrow, 0) == [123_456]
    assert switch.read_register(wide, 1) == [9 << 64 | 7]
    value = (1 << 128) - 3
    assert switch.write([RegisterWrite(wide, None, value)]) == [None]
    assert switch.read_register(wide) == [value] * 4
    errors = switch.write([RegisterWrite(narrow, 0, 1 << 48), RegisterWrite(narrow, 8, 1)])
    assert [e and e.code for e in errors] == [Code.INVALID_ARGUMENT, Code.OUT_OF_RANGE]


def test_a_meter_colours_by_rate(switch: Dataplane) -> None:
    """100-byte packets, 1000 bytes/s committed and 2000 peak, a tenth of a second apart."""
    meter = index(switch, "meters", "rate")
    assert send(switch).color == GREEN
    rates = MeterRates(1000, 300, 2000, 600)
    assert switch.write([MeterWrite(meter, 1, rates)]) == [None]
    assert switch.read_meter(meter) == [None, rates, None, None]
    slow = [send(switch, now=SECOND * (10 + i) // 10).color for i in range(20)]
    assert set(slow) == {GREEN}
    fast = Counter(send(switch, now=SECOND * 4 + SECOND * i // 15).color for i in range(150))
    assert fast[GREEN] == pytest.approx(100, abs=5)
    assert fast[YELLOW] == pytest.approx(50, abs=5)
    assert fast[RED] == 0
    flood = Counter(send(switch, now=SECOND * 20 + SECOND * i // 100).color for i in range(1000))
    assert flood[GREEN] == pytest.approx(100, abs=8)
    assert flood[GREEN] + flood[YELLOW] == pytest.approx(200, abs=8)
    switch.write([MeterWrite(meter, None, None)])
    assert send(switch, now=SECOND * 30).color == GREEN
    assert switch.write([MeterWrite(meter, 0, MeterRates(2, 1, 1, 1))])[0]


def test_direct_meters(switch: Dataplane) -> None:
    entry = flow_entry(switch, 5)
    switch.write([TableWrite(Verb.INSERT, entry)])
    rates = MeterRates(1, 1, 1, 2)
    assert switch.write([DirectMeterWrite(entry, rates)]) == [None]
    state = switch.entry(entry)
    assert state is not None
    assert state.rates == rates
    colours = [send(switch, 5, now=SECOND + i).direct_color for i in range(4)]
    assert colours == [GREEN, YELLOW, RED, RED]
    assert send(switch, 6, now=SECOND + 9).direct_color == GREEN


def test_selectors(switch: Dataplane) -> None:
    table = index(switch, "tables", "spread")
    choose = action(switch, "spread", "choose")
    members = [MemberWrite(Verb.INSERT, 0, i, choose, (i,)) for i in range(1, 5)]
    assert switch.write(members) == [None] * 4
    group = GroupWrite(Verb.INSERT, 0, 9, tuple(GroupMember(i, watch_port=i) for i in range(1, 5)))
    assert switch.write([group]) == [None]
    inserted = switch.write(
        [
            TableWrite(Verb.INSERT, Entry(table, (1,), group=9)),
            TableWrite(Verb.INSERT, Entry(table, (2,), member=3)),
            TableWrite(Verb.INSERT, Entry(table, (3,), member=33)),
            TableWrite(Verb.INSERT, Entry(table, (3,), action=choose, params=(1,))),
        ]
    )
    assert [e and e.code for e in inserted] == [
        None, None, Code.NOT_FOUND, Code.INVALID_ARGUMENT,
    ]  # fmt: skip
    # CRC-16 spreads numbers that follow each other badly, here as on BMv2.
    rng = random.Random(1)
    flows = [rng.getrandbits(64) for _ in range(400)]
    by_flow = {f: send(switch, sel=1, flow=f).member for f in flows}
    counts = Counter(by_flow.values())
    assert set(counts) == {1, 2, 3, 4}
    assert min(counts.values()) > 50
    assert {f: send(switch, sel=1, flow=f).member for f in flows} == by_flow
    assert send(switch, sel=2).member == 3
    assert send(switch, sel=7).member == 0

    switch.set_port_up(2, False)
    assert {send(switch, sel=1, flow=f).member for f in flows} == {1, 3, 4}
    switch.set_port_up(2, True)
    weighted = GroupWrite(Verb.MODIFY, 0, 9, (GroupMember(1, 3), GroupMember(2, 1)))
    assert switch.write([weighted]) == [None]
    counts = Counter(send(switch, sel=1, flow=f).member for f in flows)
    assert counts[1] == pytest.approx(300, abs=50)
    assert switch.write([GroupWrite(Verb.MODIFY, 0, 9)]) == [None]
    assert send(switch, sel=1).member == 0  # an empty group does nothing

    busy = switch.write([MemberWrite(Verb.DELETE, 0, 3), GroupWrite(Verb.DELETE, 0, 9)])
    assert [e and e.code for e in busy] == [Code.FAILED_PRECONDITION] * 2
    assert switch.write([MemberWrite(Verb.MODIFY, 0, 3, choose, (99,))]) == [None]
    assert send(switch, sel=2).member == 99
    read = {s.entry.values[0]: (s.entry.member, s.entry.group) for s in switch.entries(table)}
    assert read == {1: (0, 9), 2: (3, 0)}


def test_value_sets(switch: Dataplane) -> None:
    assert send(switch, 0x1234).known == 0
    members = ((0x1200, 0xFF00), (7, 0xFFFF))
    assert switch.write([ValueSetWrite(0, members)]) == [None]
    assert [send(switch, k).known for k in (0x1234, 0x12FF, 0x1334, 7, 8)] == [1, 1, 0, 1, 0]
    assert switch.write([ValueSetWrite(0, ((1 << 16, 0),))])[0] is not None
    assert switch.write([ValueSetWrite(0, ())]) == [None]
    assert send(switch, 7).known == 0


def test_digests(switch: Dataplane) -> None:
    send(switch, 1)
    assert switch.drain() == []
    config = DigestWrite(Verb.INSERT, 0, max_timeout_ns=1000, max_list_size=2, ack_timeout_ns=10**6)
    assert switch.write([config]) == [None]
    send(switch, 1, flow=5, port=3, now=100)
    send(switch, 1, flow=5, port=3, now=101)  # the same again is not told again
    assert switch.drain() == []
    send(switch, 2, now=200)
    ((first),) = switch.drain()
    assert isinstance(first, DigestList)
    assert first.samples == ((1, 5, 3), (2, 0, 1))
    send(switch, 2, now=300)
    send(switch, 3, now=400)
    assert switch.service(1399) is not None
    assert switch.drain() == []
    switch.service(1400)
    ((second),) = switch.drain()
    assert isinstance(second, DigestList)
    assert second.samples == ((3, 0, 1),)
    switch.write([DigestAck(0, first.list_id)])
    send(switch, 2, now=1500)
    send(switch, 3, now=1501)
    switch.service(4000)
    ((third),) = switch.drain()
    assert isinstance(third, DigestList)
    assert third.samples == ((2, 0, 1),)
    send(switch, 3, now=2 * 10**6)  # nobody acknowledged it in time
    switch.service(3 * 10**6)
    ((fourth),) = switch.drain()
    assert isinstance(fourth, DigestList)
    assert fourth.samples == ((3, 0, 1),)


def test_idle_timeouts(switch: Dataplane) -> None:
    busy, lazy = flow_entry(switch, 1, SECOND), flow_entry(switch, 2, SECOND)
    switch.write([TableWrite(Verb.INSERT, e) for e in (busy, lazy)])
    now = 1
    idle: list[IdleTimeout] = []
    while now < 4 * SECOND:
        send(switch, 1, now=now)
        now += SECOND // 10
        idle += [e for e in switch.drain() if isinstance(e, IdleTimeout)]
    assert [e.entry.values for e in idle] == [(2,)]
    assert idle[0].entry.idle_timeout_ns == SECOND
    assert SECOND <= idle[0].time_ns < SECOND * 12 // 10
    send(switch, 2, now=now)  # it lives again, and can be told of again
    now += 2 * SECOND
    switch.service(now)
    assert {e.entry.values for e in switch.drain() if isinstance(e, IdleTimeout)} == {(1,), (2,)}
    state = switch.entry(lazy)
    assert state is not None
    assert state.idle_ns == 2 * SECOND


def test_what_is_taken_back_has_its_idle_timeout_back(switch: Dataplane) -> None:
    """A batch that fails leaves entries as old as it found them: deleted, modified, or both."""
    entries = [flow_entry(switch, key, key * SECOND) for key in range(1, 5)]
    over = flow_entry(switch, 5, SECOND // 2)
    switch.write([TableWrite(Verb.INSERT, e) for e in (*entries, over)])
    batch = [
        TableWrite(Verb.DELETE, over),
        TableWrite(Verb.DELETE, entries[0]),
        TableWrite(Verb.MODIFY, flow_entry(switch, 2, 20 * SECOND)),
        TableWrite(Verb.MODIFY, flow_entry(switch, 3, 30 * SECOND)),
        TableWrite(Verb.DELETE, entries[2]),
        TableWrite(Verb.INSERT, entries[3]),  # it is there already
    ]
    switch.service(int(0.9 * SECOND))
    assert [e.entry.values for e in switch.drain() if isinstance(e, IdleTimeout)] == [(5,)]
    assert switch.write(batch, all_or_nothing=True)[-1] is not None
    for key, entry in enumerate(entries, 1):
        found = switch.entry(entry)
        assert found is not None and found.entry.idle_timeout_ns == key * SECOND
    switch.service(int(1.5 * SECOND))
    idle = [e.entry.values for e in switch.drain() if isinstance(e, IdleTimeout)]
    assert idle == [(1,)]  # and of what was told before nobody is told again


def test_packets_in_and_out(switch: Dataplane) -> None:
    frame = H.pack(3, 0, 0, 0, 0, 0, 0)
    switch.packet_out(frame)
    ((port, sent, _),) = switch.outputs()
    assert (port, sent[:2]) == (1, frame[:2])
    assert switch.read_counter(index(switch, "counters", "arrivals"), 3) == [CounterValue(0, 0)]
    switch.remove_port(1)
    assert PortState(1, False, 0).is_up is False


_MAKES_AND_CLOSES = """
import gc, sys
from pathlib import Path
from switch.dataplane import Dataplane
from tests.switch.programs import compiled

def held():
    gc.collect()
    return len(list(Path("/proc/self/fd").iterdir()))

program = compiled(Path(sys.argv[1]))
Dataplane("first", program).close()  # whatever the library opens once
before = held()
kept = [Dataplane(str(n), program, cpu_port=1) for n in range(20)]
print(held() - before, end=" ")
kept[0].close()
kept[0].close()
print(held() - before, end=" ")
kept.clear()
print(held() - before)
"""


def test_a_switch_goes_with_who_held_it() -> None:
    """Its descriptor too: whoever makes many and closes none has not soon run out of them.

    In a process of its own: in this one, what other tests left may close something meanwhile.
    """
    words = [sys.executable, "-c", _MAKES_AND_CLOSES, str(SOURCE)]
    done = subprocess.run(words, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.stdout == "20 19 0\n", done.stderr


def test_events_are_waited_for_whatever_the_descriptor() -> None:
    """select() would know none above 1023."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, min(2048, hard)), hard))
    others: list[int] = []
    try:
        while not others or others[-1] < 1024:
            others.append(os.open("/dev/null", os.O_RDONLY))
        with Dataplane("high", compiled(SOURCE), cpu_port=1) as dataplane:
            assert dataplane.event_fd > 1023
            assert not dataplane.wait(0)
            assert not dataplane.wait(0.001)
            dataplane.inject(2, H.pack(3, 0, 0, 0, 0, 0, 0), 55)
            assert dataplane.wait(0)
    finally:
        for fd in others:
            os.close(fd)
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def test_packet_in() -> None:
    with Dataplane("cpu", compiled(SOURCE), cpu_port=1) as dataplane:
        assert not dataplane.wait(0)
        dataplane.inject(2, H.pack(3, 0, 0, 0, 0, 0, 0), 55)
        assert dataplane.wait(0)
        (event,) = dataplane.drain()
        assert isinstance(event, PacketIn)
        assert (event.data[:2], event.time_ns) == (b"\x00\x03", 55)
        assert not dataplane.wait(0)


def test_captures(switch: Dataplane, tmp_path: Path) -> None:
    switch.set_pcap(2, "in", tmp_path / "in.pcap")
    switch.set_pcap(1, "out", tmp_path / "out.pcap")
    send(switch, 5, port=2, now=3 * SECOND + 7)
    switch.set_pcap(2, "in", None)
    send(switch, 6, port=2, now=4 * SECOND)
    data = (tmp_path / "in.pcap").read_bytes()
    assert struct.unpack_from("<I", data) == (0xA1B23C4D,)
    assert struct.unpack_from("<IIII", data, 24) == (3, 7, 100, 100)
    assert len(data) == 24 + 16 + 100
    assert len((tmp_path / "out.pcap").read_bytes()) == 24 + 2 * (16 + 100)
    with pytest.raises(DataplaneError, match="cannot record"):
        switch.set_pcap(1, "in", tmp_path / "none" / "x.pcap")


def test_a_trace_tells_the_story() -> None:
    from compiler.driver import compile_program
    from switch.dataplane import Program

    program = Program.load(compile_program(SOURCE).json, trace=True)
    lines: list[str] = []
    with Dataplane("told", program) as dataplane:
        dataplane.add_port(1)
        dataplane.set_trace(lines.append)
        dataplane.inject(2, H.pack(5, 0, 0, 0, 0, 0, 0), 1000)
        dataplane.inject(2, b"\x00", 2000)
        dataplane.set_trace(None)
        dataplane.inject(2, b"\x00", 3000)
    text = "\n".join(lines)
    for part in (
        "1000 ns: received at port 2, 16 bytes: 0005",
        "parser state start",
        "table MyIngress.flows",
        "h.h.key = 0x5",
        "miss",
        "externs.p4:",
        "sent to port 1, 16 bytes",
        "parser error PacketTooShort",
    ):
        assert part in text
    assert "3000 ns" not in text
