"""In-band telemetry: what packets carry of their way; see p4src/telemetry.p4 and p4src/ioam.p4."""

from __future__ import annotations

from enum import StrEnum

from pydantic import Field

from params.section import Section
from params.shares import Share
from params.units import Size


class Format(StrEnum):
    """How packets carry it."""

    INT = "int-md"
    IOAM = "ioam"


class Telemetry(Section):
    """In-band telemetry: some packets carry what every hop says of them."""

    share: Share = 0
    """The share of packets that do; what they carried is reported, and summed up in the result."""
    format: Format = Format.INT
    """How: by INT-MD v2.1 behind UDP, or by IOAM's trace (RFC 9197) in an IPv6 around them."""
    mtu: Size | None = Field(default=None, ge=64, le=0xFFFF)
    """The IP packet telemetry may not exceed: hops without room say so; without it all have."""
