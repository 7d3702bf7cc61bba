"""FRR's `frr.conf`: with whom a switch speaks BGP, as which AS, its addresses, its tenants.

Commands are those of FRR's user guide (Zebra, BGP, VRF, EVPN). FRR says nothing of ports' speeds,
queues and pauses: its file stands beside one that does, of a switch of the same hostname. Routes
are taken to be the shortest that AS numbers allow; policies that would have it otherwise are listed
as lines that are not understood.
"""

from __future__ import annotations

from dataclasses import field
from ipaddress import ip_network
from pathlib import Path

from lab.configs.lines import Said, nested, number, text_of
from params.data import Data

_MAX_AS = 2**32 - 1
# Lines that say nothing of ways: the session's clocks, logs, and what ends a section.
_IDLE = {
    "frr", "log", "service", "line", "end", "exit", "exit-vrf", "exit-address-family", "password",
    "enable", "debug", "no", "agentx", "!",
}  # fmt: skip
_IDLE_OF_BGP = {
    "bgp", "timers", "maximum-paths", "exit", "exit-address-family", "no", "coalesce-time",
}  # fmt: skip
_IDLE_OF_NEIGHBOURS = {
    "activate", "timers", "bfd", "description", "advertisement-interval", "capability", "password",
    "update-source", "ebgp-multihop", "soft-reconfiguration", "disable-connected-check",
}  # fmt: skip


class Routing(Data, frozen=False):
    """What a frr.conf says."""

    said: Said
    networks: list[str] = field(default_factory=list)
    tenants: dict[str, int | None] = field(default_factory=dict)  # by VRF its VNI
    is_evpn: bool = False

    @property
    def asn(self) -> int | None:
        """The AS that the switch is."""
        asn = self.said.tables.get("DEVICE_METADATA", {}).get("localhost", {}).get("bgp_asn")
        return None if asn is None else int(asn)

    def lines(self) -> list[str]:
        """What the lab's model can have only if one asks for it."""
        lines = []
        if sessions := self.said.tables.get("BGP_NEIGHBOR"):
            lines.append(
                f"BGP with {len(sessions)} neighbours: control.kind=bgp speaks it, on Mininet"
            )
        if self.networks:
            lines.append(f"networks {', '.join(self.networks[:4])}: the lab has its own addresses")
        if self.tenants or self.is_evpn:
            names = ", ".join(f"{name} ({vni or 'no VNI'})" for name, vni in self.tenants.items())
            lines.append(
                f"tenants {names or 'by EVPN'}: overlay.kind=vxlan, with hosts of your choice"
            )
        return lines


def read_frr(path: Path) -> Routing:
    """What a file says."""
    routing = Routing(Said(path, "frr"))
    groups: set[str] = set()
    for at, around, words in nested(text_of(path)):
        if not around:
            is_read = _of_top(routing, at, words)
        elif around[0][:2] == ["router", "bgp"]:
            is_own = around[0][3:4] != ["vrf"]
            is_read = _of_bgp(routing, groups, at, is_own, words)
        else:
            is_read = _of_section(routing, at, around[0], words)
        if not is_read:
            within = f", in '{' '.join(around[-1])}'" if around else ""
            routing.said.left(at, " ".join(words), f"not understood{within}")
    return routing


def _of_top(routing: Routing, at: int, words: list[str]) -> bool:
    said = routing.said
    match words:
        case ["hostname", name]:
            said.name = name
        case ["vrf", name]:
            routing.tenants.setdefault(name, None)
        case ["interface", name, *_]:
            said.lines["INTERFACE", name] = at
        case ["router", "bgp", asn, "vrf", name] if number(asn, _MAX_AS):
            routing.tenants.setdefault(name, None)
        case ["router", "bgp", asn, *_] if number(asn, _MAX_AS):
            said.put("DEVICE_METADATA", "localhost", at, bgp_asn=asn)
        case [first, *_]:
            return first in _IDLE
    return True


def _is_network(text: str) -> bool:
    try:
        ip_network(text, strict=False)
    except ValueError:
        return False
    return "/" in text


def _of_section(routing: Routing, at: int, section: list[str], words: list[str]) -> bool:
    match section, words:
        case ["vrf", name], ["vni", vni, *_] if number(vni, 2**24 - 1):
            routing.tenants[name] = number(vni, 2**24 - 1)
        case ["interface", name, *_], ["ip" | "ipv6", "address", address] if "/" in address:
            routing.said.put("INTERFACE", f"{name}|{address}", at)
        case ["interface", *_], ["ip" | "ipv6" | "description" | "no" | "exit", *_]:
            pass
        case _, [first, *_]:
            return first in ("exit", "exit-vrf")
    return True


def _of_bgp(routing: Routing, groups: set[str], at: int, is_own: bool, words: list[str]) -> bool:
    said = routing.said
    match words:
        case ["neighbor", group, "peer-group"]:
            groups.add(group)
        case ["neighbor", name, "interface", *_] if is_own:
            said.put("BGP_NEIGHBOR", name, at)
        case ["neighbor", name, "remote-as", asn] if name in groups or not is_own:
            pass
        case ["neighbor", name, "remote-as", asn]:
            said.put("BGP_NEIGHBOR", name, at, asn=asn if number(asn, _MAX_AS) else None)
        case ["neighbor", name, "peer-group", _]:
            said.put("BGP_NEIGHBOR", name, at)
        case ["neighbor", _, what, *_] if what in _IDLE_OF_NEIGHBOURS:
            pass
        case ["network", prefix, *_] if _is_network(prefix):
            routing.networks.append(prefix)
        case ["redistribute", *_] | ["address-family", *_] | ["advertise", *_]:
            routing.is_evpn |= words[:3] == ["address-family", "l2vpn", "evpn"]
        case ["advertise-all-vni"] | ["vni", *_]:
            routing.is_evpn = True
        case [first, *_]:
            return first in _IDLE_OF_BGP
    return True
