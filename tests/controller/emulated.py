"""A fabric of namespaces and veths with a controller as a process of its own, in a capsule.

    python -m tests.controller.emulated FOLDER       raises if something is not as it should be
    python -m tests.controller.emulated keep FILE    is that controller: tells what it changed

The fabric is a leaf-spine of 2 x 2 with two hosts; h1 and h2 ping each other all the while.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import re
import select
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

from controller import Keeper, LinkSpec, Settings, Target
from controller.entities import Changes
from lab.engines.mininet.capsule import run_in_capsule
from lab.engines.mininet.emulation import Emulation
from lab.engines.mininet.switches import Setting
from lab.engines.mininet.switches.soft import SoftSwitches
from lab.machine.tools import require_emulation
from topologies import Node, leaf_spine

FABRIC = leaf_spine(2, 2, 1)
SOON_S = 60.0


# --- the controller -------------------------------------------------------------------------------


async def keep(targets: tuple[Target, ...]) -> None:
    """Keep the fabric until killed; a line of JSON for each change and each state of cables."""

    def say(**words: object) -> None:
        print(json.dumps(words), flush=True)

    def tell(name: str, changed: Changes) -> None:
        say(switch=name, changed=len(changed))

    async with Keeper(FABRIC, targets, Settings(), on_change=tell) as keeper:
        await keeper.settled()
        say(settled=True)
        known = keeper.dead
        while True:
            await asyncio.sleep(0.01)
            if keeper.dead != known:
                known = keeper.dead
                await keeper.settled()
                say(dead=len(known))


class Controller:
    """That process, from outside."""

    def __init__(self, file: Path) -> None:
        words = [sys.executable, "-m", "tests.controller.emulated", "keep", str(file)]
        # Without a buffer of ours: what had gone there, select would not tell of.
        self.process = subprocess.Popen(words, stdout=subprocess.PIPE, bufsize=0)
        self.changed: dict[str, int] = {}  # entities told, by switch, since last asked

    def wait(self, **words: object) -> dict[str, int]:
        """Wait until it says so; what it changed until then."""
        assert self.process.stdout is not None
        until = time.monotonic() + SOON_S
        while time.monotonic() < until:
            if not select.select([self.process.stdout], [], [], 0.1)[0]:
                continue
            line = json.loads(self.process.stdout.readline())
            if line == words:
                changed, self.changed = self.changed, {}
                return changed
            name = line.get("switch")
            if name and line["changed"]:
                self.changed[name] = self.changed.get(name, 0) + line["changed"]
        raise AssertionError(f"in vain waited for {words}")

    def kill(self) -> None:
        """As abruptly as can be."""
        self.process.kill()
        self.process.wait()


# --- the fabric -----------------------------------------------------------------------------------


class Pinging:
    """h1 pings h2, a hundred times a second."""

    def __init__(self, emulation: Emulation) -> None:
        peer = FABRIC.address(FABRIC.node("h2"))
        self._process = emulation.network.get("h1").popen(
            ["ping", "-i", "0.01", str(peer)], stdout=subprocess.PIPE, text=True
        )

    def lost(self) -> int:
        """Pings that were not answered, in all; the last may still be under way."""
        self._process.send_signal(2)
        said = self._process.communicate(timeout=10)[0]
        sent, got = map(int, re.findall(r"(\d+) packets transmitted, (\d+) received", said)[0])
        assert got > 20, said
        return max(0, sent - got - 1)


@contextlib.contextmanager
def fabric(folder: Path) -> Iterator[Emulation]:
    """The fabric, up, and told nothing."""
    built = SoftSwitches.build_program(folder)

    def cable(_switch: Node, _port: int) -> LinkSpec:
        return LinkSpec(rate_bps=10**9, delay_ns=1000)

    switches = SoftSwitches(Setting(FABRIC, built, folder / "logs", cable))
    emulation = Emulation(FABRIC, switches, Settings())
    try:
        emulation.lay_cables()
        switches.start()
        yield emulation
    finally:
        emulation.take_down()


def controller_survives_and_repairs(folder: Path) -> None:
    """The story."""
    with fabric(folder) as emulation:
        targets = folder / "targets.json"
        targets.write_text(
            json.dumps(
                [[t.name, t.address, t.device_id, str(t.p4info), str(t.program)]
                 for t in emulation.switches.targets]
            )
        )  # fmt: skip
        controller = Controller(targets)
        first = controller.wait(settled=True)
        assert set(first) == {switch.name for switch in FABRIC.switches}, first
        assert not emulation.ping_all().silent

        # Killed, and started again: nothing is told anew, no ping is lost.
        pings = Pinging(emulation)
        time.sleep(0.5)
        controller.kill()
        time.sleep(0.5)
        controller = Controller(targets)
        again = controller.wait(settled=True)
        assert again == {}, again
        assert (lost := pings.lost()) == 0, lost

        # A cable is cut: those it concerns go round it.
        (link,) = (link for link in FABRIC.links if link.name == "leaf1-spine1")
        pings = Pinging(emulation)
        time.sleep(0.5)
        emulation.set_up(link, is_up=False)
        repaired = controller.wait(dead=1)
        assert {"leaf2"} <= set(repaired) <= {"leaf1", "leaf2", "spine1"}, repaired
        time.sleep(0.5)
        assert (lost := pings.lost()) <= 100, lost  # a second's worth; none once the repair is done
        pings = Pinging(emulation)
        time.sleep(0.5)
        assert (lost := pings.lost()) == 0, lost

        # And mended: all is as it was.
        emulation.set_up(link, is_up=True)
        back = controller.wait(dead=0)
        assert set(back) == set(repaired), (back, repaired)
        assert not emulation.ping_all().silent
        controller.kill()


def main() -> int:
    """Be the controller, or tell the story."""
    if sys.argv[1] == "keep":
        rows = json.loads(Path(sys.argv[2]).read_text())
        asyncio.run(keep(tuple(Target(n, a, d, Path(p), Path(j)) for n, a, d, p, j in rows)))
        return 0
    folder = Path(sys.argv[1])
    require_emulation()

    def inside() -> int:
        controller_survives_and_repairs(folder)
        return 0

    return run_in_capsule(inside, lambda _: None)


if __name__ == "__main__":
    sys.exit(main())
