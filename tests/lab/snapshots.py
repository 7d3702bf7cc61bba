"""What a sweep of simulated scenarios came to, written down: snapshots.json.

    python -m tests.lab.snapshots        writes it anew; review the difference like code

The simulator's results are bytes that follow from scenario and seed. A change of the code that is
not meant to alter them must not move a figure here; one that is meant to shows here what it moved.
"""

from __future__ import annotations

import hashlib
import json
import tempfile
from pathlib import Path

from lab.results.result import Result
from tests.lab.any_settings import written
from tests.lab.simulated import simulate

SNAPSHOTS = Path(__file__).with_name("snapshots.json")
RENEW = "python -m tests.lab.snapshots"
Figures = dict[str, int | float | str | None]

# Scenarios that ship, made small, and some by lot (lab/runs/lots).
SHIPPED = {
    "incast": ("traffic.bytes=200KB",),
    "incast, DCQCN": ("traffic.bytes=300KB", "ecn.enabled=true", "transport.cc=dcqcn"),
    "incast, HPCC": ("traffic.bytes=300KB", "transport.cc=hpcc"),
    "incast, no PFC": ("traffic.bytes=200KB", "pfc.enabled=false", "transport.timeout=10"),
    "hash-collision, conga": ("lb.policy=conga", "int.share=0.05"),
    "lossy-link, selective": ("transport.recovery=selective", "lb.policy=spray"),
    "allreduce-tree": ("traffic.bytes=1MB",),
    "link-failure": (),
    "pfc-storm": (),
    "north-south": ("limit_ns=300us",),
}
SEEDS = range(2000, 2008)


BY_LOT = {f"by lot {seed}": seed for seed in SEEDS}


def cases() -> list[str]:
    """Every scenario by its name here."""
    return [*SHIPPED, *BY_LOT]


def figures_of(name: str) -> Figures:
    """What one comes to: figures, and digests of every message and of all that was noted."""
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder)
        by_lot = name in BY_LOT
        scenario = written(BY_LOT[name], out) if by_lot else name.partition(",")[0]
        result = simulate(scenario, *SHIPPED.get(name, ()), out=out).result
        tables = {name: _digest(out / name) for name in ("flows.csv", "timeseries.csv")}
    return _figures(result) | tables


def _figures(result: Result) -> Figures:
    roce, fct_ns = result.roce, result.flows.fct_ns
    return {
        "duration_ns": result.duration_ns,
        "completed": result.flows.completed,
        "fct_p50_ns": fct_ns.p50 if fct_ns else None,
        "fct_max_ns": fct_ns.max if fct_ns else None,
        "dropped": result.drops.total,
        "marked": result.ecn.marked_packets,
        "xoff_frames": result.pfc.xoff_frames,
        "paused_ns": result.pfc.paused_ns,
        "data_packets": roce.data_packets,
        "resent": roce.retransmitted_packets,
        "cnps": roce.cnps,
        "timeouts": roce.timeouts,
        "out_of_order": roce.out_of_order_packets,
        "bytes": sum(link.bytes for link in result.links),
        "longest_queue": max(link.max_queue_bytes or 0 for link in result.links),
    }


def _digest(file: Path) -> str:
    return hashlib.sha256(file.read_bytes()).hexdigest()[:16]


def moved(before: Figures, now: Figures) -> list[str]:
    """What differs, a line each."""
    return [
        f"{key}: {before.get(key)} is now {now.get(key)}"
        for key in {**before, **now}
        if before.get(key) != now.get(key)
    ]


def main() -> None:
    """Write them anew, and say what moved."""
    old = json.loads(SNAPSHOTS.read_text()) if SNAPSHOTS.exists() else {}
    new = {name: figures_of(name) for name in cases()}
    for name, figures in new.items():
        for line in moved(old.get(name, {}), figures):
            print(f"{name}: {line}")
    lines = (f"{json.dumps(name)}: {json.dumps(figures)}" for name, figures in new.items())
    SNAPSHOTS.write_text("{\n" + ",\n".join(lines) + "\n}\n")


if __name__ == "__main__":
    main()
