"""What is looked for between adapters and their switches; docs/production.md has the table."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

from lab.configs.adapters import TOS, Adapter, Nic
from lab.configs.basis import Findings, facts_of, listed
from lab.configs.config_db import Port, Switch
from lab.configs.fabric import Place
from lab.configs.findings import Finding, Level

At = tuple[Adapter, Nic, Switch, Port]


def _places(found: Findings) -> Iterator[At]:
    """Each interface that a file describes, and the port that it is cabled to.

    An interface is at the port whose neighbour's port has its name; where none has, at all of them.
    """
    fabric = found.fabric
    for host, adapter in fabric.adapters.items():
        places = fabric.hosts.get(host, [])
        for nic in adapter.nics.values():
            named = [one for one in places if nic.name and _far(found, one) == nic.name]
            others = [one for one in places if _far(found, one) not in adapter.nics]
            for place in named or others:
                port = fabric.port(place)
                if port.is_up:
                    yield adapter, nic, fabric.switches[place.switch], port


def _far(found: Findings, place: Place) -> str | None:
    return found.fabric.switches[place.switch].neighbours[place.port][1]


def _command(nic: Nic, text: str) -> str:
    return f"mlnx_qos -i {nic.name or 'INTERFACE'} {text}"


def _pfc(found: Findings) -> Iterator[Finding]:
    for adapter, nic, switch, port in _places(found):
        if nic.pfc is None or nic.pfc == port.pfc:
            continue
        flags = ",".join("1" if p in port.pfc else "0" for p in range(8))
        yield Finding(
            "adapter-pfc", adapter.host, "pfc", nic.name,
            f"it pauses {listed(nic.pfc)}, and {switch.name} {port.name} {listed(port.pfc)}",
            f"one end neither pauses the other for {listed(nic.pfc ^ port.pfc)} nor obeys it: "
            "packets of that priority are lost",
            f"{_command(nic, f'--pfc {flags}')}; or set it at the switch.",
            facts=facts_of(found, switch, port),
        )  # fmt: skip


def _trust(found: Findings) -> Iterator[Finding]:
    for adapter, nic, switch, port in _places(found):
        by_dscp = switch.map_of(port, "dscp_to_tc_map") is not None
        if nic.trust != "pcp" or not by_dscp or not port.pfc:
            continue
        yield Finding(
            "adapter-trust", adapter.host, "trust", nic.name,
            f"it tells priorities by 802.1Q's tag, and {switch.name} {port.name} by DSCP",
            "packets without a tag have priority 0 in the adapter: pauses of the class that they "
            "have in the switch do not hold them, and they are lost",
            f"{_command(nic, '--trust dscp')}.",
        )  # fmt: skip


def _dscp(found: Findings) -> Iterator[Finding]:
    for adapter, nic, switch, port in _places(found):
        dscp = adapter.dscp
        classes = switch.map_of(port, "dscp_to_tc_map")
        if dscp is None or classes is None or not port.pfc or nic.trust == "pcp":
            continue
        tc = classes.get(dscp)
        mine = nic.priorities.get(dscp)
        if tc is None and switch.kind != "sonic":
            continue  # by a map that the switch has of its own
        if tc not in port.pfc and tc in (nic.pfc or ()):
            continue  # adapter-pfc
        if tc not in port.pfc:
            what = f"class {'none' if tc is None else tc}, which is not paused"
        elif mine is not None and mine != tc:
            what = f"class {tc}, and to priority {mine} in the adapter"
        else:
            continue
        yield Finding(
            "adapter-dscp", adapter.host, TOS, nic.name,
            f"connections have ToS {adapter.tos}, DSCP {dscp}, which leads at {switch.name} "
            f"{port.name} to {what}",
            "a pause of their class does not hold them: they are lost where they are to be kept",
            f"cma_roce_tos -t with the ToS of a DSCP that leads to {listed(port.pfc)} at both, or "
            "map it so.",
        )  # fmt: skip


def _ecn(found: Findings) -> Iterator[Finding]:
    for adapter, nic, switch, port in _places(found):
        marks = {
            p for p in port.pfc
            if (wred := switch.wred.get(port.wred.get(switch.queue_of(port, p), ""))) and wred.marks
        }  # fmt: skip
        for of, what in ((nic.tells, "np"), (nic.heeds, "rp")):
            off = sorted(p for p in marks if of.get(p) is False)
            if off:
                does = "tells nobody of marks" if what == "np" else "does not heed what it is told"
                yield Finding(
                    "adapter-ecn", adapter.host, f"{what}/enable", nic.name,
                    f"roce_{what}/enable is 0 for {listed(off)}: it {does}",
                    "congestion is marked in vain, and everybody is paused instead",
                    f"echo 1 > /sys/class/net/{nic.name or 'INTERFACE'}/ecn/roce_{what}/enable/"
                    f"{off[0]}",
                )  # fmt: skip


def _cnp(found: Findings) -> Iterator[Finding]:
    for adapter, nic, switch, port in _places(found):
        if nic.cnp_dscp is None:
            continue
        tc = (switch.map_of(port, "dscp_to_tc_map") or {}).get(nic.cnp_dscp)
        if tc is None or tc not in port.pfc:
            continue
        yield Finding(
            "adapter-cnp", adapter.host, "np/cnp_dscp", nic.name,
            f"notifications have DSCP {nic.cnp_dscp}, which leads to class {tc} at {switch.name} "
            f"{port.name}, which is lossless",
            "word of congestion waits behind what is congested, and is paused with it",
            f"echo 48 > /sys/class/net/{nic.name or 'INTERFACE'}/ecn/roce_np/cnp_dscp, and map 48 "
            "to a class that goes first.", level=Level.ADVICE,
        )  # fmt: skip


RULES: Mapping[str, Callable[[Findings], Iterator[Finding]]] = {
    "adapter-pfc": _pfc, "adapter-trust": _trust, "adapter-dscp": _dscp, "adapter-ecn": _ecn,
    "adapter-cnp": _cnp,
}  # fmt: skip
