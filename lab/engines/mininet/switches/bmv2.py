"""BMv2: a simple_switch_grpc for each switch.

It takes the same program and the same plans as ours over P4Runtime, with two differences that the
program and the controller know of: its tick is a microsecond of real time, and its queues cannot
stand still, so that the program is compiled with parking (p4src/parking.p4). What P4Runtime has no
words for goes through BMv2's own interface, by simple_switch_CLI: how deep queues are and how fast
they are served, in packets a second, and reading registers.

BMv2 has no links either, what it sends is there at once. So it does not hold the fabric's own
interfaces; a process of ours (cable.p4) does, and passes frames on as late as links make them.

    BMv2 as leaf1 ── leaf1-eth3i ─ veth ─ leaf1-eth3o ── cables ── leaf1-eth3 ─ veth ─ spine1-eth1

What comes while BMv2 gets no turn waits in libpcap's ring at its end of the veth, and what finds it
full is lost. The ring has 2 MB, in slots for the largest frame that the interface can receive:
64 KB as long as it may hand over segments that are still to be cut, 32 slots in all. So the
interface is told not to, and no more than the fabric's largest frame: room for hundreds.
"""

from __future__ import annotations

import dataclasses
import re
import socket
import subprocess
import time
from collections import Counter
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path

from controller import LinkSpec, Settings
from controller.tables import queue_index
from lab.engines.mininet.switches.base import Setting, Switches
from lab.engines.mininet.switches.hosted import Hosted, link_of
from lab.errors import RunError
from lab.machine import program
from lab.machine.patience import Patience, Still
from lab.machine.processes import last_line, stop
from lab.machine.program import BuiltProgram
from lab.machine.speed import slowness
from lab.machine.supervisor import supervisor
from lab.machine.tools import BMV2, BMV2_CLI, bmv2_cli, notifications_at
from lab.results.counts import PAUSE_TOTAL, read_counts
from lab.results.outcome import SwitchCounts
from lab.results.watch import Watch
from lab.scenario.faults import Spoil
from params.classes import CONTROL_PRIORITY, PRIORITIES
from params.link import Replay
from topologies import Link, Node
from topologies.ip import add_veths
from topologies.offload import switch_off_segmentation

_FIRST_THRIFT_PORT = 9090
_FIRST_NOTIFICATION_PORT = 10090
_CPU_PORT = 510
_CLI_S = 30.0
_QUEUE_PACKETS = 1 << 20  # the program's own limits are the limits
_DATA_PRIORITIES = range(CONTROL_PRIORITY)
_HOLD_PORT = 256  # added to a port's number: see p4src/parking.p4
_CABLE = Path(__file__).parent / "cable.p4"
_OTHER_END = 256  # added to a port's number: see cable.p4
_LOOK_S = 0.25  # between two looks at how late the cables are


class Bmv2Switches(Switches):
    """One process for each switch."""

    PACKETS_PER_S = 600
    CONTROL_QUEUE = 0
    REAL_TICK_NS = 1000

    @staticmethod
    def build_program(
        out: Path, source: Path, still: Still, parts: tuple[str, ...]
    ) -> BuiltProgram:
        """Compiled with parking."""
        return program.build_for_bmv2(out, source, still, parts)

    @classmethod
    def configured(cls, settings: Settings, dilation: int) -> Settings:
        """The same as others, if it can be obeyed."""
        schedule = settings.schedule
        if schedule.shares or schedule.shape or schedule.port_limit:
            raise RunError(
                "schedule: BMv2 serves queues strictly and knows no weights or shapers",
                "Use --switch soft, the simulator, or schedule.kind=strict without shape.",
            )
        if settings.link.cbfc or settings.link.llr is not Replay.NONE:
            raise RunError(
                "link: BMv2 cannot hold a queue until it has credits, nor send a frame again",
                "Use --switch soft, the simulator, or link.cbfc=false and link.llr=none.",
            )
        return super().configured(settings, dilation)

    def __init__(self, setting: Setting) -> None:
        super().__init__(setting)
        self._processes: dict[str, subprocess.Popen[bytes]] = {}
        self._cables = Hosted("cables", setting.logs.parent, setting.still)
        self._cables_watch = Watch(setting.fabric, setting.logs / "cables.jsonl")

    def start(self) -> str:
        """Start the processes."""
        self._lay_cables()
        for number, switch in enumerate(self.setting.fabric.switches):
            with self._log(switch.name).open("wb") as log:
                self._processes[switch.name] = subprocess.Popen(
                    self._words(number, switch),
                    stdin=subprocess.DEVNULL,
                    stdout=log,
                    stderr=subprocess.STDOUT,
                    start_new_session=True,  # Ctrl-C at the prompt is not meant for the switches
                )
            supervisor.rely(self._processes[switch.name].pid, f"BMv2 as {switch.name}")
        for target in self.targets:
            patience = Patience(
                [self._processes[target.name].pid],
                tell=partial(self.setting.still, f"BMv2 as {target.name} to listen"),
            )
            while not _listens(target.address):
                if refusal := _refusal(self._log(target.name)):
                    raise RunError(
                        f"this {BMV2} is too old for the lab: {refusal}",
                        "Build a later one, or leave --switch bmv2 out.",
                    )
                self.check()
                if patience.is_over():
                    raise RunError(
                        f"{target.name} does not listen: {last_line(self._log(target.name))}",
                        self.where_they_speak(),
                    )
                time.sleep(0.05)
        compiler = program.P4C if program.has_p4c() else "closlab's compiler"
        return f"{len(self.targets)} of BMv2, program by {compiler}"

    def _words(self, number: int, switch: Node) -> list[str]:
        setting, target = self.setting, self.targets[number]
        links = setting.fabric.ports(switch)
        ports = (
            f"{port}@{_inner(switch, port) if port in links else name}"
            for port, name in setting.interfaces(switch).items()
        )
        return [
            *(BMV2, "--no-p4", "--device-id", str(target.device_id)),
            *(word for port in ports for word in ("-i", port)),
            *("--thrift-port", str(_FIRST_THRIFT_PORT + number)),
            *notifications_at(f"tcp://127.0.0.1:{_FIRST_NOTIFICATION_PORT + number}"),
            *("--log-console", "--log-level", "warn"),
            *("--", "--grpc-server-addr", target.address),
            *("--priority-queues", "8", "--cpu-port", str(_CPU_PORT)),
        ]

    def _lay_cables(self) -> None:
        """Let our process hold the fabric's interfaces, and others lead from there to BMv2."""
        setting = self.setting
        ends = [(switch, port) for switch in self._switches for port in self._ports()[switch.name]]
        if any(port >= _OTHER_END for _, port in ends):
            raise RunError(f"BMv2 switches can have no more than {_OTHER_END - 1} ports here")
        add_veths(((_inner(*end), _outer(*end)) for end in ends), setting.max_frame)
        for end in ends:
            switch_off_segmentation(_inner(*end))
        made = program.build(setting.logs.parent, _CABLE)
        self._cables.start(
            [
                {
                    "name": _cables_of(switch),
                    "device_id": 1,
                    "grpc_address": "127.0.0.1:0",
                    "program": str(made.json),
                    "ports": {port: switch.interface(port) for port in ports}
                    | {port | _OTHER_END: _outer(switch, port) for port in ports},
                    "links": {port: link_of(setting.cable(switch, port)) for port in ports},
                    # BMv2's own lack their ends: it leaves what it has not written yet.
                    **setting.capture(switch, ports),
                }
                for switch in self._switches
                if (ports := self._ports()[switch.name])
            ],
            setting.dilation,
            ("--record", str(self._cables_watch.path), "--record-every", str(_LOOK_S)),
        )

    def furnish(self) -> None:
        """Make queues as deep as may be needed, and as fast as the links."""
        self._tell_all({switch: self._queue_commands(switch) for switch in self._switches})

    def _queue_commands(self, switch: Node) -> Iterator[str]:
        yield f"set_queue_depth {_QUEUE_PACKETS}"
        for port in self.setting.fabric.ports(switch):
            yield from self._pace_commands(port, self.setting.cable(switch, port))

    def _pace_commands(self, port: int, cable: LinkSpec) -> Iterator[str]:
        """A link's rate in packets of full size, never more than it takes; 0 would be no limit."""
        bits = 8 * (self.setting.data_frame + cable.overhead)
        pace = max(1, cable.rate_bps // (bits * self.setting.dilation))
        for priority in _DATA_PRIORITIES:
            yield f"set_queue_rate {pace} {port} {priority}"
        yield f"set_queue_rate {pace} {port | _HOLD_PORT}"

    def set_cable(self, link: Link, cable: LinkSpec, senders: Iterable[Node]) -> None:
        """Tell the cables, and pace the queues before them."""
        ends = self.switch_ends(link, senders)
        for switch, port in ends:
            self._cables.set_link(_cables_of(switch), port, cable)
        self._tell_all({switch: self._pace_commands(port, cable) for switch, port in ends})

    def spoil(self, news: Spoil) -> None:
        """Tell the cables."""
        for switch, port, sends in news.places:
            self._cables.spoil(_cables_of(switch), port, sends, news)

    def restart(self, switch: Node) -> None:
        """Not done here: no process of BMv2's keeps its ports and forgets its tables."""
        raise RunError(
            f"BMv2 as {switch} cannot be started again meanwhile",
            "Use --switch soft or the simulator, or leave out the fault 'restart'.",
        )

    def check(self) -> None:
        """Fail if a process is gone."""
        self._cables.check()
        for name, process in self._processes.items():
            if process.poll() is not None:
                raise RunError(
                    f"BMv2 as {name} ended by itself (exit code {process.returncode}): "
                    + last_line(self._log(name)),
                    f"All it said is in {self._log(name)}",
                )

    def forget(self) -> None:
        """The cables' record as well."""
        super().forget()
        self._cables_watch.forget()

    def late(self, epoch_ns: int) -> Counter[int]:
        """How late the cables were, which want their turns beside BMv2's many threads.

        BMv2 itself does not say.
        """
        return self._cables_watch.late(epoch_ns)

    def where_they_speak(self) -> str:
        """Their logs."""
        return f"All they said is in {self.setting.logs}/"

    def counts(self) -> dict[Node, SwitchCounts]:
        """Every switch's counters; how long queues were held is in registers."""
        self.check()
        counts = read_counts(self.targets, self._ports(), has_registers=False)
        paused = self._paused()
        return {
            switch: dataclasses.replace(
                counts[switch.name],
                ports={
                    port: dataclasses.replace(seen, paused=paused[switch, port])
                    for port, seen in counts[switch.name].ports.items()
                },
            )
            for switch in self._switches
        }

    def _paused(self) -> dict[tuple[Node, int], dict[int, int]]:
        answers = self._tell_all(
            {
                switch: [
                    f"register_read {PAUSE_TOTAL} {queue_index(port, priority)}"
                    for port in self.setting.fabric.ports(switch)
                    for priority in PRIORITIES
                ]
                for switch in self._switches
            }
        )
        ticks = {
            (switch, int(cell)): int(value)
            for switch, answer in answers.items()
            for cell, value in re.findall(rf"{PAUSE_TOTAL}\[(\d+)\]\s*=\s*(\d+)", answer)
        }
        tick_ns = self.REAL_TICK_NS / self.setting.dilation
        return {
            (switch, port): {
                priority: int(ticks[switch, queue_index(port, priority)] * tick_ns)
                for priority in PRIORITIES
                if ticks[switch, queue_index(port, priority)]
            }
            for switch in self._switches
            for port in self.setting.fabric.ports(switch)
        }

    def stop(self) -> None:
        """End the processes."""
        self._cables.stop()
        for process in self._processes.values():
            process.terminate()
        for process in self._processes.values():
            stop(process)

    # --- BMv2's own interface -----------------------------------------------------------------

    @property
    def _switches(self) -> tuple[Node, ...]:
        return self.setting.fabric.switches

    def _log(self, name: str) -> Path:
        return self.setting.logs / f"{name}.log"

    def _tell_all(self, commands: dict[Node, Iterable[str]]) -> dict[Node, str]:
        """Carry out commands on all switches; what they answered."""
        with ThreadPoolExecutor() as pool:
            answers = pool.map(self._tell, commands, commands.values())
            return dict(zip(commands, answers, strict=True))

    def _tell(self, switch: Node, commands: Iterable[str]) -> str:
        port = _FIRST_THRIFT_PORT + self._switches.index(switch)
        answer_s = _CLI_S * slowness()
        words, environment = bmv2_cli(port)
        try:
            done = subprocess.run(
                words,
                env=environment,
                input="\n".join(commands) + "\n",
                capture_output=True,
                text=True,
                timeout=answer_s,
                check=False,
            )
        except subprocess.TimeoutExpired:
            raise RunError(
                f"{switch} did not answer {BMV2_CLI} within {answer_s:.0f} s",
                self.where_they_speak(),
            ) from None
        said = done.stdout + done.stderr
        if done.returncode != 0 or "Invalid" in said or "Error" in said:
            raise RunError(
                f"{BMV2_CLI} could not tell {switch} about its queues: "
                f"{said.strip().splitlines()[-1:]}",
                "closlab needs a BMv2 with its Thrift interface, as the packages have it.",
            )
        return done.stdout


def _refusal(log: Path) -> str:
    """What it says of an option that it does not know; it lives on all the same, and listens to
    nobody."""
    said = log.read_text(errors="replace").splitlines() if log.exists() else []
    return next((line for line in said if line.startswith("unrecognised option")), "")


def _listens(address: str) -> bool:
    host, _, port = address.rpartition(":")
    try:
        socket.create_connection((host, int(port)), timeout=1).close()
    except OSError:
        return False
    return True


def _cables_of(switch: Node) -> str:
    """What the process of the cables calls those at a switch."""
    return f"cables of {switch}"


def _inner(switch: Node, port: int) -> str:
    """The interface that BMv2 holds."""
    return f"{switch.interface(port)}i"


def _outer(switch: Node, port: int) -> str:
    """What it is connected to: a port of the cables."""
    return f"{switch.interface(port)}o"
