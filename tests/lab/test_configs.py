"""`closlab check` and `closlab import` of configurations: found, proved, cured, brought.

A day's run draws 100 fabrics; `python -m tests.lab.any_configs --count N` draws as many as asked
for, each with every fault.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Any

import pytest
import yaml

from lab.configs.basis import Options
from lab.configs.brought import import_fabric
from lab.configs.fabric import has_configurations, read_fabric
from lab.configs.findings import Level, grounded, replace
from lab.configs.proofs import prove
from lab.configs.routes import circles
from lab.configs.rules import check
from lab.configs.scenarios import check_scenario
from lab.errors import LabError, ScenarioError
from lab.scenario import catalogue
from tests.lab.any_configs import complaint
from tests.lab.any_damage import mutate
from tests.lab.any_fault import Tally, applied, look
from tests.lab.config_folders import FAULTS, faulty, sound
from tests.lab.conftest import closlab
from tests.lab.simulated import simulate

# Of these no run of the lab can show anything.
_ADVICE = {
    "unsaved", "mtu", "length", "neighbour", "alpha", "notifications", "trim", "trim queue",
    "trim untold", "dangling", "late watch", "fec", "down", "no bgp", "mtu path",
    "untold", "partial",
}  # fmt: skip


@pytest.mark.by_day(14)
@pytest.mark.parametrize("seed", range(100))
def test_a_sound_fabric_is_sound_and_a_fault_is_found_alone(seed: int, tmp_path: Path) -> None:
    assert complaint(seed, None, tmp_path) == ""
    fault = list(FAULTS)[seed % len(FAULTS)]
    assert complaint(seed, fault, tmp_path) == "", fault


@pytest.mark.by_day(8)
@pytest.mark.parametrize("fault", FAULTS)
def test_what_a_run_can_show_is_shown_and_gone_when_cured(fault: str, tmp_path: Path) -> None:
    drawn, rule, _ = faulty(7, fault)
    ((found, proof),) = prove(check(read_fabric(drawn.write(tmp_path)), Options()))
    assert found.rule == rule
    assert proof.is_shown == (fault not in _ADVICE), proof
    assert found.level is (Level.ADVICE if fault in _ADVICE else Level.FAULT)


def test_a_folder_is_checked_proved_and_cured(tmp_path: Path) -> None:
    drawn, _, (switch, _, key) = faulty(4, "headroom")
    folder = drawn.write(tmp_path / "bad")
    done = closlab(
        "check", str(folder), "--prove", "--cure", str(tmp_path / "cured"), "--out",
        str(tmp_path / "proofs"), "--json",
    )  # fmt: skip
    assert done.returncode == 1, done.stderr
    (found,) = json.loads(done.stdout)["findings"]
    assert (found["rule"], found["switch"], found["key"]) == ("headroom-small", switch, key)
    assert found["proof"]["before"]["lost"] > 0 == found["proof"]["after"]["lost"]
    before, after = sorted((tmp_path / "proofs").iterdir(), reverse=True)
    for file, lost in ((before, True), (after, False)):
        run = simulate(str(file), out=tmp_path / file.stem)
        assert (run.result.drops.total > 0) is lost
    done = closlab("check", str(tmp_path / "cured"))
    assert (done.returncode, "0 findings, 0 of advice" in done.stdout) == (0, True)
    done = closlab("check", str(folder))
    assert done.returncode == 1
    assert f"finding: headroom-small: {switch} BUFFER_PROFILE|{key}" in done.stdout


def test_a_chips_cells_and_a_slow_neighbour_take_more_headroom(tmp_path: Path) -> None:
    folder = sound(3).write(tmp_path)
    assert closlab("check", str(folder)).returncode == 0
    for extra in (("--profile", "tomahawk4-like"), ("--response", "1000000")):
        done = closlab("check", str(folder), *extra)
        assert (done.returncode, "headroom-small" in done.stdout) == (1, True), extra


@pytest.mark.parametrize(
    ("scenario", "changes", "rules"),
    [
        ("incast", (), []),
        ("deadlock", (), ["deadlock", "deadlock"]),
        ("dragonfly", (), ["deadlock"]),
        ("incast", ("pfc.headroom=12KB",), ["headroom-small"]),
        ("incast", ("pfc.headroom=12KB", "pfc.enabled=false"), []),
        ("incast", ("pfc.watchdog_ns=0",), ["watchdog-missing"]),
        ("incast", ("transport.cc=dcqcn", "ecn.enabled=false"), ["ecn-missing"]),
        ("incast", ("transport.cc=dcqcn", "ecn={kmin: 3MB, kmax: 4MB}"), ["ecn-late"]),
    ],
)
def test_a_scenario_is_asked_the_same(
    scenario: str, changes: tuple[str, ...], rules: list[str]
) -> None:
    pairs = prove(check_scenario(catalogue.load(scenario, changes)))
    assert [found.rule for found, _ in pairs] == rules
    assert all(proof.is_shown for _, proof in pairs)


def test_what_is_for_folders_is_refused_of_scenarios() -> None:
    done = closlab("check", "incast")
    assert (done.returncode, done.stdout) == (0, "0 findings, 0 of advice\n")
    done = closlab("check", "incast", "--hosts", "gpu*")
    assert (done.returncode, "--hosts is for a folder" in done.stderr) == (1, True)
    done = closlab("check", "no-such")
    assert (done.returncode, "Traceback" in done.stderr) == (1, False)


@pytest.mark.by_day(6)
@pytest.mark.parametrize("seed", range(0, 53, 4))
def test_any_fabric_with_one_fault_is_told_that_alone(seed: int, tmp_path: Path) -> None:
    """`python -m tests.lab.any_fault` has as many as one likes, of every kind, with runs."""
    tally = Tally()
    assert look(seed, tmp_path, tally, with_runs=False) == []
    assert tally.is_well


# --- brought --------------------------------------------------------------------------------------


def test_a_fabric_is_brought_and_runs(tmp_path: Path) -> None:
    drawn = sound(3)
    drawn.switches["agg0"]["PFC_WD"]["Ethernet0"]["detection_time"] = "400"
    folder = drawn.write(tmp_path / "prod")
    done = closlab("import", str(folder), "-o", str(tmp_path / "lab"))
    assert done.returncode == 0, done.stderr
    scenario = yaml.safe_load((tmp_path / "lab" / "scenario.yaml").read_text())
    profiles = [name for one in drawn.switches.values() for name in one["BUFFER_PROFILE"]]
    assert scenario["pfc"]["priorities"] == [3, 4]
    assert scenario["pfc"]["watchdog_ns"] == 200_000_000
    assert scenario["buffer"]["alpha"] == 0.5
    assert scenario["ecn"] == {"enabled": True, "kmin": 100_000, "kmax": 400_000, "pmax": 0.05}
    assert scenario["schedule"]["weights"][3] == 15
    assert {26, 48} & scenario["classes"]["dscp"].keys() == set()  # as they are in the lab
    assert scenario["classes"]["dscp"][46] == 5
    report = json.loads((tmp_path / "lab" / "report.json").read_text())
    assert {"key": "pfc.watchdog_ns", "value": 400_000_000, "taken": 200_000_000,
            "where": ["agg0 Ethernet0"]} in report["differs"]  # fmt: skip
    assert report["switches"]["tor0"]["not_understood"] == [
        "LOOPBACK_INTERFACE: not read (1)", "NTP_SERVER: not read (1)",
    ]  # fmt: skip
    assert any("cells" in line for line in report["not_told"])
    run = simulate(str(tmp_path / "lab" / "scenario.yaml"), out=tmp_path / "run")
    assert run.result.flows.completed == run.result.flows.count == len(run.experiment.fabric.hosts)
    assert run.result.drops.total == 0
    rates = {int(name.split("_")[2]) for name in profiles if name.startswith("pg_lossless")}
    cables = {link.speed.rate_bps for link in run.experiment.fabric.links}
    assert cables == {rate * 10**6 for rate in rates}


@pytest.mark.parametrize("seed", range(8))
def test_any_fabric_is_brought_and_can_be_built(seed: int, tmp_path: Path) -> None:
    report = import_fabric(read_fabric(sound(seed).write(tmp_path / "in")), tmp_path / "out")
    assert not [line for line in report.not_said if "refuses" in line]
    catalogue.load(str(tmp_path / "out" / "scenario.yaml"))


def test_what_is_not_told_is_asked_for(tmp_path: Path) -> None:
    drawn = sound(1)
    for content in drawn.switches.values():
        del content["DEVICE_NEIGHBOR_METADATA"]
    fabric = read_fabric(drawn.write(tmp_path / "in"))
    assert "nothing says what it is" in fabric.left_out[0]
    with pytest.raises(ScenarioError, match="no neighbour of a switch is known to be a host"):
        import_fabric(fabric, tmp_path / "out")
    fabric = read_fabric(tmp_path / "in", "gpu*")
    import_fabric(fabric, tmp_path / "out")
    for content in drawn.switches.values():
        for pool in content["BUFFER_POOL"].values():
            pool.pop("size")
    fabric = read_fabric(drawn.write(tmp_path / "sizeless"), "gpu*")
    with pytest.raises(ScenarioError, match="no switch tells the size") as error:
        import_fabric(fabric, tmp_path / "other")
    assert "--profile: tomahawk-like, tomahawk4-like" in str(error.value.cure)
    import_fabric(fabric, tmp_path / "other", "tomahawk4-like")
    made = catalogue.load(str(tmp_path / "other" / "scenario.yaml"))
    assert made.buffer.cell == 254


def test_lldp_tells_cables_where_nobody_else_does(tmp_path: Path) -> None:
    drawn = sound(2)
    neighbours = drawn.switches["tor0"].pop("DEVICE_NEIGHBOR")
    rows = "\n".join(
        f"{port:<12} {one['name']:<14} et{port[8:]:<12} BR   {one['port']}"
        for port, one in neighbours.items()
    )
    text = f"""Capability codes: (R) Router, (B) Bridge, (O) Other
LocalPort    RemoteDevice    RemotePortID       Capability    RemotePortDescr
-----------  --------------  -----------------  ------------  -----------------
{rows}
eth0         oob             0c:69:cf:50:00:00  BR            eth0
--------------------------------------------------
Total entries displayed:  {len(neighbours)}
"""
    folder = drawn.write(tmp_path)
    (folder / "tor0.lldp").write_text(text)
    fabric = read_fabric(folder)
    assert len(fabric.cables) == len(drawn.cables)
    assert check(fabric, Options()) == []


def test_what_says_next_to_nothing_is_not_called_sound(tmp_path: Path) -> None:
    drawn = sound(2)
    for content in drawn.switches.values():
        content["PORT_QOS_MAP"] = {}
    found = check(read_fabric(drawn.write(tmp_path)), Options())
    assert [each.rule for each in found] == ["pfc-nowhere"]
    for port in drawn.switches["tor0"]["PORT"].values():
        del port["speed"]
    with pytest.raises(ScenarioError, match=r"tor0.json: no port in PORT has a speed"):
        read_fabric(drawn.write(tmp_path))


def test_neighbours_may_be_listed_by_their_names(tmp_path: Path) -> None:
    """As the first releases of SONiC and its YANG model have it."""
    drawn = sound(2)
    for content in drawn.switches.values():
        content["DEVICE_NEIGHBOR"] = {
            f"{one['name']}": {"local_port": port, "port": one["port"]}
            for port, one in content["DEVICE_NEIGHBOR"].items()
        }
    fabric = read_fabric(drawn.write(tmp_path))
    assert len(fabric.cables) == len(drawn.cables)
    assert check(fabric, Options()) == []


# --- deadlocks ------------------------------------------------------------------------------------


def test_a_ring_closes_a_circle_and_a_tree_none() -> None:
    ring = {str(at): (str((at - 1) % 5), str((at + 1) % 5)) for at in range(5)}
    assert sorted(map(sorted, circles(ring, sorted(ring), {}))) == [sorted(ring)] * 2
    clos = {"a": "xy", "b": "xy", "c": "xy", "x": "abc", "y": "abc"}
    assert circles(clos, "abc", {}) == []
    cut = {"a": "x", "b": "xy", "c": "y", "d": "xy", "x": "abd", "y": "bcd"}
    assert circles(cut, "abcd", {}) != []  # round two dead cables, down and up again
    assert circles(cut, "abcd", {"x": 1, "y": 1}) == []  # which BGP does not go in one AS


def test_a_large_fabric_is_checked_in_a_moment(tmp_path: Path) -> None:
    """64 switches, 768 cables between them and 768 to hosts."""
    folder = sound(1, (48, 16, 16)).write(tmp_path)
    begun = time.process_time()
    fabric = read_fabric(folder)
    assert (len(fabric.cables), len(fabric.hosts)) == (768, 768)
    assert check(fabric, Options()) == []
    assert time.process_time() - begun < 10


# --- what is not as it should be ------------------------------------------------------------------


def _put(*path: str) -> Callable[[dict[str, Any], Any], None]:
    def put(content: dict[str, Any], value: Any) -> None:
        for part in path[:-1]:
            content = content.setdefault(part, {})
        content[path[-1]] = value

    return put


_WRONG = {
    "top": ("PORT", 3), "entry": ("PORT|Ethernet0", "up"),
    "speed": ("PORT|Ethernet0|speed", "fast"),
    "huge": ("PORT|Ethernet0|speed", "9" * 4000), "big": ("PORT|Ethernet0|speed", 10**400),
    "minus": ("PORT|Ethernet0|mtu", "-5"), "truth": ("PORT|Ethernet0|mtu", True),
    "float": ("PORT|Ethernet0|mtu", 1e308), "list": ("PORT|Ethernet0|speed", [100]),
    "no port": ("PORT", {}), "strange": ("PORT", {"../../x": {"speed": "100000"}}),
    "escape": ("PORT", {"\x1b[2J": {"speed": "1"}}),
    "host": ("DEVICE_METADATA|localhost|hostname", "a\nb: c"),
    "path": ("DEVICE_METADATA|localhost|hostname", "../../../etc/passwd"),
    "nobody": ("DEVICE_METADATA", {}), "asn": ("DEVICE_METADATA|localhost|bgp_asn", "x"),
    "far": ("CABLE_LENGTH|AZURE|Ethernet0", "40km"),
    "farther": ("CABLE_LENGTH|AZURE|Ethernet0", "9999999m"),
    "null": ("CABLE_LENGTH|AZURE", None), "number": ("CABLE_LENGTH|AZURE|Ethernet0", 40),
    "classes": ("PORT_QOS_MAP|Ethernet0|pfc_enable", "3-4"),
    "nine": ("PORT_QOS_MAP|Ethernet0|pfc_enable", "9"),
    "map": ("DSCP_TO_TC_MAP|AZURE|64", "3"), "tc": ("DSCP_TO_TC_MAP|AZURE|26", "16"),
    "letters": ("TC_TO_QUEUE_MAP|AZURE|x", "1"), "digit": ("TC_TO_QUEUE_MAP|AZURE|\u00b2", "1"),
    "xoff": ("BUFFER_PROFILE|ingress_lossy_profile|xoff", str(2**40)),
    "th": ("BUFFER_PROFILE|ingress_lossy_profile|dynamic_th", "many"),
    "group": ("BUFFER_PG", {"Ethernet0|8": {"profile": "x"}}),
    "range": ("BUFFER_PG", {"Ethernet0|4-3": {"profile": "x"}}),
    "reference": ("BUFFER_PG|Ethernet0|3", {"profile": {"a": 1}}),
    "percent": ("WRED_PROFILE|AZURE_LOSSLESS|green_drop_probability", "101"),
    "curve": ("WRED_PROFILE|AZURE_LOSSLESS|green_min_threshold", "4000000000"),
    "weight": ("SCHEDULER|scheduler.0|weight", "0"),
    "poll": ("PFC_WD|GLOBAL|POLL_INTERVAL", "0"),
    "neighbour": ("DEVICE_NEIGHBOR|Ethernet0|name", "$(reboot)"),
    "queue": ("QUEUE", {"Ethernet0": {}}),
}  # fmt: skip


@pytest.mark.parametrize("what", _WRONG)
def test_what_is_malformed_is_told_with_its_place(what: str, tmp_path: Path) -> None:
    drawn = sound(5)
    place, value = _WRONG[what]
    path = place.split("|")
    if what == "reference":
        path = ["BUFFER_PG", "Ethernet0|3"]
    _put(*path)(drawn.switches["tor0"], value)
    folder = drawn.write(tmp_path / "in")
    try:
        fabric = read_fabric(folder)
    except LabError as error:
        assert "tor0.json" in error.message
        assert error.cure
        assert "\n" not in error.message
        assert error.message.isprintable()
        assert len(error.message) < 600
    else:
        pytest.fail(f"it was read: {fabric.left_out}")


@pytest.mark.by_day(3)
@pytest.mark.parametrize(
    "text", ["", "{", "[]", "null", '"x"', "{" * 100_000, '{"PORT": {"Ethernet0": ', "\x00", "NaN"]
)
def test_what_is_no_configuration_is_refused(text: str, tmp_path: Path) -> None:
    folder = sound(5).write(tmp_path / "in")
    (folder / "tor1.json").write_text(text)
    for words in (("check", str(folder)), ("import", str(folder), "-o", str(tmp_path / "out"))):
        done = closlab(*words)
        assert done.returncode == 1
        assert "Traceback" not in done.stderr
        assert "tor1.json" in done.stderr
    assert not (tmp_path / "out").exists()


@pytest.mark.by_day(20)
@pytest.mark.parametrize("seed", range(150))
def test_damage_ends_in_a_message_or_in_findings(seed: int, tmp_path: Path) -> None:
    rng, drawn = Random(seed), sound(seed)
    for _ in range(rng.randint(1, 3)):
        mutate(rng, drawn.switches[drawn.a_switch()])
    folder = drawn.write(tmp_path / "in")
    try:
        fabric = read_fabric(folder)
        found = check(fabric, Options())
        prove(found[:1] if seed % 10 == 0 else [])
        import_fabric(fabric, tmp_path / "out")
    except LabError as error:
        assert error.message.isprintable()
        assert len(error.message) < 1000


def test_strangers_entries_are_told_and_left_out(tmp_path: Path) -> None:
    drawn = sound(5)
    one = drawn.switches["tor0"]
    one["BUFFER_PG"]["Ethernet999|3-4"] = {"profile": "gone"}
    one["BUFFER_PG"]["Ethernet0|7"] = {"profile": "gone"}
    one["PORT_QOS_MAP"]["\x1b[2J"] = {"pfc_enable": "3"}
    one["VENDOR_TABLE"] = {"a": 1}
    one["\x1b[2J"] = {}
    one["BUFFER_PROFILE"]["\x1b]0;x\x07"] = {"dynamic_th": "99", "pool": "egress_lossy_pool"}
    fabric = read_fabric(drawn.write(tmp_path))
    unread = fabric.switches["tor0"].unread
    assert "BUFFER_PG|Ethernet999|3-4: there is no port Ethernet999" in unread
    assert "BUFFER_PG|Ethernet0|7: there is no BUFFER_PROFILE 'gone'" in unread
    assert "VENDOR_TABLE: not read (1)" in unread
    assert all(line.isprintable() for line in unread)
    rules = {found.rule for found in check(fabric, Options())}
    assert rules == {"alpha-range", "reference-missing"}
    for words in (("check", str(tmp_path)), ("import", str(tmp_path), "-o", str(tmp_path / "o"))):
        done = closlab(*words)
        assert done.returncode == 0, done.stderr
        assert "\x1b" not in done.stdout
    assert "\x1b" not in (tmp_path / "o" / "report.txt").read_text()


def test_two_files_of_one_switch_and_folders_without_any(tmp_path: Path) -> None:
    folder = sound(5).write(tmp_path / "in")
    (folder / "again.json").write_text((folder / "tor0.json").read_text())
    with pytest.raises(ScenarioError, match="tor0 is there already"):
        read_fabric(folder)
    (tmp_path / "empty").mkdir()
    for there in (tmp_path / "empty", tmp_path / "none", folder / "tor0.json"):
        assert not has_configurations(there)
        done = closlab("check", str(there))
        assert done.returncode == 1
        if there.suffix != ".json":
            assert "configuration in it" in done.stderr or "no scenario" in done.stderr
        assert "Traceback" not in done.stderr
    done = closlab("import", str(folder), "--bytes", "1MB")
    assert (done.returncode, "--bytes is for workloads" in done.stderr) == (1, True)


def test_a_patch_changes_what_it_names_and_nothing_else() -> None:
    before = {
        "A": {"k|1": {"x": "1"}, "a/b~c": {"y": "2"}},
        "Q": {"e1,e2|3-4": {"s": "1", "w": "2"}}, "M": {"e1,e2": {"p": "3"}},
    }  # fmt: skip
    ops = [replace("A", "a/b~c", "y", 3), replace("B", "k", "z", "4"),
           replace("Q", "e2|4", "s", 9), replace("M", "e2", "p", "")]  # fmt: skip
    patch, after = grounded(before, ops)
    assert after == {
        "A": {"k|1": {"x": "1"}, "a/b~c": {"y": "3"}}, "B": {"k": {"z": "4"}},
        "Q": {"e1,e2|3-4": {"s": "1", "w": "2"}, "e2|4": {"s": "9", "w": "2"}},
        "M": {"e1,e2": {"p": "3"}, "e2": {"p": ""}},
    }  # fmt: skip
    assert before["A"]["a/b~c"] == {"y": "2"}
    assert [op["path"] for op in patch] == ["/A/a~1b~0c/y", "/B", "/Q/e2|4", "/M/e2"]
    assert applied(before, patch) == after  # as RFC 6902 has it
