"""The walking skeleton, as a user sees it: real namespaces, switches, P4Runtime and packets."""

import json
import os
import random
import shutil
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest

from lab.machine.paths import ROOT
from lab.runs.run import UNBELIEVED
from tests.lab.conftest import CLOSLAB, closlab, started
from tests.lab.test_sandbox import in_namespace
from tests.stand_ins import stand_in
from tests.waiting import LONG_S
from traffic.frames import icrc

pytestmark = pytest.mark.mininet


@pytest.mark.ordinary  # the first thing anybody tries
def test_demo_delivers_everything_and_spreads_it(tmp_path: Path, own_cache: Path) -> None:
    done = closlab("demo", "--out", str(tmp_path))
    assert done.returncode in (0, UNBELIEVED), done.stderr
    assert "56 of 56 answered" in done.stderr
    assert "56 of 56 messages arrived whole" in done.stderr

    result = json.loads((tmp_path / "hello" / "result.json").read_text())
    assert result["clock"] == "fabric"
    assert result["flows"]["slowdown"]["p50"] >= 1
    assert all(0 < use["utilisation"] < 1 for use in result["links"])
    assert result["schema"] == "closlab.result/1"
    assert result["flows"]["completed"] == 56
    assert result["drops"]["total"] == 0
    assert result["roce"]["out_of_order_packets"] == 0
    packets = {link["name"]: link["packets"] for link in result["links"]}
    per_message = 4 + 1  # 16,000 bytes at a path MTU of 4096; the ACK of the message back
    for host in range(1, 9):
        leaf = (host + 1) // 2
        assert packets[f"h{host}>leaf{leaf}"] == 7 * per_message
        assert packets[f"leaf{leaf}>h{host}"] == 7 * per_message
    for leaf in range(1, 5):
        up = [packets[f"leaf{leaf}>spine{spine}"] for spine in (1, 2)]
        assert sum(up) == 2 * 6 * per_message  # two hosts, six hosts behind other leaves
        assert min(up) > 0, "ECMP left a spine idle"
    assert len((tmp_path / "hello" / "flows.csv").read_text().splitlines()) == 57
    assert list(own_cache.glob("*")) == []

    compared = (tmp_path / "report.html").read_text()
    for name in ("PFC off, ECN off", "PFC on, ECN off", "PFC on, ECN on"):
        assert name in compared
    assert "packets dropped" in done.stderr
    assert str(tmp_path / "report.html") in done.stderr


@pytest.mark.slow
def test_two_demos_at_once_do_not_disturb_each_other(tmp_path: Path, own_cache: Path) -> None:
    demos = [
        started(
            *("demo", "--out", tmp_path / name),
            stderr=subprocess.PIPE,
            text=True,
        )
        for name in ("one", "other")
    ]
    for demo in demos:
        _, err = demo.communicate(timeout=LONG_S)
        assert demo.returncode in (0, UNBELIEVED), err
        assert "56 of 56 messages arrived whole" in err


@pytest.mark.parametrize(
    "seed", [0, *(pytest.param(seed, marks=pytest.mark.slow) for seed in range(1, 9))]
)
def test_kill_9_at_any_moment_leaves_nothing(tmp_path: Path, own_cache: Path, seed: int) -> None:
    moment = random.Random(seed).uniform(0.1, 3.0)
    mounts = Path("/proc/self/mounts").read_text()
    interfaces = {name for _, name in socket.if_nameindex()}
    ours = f"killed-at-{moment}-{os.getpid()}"
    run = subprocess.Popen(
        [*CLOSLAB, "run", "hello", "--out", str(tmp_path)],
        stderr=subprocess.DEVNULL,
        env={**os.environ, "CLOSLAB_TEST": ours},
    )
    time.sleep(moment)
    spaces = {_network(pid) for pid in _marked(ours)} - {_network(os.getpid()), None}
    os.kill(run.pid, signal.SIGKILL)
    run.wait()

    def left_over() -> list[object]:
        # A process that is ending has lost its environment already, but not its namespace.
        return [*_marked(ours), *(pid for space in spaces if space for pid in in_namespace(space))]

    deadline = time.monotonic() + LONG_S
    while left_over() and time.monotonic() < deadline:
        time.sleep(0.05)
    assert left_over() == []
    assert {name for _, name in socket.if_nameindex()} == interfaces
    assert Path("/proc/self/mounts").read_text() == mounts


def _marked(mark: str) -> list[int]:
    """Every process that carries a mark in its environment."""
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        try:
            if f"CLOSLAB_TEST={mark}".encode() in (process / "environ").read_bytes():
                found.append(int(process.name))
        except OSError:
            continue
    return found


def _network(pid: int) -> Path | None:
    try:
        return (Path("/proc") / str(pid) / "ns" / "net").readlink()
    except OSError:
        return None


def test_captured_frames_are_sound_to_tshark(tmp_path: Path, own_cache: Path) -> None:
    if shutil.which("tshark") is None:
        pytest.skip("tshark is not installed")
    four = "topology={kind: leaf-spine, leaves: 2, spines: 1, hosts_per_leaf: 2}"
    words = ("--pcap", "--dilation", "16000", "--set", four)
    done = closlab("run", "hello", *words, "--out", str(tmp_path))
    assert done.returncode in (0, UNBELIEVED), done.stderr
    captures = sorted((tmp_path / "pcaps").glob("*.pcap"))
    assert len(captures) == 2 * 8  # both directions of every switch port
    everything = tmp_path / "everything.pcap"
    _join(captures, everything)
    listing = _tshark(
        everything,
        *("-Y", "_ws.malformed || infiniband", "-T", "fields"),
        *("-e", "_ws.malformed", "-e", "infiniband.invariant.crc", "-e", "frame.number"),
    )
    frames = _raw_frames(everything)
    seen = 0
    for line in listing.splitlines():
        malformed, crc, number = line.split("\t")
        assert malformed == ""
        frame = frames[int(number) - 1]
        ours = int.from_bytes(icrc(frame[14:-4]).to_bytes(4, "little"), "big")
        assert int(crc, 16) == ours
        seen += 1
    # Each packet is seen at both ends of a switch: one switch's within a leaf, three across. There
    # are four with data and an ACK to each of 4 messages within leaves and 8 across.
    assert seen == (4 + 1) * (4 * 2 + 8 * 6)


def _join(captures: list[Path], whole: Path) -> None:
    """All frames of captures of one kind in one: to start tshark takes longer than to read."""
    header, rest = 24, [capture.read_bytes() for capture in captures]
    assert len({each[:header] for each in rest}) == 1
    whole.write_bytes(rest[0][:header] + b"".join(each[header:] for each in rest))


def _tshark(capture: Path, *words: str) -> str:
    return subprocess.run(
        ["tshark", "-r", str(capture), *words], capture_output=True, text=True, check=True
    ).stdout


def _raw_frames(capture: Path) -> list[bytes]:
    from scapy.utils import RawPcapReader

    with RawPcapReader(str(capture)) as frames:
        return [frame for frame, _ in frames]


def test_enter_without_a_lab_says_how_to_start_one(own_cache: Path) -> None:
    done = closlab("enter", "h1")
    assert done.returncode == 1
    assert "no lab is running" in done.stderr
    assert "closlab run hello --cli" in done.stderr


def _complains(done: subprocess.CompletedProcess[str], *words: str) -> None:
    assert done.returncode != 0
    for word in words:
        assert word in done.stderr + done.stdout
    assert "Traceback" not in done.stderr + done.stdout


def test_an_unknown_scenario() -> None:
    _complains(closlab("run", "helo"), "no scenario 'helo'", "did you mean 'hello'")


def test_no_c_compiler(bare_path: Path, tmp_path: Path) -> None:
    """Neither this machine's nor ziglang, and nothing came compiled."""
    for compiler in ("cc", "gcc", "clang"):
        (bare_path / compiler).unlink(missing_ok=True)
    hidden = "import sys; sys.modules['ziglang'] = None; from lab.cli import main; main()"
    done = subprocess.run(
        [sys.executable, "-c", hidden, "demo", "--out", str(tmp_path / "demo")],
        env={**os.environ, "PATH": str(bare_path)},
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    _complains(done, "no C compiler", "apt-get install gcc", "closlab[compile]")
    assert not (tmp_path / "demo").exists()


def test_no_mininet(bare_path: Path, tmp_path: Path) -> None:
    """What can be shown is, and what is left out is said."""
    (bare_path / "mnexec").unlink()
    done = closlab("demo", "--out", str(tmp_path / "demo"), PATH=str(bare_path))
    assert done.returncode == 0, done.stderr
    for words in ("packets dropped", "Left out: Mininet is not installed", "apt-get install"):
        assert words in done.stderr
    assert (tmp_path / "demo" / "report.html").exists()


def test_a_syntax_error(tmp_path: Path) -> None:
    program = tmp_path / "wrong.p4"
    program.write_text("#include <core.p4>\nheader h_t { bit<8> a }\n")
    done = closlab("p4c", str(program), "-o", str(tmp_path / "wrong.json"))
    _complains(done, "wrong.p4:2:", "';'")
    assert not (tmp_path / "wrong.json").exists()


def test_a_port_that_is_taken(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        address = f"127.0.0.1:{taken.getsockname()[1]}"
        done = closlab("switch", "--no-p4", "--", "--grpc-server-addr", address)
    _complains(done, address)


def test_a_folder_that_cannot_be_written() -> None:
    _complains(closlab("demo", "--out", "/proc/nowhere"), "cannot be written", "--out")


def test_the_launcher_makes_nothing_twice(tmp_path: Path) -> None:
    """What it calls, by a Python and an apt-get that only note that."""
    for name in ("closlab", *(path.name for path in ROOT.glob("requirements*.lock"))):
        shutil.copy(ROOT / name, tmp_path / name)
    tools, venv = tmp_path / "tools", tmp_path / ".venv" / "bin"
    for folder in (tools, venv):
        folder.mkdir(parents=True)
    for program in (tools / "apt-get", tools / "sudo", venv / "closlab"):
        stand_in(program, "exit 0")
    stand_in(venv / "python", f'[ "$1" = -c ] || echo "$@" >>{tmp_path}/called')

    def calls(*words: str) -> list[str]:
        called = tmp_path / "called"
        called.write_text("")
        done = subprocess.run(
            ["bash", str(tmp_path / "closlab"), *words],
            capture_output=True, text=True, check=True,
            env={**os.environ, "PATH": f"{tools}:{os.environ['PATH']}"},
        )  # fmt: skip
        assert "\r" not in done.stderr  # a bar is for terminals
        return [" ".join(line.split()[1:3]) for line in called.read_text().splitlines()]

    first = calls("demo")
    assert sorted(first) == ["compileall -q", "lab.engines.ahead", "pip install", "pip install"]
    for words in (["replay", "runs/x"], ["run", "hello", "--live"], ["watch"], ["demo"]):
        assert calls(*words) == []
    on_a_cluster = ["sweep", "hello", "--on", "tcp://x"]
    assert calls(*on_a_cluster) == ["pip install", "compileall -q"]
    assert calls(*on_a_cluster) == []


def test_the_launcher_refuses_a_python_that_does_not_suit(tmp_path: Path) -> None:
    locks = (f"requirements{kind}.lock" for kind in ("", "-dev", "-live", "-dask"))
    for name in ("closlab", *locks):
        shutil.copy(ROOT / name, tmp_path / name)
    done = subprocess.run(
        ["bash", str(tmp_path / "closlab"), "list"],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "CLOSLAB_PYTHON": "/bin/false"},
    )
    _complains(done, "CLOSLAB_PYTHON is '/bin/false', which is no Python 3.11, 3.12 or 3.13")
    assert not (tmp_path / ".venv").exists()
