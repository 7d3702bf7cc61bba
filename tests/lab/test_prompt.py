"""The prompt's own words, and what a second terminal may do, on a fabric that is up."""

import os
import re
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from lab.engines.mininet import hands
from lab.machine.paths import SHELL_ENVIRONMENT
from tests.lab.conftest import CLOSLAB, closlab, started
from tests.waiting import LONG_S
from views.report import read_run

pytestmark = pytest.mark.mininet

WRONG = {
    "tables": "write it as: tables SWITCH [TABLE]",
    "tables leef1": "no switch 'leef1'; did you mean 'leaf1'?",
    "tables leaf1 ipv4_route": "no table 'ipv4_route'; did you mean 'ipv4_routes'?",
    "counters h1": "no switch 'h1'; there are leaf1, leaf2, leaf3, leaf4, spine1, spine2",
    "lb foo": "no policy 'foo'; there are ecmp, flowlet, dlb, conga, spray, adaptive, drill",
    "xyzzy": "no word or node 'xyzzy'; 'help' lists what there is",
    "queus": "no word or node 'queus'; did you mean 'queues'?",
    "lb cnga": "no policy 'cnga'; did you mean 'conga'?",
    "fail leaf1 leaf2": "no cable between leaf1 and leaf2; there are leaf1-spine1, leaf1-spine2",
    "fail leaf1 h1": "no switch 'h1'",
    "drain leaf1-leaf2": "no cable between leaf1 and leaf2",
    "drain h1": "no switch 'h1'",
    "segments h1 h2": "both hang at leaf1",
    "segments h1 h99": "no host 'h99'",
    "int h1 h2": "both hang at leaf1",
    "int h1 h99": "no host 'h99'",
    "int h1 h1": "name two",
    "pause h99": "no node 'h99'; there are",
    "switch leef1 stop": "no switch 'leef1'; did you mean 'leaf1'?",
    "switch leaf1 stpo": "write it as: switch SWITCH stop|start",
    "iperf h1": "name two hosts, or none",
    "iperf h1 h99": "no host 'h99'",
    "dpctl dump-flows": "these switches speak P4Runtime",
    "controller restart": "our own controller does not stay",
    "controller stop": "write it as: controller restart",
}


PAUSES = "buffer.bytes=400KB"  # hardly more than headroom takes: any two packets too many pause


class Prompt:
    """A lab that is up, and its prompt."""

    PROMPT = b"mininet> "

    def __init__(self, out: Path, *words: str) -> None:
        self.out = out
        self.process = started(
            *("run", "hello", "--cli", "--out", out, *words),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
        )
        self._answer()

    def ask(self, *lines: str) -> list[str]:
        """What it answered to each line."""
        answers = []
        for line in lines:
            with self.meanwhile(line) as answer:
                pass
            answers.append(answer[0])
        return answers

    @contextmanager
    def meanwhile(self, line: str) -> Iterator[list[str]]:
        """Do something while it is at a line; then there is its answer."""
        assert self.process.stdin is not None
        self.process.stdin.write(line.encode() + b"\n")
        self.process.stdin.flush()
        answer: list[str] = []
        yield answer
        answer.append(self._answer())

    def _answer(self) -> str:
        assert self.process.stdout is not None
        said = b""
        while not said.endswith(self.PROMPT):
            more = os.read(self.process.stdout.fileno(), 1 << 16)
            assert more, said.decode()
            said += more
        text = said.removesuffix(self.PROMPT).decode()
        assert "Traceback" not in text
        return text


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Prompt]:
    """One for all: each test leaves it as it found it."""
    with pytest.MonkeyPatch.context() as patch:
        running = tmp_path_factory.mktemp("running")
        patch.setenv("CLOSLAB_RUNNING", str(running))
        lab = Prompt(tmp_path_factory.mktemp("out"), "--set", PAUSES)
        yield lab
        lab.process.communicate(b"exit\n", timeout=LONG_S)
        assert lab.process.returncode == 0
        assert not list(running.iterdir())


def carried(counters: str, port: str) -> tuple[int, int, int]:
    """What went in and out at a switch's port, and how many of the latter were pause frames."""
    found = re.search(rf"{port} +\S+ +([\d,]+) +([\d,]+) +[\d,]+ +([\d,]+)", counters)
    assert found is not None, counters
    came, went, pauses = (int(number.replace(",", "")) for number in found.groups())
    return came, went, pauses


def test_the_prompt_is_mininets(lab: Prompt) -> None:
    heard, cables = lab.ask("h1 ping -c 1 h8", "net")
    assert "1 packets transmitted, 1 received" in heard
    assert "leaf1-eth3:spine1-eth1" in cables


def test_the_labs_words_come_first_in_help(lab: Prompt) -> None:
    said = lab.ask("help")[0].splitlines()
    first = next(at for at, line in enumerate(said) if line.startswith("queues "))
    assert "how long queues are" in said[first]
    assert first < next(at for at, line in enumerate(said) if "Documented commands" in line)


def test_words_that_wait_in_a_pipe_are_no_input_of_a_nodes_command(lab: Prompt) -> None:
    assert lab.process.stdin is not None
    lab.process.stdin.write(b"h1 sleep 0.3; echo first\nh1 echo second\n")
    lab.process.stdin.flush()
    said = lab._answer()
    while Prompt.PROMPT.decode() not in said:  # unless both were read at once
        said += Prompt.PROMPT.decode() + lab._answer()
    assert [each.strip() for each in said.split(Prompt.PROMPT.decode())] == ["first", "second"]


@pytest.mark.slow
def test_a_second_terminal_can_step_inside(lab: Prompt) -> None:
    assert "10.0.1.1" in closlab("enter", "h1", "ip", "-brief", "address").stdout
    assert "leaf1-eth1" in closlab("enter", "leaf1", "ip", "-brief", "link").stdout
    for node in ("h1", "leaf1"):
        assert "10.0.4.2" in closlab("enter", node, "getent", "hosts", "h8").stdout
    assert "1 received" in closlab("enter", "h1", "ping", "-c", "1", "h8").stdout
    wrong = closlab("enter", "h99", "true")
    assert wrong.returncode == 1
    assert "no node 'h99'" in wrong.stderr


def test_p4runtime_shell_reads_the_routes(lab: Prompt) -> None:
    if not SHELL_ENVIRONMENT.exists():
        pytest.skip("p4runtime-shell is not installed: ./closlab shell installs it")
    argv = [*CLOSLAB, "shell", "leaf1"]
    script = "tables\nfor entry in table_entry['ipv4_routes'].read(): print(entry)\n\nexit\n"
    done = subprocess.run(
        argv, input=script, capture_output=True, text=True, check=False, timeout=LONG_S
    )
    assert "ipv4_routes" in done.stdout, done.stderr
    assert "neighbours" in done.stdout
    prefixes = re.findall(r'value: "((?:\\.{1,3}|[^"])*)"\s+prefix_len: (\d+)', done.stdout)
    assert len(prefixes) == 5  # two hosts of its own, three other leaves
    assert sorted(int(length) for _, length in prefixes) == [24, 24, 24, 32, 32]


@pytest.mark.slow
def test_it_tells_what_switches_were_told_and_what_they_hold(lab: Prompt) -> None:
    tables, routes, queues, nobody, pause, before, traffic, after, counters, spine, stood = lab.ask(
        *("tables leaf1", "tables leaf1 ipv4_routes", "queues", "pause", "pause h1"),
        *("counters leaf1", "traffic", "counters", "counters leaf1", "counters spine1", "pause"),
    )
    assert re.search(r"ipv4_routes +5\b", tables)
    assert "dst_addr 10.0.1.2/32" in routes and "next_mac 02:00:0a:00:01:02" in routes
    assert "empty so far" in queues
    assert "Nobody was paused" in nobody
    assert "h1 was not paused" in pause
    assert "56 of 56 messages arrived whole" in traffic
    assert len(re.findall(r"^\w+ port \d", after, re.M)) == 24
    assert "No switch dropped a packet" in after
    # A host sends 7 messages of 4 packets and acknowledges as many messages; with what others send
    # it that is the same in both directions. What is sent again, and why, the result tells.
    roce = read_run(lab.out).result.roce
    again = 2 * roce.retransmitted_packets + roce.naks + roce.cnps
    for port in ("leaf1 port 1", "leaf1 port 2"):
        (was_in, was_out, stops), (came, went, pauses) = carried(before, port), carried(after, port)
        assert 35 <= came - was_in <= 35 + again, port
        assert 35 <= (went - pauses) - (was_out - stops) <= 35 + again, port
    # What came from another was counted as sent by that one.
    assert carried(spine, "spine1 port 1")[:2] == carried(counters, "leaf1 port 3")[1::-1]
    assert carried(spine, "spine1 port 1")[0] > 0
    # Who was to stop or go on was told so by as many frames as its port sent.
    words = re.findall(r"^(h[12])>leaf1 +(\d+) +(\d+) ", stood, re.M)
    frames = {host: int(stops) + int(resumes) for host, stops, resumes in words}
    assert frames == {
        f"h{n}": pauses for n in (1, 2) if (pauses := carried(counters, f"leaf1 port {n}")[2])
    }
    check_stood_still(stood)


def check_stood_still(pause: str) -> None:
    """Hosts are among those who stood still."""
    stood_still = dict(re.findall(r"^(\S+) +\d+ +\d+ +(.+?) *$", pause, re.M))
    assert any(name.startswith("h") and still != "0 ns" for name, still in stood_still.items())


@pytest.mark.slow
def test_it_says_who_stood_still_whose_time_it_is_and_its_own_name(
    tmp_path: Path, own_cache: Path
) -> None:
    """Every frame that a switch received of another has been counted as sent by that one."""
    words = ["run", "incast", "--set", "traffic.bytes=200KB", "--cli", "--out", str(tmp_path)]
    done = subprocess.run(
        [*CLOSLAB, *words],
        input="traffic\npause\ncounters leaf1\ncounters spine1\nexit\n",
        capture_output=True,
        text=True,
        timeout=LONG_S,
        check=False,
    )
    _, _, pause, leaf, spine, _ = done.stdout.split("mininet> ")
    assert re.search(r"takes [\d.]+ µs in the fabric", done.stderr)
    assert re.search(r"add --lab incast-\d+\.", done.stderr)
    check_stood_still(pause)
    (sent,) = re.findall(r"leaf1 port 3 +spine1 +[\d,]+ +([\d,]+)", leaf)
    (received,) = re.findall(r"spine1 port 1 +leaf1 +([\d,]+)", spine)
    assert sent == received


@pytest.mark.slow
def test_following_packets_leaves_the_scenarios_own_telemetry_alone(
    tmp_path: Path, own_cache: Path
) -> None:
    words = ["run", "incast", "--set", "traffic.bytes=20KB", "--set", "int.share=1"]
    done = subprocess.run(
        [*CLOSLAB, *words, "--cli", "--out", str(tmp_path)],
        input="int h1 h8\ntraffic\nexit\n",
        capture_output=True,
        text=True,
        timeout=LONG_S,
        check=False,
    )
    (reports,) = re.findall(r"(\d+) telemetry reports", done.stdout + done.stderr)
    assert int(reports) >= 7 * 20_000 // 4096


@pytest.mark.slow
def test_it_follows_packets_and_leads_them_elsewhere(lab: Prompt) -> None:
    words = ("int h1 h8", "lb spray", "fail leaf1 spine2", "int h1 h8", "mend leaf1 spine2")
    both, policy, failed, one, mended, *complaints = lab.ask(*words, *WRONG)
    assert "chosen by ecmp" in lab.ask("lb ecmp")[0]
    assert set(re.findall(r"spine\d", both)) <= {"spine1", "spine2"}
    assert re.search(
        r"1 +leaf1 +1 to [34]\b.*\n2 +spine[12] +1 to 4\b.*\n3 +leaf4 +[34] to 2\b", both
    )
    assert "chosen by spray" in policy
    assert "leaf1-spine2 is cut" in failed
    assert set(re.findall(r"spine\d", one)) == {"spine1"}
    assert "leaf1-spine2 is up" in mended
    for answer, complaint in zip(complaints, WRONG.values(), strict=True):
        assert complaint in answer


def test_a_switch_that_is_stopped_carries_nothing(lab: Prompt) -> None:
    ping = "h1 ping -c 1 h8"
    silence = "h1 ping -c 1 -W 1 h8"
    words = ("switch leaf4 stop", silence, "switch leaf4 start", ping)
    words = (*words, "switch spine1 stop", ping, "counters spine1", "sh getent hosts h8")
    off, silent, on, heard, _, round_it, counted, named, again = lab.ask(
        *words, "switch spine1 start"
    )
    assert "spine1 is back" in again
    assert "leaf4 is off" in off and "leaf4 is back" in on
    assert " 0 received" in silent
    assert " 1 received" in heard and " 1 received" in round_it
    assert "spine1 port 1" in counted
    assert re.search(r"10\.0\.4\.2 +h8", named)


@pytest.mark.slow
@pytest.mark.skipif(not shutil.which("iperf"), reason="iperf is not installed")
def test_iperf_ends_and_tells_a_rate(lab: Prompt) -> None:
    tcp, udp = lab.ask("iperf h1 h8", "iperfudp 1M h1 h2")
    assert re.search(r"[MGK]bits/sec", tcp)
    assert re.search(r"1\.\d+ Mbits/sec", udp)


@pytest.mark.slow
def test_a_second_terminal_records_a_link(lab: Prompt, tmp_path: Path) -> None:
    file = tmp_path / "link.pcap"
    recorder = subprocess.Popen(
        [*CLOSLAB, "pcap", "h1-leaf1", "--out", str(file), "--packets", "4"],
        stderr=subprocess.PIPE,
        text=True,
    )
    assert recorder.stderr is not None
    assert "Recording leaf1-eth1" in recorder.stderr.readline()
    closlab("enter", "h1", "ping", "-c", "3", "-i", "0.2", "10.0.1.2")
    recorder.wait(LONG_S)
    from scapy.layers.inet import ICMP
    from scapy.utils import rdpcap

    frames = rdpcap(str(file))
    assert len(frames) == 4
    assert {frame[ICMP].type for frame in frames} == {0, 8}  # requests and answers
    wrong = closlab("pcap", "leaf1-spin2")
    assert wrong.returncode == 1
    assert "no link 'leaf1-spin2' in the running lab; did you mean 'leaf1-spine2'" in wrong.stderr


@pytest.mark.parametrize(
    "rounds",
    [pytest.param(3, id=f"{again}", marks=pytest.mark.slow) for again in range(1, 11)],
)
def test_a_cable_is_drained_while_hosts_send_and_nothing_is_lost(
    tmp_path: Path, rounds: int
) -> None:
    """From a second terminal, over and over; lists and planes tell of it."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("CLOSLAB_RUNNING", str(tmp_path / "running"))
        small = "topology={kind: leaf-spine, leaves: 2, spines: 3, hosts_per_leaf: 2}"
        traffic = "traffic={kind: collective, op: all-to-all, bytes: 300KB}"
        settings = (small, traffic, "link.ip=6", "segments.enabled=true",
                    "segments.policies=[{at: leaf1, to: leaf2}]")  # fmt: skip
        lab = Prompt(tmp_path / "out", *(word for key in settings for word in ("--set", key)))
        (folder,) = (path for path in (tmp_path / "running").iterdir() if path.is_dir())
        with lab.meanwhile("traffic"):
            for _ in range(rounds):
                for word in ("drain", "undrain"):
                    for cable in ("leaf1-spine2", "leaf2-spine3"):
                        assert cable in hands.ask(folder, f"{word} {cable}")
        result = read_run(tmp_path / "out").result
        assert (result.drops.total, result.flows.completed) == (0, 12)
        drained, both, lists, planes, again = lab.ask(
            *("drain leaf1-spine2", "drain spine1 ", "segments h1 h3", "planes"),
            "undrain spine1",
        )
        assert "leaf1-spine2 is drained" in drained
        assert "used still" not in both
        rows = dict(re.findall(r"leaf1 (spine\d) leaf2 +\S+ +(\w+)", lists))
        assert rows == {"spine1": "denied", "spine2": "denied", "spine3": "taken"}
        assert "fcbb:bb00:2003:1002:f000::" in lists
        assert re.search(r"1 +6 of 6 +4 of 4 ", planes)
        assert "leaf2-spine1" in planes
        assert "spine1 is used again" in again
        (counters,) = lab.ask("counters")
        assert "No switch dropped a packet." in counters
        lab.process.communicate(b"exit\n", timeout=LONG_S)


@pytest.mark.mininet
@pytest.mark.parametrize("has_traffic", [False, pytest.param(True, marks=pytest.mark.slow)])
def test_what_was_done_at_the_prompt_is_kept(
    tmp_path: Path, own_cache: Path, has_traffic: bool
) -> None:
    lab = Prompt(tmp_path, "--set", "topology.leaves=2")
    lab.ask("h1 ping -c 1 h4", "lb conga", "fail leaf1 spine2", *(["traffic"] * has_traffic))
    said, _ = lab.process.communicate(b"exit\n", timeout=LONG_S)
    assert lab.process.returncode == 0
    run = read_run(tmp_path)
    hands = run.result.by_hand or ()
    assert [hand.what for hand in hands] == ["lb conga", "fail leaf1-spine2"]
    (fault,) = run.result.scenario.faults
    assert (fault.action, fault.link) == ("down", "leaf1-spine2")
    assert run.result.flows.completed == run.result.flows.count == 12 * has_traffic
    page = (tmp_path / "report.html").read_text()
    if has_traffic:
        assert run.result.scenario.lb.policy.value == "conga"
        assert not any(use.packets for use in run.result.links if "leaf1>spine2" in use.name)
    else:
        assert "The hosts sent nothing" in page
        assert b"What was done and seen: " in said
        assert sum(use.packets for use in run.result.links)
