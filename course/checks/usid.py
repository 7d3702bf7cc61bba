"""Lesson 11: a packet whose destination address is the list of switches it is to pass."""

from __future__ import annotations

from ipaddress import IPv6Address

from course.bench import Bench, Switch
from course.check import check
from course.verdict import Wrong

PROGRAM = "usid.p4"
_BLOCK = "fcbb:bb00"
_INNER = "2001:db8:2::7"
_PORTS = {"0100": 1, "0200": 2, "0300": 3, "0400": 4}
_HOSTS_PORT = 9
_MIN = 14 + 40  # bytes of Ethernet and IPv6


def _number(address: str) -> int:
    return int(IPv6Address(address))


def _ip(dst: str, payload: bytes, *, next_header: int = 59, hops: int = 64) -> bytes:
    head = (6 << 28 | 7).to_bytes(4, "big") + len(payload).to_bytes(2, "big")
    src = IPv6Address("2001:db8:1::1").packed
    return head + bytes((next_header, hops)) + src + IPv6Address(dst).packed + payload


_INSIDE = _ip(_INNER, b"all-reduce", hops=33)


def _frame(dst: str, *, hops: int = 64, inside: bytes = _INSIDE, next_header: int = 41) -> bytes:
    macs = bytes.fromhex("0200000000010200000000aa86dd")
    return macs + _ip(dst, inside, next_header=next_header, hops=hops)


def _switch(bench: Bench, own: str) -> Switch:
    """One of the fabric's, with routes to all uSIDs and to hosts."""
    lines = [f"add own hdr.outer.dst_addr:{_number(f'{_BLOCK}:{own}::'):#x}/48 NoAction()"]
    for usid, port in _PORTS.items():
        key = f"{_number(f'{_BLOCK}:{usid}::'):#x}/48"
        lines.append(f"add routes hdr.outer.dst_addr:{key} forward(port:{port})")
    lines.append("add routes hdr.outer.dst_addr:0x0/0 forward(port:8)")
    hosts = f"{_number('2001:db8:2::'):#x}/48"
    lines.append(f"add routes hdr.outer.dst_addr:{hosts} forward(port:{_HOSTS_PORT})")
    return bench.switch(PROGRAM, "\n".join(lines))


def _goes(switch: Switch, frame: bytes, what: str, where: str) -> tuple[int, bytes]:
    left = switch.send(100, frame)
    if not left:
        raise Wrong(f"{what} was dropped", f"{PROGRAM}: {where}")
    return left[0]


def _dst(frame: bytes) -> str:
    if len(frame) < _MIN:
        raise Wrong(
            f"what leaves has {len(frame)} bytes; Ethernet and IPv6 alone have {_MIN}",
            f"{PROGRAM}: which headers are emitted, and which of them are there?",
        )
    return str(IPv6Address(frame[38:54]))


@check("Who is not named first passes the packet on as it is", 2)
def transit(bench: Bench) -> None:
    """By the longest prefix; one hop less."""
    switch = _switch(bench, "0100")
    carrier = f"{_BLOCK}:0200:0100::"
    port, frame = _goes(switch, _frame(carrier), f"a packet for {carrier}", "apply (TODO 3)")
    if _dst(frame) != str(IPv6Address(carrier)):
        raise Wrong(
            f"the switch 0100 made {_dst(frame)} of {carrier}: it is named, but not first",
            f"{PROGRAM}: apply (TODO 1): who is to shift?",
        )
    if port != _PORTS["0200"]:
        raise Wrong(
            f"a packet for {carrier} left by port {port}; the route for 0200 says {_PORTS['0200']}",
            f"{PROGRAM}: apply (TODO 3): are the routes asked?",
        )
    if frame[21] != 63:
        raise Wrong(
            f"the hop limit was 64 and is {frame[21]}",
            f"{PROGRAM}: forward (TODO 3): one less a hop",
        )


@check("Who is named first shifts its name out, and asks for the next", 4)
def shifts(bench: Bench) -> None:
    """The block stays, the rest moves up by 16 bits."""
    for named, then, port in (
        ("0100:0200:0300::", "0200:0300::", 2),
        ("0100:0300::", "0300::", 3),
        ("0100:0100:0400:0200:0300:0400", "0100:0400:0200:0300:0400:0", 1),
        ("0100:0:0400::", None, 0),
    ):
        carrier = f"{_BLOCK}:{named}"
        switch = _switch(bench, "0100")
        if then is None:
            left = switch.send(100, _frame(carrier))
            if left and _dst(left[0][1]) == _INNER:
                raise Wrong(
                    f"{carrier} has a uSID 0 in its middle, and was taken for the end of the list",
                    f"{PROGRAM}: apply (TODO 2): the end is where nothing follows",
                )
            continue
        found_port, frame = _goes(
            switch, _frame(carrier), f"a packet for {carrier}", "apply (TODO 1)"
        )
        wanted = str(IPv6Address(f"{_BLOCK}:{then}"))
        if _dst(frame) != wanted:
            raise Wrong(
                f"of {carrier} the switch 0100 made {_dst(frame)}; it should be {wanted}",
                f"{PROGRAM}: shift (TODO 1): which bits stay, which move, and what follows them?",
            )
        if found_port != port:
            raise Wrong(
                f"a packet that is for {wanted} now left by port {found_port}, not {port}",
                f"{PROGRAM}: apply (TODO 1 and 3): what is looked up, and when?",
            )
        if frame[54:] != _INSIDE:
            raise Wrong("what is inside was changed", f"{PROGRAM}: shift (TODO 1)")


@check("The last on the list takes the packet out and sends it on", 3)
def ends(bench: Bench) -> None:
    """By its own address and hop limit."""
    switch = _switch(bench, "0300")
    carrier = f"{_BLOCK}:0300::"
    where = "apply (TODO 2)"
    port, frame = _goes(switch, _frame(carrier), f"a packet for {carrier}, the last,", where)
    if len(frame) != 14 + len(_INSIDE) or frame[54:] != _INSIDE[40:]:
        raise Wrong(
            f"what leaves has {len(frame)} bytes; the packet inside and Ethernet have "
            f"{14 + len(_INSIDE)}",
            f"{PROGRAM}: decapsulate (TODO 2): which of the two headers goes?",
        )
    if _dst(frame) != _INNER or port != _HOSTS_PORT:
        raise Wrong(
            f"what was inside is for {_INNER}, by port {_HOSTS_PORT}; it went to {_dst(frame)} by "
            f"port {port}",
            f"{PROGRAM}: {where}: by which address is the route found?",
        )
    if frame[21] != 32:
        raise Wrong(
            f"what was inside had a hop limit of 33, and has {frame[21]}",
            f"{PROGRAM}: {where}: whose hop limit counts now?",
        )
    if switch.send(100, _frame(carrier, inside=b"nothing", next_header=59)):
        raise Wrong(
            "a packet with nothing inside, at the end of its list, was sent on",
            f"{PROGRAM}: {where}: was there such a header?",
        )


@check("No hop left ends it")
def dies(bench: Bench) -> None:
    """Whoever is named."""
    switch = _switch(bench, "0100")
    for named in ("0100:0200::", "0200:0300::"):
        if switch.send(100, _frame(f"{_BLOCK}:{named}", hops=1)):
            raise Wrong("a packet with hop limit 1 went on", f"{PROGRAM}: apply (TODO 4)")
    if switch.send(100, _frame(f"{_BLOCK}:0200::")[:12].ljust(60, b"\0")):
        raise Wrong("a frame that is not IPv6 went on", f"{PROGRAM}: apply (TODO 4)")


@check("A list of switches is a way through the fabric", 2)
def a_way(bench: Bench) -> None:
    """Four switches, in the order that the sender chose."""
    switches = {port: _switch(bench, usid) for usid, port in _PORTS.items()}
    for way in ((1, 2, 3, 4), (3, 1, 4, 2), (4, 4, 1)):
        names = [next(u for u, p in _PORTS.items() if p == port) for port in way]
        frame, at = _frame(f"{_BLOCK}:{':'.join(names)}::"), way[0]
        passed: list[int] = []
        while at in switches and len(passed) <= len(way):
            passed.append(at)
            at, frame = _goes(
                switches[at], frame, f"a packet by {', '.join(names)}", "apply (TODO 1)"
            )
        if tuple(passed) != way or at != _HOSTS_PORT or frame[54:] != _INSIDE[40:]:
            raise Wrong(
                f"a packet that names {', '.join(names)} passed {passed}, and came out by port {at}",
                f"{PROGRAM}: apply (TODO 1 and 2)",
            )
