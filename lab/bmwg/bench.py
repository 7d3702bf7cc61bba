"""The device under test, and how much of the draft's parameters is run on it."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import field
from pathlib import Path
from typing import Any, TypeVar

from lab.bmwg.case import Case
from lab.errors import RunError
from lab.results.alone import Message
from lab.scenario import catalogue
from lab.scenario.model import Scenario
from lab.scenario.translate import data_headers_bytes
from params.data import Data
from params.quantity import size as size_text
from traffic.endpoint import Recovery

V = TypeVar("V")
KB, MB, GB = 1000, 1000**2, 1000**3
KIB, MIB = 1024, 1024**2

DUT: Mapping[str, Any] = {
    "topology": {"kind": "leaf-spine", "leaves": 4, "spines": 4, "hosts_per_leaf": 4},
    "link": {"rate_gbps": 400, "delay_ns": 500, "mtu": 4096},
    "buffer": {"bytes": "64MB"},
    "ecn": {"kmin": "400KB", "kmax": "1600KB", "pmax": 0.2},
    "transport": {"recovery": "selective", "rto_ns": "500us", "window": 2048},
    "reroute_ns": "50us",
}
"""Without a scenario of somebody's own: 400 Gb/s, without oversubscription."""
_MAX_PORTS = 128  # that the device's buffer is for
SECTIONS = (
    "topology", "link", "buffer", "trim", "pfc", "ecn", "classes", "schedule", "lb", "transport",
    "overlay", "segments", "loss", "reroute_ns", "control",
)  # fmt: skip
"""What of a scenario is the device; who sends what is for the test to say."""


def in_words(size: float) -> str:
    """A size as it is meant: in powers of two where it is one of them, else of ten."""
    for unit, name in ((MIB, "MiB"), (KIB, "KiB")):
        if size >= unit and not size % unit:
            return f"{size / unit:g} {name}"
    return size_text(size)


class Extent(Data):
    """How much of the draft is run."""

    is_quick: bool = False
    trials: int | None = None  # None: as many as the draft says, or a few if it is to be quick
    most_bytes: int = GB  # that a run may send: what is larger is left out, and said so

    def some(self, whole: Sequence[V], quick: Sequence[V]) -> tuple[V, ...]:
        """The draft's values of a parameter, or a few of them."""
        return tuple(quick if self.is_quick else whole)

    def repeats(self, whole: int, quick: int) -> int:
        """How often something is done."""
        return self.trials or (quick if self.is_quick else whole)


class Bench(Data):
    """What tests run on: the device's sections, and the extent."""

    device: Mapping[str, Any] = field(default_factory=lambda: DUT)
    extent: Extent = Extent()
    name: str = "the lab's own fabric"
    engine: str = "sim"
    switch: str = "soft"
    p4: Path | None = None

    @classmethod
    def of(cls, scenario: str | None, changes: Sequence[str], **settings: Any) -> Bench:
        """With the device that a scenario describes, or the lab's own, and changes to it."""
        for change in changes:
            root = change.partition("=")[0].partition(".")[0]
            if root not in SECTIONS:
                raise RunError(
                    f"--set {change}: '{root}' is not of the device under test",
                    "Tests say what is sent, and what fails when; the device is "
                    f"{', '.join(SECTIONS)}.",
                )
        own = {"name": "bmwg", **DUT, "traffic": {"kind": "all-pairs"}}
        chosen = (
            catalogue.load(scenario, tuple(changes))
            if scenario
            else catalogue.made(json.loads(json.dumps(own)), tuple(changes), "bmwg")
        )
        content = chosen.model_dump(mode="json", exclude_unset=True, by_alias=True)
        device = {name: content[name] for name in SECTIONS if name in content}
        return cls(device, name=scenario or cls.name, **settings)

    @property
    def scenario(self) -> Scenario:
        """The device with any traffic: to ask it what it is."""
        return catalogue.made(
            {
                "name": "bmwg",
                **json.loads(json.dumps(self.device)),
                "traffic": {"kind": "all-pairs"},
            }
        )

    @property
    def rate_gbps(self) -> float:
        """B_acc: the line rate of an accelerator's port."""
        return float(self.scenario.link.rate_gbps)

    @property
    def step(self) -> float:
        """How finely a binary search tells rates apart, as a share of the highest."""
        return 1 / (8 if self.extent.is_quick else 64)

    @property
    def is_small(self) -> bool:
        """Whether there is no clock but the machine's: what takes many hosts is left out."""
        return self.engine == "mininet"

    def certain(self, seeds: Sequence[int]) -> Sequence[int]:
        """The trials of what depends on no chance: in the simulator two, which come to the same."""
        return seeds[:2] if self.engine == "sim" else seeds

    def case(
        self, section: str, traffic: Mapping[str, Any], *, table: str = "", seed: int = 1,
        series_ns: int | None = None, **changes: Any,
    ) -> Case:  # fmt: skip
        """A run on the device, with what the test changes in it."""
        keys: dict[str, Any] = json.loads(json.dumps(self.device))
        for name, section_changes in changes.items():
            before = keys.get(name)
            is_part = isinstance(before, dict) and isinstance(section_changes, dict)
            keys[name] = before | section_changes if is_part and name != "topology" else (
                section_changes
            )  # fmt: skip
        measures: dict[str, Any] = {"telemetry": False, "series": series_ns is not None}
        if series_ns is not None:
            measures["series_ns"] = series_ns
        keys |= {"name": "bmwg-" + section.replace(".", "-"), "traffic": dict(traffic)}
        keys |= {"measures": measures, "seed": seed}
        return Case(section, json.dumps(keys, sort_keys=True), table)

    def fabric(self, hosts: int, leaves: int | None = None) -> dict[str, Any] | None:
        """The device's topology with so many hosts, or so many leaves; None where it cannot grow.

        A leaf-spine grows by leaves, so that neither the leaf nor its oversubscription changes.
        """
        topology: dict[str, Any] = json.loads(json.dumps(self.device["topology"]))
        if topology.get("kind", "leaf-spine") != "leaf-spine":
            return topology if len(self.scenario.fabric().hosts) >= hosts else None
        each = topology.get("hosts_per_leaf", 2)
        return topology | {"kind": "leaf-spine", "leaves": leaves or -(-hosts // each)}

    def grown(self, hosts: int) -> dict[str, Any]:
        """The same, where it must be."""
        found = self.fabric(hosts)
        if found is None:
            raise RunError(
                f"{hosts} hosts are needed, and the device's topology cannot grow",
                "Only a leaf-spine can, by leaves: give a larger fabric, or leave the test out.",
            )
        return found

    def sized(self, hosts: int) -> dict[str, Any]:
        """Topology and buffer with so many: spines of more ports than most hold more, for headroom
        alone takes a share of every port."""
        topology = self.grown(hosts)
        many = -(-int(topology.get("leaves", 0)) // _MAX_PORTS)
        room = {"buffer": {"bytes": many * int(self.scenario.buffer.bytes)}} if many > 1 else {}
        return {"topology": topology, **room}

    def share_of_payload(self, size: int, **transport: Any) -> float:
        """The share of a line that is payload when it carries nothing but messages of a size."""
        scenario = self.scenario
        if transport:
            keys = json.loads(self.case("", {"kind": "all-pairs"}, transport=transport).keys)
            scenario = catalogue.made(keys)
        around = data_headers_bytes(scenario) + scenario.link.overhead
        one = Message.of(
            size, scenario.link.mtu, around,
            each_has_reth=scenario.transport.recovery is Recovery.SELECTIVE,
        )  # fmt: skip
        return size / (one.first + one.n_between * one.between + (one.last or 0))
