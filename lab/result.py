"""What a run found out, and the files it is kept in.

``result.json`` holds the figures (times in fabric nanoseconds; what does not apply is absent),
``flows.csv`` one line a message.
"""

from __future__ import annotations

import csv
import hashlib
import json
import platform
from importlib.metadata import version
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict

from controller import Counts
from lab.scenario import Scenario
from topologies import Fabric, Link, Node
from traffic import HostReport, MessageReport

SCHEMA = "closlab.result/1"


class _Part(BaseModel):
    model_config = ConfigDict(frozen=True)


class Percentiles(_Part):
    """A distribution in three numbers."""

    p50: int
    p99: int
    max: int


class Flows(_Part):
    """All messages together."""

    count: int
    completed: int
    failed: int
    fct_ns: Percentiles | None


class Drops(_Part):
    """Packets the switches dropped."""

    total: int
    by_reason: dict[str, int]
    by_switch: dict[str, int]


class Roce(_Part):
    """What the endpoints counted."""

    data_packets: int
    data_bytes: int
    out_of_order_packets: int


class LinkUse(_Part):
    """One direction of a link: what the far end's switch received, or a host was sent."""

    name: str
    packets: int
    bytes: int


class Result(_Part):
    """A run's result."""

    schema_: str = SCHEMA
    scenario: Scenario
    engine: str
    switch: str
    seed: int
    dilation: float
    provenance: dict[str, str]
    flows: Flows
    drops: Drops
    roce: Roce
    links: tuple[LinkUse, ...]

    def save(self, out: Path, reports: list[HostReport]) -> None:
        """Write ``result.json`` and ``flows.csv``."""
        content = self.model_dump(exclude_none=True)
        content = {"schema": content.pop("schema_"), **content}
        (out / "result.json").write_text(json.dumps(content, indent=2) + "\n")
        with (out / "flows.csv").open("w", newline="") as file:
            writer = csv.writer(file)
            writer.writerow(
                ("src", "dst", "bytes", "complete", "packets", "out_of_order", "fct_ns")
            )
            for message, fct_ns in completion_times(reports):
                writer.writerow(
                    (
                        message.message.src,
                        message.message.dst,
                        message.message.size,
                        int(message.complete),
                        message.packets,
                        message.out_of_order,
                        "" if fct_ns is None else fct_ns,
                    )
                )


def completion_times(reports: list[HostReport]) -> list[tuple[MessageReport, int | None]]:
    """Every message with the time from its sender's start to its last byte in place."""
    starts = {pair: at for report in reports for pair, at in report.start_ns.items()}
    return [
        (
            message,
            message.end_ns - starts[message.message.queue_pair]
            if message.end_ns is not None
            else None,
        )
        for report in reports
        for message in report.received
    ]


def assemble(
    scenario: Scenario,
    fabric: Fabric,
    program: Path,
    reports: list[HostReport],
    counts: dict[str, Counts],
) -> Result:
    """Put a run's result together from what hosts and switches counted."""
    messages = completion_times(reports)
    times = sorted(time for message, time in messages if message.complete and time is not None)
    completed = sum(message.complete for message, _ in messages)
    return Result(
        scenario=scenario,
        engine="mininet",
        switch="soft",
        seed=scenario.seed,
        dilation=1.0,
        provenance={
            "version": version("closlab"),
            "p4_sha256": hashlib.sha256(program.read_bytes()).hexdigest(),
            "host": f"{platform.system()} {platform.release()} {platform.machine()}",
        },
        flows=Flows(
            count=len(messages),
            completed=completed,
            failed=len(messages) - completed,
            fct_ns=_percentiles(times),
        ),
        drops=_drops(counts),
        roce=Roce(
            data_packets=sum(report.sent_packets for report in reports),
            data_bytes=sum(report.sent_bytes for report in reports),
            out_of_order_packets=sum(message.out_of_order for message, _ in messages),
        ),
        links=tuple(use for link in fabric.links for use in _link_use(link, counts)),
    )


def _percentiles(times: list[int]) -> Percentiles | None:
    if not times:
        return None
    return Percentiles(
        p50=times[(len(times) - 1) // 2],
        p99=times[(len(times) - 1) * 99 // 100],
        max=times[-1],
    )


def _drops(counts: dict[str, Counts]) -> Drops:
    by_reason: dict[str, int] = {}
    for count in counts.values():
        for reason, packets in count.dropped.items():
            by_reason[reason] = by_reason.get(reason, 0) + packets
    by_switch = {name: sum(count.dropped.values()) for name, count in counts.items()}
    return Drops(
        total=sum(by_reason.values()),
        by_reason=by_reason,
        by_switch={name: packets for name, packets in by_switch.items() if packets},
    )


def _link_use(link: Link, counts: dict[str, Counts]) -> tuple[LinkUse, LinkUse]:
    """A link's two directions, upwards (away from the hosts) first."""
    return (
        LinkUse(name=f"{link.a}>{link.b}", **_received(link.b, link.b_port, counts)),
        LinkUse(name=f"{link.b}>{link.a}", **_sent(link.b, link.b_port, counts)),
    )


def _received(node: Node, port: int, counts: dict[str, Counts]) -> dict[str, Any]:
    packets, size = counts[node.name].received.get(port, (0, 0))
    return {"packets": packets, "bytes": size}


def _sent(node: Node, port: int, counts: dict[str, Counts]) -> dict[str, Any]:
    packets, size = counts[node.name].sent.get(port, (0, 0))
    return {"packets": packets, "bytes": size}
