"""What the lab says of a scenario's keys: all of them, and nothing that is not so."""

import json

import pytest

from lab.errors import ScenarioError
from lab.scenario import catalogue, model, shipped
from lab.scenario.explain import explain
from tests.lab.conftest import closlab


def test_a_word_that_is_no_key_is_told_or_found() -> None:
    assert "buffer.alpha" in explain("pfc.xoff")
    assert "no key pfc.xoff" in explain("pfc.xoff")
    with pytest.raises(ScenarioError, match="did you mean 'xoff'"):
        explain("xof")


def test_what_the_simulator_cannot_run_is_marked() -> None:
    said = closlab("list").stdout.splitlines()
    marked = {line.split()[0] for line in said if line.endswith("On Mininet only.")}
    listed = json.loads(closlab("list", "--json").stdout)
    assert marked == {each["name"] for each in listed if each["engines"] == ["mininet"]}
    speak = {name for name in shipped.names() if catalogue.load(name).control.kind == "bgp"}
    assert marked == speak
    assert "closlab run bgp-clos\n" in closlab("list", "bgp-clos").stdout
    refused = closlab("run", "bgp-clos", "--engine", "sim")
    assert "the simulator has its own" in refused.stderr


def test_every_key_is_documented() -> None:
    keys = model.all_keys()
    assert len(keys) > 150
    assert [key.name for key in keys if not key.about] == []
    for key in keys:
        assert key.about in " ".join(explain(key.name).split()), key.name


def test_every_key_of_the_shipped_scenarios_is_known() -> None:
    known = {key.name.replace("[]", "") for key in model.all_keys()}

    def check(content: object, place: str) -> None:
        if place in ("tenants", "link.slow", "classes.dscp", "schedule.weights") or place in (
            "traffic.parts",
            "traffic.jobs.job",
        ):
            return  # names of the user's own; sections of any kind
        if isinstance(content, dict):
            for key, inside in content.items():
                assert f"{place}.{key}".lstrip(".") in known
                check(inside, f"{place}.{key}".lstrip("."))
        elif isinstance(content, tuple | list):
            for entry in content:
                check(entry, place)

    for name in shipped.names():
        check(catalogue.load(name).model_dump(), "")


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        (None, "pfc         Priority flow control"),
        ("pfc", "pfc.watchdog_ns"),
        ("pfc.watchdog_ns", "a time, such as 50us or 3ms, at most 1000s; 200ms if not given"),
        ("watchdog_ns", "pfc.watchdog_ns"),
        (
            "buffer.bytes",
            "or 4MB, at least 1, at most 4,294,967,295; 4MB if not given",
        ),
        ("transport.recovery", "one of go-back-0, go-back-n, selective; go-back-n if not given"),
        ("pfc.headroom", "bytes, such as 16KB or 4MB, at most 4,294,967,295; may be left out"),
        ("link.mtu", "at least 256, at most 9,000, a multiple of 8; 4,096 if not given"),
        ("traffic", "north-south  Background traffic with the world outside."),
        ("traffic.kind", "one of all-pairs, collective, incast"),
        ("traffic.incast", "a host, such as h1; h1 if not given"),
        ("topology.fat-tree", "Ports of a switch, an even number."),
        ("faults.0.link", "faults[].link"),
        ("faults.at_ns", "a time, such as 50us or 3ms; it must be given"),
        ("gateways", "traffic.gateways  (kind north-south)"),
    ],
)
def test_what_is_said(asked: str | None, said: str) -> None:
    assert said in explain(asked)


@pytest.mark.parametrize(
    ("asked", "meant"),
    [
        ("pfc.enabld", "pfc.enabled"),
        ("traffic.incats", "traffic.incast"),
        ("watchdog", "watchdog_ns"),
        ("trafic", "traffic"),
    ],
)
def test_what_is_not_known_is_refused_with_the_nearest(asked: str, meant: str) -> None:
    with pytest.raises(ScenarioError) as caught:
        explain(asked)
    assert f"did you mean '{meant}'" in caught.value.message


def test_the_command() -> None:
    done = closlab("explain", "ecn.pmax")
    assert done.returncode == 0
    assert done.stdout.startswith("ecn.pmax\n")
    done = closlab("explain", "nonsense")
    assert done.returncode == 1
    assert done.stderr.startswith("closlab: a scenario has no key 'nonsense'")
