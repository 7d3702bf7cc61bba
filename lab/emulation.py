"""The Mininet engine: a fabric of namespaces, veths and switches, up for as long as it is needed.

Everything here runs inside a capsule (see lab.capsule), so nothing has to be undone on failure;
an orderly stop is still made, because a user may be watching.
"""

from __future__ import annotations

import json
import os
import select
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

from mininet.log import setLogLevel
from mininet.net import Mininet

from controller import ControllerError, LinkSpec, Settings, Target, install, plans_of
from lab.counts import read_counts
from lab.errors import RunError
from lab.outcome import SwitchCounts
from lab.program import BuiltProgram
from lab.settings import HEADERS_BYTES
from topologies import Fabric, Node
from topologies.mininet_topo import build_network
from traffic import HostPlan, HostReport

_FIRST_GRPC_PORT = 50051
_SWITCH_START_S = 30.0
_HOST_READY_S = 20.0
_STOP_S = 3.0
_UNLIMITED_PACKETS, _UNLIMITED_BYTES = 1 << 20, 1 << 30  # the program's own limits are the limits


@dataclass(frozen=True, slots=True)
class PingResult:
    """Which ordered pairs of hosts answered a ping."""

    answered: frozenset[tuple[Node, Node]]
    silent: frozenset[tuple[Node, Node]]


class Emulation:
    """A fabric that is up."""

    def __init__(
        self, fabric: Fabric, program: BuiltProgram, out: Path, settings: Settings
    ) -> None:
        self.fabric = fabric
        self._settings = settings
        self._out = out
        self._network: Mininet | None = None
        self._switches: subprocess.Popen[str] | None = None
        self._logs = out / "logs"
        self._logs.mkdir(parents=True, exist_ok=True)
        self.targets = tuple(
            Target(
                name=switch.name,
                address=f"127.0.0.1:{_FIRST_GRPC_PORT + index}",
                device_id=index + 1,
                p4info=program.p4info,
                program=program.json,
            )
            for index, switch in enumerate(fabric.switches)
        )

    # --- bringing up ----------------------------------------------------------------------

    def lay_cables(self, path_mtu: int) -> None:
        """Make the hosts' namespaces and all links."""
        setLogLevel("critical")  # Mininet complains about limits no capsule may set; errors raise
        self._network = build_network(self.fabric, path_mtu + HEADERS_BYTES)

    def start_switches(
        self,
        pcaps: Path | None = None,
        *,
        cable: Callable[[Node, int], LinkSpec] | None = None,
        dilation: int = 1,
    ) -> None:
        """Start the process that hosts all switches, and wait until each of them listens.

        Given a folder, they record what each of their ports receives and sends. Given what is at
        the end of each port, they send no faster than that, in a time that is dilated.
        """
        if pcaps is not None:
            pcaps.mkdir(exist_ok=True)
        config = self._out / "switches.json"
        config.write_text(
            json.dumps(
                [
                    {
                        "name": target.name,
                        "device_id": target.device_id,
                        "grpc_address": target.address,
                        "ports": {
                            port: switch.interface(port) for port in self.fabric.ports(switch)
                        },
                        "links": {
                            port: _link(cable(switch, port)) for port in self.fabric.ports(switch)
                        }
                        if cable
                        else {},
                        "pcap": str(pcaps) if pcaps else None,
                    }
                    for target, switch in zip(self.targets, self.fabric.switches, strict=True)
                ],
                indent=1,
            )
        )
        log = (self._logs / "switches.log").open("w")
        self._switches = subprocess.Popen(
            [sys.executable, "-m", "switch.host", str(config), "--dilation", str(dilation)],
            stdout=subprocess.PIPE,
            stderr=log,
            text=True,
            start_new_session=True,  # Ctrl-C at the prompt is not meant for the switches
        )
        assert self._switches.stdout is not None
        if _line_of(self._switches.stdout, _SWITCH_START_S) != "ready":
            raise RunError(
                "the switches did not start: " + _last_line(self._logs / "switches.log"),
                f"All they said is in {self._logs / 'switches.log'}",
            )

    def install_routes(self, done: Callable[[str], None]) -> None:
        """Give every switch its program and its plan."""
        try:
            install(self.targets, plans_of(self.fabric, self._settings), done)
        except ControllerError as error:
            self.check_switches()
            raise RunError(
                str(error), f"All they said is in {self._logs / 'switches.log'}"
            ) from None

    # --- using it -------------------------------------------------------------------------

    @property
    def network(self) -> Mininet:
        """The Mininet network, once its cables are laid."""
        assert self._network is not None
        return self._network

    def host_pids(self) -> dict[str, int]:
        """The process that holds each host's namespace, as seen inside the capsule."""
        return {host.name: self.network.get(host.name).pid for host in self.fabric.hosts}

    def ping_all(self) -> PingResult:
        """Let every host ping every other; the hosts work at the same time."""
        nodes = {host: self.network.get(host.name) for host in self.fabric.hosts}
        by_address = {str(self.fabric.address(host)): host for host in self.fabric.hosts}
        for host, node in nodes.items():
            others = " ".join(address for address, peer in by_address.items() if peer != host)
            node.sendCmd(
                f"for peer in {others}; do "
                "ping -n -c 1 -W 2 $peer > /dev/null 2>&1 && echo answered $peer; done"
            )
        answered = set()
        for host, node in nodes.items():
            for line in node.waitOutput().splitlines():
                word, _, address = line.partition(" ")
                if word == "answered" and address.strip() in by_address:
                    answered.add((host, by_address[address.strip()]))
        pairs = {(a, b) for a in nodes for b in nodes if a != b}
        return PingResult(frozenset(answered), frozenset(pairs - answered))

    def exchange(self, plans: list[HostPlan]) -> list[HostReport]:
        """Let every host carry out its plan, all starting together."""
        with _host_processes(self.network, plans, self._logs) as processes:
            for plan, process in zip(plans, processes, strict=True):
                if self._answer_of(process, _HOST_READY_S) != "ready":
                    raise self._host_failure(plan)
            for process in processes:
                _say(process, "go")
            reports = []
            for plan, process in zip(plans, processes, strict=True):
                report = self._answer_of(process, plan.timeout_s + _HOST_READY_S)
                if not report:
                    raise self._host_failure(plan)
                reports.append(HostReport.model_validate_json(report))
        return reports

    def _host_failure(self, plan: HostPlan) -> RunError:
        log = self._logs / f"{plan.name}.log"
        return RunError(
            f"the endpoint of {plan.name} ended early: {_last_line(log)}",
            f"All it said is in {log}",
        )

    def _answer_of(self, process: subprocess.Popen[str], timeout_s: float) -> str:
        assert process.stdout is not None
        return _line_of(process.stdout, timeout_s, self.check_switches)

    def check_switches(self) -> None:
        """Fail if the switches are gone."""
        if self._switches is not None and self._switches.poll() is not None:
            raise RunError(
                "the switches died: " + _last_line(self._logs / "switches.log"),
                f"All they said is in {self._logs / 'switches.log'}",
            )

    def counts(self) -> dict[Node, SwitchCounts]:
        """Every switch's counters."""
        self.check_switches()
        counts = read_counts(
            self.targets,
            {switch.name: self.fabric.ports(switch) for switch in self.fabric.switches},
        )
        return {switch: counts[switch.name] for switch in self.fabric.switches}

    # --- taking down ----------------------------------------------------------------------

    def take_down(self) -> None:
        """Stop the switches and remove the network."""
        if self._switches is not None:
            _stop(self._switches)
        if self._network is not None:
            self._network.stop()


def _link(cable: LinkSpec) -> dict[str, int]:
    """A port's link as the switches' configuration has it; its queues as deep as may be needed."""
    return {
        "rate_bps": cable.rate_bps,
        "delay_ns": cable.delay_ns,
        "queue_packets": _UNLIMITED_PACKETS,
        "queue_bytes": _UNLIMITED_BYTES,
    }


@contextmanager
def _host_processes(
    network: Mininet, plans: list[HostPlan], logs: Path
) -> Iterator[list[subprocess.Popen[str]]]:
    """A traffic process on each host, its plan handed over."""
    processes: list[subprocess.Popen[str]] = []
    try:
        for plan in plans:
            with (logs / f"{plan.name}.log").open("w") as log:
                process = network.get(plan.name).popen(
                    [sys.executable, "-m", "traffic.host"],
                    stdin=subprocess.PIPE,
                    stdout=subprocess.PIPE,
                    stderr=log,
                    text=True,
                )
            processes.append(process)
            _say(process, plan.model_dump_json())
        yield processes
    finally:
        for process in processes:
            _stop(process)


def _say(process: subprocess.Popen[str], line: str) -> None:
    """Hand a process a line; if it is gone, whoever waits for its answer will notice."""
    assert process.stdin is not None
    try:
        process.stdin.write(line + "\n")
        process.stdin.flush()
    except BrokenPipeError:
        pass


def _stop(process: subprocess.Popen[Any]) -> None:
    """End a process, gently at first."""
    if process.poll() is None:
        process.send_signal(signal.SIGTERM)
        try:
            process.wait(_STOP_S)
        except subprocess.TimeoutExpired:
            process.kill()
    process.wait()


def _line_of(stream: IO[str], timeout_s: float, watch: Callable[[], None] = lambda: None) -> str:
    """The next line of a pipe, without its end; empty if it closes or time is up.

    ``watch`` is called now and then and may raise, when waiting on has become pointless.
    """
    deadline = time.monotonic() + timeout_s
    received = b""
    while not received.endswith(b"\n") and (left := deadline - time.monotonic()) > 0:
        readable, _, _ = select.select([stream], [], [], min(left, 0.5))
        if readable:
            chunk = os.read(stream.fileno(), 1 << 16)
            if not chunk:
                return ""
            received += chunk
        else:
            watch()
    return received.decode().strip()


def _last_line(log: Path) -> str:
    lines = log.read_text(errors="replace").strip().splitlines() if log.exists() else []
    return lines[-1] if lines else "it said nothing"
