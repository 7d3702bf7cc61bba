"""Cases for test_interfaces.py: each runs as a process of its own, in a new network namespace.

    python -m tests.switch.interfaces CASE FOLDER

The switch is a wire: what enters at port 0 leaves at port 1, and the other way round. Hosts are
packet sockets on the far ends of its veths, `a0 ~~ a1=port 0` and `b0 ~~ b1=port 1`.
"""

import asyncio
import ctypes
import errno
import json
import mmap
import os
import random
import re
import select
import socket
import struct
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path

from compiler import Compiled, compile_program
from lab.machine.speed import processor_slowness
from switch.dataplane import Dataplane, Loop, PortState, Program, Stats
from switch.host import Host as SwitchHost
from switch.host import SwitchSettings
from switch.layout import ARRIVAL_BYTES
from tests.veths import MTU as MTU
from tests.veths import bring_up, run, veth
from tests.waiting import LONG_S, SLOWNESS

WIRE = """
#include <core.p4>
#include <v1model.p4>
struct headers_t {}
struct metadata_t {}
parser p(packet_in b, out headers_t h, inout metadata_t m, inout standard_metadata_t s) {
    state start { transition accept; }
}
control c(inout headers_t h, inout metadata_t m) { apply {} }
control i(inout headers_t h, inout metadata_t m, inout standard_metadata_t s) {
    apply { s.egress_spec = s.ingress_port ^ 1; }
}
control e(inout headers_t h, inout metadata_t m, inout standard_metadata_t s) { apply {} }
control d(packet_out b, in headers_t h) { apply {} }
V1Switch(p(), c(), i(), e(), c(), d()) main;
"""
NEEDED_TO_LOAD = (12, 39)  # CAP_NET_ADMIN, CAP_BPF: a program
EPOLL_PWAIT2 = 441  # on all processors
SOL_PACKET, PACKET_IGNORE_OUTGOING = 263, 23
PACKET_RX_RING, PACKET_VERSION, TPACKET_V2 = 5, 10, 1
RING, BLOCK = 64 << 20, 1 << 16  # bytes
LARGE_SLOT, SMALL_SLOT = 1 << 14, 1 << 11
TAG_VALID, TPID_VALID = 0x10, 0x40
BURST = 250

cases: dict[str, Callable[[Path], None]] = {}


def case(function: Callable[[Path], None]) -> Callable[[Path], None]:
    cases[function.__name__] = function
    return function


def frame(size: int, number: int = 0, tags: bytes = b"", ether_type: int = 0x88B5) -> bytes:
    """A frame whose bytes depend on its number."""
    head = bytes([2, 0, 0, 0, 0, 2, 2, 0, 0, 0, 0, 1]) + tags + struct.pack(">H", ether_type)
    body = struct.pack(">I", number) + random.Random(number).randbytes(size)
    return (head + body)[:size]


class Host:
    """A packet socket at a far end, that sends frames as they are and hears them as they were.

    What arrives waits in a ring: only root may make a socket's buffer large enough for a burst.
    """

    def __init__(
        self, interface: str, *, hears_outgoing: bool = False, slot: int = LARGE_SLOT
    ) -> None:
        self.socket = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, 0)
        if not hears_outgoing:
            self.socket.setsockopt(SOL_PACKET, PACKET_IGNORE_OUTGOING, 1)
        self.socket.setsockopt(SOL_PACKET, PACKET_VERSION, TPACKET_V2)
        layout = struct.pack("IIII", BLOCK, RING // BLOCK, slot, RING // slot)
        self.socket.setsockopt(SOL_PACKET, PACKET_RX_RING, layout)
        self.ring = mmap.mmap(self.socket.fileno(), RING)
        self.at, self.slot = 0, slot
        self.socket.bind((interface, 3))  # all protocols
        self.socket.settimeout(2 * SLOWNESS)

    def close(self) -> None:
        self.ring.close()
        self.socket.close()

    def send(self, data: bytes) -> None:
        self.socket.send(data)

    def receive(self) -> bytes:
        head = struct.Struct("IIIHHIIHH")  # struct tpacket2_hdr
        waiting = select.poll()
        waiting.register(self.socket, select.POLLIN)
        deadline = time.monotonic() + (self.socket.gettimeout() or 0)
        while not head.unpack_from(self.ring, self.at)[0] & 1:
            left = deadline - time.monotonic()
            if left <= 0:
                raise TimeoutError
            waiting.poll(left * 1000)
        status, length, kept, start, _, _, _, tci, tpid = head.unpack_from(self.ring, self.at)
        assert kept == length, "a frame larger than the ring's slots"
        data = self.ring[self.at + start : self.at + start + length]
        struct.pack_into("I", self.ring, self.at, 0)  # the kernel's again
        self.at = (self.at + self.slot) % RING
        if status & TAG_VALID:
            tpid = tpid if status & TPID_VALID else 0x8100
            data = data[:12] + struct.pack(">HH", tpid, tci) + data[12:]
        return data

    def receive_most(self, count: int) -> list[bytes]:
        """Up to `count` frames, until none comes any more."""
        got: list[bytes] = []
        try:
            while len(got) < count:
                got.append(self.receive())
        except TimeoutError:
            pass
        return got


def compiled_wire(folder: Path) -> Compiled:
    source = folder / "wire.p4"
    source.write_text(WIRE)
    return compile_program(source)


@contextmanager
def wire(folder: Path, *interfaces: str) -> Iterator[Dataplane]:
    """The switch, with its ports."""
    program = Program.load(compiled_wire(folder).json, name="wire")
    with Loop() as loop, Dataplane("wire", program, loop=loop) as plane:
        for number, interface in enumerate(interfaces):
            plane.add_port(number, interface)
        yield plane


class ArrivalTimes:
    """One direction of a cable, as `switch/rt/arrival_times.h` lays it out."""

    NOTED = 1020

    def __init__(self) -> None:
        self.memory = mmap.mmap(-1, ARRIVAL_BYTES)
        self.address = ctypes.addressof(ctypes.c_char.from_buffer(self.memory))

    def read(self, room: int = NOTED) -> None:
        """From now on somebody does, who has room for so many frames."""
        struct.pack_into("I", self.memory, 0, room)

    def note(self, data: bytes, at_ns: int) -> None:
        (count,) = struct.unpack_from("Q", self.memory, 8)
        place = 64 + 16 * (count % self.NOTED)
        struct.pack_into("QQ", self.memory, place, self.known(data), at_ns)
        struct.pack_into("Q", self.memory, 8, count + 1)

    def noted(self) -> list[tuple[int, int]]:
        (count,) = struct.unpack_from("Q", self.memory, 8)
        return [struct.unpack_from("QQ", self.memory, 64 + 16 * n) for n in range(count)]

    @staticmethod
    def known(data: bytes) -> int:
        known = len(data)
        for at in range(0, min(len(data), 128), 8):
            part = int.from_bytes(data[at : min(at + 8, 128)], sys.byteorder)
            known = (known ^ part) * 0x9E3779B97F4A7C15 % 2**64
            known ^= known >> 29
        return known


@contextmanager
def two_hosts(folder: Path, slot: int = LARGE_SLOT) -> Iterator[tuple[Dataplane, Host, Host]]:
    veth("a0", "a1")
    veth("b0", "b1")
    with (
        wire(folder, "a1", "b1") as plane,
        closing(Host("a0", slot=slot)) as a,
        closing(Host("b0", slot=slot)) as b,
    ):
        yield plane, a, b


def settled(plane: Dataplane) -> Stats:
    """The account, once nothing moves any more."""
    before = plane.stats()
    while True:
        time.sleep(0.05)
        now = plane.stats()
        if now == before:
            assert now.received + now.copies == now.sent + sum(now.drops.values()) + now.held
            return now
        before = now


def wait_until(condition: Callable[[], bool], what: str) -> None:
    deadline = time.monotonic() + LONG_S
    while not condition():
        assert time.monotonic() < deadline, f"in vain: {what}"
        time.sleep(0.005)


@case
def frames_of_all_sizes_pass_unchanged(folder: Path) -> None:
    with two_hosts(folder) as (_, a, b):
        for size in (14, 15, 60, 64, 1500, 2047, 2048, 2049, 4096, 4097, MTU, MTU + 14):
            for source, sink in ((a, b), (b, a)):
                source.send(frame(size, size))
                assert sink.receive() == frame(size, size), size


def deny(call: int, error: int) -> None:
    """Have a system call fail from now on, in this process, as containers' filters do."""
    load, equal, give, allow = 0x20, 0x15, 0x06, 0x7FFF0000
    steps = (
        (load, 0, 0, 0),  # the call's number
        (equal, 0, 1, call),
        (give, 0, 0, 0x00050000 | error),
        (give, 0, 0, allow),
    )
    text = b"".join(struct.pack("HBBI", *step) for step in steps)
    program = ctypes.create_string_buffer(text, len(text))
    rules = struct.pack("HxxxxxxP", len(steps), ctypes.addressof(program))
    libc = ctypes.CDLL(None, use_errno=True)
    assert libc.prctl(38, 1, 0, 0, 0) == 0  # PR_SET_NO_NEW_PRIVS
    assert libc.prctl(22, 2, rules, 0, 0) == 0, os.strerror(ctypes.get_errno())  # a filter


@case
def quiet_ports_are_heard_where_a_container_denies_calls(folder: Path) -> None:
    deny(EPOLL_PWAIT2, errno.EPERM)
    with two_hosts(folder) as (_, a, b):
        for number in range(3):
            time.sleep(0.02)  # it is quiet, and watched for
            a.send(frame(64, number))
            assert b.receive() == frame(64, number)


@case
def frames_lie_until_they_are_due_and_times_are_exact(folder: Path) -> None:
    """They come all at once, are taken in one by one, and leave when that says, however late."""
    dilation, delay_ns, size = 1000, 20_000, 125
    for name in "ab":
        veth(f"{name}0", f"{name}1")
    came, went = ArrivalTimes(), ArrivalTimes()
    went.read()
    silent, unread = ArrivalTimes(), ArrivalTimes()
    program = Program.load(compiled_wire(folder).json, name="wire")
    with (
        Loop(dilation=dilation) as loop,
        Dataplane("wire", program, loop=loop) as plane,
        closing(Host("a0")) as a,
        closing(Host("b0")) as b,
    ):
        plane.add_port(0, "a1", arrival_times=(came.address, unread.address))
        plane.add_port(1, "b1", arrival_times=(silent.address, went.address))
        plane.configure_port(1, rate_bps=10**9, delay_ns=delay_ns, overhead_bytes=0)
        start_ns = time.monotonic_ns() + 200_000_000
        frames = [frame(size, number) for number in range(20)]
        due = [start_ns + number * 5_000_000 for number in range(len(frames))]
        for data, at_ns in zip(frames, due, strict=True):
            came.note(b"never came" + data, at_ns - 1)
            came.note(data, at_ns)
            a.send(data)
        for data, at_ns in zip(frames, due, strict=True):
            assert b.receive() == data
            assert time.monotonic_ns() >= at_ns
        arrives_ns = (delay_ns + size * 8) * dilation
        assert [known for known, _ in went.noted()] == [ArrivalTimes.known(data) for data in frames]
        for at_ns, (_, then_ns) in zip(due, went.noted(), strict=True):
            assert abs(then_ns - at_ns - arrives_ns) <= dilation
        b.send(frames[0])  # of which nobody told, and where nobody reads: it is kept
        sent_ns = time.monotonic_ns()
        assert a.receive() == frames[0]
        a.send(frames[1])
        assert b.receive() == frames[1]  # taken in when it came
        assert not unread.noted() and went.noted()[-1][1] - sent_ns >= arrives_ns


@case
def a_cable_may_hold_more_frames_than_who_receives_has_room_for(folder: Path) -> None:
    """One leaves every 1.2 ms, and is under way for 100; the ring has 28 slots."""
    for name in "amb":
        veth(*(("m1", "m2") if name == "m" else (f"{name}0", f"{name}1")))
    there, back = ArrivalTimes(), ArrivalTimes()
    program = Program.load(compiled_wire(folder).json, name="wire")
    with (
        Loop(dilation=1000) as one,
        Loop(dilation=1000) as other,
        Dataplane("left", program, loop=one) as left,
        Dataplane("right", program, loop=other) as right,
        closing(Host("a0")) as a,
        closing(Host("b0")) as b,
    ):
        left.add_port(0, "a1")
        left.add_port(1, "m1", arrival_times=(back.address, there.address))
        right.add_port(0, "m2", ring_bytes=1 << 18, arrival_times=(there.address, back.address))
        right.add_port(1, "b1")
        left.configure_port(1, rate_bps=10**10, delay_ns=100_000, overhead_bytes=0)
        frames = [frame(1500, number) for number in range(150)]
        for each in frames:
            a.send(each)
        assert b.receive_most(len(frames)) == frames
        assert right.stats().ports[0].rx_missed == 0


def crossed(interface: str) -> int:
    """Frames that the kernel sent by an interface."""
    told = subprocess.run(
        ["ip", "-json", "-stats", "link", "show", interface], capture_output=True, check=True
    )
    packets: int = json.loads(told.stdout)[0]["stats64"]["tx"]["packets"]
    return packets


@contextmanager
def two_switches(folder: Path, dilation: int = 1000) -> Iterator[tuple[Host, Host]]:
    """a0 ~~ a1=wire=m1 ~~ m2=wire=b1 ~~ b0, both wires in one process, the middle cable told of."""
    for name in "amb":
        veth(*(("m1", "m2") if name == "m" else (f"{name}0", f"{name}1")))
    there, back = ArrivalTimes(), ArrivalTimes()
    program = Program.load(compiled_wire(folder).json, name="wire")
    with (
        Loop(dilation=dilation) as loop,
        Dataplane("left", program, loop=loop) as left,
        Dataplane("right", program, loop=loop) as right,
        closing(Host("a0")) as a,
        closing(Host("b0")) as b,
    ):
        left.add_port(0, "a1")
        left.add_port(1, "m1", arrival_times=(back.address, there.address))
        right.add_port(0, "m2", arrival_times=(there.address, back.address))
        right.add_port(1, "b1")
        for plane, port in ((left, 1), (right, 0)):
            plane.configure_port(port, rate_bps=10**12, delay_ns=1000, overhead_bytes=0)
        time.sleep(0.3)  # by then it is seen that nobody looks
        yield a, b


def sent_on(a: Host, b: Host, numbers: range) -> bool:
    """Whether frames go from end to end, unchanged and in order; and whether in memory."""
    before = crossed("m1")
    frames = [frame(1500, number) for number in numbers]
    for each in frames:
        a.send(each)
    assert b.receive_most(len(frames)) == frames
    by_kernel = crossed("m1") - before
    assert by_kernel in (0, len(frames))
    return not by_kernel


@contextmanager
def tapped(interface: str) -> Iterator[socket.socket]:
    """A socket that asks for all frames of an interface."""
    with socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(3)) as tap:
        tap.bind((interface, 0))
        wish = struct.pack("iHH8x", socket.if_nametoindex(interface), 1, 0)
        tap.setsockopt(SOL_PACKET, 1, wish)
        yield tap


@case
def frames_between_switches_go_by_memory_while_nobody_looks(folder: Path) -> None:
    with two_switches(folder) as (a, b):
        assert sent_on(a, b, range(20))
        with tapped("m2") as tap:
            time.sleep(0.02)  # until the kernel has told of it
            assert not sent_on(a, b, range(20, 40))
            assert [tap.recv(2000) for _ in range(20)] == [frame(1500, n) for n in range(20, 40)]
        time.sleep(0.3)
        assert sent_on(a, b, range(40, 60))
        with closing(Host("m1")):  # one of which the kernel does not tell
            time.sleep(0.3)
            assert not sent_on(a, b, range(60, 80))
        run("tc qdisc replace dev m1 root pfifo limit 1000")
        time.sleep(0.3)
        assert not sent_on(a, b, range(80, 100))
        run("tc qdisc del dev m1 root")
        time.sleep(0.3)
        assert sent_on(a, b, range(100, 120))
        run("ip link set m2 mtu 1300")
        time.sleep(0.3)
        for one, other in ((a, b), (b, a)):
            one.send(frame(1500))
            one.send(frame(1000))
            assert other.receive() == frame(1000)  # the first is no frame for such a cable
        run("ip link set m1 down")
        time.sleep(0.1)
        a.send(frame(64))
        assert not b.receive_most(1)
        run("ip link set m1 up")
        time.sleep(0.3)
        a.send(frame(64, 1))
        assert b.receive() == frame(64, 1)


@case
def frames_keep_their_order_whichever_way_they_go(folder: Path) -> None:
    """More at once than memory is meant for, while somebody looks, and no more, and again."""
    lot, over = random.Random(45), threading.Event()

    def look() -> None:
        while not over.wait(lot.random() * 0.004):
            with tapped("m2"):
                over.wait(lot.random() * 0.004)

    with two_switches(folder) as (a, b):
        before = crossed("m1")
        sizes = random.Random(46).choices((64, 200, 1500, 9000), (1, 1, 1, 3), k=4000)
        looker = threading.Thread(target=look)
        looker.start()
        got: list[bytes] = []
        for number, size in enumerate(sizes, 1):
            a.send(frame(size, number - 1))
            if number % BURST == 0:
                got += b.receive_most(BURST)
        over.set()
        looker.join()
        assert got == [frame(size, number) for number, size in enumerate(sizes)]
        assert 0 < crossed("m1") - before < len(sizes)


@case
def tags_survive(folder: Path) -> None:
    with two_hosts(folder) as (_, a, b):
        dot1q, dot1ad = b"\x81\x00\xa0\x05", b"\x88\xa8\x60\x07"
        for tags in (dot1q, dot1ad, dot1ad + dot1q, b"\x81\x00\x00\x00"):
            for size in (64, MTU + 14):
                sent = frame(size, 1, tags)
                a.send(sent)
                assert b.receive() == sent, tags.hex()


@case
def bursts_keep_their_order(folder: Path) -> None:
    sizes = random.Random(1).choices((64, 200, 1500, 3000, 9000), k=3000)
    with two_hosts(folder) as (plane, a, b):
        # Captures on the switch's own interfaces forbid AF_XDP, and queueing disciplines every
        # quick way: the second round goes without the one, the third without any.
        for watched, queued in ((False, False), (True, False), (False, True)):
            if queued:
                run("tc qdisc replace dev b1 root pfifo limit 10000")
            watch = Host("b1", hears_outgoing=True) if watched else None
            time.sleep(0.2)
            got: list[bytes] = []
            for number, size in enumerate(sizes, 1):
                a.send(frame(size, number - 1))
                if number % BURST == 0:  # what its ring holds, should the switch get no core
                    got += b.receive_most(BURST)
            assert [struct.unpack(">I", f[14:18])[0] for f in got] == list(range(len(sizes)))
            assert got == [frame(size, n) for n, size in enumerate(sizes)]
            if watch:
                assert watch.receive_most(len(sizes)) == got
                watch.close()
        stats = settled(plane)
        assert stats.sent == stats.received == 3 * len(sizes)


def programs() -> int:
    """How many of BPF this process has open."""
    links = []
    for link in Path("/proc/self/fd").iterdir():
        with suppress(FileNotFoundError):  # what lists them
            links.append(str(link.readlink()))
    return links.count("anon_inode:bpf-prog")


def may_send_by_program() -> bool:
    """Whether the kernel is new enough, and we are somebody whom it lets."""
    release = tuple(int(word) for word in re.findall(r"\d+", os.uname().release)[:2])
    status = dict(line.split(":", 1) for line in Path("/proc/self/status").read_text().splitlines())
    can = int(status["CapEff"], 16)
    is_everybody = Path("/proc/self/uid_map").read_text().split() == ["0", "0", str(2**32 - 1)]
    return release >= (5, 17) and is_everybody and all(can >> bit & 1 for bit in NEEDED_TO_LOAD)


@contextmanager
def first() -> Iterator[None]:
    """Do something before any other thread of ours gets the core that we share."""
    threads = [int(task.name) for task in Path("/proc/self/task").iterdir()]
    others = [thread for thread in threads if thread != threading.get_native_id()]
    for thread in others:
        os.sched_setscheduler(thread, os.SCHED_IDLE, os.sched_param(0))
    yield
    for thread in others:
        os.sched_setscheduler(thread, os.SCHED_OTHER, os.sched_param(0))


@case
def bursts_leave_by_a_program(folder: Path) -> None:
    if not may_send_by_program():
        return  # the case above had the other ways
    sizes = random.Random(2).choices((14, 15, 64, 200, 1500, 4096, 4097, MTU + 14), k=1000)
    os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
    with two_hosts(folder) as (plane, a, b):
        for start in range(0, len(sizes), BURST):
            sent = [frame(size, start + n) for n, size in enumerate(sizes[start : start + BURST])]
            with first():
                for data in sent:
                    a.send(data)
            assert b.receive_most(len(sent)) == sent
        assert programs() == 1
        # What its other end does not take, a veth tells of, or on older kernels nobody.
        run("ip link set b0 mtu 1000")
        sent = [frame(64 if number % 3 else 1500, number) for number in range(BURST)]
        with closing(Host("b1")) as itself:
            try:
                itself.send(sent[0])
                refused = {}
            except OSError:
                refused = {"send_failed": sum(len(data) == 1500 for data in sent)}
        with first():
            for data in sent:
                a.send(data)
        small = [data for data in sent if len(data) == 64]
        assert b.receive_most(len(small)) == small
        stats = settled(plane)
        assert stats.drops == refused
        assert stats.sent == stats.ports[1].tx_packets == stats.received - sum(refused.values())


@case
def every_frame_is_accounted_for_under_overload(folder: Path) -> None:
    with two_hosts(folder, SMALL_SLOT) as (plane, a, b):
        count = 30000
        data = frame(64)
        for _ in range(count):
            a.send(data)
        stats = settled(plane)
        port = stats.ports[0]
        assert port.rx_packets + port.rx_missed == count
        assert len(b.receive_most(count)) == stats.sent == stats.ports[1].tx_packets


@case
def frames_for_nobody_are_drops(folder: Path) -> None:
    with two_hosts(folder) as (plane, a, _):
        run(f"mount -t sysfs sysfs {folder}")
        received = folder / "class/net/b0/statistics/rx_packets"

        def arrived() -> int:
            """Of what was sent, once no more of it arrives.

            Not all: an interface whose carrier has just gone takes frames for a moment, and says
            that they were sent (Linux' noop_qdisc); nobody is told.
            """
            before, now = -1, 0
            while before != now:
                before, now = now, int(received.read_text())
                time.sleep(0.05)
            return now

        def await_taken_in(count: int) -> None:
            wait_until(lambda: plane.stats().received == count, f"{count} are taken in")

        # As the lab's faults do it: the far end goes away, and frames come faster than the news.
        for turn in range(5):
            for _ in range(200):
                a.send(frame(64))
            await_taken_in(400 * turn + 200)
            settled(plane)
            arrived()  # or what is on its way would be lost with the link, and the kernel's loss
            run("ip link set b0 down")
            for _ in range(200):
                a.send(frame(64))
            run("ip link set b0 up")
            await_taken_in(400 * turn + 400)
            wait_until(lambda: plane.stats().ports[1].is_up, "port 1 comes up")
        stats = settled(plane)
        assert set(stats.drops) <= {"port_down", "send_failed"}
        assert 0 <= stats.sent - arrived() < 0.2 * sum(stats.drops.values())


@case
def links_go_and_come_back(folder: Path) -> None:
    with two_hosts(folder) as (plane, a, b):

        def is_up(port: int) -> bool:
            return plane.stats().ports[port].is_up

        def works() -> None:
            with closing(Host("b0")) as sink:
                a.send(frame(100, 7))
                assert sink.receive() == frame(100, 7)

        for end in ("b1", "b0"):  # ours, then the other end: loss of carrier
            run(f"ip link set {end} down")
            wait_until(lambda: not is_up(1), f"{end} down")
            before = settled(plane)
            a.send(frame(64))
            after = settled(plane)
            assert after.drops["port_down"] == before.drops.get("port_down", 0) + 1
            run(f"ip link set {end} up")
            wait_until(lambda: is_up(1), f"{end} up")
            works()
        b.close()
        run("ip link del b1")
        wait_until(lambda: not is_up(1), "b1 vanishes")
        used = time.process_time()
        time.sleep(0.5)
        assert time.process_time() - used < 0.1 * processor_slowness(), (
            "a vanished interface keeps the loop busy"
        )
        veth("b0", "b1")
        wait_until(lambda: is_up(1), "b1 made anew")
        works()
        states = [e.is_up for e in plane.drain() if isinstance(e, PortState) and e.port == 1]
        assert states == [False, True] * 3


@case
def ports_in_other_namespaces(folder: Path) -> None:
    # Two namespaces, each held by a process that does nothing.
    holders = [subprocess.Popen(["unshare", "--net", "cat"], stdin=subprocess.PIPE) for _ in "ab"]
    places = [f"/proc/{holder.pid}/ns/net" for holder in holders]
    here = Path("/proc/self/ns/net").stat().st_ino
    wait_until(lambda: all(Path(p).stat().st_ino != here for p in places), "namespaces")
    for host, port, holder in (("a0", "a1", holders[0]), ("b0", "b1", holders[1])):
        quiet = f"nsenter -t {holder.pid} -n tee /proc/sys/net/ipv6/conf/default/disable_ipv6"
        subprocess.run(quiet.split(), input=b"1", check=True, capture_output=True)
        run(f"ip link add {host} type veth peer name {port} netns {holder.pid}")
        bring_up(host)
        run(f"nsenter -t {holder.pid} -n ip link set {port} arp off multicast off up")
    with wire(folder) as plane, closing(Host("a0")) as a, closing(Host("b0")) as b:
        plane.add_port(0, "a1", netns=places[0])
        plane.add_port(1, fd=socket_in(holders[1].pid, "b1"))
        for number in range(2000):
            a.send(frame(64, number))
        assert b.receive_most(2000) == [frame(64, number) for number in range(2000)]
        b.send(frame(65))
        assert a.receive() == frame(65)
        run(f"nsenter -t {holders[1].pid} -n ip link set b1 down")
        wait_until(lambda: not plane.stats().ports[1].is_up, "b1 down, elsewhere")
    for holder in holders:
        holder.kill()


def socket_in(pid: int, interface: str) -> int:
    """A bound packet socket of another process's network namespace, as a parent would pass it."""
    ours, theirs = socket.socketpair()
    code = (
        "import array, socket, sys\n"
        "s = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, 0)\n"
        "s.bind((sys.argv[1], 0))\n"
        "socket.send_fds(socket.socket(fileno=int(sys.argv[2])), [b'x'], [s.fileno()])\n"
    )
    words = ["nsenter", "-t", str(pid), "-n", sys.executable, "-c", code, interface]
    with ours, theirs:
        subprocess.run([*words, str(theirs.fileno())], pass_fds=[theirs.fileno()], check=True)
        return socket.recv_fds(ours, 1, 1)[1][0]


@case
def idle_ports_cost_next_to_nothing(folder: Path) -> None:
    names = [(f"h{n}", f"s{n}") for n in range(100)]
    for pair in names:
        veth(*pair)
    with wire(folder, *(port for _, port in names)) as plane:
        settled(plane)
        used = time.process_time()
        time.sleep(3)
        idle_since(used, 3)


@case
def twenty_switches_with_their_servers_cost_next_to_nothing(folder: Path) -> None:
    run("ip link set lo up")
    for number in range(40):
        veth(f"h{number}", f"s{number}")
    program = folder / "wire.json"
    program.write_text(compiled_wire(folder).json_text)
    switches = [
        SwitchSettings(
            name=f"switch{n}",
            device_id=n + 1,
            grpc_address="127.0.0.1:0",
            ports={0: f"s{2 * n}", 1: f"s{2 * n + 1}"},
            program=program,
        )
        for n in range(20)
    ]

    async def idle() -> None:
        host = SwitchHost(switches)
        await host.start()
        await asyncio.sleep(1)
        used = time.process_time()
        await asyncio.sleep(3)
        idle_since(used, 3)
        await host.stop()

    asyncio.run(idle())


def idle_since(used: float, seconds: float) -> None:
    """Fail if this process has used more than next to nothing since then."""
    share = (time.process_time() - used) / seconds
    print(f"{share:.2%} of a core")
    assert share < 0.03 * processor_slowness(), f"{share:.1%} of a core"


if __name__ == "__main__":
    cases[sys.argv[1]](Path(sys.argv[2]))
