"""closlab beside HPCC's simulator: the same flows on the same links in both, as docs/ns3.md has it.

    .venv/bin/python -m tests.lab.beside_ns3 ORACLE --out DIR [--sizes websearch --load 0.5 ...]

ORACLE is that simulator's folder `simulation`, built, whose `qp_finish` prints of each flow: who to
whom (numbers of hosts), bytes, start, how long until it was acknowledged and until the receiver had
all of it, in ns.
Flows arrive at random in a two-tier fabric; a row for each control, of all seeds' flows together,
compares slowdowns at 50, 95 and 99 %, both by what a flow takes there alone in an empty fabric:
links are as fast here as makes a full packet take as long. Runs that are kept in DIR are not made
again.
"""

from __future__ import annotations

import argparse
import io
import os
import subprocess
import time
from collections.abc import Callable, Iterable, Sequence
from itertools import chain
from pathlib import Path
from random import Random
from typing import Any, NamedTuple

from rich.console import Console

from lab.engines import RunOptions
from lab.results.result import RESULT
from lab.runs.run import run_quietly
from lab.scenario import catalogue
from lab.scenario.experiment import Experiment
from lab.scenario.model import Scenario
from traffic.measures import percentile
from traffic.traces import ns3
from views.report.kept import read_run

CONTROLS = ("dcqcn", "hpcc", "timely", "dctcp")
PAYLOAD = 1000
BEGIN_NS = 2_000_000_000  # when flows begin there
SHARES = (50, 95, 99)
DRAWS = 400
# What packets have around their payload, there and here; here telemetry comes on top, by hops.
AROUND = {"dcqcn": 48, "hpcc": 90, "timely": 56, "dctcp": 48}
OURS, OURS_INT, OURS_HOP = 58, 16, 16
SWITCHES = 3

# What every control has there, by run.py; what is not named is of no effect in these runs.
COMMON = """ENABLE_QCN 1
USE_DYNAMIC_PFC_THRESHOLD 1
PACKET_PAYLOAD_SIZE 1000
SIMULATOR_STOP_TIME 20.00
ALPHA_RESUME_INTERVAL 1
RATE_DECREASE_INTERVAL 4
CLAMP_TARGET_RATE 0
RP_TIMER 300
FAST_RECOVERY_TIMES 1
MIN_RATE 1000Mb/s
ERROR_RATE_PER_LINK 0.0000
L2_CHUNK_SIZE 4000
L2_ACK_INTERVAL 1
L2_BACK_TO_ZERO 0
GLOBAL_T 1
U_TARGET 0.95
MI_THRESH 0
MULTI_RATE 0
SAMPLE_FEEDBACK 0
PINT_LOG_BASE 1.01
PINT_PROB 1.0
RATE_BOUND 1
LINK_DOWN 0 0 0
ENABLE_TRACE 0
BUFFER_SIZE 32
QLEN_MON_START 30000000000
QLEN_MON_END 30000000001
"""


class Fabric(NamedTuple):
    """Leaves of hosts under one spine, so that no hash chooses between ways."""

    leaves: int
    hosts_per_leaf: int
    gbps: int
    faster: int  # links between switches, so many times
    delay_ns: int

    @property
    def hosts(self) -> int:
        """How many there are."""
        return self.leaves * self.hosts_per_leaf

    def is_near(self, src: int, dst: int) -> bool:
        """Whether two hosts have one leaf."""
        return src // self.hosts_per_leaf == dst // self.hosts_per_leaf

    @property
    def base_rtt_ns(self) -> int:
        """The longest round trip, as that simulator reckons it: one packet's way, and back."""
        return 8 * self.delay_ns + 2 * 8 * PAYLOAD * (self.faster + 1) // (self.gbps * self.faster)

    def frame_ns(self, size: int) -> tuple[int, int]:
        """How long frames take at hosts' links and between switches there: whole nanoseconds."""
        return 8 * size // self.gbps, 8 * size // (self.gbps * self.faster)

    def topology(self, host_gbps: str, between_gbps: str) -> str:
        """Its topology.txt, at such rates."""
        first, spine = self.hosts, self.hosts + self.leaves
        leaves = range(first, spine)
        lines = [f"{spine + 1} {self.leaves + 1} {self.hosts + self.leaves}"]
        lines += [" ".join(map(str, (*leaves, spine)))]
        cable = f"{self.delay_ns}ns 0"
        for host in range(self.hosts):
            lines.append(f"{host} {first + host // self.hosts_per_leaf} {host_gbps}Gbps {cable}")
        lines += [f"{leaf} {spine} {between_gbps}Gbps {cable}" for leaf in leaves]
        return "\n".join(lines) + "\n"


class Flow(NamedTuple):
    """One, as either tells of it."""

    src: int
    dst: int
    bytes: int
    start_ns: int
    fct_ns: int
    slowdown: float


def theirs(control: str, args: argparse.Namespace, fabric: Fabric, folder: Path) -> str:
    """The file that their program reads, by run.py."""
    gbps, is_window = fabric.gbps, control in ("hpcc", "dctcp")
    low, high, most = marks(control, gbps)
    times = fabric.faster if args.follow else 1
    additive = {"dcqcn": gbps // 5, "hpcc": gbps * 2 // 5, "timely": gbps, "dctcp": 10}[control]
    hyper = {"dcqcn": gbps * 2, "timely": gbps * 5}.get(control, additive)
    rates = (gbps * 10**9, gbps * fabric.faster * 10**9)
    own = {
        "CC_MODE": {"dcqcn": 1, "hpcc": 3, "timely": 7, "dctcp": 8}[control],
        "EWMA_GAIN": 0.0625 if control == "dctcp" else 0.00390625,
        "RATE_AI": f"{additive}Mb/s",
        "RATE_HAI": f"{hyper}Mb/s",
        "DCTCP_RATE_AI": "615Mb/s",
        "HAS_WIN": int(is_window),
        "VAR_WIN": int(is_window),
        "FAST_REACT": int(control == "hpcc"),
        "INT_MULTI": max(1, gbps // 25) if control == "hpcc" else 1,
        "ACK_HIGH_PRIO": int(not is_window),
        "KMIN_MAP": f"2 {rates[0]} {low} {rates[1]} {low * times}",
        "KMAX_MAP": f"2 {rates[0]} {high} {rates[1]} {high * times}",
        "PMAX_MAP": f"2 {rates[0]} {most} {rates[1]} {most}",
    }
    files = {
        "TOPOLOGY_FILE": "topology.txt", "FLOW_FILE": "flow.txt", "TRACE_FILE": "trace.txt",
        "TRACE_OUTPUT_FILE": "out.tr", "FCT_OUTPUT_FILE": "fct.txt",
        "PFC_OUTPUT_FILE": "pfc.txt", "QLEN_MON_FILE": "queues.txt",
    }  # fmt: skip
    own |= {key: str(folder / name) for key, name in files.items()}
    return COMMON + "".join(f"{key} {value}\n" for key, value in own.items())


def arrivals(
    args: argparse.Namespace, fabric: Fabric, seed: int
) -> list[tuple[int, int, int, int]]:
    """The flows of a seed: who sends to whom how much, and when."""
    parts = [
        {"kind": "poisson", "sizes": sizes, "load": load, "duration_ns": f"{args.ms:g}ms"}
        for sizes, load in ((args.sizes, args.load), (args.more, args.more_load))
        if load
    ]
    scenario = _scenario(
        f"seed={seed}",
        topology={
            "kind": "leaf-spine", "leaves": fabric.leaves, "spines": 1,
            "hosts_per_leaf": fabric.hosts_per_leaf,
        },
        link={"rate_gbps": fabric.gbps},
        traffic={"kind": "mix", "parts": parts},
    )  # fmt: skip
    schedule = Experiment.of(scenario).schedule
    return sorted(
        zip(schedule.src, schedule.dst, schedule.size, schedule.delay_ns, strict=True),
        key=lambda flow: flow[3],
    )


def _scenario(*changes: str, **content: Any) -> Scenario:
    beside = {"name": "beside-ns3", "about": "What HPCC's simulator is given as well."}
    return catalogue.made({**beside, **content}, changes, "beside")


def ours(control: str, args: argparse.Namespace, fabric: Fabric, folder: Path) -> Scenario:
    """The scenario, with rates by which a full packet takes as long as there."""
    size = PAYLOAD + OURS + (OURS_INT + OURS_HOP * SWITCHES if control == "hpcc" else 0)
    frame = fabric.frame_ns(PAYLOAD + AROUND[control])
    host, between = (f"{8 * size / ns:.3f}" for ns in frame)
    (folder / "ours.txt").write_text(fabric.topology(host, between))
    low, high, most = marks(control, fabric.gbps)
    # Marks of hosts' links follow their rate, as long as others' are not to be the same.
    times = fabric.faster if args.follow else 1
    own: dict[str, object] = {
        "dcqcn": {"profile": "hpcc-ns3"},
        "hpcc": {
            "max_stage": 0, "minimum_mbps": 1000,
            "additive": round(fabric.gbps * 0.4e6 * fabric.base_rtt_ns / 8e9),
        },
        "timely": {"profile": "hpcc-ns3", "additive_mbps": fabric.gbps},
        "dctcp": {"additive": round(615e6 * fabric.base_rtt_ns / 8e9)},
    }[control]  # fmt: skip
    return _scenario(
        topology={"kind": "file", "path": str(folder / "ours.txt")},
        link={
            "rate_gbps": float(between), "overhead": 0, "delay_ns": fabric.delay_ns, "mtu": PAYLOAD,
        },
        buffer={
            "bytes": 32 << 20, "alpha": 0.5, "reserved": 4096, "follow_rate": args.follow,
        },
        ecn={
            "enabled": most > 0, "kmin": f"{low * times}KB", "kmax": f"{high * times}KB",
            "pmax": most,
        },
        transport={
            "cc": control, "ack_every": 1, "follow_rate": control == "hpcc",
            "by_number": control in ("timely", "dctcp"),
            "cnp_priority": 3 if control == "dcqcn" else 6, "window": 1 << 20, "timeout": 0,
            control: own,
        },
        traffic={"kind": "table", "file": str(folder / "flows.csv")},
        faults=_slower_to_leaves(fabric) if control == "hpcc" else [],
        measures={"series": False, "telemetry": False},
    )  # fmt: skip


def _slower_to_leaves(fabric: Fabric) -> list[dict[str, Any]]:
    """Hosts' links as slow as the packets are shorter that have no hop's telemetry yet: there all
    are of one size, here they grow, and a link has one rate unless it is slow in one direction."""
    share = (PAYLOAD + OURS + OURS_INT) / (PAYLOAD + OURS + OURS_INT + OURS_HOP * SWITCHES)
    return [
        {
            "at_ns": 0, "action": "slow", "direction": "up", "share": share,
            "link": f"h{host + 1}-leaf{host // fabric.hosts_per_leaf + 1}",
        }
        for host in range(fabric.hosts)
    ]  # fmt: skip


def marks(control: str, gbps: int) -> tuple[int, int, float]:
    """From which queue on, by run.py, and from which all; in KB, at a host's rate."""
    if control == "dctcp":
        return 3 * gbps, 3 * gbps, 1.0
    return 4 * gbps, 16 * gbps, 0.2 if control == "dcqcn" else 0.0


class Ruler(NamedTuple):
    """What flows of a control are measured by, theirs and ours."""

    fabric: Fabric
    control: str

    def flow(self, src: int, dst: int, size: int, start_ns: int, fct_ns: int) -> Flow:
        """One, with how much longer it took than alone."""
        is_near = self.fabric.is_near(src, dst)
        alone = alone_ns(self.fabric, size, AROUND[self.control], is_near=is_near)
        return Flow(src, dst, size, start_ns, fct_ns, fct_ns / alone)


def their_flows(ruler: Ruler, path: Path) -> list[Flow]:
    """What their program told, a line a flow."""
    found = []
    for line in path.read_text().splitlines():
        src, dst, size, start, _acknowledged, fct = map(int, line.split())
        found.append(ruler.flow(src, dst, size, start - BEGIN_NS, fct))
    return found


def alone_ns(fabric: Fabric, size: int, around: int, *, is_near: bool) -> int:
    """How long a message takes there in an empty fabric, until its last byte has arrived."""
    packets = -(-size // PAYLOAD)
    full, last = (
        fabric.frame_ns(each + around) for each in (PAYLOAD, size - (packets - 1) * PAYLOAD)
    )
    links = (0, 0) if is_near else (0, 1, 1, 0)  # a host's, one between switches
    before, end = (packets - 1) * full[0], 0  # when the last but one has left, and the last
    for at, link in enumerate(links):
        if at:
            before = before + fabric.delay_ns + full[link] if packets > 1 else 0
        end = max(end, before) + last[link]
        end += fabric.delay_ns
    return end


def our_flows(ruler: Ruler, folder: Path) -> list[Flow]:
    """What is kept of a run."""
    run = read_run(folder)
    number = {host.name: at for at, host in enumerate(run.fabric.hosts)}
    return [
        ruler.flow(number[f.src], number[f.dst], f.bytes, f.start_ns or 0, f.fct_ns or 0)
        for f in run.flows
    ]


def pairs(args: argparse.Namespace, control: str, fabric: Fabric) -> list[list[tuple[Flow, Flow]]]:
    """Each seed's flows in both, theirs first; runs are made as far as they are not kept."""
    found = []
    ruler = Ruler(fabric, control)
    for seed in range(args.first, args.first + args.seeds):
        base = args.out / f"{args.sizes}-{args.load:g}-{seed}"
        folder = (base / control).resolve()
        (folder / "ours").mkdir(parents=True, exist_ok=True)
        flows = arrivals(args, fabric, seed)
        (folder / "flow.txt").write_text("".join(ns3.written(flows)))
        rows = (f"{start},{src},{dst},{size}\n" for src, dst, size, start in flows)
        (folder / "flows.csv").write_text("start_ns,src,dst,bytes\n" + "".join(rows))
        (folder / "topology.txt").write_text(
            fabric.topology(str(fabric.gbps), str(fabric.gbps * fabric.faster))
        )
        (folder / "trace.txt").write_text("0\n")
        (folder / "config.txt").write_text(theirs(control, args, fabric, folder))
        run_theirs(args.oracle.resolve(), folder, seed, len(flows))
        if not (folder / "ours" / RESULT).is_file():
            scenario = ours(control, args, fabric, folder).model_copy(update={"seed": seed})
            options = RunOptions(out=folder / "ours", engine="sim")
            run_quietly(scenario, options, Console(file=io.StringIO()))
        both = (
            sorted(their_flows(ruler, folder / "fct.txt")),
            sorted(our_flows(ruler, folder / "ours")),
        )
        assert [flow[:3] for flow in both[0]] == [flow[:3] for flow in both[1]], folder
        found.append(list(zip(*both, strict=True)))
    return found


def run_theirs(oracle: Path, folder: Path, seed: int, flows: int) -> None:
    """Let their program run what lies in a folder, until it has told of so many flows: its clocks
    would go on."""

    def count() -> int:
        path = folder / "fct.txt"
        return path.read_text().count("\n") if path.is_file() else 0

    if count() == flows:
        return
    env = {
        **os.environ,
        "LD_LIBRARY_PATH": str(oracle / "build"),
        "NS_GLOBAL_VALUE": f"RngRun={seed}",
    }
    program = oracle / "build" / "scratch" / "third"
    with (folder / "told.txt").open("w") as log:
        running = subprocess.Popen(
            [program, folder / "config.txt"], env=env, stdout=log, stderr=log
        )
        while running.poll() is None and count() < flows:
            time.sleep(0.2)
        running.kill()
        running.wait()
    assert count() == flows, f"{folder}: see told.txt"


def row_of(
    args: argparse.Namespace, control: str, runs: Sequence[list[tuple[Flow, Flow]]], seeds: str
) -> str:
    """A row of all flows of some seeds: theirs, ours, and ours over theirs; at 99 % also with flows
    drawn anew, and with seeds, since flows of one seed met each other."""
    by_seed = [
        [(their.slowdown, our.slowdown) for their, our in run if their.bytes <= args.most]
        for run in runs
    ]
    slow = list(chain.from_iterable(by_seed))
    sides = [[percentile(side, share) for share in SHARES] for side in zip(*slow, strict=True)]
    ratios = [our / their for their, our in zip(*sides, strict=True)]
    rng = Random(1)
    ends = [interval(lambda: rng.choices(slow, k=len(slow)))]
    if len(by_seed) > 1:
        ends += [interval(lambda: chain.from_iterable(rng.choices(by_seed, k=len(by_seed))))]
    side_texts = (", ".join(f"{each:.3f}" for each in side) for side in (*sides, ratios))
    return (
        f"| {args.sizes}, {args.load:g} | {control} | {seeds}, {len(slow):,} | "
        + " | ".join(side_texts)
        + f" | {', '.join(ends)} |"
    )


def interval(draw: Callable[[], Iterable[tuple[float, float]]]) -> str:
    """Where 95 of 100 ratios at 99 % are when flows are drawn so."""
    drawn = []
    for _ in range(DRAWS):
        their, our = (percentile(side, 99) for side in zip(*draw(), strict=True))
        drawn.append(our / their)
    return f"{percentile(drawn, 2.5):.3f} to {percentile(drawn, 97.5):.3f}"


def main() -> None:
    """Run what is asked for, and tell a row a control."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("oracle", type=Path)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--controls", nargs="+", choices=CONTROLS, default=CONTROLS)
    parser.add_argument("--sizes", default="hadoop")
    parser.add_argument("--load", type=float, default=0.3)
    parser.add_argument("--more", default="", help="a file of sizes that come besides,")
    parser.add_argument("--more-load", type=float, default=0.0, help="and how much of them")
    parser.add_argument("--ms", type=float, default=4.0, help="how long flows arrive")
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument("--first", type=int, default=1, help="the first of the seeds")
    parser.add_argument("--each", action="store_true", help="a row for each seed as well")
    parser.add_argument("--most", type=float, default=1e12, help="flows of so many bytes at most")
    parser.add_argument("--fabric", type=int, nargs=5, default=(8, 4, 100, 4, 1000),
                        metavar=("LEAVES", "HOSTS", "GBPS", "FASTER", "NS"))  # fmt: skip
    parser.add_argument("--follow", action="store_true", help="marks between switches as run.py's")
    args = parser.parse_args()
    for control in args.controls:
        runs = pairs(args, control, Fabric(*args.fabric))
        for seed, run in enumerate(runs if args.each else [], args.first):
            print(row_of(args, control, [run], f"seed {seed}"), flush=True)
        print(row_of(args, control, runs, f"{args.seeds}"), flush=True)


if __name__ == "__main__":
    main()
