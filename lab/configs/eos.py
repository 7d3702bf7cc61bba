"""Arista EOS: what `show running-config` says of ports, QoS, pauses, marks and BGP.

Commands are those of Arista's Validated Designs (aristanetworks/avd, the configurations that its
eos_cli_config_gen is tested by). An interface has what its `service-profile` says, unless it says
so itself. A port that routes trusts DSCPs unless configured otherwise; one that switches does not.

EOS has maps and thresholds of its own where a text says none, and they differ by platform; so a
DSCP is asked about if the text maps it, and how much headroom EOS finds is not asked. `kbytes` are
taken to be 1000 bytes; thresholds in segments and times depend on the platform, and are not read.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import field
from pathlib import Path

from lab.configs.findings import Op
from lab.configs.lines import Said, listed, nested, number, numbers, text_of
from params.data import Data

KIND = "eos"
_MAP = "EOS"
_UNITS = {"bytes": 1, "kbytes": 1000, "mbytes": 1_000_000}
_SPEED = re.compile(
    r"(?:forced |auto )?(\d{1,3})g(?:full)?(?:-\d)?|(?:forced |auto )?(\d{2,7})full"
)
_FEC = {"reed-solomon": "rs", "fire-code": "fc"}
_PORT = re.compile(r"(?:Ethernet|Et)(\d+(?:/\d+)*)")
_ROUTED_MTU, _SWITCHED_MTU = 1500, 9214  # where none is set: IP's, and what fits through a port
# Lines that say nothing of what is asked here, in interfaces.
_IDLE = {
    "description", "logging", "switchport", "spanning-tree", "lldp", "storm-control", "snmp",
    "load-interval",
    "ip", "ipv6", "no", "channel-group", "lacp", "sflow", "bfd", "ptp", "vrf", "comment",
}  # fmt: skip


class _Queue(Data, frozen=False):
    """Of a tx-queue."""

    line: int
    is_strict: bool | None = None  # None: not set
    percent: int | None = None
    is_shaped: bool = False
    marks: tuple[int, int, int] | None = None  # least, most, percent
    drops: tuple[int, int, int] | None = None


class _Qos(Data, frozen=False):
    """Of an interface, or of a profile of such."""

    line: int
    trust: str | None = None
    trust_line: int = 0
    is_paused: bool | None = None
    pause_line: int = 0
    no_drop: dict[int, bool] = field(default_factory=dict)
    is_watched: bool | None = None
    action: str | None = None
    times: dict[str, int] = field(default_factory=dict)  # in ms
    queues: dict[int, _Queue] = field(default_factory=dict)

    def under(self, other: _Qos) -> _Qos:
        """What both say; the other one's holds."""
        return _Qos(
            other.line, other.trust or self.trust, other.trust_line or self.trust_line,
            self.is_paused if other.is_paused is None else other.is_paused,
            other.pause_line or self.pause_line, self.no_drop | other.no_drop,
            self.is_watched if other.is_watched is None else other.is_watched,
            other.action or self.action, self.times | other.times, self.queues | other.queues,
        )  # fmt: skip


class _Port(Data, frozen=False):
    """Of an interface, beside its QoS."""

    qos: _Qos
    speed: int | None = None
    mtu: int | None = None
    is_up: bool = True
    is_routed: bool = False
    fec: str | None = None
    profile: tuple[str, int] | None = None
    addresses: list[tuple[str, int]] = field(default_factory=list)


def is_eos(text: str) -> bool:
    """Whether a text looks like a configuration of EOS."""
    return bool(re.search(r"^interface Ethernet\d", text, re.MULTILINE)) and bool(
        re.search(r"^hostname \S", text, re.MULTILINE)
    )


def read_eos(path: Path) -> Said:
    """What a file says."""
    return _Reader(path).said(text_of(path))


class _Reader:
    """A file, and what its lines have said so far."""

    def __init__(self, path: Path) -> None:
        self._said = Said(path, KIND)
        self._ports: dict[str, _Port] = {}
        self._profiles: dict[str, _Qos] = {}
        self._usual = _Qos(0)  # of the watchdog, for all ports
        self._queue_map: dict[int, int] = {}
        self._all_off = False
        self._groups: dict[str, str] = {}  # the AS of BGP's peer groups
        self._skipped: tuple[int, str, int] | None = None  # a section that is not read

    def said(self, text: str) -> Said:
        """All of it."""
        for at, around, words in nested(text):
            if not around:
                self._end_section()
                self._top(at, words)
            elif not self._within(at, around, words):
                self._section(at, around, words)
        self._end_section()
        for name, port in self._ports.items():
            self._tell(name, port)
        if self._queue_map:
            queues = {tc: tc for tc in range(8)} | self._queue_map
            self._said.tables["TC_TO_QUEUE_MAP"] = {
                _MAP: {str(tc): str(queue) for tc, queue in queues.items()}
            }
        return self._said

    # --- lines ------------------------------------------------------------------------------------

    def _top(self, at: int, words: list[str]) -> None:
        said = self._said
        match words:
            case ["hostname", name]:
                said.name = name
            case ["interface", name] if match := _PORT.fullmatch(name):
                self._ports.setdefault(f"Ethernet{match[1]}", _Port(_Qos(at)))
                said.lines["PORT", f"Ethernet{match[1]}"] = at
            case ["qos", "profile", name]:
                self._profiles.setdefault(name, _Qos(at))
            case ["qos", "map", "dscp", *which, "to", "traffic-class", tc]:
                self._map(at, words, which, tc, 63, "DSCP_TO_TC_MAP")
            case ["qos", "map", "dscp", *which, "to", "traffic-class", tc, "drop-precedence", _]:
                self._map(at, words, which, tc, 63, "DSCP_TO_TC_MAP")
            case ["qos", "map", "traffic-class", *which, "to", "tx-queue" | "uc-tx-queue", queue]:
                self._map(at, words, which, queue, 7, "")
            case ["router", "bgp", asn] if (number(asn, 2**32 - 1) or 0) > 0:
                said.put("DEVICE_METADATA", "localhost", at, bgp_asn=asn)
            case ["priority-flow-control", "all", "off"]:
                self._all_off = True
            case ["priority-flow-control", "pause", "watchdog", *rest] if self._watch(
                self._usual, rest
            ):
                pass
            case ["interface", *_] | ["vlan", *_] | ["ip", *_] | ["end"]:
                self._skipped = (at, " ".join(words), 0) if words != ["end"] else None
            case _:
                self._skipped = at, " ".join(words), 0

    def _map(
        self, at: int, words: list[str], which: list[str], to: str, most: int, table: str
    ) -> None:
        keys = [key for part in which for key in numbers(part, most) or [-1]]
        value = number(to, 7)
        if value is None or -1 in keys or not keys:
            raise self._said.wrong(
                at, " ".join(words), f"Numbers are 0 to {most}, and classes and queues 0 to 7."
            )
        entries = dict.fromkeys(keys, value)
        if table:
            self._said.map(table, _MAP, at, entries)
        else:
            self._queue_map |= entries
            self._said.lines.update({("TC_TO_QUEUE_MAP", f"{_MAP}|{tc}"): at for tc in entries})

    def _section(self, at: int, around: list[list[str]], words: list[str]) -> None:
        """A line of a section that is not read, which is listed once; or of one that is."""
        if self._skipped is not None:
            first, header, more = self._skipped
            self._skipped = first, header, more + 1
        else:
            self._said.left(at, " ".join(words), f"not understood, in '{' '.join(around[0])}'")

    def _end_section(self) -> None:
        if self._skipped is not None:
            at, header, more = self._skipped
            self._said.left(
                at, header, f"not read, with {more} lines in it" if more else "not read"
            )
            self._skipped = None

    def _within(self, at: int, around: list[list[str]], words: list[str]) -> bool:
        match around[0]:
            case ["interface", name] if match := _PORT.fullmatch(name):
                port = self._ports[f"Ethernet{match[1]}"]
                return self._qos(at, port.qos, around[1:], words) or (
                    len(around) == 1 and self._port(at, port, words)
                )
            case ["qos", "profile", name]:
                return self._qos(at, self._profiles[name], around[1:], words)
            case ["router", "bgp", _] if self._skipped is None:
                return self._bgp(at, words)
        return False

    def _port(self, at: int, port: _Port, words: list[str]) -> bool:
        match words:
            case ["speed", *rest] if match := _SPEED.fullmatch(" ".join(rest)):
                port.speed = int(match[1]) * 1000 if match[1] else int(match[2])
            case ["mtu", mtu] if number(mtu, 65_535):
                port.mtu = number(mtu, 65_535)
            case ["shutdown"] | ["no", "shutdown"]:
                port.is_up = words[0] == "no"
            case ["no", "switchport"]:
                port.is_routed = True
            case ["error-correction", "encoding", kind] if kind in _FEC:
                port.fec = _FEC[kind]
            case ["service-profile", name]:
                port.profile = name, at
            case ["ip" | "ipv6", "address", address] if "/" in address:
                port.addresses.append((address, at))
                port.is_routed = True
            case [first, *_]:
                return first in _IDLE and words[:2] not in (["no", "priority-flow-control"],)
        return True

    def _qos(self, at: int, qos: _Qos, around: list[list[str]], words: list[str]) -> bool:
        if around:
            match around[0]:
                case ["tx-queue" | "uc-tx-queue", which] if which in map(str, range(8)):
                    return len(around) == 1 and _queue(qos.queues[int(which)], words)
            return False
        match words:
            case ["tx-queue" | "uc-tx-queue", which] if which in map(str, range(8)):
                qos.queues.setdefault(int(which), _Queue(at))
            case ["qos", "trust", "dscp" | "cos" as what]:
                qos.trust, qos.trust_line = what, at
            case ["no", "qos", "trust"]:
                qos.trust, qos.trust_line = "nothing", at
            case ["priority-flow-control", "on"] | ["no", "priority-flow-control"]:
                qos.is_paused, qos.pause_line = words[0] != "no", at
            case ["priority-flow-control", "priority", which, "no-drop" | "drop" as what] if (
                which in map(str, range(8))
            ):
                qos.no_drop[int(which)] = what == "no-drop"
                qos.pause_line = at
            case ["priority-flow-control", "pause", "watchdog"]:
                qos.is_watched = True
            case ["no", "priority-flow-control", "pause", "watchdog"]:
                qos.is_watched = False
            case ["priority-flow-control", "pause", "watchdog", "port", *rest]:
                return self._watch(qos, rest)
            case _:
                return False
        return True

    def _watch(self, qos: _Qos, words: Sequence[str]) -> bool:
        match words:
            case ["action", "drop" | "notify-only" | "errdisable" as action]:
                qos.action = action
                return True
            case ["override", "action", "drop"]:
                qos.action = "drop"
                return True
            case ["default" | "timer", *rest]:
                pairs = [word for word in rest if word != "forced"]
                for name, text in zip(pairs[::2], pairs[1::2], strict=False):
                    if name not in ("timeout", "recovery-time", "polling-interval"):
                        return False
                    if text == "auto":
                        continue
                    if not re.fullmatch(r"\d{1,6}(\.\d{1,3})?", text):
                        return False
                    qos.times[name] = round(float(text) * 1000)
                return bool(pairs) and len(pairs) % 2 == 0
        return False

    def _bgp(self, at: int, words: list[str]) -> bool:
        match words:
            case ["neighbor", name, "peer", "group"] | ["neighbor", name, "peer-group"]:
                self._groups.setdefault(name, "")
            case ["neighbor", name, "remote-as", other] if name in self._groups:
                self._groups[name] = other
            case ["neighbor", name, "remote-as", other] if _is_address(name):
                self._said.put("BGP_NEIGHBOR", name, at, asn=other)
            case ["neighbor", name, "peer", "group", group] if _is_address(name):
                self._said.put("BGP_NEIGHBOR", name, at, asn=self._groups.get(group) or None)
            case ["neighbor", "interface", which, "peer-group", _, *_]:
                for part in listed(which):
                    if match := _PORT.fullmatch(part):
                        self._said.put("BGP_NEIGHBOR", f"Ethernet{match[1]}", at)
            case ["router-id" | "maximum-paths" | "redistribute" | "distance", *_]:
                pass
            case ["neighbor" | "no" | "bgp" | "address-family" | "update", *_]:
                return words[0] in ("no", "bgp", "update") or words[2:3] != ["remote-as"]
            case _:
                return False
        return True

    # --- tables -----------------------------------------------------------------------------------

    def _tell(self, name: str, port: _Port) -> None:
        said, qos = self._said, port.qos
        if port.profile is not None:
            profile, at = port.profile
            if profile in self._profiles:
                qos = self._profiles[profile].under(qos)
            else:
                said.left(at, f"service-profile {profile}", "there is no such qos profile")
        mtu = port.mtu or (_ROUTED_MTU if port.is_routed else _SWITCHED_MTU)
        said.put(
            "PORT", name, said.lines["PORT", name], speed=port.speed, mtu=min(mtu, 9216),
            admin_status="up" if port.is_up else "down", alias=f"Et{name.removeprefix('Ethernet')}",
            fec=port.fec,
        )  # fmt: skip
        for address, at in port.addresses:
            said.put("INTERFACE", f"{name}|{address}", at)
        paused = {p for p, is_kept in qos.no_drop.items() if is_kept and qos.is_paused}
        paused = set() if self._all_off else paused
        trusts = qos.trust in ("dscp", None) if port.is_routed else qos.trust == "dscp"
        if qos.trust or paused or qos.queues:
            self._tell_pauses(name, qos, paused, trusts and "DSCP_TO_TC_MAP" in said.tables)
        for queue, config in qos.queues.items():
            self._tell_queue(name, queue, config)

    def _tell_pauses(self, name: str, qos: _Qos, paused: set[int], trusts: bool) -> None:
        said, usual = self._said, self._usual
        times = usual.times | qos.times
        is_watched = qos.is_watched if qos.is_watched is not None else bool(times.get("timeout"))
        kept = ",".join(map(str, sorted(paused)))
        said.put(
            "PORT_QOS_MAP", name, qos.pause_line or qos.trust_line or qos.line,
            dscp_to_tc_map=_MAP if trusts else None,
            tc_to_queue_map=_MAP if self._queue_map else None,
            pfc_enable=kept or None, pfcwd_sw_enable=kept if is_watched and kept else None,
        )  # fmt: skip
        said.computes_headroom(name, paused)
        if paused and is_watched and times.get("timeout"):
            action = qos.action or usual.action
            said.put(
                "PFC_WD", name, qos.pause_line, detection_time=times["timeout"],
                restoration_time=times.get("recovery-time") or None,
                action={"notify-only": "alert"}.get(action or "", "drop"),
            )  # fmt: skip
            if poll := times.get("polling-interval"):
                said.put("PFC_WD", "GLOBAL", qos.pause_line, POLL_INTERVAL=poll)

    def _tell_queue(self, name: str, queue: int, config: _Queue) -> None:
        said, key = self._said, f"{name}|{queue}"
        entry: dict[str, str] = {}
        curve = config.marks or config.drops
        if curve is not None:
            profile = f"{name}-{queue}"
            entry["wred_profile"] = profile
            said.put(
                "WRED_PROFILE", profile, config.line, ecn="ecn_all" if config.marks else "ecn_none",
                wred_green_enable="true" if config.drops else "false", green_min_threshold=curve[0],
                green_max_threshold=curve[1], green_drop_probability=curve[2],
            )  # fmt: skip
        if config.is_strict or (config.is_strict is False and config.percent):
            kind = "STRICT" if config.is_strict else "DWRR"
            turn = f"{kind}-{'shaped' if config.is_shaped else config.percent or 0}"
            entry["scheduler"] = turn
            said.put(
                "SCHEDULER", turn, config.line, type=kind,
                weight=None if config.is_strict else config.percent,
                pir=1 if config.is_shaped else None,
            )  # fmt: skip
        if entry:
            said.put("QUEUE", key, config.line, **entry)


def _queue(queue: _Queue, words: list[str]) -> bool:
    match words:
        case ["priority", "strict"]:
            queue.is_strict = True
        case ["no", "priority"]:
            queue.is_strict = False
        case ["bandwidth", "percent", percent] if number(percent, 100):
            queue.percent = number(percent, 100)
        case ["shape", "rate", *_]:
            queue.is_shaped = True
        case ["random-detect", "ecn" | "drop" as what, *rest]:
            curve = _curve(rest)
            if curve is None:
                return False
            if what == "ecn":
                queue.marks = curve
            else:
                queue.drops = curve
        case _:
            return False
    return True


def _curve(words: list[str]) -> tuple[int, int, int] | None:
    """Least and most in bytes, and the percent there."""
    match words:
        case ["minimum-threshold", low, unit, "maximum-threshold", high, other, *rest] if (
            unit in _UNITS and other in _UNITS
        ):
            least, most = number(low, 999_999), number(high, 999_999)
            rest = rest[:-2] if rest[-2:-1] == ["weight"] else rest
            percent: int | None = 100
            if rest[:1] in (["max-mark-probability"], ["drop-probability"]) and len(rest) == 2:
                percent = number(rest[1], 100)
            elif rest:
                return None
            if least is None or most is None or percent is None:
                return None
            curve = least * _UNITS[unit], most * _UNITS[other], percent
            return curve if curve[0] <= curve[1] else None
    return None


def _is_address(text: str) -> bool:
    return "." in text or ":" in text


# --- cures ----------------------------------------------------------------------------------------


def commands(ops: Iterable[Op]) -> list[str]:
    """What mends a switch, as one types it; what EOS's text cannot say is a comment."""
    made: list[str] = []
    for op in ops:
        table, key, name = [*op["path"].split("/")[1:], "", ""][:3]
        key, value = key.replace("~1", "/").replace("~0", "~"), str(op["value"])
        match table, name:
            case "PORT", "mtu":
                made += [f"interface {key}", f"   mtu {value}"]
            case "PORT", "admin_status":
                made += [f"interface {key}", "   no shutdown" if value == "up" else "   shutdown"]
            case "PORT_QOS_MAP", "pfc_enable":
                kept = set() if value == "none" else set(value.split(","))
                made += [f"interface {key}", "   priority-flow-control on"]
                made += [
                    f"   priority-flow-control priority {p} {'no-' * (str(p) in kept)}drop"
                    for p in range(8)
                ]
            case "PORT_QOS_MAP", "dscp_to_tc_map":
                made += [f"interface {key}", "   qos trust dscp"]
            case "PORT_QOS_MAP", "pfcwd_sw_enable":
                made += [f"interface {key}", "   priority-flow-control pause watchdog"]
            case "DSCP_TO_TC_MAP", dscp if dscp:
                made.append(f"qos map dscp {dscp} to traffic-class {value}")
            case "TC_TO_QUEUE_MAP", tc if tc:
                made.append(f"qos map traffic-class {tc} to tx-queue {value}")
            case _:
                made.append(f"! not said in EOS: {table} {key} {name} {value}")
    return made
