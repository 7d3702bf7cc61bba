"""Runs that everything happens to: a collective with PFC under faults by lot, and what must hold.

Whatever fails meanwhile, a run comes to its end, its books balance, its job is finished or says why
not, the switches have what the controller means them to have, and nothing of it is left behind. A
job that every fault lets go in time has to finish. All of a run follows from its seed; of one that
fails, the fewest of its faults are found that make it fail as well, and kept as a scenario.
"""

from __future__ import annotations

import gc
import io
import json
import os
import random
import resource
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import yaml
from rich.console import Console

from lab.engines import RunOptions
from lab.engines.sim import engine as sim
from lab.errors import LabError, RunError
from lab.machine.memory import give_back, handed_out_bytes, resident_bytes
from lab.machine.native_host import clock_library
from lab.machine.paths import writing_to
from lab.machine.scratch import scratch
from lab.machine.speed import processor_slowness, slowness
from lab.machine.stopped import telling_of_stopped
from lab.progress import Stages
from lab.results import conservation
from lab.results.outcome import HOST_DISCARDS, Outcome
from lab.results.result import RECEIVER
from lab.results.stalls import Stall, said
from lab.runs import lots
from lab.runs.emulate import emulate
from lab.runs.lots.lot import Lot
from lab.runs.lots.settings import delivery
from lab.runs.run import keep
from lab.scenario import catalogue
from lab.scenario.experiment import Experiment
from lab.scenario.model import Scenario
from params.data import Data
from traffic.endpoint import MRC_OPTIONS, Headers, Recovery

if TYPE_CHECKING:
    from lab.engines.mininet.engine import EmulatedFabric

_SPAN_US = 150  # in which faults begin
_LONGEST_US = 300
_RUN_S = 120.0  # of a usual processor, after which a run hangs
_REAL_S = 900.0  # after which one on Mininet does
_ENDING = "ending.json"
_FEW_BYTES = 2048  # a file may have on a disk that is full
# What a process may have more once it is warm; what is resident counts what is free and kept as
# well, which comes and goes.
_GROWTH = {"memory_bytes": 32 << 20, "resident_bytes": 128 << 20, "objects": 400_000}
_WARM = 60  # runs
# Verdicts on messages that would have arrived later, or that settings alone keep from arriving.
_TAKE_TIME = frozenset(("deadlock", "time-out", "nak", "moving", "resending", "due"))
# Why switches and adapters drop for want of memory.
_FULL = {"buffer_full", "headroom_full", RECEIVER}
_FINISHED, _FAILED = "finished", "failed by name"
_JUMPS_S = 3600.0, -86400.0, 30.0, -30.0, 0.0  # how far from the right time the clock is set

Faults = list[dict[str, Any]]
Jumps = tuple[tuple[float, float], ...]  # after so many seconds the clock is so far off


class Drawn(Data):
    """What is to be run, and what is to happen to it."""

    seed: int
    changes: dict[str, Any]
    faults: Faults
    disk_is_full: bool
    clock: Jumps = ()
    may_wait: bool = False  # by what it is told, for longer than it lasts: a verdict is enough

    @property
    def kinds(self) -> str:
        """What there is to it besides faults of links, switches and hosts, in words."""
        link, transport = self.changes.get("link", {}), self.changes["transport"]
        shape, traffic = self.changes["topology"]["kind"], self.changes["traffic"]
        usual = Headers.STANDARD
        found = [
            *(["LLR"] if "llr" in link else []),
            *(["CBFC"] if "cbfc" in link else []),
            *(["IPv6"] if link.get("ip") == 6 else []),
            *(["UET"] if transport.get("kind") == "uet" else []),
            *(["MRC"] if transport.get("kind") == "mrc" else []),
            *(key.replace("_", " ") for key in MRC_OPTIONS if transport.get(key)),
            *(["scale-up"] if transport.get("kind") == "sue" else []),
            *(["encrypted"] if "security" in transport else []),
            *([mode.upper()] if (mode := transport.get("delivery", "rud")) != "rud" else []),
            *([f"{said} headers"] if (said := transport.get("headers", usual)) != usual else []),
            *(["sums in switches"] if traffic.get("algorithm") == "in-network" else []),
            *(["trimming"] if self.changes.get("trim") else []),
            *(["uSID"] if self.changes.get("segments") else []),
            *([shape] if shape != "leaf-spine" else []),
            *(["tenants' networks"] if "overlay" in self.changes else []),
            *(["BGP"] if "control" in self.changes else []),
            *(["full disk"] if self.disk_is_full else []),
            *(["clock jumps"] if self.clock else []),
            *(["anything"] if self.may_wait else []),
        ]
        return ", ".join(found) + (": " if found else "")

    def content(self, faults: Faults | None = None) -> dict[str, Any]:
        """As a scenario, with its own faults or others."""
        chosen = self.faults if faults is None else faults
        return {
            "name": f"chaos-{self.seed}",
            "about": f"What closlab chaos --seed {self.seed} draws.",
            **self.changes,
            "faults": chosen,
        }

    def scenario(self, faults: Faults | None = None) -> Scenario:
        """The same, checked."""
        return catalogue.made(self.content(faults))


def drawn(seed: int, engine: str = "sim") -> Drawn:
    """A fabric, what its links and hosts do, its traffic and its faults, by lot.

    The simulator is told whatever a scenario may say for every second seed; for the others, as
    Mininet for all, a collective that has to finish if every fault lets go.
    """
    rng = random.Random(seed)  # noqa: S311
    if engine == "sim" and seed % 2:
        content = dict(lots.drawn(seed, None, eventful=True).content)
        faults, _ = content.pop("faults"), content.pop("name")
        return Drawn(seed, content, faults, *_surroundings(rng), may_wait=True)
    leaves, spines, hosts = rng.choice(((2, 2, 2), (3, 2, 2), (2, 3, 1), (4, 2, 1)))
    traffic = rng.choice(
        (
            {"kind": "collective", "op": "all-reduce", "algorithm": "ring"},
            {"kind": "collective", "op": "all-to-all"},
            {"kind": "incast", "senders": leaves * hosts - 1},
        )
    ) | {"bytes": f"{rng.randrange(400, 3000)}KB"}
    changes: dict[str, Any] = {
        "topology": {
            "kind": "leaf-spine", "leaves": leaves, "spines": spines, "hosts_per_leaf": hosts
        },
        "traffic": traffic,
        "lb": {"policy": rng.choice(("ecmp", "flowlet", "dlb", "conga", "ecmp"))},
        "transport": _roce(rng),
        "int": {"share": rng.choice((0, 0, 0.05))},
        "reroute_ns": f"{rng.choice((5, 20, 50))}us",
        "pfc": {"watchdog_ns": rng.choice(("100us", "1ms", "200ms"))},
        "measures": {"series": rng.random() < 0.3},
        "limit_ns": "60ms",
        "seed": seed,
    }  # fmt: skip
    changes |= _mechanism(rng, changes, leaves, spines, engine)
    changes |= _scaled_up(seed, changes)
    changes |= lots.secured(seed, changes, often=0.5)
    changes |= _delivered(seed, changes)
    changes["transport"] |= _mrc_options(seed, changes["transport"])
    changes |= _summed_up(seed, changes)
    fabric = Drawn(seed, changes, [], disk_is_full=False).scenario().fabric()
    links = [link.name for link in fabric.links if link.joins_switches]
    ends = [link.name for link in fabric.links if not link.joins_switches]
    switches = [switch.name for switch in fabric.switches]
    vain = [*(["restart"] if "llr" in changes.get("link", ()) else []),
            *(["storm"] if fabric.host_ports > 1 else []),
            *(["drain"] if "control" in changes else [])]  # fmt: skip
    faults = [
        fault
        for _ in range(rng.randrange(1, 7))
        for fault in a_fault(rng, links, ends, switches, len(fabric.hosts))
        if fault["action"] not in vain
    ]
    if fabric.planes > 1 and rng.random() < 0.4:
        faults.append(_dies(rng, plane=rng.randrange(fabric.planes) + 1))
    if changes["topology"]["kind"] == "dual-tor" and rng.random() < 0.4:
        faults.append(_dies(rng, switch=rng.choice(switches)))
    if "control" in changes:  # there restarts are of switches, or of what speaks BGP for them
        for fault in faults:
            if fault["action"] == "restart" and rng.random() < 0.5:
                fault["action"] = "restart-bgp"
    return Drawn(seed, changes, faults, *_surroundings(rng))


def _surroundings(rng: random.Random) -> tuple[bool, Jumps]:
    """Whether the disk is full, and when the clock is set anew."""
    is_full = rng.random() < 0.05
    clock: Jumps = ()
    if rng.random() < 0.15:
        moments = sorted(round(0.2 * 200 ** rng.random(), 2) for _ in range(rng.randrange(1, 8)))
        clock = tuple((at_s, rng.choice(_JUMPS_S)) for at_s in moments)
    return is_full, clock


def _dies(rng: random.Random, **whose: int | str) -> dict[str, Any]:
    """All cables of a plane or a switch, for some time."""
    at_us, for_us = rng.randrange(_SPAN_US), rng.randrange(1, _LONGEST_US)
    return {"at_ns": f"{at_us}us", "action": "down", **whose, "for_ns": f"{for_us}us"}


def _roce(rng: random.Random) -> dict[str, Any]:
    is_selective = rng.random() < 0.5
    return {
        "recovery": "selective" if is_selective else "go-back-n",
        "cc": rng.choice(("none", "dcqcn")),
        "rto_ns": f"{rng.choice((50, 100, 200))}us",
        "retry_limit": 250,
    }


def _mechanism(
    rng: random.Random, changes: dict[str, Any], leaves: int, spines: int, engine: str
) -> dict[str, Any]:
    """What is other than pauses, RoCEv2, IPv4 and a controller, if anything is."""
    by_bgp = ("bgp", "bgp") if engine == "mininet" else ()
    kinds = "pauses", "retry", "credits", "both", "trimming", "planes", "pairs", "front", "tenants"
    kind = rng.choice((*kinds, "mrc", *by_bgp))
    link: dict[str, Any] = {}
    found: dict[str, Any] = {}
    hosts = leaves * changes["topology"]["hosts_per_leaf"]
    if kind == "tenants":
        return _tenants(rng, changes, hosts, can_be_bgp=bool(by_bgp))
    if kind == "front":
        return _front(rng, changes, hosts)
    if kind == "planes":
        found["topology"] = changes["topology"] | {"kind": "planes", "planes": rng.choice((2, 4))}
    if kind == "pairs":
        shape = {"kind": "dual-tor", "racks": 2, "spines": spines, "hosts_per_rack": hosts // 2}
        found |= {"topology": shape, "lb": {"policy": rng.choice(("ecmp", "flowlet", "dlb"))}}
    if kind in ("retry", "both"):
        link["llr"] = rng.choice(("go-back-n", "selective"))
    if kind in ("credits", "both"):
        link["cbfc"] = True
    if kind == "trimming":
        found |= {
            "pfc": {"enabled": False},
            "trim": {"enabled": True, "threshold": rng.choice(("30KB", "60KB"))},
            "schedule": {"kind": "ets", "weights": {3: 3, 5: 1}},
        }
    often = {"trimming": 1, "mrc": 1, "planes": 0.6}
    if rng.random() < often.get(kind, 0.15):
        found |= _sprayed(rng, changes, is_mrc=kind == "mrc" or rng.random() < 0.3)
    if kind == "bgp":
        return found | {"control": {"kind": "bgp", "bfd_ms": rng.choice((0, 100, 300))}}
    if rng.random() < 0.3:
        link["ip"] = 6
    if kind != "pairs" and rng.random() < 0.25:
        policies = []
        for _ in range(rng.randrange(1, 4)):
            at, to = rng.sample(range(1, leaves + 1), 2)
            ways = rng.sample(range(1, spines + 1), rng.randrange(spines))
            via = [[f"spine{spine}"] for spine in ways]
            policies.append({"at": f"leaf{at}", "to": f"leaf{to}", "via": via})
        found["segments"] = {"enabled": True, "policies": policies}
    return found | ({"link": link} if link else {})


def _scaled_up(seed: int, changes: dict[str, Any]) -> dict[str, Any]:
    """Scale-up Ethernet now and then, where nothing else is that it has no word for."""
    rng = random.Random(f"scale-up {seed}")  # noqa: S311
    is_plain = changes["topology"]["kind"] == "leaf-spine" and "kind" not in changes["transport"]
    others = changes.keys() & {"tenants", "control", "segments", "trim"}
    link = changes.get("link", {})
    if not is_plain or others or "ip" in link or rng.random() < 0.7:
        return {}
    kept = {key: changes["transport"][key] for key in ("rto_ns", "retry_limit")}
    return {
        "transport": kept | {"kind": "sue", "ack_every": rng.choice((1, 4, 16))},
        "link": link | {"mtu": rng.choice((256, 1024, 3840))},
        "lb": {"policy": rng.choice(("ecmp", "flowlet", "dlb"))},
        "int": {"share": 0},
    }


def _delivered(seed: int, changes: dict[str, Any]) -> dict[str, Any]:
    """UET by another of its modes of delivery, more often than not."""
    lot = Lot(-17 - seed)
    if changes["transport"].get("kind") != "uet" or lot.chance(0.2):
        return {}
    is_ordered = changes["topology"]["kind"] not in ("planes", "dual-tor")
    return {"transport": delivery(lot, changes["transport"], is_ordered=is_ordered)}


def _mrc_options(seed: int, transport: dict[str, Any]) -> dict[str, Any]:
    """What MRC's adapters tell and ask each other, of which each may be off."""
    rng = random.Random(f"mrc {seed}")  # noqa: S311
    is_mrc = transport.get("kind") == "mrc"
    return {key: True for key in MRC_OPTIONS if is_mrc and rng.random() < 0.6}


def _summed_up(seed: int, changes: dict[str, Any]) -> dict[str, Any]:
    """Switches carry out the collective now and then; half of these over links that try again."""
    rng = random.Random(f"summed up {seed}")  # noqa: S311
    is_plain = changes["topology"]["kind"] == "leaf-spine" and "kind" not in changes["transport"]
    link = changes.get("link", {})
    others = changes.keys() & {"tenants", "control", "trim"} or "cbfc" in link
    if not is_plain or others or rng.random() < 0.7:
        return {}
    traffic = {"kind": "collective", "op": "all-reduce", "algorithm": "in-network"}
    llr = {"llr": rng.choice(("go-back-n", "selective"))} if rng.random() < 0.5 else {}
    return {"traffic": traffic | {"bytes": changes["traffic"]["bytes"]}, "link": llr | link}


def _sprayed(rng: random.Random, changes: dict[str, Any], *, is_mrc: bool) -> dict[str, Any]:
    """UET, or MRC: every packet goes its own way."""
    entropies = "oblivious", "bitmap", "reps", "mrc"
    transport = {
        "kind": "mrc" if is_mrc else "uet",
        "cc": rng.choice(("none", "nscc", "swift", *(() if is_mrc else ("rccc",)))),
        "entropy": rng.choice(("mrc", *entropies) if is_mrc else entropies),
        "rto_ns": changes["transport"]["rto_ns"],
        "retry_limit": 250,
        **({"queue_pairs": rng.randrange(1, 4)} if rng.random() < 0.3 else {}),
    }
    structured = {"lb": {"policy": "structured"}} if rng.random() < 0.3 else {}
    return {"transport": transport, **structured}


def _front(rng: random.Random, changes: dict[str, Any], hosts: int) -> dict[str, Any]:
    """A collective in the back-end, while its hosts write to servers of a front-end fabric."""
    names = [f"h{n + 1}" for n in range(hosts + 2)]
    collective = {"kind": "collective", "op": rng.choice(("all-reduce", "all-to-all"))}
    parts = [
        collective | {"bytes": changes["traffic"]["bytes"], "ranks": names[:hosts]},
        {"kind": "storage", "servers": names[hosts:], "save": "100KB"},
    ]
    front = {"kind": "two-fabrics", "servers": 2, "front_leaves": 2, "front_spines": 2}
    return {"topology": changes["topology"] | front, "traffic": {"kind": "mix", "parts": parts}}


def _tenants(
    rng: random.Random, changes: dict[str, Any], hosts: int, *, can_be_bgp: bool
) -> dict[str, Any]:
    """Two tenants, or one of two hosts, with networks of their own, each in its own collective."""
    names = [f"h{n + 1}" for n in range(hosts)]
    groups = [names] if hosts < 4 else [names[::2], names[1::2]]
    what = {"kind": "collective", "op": rng.choice(("all-reduce", "all-to-all"))}
    parts = [what | {"bytes": changes["traffic"]["bytes"], "ranks": ranks} for ranks in groups]
    is_bgp = can_be_bgp and rng.random() < 0.5
    return {
        "tenants": dict(zip(("blue", "red"), groups, strict=False)),
        "overlay": {"kind": "vxlan", "subnets": rng.choice(("leaf", "tenant"))},
        "traffic": {"kind": "mix", "parts": parts},
        "lb": {"policy": rng.choice(("ecmp", "flowlet", "dlb"))},
        "int": {"share": 0},
        **({"control": {"kind": "bgp"}} if is_bgp else {}),
    }


def a_fault(
    rng: random.Random, links: list[str], ends: list[str], switches: list[str], hosts: int
) -> Iterator[dict[str, Any]]:
    """One, or several that belong together."""
    at_us, for_us = rng.randrange(_SPAN_US), rng.randrange(1, _LONGEST_US)
    link = rng.choice(links + ends)
    at, lasts = {"at_ns": f"{at_us}us"}, {"for_ns": f"{for_us}us"}
    host = f"h{rng.randrange(hosts) + 1}"
    chance = round(rng.choice((0.001, 0.01, 0.1, 0.5)), 3)
    match rng.randrange(12):
        case 0:
            yield {**at, "action": "down", "link": link, **lasts}
        case 1:  # for good, where there is another way
            yield {**at, "action": "down", "link": rng.choice(links)}
        case 2:
            for turn in range(rng.randrange(2, 6)):
                begin = {"at_ns": f"{at_us + 20 * turn}us"}
                yield {**begin, "action": "down", "link": link, "for_ns": "10us"}
        case 3:
            share = round(rng.uniform(0.02, 0.9), 2)
            yield {**at, "action": "slow", "link": link, "share": share, **lasts}
        case 4 | 5:
            action = rng.choice(("lose", "corrupt", "duplicate", "reorder"))
            yield {**at, "action": action, "link": link, "rate": chance, **lasts}
        case 6:
            yield {**at, "action": "restart", "switch": rng.choice(switches)}
        case 7:
            yield {**at, "action": "halt", "part": "controller", **lasts}
        case 8:
            yield {**at, "action": "halt", "host": host, **lasts}
        case 9:
            is_dead = rng.random() < 0.2
            yield {**at, "action": "halt", "host": host, **({} if is_dead else lasts)}
            yield {**at, "action": "halt", "part": "collector", **lasts}
        case 10:
            what = rng.choice(({"link": rng.choice(links)}, {"switch": rng.choice(switches)}))
            yield {**at, "action": "drain", **what, **lasts}
        case _:
            yield {**at, "action": "storm", "host": host, **lasts}


def is_survivable(faults: Faults) -> bool:
    """Whether every fault lets go, or leaves another way: then the job has to finish."""
    dead: dict[str, bool] = {}  # what is down for good, and whether there are ways around it
    for fault in faults:
        what: str = fault.get("link") or fault.get("switch", "")
        if fault["action"] == "down" and "for_ns" not in fault:
            dead[what] = "link" in fault
        elif fault["action"] == "up":
            dead.pop(what, None)
    gone = any(fault["action"] == "halt" and "for_ns" not in fault for fault in faults)
    return not gone and len(dead) <= 1 and all(dead.values())


class Ending(Data):
    """How a run ended, and what should not have been."""

    how: str
    complaints: tuple[str, ...] = ()


def _lose_on(scenario: Scenario, outcome: Outcome) -> bool:
    """Whether settings go on losing packets, or sending all of them again, for as long as one is
    sent again: memory is full, what is late or comes early never ends, or a watchdog does not let
    go."""
    pfc, transport = scenario.pfc, scenario.transport
    counted = Counter[str]()
    for each in outcome.endpoints.values():
        counted.update({name: each.get(name, 0) for name in (HOST_DISCARDS, "out_of_sequence")})
    lost = {why for counts in outcome.switches.values() for why, n in counts.dropped.items() if n}
    lost |= {RECEIVER} if counted[HOST_DISCARDS] else set()
    overtaken = transport.recovery is Recovery.GO_BACK_N and counted["out_of_sequence"] and not lost
    stuck_ns = pfc.watchdog_restore_ns or pfc.watchdog_ns
    tried_ns = transport.longest_rto_ns * transport.retry_limit
    outlasts = "watchdog" in lost and stuck_ns >= tried_ns
    is_anew = transport.recovery is Recovery.GO_BACK_0
    return bool(lost & _FULL or outlasts or overtaken or is_anew)


def judged(
    drawn: Drawn,
    faults: Faults,
    outcome: Outcome,
    strays: Sequence[str],
    stalls: Sequence[Stall],
) -> Ending:
    """What is to be said of a run that came to its end."""
    enough = _TAKE_TIME | ({"retries"} if _lose_on(drawn.scenario([]), outcome) else set())
    complaints = [*strays]
    failed = sum(stall.messages for stall in stalls)
    is_whole = failed == 0 and outcome.ended is None
    is_explained = outcome.dilation > 1 and not outcome.fidelity.ok  # the machine was too slow
    for stall in stalls:
        waits = stall.verdict == "datagram" or (drawn.may_wait and stall.verdict in enough)
        if is_survivable(faults) and not (is_explained or waits):
            complaints.append(f"every fault let go, but {said(stall)}")
        elif stall.verdict == "untold" and outcome.dilation == 1:
            complaints.append(f"nobody says why {said(stall)}")
    if not is_whole and not stalls and is_survivable(faults):  # else who sent it is dead
        complaints.append(f"nothing was missing, but it did not end: {outcome.ended}")
    if not outcome.fidelity.ok and outcome.dilation == 1:
        complaints.append(f"not to be believed: {outcome.fidelity.note}")
    return Ending(_FINISHED if is_whole else _FAILED, tuple(complaints))


class _Quiet(Stages):
    def warn(self, text: str) -> None:
        """For whom it waits is told, though nothing else is."""
        print(f"closlab: {text}", flush=True)


def quiet() -> Stages:
    """Stages of which nobody is told."""
    return _Quiet(Console(file=io.StringIO()))


def simulated(drawn: Drawn, faults: Faults | None = None) -> Ending:
    """Run it in the simulator: in this process, unless its clock is to jump."""
    if drawn.clock:
        return _apart(drawn, faults, "sim")
    with scratch() as folder:
        return _simulated(drawn, drawn.faults if faults is None else faults, folder)


def _simulated(drawn: Drawn, faults: Faults, out: Path) -> Ending:
    options = RunOptions(out=out, engine="sim")
    try:
        experiment = Experiment.of(drawn.scenario(faults))
        with sim.bring_up(experiment, options, quiet()) as up:
            outcome = up.measure()
            strays = up.strays(outcome.end_ns)
        return _concluded(drawn, faults, experiment, outcome, strays, options)
    except LabError as error:
        return Ending("broke off", (error.message,))


def _concluded(
    drawn: Drawn,
    faults: Faults,
    experiment: Experiment,
    outcome: Outcome,
    strays: Sequence[str],
    options: RunOptions,
) -> Ending:
    """Check and keep what came of it, on a full disk if that is drawn."""
    missing = conservation.violations(experiment.fabric, outcome)
    complaint = None
    try:
        with writing_to(options.out), _disk(is_full=drawn.disk_is_full):
            result = keep(experiment, outcome, options)
        stalls = result.stalls or ()
        if result.flows.failed != sum(stall.messages for stall in stalls):
            complaint = f"{result.flows.failed} messages did not arrive, of which it says {stalls}"
        if drawn.disk_is_full:
            complaint = "the disk was full, and nobody noticed"
    except RunError as error:
        stalls = ()
        if not drawn.disk_is_full:
            complaint = error.message
        elif "cannot be written" not in error.message:
            complaint = f"the disk was full, but what is said is: {error.message}"
        if drawn.disk_is_full:
            return Ending("kept nothing: the disk is full", (*missing, *strays,
                           *([complaint] if complaint else [])))  # fmt: skip
    ending = judged(drawn, faults, outcome, strays, stalls)
    found = (*missing, *ending.complaints, *([complaint] if complaint else []))
    return Ending(ending.how, found)


@contextmanager
def _disk(*, is_full: bool) -> Iterator[None]:
    """As long as it lasts no file grows beyond little, if the disk is to be full."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    if is_full:
        resource.setrlimit(resource.RLIMIT_FSIZE, (_FEW_BYTES, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


def emulated(drawn: Drawn, faults: Faults | None = None) -> Ending:
    """Run it on Mininet, in a process of its own, as a sandbox wants it."""
    return _apart(drawn, faults, "mininet")


def _apart(drawn: Drawn, faults: Faults | None, engine: str) -> Ending:
    with scratch() as folder:
        words = [sys.executable, "-c", "from lab.runs.chaos import in_process; in_process()"]
        chosen = drawn.faults if faults is None else faults
        asked = {
            "drawn": asdict(replace(drawn, faults=chosen)),
            "engine": engine,
            "folder": str(folder),
        }
        most_s = _REAL_S * slowness()
        ended = _heard(words, json.dumps(asked), os.environ | jumping(drawn.clock), most_s)
        if ended is None:
            return Ending("hung", (f"it did not end within {most_s:.0f} s",))
        record = folder / _ENDING
        if not record.exists():
            code, last = ended
            return Ending("broke off", (f"it ended with {code}: {last}",))
        how, complaints = json.loads(record.read_text())
        return Ending(how, tuple(complaints))


def _heard(
    words: Sequence[str], asked: str, environment: Mapping[str, str], most_s: float
) -> tuple[int, str] | None:
    """Let a process do what it is asked: its exit code, and what it said last; none if it hangs.

    For whom it waits is passed on, and it is told if that process itself was stopped.
    """
    with (
        subprocess.Popen(
            words,
            stdin=subprocess.PIPE,
            stdout=2,
            stderr=subprocess.PIPE,
            text=True,
            env=environment,
        ) as process,
        telling_of_stopped(only=[process.pid]),
    ):
        assert process.stdin is not None
        assert process.stderr is not None
        late = threading.Timer(most_s, process.kill)
        late.start()
        with suppress(BrokenPipeError):
            process.stdin.write(asked)
            process.stdin.close()
        last = ""
        for line in process.stderr:
            last = (last + line)[-300:]
            if line.startswith("closlab: "):
                print(line, end="", file=sys.stderr, flush=True)
        code = process.wait()
        is_late = not late.is_alive()
        late.cancel()
    return None if is_late else (code, last.strip())


def jumping(clock: Jumps) -> dict[str, str]:
    """What lets a program, and all that it starts, see a clock that jumps from now on."""
    if not clock:
        return {}
    now_s = time.monotonic()
    loaded = [str(clock_library()), os.environ.get("LD_PRELOAD", "")]
    return {
        "LD_PRELOAD": " ".join(filter(None, loaded)),
        "CLOSLAB_CLOCK_JUMPS": ",".join(f"{now_s + at_s:.3f}:{by_s:.3f}" for at_s, by_s in clock),
    }


def in_process() -> None:
    """What that process does: it is told on its standard input."""
    asked = json.load(sys.stdin)
    engine, chosen = asked["engine"], Drawn(**asked["drawn"])
    faults = chosen.faults
    options = RunOptions(out=Path(asked["folder"]), engine=engine)

    def tell(ending: Ending) -> None:
        (options.out / _ENDING).write_text(json.dumps([ending.how, ending.complaints]))

    def attend(up: EmulatedFabric, experiment: Experiment, _name: str) -> None:
        outcome = up.measure()
        strays = up.strays(outcome.end_ns)
        tell(_concluded(chosen, faults, experiment, outcome, strays, options))

    def fail(error: LabError) -> None:
        tell(Ending("broke off", (error.message,)))

    if engine == "sim":
        tell(_simulated(chosen, faults, options.out))
        return
    try:
        emulate(chosen.scenario(faults), options, quiet(), lambda *_: 0, fail, attend)
    except LabError as error:
        fail(error)


ENGINES: dict[str, Callable[[Drawn, Faults | None], Ending]] = {
    "sim": simulated,
    "mininet": emulated,
}


def shortest(faults: Faults, fails: Callable[[Faults], bool]) -> Faults:
    """The fewest faults that make it fail still: delta debugging, down to single ones."""
    parts = 2
    while len(faults) >= 2:
        size = -(-len(faults) // parts)
        pieces = [faults[at : at + size] for at in range(0, len(faults), size)]
        rests = [[f for other in pieces if other is not piece for f in other] for piece in pieces]
        for smaller in (*pieces, *rests):
            if len(smaller) < len(faults) and fails(smaller):
                faults, parts = smaller, max(2, parts - 1 if smaller in rests else 2)
                break
        else:
            if parts >= len(faults):
                return faults
            parts = min(len(faults), 2 * parts)
    return [] if faults and fails([]) else faults


class Belongings(Data):
    """What a process has that it should give back; with a sandbox's first process go all others."""

    descriptors: int
    memory_bytes: int  # handed out by its allocator
    resident_bytes: int
    objects: int  # Python's small ones
    children: int

    @classmethod
    def now(cls) -> Belongings:
        """What this one has."""
        gc.collect()
        give_back()
        tasks = Path("/proc/self/task")
        children = "".join(
            (task / "children").read_text() for task in tasks.iterdir() if task.exists()
        )
        return cls(
            len([*Path("/proc/self/fd").iterdir()]),
            handed_out_bytes(),
            resident_bytes(),
            sys.getallocatedblocks(),
            len(children.split()),
        )

    def leaks(self, before: Belongings, was_warm: bool = True) -> list[str]:
        """What it has too much against what it had before; of memory only if it was warm then, and
        had all that it uses for good.
        """
        found = []
        if self.descriptors > before.descriptors:
            found.append(f"{self.descriptors - before.descriptors} descriptors are still open")
        for what, most in _GROWTH.items():
            grown = getattr(self, what) - getattr(before, what)
            if was_warm and grown > most:
                found.append(f"the process has {grown:,} more {what.replace('_', ' ')}")
        if self.children > before.children:
            found.append(f"{self.children - before.children} processes are left")
        return found


class Tally(Data, frozen=False):
    """How the runs ended."""

    by_end: dict[str, int] = field(default_factory=dict)
    failed: list[int] = field(default_factory=list)  # seeds


def chaos(seed: int, runs: int, engine: str, out: Path, say: Callable[[str], None]) -> Tally:
    """Make these runs, keep what fails, shortened, as a scenario; how they ended."""
    run, tally = ENGINES[engine], Tally()
    before: Belongings | None = None
    for number in range(runs):
        if number and number == min(_WARM, runs // 2):
            before = Belongings.now()
        chosen, began = drawn(seed + number, engine), time.process_time()
        ending = run(chosen, None)
        took_s = time.process_time() - began
        if took_s > _RUN_S * processor_slowness():
            found = (*ending.complaints, f"it took {took_s:.0f} s of processor time")
            ending = Ending(ending.how, found)
        tally.by_end[ending.how] = tally.by_end.get(ending.how, 0) + 1
        actions = ", ".join(fault["action"] for fault in chosen.faults)
        say(f"seed {chosen.seed}: {ending.how} ({chosen.kinds}{actions})")
        if ending.complaints:
            tally.failed.append(chosen.seed)
            _keep(chosen, ending, run, out, say)
    after = Belongings.now()
    for leak in after.leaks(before, was_warm=runs >= 2 * _WARM) if before else ():
        say(f"after {runs} runs {leak}")
        tally.failed.append(-1)
    return tally


def _keep(
    chosen: Drawn,
    ending: Ending,
    run: Callable[[Drawn, Faults | None], Ending],
    out: Path,
    say: Callable[[str], None],
) -> None:
    """Shorten a schedule that fails, and write it down as a scenario."""
    for complaint in ending.complaints:
        say(f"  {complaint}")
    fewest = shortest(chosen.faults, lambda faults: bool(run(chosen, faults).complaints))
    file = out / f"chaos-{chosen.seed}.yaml"
    file.write_text(yaml.safe_dump(chosen.content(fewest), sort_keys=False))
    say(f"  {len(fewest)} of {len(chosen.faults)} faults are enough: closlab run {file}")
