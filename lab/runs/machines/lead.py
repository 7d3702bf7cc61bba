"""Who leads a run on several machines: shares the fabric out, agrees on time, collects results.

Time: every machine has a monotonic clock of its own. How far it is from the leader's is asked many
times over the line by which a member is led; the answer that took least is believed, and is wrong
by no more than half of what it took. It is asked right before the hosts begin, when everybody is
told by his own clock when the fabric's time does, and right after they have ended: so the error
that a result states is that of the whole run. Ways between machines are measured by the machines
themselves, where cables cross.
"""

from __future__ import annotations

import math
import os
import queue
import subprocess
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import field
from importlib.metadata import version
from typing import Any

from lab.engines import RunOptions
from lab.engines.mininet.endpoints import HEAD_START_NS, most_late_ns
from lab.engines.mininet.engine import fitting_dilation
from lab.engines.mininet.machines import WRAPPING
from lab.engines.mininet.switches import KINDS
from lab.engines.sim.partition import by_rank, partition
from lab.errors import RunError, refuse_beside
from lab.machine.paths import writing_to
from lab.machine.program import source_in
from lab.machine.speed import slowness
from lab.machine.supervisor import how_ended
from lab.progress import Stages
from lab.results.outcome import INTERRUPTION, MachinesNote, Outcome
from lab.runs.machines.file import Machine
from lab.runs.machines.line import PING_EVERY_S, SILENT_S, Out, parsed, unpacked
from lab.runs.machines.merging import merged
from lab.runs.run import INTERRUPTED, Conclude, proved, with_messages
from lab.scenario.experiment import Experiment
from lab.scenario.model import Scenario
from lab.scenario.traffic import AllPairs
from params.data import Data
from params.quantity import duration
from topologies import Fabric, Link, Node

_PINGS = 40
_ROOM = 2  # times as long a cable is, by the real clock, as the way that is part of it
_ENDS_S = 5.0
_CABLES = 1 << 12  # numbers of one run
_LOOK_S = 0.2


# --- what can be shared ---------------------------------------------------------------------------


def check_shareable(scenario: Scenario, options: RunOptions) -> None:
    """Refuse by name what one machine knows of alone."""
    refuse_beside(
        "several machines (--machines) do not go with {}: each knows its part alone",
        (options.engine != "mininet", f"--engine {options.engine}"),
        (options.switch != "soft", f"--switch {options.switch}"),
        (options.prompt, "--cli"),
        (options.tls, "--tls"),
        (options.p4 is not None, "--p4"),
        (options.reports is not None, "--reports"),
        (scenario.control.kind != "p4runtime", f"control.kind={scenario.control.kind}"),
        (bool(scenario.faults), "faults"),
        (bool(scenario.measures.pcap), "kept packets (--pcap)"),
        (isinstance(scenario.traffic, AllPairs), "traffic in which every host pings every other"),
    )


def shares(fabric: Fabric, names: Sequence[str]) -> dict[str, frozenset[Node]]:
    """What each machine has of a fabric: leaves with their hosts, neighbours together."""
    found, bounds = by_rank(fabric, partition(fabric, 1), len(names))
    parts = {
        name: frozenset(node for node, part in found.items() if first <= part < end)
        for name, first, end in zip(names, bounds, bounds[1:], strict=False)
    }
    for name, nodes in parts.items():
        if not nodes:
            raise RunError(
                f"{len(fabric.switches)} switches are not enough for {len(names)} machines: {name} "
                "would have none",
                "Name fewer machines.",
            )
    whose = {node: name for name, nodes in parts.items() for node in nodes}
    for link in fabric.links:
        if whose[link.a] != whose[link.b] and not link.joins_switches:
            raise RunError(
                f"{link.name} would lead from {whose[link.a]} to {whose[link.b]}, and cables of "
                "hosts do not leave a machine",
                "Choose a fabric whose hosts have one cable each, or --engine sim.",
            )
    return parts


# --- members, as who leads sees them --------------------------------------------------------------


class _Member(Data, frozen=False):
    """A machine's part of the run, over its standard input and output."""

    machine: Machine
    process: subprocess.Popen[bytes]
    out: Out
    heard_at: float = field(default_factory=time.monotonic)
    offset_ns: int = 0  # its monotonic clock less ours,
    error_ns: int = 0  # wrong by no more than that
    drift_ns: tuple[int, int] = (0, 0)  # what that changed by meanwhile, at least and at most
    joined: Mapping[str, Any] = field(default_factory=dict)

    @property
    def name(self) -> str:
        """What it is called."""
        return self.machine.name


class _Fleet:
    """All of them."""

    def __init__(self, caution: Callable[[str], object]) -> None:
        self._caution = caution
        self.members: list[_Member] = []
        self._heard: queue.SimpleQueue[tuple[_Member, str, Any, int]] = queue.SimpleQueue()
        self.ended: str | None = None
        self._silent_s = SILENT_S * slowness()
        self._is_over = threading.Event()
        self._pings = threading.Thread(target=self._ping, name="pings", daemon=True)
        self._pings.start()

    def start(self, machine: Machine) -> None:
        """Start a machine's part."""
        try:
            process = subprocess.Popen(
                machine.words,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                start_new_session=True,  # Ctrl-C is for who leads
            )
        except OSError as error:
            raise RunError(
                f"machine {machine.name}: {machine.words[0]} does not start: {error.strerror}",
                "It is what the file of machines has as start, or as closlab.",
            ) from None
        assert process.stdin is not None
        member = _Member(machine, process, Out(process.stdin.fileno()))
        self.members.append(member)
        threading.Thread(
            target=self._listen, args=(member,), name=machine.name, daemon=True
        ).start()

    def _listen(self, member: _Member) -> None:
        assert member.process.stdout is not None
        for line in member.process.stdout:
            at_ns = time.monotonic_ns()
            member.heard_at = time.monotonic()
            try:
                kind, content = parsed(line)
            except ValueError:
                said = line.decode(errors="replace").strip()
                kind, content = "failed", {"message": f"it says: {said}", "cure": None}
            self._heard.put((member, kind, content, at_ns))
            if kind == "left":
                return  # and is expected to end
        self._heard.put((member, "gone", None, 0))

    def _ping(self) -> None:
        """Whatever we do meanwhile, they hear from us, and we from them."""
        while not self._is_over.wait(PING_EVERY_S):
            self.say("ping", -1)

    def say(self, kind: str, content: object = None) -> None:
        """Tell all of them."""
        for member in [*self.members]:
            self.tell(member, kind, content)

    def tell(self, member: _Member, kind: str, content: object = None) -> None:
        """Tell one of them; of one that is gone we hear."""
        with suppress(OSError):
            member.out.say(kind, content)

    def next(self) -> tuple[_Member, str, Any, int] | None:
        """What one of them says next, if it says something soon; fails if one fails."""
        for member in self.members:
            if member.joined and time.monotonic() - member.heard_at > self._silent_s:
                raise RunError(
                    f"machine {member.name} has not answered for {self._silent_s:.0f} s",
                    "See whether it is up and can be reached; nothing of the run is left there "
                    "once it notices as well.",
                )
        try:
            member, kind, content, at_ns = self._heard.get(timeout=_LOOK_S)
        except queue.Empty:
            return None
        if kind == "failed":
            raise RunError(f"machine {member.name}: {content['message']}", content["cure"])
        if kind == "caution":
            self._caution(f"machine {member.name}: {content}")
            return None
        if kind == "gone":
            code = member.process.wait()
            raise RunError(
                f"machine {member.name}: its part of the run ended{how_ended(code)}, and all "
                "others are ended",
                f"It was started by: {' '.join(member.machine.words)}",
            )
        return member, kind, content, at_ns

    def gather(
        self, kind: str, heard: Callable[[_Member, str, Any], object] = lambda *_: None
    ) -> dict[str, Any]:
        """What each of them says of a kind, once all have; in between others may be heard."""
        found: dict[str, Any] = {}
        while len(found) < len(self.members):
            said = self.next()
            if said is None:
                continue
            member, what, content, _ = said
            if what == kind:
                found[member.name] = content
                if kind == "ended" and content and self.ended is None:
                    self.end(content)
            elif what != "pong":
                heard(member, what, content)
        return found

    def end(self, why: str) -> None:
        """Have it ended early."""
        self.ended = why
        self.say("end", why)

    def ask_clocks(self) -> None:
        """How far each member's clock is from ours, and how well that is known."""
        for member in self.members:
            member.offset_ns, member.error_ns = self._asked(member)

    def ask_clocks_again(self) -> None:
        """The same when it is over: what a clock has drifted by is part of the error."""
        for member in self.members:
            offset_ns, error_ns = self._asked(member)
            moved_ns, unsure_ns = offset_ns - member.offset_ns, error_ns + member.error_ns
            member.drift_ns = moved_ns - unsure_ns, moved_ns + unsure_ns
            member.error_ns = max(member.error_ns, error_ns + abs(moved_ns))

    def _asked(self, member: _Member) -> tuple[int, int]:
        """A clock less ours, and what that is wrong by at most."""
        trips = []
        for number in range(_PINGS):
            asked_ns = time.monotonic_ns()
            self.tell(member, "ping", number)
            while (
                (said := self.next()) is None
                or said[:2] != (member, "pong")
                or (said[2][0] != number)
            ):
                pass
            there_ns, back_ns = said[2][1], said[3]
            trips.append((back_ns - asked_ns, there_ns - (asked_ns + back_ns) // 2))
        took_ns, offset_ns = min(trips)
        return offset_ns, took_ns // 2 + 1

    def close(self) -> None:
        """Let none of them go on."""
        self._is_over.set()
        self._pings.join()  # it writes to what is closed now
        for member in self.members:
            assert member.process.stdin is not None
            with suppress(OSError):
                member.process.stdin.close()
        until = time.monotonic() + _ENDS_S * slowness()
        for member in self.members:
            try:
                member.process.wait(max(0, until - time.monotonic()))
            except subprocess.TimeoutExpired:
                member.process.kill()
                member.process.wait()


@contextmanager
def _fleet(machines: Sequence[Machine], stages: Stages) -> Iterator[_Fleet]:
    fleet = _Fleet(stages.caution)
    try:
        for machine in machines:
            fleet.start(machine)
        yield fleet
    finally:
        fleet.close()


# --- the run --------------------------------------------------------------------------------------


def lead(
    scenario: Scenario,
    options: RunOptions,
    machines: Sequence[Machine],
    stages: Stages,
    conclude: Conclude,
) -> int:
    """Run a scenario that can be shared on several machines; the exit code."""
    try:
        with writing_to(options.out):
            experiment = with_messages(Experiment.of(scenario))
            KINDS[options.switch].configured(experiment.settings, 1)
            with _fleet(machines, stages) as fleet:
                outcome = _Run(experiment, options, machines, stages, fleet).measure()
            return conclude(experiment, proved(experiment, outcome))
    except KeyboardInterrupt:
        stages.console.print("Everything is taken down, on all machines.")
        return INTERRUPTED


class _Run:
    """One run, in the order in which it goes."""

    def __init__(
        self,
        experiment: Experiment,
        options: RunOptions,
        machines: Sequence[Machine],
        stages: Stages,
        fleet: _Fleet,
    ) -> None:
        self._experiment = experiment
        self._options = options
        self._stages = stages
        self._fleet = fleet
        self._parts = shares(experiment.fabric, [machine.name for machine in machines])
        self._whose = {node: name for name, nodes in self._parts.items() for node in nodes}
        self._crossing = [
            link for link in experiment.fabric.links if self._whose[link.a] != self._whose[link.b]
        ]
        self._ways: dict[tuple[str, str], int] = {}  # in real ns, each way's other way the same
        self._dilation = 1

    def measure(self) -> Outcome:
        """All of it, from starting the machines to what they have measured."""
        fleet, stages = self._fleet, self._stages
        with stages("Starting machines") as stage:
            self._join()
            stage.note = f"{len(fleet.members)} of them"
        with stages("Compiling the fabric program"):
            KINDS[self._options.switch].build_program(
                self._options.out,
                source_in(self._options.p4),
                stages.still_waiting,
                self._experiment.program_parts,
            )
        with stages("Agreeing on time") as stage:
            fleet.ask_clocks()
            self._measure_ways()
            self._dilation = self._chosen_dilation()
            clocks = duration(self._clock_error_ns)
            stage.note = f"clocks to {clocks}, ways to {duration(self._longest_ns)}"
        with stages("Bringing up all parts") as stage:
            for member in fleet.members:
                fleet.tell(member, "share", self._share(member.name))
            fleet.gather("ready")
            stage.note = (
                f"{len(self._crossing)} of {len(self._experiment.fabric.links)} cables cross"
            )
        with stages("Sending") as stage:
            stage.note = f"time passes {self._dilation:,} times slower"
            self._send()
        with stages("Collecting what was measured"):
            parts = [unpacked(text) for text in fleet.gather("measured").values()]
            fleet.say("leave")
            fleet.gather("left")
        return merged(self._experiment, parts, self._note(), self._names())

    def _join(self) -> None:
        fleet = self._fleet
        asked = self._experiment.scenario.model_dump(mode="json")
        for member in fleet.members:
            address = member.machine.address
            fleet.tell(
                member,
                "join",
                {
                    "version": version("closlab"),
                    "scenario": asked,
                    "leisure": self._options.leisure,
                    "address": str(address) if address else None,
                },
            )
        joined = fleet.gather("joined")
        for member in fleet.members:
            member.joined = joined[member.name]
        addresses = [member.joined["address"] for member in fleet.members]
        if len({*addresses}) < len(addresses):
            raise RunError(
                f"two machines have one address: {', '.join(addresses)}",
                "Give each its own in the file of machines (address).",
            )

    def _measure_ways(self) -> None:
        peers: dict[str, dict[str, Any]] = {name: {} for name in self._parts}
        places = {m.name: (m.joined["address"], m.joined["port"]) for m in self._fleet.members}
        for link in self._crossing:
            a, b = self._whose[link.a], self._whose[link.b]
            peers[a][b], peers[b][a] = places[b], places[a]
        fits = self._experiment.settings.max_frame + WRAPPING
        for member in self._fleet.members:
            self._fleet.tell(member, "measure", {"peers": peers[member.name], "fits": fits})
        for name, ways in self._fleet.gather("ways").items():
            self._ways |= {(name, peer): way_ns for peer, way_ns in ways.items()}
        for one, other in self._ways:
            least = min(self._ways[one, other], self._ways[other, one])
            self._ways[one, other] = self._ways[other, one] = least

    @property
    def _clock_error_ns(self) -> int:
        """What moments on two machines may be wrong by, each by its own clock."""
        return sum(sorted(member.error_ns for member in self._fleet.members)[-2:])

    @property
    def _longest_ns(self) -> int:
        return max(self._ways.values(), default=0)

    def _way_ns(self, link: Link) -> int:
        return self._ways[self._whose[link.a], self._whose[link.b]]

    def _chosen_dilation(self) -> int:
        """So slow that the ways between machines are no longer than half of the cables they are
        part of, and the clocks' error no more than a packet's time; or as it was asked for."""
        if self._options.dilation:
            return self._options.dilation
        usual = fitting_dilation(
            self._experiment, KINDS[self._options.switch], self._stages, self._options.leisure
        )
        least = [_ROOM * self._needed_dilation(link) for link in self._crossing]
        return max(usual, *least, -(-self._clock_error_ns // most_late_ns(self._experiment)))

    def _needed_dilation(self, link: Link) -> int:
        """How much slower time has to pass for a cable to be as long as the way that it takes."""
        delay_ns = self._experiment.cable(link).delay_ns
        if not delay_ns:
            raise RunError(
                f"{link.name} has no length, and would lead from {self._whose[link.a]} to "
                f"{self._whose[link.b]}, which takes time",
                "Give links a length: --set link.delay_ns=1000.",
            )
        return math.ceil(self._way_ns(link) / delay_ns)

    def _share(self, name: str) -> dict[str, Any]:
        """What a machine is told of its part."""
        first = os.getpid() % _CABLES * _CABLES
        if len(self._crossing) >= _CABLES:
            raise RunError(
                f"{len(self._crossing):,} cables would lead from machine to machine, and "
                f"{_CABLES - 1:,} can",
                "Name fewer machines.",
            )
        address = {m.name: m.joined["address"] for m in self._fleet.members}
        crossings = [
            {
                "node": near.name,
                "port": link.port_of(near),
                "number": first + number,
                "local": address[name],
                "remote": address[self._whose[far]],
                "way_ns": self._way_ns(link) // self._dilation,
            }
            for number, link in enumerate(self._crossing, 1)
            for near, far in ((link.a, link.b), (link.b, link.a))
            if self._whose[near] == name
        ]
        nodes = sorted(node.name for node in self._parts[name])
        return {"dilation": self._dilation, "nodes": nodes, "crossings": crossings}

    def _send(self) -> None:
        """From a common beginning to a common end."""
        fleet = self._fleet
        fleet.ask_clocks()
        epoch_ns = time.monotonic_ns() + round(HEAD_START_NS * slowness())
        for member in fleet.members:
            fleet.tell(member, "begin", epoch_ns + member.offset_ns)
        those: dict[str, set[str]] = {"done": set(), "silent": set()}

        def heard(member: _Member, what: str, content: Any) -> None:
            if what not in those:
                return
            those[what].add(member.name)
            if content is False:
                those[what].discard(member.name)
            if len(those[what]) == len(fleet.members):
                fleet.say(f"all {what}")

        try:
            fleet.gather("ended", heard)
        except KeyboardInterrupt:
            fleet.end(INTERRUPTION)
            fleet.gather("ended", heard)
        fleet.say("all ended", fleet.ended)
        fleet.gather("met")
        fleet.ask_clocks_again()
        fleet.say("all met")

    # --- what came of it ------------------------------------------------------------------

    def _note(self) -> MachinesNote:
        """What a result says of the machines."""
        return MachinesNote(
            switches={
                name: tuple(node.name for node in self._experiment.fabric.switches if node in nodes)
                for name, nodes in self._parts.items()
            },
            crossing=tuple(link.name for link in self._crossing),
            clock_error_ns=self._clock_error_ns / self._dilation,
            way_ns=self._longest_ns / self._dilation,
            longer={
                link.name: way_ns - delay_ns
                for link in self._crossing
                if (way_ns := math.ceil(self._way_ns(link) / self._dilation))
                > (delay_ns := self._experiment.cable(link).delay_ns)
            },
            drift_ns=(
                max(member.drift_ns[0] for member in self._fleet.members)
                - min(member.drift_ns[1] for member in self._fleet.members)
            )
            / self._dilation,
        )

    def _names(self) -> dict[str, str]:
        """What directions of cables between machines are called."""
        return {
            link.direction(near): f"{link.direction(near)} from machine {self._whose[near]} to "
            f"{self._whose[far]}"
            for link in self._crossing
            for near, far in ((link.a, link.b), (link.b, link.a))
        }
