"""The scapy endpoint: whatever the traffic, the packets of the one in C, and every byte arrives.

Both are told the same plans in the same words. In C they run around the test fabric's switch, with
scapy around one in Python that never blocks; the data packets of one run are those of the other.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import field
from heapq import heappop, heappush
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scapy.contrib.mac_control import MACControlClassBasedFlowControl
from scapy.layers.l2 import Ether

from lab.scenario import catalogue
from lab.scenario.experiment import Experiment
from lab.scenario.traffic import KINDS
from params.data import Data
from tests.traffic.endpoint.star import GBPS, A, B, ends, one_way, receives, run, sends, unfinished
from traffic.collectives import ALGORITHMS, IN_NETWORK
from traffic.endpoint import (
    EndpointConfig,
    EndpointError,
    EndpointPlan,
    EndpointReport,
    read_report,
)
from traffic.frames import IP_BYTES, icrc
from traffic.scapy_endpoint import ScapyEndpoint
from traffic.traces.specs import TRACES

DELAY_NS = 500
CONFIG = EndpointConfig(link_bps=100 * GBPS, mtu=1024)
TINY = {
    "name": "tiny", "parameters": 40_000, "layers": 2, "hidden": 32, "heads": 2, "sequence": 8,
}  # fmt: skip
BURST = {"load": 0.5, "duration_ns": "20us", "sizes": "hadoop"}
KINDS_SAID: dict[str, dict[str, Any]] = {
    "all-pairs": {"bytes": 5000},
    "collective": {"op": "all-reduce", "bytes": 9000},
    "incast": {"bytes": 9000},
    "flows": {"flows": [{"src": "h1", "dst": "h3", "bytes": 3000}], "messages": 3, "rest_ns": 900},
    "permutation": {"bytes": 9000},
    "elephants": {"bytes": 9000, "source_ports": 1},
    "poisson": BURST,
    "north-south": {**BURST, "gateways": ["h1"]},
    "job": {
        "compute_ns": "2us", "steps": 2, "buckets": 2,
        "collective": {"op": "all-reduce", "bytes": 9000},
    },
    "experts": {"layers": 1, "tokens": 2, "token_bytes": 1500, "compute_ns": "2us"},
    "inference": {
        "prefill": 2, "decode": 2, "requests": 3, "every_ns": "2us", "prompt_tokens": 2,
        "prefill_ns": "1us", "pieces": 2, "kv_bytes": 900,
    },
    "storage": {"servers": ["h4"], "save": 3000, "load": 2001},
    "cluster": {
        "jobs": [
            {"at_ns": [at], "job": {
                "kind": "job", "name": name, "ranks": 2, "compute_ns": "2us", "steps": 1,
                "collective": {"op": "all-reduce", "bytes": 5000},
            }} for at, name in ((0, "first"), (900, "second"))
        ],
    },
    "training": {
        "model": TINY, "parallelism": {"tensor": 2, "data": 2}, "batch": {"sequences": 2},
    },
    "mix": {
        "parts": [
            {"kind": "collective", "op": "all-gather", "bytes": 4000},
            {"kind": "incast", "bytes": 3001, "senders": 2},
        ]
    },
}  # fmt: skip
TRAFFIC = [{"kind": kind, **said} for kind, said in KINDS_SAID.items()] + [
    {
        "kind": "collective",
        "op": op,
        "algorithm": algorithm,
        **({} if op == "barrier" else {"bytes": 9001}),
        **({"node_size": 2} if algorithm == "hierarchical" else {}),
    }
    for op, algorithms in ALGORITHMS.items()
    for algorithm in algorithms
    if algorithm != IN_NETWORK  # which scapy's has not
]


class Star(Data, frozen=False):
    """Scapy endpoints around a switch that never blocks, in virtual time."""

    reports: dict[str, EndpointReport] = field(default_factory=dict)
    frames: list[bytes] = field(default_factory=list)
    end_ns: int = 0


def star_of(
    plans: Mapping[str, EndpointPlan],
    *,
    loses: Callable[[bytes], bool] = lambda _: False,
    injected: Sequence[tuple[int, str, bytes]] = (),
) -> Star:
    """Run all plans to their end; ``injected`` are frames of others, when and to whom."""
    made = Star()
    events: list[tuple[int, int, str, bytes | None]] = []  # when, in which order, where, what comes
    hosts: dict[str, ScapyEndpoint] = {}
    woken: dict[str, int | None] = {}

    def at(when: int, host: str, frame: bytes | None) -> None:
        heappush(events, (when, len(events) + len(made.frames) * 1000, host, frame))

    def transmit_of(host: str) -> Callable[[bytes, int], None]:
        def transmit(frame: bytes, when: int) -> None:
            made.frames.append(frame)
            udp = udp_at(frame)
            to = ".".join(map(str, frame[udp - 4 : udp]))
            if not loses(frame):
                at(when + hosts[host].wire_ns(len(frame)) + 2 * DELAY_NS, to, frame)

        return transmit

    for host, plan in plans.items():
        hosts[host] = ScapyEndpoint(transmit_of(host))
        for line in plan.lines():
            hosts[host].read(line)
    for when, host, frame in injected:
        at(when, host, frame)
    for host, endpoint in hosts.items():
        endpoint.start(0)
        at(0, host, None)
    while events and any(endpoint.open for endpoint in hosts.values()):
        now, _, host, frame = heappop(events)
        made.end_ns = now
        if frame is not None:
            hosts[host].receive(frame, now)
        elif woken.get(host) not in (now, None):
            continue  # it has asked for another time since
        wake = hosts[host].service(now)
        assert wake is None or wake > now, "it would be called for ever"
        if wake != woken.get(host):
            woken[host] = wake
            if wake is not None:
                at(wake, host, None)
    made.reports = {
        host: read_report([*endpoint.errors, *endpoint.report(made.end_ns)])
        for host, endpoint in hosts.items()
    }
    return made


def all_done(report: EndpointReport) -> bool:
    return not unfinished(report) and not report.qp_errors


def data_frames(frames: list[bytes]) -> list[bytes]:
    return sorted(frame for frame in frames if is_data(frame))


def is_data(frame: bytes) -> bool:
    return frame[udp_at(frame) + 8] < 0x11


def udp_at(frame: bytes) -> int:
    return 14 + (40 if frame[14] >> 4 == 6 else 20)


def plans_of(traffic: dict[str, Any]) -> dict[str, EndpointPlan]:
    """What four hosts are told."""
    said = {
        "name": "said",
        "topology": {"kind": "leaf-spine", "leaves": 2, "spines": 1, "hosts_per_leaf": 2},
        "link": {"rate_gbps": 100, "mtu": 1024},
        "traffic": traffic,
    }
    experiment = Experiment.of(catalogue.made(said))
    return {
        str(experiment.fabric.address(host)): experiment.plan(rank, carries_payload=True)
        for rank, host in enumerate(experiment.fabric.hosts)
    }


def test_every_kind_of_traffic_is_asked_for() -> None:
    """But those of other people's files, which become such plans as all of them."""
    of_files = {trace.model_fields["kind"].default for trace in TRACES}
    assert set(KINDS_SAID) == set(KINDS) - of_files


def title(traffic: dict[str, Any]) -> str:
    return "-".join(traffic[key] for key in ("kind", "op", "algorithm") if key in traffic)


@pytest.mark.by_day(4)
@pytest.mark.parametrize("traffic", TRAFFIC, ids=title)
def test_both_send_the_same_packets(star: Path, traffic: dict[str, Any]) -> None:
    send_alike(star, plans_of(traffic))


@pytest.mark.parametrize("acks", ["data", "control"])
def test_both_send_the_same_packets_over_ipv6(star: Path, acks: str) -> None:
    config = CONFIG.model_copy(update={"ip": 6, "acks": acks})
    both = ends(A, B, ip=6, psn=0xFFFFF0, remote_psn=0xFFFFF0)
    sizes = [0, 1, 1024, 1025, 30_001]
    plans = {
        host: EndpointPlan(
            config=config,
            queue_pairs=(own,),
            transfers=(*sends(own, sizes, 100 * side), *receives(own, sizes, 100 * (1 - side))),
        )
        for side, (host, own) in enumerate(zip((A, B), both, strict=True))
    }
    send_alike(star, plans)


def send_alike(star: Path, plans: dict[str, EndpointPlan]) -> None:
    fabric = {"seed": 1, "delay": DELAY_NS, "rate": 100 * GBPS}
    core = run(star, plans, extra=[f"capture {host}" for host in plans], **fabric)
    scapy = star_of(plans)

    assert all(map(all_done, core.hosts.values()))
    assert all(map(all_done, scapy.reports.values()))
    sent = data_frames(core.captured)
    assert sent == data_frames(scapy.frames)
    assert sent or not any(plan.queue_pairs for plan in plans.values())
    for host in plans:
        theirs, ours = core.counters(host), scapy.reports[host].counters
        for name in ("tx_data_bytes", "rx_data_bytes", "messages_sent", "messages_received"):
            assert ours.get(name, 0) == theirs[name], (host, name)


@pytest.mark.by_day(2)
@pytest.mark.parametrize("seed", range(12))
def test_whatever_is_lost_arrives_in_the_end(seed: int) -> None:
    """Data, ACKs and NAKs: go-back-n and time-outs send it again, and nothing twice to the user."""
    rng = random.Random(seed)
    rate = rng.choice((0.01, 0.1, 0.3))
    config = EndpointConfig(
        link_bps=100 * GBPS,
        mtu=rng.choice((256, 1024)),
        window=rng.choice((1, 7, 64)),
        ack_every=rng.choice((1, 4, 16)),
        rto=50_000,
        retry_limit=250,
    )
    plans: dict[str, tuple[list[Any], list[Any]]] = {A: ([], []), B: ([], [])}
    total = {A: 0, B: 0}
    for index in range(rng.choice((1, 3))):
        wrap = rng.choice((0, 0xFFFFF8))
        pair = ends(A, B, 100 + 2 * index, psn=wrap, remote_psn=wrap)
        for way, (source, sink) in enumerate(((A, B), (B, A))):
            sizes = [rng.randrange(6000) for _ in range(rng.choice((1, 5)))]
            first_id = 1000 * (2 * index + way)
            plans[source][1].extend(sends(pair[way], sizes, first_id))
            plans[sink][1].extend(receives(pair[1 - way], sizes, first_id))
            total[sink] += sum(sizes)
        for side, host in enumerate((A, B)):
            plans[host][0].append(pair[side])
    lost = 0

    def loses(_: bytes) -> bool:
        nonlocal lost
        is_lost = rng.random() < rate
        lost += is_lost
        return is_lost

    made = star_of(
        {
            host: EndpointPlan(config=config, queue_pairs=tuple(pairs), transfers=tuple(transfers))
            for host, (pairs, transfers) in plans.items()
        },
        loses=loses,
    )
    assert all(map(all_done, made.reports.values()))
    for host, report in made.reports.items():
        assert report.counters.get("rx_data_bytes", 0) == total[host]
    again = sum(r.counters.get("retransmitted_packets", 0) for r in made.reports.values())
    assert bool(again) <= bool(lost)
    assert lost or rate < 0.1


def test_a_peer_that_never_answers_is_given_up() -> None:
    config = EndpointConfig(link_bps=100 * GBPS, rto=10_000, retry_limit=3)
    made = star_of(one_way(config, [3000, 3000]), loses=is_data)
    (error,) = made.reports[A].qp_errors
    assert (error.number, error.reason) == (17, "retry-exceeded")
    assert error.at_ns >= 4 * 10_000  # the first wait, and three more
    assert [t.state.value for t in made.reports[A].transfers.values()] == ["failed", "failed"]
    assert made.reports[A].counters["tx_data_packets"] == 4 * 2


@pytest.mark.by_day(2)
@pytest.mark.parametrize("quanta", [0, 1, 50, 65535])
def test_it_stands_still_for_as_long_as_it_is_told(quanta: int) -> None:
    config = EndpointConfig(link_bps=100 * GBPS, mtu=1024)
    plans = one_way(config, [64_000])
    frame = bytes(Ether(dst="01:80:c2:00:00:01", type=0x8808) / MACControlClassBasedFlowControl(
        c3_enabled=1, c3_pause_time=quanta, c5_enabled=1, c5_pause_time=7
    ))  # fmt: skip
    free = star_of(plans)
    held = star_of(plans, injected=[(2000, A, frame)])
    pause_ns = quanta * 512 // 100
    late_ns = held.end_ns - free.end_ns
    assert pause_ns - 100 <= late_ns <= pause_ns  # a frame was on its way out
    assert held.reports[A].paused_ns.get(3, 0) == pause_ns
    assert all_done(held.reports[B])


@pytest.mark.parametrize("resumes", [True, False])
def test_a_pause_ends_when_it_is_lifted(resumes: bool) -> None:
    plans = one_way(EndpointConfig(link_bps=100 * GBPS, mtu=1024), [64_000])

    def pause(quanta: int) -> bytes:
        control = MACControlClassBasedFlowControl(c3_enabled=1, c3_pause_time=quanta)
        return bytes(Ether(dst="01:80:c2:00:00:01", type=0x8808) / control)

    injected = [(2000, A, pause(10_000)), (7000, A, pause(0 if resumes else 10))]
    report = star_of(plans, injected=injected).reports[A]
    assert report.paused_ns[3] == 5000 + (0 if resumes else 51)
    assert report.counters["rx_pause_transitions"] == 1


@given(st.data())
def test_any_bytes_are_taken_without_a_crash(data: st.DataObject) -> None:
    """Frames of a run with bytes changed or cut off, their ICRC mended or not."""
    here, _ = ends(A, B)
    config = EndpointConfig(link_bps=100 * GBPS, mtu=256)
    frames = [*FRAMES, b"", bytes(60)]
    frame = bytearray(data.draw(st.sampled_from(frames)))
    for _ in range(data.draw(st.integers(0, 4))):
        if frame:
            frame[data.draw(st.integers(0, len(frame) - 1))] = data.draw(st.integers(0, 255))
    frame = frame[: data.draw(st.integers(0, len(frame)))]
    if len(frame) >= 58 and frame[14] >> 4 in IP_BYTES and data.draw(st.booleans()):
        frame[16:18] = (len(frame) - 14).to_bytes(2, "big")
        frame[-4:] = icrc(bytes(frame[14:-4])).to_bytes(4, "little")
    endpoint = ScapyEndpoint(lambda *_: None)
    transfers = (*sends(here, [999]), *receives(here, [700], 2))
    for line in EndpointPlan(config=config, queue_pairs=(here,), transfers=transfers).lines():
        endpoint.read(line)
    endpoint.start(0)
    endpoint.service(0)
    endpoint.receive(bytes(frame), 1000)
    endpoint.service(1000)


@pytest.mark.parametrize("first", [0x05, 0x35, 0x55, 0x65])
def test_a_header_of_another_version_than_ethernet_says_is_refused(first: int) -> None:
    endpoint = ScapyEndpoint(lambda *_: None)
    (frame,) = data_frames(star_of(one_way(CONFIG, [700])).frames)
    endpoint.start(0)
    endpoint.receive(frame[:14] + bytes([first]) + frame[15:], 1000)
    assert read_report(endpoint.report(1000)).counters["rx_icrc_errors"] == 1


def _frames() -> list[bytes]:
    """Whole messages, ACKs and NAKs, and a pause."""
    rng = random.Random(3)
    config = EndpointConfig(link_bps=100 * GBPS, mtu=256, rto=50_000, retry_limit=250)
    made = star_of(one_way(config, [700, 0, 100]), loses=lambda _: rng.random() < 0.3)
    pause = Ether(dst="01:80:c2:00:00:01", type=0x8808) / MACControlClassBasedFlowControl(
        c3_enabled=1
    )
    return [*made.frames, bytes(pause)]  # fmt: skip


FRAMES = _frames()


def test_bytes_that_are_not_the_message_end_the_connection() -> None:
    here, there = ends(A, B)
    endpoint = ScapyEndpoint(lambda *_: None)
    for line in EndpointPlan(
        config=CONFIG, queue_pairs=(there,), transfers=receives(there, [700])
    ).lines():
        endpoint.read(line)
    endpoint.start(0)
    (frame,) = data_frames(star_of(one_way(CONFIG, [700])).frames)
    wrong = bytearray(frame)
    wrong[100] ^= 1
    endpoint.receive(bytes(wrong), 10)  # the ICRC tells
    assert not endpoint.errors
    wrong[-4:] = icrc(bytes(wrong[14:-4])).to_bytes(4, "little")
    endpoint.receive(bytes(wrong), 20)
    assert endpoint.errors == ["qp-error 18 local-data 20"]
    assert here.number == 17


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("endpoint link-bps=1 recovery=selective", "no recovery but go-back-n"),
        ("endpoint link-bps=1 payload=none", "no payload but pattern"),
        ("endpoint link-bps=1 receive-bps=5", "knows nothing of receive-bps"),
        ("endpoint link-bps=1 window=many", "cannot be understood"),
        ("qp number=1 remote=2 cc=hpcc", "no congestion control 'hpcc'"),
        ("send id=1 qp=9 size=3", "cannot be understood"),
        ("dance", "there is no line 'dance'"),
    ],
)
def test_what_it_cannot_do_it_refuses(line: str, said: str) -> None:
    endpoint = ScapyEndpoint(lambda *_: None)
    with pytest.raises(EndpointError, match=said):
        endpoint.read(line)
