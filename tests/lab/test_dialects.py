"""Configurations of EOS, NVUE and FRR, and adapters' settings: read, checked beside SONiC's, cured.

`python -m tests.lab.any_dialect --count N` draws as many as asked for, with runs if wanted.
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import yaml

from lab.configs.adapters import read_adapter
from lab.configs.basis import Options
from lab.configs.config_db import Switch
from lab.configs.eos import read_eos
from lab.configs.fabric import read_fabric
from lab.configs.frr import read_frr
from lab.configs.nvue import read_nvue
from lab.configs.output import lines
from lab.configs.rules import check
from lab.errors import LabError, ScenarioError
from tests.lab.any_dialect import FAULTS, complaint
from tests.lab.config_folders import sound
from tests.lab.conftest import closlab
from tests.lab.dialects import adapter, mixed


@pytest.mark.parametrize("seed", range(6))
def test_a_sound_fabric_of_three_systems_is_sound(seed: int, tmp_path: Path) -> None:
    assert complaint(seed, None, tmp_path) == ""


@pytest.mark.parametrize("fault", FAULTS)
def test_a_fault_in_a_text_is_found_at_its_file(fault: str, tmp_path: Path) -> None:
    assert complaint(3, fault, tmp_path) == ""


@pytest.mark.parametrize("fault", ["adapter pfc", "adapter deaf"])
def test_what_adapters_have_wrong_is_shown_by_a_run(fault: str, tmp_path: Path) -> None:
    assert complaint(1, fault, tmp_path, with_runs=True) == ""


def test_a_mixed_folder_is_checked_and_brought(tmp_path: Path) -> None:
    folder = mixed(sound(3), tmp_path / "prod")
    (folder / "gpu0-0.mlnx_qos").write_text(adapter(pfc=())["mlnx_qos"])
    text = (folder / "tor0.eos").read_text()
    (folder / "tor0.eos").write_text(text.replace("dscp 48 to traffic-class 6", "dscp 48 to "
                                                  "traffic-class 3"))  # fmt: skip
    done = closlab("check", str(folder), "--json", "--sarif", str(tmp_path / "s.sarif"))
    assert done.returncode == 1, done.stderr
    output = json.loads(done.stdout)
    places = {(one["rule"], one["switch"]) for one in output["findings"]}
    assert {("adapter-pfc", "gpu0-0"), ("dscp-map", "tor0")} <= places
    assert output["commands"] == {"tor0": ["qos map dscp 48 to traffic-class 6"]}
    assert any("tor0.eos:3: not read: ntp server" in line for line in output["left_out"])
    at = {
        (one["ruleId"], Path(place["artifactLocation"]["uri"]).name, place["region"]["startLine"])
        for one in json.loads((tmp_path / "s.sarif").read_text())["runs"][0]["results"]
        for place in (one["locations"][0]["physicalLocation"],)
    }
    texts = (folder / "tor0.eos").read_text().splitlines()
    line = next(n for n, one in enumerate(texts, 1) if "dscp 48 to" in one)
    assert ("dscp-map", "tor0.eos", line) in at
    rows = (folder / "gpu0-0.mlnx_qos").read_text().splitlines()
    row = next(n for n, one in enumerate(rows, 1) if "enabled" in one)
    assert ("adapter-pfc", "gpu0-0.mlnx_qos", row) in at
    fabric = read_fabric(folder)
    shown = "\n".join(lines(fabric, [(one, None) for one in check(fabric, Options())], None))
    assert f"adapter-pfc: gpu0-0 pfc|eth0 (gpu0-0.mlnx_qos:{row})" in shown
    done = closlab("import", str(folder), "-o", str(tmp_path / "lab"))
    assert done.returncode == 0, done.stderr
    made = yaml.safe_load((tmp_path / "lab" / "scenario.yaml").read_text())
    assert (made["transport"]["cc"], made["pfc"]["priorities"]) == ("dcqcn", [3, 4])
    report = json.loads((tmp_path / "lab" / "report.json").read_text())
    assert {"tor0", "tor1", "tor2"} <= report["switches"].keys()
    assert any("BGP with" in line for line in report["not_in_the_model"])


# --- each reader by itself ------------------------------------------------------------------------

_EOS = """hostname leaf2
qos map dscp 24 26 to traffic-class 3
qos map traffic-class 5 to tx-queue 4
qos profile roce
   qos trust dscp
   tx-queue 3
      random-detect ecn minimum-threshold 150 kbytes maximum-threshold 1 mbytes
   uc-tx-queue 4
      priority strict
      shape rate 10 percent
      random-detect ecn minimum-threshold 3 segments maximum-threshold 9 segments
   priority-flow-control on
   priority-flow-control priority 3 no-drop
   priority-flow-control priority 4 no-drop
interface Ethernet1/1
   speed 100g-4
   mtu 9000
   error-correction encoding reed-solomon
   ip address 10.0.0.1/31
   service-profile roce
   priority-flow-control priority 4 drop
   unheard of
interface Ethernet2
   service-profile missing
   shutdown
router bgp 65001
   neighbor 10.0.0.0 remote-as 65100
   neighbor 10.0.0.0 route-map X in
   aggregate-address 10.0.0.0/8
priority-flow-control pause watchdog default timeout 0.4
vlan 4
   name x
"""


def _eos(tmp_path: Path, text: str = _EOS) -> Switch:
    (tmp_path / "x.eos").write_text(text)
    return read_eos(tmp_path / "x.eos").switch()


def test_eos_is_read_and_what_is_not_understood_has_its_line(tmp_path: Path) -> None:
    switch = _eos(tmp_path)
    port, other = switch.ports["Ethernet1/1"], switch.ports["Ethernet2"]
    assert (switch.name, switch.asn, port.speed_mbps, port.mtu) == ("leaf2", 65001, 100_000, 9000)
    assert (port.pfc, port.watched, port.fec, port.alias) == ({3}, {3}, "rs", "Et1/1")
    assert (other.is_up, switch.speedless, other.pfc) == (False, {"Ethernet2"}, frozenset())
    assert switch.map_of(port, "dscp_to_tc_map") == {24: 3, 26: 3}
    assert (switch.map_of(port, "tc_to_queue_map") or {})[5] == 4
    wred = switch.wred[port.wred[3]]
    assert (wred.kmin, wred.kmax, wred.percent, wred.marks) == (150_000, 1_000_000, 100, True)
    assert (switch.turns[port.turns[4]].kind, switch.turns[port.turns[4]].is_shaped) == (
        "STRICT", True)  # fmt: skip
    assert switch.watches["Ethernet1/1"].detection_ms == 400
    assert [line.partition(".eos:")[2] for line in switch.unread if ".eos:" in line] == [
        "11: not understood, in 'qos profile roce': random-detect ecn minimum-threshold 3 segments"
        " maximum-threshold 9 segments",
        "22: not understood, in 'interface Ethernet1/1': unheard of",
        "29: not understood, in 'router bgp 65001': aggregate-address 10.0.0.0/8",
        "31: not read, with 1 lines in it: vlan 4",
        "24: there is no such qos profile: service-profile missing",
    ]


def test_nvue_is_the_same_by_yaml_and_by_commands(tmp_path: Path) -> None:
    (tmp_path / "a.yaml").write_text("""- header: {model: SN5600}
- set:
    system: {hostname: leaf3}
    interface:
      swp1-2:
        link: {speed: 400G, mtu: 9100}
        qos: {pfc-watchdog: {state: enable}}
      lo: {ip: {address: {10.0.0.9/32: {}}}}
    qos:
      roce: {enable: on}
      mapping: {default-global: {dscp: {'18': {switch-priority: 3}}}}
      oddity: {at: all}
""")
    (tmp_path / "b.nv").write_text("""cumulus@leaf3:~$ nv set system hostname leaf3
nv set interface swp1-2 link speed 400G
nv set interface swp1,swp2 link mtu 9100
nv set interface swp1-2 qos pfc-watchdog
nv set qos roce
nv set qos mapping default-global dscp 18 switch-priority 3
nv set qos oddity at all
nv config apply
""")
    by_yaml, typed = (read_nvue(tmp_path / name).switch() for name in ("a.yaml", "b.nv"))
    assert by_yaml.ports == typed.ports
    assert (by_yaml.maps, by_yaml.wred, by_yaml.turns) == (typed.maps, typed.wred, typed.turns)
    port = typed.ports["swp2"]
    assert (port.pfc, port.watched, port.speed_mbps) == ({3}, {3}, 400_000)
    classes = typed.map_of(port, "dscp_to_tc_map") or {}
    assert (classes[18], classes[26], classes[48], classes[16]) == (3, 3, 6, 2)
    wred = typed.wred[port.wred[3]]
    assert (wred.kmin, wred.kmax, wred.percent) == (150_000, 1_500_000, 100)
    assert typed.turns[port.turns[6]].kind == "STRICT"
    assert typed.watches["swp1"].detection_ms == 300
    assert [line.rpartition("/")[2] for line in (*by_yaml.unread, *typed.unread)] == [
        "a.yaml:12: not understood: qos oddity at all",
        "b.nv:7: not understood: qos oddity at all",
    ]


def test_a_buffer_that_nvue_tells_has_headroom(tmp_path: Path) -> None:
    (tmp_path / "a.nv").write_text("""nv set system hostname leaf
nv set interface swp1 link speed 100G
nv set interface swp1 qos pfc profile mine
nv set qos pfc mine switch-priority 3,5
nv set qos pfc mine port-buffer 90000
nv set qos pfc mine xoff-threshold 20000
nv set qos pfc mine cable-length 40
""")
    switch = read_nvue(tmp_path / "a.nv").switch()
    port = switch.ports["swp1"]
    name, profile = switch.headroom(port, 5) or ("", None)
    assert profile is not None
    assert (name, profile.xoff, profile.size, port.cable_m) == ("mine", 70_000, 20_000, 40)


def test_frr_tells_whom_bgp_is_spoken_with_and_addresses_who_is_cabled(tmp_path: Path) -> None:
    drawn = sound(2, (2, 1, 1))
    for name, tables in drawn.switches.items():
        peers = tables.pop("DEVICE_NEIGHBOR")
        tables["DEVICE_NEIGHBOR"] = {
            port: peer for port, peer in peers.items() if peer["name"].startswith("gpu")
        }
        del tables["BGP_NEIGHBOR"]
        lines = [f"hostname {name}", "router bgp 65009", " neighbor 10.0.0.77 bogus"]
        for at, (a, a_port, b, b_port) in enumerate(drawn.cables):
            for end, port, mine, its in ((a, a_port, 0, 1), (b, b_port, 1, 0)):
                if end == name:
                    lines[1:1] = [f"interface {port}", f" ip address 10.0.{at}.{mine}/31"]
                    lines.append(f" neighbor 10.0.{at}.{its} remote-as external")
        (tmp_path / f"{name}.frr").write_text("\n".join(lines))
    drawn.write(tmp_path)
    (tmp_path / "stray.frr").write_text("hostname nobody\n")
    fabric = read_fabric(tmp_path)
    assert len(fabric.cables) == len(drawn.cables)
    assert fabric.switches["agg0"].bgp == {"tor0", "tor1"}
    assert any("stray.frr: no other file tells of a switch nobody" in one
               for one in fabric.left_out)  # fmt: skip
    unread = fabric.switches["tor0"].unread
    assert any("neighbor 10.0.0.77 bogus" in line for line in unread)
    assert any("router bgp 65009" in line and "which is taken" in line for line in unread)
    rules = {one.rule for one in check(fabric, Options())}
    assert not rules & {"bgp-missing", "neighbour-missing", "unreachable"}


def test_frr_knows_its_tenants(tmp_path: Path) -> None:
    (tmp_path / "x.frr").write_text("""frr version 10.1
hostname leaf1
vrf red
 vni 4001
exit-vrf
interface swp1
 description up
exit
router bgp 65001
 neighbor swp1 interface remote-as external
 address-family ipv4 unicast
  network 10.1.0.0/24
 exit-address-family
 address-family l2vpn evpn
  neighbor swp1 activate
  advertise-all-vni
 exit-address-family
exit
router bgp 65001 vrf red
 address-family ipv4 unicast
  redistribute connected
exit
route-map X permit 10
 set metric 5
""")
    routing = read_frr(tmp_path / "x.frr")
    assert (routing.asn, routing.networks, routing.tenants) == (
        65001, ["10.1.0.0/24"], {"red": 4001})  # fmt: skip
    assert routing.is_evpn
    assert routing.said.tables["BGP_NEIGHBOR"].keys() == {"swp1"}
    assert [line.partition(".frr:")[2] for line in routing.said.unread] == [
        "23: not understood: route-map X permit 10",
        "24: not understood, in 'route-map X permit 10': set metric 5",
    ]
    assert any("red (4001)" in line for line in routing.lines())


def test_a_port_has_the_speed_of_the_other_end(tmp_path: Path) -> None:
    folder = mixed(sound(3), tmp_path)
    text = (folder / "tor0.eos").read_text()
    fabric = read_fabric(folder)
    want = {n: port.speed_mbps for n, port in fabric.switches["tor0"].ports.items()}
    (folder / "tor0.eos").write_text(
        "\n".join(line for line in text.splitlines() if "speed" not in line)
    )
    fabric = read_fabric(folder)
    switch = fabric.switches["tor0"]
    up = {end.port for cable in fabric.cables for end in (cable.a, cable.b)
          if end.switch == "tor0"}  # fmt: skip
    assert {n: port.speed_mbps for n, port in switch.ports.items()} == {n: want[n] for n in up}
    assert any("nobody tells its speed" in line for line in switch.unread)
    assert check(fabric, Options()) == []


def test_adapters_are_read_by_interface(tmp_path: Path) -> None:
    files = []
    for name in ("eth0", "eth1"):
        for kind, text in adapter(name=name, pfc=(3,) if name == "eth1" else (3, 4)).items():
            files.append(tmp_path / f"gpu.{name}.{kind}")
            files[-1].write_text(text)
    (tmp_path / "odd").write_text("half a line\n/sys/class/net/eth1/ecn/roce_rp/enable/3:0\n")
    found = read_adapter("gpu", [*files, tmp_path / "odd"])
    assert (found.tos, found.dscp) == (106, 26)
    assert {name: nic.pfc for name, nic in found.nics.items()} == {"eth0": {3, 4}, "eth1": {3}}
    assert found.nics["eth0"].priorities[26] == 3
    assert (found.nics["eth0"].heeds[3], found.nics["eth1"].heeds[3]) == (True, False)
    assert any("odd:1: not understood: half a line" in line for line in found.unread)


@pytest.mark.parametrize(
    ("name", "text", "said"),
    [
        ("a.eos", "interface Ethernet1\n", "does not name its switch"),
        ("a.eos", "hostname a\nqos map dscp 64 to traffic-class 3\n", "a.eos:2: 'qos map dscp 64"),
        ("a.eos", "hostname a\n", "there is no table PORT"),
        ("a.yaml", "- set:\n    system: {hostname: [a, *b]}\n", "a.yaml:2: it is no YAML"),
        ("a.nv", "nv set qos pfc x switch-priority 9\n", "a.nv:1: 'qos pfc x switch-priority 9'"),
        ("a.nv", "nv set interface swp1 link speed 100G\n", "does not name its switch"),
    ],
)
def test_what_cannot_be_meant_is_one_message(
    name: str, text: str, said: str, tmp_path: Path
) -> None:
    (tmp_path / name).write_text(text)
    with pytest.raises(ScenarioError) as error:
        read_fabric(tmp_path)
    assert said in str(error.value)


def test_a_tos_of_no_byte_is_refused(tmp_path: Path) -> None:
    folder = mixed(sound(3), tmp_path)
    (folder / "gpu0-0.cma_roce_tos").write_text("300\n")
    with pytest.raises(LabError, match=r"gpu0-0\.cma_roce_tos:1: '300'"):
        read_fabric(folder)
