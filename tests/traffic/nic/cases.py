"""Cases for test_nic.py: each runs as a process of its own, in a new network namespace.

    python -m tests.traffic.nic.cases CASE PROGRAM

The adapter lies between `in0 ~~ in1` and `out0 ~~ out1`; the test is the stack at in0 and the leaf
at out0.
"""

import socket
import struct
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from tests.switch.interfaces import wait_until
from tests.veths import veth
from tests.waiting import LONG_S, SLOWNESS

RATE, OVERHEAD, DELAY_NS = 100_000_000_000, 24, 1000
CLASSES = "".join({26: "3", 8: "1"}.get(dscp, "0") for dscp in range(64))
SIZE = 1000
cases: dict[str, Callable[[str], None]] = {}


def case(function: Callable[[str], None]) -> Callable[[str], None]:
    cases[function.__name__] = function
    return function


def checksum(header: bytes) -> int:
    total = sum(struct.unpack(f">{len(header) // 2}H", header))
    while total >> 16:
        total = (total & 0xFFFF) + (total >> 16)
    return int(~total & 0xFFFF)


def ipv4(number: int, dscp: int = 0, size: int = SIZE) -> bytes:
    """A frame with a packet of IPv4, numbered in its payload."""
    head = struct.pack(
        ">BBHHHBBH4s4s",
        0x45,
        dscp << 2 | 1,
        size - 14,
        number,
        0,
        64,
        17,
        0,
        b"\n\0\1\1",
        b"\n\0\2\1",
    )
    head = head[:10] + struct.pack(">H", checksum(head)) + head[12:]
    return (b"\2\0\0\0\0\2" + b"\2\0\0\0\0\1" + b"\x08\0" + head + bytes(size))[:size]


def pause(priority: int, quanta: int) -> bytes:
    quantas = [quanta if each == priority else 0 for each in range(8)]
    frame = b"\1\x80\xc2\0\0\1" + b"\2\0\0\0\0\7" + b"\x88\x08\1\1"
    return (frame + struct.pack(">H8H", 1 << priority, *quantas)).ljust(60, b"\0")


def listen(interface: str) -> socket.socket:
    line = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(3))
    line.setsockopt(263, 23, 1)  # SOL_PACKET, PACKET_IGNORE_OUTGOING
    line.bind((interface, 0))
    line.settimeout(2 * SLOWNESS)
    return line


@contextmanager
def adapter(
    program: str, dilation: int, most: int = 1000
) -> Iterator[tuple[subprocess.Popen[str], socket.socket, socket.socket]]:
    veth("in0", "in1")
    veth("out0", "out1")
    words = [program, "out1", "in1", *map(str, (RATE, dilation, DELAY_NS, OVERHEAD, most))]
    with subprocess.Popen(
        [*words, CLASSES], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None and process.stdin is not None
        assert process.stdout.readline() == "ready\n"
        yield process, listen("in0"), listen("out0")
        process.stdin.close()
        assert process.wait(LONG_S) == 0


def tell(process: subprocess.Popen[str], words: str) -> None:
    assert process.stdin is not None
    process.stdin.write(words + "\n")
    process.stdin.flush()


def counts_of(process: subprocess.Popen[str]) -> dict[str, int]:
    tell(process, "tell")
    assert process.stdout is not None
    words = process.stdout.readline().split()
    return dict(zip(words[::2], map(int, words[1::2]), strict=True))


def hears_pauses(process: subprocess.Popen[str], count: int) -> None:
    wait_until(lambda: counts_of(process)["pauses"] == count, "it hears of the pause")


def lasts_s(size: int, dilation: int) -> float:
    return (size + OVERHEAD) * 8 / RATE * dilation


@case
def frames_take_as_long_as_the_link(program: str) -> None:
    """However late the program once is: over many frames it is the link's rate."""
    count, ahead = 300, 40  # ahead: what an ordinary user's socket holds
    dilation = round(20_000 * SLOWNESS)  # as far ahead of a machine that sends so much later
    with adapter(program, dilation) as (_, stack, leaf):
        began = time.monotonic()
        for number in range(ahead):
            stack.send(ipv4(number))
        got = []
        for number in range(ahead, count + ahead):
            got.append(leaf.recv(4096))
            if number < count:
                stack.send(ipv4(number))
        took_s = time.monotonic() - began
    assert got == [ipv4(number) for number in range(count)]
    least_s = count * lasts_s(SIZE, dilation) + DELAY_NS * dilation / 1e9
    assert least_s * 0.99 <= took_s <= least_s * 1.5, (took_s, least_s)


@case
def a_paused_class_stands_still_and_others_do_not(program: str) -> None:
    dilation = 30_000
    with adapter(program, dilation) as (process, stack, leaf):
        leaf.send(pause(3, 0xFFFF))  # 10 s
        hears_pauses(process, 1)
        for number in range(4):
            stack.send(ipv4(number, 26))
        stack.send(ipv4(9, 8))
        assert leaf.recv(4096) == ipv4(9, 8)
        leaf.settimeout(0.05)
        try:
            raise AssertionError(leaf.recv(4096))
        except TimeoutError:
            pass
        leaf.settimeout(2 * SLOWNESS)
        leaf.send(pause(3, 0))
        assert [leaf.recv(4096) for _ in range(4)] == [ipv4(n, 26) for n in range(4)]
        counted = counts_of(process)
        assert (counted["pauses"], counted["sent"], counted["lost"]) == (2, 5, 0)
        # 50 ms at least, which passed so many times slower.
        assert 50_000_000 / dilation <= counted["paused"] <= 335_544

        quanta = 0x400  # and one that nobody ends is over by itself, after 157 ms
        began = time.monotonic()
        leaf.send(pause(3, quanta))
        hears_pauses(process, 3)
        stack.send(ipv4(5, 26))
        assert leaf.recv(4096) == ipv4(5, 26)
        assert time.monotonic() - began >= quanta * 64 * 8 / RATE * dilation * 0.99


@case
def what_says_nothing_of_its_class_is_marked(program: str) -> None:
    with adapter(program, 1) as (process, stack, leaf):
        for mark, dscp, wanted in ((None, 0, 0), (26, 0, 26), (26, 8, 8), (0, 0, 0), (48, 0, 48)):
            if mark is not None:
                tell(process, f"mark {mark}")
                counts_of(process)  # it has heard
            stack.send(ipv4(7, dscp))
            got = leaf.recv(4096)
            assert got == ipv4(7, wanted), (mark, dscp, got[:34].hex())
            assert checksum(got[14:34]) == 0
            head = struct.pack(
                ">IHBB16s16s", 6 << 28 | dscp << 22 | 1 << 20 | 77, 9, 17, 64, b"", b""
            )
            ipv6 = (b"\2\0\0\0\0\2" + b"\2\0\0\0\0\1" + b"\x86\xdd" + head).ljust(90, b"\0")
            stack.send(ipv6)
            marked = struct.pack(">I", 6 << 28 | wanted << 22 | 1 << 20 | 77)
            assert leaf.recv(4096) == ipv6[:14] + marked + ipv6[18:]
        other = b"\2\0\0\0\0\2" + b"\2\0\0\0\0\1" + b"\x88\xb5" + b"no ip".ljust(50, b"\0")
        stack.send(other)
        assert leaf.recv(4096) == other


@case
def a_full_queue_loses_the_last_and_counts_them(program: str) -> None:
    with adapter(program, 30_000, most=10) as (process, stack, leaf):
        leaf.send(pause(3, 0xFFFF))  # 10 s
        hears_pauses(process, 1)
        for number in range(30):
            stack.send(ipv4(number, 26))
        wait_until(lambda: counts_of(process)["lost"] == 20, "the last are lost")
        leaf.send(pause(3, 0))
        assert [leaf.recv(4096) for _ in range(10)] == [ipv4(n, 26) for n in range(10)]
        assert counts_of(process)["lost"] == 20


@case
def what_comes_from_the_leaf_goes_to_the_stack(program: str) -> None:
    """All but pause frames, cut ones and those of another kind included."""
    with adapter(program, 1) as (process, stack, leaf):
        for frame in (
            ipv4(1),
            pause(3, 5)[:30],
            b"\1" * 12 + b"\x88\x08\0\1" + bytes(44),
            ipv4(2, 26),
        ):
            leaf.send(frame)
        assert [stack.recv(4096) for _ in range(2)] == [ipv4(1), ipv4(2, 26)]
        assert counts_of(process)["pauses"] == 0
    with adapter_refused(program) as said:
        assert "cannot be opened" in said


@contextmanager
def adapter_refused(program: str) -> Iterator[str]:
    words = [program, "nowhere", "in1", "1", "1", "1", "24", "9", CLASSES]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    assert done.returncode == 2
    yield done.stderr


if __name__ == "__main__":
    cases[sys.argv[1]](sys.argv[2])
