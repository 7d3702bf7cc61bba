"""Many switches in one process: one data-plane thread, one asyncio loop for their controllers.

From Python:

    host = Host([SwitchSettings(name="leaf1", device_id=1, grpc_address="127.0.0.1:50051",
                                ports={1: "leaf1-eth1", 2: "leaf1-eth2"})])
    await host.start()
    ...
    await host.stop()

From a shell: `python -m switch.host CONFIG.json` with a JSON list of the same settings. It prints
`ready` when every switch listens and every port is open, and ends on SIGTERM or SIGINT; which port
a switch found free that was to listen at port 0, it tells on standard error before. With
`--links-change` it reads what ports' links are from now on from its standard input, a line each,
how bad the cables there are, and which switch starts again with empty tables; and it tells in a
line what became of every packet when it is asked to:

    {"switch": "leaf1", "port": 2, "link": {"rate_bps": 25000000000, "delay_ns": 1000}}
    {"switch": "leaf1", "port": 2, "cable": {"sends": false, "corrupt": 0.01}}
    {"switch": "leaf1", "restart": true}
    {"tell": "books"}
"""

from __future__ import annotations

import argparse
import asyncio
import ctypes
import gc
import json
import logging
import mmap
import os
import signal
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import field, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any

from finsy.proto import p4i, p4r

from files import FileError, parse_json, read_bytes
from params.data import Data
from switch import dataplane as dp
from switch.cache import Unbuildable
from switch.layout import ARRIVAL_BYTES
from switch.p4runtime.device import Device
from switch.p4runtime.errors import RequestError
from switch.p4runtime.infer import infer_p4info
from switch.p4runtime.pipeline import parse_p4info
from switch.p4runtime.programs import Programs
from switch.p4runtime.service import ServeError, Server, Tls
from switch.program import MAX_BYTES
from switch.recorder import Cells, Recorder

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from switch.shims.console import Console

__all__ = ["Host", "HostError", "Link", "SwitchSettings", "Tls", "main"]

log = logging.getLogger(__name__)

PORTS_AT_ONCE = 16
# In rings frames wait for us. A few ports get large ones; of many none gets all there is to do.
LARGE_RINGS = 8
USUAL_RING, MIN_RING, QUIET_RING = 1 << 20, 1 << 18, 1 << 16
ALL_RINGS = 1 << 26


class HostError(Exception):
    """The switches cannot run as described; the text names the switch and the cure."""


class Link(Data):
    """What a port's link is like; zeros mean unlimited and immediate, as BMv2 has it."""

    rate_bps: int = 0
    delay_ns: int = 0
    overhead_bytes: int = 24
    queue_packets: int | None = None
    queue_bytes: int | None = None


class SwitchSettings(Data):
    """One switch. Without a program it waits for a controller to give it one."""

    name: str
    device_id: int
    grpc_address: str
    ports: Mapping[int, str] = field(default_factory=dict)
    links: Mapping[int, Link] = field(default_factory=dict)
    cpu_port: int | None = None
    drop_port: int = 511
    queues: int = 8
    seed: int = 1  # of its random choices
    program: Path | None = None
    p4info: Path | None = None
    tls: Tls | None = None
    pcap: Path | None = None
    pcap_ports: Sequence[int] | None = None  # None: all of them
    quiet_ports: Sequence[int] = ()  # by which little comes
    arrival_times: Mapping[int, Sequence[int]] = field(
        default_factory=dict
    )  # places in a file, see Host
    record: Cells = field(default_factory=Cells)
    trace: Callable[[str], None] | None = None
    console_port: int | None = None
    needs_console: bool = True  # else a port that is taken is only told

    @classmethod
    def from_json(cls, data: object, place: str) -> SwitchSettings:
        """Read one switch of a config file, refusing keys it does not know."""
        given = _object(data, place, cls, {"trace"})
        with _naming(place):
            for key in ("program", "p4info", "pcap"):
                if given.get(key) is not None:
                    given[key] = Path(given[key])
            given["ports"] = {int(k): str(v) for k, v in given.get("ports", {}).items()}
            given["links"] = {
                int(k): Link(**_object(v, f"{place}.links.{k}", Link))
                for k, v in given.get("links", {}).items()
            }
            given["arrival_times"] = {int(k): v for k, v in given.get("arrival_times", {}).items()}
            if "record" in given:
                given["record"] = Cells(**_object(given["record"], f"{place}.record", Cells))
            if given.get("tls") is not None:
                tls = _object(given["tls"], f"{place}.tls", Tls)
                given["tls"] = Tls(**{key: Path(value) for key, value in tls.items()})
            return cls(**given)


class Host:
    """Switches that live and end together."""

    def __init__(
        self,
        settings: Sequence[SwitchSettings],
        *,
        dilation: float = 1.0,
        record: tuple[Path, float] | None = None,
        arrival_times: int | None = None,
    ) -> None:
        """Describe switches, and where and how often (in seconds) to record what they hold.

        ``arrival_times`` is an open file in which the ends of cables tell each other when frames
        are due.
        """
        self._settings = tuple(settings)
        self._dilation = dilation
        self._record = record
        self._arrival_times = None if arrival_times is None else _mapped(arrival_times)
        self._recorder: Recorder | None = None
        self._loop: dp.Loop | None = None
        self._programs = Programs()
        self._planes: list[dp.Dataplane] = []
        self._servers: list[Server] = []
        self._consoles: list[Console] = []
        self.devices: dict[str, Device] = {}

    async def start(self) -> None:
        """Open all ports and listen on all addresses; on failure nothing is left open."""
        try:
            _check_names(self._settings)
            with _naming("the switches"):
                self._loop = dp.Loop(dilation=self._dilation)
            for settings in self._settings:
                self._make_plane(settings)
            self._open_ports()
            for settings, plane in zip(self._settings, self._planes, strict=True):
                await self._start_switch(settings, plane)
            self._loop.start()
            if self._record is not None:
                self._start_recorder(self._loop, *self._record)
        except BaseException:
            await self.stop()
            raise

    async def stop(self) -> None:
        """Stop listening, then forwarding; harmless when repeated."""
        await asyncio.gather(*(server.stop() for server in self._servers))
        self._servers.clear()
        for console in self._consoles:
            await console.stop()
        self._consoles.clear()
        if self._recorder is not None:
            self._recorder.stop()
            self._recorder = None
        if self._loop is not None:
            self._loop.stop()
            self._loop = None
        for plane in self._planes:
            plane.close()
        self._planes.clear()
        self.devices.clear()

    def grpc_port(self, name: str) -> int:
        """The port a switch listens on, for those that asked for port 0."""
        names = [settings.name for settings in self._settings]
        return self._servers[names.index(name)].port

    def say_ready(self) -> None:
        """Print so, and tell the ports that nobody can know yet."""
        for settings in self._settings:
            if settings.grpc_address.endswith(":0"):
                log.info("%s listens at port %d", settings.name, self.grpc_port(settings.name))
        print("ready", flush=True)

    def obey(self, line: str | bytes) -> str | None:
        """Give a port another link, or tell what was asked for, as a line of JSON says."""
        with _naming("a line of standard input"):
            order = json.loads(line)
            planes = {s.name: plane for s, plane in zip(self._settings, self._planes, strict=True)}
            if order.get("tell") == "books":
                return json.dumps({name: _books_of(plane) for name, plane in planes.items()})
            name = order["switch"]
            if order.get("restart"):
                self.devices[name].restart()
            elif "cable" in order:
                planes[name].set_cable(order["port"], **order["cable"])
            else:
                _configure_link(planes[name], order["port"], Link(**order["link"]))
            return None

    def _start_recorder(self, loop: dp.Loop, path: Path, interval_s: float) -> None:
        cells = [settings.record for settings in self._settings]
        switches = list(zip(self._planes, cells, strict=True))
        try:
            self._recorder = Recorder(loop, switches, path, interval_s)
        except OSError as error:
            raise HostError(f"cannot record into {path}: {error.strerror}") from None
        self._recorder.start()

    def _make_plane(self, settings: SwitchSettings) -> None:
        with _naming(f"switch {settings.name}"):
            plane = dp.Dataplane(
                settings.name,
                loop=self._loop,
                cpu_port=settings.cpu_port,
                drop_port=settings.drop_port,
                queues=settings.queues,
                seed=settings.seed,
            )
            self._planes.append(plane)
            plane.set_trace(settings.trace)

    def _open_ports(self) -> None:
        """All at the same time: the kernel takes tens of milliseconds for each."""
        busy = sum(len(s.ports.keys() - set(s.quiet_ports)) for s in self._settings)
        usual_bytes = _ring_bytes(busy)
        with ThreadPoolExecutor(PORTS_AT_ONCE) as pool:
            opening = [
                pool.submit(self._open_port, plane, settings, number, interface, usual_bytes)
                for settings, plane in zip(self._settings, self._planes, strict=True)
                for number, interface in settings.ports.items()
            ]
        for port in opening:
            port.result()

    def _open_port(
        self,
        plane: dp.Dataplane,
        settings: SwitchSettings,
        number: int,
        interface: str,
        usual_bytes: int,
    ) -> None:
        places = settings.arrival_times.get(number)
        arrival_times = None
        if self._arrival_times is not None and places is not None:
            with _naming(f"switch {settings.name}: arrival_times of port {number}"):
                arrival_times = _pieces(self._arrival_times, *places)
        _open_port(plane, settings, number, interface, usual_bytes, arrival_times)

    async def _start_switch(self, settings: SwitchSettings, plane: dp.Dataplane) -> None:
        with _naming(f"switch {settings.name}"):
            device = Device(
                settings.device_id,
                plane,
                programs=self._programs,
                trace=settings.trace is not None,
            )
            server = Server(device, settings.grpc_address, name=settings.name, tls=settings.tls)
            await server.start()
            self._servers.append(server)
            self.devices[settings.name] = device
            if settings.program is not None:
                await _preload(device, settings.program, settings.p4info)
            if settings.console_port is not None:  # as BMv2: who is answered can write entries
                await self._start_console(settings, device)

    async def _start_console(self, settings: SwitchSettings, device: Device) -> None:
        from switch.shims.console import Console

        assert settings.console_port is not None
        console = Console(device)
        try:
            await console.start(settings.console_port)
        except OSError as error:
            problem = (
                f"switch {settings.name} cannot serve commands on port {settings.console_port}:"
                f" {error.strerror}; choose another with --thrift-port"
            )
            if settings.needs_console:
                raise HostError(problem) from None
            log.warning("%s", problem)
            return
        self._consoles.append(console)


async def _preload(device: Device, program: Path, p4info: Path | None) -> None:
    """Give a switch its program before any controller does."""
    source = _read(program)
    info = parse_p4info(_read(p4info), str(p4info)) if p4info else p4i.P4Info()
    config = p4r.ForwardingPipelineConfig(p4info=info, p4_device_config=source)
    pipeline = await device.build(config)
    if p4info is None:
        config.p4info.CopyFrom(infer_p4info(pipeline.program))
        pipeline = await device.build(config)
    device.commit(pipeline)


def _mapped(file: int) -> mmap.mmap:
    """All of an open file, however large this machine's pages are."""
    try:
        return mmap.mmap(file, 0)
    except (OSError, ValueError) as error:
        raise HostError(
            f"--arrival-times {file}: what is due cannot be told there: {error}"
        ) from None


def _pieces(file: mmap.mmap, reads: int, notes: int) -> tuple[int, int]:
    """Where in memory the pieces are that stand at two places of a file."""
    at = ctypes.addressof(ctypes.c_char.from_buffer(file))
    for place in (reads, notes):
        if place % 8 or not 0 <= place <= len(file) - ARRIVAL_BYTES:
            raise ValueError(f"its file of {len(file):,} bytes has none at {place:,}")
    return at + reads, at + notes


def _ring_bytes(ports: int) -> int:
    """For each of so many ports."""
    if ports <= LARGE_RINGS:
        return dp.LARGE_RING
    return max(MIN_RING, min(USUAL_RING, ALL_RINGS // ports))


def _open_port(
    plane: dp.Dataplane,
    settings: SwitchSettings,
    number: int,
    interface: str,
    usual_bytes: int,
    arrival_times: tuple[int, int] | None,
) -> None:
    ring_bytes = QUIET_RING if number in settings.quiet_ports else usual_bytes
    try:
        plane.add_port(number, interface, ring_bytes=ring_bytes, arrival_times=arrival_times)
        link = settings.links.get(number)
        if link is not None:
            _configure_link(plane, number, link)
        is_recorded = settings.pcap_ports is None or number in settings.pcap_ports
        if settings.pcap is not None and is_recorded:
            for direction in ("in", "out"):
                plane.set_pcap(number, direction, settings.pcap / f"{interface}_{direction}.pcap")
    except (dp.DataplaneError, OSError) as error:
        said = str(error).removeprefix(f"{settings.name}: ")
        raise HostError(f"switch {settings.name}: port {number}@{interface}: {said}") from None


def _configure_link(plane: dp.Dataplane, port: int, link: Link) -> None:
    plane.configure_port(
        port,
        rate_bps=link.rate_bps,
        delay_ns=link.delay_ns,
        overhead_bytes=link.overhead_bytes,
    )
    plane.set_queue_limits(port, None, packets=link.queue_packets, bytes_=link.queue_bytes)


def _books_of(plane: dp.Dataplane) -> dict[str, object]:
    """A switch's books, and its plain account of the same."""
    lines, stats = plane.books()
    return {
        "lines": lines,
        **{name: getattr(stats, name) for name in ("received", "copies", "sent", "held", "drops")},
    }


def _check_names(settings: Sequence[SwitchSettings]) -> None:
    seen: set[str] = set()
    for item in settings:
        if item.name in seen:
            raise HostError(f"two switches are named {item.name}")
        seen.add(item.name)


@contextmanager
def _naming(place: str) -> Iterator[None]:
    """Turn what can go wrong at a place into a HostError that names it."""
    try:
        yield
    except (HostError, ServeError) as error:
        raise HostError(str(error)) from None
    except (dp.DataplaneError, RequestError, Unbuildable) as error:
        said = str(error).removeprefix(f"{place.removeprefix('switch ')}: ")
        raise HostError(f"{place}: {said}") from None
    except KeyError as error:
        raise HostError(f"{place}: there is no {error}") from error
    except (TypeError, ValueError, AttributeError) as error:
        raise HostError(f"{place}: {error}") from error


def _object(
    data: object, place: str, kind: type[Any], hidden: set[str] | None = None
) -> dict[str, Any]:
    if not isinstance(data, dict):
        raise HostError(f"{place}: expected an object")
    known = {item.name for item in fields(kind)} - (hidden or set())
    unknown = sorted(set(data) - known)
    if unknown:
        raise HostError(f"{place}: unknown key {unknown[0]!r}; known: {', '.join(sorted(known))}")
    return dict(data)


def _read(path: Path) -> bytes:
    try:
        return read_bytes(path, MAX_BYTES)
    except FileError as error:
        raise HostError(str(error)) from None


def read_config(path: Path) -> list[SwitchSettings]:
    """Read a config file: a JSON list of switches."""
    try:
        data = parse_json(_read(path))
    except ValueError as error:
        raise HostError(f"{path} is not JSON: {error}") from None
    if not isinstance(data, list) or not data:
        raise HostError(f"{path}: expected a list of switches")
    return [SwitchSettings.from_json(item, f"{path}[{i}]") for i, item in enumerate(data)]


@contextmanager
def _without_collections() -> Iterator[None]:
    """A start makes what stays: to look through it for garbage would take a fifth of the time."""
    gc.disable()
    try:
        yield
    finally:
        gc.freeze()
        gc.enable()


async def run_until_signal(
    host: Host, *, ready: Callable[[], None], links_change: bool = False
) -> None:
    """Host switches until SIGTERM or SIGINT; `ready` is called once all of them listen.

    Where links change, how they do is read from standard input.
    """
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop.set)
    with _without_collections():
        await host.start()
    changing = loop.create_task(_take_changes(host)) if links_change else None
    if changing is not None:
        changing.add_done_callback(lambda task: stop.set() if _failed(task) else None)
    try:
        ready()
        await stop.wait()
        if changing is not None and _failed(changing):
            changing.result()
    finally:
        if changing is not None:
            changing.cancel()
        await host.stop()


def _failed(task: asyncio.Task[None]) -> bool:
    return task.done() and not task.cancelled() and task.exception() is not None


async def _take_changes(host: Host) -> None:
    """Carry out the changes of links that standard input tells of, as long as it does."""
    lines = asyncio.StreamReader()
    loop = asyncio.get_running_loop()
    await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(lines), sys.stdin)
    async for line in lines:
        try:
            answer = host.obey(line)
            if answer is not None:
                print(answer, flush=True)
        except HostError as error:
            log.error("%s", error)


def _end_with_it(hook: threading.ExceptHookArgs) -> None:
    """A thread that dies was there for something: whoever started us is to notice."""
    threading.__excepthook__(hook)
    os._exit(1)


def main(argv: Sequence[str] | None = None) -> int:
    """Host the switches a file describes."""
    parser = argparse.ArgumentParser(prog="switch.host", description="Host switches.")
    parser.add_argument("config", type=Path, help="a JSON list of switch settings")
    parser.add_argument("--dilation", type=float, default=1.0, metavar="D")
    parser.add_argument("--record", type=Path, metavar="FILE", help="what switches hold, over time")
    parser.add_argument("--record-every", type=float, default=0.05, metavar="SECONDS")
    parser.add_argument(
        "--arrival-times", type=int, metavar="FD", help="where cables' ends tell what is due"
    )
    parser.add_argument("--links-change", action="store_true", help="as standard input says")
    arguments = parser.parse_args(argv)
    logging.basicConfig(level=logging.INFO, format="%(message)s")
    threading.excepthook = _end_with_it
    record = (arguments.record, arguments.record_every) if arguments.record else None
    try:
        host = Host(
            read_config(arguments.config),
            dilation=arguments.dilation,
            record=record,
            arrival_times=arguments.arrival_times,
        )
        asyncio.run(
            run_until_signal(host, ready=host.say_ready, links_change=arguments.links_change)
        )
    except HostError as error:
        print(f"closlab: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
