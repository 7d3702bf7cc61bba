"""Scenarios by lot: of all that a scenario may say, whatever makes sense together.

A seed is a scenario, always the same one. `LEFT_OUT` names what is never drawn, and why; a test
holds that all else is.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from pydantic import ValidationError

from controller.settings import SettingsError
from controller.tables import SwitchSite, headroom_of, pool_of
from lab.errors import ScenarioError
from lab.runs.lots import fabrics, settings
from lab.runs.lots.faults import HARMLESS, faults
from lab.runs.lots.lot import Lot, Section
from lab.runs.lots.settings import CLASSES, Frame
from lab.runs.lots.traffic import Crowd, in_network, traffic
from lab.scenario import catalogue
from lab.scenario.experiment import Experiment
from lab.scenario.model import Scenario
from lab.scenario.topology import TOPOLOGIES
from lab.scenario.translate import controller_settings
from params.classes import CONTROL_PRIORITY
from params.data import Data
from params.load_balancing import Moves, Policy
from traffic.collectives import IN_NETWORK
from traffic.congestion import CONTROLS
from traffic.endpoint import TransportKind

__all__ = ["LEFT_OUT", "Drawn", "drawn", "secured"]

_ROOMY = 80  # bytes of what was cut that hold the headers of a packet that is encrypted
_MAX = 3_000_000_000  # bytes of headroom, so that all else finds room in what can be counted
_MININET = "of Mininet alone, which runs none of these"
_FORMAT = "another way to write transfers that flows, collectives and goal have too"
_KEPT = "what is kept of a run does nothing to it"
_ENDS = "a run's own"
_BROUGHT = "of somebody's own algorithm, which is compiled: tests/lab/test_pcm.py"
LEFT_OUT = {
    "name": _ENDS,
    "about": _ENDS,
    "question": "what a report answers first: tests/lab/test_verdict.py asks all of each run",
    "limit_ns": _ENDS,
    "measures.flows": _KEPT,
    "measures.series": _KEPT,
    "measures.series_ns": _KEPT,
    "measures.telemetry": _KEPT,
    "measures.pcap": _KEPT,
    "energy": _KEPT,
    "energy.optics": _KEPT,
    "energy.fabric_optics": _KEPT,
    "energy.switch": _KEPT,
    "energy.adapter_w": _KEPT,
    "transport.cc=pcm": _BROUGHT,
    "transport.pcm": _BROUGHT,
    "transport.pcm.file": _BROUGHT,
    "transport.pcm.ask_every": _BROUGHT,
    "topology.outside": _MININET,
    "topology.outside[].host": _MININET,
    "topology.outside[].speaks": _MININET,
    "topology.outside[].prefixes": _MININET,
    "control": _MININET,
    "control.kind": _MININET,
    "control.bfd_ms": _MININET,
    "transport.endpoint": _MININET,
    "faults[].action=restart-bgp": _MININET,
    "traffic.steps (inference)": "it has none, and says so",
    "traffic.kind=chakra": _FORMAT,
    "traffic.kind=msccl": _FORMAT,
    "traffic.kind=aicb": _FORMAT,
    "traffic.kind=ns3": _FORMAT,
    "link.overhead": "tests/lab/test_alone.py and docs/ns3.md hold it",
    "transport.follow_rate": "tests/traffic/endpoint and docs/ns3.md hold it",
    "transport.by_number": "tests/traffic/endpoint and docs/ns3.md hold it",
    "transport.cnp_priority": "tests/lab/test_settings.py and docs/ns3.md hold it",
    "transport.ack_every": "tests/traffic/endpoint and docs/ns3.md hold it",
    "traffic.sigma (poisson)": "tests/traffic/patterns hold it",
    "traffic.between_racks (poisson)": "tests/traffic/patterns hold it",
    "traffic.between_racks=True": "tests/traffic/patterns hold it",
}


class Drawn(Data):
    """A scenario by lot, and what is to be known of it."""

    seed: int
    content: Section
    lossless: tuple[int, ...]  # none if nobody is paused and nobody goes by credits
    carried: tuple[int, ...]  # the classes that anything of it has
    loses: bool  # by a fault, or a bad cable

    @property
    def scenario(self) -> Scenario:
        """The same, checked."""
        return catalogue.made(self.content)

    @property
    def is_sized(self) -> bool:
        """Whether somebody chose how much headroom there is, and it may be too little."""
        return "headroom" in self.content["pfc"] or "headroom_pool" in self.content["buffer"]


def drawn(seed: int, folder: Path | None, *, eventful: bool = False) -> Drawn:
    """A seed's scenario; files that it reads are written into the folder, if there is one.

    What is eventful has faults of any kind; of others half have none, and most the harmless ones.
    """
    lot = Lot(seed)
    topology = fabrics.topology(lot, folder)
    fabric = TOPOLOGIES[topology["kind"]].model_validate(topology).build()  # type: ignore[attr-defined]
    chosen = settings.frame(lot, fabric, topology["kind"])
    content: dict[str, Any] = {
        "name": f"lot-{seed}",
        "topology": topology,
        "link": settings.link(lot, chosen),
        "seed": seed,
        "limit_ns": "60ms",
        "measures": {"series": False, "flows": False},
    }
    carried = _carried(lot, chosen)
    bytes_kb = lot.one((30, 150)) * max(1, chosen.mtu // 1024)
    content |= _tenancy(lot, chosen, carried, bytes_kb)
    if "traffic" not in content:
        ports = fabric.ports_abreast
        rails = len(chosen.leaves) if chosen.kind == "rail" and fabric.host_ports == 1 else 0
        crowd = Crowd(len(fabric.hosts), chosen.gbps * ports, bytes_kb, folder, rails)
        content["traffic"] = traffic(lot, crowd, carried)
    content["classes"] = settings.classes(lot, chosen)
    content["trim"] = settings.trim(lot, chosen, content["classes"])
    content["pfc"] = settings.pfc(lot, chosen)
    content["ecn"] = settings.ecn(lot, chosen)
    content["schedule"] = settings.schedule(lot, chosen)
    content["lb"] = settings.balancing(lot, chosen)
    content |= lot.maybe(1.0 if eventful else 0.6, reroute_ns=lot.wide(1000, 100_000))
    has_llr = "llr" in content["link"]
    content["faults"] = faults(lot, chosen, has_llr=has_llr, eventful=eventful)
    content["link"] |= _of_hosts(content) if has_llr else {}
    if lot.chance(0.05):
        content["loss"] = settings.loss(lot, chosen)
    loses = "loss" in content or any(each["action"] not in HARMLESS for each in content["faults"])
    content["transport"] = settings.transport(
        lot, chosen, content["lb"]["policy"], loses=loses or eventful
    )
    content["int"] = settings.telemetry(lot, chosen)
    tenants = list(content.get("tenants", ()))
    content["transport"] |= settings.mrc(Lot(-15 - seed), chosen)  # the rest is as it was
    content["segments"] = settings.segments(lot, chosen, content["transport"], tenants)
    if content["int"] and not content["segments"] and lot.chance(0.4):
        content["int"]["format"] = "ioam"
    content |= settings.access(lot, chosen)
    content["buffer"] = settings.memory(lot, chosen)
    signals = settings.signals(lot, chosen)
    content |= _scaled_up(content, loses=loses or eventful)
    content |= secured(seed, content, often=0.3)
    content |= _delivered(content, has_ports=chosen.has_ports)
    for section, more in signals.items() if content["transport"].get("kind") != "sue" else ():
        content[section] = {**content.get(section, {}), **more}
    if _uses_control(content["transport"]):
        carried.append(CONTROL_PRIORITY)
    _size(lot, content, chosen, is_lossy=bool({*carried} & {*chosen.lossy}))
    is_sue = content["transport"].get("kind") == "sue"
    has_one_port = not chosen.has_ports and fabric.is_spread and not is_sue
    content |= in_network(lot, content, has_one_port=has_one_port)
    if content["traffic"].get("algorithm") == IN_NETWORK:  # of which switches have to read parts
        content["transport"].pop("security", None)
    lossless = tuple(chosen.lossless) if chosen.is_paused else ()
    return Drawn(seed, content, lossless, tuple(carried), loses)


def _of_hosts(content: Section) -> Section:
    """Whether hosts' links try again, too, where none stands still; by a chance of its own."""
    tries = Lot(-62 - content["seed"]).one((True, False))
    return {"llr_hosts": tries and all(fault["action"] != "halt" for fault in content["faults"])}


def _scaled_up(content: Section, *, loses: bool) -> Section:
    """The same by scale-up Ethernet, now and then, where that can do it; by a chance of its own."""
    lot = Lot(-13 - content["seed"])
    traffic = content["traffic"]
    if traffic["kind"] == "experts" and lot.chance(0.5):
        traffic = traffic | {"combine_bytes": lot.wide(64, 16384)}
        more = Lot(-14 - content["seed"])
        traffic |= more.maybe(0.5, choices="lot") | more.maybe(0.5, node=more.upto(3))
    transport = content["transport"]
    kept = {
        key: transport[key]
        for key in ("window", "timeout", "rto_ns", "retry_limit", "acks")
        if key in transport
    }
    own = {
        "transport": kept | {"kind": "sue", "cc": "none"},
        "traffic": traffic,
        "link": content["link"] | {"ip": 4},
    }
    if loses:
        own["transport"] |= {"rto_ns": kept.get("rto_ns", 200_000), "retry_limit": 250}
    own |= {section: {} for section in ("int", "segments") if section in content}
    if Policy(content["lb"]["policy"]).moves is Moves.PACKETS:
        own["lb"] = {"policy": "flowlet"}
    if lot.chance(0.15) and _is_valid(content | own):
        return own
    return {"traffic": traffic}


def secured(seed: int, content: Section, *, often: float) -> Section:
    """What changes where UET encrypts, now and then; by a chance of its own. No key is changed
    where packets may wait for longer than the one after it takes to come."""
    lot = Lot(-49 - seed)
    transport, trim = content["transport"], content.get("trim", {})
    if transport.get("kind") != "uet" or not lot.chance(often):
        return {}
    after_ns = lot.wide(20_000, 100_000)
    every_ns = lot.wide(4 * after_ns, 1_000_000)
    times = [every_ns * turn for turn in range(1, 1 + lot.upto(4))]
    keys: Section = {"rekey_at_ns": times, "rekey_after_ns": after_ns}
    waits = any(each["action"] in ("storm", "slow") for each in content.get("faults", ()))
    security = {"enabled": True, **({} if waits else lot.maybe(0.8, **keys))}
    roomy = {"trim": trim | {"size": max(_ROOMY, trim.get("size", 0))}} if trim else {}
    return {"transport": transport | {"security": security}, **roomy}


def _delivered(content: Section, *, has_ports: bool) -> Section:
    """The same by another of UET's modes now and then; by a chance of its own, too."""
    lot = Lot(-23 - content["seed"])
    transport = content["transport"]
    if transport.get("kind") != "uet" or lot.chance(0.4):
        return {}
    scatters = Policy(content["lb"]["policy"]).moves is Moves.PACKETS
    own = {
        "transport": settings.delivery(lot, transport, is_ordered=not (has_ports or scatters)),
    }
    return own if _is_valid(content | own) else {}


def _is_valid(content: Section) -> bool:
    """Whether a scenario may say this."""
    try:
        scenario = Scenario.model_validate(content | {"buffer": {"bytes": "4GB"}})
        Experiment.of(scenario)
    except (ScenarioError, SettingsError, ValidationError):
        return False
    return True


def _carried(lot: Lot, chosen: Frame) -> list[int]:
    """Some classes that lose nothing, and now and then one that may."""
    found = lot.some(chosen.lossless, lot.upto(min(3, len(chosen.lossless))))
    lossy = [priority for priority in CLASSES if priority not in chosen.lossless]
    return found + ([lot.one(lossy)] if lossy and lot.chance(0.3) else [])


def _uses_control(transport: Section) -> bool:
    sprays = TransportKind(transport.get("kind", "roce")).sprays
    return sprays or CONTROLS[transport["cc"]].hears_notices or transport.get("acks") == "control"


def _tenancy(lot: Lot, chosen: Frame, classes: list[int], kb: int) -> Section:
    """Who may speak to whom: everybody, or groups, each within itself."""
    if not chosen.is_tunnelled and not lot.chance(0.05):
        return {}
    names = [host.name for host in chosen.fabric.hosts]
    groups = [names[::2], names[1::2]] if len(names) >= 4 else [names]
    tenants = dict(zip(("blue", "red"), groups, strict=False))
    parts = [
        {
            "kind": "collective", "op": lot.one(("all-reduce", "all-to-all")), "ranks": ranks,
            "bytes": 1000 * kb, "priority": lot.one(classes),
        }
        for ranks in groups
    ]  # fmt: skip
    overlay = {"kind": "vxlan", "subnets": lot.one(("leaf", "tenant"))}
    return {
        "tenants": tenants,
        "traffic": {"kind": "mix", "parts": parts},
        **({"overlay": overlay} if chosen.is_tunnelled else {}),
    }


def _size(lot: Lot, content: Section, chosen: Frame, *, is_lossy: bool) -> None:
    """How much memory there is: from what headroom and reserved bytes need to much to share."""
    buffer = content["buffer"]
    buffer |= lot.maybe(0.04, profile=lot.one(("tomahawk-like", "tomahawk4-like")))
    needs = _needs(content)
    if max(map(sum, needs)) > _MAX:  # of small frames each takes a cell, and there are large ones
        buffer.pop("cell", None)
        needs = _needs(content)
    most, largest = max(map(sum, needs)), max(max(each, default=0) for each in needs)
    if most and ("profile" in buffer or lot.chance(0.15)):
        buffer["headroom_pool"] = lot.upto(round(1.1 * most), largest)
    elif most and lot.chance(0.08):
        share = _MAX // max(map(len, needs))  # all of it has to find room
        content["pfc"]["headroom"] = min(lot.upto(round(1.5 * largest), 0), share)
    taken = max(site.settings.buffer.bytes - pool_of(site) for site in _roomy(content))
    least = 2 * chosen.mtu + 4096
    if is_lossy:  # what is not paused has to find room for a frame
        least = round(least / min(1, buffer.get("lossy_alpha", buffer["alpha"])))
    buffer["bytes"] = taken + lot.wide(least, max(4_000_000, 2 * least))


def _needs(content: Section) -> list[list[int]]:
    """By switch the headroom of each port and lossless class, however much that is together."""
    return [
        [headroom_of(site, port) for port in site.ports for _ in site.lossless]
        for site in _roomy(content, headroom_pool=_MAX)
    ]


def _roomy(content: Section, **keys: Any) -> list[SwitchSite]:
    """The switches, if they had all the memory there can be."""
    buffer = content["buffer"] | keys | {"bytes": "4GB"}
    scenario = Scenario.model_validate(content | {"buffer": buffer})
    fabric = scenario.fabric()
    settings = controller_settings(scenario, fabric)
    return [SwitchSite(fabric, node, settings) for node in fabric.switches]
