"""nccl-tests over the hosts' adapters: what ranks are to do, their data, the table."""

from __future__ import annotations

import random
import re
import subprocess
from collections import deque
from collections.abc import Iterator
from dataclasses import field
from itertools import product
from pathlib import Path
from typing import Any

import pytest

from lab.commands.nccl_tests import command
from lab.errors import LabError
from lab.machine.native_host import nccl_rank_program
from lab.runs.nccl_tests import fitted
from lab.runs.verbs import bytes_of_pair
from params.data import Data
from switch import build
from tests.lab.conftest import closlab
from tests.verbs.random_operations import ABI, STRICT
from tests.verbs.wire import libraries_in, over_wire
from traffic.collectives import ALGORITHMS, IN_NETWORK, SpecError
from traffic.nccl_tests import PROGRAMS, RANK_SOURCE, TYPES, Test, plan_texts, sizes

HERE = Path(__file__).parent
ROW = re.compile(r"^ +(\d+) +(\d+) +(\w+) +(\w+) +(-?\d+)((?: +[\d.]+| +N/A){8})$", re.MULTILINE)


# --- plans ----------------------------------------------------------------------------------------


class Line(Data, frozen=False):
    """A transfer as a rank's plan has it."""

    connection: int
    at: int
    count: int
    reduces: bool
    waits: list[int]
    is_over: bool = False


class Part(Data, frozen=False):
    """A rank's plan for one size."""

    words: Iterator[int]
    lines: list[Line] = field(default_factory=list)

    def __post_init__(self) -> None:
        *_, count = (next(self.words) for _ in range(5))
        for _ in range(count):
            connection, at, size, reduces, waits = (next(self.words) for _ in range(5))
            waits_for = [next(self.words) for _ in range(waits)]
            self.lines.append(Line(connection, at, size, bool(reduces), waits_for))


def carried_out(test: Test, size: int, chance: random.Random) -> list[list[int]]:
    """What ranks have in the end if each follows its plan, in whatever order things happen.

    Elements are numbers of a byte. A connection keeps its order; what is sent is what lies there.
    """
    plans, ways = [], []
    for text in plan_texts(test):
        head, *_ = text.splitlines()
        words = map(int, text.split()[len(head.split()) :])
        count = int(head.split()[-1])
        ways.append([tuple(next(words) for _ in range(3)) for _ in range(count)])
        Part(words), Part(words)  # to warm up with
        next(words)
        plans.append([Part(words) for _ in test.sizes][test.sizes.index(size)])
    sent, got = before(test, size), after_copies(test, size)
    exchanges = test.op in ("all-to-all", "send-receive")
    wires: dict[int, deque[list[int]]] = {}
    heads = [
        [
            [n for n, line in enumerate(plan.lines) if line.connection == way]
            for way in range(len(mine))
        ]
        for plan, mine in zip(plans, ways, strict=True)
    ]
    while open_ := [
        (rank, way)
        for rank, queues in enumerate(heads)
        for way, queue in enumerate(queues)
        if queue
    ]:
        able = []
        for rank, way in open_:
            line, (sends, handle, _) = plans[rank].lines[heads[rank][way][0]], ways[rank][way]
            waits = all(plans[rank].lines[each].is_over for each in line.waits)
            if waits if sends else wires.get(handle):
                able.append((rank, way, line, sends, handle))
        assert able, "everybody waits"
        rank, way, line, sends, handle = chance.choice(able)
        if sends:
            source = (sent if exchanges else got)[rank]
            wires.setdefault(handle, deque()).append(source[line.at : line.at + line.count])
        else:
            data = wires[handle].popleft()
            assert len(data) == line.count
            for place, one in enumerate(data, line.at):
                got[rank][place] = got[rank][place] + one if line.reduces else one
        line.is_over = True
        heads[rank][way].pop(0)
    return got


def own(rank: int, place: int) -> int:
    """What a rank sends at a place: sums of them tell who is in them."""
    return (1 << rank) * 1000 + place


def before(test: Test, size: int) -> list[list[int]]:
    """What ranks have to send."""
    return [[own(rank, at) for at in range(test.counts(size)[0])] for rank in range(test.ranks)]


def after_copies(test: Test, size: int) -> list[list[int]]:
    """Where what they have lies when they begin."""
    sends, gets, _ = test.counts(size)
    whole = max(sends, gets, test.ranks * test.channels)
    made = [[0] * whole for _ in range(test.ranks)]
    for rank, mine in enumerate(made):
        if test.op in ("all-reduce", "reduce-scatter") or (
            test.op == "broadcast" and rank == test.root
        ):
            mine[:sends] = before(test, size)[rank]
        elif test.op == "all-gather":
            mine[rank * sends : (rank + 1) * sends] = before(test, size)[rank]
        elif test.op == "all-to-all":
            part = slice(rank * sends // test.ranks, (rank + 1) * sends // test.ranks)
            mine[part] = before(test, size)[rank][part]
    return made


def wanted(test: Test, size: int, rank: int) -> dict[int, int]:
    """By place, what an operation is to leave at a rank."""
    sends, gets, part = test.counts(size)
    everybody = range(test.ranks)
    match test.op:
        case "all-reduce":
            return {at: sum(own(each, at) for each in everybody) for at in range(gets)}
        case "reduce-scatter":
            mine = range(rank * gets, (rank + 1) * gets)
            return {at: sum(own(each, at) for each in everybody) for at in mine}
        case "all-gather":
            return {at: own(at // part, at % part) for at in range(gets)}
        case "all-to-all":
            return {at: own(at // part, rank * part + at % part) for at in range(gets)}
        case "broadcast":
            return {at: own(test.root, at) for at in range(gets)}
    return {at: own((rank - 1) % test.ranks, at) for at in range(sends)}


def algorithms(op: str) -> list[str | None]:
    return [each for each in ALGORITHMS.get(op, [None]) if each != IN_NETWORK]


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("program", PROGRAMS)
def test_plans_come_to_what_the_operation_is_in_any_order(program: str, seed: int) -> None:
    chance = random.Random(seed)
    for algorithm in algorithms(PROGRAMS[program][0]):
        ranks = chance.choice([4, 8])
        channels = 1 if algorithm in ("halving-doubling", "halving", "doubling") else seed + 1
        asked = tuple(sorted(chance.sample(range(1, 700), 3)))
        root = chance.randrange(ranks)
        test = Test(program, ranks, asked, 1, type="int8", algorithm=algorithm, channels=channels,
                    root=root)  # fmt: skip
        for size in asked:
            got = carried_out(test, size, chance)
            for rank in range(ranks):
                for at, number in wanted(test, size, rank).items():
                    assert got[rank][at] == number, (algorithm, ranks, size, rank, at)


def test_what_switches_carry_out_is_refused() -> None:
    with pytest.raises(SpecError, match="switches carry out"):
        list(plan_texts(Test("all_reduce_perf", 4, (4096,), algorithm=IN_NETWORK)))


def test_parts_that_do_not_lie_side_by_side_are_refused() -> None:
    test = Test("all_reduce_perf", 4, (4096,), algorithm="halving-doubling", channels=2)
    with pytest.raises(Exception, match="do not lie side by side on 2 channels"):
        list(plan_texts(test))


def test_sizes_are_those_of_nccl_tests() -> None:
    assert sizes(1 << 20, 8 << 20, 1, 2) == (1 << 20, 2 << 20, 4 << 20, 8 << 20)
    assert sizes(10, 35, 10, 1) == (10, 20, 30)
    for asked, said in (((9, 8, 1, 1), "from 9 to 8"), ((1, 9, 0, 1), "do not grow"),
                        ((1, 1 << 20, 1, 1), "more than 4096")):  # fmt: skip
        with pytest.raises(SpecError, match=said):
            sizes(*asked)
    assert Test("all_gather_perf", 3, (100,)).counts(100) == (8, 24, 8)
    assert Test("reduce_scatter_perf", 3, (100,), type="int8").counts(100) == (96 // 3 * 3, 32, 32)


def test_what_memory_has_no_room_for_is_left_out() -> None:
    assert fitted((100, 200, 400), 4, 3000) == (100, 200)
    with pytest.raises(LabError, match="want more than this machine's memory"):
        fitted((100, 200), 4, 1000)


def test_how_much_perftest_sends_is_known() -> None:
    assert bytes_of_pair(("ib_write_bw", "h1")) == 5000 * 65536
    assert bytes_of_pair(("/usr/bin/ib_send_bw", "-n", "7", "--size=100", "-q", "8")) == 5600
    for words in (("ib_write_bw", "-a"), ("ib_write_lat",), ("iperf3", "-c", "h2")):
        assert bytes_of_pair(words) is None


# --- ranks ----------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def libraries(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return libraries_in(tmp_path_factory.mktemp("nccl"))


def of_two_ranks(
    libraries: Path, folder: Path, tests: list[Test], **environment: object
) -> list[tuple[int, str]]:
    """How two ranks on two hosts end, and what they say, for one test after the other."""
    scripts = (["set -e"], ["set -e"])
    words = " ".join(f"{name}={value}" for name, value in environment.items())
    for number, test in enumerate(tests):
        place = folder / str(number)
        place.mkdir(parents=True)
        for rank, text in enumerate(plan_texts(test)):
            (place / f"plan-{rank}").write_text(text)
            scripts[rank].append(
                f"env RANK={rank} CLOSLAB_DILATION=1000 {words} {nccl_rank_program()} {place}"
            )
    paths = [folder / "first", folder / "second"]
    for path, lines in zip(paths, scripts, strict=True):
        path.write_text("\n".join(lines))
    return over_wire(libraries, *(f"sh {path}" for path in paths))


def test_the_ranks_program_is_clean(tmp_path: Path) -> None:
    words = [*STRICT, f"-I{ABI}", str(RANK_SOURCE), "-ldl", "-o", str(tmp_path / "rank")]
    subprocess.run([*build.compiler(), *words], check=True)


def test_ranks_have_right_data_and_tell_it_as_nccl_tests_do(
    libraries: Path, tmp_path: Path
) -> None:
    """All programs, all types and operations at least once."""
    redops = ("sum", "prod", "max", "min", "avg", "sum", "max", "avg")
    tests = [
        Test(program, 2, (64, 40_000), 1, 0, redop=redop, type=type_)
        for program, (type_, redop) in zip(
            [*PROGRAMS, "all_reduce_perf", "reduce_scatter_perf"],
            zip(TYPES, redops, strict=True), strict=True,
        )
    ]  # fmt: skip
    (code, said), (other, _) = of_two_ranks(libraries, tmp_path, tests)
    assert code == other == 0, said
    rows = ROW.findall(said)
    assert len(rows) == 2 * len(tests), said
    for (test, size), row in zip(product(tests, (64, 40_000)), rows, strict=True):
        largest = max(test.counts(size)[:2]) * test.element
        name = {"all-gather": "none", "all-to-all": "none", "broadcast": "none"}.get(test.op)
        root = "0" if test.op == "broadcast" else "-1"
        assert row[:5] == (str(largest), str(test.counts(size)[2]), test.type,
                           name or test.redop, root)  # fmt: skip
        us, algbw, busbw, wrong, *in_place = row[5].split()
        factor = 1.0 if test.op in ("broadcast", "send-receive", "all-reduce") else 0.5
        assert float(algbw) == pytest.approx(largest / 1e3 / float(us), rel=0.02, abs=0.006)
        assert float(busbw) == pytest.approx(factor * float(algbw), abs=0.011)
        assert wrong == "0"
        assert in_place[3] == ("N/A" if test.op in ("all-to-all", "send-receive") else "0")
    assert said.count("# Out of bounds values : 0 OK") == len(tests)


def test_a_bit_that_was_turned_is_counted(libraries: Path, tmp_path: Path) -> None:
    liar = tmp_path / "liar.so"
    words = [*STRICT, f"-I{ABI}", "-shared", "-fPIC", str(HERE / "liar.c"), "-ldl"]
    subprocess.run([*build.compiler(), *words, "-o", str(liar)], check=True)
    environment = {"NCCL_NET_PLUGIN": liar, "NCCL_NET_TRUE": libraries / "libnccl-net.so"}
    test = Test("all_gather_perf", 2, (4096,), 1, 0, type="int8")
    (code, said), _ = of_two_ranks(libraries, tmp_path / "lies", [test], **environment)
    (row,) = ROW.findall(said)
    assert code == 1 and row[5].split()[3] == row[5].split()[7] == "2", said  # one at either rank
    assert "# Out of bounds values : 4 FAILED" in said


# --- on a fabric ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("program", "options", "said"),
    [
        ("all_reduce", {}, "no program 'all_reduce'; did you mean 'all_reduce_perf'"),
        ("all_reduce_perf", {"minbytes": "1X"}, "-b: '1X' is no size"),
        ("all_reduce_perf", {"minbytes": "2M", "maxbytes": "1M"}, "from 2097152 to 1048576"),
        ("all_reduce_perf", {"datatype": "half"}, "there is no type 'half'"),
        ("all_reduce_perf", {"op": "mulsum"}, "there is no operation 'mulsum'"),
        ("all_reduce_perf", {"algorithm": "rings"}, "no algorithm 'rings'"),
        ("broadcast_perf", {"root": 4, "ngpus": 4}, "root 4 is no member"),
    ],
)
def test_what_makes_no_sense_is_told(program: str, options: dict[str, Any], said: str) -> None:
    with pytest.raises(LabError, match=said):
        command(program, on="hello", **options)


@pytest.mark.mininet
@pytest.mark.slow
def test_ranks_that_share_hosts_measure_the_fabric() -> None:
    """Six ranks on four hosts."""
    small = ("--on", "hello", "--set", "topology.leaves=2", "--set", "topology.spines=1")
    words = ("all_reduce_perf", "-b", "64K", "-e", "256K", "-f", "4", "-n", "1", "-g", "6")
    done = closlab("nccl-tests", *words, *small)
    assert done.returncode == 0, done.stdout + done.stderr
    rows = ROW.findall(done.stdout)
    assert [row[0] for row in rows] == ["65536", "262144"]
    for row in rows:
        _, _, busbw, wrong, *_ = row[5].split()
        assert wrong == "0" and 0 < float(busbw) < 12.5  # of 100 Gb/s
    assert "Rank  5 on     h4" in done.stderr and "Switches dropped 0" in done.stderr
