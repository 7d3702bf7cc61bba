"""Hosts' adapters: what `mlnx_qos`, `cma_roce_tos` and the `ecn` tree of /sys say of them.

`mlnx_qos -i eth0` (Mellanox/mlnx-tools) prints whether DSCPs are trusted, which priority each
has, and which priorities are paused. `cma_roce_tos` prints the ToS of connections of rdma_cm, whose
upper six bits are the DSCP. `grep -r . /sys/class/net/eth0/ecn` prints a line a setting: whether
congestion is notified (`roce_np/enable/3`) and heeded (`roce_rp/enable/3`), and with which DSCP
(`roce_np/cnp_dscp`; NVIDIA's MLNX_OFED documentation, Explicit Congestion Notification). They are
the files HOST.mlnx_qos, HOST.cma_roce_tos and HOST.ecn, or one after the other HOST.adapter.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import field
from pathlib import Path

from files import shown
from lab.configs.lines import Said, number, text_of
from lab.errors import ScenarioError
from params.data import Data

TOS = "cma_roce_tos"  # in a finding's table; of an interface it is what `Nic.lines` names
SUFFIXES = (".mlnx_qos", ".cma_roce_tos", ".ecn", ".adapter")
_ASKED = re.compile(r"(?:\S*[#$] ?)?(?:sudo )?mlnx_qos\s.*-i\s*(\S+).*")
_PRIO = re.compile(r"prio:([0-7]) dscp:((?:\d{1,2},)+)")
_ECN = re.compile(r"(?:/sys/class/net/)?(?:([\w.@-]+)/)?ecn/roce_(np|rp)/([\w/]+?):(-?\d{1,18})")
_ROW = re.compile(r"(priority|enabled|buffer)((?:\s+\d+){8})")
# Rows of what says nothing that is asked here.
_IDLE = re.compile(
    r"DCBX mode:.*|dscp2prio mapping:|Receive buffer size.*|Cable len: \d+|PFC configuration:|"
    r"tc: \d.*|priority:\s+\d|[#$].*|\+.*"
)


class Nic(Data, frozen=False):
    """One interface of a host."""

    name: str
    file: Path
    trust: str | None = None
    priorities: dict[int, int] = field(default_factory=dict)  # by DSCP
    pfc: frozenset[int] | None = None
    tells: dict[int, bool] = field(default_factory=dict)  # of congestion, by priority
    heeds: dict[int, bool] = field(default_factory=dict)
    cnp_dscp: int | None = None
    lines: dict[str, tuple[Path, int]] = field(default_factory=dict)

    def said(self, what: str, file: Path, line: int) -> None:
        """Where something was said."""
        self.lines[what] = file, line


class Adapter(Data, frozen=False):
    """All interfaces of a host."""

    host: str
    files: list[Path]
    nics: dict[str, Nic]
    tos: int | None
    tos_file: tuple[Path, int] | None
    unread: list[str]

    @property
    def dscp(self) -> int | None:
        """Of connections' packets; None: not configured."""
        return None if self.tos is None else self.tos >> 2


def read_adapter(host: str, files: Iterable[Path]) -> Adapter:
    """What the files of a host say."""
    found = Adapter(host, sorted(files), {}, None, None, [])
    for path in found.files:
        _Reader(path, found).read()
    return found


class _Reader:
    """A file of a host's."""

    def __init__(self, path: Path, adapter: Adapter) -> None:
        self._adapter, self._path = adapter, path
        self._said = Said(path, "adapter")
        self._nic: Nic | None = None

    def _of(self, name: str) -> Nic:
        return self._adapter.nics.setdefault(name, Nic(name, self._path))

    def _here(self) -> Nic:
        """The interface that a row is about; one without a name, if the text names none."""
        self._nic = self._nic or self._of("")
        return self._nic

    def read(self) -> None:
        """All of its lines."""
        for at, line in enumerate(text_of(self._path).splitlines(), 1):
            text = line.strip()
            if text and not self._take(at, text):
                self._said.left(at, text)
        self._adapter.unread += self._said.unread

    def _take(self, at: int, text: str) -> bool:
        if asked := _ASKED.fullmatch(text):
            self._nic = self._of(asked[1])
        elif match := re.fullmatch(r"Priority trust state: (pcp|dscp)", text):
            self._here().trust = match[1]
            self._here().said("trust", self._path, at)
        elif match := _PRIO.fullmatch(text):
            for dscp in match[2].rstrip(",").split(","):
                self._here().priorities[self._number(at, text, dscp, 63)] = int(match[1])
            self._here().said("dscp2prio", self._path, at)
        elif match := _ROW.fullmatch(text):
            if match[1] == "enabled":
                flags = match[2].split()
                if not set(flags) <= {"0", "1"}:
                    return False
                self._here().pfc = frozenset(p for p, flag in enumerate(flags) if flag == "1")
                self._here().said("pfc", self._path, at)
        elif match := _ECN.fullmatch(text):
            return self._ecn(at, text, match)
        elif re.fullmatch(r"\d{1,3}", text):
            self._adapter.tos = self._number(at, text, text, 255)
            self._adapter.tos_file = self._path, at
        else:
            return _IDLE.fullmatch(text) is not None
        return True

    def _ecn(self, at: int, text: str, match: re.Match[str]) -> bool:
        nic = self._of(match[1] or "")
        what, _, priority = match[3].partition("/")
        if what == "enable" and priority in map(str, range(8)) and match[4] in ("0", "1"):
            of = nic.tells if match[2] == "np" else nic.heeds
            of[int(priority)] = match[4] == "1"
        elif (match[2], what) == ("np", "cnp_dscp"):
            nic.cnp_dscp = self._number(at, text, match[4], 63)
        else:
            return False  # DCQCN's own numbers, whose words the lab has not
        nic.said(f"{match[2]}/{what}", self._path, at)
        return True

    def _number(self, at: int, text: str, value: str, most: int) -> int:
        found = number(value, most)
        if found is None:
            raise ScenarioError(
                f"{shown(self._path)}:{at}: '{text[:60]}'", f"It is to be a number up to {most}."
            )
        return found
