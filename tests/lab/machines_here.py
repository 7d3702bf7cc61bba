"""Network namespaces that pass for machines, joined by a network that delays and loses.

    python -m tests.lab.machines_here '{"machines": 2, "run": ["incast", "--dilation", "4000"]}'

runs a scenario on them, in namespaces of its own, and prints as JSON what came of it and what is
left of it on the machines. Keys besides: `mtu`, `delay_ms` and `loss` of the network, by seed;
`kill`: seconds after which the second machine's part is killed; `interrupt` and `abandon`: after
which who leads is interrupted, or killed; `once`: what is said before that is counted; `clocks`: by
machine, what its monotonic clock is ahead by, in seconds, and the share by which it passes more
quickly (time namespaces, drifting_clock.c); `keeps`: a file of the result's folder, whose text is
handed back.

Each machine is the namespace of a process that sleeps, with one interface, e0. Delays and losses
are a program's, which stands between the machines: not every kernel has netem.
"""

from __future__ import annotations

import heapq
import json
import os
import random
import select
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from itertools import count
from pathlib import Path
from typing import Any

from tests.lab.conftest import CLOSLAB
from tests.veths import unshare
from tests.waiting import LONG_S, SLOWNESS
from topologies.ip import run_ip
from topologies.offload import switch_off_checksum_offload

_MARK = "CLOSLAB_MACHINES_TEST"  # by which processes of a run are known
_SENDING = "Bringing up all parts"  # is over when this is said


def on_machines(machines: int, *run: str, **more: Any) -> dict[str, Any]:
    """What came of a run: code, said, result (if any) and what is left."""
    asked = json.dumps({"machines": machines, "run": run, **more})
    done = subprocess.run(
        [*unshare("--mount", "--pid", "--fork", "--mount-proc", "--kill-child"), sys.executable,
         "-m", "tests.lab.machines_here", asked],
        capture_output=True, text=True, check=False, timeout=LONG_S,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    found: dict[str, Any] = json.loads(done.stdout)
    return found


@contextmanager
def _machine(number: int, mtu: int) -> Iterator[int]:
    """A namespace with an interface, whose other end, u1 for the first, is here."""
    with subprocess.Popen(["unshare", "--net", "sleep", "infinity"]) as holder:
        try:
            own = Path("/proc/self/ns/net").readlink()
            while Path(f"/proc/{holder.pid}/ns/net").readlink() == own:
                time.sleep(0.01)
            far = f"peer name e0 mtu {mtu} netns {holder.pid}"
            run_ip([f"link add u{number} mtu {mtu} type veth {far}", f"link set u{number} up"])
            switch_off_checksum_offload(f"u{number}")
            switch_off_checksum_offload("e0", holder.pid)
            for words in ("link set e0 up", f"addr add 10.9.0.{number}/24 dev e0"):
                subprocess.run([*_in(holder.pid), "ip", *words.split()], check=True)
            yield holder.pid
        finally:
            holder.kill()


def _in(holder: int) -> list[str]:
    return ["nsenter", f"--net=/proc/{holder}/ns/net"]


def network(interfaces: list[str], delay_s: float, loss: float, seed: int) -> None:
    """Carry frames from each interface to all others, late, and not all of them; for ever."""
    luck, order = random.Random(seed), count()
    ends = [socket.socket(socket.AF_PACKET, socket.SOCK_RAW) for _ in interfaces]
    for end, interface in zip(ends, interfaces, strict=True):
        end.setsockopt(socket.SOL_SOCKET, 33, 16 << 20)  # SO_RCVBUFFORCE
        end.bind((interface, 3))
    print("up", flush=True)
    under_way: list[tuple[float, int, bytes, list[socket.socket]]] = []
    while True:
        now = time.monotonic()
        while under_way and under_way[0][0] <= now:
            _, _, frame, others = heapq.heappop(under_way)
            for other in others:
                other.send(frame)
        nap_s = under_way[0][0] - now if under_way else None
        for end in select.select(ends, [], [], nap_s)[0]:
            frame, address = end.recvfrom(1 << 16)
            if address[2] == socket.PACKET_OUTGOING or luck.random() < loss:
                continue
            others = [other for other in ends if other is not end]
            heapq.heappush(under_way, (time.monotonic() + delay_s, next(order), frame, others))


@contextmanager
def _joined(machines: int, asked: dict[str, Any]) -> Iterator[None]:
    interfaces = [f"u{number}" for number in range(1, machines + 1)]
    given = {"delay_s": asked.get("delay_ms", 0) / 1e3, "loss": asked.get("loss", 0.0)}
    if not any(given.values()):
        run_ip(["link add between type bridge", "link set between up"])
        run_ip(f"link set {interface} master between" for interface in interfaces)
        yield
        return
    given |= {"interfaces": interfaces, "seed": asked.get("seed", 1)}
    words = f"from tests.lab.machines_here import network; network(**{given!r})"
    with subprocess.Popen([sys.executable, "-c", words], stdout=subprocess.PIPE) as between:
        assert between.stdout is not None
        assert between.stdout.readline() == b"up\n"
        try:
            yield
        finally:
            between.kill()


def _run(asked: dict[str, Any], holders: list[int], folder: Path) -> dict[str, Any]:
    """Lead a run on these machines, and disturb it if that is asked for."""
    clocks: list[tuple[int, float]] = asked.get("clocks") or [(0, 0.0)] * len(holders)
    machines = [
        {
            "name": f"m{n}",
            "start": [*_in(holder), *_clock(folder, *clock)],
            "closlab": CLOSLAB,
            "address": f"10.9.0.{n}",
        }
        for n, (holder, clock) in enumerate(zip(holders, clocks, strict=True), 1)
    ]
    file, out, said = folder / "machines.yaml", folder / "out", folder / "said"
    file.write_text(json.dumps({"machines": machines}))
    words = [*CLOSLAB, "run", *asked["run"], "--machines", str(file), "--out", str(out)]
    environment = {**os.environ, _MARK: str(folder), "CLOSLAB_RUNNING": str(folder / "running")}
    with said.open("wb") as log:
        leader = subprocess.Popen(words, stdout=log, stderr=log, env=environment)
    with leader:
        _disturb(asked, leader, said)
        code = leader.wait(LONG_S)
    result = out / "result.json"
    return {
        "code": code,
        "said": said.read_text(),
        "result": json.loads(result.read_text()) if result.exists() else None,
        "kept": _text(out / asked["keeps"]) if "keeps" in asked else None,
        "left": _left(holders, folder),
    }


def _text(path: Path) -> str | None:
    return path.read_text() if path.exists() else None


def _clock(folder: Path, ahead_s: int, share: float) -> list[str]:
    """How to start something whose monotonic clock is ahead, and passes more quickly."""
    if not ahead_s and not share:
        return []
    library = folder / "drifting_clock.so"
    if not library.exists():
        source = Path(__file__).with_name("drifting_clock.c")
        subprocess.run(["cc", "-O1", "-shared", "-fPIC", "-o", library, source], check=True)
    since = time.monotonic_ns() + ahead_s * 10**9
    return [
        *("unshare", "--time", "--monotonic", str(ahead_s), "--fork", "--kill-child"),
        *("env", f"LD_PRELOAD={library}", f"CLOSLAB_TESTS_DRIFT={since} {share}"),
    ]


def _disturb(asked: dict[str, Any], leader: subprocess.Popen[bytes], said: Path) -> None:
    signals = {"kill": None, "interrupt": signal.SIGINT, "abandon": signal.SIGKILL}
    how = next((each for each in signals if each in asked), None)
    if how is None:
        return
    awaited = asked.get("once", _SENDING)
    while awaited not in " ".join(said.read_text().split()) and leader.poll() is None:
        time.sleep(0.05)
    time.sleep(asked[how])
    if leader.poll() is not None:
        return
    if number := signals[how]:
        leader.send_signal(number)
        return
    with suppress(OSError, IndexError):  # it is over
        parts = Path(f"/proc/{leader.pid}/task/{leader.pid}/children").read_text().split()
        os.kill(int(parts[1]), signal.SIGKILL)


def _left(holders: list[int], folder: Path) -> list[str]:
    """Interfaces, processes and folders that there should not be, a moment later."""
    until = time.monotonic() + 10 * SLOWNESS
    while (found := _found(holders, folder)) and time.monotonic() < until:
        time.sleep(0.1)
    return found


def _found(holders: list[int], folder: Path) -> list[str]:
    found = [f"{each}" for each in (folder / "running").glob("*")]
    for holder in holders:
        words = [*_in(holder), "ip", "-json", "link"]
        links = json.loads(subprocess.run(words, capture_output=True, check=True).stdout)
        found += [link["ifname"] for link in links if link["ifname"] not in ("lo", "e0")]
    mark = f"{_MARK}={folder}".encode()
    for entry in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            if mark in (entry / "environ").read_bytes():
                found.append((entry / "cmdline").read_bytes().replace(b"\0", b" ").decode()[:80])
    return found


def main() -> None:
    """Do what is asked, and tell."""
    asked = json.loads(sys.argv[1])
    # Shells have what runs beside them deaf to Ctrl-C, and what that starts.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        numbers = range(1, asked["machines"] + 1)
        mtu = asked.get("mtu", 9000)
        holders = [stack.enter_context(_machine(number, mtu)) for number in numbers]
        stack.enter_context(_joined(asked["machines"], asked))
        print(json.dumps(_run(asked, holders, folder)))


if __name__ == "__main__":
    main()
