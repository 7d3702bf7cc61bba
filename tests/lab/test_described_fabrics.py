"""Topologies of containerlab and netlab and minigraphs: what each says becomes a fabric, or a note.

Fabrics by lot are written in all three forms, each in its ways of saying the same; what is read is
compared with what was drawn. Then files are damaged: each ends in a fabric or in one message.
"""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from random import Random
from typing import Any

import pytest
import yaml

from lab.scenario.fabrics import Described, described
from tests.lab.conftest import closlab
from topologies import TopologyError

FORMS = "containerlab", "netlab", "minigraph"
Drawn = tuple[list[str], list[str], list[tuple[str, str]]]  # hosts, switches, cables


def _drawn(rng: Random) -> Drawn:
    leaves = [f"leaf-{at}" for at in range(rng.randint(1, 5))]
    spines = [f"sp{at}" for at in range(rng.randint(1, 3))]
    cables = [
        (leaf, spine) for leaf in leaves for spine in spines for _ in range(rng.choice((1, 2)))
    ]
    hosts = []
    for leaf in leaves:
        for at in range(rng.randint(1, 3)):
            hosts.append(f"{leaf}-gpu{at}")
            cables.append((hosts[-1], leaf))
    rng.shuffle(cables)
    return hosts, leaves + spines, cables


def _containerlab(rng: Random, drawn: Drawn) -> str:
    hosts, switches, cables = drawn
    by_label, by_group = {"kind": "x", "labels": {"role": "server"}}, {"kind": "x", "group": "gpus"}
    nodes: dict[str, Any] = {
        host: rng.choice(({"kind": "linux", "image": "alpine"}, by_label, by_group))
        for host in hosts
    }
    nodes |= {name: rng.choice((None, {"kind": "arista_ceos"}, {"group": "leaf"}))
              for name in switches}  # fmt: skip
    taken: Counter[str] = Counter()
    links: list[Any] = []
    for a, b in cables:
        ends: list[Any] = []
        for name in (a, b):
            taken[name] += 1
            ends.append(f"{name}:eth{taken[name]}")
        if rng.random() < 0.3:
            ends = [dict(zip(("node", "interface"), end.split(":"), strict=True)) for end in ends]
            links.append({"type": "veth", "endpoints": ends})
        else:
            links.append({"endpoints": ends})
    links.append({"endpoints": [f"{switches[0]}:eth99", "mgmt-net:x"]})
    links.append({"type": "host", "endpoint": {"node": hosts[0], "interface": "eth9"}})
    topology = {"defaults": {"kind": "nokia_srlinux"}, "nodes": nodes, "links": links}
    return yaml.safe_dump({"name": "lab", "topology": topology})


def _netlab(rng: Random, drawn: Drawn) -> str:
    hosts, switches, cables = drawn
    content: dict[str, Any] = {"provider": "clab", "defaults": {"device": "eos"}}
    grouped = [host for host in hosts if rng.random() < 0.4]
    said = {host: {} if host in grouped else rng.choice(({"role": "host"}, {"device": "linux"}))
            for host in hosts} | {name: {} for name in switches}  # fmt: skip
    content["groups"] = {"them": {"members": grouped, "device": "linux"}}
    content["nodes"] = said if rng.random() < 0.5 else [
        {"name": name, **node} if node else name for name, node in said.items()]  # fmt: skip
    content["links"] = [
        rng.choice((f"{a}-{b}", [a, b], {a: {}, b: {"ipv4": 1}, "mtu": 9000},
                    {"interfaces": [{"node": a}, b]}))
        for a, b in cables
    ]  # fmt: skip
    content["links"] += [switches[0], [*switches, hosts[0]] if len(switches) > 1 else [hosts[0]]]
    return yaml.safe_dump(content)


def _minigraph(rng: Random, drawn: Drawn) -> str:
    hosts, switches, cables = drawn
    i = 'xmlns:i="http://www.w3.org/2001/XMLSchema-instance"'
    devices = "".join(
        f'<Device i:type="{kind}"><Hostname>{name}</Hostname></Device>'
        if rng.random() < 0.5
        else f"<Device><ElementType>{kind}</ElementType><Hostname>{name}</Hostname></Device>"
        for kind, names in (("Server", hosts), ("ToRRouter", switches))
        for name in names
    )
    links = [
        f"<DeviceLinkBase><ElementType>DeviceInterfaceLink</ElementType><Bandwidth>100000"
        f"</Bandwidth><EndDevice>{b}</EndDevice><EndPort>p{at}</EndPort><StartDevice>{a}"
        f"</StartDevice><StartPort>q{at}</StartPort></DeviceLinkBase>"
        for at, (a, b) in enumerate(cables)
    ]
    links.append(links[0])  # as the other end's file tells it again
    links.append("<DeviceLinkBase><ElementType>LogicalLink</ElementType></DeviceLinkBase>")
    return (
        f'<DeviceMiniGraph xmlns="urn:x" {i}><PngDec><DeviceInterfaceLinks>{"".join(links)}'
        f"</DeviceInterfaceLinks><Devices>{devices}</Devices></PngDec></DeviceMiniGraph>"
    )


_WRITERS = {"containerlab": _containerlab, "netlab": _netlab, "minigraph": _minigraph}


def _written(form: str, seed: int, folder: Path) -> tuple[Path, Drawn]:
    rng = Random(seed)
    drawn = _drawn(rng)
    path = folder / f"fabric.{'xml' if form == 'minigraph' else 'clab.yml'}"
    path.write_text(_WRITERS[form](rng, drawn))
    return path, drawn


def _cables(found: Described) -> Counter[tuple[str, ...]]:
    names = {node: name for name, node in found.imported.aliases.items()}
    return Counter(
        tuple(sorted((names[link.a], names[link.b]))) for link in found.imported.fabric.links
    )


@pytest.mark.parametrize("seed", range(25))
@pytest.mark.parametrize("form", FORMS)
def test_what_is_said_is_read(form: str, seed: int, tmp_path: Path) -> None:
    path, (hosts, _, cables) = _written(form, seed, tmp_path)
    found = described(path)
    assert found.kind == form
    names = {node: name for name, node in found.imported.aliases.items()}
    assert {names[host] for host in found.imported.fabric.hosts} == set(hosts)
    assert _cables(found) == Counter(tuple(sorted(cable)) for cable in cables)
    if form == "minigraph":
        assert {link.speed.rate_bps for link in found.imported.fabric.links} == {10**11}
    notes = "\n".join(found.notes)
    for word in {"containerlab": ("mgmt-net", "type is host"), "netlab": ("1 ends", "not read"),
                 "minigraph": ("LogicalLink",)}[form]:  # fmt: skip
        assert word in notes


@pytest.mark.by_day(1)
@pytest.mark.parametrize("form", FORMS)
def test_damage_ends_in_a_fabric_or_a_message(form: str, tmp_path: Path) -> None:
    strange = ("\x1b[2J", "null", "[]", "{}", "-1", "&a [*a]", "!!python/name:os.system", "a" * 400,
               "<!ENTITY a 'b'>", "&a;", "\u0000", "1e999", "- - -", "host: host:")  # fmt: skip
    refused = 0
    for seed in range(120):
        rng = Random(seed)
        path, _ = _written(form, seed, tmp_path)
        text = path.read_text()
        at = rng.randrange(len(text))
        to = min(len(text), at + rng.choice((0, 1, 3, 20, 200)))
        path.write_text(text[:at] + rng.choice(("", *strange)) + text[to:])
        try:
            found = described(path)
        except TopologyError as error:
            refused += 1
            assert len(str(error)) < 2000
        else:
            assert found.imported.fabric.hosts
            assert all(note.isprintable() for note in found.notes)
    assert 20 < refused < 120


@pytest.mark.parametrize(
    "text",
    [
        "topology: {nodes: []}", "topology: {nodes: {a: 3}}",
        "topology: {nodes: {a: }, links: [3]}",
        "topology: {nodes: {a: }, links: [{endpoints: [a]}]}", "topology: {nodes: {}}",
        "topology: {nodes: {a: , b: }, links: [{endpoints: ['a', 'b:e']}]}",
        "topology: {nodes: {1: {}}}", "{nodes: [a], links: [3]}", "{nodes: [a], links: [[a, 3]]}",
        "{nodes: {a: }, links: {x: 3}}", "{nodes: [{name: 3}], links: []}",
        "{nodes: [a], links: []}",
        "{nodes: [a, b], groups: 3, links: [a-b]}", "{nodes: [a, b], links: [{interfaces: 3}]}",
        "<DeviceMiniGraph/>", "<DeviceMiniGraph><Device><Hostname>a</Hostname></Device>"
        "</DeviceMiniGraph>",
    ],
)  # fmt: skip
def test_what_is_no_fabric_is_refused(text: str, tmp_path: Path) -> None:
    path = tmp_path / "x.yml"
    path.write_text(text)
    with pytest.raises(TopologyError):
        described(path)


@pytest.mark.parametrize("form", FORMS)
def test_it_becomes_a_scenario(form: str, tmp_path: Path) -> None:
    path, (hosts, _, _) = _written(form, 3, tmp_path)
    done = closlab("import", str(path), "--out", str(tmp_path / "lab"))
    assert done.returncode == 0, done.stderr
    assert f"{len(hosts)} hosts" in done.stdout
    assert "left out" in done.stdout
    done = closlab("check", str(tmp_path / "lab" / "scenario.yaml"))
    assert "Traceback" not in done.stderr
