"""What programs of verbs did, written as a workload: a schedule in GOAL (`traffic.traces.goal`).

Each host's adapter writes lines (traffic/verbs/record.c). A program is taken for one that goes on
from request to request: it posts each so long after the last that it posted, had answered or was
sent before, and not before any of these. That a READ is asked for is a message of one byte. What
programs on one host send each other does not cross the fabric, and is left out. A datagram may be
lost, so nobody is taken to have waited for one.
"""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Iterator, Sequence
from dataclasses import field
from pathlib import Path

from lab.errors import LabError
from params.data import Data
from params.quantity import size

__all__ = ["write_recorded"]

_FETCHES = {"4", "5", "6"}  # READ and atomic operations, as verbs number them
_ASKS_BYTES = 1


class _End(Data):
    """Of a queue pair: a host, and the number there."""

    host: str
    number: str


class _Pair(Data, frozen=False):
    """A queue pair of one program while it is connected."""

    here: _End
    there: _End | None  # none: of datagrams
    nth: int = 0  # of those between the same ends
    tags: dict[str, int] = field(default_factory=dict)  # by peer


class _Request(Data, frozen=False):
    """What was posted, and carried out."""

    posted_ns: int
    pair: _Pair
    peer: str
    kind: str
    bytes: int
    label: str = ""  # of its end in the schedule


class _Event(Data):
    """What happened to a program."""

    ns: int
    order: int  # of those at one time: what ends before what is posted
    what: _Request | _Pair  # a request posted (1) or over (0); a pair on which a message came (0)


class _Program(Data, frozen=False):
    """A process, or one time that it had the device open."""

    host: str
    events: list[_Event] = field(default_factory=list)


def write_recorded(folder: Path, hosts: Sequence[str], dilation: float, to: Path) -> str:
    """Write what is in a folder with one of each host; what there is to say of it."""
    programs = [*_programs(folder, hosts)]
    requests = [
        event.what for program in programs for event in program.events
        if isinstance(event.what, _Request) and event.order
    ]  # fmt: skip
    if not requests:
        return f"Nothing is written to {to}: no program sent another host anything."
    lines = _Schedule(programs, hosts, dilation).lines(min(one.posted_ns for one in requests))
    try:
        to.write_text("\n".join(lines) + "\n")
    except OSError as error:
        raise LabError(f"{to} cannot be written: {error.strerror}") from None
    moved = sum(request.bytes for request in requests)
    return (
        f"Recorded {len(requests):,} requests, {size(moved)}: "
        f"--set 'traffic={{kind: goal, file: {to}}}' has the simulator run them, "
        f"`closlab import {to}` on a fabric of its own."
    )


# --- read -----------------------------------------------------------------------------------------


def _programs(folder: Path, hosts: Sequence[str]) -> Iterator[_Program]:
    """Of all hosts' files; a last line that was not finished is left out."""
    files = [
        (host, [line.split() for line in path.read_text().splitlines(keepends=True)
                if line.endswith("\n")])
        for host in hosts for path in sorted((folder / host).glob("*"))
    ]  # fmt: skip
    host_of = {gid: host for host, lines in files for line in lines[:1] for gid in line[1:]}
    met: dict[tuple[_End, _End], int] = defaultdict(int)
    for host, lines in files:
        yield _program(host, lines, host_of, met)


def _program(
    host: str,
    lines: Sequence[Sequence[str]],
    host_of: dict[str, str],
    met: dict[tuple[_End, _End], int],
) -> _Program:
    program = _Program(host)
    pairs: dict[str, _Pair] = {}
    for what, *words in lines:
        if what == "pair":
            _, number, gid, other = words
            here, there = _End(host, number), _End(host_of.get(gid, ""), other)
            pairs[number] = _Pair(here, there, met[here, there])
            met[here, there] += 1
        elif what == "came":
            program.events.append(_Event(int(words[0]), 0, pairs[words[1]]))
        elif what == "done":
            ns, number, posted_ns, kind, length, is_completed, gid = words
            peer = host_of.get(gid, "")
            if peer in ("", host):
                continue
            pair = pairs.setdefault(number, _Pair(_End(host, number), None))
            request = _Request(int(posted_ns), pair, peer, kind, max(1, int(length)))
            program.events.append(_Event(request.posted_ns, 1, request))
            if is_completed != "0":
                program.events.append(_Event(int(ns), 0, request))
    program.events.sort(key=lambda event: (event.ns, event.order))
    return program


# --- written --------------------------------------------------------------------------------------


class _Schedule:
    """The deeds of each host, as lines of GOAL."""

    def __init__(self, programs: Sequence[_Program], hosts: Sequence[str], dilation: float) -> None:
        self._programs = programs
        self._ranks = {host: rank for rank, host in enumerate(hosts)}
        self._dilation = dilation
        self._deeds: dict[str, list[str]] = {host: [] for host in hosts}
        self._count = 0
        self._tags = 0
        # By who asks, who is asked, and the how manieth so: what came, in its order.
        self._came: dict[tuple[_End, _End | None, int], deque[str]] = defaultdict(deque)

    def lines(self, first_ns: int) -> list[str]:
        """The whole schedule, from the first request on."""
        for program in self._programs:  # receives first: a deed waits for those above it
            for event in program.events:
                if event.order and isinstance(event.what, _Request):
                    self._received(event.what)
        for program in self._programs:
            self._play(program, first_ns)
        lines = [f"num_ranks {len(self._ranks)}"]
        for host, rank in self._ranks.items():
            lines += [f"rank {rank} {{", *self._deeds[host], "}"]
        return lines

    def _add(self, host: str, deed: str, after: Sequence[str] = ()) -> str:
        self._count += 1
        label = f"l{self._count}"
        self._deeds[host].append(f"  {label}: {deed}")
        self._deeds[host] += [f"  {label} requires {one}" for one in after]
        return label

    def _tag(self, pair: _Pair, peer: str) -> int:
        """A queue pair's two: of what it sends, and of what it fetches."""
        if peer not in pair.tags:
            pair.tags[peer] = self._tags
            self._tags += 2
        return pair.tags[peer]

    def _received(self, request: _Request) -> None:
        """What hosts do for a request without a program."""
        pair, peer = request.pair, request.peer
        here, tag = pair.here.host, self._tag(pair, peer)
        mine, other = self._ranks[here], self._ranks[peer]
        if request.kind in _FETCHES:
            asked = self._add(peer, f"recv {_ASKS_BYTES}b from {mine} tag {tag + 1}")
            self._add(peer, f"send {request.bytes}b to {mine} tag {tag + 1}", [asked])
            request.label = self._add(here, f"recv {request.bytes}b from {other} tag {tag + 1}")
            return
        came = self._add(peer, f"recv {request.bytes}b from {mine} tag {tag}")
        self._came[pair.here, pair.there, pair.nth].append(came)

    def _play(self, program: _Program, first_ns: int) -> None:
        """A program's requests, one after the other."""
        since_ns, at, met = first_ns, "", list[str]()  # at: what all that follows waits for
        for event in program.events:
            what = event.what
            if isinstance(what, _Pair):
                came = what.there and self._came[what.there, what.here, what.nth]
                if not came:
                    continue
                met.append(came.popleft())
            elif not event.order:
                met.append(what.label)
            else:
                lasts = round((event.ns - since_ns) / self._dilation)
                waits = [at, *met] if at else met
                if lasts or len(waits) != 1:
                    waits = [self._add(program.host, f"calc {lasts}", waits)]
                (at,), met = waits, []
                self._ask(program.host, what, at)
            since_ns = event.ns

    def _ask(self, host: str, request: _Request, after: str) -> None:
        tag, peer = self._tag(request.pair, request.peer), self._ranks[request.peer]
        if request.kind in _FETCHES:
            self._add(host, f"send {_ASKS_BYTES}b to {peer} tag {tag + 1}", [after])
        else:
            request.label = self._add(host, f"send {request.bytes}b to {peer} tag {tag}", [after])
