"""Whether a run says so when what it ran on was late: hosts, and switches as well."""

import json
import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from lab.engines.mininet.engine import usual_dilation
from lab.engines.mininet.switches.soft import SoftSwitches
from lab.results.watch import Watch, but_for
from lab.scenario import catalogue
from lab.scenario.experiment import Experiment
from tests.lab.conftest import CLOSLAB
from tests.waiting import LONG_S
from topologies import leaf_spine

# What stands still may lose frames: who sends them again does not wait as long as NCCL does.
CHANGES = (
    "topology={kind: leaf-spine, leaves: 2, spines: 1, hosts_per_leaf: 2}",
    *("traffic={kind: incast, senders: 3, bytes: 200KB}", "transport.timeout=10"),
)


@pytest.mark.parametrize("seed", range(20))
def test_it_is_the_time_that_few_were_later_than(tmp_path: Path, seed: int) -> None:
    draw = random.Random(seed)
    fabric = leaf_spine(2, 1, 1)
    watch = Watch(fabric, tmp_path / "record.jsonl")
    epoch_ns, share = draw.randrange(10), draw.choice((0.01, 0.1, 0.5))
    lines, counted = [], []
    for at_ns in range(20):
        late = {draw.randrange(2000): draw.randrange(1, 40) for _ in range(draw.randrange(6))}
        if at_ns > epoch_ns:
            counted += [late_ns for late_ns, often in late.items() for _ in range(often)]
        line = {"at_ns": at_ns, "now_ns": 0, "switch": "leaf1", "ports": {}, "counters": {}}
        lines.append(json.dumps({**line, "registers": {}, "lost": {}, "late": late}))
    watch.path.write_text("\n".join(lines) + "\n")
    found = but_for(share, watch.late(epoch_ns))
    assert sum(late_ns > found for late_ns in counted) <= share * len(counted)
    assert sum(late_ns >= found for late_ns in counted) > share * len(counted)


@pytest.mark.parametrize("seed", range(10))
def test_a_record_begun_anew_is_read_whole_and_forgotten_but_for_queues(
    tmp_path: Path, seed: int
) -> None:
    """Whoever reads it, and whenever; what is forgotten is all but the last two rounds."""
    draw = random.Random(seed)
    fabric, path = leaf_spine(2, 1, 1), tmp_path / "record.jsonl"
    watch = Watch(fabric, path)
    kept, longest, is_unread = [], 0, False
    for number in range(1, 300):
        roll = draw.random()
        if roll < 0.1 and not is_unread and path.exists():
            path.replace(tmp_path / "record.jsonl.before")
            path.touch()
            is_unread = True  # once between two looks is all that is kept
        elif roll < 0.3:
            assert sorted(watch.late(0).elements()) == kept
            assert watch.longest_queues().get("leaf1>h1", 0) == longest
            is_unread = False
        elif roll < 0.4:
            watch.forget()
            kept, is_unread = kept[-2 * len(fabric.switches) :], False
        else:
            queued = draw.randrange(1000)
            line = {"at_ns": number, "now_ns": 0, "switch": "leaf1", "counters": {"dropped": {}}}
            line |= {"ports": {"1": [0, 0, 0, 0, queued]}, "registers": {}, "lost": {}}
            with path.open("a") as file:
                file.write(json.dumps({**line, "late": {number: 1}}) + "\n")
            kept.append(number)
            longest = max(longest, queued)


@pytest.mark.mininet
def test_switches_that_seldom_get_their_turn_falsify_a_run(tmp_path: Path) -> None:
    """The process that hosts them stands still most of the time; the hosts do not."""
    running = _run(tmp_path, "--dilation", "1000")
    try:
        switches = _switches_of(running)
        while running.poll() is None:
            for what, lasts_s in ((signal.SIGSTOP, 0.06), (signal.SIGCONT, 0.02)):
                os.kill(switches, what)
                time.sleep(lasts_s)
    except ProcessLookupError:
        pass  # the run is over
    finally:
        said = running.communicate(timeout=LONG_S)[1]
    result = json.loads((tmp_path / "result.json").read_text())
    assert running.returncode == 3, said
    assert not result["fidelity"]["ok"] and "switches were" in result["fidelity"]["note"]
    assert result["fidelity"]["late_p99_ns"] > 2000  # ns of the fabric's


@pytest.mark.mininet
def test_a_run_that_hurried_and_is_not_believed_is_done_again(tmp_path: Path) -> None:
    """Its switches stand still for long, once; the next run's do not."""
    if subprocess.run([sys.executable, "-c", "import os; os.nice(-1)"], check=False).returncode:
        pytest.skip("only who may go before others hurries")
    running = _run(tmp_path, "--set", "int.share=0.5", "--pcap")  # whose cables are laid twice
    try:
        switches = _switches_of(running)
        for _ in range(8):
            os.kill(switches, signal.SIGSTOP)
            time.sleep(0.2)
            os.kill(switches, signal.SIGCONT)
            time.sleep(0.02)
    except ProcessLookupError:
        pass  # the run is over
    finally:
        said = running.communicate(timeout=LONG_S)[1]
    result = json.loads((tmp_path / "result.json").read_text())
    experiment = Experiment.of(catalogue.load("incast", (*CHANGES, "int.share=0.5")))
    usual = usual_dilation(experiment, SoftSwitches)
    if result["dilation"] > usual:
        pytest.skip("on a machine that is slow nothing hurries")
    assert "once more, in slower motion" in said
    assert result["dilation"] == usual
    assert running.returncode in (0, 3), said  # the machine itself may be busy


def _run(out: Path, *words: str) -> "subprocess.Popen[str]":
    changes = [word for change in CHANGES for word in ("--set", change)]
    command = ["run", "incast", "--engine", "mininet", *changes, *words, "--out", str(out)]
    return subprocess.Popen([*CLOSLAB, *command], stderr=subprocess.PIPE, text=True)


def _switches_of(running: "subprocess.Popen[str]") -> int:
    """The process that hosts a run's switches, once hosts begin."""
    assert running.stderr is not None
    for line in running.stderr:
        if "Starting endpoints" in line:
            break
    left = [running.pid]
    while left:
        pid = left.pop()
        if b"switch.host" in Path(f"/proc/{pid}/cmdline").read_bytes():
            return pid
        left += map(int, Path(f"/proc/{pid}/task/{pid}/children").read_text().split())
    raise AssertionError("no process hosts switches")
