"""Routers of others (topology.outside): BIRD, GoBGP and ExaBGP beside the switches' FRR.

One lab for all of it: each test leaves it as it found it. What everybody should know is a model's
(`neighbours.py`); chaos for as long as one likes is that module's command.
"""

import random
import re
import shutil
import time
from collections.abc import Iterator

import pytest

from controller import NextHop, routes_behind, routes_of
from lab.engines.mininet.outside import Neighbour, answers_at, behind
from lab.errors import LabError, MissingTool
from lab.machine import tools
from lab.scenario import catalogue
from lab.scenario.topology import OutsideRouter, Speaks
from tests.lab import neighbours
from tests.lab.conftest import needs_frr
from tests.lab.neighbours import CABLES, OUTSIDE, PROGRAMS, SHARED, Lab, until
from topologies import leaf_spine

FABRIC = leaf_spine(4, 2, 2)


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lab]:
    needs_frr()
    missing = [program for program in PROGRAMS.values() if not shutil.which(program)]
    if missing:
        pytest.skip(f"not installed: {', '.join(missing)} (Debian: bird2, gobgpd, exabgp)")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("CLOSLAB_RUNNING", str(tmp_path_factory.mktemp("running")))
        with Lab.up(tmp_path_factory.mktemp("out")) as found:
            yield found
            assert not found.wrong()  # left as it was found


def answered(lab: Lab, host: str, to: str, *, of: str = "") -> bool:
    """Whether a ping of a host's, from an address of its, is answered."""
    source = f"-I {of} " if of else ""
    return " 2 received" in lab.prompt.ask(f"{host} ping -c 2 -i 0.2 -W 10 {source}{to}")[0]


@pytest.mark.mininet
@pytest.mark.slow
def test_routes_are_exchanged_both_ways_and_used(lab: Lab) -> None:
    """IPv4 and IPv6; by hosts, and from router to router."""
    lab.settle()
    for host in OUTSIDE:
        until(lambda host=host: str(lab.heard(host) ^ neighbours.others_of(host) or ""))
    for to in ("198.51.100.1", "203.0.113.1", "192.0.2.1", "192.0.2.129"):
        assert answered(lab, "h1", to)
    assert answered(lab, "h2", "203.0.113.1", of="198.51.100.1")
    assert answered(lab, "h2", "2001:db8:2::1", of="2001:db8:1::1")  # by what BIRD wrote down
    assert answered(lab, "h6", "2001:db8:3::1", of="2001:db8:2::1")


@pytest.mark.mininet
@pytest.mark.slow
@pytest.mark.parametrize(("host", "least"), [("h2", 200), ("h6", 200), ("h8", 100)])
def test_a_router_that_dies_loses_no_ping(lab: Lab, host: str, least: int) -> None:
    """Graceful restart: its leaf keeps its routes until it has told them again.

    Of ExaBGP, when it is back, not always until then: it is only to come back.
    """
    to = answers_at(OutsideRouter(host=host, prefixes=OUTSIDE[host][1]).networks[0])
    with lab.prompt.meanwhile(f"h3 ping -i 0.05 -W 20 -c 200 {to}") as answer:
        lab.kill(host, PROGRAMS[host])
    (received,) = re.findall(r"(\d+) received", answer[0])
    assert int(received) >= least
    lab.settle()


@pytest.mark.mininet
@pytest.mark.slow
def test_what_is_withdrawn_is_gone_everywhere_and_comes_back(lab: Lab) -> None:
    """By BIRD: who is asked for it then has no way."""
    ctl = f"birdc -s {lab.folder('h2')}/ctl"
    lab.prompt.ask(f"h2 {ctl} disable mine4")
    until(lambda: str("198.51.100.0/24" in lab.known("leaf3") or ""))
    assert not answered(lab, "h1", "198.51.100.1")
    assert answered(lab, "h1", "192.0.2.129")  # of which h6 still tells
    lab.prompt.ask(f"h2 {ctl} enable mine4")
    lab.settle()


@pytest.mark.mininet
@pytest.mark.slow
def test_a_router_is_drained_by_a_community(lab: Lab) -> None:
    """GRACEFUL_SHUTDOWN, 65535:0: what somebody else tells too is sent there; nothing is lost."""
    folder = lab.folder("h2")
    with lab.prompt.meanwhile(f"h1 ping -i 0.05 -W 20 -c 200 {answers_at_shared()}") as answer:
        lab.birdc("h2", f'configure "{folder}/drained.conf"')
    assert "200 received" in answer[0]
    lab.settle(quiet=["h2"])
    lab.birdc("h2", f'configure "{folder}/bird.conf"')
    lab.settle()


def answers_at_shared() -> object:
    """The address that answers behind two routers."""
    return answers_at(OutsideRouter(host="h2", prefixes=(SHARED,)).networks[0])


@pytest.mark.mininet
@pytest.mark.slow
def test_a_cable_is_drained_by_a_community(lab: Lab) -> None:
    lab.prompt.ask("drain leaf1 spine1")
    lab.drained.add("leaf1-spine1")
    lab.settle()
    lab.kill("leaf1", "bgpd")  # who starts again knows that it is drained
    lab.settle()
    lab.kill("leaf1", "bgpd")  # who starts just now hears of it none the less
    lab.prompt.ask("undrain leaf1 spine1")
    lab.drained.clear()
    lab.settle()


@pytest.mark.mininet
@pytest.mark.slow
def test_a_cable_that_is_cut_while_its_far_end_starts_again_is_not_used_for_long(lab: Lab) -> None:
    """What a neighbour keeps of who restarts it goes by even so; FRR's own time would be 120 s."""
    lab.kill("spine1", "zebra")
    time.sleep(0.5)
    lab.prompt.ask("fail leaf4 spine1")
    lab.cut.add("leaf4-spine1")
    lab.settle()
    lab.prompt.ask("mend leaf4 spine1")
    lab.cut.clear()
    lab.settle()


@pytest.mark.mininet
@pytest.mark.slow
def test_chaos_for_a_minute(lab: Lab) -> None:
    assert neighbours.chaos(lab, 60.0, random.Random(4), print)


# --- without a lab -------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(20))
def test_the_ways_behind_leaves_are_the_models(seed: int) -> None:
    """Of our controller's arithmetic, which says when a run may begin."""
    draw = random.Random(seed)
    spine = draw.choice("12")
    dead = [cable for cable in CABLES if cable[-1] == spine and draw.random() < 0.5]
    routers = [
        Neighbour(FABRIC, OutsideRouter(host=h, speaks=Speaks(s), prefixes=p), n)
        for n, (h, (s, p)) in enumerate(OUTSIDE.items())
    ]
    routes, beyond = routes_of(FABRIC, dead), routes_behind(FABRIC, behind(routers), dead)
    for switch in FABRIC.switches:
        found = {
            str(route.prefix): frozenset(hop.port for hop in route.next_hops)
            for route in (*routes[switch], *beyond[switch])
            if not str(route.prefix).endswith("/32")  # a leaf's own hosts
        }
        assert found == neighbours.model(switch.name, dead)
    assert all(isinstance(hop, NextHop) for hop in beyond[FABRIC.node("leaf1")][0].next_hops)


ONE = "topology.outside=[{host: %s, prefixes: [%s]}]"
BGP = "control.kind=bgp"


@pytest.mark.parametrize(
    ("why", "changes"),
    [
        ("set control.kind=bgp", (ONE % ("h2", "198.51.100.0/24"),)),
        ("leave link.ip 4", (ONE % ("h2", "198.51.100.0/24"), BGP, "link.ip=6")),
        ("there is no host 'h99'", (ONE % ("h99", "198.51.100.0/24"), BGP)),
        ("is the fabric's own", (ONE % ("h2", "10.0.3.0/25"), BGP)),
        ("is the fabric's own", (ONE % ("h2", '"fd00:0:0:1::/64"'), BGP)),
        ("is no prefix of unicast", (ONE % ("h2", "224.0.0.0/8"), BGP)),
        ("is no prefix of unicast", (ONE % ("h2", "0.0.0.0/0"), BGP)),
        ("host bits set", (ONE % ("h2", "198.51.100.1/24"), BGP)),
        ("prefixes", (ONE % ("h2", ""), BGP)),
        ("a tenant's", (ONE % ("h2", "198.51.100.0/24"), BGP, "tenants={blue: [h2, h3]}")),
        (
            "named twice",
            (
                "topology.outside=[{host: h2, prefixes: [198.51.100.0/24]}, "
                "{host: h2, prefixes: [203.0.113.0/24]}]",
                BGP,
            ),
        ),
        ("one port here", (ONE % ("h2", "198.51.100.0/24"), BGP, "topology.kind=planes")),
        ("speaks", ("topology.outside=[{host: h2, speaks: quagga, prefixes: [1.2.3.0/24]}]", BGP)),
    ],
)
def test_what_cannot_be_is_refused(why: str, changes: tuple[str, ...]) -> None:
    if any("planes" in each for each in changes):
        router = "{host: h2, prefixes: [198.51.100.0/24]}"
        changes = (f"topology={{kind: planes, outside: [{router}]}}", BGP)
    with pytest.raises(LabError, match=why):
        catalogue.load("hello", changes)


def test_what_is_missing_is_told_in_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shutil, "which", lambda _name: None)
    with pytest.raises(MissingTool) as caught:
        tools.require_routers({"bird": "bird2"})
    assert "not installed here: bird" in caught.value.message
    assert "apt-get install --no-install-recommends bird2" in str(caught.value.cure)
