"""An adapter of verbs in a program's own process: records, operations, errors, and real programs.

Programs run in two networks with a wire between them (`tests.verbs.wire`) that may lose, double and
overtake packets; on a fabric they are run by ``closlab exec``.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

from lab.errors import LabError
from lab.machine.native_host import verbs_libraries
from lab.runs.verbs import VerbsDoor, uses_verbs_library
from switch import build
from tests.lab.conftest import closlab
from tests.veths import unshare
from tests.waiting import LONG_S
from traffic.verbs import LIBRARIES

HERE = Path(__file__).parent
ABI = LIBRARIES[0].exports.parent
HEADER = Path("/usr/include/infiniband/verbs.h")
STRICT = ("-std=gnu11", "-O1", "-Wall", "-Wextra", "-Werror")
SMALL = ("--on", "hello", "--set", "topology.leaves=2", "--set", "topology.spines=1")

# As verbs number how a request ends.
STATUS = {
    "wrong-key": 10,
    "beyond-the-end": 10,
    "not-permitted": 10,
    "read-not-permitted": 10,
    "local-key": 4,
    "no-receive": 13,
    "too-long": 9,
    "freed": 10,
    "nobody": 12,
}


@pytest.fixture(scope="module")
def libraries(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the libraries, by the names that programs look for."""
    folder = tmp_path_factory.mktemp("verbs")
    for name, path in verbs_libraries().items():
        (folder / name).symlink_to(path)
    return folder


@pytest.fixture(scope="module")
def peer(libraries: Path) -> Path:
    program = libraries / "peer"
    linked = ("-L", str(libraries), "-l:libibverbs.so.1")
    command = [*build.compiler(), *STRICT, f"-I{ABI}", str(HERE / "peer.c"), *linked]
    subprocess.run([*command, "-o", str(program)], check=True)
    return program


def over_wire(
    libraries: Path, waits: str, asks: str, loss: float = 0, seed: int = 1, pcap: str = "-"
) -> list[tuple[int, str]]:
    """How two programs ended and what they said."""
    words = (str(loss), str(seed), pcap, waits, asks)
    told = {**os.environ, "LD_LIBRARY_PATH": str(libraries)}
    done = subprocess.run(
        [*unshare(), sys.executable, "-m", "tests.verbs.wire", *words],
        env=told, capture_output=True, text=True, check=False, timeout=LONG_S,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return [(one["code"], one["said"]) for one in json.loads(done.stdout)]


def need(program: str) -> str:
    if shutil.which(program) is None:
        pytest.skip(f"{program} is not installed (perftest, ibverbs-utils)")
    return program


# --- records --------------------------------------------------------------------------------------


def test_records_are_laid_out_as_programs_expect_them(tmp_path: Path) -> None:
    if not HEADER.is_file():
        pytest.skip("libibverbs-dev is not installed")
    said = []
    for number, flags in enumerate(((f"-I{ABI}", "-DOURS"), ())):
        program = tmp_path / str(number)
        command = [*build.compiler(), "-w", *flags, str(HERE / "layout.c"), "-o", str(program)]
        subprocess.run(command, check=True)
        said.append(subprocess.run([program], capture_output=True, text=True, check=True).stdout)
    assert said[0] == said[1] and said[0].count("\n") > 60


@pytest.mark.parametrize("library", LIBRARIES, ids=lambda library: library.name)
def test_sources_are_clean(library: object, tmp_path: Path) -> None:
    assert hasattr(library, "sources") and hasattr(library, "words")
    words = [*STRICT, "-fPIC", "-shared", *library.words, *map(str, library.sources)]
    subprocess.run([*build.compiler(), *words, "-o", str(tmp_path / "library")], check=True)


# --- operations -----------------------------------------------------------------------------------


@pytest.mark.ordinary
@pytest.mark.parametrize(("loss", "seed"), [(0, 1), (0.01, 2), (0.01, 3), (0.02, 4), (0.05, 5)])
def test_random_operations_come_to_what_a_model_says(
    libraries: Path, peer: Path, loss: float, seed: int
) -> None:
    """Whatever is lost, doubled or overtaken; sizes up to 12 KB, and each of the five MTUs once."""
    waits, asks = (f"{peer} {end} 600 {seed}" for end in ("-", "10.9.0.1"))
    (waited, other), (asked, said) = over_wire(libraries, waits, asks, loss, seed)
    assert (waited, asked) == (0, 0), other + said
    assert "operations 600 differences 0" in said


@pytest.mark.parametrize("watches", ["address,undefined", "thread"])
def test_nothing_is_read_wrongly_or_left(libraries: Path, tmp_path: Path, watches: str) -> None:
    program = tmp_path / "peer"
    sources = [*map(str, LIBRARIES[0].sources), str(HERE / "peer.c")]
    words = (f"-fsanitize={watches}", "-g", "-w", f"-I{ABI}", "-pthread")
    command = [*build.compiler(), "-std=gnu11", "-O1", *words, *sources, "-lm", "-o", str(program)]
    if subprocess.run(command, capture_output=True, check=False).returncode != 0:
        pytest.skip(f"the compiler has no -fsanitize={watches}")
    ended = over_wire(libraries, f"{program} - 300 8", f"{program} 10.9.0.1 300 8", 0.02)
    assert [code for code, _ in ended] == [0, 0], ended
    assert "operations 300 differences 0" in ended[1][1]


def test_what_goes_wrong_is_told_as_verbs_tell_it(libraries: Path, peer: Path) -> None:
    (_, other), (_, said) = over_wire(libraries, f"{peer} - 1 1", f"{peer} 10.9.0.1 1 1")
    told = dict(re.findall(r"^(\S+) (\d+)$", said, re.MULTILINE))
    assert {name: int(told[name]) for name in STATUS} == STATUS
    assert "too-long-received 1" in other  # a length error of the receiver's own


LIMITS = {
    "pairs": 10000,
    "busy-domain": 1,
    "busy-queue": 1,
    "posted": 3,
    "flushed": 1,
    "beyond-the-queue": -1,
    "too-long-a-queue": 1,
    "no-such-queue": 1,
    "write-of-what-is-not-writable": 1,
    "after-a-fork": 1,
    "all-ended": 1,
}


def test_what_is_too_much_is_refused_and_all_of_it_ends(libraries: Path, tmp_path: Path) -> None:
    """Watched by the sanitizers: nothing is left of ten thousand queue pairs."""
    program = tmp_path / "limits"
    sources = [*map(str, LIBRARIES[0].sources), str(HERE / "limits.c")]
    words = ("-fsanitize=address,undefined", "-g", "-w", f"-I{ABI}", "-pthread", "-lm")
    command = [*build.compiler(), "-std=gnu11", "-O1", *sources, *words, "-o", str(program)]
    if subprocess.run(command, capture_output=True, check=False).returncode != 0:
        pytest.skip("the compiler has no sanitizers")
    (code, said), _ = over_wire(libraries, str(program), "true")
    assert code == 0, said
    found = re.findall(r"^(\S+) (-?\d+)$", said, re.MULTILINE)
    assert {name: int(number) for name, number in found} == LIMITS, said
    assert "runtime error" not in said


def test_a_peer_that_is_killed_is_noticed(libraries: Path) -> None:
    need("ib_write_bw")
    words = "ib_write_bw -n 5000000 -u 10"
    killed, (code, said) = over_wire(libraries, f"timeout -s KILL 5 {words}", f"{words} 10.9.0.1")
    assert killed[0] != 0 and code > 0
    assert "status 12" in said  # the transport's retry counter is exceeded


def test_tshark_knows_every_packet(libraries: Path, peer: Path, tmp_path: Path) -> None:
    if shutil.which("tshark") is None:
        pytest.skip("tshark is not installed")
    pcap = tmp_path / "wire.pcap"
    pcap.touch()
    pcap.chmod(0o666)
    over_wire(libraries, f"{peer} - 200 4", f"{peer} 10.9.0.1 200 4", pcap=str(pcap))
    fields = ("-T", "fields", "-e", "infiniband.bth.opcode", "-e", "_ws.malformed")
    read = subprocess.run(
        ["tshark", "-r", str(pcap), *fields], capture_output=True, text=True, check=True
    )
    lines = [line.split("\t") for line in read.stdout.splitlines()]
    opcodes = Counter(int(line[0]) for line in lines)
    assert not any(len(line) > 1 and line[1] for line in lines)
    # SEND with immediate, WRITE first to only with immediate, READ, answers, atomics
    assert {0, 3, 5, 6, 8, 10, 11, 12, 13, 15, 16, 17, 18, 19, 20} <= opcodes.keys()


# --- programs that others wrote -------------------------------------------------------------------


@pytest.mark.parametrize(
    "words",
    [
        "ibv_rc_pingpong -g 0 -n 200 -c",
        "ibv_rc_pingpong -g 0 -n 50 -e -m 4096",
        "ibv_srq_pingpong -g 0 -n 200 -q 4",
        "ibv_ud_pingpong -g 0 -n 200 -c",
        "ib_send_bw -c UD -n 100 -s 2048",
        "ib_send_lat -c UD -n 50",
        "ib_write_bw -n 100",
        "ib_write_bw -n 50 -b -q 4",
        "ib_write_lat -n 50",
        "ib_read_bw -n 100",
        "ib_read_lat -n 50",
        "ib_send_bw -n 100",
        "ib_send_bw -n 100 -e",
        "ib_send_lat -n 50",
        "ib_atomic_bw -n 100",
        "ib_atomic_lat -n 50 -A CMP_AND_SWAP",
        "ib_write_bw -a -n 10",
    ],
)
def test_programs_of_others_run_as_they_are(libraries: Path, words: str) -> None:
    need(words.split()[0])
    ended = over_wire(libraries, words, f"{words} 10.9.0.1")
    assert [code for code, _ in ended] == [0, 0], "\n".join(said for _, said in ended)


@pytest.mark.parametrize(
    ("waits", "asks"),
    [
        ("rping -s -a 10.9.0.1 -C 20", "rping -c -a 10.9.0.1 -C 20"),
        ("ucmatose -c 3 -m", "ucmatose -c 3 -m -s 10.9.0.1"),
        ("udaddy -c 2", "udaddy -c 2 -s 10.9.0.1"),
        ("rdma_server", "rdma_client -s 10.9.0.1"),
        ("ib_write_bw -R -n 50", "ib_write_bw -R -n 50 10.9.0.1"),
        ("ib_read_lat -R -n 50", "ib_read_lat -R -n 50 10.9.0.1"),
    ],
)
def test_connections_are_set_up_by_addresses(libraries: Path, waits: str, asks: str) -> None:
    need(waits.split()[0])
    ended = over_wire(libraries, waits, asks)
    assert [code for code, _ in ended] == [0, 0], "\n".join(said for _, said in ended)


@pytest.mark.slow
def test_whom_nobody_listens_for_is_told_so(libraries: Path) -> None:
    need("rping")
    _, (code, said) = over_wire(libraries, "sleep 13", "rping -c -a 10.9.0.1 -C 1")
    assert code != 0 and "RDMA_CM_EVENT_REJECTED" in said and "error 8" in said


def test_a_device_is_described(libraries: Path) -> None:
    need("ibv_devinfo")
    (code, said), _ = over_wire(libraries, "ibv_devinfo -v", "true")
    assert code == 0 and "closlab0" in said and "RoCE v2" in said and "PORT_ACTIVE" in said


# --- on a fabric ----------------------------------------------------------------------------------


def test_who_serves_is_not_told_the_name_of_who_serves() -> None:
    door = VerbsDoor()
    words = ("ib_write_bw", "-n", "5", "h1")
    assert door.starts(words, ["h1", "h2"], 0) == [words[:-1]]
    assert door.starts(words, ["h1", "h2"], 1) == [words]
    assert door.starts(("python3", "h1"), ["h1", "h2"], 0) == [("python3", "h1")]


def test_each_client_has_a_server_of_its_own() -> None:
    door, hosts = VerbsDoor(), ["h1", "h2", "h3"]
    words = ("ib_write_bw", "--port=7000", "-n", "5", "h1")
    serve = [["ib_write_bw", "-n", "5", "-p", port] for port in ("7000", "7001")]
    assert [[*start] for start in door.starts(words, hosts, 0)] == serve
    for rank in (1, 2):
        assert door.starts(words, hosts, rank) == [(*serve[rank - 1], "h1")]
    with pytest.raises(LabError, match="'x' after -p is no port"):
        door.starts(("ib_write_bw", "-p", "x", "h1"), hosts, 0)


def test_clients_of_several_pairs_begin_together(tmp_path: Path) -> None:
    door, words = VerbsDoor(), ("ib_write_bw", "h1")
    meet = tmp_path / "meet-h1"
    told = {"CLOSLAB_VERBS_TOGETHER": f"{meet} 2 1"}
    assert door.together(words, ["h1", "h2", "h3"], 1, tmp_path) == told and meet.is_dir()
    for hosts, rank in ((["h1", "h2", "h3"], 0), (["h1", "h2"], 1)):
        assert door.together(words, hosts, rank, tmp_path) == {}


def test_programs_of_verbs_are_known_by_what_they_are_linked_with() -> None:
    assert not uses_verbs_library("sh") and not uses_verbs_library("no-such-program")
    assert uses_verbs_library(need("ib_write_bw"))


@pytest.mark.mininet
@pytest.mark.slow
def test_bandwidth_is_the_fabrics() -> None:
    """100 Gb/s, of which headers leave 97.6 % at an MTU of 4096."""
    need("ib_write_bw")
    done = closlab(
        "exec", *SMALL, "h1,h3", "--", "ib_write_bw", "-n", "100", "--report_gbits", "h1"
    )
    assert done.returncode == 0, done.stdout + done.stderr
    average = re.search(r"^h1: +65536 +100 +\S+ +(\S+)", done.stdout, re.MULTILINE)
    assert average and 90 < float(average[1]) < 98.5
