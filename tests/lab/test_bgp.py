"""Switches that run themselves: BGP finds what the controller knows, and survives what dies.

One lab for all of it: each test leaves it as it found it.
"""

import os
import re
import signal
import subprocess
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from bench import bgp as bench
from controller import routes_of
from controller.routing import STALE_S
from lab.engines.mininet.frr import as_number, configurations
from lab.errors import MissingTool
from lab.machine import tools
from lab.machine.speed import slowness
from lab.results.result import Control, Rerouting
from tests.lab.conftest import closlab, needs_frr, started
from tests.lab.listeners import listeners
from tests.lab.test_prompt import Prompt
from tests.waiting import LONG_S, SLOWNESS
from topologies import Fabric, fat_tree, leaf_spine

FABRIC = leaf_spine(4, 2, 2)
DAEMONS = ("zebra", "bgpd", "bfdd")
PATIENCE_S = 20.0
PING = f"ping -i 0.02 -W {10 * SLOWNESS:.0f}"  # for each answer
Ways = dict[str, set[int]]


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Prompt]:
    needs_frr()
    with pytest.MonkeyPatch.context() as patch:
        running = tmp_path_factory.mktemp("running")
        patch.setenv("CLOSLAB_RUNNING", str(running))
        lab = Prompt(tmp_path_factory.mktemp("out"), "--control", "bgp")
        yield lab
        lab.process.communicate(b"exit\n", timeout=LONG_S)
        assert lab.process.returncode == 0
        assert not list(running.iterdir())


def ways(lab: Prompt, switch: str) -> Ways:
    """Where a switch sends what is for a prefix, as its tables say."""
    routes, slots = lab.ask(f"tables {switch} ipv4_routes", f"tables {switch} group_slots")
    groups: dict[str, set[int]] = {}
    for group, port in re.findall(r"group (\d+), member \d+ +\S*way\(.*port (\d+)", slots):
        groups.setdefault(group, set()).add(int(port))
    found = {}
    for prefix, action, rest in re.findall(r"dst_addr (\S+) +\S*?(to_\w+)(.*)", routes):
        said = dict(re.findall(r"(\w+) (\d+)", rest))
        if action == "to_port":
            found[prefix] = {int(said["port"])}
        elif action == "to_group":
            found[prefix] = groups[said["group"]]
    return found


def by_controller(switch: str, *dead: str) -> Ways:
    routes = routes_of(FABRIC, dead)[FABRIC.node(switch)]
    return {str(route.prefix): {hop.port for hop in route.next_hops} for route in routes}


def eventually(what: Callable[[], bool]) -> None:
    until = time.monotonic() + PATIENCE_S * slowness()
    while not what():
        assert time.monotonic() < until
        time.sleep(0.1)


@pytest.mark.slow
@pytest.mark.mininet
def test_switches_hear_their_neighbours_and_nobody_else_from_outside(lab: Prompt) -> None:
    """BGP and BFD, in the rooms of switches; all else listens on loopback."""
    heard = [each for each in listeners(lab.process.pid) if not each.is_local]
    said = {(Path(each.command.split()[0]).name, each.is_inside) for each in heard}
    assert said == {("bgpd", True), ("bfdd", True)}


@pytest.mark.mininet
def test_every_group_is_the_controllers(lab: Prompt) -> None:
    for switch in FABRIC.switches:
        assert ways(lab, switch.name) == by_controller(switch.name)
    (output,) = lab.ask("tables leaf1 ipv4_routes")
    assert len(re.findall(r"10.0.[234].0/24 .* bgp", output)) == 3


@pytest.mark.mininet
def test_no_two_connections_meet(lab: Prompt) -> None:
    """One of a cable's ends waits for the other; else both might try again for seconds."""
    logs = list(lab.out.glob("logs/frr/*/etc/bgpd.log"))
    assert len(logs) == len(FABRIC.switches)
    for log in logs:
        said = log.read_text()
        assert " Up" in said
        assert "Connection Collision" not in said


@pytest.mark.mininet
def test_everybody_reaches_everybody_and_the_leaf(lab: Prompt) -> None:
    everybody, leaf, far = lab.ask(
        "pingall", "h1 ping -c 2 -W 5 10.0.1.254", "h1 ping -c 2 -W 5 10.0.4.254"
    )
    assert "0% dropped" in everybody
    assert "2 received" in leaf
    assert "2 received" in far


@pytest.mark.mininet
def test_the_suite_can_be_asked(lab: Prompt) -> None:
    here, wrong = lab.ask("vtysh leaf1 show bgp summary", "vtysh leaf9 show version")
    assert "spine1(leaf1-eth3)" in here
    assert "no switch 'leaf9'" in wrong
    there = closlab("enter", "spine2", "--control", "vtysh", "-c", "show bfd peers brief").stdout
    assert len(re.findall(r"fe80::\S+ +up", there)) == 4
    nobody = closlab("enter", "h1", "--control", "true")
    assert nobody.returncode == 1
    assert "no switch 'h1'" in nobody.stderr


@pytest.mark.slow
@pytest.mark.mininet
def test_bgp_goes_round_a_cut_cable_and_back(lab: Prompt) -> None:
    lab.ask("fail leaf1 spine1")
    for switch in ("leaf1", "leaf3", "spine1"):
        eventually(lambda s=switch: ways(lab, s) == by_controller(s, "leaf1-spine1"))
    assert "0% dropped" in lab.ask("pingall")[0]
    lab.ask("mend leaf1 spine1")
    for each in FABRIC.switches:
        eventually(lambda s=each.name: ways(lab, s) == by_controller(s))


@pytest.mark.slow
@pytest.mark.mininet
@pytest.mark.parametrize(
    ("switch", "daemon", "neighbour"),
    [
        ("leaf1", "bgpd", "spine1"),
        ("leaf1", "zebra", "spine1"),
        ("spine1", "bgpd", "leaf1"),  # for whom leaf1 waited
    ],
)
def test_a_daemon_that_dies_loses_no_ping(
    lab: Prompt, switch: str, daemon: str, neighbour: str
) -> None:
    kill = ("enter", switch, "--control", "sh", "-c", f"kill -9 $(cat /run/frr/{daemon}.pid)")
    pings = 700 if daemon == "zebra" else 400  # a bfdd that lives would find another after 10 s
    with lab.meanwhile(f"h1 {PING} -c {pings} h8") as answer:
        time.sleep(1)
        assert closlab(*kill).returncode == 0
    assert f"{pings} received" in answer[0]
    summary = f"vtysh {neighbour} show bgp summary"
    eventually(lambda: "00:" in lab.ask(summary)[0].split(f"{switch}(")[1])
    for each in FABRIC.switches:
        eventually(lambda s=each.name: ways(lab, s) == by_controller(s))


@pytest.mark.mininet
@pytest.mark.slow
def test_a_controller_that_dies_loses_no_ping(lab: Prompt) -> None:
    """Another, who knows nothing, goes on from what switches have, and from what FRR tells it."""
    there = str(FABRIC.address(FABRIC.node("h8")))
    ping = ("enter", "h1", *f"{PING} -c 400 {there}".split())
    with started(*ping, stdout=subprocess.PIPE, text=True) as pinging:
        assert "goes on from what switches have" in lab.ask("controller restart")[0]
        assert "400 received" in pinging.communicate()[0]
    lab.ask("fail leaf1 spine1")
    for each in FABRIC.switches:
        eventually(lambda s=each.name: ways(lab, s) == by_controller(s, "leaf1-spine1"))
    lab.ask("mend leaf1 spine1")
    for each in FABRIC.switches:
        eventually(lambda s=each.name: ways(lab, s) == by_controller(s))


def descendants(pid: int) -> set[int]:
    """A process and all it started."""
    parents: dict[int, list[int]] = {}
    for entry in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = entry.read_text().rpartition(")")[2].split()
        except OSError:
            continue
        parents.setdefault(int(fields[1]), []).append(int(entry.parent.name))
    found, new = set(), {pid}
    while new:
        found |= new
        new = {child for parent in new for child in parents.get(parent, ())} - found
    return found


def processes(pids: set[int], *names: str) -> dict[int, str]:
    """Those of these names."""
    found = {pid: Path(f"/proc/{pid}/comm").read_text().strip() for pid in pids}
    return {pid: name for pid, name in found.items() if name in names}


@pytest.mark.mininet
def test_every_daemon_is_in_the_sandbox(lab: Prompt) -> None:
    """With which it dies, however that ends (test_sandbox.py)."""
    daemons = processes(descendants(lab.process.pid), *DAEMONS)
    assert Counter(daemons.values()) == dict.fromkeys(DAEMONS, len(FABRIC.switches))
    (sandbox,) = {Path(f"/proc/{pid}/ns/pid").readlink() for pid in daemons}
    assert sandbox != Path("/proc/self/ns/pid").readlink()


@pytest.mark.slow
@pytest.mark.mininet
@pytest.mark.ordinary
def test_killed_it_leaves_no_daemon_behind(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    needs_frr()
    monkeypatch.setenv("CLOSLAB_RUNNING", str(tmp_path / "running"))
    lab = Prompt(tmp_path / "out", "--control", "bgp", "--set", "topology.leaves=2")
    family = descendants(lab.process.pid)
    assert Counter(processes(family, *DAEMONS).values()) == dict.fromkeys(DAEMONS, 4)
    os.kill(lab.process.pid, signal.SIGKILL)
    lab.process.communicate()
    eventually(lambda: not any(Path(f"/proc/{pid}").exists() for pid in family))


TWO_TENANTS = (
    *("--set", "topology={kind: leaf-spine, leaves: 2, spines: 1, hosts_per_leaf: 2}"),
    *("--set", "tenants={blue: [h1, h3], red: [h2, h4]}"),
    *("--set", "traffic={kind: flows, flows: [{src: h1, dst: h3, bytes: 1KB}]}"),
)


@contextmanager
def tenants(tmp_path: Path, subnets: str) -> Iterator[tuple[Prompt, Callable[[str], int]]]:
    """A lab of two, and how many entries of a table of leaf1's lead to leaf2."""
    needs_frr()
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("CLOSLAB_RUNNING", str(tmp_path / "running"))
        overlay = f"overlay={{kind: vxlan, subnets: {subnets}}}"
        lab = Prompt(tmp_path / "out", "--control", "bgp", *TWO_TENANTS, "--set", overlay)
        yield lab, lambda table: len(re.findall(r"to_\w*leaf", lab.ask(f"tables leaf1 {table}")[0]))
        lab.process.communicate(b"exit\n", timeout=LONG_S)
        assert lab.process.returncode == 0


def at_leaf2(tenant: int, *words: str) -> None:
    """Have a command done in a tenant's network namespace."""
    inside = ("nsenter", f"--net=/run/netns/tenant{tenant}", *words)
    assert closlab("enter", "leaf2", "--control", *inside).returncode == 0


FAR = "172.31.9.0/24"


def tell_of(prefix: str, how: str) -> None:
    """Have leaf2 tell of a subnet of the first tenant's, or no more."""
    number = as_number(leaf_spine(2, 1, 2).node("leaf2"))
    commands = f"router bgp {number} vrf tenant1", "address-family ipv4 unicast", f"{how} {prefix}"
    words = [word for each in ("configure terminal", *commands) for word in ("-c", each)]
    assert closlab("enter", "leaf2", "--control", "vtysh", *words).returncode == 0


def without_route(lab: Prompt, switch: str) -> int:
    """Packets that ended at a switch for want of one."""
    found = re.search(rf"{switch} dropped (\S+): no_route", lab.ask(f"counters {switch}")[0])
    return int(found[1].replace(",", "")) if found else 0


@pytest.mark.mininet
@pytest.mark.slow
def test_evpn_tells_of_tenants_hosts_and_takes_it_back(tmp_path: Path) -> None:
    """Types 2 and 3 become MACs, floods and routes, for tenants with the same addresses."""
    host = ("02:00:0a:00:02:01", "dev", "leaf2-eth1", "master")
    with tenants(tmp_path, "tenant") as (lab, known):
        assert known("tenant_macs") == known("floods") == known("tenant_routes") == 2
        (output,) = lab.ask("vtysh leaf1 show bgp l2vpn evpn")
        assert {
            "[2]:[0]:[48]:[02:00:0a:00:02:01]",
            "[2]:[0]:[48]:[02:00:0a:00:02:01]:[32]:[172.16.0.2]",
            "[3]:[0]:[32]:[10.255.16.2]",
        } <= set(output.split())
        assert "0% dropped (4/4 received)" in lab.ask("pingall")[0]
        for one in ("h1", "h2"):  # both ask for the same address
            assert "2 received" in lab.ask(f"{one} ping -c 2 -W 5 172.16.0.2")[0]
        at_leaf2(1, "bridge", "fdb", "del", *host)
        eventually(lambda: known("tenant_macs") == known("tenant_routes") == 1)
        at_leaf2(2, "ip", "link", "set", "bridged-vx", "down")
        eventually(lambda: known("tenant_macs") == 0 and known("floods") == 1)
        at_leaf2(2, "ip", "link", "set", "bridged-vx", "up")
        at_leaf2(1, "bridge", "fdb", "replace", *host, "static")
        eventually(lambda: known("tenant_macs") == known("floods") == 2)


@pytest.mark.mininet
@pytest.mark.slow
def test_evpn_tells_of_tenants_subnets_and_takes_it_back(tmp_path: Path) -> None:
    """Type 5."""
    with tenants(tmp_path, "leaf") as (lab, known):
        assert known("tenant_routes") == 2
        (output,) = lab.ask("vtysh leaf1 show bgp l2vpn evpn")
        assert output.split().count("[5]:[0]:[24]:[10.0.2.0]") == 2
        for one in ("h1", "h2"):
            assert "2 received" in lab.ask(f"{one} ping -c 2 -W 5 10.0.2.1")[0]
        at_leaf2(1, "ip", "link", "set", "routed-vx", "down")
        eventually(lambda: known("tenant_routes") == 1)
        at_leaf2(1, "ip", "link", "set", "routed-vx", "up")
        eventually(lambda: known("tenant_routes") == 2)
        tell_of(FAR, "network")  # of which no controller of ours knows
        eventually(lambda: known("tenant_routes") == 3)
        assert f"dst_addr {FAR}" in lab.ask("tables leaf1 tenant_routes")[0]
        for one, ends_at in (("h1", "leaf2"), ("h2", "leaf1")):  # one tenant's, and not the other's
            before = without_route(lab, ends_at)
            lab.ask(f"{one} ping -c 3 -i 0.2 -W 1 172.31.9.1")
            assert without_route(lab, ends_at) == before + 3
        tell_of(FAR, "no network")
        eventually(lambda: known("tenant_routes") == 2)


def test_what_is_missing_is_told_in_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tools, "FRR", Path("/nowhere"))
    with pytest.raises(MissingTool) as caught:
        tools.require_frr()
    assert "FRR is not installed here" in caught.value.message
    assert "apt-get install --no-install-recommends frr" in str(caught.value.cure)


def test_no_fault_for_bgp_without_it() -> None:
    fault = "faults=[{at_ns: 1us, action: restart-bgp, switch: leaf1}]"
    done = closlab("run", "hello", "--engine", "sim", "--set", fault)
    assert done.returncode == 1
    assert "restart-bgp is for control.kind=bgp" in done.stderr


@pytest.mark.parametrize("fabric", [FABRIC, fat_tree(4), leaf_spine(2, 2, 2, 2)])
def test_every_cable_has_a_session_at_both_ends(fabric: Fabric) -> None:
    sessions = {
        name
        for switch in fabric.switches
        for name in re.findall(
            r"neighbor (\S+) interface", configurations(fabric, switch, 300)["bgpd.conf"]
        )
    }
    assert sessions == {
        end.interface(port)
        for link in fabric.links
        if link.joins_switches
        for end, port in ((link.a, link.a_port), (link.b, link.b_port))
    }


@pytest.mark.parametrize("fabric", [FABRIC, fat_tree(4), leaf_spine(2, 2, 2, 2)])
def test_of_a_cables_ends_one_waits_for_the_other(fabric: Fabric) -> None:
    """At first: to a daemon that starts again nobody connects."""

    def waiting(*, is_first: bool) -> set[str]:
        configs = (configurations(fabric, s, 300, is_first=is_first) for s in fabric.switches)
        found = (re.findall(r"neighbor (\S+) passive", files["bgpd.conf"]) for files in configs)
        return {name for names in found for name in names}

    first = waiting(is_first=True)
    for link in fabric.links:
        ends = {link.a.interface(link.a_port), link.b.interface(link.b_port)}
        assert len(first & ends) == (1 if link.joins_switches else 0)
    assert waiting(is_first=False) == set()


def test_neighbours_keep_routes_no_longer_than_their_own_switch() -> None:
    config = configurations(FABRIC, FABRIC.node("spine1"), 300)["bgpd.conf"]
    assert f" bgp graceful-restart restart-time {STALE_S:.0f}\n" in config


def test_what_became_of_routes_is_said_in_sentences() -> None:
    """As a report has it, and the terminal."""
    faults = (
        Rerouting(at_ns=5, what="down", first_s=0.1, last_s=0.25, switches=5, entries=9),
        Rerouting(at_ns=9, what="up"),
    )
    assert list(Control(kind="bgp", routed_s=3.214, routes=28, faults=faults).sentences()) == [
        "BGP had found all 28 routes after 3.21 s of this machine's time",
        "down: 5 switches went another way, the last after 0.25 s",
        "up: no route changed",
    ]


@pytest.mark.parametrize(("worst", "code"), [(6.0, 0), (6.5, 1)])
def test_what_is_promised_is_promised_of_the_worst(
    worst: float, code: int, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    figures = iter([3.25, worst, 4.0])
    monkeypatch.setattr(bench.Case, "run", lambda _case, _out: (next(figures), True))
    for tool in ("require_compiler", "require_emulation", "require_frr"):
        monkeypatch.setattr(tools, tool, lambda: None)
    assert bench.main(["routed", "--runs", "3"]) == code
    assert f"3.25 to {worst:g} s, median 4 (at most 6 s); 3 of 3" in capsys.readouterr().out
