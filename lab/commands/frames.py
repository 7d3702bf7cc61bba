"""``closlab frames``: what crosses the fabric, field by field, and single packets sent by hand.

    closlab frames                                    the kinds there are
    closlab frames write-only                         one of them
    closlab frames write-only --set BTH.psn=9         changed; the ICRC is wrong then, so add
                              --set BTH.icrc=auto     what scapy works out again
    closlab frames --pcap h1-leaf1.pcap               those of a capture

Sent is where an interface is: ``closlab enter h1 -- ./closlab frames cnp --send h1-eth0``.
"""

from __future__ import annotations

import difflib
import struct
import zlib
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.table import Table
from scapy.error import Scapy_Exception
from scapy.packet import Packet
from scapy.sendrecv import sendp
from scapy.utils import PcapReader, hexdump

from files import FileError, opened, shown
from lab.errors import RunError
from traffic.frames import FrameError
from traffic.samples import KINDS, change, dissect, sample

_MAX_BYTES = 1 << 40
_CAPTURE = "Give a .pcap or .pcapng file."


def command(
    kind: Annotated[str | None, typer.Argument(help="One of those listed without it.")] = None,
    changes: Annotated[
        list[str] | None, typer.Option("--set", metavar="LAYER.FIELD=VALUE", help="Change it.")
    ] = None,
    interface: Annotated[
        str | None, typer.Option("--send", metavar="INTERFACE", help="Send it there.")
    ] = None,
    count: Annotated[int, typer.Option(min=1, help="Send it so many times.")] = 1,
    file: Annotated[
        Path | None, typer.Option("--pcap", metavar="FILE", help="Show those of a capture.")
    ] = None,
    most: Annotated[int, typer.Option(min=1, help="So many of a capture.")] = 10,
) -> None:
    """Show and dissect the packets of the fabric, or send one."""
    console = Console()
    if file is not None:
        show_pcap(console, file, most)
    elif kind is None:
        list_kinds(console)
    else:
        packet = make(kind, changes or ())
        show(console, bytes(packet), kind)
        if interface is not None:
            send([packet] * count, interface)


def list_kinds(console: Console) -> None:
    """One line for each kind."""
    table = Table(box=None, show_header=False, padding=(0, 2, 0, 0))
    for name, kind in KINDS.items():
        table.add_row(name, kind.about)
    console.print(table)


def make(kind: str, changes: Iterable[str]) -> Packet:
    """A packet of a kind, with ``LAYER.FIELD=VALUE`` changes applied."""
    if kind not in KINDS:
        near = difflib.get_close_matches(kind, KINDS, n=1)
        hint = f"; did you mean '{near[0]}'?" if near else ""
        raise RunError(f"there is no kind '{kind}'{hint}", f"There are: {', '.join(KINDS)}")
    packet = sample(kind)
    for text in changes:
        place, separator, value = text.partition("=")
        if not separator:
            raise RunError(f"--set {text}: write it as LAYER.FIELD=VALUE, such as BTH.psn=9")
        try:
            change(packet, place, value)
        except FrameError as error:
            raise RunError(f"--set {text}: {error}") from None
    return packet


def show(console: Console, frame: bytes, title: str) -> None:
    """A frame field by field, and its bytes."""
    table = Table(box=None, show_header=False, padding=(0, 2, 0, 0), title=title)
    table.title_justify = "left"
    for field in dissect(frame):
        table.add_row(f"[bold]{field.layer}[/]", field.name, field.value)
    console.print(table)
    console.print(hexdump(frame, dump=True), highlight=False, markup=False)


def show_pcap(console: Console, path: Path, most: int) -> None:
    """The first frames of a capture."""
    for number, frame in enumerate(islice(_frames(path), most), 1):
        show(console, frame, f"{path.name}, frame {number}: {len(frame)} bytes")


def _frames(path: Path) -> Iterator[bytes]:
    try:
        with opened(path, _MAX_BYTES) as file, PcapReader(file) as reader:
            for packet in reader:
                yield bytes(packet.original)
    except FileError as error:
        raise RunError(str(error), _CAPTURE) from None
    except OSError as error:
        raise RunError(f"{shown(path)} cannot be read: {error.strerror or error}") from None
    except (Scapy_Exception, EOFError, ValueError, LookupError, struct.error, zlib.error) as error:
        raise RunError(f"{shown(path)} is no capture: {error}", _CAPTURE) from None
    except MemoryError:  # of a packet that says it is that long
        raise RunError(f"{shown(path)} is no capture: a packet fits no memory", _CAPTURE) from None


def send(packets: Sequence[Packet], interface: str) -> None:
    """Send packets as they are."""
    try:
        sendp(list(packets), iface=interface, verbose=False)
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise RunError(
            f"nothing can be sent by '{interface}': {reason}",
            "Step inside the running lab: closlab enter h1 -- ./closlab frames ... --send h1-eth0",
        ) from None
