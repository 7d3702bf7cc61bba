"""`closlab bench sim`: packet-hops a second of the simulator, and where the time goes.

    closlab bench sim [--leaves N] [--spines N] [--hosts N] [--k N] [--gbps N] [--bytes N]
                      [--repeat N] [--jobs N] [--no-profile]

A permutation of messages between hosts of different leaves: 128 hosts, 16 leaves and 8 spines,
100 Gb/s links of 1 us, packets of 4,000 bytes, PFC on, and all that the fabric program can do
compiled in. A packet that crosses a link is one packet-hop; acknowledgements and pause frames count
too. Time is that of a processor, without building switches and installing tables. With --jobs
the fabric is simulated by so many; then hops a second are told by the clock as well.
"""

from __future__ import annotations

import argparse
import gc
import io
import os
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from contextlib import ExitStack
from pathlib import Path
from random import Random

from rich.console import Console

from lab.engines.sim.engine import build
from lab.engines.sim.simulation import Account
from lab.progress import Stages
from lab.scenario import catalogue
from lab.scenario.experiment import Experiment
from params.data import Data
from traffic.collectives import Activity, Schedule, ScheduleBuilder
from traffic.jobs import Workload

_SAMPLES_PER_S = 1997


class Measurement(Data):
    """One run."""

    account: Account
    wall_s: float
    processor_s: float
    simulated_ns: int
    open_transfers: int
    built_s: float  # of a processor, until everything was in place

    @property
    def hops_per_s(self) -> float:
        """Packets that crossed a link, by processor time."""
        return self.account.delivered / self.processor_s


def permutation(hosts: int, per_leaf: int, size: int, seed: int = 1) -> Schedule:
    """Every host sends to one of the next leaf, a different one each."""
    chance = Random(seed)  # noqa: S311  (an experiment's chance, not a secret)
    slots = list(range(per_leaf))
    builder = ScheduleBuilder(hosts)
    activity = builder.activity(Activity("flows", "permutation"))
    for first in range(0, hosts, per_leaf):
        chance.shuffle(slots)
        for at, slot in enumerate(slots):
            peer = (first + per_leaf + slot) % hosts
            builder.transfer(first + at, peer, size, activity=activity)
    return builder.build()


def experiment(arguments: argparse.Namespace) -> Experiment:
    """The work to measure."""
    shape = (
        f"{{kind: fat-tree, k: {arguments.k}}}"
        if arguments.k
        else f"{{kind: leaf-spine, leaves: {arguments.leaves}, spines: {arguments.spines}, "
        f"hosts_per_leaf: {arguments.hosts}}}"
    )
    chosen = Experiment.of(
        catalogue.load(
            "hello",
            (
                f"topology={shape}",
                "link.mtu=4000",
                f"link.rate_gbps={arguments.gbps}",
                "buffer.bytes=16MB",
                f"lb.policy={arguments.policy}",
                "traffic={kind: permutation, bytes: 1}",
            ),
        )
    )
    hosts, per_leaf = len(chosen.fabric.hosts), arguments.k // 2 or arguments.hosts
    schedule = permutation(hosts, per_leaf, arguments.bytes)
    return Experiment(chosen.scenario, chosen.fabric, chosen.settings, Workload(schedule, {}, {}))


def measure(
    work: Experiment,
    folder: Path,
    threads: int = 1,
    profile: Path | None = None,
    until_ns: int = 10**10,
) -> Measurement:
    """Run it once."""
    with ExitStack() as stack:
        stages = Stages(Console(file=io.StringIO()))
        began = time.process_time()
        _, simulation = build(work, folder, stages, stack, threads=threads)
        built_s = time.process_time() - began
        gc.collect()
        simulation.start()
        with _profiled(profile):
            wall, processor = time.perf_counter(), time.process_time()
            end_ns = simulation.run(until_ns)
            took = time.perf_counter() - wall, time.process_time() - processor
        return Measurement(simulation.account(), *took, end_ns, simulation.open_transfers, built_s)


def measure_whole(arguments: argparse.Namespace) -> Measurement:
    """Run what was asked for once; it has to end."""
    with tempfile.TemporaryDirectory() as folder:
        run = measure(experiment(arguments), Path(folder), arguments.jobs)
    if run.open_transfers:
        raise RuntimeError(f"{run.open_transfers} transfers did not end")
    return run


class _profiled:  # noqa: N801
    """Let perf watch this process for as long as the block lasts, if it is to."""

    def __init__(self, output: Path | None) -> None:
        self._output = output
        self._perf: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> None:
        if self._output is None:
            return
        watch = f"perf record -q -F {_SAMPLES_PER_S} -o {self._output} -p {os.getpid()}"
        self._perf = subprocess.Popen(watch.split(), stderr=subprocess.DEVNULL)
        time.sleep(0.5)  # until it has attached

    def __exit__(self, *_: object) -> None:
        if self._perf is not None:
            self._perf.send_signal(signal.SIGINT)
            self._perf.wait()


# What a shared object of ours does, by the beginning of its name.
_PARTS = {"p4-": "compiled P4", "rt-": "switch run-time", "sim-": "endpoints, links, event queue"}


def where(profile: Path) -> list[tuple[str, float]]:
    """Shares of the time, by part and function, the largest first."""
    tell = f"perf report -i {profile} --stdio -q --no-children --sort overhead,dso,symbol -t |"
    done = subprocess.run(tell.split(), capture_output=True, text=True, check=False)
    rows = []
    for line in done.stdout.splitlines():
        words = [word.strip() for word in line.split("|")]
        if len(words) >= 3 and words[0].endswith("%"):
            part = next((p for start, p in _PARTS.items() if words[1].startswith(start)), words[1])
            rows.append((f"{part}: {words[2].split(' ', 1)[-1].strip()}", float(words[0][:-1])))
    return rows


def words() -> argparse.ArgumentParser:
    """What may be said."""
    parser = argparse.ArgumentParser(prog="closlab bench sim", description=__doc__.split("\n")[0])
    parser.add_argument("--leaves", type=int, default=16)
    parser.add_argument("--spines", type=int, default=8)
    parser.add_argument("--hosts", type=int, default=8, help="a leaf")
    parser.add_argument("--k", type=int, default=0, help="a fat-tree of this arity instead")
    parser.add_argument("--gbps", type=int, default=100, help="of a link")
    parser.add_argument("--bytes", type=int, default=20_000_000, help="a message")
    parser.add_argument("--policy", default="ecmp", help="how switches choose paths")
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--jobs", type=int, default=1, help="threads that simulate it")
    parser.add_argument("--no-profile", action="store_true", help="do not say where time goes")
    return parser


def main(argv: list[str]) -> int:
    """Measure and print."""
    arguments = words().parse_args(argv)
    work = experiment(arguments)
    print(
        f"{len(work.fabric.hosts)} hosts, {len(work.fabric.switches)} switches, "
        f"{arguments.gbps} Gb/s, a permutation of {arguments.bytes:,} bytes a host"
    )
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        runs = []
        for _ in range(arguments.repeat):
            runs.append(measure(work, folder, arguments.jobs))
            _print(runs[-1])
        best = max(runs, key=lambda run: run.hops_per_s)
        print(f"best: {best.hops_per_s / 1e6:.2f} M packet-hops a second of one processor")
        if arguments.jobs > 1:
            quickest = max(run.account.delivered / run.wall_s for run in runs)
            print(f"by the clock: {quickest / 1e6:.2f} M")
        memory_mb = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024
        print(f"memory, all of it: {memory_mb} MB")
        if not arguments.no_profile:
            _print_profile(work, folder, arguments.jobs)
    return 0 if all(run.open_transfers == 0 for run in runs) else 1


def _print(run: Measurement) -> None:
    events = run.account.events
    print(
        f"  {run.account.delivered:,} packet-hops in {run.wall_s:.2f} s "
        f"({run.processor_s:.2f} s of a processor): {run.hops_per_s / 1e6:.2f} M/s, "
        f"{events / run.processor_s / 1e6:.2f} M events/s, "
        f"{run.simulated_ns / 1e6:.3f} ms simulated"
    )


def _print_profile(work: Experiment, folder: Path, threads: int) -> None:
    if shutil.which("perf") is None:
        print("where the time goes: perf is not installed")
        return
    profile = folder / "perf.data"
    measure(work, folder, threads, profile)
    rows = where(profile)
    if not rows:
        print("where the time goes: perf may not watch here (see kernel.perf_event_paranoid)")
        return
    print("where the time goes:")
    parts: dict[str, float] = {}
    for name, share in rows:
        part = name.partition(":")[0]
        parts[part] = parts.get(part, 0) + share
    for part, share in sorted(parts.items(), key=lambda item: -item[1])[:4]:
        print(f"  {share:5.1f} %  {part}")
    for name, share in rows[:16]:
        print(f"      {share:5.1f} %  {name}")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
