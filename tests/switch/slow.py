"""Cases for test_slow.py: an interface that is slower than what is sent to it.

    python -m tests.switch.slow CASE FOLDER

`h1 -- s1 == s2 -- h2`, as in the tutorials' exercises on congestion: the link between the switches
is limited by tc, and probes tell how long they found the queues. See interfaces.py for the rest.
"""

import shutil
import struct
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path

from compiler import compile_program
from lab.machine.speed import processor_slowness
from params.data import Data
from switch.dataplane import Dataplane, Loop, Program
from tests.switch import interfaces
from tests.switch.interfaces import Host, frame, settled, two_hosts
from tests.veths import run, veth
from tests.waiting import LONG_S, SLOWNESS

SOURCE = Path(__file__).with_suffix(".p4")
RATE_KBITS = max(1, round(512 / SLOWNESS))  # 512 in the tutorials; slower than who sends, anywhere
CABLES = (("h1", "s1-0"), ("s1-1", "s2-0"), ("s2-1", "h2"))
FRAME = 1000  # bytes
LOAD = 300  # frames: more than the kernel keeps by itself, and than BMv2's queue holds
EVERY = 10  # of them is a probe
QUEUE = 64  # packets, BMv2's own limit
BMV2 = "simple_switch_grpc"

cases: dict[str, Callable[[Path], None]] = {}


def case(function: Callable[[Path], None]) -> Callable[[Path], None]:
    cases[function.__name__] = function
    return function


def limit(interface: str, how: str) -> None:
    run(f"tc qdisc replace dev {interface} root {how}")


# A deep discipline makes the kernel's socket say when it has room; a shallow one drops what it has
# no room for, and only says so.
DISCIPLINES = {
    "deep": f"tbf rate {RATE_KBITS}kbit burst 3000 limit 1000000",
    "shallow": f"tbf rate {RATE_KBITS}kbit burst 3000 limit 5000",
}


class Seen(Data):
    """What a probe told."""

    number: int
    marked: bool
    depths: tuple[int, ...]  # when it was queued, by switch on its way


def probe(number: int) -> bytes:
    head = bytes([2, 0, 0, 0, 0, 2, 2, 0, 0, 0, 0, 1]) + struct.pack(">HBBI", 0x88B6, 1, 0, number)
    return head.ljust(FRAME, b"\0")


def read_probe(data: bytes) -> Seen:
    _, ecn, hops, number = struct.unpack_from(">HBBI", data, 12)
    records = [struct.unpack_from(">II", data, 20 + 8 * at) for at in range(hops)][::-1]
    return Seen(number, ecn == 3, tuple(enq for enq, _ in records))


def is_probe(data: bytes) -> bool:
    return data[12:14] == b"\x88\xb6"


def send_load(h1: Host, count: int = LOAD) -> None:
    for number in range(count):
        h1.send(frame(FRAME, number) if number % EVERY else probe(number))
        time.sleep(0.001)  # sixteen times what the link carries, and no burst


def numbers(got: list[bytes]) -> list[int]:
    return [
        read_probe(data).number if is_probe(data) else struct.unpack(">I", data[14:18])[0]
        for data in got
    ]


@contextmanager
def ours(folder: Path, *, queue: int | None = None) -> Iterator[tuple[Dataplane, Dataplane]]:
    program = Program.load(compile_program(SOURCE).json, name="slow")
    with Loop() as loop, ExitStack() as stack:
        switches = [
            stack.enter_context(Dataplane(name, program, loop=loop)) for name in ("s1", "s2")
        ]
        for number, plane in enumerate(switches, 1):
            for port in (0, 1):
                plane.add_port(port, f"s{number}-{port}")
                if queue:
                    plane.set_queue_limits(port, None, packets=queue)
        yield switches[0], switches[1]


@contextmanager
def bmv2(folder: Path) -> Iterator[None]:
    run("ip link set lo up")
    program = folder / "slow.json"
    program.write_text(compile_program(SOURCE).json_text)
    processes = []
    for number in (1, 2):
        words = [BMV2, "--device-id", str(number), "--thrift-port", str(9090 + number)]
        words += ["-i", f"0@s{number}-0", "-i", f"1@s{number}-1", str(program)]
        words += ["--", "--grpc-server-addr", f"127.0.0.1:{9559 + number}"]
        processes.append(subprocess.Popen(words, stdout=subprocess.DEVNULL))
    try:
        yield
    finally:
        for process in processes:
            process.terminate()
            process.wait()


def lay_cables(discipline: str) -> None:
    interfaces.MTU = 1500  # as a tutorial's hosts have it
    for cable in CABLES:
        veth(*cable)
    limit("s1-1", DISCIPLINES[discipline])


def passes(h1: Host, h2: Host) -> bool:
    """Whether the switches forward yet."""
    h2.socket.settimeout(0.2 * SLOWNESS)
    h1.send(frame(64, 10**6))
    try:
        return h2.receive() == frame(64, 10**6)
    except TimeoutError:
        return False


def until_passes(h1: Host, h2: Host) -> None:
    deadline = time.monotonic() + LONG_S
    while not passes(h1, h2):
        assert time.monotonic() < deadline, "the switches forward nothing"
    h2.receive_most(1000)  # what was sent while they did not
    h2.socket.settimeout(3 * SLOWNESS)


def queue_is_seen(got: list[bytes], least_marked: float = 0.25) -> None:
    """The queue stood before the slow link, nowhere else, and marks told of it."""
    seen = [read_probe(data) for data in got if is_probe(data)]
    depths = [probe.depths[0] for probe in seen]
    print(f"{sum(p.marked for p in seen)} of {len(seen)} marked, depths {depths}")
    assert max(depths) > 40
    assert sum(p.marked for p in seen) >= len(seen) * least_marked
    assert len(seen[0].depths) == 2
    for one in seen:
        assert one.marked == any(depth >= 10 for depth in one.depths)
    late = [one for one in seen if one.depths[1] > 2]  # s2 did not get its turn in time
    assert len(late) <= len(seen) / 10


def congested(folder: Path, discipline: str) -> None:
    lay_cables(discipline)
    with (
        closing(Host("h1")) as h1,
        closing(Host("h2")) as h2,
        ours(folder) as (s1, s2),
    ):
        until_passes(h1, h2)
        before = s1.stats()
        used = time.process_time()
        send_load(h1)
        time.sleep(0.2 * SLOWNESS)
        now = s1.stats()
        assert now.held > LOAD / 2
        assert now.received + now.copies == now.sent + sum(now.drops.values()) + now.held
        assert now.drops == before.drops
        got = h2.receive_most(LOAD)
        # Nothing was lost, repeated or overtaken, and waiting cost next to nothing.
        assert numbers(got) == list(range(LOAD))
        share = (time.process_time() - used) / (LOAD * FRAME * 8 / RATE_KBITS / 1000)
        print(f"{share:.1%} of a core")
        assert share < 0.15 * processor_slowness()
        queue_is_seen(got)
        for plane in (s1, s2):
            after = settled(plane)
            assert after.held == 0
            assert after.drops == before.drops
            assert after.received == after.sent


@case
def a_slow_interface_builds_a_queue(folder: Path) -> None:
    congested(folder, "deep")


@case
def so_does_one_whose_own_queue_is_short(folder: Path) -> None:
    congested(folder, "shallow")


@case
def a_full_queue_drops_its_tail(folder: Path) -> None:
    lay_cables("deep")
    with (
        closing(Host("h1")) as h1,
        closing(Host("h2")) as h2,
        ours(folder, queue=QUEUE) as (s1, _),
    ):
        until_passes(h1, h2)
        send_load(h1)
        got = h2.receive_most(LOAD)
        after = settled(s1)
        assert set(after.drops) == {"queue_full"}
        assert len(got) == LOAD - after.drops["queue_full"]
        assert numbers(got) == sorted(set(numbers(got)))
        depths = [read_probe(data).depths[0] for data in got if is_probe(data)]
        assert QUEUE / 2 < max(depths) <= QUEUE


@case
def what_waits_when_a_link_goes_down_is_dropped_or_sent_later(folder: Path) -> None:
    lay_cables("deep")
    with (
        closing(Host("h1")) as h1,
        closing(Host("h2")) as h2,
        ours(folder) as (s1, _),
    ):
        until_passes(h1, h2)
        began = s1.stats().received
        send_load(h1)
        run("ip link set s2-0 down")
        interfaces.wait_until(lambda: not s1.stats().ports[1].is_up, "s1 sees it")
        interfaces.wait_until(lambda: s1.stats().ports[1].queue_packets[0] == 0, "it drains")
        run("ip link set s2-0 up")
        interfaces.wait_until(lambda: s1.stats().ports[1].is_up, "s1 sees it again")
        got = h2.receive_most(LOAD)
        after = settled(s1)
        assert after.drops["port_down"] > LOAD / 2
        assert after.received == began + LOAD
        # tc keeps some, or drops them as the link goes down: that is not the switch's.
        assert len(got) <= LOAD - after.drops["port_down"]
        until_passes(h1, h2)


@case
def frames_that_a_filter_drops_hold_up_nobody(folder: Path) -> None:
    """The kernel refuses them with the same words as a full queue."""
    with two_hosts(folder) as (plane, a, b):
        limit("b1", "tbf rate 100mbit burst 500 limit 100000")  # nothing larger than its burst
        for number in range(100):
            a.send(frame(1000, number))
            a.send(frame(100, number))
        assert b.receive_most(100) == [frame(100, number) for number in range(100)]
        assert settled(plane).drops == {"send_failed": 100}


@case
def bmv2_sees_the_same(folder: Path) -> None:
    if shutil.which(BMV2) is None:
        sys.exit(f"SKIP {BMV2} is not on PATH")
    lay_cables("deep")
    with closing(Host("h1")) as h1, closing(Host("h2")) as h2, bmv2(folder):
        until_passes(h1, h2)
        # The kernel and its buffer of frames sent come first, some 250 of them.
        send_load(h1, 2 * LOAD)
        queue_is_seen(h2.receive_most(2 * LOAD), least_marked=0.1)


if __name__ == "__main__":
    cases[sys.argv[1]](Path(sys.argv[2]))
