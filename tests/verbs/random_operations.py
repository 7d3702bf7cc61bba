"""Random operations over pairs of queues, compared with a model, on a wire that does its worst.

    python -m tests.verbs.random_operations [OPERATIONS [SEED]]

Two programs ask each other at once, over two queue pairs. In rounds, each with a path MTU, packet
numbers and a rate of loss of its own (and as much reordering and duplication), until so many
operations were done: 10^6 by default. It prints each round's differences, and exits with 1 if there
are any. A round's seed repeats it: ``... OPERATIONS SEED`` begins with that round.
"""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Sequence
from functools import cached_property
from pathlib import Path
from tempfile import TemporaryDirectory

from params.data import Data
from switch import build
from tests.verbs.model import Plan, differences, draw_plan
from tests.verbs.wire import libraries_in, over_wire
from traffic.verbs import LIBRARIES

HERE = Path(__file__).parent
ABI = LIBRARIES[0].exports.parent
STRICT = ("-std=gnu11", "-O1", "-Wall", "-Wextra", "-Werror")
MTUS = 5
LOSSES = (0, 0.003, 0.01, 0.02, 0.05)
A_ROUND = 10_000
MILLION = 1_000_000


class Round(Data):
    """So many operations in either direction, all that is drawn of them from one seed."""

    seed: int
    operations: int
    folder: Path

    @property
    def mtu(self) -> int:
        return 1 + self.seed % MTUS

    @property
    def loss(self) -> float:
        return LOSSES[self.seed // MTUS % len(LOSSES)]

    @cached_property
    def plans(self) -> tuple[Plan, Plan]:
        """Of who waits, and of who connects."""
        half = self.operations // 2
        first, second = (draw_plan(2 * self.seed + end, half, self.mtu) for end in (0, 1))
        return first, second

    def write(self, player: Path) -> list[str]:
        """The commands that carry them out."""
        commands = []
        for end, address in enumerate(("-", "10.9.0.1")):
            path, log = self.folder / f"plan-{end}", self.folder / f"log-{end}"
            path.write_bytes(self.plans[end].packed(self.plans[1 - end]))
            log.write_bytes(b"")
            commands.append(f"{player} {address} {path} {log}")
        return commands

    def written(self, end: int) -> bytes:
        """What came of it."""
        return (self.folder / f"log-{end}").read_bytes()

    def differences(self, libraries: Path, player: Path, pcap: str = "-") -> list[str]:
        """Carry them out, and compare."""
        waits, asks = self.write(player)
        ended = over_wire(libraries, waits, asks, loss=self.loss, seed=self.seed, pcap=pcap)
        found = [f"a program ended with {code}: {said.strip()}" for code, said in ended if code]
        for end in (0, 1):
            found += differences(self.plans[end], self.written(end), self.written(1 - end))
        return found


def compile_player(libraries: Path, *more: str) -> Path:
    """The program that carries plans out."""
    program = libraries / "player"
    linked = ("-L", str(libraries), "-l:libibverbs.so.1")
    command = [*build.compiler(), *STRICT, f"-I{ABI}", *more, str(HERE / "player.c"), *linked]
    subprocess.run([*command, "-o", str(program)], check=True)
    return program


def main(words: Sequence[str]) -> int:
    """The exit code."""
    wanted = int(words[0]) if words else MILLION
    seed = int(words[1]) if len(words) > 1 else 1
    done, bad, began = 0, 0, time.monotonic()
    with TemporaryDirectory() as name:
        folder = Path(name)
        libraries = libraries_in(folder)
        player = compile_player(libraries)
        while done < wanted:
            one = Round(seed, min(A_ROUND, wanted - done), folder)
            found = one.differences(libraries, player)
            done += one.operations
            bad += len(found)
            print(
                f"seed {seed:4} mtu {128 << one.mtu:4} lost {one.loss:5.1%}: operations {done:9,} "
                f"differences {bad}, {time.monotonic() - began:,.0f} s",
                *(f"  {line}" for line in found[:10]),
                sep="\n",
                flush=True,
            )
            seed += 1
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
