"""Our own switches: all of them in one process, whose ports are as fast and far as cables say."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from controller import LinkSpec
from lab.engines.mininet.switches.base import Setting, Switches
from lab.engines.mininet.switches.hosted import Hosted, link_of
from lab.machine import program
from lab.machine.patience import Still
from lab.machine.program import BuiltProgram
from lab.results.counts import read_counts
from lab.results.outcome import Line, SwitchBooks, SwitchCounts
from lab.results.watch import cells_of
from lab.scenario.faults import Spoil
from topologies import Link, Node

_MIN_INTERVAL_S = 0.02
_RECORD_S = 0.01  # fifty times what recording a switch takes


class SoftSwitches(Switches):
    """The process that hosts all switches."""

    PACKETS_PER_S = 6_000
    HURRIED_PACKETS_PER_S = 20_000

    @staticmethod
    def build_program(
        out: Path, source: Path, _still: Still, parts: tuple[str, ...]
    ) -> BuiltProgram:
        """Compiled, and built as native code."""
        return program.build(out, source, parts)

    def __init__(self, setting: Setting) -> None:
        super().__init__(setting)
        self._before: dict[Node, SwitchCounts] = {}  # of switches that started again
        self._hosted = Hosted("switches", setting.logs.parent, setting.still)

    def start(self) -> str:
        """Start the process."""
        setting = self.setting
        switches = [
            {
                "name": target.name,
                "device_id": target.device_id,
                "grpc_address": target.address,
                "seed": setting.seed_of(switch),
                **_tls(setting),
                "ports": setting.interfaces(switch),
                "quiet_ports": setting.quiet_ports(switch),
                "links": {
                    port: link_of(setting.cable(switch, port))
                    for port in setting.fabric.ports(switch)
                },
                **_arrival_times(setting, switch),
                **setting.capture(switch, setting.interfaces(switch)),
                "record": cells_of(setting.fabric, switch),
            }
            for target, switch in zip(self.targets, setting.fabric.switches, strict=True)
        ]
        record = ("--record", str(self.watch.path), "--record-every", str(self._interval_s))
        arrival_times = setting.arrival_times
        if arrival_times is None:
            self._hosted.start(switches, setting.dilation, record)
        else:
            words = (*record, "--arrival-times", str(arrival_times.file))
            self._hosted.start(switches, setting.dilation, words, (arrival_times.file,))
        return f"{len(self.targets)} in one process"

    @property
    def _interval_s(self) -> float:
        """The time between two records of what switches hold."""
        usual = max(_MIN_INTERVAL_S, _RECORD_S * len(self.targets))
        return max(usual, self.setting.notes_every_s)

    def furnish(self) -> None:
        """Nothing: the process was told all when it started."""

    def set_cable(self, link: Link, cable: LinkSpec, senders: Iterable[Node]) -> None:
        """Tell the process."""
        for switch, port in self.switch_ends(link, senders):
            self._hosted.set_link(switch.name, port, cable)

    def spoil(self, news: Spoil) -> None:
        """Tell the process."""
        for switch, port, sends in news.places:
            self._hosted.spoil(switch.name, port, sends, news)

    def restart(self, switch: Node) -> None:
        """Tell the process; what its program had counted is kept here."""
        counted = read_counts([self.target_of(switch)], self._ports())[switch.name]
        self._before[switch] = counted.plus(self._before.get(switch))
        self._hosted.restart(switch.name)

    def counts(self) -> dict[Node, SwitchCounts]:
        """Every switch's counters, and what they were before it last started again."""
        return {
            switch: counts.plus(self._before.get(switch))
            for switch, counts in super().counts().items()
        }

    def books(self) -> dict[Node, SwitchBooks]:
        """As the process keeps them."""
        books = self._hosted.books()
        return {
            switch: SwitchBooks(
                **books[switch.name]
                | {"lines": tuple(Line(*line) for line in books[switch.name]["lines"])}
            )
            for switch in self.setting.fabric.switches
        }

    def check(self) -> None:
        """Fail if the process is gone."""
        self._hosted.check()

    def where_they_speak(self) -> str:
        """Their log."""
        return self._hosted.where_it_speaks()

    def stop(self) -> None:
        """End the process."""
        self._hosted.stop()


def _arrival_times(setting: Setting, switch: Node) -> dict[str, dict[int, tuple[int, int]]]:
    """Where each port's ends tell what is due."""
    if setting.arrival_times is None:
        return {}
    return {
        "arrival_times": {
            link.port_of(switch): setting.arrival_times.of(switch, link.port_of(switch))
            for link in setting.fabric.links
            if switch in (link.a, link.b)
        }
    }


def _tls(setting: Setting) -> dict[str, dict[str, str]]:
    """What switches show, and by whom controllers have to be vouched for."""
    of = setting.certificates
    if of is None:
        return {}
    files = {
        "certificate": of.certificate("switches"),
        "key": of.key("switches"),
        "client_ca": of.authority,
    }
    return {"tls": {name: str(path) for name, path in files.items()}}
