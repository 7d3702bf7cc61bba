"""Whatever a scenario, a topology file or a --set says: a message that names the place, and soon.

No case is chosen by hand alone: every key there is takes every value of a list of unlikely ones,
and what is accepted is planned for a switch, which must be able to take all of it.
"""

from __future__ import annotations

import json
import random
import time
from pathlib import Path
from typing import Any

import pytest

from controller import routes_of, switch_plan
from lab.errors import LabError, ScenarioError
from lab.machine.speed import processor_slowness
from lab.scenario import catalogue
from lab.scenario.fabrics import read_fabric
from lab.scenario.model import all_keys
from lab.scenario.translate import controller_settings
from tests.fabric.network import Switch
from topologies import TopologyError

PLAIN = "name: x\ntraffic: {kind: incast, senders: 2, bytes: 1KB}\n"
EVERYTHING = (  # so that every value gets into a plan
    *("ecn.enabled=true", "lb.policy=conga", "int.share=0.1", "schedule.kind=dwrr"),
    *("loss.rate=0.1", "tenants={a: [h1, h2]}", "pfc.watchdog_ns=200ms"),
)
UNLIKELY = (
    *("-1", "0", "1", "-0.5", "4294967295", "4294967296", "5GB", "18446744073709551616"),
    *("1e30", "1e400", ".inf", "-.inf", ".nan", "0x" + "f" * 200, "1" * 5000, "99999999999999GB"),
    *("null", "true", "[]", "[1]", "{}", "{a: 1}", "{1: 2}", "[[[[]]]]", "x", '""', "2020-13-45"),
    *('"\\ud800"', '"a\\0b"', "!!int x", "!!python/object:os.system x", "&a [*a]", "{a: 1, a: 2}"),
)


def outcome(name: str, *changes: str) -> str:
    """What somebody is told, empty if all is well; anything but a LabError fails the test."""
    try:
        scenario = catalogue.load(name, changes)
        fabric = scenario.topology.build()
        if len(fabric.switches) > 64:
            return ""
        leaf = fabric.switches[0]
        settings = controller_settings(scenario, fabric)
        Switch.make("leaf1").tell(switch_plan(fabric, leaf, routes_of(fabric)[leaf], settings))
    except LabError as error:
        assert error.message
        error.message.encode()
        assert len(error.message) < 5000
        return error.message
    return ""


def tried(keys: list[str], values: list[str]) -> None:
    for key in keys:
        for value in values:
            began = time.process_time()
            outcome("incast", *EVERYTHING, f"{key}={value}")
            assert time.process_time() - began < 20 * processor_slowness(), (key, value)


def keys() -> list[str]:
    """All of them, entries of lists by the number of the first."""
    return [key.name.replace("[]", ".0") for key in all_keys()]


def test_any_key_takes_any_value_or_says_why_not() -> None:
    draw = random.Random(11)
    for key in keys():
        tried([key], draw.sample(UNLIKELY, 1))


@pytest.mark.slow
def test_any_key_takes_every_unlikely_value_or_says_why_not() -> None:
    tried(keys(), list(UNLIKELY))


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        ("pfc.headroom=-1", "pfc.headroom: it must be at least 0 (got -1)"),
        ("pfc.priorities=[3, 3]", "pfc.priorities: class 3 is named twice; name it once"),
        ("trim={enabled: true, classes: [2, 2]}", "trim.classes: class 2 is named twice"),
        ("schedule.port_gbps=1e-10", "schedule.port_gbps: it must be at least 1e-09"),
        ("schedule={shape: {3: -1}}", "schedule.shape.3: it must be at least 1e-09"),
        ("transport.receive_gbps=-1", "transport.receive_gbps: it must be at least 1e-09 (got -1)"),
        ("transport.receive_gbps={h1: 0}", "transport.receive_gbps.h1: it must be at least 1e-09"),
        (
            "link={slow: {leaf1-spine1: 1e-300}}",
            "link.slow.leaf1-spine1: it must be at least 0.001",
        ),
        (
            "pfc={watchdog_ns: 1ms, watchdog_poll_ns: 2ms}",
            "pfc: a watchdog that looks every 2,000,000",
        ),
        ("pfc.watchdog_ns=0.4ns", "pfc.watchdog_ns: '0.4ns' is no whole number of nanoseconds"),
        ("traffic.bytes=1.5B", "traffic.bytes: '1.5B' is no whole number of bytes"),
        ("loss.rate=1e-10", "loss.rate: it must be 0, or at least 2.3e-10: less never happens"),
        ("transport.dcqcn.additive_mbps=1e-8", "additive_mbps: it must be 0, or at least 1e-06"),
        ("ecn.pmax=1e-6", "ecn: pmax is 1e-06 over 300,000 bytes, as good as 0"),
        ("ecn={kmin: 2KB, kmax: 1KB}", "ecn: kmin is 2,000 bytes, kmax 1,000"),
        ("schedule={shape: {3: 1, 0x3: 2}}", "--set schedule: '0x3' is there twice"),
        ("schedule={shape: {3: 1, '03': 2}}", "schedule.shape: a number is there twice"),
        ("pfc.xon_gap=5GB", "pfc.xon_gap: it must be at most 4294967295"),
        ("buffer.bytes=5GB", "buffer.bytes: it must be at most 4294967295"),
        ("ecn={kmin: 5GB, kmax: 6GB}", "it must be at most 4294967295"),
        (
            "buffer.alpha=.inf",
            "buffer.alpha: it must be a power of two from 1/256 to 128",
        ),
        ("topology={kind: {a: 1}}", "topology.kind: there is no '{'a': 1}'"),
        ("buffer={profile: [1]}", "buffer.profile"),
        ('about="\\ud800"', "about: '\\ud800' holds half a character"),
        ("seed=" + "1" * 10_000, "--set seed: 11111111111111111111... is too large a number"),
        ("x=" + "[" * 20_000 + "]" * 20_000, "--set x: it is nested too deeply"),
        ("pfc={enabled: true, enabled: no}", "--set pfc: 'enabled' is there twice, in line 1"),
        ("topology={kind: file, path: /dev/zero}", "/dev/zero is no file"),
    ],
)
def test_what_is_wrong_is_named(change: str, expected: str) -> None:
    assert expected in outcome("incast", change)


def test_a_change_finds_a_class_by_its_number() -> None:
    changes = "ecn.classes={3: {kmax: 1MB}}", "ecn.classes.3.kmin=1KB"
    (marking,) = catalogue.load("incast", changes).ecn.classes.values()
    assert (marking.kmin, marking.kmax) == (1_000, 1_000_000)


@pytest.mark.parametrize(
    ("name", "change", "expected"),
    [
        ("evpn-tenants", "link.ip=6", "overlay.kind vxlan: tenants speak IPv4: leave link.ip 4"),
        (
            "hello",
            "topology.outside=[{host: h2, prefixes: [198.51.100.0/24]}]",
            "topology.outside: they speak BGP: set control.kind=bgp",
        ),
    ],
)
def test_keys_that_do_not_go_together_are_all_that_is_said(
    name: str, change: str, expected: str
) -> None:
    assert outcome(name, change) == f"scenario '{name}': {expected}"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("seed: 1\nseed: 2\n", "'seed' is there twice, in line 3 and in line 4: leave one out"),
        ("pfc: {enabled: true,\n  enabled: false}\n", "in line 3 and in line 4"),
        ('about: "\\ud800"\n', "about: '\\ud800' holds half a character"),
        ("x: " + "[" * 20_000 + "]" * 20_000, "it is nested too deeply: 100 levels are allowed"),
        ("x: [" * 40_000, "it is nested too deeply"),
        ("seed: " + "9" * 10_000, "99999999999999999999... is too large a number"),
        ("pfc: &p {enabled: *p}\n", "it says more than 200,000 things"),
        (
            "a: &a [x, x, x, x, x, x, x, x, x, x]\n"
            + "".join(f"a{n}: &a{n} [{'*a' + str(n - 1 or '') + ', '} x]\n" for n in range(1, 3))
            + "".join(
                f"b{n}: &b{n} [{', '.join(['*b' + str(n - 1)] * 10)}]\n" for n in range(1, 9)
            ).replace("*b0", "*a"),
            "it says more than 200,000 things",
        ),
        ("#" * 1_000_001, "is too long: it may have 1,000,000 bytes"),
        ("seed: !!int x\n", "is not YAML"),
        ("pfc: {enabled: !!python/name:os.system x}\n", "is not YAML"),
        ("".join(f"key{n}: {n}\n" for n in range(20_000)), "and 19,984 more"),
    ],
)
def test_what_is_wrong_in_a_file_is_named_and_soon(
    text: str, expected: str, tmp_path: Path
) -> None:
    file = tmp_path / "mine.yaml"
    file.write_text(PLAIN + text)
    began = time.process_time()
    message = outcome(str(file))
    assert expected in message
    assert "python" not in message or "tag" in message
    assert time.process_time() - began < 20 * processor_slowness()


TUTORIAL = {
    "hosts": {
        "h1": {"ip": "10.0.1.1/24", "mac": "08:00:00:00:01:11"},
        "h2": {"ip": "10.0.2.2/24", "mac": "08:00:00:00:02:22"},
    },
    "switches": {"s1": {}, "s2": {}, "s3": {}},
    "links": [
        *(["h1", "s1-p1"], ["h2", "s2-p1"], ["s1-p2", "s3-p1", "5ms", 10]),
        ["s2-p2", "s3-p2", 3, 2.5],
    ],
}
WRONG: tuple[Any, ...] = (
    *(None, True, -1, 0, 1e300, 10**30, float("nan"), float("inf"), "nan", "x", "", [], {}, [[]]),
    *("9" * 5000 + "ms", "s1-p0", "s1-p511", "s1-p" + "9" * 5000, "s1-p²", "h1", "\ud800"),
)


def places(value: object, place: tuple[object, ...] = ()) -> list[tuple[object, ...]]:
    """Where something stands, all of it."""
    inner = value.items() if isinstance(value, dict) else ()
    inner = enumerate(value) if isinstance(value, list) else inner
    return [place, *(p for key, part in inner for p in places(part, (*place, key)))]


def test_any_wrong_topology_file_is_refused_in_words(tmp_path: Path) -> None:
    path = tmp_path / "topology.json"
    for where in places(TUTORIAL):
        for wrong in WRONG:
            content = json.loads(json.dumps(TUTORIAL))
            if where:
                part = content
                for key in where[:-1]:
                    part = part[key]
                part[where[-1]] = wrong
            path.write_text(json.dumps(content if where else wrong))
            try:
                fabric = read_fabric(path).fabric
            except TopologyError as error:
                assert str(path) in str(error)
                continue
            for link in fabric.links:
                assert link.speed.rate_bps is None or 1e3 <= link.speed.rate_bps <= 1e13
                assert link.speed.delay_ns is None or 0 <= link.speed.delay_ns <= 1e9
    for text, expected in (
        ('{"a":' * 20_000 + "1" + "}" * 20_000, "nested too deeply"),
        ('{"hosts": {"h1": {}, "h1": {}}}', "'h1' is there twice"),
        (" " * 16_000_001, "is too long"),
        ("\udcff", "is no text"),
    ):
        path.write_text(text, errors="surrogateescape")
        with pytest.raises(TopologyError, match=expected):
            read_fabric(path)


def test_a_file_without_end_is_no_scenario() -> None:
    for path in ("/dev/zero", "/dev/null", "/proc/self/mem"):
        with pytest.raises(ScenarioError):
            catalogue.read(f"{path}.yaml")
        assert outcome("incast", f"topology={{kind: file, path: {path}}}")
