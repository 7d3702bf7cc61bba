"""What a tester's ports are on: a scenario's fabric, or a single cable, up while somebody wants it.

To make a sandbox takes a process out of the machine's network for good, so it is made by one of its
own: it is told what to bring up in a line of JSON, says "up" and where when that is done, and takes
everything down when its input ends, which it does whenever who asked is gone.
"""

from __future__ import annotations

import json
import os
import select
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext, suppress
from pathlib import Path
from typing import Any

from rich.console import Console

from doors.tester.site import WIRE, Place, of_lab, of_wire
from lab.engines import RunOptions
from lab.engines.mininet.running import running
from lab.engines.mininet.sandbox import run_in_sandbox
from lab.errors import LabError, RunError
from lab.machine.paths import ROOT
from lab.machine.processes import die_with_parent
from lab.machine.supervisor import supervisor
from lab.progress import Stages
from lab.runs.emulate import emulate
from lab.runs.run import INTERRUPTED, check
from lab.scenario.model import Scenario

_LOOK_S = 0.2
_ENDS_S = 60.0


class Ground:
    """One that is up."""

    def __init__(self, process: subprocess.Popen[bytes], places: dict[str, Place]) -> None:
        self._process = process
        self.places = places

    @property
    def is_over(self) -> bool:
        """Whether it has ended, for whatever reason."""
        return self._process.poll() is not None


@contextmanager
def scenario_up(scenario: Scenario, switch: str, dilation: int | None) -> Iterator[Ground]:
    """A scenario's fabric, with nobody sending."""
    asked = {
        "scenario": scenario.model_dump(mode="json"),
        "switch": switch,
        "dilation": dilation,
    }
    with _up(asked) as (process, name):
        (lab,) = (each for each in running() if each.name == name)
        yield Ground(process, of_lab(lab))


@contextmanager
def wire_up(names: tuple[str, str], bps: int) -> Iterator[Ground]:
    """A cable with two ends, in real time."""
    with _up({"wire": True}) as (process, pid):
        user = [] if os.geteuid() == 0 else ["--user", "--preserve-credentials"]
        enter = ("nsenter", f"--target={pid}", *user, "--net", "--mount", "--pid", "--")
        yield Ground(process, of_wire(names, enter, bps))


@contextmanager
def _up(asked: dict[str, Any]) -> Iterator[tuple[subprocess.Popen[bytes], str]]:
    path = os.pathsep.join(filter(None, (str(ROOT), os.environ.get("PYTHONPATH"))))
    process = subprocess.Popen(
        [sys.executable, "-m", "doors.tester.testbed"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        start_new_session=True,  # Ctrl-C is the server's
        env={**os.environ, "PYTHONPATH": path},
    )
    assert process.stdin is not None and process.stdout is not None
    try:
        process.stdin.write(json.dumps({**asked, "parent": os.getpid()}).encode() + b"\n")
        process.stdin.flush()
        word, _, name = process.stdout.readline().decode().strip().partition(" ")
        if word != "up":
            raise RunError("the fabric did not come up", "What is wrong is told above.")
        yield process, name
    finally:
        with suppress(OSError):
            process.stdin.close()
        try:
            process.wait(_ENDS_S)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        process.stdout.close()


# --- the other side -----------------------------------------------------------------------------


def main() -> int:
    """Bring up what is asked for, and hold it."""
    die_with_parent()
    asked = json.loads(sys.stdin.buffer.readline())
    if os.getppid() != asked["parent"]:
        return INTERRUPTED
    said = os.dup(1)
    os.dup2(2, 1)
    try:
        return _wire(said) if "wire" in asked else _fabric(asked, said)
    except LabError as error:
        error.show()
        return 1


def _fabric(asked: dict[str, Any], said: int) -> int:
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder)
        options = RunOptions(
            out=out, switch=asked["switch"], prompt=True, dilation=asked["dilation"]
        )
        check(options)
        return emulate(
            Scenario.model_validate(asked["scenario"]),
            options,
            Stages(Console(stderr=True)),
            lambda _experiment, _outcome: 0,
            LabError.show,
            lambda _up, _experiment, name: _hold(said, name),
            lambda _name: nullcontext(),
        )


def _wire(said: int) -> int:
    ours, its = os.pipe()

    def lay() -> int:
        pid = os.read(ours, 16).decode()
        for scope in ("all", "default"):  # nobody asks for routers here
            with suppress(FileNotFoundError):
                Path(f"/proc/sys/net/ipv6/conf/{scope}/disable_ipv6").write_text("1")
        words: Sequence[Sequence[str]] = (
            ("link", "add", WIRE[0], "mtu", "9216", "type", "veth", "peer", "name", WIRE[1],
             "mtu", "9216"),
            *(("link", "set", "dev", end, "arp", "off", "up") for end in WIRE),
        )  # fmt: skip
        for each in words:
            done = subprocess.run(["ip", *each], capture_output=True, text=True, check=False)
            if done.returncode:
                LabError(f"the cable could not be laid: {done.stderr.strip()}").show()
                return 1
        return _hold(said, pid)

    def announce(pid: int) -> None:
        os.write(its, str(pid).encode())

    return run_in_sandbox(lay, announce)


def _hold(said: int, name: str) -> int:
    """Until nobody wants it any more, or something it relies on has died."""
    os.write(said, f"up {name}\n".encode())
    while not select.select([0], [], [], _LOOK_S)[0]:
        if supervisor.befallen:
            return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
