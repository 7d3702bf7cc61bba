"""closlab otg: snappi's scripts send, capture and count; what is not there is refused by name."""

from __future__ import annotations

import random
import re
import signal
import struct
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("snappi", reason="snappi is not here: pip install -r requirements-otg.lock")

import requests
from scapy.layers.l2 import Ether

from lab.machine.paths import ROOT
from tests.doors import hostile_otg
from tests.doors.otg_frames import assert_whole, draw, frames, mark, number, recomputed
from tests.doors.otg_server import (
    Server,
    capture,
    captured,
    flow_of,
    flows,
    ports,
    refusal,
    server,
    transmit,
    two_ports,
    until,
    until_sent,
)
from tests.doors.test_assistant import _below
from tests.lab.conftest import closlab

pytestmark = pytest.mark.mininet
DOORS = ROOT / "docs" / "doors.md"
WIRE = ("--wire", "p1,p2")
PACKETS = 12


@pytest.fixture(scope="module")
def wire() -> Iterator[Server]:
    """A tester on a cable."""
    with server(WIRE) as up:
        yield up
        assert up.process.poll() is None
        assert "Traceback" not in up.output()


@pytest.mark.by_day(1)
@pytest.mark.parametrize("seed", range(2))
def test_frames_are_what_was_drawn(wire: Server, seed: int) -> None:
    """Each field of each frame, by scapy's account; checksums as scapy computes them."""
    print(f"seed {seed}")
    api = wire.api("grpc" if seed % 2 else "http")
    config, rng = two_ports(api), random.Random(seed)
    drawn = [draw(config, rng, f"f{number_}", PACKETS) for number_ in range(24)]
    api.set_config(config)
    capture(api, "start")
    transmit(api, "start")
    metrics = until_sent(api)
    seen = dict.fromkeys(range(len(drawn)), 0)
    for _, frame in frames(captured(api, "p2")):
        assert_whole(frame)
        behind = next(n for n in (4, 8, 12) if frame[-n - 16 : -n - 14] == b"\xc1\x5a")
        flow, at, _ = mark(frame, behind)
        one, packet = drawn[flow], Ether(frame[:-4])
        assert at == seen[flow], "frames of a flow arrive in order"
        seen[flow] += 1
        assert one.fits(at, len(frame)), (one.name, at, len(frame))
        for layer, nth, name, value in one.sees:
            assert number(packet.getlayer(layer, nth).getfieldval(name)) == value(at), (layer, name)
        assert recomputed(frame[:-4], one) == frame[:-4], one.name
    for flow, one in enumerate(drawn):
        assert seen[flow] == PACKETS == metrics[one.name].frames_tx == metrics[one.name].frames_rx
        assert metrics[one.name].bytes_tx == metrics[one.name].bytes_rx >= PACKETS * 200


def test_rates_bursts_and_ends_are_the_flows(wire: Server) -> None:
    """By when each frame left: its mark says so to the nanosecond, however busy the machine is."""
    api = wire.api()
    config = two_ports(api)
    wire_ns = 8  # a byte lasts so long at 1 Gb/s
    expected: dict[str, Callable[[int], float]] = {}

    def flow(name: str, size: int, packets: int = 10) -> Any:
        found = flow_of(config, name, packets, size=size)
        found.packet.ethernet()
        return found

    for name, unit, rate, gap in (
        ("pps", "pps", 2500, 400_000),
        ("bps", "bps", 4_000_000, 500 * 8 / 4e-3),
        ("kbps", "kbps", 4_000, 500 * 8 / 4e-3),
        ("mbps", "mbps", 4, 500 * 8 / 4e-3),
        ("percentage", "percentage", 2.5, 520 * wire_ns * 40),
    ):
        setattr(flow(name, 500).rate, unit, rate)
        expected[name] = lambda i, gap=gap: i * gap
    bursts = flow("bursts", 480)
    bursts.rate.pps = 100_000
    bursts.duration.burst.packets, bursts.duration.burst.bursts = 4, 3
    bursts.duration.burst.inter_burst_gap.microseconds = 700
    burst_ns = 3 * 10_000 + 500 * wire_ns + 700_000
    expected["bursts"] = lambda i: i // 4 * burst_ns + i % 4 * 10_000
    for_a_while = flow("seconds", 100)
    for_a_while.rate.pps = 5_000
    for_a_while.duration.fixed_seconds.seconds = 0.01
    for number_, name in enumerate(expected):  # one after the other, so that none waits for another
        config.flows[number_].name = name
    api.set_config(config)
    sent = {}
    for each in (*expected, "seconds"):
        capture(api, "start")
        transmit(api, "start", [each])
        sent[each] = until_sent(api)[each].frames_tx
        left = [mark(frame)[2] for _, frame in frames(captured(api, "p2"))]
        assert len(left) == sent[each]
        for number_, at in enumerate(left if each in expected else []):
            assert at - left[0] == pytest.approx(expected[each](number_), abs=3), (each, number_)
    assert sent["bursts"] == 12 and sent["seconds"] == 50


def test_flows_are_paused_resumed_changed_added_and_removed(wire: Server) -> None:
    api = wire.api()
    config = two_ports(api)
    flow_of(config, "long", 1, pps=500).duration.continuous.gap = 12
    flow_of(config, "short", 20).packet.ethernet().ipv4().tcp()
    config.flows[1].size.fixed = 64  # no room for a time: it is counted all the same
    api.set_config(config)
    transmit(api, "start")
    until(lambda: flows(api)["long"].frames_rx > 20)
    transmit(api, "pause", ["long"])
    until(lambda: flows(api)["long"].frames_rx == flows(api)["long"].frames_tx)
    held = flows(api)
    assert (held["long"].transmit, held["short"].transmit) == ("paused", "stopped")
    assert held["short"].frames_rx == 20
    assert ports(api)["p1"].frames_tx == held["long"].frames_tx + 20
    transmit(api, "resume", ["long"])
    until(lambda: flows(api)["long"].frames_rx > held["long"].frames_rx)
    update = api.config_update()
    update.flows.property_names = ["rate", "size"]
    changed = update.flows.flows.add(name="long")
    changed.tx_rx.port.tx_name = "p1"
    changed.rate.pps, changed.size.fixed = 900, 700
    api.update_config(update)
    before = flows(api)["long"]
    until(lambda: flows(api)["long"].bytes_tx - before.bytes_tx > 30 * 700)
    assert api.get_config().flows[0].size.fixed == 700
    more = api.config_append()
    flow_of(more.config_append_list.add(), "third", 5).packet.ethernet()
    api.append_config(more)
    transmit(api, "start", ["third"])
    until(lambda: flows(api)["third"].frames_rx == 5)
    less = api.config_delete()
    less.config_delete_list.add().flows = ["short", "long"]
    api.delete_config(less)
    assert [*flows(api)] == ["third"] == [each.name for each in api.get_config().flows]
    assert api.get_version().app_version.startswith("closlab ")
    assert "short" in str(refusal(lambda: transmit(api, "start", ["short"])).errors)


def test_links_latency_and_pauses(wire: Server) -> None:
    """A link that is down takes nothing; a port that is to obey stands still, class by class."""
    api = wire.api()
    config = two_ports(api)
    for name, queue in (("held", 3), ("free", 0)):
        flow = flow_of(config, name, 100, pps=10_000)
        flow.packet.ethernet()[-1].pfc_queue.value = queue
        flow.metrics.loss = flow.metrics.timestamps = flow.metrics.latency.enable = True
    pause = config.flows.add(name="pause")
    pause.tx_rx.port.tx_name, pause.tx_rx.port.rx_names = "p2", ["p1"]
    header = pause.packet.pfcpause()[-1]
    header.class_enable_vector.value, header.pause_class_3.value = 1 << 3, 0xFFFF
    pause.rate.pps = 100
    config.layer1.add(name="l1", port_names=["p1"]).flow_control.ieee_802_1qbb.pfc_delay = 0
    api.set_config(config)
    capture(api, "start")
    transmit(api, "start", ["pause"])
    until(lambda: ports(api)["p1"].frames_rx > 0)
    transmit(api, "start", ["held", "free"])
    until(lambda: flows(api)["free"].frames_rx == 100)
    assert flows(api)["held"].frames_tx == 0 and flows(api)["held"].transmit == "started"
    transmit(api, "stop", ["pause"])
    found = until_sent(api)
    assert found["held"].frames_rx == 100 and found["held"].loss == 0
    assert 0 <= found["free"].latency.minimum_ns <= found["free"].latency.average_ns
    assert found["free"].timestamps.first_timestamp_ns < found["free"].timestamps.last_timestamp_ns
    _, first = next(frames(captured(api, "p1")))
    assert first[:18].hex() == "0180c2000001" + "000000000000" + "88080101" + "0008"
    assert struct.unpack(">8H", first[18:34]) == (0, 0, 0, 0xFFFF, 0, 0, 0, 0) and len(first) == 64
    link = api.control_state()
    link.port.link.port_names, link.port.link.state = ["p2"], "down"
    api.set_control_state(link)
    until(lambda: ports(api)["p2"].link == "down")
    transmit(api, "start", ["free"])
    assert until_sent(api)["free"].frames_rx == 0
    link.port.link.state = "up"
    api.set_control_state(link)
    until(lambda: ports(api)["p2"].link == ports(api)["p1"].link == "up")
    transmit(api, "start", ["free"])
    until(lambda: flows(api)["free"].frames_rx == 100)


@pytest.mark.slow
def test_a_fabric_loses_nothing_if_its_ports_obey() -> None:
    """The example of docs/doors.md: an incast and a pause flow; and the same if nobody obeys."""
    (example,) = re.findall(r"```python\n(import time\n.*?)```", DOORS.read_text(), re.DOTALL)
    obey = "layer1.flow_control.ieee_802_1qbb.pfc_class_3 = 3\n"
    assert obey in example
    words = ("incast", "--dilation", "20000", "--set", "buffer.bytes=450KB")
    with server(words) as up:
        lost = []
        for text in (example, example.replace(obey, "")):
            here = text.replace("http://127.0.0.1:8443", f"http://127.0.0.1:{up.http}")
            exec(compile(here, str(DOORS), "exec"), {})
            metrics = flows(up.api())
            assert [*metrics] == ["h2", "h3", "h4"]
            assert all(each.frames_tx == 300 for each in metrics.values())
            lost.append(sum(each.frames_tx - each.frames_rx for each in metrics.values()))
            for each in metrics.values():  # two cables of 1 us and a switch, at least
                assert each.latency.minimum_ns > 2_000
            most = max(each.latency.maximum_ns for each in metrics.values())
            assert most > 0x2000 * 512 / 100, "the leaf stood still so long"
        assert lost[0] == 0 < lost[1]
        request = up.api().states_request()
        request.ipv4_neighbors.ethernet_names = ["h3"]
        (neighbour,) = up.api().get_states(request).ipv4_neighbors
        assert (neighbour.ipv4_address, neighbour.link_layer_address[:6]) == (
            "10.0.2.254",
            "02:01:",
        )
        assert "Traceback" not in up.output()


def test_what_is_not_there_is_refused_by_name(wire: Server) -> None:
    for transport in ("http", "grpc"):
        api = wire.api(transport)
        kept = two_ports(api)
        flow_of(kept, "kept", 10).packet.ethernet()
        api.set_config(kept)

        def refused(change: Callable[[Any], object], api: Any = api) -> Any:
            config = two_ports(api)
            flow = flow_of(config, "f", 10)
            flow.packet.ethernet()
            change((config, flow))
            return refusal(lambda: api.set_config(config))

        for change, wanted, said in (
            (lambda c: c[1].packet.gre(), 501, "flows[0].packet[1].gre"),
            (lambda c: c[0].devices.add(name="d"), 501, "devices"),
            (lambda c: setattr(c[1].tx_rx.port, "tx_name", "p9"), 400, "no port 'p9'"),
            (lambda c: setattr(c[1].rate, "percentage", 101), 400, "101"),
            (lambda c: setattr(c[1].size, "fixed", 20_000), 400, "frames have from 64"),
            (lambda c: setattr(c[1].size, "fixed", 63), 400, "frames have from 64"),
            (lambda c: (c[1].packet.ipv6().ipv6().udp(), c[1].size.increment),
             400, "are too few"),
            (lambda c: flow_of(c[0], "f", 1), 400, "two flows 'f'"),
            (lambda c: setattr(c[0].ports[0], "location", "h1"), 400, "there are p1, p2"),
        ):  # fmt: skip
            error = refused(change)
            assert error.code == wanted, error
            assert said in str(error.errors), error
        assert [each.name for each in api.get_config().flows] == ["kept"]  # nothing has changed
        request = api.metrics_request()
        request.bgpv4.peer_names = []
        assert "bgpv4" in str(refusal(lambda api=api, r=request: api.get_metrics(r)).errors)


def test_ten_clients_at_once_are_each_answered(wire: Server) -> None:
    ended: list[str] = []

    def client(number_: int) -> None:
        api = wire.api("grpc" if number_ % 2 else "http")
        try:
            for _ in range(3):
                config = two_ports(api)
                flow_of(config, f"f{number_}", 50).packet.ethernet()
                api.set_config(config)
                transmit(api, "start")
                flows(api)
                ports(api)
            ended.append("done")
        except Exception as error:
            ended.append(str(error))

    threads = [threading.Thread(target=client, args=(number_,)) for number_ in range(10)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    assert ended == ["done"] * 10


def test_five_hundred_hostile_requests_are_answered_and_do_nothing(wire: Server) -> None:
    seed = 20260102
    print(f"seed {seed}")
    api, rng = wire.api(), random.Random(seed)
    kept = two_ports(api)
    flow_of(kept, "kept", 10).packet.ethernet()
    api.set_config(kept)
    session, refused = requests.Session(), 0
    base = f"http://127.0.0.1:{wire.http}"
    for method, path, body in hostile_otg.requests(rng, 380):
        answer = session.request(method, base + path, data=body, timeout=100)
        assert answer.status_code < 500 or answer.status_code == 501, (
            path,
            body[:200],
            answer.text,
        )
        if answer.status_code >= 400 and method != "HEAD":
            error = answer.json()
            assert error["code"] == answer.status_code and error["errors"] and error["kind"]
            refused += 1
    assert refused > 300
    for raw in hostile_otg.streams(rng, 60):
        hostile_otg.throw(wire.http, raw)
        hostile_otg.throw(wire.grpc, raw)
    for code in hostile_otg.calls(wire.grpc, rng, 60):
        assert code in hostile_otg.PROTOCOLS_OWN
    api.set_config(kept)  # some of it made sense by chance
    transmit(api, "start")
    assert until_sent(api)["kept"].frames_rx == 10


@pytest.mark.parametrize(
    "how", ["is killed", pytest.param("is interrupted", marks=pytest.mark.slow)]
)
def test_nothing_outlives_the_server(how: str) -> None:
    with server(WIRE) as up:
        api = up.api()
        config = two_ports(api)
        flow_of(config, "f", 1, pps=100).duration.continuous.gap = 12
        api.set_config(config)
        transmit(api, "start")
        family = _below(up.process.pid)
        assert len(family) >= 4  # who holds the cable, its sandbox, and two ports
        if how == "is killed":
            up.process.kill()
        else:
            up.process.send_signal(signal.SIGINT)
        up.process.wait()
        until(lambda: not [pid for pid in family if Path(f"/proc/{pid}").exists()])


@pytest.mark.slow
def test_flows_that_nobody_asks_about_end() -> None:
    with server((*WIRE, "--forgotten", "1")) as up:
        api = up.api()
        config = two_ports(api)
        flow_of(config, "f", 1, pps=100).duration.continuous.gap = 12
        api.set_config(config)
        transmit(api, "start")
        until(lambda: "flows are stopped" in up.output())
        assert flows(api)["f"].transmit == "stopped"


@pytest.mark.slow
def test_what_is_wrong_with_the_command_is_told() -> None:
    for words, said in (
        ((), "either a scenario's hosts or the ends of a cable"),
        (("--wire", "a,a"), "does not name two ports"),
        (("--wire", "a,b", "--gbps", "0"), "--gbps is from"),
        (("--wire", "a,b", "--dilation", "3"), "are for a scenario's fabric"),
        (("no-such-scenario",), "no scenario 'no-such-scenario'"),
    ):
        done = closlab("otg", *words)
        assert done.returncode == 1 and said in done.stderr and "Traceback" not in done.stderr
