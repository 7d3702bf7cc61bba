"""Cumulus Linux: what NVUE's startup.yaml, or its `nv set` commands, say of ports, QoS and BGP.

Both are the same: a leaf of the YAML is a command whose words are its keys. What is read is what
NVIDIA's user guide documents (Cumulus Linux 5.9, Quality of Service; RDMA over Converged Ethernet),
and so are the values that hold where none is given: DSCP 0 to 7 are switch priority 0, 8 to 15 are
1, and so on; priorities have the queue of their number; queue 0 alone marks, between 150,000 and
1,500,000 bytes, all of them there; `qos roce` pauses priority 3 at all ports, marks queues 0 and 3
alike, trusts DSCP, gives queue 3 half of a port and queue 6 all it asks for. A port's buffer less
its xoff-threshold is headroom; where none is set the switch computes it, and no rule asks for it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import field
from pathlib import Path
from typing import Any

import yaml

from files import shown
from lab.configs.findings import Op
from lab.configs.lines import Said, listed, number, numbers, text_of
from lab.errors import ScenarioError
from params.data import Data
from traffic.reading import YamlError, parse_yaml

KIND = "nvue"
_USUAL = "default-global"
_SPEED = re.compile(r"(\d{1,4})([GM])")
_PORT = re.compile(r"swp\d+(s\d+)?")
_MARKS = {"min-threshold": 150_000, "max-threshold": 1_500_000, "probability": 100}
_TURNS = {queue: ("dwrr", 12 + queue % 2) for queue in range(8)}
_ROCE_TURNS = {0: ("dwrr", 50), 3: ("dwrr", 50), 6: ("strict", None)}
_POLL_MS, _ROBUSTNESS, _CABLE_M = 100, 3, 10
_MTU = 9216
# What says nothing of what is asked here.
_IDLE = {
    ("bridge",), ("service",), ("acl",), ("nve",), ("mlag",), ("evpn",), ("platform",),
    ("qos", "remark"), ("qos", "traffic-pool"), ("qos", "egress-shaper"), ("qos", "link-pause"),
    ("qos", "buffer"), ("qos", "advance-buffer-config"),
}  # fmt: skip
_IDLE_OF_PORTS = {"type", "description", "bridge", "bond", "evpn", "acl", "lldp", "router", "ptp"}

Command = tuple[int, list[str]]  # a line, and the words after `nv set`


class _Port(Data, frozen=False):
    """What commands say of a port."""

    line: int
    config: dict[str, str] = field(default_factory=dict)  # by command
    addresses: list[tuple[str, int]] = field(default_factory=list)


class _Pauses(Data, frozen=False):
    """Of a profile of PFC."""

    line: int
    priorities: set[int] = field(default_factory=set)
    config: dict[str, str] = field(default_factory=dict)


def is_nvue(text: str) -> bool:
    """Whether a text looks like NVUE's."""
    return bool(re.search(r"^(-\s+|nv\s+)set(:|\s)", text, re.MULTILINE))


def read_nvue(path: Path, beside: Path | None = None) -> Said:
    """What a file says, and what commands beside it say after it."""
    reader = _Reader(path)
    for at, words in _commands(path, text_of(path)):
        reader.take(at, words)
    if beside is not None:
        for _, words in _commands(beside, text_of(beside)):
            reader.take(0, words)
    return reader.said()


# --- commands -------------------------------------------------------------------------------------


def _commands(path: Path, text: str) -> Iterator[Command]:
    if re.search(r"^(\S*\$ )?nv set ", text, re.MULTILINE):
        for at, line in enumerate(text.splitlines(), 1):
            match = re.fullmatch(r"(?:\S*\$ )?nv set (.*)", line.strip())
            if match:
                yield at, match[1].split()
        return
    try:
        parse_yaml(text)  # within bounds, and nothing that Python would make of it
    except YamlError as error:
        found = re.findall(r"line (\d{1,9}), column", str(error))
        place = f"{shown(path)}:{found[-1]}" if found else shown(path)
        raise ScenarioError(
            f"{place}: {'it is no YAML from here on' if found else ' '.join(str(error).split())}",
            "It is to be NVUE's startup.yaml, or 'nv set' commands.",
        ) from None
    root = yaml.compose(text, Loader=yaml.CSafeLoader)
    parts = root.value if isinstance(root, yaml.SequenceNode) else [root]
    for part in parts:
        for key, value in part.value if isinstance(part, yaml.MappingNode) else []:
            if key.value == "set":
                yield from _leaves(value, [])


def _leaves(node: yaml.Node, words: list[str]) -> Iterator[Command]:
    if isinstance(node, yaml.MappingNode) and node.value:
        for key, value in node.value:
            if isinstance(key, yaml.ScalarNode):
                yield from _leaves(value, [*words, str(key.value)])
        return
    if isinstance(node, yaml.SequenceNode):
        for value in node.value:
            yield from _leaves(value, words)
        return
    last = [str(node.value)] if isinstance(node, yaml.ScalarNode) and node.value else []
    yield node.start_mark.line + 1, [*words, *last]


# --- what they say --------------------------------------------------------------------------------


class _Reader:
    """A file, and what its commands have said so far."""

    def __init__(self, path: Path) -> None:
        self._said = Said(path, KIND)
        self._ports: dict[str, _Port] = {}
        self._roce: str | None = None
        self._roce_line = 0
        self._trust: dict[str, str] = {}
        self._dscp: dict[str, dict[int, int]] = {}
        self._queue_of: dict[int, int] = {}
        self._marks: dict[str, dict[int, dict[str, str]]] = {}
        self._turns: dict[str, dict[int, dict[str, str]]] = {}
        self._pauses: dict[str, _Pauses] = {}
        self._watch = {"polling-interval": _POLL_MS, "robustness": _ROBUSTNESS}
        self._lines: dict[tuple[str, str], int] = {}  # of parts of profiles

    def take(self, at: int, words: list[str]) -> None:
        """A command."""
        match words:
            case ["system", "hostname", name]:
                self._said.name = name
            case ["system", *_]:
                pass
            case ["interface", names, *rest]:
                self._port(at, names, rest)
            case ["qos", *rest]:
                self._qos(at, rest)
            case ["router", "bgp", "autonomous-system", asn] | [
                "vrf", "default", "router", "bgp", "autonomous-system", asn
            ] if (number(asn, 2**32 - 1) or 0) > 0:  # fmt: skip
                self._said.put("DEVICE_METADATA", "localhost", at, bgp_asn=asn)
            case ["vrf", "default", "router", "bgp", "neighbor", name, *rest]:
                self._neighbour(at, name, rest)
            case ["router" | "vrf", *_]:
                pass  # addresses, tenants, policies: routes are taken to be the shortest
            case [first, *_] if (first,) in _IDLE:
                pass
            case _:
                self._left(at, words)

    def _left(self, at: int, words: list[str]) -> None:
        self._said.left(at, " ".join(words))

    def _neighbour(self, at: int, name: str, rest: list[str]) -> None:
        match rest:
            case ["remote-as", asn] if number(asn, 2**32 - 1):
                self._said.put("BGP_NEIGHBOR", name, at, asn=asn)
            case _:
                self._said.put("BGP_NEIGHBOR", name, at)

    def _port(self, at: int, names: str, rest: list[str]) -> None:
        for name in listed(names):
            if not _PORT.fullmatch(name):
                continue  # loopbacks, bonds, bridges: neither a cable nor a queue of its own
            port = self._ports.setdefault(name, _Port(at))
            match rest:
                case ["link", "speed" | "mtu" | "fec" as what, value]:
                    port.config[what] = value
                case ["link", "state", "up" | "down" as value, *_]:
                    port.config["state"] = value
                case ["ip", "address", address] if "/" in address:
                    port.addresses.append((address, at))
                case ["qos", "pfc-watchdog"]:
                    port.config["watchdog"] = "enable"
                case ["qos", "pfc-watchdog", "state", value]:
                    port.config["watchdog"] = value
                case ["qos", "mapping" | "pfc" | "congestion-control" | "egress-scheduler" as what,
                      "profile", value]:  # fmt: skip
                    port.config[what] = value
                case ["qos", *_]:
                    self._left(at, ["interface", name, *rest])
                case [] | ["link" | "ip", *_]:
                    pass
                case [first, *_] if first in _IDLE_OF_PORTS:
                    pass
                case _:
                    self._left(at, ["interface", name, *rest])

    def _qos(self, at: int, words: list[str]) -> None:
        match words:
            case ["roce"] | ["roce", "enable", "on"]:
                self._roce, self._roce_line = self._roce or "lossless", at
            case ["roce", "enable", "off"]:
                self._roce = None
            case ["roce", "mode", "lossless" | "lossy" as mode]:
                self._roce, self._roce_line = mode, at
            case ["mapping", name, "trust", "l2" | "l3" | "both" | "port" as trust]:
                self._trust[name] = trust
            case ["mapping", name, "dscp", dscps, "switch-priority", priority]:
                of = self._numbers(at, words, dscps, 63)
                to = self._numbers(at, words, priority, 7)[0]
                self._dscp.setdefault(name, {}).update(dict.fromkeys(of, to))
                self._lines |= {(name, f"dscp {dscp}"): at for dscp in of}
            case ["mapping", _, "pcp" | "port-default-sp", *_]:
                pass  # RoCEv2 between subnets has no tag
            case [first, *_] if ("qos", first) in _IDLE:
                pass
            case [_]:
                pass  # a part without anything in it
            case _ if not self._profile(at, words):
                self._left(at, ["qos", *words])

    def _profile(self, at: int, words: list[str]) -> bool:
        """Of queues and pauses."""
        match words:
            case ["egress-queue-mapping", _, "switch-priority", which, "traffic-class", queue]:
                to = self._numbers(at, words, queue, 7)[0]
                of = self._numbers(at, words, which, 7)
                self._queue_of |= dict.fromkeys(of, to)
                self._lines |= {("queue", str(one)): at for one in of}
            case ["congestion-control", name, "traffic-class", which, what, value]:
                self._each(at, words, self._marks.setdefault(name, {}), which, what, value)
                self._lines[name, "marks"] = at
            case ["egress-scheduler", name, "traffic-class", which, "mode" | "bw-percent" as what,
                  value]:  # fmt: skip
                self._each(at, words, self._turns.setdefault(name, {}), which, what, value)
                self._lines[name, "turns"] = at
            case ["pfc", name, "switch-priority", which]:
                pauses = self._pauses.setdefault(name, _Pauses(at))
                pauses.priorities |= set(self._numbers(at, words, which, 7))
            case ["pfc", name, "tx" | "rx" | "cable-length" | "port-buffer" | "xoff-threshold"
                  | "xon-threshold" as what, value]:  # fmt: skip
                self._pauses.setdefault(name, _Pauses(at)).config[what] = value
            case ["pfc-watchdog", "polling-interval" | "robustness" as what, value]:
                self._watch[what] = max(1, self._numbers(at, words, value, 100_000)[0])
            case _:
                return False
        return True

    def _numbers(self, at: int, words: list[str], text: str, most: int) -> list[int]:
        found = numbers(text, most)
        if not found:
            raise self._said.wrong(
                at, " ".join(["qos", *words]), f"'{text}' is to be a number from 0 to {most}."
            )
        return found

    def _each(
        self, at: int, words: list[str], of: dict[int, dict[str, str]], which: str, what: str,
        value: str,
    ) -> None:  # fmt: skip
        for queue in self._numbers(at, words, which, 7):
            of.setdefault(queue, {})[what.removesuffix("-bytes")] = value

    # --- tables -----------------------------------------------------------------------------------

    def said(self) -> Said:
        """All of it, as tables."""
        said = self._said
        self._tell_queues()
        for name in {port.config.get("mapping", _USUAL) for port in self._ports.values()}:
            self._tell_classes(name)
        for name, port in self._ports.items():
            self._tell(name, port)
        if any(port.config.get("watchdog") == "enable" for port in self._ports.values()):
            said.put("PFC_WD", "GLOBAL", 0, POLL_INTERVAL=self._watch["polling-interval"])
        return said

    def _tell_queues(self) -> None:
        made = {p: p for p in range(8)}
        if self._roce:
            made = {p: p if p in (3, 6) else 0 for p in range(8)}
        for priority, queue in (made | self._queue_of).items():
            at = self._lines.get(("queue", str(priority)), self._roce_line)
            self._said.map("TC_TO_QUEUE_MAP", _USUAL, at, {priority: queue})
            self._said.map("MAP_PFC_PRIORITY_TO_QUEUE", _USUAL, at, {priority: queue})

    def _is_trusted(self, name: str) -> bool:
        return self._trust.get(name, "both" if self._roce else "l2") in ("l3", "both")

    def _tell_classes(self, name: str) -> None:
        if self._is_trusted(name):
            classes = {dscp: dscp // 8 for dscp in range(64)} | self._dscp.get(name, {})
            for dscp, priority in classes.items():
                at = self._lines.get((name, f"dscp {dscp}"), self._roce_line)
                self._said.map("DSCP_TO_TC_MAP", name, at, {dscp: priority})

    def _tell(self, name: str, port: _Port) -> None:
        said, config = self._said, port.config
        speed = _SPEED.fullmatch(config.get("speed", ""))
        said.put(
            "PORT", name, port.line,
            speed=int(speed[1]) * (1000 if speed[2] == "G" else 1) if speed else None,
            mtu=number(config.get("mtu", ""), 9216) or _MTU, alias=name,
            admin_status=config.get("state", "up"),
            fec=config["fec"] if config.get("fec") in ("rs", "baser", "off") else None,
        )  # fmt: skip
        for address, at in port.addresses:
            said.put("INTERFACE", f"{name}|{address}", at)
        profile = config.get("pfc", _USUAL)
        usual = _Pauses(self._roce_line, {3} if self._roce == "lossless" else set())
        pauses = self._pauses.get(profile, usual)
        if self._roce == "lossless" and profile in self._pauses and not pauses.priorities:
            pauses.priorities = {3}
        paused = set() if pauses.config.get("tx") == "disable" else pauses.priorities
        mapping = config.get("mapping", _USUAL)
        kept = ",".join(map(str, sorted(paused))) or None
        said.put(
            "PORT_QOS_MAP", name, pauses.line or port.line,
            dscp_to_tc_map=mapping if self._is_trusted(mapping) else None,
            tc_to_queue_map=_USUAL, pfc_to_queue_map=_USUAL, pfc_enable=kept,
            pfcwd_sw_enable=kept if config.get("watchdog") == "enable" else None,
        )  # fmt: skip
        if pauses.config.get("rx") == "disable" and paused:
            said.left(pauses.line, f"pfc {profile} rx disable", "pauses that are not obeyed")
        self._tell_headroom(name, profile, pauses, paused)
        if config.get("watchdog") == "enable" and paused:
            poll = self._watch["polling-interval"]
            said.put("PFC_WD", name, port.line, action="drop", restoration_time=poll,
                     detection_time=poll * self._watch["robustness"])  # fmt: skip
        self._tell_marks(name, config.get("congestion-control", _USUAL))
        self._tell_turns(name, config.get("egress-scheduler", _USUAL))

    def _tell_headroom(self, name: str, profile: str, pauses: _Pauses, paused: set[int]) -> None:
        said, config = self._said, pauses.config
        if paused:
            metres = number(config.get("cable-length", ""), 100_000) or _CABLE_M
            said.tables.setdefault("CABLE_LENGTH", {}).setdefault(profile, {})[name] = f"{metres}m"
        sizes = [number(config.get(what, ""), 10**9)
                 for what in ("port-buffer", "xoff-threshold", "xon-threshold")]  # fmt: skip
        have, xoff, xon = sizes
        if have is None or xoff is None or have <= xoff:
            said.computes_headroom(name, paused)
            return
        said.tables.setdefault("BUFFER_POOL", {}).setdefault("roce-reserved-ingress", {})
        said.put("BUFFER_PROFILE", profile, pauses.line, pool="roce-reserved-ingress", size=xoff,
                 xoff=have - xoff, xon_offset=xon)  # fmt: skip
        for priority in paused:
            said.put("BUFFER_PG", f"{name}|{priority}", pauses.line, profile=profile)

    def _tell_marks(self, name: str, profile: str) -> None:
        said = self._said
        own: dict[int, dict[str, Any]] = {queue: {} for queue in ((0, 3) if self._roce else (0,))}
        curves = own | self._marks.get(profile, {}) if profile == _USUAL else self._marks.get(
            profile, {})  # fmt: skip
        at = self._lines.get((profile, "marks"), self._roce_line)
        for queue, curve in curves.items():
            is_on = curve.get("ecn", "enable") == "enable"
            drops = curve.get("red") == "enable"
            low, high, percent = (
                number(str(curve.get(key, usual)), 10**9) for key, usual in _MARKS.items()
            )
            if not (is_on or drops) or None in (low, high, percent):
                continue
            marked = f"{profile}-{queue}"
            said.put(
                "WRED_PROFILE", marked, at, ecn="ecn_all" if is_on else "ecn_none",
                wred_green_enable=str(drops).lower(), green_min_threshold=low,
                green_max_threshold=high, green_drop_probability=min(percent or 0, 100),
            )  # fmt: skip
            said.put("QUEUE", f"{name}|{queue}", at, wred_profile=marked)

    def _tell_turns(self, name: str, profile: str) -> None:
        usual = _ROCE_TURNS if self._roce else _TURNS
        configured = self._turns.get(profile)
        turns = usual if configured is None else {
            queue: (of.get("mode", "dwrr"), number(of.get("bw-percent", ""), 100))
            for queue, of in configured.items()
        }  # fmt: skip
        at = self._lines.get((profile, "turns"), self._roce_line)
        for queue, (mode, percent) in turns.items():
            kind = "STRICT" if mode == "strict" else "DWRR"
            turn = f"{kind}-{percent or 0}"
            self._said.put("SCHEDULER", turn, at, type=kind,
                           weight=percent if kind == "DWRR" and percent else None)  # fmt: skip
            self._said.put("QUEUE", f"{name}|{queue}", at, scheduler=turn)


# --- cures ----------------------------------------------------------------------------------------


def commands(ops: Iterable[Op]) -> list[str]:
    """What mends a switch, as one types it; what NVUE cannot say is a comment."""
    made: list[str] = []
    for op in ops:
        table, key, name = [*op["path"].split("/")[1:], "", ""][:3]
        value = str(op["value"])
        match table, name:
            case "PORT", "mtu":
                made.append(f"nv set interface {key} link mtu {value}")
            case "PORT", "admin_status":
                made.append(f"nv set interface {key} link state {value}")
            case "PORT_QOS_MAP", "pfc_enable" if value != "none":
                profile = f"closlab-{value.replace(',', '-')}"
                made += [f"nv set qos pfc {profile} switch-priority {value}",
                         f"nv set interface {key} qos pfc profile {profile}"]  # fmt: skip
            case "PORT_QOS_MAP", "pfcwd_sw_enable":
                made.append(f"nv set interface {key} qos pfc-watchdog state enable")
            case "PORT_QOS_MAP", "dscp_to_tc_map":
                made.append(f"nv set qos mapping {value} trust l3")
            case "DSCP_TO_TC_MAP", dscp if dscp:
                made.append(f"nv set qos mapping {key} dscp {dscp} switch-priority {value}")
            case "TC_TO_QUEUE_MAP" | "MAP_PFC_PRIORITY_TO_QUEUE", tc if tc:
                made.append(
                    f"nv set qos egress-queue-mapping {key} switch-priority {tc} "
                    f"traffic-class {value}"
                )
            case "PFC_WD", "POLL_INTERVAL":
                made.append(f"nv set qos pfc-watchdog polling-interval {value}")
            case _:
                made.append(f"# not said in NVUE: {table} {key} {name} {value}")
    return made
