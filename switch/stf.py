"""The STF runner: a packet test in plain text, run through a compiled program in memory.

    add ipv4_lpm hdr.ipv4.dst:0x0a000000/8 forward(port:2)     # a table entry
    packet 1 000000000001 000000000002 0800 ...                # a packet enters
    expect 2 000000000001 000000000002 0800 **** $             # one must leave
    port_down 2                                                # from here on none can; port_up 2

A line is a command. `packet` and `expect` name a port and hex digits, in which blanks do not count;
in an expectation `*` is any digit, and the digits given are the start of the packet unless a final
`$` says that they are all of it. The packets that leave by a port must be those expected there, in
order. The clock is a virtual one: nothing waits, and each run gives the same.
"""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import field
from pathlib import Path
from typing import Any

from files import FileError, read_text
from params.data import Data

from . import dataplane as dp
from .build import BuildError
from .cache import Unbuildable
from .place import JsonError

MAX_BYTES = 64 << 20
PACKET_STEP_NS = 1_000_000
WAIT_NS = 1_000_000_000
ALL_PORTS = range(511)
_LONGEST = 400  # letters of a reason


class StfError(Exception):
    """The test itself is wrong; the text names the line and the cure."""


class StfResult(Data, frozen=False):
    """How a test went: `failures` empty is a pass; `notes` are what reads printed."""

    failures: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    packets: int = 0
    expected: int = 0

    @property
    def passed(self) -> bool:
        """Whether everything came out as expected."""
        return not self.failures


class Expectation(Data, frozen=False):
    """A packet that must leave by a port: hex digits, or None for any packet."""

    line: int
    digits: str | None
    is_whole: bool

    def matches(self, frame: bytes) -> bool:
        """Whether a packet is the one."""
        if self.digits is None:
            return True
        got = frame.hex()
        if len(got) < len(self.digits) or (self.is_whole and len(got) != len(self.digits)):
            return False
        return all(d in ("*", g) for d, g in zip(self.digits, got, strict=False))

    def __str__(self) -> str:
        if self.digits is None:
            return "any packet"
        return spaced(self.digits) + (" $" if self.is_whole else " ...")


def spaced(digits: str) -> str:
    """Hex digits in groups, for reading."""
    return " ".join(digits[i : i + 8] for i in range(0, len(digits), 8))


class StfRunner:
    """Runs the commands of one test on one switch."""

    def __init__(self, program: dp.Program, stf: Path, whole: int = dp.WHOLE) -> None:
        self.program = program
        self.stf = stf
        self.result = StfResult()
        self.dataplane = dp.Dataplane("stf", program, whole=whole)
        for port in ALL_PORTS:
            self.dataplane.add_port(port)
        self.now_ns = 0
        self.line = 0
        self.expected: dict[int, list[Expectation]] = {}
        self.got: dict[int, list[bytes]] = {}
        self.nodes: list[list[dp.Replica]] = []
        self.groups: dict[int, list[int]] = {}
        self.members: dict[int, int] = {}
        self.selections: dict[tuple[object, ...], tuple[int, list[dp.GroupMember]]] = {}
        self.value_sets: dict[int, list[tuple[int, int]]] = {}
        self.commands: dict[str, Callable[[str], None]] = {
            "add": self.add,
            "setdefault": self.set_default,
            "packet": self.packet,
            "expect": self.expect,
            "no_packet": self.no_packet,
            "port_down": lambda port: self.set_port(port, is_up=False),
            "port_up": lambda port: self.set_port(port, is_up=True),
            "wait": self.wait,
            "mirroring_add": self.mirroring_add,
            "mirroring_add_mc": self.mirroring_add_mc,
            "mirroring_delete": self.mirroring_delete,
            "mirroring_get": lambda _: None,
            "mc_mgrp_create": self.mc_mgrp_create,
            "mc_node_create": self.mc_node_create,
            "mc_node_associate": self.mc_node_associate,
            "register_read": self.register_read,
            "register_write": self.register_write,
            "register_reset": self.register_reset,
            "counter_read": self.counter_read,
            "counter_write": self.counter_write,
            "meter_set_rates": self.meter_set_rates,
            "meter_array_set_rates": self.meter_array_set_rates,
            "meter_get_rates": self.meter_get_rates,
            "check_counter": self.check_counter,
            "check_register": self.check_register,
            "pvs_add": self.pvs_add,
            "remove": self.remove,
        }

    def run(self, text: str) -> StfResult:
        """Run all commands, then compare what left with what was expected."""
        try:
            self.play(text)
            self.compare()
        finally:
            self.dataplane.close()
        return self.result

    def play(self, text: str) -> None:
        """Run all commands, and let everything leave."""
        for number, line in enumerate(text.splitlines(), 1):
            self.line = number
            self.command(line)
        self.settle()

    def fail(self, reason: str) -> StfError:
        """Make the error for the present line."""
        if len(reason) > _LONGEST:  # names may be as long as a file
            reason = f"{reason[: _LONGEST - 100]}...{reason[-80:]}"
        return StfError(f"{self.stf}:{self.line}: {reason}")

    def command(self, line: str) -> None:
        """Carry out a line."""
        word, _, rest = line.split("#", 1)[0].strip().partition(" ")
        if not word:
            return
        if word not in self.commands:
            raise self.fail(f"{word!r} is no command; known are {', '.join(self.commands)}")
        try:
            self.commands[word](rest.strip())
        except dp.DataplaneError as error:
            raise self.fail(str(error)) from None
        except ValueError as error:
            raise self.fail(f"{word}: {error}") from None

    def words(self, text: str, least: int) -> list[str]:
        """The words of a command."""
        words = text.split()
        if len(words) < least:
            raise self.fail(f"this command takes at least {least} words")
        return words

    def write(self, *ops: dp.Op) -> None:
        """Let the control plane do something that must work."""
        for error in self.dataplane.write(ops):
            if error is not None:
                raise self.fail(error.message)
        self.now_ns += PACKET_STEP_NS

    # Packets

    def port_and_digits(self, text: str) -> tuple[int, str]:
        """A port and the hex digits behind it."""
        port, _, digits = text.partition(" ")
        return self.port(port), re.sub(r"\s", "", digits).lower()

    def port(self, text: str) -> int:
        """A port by its number."""
        number = int(text, 0)
        if number not in ALL_PORTS:
            raise self.fail(f"port {number} is not 0 to {ALL_PORTS.stop - 1}")
        return number

    def set_port(self, text: str, *, is_up: bool) -> None:
        """A link fails, or is mended."""
        self.dataplane.set_port_up(self.port(text), is_up)

    def packet(self, text: str) -> None:
        """A packet enters."""
        port, digits = self.port_and_digits(text)
        if len(digits) % 2 or not re.fullmatch("[0-9a-f]*", digits):
            raise self.fail("a packet is an even number of hex digits")
        self.now_ns += PACKET_STEP_NS
        self.result.packets += 1
        self.dataplane.inject(port, bytes.fromhex(digits), self.now_ns)
        self.collect()

    def collect(self) -> None:
        """Take what left."""
        for port, frame, _ in self.dataplane.outputs():
            if frame:  # no wire carries an empty one
                self.got.setdefault(port, []).append(frame)

    def settle(self) -> None:
        """Let time pass until nothing waits."""
        for _ in range(100_000):
            following = self.dataplane.service(self.now_ns)
            self.collect()
            if following is None or following > self.now_ns + 100 * WAIT_NS:
                return
            self.now_ns = max(following, self.now_ns)

    def expect(self, text: str) -> None:
        """A packet must leave."""
        port, digits = self.port_and_digits(text)
        is_whole = digits.endswith("$")
        digits = digits.removesuffix("$")
        if not re.fullmatch("[0-9a-f*]*", digits):
            raise self.fail("an expectation is hex digits and *, and perhaps a final $")
        self.result.expected += 1
        wanted = Expectation(self.line, digits if digits or is_whole else None, is_whole)
        self.expected.setdefault(port, []).append(wanted)

    def no_packet(self, _: str) -> None:
        """So far nothing may have left but what was expected so far."""
        for port, frames in sorted(self.got.items()):
            wanted = len(self.expected.get(port, []))
            for frame in frames[wanted:]:
                self.result.failures.append(
                    f"{self.stf}:{self.line}: no packet was to leave, but port {port} sent "
                    f"{spaced(frame.hex())}"
                )

    def wait(self, _: str) -> None:
        """Let time pass."""
        self.now_ns += WAIT_NS
        self.dataplane.service(self.now_ns)
        self.collect()

    def compare(self) -> None:
        """What left against what was expected, port by port."""
        for port in sorted(self.got.keys() | self.expected.keys()):
            frames, wanted = self.got.get(port, []), self.expected.get(port, [])
            if any(w.digits is None for w in wanted):
                if not frames:
                    self.report(wanted[0].line, f"port {port}: expected a packet, none came")
                continue
            for want, frame in zip(wanted, frames, strict=False):
                if not want.matches(frame):
                    self.report(want.line, difference(port, want, frame))
            for want in wanted[len(frames) :]:
                self.report(want.line, f"port {port}: expected and missing: {want}")
            for frame in frames[len(wanted) :]:
                self.report(self.line, f"port {port}: not expected: {spaced(frame.hex())}")

    def report(self, line: int, text: str) -> None:
        """Note a failure."""
        self.result.failures.append(f"{self.stf}:{line}: {text}")

    # Tables

    def find(self, what: str, name: str, among: Sequence[tuple[str, int]]) -> int:
        """An object by full name, or by the end of it."""
        exact = [i for n, i in among if n == name]
        ends = [i for n, i in among if n.endswith("." + name)]
        found = exact or ends or [i for n, i in among if n.endswith(name)]
        if not found:
            known = ", ".join(n for n, _ in among) or "none"
            raise self.fail(f"there is no {what} {name!r}; known are {known}")
        if len(found) > 1 and not exact:
            raise self.fail(f"{what} {name!r} is ambiguous: write more of the name")
        return found[0]

    def table(self, name: str) -> dp.TableInfo:
        """A table by name."""
        return self.program.tables[
            self.find("table", name, [(t.name, t.index) for t in self.program.tables])
        ]

    def action(self, table: dp.TableInfo, text: str) -> tuple[int, tuple[int, ...]]:
        """An action call such as `forward(port:2)`."""
        match = re.fullmatch(r"\s*([^(\s]+)\s*(?:\((.*)\))?\s*", text)
        if match is None:
            raise self.fail(f"{text!r} is no action: write ACTION(ARG:VALUE, ...)")
        name, arguments = match.groups()
        index = self.find(
            f"action of table {table.name}",
            name,
            [(self.program.actions[a].name, a) for a in table.actions],
        )
        given: dict[str, int] = {}
        for argument in filter(None, (a.strip() for a in (arguments or "").split(","))):
            key, colon, value = argument.partition(":")
            if not colon:
                raise self.fail(f"{argument!r} is no argument: write NAME:VALUE")
            given[key.strip()] = number(value)
        params = self.program.actions[index].params
        wanted = {p.name for p in params}
        if given.keys() != wanted:
            raise self.fail(
                f"action {name} takes {', '.join(sorted(wanted)) or 'no arguments'}; "
                f"given are {', '.join(sorted(given)) or 'none'}"
            )
        return index, tuple(given[p.name] for p in params)

    def key_index(self, table: dp.TableInfo, name: str) -> int:
        """A key by its name in the JSON or in the source."""
        name = re.sub(r"\$(\d+)", r"[\1]", name)
        names: list[tuple[str, int]] = []
        for i, key in enumerate(table.keys):
            names += [(key.name, i), (key.target, i)]
            header, _, looked_at = key.target.rpartition(".")
            if looked_at == "$valid$":
                names += [(f"{header}.valid", i), ("valid", i), ("$valid$", i)]
                names += [(f"{key.name}.$valid$", i)]
                names += [(re.sub(r"\.(isValid\(\)|\$valid\$)$", ".$valid$", key.name), i)]
        unique = list(dict.fromkeys(names))
        exact = {i for n, i in unique if n in (name, name + "$")}
        ends = {i for n, i in unique if n.endswith(("." + name, "." + name + "$"))}
        starts = {i for n, i in unique if name.endswith("." + n)}  # of what the source calls hdr.x
        found = exact or ends or starts
        if len(found) != 1:
            known = ", ".join(k.name for k in table.keys)
            problem = "is ambiguous" if found else "is no key"
            raise self.fail(f"{name!r} {problem} of table {table.name}; keys are {known}")
        return found.pop()

    def add(self, text: str) -> None:
        """Add an entry."""
        name, _, rest = text.partition(" ")
        table = self.table(name)
        rest = rest.strip()
        priority = 0
        given = re.match(r"(\d+|0x[0-9a-fA-F]+)\s+", rest)
        if given:
            priority = number(given.group(1))
            rest = rest[given.end() :]
        values = [0] * len(table.keys)
        masks = [0] * len(table.keys)
        for i, key in enumerate(table.keys):
            if key.kind is dp.MatchKind.RANGE:
                masks[i] = (1 << key.width) - 1
        while match := re.match(r"([^\s(:]+)\s*:\s*(\S+)\s*", rest):
            if "(" in match.group(0):
                break
            i = self.key_index(table, match.group(1))
            values[i], masks[i] = self.match_value(table.keys[i], match.group(2))
            rest = rest[match.end() :]
        call = re.sub(r"=\s*\S+\s*$", "", rest)
        action, params = self.action(table, call)
        entry = dp.Entry(table.index, tuple(values), tuple(masks), priority, action, params)
        if table.profile is not None:
            self.add_indirect(table.profile, entry)
        else:
            self.write(dp.TableWrite(dp.Verb.INSERT, entry))

    def add_indirect(self, profile: int, entry: dp.Entry) -> None:
        """Add an entry by way of a member of its own; adding it again makes the group grow."""
        member = self.members[profile] = self.members.get(profile, 0) + 1
        self.write(dp.MemberWrite(dp.Verb.INSERT, profile, member, entry.action, entry.params))
        entry.action, entry.params = dp.NO_ACTION, ()
        if not self.program.profiles[profile].has_selector:
            entry.member = member
            self.write(dp.TableWrite(dp.Verb.INSERT, entry))
            return
        key = (entry.table, entry.values, entry.masks, entry.priority)
        is_new = key not in self.selections
        group, members = self.selections.setdefault(key, (len(self.selections) + 1, []))
        members.append(dp.GroupMember(member))
        verb = dp.Verb.INSERT if is_new else dp.Verb.MODIFY
        self.write(dp.GroupWrite(verb, profile, group, tuple(members)))
        if is_new:
            entry.group = group
            self.write(dp.TableWrite(dp.Verb.INSERT, entry))

    def match_value(self, key: dp.KeyInfo, text: str) -> tuple[int, int]:
        """A key's value, and its mask, prefix length or high end."""
        full = (1 << key.width) - 1
        if text in ("true", "false"):
            text = str(int(text == "true"))
        if key.kind is dp.MatchKind.RANGE:
            low, arrow, high = text.partition("->")
            return number(low), number(high) if arrow else number(low)
        if key.kind is dp.MatchKind.LPM:
            value, slash, length = text.partition("/")
            if slash:
                return number(value), number(length)
            value_, mask = wildcard(value, full)
            return value_, mask.bit_count()
        if key.kind is dp.MatchKind.TERNARY:
            value, ampersands, mask_text = text.partition("&&&")
            if ampersands:
                mask = number(mask_text)
                return number(value) & mask, mask
            return wildcard(value, full)
        return number(text), full

    def set_default(self, text: str) -> None:
        """Set a table's default action."""
        name, _, call = text.partition(" ")
        table = self.table(name)
        action, params = self.action(table, call)
        self.write(dp.DefaultWrite(table.index, action, params))

    def remove(self, text: str) -> None:
        """`remove all`: empty every table."""
        if text != "all":
            raise self.fail("only `remove all` is known")
        for table in self.program.tables:
            if not table.is_const:
                states = self.dataplane.entries(table.index)
                self.write(*(dp.TableWrite(dp.Verb.DELETE, s.entry) for s in states))

    # Replication

    def mirroring_add(self, text: str) -> None:
        """A clone session to a port."""
        session, port = self.words(text, 2)[:2]
        self.set_session(
            dp.CloneWrite(dp.Verb.INSERT, number(session), (dp.Replica(number(port)),))
        )

    def mirroring_add_mc(self, text: str) -> None:
        """A clone session to a multicast group."""
        session, group = self.words(text, 2)[:2]
        self.set_session(dp.CloneWrite(dp.Verb.INSERT, number(session), (), group=number(group)))

    def set_session(self, op: dp.CloneWrite) -> None:
        """A session, new or replaced."""
        if self.dataplane.write([op])[0] is not None:
            op.verb = dp.Verb.MODIFY
            self.write(op)

    def mirroring_delete(self, text: str) -> None:
        """Delete a clone session."""
        self.write(dp.CloneWrite(dp.Verb.DELETE, number(self.words(text, 1)[0])))

    def mc_mgrp_create(self, text: str) -> None:
        """A multicast group, empty."""
        group = number(self.words(text, 1)[0])
        self.groups[group] = []
        self.write(dp.MulticastWrite(dp.Verb.INSERT, group))

    def mc_node_create(self, text: str) -> None:
        """A node: ports with a replication id; nodes are numbered from 0."""
        rid, *ports = self.words(text, 1)
        self.nodes.append([dp.Replica(number(p), number(rid)) for p in ports])

    def mc_node_associate(self, text: str) -> None:
        """Put a node in a group."""
        group, node = (number(w) for w in self.words(text, 2)[:2])
        if group not in self.groups or node >= len(self.nodes):
            raise self.fail("create the group (mc_mgrp_create) and the node (mc_node_create) first")
        self.groups[group].append(node)
        replicas = tuple(r for n in self.groups[group] for r in self.nodes[n])
        self.write(dp.MulticastWrite(dp.Verb.MODIFY, group, replicas))

    # Externs

    def register(self, name: str) -> int:
        """A register array by name."""
        return self.find("register", name, [(r.name, r.index) for r in self.program.registers])

    def register_read(self, text: str) -> None:
        """Print a register's cell, or all."""
        name, *index = self.words(text, 1)
        values = self.dataplane.read_register(
            self.register(name), number(index[0]) if index else None
        )
        self.note(f"{text}: {', '.join(str(v) for v in values)}")

    def register_write(self, text: str) -> None:
        """Set a register's cell."""
        name, index, value = self.words(text, 3)[:3]
        self.write(dp.RegisterWrite(self.register(name), number(index), number(value)))

    def register_reset(self, text: str) -> None:
        """Set all cells of a register array to zero."""
        self.write(dp.RegisterWrite(self.register(self.words(text, 1)[0]), None, 0))

    def counter(self, name: str) -> int:
        """A counter array by name."""
        return self.find("counter", name, [(c.name, c.index) for c in self.program.counters])

    def counter_read(self, text: str) -> None:
        """Print a counter's cell."""
        name, index = self.words(text, 2)[:2]
        value = self.dataplane.read_counter(self.counter(name), number(index))[0]
        self.note(f"{text}: {value.packets} packets, {value.bytes} bytes")

    def check_counter(self, text: str) -> None:
        """Compare a counter's cell: `NAME(INDEX) packets == N`, or `bytes`."""
        match = re.fullmatch(r"(\S+?)\s*\((\w+)\)\s+(packets|bytes)\s*==\s*(\w+)", text)
        if match is None:
            raise self.fail("write check_counter NAME(INDEX) packets == N, or bytes == N")
        name, index, unit, wanted = match.groups()
        self.settle()
        value = self.dataplane.read_counter(self.counter(name), number(index))[0]
        self.check(f"counter {name}({index}) {unit}", getattr(value, unit), number(wanted))

    def check_register(self, text: str) -> None:
        """Compare a register's cell: `NAME(INDEX) == N`."""
        match = re.fullmatch(r"(\S+?)\s*\((\w+)\)\s*==\s*(\w+)", text)
        if match is None:
            raise self.fail("write check_register NAME(INDEX) == N")
        name, index, wanted = match.groups()
        self.settle()
        value = self.dataplane.read_register(self.register(name), number(index))[0]
        self.check(f"register {name}({index})", value, number(wanted))

    def check(self, what: str, value: int, wanted: int) -> None:
        """Fail the test unless a value is the one wanted."""
        if value != wanted:
            self.report(self.line, f"{what} is {value}, expected {wanted}")

    def pvs_add(self, text: str) -> None:
        """Add a value to a parser's value set."""
        name, value = self.words(text, 2)[:2]
        sets = self.program.value_sets
        index = self.find("value set", name, [(v.name, v.index) for v in sets])
        members = self.value_sets.setdefault(index, [])
        members.append((number(value), (1 << sets[index].width) - 1))
        self.write(dp.ValueSetWrite(index, tuple(members)))

    def counter_write(self, text: str) -> None:
        """Set a counter's cell."""
        name, index, packets, octets = self.words(text, 4)[:4]
        self.write(
            dp.CounterWrite(self.counter(name), number(index), number(packets), number(octets))
        )

    def meter(self, name: str) -> int:
        """A meter array by name."""
        return self.find("meter", name, [(m.name, m.index) for m in self.program.meters])

    def rates(self, words: Sequence[str]) -> dp.MeterRates:
        """`RATE:BURST RATE:BURST`, committed then peak; rates are units a microsecond."""
        parts = []
        for word in words:
            rate, _, burst = word.partition(":")
            parts += [round(float(rate) * 1_000_000), number(burst)]
        if len(parts) != 4:
            raise self.fail("write RATE:BURST RATE:BURST, the committed rate first")
        return dp.MeterRates(*parts)

    def meter_set_rates(self, text: str) -> None:
        """Configure one meter."""
        name, index, *rates = self.words(text, 4)
        self.write(dp.MeterWrite(self.meter(name), number(index), self.rates(rates)))

    def meter_array_set_rates(self, text: str) -> None:
        """Configure every meter of an array."""
        name, *rates = self.words(text, 3)
        self.write(dp.MeterWrite(self.meter(name), None, self.rates(rates)))

    def meter_get_rates(self, text: str) -> None:
        """Print a meter's rates."""
        name, index = self.words(text, 2)[:2]
        self.note(f"{text}: {self.dataplane.read_meter(self.meter(name), number(index))[0]}")

    def note(self, text: str) -> None:
        """Keep what a read printed."""
        self.result.notes.append(text)


def number(text: str) -> int:
    """Decimal, 0x, 0b or 0o."""
    text = text.strip()
    try:
        return int(text, 10) if text.isdigit() else int(text, 0)
    except ValueError:
        raise ValueError(f"{text!r} is no number") from None


def wildcard(text: str, full: int) -> tuple[int, int]:
    """A value whose digits may be `*`; without one every bit counts."""
    if "*" not in text:
        return number(text), full
    prefix = text[:2].lower()
    bits = {"0x": 4, "0b": 1, "0o": 3}.get(prefix)
    if bits is None:
        raise ValueError(f"{text!r}: wildcards need 0x, 0b or 0o")
    value = number(text.replace("*", "0"))
    mask = 0
    for digit in text[2:]:
        mask = mask << bits | (0 if digit == "*" else (1 << bits) - 1)
    return value & full, mask & full


def difference(port: int, want: Expectation, frame: bytes) -> str:
    """Where a packet differs from the one expected."""
    got = frame.hex()
    digits = want.digits or ""
    pairs = list(zip(digits, got, strict=False))
    shorter = min(len(digits), len(got))
    at = next((i for i, (d, g) in enumerate(pairs) if d not in ("*", g)), shorter)
    where = f"byte {at // 2}" if at < max(len(digits), len(got)) else "length"
    more = "" if want.is_whole else " or more"
    return (
        f"port {port}: packets differ at {where} "
        f"(expected {len(digits) // 2} bytes{more}, got {len(frame)})\n"
        f"  expected {want}\n  got      {spaced(got)}"
    )


def run_stf(
    json: Path | bytes | dict[str, Any], stf_path: Path | str, whole: int = dp.WHOLE
) -> StfResult:
    """Run a test on a program in BMv2 JSON; `whole` as `Dataplane` has it.

    Raises `StfError` where the test is wrong, `bmv2.JsonError` where the program is, and
    `cache.Unbuildable` where nothing can be built.
    """
    path = Path(stf_path)
    try:
        text = read_text(path, MAX_BYTES)
    except FileError as error:
        raise StfError(str(error)) from None
    return StfRunner(dp.Program.load(json), path, whole).run(text)


def report(result: StfResult) -> Iterator[str]:
    """The lines to print for a result."""
    yield from result.notes
    yield from result.failures
    verdict = "PASS" if result.passed else f"FAIL ({len(result.failures)} differences)"
    yield f"{verdict}: {result.packets} packets in, {result.expected} expected"


def main(argv: Sequence[str] | None = None) -> int:
    """Run a test: 0 it passed, 1 it failed, 2 it could not run."""
    parser = argparse.ArgumentParser(prog="stf", description="Run an STF packet test.")
    parser.add_argument("program", type=Path, help="BMv2 JSON")
    parser.add_argument("test", type=Path, help="the test")
    arguments = parser.parse_args(argv)
    try:
        result = run_stf(arguments.program, arguments.test)
    except (StfError, JsonError, Unbuildable, BuildError, dp.DataplaneError) as error:
        print(error, file=sys.stderr)
        return 2
    for line in report(result):
        print(line)
    return 0 if result.passed else 1


if __name__ == "__main__":
    sys.exit(main())
