"""What is read of hosts' notes while they write: never half a line, never another run's."""

import random
from pathlib import Path

import pytest

from lab.engines.mininet.notes import HostNotes
from traffic.collectives import NEVER

HOSTS, TRANSFERS = ("h1", "h2", "h3"), 12


class Program:
    """A host's, that writes when it likes, and of a line as much as its buffer gives away."""

    def __init__(self, draw: random.Random, path: Path, epoch_ns: int) -> None:
        path.unlink(missing_ok=True)
        self._file = path.open("wb")
        self._draw = draw
        here = HOSTS.index(path.stem)
        own = [("began", n) for n in range(TRANSFERS) if n % len(HOSTS) == here]
        own += [("ended", n) for n in range(TRANSFERS) if (n + 1) % len(HOSTS) == here]
        notes = [(w, n, draw.randrange(10**6)) for w, n in draw.sample(own, draw.randrange(9))]
        self.lines = [f"epoch {epoch_ns}", *(f"{w} {n} {at}" for w, n, at in notes)]
        self._left = "".join(f"{line}\n" for line in self.lines).encode()
        self._written = b""

    def write(self, count: int | None = None) -> None:
        count = self._draw.randrange(40) if count is None else count
        self._file.write(self._left[:count])
        self._file.flush()
        self._written += self._left[:count]
        self._left = self._left[count:]

    def finish(self) -> None:
        self.write(len(self._left))
        self._file.close()

    @property
    def notes(self) -> list[list[str]]:
        """Whole lines."""
        return [line.split() for line in self._written.decode().split("\n")[:-1]]


def expected(programs: list[Program]) -> tuple[int, list[int], list[int]]:
    """By the words alone: of all that was told whole, what belongs to the latest run."""
    begun = [int(p.notes[0][1]) for p in programs if p.notes]
    latest = max(begun, default=0)
    starts, ends = [NEVER] * TRANSFERS, [NEVER] * TRANSFERS
    for program in programs:
        if program.notes and int(program.notes[0][1]) == latest:
            for word, number, at in program.notes[1:]:
                (starts if word == "began" else ends)[int(number)] = int(at)
    return latest, starts, ends


@pytest.mark.parametrize("seed", range(30))
def test_it_is_what_was_written_whole_of_the_last_run(seed: int, tmp_path: Path) -> None:
    draw = random.Random(seed)
    notes = HostNotes(tmp_path, HOSTS, TRANSFERS)
    programs: list[Program] = []

    def look() -> None:
        notes.read()
        assert (notes.epoch_ns, notes.starts, notes.ends) == expected(programs)

    look()  # before there is anything
    for run in range(1, draw.randrange(2, 5)):
        current = []
        for host in draw.sample(HOSTS, len(HOSTS)):
            current.append(Program(draw, tmp_path / f"{host}.notes", run * 1000))
            programs.append(current[-1])
            look()
        for _ in range(draw.randrange(20)):
            draw.choice(current).write()
            if draw.random() < 0.5:
                look()
        for program in current:
            program.finish()
        look()
    notes.close()
    for host in HOSTS:
        (tmp_path / f"{host}.notes").unlink()
    look()  # a lab that is gone says nothing more
