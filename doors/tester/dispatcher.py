"""What a tester does: one request after the other, however many clients there are.

A request is carried out whole or changes nothing: a configuration is understood before anything of
the last one ends.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Iterable, Mapping, Sequence
from importlib.metadata import version
from typing import Any

from snappi import otg_pb2 as otg

from doors.tester import metrics
from doors.tester.config import (
    OBEYS_NONE,
    check_captures,
    layer1,
    located,
    planned_all,
    refuse_twice,
    too_busy,
)
from doors.tester.flows import MAX_FLOWS, Plan, repaced
from doors.tester.models import Refused, check, chosen, value, word, words, wrong
from doors.tester.pcapng import pcapng
from doors.tester.port import Port
from doors.tester.site import Place

_HEAD_START_NS = 20_000_000  # until all ports have read when to begin


class Desk:
    """A tester: its ports, and what they are configured to do."""

    def __init__(self, places: Mapping[str, Place]) -> None:
        self._places = places
        self._epoch_ns = time.monotonic_ns()
        self._lock = threading.RLock()
        self._config = otg.Config()
        self._ports: dict[str, Port] = {}  # by location
        self._flows: dict[str, tuple[int, Plan]] = {}
        self._capturing: set[str] = set()  # names of ports
        self._run = 0
        self._reported_late: set[str] = set()  # locations
        self._asked = time.monotonic()
        self._is_closed = False

    # --- configuration ------------------------------------------------------------------------

    def set_config(self, config: otg.Config) -> otg.Warning:
        """Become what a configuration says; what ran before ends."""
        check(config)
        with self._turn():
            at = located(config, self._places)
            plans = planned_all(config.flows, at)
            obeys, warnings = layer1(config, at)
            check_captures(config, at)
            self._plug(at.values())
            self._config = otg.Config()
            self._config.CopyFrom(config)
            self._flows = {plan.name: (number, plan) for number, plan in enumerate(plans)}
            self._capturing, self._reported_late = set(), set()
            for name, place in at.items():
                port = self._ports[place.location]
                port.tell(["still", "clear", obeys.get(name, OBEYS_NONE)])
            for name in self._flows:
                self._define(name)
            return otg.Warning(warnings=[*warnings, *too_busy(plans, at)])

    def get_config(self) -> otg.Config:
        """What it was told to be."""
        with self._turn():
            found = otg.Config()
            found.CopyFrom(self._config)
            return found

    def update_config(self, update: otg.ConfigUpdate) -> otg.Warning:
        """Give flows another rate, or other sizes, while they send."""
        check(update)
        with self._turn():
            names = {flow.name: flow for flow in self._config.flows}
            properties = words(update.flows, "property_names")
            changed = []
            for given in update.flows.flows:
                if given.name not in names:
                    raise wrong(f"there is no flow '{given.name[:60]}'")
                flow = otg.Flow()
                flow.CopyFrom(names[given.name])
                for name in properties:
                    getattr(flow, name).CopyFrom(getattr(given, name))
                changed.append(flow)
            places = self._at()
            lines = {
                flow.name: repaced(flow, self._flows[flow.name][1].mark,
                                   places[flow.tx_rx.port.tx_name])
                for flow in changed
            }  # fmt: skip
            for flow in changed:
                names[flow.name].CopyFrom(flow)
                number, plan = self._flows[flow.name]
                self._port(plan.tx).tell(line.format(id=number) for line in lines[flow.name])
            return otg.Warning()

    def append_config(self, more: otg.ConfigAppend) -> otg.Warning:
        """Have further flows."""
        check(more)
        with self._turn():
            fresh = [flow for part in more.config_append_list for flow in part.flows]
            refuse_twice("flow", [*self._flows, *(flow.name for flow in fresh)])
            plans = planned_all(fresh, self._at())
            free = iter(
                sorted({*range(MAX_FLOWS)} - {number for number, _ in self._flows.values()})
            )
            if len(self._flows) + len(plans) > MAX_FLOWS:
                raise wrong(f"{MAX_FLOWS:,} flows are the most that there may be")
            for flow, plan in zip(fresh, plans, strict=True):
                self._config.flows.add().CopyFrom(flow)
                self._flows[plan.name] = next(free), plan
                self._define(plan.name)
            return otg.Warning()

    def delete_config(self, less: otg.ConfigDelete) -> otg.Warning:
        """Have some flows no more."""
        check(less)
        with self._turn():
            names = [name for part in less.config_delete_list for name in part.flows]
            self._known(names)
            for name in dict.fromkeys(names):
                number, _ = self._flows.pop(name)
                for port in self._ports.values():
                    port.tell([f"drop {number}"])
            kept = [flow for flow in self._config.flows if flow.name not in names]
            del self._config.flows[:]
            self._config.flows.extend(kept)
            return otg.Warning()

    # --- control ------------------------------------------------------------------------------

    def set_control_state(self, state: otg.ControlState) -> otg.Warning:
        """Start and stop flows and captures, take links up and down."""
        check(state)
        with self._turn():
            match chosen(state):
                case "traffic":
                    transmit = state.traffic.flow_transmit
                    self._transmit(_state(transmit), [*transmit.flow_names])
                case "port" if chosen(state.port) == "capture":
                    capture = state.port.capture
                    self._capture(_state(capture), [*capture.port_names])
                case "port":
                    link = state.port.link
                    is_up = _state(link) == "up"
                    for name in self._named(link.port_names):
                        self._port(name).turn(is_up=is_up)
                case "protocol":
                    pass  # there are none that could be started or stopped
                case _:
                    raise wrong("ControlState: it is one of port, protocol and traffic")
            return otg.Warning()

    def _transmit(self, state: str, names: list[str]) -> None:
        chosen_ = self._known(names) if names else [*self._flows]
        if state in ("start", "resume"):
            at = metrics.states(self._flows, self._ports_by_name())
            fresh = [name for name in chosen_ if at[name] == "stopped"] if state == "start" else []
            self._begin(fresh)
            self._say("go", [name for name in chosen_ if at[name] == "paused"])
        else:
            self._say({"stop": "stop", "pause": "hold"}[state], chosen_)

    def _begin(self, names: Sequence[str]) -> None:
        """Let flows begin at the same time, with nothing counted."""
        self._run += 1
        by_name = self._ports_by_name()
        for name in names:
            number, plan = self._flows[name]
            for rx in plan.rx or by_name:
                by_name[rx].tell([_expecting(number, self._run, plan)])
        for port in by_name.values():
            port.counts()  # it has read that
        start = time.monotonic_ns() + _HEAD_START_NS
        self._say(f"start {self._run} {start}", names)

    def _say(self, what: str, names: Iterable[str]) -> None:
        """Tell ports something of their flows."""
        by_port: dict[str, list[str]] = {}
        for name in names:
            number, plan = self._flows[name]
            by_port.setdefault(plan.tx, []).append(str(number))
        for tx, numbers in by_port.items():
            self._port(tx).tell([f"{what} {','.join(numbers)}"])

    def _capture(self, state: str, names: list[str]) -> None:
        listed = {name: each for each in self._config.captures for name in each.port_names}
        if strangers := [name for name in names if name not in listed]:
            raise wrong(f"no capture is configured at the port '{strangers[0][:60]}'")
        for name in names or listed:
            if state == "start":
                self._port(name).tell(
                    [f"capture {listed[name].packet_size} {int(value(listed[name], 'overwrite'))}"]
                )
                self._capturing.add(name)
            elif name in self._capturing:
                self._port(name).tell(["still"])
                self._capturing.discard(name)

    # --- answers ------------------------------------------------------------------------------

    def get_metrics(self, request: otg.MetricsRequest) -> otg.MetricsResponse:
        """What was counted, by flow or by port."""
        check(request)
        with self._turn():
            ports = self._ports_by_name()
            if chosen(request) == "port":
                wanted = self._named(request.port.port_names)
                columns = words(request.port, "column_names")
                return metrics.of_ports(wanted, ports, self._capturing, columns)
            names = self._known(request.flow.flow_names)
            wanted_flows = [name for name in names or self._flows if self._flows[name][1].mark]
            columns = words(request.flow, "metric_names")
            config = {flow.name: flow for flow in self._config.flows}
            return metrics.of_flows(wanted_flows, self._flows, config, ports, columns)

    def get_states(self, request: otg.StatesRequest) -> otg.StatesResponse:
        """Whom ports have for a neighbour: who their frames are to be addressed to."""
        check(request)
        with self._turn():
            kind = chosen(request)
            found = otg.StatesResponse(choice=kind)
            version_ = "." if kind == "ipv4_neighbors" else ":"
            at = self._at()
            for name in self._named(getattr(request, kind).ethernet_names):
                if version_ in at[name].gateway:
                    getattr(found, kind).add(
                        ethernet_name=name,
                        link_layer_address=at[name].ends.gateway_mac,
                        **{kind.replace("neighbors", "address"): at[name].gateway},
                    )
            return found

    def get_capture(self, request: otg.CaptureRequest) -> bytes:
        """What a port captured, as a pcap or pcapng."""
        check(request)
        with self._turn():
            listed = {name: each for each in self._config.captures for name in each.port_names}
            if request.port_name not in listed:
                raise wrong(f"no capture is configured at the port '{request.port_name[:60]}'")
            kept = self._port(request.port_name).captured()
            if not kept:
                raise wrong(f"nothing was captured at the port '{request.port_name}' yet: start it")
            is_ng = word(listed[request.port_name], "format") == "pcapng"
            return pcapng(kept) if is_ng else kept

    def get_version(self) -> otg.Version:
        """Of OTG's model, and of what answers by it."""
        with self._turn():
            from snappi import snappi

            known = snappi.Api().get_local_version()
            return otg.Version(
                api_spec_version=known.api_spec_version,
                sdk_version=known.sdk_version,
                app_version=f"closlab {version('closlab')}",
            )

    # --- the whole ----------------------------------------------------------------------------

    def stop_if_forgotten(self, after_s: float) -> bool:
        """End what is sent if nobody has asked anything for so long; whether anything was."""
        with self._lock:
            if time.monotonic() - self._asked < after_s or not self._flows or self._is_closed:
                return False
            at = metrics.states(self._flows, self._ports_by_name())
            if all(state == "stopped" for state in at.values()):
                return False
            self._say("stop", self._flows)
            return True

    def lateness(self) -> list[str]:
        """Of ports that have sent frames late, by how much: each is told of once."""
        with self._lock:
            lines = []
            for location in self._ports.keys() - self._reported_late:
                place, counts = self._ports[location].place, self._ports[location].counts()
                crossing = place.delay_ns + place.most_frame * 8e9 / place.bps
                if counts["late_ns"] > crossing:
                    self._reported_late.add(location)
                    lines.append(f"the port {location} sends {counts['late_ns']:,.0f} ns late")
            return lines

    def close(self) -> None:
        """End everything."""
        with self._lock:
            self._is_closed = True
            for port in self._ports.values():
                port.close()
            self._ports = {}

    def _turn(self) -> threading.RLock:
        """One request at a time."""
        self._asked = time.monotonic()
        if self._is_closed:
            raise Refused(503, "the tester is being taken down", kind="internal")
        return self._lock

    def _plug(self, places: Iterable[Place]) -> None:
        """Have a program at each of these places, and nowhere else."""
        wanted = {place.location: place for place in places}
        for location in [*self._ports]:
            if location not in wanted:
                self._ports.pop(location).close()
        for location, place in wanted.items():
            if location not in self._ports:
                self._ports[location] = Port(place, self._epoch_ns)

    def _define(self, name: str) -> None:
        number, plan = self._flows[name]
        self._port(plan.tx).tell(line.format(id=number) for line in plan.lines)
        self._run += 1
        for rx in plan.rx or (port.name for port in self._config.ports):
            self._port(rx).tell([_expecting(number, self._run, plan)])

    def _at(self) -> dict[str, Place]:
        return {port.name: self._places[port.location] for port in self._config.ports}

    def _port(self, name: str) -> Port:
        return self._ports[self._at()[name].location]

    def _ports_by_name(self) -> dict[str, Port]:
        return {name: self._ports[place.location] for name, place in self._at().items()}

    def _named(self, names: Iterable[str]) -> list[str]:
        """These ports, or all."""
        known = [port.name for port in self._config.ports]
        for name in (given := [*names]):
            if name not in known:
                raise wrong(f"there is no port '{name[:60]}'")
        return given or known

    def _known(self, names: Iterable[str]) -> list[str]:
        for name in (given := [*names]):
            if name not in self._flows:
                raise wrong(f"there is no flow '{name[:60]}'")
        return given


def _state(message: Any) -> str:
    """What is to become of something."""
    if not (found := word(message, "state")):
        raise wrong(f"{message.DESCRIPTOR.name}: state is missing")
    return found


def _expecting(number: int, run: int, plan: Plan) -> str:
    return f"expect {number} {run} {int(plan.is_stored)}"
