"""Damaged files of every format: a message with the place, or a graph; never anything else."""

from __future__ import annotations

from pathlib import Path
from random import Random

import pytest

from tests.traffic.traces.programs import as_chakra, as_goal, random_program
from tests.traffic.traces.test_jobs import layers
from tests.traffic.traces.xml_rings import ring
from traffic.collectives import Site, TrafficError
from traffic.jobs import make_workload, read_traffic

FORMATS = ("table", "htsim", "goal", "chakra", "msccl", "aicb")
ROUNDS = 150
_WORDS = (
    *(b"0", b"-1", b"99999999999999999999", b"1e9", b"{", b"}", b",", b"\n", b"", b"\xff", b"->"),
    *(b"requires", b"trigger 1 ", b"<", b"&amp;", b"\x80" * 10),
)


def sound(kind: str, folder: Path, chance: Random) -> tuple[Path, dict[str, object]]:
    """A file that can be read, and the traffic that reads it."""
    path = folder / "sound"
    extra: dict[str, object] = {}
    ranks, deeds = random_program(chance, step_ns=1000)
    match kind:
        case "table":
            path.write_text("start_ns,src,dst,bytes\n0,h1,h2,5000\n100,2,h4,70\n")
        case "htsim":
            path.write_text("Nodes 4\nConnections 2\nTriggers 1\n0->1 id 1 start 5 size 7 "
                            "send_done_trigger 1\n2->3 id 2 trigger 1 size 9\n"
                            "trigger id 1 barrier count 1\n")  # fmt: skip
        case "goal":
            path.write_text(as_goal(ranks, deeds, chance))
        case "chakra":
            as_chakra(ranks, deeds, folder, chance)
            return folder / "trace.0.et", {"kind": kind, "files": str(folder)}
        case "msccl":
            path.write_text(ring(chance.randint(2, 4), chance.randint(1, 2)))
            extra = {"bytes": 100_000}
        case "aicb":
            rows = [
                "a -1 5 ALLREDUCE 20 7 ALLGATHER 20 3 NONE 0 0",
                "b -1 1 NONE 0 2 NONE 0 1 ALLTOALL_EP 40 5",
            ]
            path.write_text(layers(2, 1, 8, rows))
    return path, {"kind": kind, "file": str(path), **extra}


def damaged(data: bytes, chance: Random) -> bytes:
    """The same with a few things done to it."""
    for _ in range(chance.randint(1, 4)):
        at, to = sorted(chance.randint(0, len(data)) for _ in range(2))
        match chance.randrange(6):
            case 0:
                data = data[:at] + chance.choice(_WORDS) + data[at:]
            case 1:
                data = data[:at] + data[min(to, at + 12) :]
            case 2:
                data = data[:at] + bytes([chance.randrange(256)]) + data[at + 1 :]
            case 3:
                data = data[:at]
            case 4:
                data += data[at:to]
            case 5:
                data = data[:at] + data[at : at + 20] * 3 + data[at:]
    return data


def attack(kind: str, folder: Path, rounds: int, seed: int) -> int:
    """How many of so many damaged files were refused."""
    chance = Random(seed)
    refused = 0
    path, traffic = sound(kind, folder, chance)
    data = path.read_bytes()
    assert len(make_workload(read_traffic(traffic), Site(64)).schedule)
    for _ in range(rounds):
        path.write_bytes(damaged(data, chance))
        try:
            make_workload(read_traffic(traffic), Site(64))
        except TrafficError as error:
            refused += 1
            assert str(error)
            assert len(str(error)) < 600
    return refused


@pytest.mark.parametrize("kind", FORMATS)
def test_damage_is_told_and_never_more(kind: str, tmp_path: Path) -> None:
    assert attack(kind, tmp_path, ROUNDS, seed=1) > ROUNDS / 10


@pytest.mark.slow
@pytest.mark.parametrize("kind", FORMATS)
def test_much_damage_is_told_and_never_more(kind: str, tmp_path: Path) -> None:
    refused = 0
    for seed in range(10):
        (tmp_path / str(seed)).mkdir()
        refused += attack(kind, tmp_path / str(seed), 1000, seed)
    assert refused > 1000


def test_what_is_no_file_is_told(tmp_path: Path) -> None:
    for kind, key in (("goal", "file"), ("chakra", "files"), ("table", "file"), ("msccl", "file")):
        for path in ("/dev/zero", str(tmp_path / "nowhere"), str(tmp_path), "a\0b"):
            traffic = {"kind": kind, key: path, **({"bytes": 5} if kind == "msccl" else {})}
            with pytest.raises(TrafficError):
                make_workload(read_traffic(traffic), Site(4))
