"""What switches' files say of one another without naming each other: by addresses, and by FRR.

Two ports of two switches that alone have addresses of one subnet for two (/30 and /31, /126 and
/127) are the ends of a cable. Whoever has the address that BGP is spoken with, or is at the other
end of the port that it is spoken over, is the neighbour.
"""

from __future__ import annotations

from collections.abc import Mapping
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_interface

from files import shown
from lab.configs.config_db import SESSIONS_UNNAMED, Switch, printable
from lab.configs.frr import Routing

_FOR_TWO = {4: (30, 31), 6: (126, 127)}


def add_routing(switches: Mapping[str, Switch], routing: Routing) -> str | None:
    """What a frr.conf says, of its switch; a line, if there is none."""
    said = routing.said
    switch = switches.get(said.name or "")
    if switch is None:
        return (
            f"{shown(said.file)}: no other file tells of a switch {said.name or 'without hostname'}"
            "; it is left out"
        )
    switch.unread += said.unread
    if None not in (switch.asn, routing.asn) and switch.asn != routing.asn:
        switch.unread.append(
            f"{shown(said.file)}: router bgp {routing.asn}, and {shown(switch.file)} has AS "
            f"{switch.asn}, which is taken"
        )
    switch.asn = switch.asn or routing.asn
    switch.sessions |= said.tables.get("BGP_NEIGHBOR", {}).keys()
    for key in said.tables.get("INTERFACE", {}):
        name, _, address = key.partition("|")
        port = next((p.name for p in switch.ports.values() if name in (p.name, p.alias)), None)
        try:
            interface = ip_interface(address)
        except ValueError:
            switch.unread.append(f"{shown(said.file)}:{said.lines['INTERFACE', key]}: no address")
            continue
        if port is not None and interface not in switch.addresses.setdefault(port, []):
            switch.addresses[port].append(interface)
    switch.routing = tuple(routing.lines())
    return None


def cable_by_subnets(switches: Mapping[str, Switch]) -> None:
    """Neighbours of ports that have none."""
    places: dict[IPv4Network | IPv6Network, list[tuple[Switch, str]]] = {}
    for switch in switches.values():
        for port, addresses in switch.addresses.items():
            for one in addresses:
                if one.network.prefixlen in _FOR_TWO[one.version]:
                    places.setdefault(one.network, []).append((switch, port))
    for ends in places.values():
        if len(ends) == 2 and ends[0][0] is not ends[1][0]:
            for (here, port), (there, other) in (ends, ends[::-1]):
                here.neighbours.setdefault(port, (there.name, other))


def know_roles(switches: Mapping[str, Switch]) -> None:
    """What others say that a switch is, which does not say it itself."""
    for switch in switches.values():
        roles = sorted({other.roles.get(switch.name, "") for other in switches.values()} - {""})
        if not switch.role and len(roles) == 1:
            switch.role = roles[0]


def name_sessions(switches: Mapping[str, Switch], ends: Mapping[tuple[str, str], str]) -> None:
    """With which switches BGP is spoken; ``ends`` are the switches at ports' other ends."""
    owners = {
        one.ip: switch.name
        for switch in switches.values()
        for addresses in switch.addresses.values()
        for one in addresses
    }
    for switch in switches.values():
        table = switch.tables.get("BGP_NEIGHBOR", {})
        named = {key: entry.get("name") for key, entry in table.items()}
        named |= {key: named.get(key) for key in switch.sessions}
        if switch.bgp is not None and not switch.sessions:
            continue
        names = set()
        for key, peer in named.items():
            name = peer or ends.get((switch.name, key)) or _owner(owners, key)
            if name is None:
                if switch.bgp is not None or not table:
                    switch.unread.append(f"BGP with {printable(key)}: {SESSIONS_UNNAMED}")
                switch.bgp = None
                break
            names.add(name)
        else:
            if names:
                switch.bgp = frozenset(names)
                switch.unread = [line for line in switch.unread if SESSIONS_UNNAMED not in line]


def _owner(owners: Mapping[IPv4Address | IPv6Address, str], key: str) -> str | None:
    try:
        return owners.get(ip_interface(key).ip)
    except ValueError:
        return None
