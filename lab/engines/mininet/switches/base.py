"""What all kinds of switches have in common."""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import TypeVar

from controller import LinkSpec, Settings, SwitchPlan, Target, Tls, read_plans
from lab.engines.mininet.arrival_times import ArrivalTimes
from lab.errors import RunError
from lab.machine.certificates import Certificates
from lab.machine.patience import Still
from lab.machine.program import BuiltProgram
from lab.machine.speed import slowness
from lab.results.counts import read_counts
from lab.results.outcome import SwitchBooks, SwitchCounts
from lab.results.watch import Watch
from lab.scenario.faults import Spoil
from lab.scenario.translate import REPORT_PORT
from params.data import Data
from topologies import Fabric, Link, Node, NodeKind

_FIRST_GRPC_PORT = 50051
_LOOKS, _BETWEEN_LOOKS_S = 10, 0.02  # until nothing moves any more
_Seen = TypeVar("_Seen")


class Setting(Data):
    """Where switches are to run, and how.

    Given a folder for pcaps, they record what those ports receive and send. They send no faster
    than the cable at a port can, in a time that is dilated.
    """

    fabric: Fabric
    program: BuiltProgram
    logs: Path
    cable: Callable[[Node, int], LinkSpec]
    pcaps: Path | None = None
    captured: frozenset[tuple[Node, int]] = frozenset()
    notes_every_s: float = 0  # at least
    data_frame: int = 0  # bytes of a full data packet without FCS
    max_frame: int = 9600  # and of the largest that there can be
    dilation: int = 1
    reports: bool = False  # whether each has a cable for telemetry reports
    controls: Callable[[Node], Mapping[int, str]] = lambda _: {}  # ports for its own control plane
    seed_of: Callable[[Node], int] = lambda _: 1
    arrival_times: ArrivalTimes | None = None  # none: whoever sends keeps frames until they are due
    certificates: Certificates | None = None  # none: P4Runtime is spoken in the clear
    still: Still = lambda *_: None  # hears what takes long

    def interfaces(self, switch: Node) -> dict[int, str]:
        """A switch's ports."""
        ports = [*self.fabric.ports(switch), *([REPORT_PORT] if self.reports else [])]
        return {port: switch.interface(port) for port in ports} | dict(self.controls(switch))

    def quiet_ports(self, switch: Node) -> list[int]:
        """Those that lead to no link of the fabric."""
        return sorted(self.interfaces(switch).keys() - self.fabric.ports(switch).keys())

    def capture(self, switch: Node, ports: Iterable[int]) -> dict[str, object]:
        """What a switch's configuration says of captures, if it has these ports."""
        kept = [port for port in ports if (switch, port) in self.captured]
        return {"pcap": str(self.pcaps), "pcap_ports": kept} if kept else {}


def _proof(of: Certificates) -> Tls:
    """What the controller shows, and whom it trusts."""
    return Tls(of.authority, of.certificate("controller"), of.key("controller"))


class Switches(ABC):
    """A fabric's switches, as processes in the network namespace that holds their interfaces."""

    PACKETS_PER_S: int  # that all hosts together may send, each of which crosses up to four links
    HURRIED_PACKETS_PER_S: int | None = None  # if ends of cables tell each other what is due
    CONTROL_QUEUE = 7  # that clones, such as pause frames, can leave by
    REAL_TICK_NS: int | None = None  # the program's clock's; none: a nanosecond of the fabric's

    @staticmethod
    @abstractmethod
    def build_program(
        out: Path, source: Path, still: Still, parts: tuple[str, ...]
    ) -> BuiltProgram:
        """The fabric program as these switches want it, with parts that it may have."""

    @classmethod
    def configured(cls, settings: Settings, dilation: int) -> Settings:
        """What a controller needs to know of a fabric, for these switches."""
        if settings.link.llr_hosts:
            raise RunError(
                "link.llr_hosts: hosts of Mininet have adapters that send no frame of a link again",
                "Use the simulator (--engine sim), or link.llr_hosts=false.",
            )
        tick_ns = 1 if cls.REAL_TICK_NS is None else cls.REAL_TICK_NS / dilation
        return replace(settings, tick_ns=tick_ns, control_queue=cls.CONTROL_QUEUE)

    def __init__(self, setting: Setting) -> None:
        self.setting = setting
        self.targets = tuple(
            Target(
                name=switch.name,
                address=f"127.0.0.1:{_FIRST_GRPC_PORT + index}",
                device_id=index + 1,
                p4info=setting.program.p4info,
                program=setting.program.json,
                tls=_proof(setting.certificates) if setting.certificates else None,
            )
            for index, switch in enumerate(setting.fabric.switches)
        )
        setting.logs.mkdir(parents=True, exist_ok=True)
        self.watch = Watch(setting.fabric, setting.logs / "switches.jsonl")
        if setting.pcaps is not None:
            setting.pcaps.mkdir(exist_ok=True)

    @abstractmethod
    def start(self) -> str:
        """Start them, and wait until each of them listens; returns a word on them."""

    @abstractmethod
    def furnish(self) -> None:
        """Do what could not be done before they had their program."""

    @abstractmethod
    def set_cable(self, link: Link, cable: LinkSpec, senders: Iterable[Node]) -> None:
        """Let a link be another cable, from the senders' next frames on, switches' that is."""

    @abstractmethod
    def spoil(self, news: Spoil) -> None:
        """Let a link spoil frames from now on."""

    @abstractmethod
    def restart(self, switch: Node) -> None:
        """Let a switch start again, with empty tables."""

    @staticmethod
    def switch_ends(link: Link, among: Iterable[Node]) -> list[tuple[Node, int]]:
        """Where a link ends at one of these that is a switch."""
        return [(node, link.port_of(node)) for node in among if node.kind is not NodeKind.HOST]

    @abstractmethod
    def check(self) -> None:
        """Fail if one of them is gone."""

    @property
    def failure(self) -> str | None:
        """What befell them, if one of them is gone."""
        try:
            self.check()
        except RunError as error:
            return error.message
        return None

    @abstractmethod
    def where_they_speak(self) -> str:
        """What to tell a user who wants to know more."""

    def counts(self) -> dict[Node, SwitchCounts]:
        """Every switch's counters."""
        self.check()
        counts = read_counts(self.targets, self._ports(), lost=self.watch.lost())
        return {switch: counts[switch.name] for switch in self.setting.fabric.switches}

    def last_counts(self) -> dict[Node, SwitchCounts]:
        """Every switch's counters, or, of switches that are gone, what they last wrote down."""
        return self.watch.counts() if self.failure else self.counts()

    def forget(self) -> None:
        """What was written down so far is no part of the run that begins."""
        self.watch.forget()

    def late(self, epoch_ns: int) -> Counter[int]:
        """How late they did what was due since the hosts began, and how often that late."""
        return self.watch.late(epoch_ns)

    def target_of(self, switch: Node) -> Target:
        """A switch as the controller speaks to it."""
        return next(each for each in self.targets if each.name == switch.name)

    def read_plan(self, switch: Node, wanted: SwitchPlan) -> SwitchPlan:
        """What a switch has of a plan's kinds."""
        target = self.target_of(switch)
        return read_plans([target], {target.name: wanted})[target.name]

    def books(self) -> dict[Node, SwitchBooks]:
        """What became of every packet in every switch, of those that keep books."""
        return {}

    def settled_books(self) -> tuple[dict[Node, SwitchBooks], bool]:
        """The same once nothing moves any more, and whether it came to that."""
        return ({}, False) if self.failure else _settled(self.books)

    def settled_counts(self) -> dict[Node, SwitchCounts] | None:
        """Every switch's counters once nothing moves any more; none if it does not come to that."""
        counts, is_settled = ({}, False) if self.failure else _settled(self.counts)
        return counts if is_settled else None

    def _ports(self) -> dict[str, tuple[int, ...]]:
        fabric = self.setting.fabric
        return {switch.name: tuple(fabric.ports(switch)) for switch in fabric.switches}

    @abstractmethod
    def stop(self) -> None:
        """End them."""


def _settled(look: Callable[[], _Seen]) -> tuple[_Seen, bool]:
    """What is seen once it does not change from one look to the next, and whether it came to it."""
    seen = look()
    for _ in range(_LOOKS):
        time.sleep(_BETWEEN_LOOKS_S * slowness())
        before, seen = seen, look()
        if seen == before:
            return seen, True
    return seen, False
