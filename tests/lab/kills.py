"""Any process of a lab, killed or stopped at any moment: a name within seconds, and nothing left.

    python -m tests.lab.kills --runs 500 --seed 1

Each run draws by its own seed what is started (both engines, FRR, live pages, sweeps, a cluster of
Dask's, programs on hosts, a first build), which process of it is hit, when, and by which signal:
at a time, from the first millisecond on; or as soon as it is the so manieth that is seen, for most
live no longer than that. Who is hit is drawn by kind, so that the one launcher is as likely as one
of twenty shells.

Then it has to end, with the right code and a word that names who was hit, or to say for whom it
waits; who was stopped is let go on after that, and it has to end as well.

All this is in a room of its own: namespaces in which nobody else is. So what is left there was left
by the run, whatever that believes of itself: processes, mounts, interfaces, files.
"""

from __future__ import annotations

import argparse
import os
import random
import re
import shlex
import shutil
import signal
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import field
from pathlib import Path

from lab.engines.mininet.running import running
from lab.machine.paths import ROOT
from params.data import Data

TWO = """\
name: two
about: Two hosts.
topology: {kind: leaf-spine, leaves: 2, spines: 1, hosts_per_leaf: 1}
link: {mtu: 1024}
traffic: {kind: incast, receiver: h1, senders: 1, bytes: 2MB}
"""
_RUN = "closlab run two.yaml --out out"
_SIM = f"{_RUN} --engine sim --set traffic.bytes=1GB"
_API = """\
import sys, closlab
try:
    run = closlab.run("two.yaml", set={"traffic.bytes": "8MB"}, engine="mininet", out="out")
except closlab.LabError as error:
    sys.exit(str(error))
print(*run.cautions, run.result.fidelity.note, run.result.ended)
sys.exit(run.code)
"""


class Kind(Data):
    """Something that people start."""

    weight: int
    words: str
    lasts_s: float  # about, on a quiet machine
    beside: tuple[str, ...] = ()  # what is started before it, and lasts as long as it does
    is_cold: bool = False  # nothing is built yet
    births: float = 1.7  # of processes, at most about ten to the power of this
    waits_s: float = 0.0  # for those who may come again


KINDS = {
    "mininet": Kind(8, f"{_RUN} --dilation 30000", 9),
    "bgp": Kind(6, f"{_RUN} --dilation 30000 --control bgp", 14, births=2.3),
    "live": Kind(3, f"{_RUN} --dilation 30000 --live", 10),
    "live-sim": Kind(2, f"{_RUN} --engine sim --live --pace 20us/s", 9),
    "prompt": Kind(3, f"{_RUN} --cli", 6),
    "tls": Kind(2, f"{_RUN} --dilation 20000 --tls", 8),
    "scapy": Kind(2, f"{_RUN} --set transport.endpoint=scapy --set traffic.bytes=100KB", 8),
    "cold": Kind(2, f"{_RUN} --dilation 20000", 25, is_cold=True),
    "exec": Kind(4, "closlab exec all --on two.yaml -- sleep 4", 8),
    "exec-one": Kind(1, "closlab exec h1 --on two.yaml -- sh -c 'sleep 3 && sleep 1'", 8),
    "exec-in": Kind(2, "closlab exec all -- sleep 4", 5, ("closlab run two.yaml --cli",)),
    "sim": Kind(3, _SIM, 3),
    "sim-cold": Kind(2, _SIM, 14, is_cold=True),
    "sweep": Kind(
        5, "closlab sweep two.yaml --out out --vary seed=1..6 --set traffic.bytes=99MB"
        " --processes 2", 6,
    ),
    "sweep-mininet": Kind(
        3, "closlab sweep two.yaml --out out --vary seed=1..2 --engine mininet", 14,
    ),
    "dask": Kind(
        5, "closlab sweep two.yaml --out out --vary seed=1..6 --set traffic.bytes=99MB"
        " --on dask --processes 2", 10,
    ),
    "cluster": Kind(
        3, "closlab sweep two.yaml --out out --vary seed=1..6 --set traffic.bytes=99MB"
        " --on tcp://127.0.0.1:8786", 10,
        (
            "dask scheduler --host 127.0.0.1 --port 8786 --no-dashboard",
            "dask worker tcp://127.0.0.1:8786 --nthreads 1 --nworkers 2 --no-dashboard",
        ), waits_s=130,
    ),
    "api": Kind(2, f"python -c {shlex.quote(_API)}", 10),
    "chaos": Kind(2, "closlab chaos --runs 4 --seed 7", 8),
    "chaos-mininet": Kind(2, "closlab chaos --runs 1 --seed 7 --engine mininet", 15),
}  # fmt: skip
SIGNALS = {signal.SIGKILL: 4, signal.SIGSTOP: 3, signal.SIGTERM: 1, signal.SIGHUP: 1}
_HOWS = {"early": 2, "at a time": 4, "at birth": 3}
_BESIDE_FIRST_S = 3.0  # that those have who are started before
_STARTED: set[int] = set()  # whose ends are asked for by who started them
_OVER = "Z", "X", ""  # states of processes
_WORD_S = 20.0  # generous: other runs share the machine
_END_S = 60.0  # beyond what it lasts anyway
_MAX_S = 600.0
_SOON_S = 30.0  # in which one that was killed is told of

_LAST_S = 2.0  # before its end, in which who dies may be missed by nobody: all was measured

# A first try in a hurry may well have failed for that, and says so.
_BLAMES = re.compile(r"(?<!for in a hurry the machine )could not keep up")
_WAITS = "Nothing has come to any host for"
_TELLS = re.compile(
    r"died|killed|SIGKILL|ended with|exit code|was lost|no workers|no lab is running"
    r"|could not lay|could not be set up|no Dask scheduler|did not find|did not start|taken down",
    re.I,
)

# Without these no run is whole. Of others it may be: who waits for its owner's end, FRR's daemon
# that is started again, what is asked about the machine and may stay unknown.
_NEEDED = (
    "sandbox's first",
    "child",
    "endpoint",
    "Mininet's shell",
    "program",
    "room's shell",
    "switches",
)


class Found(Data, frozen=False):
    """What came of one."""

    kind: str
    signal: str
    whom: str
    what: str
    wrong: str | None = None
    is_hit: bool = False
    at: float = 0.0  # by the wall's clock
    took_s: float = 0.0
    code: int | None = None
    said: str = ""


def _files() -> frozenset[str]:
    places = ("/tmp", "/var/tmp", "/dev/shm", "/run", "/run/netns", "/run/lock", "/dev/mqueue")
    return frozenset(str(path) for place in places for path in Path(place).glob("*"))


def _folders(root: Path) -> frozenset[str]:
    found = (folder for folder, _, _ in os.walk(root))
    return frozenset(folder for folder in found if "process_api" not in folder)  # who started us


class Room(Data, frozen=False):
    """What there is when nothing runs."""

    here: Path
    mounts: str = field(default_factory=lambda: Path("/proc/self/mounts").read_text())
    interfaces: list[tuple[int, str]] = field(default_factory=socket.if_nameindex)
    groups: frozenset[str] = field(default_factory=lambda: _folders(Path("/sys/fs/cgroup")))
    memories: str = field(default_factory=lambda: Path("/proc/sysvipc/shm").read_text())
    files: frozenset[str] = field(default_factory=_files)

    def left(self) -> str | None:
        """What a run has left, if anything."""
        waited(lambda: not any(others()), _WORD_S)  # who has just begun reads code first
        if left := list(others()):
            names = ", ".join(f"{_state(pid)} {command(pid)}" for pid in left)
            return f"processes are left: {names}"
        if (mounts := Path("/proc/self/mounts").read_text()) != self.mounts:
            return f"mounts differ: {set(mounts.splitlines()) ^ set(self.mounts.splitlines())}"
        if (interfaces := socket.if_nameindex()) != self.interfaces:
            return f"interfaces are left: {interfaces}"
        if new := _folders(Path("/sys/fs/cgroup")) - self.groups:
            return f"groups of processes are left: {', '.join(new)}"
        if Path("/proc/sysvipc/shm").read_text() != self.memories:
            return "shared memory is left"
        if new := _files() - self.files:
            return f"files are left: {', '.join(sorted(new))}"
        os.environ["CLOSLAB_RUNNING"] = str(self.here / "labs")
        running()  # sweeps away what is nobody's
        labs = [path.name for path in (self.here / "labs").iterdir()]
        return f"labs are left: {labs}" if labs else None


def _environment(here: Path) -> dict[str, str]:
    changed = {"PYTHONPATH": str(ROOT), "CLOSLAB_RUNNING": f"{here}/labs"}
    if (here / "cache").exists():
        changed["XDG_CACHE_HOME"] = str(here / "cache")
    path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    return os.environ | changed | {"PATH": path, "DASK_TEMPORARY_DIRECTORY": str(here)}


# --- one run --------------------------------------------------------------------------------------


def one(seed: int, kinds: list[str]) -> Found:
    """Start something, hit a process of it, and look what comes of it."""
    if os.getpid() != 1:
        raise SystemExit(
            "only in a room of its own: here are others, and all that is left is ended"
        )
    draw = random.Random(seed)
    name = draw.choices(kinds, [KINDS[kind].weight for kind in kinds])[0]
    kind = KINDS[name]
    number = draw.choices([*SIGNALS], [*SIGNALS.values()])[0]
    how = draw.choices([*_HOWS], [*_HOWS.values()])[0]
    here = Path(tempfile.mkdtemp(prefix="kills-"))
    try:
        (here / "two.yaml").write_text(TWO)
        for folder in ("labs", *(["cache"] if kind.is_cold else [])):
            (here / folder).mkdir()
        return _one(draw, name, number, how, Room(here))
    finally:
        shutil.rmtree(here)


def _one(draw: random.Random, name: str, number: signal.Signals, how: str, room: Room) -> Found:
    kind, here = KINDS[name], room.here
    beside = []
    for words in kind.beside:
        beside.append(_start(words, here, "beside"))
        until = time.monotonic() + (_BESIDE_FIRST_S if "dask" in words else _SOON_S)
        while time.monotonic() < until and not any(here.glob("labs/*/lab.json")):
            time.sleep(0.1)
    started = _start(kind.words, here, "said")
    began = time.monotonic()
    victim = _chosen(draw, how, kind, started)
    after_s = time.monotonic() - began
    found = Found(name, number.name, "", f"{name}: it was over before")
    text_before = (here / "said").stat().st_size
    if victim:
        found.is_hit, found.at = True, time.time()
        found.whom = whom(victim, started.pid, [process.pid for process in beside])
        numbers, shown = _numbers(victim), command(victim)
        with suppress(ProcessLookupError):
            os.kill(victim, number)
        found.what = f"{name}: {number.name} to {found.whom} ({shown}) {how} after {after_s:.2f} s"
    hit = time.monotonic()
    try:
        if victim and number is signal.SIGSTOP:
            found.wrong = _stopped(started, victim, numbers, here / "said", text_before, kind)
        if "--cli" in kind.words and started.poll() is None:
            time.sleep(3)
            _close(started)
        found.wrong = found.wrong or _ended(started, here / "said", number, found, kind)
        found.took_s = time.monotonic() - hit
        found.wrong = found.wrong or _ended_beside(beside, kind, here)
        standing = [f"{pid} {_state(pid)} {command(pid)}" for pid in others()]
        found.wrong = found.wrong or room.left()
    finally:
        _clear([started, *beside], room)
    found.said = _said(here, "said")[-6000:]
    if found.wrong and standing:
        found.said += "\nSTANDING\n" + "\n".join(standing)
    if found.wrong and beside:
        found.said += f"\nBESIDE\n{_said(here, 'beside')[-1500:]}"
    return found


def _clear(started: list[subprocess.Popen[bytes]], room: Room) -> None:
    """For those after it."""
    for pid in others():
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
    for process in started:
        process.wait()
    _STARTED.clear()
    _reap()
    for path in _files() - room.files:
        shutil.rmtree(path, ignore_errors=True)
        with suppress(OSError):
            Path(path).unlink()


def _ended_beside(beside: list[subprocess.Popen[bytes]], kind: Kind, here: Path) -> str | None:
    """What was started before it ends when it is told to; what is Dask's is ended."""
    is_ours = "closlab" in "".join(kind.beside)
    for process in reversed(beside):
        _close(process)
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGCONT)
            if not is_ours:
                process.terminate()
        waited(lambda over=process.poll: over() is not None, _SOON_S)
        if process.poll() is None and is_ours:
            return f"{command(process.pid)} does not end"
        with suppress(ProcessLookupError):
            os.killpg(process.pid, 0 if is_ours else signal.SIGKILL)
    if not is_ours and beside:
        for left in Path("/dev/shm").glob("sem.mp-*"):
            left.unlink()
    return "a traceback beside it" if is_ours and "Traceback" in _said(here, "beside") else None


def _start(words: str, here: Path, said: str) -> subprocess.Popen[bytes]:
    with (here / said).open("ab") as says:
        process = subprocess.Popen(
            shlex.split(words),
            cwd=here,
            stdin=subprocess.PIPE,
            stdout=says,
            stderr=says,
            env=_environment(here),
            start_new_session=True,
        )
    _STARTED.add(process.pid)
    return process


def _reap() -> None:
    """Those whose parents are gone are ours, as of any first process; those we started know it."""
    with suppress(ChildProcessError):
        while found := os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT):
            if found.si_pid in _STARTED:
                return
            os.waitpid(found.si_pid, 0)


def _said(here: Path, name: str) -> str:
    return (here / name).read_text(errors="replace") if (here / name).exists() else ""


def _close(process: subprocess.Popen[bytes]) -> None:
    assert process.stdin is not None
    with suppress(BrokenPipeError):
        process.stdin.close()


def _chosen(
    draw: random.Random, how: str, kind: Kind, started: subprocess.Popen[bytes]
) -> int | None:
    """Wait for the moment, and say who is hit; nobody if there is nobody left."""
    early_s, late_s = 10 ** draw.uniform(-3, 0.3), draw.uniform(0, kind.lasts_s)
    nth, first, second = round(10 ** draw.uniform(0, kind.births)), draw.random(), draw.random()
    seen: dict[int, None] = {}
    until = time.monotonic() + (early_s if how == "early" else late_s)
    if how == "at birth":
        until = time.monotonic() + kind.lasts_s * 2
    while time.monotonic() < until and started.poll() is None:
        if how == "at birth":
            for pid in others():
                if pid not in seen:
                    seen[pid] = None
                    if len(seen) == nth:
                        return pid
        time.sleep(0.001 if how == "early" else 0.005)
    if started.poll() is not None:
        return None
    by_kind: dict[str, list[int]] = {}
    for pid in sorted(others()):
        by_kind.setdefault(whom(pid, started.pid, []), []).append(pid)
    if not by_kind:
        return None
    pids = by_kind[sorted(by_kind)[int(first * len(by_kind))]]
    return pids[int(second * len(pids))]


def _stopped(
    started: subprocess.Popen[bytes],
    victim: int,
    numbers: list[str],
    said: Path,
    before: int,
    kind: Kind,
) -> str | None:
    """After a stop it ends, or says for whom it waits; then who was stopped goes on."""
    word = re.compile(
        rf"process ({'|'.join(numbers)}) was stopped"
        "|still waiting for (the (lab|Dask scheduler)|Dask's worker)"
    )

    def is_announced() -> bool:
        return bool(word.search(said.read_bytes()[before:].decode(errors="replace")))

    def is_over() -> bool:
        return started.poll() is not None or is_announced() or _state(victim) != "T"

    # Of the first its shell tells.
    waited(is_over, 2 if victim == started.pid else _WORD_S)
    if "--cli" in kind.words and started.poll() is None:
        _close(started)
    if victim != started.pid and not is_over():  # it may go on without that one
        waited(is_over, kind.lasts_s * 2 + _END_S)
        if not is_over():
            with suppress(ProcessLookupError):
                os.kill(victim, signal.SIGCONT)
            return "it waits without a word"
    if started.poll() is None:  # else what is left is left as it stands
        with suppress(ProcessLookupError):
            os.kill(victim, signal.SIGCONT)
    return None


def _end(started: subprocess.Popen[bytes], said: Path, kind: Kind) -> float:
    """Wait for its end; one that says for what it waits is ended as it says."""
    took_s = waited(lambda: started.poll() is not None, kind.lasts_s * 3 + _END_S + kind.waits_s)
    if started.poll() is None and _WAITS in said.read_text(errors="replace"):
        started.send_signal(signal.SIGINT)
        waited(lambda: started.poll() is not None, _END_S)
    return took_s


def _ended(
    started: subprocess.Popen[bytes],
    said: Path,
    number: signal.Signals,
    found: Found,
    kind: Kind,
) -> str | None:
    """It ends, and the code goes with the words."""
    took_s = _end(started, said, kind)
    code = found.code = started.poll()
    if code is None:
        return "it does not end"
    text = said.read_text(errors="replace")
    if not _is_excused(found, text) and ("Traceback" in text or "Exception ignored" in text):
        return f"a traceback (exit code {code})"
    if found.whom == "the first" and code in (-number, 128 + number, 130):
        return None
    if code < 0:
        return f"its own end was {code}"
    if not found.is_hit:
        return None if code in (0, 3, 4) else f"nobody was hit, and it ended with {code}"
    lines = [line for line in text.splitlines() if not line.startswith("✓")]
    if code and not any(re.search(r"[a-z]{3}", line) for line in lines):
        return f"ended with {code} and no word"
    if number is signal.SIGKILL:
        if code and took_s > _SOON_S + kind.lasts_s + kind.waits_s:
            return f"it took {took_s:.0f} s to end with {code}"
        if _BLAMES.search(text) and "Once more" not in text:
            return "the machine is blamed"
        if code and not _TELLS.search(text):
            return f"ended with {code}, and who was killed is not told"
        was_last = took_s <= _LAST_S or _kept_soon(said.parent, found.at)
        if code == 0 and found.whom in _NEEDED and not was_last:
            return "all is well, it says"
    return None


def _is_excused(found: Found, text: str) -> bool:
    """Python's tracker, anew, complains of what it has not seen; a script was told to end."""
    is_anew = found.whom == "tracker" or "process died unexpectedly, relaunching" in text
    return is_anew or (found.kind == "api" and text.rstrip().endswith("\nKeyboardInterrupt"))


def _kept_soon(here: Path, at: float) -> bool:
    """Whether a run of several was over within moments of it: then all of that was measured."""
    ends = (file.stat().st_mtime for file in here.glob("out/*/result.json"))
    return any(at <= end <= at + _LAST_S for end in ends)


def waited(is_so: Callable[[], bool], most_s: float) -> float:
    """Wait for something, as long as somebody is at work or at most so many seconds more: how many.

    The machine is others' too: who wants a processor and has none is not who waits for ever.
    """
    idle_s, last = 0.0, time.monotonic()
    until = last + _MAX_S
    while not is_so() and idle_s < most_s and last < until:
        time.sleep(0.05)
        now = time.monotonic()
        _reap()
        if not any(_state(pid) in ("R", "D") for pid in others()):
            idle_s += now - last
        last = now
    return idle_s


# --- who is who -----------------------------------------------------------------------------------


def others() -> Iterator[int]:
    """All processes in the room but this one, and those that are over."""
    assert os.getpid() == 1  # else they are not ours
    for path in Path("/proc").iterdir():
        if path.name.isdecimal() and path.name != "1" and _state(int(path.name)) not in _OVER:
            yield int(path.name)


_WHO = (  # by what stands in their command line
    (r'trap "" HUP', "helper"),
    (r"for each in 0 0 1", "helper"),
    (r"mininet:[a-z]+\d", "Mininet's shell"),
    (r"switch\.host", "switches"),
    (r"scapy_host|/host-[0-9a-f]+", "endpoint"),
    (r"/nic-[0-9a-f]+", "adapter"),
    (r"/zebra ", "zebra"),
    (r"/bgpd ", "bgpd"),
    (r"/bfdd ", "bfdd"),
    (r"^unshare --net --mount sh|^sh $", "room's shell"),
    (r"views\.live\.attend", "page"),
    (r"lab\.runs\.child", "child"),
    (r"in_process", "child"),
    (r"resource_tracker", "tracker"),
    (r"spawn_main|multiprocessing", "worker"),
    (r"dask[ -]scheduler", "scheduler"),
    (r"dask[ -]worker", "Dask's worker"),
    (r"(^|/)(cc|gcc|cc1|as|ld|collect2|clang)\b", "compiler"),
    (r"sleep [134]", "program"),
)


def whom(pid: int, first: int, beside: list[int]) -> str:
    """What kind of process it is."""
    if pid == first:
        return "the first"
    if pid in beside:
        return "beside"
    numbers = _numbers(pid)
    if len(numbers) > 1 and numbers[-1] == "1":
        return "sandbox's first"
    words = command(pid, 1000)
    if words and words == command(_parent(pid), 1000):
        return "one that begins"  # it is to be another program
    if "/closlab" in words.split(" -")[0]:
        return "closlab"
    for pattern, name in _WHO:
        if re.search(pattern, words):
            return name
    return Path(words.split(" ")[0]).name or "one that begins"


def _state(pid: int) -> str:
    with suppress(OSError):
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    return ""


def _parent(pid: int) -> int:
    with suppress(OSError):
        return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])
    return 0


def _numbers(pid: int) -> list[str]:
    """Its numbers, in each namespace from here inwards."""
    with suppress(OSError):
        for line in Path(f"/proc/{pid}/status").read_text().splitlines():
            if line.startswith("NSpid:"):
                return line.split()[1:]
    return [str(pid)]


def command(pid: int, most: int = 90) -> str:
    """Its words."""
    with suppress(OSError):
        words = Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode()
        return " ".join(words.split("\n"))[:most]
    return "one that is gone"


# --- all of them ----------------------------------------------------------------------------------


def to_a_room(words: list[str]) -> None:
    """Begin once more, where nobody else is."""
    apart = ["unshare", "--mount", "--net", "--ipc", "--pid", "--fork", "--kill-child"]
    user = ["--map-root-user"] if os.geteuid() else []
    empty = "for each in /tmp /var/tmp /dev/shm; do mount -t tmpfs none $each; done"
    furnished = f'mount -t proc proc /proc && {empty} && ip link set lo up && exec "$0" "$@"'
    again = [sys.executable, "-m", "tests.lab.kills", "--here", *words]
    os.environ.pop("TMPDIR", None)
    os.chdir(ROOT)
    os.execvp(apart[0], [*apart, *user, "sh", "-c", furnished, *again])


def main() -> int:
    """Make so many of them; how many went wrong decides the exit code."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--runs", type=int, default=20, help="in which somebody is hit")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--kinds", default=",".join(KINDS))
    parser.add_argument("--verbose", action="store_true")
    parser.add_argument("--here", action="store_true", help="in a room already")
    given = parser.parse_args()
    if not given.here:
        to_a_room(sys.argv[1:])
    # What is started in the background by a shell hears no interrupts, nor does what it starts.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    kinds = given.kinds.split(",")
    if not Path("/usr/lib/frr/bgpd").exists():
        kinds = [kind for kind in kinds if kind != "bgp"]
    hits: list[Found] = []
    seed = given.seed
    while len(hits) < given.runs:
        found = one(seed, kinds)
        if found.is_hit:
            hits.append(found)
        words = f"{found.wrong or 'right'} (code {found.code}, {found.took_s:.1f} s)"
        print(f"seed {seed}: {found.what}: {words}", flush=True)
        if found.wrong or given.verbose:
            print("    " + found.said.replace("\n", "\n    "), flush=True)
        seed += 1
    wrong = sum(found.wrong is not None for found in hits)
    counted = Counter((found.kind, found.whom, found.signal) for found in hits)
    for (kind, who, number), count in sorted(counted.items()):
        print(f"{count:4} {kind:14} {who:24} {number}")
    ends = [found.took_s for found in hits if found.code and found.signal == "SIGKILL"]
    if ends:
        print(f"killed and told: over in {statistics.median(ends):.1f} s, at most {max(ends):.1f}")
    print(f"{len(hits) - wrong} right, {wrong} wrong")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
