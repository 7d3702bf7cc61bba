"""Any process of a lab, killed or stopped at any moment: a name within seconds, and nothing left.

    python -m tests.lab.kills --runs 500 --seed 1

Each run draws by its own seed what is started (both engines, BGP, a live page, sweeps, programs on
hosts), which process of its tree is hit, when, and by which signal. Then it has to end, with the
right code and a word on what befell it, or to say for whom it waits; who was stopped is let go on
after that, and the run has to end as well. Afterwards there is no process, mount, entry of a
running lab or temporary folder of it.
"""

from __future__ import annotations

import argparse
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from lab.machine.paths import ROOT

TWO = """\
name: two
about: Two hosts.
topology: {kind: leaf-spine, leaves: 2, spines: 1, hosts_per_leaf: 1}
link: {mtu: 1024}
traffic: {kind: incast, receiver: h1, senders: 1, bytes: 2MB}
"""
_WORDS = {  # weight, and the words of a command; SCENARIO, OUT
    "mininet": (6, "run SCENARIO --out OUT --dilation 30000"),
    "bgp": (2, "run SCENARIO --out OUT --dilation 30000 --control bgp"),
    "live": (1, "run SCENARIO --out OUT --dilation 30000 --live"),
    "prompt": (1, "run SCENARIO --out OUT --cli"),
    "exec": (2, "exec all --on SCENARIO -- sleep 4"),
    "sim": (1, "run SCENARIO --out OUT --engine sim --set traffic.bytes=1GB"),
    "sweep": (2, "sweep SCENARIO --out OUT --vary seed=1..6 --set traffic.bytes=8MB --processes 2"),
    "sweep-mininet": (1, "sweep SCENARIO --out OUT --vary seed=1..2 --engine mininet"),
    "dask": (1, "sweep SCENARIO --out OUT --vary seed=1..6 --on dask --processes 2"),
}
SIGNALS = [signal.SIGKILL, signal.SIGSTOP, signal.SIGTERM, signal.SIGHUP]
_SPAN_S = 14.0  # of a start, in which somebody is hit
_WORD_S, _END_S = 20.0, 150.0  # generous: other runs share the machine
_TOKEN = "CLOSLAB_KILLS"


@dataclass(frozen=True)
class Found:
    """What came of one."""

    what: str
    wrong: str | None


def one(seed: int, kinds: list[str], within_s: float = _SPAN_S) -> Found:
    """Start something, hit a process of it, and look what comes of it."""
    draw = random.Random(seed)
    kind = draw.choices(kinds, [_WORDS[kind][0] for kind in kinds])[0]
    number = draw.choice(SIGNALS)
    after_s, place = draw.random() ** 0.7 * within_s, draw.random()
    mounts = Path("/proc/self/mounts").read_text()
    with tempfile.TemporaryDirectory(prefix="kills-") as made:
        here = Path(made)
        (here / "two.yaml").write_text(TWO)
        for name in ("tmp", "labs"):
            (here / name).mkdir()
        says = (here / "said").open("wb")
        words = (
            _WORDS[kind][1].replace("SCENARIO", f"{here}/two.yaml").replace("OUT", f"{here}/out")
        )
        started = subprocess.Popen(
            [str(Path(sys.executable).with_name("closlab")), *words.split()],
            cwd=ROOT,
            stdin=subprocess.PIPE,
            stdout=says,
            stderr=says,
            env=os.environ
            | {_TOKEN: str(here), "TMPDIR": f"{here}/tmp", "CLOSLAB_RUNNING": f"{here}/labs"},
            start_new_session=True,
        )
        until = time.monotonic() + after_s
        while time.monotonic() < until and started.poll() is None:
            time.sleep(0.02)
        tree = sorted(_tree(started.pid))
        if started.poll() is not None or not tree:
            what, victim = f"{kind}: it was over before", 0
        else:
            victim = tree[int(place * len(tree))]
            what = f"{kind}: {number.name} to {_command(victim)} after {after_s:.1f} s"
            before = (here / "said").stat().st_size
            with suppress(ProcessLookupError):
                os.kill(victim, number)
        wrong = None
        try:
            if victim and number is signal.SIGSTOP:
                wrong = _stopped(started, victim, here / "said", before, kind)
            if kind == "prompt" and started.poll() is None:
                time.sleep(3)
                with suppress(BrokenPipeError):
                    assert started.stdin is not None
                    started.stdin.close()
            wrong = wrong or _ended(started, here / "said", victim, number)
        finally:
            if started.poll() is None:
                for pid in [*_tree(started.pid), *_bearing(str(here))]:
                    with suppress(ProcessLookupError):
                        os.kill(pid, signal.SIGKILL)
                started.wait()
        wrong = wrong or _left(here, mounts)
        if wrong:
            said = (here / "said").read_text(errors="replace")[-1500:]
            wrong = f"{wrong}\n    " + said.replace("\n", "\n    ")
    return Found(what, wrong)


def _stopped(
    started: subprocess.Popen[bytes], victim: int, said: Path, before: int, kind: str
) -> str | None:
    """After a stop it ends, or says for whom it waits; then who was stopped goes on."""
    until = time.monotonic() + _WORD_S
    is_told = False
    while started.poll() is None and time.monotonic() < until and not is_told:
        text = said.read_bytes()[before:]
        is_told = b"was stopped" in text or _state(victim) != "T"
        time.sleep(0.1)
    is_first = victim == started.pid  # its shell tells
    with suppress(ProcessLookupError):
        os.kill(victim, signal.SIGCONT)
    if started.poll() is None and not is_told and not is_first:
        return f"{kind} waits without a word"
    return None


def _ended(
    started: subprocess.Popen[bytes], said: Path, victim: int, number: signal.Signals
) -> str | None:
    """It ends, and the code goes with the words."""
    try:
        code = started.wait(_END_S)
    except subprocess.TimeoutExpired:
        return "it does not end"
    text = said.read_text(errors="replace")
    if "Traceback" in text:
        return f"a traceback (exit code {code})"
    if victim == started.pid and code in (-number, 128 + number, 130):
        return None
    if code < 0:
        return f"its own end was {code}"
    is_named = any(word in text for word in ("closlab:", "Not whole", "taken down", "ended with"))
    if code and not is_named and "not" not in text:
        return f"ended with {code} and no word"
    if number is signal.SIGKILL and "could not keep up" in text and "Once more" not in text:
        return "the machine is blamed"
    return None


def _left(here: Path, mounts: str) -> str | None:
    """What is left, if anything is."""
    until = time.monotonic() + _WORD_S  # who has just begun reads code first
    while (left := [*_bearing(str(here))]) and time.monotonic() < until:
        time.sleep(0.1)
    if left:
        names = ", ".join(map(_command, left))
        for pid in left:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        return f"processes are left: {names}"
    if Path("/proc/self/mounts").read_text() != mounts:
        return "mounts differ"
    folders = [path.name for path in (here / "tmp").iterdir()]
    if folders:
        return f"left in the folder for what is temporary: {', '.join(sorted(folders))}"
    looked = [sys.executable, "-c", "from lab.engines.mininet.running import running; running()"]
    env = os.environ | {"CLOSLAB_RUNNING": f"{here}/labs"}
    subprocess.run(looked, cwd=ROOT, env=env, check=True)
    labs = [path.name for path in (here / "labs").iterdir()]
    return f"labs are left: {labs}" if labs else None


def _tree(pid: int) -> Iterator[int]:
    """A process and all below it."""
    yield pid
    with suppress(OSError):
        for task in Path(f"/proc/{pid}/task").iterdir():
            for child in (task / "children").read_text().split():
                yield from _tree(int(child))


def _bearing(token: str) -> Iterator[int]:
    """Processes that bear a word in their environment."""
    wanted = f"{_TOKEN}={token}".encode()
    for path in Path("/proc").iterdir():
        with suppress(OSError):
            if not path.name.isdecimal() or _state(int(path.name)) == "Z":
                continue
            if wanted in (path / "environ").read_bytes().split(b"\0"):
                yield int(path.name)


def _state(pid: int) -> str:
    with suppress(OSError):
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    return ""


def _command(pid: int) -> str:
    with suppress(OSError):
        return Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode()[:90]
    return "one that is gone"


def main() -> int:
    """Make so many of them; how many went wrong decides the exit code."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--runs", type=int, default=20)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--kinds", default=",".join(_WORDS))
    parser.add_argument("--within", type=float, default=_SPAN_S, help="seconds since the start")
    given = parser.parse_args()
    kinds = given.kinds.split(",")
    if not Path("/usr/lib/frr/bgpd").exists():
        kinds = [kind for kind in kinds if kind != "bgp"]
    counted: Counter[str] = Counter()
    for seed in range(given.seed, given.seed + given.runs):
        found = one(seed, kinds, given.within)
        counted["wrong" if found.wrong else "right"] += 1
        print(f"seed {seed}: {found.what}: {found.wrong or 'right'}", flush=True)
    print(", ".join(f"{count} {how}" for how, count in counted.items()))
    return 1 if counted["wrong"] else 0


if __name__ == "__main__":
    sys.exit(main())
