"""BIRD, GoBGP and ExaBGP in hosts' places: how each is told its part, started, and started again.

What each is told lies in a folder of its own, with what it says. A daemon that dies is started
again, and says that it was restarted: its leaf keeps its routes meanwhile (RFC 4724). What it hears
BIRD writes into the host's kernel; the two others have no such part.
"""

from __future__ import annotations

import os
import subprocess
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import IO, ClassVar

from lab.engines.mininet.frr import as_number
from lab.engines.mininet.outside import ALIVE_S, HOLD_S, HOPS, Neighbour
from lab.machine.processes import stop
from lab.machine.supervisor import supervisor
from lab.scenario.topology import Speaks

GRACEFUL_SHUTDOWN = 65535, 0  # RFC 8326
_RESTART_S = 120  # that a leaf keeps routes
_AGAIN_S = 0.5  # until a daemon that died is started, and what it did not take is said, again


class Router:
    """One of them, of any kind: a kind says what it is started with."""

    environment: ClassVar[Mapping[str, str]] = MappingProxyType({})

    def __init__(self, neighbour: Neighbour, pid: int, folder: Path) -> None:
        self.neighbour = neighbour
        self.folder = folder / neighbour.host.name
        self.folder.mkdir(parents=True, exist_ok=True)
        self._pid = pid
        self._process: subprocess.Popen[bytes] | None = None
        self._saying: subprocess.Popen[bytes] | None = None
        self._to_say: list[list[str]] = []
        self._again_at = self._began = 0.0

    @property
    def name(self) -> str:
        """As it is told."""
        return f"{self.neighbour.settings.speaks.value} of {self.neighbour.host}"

    def start(self, *, is_first: bool = False) -> None:
        """Start it, at first or again."""
        for name, content in self.files():
            (self.folder / name).write_text(content)
        with (self.folder / "said").open("ab") as said:
            self._process = self._begin(self.words(is_first=is_first), said)
        (self.folder / "pid").write_text(f"{self._process.pid}\n")
        supervisor.know(self._process.pid, self.name)
        self._to_say, self._began = [*self.said_first()], time.monotonic()

    def tend(self) -> bool:
        """Start it again if it has died, which is told, and say what it has not heard yet."""
        assert self._process is not None
        if self._process.poll() is not None:
            if time.monotonic() < self._began + _AGAIN_S:
                return False
            self.start()
            return True
        if self._saying is not None and self._saying.poll() is not None:
            if self._saying.returncode == 0:
                self._to_say.pop(0)
            self._saying, self._again_at = None, time.monotonic() + _AGAIN_S
        elif self._to_say and self._saying is None and self._again_at < time.monotonic():
            self._saying = self._begin(self._to_say[0], subprocess.DEVNULL)
        return False

    def _begin(self, words: Sequence[str], said: IO[bytes] | int) -> subprocess.Popen[bytes]:
        return subprocess.Popen(
            ["mnexec", "-a", str(self._pid), *words],
            stdin=subprocess.DEVNULL,
            stdout=said,
            stderr=subprocess.STDOUT,
            env=os.environ | self.environment,
            start_new_session=True,  # Ctrl-C at the prompt is not meant for daemons
        )

    def kill(self) -> None:
        """Let it die as a defect of its own would have it."""
        assert self._process is not None
        self._process.kill()

    def close(self) -> None:
        """End it."""
        for process in (self._saying, self._process):
            if process is not None:
                stop(process)

    # --- of a kind --------------------------------------------------------------------------------

    def files(self) -> Iterator[tuple[str, str]]:
        """What it reads, by the names of files in its folder."""
        raise NotImplementedError

    def words(self, *, is_first: bool) -> Sequence[str]:
        """What starts it."""
        raise NotImplementedError

    def said_first(self) -> Iterator[list[str]]:
        """Commands that say to it what it does not read, until each was taken."""
        yield from ()

    def _at(self, name: str) -> str:
        return str((self.folder / name).absolute())


class Bird(Router):
    """BIRD 2; `drained.conf` is the same with GRACEFUL_SHUTDOWN, for `birdc configure`."""

    def words(self, *, is_first: bool) -> Sequence[str]:
        """What starts it."""
        again = () if is_first else ("-R",)
        return ["bird", "-f", "-c", self._at("bird.conf"), "-s", self._at("ctl"), *again]

    def files(self) -> Iterator[tuple[str, str]]:
        """What it reads."""
        yield "bird.conf", self._config("")
        yield "drained.conf", self._config(f"bgp_community.add({GRACEFUL_SHUTDOWN}); ")

    def _config(self, marked: str) -> str:
        each = self.neighbour
        (address, gateway), *_ = each.cable
        lines = [
            f"router id {address};",
            f'log "{self._at("log")}" all;',
            "protocol device {}",
        ]
        channels = []
        for version, (own, leafs) in zip((4, 6), each.cable, strict=False):
            family = f"ipv{version}"
            mine = (p for p in each.settings.networks if p.version == version)
            lines += [
                f"protocol kernel {{ {family} {{ export where source = RTS_BGP; }}; }}",
                f"protocol static near{version} {{ {family}; "
                f'route {leafs}/{leafs.max_prefixlen} via "{each.device}"; }}',
                f"protocol static mine{version} {{ {family}; "
                + "".join(f"route {prefix} unreachable; " for prefix in mine)
                + "}",
            ]
            export = (
                f'export filter {{ if proto = "mine{version}" then {{ {marked}accept; }} reject; }}'
            )
            channels.append(f"  {family} {{ import all; next hop address {own}; {export}; }};")
        return "\n".join(
            [
                *lines,
                "protocol bgp leaf {",
                f"  local {address} as {each.number};",
                f"  neighbor {gateway} as {as_number(each.leaf)};",
                f"  multihop {HOPS};",
                f"  hold time {HOLD_S}; keepalive time {ALIVE_S};",
                "  connect retry time 1; connect delay time 1; error wait time 1, 2;",
                f"  graceful restart on; graceful restart time {_RESTART_S};",
                *channels,
                "}",
                "",
            ]
        )


class GoBgp(Router):
    """GoBGP, which is told by its command what it has to tell."""

    def words(self, *, is_first: bool) -> Sequence[str]:
        """What starts it."""
        again = () if is_first else ("-r",)
        return [
            "gobgpd",
            "-f",
            self._at("gobgpd.toml"),
            "--pprof-disable",
            "--api-hosts=127.0.0.1:50051",
            *again,
        ]

    def files(self) -> Iterator[tuple[str, str]]:
        """What it reads."""
        each = self.neighbour
        (address, gateway), *_ = each.cable
        families = (
            f'[[neighbors.afi-safis]]\n[neighbors.afi-safis.config]\nafi-safi-name = "{family}"\n'
            "[neighbors.afi-safis.mp-graceful-restart.config]\nenabled = true\n"
            for family, _ in zip(("ipv4-unicast", "ipv6-unicast"), each.cable, strict=False)
        )
        yield (
            "gobgpd.toml",
            "".join(
                (
                    f'[global.config]\nas = {each.number}\nrouter-id = "{address}"\nport = -1\n',
                    f'[[neighbors]]\n[neighbors.config]\nneighbor-address = "{gateway}"\n',
                    f"peer-as = {as_number(each.leaf)}\n",
                    f"[neighbors.ebgp-multihop.config]\nenabled = true\nmultihop-ttl = {HOPS}\n",
                    f'[neighbors.transport.config]\nlocal-address = "{address}"\n',
                    f"[neighbors.timers.config]\nhold-time = {HOLD_S}\n",
                    f"keepalive-interval = {ALIVE_S}\nconnect-retry = 1\n",
                    "idle-hold-time-after-reset = 1\n",
                    "[neighbors.graceful-restart.config]\nenabled = true\n",
                    f"restart-time = {_RESTART_S}\n",
                    *families,
                )
            ),
        )

    def said_first(self) -> Iterator[list[str]]:
        """What is behind it: no file of its tells that."""
        each = self.neighbour
        for prefix in each.settings.networks:
            own, _ = each.cable[prefix.version == 6]
            family = ["-a", f"ipv{prefix.version}"]
            attributes = ["nexthop", str(own), "origin", "igp"]  # the others' origin, so all count
            yield ["gobgp", "global", "rib", "add", str(prefix), *attributes, *family]


class ExaBgp(Router):
    """ExaBGP, which writes down what it hears; SIGUSR1 has it read its configuration again."""

    environment = MappingProxyType(
        {"exabgp.daemon.user": "root", "exabgp.daemon.drop": "false", "exabgp.api.cli": "false"}
    )

    def words(self, *, is_first: bool) -> Sequence[str]:  # noqa: ARG002
        """What starts it, again as at first."""
        return ["exabgp", self._at("exabgp.conf")]

    def files(self) -> Iterator[tuple[str, str]]:
        """What it reads."""
        yield "exabgp.conf", self._config("")
        mark = ":".join(map(str, GRACEFUL_SHUTDOWN))
        yield "drained.conf", self._config(f" community [{mark}]")

    def _config(self, marked: str) -> str:
        each = self.neighbour
        (address, gateway), *_ = each.cable
        families = ("ipv4", "ipv6")[: len(each.cable)]
        routes = (
            f"    route {prefix} next-hop {each.cable[prefix.version == 6][0]}{marked};"
            for prefix in each.settings.networks
        )
        heard = (
            f"/usr/bin/sed -u -n -e w{self._at('heard')}"  # says nothing, and keeps its output open
        )
        return "\n".join(
            [
                "process heard {",
                f"  run {heard};",
                "  encoder json;",
                "}",
                f"neighbor {gateway} {{",
                f"  router-id {address}; local-address {address};",
                f"  local-as {each.number}; peer-as {as_number(each.leaf)};",
                f"  hold-time {HOLD_S}; outgoing-ttl {HOPS};",
                f"  capability {{ graceful-restart {_RESTART_S}; }}",
                f"  family {{ {' '.join(f'{family} unicast;' for family in families)} }}",
                "  static {",
                *routes,
                "  }",
                "  api { processes [ heard ]; neighbor-changes; receive { parsed; update; } }",
                "}",
                "",
            ]
        )


KINDS = {Speaks.BIRD: Bird, Speaks.GOBGP: GoBgp, Speaks.EXABGP: ExaBgp}
