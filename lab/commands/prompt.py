"""The ``mininet>`` prompt on a fabric that is up, with words of its own.

Mininet's words are all there; ours begin where they end: what switches were told, what they count
and hold, who is paused, another load balancer, a cable that dies, the way of a packet as its
telemetry tells it, and the scenario's traffic as often as one likes.
"""

from __future__ import annotations

import inspect
import shutil
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import field, replace
from ipaddress import IPv4Address, IPv6Address
from pathlib import Path
from typing import Any

from mininet.cli import CLI
from mininet.log import output, setLogLevel
from rich.console import Console
from rich.table import Table

from controller import (
    ControllerError,
    Report,
    ReportError,
    decode,
    read_plans,
    segments,
)
from controller.entities import Match, TableEntry
from controller.settings import HopTelemetry
from lab.engines.mininet.emulation import Emulation
from lab.engines.mininet.engine import EmulatedFabric
from lab.engines.mininet.hands import Hands
from lab.engines.mininet.report_cables import Collector
from lab.errors import LabError
from lab.machine.processes import stop
from lab.machine.speed import slowness
from lab.results.outcome import HOST_PAUSED_NS, Outcome, SwitchCounts
from lab.results.telemetry import switch_named
from lab.runs.run import proved
from lab.scenario.faults import drained_links
from lab.scenario.keys import nearest
from lab.scenario.translate import REPORT_PORT
from params.data import Data
from params.load_balancing import Policy
from params.quantity import duration, percent, size
from topologies import Address, Link, Node, NodeKind

_REPORT_S = 8.0  # that a telemetry report may take
_POLL_S = 0.05
_PROBES = 5
_PROBE_PORT = 9  # discard
_PROBE_BYTES = 256  # more than one of them has, telemetry included
_MAX_NAMED = 24  # names in a message
_SERVER_S = 0.5  # that iperf has to listen
_IPERF_S = 5  # that it sends


class _Misspelt(Exception):  # noqa: N818  (a user's, and no defect)
    """A word that cannot be understood; the text says how to write it."""


class LabPrompt(CLI):  # type: ignore[misc]
    """Mininet's own prompt, and what one may ask of a lossless fabric."""

    prompt = "mininet> "

    def __init__(self, emulation: Emulation, hands: Hands, traffic: Callable[[], Outcome]) -> None:
        self._emulation = emulation
        self._hands = hands
        self._fabric = emulation.fabric
        self._traffic = traffic
        self._stood_still: Counter[Node] = Counter()  # hosts, in ns: they say so after traffic
        self._console = Console(file=sys.stdout, highlight=False, soft_wrap=False)
        super().__init__(emulation.network, stdin=sys.stdin)  # returns when the user leaves

    def cmdloop(self, intro: str | None = None) -> None:
        """Take words; Ctrl-C ends what the hosts send that somebody else let send."""
        try:
            super().cmdloop(intro)
        except KeyboardInterrupt:
            self._hands.end_sending()
            raise

    def waitForNode(self, node: Any) -> None:  # noqa: N802
        """Wait for a node's command. Words that come by a pipe are ours, and none of its input."""
        if self.isatty():
            super().waitForNode(node)
            return
        try:
            while node.waiting:
                output(node.monitor())
        except KeyboardInterrupt:
            node.sendInt()
            self.waitForNode(node)

    def do_help(self, arg: str) -> None:
        """help [WORD]: the words there are, or what one does."""
        if not arg:
            described = [
                inspect.getdoc(word) for name, word in vars(LabPrompt).items() if name[:3] == "do_"
            ]
            lines = [(text or "").partition("\n")[0].partition(": ") for text in described]
            self._say("The lab's words:\n")
            self._print_rows(("", ""), [(word, about) for word, _, about in lines])
            self._say("\nAll words, Mininet's among them:")
        super().do_help(arg)

    # --- what was told, and what is -------------------------------------------------------------

    def do_tables(self, line: str) -> None:
        """tables SWITCH [TABLE]: what a switch was told; of one table, its entries."""
        with self._answering():
            switch, *table = self._words(line, "tables SWITCH [TABLE]", least=1, most=2)
            target = next((t for t in self._emulation.switches.targets if t.name == switch), None)
            if target is None:
                raise _Misspelt(self._no_such("switch", switch, self._switches))
            plan = read_plans([target])[switch]
            entries = [entity for entity in plan if isinstance(entity, TableEntry)]
            counts = dict.fromkeys(sorted(entry.table for entry in entries), 0)
            for entry in entries:
                counts[entry.table] += 1
            if not table:
                self._print_rows(("table", "entries"), counts.items())
                self._say(f"One of them: tables {switch} TABLE")
                return
            if table[0] not in counts:
                raise _Misspelt(self._no_such("table", table[0], counts))
            shown = [entry for entry in entries if entry.table == table[0]]
            by_bgp = self._from_bgp(switch)
            if table[0] in ("ipv4_routes", "ipv6_routes") and by_bgp:
                rows = [(*_entry_row(e), "bgp" if e.match[0][1] in by_bgp else "") for e in shown]
                self._print_rows(("match", "action", "found by"), sorted(rows))
            else:
                self._print_rows(("match", "action"), sorted(map(_entry_row, shown)))

    def _from_bgp(self, switch: str) -> set[Match]:
        """The prefixes that a switch was told by a control plane of its own."""
        control = self._emulation.control
        if control is None:
            return set()
        learned = (route.prefix for route in control.learned(switch))
        return {(int(prefix.network_address), prefix.prefixlen) for prefix in learned}

    def do_queues(self, _line: str) -> None:
        """queues: how long queues are, and have been since the fabric came up."""
        with self._answering():
            watch = self._emulation.switches.watch
            latest = {note.link: note for note in watch.latest()}
            if not latest:
                raise LabError("these switches do not say how long their queues are")
            longest = watch.longest_queues()
            rows = [
                (link, size(note.queue_bytes), size(longest[link]))
                for link, note in latest.items()
                if longest.get(link)
            ]
            if not rows:
                self._say("All queues have been empty so far; 'traffic' fills them.")
                return
            self._print_rows(("queue before", "now", "longest seen"), rows)

    def do_counters(self, line: str) -> None:
        """counters [SWITCH]: packets by port, marks, pauses and drops, since the fabric came up."""
        with self._answering():
            asked = self._words(line, "counters [SWITCH]", least=0, most=1)
            if asked and asked[0] not in self._switches:
                raise _Misspelt(self._no_such("switch", asked[0], self._switches))
            rows: list[tuple[str, ...]] = []
            dropped: list[str] = []
            for switch, counts in self._emulation.switches.counts().items():
                if asked and switch.name != asked[0]:
                    continue
                for port, peer in self._fabric.ports(switch).items():
                    seen = counts.port(port)
                    pauses = seen.control_sent  # which the program counts apart
                    figures = (
                        seen.received.packets,
                        seen.sent.packets + pauses,
                        seen.marked,
                        pauses,
                    )
                    rows.append((f"{switch} port {port}", str(peer), *(f"{n:,}" for n in figures)))
                dropped += [
                    f"{switch} dropped {packets:,}: {reason}"
                    for reason, packets in counts.dropped.items()
                ]
            head = ("port", "to", "received", "sent", "of them marked", "of them pause frames")
            self._print_rows(head, rows)
            self._say("\n".join(dropped) or "No switch dropped a packet.")

    def do_pause(self, line: str) -> None:
        """pause [NODE]: who was told to stop, how often, and how long it stood still."""
        with self._answering():
            asked = self._words(line, "pause [NODE]", least=0, most=1)
            nodes = [*self._switches, *(host.name for host in self._fabric.hosts)]
            if asked and asked[0] not in nodes:
                raise _Misspelt(self._no_such("node", asked[0], nodes))
            rows = []
            counts = self._emulation.switches.counts()
            for switch, seen in counts.items():
                for number, peer in self._fabric.ports(switch).items():
                    port = seen.port(number)
                    if port.xoff_sent and (not asked or peer.name == asked[0]):
                        link = self._fabric.link_at(switch, number)
                        still = duration(self._paused_ns(link, peer, counts))
                        stops, resumes = f"{port.xoff_sent:,}", f"{port.xon_sent:,}"
                        rows.append((link.direction(peer), stops, resumes, still))
            if not rows:
                self._say(f"{asked[0]} was not paused." if asked else "Nobody was paused so far.")
                return
            self._print_rows(("told to stop", "stops", "resumes", "stood still"), rows)

    def _paused_ns(self, link: Link, sender: Node, counts: Mapping[Node, SwitchCounts]) -> int:
        if sender.kind is NodeKind.HOST:
            return self._stood_still[sender]
        return counts[sender].port(link.port_of(sender)).paused_ns

    def do_vtysh(self, line: str) -> None:
        """vtysh SWITCH [COMMAND]: ask a switch's FRR, such as: vtysh leaf1 show bgp summary.

        Without a command it is vtysh itself, which 'exit' leaves.
        """
        with self._answering():
            control = self._emulation.control
            if control is None:
                raise LabError(
                    "these switches have no control plane of their own",
                    "Start the lab with --control bgp.",
                )
            name, *words = line.split() or [""]
            if name not in self._switches:
                raise _Misspelt(self._no_such("switch", name, self._switches))
            switch = self._fabric.node(name)
            if words:
                self._say(control.asked(switch, " ".join(words)).rstrip())
            else:
                subprocess.run(control.inside(switch, ["vtysh"]), check=False)

    # --- what one may change --------------------------------------------------------------------

    def do_pingall(self, line: str) -> None:
        """pingall: let every host ping every other, or where addresses are tenants', its own."""
        if not self._fabric.tenants:
            super().do_pingall(line)
            return
        with self._answering():
            found = self._emulation.ping_all()
            for one, other in sorted(found.silent):
                self._say(f"{one} hears nothing of {other}")
            pairs = len(found.answered) + len(found.silent)
            lost = 100 * len(found.silent) // pairs if pairs else 0
            self._say(f"{lost}% dropped ({len(found.answered)}/{pairs} received)")

    def do_lb(self, line: str) -> None:
        """lb POLICY: balance load by another policy, such as spray; without one they are listed."""
        with self._answering():
            known = [policy.value for policy in Policy]
            (name,) = self._words(line, f"lb {'|'.join(known)}", least=1, most=1)
            if name not in known:
                raise _Misspelt(self._no_such("policy", name, known))
            self._hands.balance(Policy(name))
            self._say(f"From now on paths are chosen by {name}.")

    def do_fail(self, line: str) -> None:
        """fail NODE NODE: cut the cable between two switches, and lead routes round it."""
        with self._answering():
            link = self._link(line, "fail")
            self._hands.turn([link], is_up=False)
            self._say(
                f"{link.name} is cut; routes lead round it. 'mend {' '.join(_ends(link))}' it."
            )

    def do_mend(self, line: str) -> None:
        """mend NODE NODE: mend the cable between two switches, and use it again."""
        with self._answering():
            link = self._link(line, "mend")
            self._hands.turn([link], is_up=True)
            self._say(f"{link.name} is up.")

    def do_switch(self, line: str) -> None:
        """switch SWITCH stop|start: take a switch off all its cables, or put it back on them."""
        with self._answering():
            usage = "switch SWITCH stop|start"
            name, what = self._words(line, usage, least=2, most=2)
            if name not in self._switches:
                raise _Misspelt(self._no_such("switch", name, self._switches))
            if what not in ("stop", "start"):
                raise _Misspelt(f"write it as: {usage}")
            links = [each for each in self._fabric.links if name in (each.a.name, each.b.name)]
            self._hands.turn(links, is_up=what == "start")
            state = "is off: its cables are cut" if what == "stop" else "is back: its cables are up"
            self._say(f"{name} {state}, {len(links)} of them, and routes lead accordingly.")

    def do_controller(self, line: str) -> None:
        """controller restart: let who writes BGP's routes into switches die, and another begin."""
        with self._answering():
            usage = "controller restart"
            if self._words(line, usage, least=1, most=1) != ["restart"]:
                raise _Misspelt(f"write it as: {usage}")
            self._hands.restart_controller()
            self._say("Another follows the switches' FRR, and goes on from what switches have.")

    def do_drain(self, line: str) -> None:
        """drain CABLE|SWITCH: leave a cable, or all of a switch, to who has no other way.

        As in: drain leaf1-spine2. It carries as well as ever, and no packet is lost.
        """
        with self._answering():
            name, links = self._drainable(line, "drain")
            still = self._hands.drain(links, is_drained=True)
            self._say(f"{name} is drained: who has another way takes that. 'undrain {name}' it.")
            if still:
                self._say(f"{_listed(sorted(still))} is used still: some have no other way.")

    def do_undrain(self, line: str) -> None:
        """undrain CABLE|SWITCH: use again what was drained."""
        with self._answering():
            name, links = self._drainable(line, "undrain")
            self._hands.drain(links, is_drained=False)
            self._say(f"{name} is used again.")

    def _drainable(self, line: str, word: str) -> tuple[str, tuple[Link, ...]]:
        usage = f"{word} leaf1-spine2, or {word} spine2"
        words = self._words(line, usage, least=1, most=2)
        if len(words) == 1 and "-" not in words[0] and words[0] not in self._switches:
            raise _Misspelt(self._no_such("switch", words[0], self._switches))
        if len(words) == 2 or words[0] not in self._switches:
            link = self._link(" ".join(words).replace("-", " "), word)
            return link.name, (link,)
        return words[0], drained_links(words[0], self._fabric)

    def do_segments(self, line: str) -> None:
        """segments HOST HOST: the ways between two hosts as lists of micro-segments.

        'taken' are those by which the first host's leaf steers; others are free, denied (something
        of it is drained) or dead.
        """
        with self._answering():
            names = self._words(line, "segments HOST HOST", least=2, most=2)
            hosts = {host.name: host for host in self._fabric.hosts}
            for name in names:
                if name not in hosts:
                    raise _Misspelt(self._no_such("host", name, hosts))
            here, there = (hosts[name] for name in names)
            rows = [
                row
                for plane in range(self._fabric.planes)
                for row in self._lists(plane, here, there)
            ]
            if not rows:
                raise _Misspelt(f"both hang at {self._fabric.leaf_of(here)}: no list leads there")
            self._print_rows(("way", "carrier", "is"), rows)
            if not self._emulation.settings.segments:
                self._say("Nobody goes by them: start the lab with --set segments.enabled=true.")

    def _lists(self, plane: int, here: Node, there: Node) -> Iterator[tuple[str, str, str]]:
        fabric = self._fabric
        leaf, last = fabric.leaf_of(here, plane), fabric.leaf_of(there, plane)
        if leaf == last:
            return
        dead, drained = self._emulation.avoided
        settings = replace(self._emulation.settings, drained=drained)
        taken = {
            path
            for policy in segments.policies_of(fabric, leaf, settings, dead)
            if policy.target in (there, last)
            for path, _ in policy.ways
        }
        listed = segments.lists_between(fabric, leaf, last, dead, drained)
        round_about = taken - {each.path for each in listed}
        others = [segments.Listed(path, segments.State.FREE) for path in sorted(round_about)]
        for each in (*listed, *others):
            way = " ".join(map(str, each.path))
            state = "taken" if each.path in taken else each.state.value
            yield way, " then ".join(map(str, each.carriers)), state

    def do_planes(self, _line: str) -> None:
        """planes: of each plane the cables that are up, drained and down, and hosts' ports."""
        with self._answering():
            fabric, cut = self._fabric, self._emulation.journal.cut
            drained = self._emulation.avoided[1]
            rows = []
            for plane in range(fabric.planes):
                links = [each for each in fabric.links if fabric.plane_of(each.b) == plane]
                between = {each.name for each in links if each.joins_switches}
                ends = {each.name for each in links} - between
                down = sorted((between | ends) & cut)
                rows.append(
                    (
                        plane + 1,
                        f"{len(between - cut)} of {len(between)}",
                        f"{len(ends - cut)} of {len(ends)}",
                        _listed(sorted(between & drained)),
                        _listed(down),
                    )
                )
            self._print_rows(("plane", "cables up", "hosts' ports up", "drained", "down"), rows)

    def do_traffic(self, _line: str) -> None:
        """traffic: let the hosts send what the scenario says, and show what came of it."""
        with self._answering(), self._hands.sending():
            for host, counted in self._traffic().endpoints.items():
                self._stood_still[host] += sum(counted.get(n, 0) for n in HOST_PAUSED_NS.values())

    def do_iperf(self, line: str) -> None:
        """iperf [HOST HOST]: how fast TCP is between two hosts, for five of the machine's seconds.

        It is best effort here (priority 0), and as slow as the fabric's time passes.
        """
        with self._answering():
            self._iperf(self._words(line, "iperf [HOST HOST]", least=0, most=2))

    def do_iperfudp(self, line: str) -> None:
        """iperfudp [RATE HOST HOST]: the same with UDP, at a rate such as 10M."""
        with self._answering():
            rate, *hosts = self._words(line, "iperfudp [RATE HOST HOST]", least=0, most=3) or [
                "10M"
            ]
            self._iperf(hosts, "-u", "-b", rate)

    def _iperf(self, names: list[str], *flags: str) -> None:
        hosts = [host.name for host in self._fabric.hosts]
        if len(names) == 1:
            raise _Misspelt("name two hosts, or none for the first and the last")
        for name in names:
            if name not in hosts:
                raise _Misspelt(self._no_such("host", name, hosts))
        here, there = names or (hosts[0], hosts[-1])
        tool = shutil.which("iperf3") or shutil.which("iperf")
        if tool is None:
            raise LabError("iperf is not installed: apt-get install iperf")
        nodes = self._emulation.network
        address = str(self._fabric.address(self._fabric.node(there)))
        is_v2 = Path(tool).name == "iperf"  # iperf3's server hears of UDP from its client
        server = nodes.get(there).popen([tool, "-s", *(f for f in flags if f == "-u" and is_v2)])
        try:
            time.sleep(_SERVER_S)
            client = nodes.get(here).popen([tool, "-c", address, "-t", str(_IPERF_S), *flags])
            try:
                output, complaint = client.communicate(timeout=_IPERF_S * 4 * slowness())
            finally:
                stop(client)
        except subprocess.TimeoutExpired:
            raise LabError(f"{here} did not get through to {there}") from None
        finally:
            stop(server)
        self._say((output or complaint).decode(errors="replace").strip())

    def do_dpctl(self, _line: str) -> None:
        """dpctl: OpenFlow's word; these switches speak P4Runtime, see 'tables'."""
        self._say(
            "*** these switches speak P4Runtime, not OpenFlow: 'tables leaf1' has their rules"
        )

    def do_int(self, line: str) -> None:
        """int HOST HOST: the way of packets between two hosts, as in-band telemetry tells it."""
        with self._answering():
            src, dst = self._words(line, "int HOST HOST", least=2, most=2)
            hosts = {host.name: host for host in self._fabric.hosts}
            for name in (src, dst):
                if name not in hosts:
                    raise _Misspelt(self._no_such("host", name, hosts))
            if src == dst:
                raise _Misspelt("a host reaches itself without the fabric: name two")
            leaf = self._fabric.leaf_of(hosts[dst])
            if leaf == self._fabric.leaf_of(hosts[src]):
                raise _Misspelt(f"both hang at {leaf}: telemetry is of packets that leave it")
            address = self._fabric.address(hosts[dst])
            probes = _Probes(address)
            collector = Collector(self._fabric, probes.take)
            try:
                with self._telemetry():
                    sender = self._emulation.network.get(src)
                    for _ in range(_PROBES):
                        sender.cmd(f"echo probe > /dev/udp/{address}/{_PROBE_PORT}")
                    found = probes.ways()
            finally:
                collector.close()
            if not found:
                raise LabError(f"no packet from {src} to {dst} came with its telemetry")
            for report in found:
                self._tell_way(report, src, dst)

    @contextmanager
    def _telemetry(self) -> Iterator[None]:
        """Let every packet carry telemetry for a while."""
        before = self._emulation.settings.telemetry
        self._install(before.but(share=1, report_port=REPORT_PORT))
        try:
            yield
        finally:
            self._install(before)

    def _install(self, telemetry: HopTelemetry) -> None:
        self._emulation.change(lambda s: replace(s, telemetry=telemetry))

    def _tell_way(self, report: Report, src: str, dst: str) -> None:
        port = report.flow.src_port if report.flow else 0
        tick_ns = self._emulation.tick_ns
        rows = [
            (
                f"{number}",
                str(switch_named(self._fabric, hop.node)),
                f"{hop.ingress_port} to {hop.egress_port}",
                "" if (stayed := hop.stayed_ns(tick_ns)) is None else duration(stayed),
                "" if hop.queue_bytes is None else size(hop.queue_bytes),
                "" if hop.utilisation is None else percent(hop.utilisation),
            )
            for number, hop in enumerate(report.hops, 1)
        ]
        self._say(f"{src} to {dst}, UDP from port {port}:")
        self._print_rows(("hop", "switch", "ports", "stayed", "queue with it", "link used"), rows)
        if all(hop.queue_bytes is None or hop.queue_bytes <= _PROBE_BYTES for hop in report.hops):
            self._say("Nothing was in its way: each queue held this packet alone.")

    def default(self, line: str) -> None:
        """Leave nodes' commands to Mininet, and say what may have been meant by others."""
        word = line.split()[0]
        if word in self.mn:
            super().default(line)
            return
        words = [name.removeprefix("do_") for name in self.get_names() if name.startswith("do_")]
        hint = nearest(word, [*words, *self.mn]) or "; 'help' lists what there is"
        self._say(f"*** there is no word or node '{word}'{hint}")

    # --- words and answers ----------------------------------------------------------------------

    @property
    def _switches(self) -> list[str]:
        return [switch.name for switch in self._fabric.switches]

    def _link(self, line: str, word: str) -> Link:
        names = self._words(line, f"{word} leaf1 spine2", least=2, most=2)
        for link in self._fabric.links:
            if _ends(link) in (names, names[::-1]) and link.joins_switches:
                return link
        known = self._switches
        wrong = next((name for name in names if name.partition(".")[0] not in known), None)
        if wrong:
            raise _Misspelt(self._no_such("switch", wrong, known))
        cables = sorted(link.name for link in self._fabric.links if link.joins_switches)
        raise _Misspelt(
            f"there is no cable between {names[0]} and {names[1]}; there are {_listed(cables)}"
        )

    def _words(self, line: str, usage: str, *, least: int, most: int) -> list[str]:
        words = line.split()
        if not least <= len(words) <= most:
            raise _Misspelt(f"write it as: {usage}")
        return words

    def _no_such(self, what: str, word: str, known: Collection[str]) -> str:
        return f"there is no {what} '{word}'" + (
            nearest(word, known) or f"; there are {_listed(known)}"
        )

    @contextmanager
    def _answering(self) -> Iterator[None]:
        """Say what is wrong, and stay at the prompt."""
        try:
            yield
        except (LabError, ControllerError, _Misspelt) as error:
            self._say(f"*** {error}")
        except KeyboardInterrupt:
            self._say("Interrupted.")

    def _say(self, text: str) -> None:
        self._console.print(text, markup=False, soft_wrap=True)

    def _print_rows(self, head: tuple[str, ...], rows: Collection[tuple[object, ...]]) -> None:
        table = Table(*head, box=None, pad_edge=False)
        for row in rows:
            table.add_row(*map(str, row))
        self._console.print(table)


def _listed(names: Iterable[str]) -> str:
    """As many of them as one would read."""
    shown = list(names)
    more = [f"{len(shown) - _MAX_NAMED} more"] if len(shown) > _MAX_NAMED else []
    return ", ".join((*shown[:_MAX_NAMED], *more))


def _entry_row(entry: TableEntry) -> tuple[str, str]:
    match = ", ".join(f"{name} {_plain(name, value)}" for name, value in entry.match)
    params = ", ".join(f"{name} {_plain(name, value)}" for name, value in entry.params)
    return match or "(anything)", f"{entry.action}({params})"


def _plain(name: str, value: Match) -> str:
    """A value as one would write it: addresses with dots and colons, the rest as numbers."""
    if isinstance(value, tuple):
        first, second = value
        is_length = "addr" in name and second <= (128 if _is_ipv6(name, first) else 32)
        return f"{_plain(name, first)}/{second}" if is_length else f"{first:#x}/{second:#x}"
    if name.endswith("mac"):
        return ":".join(f"{byte:02x}" for byte in value.to_bytes(6, "big"))
    if name.endswith(("addr", "vtep")):
        return str((IPv6Address if _is_ipv6(name, value) else IPv4Address)(value))
    return str(value)


def _is_ipv6(name: str, value: int) -> bool:
    """Of an address, whose table may be all that says so."""
    return "ipv6" in name or value >> 32 > 0


class _Probes(Data, frozen=False):
    """Reports of packets that we sent to an address."""

    address: Address
    reports: list[Report] = field(default_factory=list)

    def take(self, frame: bytes) -> None:
        """Keep a report if it is of one of them."""
        with suppress(ReportError):
            report = decode(frame)
            flow = report.flow
            if flow and (str(flow.dst), flow.dst_port) == (str(self.address), _PROBE_PORT):
                self.reports.append(report)

    def ways(self) -> list[Report]:
        """Once they have come, one for each way that was taken."""
        deadline = time.monotonic() + _REPORT_S * slowness()
        while time.monotonic() < deadline and len(self.reports) < _PROBES:
            time.sleep(_POLL_S)
        return list(
            {tuple(h.node for h in report.hops): report for report in self.reports}.values()
        )


def prompt(
    up: EmulatedFabric, console: Console, conclude: Callable[[Outcome], object], name: str
) -> bool:
    """Hand the fabric to the user until they leave; it is known by a name to other terminals.

    Whether there was traffic, of which there is a result.
    """
    made: list[Outcome] = []

    def traffic() -> Outcome:
        outcome = proved(up.experiment, up.measure(up.hands.enough))
        conclude(outcome)
        made[:] = [outcome]
        return outcome

    setting = up.emulation.switches.setting
    pace = (
        f"Time is stretched: what takes a second here takes {duration(1e9 / setting.dilation)} in "
        f"the fabric, whose links have the scenario's rates ({setting.dilation:,} times slower)."
    )
    console.print(
        f"\nThe fabric is up. {pace}\n"
        "Try  [bold]h1 ping -c 3 h8[/],  [bold]pingall[/],  [bold]net[/],  and what it can tell:\n"
        "  [bold]traffic[/]  [bold]queues[/]  [bold]counters[/]  [bold]pause[/]  "
        "[bold]tables leaf1[/]  [bold]int h1 h5[/]  [bold]lb conga[/]  "
        "[bold]fail leaf1 spine2[/]  [bold]drain leaf1-spine2[/]  [bold]planes[/]  "
        "[bold]segments h1 h8[/]\n"
        "[bold]help[/] lists all words, [bold]help int[/] explains one; [bold]exit[/] takes the "
        "fabric down.\n"
        "From a second terminal:  [bold]closlab shell leaf1[/],  [bold]closlab enter h1[/]  and  "
        "[bold]closlab pcap leaf1-spine1[/];\n"
        f"this lab's name, should several run, is [bold]{name}[/]: add --lab {name}.",
        highlight=False,
        soft_wrap=True,
    )
    setLogLevel("info")
    up.hands.traffic = traffic
    LabPrompt(up.emulation, up.hands, traffic)
    up.hands.end_sending()
    setLogLevel("critical")
    return bool(made)


def _ends(link: Link) -> list[str]:
    """A cable in two words: its name, parted in the middle."""
    return link.name.split("-")
