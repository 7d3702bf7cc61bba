"""Programs of others on a fabric's hosts: on one that runs, or on one that is up for them alone."""

from __future__ import annotations

import signal
import sys
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import field, replace
from pathlib import Path
from typing import TYPE_CHECKING

from lab.engines import RunOptions
from lab.engines.mininet import hands, programs
from lab.engines.mininet.programs import Ended, Task
from lab.engines.mininet.running import RunningLab
from lab.errors import LabError
from lab.machine.paths import writable
from lab.machine.scratch import scratch
from lab.progress import Stages
from lab.results.outcome import SwitchCounts
from lab.runs.emulate import emulate
from lab.runs.mpi import Mpirun, Way
from lab.runs.recording import write_recorded
from lab.runs.run import check
from lab.runs.verbs import VerbsDoor, bytes_of_pair
from lab.scenario.experiment import Experiment
from lab.scenario.faults import Agenda
from lab.scenario.keys import nearest
from lab.scenario.model import Scenario
from params.data import Data
from params.quantity import duration

if TYPE_CHECKING:
    from lab.engines.mininet.engine import EmulatedFabric
    from lab.engines.mininet.nics import NicCounts

_NAMES = "hosts"  # in the folder of a start: what is to be its /etc/hosts
_RECORD = "record"  # what adapters write down


class Ground(Data):
    """A fabric that programs can be started on."""

    pids: Mapping[str, int]  # of hosts, as the sandbox numbers processes
    dilation: float
    enter: Callable[[list[str]], list[str]]  # makes of a command in the sandbox one from here
    plug: Callable[[Sequence[str], int], str]  # gets hosts ready, to send in a class: their names
    tenants: Mapping[str, int] = field(default_factory=dict)  # of hosts with networks of their own
    scenario: Scenario | None = None
    adapters: Path | None = None  # where files of adapters are to outlive a job

    @classmethod
    def of_running(cls, lab: RunningLab) -> Ground:
        """A lab that runs, seen from outside."""

        def plug(names: Sequence[str], priority: int) -> str:
            return hands.ask(lab.folder, f"{hands.PLUG} {','.join(names)} {priority}")

        scenario = Scenario.model_validate(lab.watch["scenario"])
        dilation = float(lab.watch["dilation"])
        tenants = _tenants_of(scenario)
        return cls(lab.hosts, dilation, lab.enter_command, plug, tenants, scenario, lab.adapters)

    @classmethod
    def inside(cls, up: EmulatedFabric) -> Ground:
        """A fabric that is up, seen from within its sandbox."""
        emulation = up.emulation
        dilation = emulation.switches.setting.dilation
        scenario = up.experiment.scenario
        return cls(
            emulation.host_pids(),
            dilation,
            lambda words: words,
            up.hands.nics.plug,
            _tenants_of(scenario),
            scenario,
        )

    def hosts(self, wanted: str | int) -> list[str]:
        """Hosts by name, such as `h1,h2`, or `all`; or the first so many, if there are."""
        known = [*self.pids]
        if isinstance(wanted, int):
            return known[:wanted]
        names = known if wanted == "all" else wanted.split(",")
        for name in names:
            if name not in self.pids:
                raise LabError(
                    f"there is no host '{name}'{nearest(name, known)}",
                    f"There are {', '.join(known)}; 'all' is all of them.",
                )
        if len(set(names)) < len(names):
            raise LabError(f"'{wanted}' names a host twice: a host runs one program at a time")
        return names

    def jobs(self, hosts: Sequence[str]) -> list[list[str]]:
        """Hosts that can reach each other: a tenant's whose network is its own know no others."""
        found: dict[int | None, list[str]] = {}
        for host in hosts:
            found.setdefault(self.tenants.get(host), []).append(host)
        return [*found.values()]


def _tenants_of(scenario: Scenario) -> dict[str, int]:
    return {host.name: tenant for host, tenant in scenario.fabric().tenants.items()}


class Wanted(Data):
    """What is to run, and where."""

    hosts: str | int  # names, or how many
    words: tuple[str, ...]
    priority: int | None = None  # none: the usual one
    stretch: float | None = 1.0  # None: as much as time is dilated
    mpirun: Mpirun | None = None  # the launcher; none: a program a rank, without one
    verbs: VerbsDoor | None = None  # what programs of RDMA find
    ranks: int | None = None  # of one job, several a host if there are more; none: one a host
    record: Path | None = None  # where what those do is written, as a workload

    def tasks(self, ground: Ground, folder: Path) -> list[Task]:
        """The processes to start; a folder keeps what they need."""
        jobs = ground.jobs(ground.hosts(self.hosts))
        stretch = ground.dilation if self.stretch is None else self.stretch
        if self.mpirun is not None or self.ranks is not None:
            jobs = [spread(_of_one_tenant(jobs), self.ranks)]
        if self.mpirun is not None:
            (hosts,) = jobs
            ways = self._ways(ground, hosts, folder)
            started = self.mpirun.words(ways, Counter(hosts), stretch, self.words, folder)
            started = [*ways[hosts[0]].files, *started]
            return [_task(ground, hosts, 0, started, 1.0, folder)]
        adapters = self.verbs.adapters(ground.scenario, self.priority) if self.verbs else None
        tasks = []
        for hosts in jobs:
            for rank, host in enumerate(hosts):
                if self.verbs is None or adapters is None:
                    tasks.append(_task(ground, hosts, rank, self.words, stretch, folder))
                    continue
                together = self.verbs.together(self.words, hosts, rank, folder)
                for words in self.verbs.starts(self.words, hosts, rank):
                    kept = ground.adapters or folder
                    found = self.verbs.found_by(words, host, adapters[host], kept)
                    task = _task(ground, hosts, rank, found, stretch, folder)
                    environment = self.verbs.environment(task.environment, adapters[host], folder)
                    environment |= together | self._recorded(host, folder)
                    tasks.append(replace(task, environment=environment))
        return tasks

    def announced(self, ground: Ground) -> str:
        """What is known before of how long it will take, in words."""
        passes = (
            f"Time passes {ground.dilation:,.0f} times more slowly on the fabric: a millisecond of "
            f"its own takes {duration(ground.dilation * 1e6)} here"
        )
        sent = bytes_of_pair(self.words) if self.verbs and self.words else None
        if self.verbs is None or sent is None:
            return f"{passes}."
        hosts = ground.hosts(self.hosts)
        bps = self.verbs.adapters(ground.scenario, self.priority)[hosts[0]].bps
        takes_ns = sent * max(1, len(hosts) - 1) * 8e9 / bps
        return (
            f"{passes}. {Path(self.words[0]).name} will take at least {duration(takes_ns)}, which "
            f"are {duration(takes_ns * ground.dilation)}; -n says how many messages."
        )

    def _recorded(self, host: str, folder: Path) -> dict[str, str]:
        """What has a host's adapter write down what is done."""
        if self.record is None:
            return {}
        lines = folder / _RECORD / host
        lines.mkdir(parents=True, exist_ok=True)
        return {"CLOSLAB_VERBS_RECORD": str(lines)}

    def _ways(self, ground: Ground, hosts: Sequence[str], folder: Path) -> dict[str, Way]:
        """A launcher's to hosts."""
        names = folder / _NAMES
        if self.verbs is None:
            return {host: Way(ground.pids[host], names) for host in hosts}
        adapters = self.verbs.adapters(ground.scenario, self.priority)
        base = {"CLOSLAB_DILATION": f"{ground.dilation:g}"}
        return {
            host: Way(
                ground.pids[host],
                names,
                self.verbs.found_by((), host, adapters[host], ground.adapters or folder),
                self.verbs.environment(base, adapters[host], folder),
            )
            for host in hosts
        }


def spread(hosts: Sequence[str], ranks: int | None) -> list[str]:
    """The host of each rank: neighbours share one, and none has two ranks more than another."""
    if ranks is None:
        return [*hosts]
    if ranks < len(hosts):
        raise LabError(
            f"{ranks} ranks are asked for, on {len(hosts)} hosts", "Name as many hosts, or fewer."
        )
    return [hosts[rank * len(hosts) // ranks] for rank in range(ranks)]


def _of_one_tenant(jobs: Sequence[Sequence[str]]) -> Sequence[str]:
    hosts, *others = jobs
    if others:
        raise LabError(
            f"{hosts[0]} and {others[0][0]} are of two tenants with networks of their own, "
            "and its ranks could not reach each other",
            f"Name hosts of one tenant, such as --hosts {','.join(hosts)}.",
        )
    return hosts


def _task(
    ground: Ground,
    hosts: Sequence[str],
    rank: int,
    words: Sequence[str],
    stretch: float,
    folder: Path,
) -> Task:
    host = hosts[rank]
    command = programs.on_host(ground.pids[host], host, folder / _NAMES, words)
    environment = programs.environment(hosts, rank, ground.dilation, stretch)
    return Task(host, tuple(ground.enter(command)), environment)


def launch(
    wanted: Wanted, ground: Ground, happen: Callable[[float], float | None] = lambda _s: None
) -> Ended:
    """Run programs to their end."""
    names = ground.plug(ground.hosts(wanted.hosts), wanted.priority or 0)
    if ground.dilation > 1:
        print(wanted.announced(ground), file=sys.stderr)
    with scratch() as folder:
        (folder / _NAMES).write_text(names)
        ended = programs.run(wanted.tasks(ground, folder), happen)
        if wanted.record is not None:
            hosts = [*ground.pids]
            said = write_recorded(folder / _RECORD, hosts, ground.dilation, wanted.record)
            print(said, file=sys.stderr)
        return ended


def ending(ended: Ended, dilation: float) -> str:
    """How long they took, in words."""
    fabric = duration(ended.took_s * 1e9 / dilation)
    took = (
        f"{ended.took_s:.2f} s here, {fabric} of the fabric's time ({dilation:,.0f} times slower)"
    )
    if ended.failed is None:
        return f"It took {took}."
    killed = f" ({signal.Signals(ended.by_signal).name} ended it)" if ended.by_signal else ""
    return f"The program on {ended.failed} ended with {ended.code}{killed}, after {took}."


def launch_on(
    scenario: Scenario, wanted: Wanted, out: Path | None, dilation: int | None, stages: Stages
) -> int:
    """Bring a fabric up for programs alone, faults of its scenario included; the exit code."""
    for fault in scenario.faults:
        if fault.host is not None:
            raise LabError(
                f"faults: {fault.action} is done by the lab's own endpoints, and here are programs "
                f"on {fault.host}",
                "Leave that fault out.",
            )
    with scratch() as folder:
        kept = folder if out is None else writable(out)
        options = RunOptions(out=kept, prompt=True, dilation=dilation)
        check(options)

        def attend(up: EmulatedFabric, experiment: Experiment, _name: str) -> int:
            ended, counted = _attended(wanted, up, experiment)
            stages.console.print(
                ending(ended, up.emulation.switches.setting.dilation),
                counted,
                sep="\n",
                highlight=False,
                soft_wrap=True,
            )
            return ended.code

        return emulate(scenario, options, stages, _nothing_to_conclude, LabError.show, attend)


def _nothing_to_conclude(*_: object) -> int:
    raise AssertionError("programs come to no result")


def _attended(wanted: Wanted, up: EmulatedFabric, experiment: Experiment) -> tuple[Ended, str]:
    from lab.engines.mininet.endpoints import let_happen  # which pulls in Mininet

    emulation, ground = up.emulation, Ground.inside(up)
    agenda = Agenda(experiment.scenario, experiment.fabric)

    def happen(passed_s: float) -> float | None:
        for event in agenda.due(round(passed_s * 1e9 / ground.dilation)):
            let_happen(event, experiment, emulation, {})
        return None if agenda.next_ns is None else agenda.next_ns * ground.dilation / 1e9

    ground.plug(ground.hosts(wanted.hosts), wanted.priority or 0)
    happen(0.0)
    nics, switches = up.hands.nics, emulation.switches
    nics_before, before = nics.counts(), switches.counts()
    ended = launch(wanted, ground, happen)
    after = switches.last_counts()
    met = [counts.since(before[switch]) for switch, counts in after.items()]
    return ended, _met(nics.counts().since(nics_before), met)


def _met(nics: NicCounts, switches: Sequence[SwitchCounts]) -> str:
    """What programs met with on the fabric, in words."""
    ports = [port for counts in switches for port in counts.ports.values()]
    dropped = sum((Counter(counts.dropped) for counts in switches), Counter[str]())
    reasons = ", ".join(f"{reason} {count:,}" for reason, count in sorted(dropped.items()))
    return (
        f"Adapters sent {nics.sent:,} frames, lost {nics.lost:,} of their own, and were told to "
        f"pause {nics.pauses:,} times ({duration(nics.paused_ns)} in all). "
        f"Switches dropped {dropped.total():,}{f' ({reasons})' if reasons else ''}, "
        f"marked {sum(port.marked for port in ports):,}."
    )
