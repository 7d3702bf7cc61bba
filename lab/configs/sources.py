"""Which file of a folder says what: switches' configurations of any system, FRR's, adapters'.

NAME.json, NAME/config_db.json      SONiC
NAME.eos, NAME/running-config       Arista EOS; NAME.cfg, if it looks like it
NAME.yaml, NAME/startup.yaml        Cumulus' NVUE; NAME.nv are `nv set` commands, which hold
                                    after a NAME.yaml if there is one
NAME.frr, NAME/frr.conf             FRR, of a switch that one of the others tells of
HOST.mlnx_qos, .cma_roce_tos, .ecn, .adapter    a host's adapters
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

from files import FileError, is_folder, read_text
from lab.configs.adapters import SUFFIXES, Adapter, read_adapter
from lab.configs.config_db import Switch, read_switch
from lab.configs.eos import is_eos, read_eos
from lab.configs.frr import Routing, read_frr
from lab.configs.lines import MAX_BYTES
from lab.configs.nvue import is_nvue, read_nvue

CONFIG = "config_db.json"
FOLDER_HAS = f"NAME.json or NAME/{CONFIG} of SONiC, NAME.eos of EOS, NAME.yaml of NVUE"


class Source(NamedTuple):
    """A switch's file, and how it is read."""

    path: Path
    read: Callable[[Path], Switch]


def sources(folder: Path) -> list[Source]:
    """All of a folder, SONiC's first."""
    if not is_folder(folder):
        return []
    sonic = [*sorted(folder.glob("*.json")), *sorted(folder.glob(f"*/{CONFIG}"))]
    return [
        *(Source(path, read_switch) for path in sonic),
        *(Source(path, lambda path: read_eos(path).switch()) for path in _eos(folder)),
        *(Source(path, lambda path: read_nvue(path, _beside(path)).switch())
          for path in _nvue(folder)),
    ]  # fmt: skip


def _eos(folder: Path) -> Iterator[Path]:
    yield from sorted(folder.glob("*.eos"))
    yield from sorted(folder.glob("*/running-config"))
    yield from (path for path in sorted(folder.glob("*.cfg")) if _looks(path, is_eos))


def _nvue(folder: Path) -> Iterator[Path]:
    yamls = [path for end in ("*.yaml", "*.yml") for path in sorted(folder.glob(end))]
    yield from (path for path in yamls if _looks(path, is_nvue))
    yield from sorted(folder.glob("*/startup.yaml"))
    stems = {path.stem for path in yamls}
    yield from (path for path in sorted(folder.glob("*.nv")) if path.stem not in stems)


def not_read(folder: Path) -> list[Path]:
    """Files that could be a switch's by their names, and do not look like it."""
    read = {source.path for source in sources(folder)}
    return [path for end in ("*.yaml", "*.yml", "*.cfg") for path in sorted(folder.glob(end))
            if path not in read]  # fmt: skip


def _beside(path: Path) -> Path | None:
    """The commands that hold after a file."""
    beside = path.with_suffix(".nv")
    return beside if beside != path and beside.is_file() else None


def _looks(path: Path, is_one: Callable[[str], bool]) -> bool:
    try:
        return is_one(read_text(path, MAX_BYTES))
    except FileError:
        return False


def routings(folder: Path) -> list[Routing]:
    """FRR's of a folder."""
    return [read_frr(path) for path in
            (*sorted(folder.glob("*.frr")), *sorted(folder.glob("*/frr.conf")))]  # fmt: skip


def beside(folder: Path) -> list[Path]:
    """What stands beside switches' files in a folder: cables, FRR's, adapters' settings."""
    kinds = (".lldp", ".frr", *SUFFIXES)
    return [path for kind in kinds for path in sorted(folder.glob(f"*{kind}"))]


def adapters(folder: Path) -> dict[str, Adapter]:
    """By host."""
    files: dict[str, list[Path]] = {}
    for suffix in SUFFIXES:
        for path in sorted(folder.glob(f"*{suffix}")):
            files.setdefault(path.name.removesuffix(suffix), []).append(path)
        for path in sorted(folder.glob(f"*/{suffix[1:]}")):
            files.setdefault(path.parent.name, []).append(path)
    return {host: read_adapter(host, paths) for host, paths in files.items()}
