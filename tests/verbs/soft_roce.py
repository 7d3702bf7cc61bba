"""The lab's adapter of verbs and the kernel's soft-RoCE (rdma_rxe), which ask each other.

    python -m tests.verbs.soft_roce [OPERATIONS [SEED...]]

Root, a kernel that has the module, rdma (iproute2) and ibverbs-providers are wanted; it ends with
77, and says why, where they are not. The kernel's adapter is at one end of a veth in the machine's
own network, the only one that rdma_rxe sends by, and the lab's at the other end, in a network that
goes with its process and takes the veth along. Random operations go in both directions at once
with each path MTU, and are compared with a model; then programs of others meet, each as server
and as client. A line each; it exits with 1 if anything differs.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

from params.data import Data
from tests.verbs.model import PIECES, Able, Plan, differences, draw_plan
from tests.verbs.random_operations import MTUS, compile_player
from tests.verbs.wire import libraries_in

ADDRESSES = ("10.9.77.1", "10.9.77.2")  # the lab's, the kernel's
OURS, THEIRS, DEVICE = "clrxe0", "clrxe1", "closlab_rxe"  # the ends of the veth
MTU = 4500
OPERATIONS = 400
LONGEST_S = 180
NOT_HERE = 77
# Which GID each means: of the kernel's the first is of IPv6. It would have more READs under way
# than the lab's can, which perftest asks for without looking at what both can.
PROGRAMS = (
    ("ibv_rc_pingpong -n 50 -c -g 0", "ibv_rc_pingpong -n 50 -c -g 1"),
    ("ibv_srq_pingpong -n 50 -q 2 -g 0", "ibv_srq_pingpong -n 50 -q 2 -g 1"),
    ("ibv_ud_pingpong -n 50 -s 2048 -c -g 0", "ibv_ud_pingpong -n 50 -s 2048 -c -g 1"),
    *(
        (f"{program} -F -x 0 {words}", f"{program} -F -x 1 {words}")
        for program, words in (
            ("ib_write_bw", "-n 50 -u 18"),
            ("ib_read_bw", "-n 50 -u 18 -o 16"),
            ("ib_send_bw", "-n 50 -u 18"),
            ("ib_atomic_bw", "-n 50 -u 18 -o 16"),
        )
    ),
)


class NotHereError(Exception):
    """What this machine lacks for it."""


def run(words: str) -> None:
    """Set something up, or say that it cannot be."""
    done = subprocess.run(words.split(), capture_output=True, text=True, check=False)
    if done.returncode:
        raise NotHereError(f"'{words}' does not work here: {done.stderr.strip()}")


@contextmanager
def network() -> Iterator[int]:
    """Both ends; the process whose network is the lab's."""
    if os.geteuid():
        raise NotHereError("only root can add an adapter to the kernel")
    try:
        run("modprobe rdma_rxe")
        held = subprocess.Popen(["unshare", "--net", "sleep", "infinity"])
    except FileNotFoundError as error:
        raise NotHereError(f"{error.filename} is not installed") from None
    try:
        while Path(f"/proc/{held.pid}/ns/net").readlink() == Path("/proc/self/ns/net").readlink():
            time.sleep(0.01)
        run(f"ip link add {THEIRS} mtu {MTU} type veth peer name {OURS} mtu {MTU}")
        run(f"ip link set {OURS} netns {held.pid}")
        run(f"ip addr add {ADDRESSES[1]}/24 dev {THEIRS}")
        run(f"ip link set {THEIRS} up")
        for words in ("link set lo up", f"addr add {ADDRESSES[0]}/24 dev {OURS}"):
            run(f"nsenter --net --target {held.pid} ip {words}")
        run(f"nsenter --net --target {held.pid} ip link set {OURS} up")
        run(f"rdma link add {DEVICE} type rxe netdev {THEIRS}")
        yield held.pid
    finally:
        held.kill()
        held.wait()
        # At once, and with it the kernel's adapter.
        subprocess.run(["ip", "link", "del", THEIRS], capture_output=True, check=False)


class Ends(Data):
    """Where programs are started."""

    libraries: Path
    pid: int

    def start(self, end: int, words: Sequence[str]) -> subprocess.Popen[str]:
        """At the lab's end, or the kernel's."""
        environment = dict(os.environ)
        if end == 0:
            environment["LD_LIBRARY_PATH"] = str(self.libraries)
            words = ["nsenter", "--net", f"--target={self.pid}", *words]
        words = ["timeout", str(LONGEST_S), *words]
        return subprocess.Popen(
            words, env=environment, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT
        )

    def both(self, serves: int, waits: Sequence[str], asks: Sequence[str]) -> list[str]:
        """Run both; what went wrong."""
        first = self.start(serves, waits)
        time.sleep(1)
        second = self.start(1 - serves, asks)
        found = []
        for name, program in (("server", first), ("client", second)):
            said, _ = program.communicate()
            if program.returncode:
                found.append(f"the {name} ended with {program.returncode}: {said.strip()}")
        return found


def both_plans(seed: int, count: int) -> tuple[Plan, Plan]:
    """What the lab's adapter asks of the kernel's, and the other way round.

    The kernel's has no key of a program's memory invalidated from afar. A request with a fence that
    is told RNR it never sends again (6.1) if a READ or an atomic operation went after it: then each
    of them waits for the other. Its library (until 2026) takes a list that ibv_wr_* build for so
    many times its first piece, and one of inline data for nothing.
    """
    mtu = 1 + seed % MTUS
    ours = draw_plan(2 * seed, count // 2, mtu, Able(invalidates=False))
    kernel = Able(fences=False, pieces=(PIECES, 1), inlines=(True, False))
    return ours, draw_plan(2 * seed + 1, count // 2, mtu, kernel)


def operations(ends: Ends, player: Path, folder: Path, seed: int, count: int) -> list[str]:
    """So many in either direction: what differs."""
    plans = both_plans(seed, count)
    words, logs = [], [folder / "log-0", folder / "log-1"]
    serves = seed // MTUS % 2
    for end in (0, 1):
        plan = folder / f"plan-{end}"
        plan.write_bytes(plans[end].packed(plans[1 - end]))
        logs[end].write_bytes(b"")
        address = "-" if end == serves else ADDRESSES[serves]
        words.append([str(player), address, str(plan), str(logs[end])])
    found = ends.both(serves, words[serves], words[1 - serves])
    written = [log.read_bytes() for log in logs]
    for end, name in enumerate(("the lab's asks: ", "the kernel's asks: ")):
        found += [name + one for one in differences(plans[end], written[end], written[1 - end])]
    return found


def main(argv: Sequence[str]) -> int:
    """The exit code."""
    count, *seeds = map(int, argv or (OPERATIONS, *range(2 * MTUS)))
    bad = 0
    with TemporaryDirectory() as name:
        folder = Path(name)
        libraries = libraries_in(folder)
        player = compile_player(libraries)
        try:
            with network() as pid:
                ends = Ends(libraries, pid)
                for seed in seeds:
                    found = operations(ends, player, folder, seed, count)
                    bad += report(
                        f"seed {seed}, MTU {256 << seed % MTUS}, {count} operations", found
                    )
                for both in PROGRAMS:
                    for serves in (0, 1):
                        asks = f"{both[1 - serves]} {ADDRESSES[serves]}".split()
                        found = ends.both(serves, both[serves].split(), asks)
                        server = "the kernel's" if serves else "the lab's"
                        bad += report(f"{asks[0]}, {server} serves", found)
        except NotHereError as error:
            print(error)
            return NOT_HERE
    return 1 if bad else 0


def report(what: str, found: Sequence[str]) -> int:
    """Print a line, and those of what is wrong; how many."""
    print(f"{what}: {f'{len(found)} differ' if found else 'right'}", *found, sep="\n  ", flush=True)
    return len(found)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
