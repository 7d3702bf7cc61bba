"""`closlab bench switch`: packets a second through two veths, next to the kernel's bridge and BMv2.

    generator ──► gen=a ~~ b=in ──► bridge | switch | BMv2 ──► out=c ~~ d=count

A generator overloads the first veth; what arrives behind the second, per second, is the result. All
forward the same frames in turn, round after round, every other round in reverse, and each is held
against the bridge of its round, so that a change of the machine's mood hurts all alike. Three ways
to share two cores:

- *one core*: generator, switch and the receiving kernel share one. This measures work: whoever
  needs less of it per packet forwards more. The bridge needs no process of its own. Beside the
  rate stands the processor time of a packet, generator included: others on the machine, who take
  the core now from this one and now from that, change it little.
- *two cores*: the generator has one, the switch another. The bridge works in the generator's system
  calls, so it gains nothing from the second core.
- *two cores, the switch's with a busy loop* that is nicer by ten: what a switch gets that is not
  alone.

Where the kernel asks netfilter about every frame that a bridge forwards, as it does once anything
has loaded br_netfilter, the bridge without that is measured as well: it is what most bridges are.

All of it happens in private namespaces that end with the benchmark.
"""

from __future__ import annotations

import argparse
import ctypes
import json
import os
import shutil
import socket
import struct
import subprocess
import sys
import tempfile
import time
from contextlib import contextmanager, suppress
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, Any

from compiler import compile_program
from lab.engines.mininet.sandbox import run_in_sandbox
from lab.errors import LabError, MissingTool
from lab.machine.tools import notifications_at, require_compiler
from params.data import Data
from switch import build
from switch.abi import Declarations, Library
from switch.dataplane import Dataplane, Loop
from switch.program import Program

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from contextlib import AbstractContextManager

    Rival = Callable[["Cores"], AbstractContextManager[None]]

HERE = Path(__file__).parent
SIZES = (64, 1088)
ROUTES = 1000
IN, OUT = 1, 2  # ports
BRIDGES = ("bridge", "bare")
ADDRESSES_AT = 26  # in a frame of IPv4: what a router leaves alone begins here
WARM_S = 0.3  # at most, and no longer than what is measured then
PIPELINE_PACKETS = 1 << 20
LOOP_NICENESS = 10
ASKS_NETFILTER = Path("/proc/sys/net/bridge/bridge-nf-call-iptables")


class Cores(Data):
    """Who runs where."""

    title: str
    generator: int
    switch: int
    has_loop: bool = False  # on the switch's core, and it gives way


def build_load() -> Path:
    """The benchmark's own C, built if need be."""
    return build.beside_runtime(HERE / "load.c")


def open_load(path: Path) -> Library:
    """What of it this process calls."""
    return Library(path, Declarations(HERE / "load.c"))


def router() -> dict[str, Any]:
    """The program's BMv2 JSON, its routes in it as const entries: no controller is needed."""
    program: dict[str, Any] = json.loads(compile_program(HERE / "l3.p4").json_text)
    tables = [table for pipe in program["pipelines"] for table in pipe["tables"]]
    route = next(table for table in tables if table["name"].endswith(".route"))
    forward = next(i for i, name in zip(route["action_ids"], route["actions"], strict=True)
                   if name.endswith(".forward"))  # fmt: skip
    route["entries"] = [
        {
            "match_key": [
                {"match_type": "lpm", "key": f"0x{10 << 24 | i << 8:08x}", "prefix_length": 24}
            ],
            "action_entry": {"action_id": forward, "action_data": ["0x020000000003", f"0x{OUT:x}"]},
            "priority": i + 1,
        }
        for i in range(ROUTES)
    ]
    return program


# Without I/O


def pipeline_ns(library: Library, program: Program, size: int, rounds: int) -> float:
    """Nanoseconds per packet: receive, parse, ingress, queue, egress, deparse."""
    took: list[float] = []
    for _ in range(max(rounds, 3)):
        with Dataplane("bench", program) as plane:
            ns = library.load_pipeline(plane._sw, size, PIPELINE_PACKETS)
        if not ns:
            raise BenchError("the switch lost frames without any load: this is a defect")
        took.append(ns / PIPELINE_PACKETS)
    return min(took)


# With veths


class BenchError(LabError):
    """The benchmark cannot go on."""


def require_ip() -> None:
    """Fail if the veths could not be made."""
    os.environ["PATH"] += ":/usr/sbin:/sbin"  # where Debian keeps it from users
    if shutil.which("ip") is None:
        raise MissingTool(
            "this machine has no ip, which makes the veths",
            "Install it:  sudo apt-get install --no-install-recommends iproute2",
        )


def ip(words: str) -> None:
    """Run one `ip` command."""
    done = subprocess.run(["ip", *words.split()], capture_output=True, text=True, check=False)
    if done.returncode:
        raise BenchError(f"ip {words}: {done.stderr.strip()}")


def make_veths() -> None:
    """Two veths that the kernel itself says nothing on: no IPv6, no ARP, no groups joined."""
    with suppress(FileNotFoundError):  # a kernel without IPv6
        Path("/proc/sys/net/ipv6/conf/default/disable_ipv6").write_text("1")
    for ends in (("gen", "in"), ("out", "count")):
        ip(f"link add {ends[0]} type veth peer name {ends[1]}")
        for end in ends:
            ip(f"link set {end} arp off multicast off up")


def counted() -> int:
    """Frames that arrived behind the second veth so far."""
    for line in Path("/proc/net/dev").read_text().splitlines():
        name, _, numbers = line.partition(":")
        if name.strip() == "count":
            return int(numbers.split()[1])
    raise BenchError("the counting interface is gone")


def worked_ns() -> int:
    """Processor time of everybody in the sandbox so far, the kernel's work for them included."""
    total = 0
    for path in Path("/proc").glob("[0-9]*/task/*/schedstat"):
        with suppress(OSError):  # it ended meanwhile
            total += int(path.read_text().split()[0])
    return total


@contextmanager
def pinned(core: int) -> Iterator[None]:
    """Let what is started here run on one core: threads and processes inherit it."""
    before = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {core})
    try:
        yield
    finally:
        os.sched_setaffinity(0, before)


@contextmanager
def loop_beside(cores: Cores) -> Iterator[None]:
    """Keep the switch's core busy meanwhile, if that is wanted."""
    if not cores.has_loop:
        yield
        return
    words = ["nice", "-n", str(LOOP_NICENESS), sys.executable, "-c", "while True: pass"]
    with pinned(cores.switch):
        loop = subprocess.Popen(words)
    try:
        yield
    finally:
        loop.kill()
        loop.wait()


class Measured(Data):
    """Packets a second, and what each took."""

    pps: float
    ns: float  # of processors


def measure(load: Path, cores: Cores, size: int, seconds: float) -> Measured:
    """Overload the first veth and count behind the second."""
    warm_s = min(WARM_S, seconds)
    words = [str(load), "gen", str(size), str(seconds + 2 * warm_s)]
    with pinned(cores.generator):
        generator = subprocess.Popen(
            [sys.executable, "-m", "bench.blast", *words], cwd=HERE.parent, stdout=subprocess.PIPE
        )
    with generator:
        assert generator.stdout is not None
        generator.stdout.readline()
        time.sleep(warm_s)
        began, before, idle = time.monotonic(), counted(), worked_ns()
        time.sleep(seconds)
        after, ended, busy = counted(), time.monotonic(), worked_ns()
    if generator.returncode:
        raise BenchError("the generator failed")
    return Measured((after - before) / (ended - began), (busy - idle) / max(after - before, 1))


def wait_for_forwarding(library: Library, name: str, *, routed: bool) -> None:
    """Send a frame until it comes out, and look whether it came out right.

    Others may speak too, a bridge of its groups for one: ours is known by its addresses and what
    follows them.
    """
    buffer = ctypes.create_string_buffer(64)
    library.load_frame(buffer, 64, 0)
    with raw_socket("gen") as source, raw_socket("count") as sink:
        for _ in range(100):
            source.send(buffer.raw)
            with suppress(TimeoutError):
                got = sink.recv(2048)
                if got[ADDRESSES_AT:] == buffer.raw[ADDRESSES_AT:]:
                    break
        else:
            raise BenchError(f"{name} does not forward")
    words = struct.unpack(">10H", got[14:34])
    total = sum(words)
    is_right = (total & 0xFFFF) + (total >> 16) == 0xFFFF and got[22] == (63 if routed else 64)
    if not is_right:
        raise BenchError(f"{name} forwards wrongly: {got[:34].hex(' ')}")


def raw_socket(interface: str) -> socket.socket:
    """A socket that sends frames as they are and hears all."""
    opened = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(3))
    opened.bind((interface, 0))
    opened.settimeout(0.1)
    return opened


@contextmanager
def bridge(_cores: Cores) -> Iterator[None]:
    """The kernel's bridge, learning and flooding as it does; it needs no core of its own."""
    ip("link add br0 type bridge mcast_snooping 0")  # with it, it joins a group and says so
    try:
        ip("link set br0 arp off multicast off up")
        for end in ("in", "out"):
            ip(f"link set {end} master br0")
        yield
    finally:
        ip("link del br0")


@contextmanager
def bare_bridge(cores: Cores) -> Iterator[None]:
    """The same, netfilter not asked."""
    ASKS_NETFILTER.write_text("0")
    try:
        with bridge(cores):
            yield
    finally:
        ASKS_NETFILTER.write_text("1")


def can_be_bare() -> bool:
    """Whether the bridge asks netfilter, which costs it, and may be told not to."""
    try:
        asks = ASKS_NETFILTER.read_text().strip() == "1"
        if asks:
            ASKS_NETFILTER.write_text("1")
    except OSError:
        return False
    return asks


def closlab(program: Program) -> Rival:
    """Our switch, its thread on its core."""

    @contextmanager
    def run(cores: Cores) -> Iterator[None]:
        loop = Loop()
        with Dataplane("bench", program, loop=loop) as plane:
            with pinned(cores.switch):
                loop.start()
            plane.add_port(IN, "in")
            plane.add_port(OUT, "out")
            yield
        loop.stop()

    return run


def bmv2(program: dict[str, Any], command: str) -> Rival:
    """BMv2's simple_switch, all its threads on the switch's core."""

    @contextmanager
    def run(cores: Cores) -> Iterator[None]:
        with tempfile.TemporaryDirectory() as folder:
            source = Path(folder) / "l3.json"
            source.write_text(json.dumps(program))
            words = [command, str(source), "-i", f"{IN}@in", "-i", f"{OUT}@out", "-L", "off"]
            words += notifications_at(f"ipc://{folder}/notifications.ipc", command)
            with pinned(cores.switch):
                process = subprocess.Popen(
                    words, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
                )
            try:
                yield
            finally:
                process.terminate()
                process.wait()

    return run


# The report


class Bench(Data):
    """What is measured, and how long."""

    load: Path
    program: Program
    rivals: dict[str, Rival]
    seconds: float
    rounds: int


def show_pipeline(bench: Bench) -> None:
    """Print what a packet costs without I/O."""
    print("pipeline without I/O, in processor time")
    library = open_load(bench.load)
    for size in SIZES:
        ns = pipeline_ns(library, bench.program, size, bench.rounds)
        print(f"  {size:5} bytes  {ns:7.1f} ns/packet  {1e3 / ns:8.2f} Mpps", flush=True)


def rounds_of(bench: Bench, cores: Cores, size: int) -> dict[str, list[Measured]]:
    """What each rival came to, round by round."""
    library = open_load(bench.load)
    found: dict[str, list[Measured]] = {name: [] for name in bench.rivals}
    for turn in range(bench.rounds):
        for name, run in list(bench.rivals.items())[:: -1 if turn % 2 else 1]:
            if name == "BMv2" and turn:
                continue  # a factor of several needs no median, and it starts slowly
            with run(cores):
                wait_for_forwarding(library, name, routed=name not in BRIDGES)
                with loop_beside(cores):
                    found[name].append(measure(bench.load, cores, size, bench.seconds))
    return found


def show_rival(found: dict[str, list[Measured]], name: str, size: int, *, work: bool) -> None:
    """Print one line: the median rate, and how it compares with the bridge's."""
    pairs = list(zip(found[name], found["bridge"], strict=False))
    ratios = [own.pps / its.pps for own, its in pairs]
    line = f"  {size:5} bytes  {name:8} {median(own.pps for own, _ in pairs):10,.0f} packets/s"
    line += f"  {median(ratios):6.2f} ({min(ratios):.2f}-{max(ratios):.2f})"
    if work:
        spent = median(own.ns for own, _ in pairs)
        line += f"  {spent:7,.0f} ns each, {median(its.ns / own.ns for own, its in pairs):.2f}"
    print(line, flush=True)


def show_veths(bench: Bench, cores: Cores) -> None:
    """Print one arrangement's results: bridge first, then each against it."""
    print(f"\n{cores.title}")
    for size in SIZES:
        found = rounds_of(bench, cores, size)
        for name in found:  # who has a core to himself keeps looking: that is no work
            show_rival(found, name, size, work=cores.generator == cores.switch)
        if "BMv2" in found:
            times = median(own.pps for own in found["closlab"]) / found["BMv2"][0].pps
            print(f"  {size:5} bytes  closlab is {times:.1f} times BMv2")


def run_all(seconds: float, rounds: int) -> int:
    """Inside the sandbox: everything, in order."""
    json_program = router()
    rivals: dict[str, Rival] = {"bridge": bridge}
    program = Program.load(json_program, name="l3")
    rivals["closlab"] = closlab(program)
    if can_be_bare():
        rivals["bare"] = bare_bridge
    simple_switch = shutil.which("simple_switch")
    if simple_switch:
        rivals["BMv2"] = bmv2(json_program, simple_switch)
    bench = Bench(build_load(), program, rivals, seconds, rounds)
    print(
        f"an IPv4 router: longest prefix match over {ROUTES:,} routes, TTL, checksum verified and"
        f" updated\nrates are medians of {rounds} rounds of {seconds:g} s; ratios are to the"
        " kernel's bridge of the same round, least and most behind them"
    )
    if "bare" in rivals:
        print("bridge: with netfilter's hooks, this kernel's default; bare: without")
    print()
    show_pipeline(bench)
    make_veths()
    cores = sorted(os.sched_getaffinity(0))
    show_veths(bench, Cores("one core for generator and switch", cores[-1], cores[-1]))
    if len(cores) > 1:
        show_veths(bench, Cores("a core each", cores[0], cores[-1]))
        title = f"a core each, a busy loop of nice {LOOP_NICENESS} on the switch's"
        show_veths(bench, Cores(title, cores[0], cores[-1], has_loop=True))
    if not simple_switch:
        print("\nBMv2 is not compared: simple_switch is not on PATH")
    return 0


def main(argv: Sequence[str] | None = None) -> int:
    """Measure and print; the exit code is 0 unless something could not be measured."""
    parser = argparse.ArgumentParser(
        prog="closlab bench switch",
        description="Packets a second through two veths, next to the kernel's bridge and BMv2.",
    )
    parser.add_argument("--seconds", type=float, default=1.0, help="per measurement (1)")
    parser.add_argument("--rounds", type=int, default=5, help="measurements of each (5)")
    arguments = parser.parse_args(argv)
    seconds, rounds = arguments.seconds, arguments.rounds
    if seconds <= 0 or rounds < 1:
        parser.error("--seconds and --rounds must be positive")

    def inside() -> int:
        try:
            return run_all(seconds, rounds)
        except LabError as error:
            error.show()
            return 1

    try:
        require_compiler()
        require_ip()
        return run_in_sandbox(inside, lambda _pid: None)
    except LabError as error:
        error.show()
        return 1


if __name__ == "__main__":
    sys.exit(main())
