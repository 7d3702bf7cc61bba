"""A fabric in the simulator: nodes and links from the graph, plans for the hosts, and a clock.

The switches are ordinary `Dataplane`s without a loop: whoever controls them writes tables and reads
counters as ever, between two calls of `run`.
"""

from __future__ import annotations

import ctypes
import os
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Self

from lab.sim import native
from switch.dataplane import Dataplane
from topologies import Fabric, Node, NodeKind
from traffic.endpoint import EndpointPlan, EndpointReport, read_report


class SimulationError(Exception):
    """The simulation cannot be set up as asked."""


@dataclass(frozen=True, slots=True)
class Account:
    """Every frame: ``sent == delivered + lost + under_way``, always."""

    sent: int
    delivered: int
    lost: int
    under_way: int
    events: int


@dataclass(frozen=True, slots=True)
class Wire:
    """What all links are like."""

    rate_bps: int
    delay_ns: int
    overhead_bytes: int = 24  # preamble and start 8, FCS 4, gap 12


class Simulation:
    """Switches and hosts under one virtual clock."""

    def __init__(
        self, fabric: Fabric, planes: Mapping[Node, Dataplane], wire: Wire, *, seed: int = 1
    ) -> None:
        self._native = native.library()
        self._net = self._native.net_new(seed)
        self._planes = planes
        self._numbers: dict[Node, int] = {}
        self._channels: dict[str, int] = {}
        for node in (*fabric.switches, *fabric.hosts):
            self._add_node(node)
        for link in fabric.links:
            self._add_channel(link.a, link.a_port, link.b, link.b_port, wire)
            self._add_channel(link.b, link.b_port, link.a, link.a_port, wire)

    def _add_node(self, node: Node) -> None:
        if node.kind is NodeKind.HOST:
            number = self._native.net_add_host(self._net)
        else:
            number = self._native.net_add_switch(self._net, self._planes[node].handle)
        self._numbers[node] = number

    def _add_channel(self, a: Node, a_port: int, b: Node, b_port: int, wire: Wire) -> None:
        if a.kind is not NodeKind.HOST:
            self._planes[a].configure_port(
                a_port,
                rate_bps=wire.rate_bps,
                delay_ns=wire.delay_ns,
                overhead_bytes=wire.overhead_bytes,
            )
        number = self._native.net_add_channel(
            self._net,
            *(self._numbers[a], a_port, self._numbers[b], b_port),
            *(wire.rate_bps, wire.overhead_bytes, wire.delay_ns),
        )
        if number < 0:
            raise SimulationError(f"{a} port {a_port} is in use, or memory is out")
        self._channels[f"{a}>{b}"] = number

    def set_plan(self, host: Node, plan: EndpointPlan) -> None:
        """Give a host what it has to do."""
        for line in plan.lines():
            problem = self._native.net_host_line(self._net, self._numbers[host], line.encode())
            if problem:
                raise SimulationError(f"{host}: {problem.decode()}: {line[:80]}")

    def set_loss(self, channel: str, rate: float) -> None:
        """Lose this share of the frames of a channel such as ``leaf1>spine2``."""
        self._native.net_set_loss(self._net, self._channels[channel], round(rate * (2**32 - 1)))

    def start(self) -> None:
        """Let the hosts begin, now."""
        self._native.net_start(self._net)

    def run(self, until_ns: int | None = None, most_events: int = 2**63) -> int:
        """Run until a time, so many events or the end of all transfers; returns the time."""
        until = native.NEVER if until_ns is None else until_ns
        return int(self._native.net_run(self._net, until, most_events))

    @property
    def open_transfers(self) -> int:
        """Transfers that have neither ended nor failed."""
        return int(self._native.net_open_transfers(self._net))

    def account(self) -> Account:
        """Where every frame is."""
        account = native.Account()
        self._native.net_account(self._net, ctypes.byref(account))
        return Account(
            account.sent, account.delivered, account.lost, account.under_way, account.events
        )

    def report(self, host: Node) -> EndpointReport:
        """What became of a host's plan."""
        memory = os.memfd_create("report")
        try:
            if not self._native.net_host_report(self._net, self._numbers[host], memory):
                raise SimulationError(f"{host}: its report could not be written")
            os.lseek(memory, 0, os.SEEK_SET)
            with os.fdopen(os.dup(memory)) as text:
                return read_report(text)
        finally:
            os.close(memory)

    def close(self) -> None:
        """Release everything but the switches, which lose their ports."""
        if self._net:
            self._native.net_free(self._net)
            self._net = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
