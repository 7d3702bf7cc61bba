"""What ports counted, as OTG tells it: times, rates and delays are the fabric's."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from snappi import otg_pb2 as otg

from doors.tester.flows import Plan
from doors.tester.port import Port

_RATES = {"rate_bytes": 1.0, "rate_bps": 8.0, "rate_kbps": 8e-3, "rate_mbps": 8e-6}
_Counts = Mapping[str, Any]


def states(flows: Mapping[str, tuple[int, Plan]], ports: Mapping[str, Port]) -> dict[str, str]:
    """Which flows are started, stopped or paused."""
    counts = {
        name: ports[name].counts()["flows"] for name in {plan.tx for _, plan in flows.values()}
    }
    return {name: counts[plan.tx][str(number)]["state"] for name, (number, plan) in flows.items()}


def of_ports(
    names: Iterable[str], ports: Mapping[str, Port], capturing: set[str], columns: Sequence[str]
) -> otg.MetricsResponse:
    """Of each port what passed it, and whether its link is up."""
    found = otg.MetricsResponse(choice="port_metrics")
    for name in names:
        counts = ports[name].counts()
        sent, received = counts["sent"], counts["received"]
        is_sending = any(flow["state"] == "started" for flow in counts["flows"].values())
        everything: dict[str, Any] = {
            "location": ports[name].place.location,
            "link": "up" if counts["up"] else "down",
            "capture": "started" if name in capturing else "stopped",
            "transmit": "started" if is_sending else "stopped",
            "frames_tx": sent["frames"],
            "frames_rx": received["frames"],
            "bytes_tx": sent["bytes"],
            "bytes_rx": received["bytes"],
            "frames_tx_rate": sent["fps"],
            "frames_rx_rate": received["fps"],
            "bytes_tx_rate": sent["Bps"],
            "bytes_rx_rate": received["Bps"],
            "speed": ports[name].place.bps // 8000,
        }
        found.port_metrics.add(name=name, **_wanted(everything, columns))
    return found


def of_flows(
    names: Sequence[str],
    flows: Mapping[str, tuple[int, Plan]],
    config: Mapping[str, otg.Flow],
    ports: Mapping[str, Port],
    columns: Sequence[str],
) -> otg.MetricsResponse:
    """Of each flow what was sent and what arrived, and how late if that is asked for."""
    found = otg.MetricsResponse(choice="flow_metrics")
    counts = {name: port.counts() for name, port in ports.items()} if names else {}
    for name in names:
        number, plan = flows[name]
        sent = counts[plan.tx]["flows"][str(number)]
        received = _together([counts[rx]["expected"].get(str(number)) for rx in plan.rx or counts])
        overhead = ports[plan.tx].place.overhead - 4
        everything: dict[str, Any] = {
            "transmit": sent["state"],
            "frames_tx": sent["frames"],
            "frames_rx": received["frames"],
            "bytes_tx": sent["bytes"],
            "bytes_rx": received["bytes"],
            "frames_tx_rate": sent["fps"],
            "frames_rx_rate": received["fps"],
            "tx_l1_rate_bps": 8 * (sent["Bps"] + overhead * sent["fps"]),
            "rx_l1_rate_bps": 8 * (received["Bps"] + overhead * received["fps"]),
            **{f"tx_{unit}": factor * sent["Bps"] for unit, factor in _RATES.items()},
            **{f"rx_{unit}": factor * received["Bps"] for unit, factor in _RATES.items()},
        }
        wanted = _wanted(everything, columns)
        one = found.flow_metrics.add(name=name, port_tx=plan.tx, **wanted)
        if len(plan.rx) == 1:
            one.port_rx = plan.rx[0]
        _measure(one, config[name], sent, received)
    return found


def _wanted(everything: Mapping[str, Any], columns: Sequence[str]) -> dict[str, Any]:
    """The columns asked for; all, if none is."""
    return {key: each for key, each in everything.items() if not columns or key in columns}


def _measure(one: otg.FlowMetric, flow: otg.Flow, sent: _Counts, received: _Counts) -> None:
    """What is told if it was asked for."""
    asked = flow.metrics
    if asked.loss:
        lost = max(0, sent["frames"] - received["frames"])
        one.loss = 100 * lost / sent["frames"] if sent["frames"] else 0.0
    if asked.timestamps and received["frames"]:
        one.timestamps.first_timestamp_ns = received["first"]
        one.timestamps.last_timestamp_ns = received["last"]
    if asked.latency.enable and received["timed"]:
        one.latency.minimum_ns = received["least"]
        one.latency.maximum_ns = received["most"]
        one.latency.average_ns = received["sum"] / received["timed"]


def _together(parts: Iterable[_Counts | None]) -> dict[str, Any]:
    """What several ports counted of a flow."""
    there = [part for part in parts if part is not None]
    some = [part for part in there if part["frames"]]
    timed = [part for part in some if part["timed"]]
    return {
        **{key: sum(part[key] for part in there) for key in ("frames", "bytes", "fps", "Bps")},
        "timed": sum(part["timed"] for part in timed),
        "sum": sum(part["sum"] for part in timed),
        "least": min((part["least"] for part in timed), default=0.0),
        "most": max((part["most"] for part in timed), default=0.0),
        "first": min((part["first"] for part in some), default=0),
        "last": max((part["last"] for part in some), default=0),
    }
