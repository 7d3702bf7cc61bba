"""What the kernel would show of a host's adapter, for programs that look there (UCX).

    /sys/class/infiniband/closlab0         what it is, its addresses, its counters
    /sys/class/infiniband_verbs/uverbs0
    /dev/infiniband/uverbs0                a device that can be opened

Files lie in a folder, which a program that is started on a host finds at these places: mounts of
its own, beside all that the machine has there. What is known only when the adapter is opened, its
addresses, and what it counts are written by the adapter itself (traffic/verbs/shown.c).

Hosts of a fabric are one machine, and what asks for that (UCX, Open MPI) would send through its
memory. So each has an identity of its own, where the kernel tells when it was booted.
"""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from tempfile import TemporaryDirectory

from traffic.verbs import VERBS_COUNTERS

__all__ = ["counted", "found_by", "lay_out"]

_ADAPTER = {
    "node_type": "1: CA",
    "fw_ver": "closlab",
    "hca_type": "closlab",
    "board_id": "closlab",
    "ports/1/state": "4: ACTIVE",
    "ports/1/phys_state": "5: LinkUp",
    "ports/1/link_layer": "Ethernet",
    "ports/1/lid": "0x0",
    "ports/1/sm_lid": "0x0",
    "ports/1/pkeys/0": "0xffff",
}
_VERBS = {"uverbs0/ibdev": "closlab0", "uverbs0/abi_version": "1", "abi_version": "6"}
_WHERE = Path("infiniband/closlab0")
_MOUNTED = """\
held="$0/held"
mount --rbind /sys "$held/sys" && mount --rbind /dev "$held/dev" &&
mount -t tmpfs none /sys/class && mount -t tmpfs none /dev || exit
for kind in infiniband infiniband_verbs; do
    mkdir "/sys/class/$kind" && mount --bind "$0/$kind" "/sys/class/$kind" || exit
done
mkdir /dev/infiniband && touch /dev/infiniband/uverbs0 &&
mount --bind "$held/dev/null" /dev/infiniband/uverbs0 || exit
ln -s "$held"/sys/class/* /sys/class 2>/dev/null
ln -s "$held"/dev/* /dev 2>/dev/null
mount --bind "$0/boot_id" /proc/sys/kernel/random/boot_id || exit
exec "$@"
"""


def lay_out(folder: Path, gbps: float) -> None:
    """Make the files of an adapter, if they are not there."""
    if folder.is_dir():
        return
    folder.parent.mkdir(parents=True, exist_ok=True)
    with TemporaryDirectory(dir=folder.parent, prefix=".") as name:
        made = Path(name) / folder.name
        _fill(made, gbps)
        with suppress(OSError):  # somebody else was quicker
            made.rename(folder)


def _fill(folder: Path, gbps: float) -> None:
    for place in ("held/sys", "held/dev", _WHERE / "ports/1/gids"):
        (folder / place).mkdir(parents=True)
    for kind in ("types", "ndevs"):
        (folder / _WHERE / "ports/1/gid_attrs" / kind).mkdir(parents=True)
    rate = {"ports/1/rate": f"{gbps:g} Gb/sec (4X)"}
    for name, text in {**_ADAPTER, **rate}.items():
        _write(folder / _WHERE / name, text)
    for name, text in _VERBS.items():
        _write(folder / "infiniband_verbs" / name, text)
    for kind, name in VERBS_COUNTERS:
        _write(folder / _WHERE / "ports/1" / kind / name, "0")
    _write(folder / "boot_id", str(uuid.uuid4()))


def _write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"{text}\n")


def counted(folder: Path) -> dict[str, dict[str, int]]:
    """By host and name, what the adapters in a folder say that they have counted."""
    found = {}
    for adapter in sorted(folder.glob("[!.]*")):
        port, mine = adapter / _WHERE / "ports/1", {}
        for kind, name in VERBS_COUNTERS:
            with suppress(OSError, ValueError):  # its lab has just ended
                mine[name] = int((port / kind / name).read_text())
        found[adapter.name] = mine
    return found


def found_by(words: Sequence[str], folder: Path) -> tuple[str, ...]:
    """A command that finds the files of a folder; on a host, in a mount namespace of its own."""
    return ("sh", "-c", _MOUNTED, str(folder), *words)
