"""A tester for tests: the command in a process of its own, and what its clients begin with."""

from __future__ import annotations

import logging
import os
import re
import signal
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import cache
from typing import IO, Any

import snappi

from lab.machine.paths import ROOT
from params.data import Data
from tests.lab.ready import Ready
from tests.waiting import LONG_S


@cache
def _ready() -> Ready:
    """A process that has read the server's code, once for all servers."""
    return Ready("lab.commands.otg", "doors.tester.server", "doors.tester.testbed")


class Server(Data):
    """One that is up."""

    process: subprocess.Popen[str]
    said: IO[str]
    http: int
    grpc: int

    def api(self, transport: str = "http") -> Any:
        """A client of it."""
        at = f"http://127.0.0.1:{self.http}" if transport == "http" else f"127.0.0.1:{self.grpc}"
        found = snappi.api(location=at, transport=transport, loglevel=logging.ERROR)
        if transport == "grpc":
            found.request_timeout = 60
        return found

    def output(self) -> str:
        """What it said on its standard error."""
        self.said.seek(0)
        return self.said.read()


@contextmanager
def server(words: Sequence[str]) -> Iterator[Server]:
    """Bring one up, for as long as the context lasts."""
    with tempfile.TemporaryFile("w+") as said:
        process = _ready().start(
            ["otg", *words, "--http", "0", "--grpc", "0"],
            stdout=subprocess.PIPE, stderr=said, text=True,
            env={**os.environ, "PYTHONPATH": str(ROOT)},
        )  # fmt: skip
        try:
            first = process.stdout.readline()
            ports = re.search(r":(\d+), gRPC at .*:(\d+)", first)
            said.seek(0)
            assert ports, said.read()
            yield Server(process, said, int(ports[1]), int(ports[2]))
        finally:
            if process.poll() is None:
                process.send_signal(signal.SIGINT)
            process.wait(LONG_S)
            process.stdout.close()


def two_ports(api: Any) -> Any:
    """A configuration with the two ends of a cable, which are captured."""
    config = api.config()
    for name in ("p1", "p2"):
        config.ports.add(name=name, location=name)
    config.captures.add(name="both", port_names=["p1", "p2"])
    return config


def flow_of(config: Any, name: str, packets: int, pps: int = 20_000, size: int = 128) -> Any:
    """A flow from p1 to p2 whose frames are counted."""
    flow = config.flows.add(name=name)
    flow.tx_rx.port.tx_name, flow.tx_rx.port.rx_names = "p1", ["p2"]
    flow.duration.fixed_packets.packets = packets
    flow.rate.pps, flow.size.fixed, flow.metrics.enable = pps, size, True
    return flow


def transmit(api: Any, state: str, names: Sequence[str] = ()) -> None:
    """Start, stop, pause or resume."""
    control = api.control_state()
    control.traffic.flow_transmit.state = state
    control.traffic.flow_transmit.flow_names = [*names]
    api.set_control_state(control)


def capture(api: Any, state: str) -> None:
    """Start or stop it."""
    control = api.control_state()
    control.port.capture.state = state
    api.set_control_state(control)


def captured(api: Any, port: str) -> bytes:
    """What it has."""
    request = api.capture_request()
    request.port_name = port
    found: bytes = api.get_capture(request).read()
    return found


def flows(api: Any) -> dict[str, Any]:
    """Their metrics by name."""
    request = api.metrics_request()
    request.flow.flow_names = []
    return {each.name: each for each in api.get_metrics(request).flow_metrics}


def ports(api: Any) -> dict[str, Any]:
    """Their metrics by name."""
    request = api.metrics_request()
    request.port.port_names = []
    return {each.name: each for each in api.get_metrics(request).port_metrics}


def until(is_so: Callable[[], bool]) -> None:
    """Wait for something."""
    end = time.monotonic() + LONG_S
    while not is_so():
        assert time.monotonic() < end
        time.sleep(0.02)


def until_sent(api: Any) -> dict[str, Any]:
    """Their metrics once none of them sends any more, and what they sent has had time to arrive."""
    until(lambda: all(each.transmit == "stopped" for each in flows(api).values()))
    time.sleep(0.1)
    return flows(api)


def refusal(do: Callable[[], Any]) -> Any:
    """OTG's error that a request ends in."""
    try:
        do()
    except Exception as error:
        assert isinstance(error.args[0], snappi.Error), error
        return error.args[0]
    raise AssertionError("it was not refused")
