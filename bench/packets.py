"""`closlab bench packets`: data packets a second that an emulated fabric carries and is believed.

    closlab bench packets [RATE...] [--runs N] [--json FILE]

Eight hosts, each at a leaf of its own, sum up data around a ring: every packet crosses four links.
A rate says how fast time passes: so that all hosts together may send as many data packets a second.
Without one it passes as in any run, which is done again, more slowly, if it is not believed.
A run counts if its `fidelity` believes it, and its time is no further from the simulator's than
`closlab agree` allows. What was delivered a second while hosts were at it is the figure; processor
time is that of all processes, less what it takes to bring the fabric up and to tell of it.
"""

from __future__ import annotations

import argparse
import json
import math
import subprocess
import tempfile
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from bench import CLOSLAB, children_s
from lab.machine import tools
from lab.runs.agree import TIME_TOLERANCE
from lab.scenario import catalogue
from lab.scenario.experiment import Experiment
from params.data import Data

_SCENARIO = "allreduce-ring"
_RING = "topology={kind: leaf-spine, leaves: 8, spines: 1, hosts_per_leaf: 1}"
_MUCH, _LITTLE = "traffic.bytes=16MB", "traffic.bytes=32KB"


class Carried(Data):
    """What became of a run."""

    rate: int | None  # none: a run's own
    dilation: int
    packets_per_s: float  # delivered
    late_p99_ns: int
    time_ratio: float  # to the simulator's
    processor_us: float  # for a data packet
    believed: bool


def ran(out: Path, size: str, *words: str) -> tuple[dict[str, Any], float]:
    """The result of a run, and the processor time that it took."""
    before = children_s()
    changes = [word for change in (_RING, size) for word in ("--set", change)]
    command = [*CLOSLAB, "run", _SCENARIO, *changes, *words, "--out", str(out)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    kept = out / "result.json"
    if not kept.exists():
        raise SystemExit(f"closlab: {_SCENARIO}: {done.stderr.strip()[-500:]}")
    result: dict[str, Any] = json.loads(kept.read_text())
    kept.unlink()
    return result, children_s() - before


def carried(
    rate: int | None, words: Sequence[str], out: Path, simulated_ns: float, idle_s: float
) -> Carried:
    """Run it on Mininet at a rate."""
    result, took_s = ran(out, _MUCH, *words)
    dilation = round(result["dilation"])
    packets = result["roce"]["data_packets"] - result["roce"]["retransmitted_packets"]
    job_ns, fidelity = result.get("jct_ns", math.inf), result["fidelity"]
    ratio = job_ns / simulated_ns
    return Carried(
        rate,
        dilation,
        packets_per_s=packets / (job_ns * dilation / 1e9),
        late_p99_ns=fidelity["late_p99_ns"],
        time_ratio=ratio,
        processor_us=(took_s - idle_s) / packets * 1e6,
        believed=fidelity["ok"] and abs(ratio - 1) <= TIME_TOLERANCE,
    )


def main(arguments: Sequence[str]) -> int:
    """Measure and print."""
    parser = argparse.ArgumentParser(prog="closlab bench packets", description=__doc__)
    parser.add_argument("rates", nargs="*", type=int, metavar="RATE", help="data packets a second")
    parser.add_argument("--runs", type=int, default=3, help="of each, all of them told (3)")
    parser.add_argument("--json", type=Path, metavar="FILE", help="keep the figures")
    given = parser.parse_args(arguments)
    rates: Sequence[int | None] = given.rates or [None]
    if min(*given.rates, given.runs, 1) < 1:
        parser.error("rates and runs are positive")
    tools.require_compiler()
    tools.require_emulation()
    experiment = Experiment.of(catalogue.load(_SCENARIO, (_RING,)))
    found = []
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder)
        simulated_ns = ran(out, _MUCH, "--engine", "sim")[0]["jct_ns"]
        idle_s = ran(out, _LITTLE, "--dilation", "4000")[1]
        print("   rate  dilation  carried/s  late p99   time  us each")
        for rate in rates:
            dilation = rate and math.ceil(experiment.packets_per_s / rate)
            words = ("--dilation", str(dilation)) if dilation else ()
            for _ in range(given.runs):
                found.append(each := carried(rate, words, out, simulated_ns, idle_s))
                asked = "its own" if rate is None else f"{rate:,}"
                print(
                    f"{asked:>7} {each.dilation:9,} {each.packets_per_s:10,.0f} "
                    f"{each.late_p99_ns:6,} ns "
                    f"{each.time_ratio:6.3f} {each.processor_us:8.1f}  "
                    f"{'' if each.believed else 'not believed'}",
                    flush=True,
                )
    believed = [rate for rate in rates if all(each.believed for each in found if each.rate == rate)]
    if believed:
        most = max(believed, key=lambda rate: rate or 0)
        best = min(each.packets_per_s for each in found if each.rate == most)
        print(f"believed in every run: {best:,.0f} data packets a second")
    if given.json:
        given.json.write_text(json.dumps([asdict(each) for each in found], indent=2))
    return 0
