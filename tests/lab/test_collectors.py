"""What collectors of metrics read: Prometheus' text, judged by its own tools, and gNMI."""

import json
import random
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.request import urlopen

import grpc
import pytest
from finsy.proto import gnmi as pb
from pyang.context import Context
from pyang.repository import FileRepository

import closlab
from lab.errors import LabError
from lab.results.outcome import Note
from lab.results.snapshot import Happening, Looker, Messages, rates_of
from lab.runs.adapter_files import lay_out
from lab.scenario import catalogue
from lab.scenario.experiment import Experiment
from tests.waiting import LONG_S
from traffic.verbs import VERBS_COUNTERS
from views.live import gnmi, metrics, server
from views.live.hub import Hub, Scene

pytest.importorskip("pygnmi")
parser = pytest.importorskip("prometheus_client.parser")
openmetrics = pytest.importorskip("prometheus_client.openmetrics.parser")
CUT = "leaf1-spine1"


class Source:
    """A hub, and snapshots of the test's own making; beside them what adapters have counted."""

    def __init__(self, adapters: Path | None = None) -> None:
        experiment = Experiment.of(catalogue.load("incast", ()))
        self.fabric = experiment.fabric
        bps = {link.name: 100 * 10**9 for link in self.fabric.links}
        rates = rates_of(self.fabric, bps)
        scene = Scene(experiment.scenario, self.fabric, rates, "sim", adapters=adapters)
        self.hub = Hub(scene)
        self._looker = Looker(rates)
        self.notes = {name: Note(0, name, 0, 0, 0, 0, 0) for name in rates}

    def publish(self, time_ns: int, *notes: Note, dead: frozenset[str] = frozenset()) -> None:
        self.notes |= {note.link: note for note in notes}
        events = [Happening(time_ns, "fault", 'a "quoted" \\ word')]
        snapshot = self._looker.look(time_ns, self.notes.values(), Messages(7, 2), events, dead)
        self.hub.publish(snapshot)


@pytest.fixture
def source(tmp_path: Path) -> Source:
    made = Source(tmp_path)
    lay_out(tmp_path / "h2", 100)
    port = tmp_path / "h2/infiniband/closlab0/ports/1"
    (port / "hw_counters/np_cnp_sent").write_text("17\n")
    made.publish(
        2_000,
        Note(2_000, "leaf1>h1", 123_456, 12_500, 0, 9, 4),
        Note(2_000, "spine1>leaf1", 7_000, 25_000, 1_500, 0, 0),
        dead=frozenset({CUT}),
    )
    return made


# --- Prometheus ----------------------------------------------------------------------------------


def test_prometheus_reads_what_was_seen(source: Source) -> None:
    text = metrics.exposition(source.hub)
    found: dict[tuple[str, frozenset[tuple[str, str]]], float] = {}
    for family in parser.text_string_to_metric_families(text):
        assert family.documentation and family.type in ("gauge", "counter")
        for sample in family.samples:
            key = sample.name, frozenset(sample.labels.items())
            assert key not in found
            found[key] = sample.value

    def of(name: str, **labels: str) -> float:
        return found[f"closlab_{name}", frozenset(labels.items())]

    assert of("queue_bytes", link="leaf1>h1") == 123_456
    assert of("link_bytes_total", link="spine1>leaf1") == 25_000
    assert of("link_utilisation_ratio", link="leaf1>h1") == 12_500 * 8 / (2_000 * 100)
    assert of("link_paused_ratio", link="spine1>leaf1") == 0.75
    assert of("link_paused_seconds_total", link="spine1>leaf1") == pytest.approx(1.5e-6)
    assert of("marked_packets_total", link="leaf1>h1") == 9
    assert of("dropped_packets_total", node="leaf1") == 4
    assert of("cable_cut", cable=CUT) == 1
    assert of("messages", state="done") == 2
    assert of("adapter_np_cnp_sent_total", host="h2") == 17
    assert of("link_rate_bytes_per_second", link="h1>leaf1") == 12.5e9
    assert of("time_seconds") == 2e-6 and of("run_over") == 0
    assert of("run_info", scenario="incast", engine="sim") == 1


@pytest.mark.skipif(shutil.which("promtool") is None, reason="promtool is not installed")
def test_promtool_has_nothing_against_it(source: Source) -> None:
    done = subprocess.run(
        ["promtool", "check", "metrics"],
        input=metrics.exposition(source.hub),
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stdout + done.stderr) == (0, "")


def test_openmetrics_says_the_same(source: Source) -> None:
    """Of what Prometheus asks for when it may choose, too."""
    asked = f"{metrics.OPEN};version=1.0.0;q=0.6,text/plain;version=0.0.4;q=0.5,*/*;q=0.1"
    assert metrics.wants_open(asked) and not metrics.wants_open(asked.replace("0.6", "0.4"))
    assert not any(map(metrics.wants_open, ("", "*/*", "text/plain", f"{metrics.OPEN};q=0")))
    plain, opened = metrics.exposition(source.hub), metrics.exposition(source.hub, is_open=True)

    def samples(families: Iterator[Any]) -> set[Any]:
        return {
            (family.type, each.name, frozenset(each.labels.items()), each.value)
            for family in families
            for each in family.samples
        }

    found = samples(openmetrics.text_string_to_metric_families(opened))
    assert found == samples(parser.text_string_to_metric_families(plain))


def test_nothing_seen_yet_is_no_failure() -> None:
    text = metrics.exposition(Source().hub)
    assert text.startswith("# HELP closlab_run_info") and "closlab_queue_bytes" not in text


# --- gNMI ----------------------------------------------------------------------------------------

INTERFACE = "/interfaces/interface[name=leaf1-eth1]"
QUEUE = "/qos/interfaces/interface[interface-id=leaf1-eth1]/output/queues/queue[name=data]/state"


class Client:
    """pygnmi."""

    def __init__(self, port: int, host: str = gnmi.LOOPBACK) -> None:
        program = Path(__file__).with_name("gnmi_client.py")
        words = (sys.executable, str(program), str(port), str(LONG_S), host)
        self.process = subprocess.Popen(
            words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )

    def call(self, method: str, **words: Any) -> Any:
        """What a method returns, or raises."""
        assert self.process.stdin is not None and self.process.stdout is not None
        self.process.stdin.write(json.dumps([method, words]) + "\n")
        self.process.stdin.flush()
        answer = json.loads(self.process.stdout.readline())
        if "error" in answer:
            raise RuntimeError(answer["error"])
        return answer["found"]

    def get(self, **words: Any) -> Any:
        return self.call("get", **words)


@pytest.fixture
def client(source: Source) -> Iterator[Client]:
    with gnmi.serving(source.hub, 0) as port:
        found = Client(port)
        try:
            yield found
        finally:
            found.process.kill()
            found.process.wait()


def values(answer: dict[str, Any]) -> dict[str, Any]:
    """Values by their whole paths."""
    return {
        update["path"]: update["val"]
        for notification in answer["notification"]
        for update in notification["update"]
    }


def test_capabilities_and_get(client: Client) -> None:
    able = client.call("capabilities")
    assert able["gnmi_version"] == "0.8.0"
    names = {model["name"] for model in able["supported_models"]}
    assert {"openconfig-interfaces", "openconfig-qos", "closlab-pfc"} <= names
    (octets,) = values(client.get(path=[f"{INTERFACE}/state/counters/out-octets"])).values()
    assert octets == 12_500
    found = values(client.get(path=[QUEUE], encoding="json"))
    assert {path.rpartition("/")[2]: value for path, value in found.items()} == {
        "queue-len": 123_456,
        "transmit-octets": 12_500,
        "ecn-marked-pkts": 9,
    }
    ietf = values(client.get(path=[f"{QUEUE}/queue-len"], encoding="json_ietf"))
    assert [*ietf.values()] == ["123456"]  # as RFC 7951 has 64-bit numbers
    plain = values(client.get(path=[f"{QUEUE}/queue-len"], encoding="proto"))
    assert [*plain.values()] == [123_456]
    downs = values(client.get(path=["/interfaces/interface[name=*]/state/oper-status"]))
    down = [path for path, status in downs.items() if status == "DOWN"]
    assert len(downs) == 32 and len(down) == 2  # both ends of the cable
    paused = values(client.get(path=["openconfig-interfaces:interfaces/interface/pfc/state"]))
    assert sum(paused.values()) == 1_500 + 750
    everything = values(client.get(path=["/"]))
    assert len(everything) == 32 * 8 + 14 + 1 + len(VERBS_COUNTERS)
    cnps = "/fabric/node[name=h2]/adapter/counter[name=np_cnp_sent]/state/count"
    assert [*values(client.get(path=[cnps])).values()] == [17]
    assert [v for p, v in everything.items() if p.endswith("[name=leaf1]/state/dropped-pkts")] == [
        4
    ]


@pytest.mark.parametrize("path", ["/interfaces/interface[name=eth0]", "/nothing", f"{QUEUE}/x"])
def test_what_is_not_there_is_said(client: Client, path: str) -> None:
    with pytest.raises(Exception, match="there is nothing at"):
        client.get(path=[path])


def test_nothing_can_be_set(client: Client) -> None:
    with pytest.raises(Exception, match="read only"):
        client.call("set", delete=[f"{INTERFACE}/config"])


def subscribe(client: Client, mode: str, **more: Any) -> None:
    """To how long a queue is, from now on."""
    entry = {"path": f"{QUEUE}/queue-len", "mode": mode, **more}
    wanted = {"subscription": [entry], "mode": "stream", "encoding": "proto"}
    client.call("subscribe2", subscribe=wanted)


def more(client: Client, count: int) -> list[Any]:
    """So many values that a subscription brings next."""
    found = client.call("more", count=count)
    return [u["val"] for each in found for u in each.get("update", {}).get("update", ())]


def test_subscriptions(client: Client, source: Source) -> None:
    once = {"subscription": [{"path": QUEUE}], "mode": "once", "encoding": "proto"}
    first, *rest = client.call("subscribe2", subscribe=once)
    assert {u["val"] for u in first["update"]["update"]} == {123_456, 12_500, 9}
    assert rest == [{"sync_response": True}]

    def holds(time_ns: int, size: int) -> None:
        source.publish(time_ns, Note(time_ns, "leaf1>h1", size, 12_500, 0, 9, 4))

    subscribe(client, "on_change")
    assert more(client, 1) == [123_456]
    holds(3_000, 99)
    assert more(client, 1) == [99]
    source.publish(4_000, Note(4_000, "h1>leaf1", 0, 77, 0, 0, 0))  # nothing new of it
    holds(5_000, 100)
    assert more(client, 1) == [100]
    began = time.monotonic()
    subscribe(client, "sample", sample_interval=200_000_000)
    assert more(client, 4) == [100] * 4
    assert time.monotonic() - began >= 3 * 0.19
    subscribe(client, "sample", sample_interval=100_000_000, suppress_redundant=True)
    assert more(client, 1) == [100]
    time.sleep(0.3)  # in which nothing changes, and so nothing is told
    holds(6_000, 98)
    assert more(client, 1) == [98]
    for words in (
        {"mode": "on_change"},
        {"mode": "sample", "sample_interval": 100_000_000, "suppress_redundant": True},
    ):
        began = time.monotonic()
        subscribe(client, heartbeat_interval=200_000_000, **words)
        assert more(client, 4) == [98] * 4  # which nothing but heartbeats tells again
        assert time.monotonic() - began >= 3 * 0.19
    subscribe(client, "target_defined")
    assert more(client, 2) == [98] * 2


def test_malformed_messages_are_called_so(source: Source) -> None:
    """By their sender's fault, and not by the server's; and what is sound is answered after."""
    with (
        gnmi.serving(source.hub, 0) as port,
        grpc.insecure_channel(f"127.0.0.1:{port}") as channel,
    ):

        def status(method: str, data: bytes) -> Any:
            try:
                if method == "Subscribe":
                    next(channel.stream_stream(f"/gnmi.gNMI/{method}")(iter([data])))
                else:
                    channel.unary_unary(f"/gnmi.gNMI/{method}")(data)
            except grpc.RpcError as error:
                return error.code()
            return grpc.StatusCode.OK

        draw = random.Random(39)
        for method in ("Capabilities", "Get", "Set", "Subscribe"):
            for data in (b"\xff", b"\x0a\x7f", b"\x0a\x05\x0a\xff", draw.randbytes(40)):
                assert status(method, data) is grpc.StatusCode.INVALID_ARGUMENT, (method, data)
        many = pb.GetRequest(path=[pb.Path()] * 300).SerializeToString()
        assert status("Get", many) is grpc.StatusCode.INVALID_ARGUMENT
        assert status("Get", bytes(100_000)) is grpc.StatusCode.RESOURCE_EXHAUSTED
        assert status("Get", b"") is status("Capabilities", b"") is grpc.StatusCode.OK


def test_it_answers_on_the_loopback_only(source: Source) -> None:
    with gnmi.serving(source.hub, 0) as port:
        listening = {
            fields[1].rpartition(":")[0][-8:]  # IPv4, be it written as IPv6
            for table in ("tcp", "tcp6")
            for fields in map(str.split, Path(f"/proc/net/{table}").read_text().splitlines())
            if fields[1].endswith(f":{port:04X}") and fields[3] == "0A"
        }
        assert "0100007F" in listening  # the fabric, beside its switches
        assert len(listening) == 1 + len(source.fabric.switches)
        assert all(each.endswith("7F") for each in listening)
        with (
            pytest.raises(LabError, match=f"port {port} cannot be listened on"),
            gnmi.serving(source.hub, port),
        ):
            pass


def test_a_hub_remembers_so_many_and_numbers_all(source: Source) -> None:
    hub = source.hub
    for number in range(hub.room + 10):
        source.publish(10_000 + number)
    frames = hub.since(0)
    assert len(frames) == hub.room and frames[-1].number == hub.room + 10
    assert [f.number for f in hub.since(frames[-3].number)] == [f.number for f in frames[-3:]]
    assert hub.since(10**6) == []
    assert json.loads(json.dumps(frames[0].since(None)))["key"] is True
    assert closlab.Snapshot is type(frames[0].snapshot)


# --- YANG ----------------------------------------------------------------------------------------

MODULES = ("closlab-fabric", "closlab-pfc", "openconfig-interfaces", "openconfig-qos")


def data_leaves(statement: Any, above: tuple[str, ...] = ()) -> dict[tuple[str, ...], str]:
    """Leaves below a statement of YANG, but lists' keys: their types, by their paths."""
    found = {}
    keys = [key.arg for key in getattr(statement, "i_key", None) or ()]
    for child in getattr(statement, "i_children", ()):
        here = (*above, child.arg)
        if child.keyword == "leaf" and child.arg not in keys:
            found[here] = child.search_one("type").arg
        found |= data_leaves(child, here)
    return found


def test_what_is_told_is_what_the_modules_say(source: Source) -> None:
    """OpenConfig's are here as far as they go (tests/lab/yang); ours are served as they lie."""
    here = Path(__file__).parent / "yang"
    context = Context(FileRepository(f"{server.YANG}:{here}", use_env=False))
    modules = {}
    for name in MODULES:
        path = (server.YANG if name.startswith("closlab") else here) / f"{name}.yang"
        modules[name] = context.add_module(str(path), path.read_text())
    context.validate()
    assert context.errors == []
    types = {
        path: kind for module in modules.values() for path, kind in data_leaves(module).items()
    }
    frame = source.hub.latest
    assert frame is not None
    leaves = gnmi.leaves(source.hub.scene, frame)
    assert {tuple(name for name, _ in path) for path in leaves} == set(types)
    servicer = gnmi._Servicer(source.hub, gnmi.leaves, ())
    for leaf, value in leaves.items():
        said = json.loads(servicer._value(leaf[-1][0], value, pb.JSON_IETF).json_ietf_val)
        is_text = types[tuple(name for name, _ in leaf)] in ("uint64", "enumeration")
        assert said == (str(value) if is_text else value)  # RFC 7951
    with server.serving(source.hub) as address:
        for name in MODULES[:2]:
            with urlopen(f"{address.url.partition('#')[0]}yang/{name}.yang") as answer:
                assert answer.read() == (server.YANG / f"{name}.yang").read_bytes()
