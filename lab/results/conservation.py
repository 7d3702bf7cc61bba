"""Whether anything is missing at the end of a run: every frame, and every byte of it.

Switches and links keep books (switch/rt/books.h): what came in is out, dropped for a reason, or
held, by class. Here they are compared, line by line, with each other (what left one end of a cable
came to the other) and with what the same switches, hosts and programs counted elsewhere. A
difference is a defect of ours, whatever the scenario, and the run fails.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple

from lab.errors import RunError
from lab.results.outcome import NOTHING, Line, Outcome, SwitchBooks, Traffic
from topologies import Fabric, Node, NodeKind
from traffic.endpoint import counted_at

_MAX_NAMED = 8
_PAUSE = 8
CLASS_NAMES = *map(str, range(_PAUSE)), "pause", "other"
_BY_THE_PROGRAM = ("ingress", "egress")  # drops that it counts too, by better reasons
CORRUPTED = "cable_in_lost", "cable_out_lost"  # books of what a bad cable lost
_AT_THE_PORT = "port_down", "send_failed"  # drops behind the program
_BY_PORT = "send_failed", "no_such_port"  # reasons of what a port had taken


class _Key(NamedTuple):
    """What an account is of: what arrived, or was made there, as of a class."""

    class_: int
    made: bool

    def __str__(self) -> str:
        return f"class {CLASS_NAMES[self.class_]}{', made there' if self.made else ''}"


class Books:
    """Lines, added up."""

    def __init__(self, lines: Iterable[Line]) -> None:
        self._sums: dict[str, dict[int | str, dict[_Key, Traffic]]] = {}
        for book, class_, made, of, packets, size in lines:
            sums, key = self._sums.setdefault(book, {}).setdefault(of, {}), _Key(class_, made)
            sums[key] = sums.get(key, NOTHING) + Traffic(packets, size)

    def by_key(self, book: str) -> dict[_Key, Traffic]:
        """A book's sums, by whose account it is in."""
        return _added(self._sums.get(book, {}).values())

    def at(self, book: str, of: int | str) -> dict[_Key, Traffic]:
        """What a book says of a port, a reason or a class."""
        return self._sums.get(book, {}).get(of, {})

    def of(self, book: str) -> dict[int | str, Traffic]:
        """A book's sums by port, reason or class."""
        return {of: total(sums.values()) for of, sums in self._sums.get(book, {}).items()}

    def total(self, book: str, *, made: bool | None = None) -> Traffic:
        """A book's sum, of what arrived or was made alone if asked."""
        return total(sum_ for key, sum_ in self.by_key(book).items() if made in (None, key.made))


def total(amounts: Iterable[Traffic]) -> Traffic:
    """All of them together."""
    return sum(amounts, NOTHING)


def _added(parts: Iterable[Mapping[_Key, Traffic]]) -> dict[_Key, Traffic]:
    found: dict[_Key, Traffic] = {}
    for part in parts:
        for key, amount in part.items():
            found[key] = found.get(key, NOTHING) + amount
    return found


def _by_class(sums: Mapping[_Key, Traffic]) -> dict[int | None, Traffic]:
    found: dict[int | None, Traffic] = {}
    for key, amount in sums.items():
        found[key.class_] = found.get(key.class_, NOTHING) + amount
    return found


def differences(where: str, books: Books) -> Iterator[str]:
    """In + changed = left + dropped + held, in frames and bytes, for each class."""
    had, changed = books.by_key("in"), books.by_key("changed")
    ends = {book: books.by_key(book) for book in ("left", "dropped", "held")}
    for key in sorted({*had, *changed, *(key for end in ends.values() for key in end)}):
        before = had.get(key, NOTHING) + changed.get(key, NOTHING)
        after = [end.get(key, NOTHING) for end in ends.values()]
        if before != total(after):
            found = ", ".join(f"{said(end)} {book}" for book, end in zip(ends, after, strict=True))
            yield f"{where}, {key}: {said(before)} in, but {found}"


def said(amount: Traffic) -> str:
    """Frames and bytes."""
    return f"{amount.packets:,} frames of {amount.bytes:,} bytes"


def _unlike(where: str, what: str, one: Traffic, other: Traffic) -> Iterator[str]:
    if one != other:
        yield f"{where}: {said(one)} {what.format(said(other))}"


def in_a_switch(name: str, switch: SwitchBooks, books: Books) -> Iterator[str]:
    """What a switch's books say against themselves and its plain account."""
    yield from differences(name, books)
    lost = books.total("port_lost").packets
    plain = {
        "received": (switch.received, books.total("in", made=False).packets),
        "copied": (switch.copies, books.total("in", made=True).packets),
        "held": (switch.held, books.total("held").packets + books.total("port_waiting").packets),
        "sent": (
            switch.sent,
            books.total("left").packets - lost - books.total("port_waiting").packets,
        ),
        "dropped": (sum(switch.drops.values()), books.total("dropped").packets + lost),
    }
    reasons = books.of("dropped")
    for reason in {*reasons, *switch.drops} - {*_BY_PORT}:
        counted = switch.drops.get(str(reason), 0)
        plain[f"dropped ({reason})"] = (counted, reasons.get(reason, NOTHING).packets)
    for what, (counted, booked) in plain.items():
        if counted != booked:
            yield f"{name}: {counted:,} frames counted as {what}, but {booked:,} in its books"
    for book, port_book in (("in", "port_in"), ("left", "port_out")):
        into = books.total(book, made=False) if book == "in" else books.total(book)
        what = f"{'came in' if book == 'in' else 'left'}, but {{}} at its ports"
        yield from _unlike(name, what, into, books.total(port_book))


_Sums = Mapping[int | None, Traffic]  # by class; None: all, of who does not count by class


def _compared(where: str, sent: _Sums, received: _Sums) -> Iterator[tuple[str, Traffic, Traffic]]:
    """What is comparable of two ends, with what it is called."""
    if None in sent or None in received:
        yield where, total(sent.values()), total(received.values())
        return
    for class_, name in enumerate(CLASS_NAMES):
        yield (
            f"{where}, class {name}",
            sent.get(class_, NOTHING),
            received.get(class_, NOTHING),
        )


def _of_host(counted: Mapping[str, int], port: int, way: str) -> _Sums | None:
    """What a host counted at a port; scapy hosts do not.

    With what the port's link, if it tries again, sent or took besides.
    """
    if f"{way}_bytes" not in counted:
        return None
    packets, size = (
        counted_at(counted, port, f"{way}_{what}") + counted_at(counted, port, f"link_{way}_{what}")
        for what in ("packets", "bytes")
    )
    return {None: Traffic(packets, size)}


def _gone(books: Books, port: int) -> _Sums:
    """What left by a port into its link: handed to it, less what it or a bad cable kept or lost."""
    handed = _through_cable(books, "out", port, sign=1)
    stayed = total(books.of(book).get(port, NOTHING) for book in ("port_lost", "port_waiting"))
    return handed if stayed == NOTHING else {None: total(handed.values()).since(stayed)}


def _through_cable(books: Books, way: str, port: int, sign: int) -> _Sums:
    """What a port saw, as it was beyond a bad cable: with what that lost, without what it added.

    So with a link that tries again: numbers, answers, and frames that came or went again.
    """
    found = _by_class(books.at(f"port_{way}", port))
    ways = [f"{kind}_{way}" for kind in ("cable", "llr")]
    kinds = [(each, *book) for each in ways for book in (("lost", -1), ("held", -1), ("added", 1))]
    for kind, book, factor in ((kind, book, sign * factor) for kind, book, factor in kinds):
        for class_, amount in _by_class(books.at(f"{kind}_{book}", port)).items():
            found[class_] = found.get(class_, NOTHING) + amount.times(factor)
    return found


def in_links(fabric: Fabric, outcome: Outcome, books: Mapping[Node, Books]) -> Iterator[str]:
    """What the ends of links say against each other, or against the links' own books."""
    for link in fabric.links:
        a, b = (link.a, link.a_port), (link.b, link.b_port)
        for name, (near, out_port), (far, in_port) in ((link.up, a, b), (link.down, b, a)):
            sent = (
                _of_host(outcome.endpoints[near], out_port, "tx")
                if near.kind is NodeKind.HOST
                else _gone(books[near], out_port)
            )
            received = (
                _of_host(outcome.endpoints[far], in_port, "rx")
                if far.kind is NodeKind.HOST
                else _through_cable(books[far], "in", in_port, sign=-1)
            )
            if sent is None or received is None:
                continue
            if name in outcome.link_books:
                yield from _in_a_link(name, sent, Books(outcome.link_books[name]), received)
            elif outcome.is_settled:
                yield from _without_books(name, sent, received)


def _in_a_link(name: str, sent: _Sums, books: Books, received: _Sums) -> Iterator[str]:
    yield from differences(name, books)
    for end, book, what in (
        (sent, "in", "were sent into it, but {} in its books"),
        (received, "left", "came from it, but {} in its books"),
    ):
        for where, one, other in _compared(name, end, _by_class(books.by_key(book))):
            yield from _unlike(where, what, one, other)


def _without_books(name: str, sent: _Sums, received: _Sums) -> Iterator[str]:
    """What did not come is for `losses.py` to tell; what nobody sent is wrong."""
    for where, went, came in _compared(name, sent, received):
        if came.packets > went.packets or came.bytes > went.bytes:
            yield f"{where}: {said(came)} came, but only {said(went)} were sent"


def by_programs(fabric: Fabric, outcome: Outcome, all_books: Mapping[Node, Books]) -> Iterator[str]:
    """What the fabric program counted otherwise than the switches it ran on."""
    for node, books in all_books.items():
        counts = outcome.switches[node]
        dropped = sum(counts.dropped.values()) - sum(
            packets
            for reason, packets in outcome.books[node].drops.items()
            if reason not in _BY_THE_PROGRAM
        )
        ended = [
            (key, amount.packets)
            for reason in _BY_THE_PROGRAM
            for key, amount in books.at("dropped", reason).items()
        ]
        booked = sum(n for key, n in ended if not key.made and key.class_ != _PAUSE)
        # Pause frames are used up, or forbidden and counted; so are copies, if it is not a flood's
        # that finds a port dead.
        pauses = sum(n for key, n in ended if not key.made and key.class_ == _PAUSE)
        copies = sum(n for key, n in ended if key.made and key.class_ < _PAUSE)
        if not booked <= dropped <= booked + pauses + copies:
            yield (
                f"{node}: its program counted {dropped:,} packets that it dropped, but the switch "
                f"{booked:,}"
            )
        unsent = 0
        for port in fabric.ports(node):
            seen = counts.port(port)
            came = total(books.at("port_in", port).values())
            yield from _unlike(
                f"{node} port {port}", "came, but its program counted {}", came, seen.received
            )
            went = total(books.at("port_out", port).values()).packets
            counted = seen.sent.packets + seen.control_sent
            unsent += counted - went
            if went > counted:
                yield (
                    f"{node} port {port}: {went:,} frames left, but its program counted "
                    f"{counted:,} that it sent, pause frames and words of credits included"
                )
        refused = sum(books.of("dropped").get(why, NOTHING).packets for why in _AT_THE_PORT)
        if unsent != refused:
            yield (
                f"{node}: of what its program counted as sent {unsent:,} frames did not leave, but "
                f"{refused:,} were dropped at its ports"
            )


def violations(fabric: Fabric, outcome: Outcome) -> list[str]:
    """All that does not add up, in words."""
    if not outcome.books:
        return []  # of switches that keep none
    books = {node: Books(kept.lines) for node, kept in outcome.books.items()}
    found = [
        line
        for node, kept in outcome.books.items()
        for line in in_a_switch(node.name, kept, books[node])
    ]
    found += in_links(fabric, outcome, books)
    if outcome.link_books:  # all was read at one moment
        found += by_programs(fabric, outcome, books)
    return found


def check(fabric: Fabric, outcome: Outcome) -> None:
    """Fail if anything does not add up."""
    found = violations(fabric, outcome)
    if not found:
        return
    more = [f"and {len(found) - _MAX_NAMED:,} more"] if len(found) > _MAX_NAMED else []
    raise RunError(
        "frames are missing, or counted twice:\n  " + "\n  ".join([*found[:_MAX_NAMED], *more]),
        "closlab is wrong, and so is this run: nothing of it is kept. Please tell us, with the "
        "scenario and its seed.",
    )
