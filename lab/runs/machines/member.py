"""A machine's part of a run: started by who leads it, told what to do line by line.

It begins in the machine's own network, where it opens what it measures ways by, and goes on as the
first process of a sandbox. When nobody leads it any more it ends, and the sandbox with it.
"""

from __future__ import annotations

import os
import queue
import select
import socket
import tempfile
import threading
import time
from contextlib import suppress
from dataclasses import replace
from importlib.metadata import version
from pathlib import Path
from typing import Any, NamedTuple

from rich.console import Console

from lab.engines import RunOptions
from lab.engines.mininet.machines import Crossing, Machines
from lab.engines.mininet.running import Registration
from lab.engines.mininet.sandbox import run_in_sandbox
from lab.errors import LabError, RunError
from lab.machine.scratch import gone_at_our_end
from lab.machine.speed import slowness
from lab.progress import Stages
from lab.runs.emulate import fabric_up
from lab.runs.machines.line import SILENT_S, Out, packed, parsed
from lab.runs.run import check
from lab.scenario.experiment import Experiment
from lab.scenario.model import Scenario
from topologies import TopologyError

_PROBES, _PROBE_S, _ANSWERED = 40, 0.5, 8
_UDP = 20 + 8  # bytes around what a datagram carries
_NO_PACKET_GOES_THERE = "192.0.2.1", 9  # RFC 5737: asked for the address that would send it
_IP_MTU, _IP_MTU_DISCOVER, _IP_PMTUDISC_DO = 14, 10, 2


def member() -> int:
    """Do what who leads says; the exit code."""
    leader = _Leader()
    asked = leader.hear("join")
    try:
        return _join(leader, asked)
    except LabError as error:
        leader.fail(error)
        return 1


def _join(leader: _Leader, asked: dict[str, Any]) -> int:
    if asked["version"] != version("closlab"):
        raise RunError(
            f"it has closlab {version('closlab')}, and who leads has {asked['version']}",
            "Install the same on all machines.",
        )
    scenario = Scenario.model_validate(asked["scenario"])
    options = RunOptions(out=Path(), leisure=asked["leisure"])
    check(options)
    if os.geteuid() != 0:
        raise RunError(
            "cables between machines are made in the machine's own network, which takes root",
            "Start it as root (ssh root@..., or sudo).",
        )
    address = asked["address"] or _own_address()
    ways, probe = (socket.socket(socket.AF_INET, socket.SOCK_DGRAM) for _ in range(2))
    try:
        ways.bind((address, 0))
        probe.bind((address, 0))
    except OSError as error:
        raise RunError(
            f"{address} is no address of this machine: {error.strerror}",
            "Give the one that the other machines reach it by (address).",
        ) from None
    outside = os.open("/proc/self/ns/net", os.O_RDONLY | os.O_CLOEXEC)
    registration = Registration(scenario.name)
    leader.say("joined", {"address": address, "port": ways.getsockname()[1]})
    with gone_at_our_end(registration.folder):
        try:
            return run_in_sandbox(
                lambda: _inside(
                    leader, scenario, options, _Outside(ways, probe, outside), registration
                ),
                registration.announce,
            )
        finally:
            registration.withdraw()


class _Outside(NamedTuple):
    """What a member keeps of the machine's own network."""

    ways: socket.socket  # where others measure the way to here
    probe: socket.socket  # with which it measures ways
    network: int


def _own_address() -> str:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as asked:
        try:
            asked.connect(_NO_PACKET_GOES_THERE)
        except OSError:
            raise RunError(
                "this machine has no route to anywhere, and so no address of its own",
                "Say by which address others reach it (address).",
            ) from None
        return str(asked.getsockname()[0])


def _inside(
    leader: _Leader,
    scenario: Scenario,
    options: RunOptions,
    outside: _Outside,
    registration: Registration,
) -> int:
    tempfile.tempdir = str(registration.folder)
    leader.listen()
    threading.Thread(target=_echo, args=(outside.ways,), name="ways", daemon=True).start()
    try:
        asked = leader.await_("measure")
        ways = {
            peer: _way(outside.probe, peer, (host, port), asked["fits"])
            for peer, (host, port) in asked["peers"].items()
        }
        leader.say("ways", ways)
        how = leader.await_("share")
        experiment = Experiment.of(scenario)
        by_name = {
            node.name: node for node in (*experiment.fabric.switches, *experiment.fabric.hosts)
        }
        crossings = [Crossing(by_name[each.pop("node")], **each) for each in how["crossings"]]
        nodes = frozenset(by_name[name] for name in how["nodes"])
        machines = _Members(nodes, crossings, outside.network, leader)
        options = replace(
            options, out=registration.folder / "out", dilation=how["dilation"], machines=machines
        )
        options.out.mkdir(parents=True)
        stages = _Stages(leader)
        with fabric_up(experiment, options, stages, registration) as up:
            measured = up.measured()
            leader.say("measured", packed(measured))
            leader.await_("leave")
        leader.say("left")
        return 0
    except LabError as error:
        leader.fail(error)
        return 1
    except TopologyError as error:
        leader.fail(RunError(f"the fabric could not be laid out: {error}"))
        return 1


def _echo(ways: socket.socket) -> None:
    """Answer whoever measures the way to here."""
    while True:
        text, whose = ways.recvfrom(1 << 16)
        with suppress(OSError):  # who asked may have gone
            ways.sendto(text[:_ANSWERED], whose)


def _way(probe: socket.socket, peer: str, place: tuple[str, int], fits: int) -> int:
    """How long a packet takes to another machine at least, in real ns; it has to carry so much."""
    probe.settimeout(_PROBE_S)
    probe.connect(place)
    probe.setsockopt(socket.IPPROTO_IP, _IP_MTU_DISCOVER, _IP_PMTUDISC_DO)
    trips = [_trip(probe, number, _ANSWERED) for number in range(_PROBES)]
    answered = [trip for trip in trips if trip is not None]
    if not answered:
        raise RunError(
            f"no packet comes back from {peer} ({place[0]}), where UDP is asked for at "
            f"port {place[1]}",
            "Let UDP pass between the machines; the cables want port 4789.",
        )
    most = probe.getsockopt(socket.IPPROTO_IP, _IP_MTU)
    if most < fits or all(_trip(probe, n, fits - _UDP) is None for n in range(_PROBES)):
        raise RunError(
            f"between the machines, on the way to {peer}, packets of {fits:,} bytes have to pass, "
            f"which its MTU{f' ({most:,})' if most < fits else ''} does not let",
            f"Raise that network's MTU to {fits:,}, or take shorter packets: --set link.mtu=1024.",
        )
    return min(answered) // 2


def _trip(probe: socket.socket, number: int, size: int) -> int | None:
    """There and back, in real ns; None if it does not come back."""
    text = number.to_bytes(4, "big").ljust(size, b"\0")
    began = time.monotonic_ns()
    try:
        probe.send(text)
        while probe.recv(_ANSWERED)[:4] != text[:4]:
            pass
    except OSError:  # too late, or too large
        return None
    return time.monotonic_ns() - began


class _Leader:
    """Who leads the run, over standard input and output, which nobody else reads or writes."""

    def __init__(self) -> None:
        self._in = os.fdopen(os.dup(0), "rb", buffering=0)
        self._out = Out(os.dup(1))
        nothing = os.open(os.devnull, os.O_RDONLY)
        os.dup2(nothing, 0)
        os.close(nothing)
        os.dup2(2, 1)
        self._said: queue.SimpleQueue[tuple[str, Any]] = queue.SimpleQueue()

    def hear(self, wanted: str) -> Any:
        """What it says first; an error if nobody leads who knows what to say."""
        with suppress(ValueError):
            while (said := parsed(self._in.readline()))[0] == "ping":
                pass
            if said[0] == wanted:
                return said[1]
        raise LabError("closlab part is started by closlab run --machines FILE")

    def listen(self) -> None:
        """From now on in a thread; who leads no more ends this process."""
        threading.Thread(target=self._listen, name="leader", daemon=True).start()

    def _listen(self) -> None:
        silent_s = SILENT_S * slowness()
        while select.select([self._in], [], [], silent_s)[0]:
            line = self._in.readline()
            if not line:
                break
            kind, content = parsed(line)
            if kind == "ping":
                self.say("pong", [content, time.monotonic_ns()])
            else:
                self._said.put((kind, content))
        os._exit(1)  # with all that is in the sandbox

    def say(self, kind: str, content: object = None) -> None:
        """Tell it something."""
        with suppress(OSError):  # nobody leads: whoever listens notices
            self._out.say(kind, content)

    def fail(self, error: LabError) -> None:
        """Tell it why nothing comes of this."""
        self.say("failed", {"message": error.message, "cure": error.cure})

    def next(self, *, waits: bool = True) -> tuple[str, Any] | None:
        """What it said next, if it has said anything, or once it has."""
        try:
            return self._said.get(block=waits)
        except queue.Empty:
            return None

    def await_(self, kind: str) -> Any:
        """What it says of a kind; nothing else can come before."""
        said = self.next()
        assert said is not None and said[0] == kind, (said, kind)
        return said[1]


class _Stages(Stages):
    """Stages that nobody sees; what is amiss is told who leads."""

    def __init__(self, leader: _Leader) -> None:
        super().__init__(Console(quiet=True))
        self._leader = leader

    def caution(self, text: str) -> None:
        self._leader.say("caution", text)


class _Members(Machines, frozen=False):
    """All machines, as one of them knows them: through who leads."""

    leader: _Leader
    _ended: str | None = None
    _are_done: bool = False
    _said_done: bool = False
    _are_silent: bool = False
    _said_silent: bool = False

    @property
    def ended(self) -> str | None:
        """As far as is known here."""
        self._hear()
        return self._ended

    def begin(self) -> int:
        """Be ready, and wait for the word."""
        self.leader.say("ready")
        return int(self._until("begin"))

    def are_done(self, *, is_done: bool) -> bool:
        """Tell when those here are, and hear when all are."""
        if is_done and not self._said_done:
            self._said_done = True
            self.leader.say("done")
        self._hear()
        return self._are_done

    def are_silent(self, *, is_silent: bool) -> bool:
        """Tell when that changes here, and hear when it is so of all."""
        if is_silent != self._said_silent:
            self._said_silent = is_silent
            self.leader.say("silent", is_silent)
        self._hear()
        return self._are_silent

    def have_ended(self, why: str | None) -> str | None:
        """Tell it, wait for all, and hear why."""
        self.leader.say("ended", None if why == self._ended else why)
        found: str | None = self._until("all ended")
        return found

    def meet(self) -> None:
        """Wait for all."""
        self.leader.say("met")
        self._until("all met")

    def _until(self, kind: str) -> Any:
        while True:
            said = self.leader.next()
            assert said is not None
            if said[0] == kind:
                return said[1]
            self._take(*said)

    def _hear(self) -> None:
        while said := self.leader.next(waits=False):
            self._take(*said)

    def _take(self, kind: str, content: Any) -> None:
        if kind == "end":
            self._ended = content
        elif kind == "all done":
            self._are_done = True
        elif kind == "all silent":
            self._are_silent = True
