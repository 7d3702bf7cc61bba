"""A lab with routers of others in it, and what everybody should know: asked from outside of it.

    python -m tests.lab.neighbours --minutes 60 --seed 1

lets chaos have its way with such a lab: by lot cables are cut, drained and used again, and daemons,
the switches' and the routers', are killed. After every few blows it waits until all switches'
tables are what a model of the graph says, and at the end, with everything mended, the routers' own
tables as well. It ends with 1 at the first that does not come to agree within its time.

The model is breadth-first search of its own; it shares nothing with controller/routes.py.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import field
from pathlib import Path

from lab.machine.speed import slowness
from params.data import Data
from tests.lab.conftest import closlab
from tests.lab.test_prompt import Prompt
from tests.waiting import LONG_S

LEAVES, SPINES = 4, 2
OUTSIDE = {
    "h2": ("bird", ("198.51.100.0/24", "2001:db8:1::/48", "192.0.2.128/25")),
    "h6": ("gobgp", ("203.0.113.0/24", "2001:db8:2::/48", "192.0.2.128/25")),
    "h8": ("exabgp", ("192.0.2.0/25", "2001:db8:3::/48")),
}
SHARED = "192.0.2.128/25"  # behind both h2 and h6
PROGRAMS = {"h2": "bird", "h6": "gobgpd", "h8": "exabgp"}
CABLES = [f"leaf{leaf}-spine{spine}" for leaf in range(1, 1 + LEAVES) for spine in (1, 2)]
_PATIENCE_S = 60.0
Ways = dict[str, frozenset[int]]  # by prefix: ports


def leaf_of(host: str) -> int:
    """The number of a host's leaf, of two hosts each."""
    return (int(host[1:]) + 1) // 2


def places(quiet: Collection[str] = ()) -> dict[str, dict[int, int]]:
    """By prefix: the leaves it is behind, and their port there; 0: a subnet of the leaf's own.

    What a quiet router says counts only where nobody else says it.
    """
    found: dict[str, dict[int, int]] = {
        f"10.0.{leaf}.0/24": {leaf: 0} for leaf in range(1, 1 + LEAVES)
    }
    for host, (_, prefixes) in OUTSIDE.items():
        for prefix in prefixes:
            found.setdefault(prefix, {})[leaf_of(host)] = 2 - int(host[1:]) % 2
    for host in quiet:
        for prefix in OUTSIDE[host][1]:
            if len(found[prefix]) > 1:
                del found[prefix][leaf_of(host)]
    return found


def model(
    switch: str, cut: Collection[str], drained: Collection[str] = (), quiet: Collection[str] = ()
) -> Ways:
    """A switch's ports on all shortest ways; by drained cables only to where none else leads.

    What ``quiet`` routers say counts only where nobody else says it.
    """
    found: Ways = {}
    for unused in ({*cut, *drained}, {*cut}):
        joined = cabling(unused)
        for prefix, leaves in places(quiet).items():
            ways = shortest(joined, switch, leaves)
            if ways and prefix not in found:
                found[prefix] = ways
    return found


def cabling(unused: Collection[str]) -> dict[str, dict[str, int]]:
    """By switch, who is at its other ends, and by which port."""
    joined: dict[str, dict[str, int]] = {}
    for cable in CABLES:
        leaf, spine = cable.split("-")
        if cable not in unused:
            joined.setdefault(leaf, {})[spine] = 2 + int(spine[5:])  # after its two hosts
            joined.setdefault(spine, {})[leaf] = int(leaf[4:])
    return joined


def shortest(
    joined: dict[str, dict[str, int]], switch: str, leaves: dict[int, int]
) -> frozenset[int]:
    """A switch's ports towards the nearest of some leaves; none: BGP tells it of no way."""
    far = {f"leaf{leaf}": 0 for leaf in leaves}
    ring = [*far]
    for hops in range(1, 1 + len(SWITCHES)):
        ring = [n for node in ring for n in joined.get(node, ()) if n not in far]
        far |= dict.fromkeys(ring, hops)
    if far.get(switch) == 0:
        port = leaves[int(switch[4:])]
        return frozenset([port] if port else ())
    peers = joined.get(switch, {}).items()
    return frozenset(port for peer, port in peers if far.get(peer) == far.get(switch, 0) - 1)


SWITCHES = [f"leaf{n}" for n in range(1, 1 + LEAVES)] + [f"spine{n}" for n in range(1, 1 + SPINES)]


class Lab(Data, frozen=False):
    """One that is up."""

    prompt: Prompt
    cut: set[str] = field(default_factory=set)
    drained: set[str] = field(default_factory=set)

    @classmethod
    @contextmanager
    def up(cls, out: Path, *words: str) -> Iterator[Lab]:
        """Bring one up, and take it down."""
        routers = ", ".join(
            f"{{host: {host}, speaks: {speaks}, prefixes: [{', '.join(map(repr, prefixes))}]}}"
            for host, (speaks, prefixes) in OUTSIDE.items()
        )
        settings = "--control", "bgp", "--set", f"topology.outside=[{routers}]"
        prompt = Prompt(out, *settings, *words)
        try:
            yield cls(prompt)
        finally:
            try:
                prompt.process.communicate(b"exit\n", timeout=LONG_S)
            except subprocess.TimeoutExpired:
                prompt.process.terminate()  # it says where it stands, if it does not end now
                prompt.process.wait()
                raise

    def known(self, switch: str) -> Ways:
        """Where its tables lead what BGP found."""
        tables = self.prompt.ask(
            *(f"tables {switch} {table}" for table in ("ipv4_routes", "ipv6_routes", "group_slots"))
        )
        groups: dict[str, set[int]] = {}
        for group, port in re.findall(r"group (\d+), member \d+ +\S*way\(.*port (\d+)", tables[2]):
            groups.setdefault(group, set()).add(int(port))
        found = {}
        rows = re.findall(r"dst_addr (\S+) +to_(\w+)\((.*)\) +bgp", tables[0] + tables[1])
        for prefix, kind, rest in rows:
            said = dict(re.findall(r"(\w+) (\d+)", rest))
            ways = groups.get(said["group"], ()) if kind == "group" else [int(said["port"])]
            found[prefix] = frozenset(ways)
        return found

    def wrong(self, quiet: Collection[str] = ()) -> str:
        """What a switch knows otherwise than the model, if any does."""
        for switch in SWITCHES:
            wanted, found = model(switch, self.cut, self.drained, quiet), self.known(switch)
            if wanted != found:
                return f"{switch}: {sorted(wanted.items() ^ found.items())}"
        return ""

    def settle(self, quiet: Collection[str] = ()) -> None:
        """Wait until everybody agrees with the model."""
        until(lambda: self.wrong(quiet))

    def control(self, switch: str, *words: str) -> str:
        """What a command says in a switch's room."""
        done = closlab("enter", switch, "--control", *words)
        return done.stdout + done.stderr

    def kill(self, who: str, daemon: str) -> None:
        """Have a daemon die."""
        if who in OUTSIDE:
            closlab("enter", who, "sh", "-c", f"kill -9 $(cat {self.folder(who)}/pid)")
        else:
            self.control(who, "sh", "-c", f"kill -9 $(cat /run/frr/{daemon}.pid)")

    def birdc(self, host: str, words: str) -> str:
        """What BIRD says, asked from a second terminal."""
        done = closlab("enter", host, "birdc", "-s", f"{self.folder(host)}/ctl", words)
        return done.stdout + done.stderr

    def folder(self, host: str) -> Path:
        """What a router reads and says."""
        return (self.prompt.out / "logs/outside" / host).absolute()

    def heard(self, host: str) -> set[str]:
        """The prefixes that a router knows of others."""
        speaks, own = OUTSIDE[host]
        if speaks == "bird":
            said = self.prompt.ask(f"{host} birdc -s {self.folder(host)}/ctl show route")[0]
            found = set(re.findall(r"^(\S+/\d+) .*\[leaf ", said, re.MULTILINE))
        elif speaks == "gobgp":
            said = "".join(self.prompt.ask(*(f"{host} gobgp global rib -a ipv{n}" for n in (4, 6))))
            found = set(re.findall(r"^\*>? +(\S+/\d+) ", said, re.MULTILINE))
        else:
            found = exabgp_knows(self.folder(host) / "heard")
        return found - {*own}


def exabgp_knows(path: Path) -> set[str]:
    """What it has been told and not untold, by what it wrote down since its session began."""
    found: set[str] = set()
    for line in path.read_text().splitlines():
        event = json.loads(line)
        if event["type"] == "state" and event["neighbor"]["state"] == "down":
            found.clear()
        update = event.get("neighbor", {}).get("message", {}).get("update", {})
        for family in update.get("announce", {}).values():
            found |= {each["nlri"] for hop in family.values() for each in hop}
        for family in update.get("withdraw", {}).values():
            found -= {each["nlri"] for each in family}
    return found


def others_of(host: str) -> set[str]:
    """What a router should have heard of, with everything mended."""
    return {*places()} - {*OUTSIDE[host][1]}


def until(wrong: Callable[[], str], patience_s: float = _PATIENCE_S) -> None:
    """Wait until nothing is wrong any more."""
    end = time.monotonic() + patience_s * slowness()
    while said := wrong():
        if time.monotonic() > end:
            raise AssertionError(said)
        time.sleep(0.3)


def blow(lab: Lab, draw: random.Random) -> str:
    """Something by lot, in words; cables are cut and drained at one spine only, so that the other
    joins all leaves."""
    kind = draw.choice(("cut", "drain", "daemon", "router", "router"))
    if kind == "daemon":
        who, daemon = draw.choice(SWITCHES), draw.choice(("bgpd", "zebra", "bfdd"))
        lab.kill(who, daemon)
        return f"{daemon} of {who} is killed"
    if kind == "router":
        host = draw.choice([*OUTSIDE])
        lab.kill(host, PROGRAMS[host])
        return f"{PROGRAMS[host]} of {host} is killed"
    suffering, hit, spare = (
        (lab.cut, "fail", "mend") if kind == "cut" else (lab.drained, "drain", "undrain")
    )
    cable = draw.choice(CABLES)
    if cable in suffering:
        suffering.discard(cable)
        lab.prompt.ask(f"{spare} {cable.replace('-', ' ')}")
        return f"{spare} {cable}"
    unused = lab.cut | lab.drained
    if cable in unused or {each[-1] for each in unused} - {cable[-1]}:
        return ""
    suffering.add(cable)
    said = lab.prompt.ask(f"{hit} {cable.replace('-', ' ')}")[0]
    assert not said.startswith("***"), said
    return f"{hit} {cable}"


def chaos(lab: Lab, seconds: float, draw: random.Random, say: Callable[[str], object]) -> int:
    """Let blows fall for so long, everybody agreeing in between, and at the end all of it."""
    end, blows, rounds = time.monotonic() + seconds, 0, 0
    lab.settle()
    while time.monotonic() < end:
        for _ in range(draw.randint(1, 4)):
            if what := blow(lab, draw):
                blows += 1
                say(what)
            time.sleep(draw.uniform(0, 3))
        lab.settle()
        rounds += 1
        say(f"agreed, {rounds} times by now")
    for word, cables in (("mend", lab.cut), ("undrain", lab.drained)):
        lab.prompt.ask(*(f"{word} {cable.replace('-', ' ')}" for cable in sorted(cables)))
        cables.clear()
    lab.settle()
    for host in OUTSIDE:
        until(lambda host=host: str(lab.heard(host) ^ others_of(host) or ""))
    say(f"{blows} blows, {rounds} times all switches agreed with the model, and the routers do")
    return blows


def main(words: Sequence[str]) -> int:
    """Chaos for as long as one likes."""
    parser = argparse.ArgumentParser(prog="tests.lab.neighbours", description=__doc__)
    parser.add_argument("--minutes", type=float, default=10.0)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--out", type=Path, help="where what everybody says is kept")
    options = parser.parse_args(words)
    began = time.monotonic()

    def say(what: str) -> None:
        print(f"{time.monotonic() - began:7.1f} s  {what}", flush=True)

    with tempfile.TemporaryDirectory() as folder:
        os.environ["CLOSLAB_RUNNING"] = f"{folder}/running"  # whatever else runs here
        with Lab.up(options.out or Path(folder) / "out") as lab:
            say(f"seed {options.seed}: up")
            try:
                chaos(lab, options.minutes * 60, random.Random(options.seed), say)
            except AssertionError as error:
                say(f"no agreement: {error}")
                for switch in SWITCHES:
                    print(lab.control(switch, "vtysh", "-c", "show running-config"))
                    print(lab.control(switch, "vtysh", "-c", "show bgp summary"))
                    print(lab.control(switch, "vtysh", "-c", "show bgp all"))
                return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
