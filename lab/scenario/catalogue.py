"""Scenario files: those that ship and a user's own, with what the command line changes in them."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from controller import LinkSpec, SettingsError, routes_of, switch_plan
from controller.routes import MAX_WAYS
from controller.tables import MAX_CONTROLLED, SwitchSite
from files import FileError, is_file, is_folder, shown
from lab.errors import ScenarioError
from lab.machine.paths import SCENARIOS
from lab.scenario.keys import nearest
from lab.scenario.model import ALL_LINKS, Scenario, explained
from lab.scenario.shipped import names
from lab.scenario.translate import controller_settings, slowed
from params.classes import CONTROL_PRIORITY
from params.telemetry import Format
from topologies import Fabric, Network, Node, TopologyError
from traffic.collectives import TrafficError
from traffic.patterns.sizes import is_file_name
from traffic.reading import NotYamlError, YamlError, parse_yaml, read_yaml

_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")


def load(name: str, changes: tuple[str, ...] = ()) -> Scenario:
    """Read a scenario by its name or its file, with ``KEY=VALUE`` changes applied, and check it."""
    return made(_content(name), changes, name)


def made(content: dict[str, Any], changes: tuple[str, ...] = (), name: str = "") -> Scenario:
    """The same of a scenario's keys."""
    place = f"scenario '{name or content.get('name', '')}': "
    try:
        scenario = _read(content, changes, place)
        check(scenario)
    except TopologyError as error:
        raise ScenarioError(f"{place}topology: {error}") from None
    except (SettingsError, TrafficError) as error:
        raise ScenarioError(f"{place}{error}") from None
    return scenario


def read(name: str, changes: tuple[str, ...] = ()) -> Scenario:
    """A scenario by its name or its file, without asking whether it can be built."""
    return _read(_content(name), changes, f"scenario '{name}': ")


def _content(name: str) -> dict[str, Any]:
    """The keys that a file gives."""
    path = Path(name) if name.endswith((".yaml", ".yml")) else SCENARIOS / f"{name}.yaml"
    if not is_file(path):
        if path.parent != SCENARIOS:
            raise ScenarioError(f"there is no scenario file {shown(path)}")
        raise ScenarioError(
            f"there is no scenario '{shown(name)}'" + nearest(name, names()),
            f"These ship: {', '.join(names())}. Your own: give the path of a .yaml file.",
        )
    try:
        content = read_yaml(path)
    except FileError as error:
        raise ScenarioError(str(error)) from None
    if not isinstance(content, dict):
        raise ScenarioError(f"{path} holds no scenario: its top level must be keys and values")
    if path.parent != SCENARIOS:
        look_beside(content, path.parent)
    return content


def look_beside(content: dict[str, Any], folder: Path) -> None:
    """Files that a scenario names are looked for beside it, where they are not where one stands."""
    traffic = content.get("traffic")
    parts = [traffic]
    if isinstance(traffic, dict) and isinstance(traffic.get("parts"), list):
        parts += traffic["parts"]
    named = [(part, key) for part in parts for key in ("file", "files", "groups")]
    named += [(part, "sizes") for part in parts if is_file_name(_sizes_of(part))]
    for section, key in [*named, (content.get("topology"), "path")]:
        value = section.get(key) if isinstance(section, dict) else None
        if isinstance(section, dict) and isinstance(value, str) and value and "\0" not in value:
            path = Path(value)
            if not path.is_absolute() and not (is_file(path) or is_folder(path)):
                section[key] = str(folder / path)
    transport = content.get("transport")
    algorithm = transport.get("pcm") if isinstance(transport, dict) else None
    if isinstance(algorithm, dict):
        file = algorithm.get("file")
        if isinstance(file, str) and "\0" not in file and is_file(folder / file):
            algorithm["file"] = str(folder / file)  # or else it is one that ships


def _sizes_of(part: object) -> str:
    sizes = part.get("sizes") if isinstance(part, dict) else None
    return sizes if isinstance(sizes, str) else ""


def _read(content: dict[str, Any], changes: tuple[str, ...], place: str) -> Scenario:
    for change in changes:
        _apply(content, change)
    _check_text(content, ())
    try:
        return Scenario.model_validate(content)
    except ValidationError as error:
        raise ScenarioError(place + explained(error, Scenario)) from None
    except ScenarioError as error:
        if any(change.startswith("topology.kind=") for change in changes):
            raise ScenarioError(
                error.message,
                "Another kind has other keys: give the section as a whole, such as "
                "--set 'topology={kind: fat-tree, k: 4}'.",
            ) from None
        raise


def check(scenario: Scenario) -> None:
    """Find out what no single key tells: that links exist, and that buffers suffice."""
    fabric = scenario.fabric()
    _check_switches(scenario, fabric)
    _check_links(scenario, fabric)
    _check_hosts(scenario, fabric)
    if scenario.topology.outside:
        _check_outside(scenario, fabric)
    _check_telemetry(scenario)
    _check_notices(scenario)
    _check_plans(scenario, fabric)


def _check_links(scenario: Scenario, fabric: Fabric) -> None:
    links = {link.name for link in fabric.links}
    named = {
        "loss.links": scenario.loss.links,
        "link.slow": scenario.link.slow,
        "faults": [fault.link for fault in scenario.faults if fault.link],
        "measures.pcap": [link for link in scenario.measures.pcap if link != ALL_LINKS],
    }
    for key, link in ((key, link) for key, some in named.items() for link in some):
        if link not in links:
            raise ScenarioError(
                f"{key}: there is no link '{link}' in this fabric" + nearest(link, sorted(links)),
                "A link is named after its ends, the one nearer to the hosts first: leaf1-spine2; "
                "the second between the same two is leaf1-spine2.2.",
            )


def _check_hosts(scenario: Scenario, fabric: Fabric) -> None:
    hosts = [host.name for host in fabric.hosts]
    tenants = [host for members in scenario.tenants.values() for host in members]
    takers = scenario.transport.receive_gbps
    named = {
        "tenants": tenants,
        "transport.receive_gbps": takers if isinstance(takers, dict) else (),
        "csig.unaware": scenario.csig.unaware,
        "access": [host for rule in scenario.access for host in rule.hosts],
        "faults": [fault.host for fault in scenario.faults if fault.host],
    }
    for key, host in ((key, host) for key, some in named.items() for host in some):
        if host not in hosts:
            raise ScenarioError(
                f"{key}: there is no host '{host}' in this fabric",
                f"Its hosts are {hosts[0]} to {hosts[-1]}.",
            )
        if key == "tenants" and tenants.count(host) > 1:
            raise ScenarioError(f"tenants: {host} is named twice; a host has one tenant")


def _check_telemetry(scenario: Scenario) -> None:
    name = scenario.transport.cc.upper()
    if not scenario.transport.control.hears_telemetry:
        return
    if scenario.telemetry.share:
        raise ScenarioError(
            f"int.share: with {name} every packet carries telemetry, and takes it to its receiver",
            "Leave out int.share, or choose another transport.cc.",
        )
    if scenario.telemetry.format is Format.IOAM:
        raise ScenarioError(
            f"int.format: {name} goes by INT-MD's words",
            "Leave out int.format, or choose another transport.cc.",
        )
    if scenario.telemetry.mtu is not None:
        raise ScenarioError(
            f"int.mtu: {name} has to hear of every hop",
            "Leave out int.mtu, or choose another transport.cc.",
        )


def _check_notices(scenario: Scenario) -> None:
    hears = scenario.transport.control.hears_notices
    if scenario.ecn.fast_cnp and not hears:
        raise ScenarioError(
            f"ecn.fast_cnp: nobody obeys fast CNPs with transport.cc={scenario.transport.cc}",
            "Choose transport.cc=dcqcn, or leave out ecn.fast_cnp.",
        )
    if scenario.transport.cnp_priority != CONTROL_PRIORITY and not hears:
        raise ScenarioError(
            f"transport.cnp_priority: there are no CNPs with transport.cc={scenario.transport.cc}",
            "Choose transport.cc=dcqcn, or leave out transport.cnp_priority.",
        )


def _check_plans(scenario: Scenario, fabric: Fabric) -> None:
    """Buffers suffice, and every switch can be told its ways."""
    settings = controller_settings(scenario, fabric)
    fabric = slowed(fabric, settings, scenario.link.slow)
    ports = {switch: fabric.count_of_ports(switch) for switch in fabric.switches}

    def cables(switch: Node) -> frozenset[tuple[tuple[LinkSpec, float], int]]:
        site = SwitchSite(fabric, switch, settings)
        cables = Counter((site.link(port), site.share_back(port)) for port in site.ports)
        return frozenset(cables.items())

    unlike = {(switch.kind, cables(switch)): switch for switch in fabric.switches}
    for switch in unlike.values():  # those of a kind differ in their cables alone
        switch_plan(fabric, switch, (), settings)
    if max(ports.values()) > MAX_WAYS:  # perhaps more ways to one place than a group holds
        for switch, routes in routes_of(fabric).items():
            if ports[switch] > MAX_WAYS:
                switch_plan(fabric, switch, routes, settings)


def _check_outside(scenario: Scenario, fabric: Fabric) -> None:
    """Routers are where hosts are, one each, and nothing of the fabric's own is behind them."""
    hosts = [host.name for host in fabric.hosts]
    own = [each.prefix(leaf) for each in (fabric, fabric.speaking(6)) for leaf in each.switches]
    seen: set[str] = set()
    for each in scenario.topology.outside:
        if each.host not in hosts:
            raise ScenarioError(
                f"topology.outside: there is no host '{each.host}' in this fabric"
                + nearest(each.host, hosts)
            )
        if each.host in seen:
            raise ScenarioError(f"topology.outside: {each.host} is named twice")
        seen.add(each.host)
        if any(each.host in names for names in scenario.tenants.values()):
            raise ScenarioError(
                f"topology.outside: {each.host} is a tenant's, and a router sends what others say",
                "Leave it out of tenants.",
            )
        for prefix in each.networks:
            if any(_overlap(prefix, mine) for mine in own):
                raise ScenarioError(
                    f"topology.outside: {prefix} of {each.host} is the fabric's own",
                    "Choose one that is not, such as 198.51.100.0/24 or 2001:db8:1::/48.",
                )


def _overlap(a: Network, b: Network) -> bool:
    return a.version == b.version and a.overlaps(b)


def _check_switches(scenario: Scenario, fabric: Fabric) -> None:
    known = [switch.name for switch in fabric.switches]
    ends = {link.name for link in fabric.links if not link.joins_switches}
    for plane in (fault.plane for fault in scenario.faults if fault.plane is not None):
        if plane > fabric.planes:
            raise ScenarioError(
                f"faults: there is no plane {plane} in this fabric, which has {fabric.planes}"
            )
    for fault in scenario.faults:
        if fault.switch is not None and fault.switch not in known:
            raise ScenarioError(
                f"faults: there is no switch '{fault.switch}' in this fabric"
                + nearest(fault.switch, known)
            )
        if fault.action in ("drain", "undrain") and fault.link in ends:
            raise ScenarioError(
                f"faults: {fault.link} is a host's: who sends there has no other way",
                f"Name a link between switches to {fault.action}, or a switch.",
            )
    most = max(max(fabric.ports(switch)) for switch in fabric.switches)
    if scenario.control.kind == "bgp" and most > MAX_CONTROLLED:
        raise ScenarioError(
            f"control.kind: a switch of this fabric has a port {most}, and of {MAX_CONTROLLED} at "
            "most each can have a control port beside it",
            "Build it smaller, or --set control.kind=p4runtime.",
        )


def _apply(content: dict[str, Any], change: str) -> None:
    """Carry out one ``--set KEY=VALUE``."""
    key, separator, value = change.partition("=")
    if not separator or not key:
        raise ScenarioError(f"--set {change}: write it as KEY=VALUE, such as traffic.bytes=1MB")
    try:
        wanted = parse_yaml(value)
    except NotYamlError:
        wanted = value
    except YamlError as error:
        raise ScenarioError(f"--set {key}: {error}") from None
    *sections, last = key.split(".")
    place: Any = content
    for section in sections:
        place = _inside(place, section, change)
    if isinstance(place, list):
        place[_position(place, last, change)] = wanted
    else:
        place[_key_in(place, last)] = wanted


def _check_text(content: object, place: tuple[object, ...]) -> None:
    """Refuse what looks like text and cannot be written down, or would command a terminal."""
    match content:
        case str():
            where = ".".join(map(str, place))
            try:
                content.encode()
            except UnicodeEncodeError:
                raise ScenarioError(f"{where}: {content!a} holds half a character") from None
            if _CONTROL.search(content):
                raise ScenarioError(
                    f"{where}: {content!a} holds a control character",
                    "Text may have line ends and tabulators, and nothing else of that kind.",
                )
        case dict():
            for key, value in content.items():
                _check_text(key, place)
                _check_text(value, (*place, key))
        case list():
            for at, value in enumerate(content):
                _check_text(value, (*place, at))


def _inside(place: Any, section: str, change: str) -> dict[str, Any] | list[Any]:
    """What a key's part leads to: a section, made if it is missing, or an entry of a list."""
    if isinstance(place, list):
        found = place[_position(place, section, change)]
    else:
        found = place.setdefault(_key_in(place, section), {})
    if not isinstance(found, dict | list):
        raise ScenarioError(f"--set {change}: '{section}' is a value, not a section")
    return found


def _key_in(section: dict[Any, Any], written: str) -> Any:
    """A key as the section has it already, such as a class by its number, or as written."""
    return next((key for key in section if str(key) == written), written)


def _position(entries: list[Any], written: str, change: str) -> int:
    """The entry of a list that a key's part names by its number, the first being 0."""
    if not written.isdigit() or int(written) >= len(entries):
        raise ScenarioError(
            f"--set {change}: '{written}' is no entry of this list",
            f"Its {len(entries)} entries have the numbers 0 to {len(entries) - 1}.",
        )
    return int(written)
