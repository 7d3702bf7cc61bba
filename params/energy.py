"""Energy: which published figures a run's joules are worked out from; see docs/energy.md.

What is published as watts of a device at a rate is taken as so many watts for each Gb/s of that
rate: ports of another rate have their share.
"""

from __future__ import annotations

from enum import StrEnum
from typing import NamedTuple

from pydantic import Field

from params.section import Section

_NVIDIA = "docs.nvidia.com/networking/display/"
_BENCH = "github.com/nsg-ethz/NetPowerBench, "
_HUNDRED = 100  # Gb/s of a port that was measured


class Module(NamedTuple):
    """What is plugged into a port: whether or not anything is sent, it takes the same."""

    watts: float
    gbps: int
    source: str

    def idle_w(self, gbps: float) -> float:
        """What one for such a rate takes."""
        return self.watts * gbps / self.gbps


class Optics(StrEnum):
    """What links' ends are."""

    DR4 = "dr4"
    FR4 = "fr4"
    LPO = "lpo"
    DAC = "dac"

    @property
    def module(self) -> Module:
        """Its figures."""
        return _MODULES[self]


_MODULES = {
    Optics.DR4: Module(
        16, 800, f"{_NVIDIA}800gmms4x00ns/specifications: two DR4 in a module, typical"
    ),
    Optics.FR4: Module(
        5.358, 400, f"{_BENCH}aristaDCS-7280CR3K-32D4, QSFP-DD FR4: P_TRX, measured"
    ),
    Optics.LPO: Module(
        6.5, 800, "gazettabyte.com/adtran-breaks-the-1w-barrier: first modules 5 to 8 W"
    ),
    Optics.DAC: Module(
        0.1, 800, f"{_NVIDIA}mcp4y10nxxx2x400pub/specifications: passive copper, at most"
    ),
}


class Chassis(NamedTuple):
    """A switch: what it takes without ports, for each port that is up, and for what passes one."""

    base_w: float
    gbps: int  # of all its ports together
    port_w: float  # at 100 Gb/s, without what is plugged in
    bit_j: float  # in or out
    packet_j: float
    source: str

    def idle_w(self, gbps: float) -> float:
        """What a port of such a rate takes, with its share of all that ports share."""
        return self.base_w * gbps / self.gbps + self.port_w * gbps / _HUNDRED


class Switch(StrEnum):
    """Whose figures switches have."""

    CISCO_8201 = "cisco-8201"
    ARISTA_7280 = "arista-7280"
    NEXUS_9336 = "nexus-9336"
    NCS_55A1 = "ncs-55a1"

    @property
    def chassis(self) -> Chassis:
        """Its figures."""
        return _SWITCHES[self]


_SWITCHES = {
    Switch.CISCO_8201: Chassis(
        253.85, 12_800, 0.9353, 3.200e-12, 13.36e-9, f"{_BENCH}cisco8201-32FH: 32 of 400 Gb/s"
    ),
    Switch.ARISTA_7280: Chassis(
        266.75, 4_800, 0.6896, 12.15e-12, 9.336e-9, f"{_BENCH}aristaDCS-7280CR3K-32D4: 32 of 100, 4"
        " of 400 Gb/s",
    ),
    Switch.NEXUS_9336: Chassis(
        284.97, 3_600, 1.9034, 11.35e-12, 15.24e-9, f"{_BENCH}ciscoNexus9336-FX2: 36 of 100 Gb/s"
    ),
    Switch.NCS_55A1: Chassis(
        328.44, 2_400, 0.3268, 22.37e-12, 58.21e-9, f"{_BENCH}ciscoNCS55A1-24H: 24 of 100 Gb/s"
    ),
}  # fmt: skip

# docs.nvidia.com/networking/display/connectx5enocp2/specifications: typical, passive cables
_CONNECTX_5_W = 12.95


class EnergyModel(Section):
    """By which published figures joules are worked out; nothing that happens depends on it."""

    optics: Optics = Optics.DR4
    """What is plugged into ports: optics of four lanes over 500 m (dr4) or 2 km (fr4), linear
    ones without a signal processor (lpo), or copper cables (dac)."""
    fabric_optics: Optics | None = None
    """The same for links between switches, if it differs."""
    switch: Switch = Switch.CISCO_8201
    """The measured switch whose figures all switches have, each port its share."""
    adapter_w: float = Field(default=_CONNECTX_5_W, ge=0, le=1000)
    """What an adapter takes, all its ports together, whether or not it sends."""
