"""GOAL, as LogGOPSim and ATLAHS read it.

    num_ranks 2
    rank 0 {
      l1: calc 100                 nanoseconds
      l2: send 10b to 1 tag 7
      l2 requires l1               after its end; irequires: after its begin
    }
    rank 1 { l1: recv 10b from 0 tag 7 }

A send is over when it has been delivered. Numbers of processors and adapters (``cpu 1``, ``nic 0``)
are read, and change nothing: a rank here does side by side what does not wait.
"""

from __future__ import annotations

import re
from dataclasses import field
from pathlib import Path

from params.data import Data
from traffic.traces.graph import MAX_RANKS, Graph, TraceError
from traffic.traces.text import text_of, whole

_WORD = re.compile(r"//[^\n]*|#[^\n]*|/\*.*?\*/|(\n)|([A-Za-z0-9_.]+|[{}:;])|([^\s])", re.DOTALL)


class _Deed(Data, frozen=False):
    place: str
    kind: str
    amount: int
    peer: int = 0
    tag: int = 0
    after: list[str] = field(default_factory=list)
    with_: list[str] = field(default_factory=list)  # begins no sooner than these do


class _Words:
    """A file's words, one after the other, each with its line."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._words: list[tuple[str, int]] = []
        line = 1
        for found in _WORD.finditer(text_of(path)):
            if found[3]:
                raise TraceError(f"{path}:{line}: {found[3]!r} is not understood")
            if found[2] and found[2] != ";":
                self._words.append((found[2], line))
            line += found[0].count("\n")
        self._at = 0

    @property
    def place(self) -> str:
        """Where the word before the next one stands."""
        at = min(max(self._at - 1, 0), len(self._words) - 1)
        return f"{self._path}:{self._words[at][1] if self._words else 1}"

    def peek(self, ahead: int = 0) -> str:
        """A coming word; nothing after the last one."""
        at = self._at + ahead
        return self._words[at][0] if at < len(self._words) else ""

    def next(self) -> str:
        """The next word."""
        word = self.peek()
        self._at += 1
        return word

    def expect(self, *words: str) -> str:
        """The next word, which has to be one of these."""
        word = self.next()
        if word not in words:
            raise TraceError(
                f"{self.place}: {word[:40] or 'the end'!r} stands where {words[0]!r} has to be"
            )
        return word

    def number(self, what: str, least: int = 0, most: int = 1 << 62) -> int:
        """The next word, a number; bytes may end in b."""
        word = self.next()
        try:
            return whole(word.removesuffix("b"), what, least, most)
        except TraceError as error:
            raise TraceError(f"{self.place}: {error}") from None


def read(path: Path) -> Graph:
    """The deeds of a file."""
    words = _Words(path)
    words.expect("num_ranks")
    graph = Graph(words.number("num_ranks", 1, MAX_RANKS), path.stem)
    seen: set[int] = set()
    while words.peek():
        words.expect("rank")
        rank = words.number("rank", 0, graph.ranks - 1)
        if rank in seen:
            raise TraceError(f"{words.place}: rank {rank} is there twice")
        seen.add(rank)
        _write(graph, rank, _block(words))
    if not len(graph):
        raise TraceError(f"{path} says nothing to do")
    return graph


def _block(words: _Words) -> dict[str, _Deed]:
    """What stands between a rank's braces."""
    words.expect("{")
    deeds: dict[str, _Deed] = {}
    unnamed = 0
    while words.peek() != "}":
        if not words.peek():
            words.expect("}")
        label = ""
        if words.peek(1) == ":":
            label = words.next()
            words.next()
        elif words.peek(1) in ("requires", "irequires"):
            later, how, earlier = words.next(), words.next(), words.next()
            for name in (later, earlier):
                if name not in deeds:
                    raise TraceError(f"{words.place}: there is no {name[:40]!r} above")
            wanted = deeds[later].after if how == "requires" else deeds[later].with_
            wanted.append(earlier)
            continue
        deed = _deed(words)
        if not label:
            unnamed += 1
            label = f" {unnamed}"
        if label in deeds:
            raise TraceError(f"{words.place}: {label!r} is there twice")
        deeds[label] = deed
    words.next()
    return deeds


def _deed(words: _Words) -> _Deed:
    kind = words.expect("calc", "send", "recv")
    deed = _Deed(words.place, kind, words.number(kind, 0))
    if kind != "calc":
        words.expect("to" if kind == "send" else "from")
        deed.peer = words.number("a rank", 0, MAX_RANKS)
    while words.peek() in ("tag", "cpu", "nic"):
        what = words.next()
        number = words.number(what)
        if what == "tag":
            deed.tag = number
    return deed


def _write(graph: Graph, rank: int, deeds: dict[str, _Deed]) -> None:
    """A rank's deeds, each after those it waits for."""
    numbers: dict[str, int] = {}
    begun: dict[str, list[int]] = {}
    for label in _in_order(deeds):
        deed = deeds[label]
        after = [numbers[name] for name in deed.after]
        after += [wait for name in deed.with_ for wait in begun[name]]
        after = begun[label] = list(dict.fromkeys(after))
        try:
            if deed.kind == "calc":
                numbers[label] = graph.work(rank, deed.amount, after=after)
            elif deed.kind == "send":
                numbers[label] = graph.send(
                    rank, deed.peer, max(1, deed.amount), tag=deed.tag, after=after
                )
            else:
                numbers[label] = graph.receive(rank, deed.peer, tag=deed.tag, after=after)
        except TraceError as error:
            raise TraceError(f"{deed.place}: {error}") from None


def _in_order(deeds: dict[str, _Deed]) -> list[str]:
    """Labels so that each comes after those it waits for, else as they are written."""
    order: list[str] = []
    state: dict[str, bool] = {}  # begun, or done
    for first in deeds:
        stack = [first]
        while stack:
            label = stack[-1]
            if state.get(label):
                stack.pop()
                continue
            before = [*deeds[label].after, *deeds[label].with_]
            if label not in state:
                state[label] = False
                open_ = [name for name in before if not state.get(name)]
                circle = [name for name in open_ if name in state]
                if circle:
                    raise TraceError(f"{deeds[label].place}: {label!r} waits in a circle")
                stack += reversed(open_)
            if stack[-1] == label:
                state[label] = True
                order.append(label)
                stack.pop()
    return order
