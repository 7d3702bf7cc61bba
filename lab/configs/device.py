"""A SKU's folder, as SONiC's images have it for each piece of hardware: what a switch would run.

Its ports (hwsku.json, by the platform.json of the folder above; or port_config.ini) are all in use,
none has a neighbour, and templates (qos.json.j2, buffers.json.j2 or buffers_dynamic.json.j2) are
rendered for that: cables are as long as the SKU's default_cable. Then come the groups that
buffermgrd makes of pg_profile_lookup.ini. What the templates include (qos_config.j2,
buffers_config.j2) lies in files/build_templates of sonic-buildimage, above the folder or beside it,
or on a switch in /usr/share/sonic/templates.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from controller import LinkSpec
from controller.headroom import headroom
from files import FileError, is_file, is_folder, read_json, read_text, shown
from lab.configs import lookup, templates
from lab.configs.basis import Options, extra_ns, header_bytes
from lab.configs.config_db import switch_of
from lab.configs.fabric import Fabric, Place, delay_ns
from lab.configs.lookup import Row, read_rows, with_rows
from lab.errors import ScenarioError
from params.data import Data

_PORTS, _BREAKOUTS, _PLATFORM = "port_config.ini", "hwsku.json", "platform.json"
_QOS = "qos.json.j2"
_BUFFERS = "buffers.json.j2", "buffers_dynamic.json.j2"
_INCLUDED = "buffers_config.j2"
_COMMON = Path("files/build_templates"), Path("usr/share/sonic/templates"), Path()
_MAX_BYTES = 4_000_000
_MODE = re.compile(r"(\d{1,2})x(\d{1,6})(G?)(?:\[[\dG, ]*\])?(?:\((\d{1,2})\))?")
_USUAL_TITLES = ["name", "lanes", "alias", "index"]
_ROCE_PAYLOADS = 4096, 1024
_PORT_MTU = 9100
# Tables that a switch makes at its first start: nothing of theirs is missing in templates.
NOT_OF_TEMPLATES = ("PFC_WD",)


class Compared(Data):
    """A row, and what the lab's formula asks for at its speed and length; in bytes."""

    row: Row
    large: int  # for lossless packets of 4096 bytes of payload
    small: int  # of 1024
    cells: int | None  # the larger, where memory comes in a chip's cells

    @property
    def short(self) -> int:
        """By how much it is less than what is asked for."""
        return max(0, (self.large if self.cells is None else self.cells) - self.row.xoff)

    def content(self) -> dict[str, Any]:
        """As JSON has it."""
        return {
            "speed_mbps": self.row.speed_mbps, "metres": self.row.metres, "xoff": self.row.xoff,
            "xon": self.row.xon, "size": self.row.size, "needed_4096": self.large,
            "needed_1024": self.small, "needed_cells": self.cells, "short": self.short,
        }  # fmt: skip


class Device(Data):
    """What a folder says: a fabric of one switch, if its templates could be rendered, and rows."""

    fabric: Fabric | None
    tables: dict[str, Any]
    rows: list[Compared]
    not_rendered: str  # why not


def with_hosts(device: Device) -> Fabric:
    """The switch with a host at each port that is up."""
    if device.fabric is None:
        raise ScenarioError(
            f"what the switch would run is not known: {device.not_rendered}",
            "Name a SKU whose templates can be rendered; its rows: closlab check.",
        )
    fabric = device.fabric
    for name, switch in fabric.switches.items():
        for port in switch.ports.values():
            if port.is_up:
                fabric.hosts[f"at-{port.name}"] = [Place(name, port.name)]
    return fabric


def is_device(folder: Path) -> bool:
    """Whether a folder is a SKU's."""
    return is_folder(folder) and any(
        is_file(folder / name) for name in (lookup.FILE, _QOS, *_BUFFERS)
    )


def read_device(folder: Path, common: Path | None, role: str, options: Options) -> Device:
    """All that a folder says."""
    rows = read_rows(folder / lookup.FILE) if is_file(folder / lookup.FILE) else []
    compared = [compared_row(row, options) for row in rows]
    names = [name for name in (_QOS, *_BUFFERS) if is_file(folder / name)][:2]
    if names[:1] != [_QOS] or len(names) < 2:
        why = f"it has no {_QOS}, or none of {', '.join(_BUFFERS)}"
        return _rows_alone(folder, compared, why)
    place = _common(folder, common)
    if place is None:
        why = f"{_INCLUDED} is in none of the folders above; say where: --templates FOLDER"
        return _rows_alone(folder, compared, why)
    try:
        variables = _variables(folder, role)
        made = templates.rendered(folder, place, names, variables)
        tables = {name: variables[name] for name in ("DEVICE_METADATA", "PORT")} | made
        tables = with_rows(tables, rows)
        switch = switch_of(folder, tables)
    except ScenarioError as error:
        if not rows:
            raise
        return _rows_alone(folder, compared, error.message)
    return Device(Fabric(folder, {switch.name: switch}), tables, compared, "")


def _rows_alone(folder: Path, rows: list[Compared], why: str) -> Device:
    if not rows:
        raise ScenarioError(
            f"{shown(folder)}: {why}, and no {lookup.FILE}",
            "Name a SKU's folder of SONiC's, such as device/VENDOR/PLATFORM/SKU.",
        )
    return Device(None, {}, rows, why)


def _common(folder: Path, common: Path | None) -> Path | None:
    """Where what templates include is."""
    if common is not None:
        if not is_file(common / _INCLUDED):
            raise ScenarioError(
                f"{shown(common)} has no {_INCLUDED}",
                "Name files/build_templates of sonic-buildimage, or a switch's "
                "/usr/share/sonic/templates.",
            )
        return common
    above = folder.resolve()
    places = [up / one for up in (above, *above.parents) for one in _COMMON]
    return next((place for place in places if is_file(place / _INCLUDED)), None)


def _variables(folder: Path, role: str) -> dict[str, Any]:
    """What sonic-cfggen gives templates of a switch without neighbours."""
    try:
        kind = read_text(folder.parent / "platform_asic", 100).strip()
    except FileError:
        kind = ""
    name = re.sub(r"[^A-Za-z0-9._-]", "-", folder.resolve().name) or "switch"
    return {
        "DEVICE_METADATA": {"localhost": {"hostname": name, "hwsku": name, "type": role}},
        "PORT": _ports(folder),
        "asic_type": kind.partition("-")[0],
    }


def _ports(folder: Path) -> dict[str, Any]:
    """By hwsku.json and platform.json, which go before port_config.ini where both are whole."""
    try:
        if is_file(folder / _BREAKOUTS) and is_file(folder.parent / _PLATFORM):
            modes = read_json(folder / _BREAKOUTS, _MAX_BYTES)
            platform = read_json(folder.parent / _PLATFORM, _MAX_BYTES)
            try:
                return _cages(modes["interfaces"], platform["interfaces"])
            except (KeyError, TypeError, AttributeError, ValueError, ArithmeticError):
                if not is_file(folder / _PORTS):
                    raise ScenarioError(
                        f"{shown(folder / _BREAKOUTS)}: ports are not told as {_PLATFORM} has them",
                        "Each of 'interfaces' has a default_brkout_mode such as 4x25G[10G], and "
                        "lanes there.",
                    ) from None
        return _listed_ports(read_text(folder / _PORTS, _MAX_BYTES))
    except FileError as error:
        raise ScenarioError(
            str(error), f"A SKU has {_PORTS}, or {_BREAKOUTS} and above it {_PLATFORM}."
        ) from None


def _cages(modes: dict[str, Any], platform: dict[str, Any]) -> dict[str, Any]:
    """Ports of those cages that have a mode; what else hwsku.json names are ports of theirs."""
    found: dict[str, Any] = {}
    for name, cage in platform.items():
        if name in modes:
            mode = modes[name]["default_brkout_mode"]
            found |= _broken_out(name, cage["lanes"].split(","), mode)
    if not found:
        raise KeyError("interfaces")
    return found


def _listed_ports(text: str) -> dict[str, Any]:
    titles, found = _USUAL_TITLES, {}
    for line in text.splitlines():
        if line.startswith("#"):
            titles = line.strip("# ").split() if "name" in line else titles
            continue
        columns = dict(zip(titles, line.split(), strict=False))
        if len(columns) > 1 and "name" in columns:
            name = columns.pop("name")
            found[name] = {"alias": name, "admin_status": "up"} | columns
    return found


def _broken_out(name: str, lanes: list[str], mode: str) -> dict[str, Any]:
    """The ports that a cage becomes: 4x25G[10G], or 2x25G(2)+1x50G(2)."""
    base, taken, found = int(name.removeprefix("Ethernet")), 0, {}
    for part in mode.split("+"):
        match = _MODE.fullmatch(part.strip())
        if match is None:
            raise ValueError(mode)
        count, of = int(match[1]), int(match[4] or len(lanes))
        speed = int(match[2]) * (1000 if match[3] else 1)
        each = of // count
        for _ in range(count):
            if each < 1 or taken + each > len(lanes):
                raise ValueError(mode)
            port = f"Ethernet{base + taken}"
            found[port] = {"lanes": ",".join(lanes[taken : taken + each]), "alias": port,
                           "speed": str(speed), "admin_status": "up"}  # fmt: skip
            taken += each
    return found


def compared_row(row: Row, options: Options) -> Compared:
    """A row, and what the lab asks for at such a port."""
    link = LinkSpec(row.speed_mbps * 1_000_000, delay_ns(row.metres))

    def needed(payload: int, cell: int = 1) -> int:
        frame = payload + header_bytes()
        extra = extra_ns(row.speed_mbps, _PORT_MTU, frame, options)
        return headroom(link, frame, extra, cell)

    large, small = (needed(payload) for payload in _ROCE_PAYLOADS)
    cells = needed(_ROCE_PAYLOADS[0], options.cell) if options.cell > 1 else None
    return Compared(row, large, small, cells)
