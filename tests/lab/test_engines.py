"""What is true of one engine is true of both: brought up, they measure and hand back an outcome."""

import io
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from lab.engines import ENGINES, RunOptions
from lab.engines.mininet.sandbox import run_in_sandbox
from lab.machine.paths import ROOT
from lab.machine.tools import require_emulation
from lab.progress import Stages
from lab.runs.run import outcome_of
from lab.scenario import catalogue
from lab.scenario.experiment import Experiment
from traffic.collectives import NEVER

pytestmark = pytest.mark.mininet
CHANGES = (
    "topology={kind: leaf-spine, leaves: 2, spines: 1, hosts_per_leaf: 2}",
    *("traffic={kind: incast, senders: 3, bytes: 100KB}", "seed=7"),
)


@pytest.fixture(scope="module")
def outcomes(tmp_path_factory: pytest.TempPathFactory) -> dict[str, dict[str, Any]]:
    """What each engine's outcome says, asked in a process of its own, which enters a sandbox."""
    found = {}
    for engine in ENGINES:
        out = tmp_path_factory.mktemp(engine)
        words = [sys.executable, "-m", __name__, engine, str(out)]
        done = subprocess.run(words, cwd=ROOT, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        found[engine] = json.loads((out / "told.json").read_text())
    return found


def _tell(engine: str, out: Path) -> int:
    experiment = Experiment.of(catalogue.load("incast", CHANGES))
    stages = Stages(Console(file=io.StringIO()))
    outcome = outcome_of(experiment, RunOptions(out=out, engine=engine), stages)
    times = zip(outcome.timeline.start_ns, outcome.timeline.end_ns, strict=True)
    content = {
        "ended": outcome.ended,
        "transfers": [bool(0 <= start < end != NEVER) for start, end in times],
        "switches": sorted(switch.name for switch in outcome.switches),
        "ports": sorted({port for counts in outcome.switches.values() for port in counts.ports}),
        "sent": {h.name: c["tx_data_packets"] for h, c in outcome.endpoints.items()},
        "dropped": {s.name: dict(counts.dropped) for s, counts in outcome.switches.items()},
        "is noted": bool(outcome.notes),
    }
    (out / "told.json").write_text(json.dumps(content))
    return 0


def test_both_say_the_same_of_what_no_clock_decides(outcomes: dict[str, dict[str, Any]]) -> None:
    sim, mininet = outcomes["sim"], outcomes["mininet"]
    assert sim["ended"] is None and all(sim["transfers"]) and len(sim["transfers"]) == 3
    assert sim["is noted"] and not any(sim["dropped"].values())
    assert sum(sim["sent"].values()) == 3 * -(-100_000 // 4096)
    assert sim == mininet


if __name__ == "__main__":
    require_emulation()
    sys.exit(run_in_sandbox(lambda: _tell(sys.argv[1], Path(sys.argv[2])), lambda _: None))
