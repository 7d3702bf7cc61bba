"""`closlab bench switch` measures what it says: every rival forwards, and the numbers are rates."""

import re
import subprocess
import sys
from contextlib import nullcontext
from pathlib import Path

import pytest

from bench import switch as bench
from tests.veths import unshare
from tests.waiting import LONG_S

ROOT = Path(__file__).resolve().parents[2]

REPORT = bytes.fromhex(  # IGMPv3: what a bridge that snoops says when it comes up
    "01005e000016 020000000099 0800 46c0002800004000 01020000 00000000 e0000016 94040000"
    "2200000000000001 04000000e000006a"
)


class Ends:
    """The two ends of a veth: what is sent comes back with a TTL, the kernel's own frame first."""

    def __init__(self, ttl: int, *, is_cut: bool = False) -> None:
        self.waiting = [REPORT]
        self.ttl, self.is_cut = ttl, is_cut

    def send(self, frame: bytes) -> None:
        words = bytearray(frame)
        words[22] = self.ttl
        words[24] += 64 - self.ttl  # what the checksum makes of it, here without a carry
        self.waiting += [] if self.is_cut else [bytes(words)]

    def recv(self, _most: int) -> bytes:
        if not self.waiting:
            raise TimeoutError
        return self.waiting.pop(0)


@pytest.mark.parametrize(
    ("ends", "complaint"),
    [
        (Ends(63), None),
        (Ends(64), "it forwards wrongly: 02 00"),
        (Ends(63, is_cut=True), "it does not forward"),
    ],
    ids=["routed", "bridged", "cut"],
)
def test_bench_looks_at_its_own_frames_only(
    monkeypatch: pytest.MonkeyPatch, ends: Ends, complaint: str | None
) -> None:
    monkeypatch.setattr(bench, "raw_socket", lambda _interface: nullcontext(ends))
    library = bench.open_load(bench.build_load())
    refused = pytest.raises(bench.BenchError, match=complaint) if complaint else nullcontext()
    with refused:
        bench.wait_for_forwarding(library, "it", routed=True)


@pytest.mark.slow
@pytest.mark.mininet
def test_bench_measures_bridge_and_switch() -> None:
    unshare()  # or a skip that says why not
    done = subprocess.run(
        [sys.executable, "-m", "bench.switch", "--seconds", "0.1", "--rounds", "1"],
        capture_output=True,
        text=True,
        timeout=LONG_S,
        cwd=ROOT,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    number = r"([\d,.]+)"
    line = rf"^ +(\d+) bytes  (\w+) +{number} packets/s +{number} \({number}-{number}\)"
    rates = re.findall(line + rf"(?: +{number} ns each, {number})?$", done.stdout, re.M)
    for size in ("64", "1088"):
        found: dict[str, list[list[float]]] = {"bridge": [], "closlab": []}
        for its, name, *numbers in rates:
            if its == size:
                own = [float(number.replace(",", "")) for number in numbers if number]
                found.setdefault(name, []).append(own)
        assert all(own[1:4] == [1, 1, 1] for own in found["bridge"]), done.stdout
        for name in ("bridge", "closlab"):
            assert all(own[0] > 1000 for own in found[name]), done.stdout
            assert len(found[name]) in (1, 3), done.stdout  # one processor, or two
            pps, *_, ns, _ = found[name][0]
            assert 200 < ns < 1.3e9 / pps, done.stdout  # one core has 1e9 of them in a second


def test_bench_refuses_nonsense() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "bench.switch", "--rounds", "0"],
        capture_output=True,
        text=True,
        cwd=ROOT,
        check=False,
    )
    assert done.returncode == 2
    assert "must be positive" in done.stderr
