"""Real BMv2 in the place of our data plane, under the same STF runner.

`simple_switch --use-files` reads a port's packets from a pcap file and merges all ports by time
stamp; it waits at each file for the next packet. Here each file is a pipe. At first every pipe
holds its port's first packet; from then on, the switch having sent packet n, the successor of n on
n's own pipe (or the pipe's end) is what it waits for, and what lets packet n+1 through. So packets
enter one by one, of any length, with table changes in between, and without any network interface.
Tables are changed through simple_switch_CLI.

Nothing here waits for a time to pass. The switch is done with what it was given when all of its
threads sleep, at two looks between which none of them ran (`at_rest`): a thread that another has
woken no longer counts as asleep, whether or not the machine has got round to running it.
"""

from __future__ import annotations

import json
import os
import re
import select
import shutil
import socket
import struct
import subprocess
import tempfile
import time
from contextlib import ExitStack
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lab.machine.tools import BMV2_CLI, bmv2_cli, notifications_at
from switch.dataplane import (
    CloneWrite,
    CounterValue,
    DataplaneError,
    DefaultWrite,
    Entry,
    GroupWrite,
    MatchKind,
    MemberWrite,
    MeterWrite,
    MulticastWrite,
    OpError,
    Program,
    RegisterWrite,
    Replica,
    TableWrite,
    Verb,
)
from switch.stf import StfResult, StfRunner
from tests.waiting import LONG_S

if TYPE_CHECKING:
    from collections.abc import Sequence

SWITCH = "simple_switch"
# What it tells the world goes into its own folder, so that switches can run side by side.
OPTIONS = ["--use-files", "0", "--log-console"]
TARGET = ["--", "--priority-queues", "8"]
PCAP_HEADER = struct.pack("<IHHIIII", 0xA1B2C3D4, 2, 4, 0, 0, 65536, 1)
RECORD = struct.Struct("<IIII")
PROMPT = b"RuntimeCmd: "
LOOK_S = 0.0005
# As the kernel tells of a thread: what it is doing, and how often it has stopped doing something.
THREAD = re.compile(r"^State:\t(\S).*^voluntary_ctxt_switches:\t(\d+)", re.MULTILINE | re.DOTALL)
USUAL_PORTS = range(10)


def cannot(stf: Path) -> str | None:
    """Why a test cannot run here, if it cannot; it may say so itself, in a line `# BMv2: ...`."""
    text = stf.read_text()
    if found := re.search(r"^# BMv2: (.*)$", text, re.MULTILINE):
        return found[1]
    if re.search(r"^\s*pvs_add", text, re.MULTILINE):
        return f"{BMV2_CLI} cannot fill value sets"
    return None


def packets_of(stf: Path) -> list[tuple[int, bytes]]:
    """The packets a test sends, in order."""
    found = re.findall(r"^\s*packet\s+(\S+)([^#\n]*)", stf.read_text(), re.MULTILINE)
    return [(int(port, 0), bytes.fromhex("".join(digits.split()))) for port, digits in found]


def ports_of(stf: Path) -> set[int]:
    """The ports a test names, and a few that it does not."""
    named = re.findall(r"^\s*(?:packet|expect)\s+(\S+)", stf.read_text(), re.MULTILINE)
    return {int(n, 0) for n in named} | set(USUAL_PORTS)


def free_port() -> int:
    """A TCP port nobody listens on."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@cache
def notifications() -> list[str]:
    """Words that keep the switch from leaving a socket in /tmp."""
    return notifications_at("ipc://told.ipc", SWITCH)


def folder_of_its_own(undo: ExitStack) -> Path:
    """A folder that goes in the end, unless it is to be looked at."""
    folder = tempfile.mkdtemp(prefix="closlab-bmv2-")
    if os.environ.get("KEEP"):
        undo.callback(print, f"kept {folder}")
    else:
        undo.callback(shutil.rmtree, folder)
    return Path(folder)


def end(process: subprocess.Popen[bytes]) -> None:
    """End a program, and close what led to it."""
    process.kill()
    process.communicate()


class Bmv2Plane:
    """As much of `Dataplane` as the STF runner uses, on simple_switch."""

    def __init__(self, program: Program, code: dict[str, Any], stf: Path) -> None:
        self.program = program
        with ExitStack() as undo:
            self.folder = folder_of_its_own(undo)
            self.start(code, stf, undo)
            self.close = undo.pop_all().close

    def start(self, code: dict[str, Any], stf: Path, undo: ExitStack) -> None:
        """Start both programs; what ends them, and forgets their files, is noted."""
        self.sequence = packets_of(stf)
        self.sent = 0
        self.is_busy = False
        self.read_bytes: dict[int, int] = {}
        self.pipes: dict[int, int] = {}
        undo.callback(self.close_pipes)
        self.members: dict[tuple[int, int], int] = {}
        self.groups: dict[tuple[int, int], int] = {}
        self.replicas: dict[int, int] = {}
        (self.folder / "program.json").write_text(json.dumps(code))
        interfaces = []
        for port in sorted(ports_of(stf)):
            name = self.folder / f"port{port}"
            os.mkfifo(f"{name}_in.pcap")
            self.pipes[port] = os.open(f"{name}_in.pcap", os.O_RDWR)
            os.write(self.pipes[port], PCAP_HEADER)
            interfaces += ["-i", f"{port}@{name}"]
            self.read_bytes[port] = len(PCAP_HEADER)
        thrift = free_port()
        log = undo.enter_context((self.folder / "log.txt").open("w"))
        options = [*OPTIONS, *notifications()]
        options += ["--log-level", "trace" if os.environ.get("KEEP") else "warn"]
        options += ["--thrift-port", str(thrift), *TARGET]
        self.switch = subprocess.Popen(
            [SWITCH, "program.json", *interfaces, *options],
            cwd=self.folder,
            stdout=log,
            stderr=subprocess.STDOUT,
        )
        undo.callback(end, self.switch)
        self.await_thrift(thrift)
        words, environment = bmv2_cli(thrift)
        self.cli = subprocess.Popen(
            words,
            env=environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
        )
        undo.callback(end, self.cli)
        self.reply()

    def await_thrift(self, port: int) -> None:
        """Wait until the switch can be spoken to."""
        end = time.monotonic() + LONG_S
        while time.monotonic() < end:
            if self.switch.poll() is not None:
                break
            with socket.socket() as probe:
                if probe.connect_ex(("127.0.0.1", port)) == 0:
                    return
            time.sleep(0.02)
        raise DataplaneError(f"simple_switch did not start:\n{self.last_words()}")

    def last_words(self) -> str:
        """The end of what the switch has logged."""
        return (self.folder / "log.txt").read_text()[-2000:]

    def close_pipes(self) -> None:
        """Those whose ends did not come yet."""
        for pipe in self.pipes.values():
            os.close(pipe)
        self.pipes.clear()

    # The command line

    def reply(self) -> str:
        """What the CLI says until it asks again."""
        assert self.cli.stdout is not None
        said = b""
        while not said.endswith(PROMPT):
            if not select.select([self.cli.stdout], [], [], LONG_S)[0]:
                raise DataplaneError(f"{BMV2_CLI} does not answer: {said.decode()}")
            more = os.read(self.cli.stdout.fileno(), 65536)
            if not more:
                raise DataplaneError(f"{BMV2_CLI} ended: {said.decode()}")
            said += more
        return said.removesuffix(PROMPT).decode()

    def say(self, *words: object) -> str:
        """Give a command, after the packets before it."""
        self.rest()
        assert self.cli.stdin is not None
        self.cli.stdin.write((" ".join(str(w) for w in words) + "\n").encode())
        self.cli.stdin.flush()
        said = self.reply()
        if re.search(r"^(Error|Invalid|Unknown|\*\*\*)", said, re.MULTILINE):
            raise DataplaneError(f"{BMV2_CLI}: {words}: {said.strip()}")
        return said

    def handle(self, *words: object) -> int:
        """Give a command that answers with a handle."""
        said = self.say(*words)
        found = re.search(r"handle (\d+)", said)
        assert found, said
        return int(found[1])

    def write(self, ops: Sequence[object]) -> list[OpError | None]:
        """Carry out a batch."""
        for op in ops:
            self.carry_out(op)
        return [None for _ in ops]

    def carry_out(self, op: object) -> None:
        """Carry out one operation."""
        match op:
            case TableWrite(Verb.INSERT, entry):
                self.insert(entry)
            case DefaultWrite(table, action, params):
                self.set_default(table, action, params)
            case MemberWrite():
                self.add_member(op)
            case GroupWrite(verb, profile, group, members):
                self.set_group(verb, profile, group, [m.member for m in members])
            case MulticastWrite(verb, group, replicas):
                self.set_multicast(verb, group, replicas)
            case CloneWrite():
                self.set_session(op)
            case RegisterWrite(register, None):
                self.say("register_reset", self.program.registers[register].name)
            case RegisterWrite(register, index, value):
                self.say("register_write", self.program.registers[register].name, index, value)
            case MeterWrite():
                self.set_meter(op)
            case _:
                raise DataplaneError(f"{op} is not known here")

    def insert(self, entry: Entry) -> None:
        """Add a table entry."""
        table = self.program.tables[entry.table]
        keys = []
        for key, value, mask in zip(table.keys, entry.values, entry.masks, strict=True):
            form = {
                MatchKind.EXACT: f"{value:#x}",
                MatchKind.LPM: f"{value:#x}/{mask}",
                MatchKind.TERNARY: f"{value:#x}&&&{mask:#x}",
                MatchKind.RANGE: f"{value:#x}->{mask:#x}",
            }
            keys.append(form[key.kind])
        priority = [1_000_000 - entry.priority] if table.needs_priority else []
        if table.profile is None:
            action = self.program.actions[entry.action].name
            self.say("table_add", table.name, action, *keys, "=>", *entry.params, *priority)
        elif entry.group:
            group = self.groups[table.profile, entry.group]
            self.say("table_indirect_add_with_group", table.name, *keys, "=>", group, *priority)
        else:
            member = self.members[table.profile, entry.member]
            self.say("table_indirect_add", table.name, *keys, "=>", member, *priority)

    def set_default(self, number: int, action: int, params: tuple[int, ...]) -> None:
        """Set a table's default action."""
        table = self.program.tables[number]
        self.say("table_set_default", table.name, self.program.actions[action].name, *params)

    def add_member(self, op: MemberWrite) -> None:
        """Add a member to an action profile."""
        names = self.program.profiles[op.profile].name, self.program.actions[op.action].name
        made = self.handle("act_prof_create_member", *names, *op.params)
        self.members[op.profile, op.member] = made

    def set_multicast(self, verb: Verb, group: int, replicas: Sequence[Replica]) -> None:
        """Make a multicast group, or add the node that its last replicas are."""
        if verb is Verb.INSERT:
            self.say("mc_mgrp_create", group)
            return
        ports = self.new_ports(group, replicas)
        node = self.handle("mc_node_create", replicas[-1].instance, *ports)
        self.say("mc_node_associate", group, node)

    def set_session(self, op: CloneWrite) -> None:
        """Set or delete a clone session."""
        if op.verb is Verb.DELETE:
            self.say("mirroring_delete", op.session)
        for replica in op.replicas:
            self.say("mirroring_add", op.session, replica.port)
        if op.group:
            self.say("mirroring_add_mc", op.session, op.group)

    def set_meter(self, op: MeterWrite) -> None:
        """Set the rates of a meter, or of all meters of an array."""
        rates, name = op.rates, self.program.meters[op.meter].name
        assert rates is not None
        words = [f"{rates.cir / 1e6}:{rates.cburst}", f"{rates.pir / 1e6}:{rates.pburst}"]
        if op.index is None:
            self.say("meter_array_set_rates", name, *words)
        else:
            self.say("meter_set_rates", name, op.index, *words)

    def set_group(self, verb: Verb, profile: int, group: int, members: list[int]) -> None:
        """Make a group, or add to it the last of its members."""
        name = self.program.profiles[profile].name
        if verb is Verb.INSERT:
            self.groups[profile, group] = self.handle("act_prof_create_group", name)
            added = members
        else:
            added = members[-1:]
        for member in added:
            self.say(
                "act_prof_add_member_to_group",
                name,
                self.members[profile, member],
                self.groups[profile, group],
            )

    def new_ports(self, group: int, replicas: Sequence[Replica]) -> list[int]:
        """The ports of the node that was added last: those behind the ones already there."""
        have = self.replicas.get(group, 0)
        self.replicas[group] = len(replicas)
        return [r.port for r in replicas[have:]]

    def read_register(self, register: int, index: int | None = None) -> list[int]:
        """A register's cells."""
        name = self.program.registers[register].name
        said = self.say("register_read", name, *([] if index is None else [index]))
        return [int(v) for v in said.rpartition("=")[2].split(",")]

    def read_counter(self, counter: int, index: int | None = None) -> list[CounterValue]:
        """A counter's cells."""
        said = self.say("counter_read", self.program.counters[counter].name, index)
        found = re.search(r"\((\d+) bytes, (\d+) packets\)", said)
        assert found, said
        return [CounterValue(int(found[2]), int(found[1]))]

    def read_meter(self, meter: int, index: int | None = None) -> list[str]:
        """A meter's rates, as the CLI words them."""
        return [self.say("meter_get_rates", self.program.meters[meter].name, index)]

    # Packets

    def successor(self, port: int, after: int) -> int | None:
        """The next packet of a port."""
        following = range(after + 1, len(self.sequence))
        return next((i for i in following if self.sequence[i][0] == port), None)

    def feed(self, port: int, index: int | None) -> None:
        """Put a packet, or the end, into a port's pipe."""
        if index is None:
            os.close(self.pipes.pop(port))
            return
        data = self.sequence[index][1]
        record = RECORD.pack(index + 1, 0, len(data), len(data)) + data
        os.write(self.pipes[port], record)

    def inject(self, port: int, data: bytes, now_ns: int) -> None:  # noqa: ARG002
        """Let the next packet through."""
        assert self.sequence[self.sent] == (port, data)
        if self.sent == 0:
            for each in sorted(self.pipes):
                self.feed(each, self.successor(each, -1))
        else:
            before = self.sequence[self.sent - 1][0]
            self.feed(before, self.successor(before, self.sent - 1))
        self.sent += 1
        self.is_busy = True

    def threads(self) -> dict[str, tuple[str, str]] | None:
        """What each thread has done, if all of them sleep."""
        seen = {}
        for task in Path(f"/proc/{self.switch.pid}/task").iterdir():
            found = THREAD.search((task / "status").read_text())
            if found is None or found[1] != "S":
                return None
            seen[task.name] = (found[1], found[2])
        return seen

    def rest(self) -> None:
        """Wait until the switch has done all there is to do."""
        end = time.monotonic() + LONG_S
        while self.is_busy:
            before = self.threads()
            time.sleep(LOOK_S)
            self.is_busy = before is None or before != self.threads()
            if self.switch.poll() is not None:
                raise DataplaneError(f"simple_switch ended: {self.last_words()}")
            if time.monotonic() > end:
                raise DataplaneError(f"simple_switch is busy after {LONG_S:.0f} s")

    def service(self, now_ns: int) -> None:  # noqa: ARG002
        """Let what is under way leave."""
        self.rest()

    def outputs(self) -> list[tuple[int, bytes, int]]:
        """Take what left."""
        frames = []
        for port, at in self.read_bytes.items():
            path = self.folder / f"port{port}_out.pcap"
            data = path.read_bytes() if path.exists() else b""
            done = at
            while done + RECORD.size <= len(data):
                start = done + RECORD.size
                end = start + RECORD.unpack_from(data, done)[2]
                if end > len(data):
                    break
                frames.append((port, data[start:end], 0))
                done = end
            self.read_bytes[port] = done
        return frames


class Bmv2Runner(StfRunner):
    """The STF runner with BMv2 behind it."""

    def __init__(self, program: Program, code: dict[str, Any], stf: Path) -> None:
        super().__init__(program, stf)
        self.dataplane.close()
        self.dataplane = Bmv2Plane(program, code, stf)

    def no_packet(self, rest: str) -> None:
        """The runner's, once everything has left."""
        self.settle()
        super().no_packet(rest)


def run_stf(code: dict[str, Any], stf: Path) -> StfResult:
    """Run a test of a program on BMv2."""
    return Bmv2Runner(Program.load(code), code, stf).run(stf.read_text())
