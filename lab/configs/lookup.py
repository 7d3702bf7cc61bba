"""`pg_profile_lookup.ini`: the headroom that a SKU's buffermgrd gives a port, by speed and cable.

A row has a speed in Mb/s, a cable's length, and a profile's fields: size, xon, xoff, threshold, and
xon_offset where the chip has one. buffermgrd makes `pg_lossless_SPEED_CABLE_profile` of the row of
a port's own speed and length, and gives it to the groups of all priorities that the port pauses;
where there is no such row it gives nothing (sonic-swss, cfgmgr/buffermgr.cpp).
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from files import FileError, read_text, shown
from lab.configs.findings import grounded, replace
from lab.errors import ScenarioError
from params.data import Data

FILE = "pg_profile_lookup.ini"
_MAX_BYTES = 1_000_000
_FIELDS = "size", "xon", "xoff", "threshold", "xon_offset"
_LENGTH = re.compile(r"(\d{1,7}(?:\.\d{1,3})?)m")
_POOL = "ingress_lossless_pool"  # buffermgrd's own


class Row(Data):
    """One speed and one length; sizes in bytes."""

    speed_mbps: int
    cable: str
    metres: float
    size: int
    xon: int
    xoff: int
    threshold: int
    xon_offset: int | None

    @property
    def name(self) -> str:
        """Of the profile that buffermgrd makes of it."""
        return f"pg_lossless_{self.speed_mbps}_{self.cable}_profile"

    def profile(self, mode: str) -> dict[str, str]:
        """Its fields as config_db has them; pools of mode static have thresholds in bytes."""
        fields = {
            "pool": _POOL, "size": self.size, "xon": self.xon, "xoff": self.xoff,
            "static_th" if mode == "static" else "dynamic_th": self.threshold,
        }  # fmt: skip
        if self.xon_offset is not None:
            fields["xon_offset"] = self.xon_offset
        return {name: str(value) for name, value in fields.items()}


def read_rows(path: Path) -> list[Row]:
    """What a file says."""
    try:
        text = read_text(path, _MAX_BYTES)
    except FileError as error:
        raise ScenarioError(str(error), f"It is to be a SKU's whole {FILE}.") from None
    rows: dict[tuple[int, str], Row] = {}
    for number, line in enumerate(text.splitlines(), 1):
        words = line.partition("#")[0].split()
        if not words:
            continue
        row = _row(words)
        if row is None:
            raise ScenarioError(
                f"{shown(path)}:{number}: {' '.join(words)[:80]!a} is no row",
                "A row has a speed in Mb/s, a length such as 40m, then size, xon, xoff, threshold, "
                "and xon_offset if there is one.",
            )
        rows[row.speed_mbps, row.cable] = row
    return list(rows.values())


def _row(words: list[str]) -> Row | None:
    length = _LENGTH.fullmatch(words[1]) if 6 <= len(words) <= 7 else None
    if length is None or not all(re.fullmatch(r"-?\d{1,10}", w) for w in (words[0], *words[2:])):
        return None
    speed, *numbers = map(int, (words[0], *words[2:]))
    fields = dict(zip(_FIELDS, numbers, strict=False))
    sizes = (fields.get(name, 0) for name in _FIELDS if name != "threshold")
    if not 0 < speed <= 10_000_000 or min(sizes) < 0 or float(length[1]) > 200_000:
        return None
    return Row(
        speed, words[1], float(length[1]), fields["size"], fields["xon"], fields["xoff"],
        fields["threshold"], fields.get("xon_offset"),
    )  # fmt: skip


def with_rows(content: Mapping[str, Any], rows: list[Row]) -> dict[str, Any]:
    """A configuration with the groups that buffermgrd makes; what is written down stays."""
    known = {(row.speed_mbps, row.metres): row for row in rows}
    lengths = {
        port: length for entry in _table(content, "CABLE_LENGTH").values() for port, length in
        entry.items()
    }  # fmt: skip
    mode = str(_table(content, "BUFFER_POOL").get(_POOL, {}).get("mode", "dynamic"))
    paused = {
        port: str(entry.get("pfc_enable") or "")
        for ports, entry in _table(content, "PORT_QOS_MAP").items()
        for port in ports.split(",")
    }
    configured = {
        (port, group)
        for key, entry in _table(content, "BUFFER_PG").items()
        for ports, _, groups in (key.rpartition("|"),)
        for port in ports.split(",")
        for group in _groups(groups)
        if entry.get("profile")
    }
    ops = []
    for port, fields in _table(content, "PORT").items():
        length = _LENGTH.fullmatch(str(lengths.get(port, "")))
        speed = str(fields.get("speed", ""))
        row = known.get((int(speed), float(length[1]))) if length and speed.isdigit() else None
        if row is None:
            continue
        for group in paused.get(port, "").split(","):
            if group.strip() and (port, group.strip()) not in configured:
                ops += [replace("BUFFER_PROFILE", row.name, name, value)
                        for name, value in row.profile(mode).items()]  # fmt: skip
                ops.append(replace("BUFFER_PG", f"{port}|{group.strip()}", "profile", row.name))
    return grounded(content, ops)[1]


def _table(content: Mapping[str, Any], name: str) -> dict[str, dict[str, Any]]:
    table = content.get(name)
    if not isinstance(table, dict):
        return {}  # the reader of tables says so
    return {key: entry for key, entry in table.items() if isinstance(entry, dict)}


def _groups(text: str) -> list[str]:
    first, _, last = text.partition("-")
    if not re.fullmatch("[0-7]", first) or not re.fullmatch("[0-7]?", last):
        return []
    return [str(group) for group in range(int(first), int(last or first) + 1)]
