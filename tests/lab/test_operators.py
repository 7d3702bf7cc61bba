"""What operators' collectors make of a run: each switch as a gNMI target, Prometheus, its alerts.

Every number is held against what the run itself counted.
"""

import json
import re
import shutil
import subprocess
import time
from collections import Counter
from collections.abc import Generator, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import cache
from pathlib import Path
from urllib.request import urlopen

import grpc
import pytest
import yaml
from finsy.proto import gnmi as pb

from lab.results.outcome import PortCounts
from lab.results.watch import longest_queues
from tests.lab.operators import Recorder, recorded
from tests.lab.test_collectors import Client, values
from tests.waiting import LONG_S
from views.live import gnmi, server
from views.live.targets import switch_leaves, targets

RULES = server.PROMETHEUS / "closlab-rules.yaml"
DASHBOARD = server.PROMETHEUS / "closlab-dashboard.json"
needs_promtool = pytest.mark.skipif(
    shutil.which("promtool") is None, reason="promtool is not installed (Debian: prometheus)"
)
SOUND = "hello"
# By alert: a run that has its fault.
FAULTS: dict[str, tuple[str, ...]] = {
    "CableCut": ("link-failure", "traffic.bytes=2MB"),
    "PacketsDropped": ("pfc-storm",),
    "PfcWatchdog": ("pfc-storm",),
    "LinkStandsStill": ("pfc-storm",),
    "PausesSpread": ("pfc-storm",),
    "QueueLong": ("incast", "ecn.enabled=false"),
    "RunStuck": ("deadlock", "pfc.watchdog_ns=0", "limit_ns=1ms"),
}


@cache
def run(*values: str) -> Recorder:
    """A scenario and its changes, simulated once."""
    return recorded(*values)


# --- gNMI ----------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def storm() -> Iterator[tuple[Recorder, int]]:
    """A run with pauses, marks, drops and a watchdog, as it was at its end, and gNMI's port."""
    found = run("pfc-storm")
    with gnmi.serving(found.hub, 0) as port:
        yield found, port


def by_the_books(name: str, counts: PortCounts) -> dict[str, int]:
    """What is to be told of a port, by the end of its path: from the run's counters."""
    state = f"interfaces/interface[name={name}]/state/counters"
    sonic = f"COUNTERS/{name}"
    wanted = {
        f"{state}/in-octets": counts.received.bytes,
        f"{state}/out-octets": counts.sent.bytes,
        f"{state}/in-pkts": counts.received.packets,
        f"{state}/out-pkts": counts.sent.packets,
        f"{state}/in-discards": sum(counts.discarded_in.values()),
        f"{state}/out-discards": sum(counts.discarded_out.values()),
        f"{sonic}/SAI_PORT_STAT_IF_IN_OCTETS": counts.received.bytes,
        f"{sonic}/SAI_PORT_STAT_IF_OUT_UCAST_PKTS": counts.sent.packets,
        f"{sonic}/SAI_PORT_STAT_IF_IN_DISCARDS": sum(counts.discarded_in.values()),
        f"{sonic}/SAI_PORT_STAT_IF_OUT_DISCARDS": sum(counts.discarded_out.values()),
        f"{sonic}/SAI_PORT_STAT_ECN_MARKED_PACKETS": counts.marked,
        f"{sonic}/PFC_WD_QUEUE_STATS_DEADLOCK_DETECTED": counts.storms,
    }
    for priority in range(8):
        pfc = f"{sonic}/SAI_PORT_STAT_PFC_{priority}"
        wanted[f"{pfc}_TX_PKTS"] = counts.xoff.get(priority, 0)
        wanted[f"{pfc}_RX_PKTS"] = counts.xoff_heard.get(priority, 0)
        queue = f"{sonic}:{priority}/SAI_QUEUE_STAT_DROPPED_PACKETS"
        wanted[queue] = counts.discarded_out.get(priority, 0)
        wanted[f"{pfc}_RX_PAUSE_DURATION_US"] = counts.paused.get(priority, 0) // 1000
    return wanted


def test_a_collector_reads_every_path_of_every_switch(storm: tuple[Recorder, int]) -> None:
    recorder, port = storm
    assert recorder.outcome is not None
    fabric = recorder.hub.scene.fabric
    seen: set[str] = set()
    for switch, address in targets(fabric).items():
        client = Client(port, address)
        try:
            able = client.call("capabilities")
            assert "openconfig-network-instance" in {m["name"] for m in able["supported_models"]}
            everything = values(client.get(path=["/"], encoding="proto"))
        finally:
            client.process.kill()
            client.process.wait()
        counted = recorder.outcome.switches[switch]
        for number in fabric.ports(switch):
            wanted = by_the_books(switch.interface(number), counted.port(number))
            found = {path: everything.get(path) for path in wanted}
            assert found == wanted
        drops = {
            match[1]: value
            for path, value in everything.items()
            if (match := re.search(r"reason\[name=(\w+)\]", path))
        }
        assert drops == counted.dropped
        assert everything["system/state/hostname"] == switch.name
        seen |= {re.sub(r"\[.*?\]", "", path).partition("/")[0] for path in everything}
    assert seen == {"interfaces", "qos", "system", "components", "COUNTERS"}
    some = recorder.outcome.switches.values()
    assert any(port.storms for counts in some for port in counts.ports.values())
    assert any(port.xoff for counts in some for port in counts.ports.values())


@pytest.mark.parametrize(
    ("changes", "place"), [(("pfc-storm",), "outs"), (("incast", "pfc.headroom=2KB"), "ins")]
)
def test_drops_and_pauses_are_counted_where_they_happened(
    changes: tuple[str, ...], place: str
) -> None:
    """Every drop at one port; what a switch's neighbour sent in pauses, it heard."""
    recorder = run(*changes)
    assert recorder.outcome is not None
    fabric, switches = recorder.hub.scene.fabric, recorder.outcome.switches
    everywhere: Counter[str] = Counter()
    for switch, counted in switches.items():
        ports = counted.ports.values()
        dropped = sum(counted.dropped.values())
        places = Counter(
            ins=sum(sum(port.discarded_in.values()) for port in ports),
            outs=sum(sum(port.discarded_out.values()) for port in ports),
        )
        assert places.total() == dropped
        everywhere += places
        for number, peer in fabric.ports(switch).items():
            if peer in switches:
                other = switches[peer].port(fabric.link_at(switch, number).port_of(peer))
                assert counted.port(number).xoff_heard == other.xoff
    assert everywhere[place]


def test_watermarks_are_the_longest_queues(storm: tuple[Recorder, int]) -> None:
    recorder, _ = storm
    assert recorder.outcome is not None and recorder.hub.latest is not None
    scene = recorder.hub.scene
    noted = longest_queues(recorder.outcome.notes)
    for switch in targets(scene.fabric):
        leaves = switch_leaves(switch, scene, recorder.hub.latest)
        for path, value in leaves.items():
            if path[-1][0] == "max-queue-len":
                name = dict(path[2][1])["interface-id"]
                link = scene.fabric.link_at(switch, int(name.rpartition("eth")[2]))
                assert isinstance(value, int) and value >= noted.get(link.direction(switch), 0)


def test_bgp_is_told_as_its_daemon_tells_it(storm: tuple[Recorder, int]) -> None:
    recorder, _ = storm
    assert recorder.hub.latest is not None
    peer = {"state": "Established", "remoteAs": 4_200_020_001, "connectionsEstablished": 2}
    said = {"ipv4Unicast": {"as": 4_200_010_001, "routerId": "10.255.16.1", "peers": {"s1": peer}}}
    scene = recorder.hub.scene
    scene = replace(scene, routing=lambda: {"leaf1": said})
    leaf1, leaf2, *_ = targets(scene.fabric)
    found = {
        "/".join(name for name, _ in path[-2:]): value
        for path, value in switch_leaves(leaf1, scene, recorder.hub.latest).items()
        if path[0][0] == "network-instances"
    }
    assert found == {
        "state/as": 4_200_010_001,
        "state/router-id": "10.255.16.1",
        "state/session-state": "ESTABLISHED",
        "state/peer-as": 4_200_020_001,
        "state/established-transitions": 2,
    }
    other = switch_leaves(leaf2, scene, recorder.hub.latest)
    assert not any(path[0][0] == "network-instances" for path in other)


def asked(
    address: str, *requests: pb.SubscribeRequest
) -> Generator[pb.SubscribeResponse, None, None]:
    """A subscription of a client's, who then says nothing more."""
    with grpc.insecure_channel(address) as channel:
        call = channel.stream_stream(
            "/gnmi.gNMI/Subscribe",
            request_serializer=pb.SubscribeRequest.SerializeToString,
            response_deserializer=pb.SubscribeResponse.FromString,
        )
        yield from call(iter(requests), timeout=LONG_S)


def once(target: str, *names: str) -> pb.SubscribeRequest:
    """For what is below a path, once."""
    path = pb.Path(elem=[pb.PathElem(name=name) for name in names])
    return pb.SubscribeRequest(
        subscribe=pb.SubscriptionList(
            prefix=pb.Path(target=target),
            subscription=[pb.Subscription(path=path)],
            mode=pb.SubscriptionList.ONCE,
            encoding=pb.PROTO,
        )
    )


def test_ten_at_once_hear_the_same_under_the_name_they_asked(storm: tuple[Recorder, int]) -> None:
    recorder, port = storm
    address = f"{next(iter(targets(recorder.hub.scene.fabric).values()))}:{port}"

    def session(number: int) -> list[tuple[str, int]]:
        first, *_, last = asked(address, once("COUNTERS_DB", "COUNTERS"))
        assert first.update.prefix.target == "COUNTERS_DB" and last.sync_response
        return sorted((str(each.path), each.val.uint_val) for each in first.update.update)

    with ThreadPoolExecutor(10) as pool:
        heard = list(pool.map(session, range(10)))
    assert heard[0] and all(each == heard[0] for each in heard)


def test_who_leaves_is_not_missed_and_nothing_is_no_failure(storm: tuple[Recorder, int]) -> None:
    recorder, port = storm
    address = f"{next(iter(targets(recorder.hub.scene.fabric).values()))}:{port}"
    stream = once("", "COUNTERS")
    stream.subscribe.mode = pb.SubscriptionList.STREAM
    stream.subscribe.subscription[0].mode = pb.SAMPLE
    for _ in range(2 * gnmi._MAX_CLIENTS):  # each would hold a place if it were missed
        leaving = asked(address, stream)
        next(leaving)
        leaving.close()
        time.sleep(0.02)
    (synced,) = asked(address, once("", "no", "such", "path"))
    assert synced.sync_response


# --- Prometheus ----------------------------------------------------------------------------------


def series(recorder: Recorder) -> list[dict[str, str]]:
    """What Prometheus would have read, a look a second, as promtool takes it."""
    found: dict[str, list[str]] = {}
    for at, text in enumerate(recorder.texts):
        for line in text.splitlines():
            if not line.startswith("#"):
                name, _, value = line.rpartition(" ")
                seen = found.setdefault(name, [])
                seen += ["_"] * (at - len(seen)) + [value]
    return [{"series": name, "values": " ".join(values)} for name, values in found.items()]


def alerts(tmp_path: Path, *changes: str) -> set[str]:
    """Those that fire at any look of a run, as promtool finds."""
    recorder = run(*changes)
    looks = range(len(recorder.texts))
    asked = [{"eval_time": f"{at}s", "alertname": name} for name in FAULTS for at in looks]
    tests = [{"interval": "1s", "input_series": series(recorder), "alert_rule_test": asked}]
    file = tmp_path / "tests.yaml"
    content = {"rule_files": [str(RULES)], "evaluation_interval": "1s", "tests": tests}
    file.write_text(yaml.safe_dump(content))
    done = subprocess.run(
        ["promtool", "test", "rules", str(file)], capture_output=True, text=True, check=False
    )
    said = done.stdout + done.stderr
    assert ("SUCCESS" in said) == (done.returncode == 0)
    return set(re.findall(r"alertname: ?\"?(\w+)", said)) & {*FAULTS}


@needs_promtool
def test_all_rules_have_a_run_that_they_are_for() -> None:
    groups = yaml.safe_load(RULES.read_text())["groups"]
    assert {rule["alert"] for group in groups for rule in group["rules"]} == {*FAULTS}
    done = subprocess.run(["promtool", "check", "rules", str(RULES)], check=False)
    assert done.returncode == 0


@needs_promtool
def test_no_rule_fires_on_a_sound_run(tmp_path: Path) -> None:
    assert alerts(tmp_path, SOUND) == set()


@needs_promtool
@pytest.mark.parametrize(
    "changes",
    [
        pytest.param(changes, id=changes[0], marks=[pytest.mark.slow] * (changes[0] == "deadlock"))
        for changes in sorted({*FAULTS.values()})
    ],
)
def test_a_rule_fires_on_a_run_that_has_its_fault(tmp_path: Path, changes: tuple[str, ...]) -> None:
    assert alerts(tmp_path, *changes) >= {name for name, run in FAULTS.items() if run == changes}


@needs_promtool
def test_all_panels_ask_for_what_is_told(tmp_path: Path) -> None:
    panels = json.loads(DASHBOARD.read_text())["panels"]
    asked = [target["expr"] for panel in panels for target in panel["targets"]]
    names = {name for expr in asked for name in re.findall(r"closlab_\w+", expr)}
    names |= set(re.findall(r"closlab_\w+", RULES.read_text()))
    text = "".join(run("pfc-storm").texts + run(*FAULTS["CableCut"]).texts)
    assert names <= set(re.findall(r"^(closlab_\w+)", text, re.MULTILINE))
    file = tmp_path / "panels.yaml"
    rules = [{"record": f"panel:{at}", "expr": expr} for at, expr in enumerate(asked)]
    file.write_text(yaml.safe_dump({"groups": [{"name": "panels", "rules": rules}]}))
    done = subprocess.run(["promtool", "check", "rules", str(file)], check=False)
    assert done.returncode == 0


@pytest.mark.slow
@pytest.mark.skipif(
    shutil.which("prometheus") is None, reason="Prometheus is not installed (Debian: prometheus)"
)
def test_prometheus_reads_the_page_and_alerts(tmp_path: Path) -> None:
    recorder = run("pfc-storm")
    with server.serving(recorder.hub) as at:
        content = {
            "global": {"scrape_interval": "200ms", "evaluation_interval": "200ms"},
            "rule_files": [str(RULES)],
            "scrape_configs": [
                {"job_name": "closlab", "static_configs": [{"targets": [f"127.0.0.1:{at.port}"]}]}
            ],
        }
        (tmp_path / "prometheus.yml").write_text(yaml.safe_dump(content))
        words = (
            "prometheus",
            f"--config.file={tmp_path / 'prometheus.yml'}",
            f"--storage.tsdb.path={tmp_path / 'data'}",
            "--web.listen-address=127.0.0.1:0",
        )
        with (tmp_path / "said").open("w") as said:
            process = subprocess.Popen(words, stderr=said, stdout=said)
        try:
            firing: set[str] = set()
            until = time.monotonic() + LONG_S
            while not firing >= {"PfcWatchdog", "PacketsDropped"}:
                assert time.monotonic() < until and process.poll() is None
                time.sleep(0.2)
                found = re.search(r"Listening on.*address=(\S+)", (tmp_path / "said").read_text())
                if found:
                    with urlopen(f"http://{found[1]}/api/v1/alerts") as answer:
                        alerts = json.load(answer)["data"]["alerts"]
                    firing = {a["labels"]["alertname"] for a in alerts if a["state"] == "firing"}
        finally:
            process.kill()
            process.wait()
    assert not firing & {"CableCut", "RunStuck"}
