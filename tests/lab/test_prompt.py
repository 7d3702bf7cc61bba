"""The prompt's own words, and what a second terminal may do, on a fabric that is up."""

import re
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.lab.conftest import CLOSLAB, closlab

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
    "int h1 h2": "both hang at leaf1",
    "int h1 h99": "no host 'h99'",
    "int h1 h1": "name two",
    "pause h99": "no node 'h99'; there are",
    "switch leef1 stop": "no switch 'leef1'; did you mean 'leaf1'?",
    "switch leaf1 stpo": "write it as: switch SWITCH stop|start",
    "iperf h1": "name two hosts, or none",
    "iperf h1 h99": "no host 'h99'",
    "dpctl dump-flows": "these switches speak P4Runtime",
}


def ask(lab: subprocess.Popen[str], *lines: str) -> list[str]:
    """What the prompt answered to each line."""
    out, _ = lab.communicate("\n".join((*lines, "exit\n")), timeout=100)
    assert "Traceback" not in out
    # The first prompt may have been read by who waited for it.
    answers = out.split("mininet> ")[-len(lines) - 1 :]
    assert len(answers) == len(lines) + 1, out
    return answers


def test_it_tells_what_switches_were_told_and_what_they_hold(
    prompt: subprocess.Popen[str],
) -> None:
    tables, routes, queues, pause, traffic, after, counters = ask(
        prompt,
        *("tables leaf1", "tables leaf1 ipv4_routes", "queues", "pause"),
        *("traffic", "counters", "counters leaf1"),
    )[:7]
    assert re.search(r"ipv4_routes +5\b", tables)
    assert "dst_addr 10.0.1.2/32" in routes and "next_mac 02:00:0a:00:01:02" in routes
    assert "empty so far" in queues
    assert "Nobody was paused" in pause
    assert "56 of 56 messages arrived whole" in traffic
    assert len(re.findall(r"^\w+ port \d", after, re.M)) == 24
    assert "No switch dropped a packet." in after
    # Each host of the leaf sent 7 messages of 4 packets, and heard as many.
    (received, sent) = re.search(r"leaf1 port 1 +h1 +(\d+) +(\d+)", counters).groups()  # type: ignore[union-attr]
    assert 28 <= int(received) <= 40 and 28 <= int(sent) <= 40


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
        timeout=100,
        check=False,
    )
    _, _, pause, leaf, spine, _ = done.stdout.split("mininet> ")
    assert re.search(r"takes [\d.]+ µs in the fabric", done.stderr)
    assert re.search(r"add --lab incast-\d+\.", done.stderr)
    stood_still = dict(re.findall(r"^(\S+) +\d+ +\d+ +(.+?) *$", pause, re.M))
    assert any(name.startswith("h") and still != "0 ns" for name, still in stood_still.items())
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
        timeout=100,
        check=False,
    )
    (told,) = re.findall(r"(\d+) telemetry reports", done.stdout + done.stderr)
    assert int(told) >= 7 * 20_000 // 4096


def test_it_follows_packets_and_leads_them_elsewhere(prompt: subprocess.Popen[str]) -> None:
    words = ("int h1 h8", "lb spray", "fail leaf1 spine2", "int h1 h8", "mend leaf1 spine2")
    both, policy, failed, one, mended, *complaints, _ = ask(prompt, *words, *WRONG)
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


def test_a_switch_that_is_stopped_carries_nothing(prompt: subprocess.Popen[str]) -> None:
    ping = "h1 ping -c 1 -W 1 h8"
    words = ("pause h1", "switch leaf4 stop", ping, "switch leaf4 start", ping)
    words = (*words, "switch spine1 stop", ping, "counters spine1", "sh getent hosts h8")
    pause, off, silent, on, heard, _, round_it, counted, named, _ = ask(prompt, *words)
    assert "h1 was not paused" in pause
    assert "leaf4 is off" in off and "leaf4 is back" in on
    assert " 0 received" in silent
    assert " 1 received" in heard and " 1 received" in round_it
    assert "spine1 port 1" in counted
    assert re.search(r"10\.0\.4\.2 +h8", named)


@pytest.mark.slow
@pytest.mark.skipif(not shutil.which("iperf"), reason="iperf is not installed")
def test_iperf_ends_and_tells_a_rate(prompt: subprocess.Popen[str]) -> None:
    tcp, udp, _ = ask(prompt, "iperf h1 h8", "iperfudp 1M h1 h2")
    assert re.search(r"[MGK]bits/sec", tcp)
    assert re.search(r"1\.\d+ Mbits/sec", udp)


def test_a_second_terminal_records_a_link(prompt: subprocess.Popen[str], tmp_path: Path) -> None:
    file = tmp_path / "link.pcap"
    recorder = subprocess.Popen(
        [*CLOSLAB, "pcap", "h1-leaf1", "--out", str(file), "--packets", "4"],
        stderr=subprocess.PIPE,
        text=True,
    )
    assert recorder.stderr is not None
    assert "Recording leaf1-eth1" in recorder.stderr.readline()
    closlab("enter", "h1", "ping", "-c", "3", "-i", "0.2", "10.0.1.2")
    recorder.wait(20)
    from scapy.layers.inet import ICMP
    from scapy.utils import rdpcap

    frames = rdpcap(str(file))
    assert len(frames) == 4
    assert {frame[ICMP].type for frame in frames} == {0, 8}  # requests and answers
    wrong = closlab("pcap", "leaf1-spin2")
    assert wrong.returncode == 1
    assert "no link 'leaf1-spin2' in the running lab; did you mean 'leaf1-spine2'" in wrong.stderr
