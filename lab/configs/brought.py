"""A fabric's configurations as a scenario, and a report of what became of each of their parts.

The lab has one value of each key for all switches (rates and delays of cables aside). Where they
differ the commonest is taken, and all others are listed by switch, place and value. What nobody
configures is not made up: such keys are left out, so that the lab's usual values stand there,
and the report names them.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import field
from pathlib import Path
from typing import Any, TypeVar

import yaml

from controller.asics import ASICS
from lab.configs.basis import roce_mtu
from lab.configs.config_db import COMPUTED, READ, Port, Profile, Switch, printable
from lab.configs.fabric import Fabric, Place, delay_ns
from lab.errors import LabError, RunError, ScenarioError
from lab.scenario import catalogue
from params.classes import DSCP_PRIORITIES
from params.data import Data

_SCENARIO, _GRAPH, _REPORT, _REPORT_JSON = (
    "scenario.yaml", "topology.json", "report.txt", "report.json",
)  # fmt: skip
_LAST_QUEUE = 6  # the lab's 7 is for pause frames alone
_BEST_EFFORT = 0
_MS = 1_000_000
_Value = TypeVar("_Value")
Tell = Iterator[tuple[str, _Value]]  # places, and what stands there


class Report(Data, frozen=False):
    """What became of configurations."""

    became: list[dict[str, Any]] = field(default_factory=list)  # key, value, from, how many agree
    differs: list[dict[str, Any]] = field(default_factory=list)  # key, value, taken, where
    not_said: list[str] = field(default_factory=list)  # what the lab's model cannot have
    left_open: list[str] = field(default_factory=list)  # what configurations leave open
    switches: dict[str, dict[str, Any]] = field(default_factory=dict)

    def content(self) -> dict[str, Any]:
        """As JSON has it."""
        return {
            "became": self.became, "differs": self.differs, "not_in_the_model": self.not_said,
            "not_told": self.left_open, "switches": self.switches,
        }  # fmt: skip

    def lines(self) -> Iterator[str]:
        """As a text."""
        yield "What became which key"
        for one in self.became:
            yield f"  {one['key']} = {_shown(one['value'])}   from {one['from']} ({one['of']})"
        yield ""
        yield "What differs: the lab has one value for all switches, and the commonest was taken"
        for one in self.differs:
            where = ", ".join(one["where"][:8])
            more = f" and {len(one['where']) - 8} more" if len(one["where"]) > 8 else ""
            yield f"  {one['key']}: {_shown(one['value'])} at {where}{more}"
        yield from self._block("What the lab's model does not have", self.not_said)
        yield from self._block("What configurations do not tell", self.left_open)
        for name, switch in self.switches.items():
            yield ""
            yield f"{name} ({switch['file']})"
            for table, what in switch["read"].items():
                yield f"  {table}: read for {what}"
            for line in switch["not_understood"]:
                yield f"  not understood: {line}"

    def _block(self, title: str, lines: list[str]) -> Iterator[str]:
        yield ""
        yield title
        yield from (f"  {line}" for line in lines or ["nothing"])


def _shown(value: Any) -> str:
    text = str(value)
    return text if len(text) <= 80 else f"{text[:76]}..."


def import_fabric(fabric: Fabric, out: Path, profile: str | None = None) -> Report:
    """Write the scenario, its topology and the report into a folder."""
    if profile is not None and profile not in ASICS:
        raise ScenarioError(
            f"there is no profile '{profile}'", f"There are {', '.join(sorted(ASICS))}."
        )
    if not fabric.hosts:
        raise ScenarioError(
            f"{fabric.folder}: no neighbour of a switch is known to be a host",
            "Say which are: --hosts 'gpu*'; or give their type, Server, in "
            "DEVICE_NEIGHBOR_METADATA.",
        )
    if out.exists():
        raise RunError(f"{out} is there already", "Name another folder with --out.")
    made = _Maker(fabric, profile)
    graph, content = made.graph(), made.content()
    try:
        out.mkdir(parents=True)
        (out / _GRAPH).write_text(json.dumps(graph, indent=1) + "\n")
        (out / _SCENARIO).write_text(yaml.safe_dump(content, sort_keys=False))
        try:
            catalogue.load(str(out / _SCENARIO))
        except LabError as error:
            made.report.not_said.append(f"closlab run refuses it as it is: {error.message}")
        (out / _REPORT).write_text("\n".join(map(printable, made.report.lines())) + "\n")
        (out / _REPORT_JSON).write_text(json.dumps(made.report.content(), indent=1) + "\n")
    except OSError as error:
        raise RunError(f"{out} cannot be written: {error.strerror}") from None
    return made.report


class _Maker:
    """A fabric, and what is made of it."""

    def __init__(self, fabric: Fabric, profile: str | None) -> None:
        self._fabric = fabric
        self._profile = profile
        self.report = Report()
        self._content: dict[str, Any] = {}
        for name, switch in fabric.switches.items():
            self.report.switches[name] = {
                "file": str(switch.file),
                "hwsku": switch.hwsku,
                "read": {table: what for table, what in READ.items() if table in switch.tables},
                "not_understood": [
                    *switch.unread,
                    *(left for left in fabric.left_out if left.startswith(f"{name} ")),
                ],
            }

    # --- the graph --------------------------------------------------------------------------------

    def graph(self) -> dict[str, Any]:
        """As networkx writes it; ports are counted in the order of their names."""
        fabric = self._fabric
        numbers = {
            name: {port: at for at, port in enumerate(sorted(switch.ports, key=_natural), 1)}
            for name, switch in fabric.switches.items()
        }
        nodes = [{"id": name, "kind": "switch"} for name in fabric.switches]
        links: list[dict[str, Any]] = []
        for host, places in sorted(fabric.hosts.items(), key=lambda one: _natural(one[0])):
            up = [place for place in places if fabric.port(place).is_up]
            for at, place in enumerate(up, 1):
                name = host if len(up) == 1 else f"{host}.{at}"
                nodes.append({"id": name, "kind": "host"})
                links.append({"source": name, "target": place.switch,
                              "target_port": numbers[place.switch][place.port],
                              **self._cable(place)})  # fmt: skip
            if len(up) > 1:
                self.report.not_said.append(
                    f"{host} has {len(up)} cables: each is a host of its own here"
                )
        for cable in fabric.cables:
            if not (fabric.port(cable.a).is_up and fabric.port(cable.b).is_up):
                self.report.not_said.append(f"{cable.a} to {cable.b} is down, and left out")
                continue
            links.append({"source": cable.a.switch, "target": cable.b.switch,
                          "source_port": numbers[cable.a.switch][cable.a.port],
                          "target_port": numbers[cable.b.switch][cable.b.port],
                          **self._cable(cable.a, cable.b)})  # fmt: skip
        return {"nodes": nodes, "links": links}

    def _cable(self, *ends: Place) -> dict[str, Any]:
        ports = [self._fabric.port(end) for end in ends]
        lengths = [port.cable_m for port in ports if port.cable_m is not None]
        found: dict[str, Any] = {"rate_gbps": min(port.speed_mbps for port in ports) / 1000}
        if lengths:
            found["delay_ns"] = delay_ns(max(lengths))
        else:
            cable = " to ".join(map(str, ends))
            self.report.left_open.append(f"{cable}: no CABLE_LENGTH; link.delay_ns stands for it")
        return found

    # --- the keys ---------------------------------------------------------------------------------

    def content(self) -> dict[str, Any]:
        """The scenario."""
        name = re.sub("[^a-z0-9]+", "-", self._fabric.folder.name.lower()).strip("-") or "fabric"
        self._content = {
            "name": name,
            "about": f"{len(self._fabric.switches)} switches' configurations, brought as they are.",
            "topology": {"kind": "file", "path": _GRAPH},
        }
        self._take("link.mtu", "PORT", self._each(roce_mtu))
        self._buffer()
        self._pfc()
        self._classes()
        self._schedule()
        self._marks()
        self._watchdog()
        self._adapters()
        self._content["traffic"] = {"kind": "permutation", "bytes": "1MB"}
        self.report.left_open.append("traffic: every host sends 1 MB to another")
        self.report.not_said += [
            f"{name}: {line}" for name, s in self._fabric.switches.items() for line in s.routing
        ]
        return self._content

    def _ports(self) -> Iterator[tuple[Switch, Port]]:
        for switch in self._fabric.switches.values():
            for port in self._fabric.in_use(switch):
                yield switch, port

    def _each(self, of: Callable[[Switch, Port], _Value | None]) -> Tell[_Value]:
        for switch, port in self._ports():
            value = of(switch, port)
            if value is not None:
                yield f"{switch.name} {port.name}", value

    def _take(self, key: str, source: str, tell: Tell[Any]) -> Any:
        """The commonest of what is configured, as a key; None: nobody configures it."""
        where: dict[str, list[str]] = {}
        values: dict[str, Any] = {}
        for place, value in tell:
            text = json.dumps(value, sort_keys=True)
            values[text] = value
            where.setdefault(text, []).append(place)
        if not where:
            self.report.left_open.append(f"{key}: the lab's usual value stands")
            return None
        taken = min(where, key=lambda text: (-len(where[text]), text))
        every = sum(map(len, where.values()))
        section, _, name = key.partition(".")
        self._content.setdefault(section, {})[name] = values[taken]
        self.report.became.append({
            "key": key, "value": values[taken], "from": source,
            "of": f"{len(where[taken])} of {every}",
        })  # fmt: skip
        self.report.differs += [
            {"key": key, "value": values[text], "taken": values[taken], "where": places}
            for text, places in where.items()
            if text != taken
        ]
        return values[taken]

    def _lossless(self) -> Iterator[tuple[str, Switch, Profile]]:
        for switch, port in self._ports():
            for priority in sorted(port.pfc):
                headroom = switch.headroom(port, switch.group_of(port, priority))
                if headroom is not None:
                    yield f"{switch.name} {port.name}|{priority}", switch, headroom[1]

    def _buffer(self) -> None:
        pools = [
            (place, switch.pools[profile.pool])
            for place, switch, profile in self._lossless()
            if profile.pool in switch.pools
        ]
        sizes = [(place, pool.size + (pool.xoff or 0)) for place, pool in pools if pool.size]
        computed = [
            place
            for switch, port in self._ports()
            for place in (f"{switch.name} {port.name}",)
            if COMPUTED in port.groups.values()
        ]
        if computed:
            self.report.left_open.append(
                f"headroom of {computed[0]}"
                + (f" and {len(computed) - 1} more" if len(computed) > 1 else "")
                + ": the switch computes it itself (profile NULL), and so does the lab"
            )
        if self._profile is not None:
            asic = ASICS[self._profile]
            self._content["buffer"] = {"profile": self._profile}
            self.report.became.append({"key": "buffer.profile", "value": self._profile,
                                       "from": asic.source, "of": "asked for"})  # fmt: skip
        else:
            skus = sorted({switch.hwsku or "not told" for switch in self._fabric.switches.values()})
            self.report.left_open.append(
                f"the memory's cells (HWSKU {', '.join(skus)}): memory counts in bytes; "
                f"--profile names a chip, one of {', '.join(sorted(ASICS))}"
            )
        if not sizes and self._profile is None:
            raise ScenarioError(
                f"{self._fabric.folder}: no switch tells the size of the pool that its lossless "
                "traffic shares (BUFFER_POOL, size)",
                f"Name a chip whose memory to take, --profile: {', '.join(sorted(ASICS))}.",
            )
        lossless = list(self._lossless())
        if sizes:
            self._take("buffer.bytes", "BUFFER_POOL, size and xoff", iter(sizes))
            shared = [(place, pool.xoff) for place, pool in pools if pool.xoff]
            if shared:
                self._take("buffer.headroom_pool", "BUFFER_POOL, xoff", iter(shared))
        if any(profile.static_th is not None for _, _, profile in lossless):
            self._take("buffer.static", "BUFFER_PROFILE, static_th", (
                (place, p.static_th) for place, _, p in lossless if p.static_th is not None
            ))  # fmt: skip
        else:
            self._alpha("buffer.alpha", ((place, p.dynamic_th) for place, _, p in lossless))
        self._take("buffer.reserved", "BUFFER_PROFILE, size less xoff", (
            (place, p.size - (p.xoff or 0) if p.size >= (p.xoff or 0) else p.size)
            for place, _, p in lossless
        ))  # fmt: skip
        lossy = [
            (f"{switch.name} {port.name}", switch.profiles[name])
            for switch, port in self._ports()
            for queue, name in port.queues.items()
            if queue == _BEST_EFFORT and name in switch.profiles
        ]
        self._alpha("buffer.lossy_alpha", ((place, p.dynamic_th) for place, p in lossy))
        self.report.not_said.append(
            "pools of their own for what leaves: lossy queues share the one pool of the lab"
        )

    def _alpha(self, key: str, alphas: Iterator[tuple[str, int | None]]) -> None:
        usable = []
        for place, th in alphas:
            if th is None:
                continue
            if -8 <= th <= 7:
                usable.append((place, 2.0**th))
            else:
                self.report.not_said.append(f"{place}: dynamic_th {th}, beyond -8 to 7")
        self._take(key, "BUFFER_PROFILE, dynamic_th", iter(usable))

    def _pfc(self) -> None:
        def classes(_: Switch, port: Port) -> list[int] | None:
            usable = sorted(port.pfc - {7})
            return usable or None

        taken = self._take("pfc.priorities", "PORT_QOS_MAP, pfc_enable", self._each(classes))
        self._content.setdefault("pfc", {})["enabled"] = taken is not None
        for key, name in (("headroom", "xoff"), ("xon", "xon"), ("xon_gap", "xon_offset")):
            self._take(f"pfc.{key}", f"BUFFER_PROFILE, {name}", (
                (place, value)
                for place, _, profile in self._lossless()
                if (value := getattr(profile, name)) is not None
            ))  # fmt: skip
        if "xon_gap" in self._content["pfc"]:
            self._content["pfc"]["xon_follows"] = True

    def _classes(self) -> None:
        def dscps(switch: Switch, port: Port) -> dict[str, int] | None:
            classes = switch.map_of(port, "dscp_to_tc_map")
            queues = switch.map_of(port, "tc_to_queue_map")
            if classes is None:
                return None
            return {str(dscp): (queues or {}).get(tc, tc) for dscp, tc in sorted(classes.items())}

        taken: Mapping[str, int] | None = self._take(
            "classes.dscp", "DSCP_TO_TC_MAP and TC_TO_QUEUE_MAP", self._each(dscps)
        )
        if taken is None:
            return
        high = [dscp for dscp, queue in taken.items() if queue > _LAST_QUEUE]
        if high:
            self.report.not_said.append(
                f"queue 7 of DSCP {', '.join(high)}: the lab's is for pause frames; they keep "
                "their usual class"
            )
        self._content["classes"] = {"dscp": {
            int(dscp): queue
            for dscp, queue in taken.items()
            if queue <= _LAST_QUEUE and queue != DSCP_PRIORITIES.get(int(dscp), _BEST_EFFORT)
        }}  # fmt: skip

    def _schedule(self) -> None:
        def turns(switch: Switch, port: Port) -> dict[str, int] | None:
            weights = {}
            for queue, name in port.turns.items():
                turn = switch.turns.get(name)
                if turn is not None and turn.kind in ("DWRR", "WRR") and turn.weight:
                    weights[str(queue)] = turn.weight
            return weights or None

        kinds = sorted({f"SCHEDULER {turn.kind or 'without type'}"
                       for switch in self._fabric.switches.values()
                       for turn in switch.turns.values()
                       if turn.kind not in ("DWRR", "STRICT")})  # fmt: skip
        self.report.not_said += [f"{what}: served by DWRR's turns, in bytes" for what in kinds]
        if any(t.is_shaped for s in self._fabric.switches.values() for t in s.turns.values()):
            self.report.not_said.append("SCHEDULER, pir and cir: not read")
        taken = self._take("schedule.weights", "QUEUE and SCHEDULER", self._each(turns))
        if taken is not None:
            high = [queue for queue in taken if int(queue) > _LAST_QUEUE]
            if high:
                self.report.not_said.append("queue 7's weight: the lab's is for pause frames")
            weights = {int(q): w for q, w in taken.items() if int(q) <= _LAST_QUEUE}
            self._content["schedule"] = {"kind": "ets", "weights": weights}

    def _marks(self) -> None:
        def curve(switch: Switch, port: Port) -> dict[str, Any] | None:
            for priority in sorted(port.pfc):
                wred = switch.wred.get(port.wred.get(switch.queue_of(port, priority), ""))
                if wred is not None and wred.marks and wred.kmin is not None and wred.kmax:
                    return {"kmin": wred.kmin, "kmax": wred.kmax, "pmax": wred.percent / 100}
            return None

        taken = self._take("ecn.curve", "WRED_PROFILE, green", self._each(curve))
        self._content["ecn"] = {"enabled": taken is not None, **(taken or {})}
        self.report.not_said.append("WRED of yellow and red packets: no meter colours any here")

    def _adapters(self) -> None:
        """Whoever heeds notifications has DCQCN; its numbers are the lab's."""
        self._take("transport.cc", "roce_rp/enable", (
            (f"{host} {nic.name}", "dcqcn" if any(nic.heeds.values()) else "none")
            for host, adapter in self._fabric.adapters.items()
            for nic in adapter.nics.values()
            if nic.heeds
        ))  # fmt: skip

    def _watchdog(self) -> None:
        def watch(name: str) -> Tell[int]:
            for switch in self._fabric.switches.values():
                for port, config in switch.watches.items():
                    value = getattr(config, name)
                    if value is not None:
                        yield f"{switch.name} {port}", value * _MS

        if not any(port.watched for _, port in self._ports()):
            self._content.setdefault("pfc", {})["watchdog_ns"] = 0
            source = "PORT_QOS_MAP, pfcwd_sw_enable"
            became = {"key": "pfc.watchdog_ns", "value": 0, "from": source, "of": "no port"}
            self.report.became.append(became)
            return
        self._take("pfc.watchdog_ns", "PFC_WD, detection_time", watch("detection_ms"))
        self._take("pfc.watchdog_restore_ns", "PFC_WD, restoration_time", watch("restoration_ms"))
        self._take("pfc.watchdog_poll_ns", "PFC_WD, POLL_INTERVAL", (
            (name, switch.poll_ms * _MS)
            for name, switch in self._fabric.switches.items()
            if switch.poll_ms is not None
        ))  # fmt: skip
        self._take("pfc.watchdog_action", "PFC_WD, action", (
            (f"{switch.name} {port}", entry.action)
            for switch in self._fabric.switches.values()
            for port, entry in switch.watches.items()
            if entry.action in ("drop", "forward", "alert")
        ))  # fmt: skip


def _natural(name: str) -> list[tuple[int, str]]:
    """A name's parts, numbers as numbers."""
    return [(int(part[:18]), "") if part.isdigit() else (-1, part)
            for part in re.split(r"(\d+)", name)]  # fmt: skip
