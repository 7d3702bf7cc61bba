"""What perftest and nccl-tests print on the fabric, beside the simulator's of the same bytes.

    python -m tests.verbs.figures [bandwidth] [latency] [loss] [incast] [nccl]

Debian's programs run as they are by ``closlab exec`` (perftest). A line each: both figures, by how
much they differ, and how much they may. It exits with 1 if one differs by more.
"""

from __future__ import annotations

import csv
import json
import re
import statistics
import sys
from collections.abc import Callable, Sequence
from itertools import pairwise
from pathlib import Path
from tempfile import TemporaryDirectory

from tests.lab.conftest import closlab
from traffic.nccl_tests import PROGRAMS

KB = 1024
MESSAGE = 64 * KB  # perftest's own
SMALL = {"topology.leaves": 2, "topology.spines": 1, "buffer.bytes": "16MB"}
FAIR = {
    "buffer.bytes": "16MB",
    "ecn.enabled": "true",
    "ecn.pmax": 1,
    "transport.cc": "dcqcn",
    "transport.dcqcn.profile": "hpcc-ns3",
}
AVERAGE = re.compile(r"^(h\d+): +(\d+) +\d+ +\S+ +(\S+)", re.MULTILINE)
LATENCIES = re.compile(r"^h2: +\d+ +\d+ +(\S+) +\S+ +(\S+)", re.MULTILINE)
ROWS = re.compile(r"^ +(\d+) +\d+ +\w+ +\w+ +-?\d+ +(\S+) +\S+ +\S+ +(\d+)", re.MULTILINE)
SENDERS = 7
SLOWLY = 20000  # times: what the machine takes to notice a packet is then little of a microsecond


def settings(values: dict[str, object]) -> list[str]:
    """As options of a command."""
    return [word for key, value in values.items() for word in ("--set", f"{key}={value}")]


def simulated_ns(senders: int, size: int, values: dict[str, object]) -> list[float]:
    """How long messages to one host take, in the simulator."""
    all_values = {**values, "traffic.senders": senders, "traffic.bytes": size}
    with TemporaryDirectory() as folder:
        words = ("run", "incast", "--engine", "sim", *settings(all_values), "--out", folder)
        done = closlab(*words)
        assert done.returncode == 0, done.stdout + done.stderr
        with (Path(folder) / "flows.csv").open() as file:
            return [float(row["fct_ns"]) for row in csv.DictReader(file)]


def printed(hosts: str, values: dict[str, object], *words: str, dilation: int = 0) -> str:
    """What programs print on the fabric."""
    own = ("--dilation", str(dilation)) if dilation else ()
    done = closlab("exec", "--on", "incast", *own, *settings(values), hosts, "--", *words, "h1")
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout + done.stderr


def bandwidths(said: str) -> list[float]:
    """Of the clients, in Gb/s."""
    return [float(gbps) for host, _, gbps in AVERAGE.findall(said) if host != "h1"]


def is_near(
    what: str,
    found: float,
    expected: float,
    most: float,
    beside: str = "simulator",
    program: str = "perftest",
) -> bool:
    """Print a line; whether it is as it should be."""
    off = found / expected - 1
    fine = abs(off) <= most
    print(
        f"{what:28} {program} {found:8.2f}  {beside} {expected:8.2f}  {off:+7.2%}"
        f"  at most {most:.0%}{'' if fine else '  <-- more'}",
        flush=True,
    )
    return fine


def bandwidth() -> bool:
    """One message's worth at three rates."""
    fine = True
    for rate, count in ((100, 150), (200, 200), (400, 300)):
        values: dict[str, object] = {**SMALL, "link.rate_gbps": rate}
        size = count * MESSAGE
        (took_ns,) = simulated_ns(1, size, values)
        words = ("ib_write_bw", "--report_gbits", "-n", str(count))
        (gbps,) = bandwidths(printed("h1,h2", values, *words))
        fine &= is_near(f"ib_write_bw, {rate} Gb/s (Gb/s)", gbps, size * 8 / took_ns, 0.02)
    return fine


def latency() -> bool:
    """Of two bytes, half a round trip: the least, for the others wait for a processor as well."""
    (took_ns,) = simulated_ns(1, 2, dict(SMALL))
    said = printed("h1,h2", dict(SMALL), "ib_write_lat", "-n", "100", dilation=SLOWLY)
    found = LATENCIES.search(said)
    assert found
    least, typical = map(float, found.groups())
    print(f"ib_write_lat: {least} us at least, {typical} typically, with what the machine adds")
    return is_near("ib_write_lat, 2 bytes (us)", least, took_ns / 1000, 0.05)


def loss() -> bool:
    """One packet in a hundred is lost.

    Time-outs are 131 us in both (4.096 us * 2^5): of perftest's own 67 ms one more or less, which
    is chance, would be all that one sees.
    """
    values: dict[str, object] = {**SMALL, "loss.rate": 0.01, "transport.timeout": 5}
    count = 300
    size = count * MESSAGE
    by_seed = [simulated_ns(1, size, {**values, "seed": seed})[0] for seed in range(1, 6)]
    words = ("ib_write_bw", "--report_gbits", "-n", str(count), "-u", "5")
    (gbps,) = bandwidths(printed("h1,h2", values, *words, dilation=SLOWLY))
    expected = size * 8 / statistics.median(by_seed)
    return is_near("ib_write_bw, 1 % lost (Gb/s)", gbps, expected, 0.10)


def incast() -> bool:
    """Seven to one with DCQCN: nothing lost, and no share far from the middle."""
    count = 100
    times = simulated_ns(SENDERS, count * MESSAGE, dict(FAIR))
    said = printed("all", dict(FAIR), "ib_write_bw", "--report_gbits", "-n", str(count))
    shares = bandwidths(said)
    lossless = "Switches dropped 0" in said
    mean, simulated = statistics.mean(shares), [count * MESSAGE * 8 / ns for ns in times]
    print("shares", json.dumps(shares), "lossless" if lossless else "packets were dropped")
    fine = True
    for share in shares:
        fine &= is_near("a share (Gb/s)", share, mean, 0.05, "their mean")
    fine &= is_near("the mean share (Gb/s)", mean, statistics.mean(simulated), 0.10)
    return fine and lossless and len(shares) == SENDERS


def collective_ns(op: str, size: int) -> float:
    """How long a collective takes, in the simulator."""
    traffic = f"{{kind: collective, op: {op}, bytes: {size}}}"
    if op == "send-receive":
        ring = ("h1", "h2", "h3", "h4", "h1")
        flows = (f"{{src: {a}, dst: {b}, bytes: {size}}}" for a, b in pairwise(ring))
        traffic = f"{{kind: flows, flows: [{', '.join(flows)}]}}"
    values = settings({**SMALL, "traffic": traffic})
    with TemporaryDirectory() as folder:
        done = closlab("run", "hello", "--engine", "sim", *values, "--out", folder)
        assert done.returncode == 0, done.stdout + done.stderr
        with (Path(folder) / "flows.csv").open() as file:
            return max(
                float(row["start_ns"]) + float(row["fct_ns"]) for row in csv.DictReader(file)
            )


def nccl() -> bool:
    """Collectives of four ranks, each on a host, of two sizes.

    The simulator's ends when the last byte has come. Ranks first say where their buffers are, and
    wait at the end for the last acknowledgement: two crossings more. The mean of ranks' times is
    printed, which of a broadcast is less, for its root is done before the others.
    """
    fine, crossing = True, collective_ns("send-receive", 4)
    for program, (op, _) in PROGRAMS.items():
        words = (program, "-b", "64K", "-e", "1M", "-f", "16", "-n", "2", "-g", "4", "-w", "0")
        on = ("--on", "hello", *settings(SMALL), "--dilation", str(SLOWLY))
        done = closlab("nccl-tests", *words, *on)
        assert done.returncode == 0, done.stdout + done.stderr
        for size, us, wrong in ROWS.findall(done.stdout):
            what, simulated = f"{program}, {int(size) // KB} KB", collective_ns(op, int(size))
            print(f"{what}: {us} us, {wrong} wrong; in the simulator {simulated / 1000:.2f} us")
            expected = (simulated + 2 * crossing) / 1000
            most = 0.35 if op == "broadcast" else 0.15
            fine &= is_near("with two crossings (us)", float(us), expected, most, program=program)
            fine &= wrong == "0"
    return fine


FIGURES: dict[str, Callable[[], bool]] = {
    "bandwidth": bandwidth,
    "latency": latency,
    "loss": loss,
    "incast": incast,
    "nccl": nccl,
}


def main(wanted: Sequence[str]) -> int:
    """The exit code."""
    unknown = [name for name in wanted if name not in FIGURES]
    if unknown:
        print(f"there is no figure '{unknown[0]}': {', '.join(FIGURES)}", file=sys.stderr)
        return 2
    fine = True
    for name in wanted or FIGURES:
        fine &= FIGURES[name]()
    return 0 if fine else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
