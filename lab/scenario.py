"""Scenarios: what to build and what to run on it, as YAML that is checked before anything starts.

An unknown key is refused with the nearest known one; sizes may be written ``16KB`` or ``4MB``
(powers of ten; ``KiB`` and ``MiB`` are powers of two), times ``50us`` or ``3ms``.
"""

from __future__ import annotations

import difflib
from pathlib import Path
from typing import Any, Literal

import yaml
from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    SerializeAsAny,
    ValidationError,
    field_validator,
)

from controller import Policy, SettingsError
from lab.errors import ScenarioError
from lab.paths import SCENARIOS
from lab.traffic import AllPairs, read_traffic
from topologies import Fabric, TopologyError, fat_tree, leaf_spine, rail
from traffic.collectives import Site, Spec, TrafficError
from traffic.collectives.units import DurationNs, Size
from traffic.endpoint import Recovery


class _Section(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class LeafSpine(_Section):
    """Leaves, each cabled to every spine."""

    kind: Literal["leaf-spine"] = "leaf-spine"
    leaves: int = 4
    spines: int = 2
    hosts_per_leaf: int = 2

    def build(self) -> Fabric:
        """The fabric this describes."""
        return leaf_spine(self.leaves, self.spines, self.hosts_per_leaf)


class FatTree(_Section):
    """Three tiers of k-port switches: k pods, and k^3/4 hosts unless fewer hang at each leaf."""

    kind: Literal["fat-tree"]
    k: int = 4
    hosts_per_leaf: int | None = None

    def build(self) -> Fabric:
        """The fabric this describes."""
        return fat_tree(self.k, self.hosts_per_leaf)


class Rail(_Section):
    """Servers whose n-th adapters all hang at the leaf of rail n."""

    kind: Literal["rail"]
    servers: int = 4
    rails: int = 4
    spines: int = 2
    pods: int = 1

    def build(self) -> Fabric:
        """The fabric this describes."""
        return rail(self.servers, self.rails, self.spines, self.pods)


_TOPOLOGIES: dict[str, type[_Section]] = {
    "leaf-spine": LeafSpine, "fat-tree": FatTree, "rail": Rail,
}  # fmt: skip
Topology = LeafSpine | FatTree | Rail


class LinkSettings(_Section):
    """Cables; those between switches are like those to hosts unless they are given."""

    rate_gbps: float = Field(default=100, ge=0.001, le=10_000)
    delay_ns: DurationNs = Field(default=1000, ge=0, le=10**9)
    fabric_rate_gbps: float | None = Field(default=None, ge=0.001, le=10_000)
    fabric_delay_ns: DurationNs | None = Field(default=None, ge=0, le=10**9)
    mtu: int = Field(default=4096, ge=256, le=9000, multiple_of=8)  # the path MTU: payload bytes


class BufferSettings(_Section):
    """A switch's memory, shared by its ports."""

    bytes: Size = Field(default=4_000_000, ge=1)
    alpha: float = 0.125  # the share of what is free that one queue may take; a power of two


class PfcSettings(_Section):
    """Priority flow control for RoCEv2's priority."""

    enabled: bool = True
    headroom: Size | None = None  # a port; none: what its link needs
    xon_gap: Size | None = None  # bytes XON lies below XOFF; none: two frames
    response_ns: DurationNs = Field(default=4000, ge=0, le=10**9)  # that headroom grants senders
    watchdog_ns: DurationNs = Field(default=10_000_000, ge=0, le=10**12)  # 0: no watchdog


class EcnSettings(_Section):
    """Marking, by the length of the queue a packet leaves."""

    enabled: bool = True
    kmin: Size = Field(default=100_000, ge=0)
    kmax: Size = Field(default=400_000, ge=1)
    pmax: float = Field(default=0.2, ge=0, le=1)


class LoadBalancing(_Section):
    """How a switch chooses among equally good next hops."""

    policy: Policy = Policy.ECMP
    flowlet_gap_ns: DurationNs = Field(default=50_000, ge=1, le=10**9)


class TransportSettings(_Section):
    """How adapters recover from loss and what they do about congestion."""

    recovery: Recovery = Recovery.GO_BACK_N
    cc: Literal["none", "dcqcn"] = "none"
    dcqcn: Literal["paper", "hpcc-paper", "conweave"] = "paper"  # the profile
    window: int = Field(default=512, ge=1, le=1 << 20)  # packets in flight a queue pair
    rto_ns: DurationNs = Field(default=4_194_304, ge=1000, le=10**12)
    retry_limit: int = Field(default=7, ge=0, le=250)


class LossSettings(_Section):
    """Data packets lost at random where they arrive.

    On the links named, both ways; without names on the last link to each host, so that every packet
    runs the risk once.
    """

    rate: float = Field(default=0, ge=0, le=1)
    links: tuple[str, ...] = ()


class Fault(_Section):
    """Something that happens to a link at a time."""

    at_ns: DurationNs = Field(ge=0)
    link: str
    action: Literal["down", "up"]


class Scenario(_Section):
    """One experiment."""

    name: str = Field(pattern=r"^[a-z0-9][a-z0-9-]*$")
    about: str = ""
    topology: Topology = LeafSpine()
    link: LinkSettings = LinkSettings()
    buffer: BufferSettings = BufferSettings()
    pfc: PfcSettings = PfcSettings()
    ecn: EcnSettings = EcnSettings()
    lb: LoadBalancing = LoadBalancing()
    transport: TransportSettings = TransportSettings()
    traffic: SerializeAsAny[Spec] = AllPairs()
    loss: LossSettings = LossSettings()
    faults: tuple[Fault, ...] = ()
    limit_ns: DurationNs = Field(default=10**10, ge=1)  # when a run that goes nowhere is ended
    seed: int = Field(default=1, ge=0, lt=2**32)

    @field_validator("topology", mode="before")
    @classmethod
    def _topology(cls, data: object) -> object:
        """Choose the kind first, so that what is wrong is said of it alone."""
        if not isinstance(data, dict):
            return data
        kind = data.get("kind", "leaf-spine")
        if kind not in _TOPOLOGIES:
            known = list(_TOPOLOGIES)
            raise ScenarioError(f"topology.kind: there is no '{kind}'" + _nearest(str(kind), known))
        try:
            return _TOPOLOGIES[kind].model_validate(data)
        except ValidationError as error:
            raise ScenarioError(_explain(error, _TOPOLOGIES[kind], "topology.")) from None

    @field_validator("traffic", mode="before")
    @classmethod
    def _traffic(cls, data: object) -> Spec:
        return data if isinstance(data, Spec) else read_traffic(data)

    def site(self, fabric: Fabric) -> Site:
        """What traffic has to know of the fabric."""
        numbers = {host: at for at, host in enumerate(fabric.hosts)}
        leaves = dict.fromkeys(fabric.leaf_of(host) for host in fabric.hosts)
        return Site(
            hosts=len(fabric.hosts),
            rate_gbps=self.link.rate_gbps,
            racks=tuple(tuple(numbers[h] for h in fabric.hosts_of(leaf)) for leaf in leaves),
            seed=self.seed,
        )


def names() -> list[str]:
    """The scenarios that ship."""
    return sorted(path.stem for path in SCENARIOS.glob("*.yaml"))


def load(name: str, changes: tuple[str, ...] = ()) -> Scenario:
    """Read a scenario by its name or its file, with ``KEY=VALUE`` changes applied."""
    path = Path(name) if name.endswith((".yaml", ".yml")) else SCENARIOS / f"{name}.yaml"
    if not path.is_file():
        if path.parent != SCENARIOS:
            raise ScenarioError(f"there is no scenario file {path}")
        raise ScenarioError(
            f"there is no scenario '{name}'" + _nearest(name, names()),
            f"These ship: {', '.join(names())}. Your own: give the path of a .yaml file.",
        )
    try:
        content = yaml.safe_load(path.read_text())
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        raise ScenarioError(f"{path} is not YAML: {error}") from None
    if not isinstance(content, dict):
        raise ScenarioError(f"{path} holds no scenario: its top level must be keys and values")
    for change in changes:
        _apply(content, change)
    try:
        scenario = Scenario.model_validate(content)
        check(scenario)
    except ValidationError as error:
        raise ScenarioError(f"scenario '{name}': " + _explain(error, Scenario)) from None
    except TopologyError as error:
        raise ScenarioError(f"scenario '{name}': topology: {error}") from None
    except SettingsError as error:
        raise ScenarioError(f"scenario '{name}': {error}") from None
    except TrafficError as error:
        raise ScenarioError(f"scenario '{name}': {error}") from None
    return scenario


def check(scenario: Scenario) -> None:
    """Find out what no single key tells: that links exist, and that buffers suffice."""
    from controller import plan_of
    from lab.settings import controller_settings

    fabric = scenario.topology.build()
    links = {link.name for link in fabric.links}
    for link in (*scenario.loss.links, *(fault.link for fault in scenario.faults)):
        if link not in links:
            raise ScenarioError(
                f"there is no link '{link}' in this fabric" + _nearest(link, sorted(links)),
                "A link is named after its ends, the one nearer to the hosts first: leaf1-spine2.",
            )
    settings = controller_settings(scenario, fabric)
    largest = {switch.kind: switch for switch in sorted(fabric.switches, key=fabric.graph.degree)}
    for switch in largest.values():  # those of a kind differ in their ports alone
        plan_of(fabric, switch, (), settings)


def _apply(content: dict[str, Any], change: str) -> None:
    """Carry out one ``--set KEY=VALUE``."""
    key, separator, value = change.partition("=")
    if not separator or not key:
        raise ScenarioError(f"--set {change}: write it as KEY=VALUE, such as traffic.bytes=1MB")
    *sections, last = key.split(".")
    place = content
    for section in sections:
        place = place.setdefault(section, {})
        if not isinstance(place, dict):
            raise ScenarioError(f"--set {change}: '{section}' is a value, not a section")
    try:
        place[last] = yaml.safe_load(value)
    except yaml.YAMLError:
        place[last] = value


def _explain(error: ValidationError, model: type[BaseModel], section: str = "") -> str:
    """All that is wrong, one thing a line, with the place and the nearest known key."""
    lines = []
    for problem in error.errors():
        place = section + ".".join(str(part) for part in problem["loc"])
        if problem["type"] == "extra_forbidden":
            lines.append(f"unknown key '{place}'" + _nearest(place, _keys(model, section)))
        else:
            lines.append(f"{place}: {problem['msg']} (got {problem['input']!r})")
    return "\n  ".join(lines)


def _keys(model: type[BaseModel], prefix: str = "") -> list[str]:
    keys = []
    for name, field in model.model_fields.items():
        keys.append(prefix + name)
        if isinstance(field.annotation, type) and issubclass(field.annotation, BaseModel):
            keys += _keys(field.annotation, f"{prefix}{name}.")
    return keys


def _nearest(word: str, known: list[str]) -> str:
    near = difflib.get_close_matches(word, known, n=1, cutoff=0.5)
    return f"; did you mean '{near[0]}'?" if near else ""
