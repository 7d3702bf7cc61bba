"""Faults by lot: some runs of it; that it repeats, and finds and shortens what is broken."""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
import yaml

from lab.engines.sim.control import SimulatedSwitches
from lab.results import conservation
from lab.results.outcome import HOST_DISCARDS, Fidelity, Outcome
from lab.results.stalls import VERDICTS, Stall, Verdict
from lab.runs import chaos, soak
from lab.runs.chaos import Belongings, Drawn, Ending, Faults, _heard, drawn, shortest
from lab.scenario import catalogue
from tests.lab.conftest import closlab
from tests.waiting import LONG_S


def test_whatever_happens_everything_holds(tmp_path: Path) -> None:
    """Among them are faults of most kinds."""
    said: list[str] = []
    tally = chaos.chaos(1, 12, "sim", tmp_path, said.append)
    assert tally.failed == [], "\n".join(said)
    assert tally.by_end["finished"] > 7
    kinds = {fault["action"] for seed in range(1, 13) for fault in drawn(seed).faults}
    assert kinds >= {"down", "slow", "restart", "halt", "storm", "corrupt"}


MECHANISMS = {"LLR", "CBFC", "IPv6", "UET", "ROD", "RUDI", "UUD", "small headers",
              "medium headers", "MRC", "timestamps", "port status", "reverse set",
              "scale-up", "encrypted", "trimming", "uSID", "planes", "dual-tor", "two-fabrics",
              "tenants' networks", "sums in switches", "full disk",
              "clock jumps"}  # fmt: skip
ACTIONS = {"down", "slow", "lose", "corrupt", "duplicate", "reorder", "restart", "halt", "storm",
           "drain"}  # fmt: skip
EVERYTHING = {"anything", "fat-tree", "rail", "dragonfly"}, {"undrain", "up"}  # seeds that are odd


@pytest.mark.parametrize("engine", ["sim", pytest.param("mininet", marks=pytest.mark.slow)])
def test_everything_is_drawn_and_can_be_run(engine: str) -> None:
    """Each mechanism and each fault, among two hundred; all of them are scenarios."""
    chosen = [drawn(seed, engine) for seed in range(200)]
    found = {kind for each in chosen for kind in each.kinds.removesuffix(": ").split(", ")}
    others, more = EVERYTHING if engine == "sim" else ({"BGP"}, {"restart-bgp"})
    assert found - {""} == MECHANISMS | others
    actions = {fault["action"] for each in chosen for fault in each.faults}
    assert actions == ACTIONS | more
    parts = {fault.get("part") for each in chosen for fault in each.faults}
    assert parts >= {"controller", "collector"}
    for each in chosen:
        catalogue.check(each.scenario())


@pytest.mark.slow
def test_two_hundred_runs_hold(tmp_path: Path) -> None:
    said: list[str] = []
    tally = chaos.chaos(1, 200, "sim", tmp_path, said.append)
    assert tally.failed == [], "\n".join(said)


@pytest.mark.slow
@pytest.mark.mininet
@pytest.mark.clock
def test_on_mininet_everything_holds(tmp_path: Path) -> None:
    done = closlab("chaos", "--engine", "mininet", "--runs", "4", "--out", str(tmp_path))
    assert done.returncode == 0, done.stderr


@pytest.mark.slow
def test_a_run_repeats_from_its_seed() -> None:
    """To the last figure of its books."""
    runs = []
    for _ in range(2):
        chosen = drawn(9)
        books: list[Any] = []

        def noted(fabric: Any, outcome: Any, books: list[Any] = books) -> list[str]:
            books.append([(str(node), kept) for node, kept in outcome.books.items()])
            books.append((outcome.end_ns, outcome.link_books, list(outcome.timeline.end_ns)))
            return []

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(conservation, "violations", noted)
            runs.append((chosen, chaos.simulated(chosen), books))
    assert runs[0] == runs[1]
    assert drawn(9) != drawn(10)


def test_what_is_broken_is_found_and_shortened(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A controller that believes a switch to know still what it knew before it started again."""
    restart = SimulatedSwitches.restart

    def forgetful(self: SimulatedSwitches, node: Any, *rest: Any) -> None:
        known = self._installed[node]
        restart(self, node, *rest)
        self._installed[node] = known

    monkeypatch.setattr(SimulatedSwitches, "restart", forgetful)
    seed = next(
        seed
        for seed in range(2, 99, 2)
        if any(fault["action"] == "restart" for fault in drawn(seed).faults)
        and len(drawn(seed).faults) >= 3
        and not drawn(seed).disk_is_full
        and not drawn(seed).clock  # which makes it a run of another process
    )
    said: list[str] = []
    tally = chaos.chaos(seed, 1, "sim", tmp_path, said.append)
    assert tally.failed == [seed]
    noticed = "not as the controller means it to be", "refused what it was told"
    assert any(word in line for word in noticed for line in said), said
    kept = yaml.safe_load((tmp_path / f"chaos-{seed}.yaml").read_text())
    assert [fault["action"] for fault in kept["faults"]] == ["restart"]


def test_a_tail_that_is_lost_far_behind_what_is_missing_is_found() -> None:
    """A sender whose window is down to a packet while others fly, which no answer told of."""
    changes = {
        "topology": {"kind": "leaf-spine", "leaves": 2, "spines": 3, "hosts_per_leaf": 1},
        "traffic": {"kind": "collective", "op": "all-to-all", "bytes": "1774KB"},
        "transport": {"kind": "uet", "cc": "nscc", "entropy": "oblivious", "rto_ns": "100us"},
        "measures": {"series": False}, "limit_ns": "5ms", "reroute_ns": "5us", "seed": 5004,
    }  # fmt: skip
    down = {"action": "down", "link": "leaf1-spine3", "for_ns": "10us"}
    faults: Faults = [
        {"at_ns": "29us", "action": "halt", "host": "h1", "for_ns": "67us"},
        {"at_ns": "1us", **down},
        {"at_ns": "21us", **down},
        {"at_ns": "48us", "action": "corrupt", "link": "h1-leaf1", "rate": 0.5, "for_ns": "172us"},
    ]
    ending = chaos.simulated(Drawn(5004, changes, faults, disk_is_full=False))
    assert ending == Ending("finished")


def test_what_ended_as_all_fell_silent_has_ended() -> None:
    """Of a run whose last transfer was over when nothing at all was left to happen."""
    changes = {
        "topology": {"kind": "leaf-spine", "leaves": 4, "spines": 2, "hosts_per_leaf": 1},
        "traffic": {"kind": "incast", "senders": 3, "bytes": "816KB"},
        "lb": {"policy": "dlb"},
        "transport": {"kind": "mrc", "cc": "swift", "rto_ns": "200us", "retry_limit": 250,
                      "queue_pairs": 2},
        "pfc": {"watchdog_ns": "1ms"}, "measures": {"series": False}, "limit_ns": "60ms",
        "reroute_ns": "5us", "seed": 19850,
    }  # fmt: skip
    faults: Faults = [{"at_ns": "73us", "action": "halt", "host": "h3", "for_ns": "172us"}]
    ending = chaos.simulated(Drawn(19850, changes, faults, disk_is_full=False))
    assert ending == Ending("finished")


def test_what_happens_after_all_fell_silent_is_known_to_have_happened() -> None:
    """A link is quick again, and switches are told, when its host has been dead for long."""
    changes = drawn(2).changes | {
        "topology": {"kind": "leaf-spine", "leaves": 2, "spines": 3, "hosts_per_leaf": 1},
        "traffic": {"kind": "incast", "senders": 1, "bytes": "882KB"},
        "transport": {"recovery": "selective", "rto_ns": "100us", "retry_limit": 250},
        "reroute_ns": "5us", "link": {"cbfc": True},
    }  # fmt: skip
    slow = {"action": "slow", "link": "h2-leaf2", "share": 0.39, "for_ns": "240us"}
    faults: Faults = [
        {"at_ns": "60us", "action": "halt", "host": "h2"},
        {"at_ns": "52us", **slow},
    ]
    ending = chaos.simulated(Drawn(1000036, changes, faults, disk_is_full=False))
    assert ending == Ending("failed by name")


@pytest.mark.parametrize(("dilation", "is_late"), [(1, False), (4000, False), (4000, True)])
def test_what_did_not_arrive_is_a_complaint_unless_the_machine_was_too_slow(
    dilation: int, is_late: bool
) -> None:
    """Which an emulated run says of itself, and which is no defect; switches may stray for it."""
    outcome = SimpleNamespace(
        ended="queue pairs went to error", switches={}, endpoints={}, dilation=dilation,
        fidelity=Fidelity(0, ok=not is_late, note="the machine could not keep up"),
    )  # fmt: skip
    drawn, stalls = Drawn(1, {}, [], disk_is_full=False), [stalled("time-out")]
    found = chaos.judged(drawn, [], cast(Outcome, outcome), [], stalls)
    assert found.how == "failed by name" and bool(found.complaints) != is_late
    assert chaos.judged(drawn, [], cast(Outcome, outcome), ["a route"], stalls).complaints


def stalled(verdict: Verdict) -> Stall:
    """Messages that did not arrive."""
    return Stall(verdict=verdict, messages=3, first="h1>h2", why="so it was")


@pytest.mark.parametrize("is_full", [False, True])
@pytest.mark.parametrize("may_wait", [False, True])
@pytest.mark.parametrize("verdict", VERDICTS)
def test_only_what_may_wait_has_messages_under_way_once_faults_let_go(
    verdict: Verdict, may_wait: bool, is_full: bool
) -> None:
    """A verdict that names what time or settings do is enough; one that names a fault is not."""
    dropped = {"buffer_full": 3} if is_full else {"injected_loss": 3}
    outcome = SimpleNamespace(
        ended="the limit of 60 ms was reached", dilation=1, fidelity=Fidelity(0, ok=True),
        switches={"leaf1": SimpleNamespace(dropped=dropped)}, endpoints={},
    )  # fmt: skip
    drawn = Drawn(1, {}, [], disk_is_full=False, may_wait=may_wait)
    found = chaos.judged(drawn, [], cast(Outcome, outcome), [], [stalled(verdict)])
    takes_time = ("deadlock", "time-out", "nak", "moving", "resending", "due")
    takes_time += ("retries",) if is_full else ()
    assert found.how == "failed by name"
    is_enough = verdict == "datagram" or (may_wait and verdict in takes_time)
    assert bool(found.complaints) != is_enough
    gone: Faults = [{"action": "halt", "host": "h1"}]
    left = chaos.judged(drawn, gone, cast(Outcome, outcome), [], [stalled(verdict)])
    assert bool(left.complaints) == (verdict == "untold")


@pytest.mark.parametrize(
    ("restore", "recovery", "is_excused"),
    [
        ("70ms", "selective", True),  # 250 times 200 us come to 50 ms
        ("40ms", "selective", False),
        ("40ms", "go-back-0", True),
    ],
)
def test_who_gives_up_before_a_watchdog_lets_go_has_been_lost_by_settings(
    restore: str, recovery: str, is_excused: bool
) -> None:
    outcome = SimpleNamespace(
        ended="the limit of 60 ms was reached", dilation=1, fidelity=Fidelity(0, ok=True),
        switches={"leaf1": SimpleNamespace(dropped={"watchdog": 1000})}, endpoints={},
    )  # fmt: skip
    changes = {
        "transport": {"recovery": recovery, "rto_ns": "200us", "retry_limit": 250},
        "pfc": {"watchdog_ns": "100us", "watchdog_restore_ns": restore},
    }
    drawn = Drawn(1, changes, [], disk_is_full=False, may_wait=True)
    found = chaos.judged(drawn, [], cast(Outcome, outcome), [], [stalled("retries")])
    assert bool(found.complaints) != is_excused


@pytest.mark.parametrize(
    ("recovery", "counters", "dropped", "is_excused"),
    [
        ("go-back-n", {"out_of_sequence": 3}, {}, True),  # nothing was lost, all was sent again
        ("selective", {"out_of_sequence": 3}, {}, False),
        ("go-back-n", {"out_of_sequence": 3}, {"injected_loss": 1}, False),
        ("selective", {HOST_DISCARDS: 3}, {}, True),  # an adapter slower than its link
        ("selective", {}, {}, False),
    ],
)
def test_what_settings_keep_from_arriving_is_no_complaint(
    recovery: str, counters: dict[str, int], dropped: dict[str, int], is_excused: bool
) -> None:
    outcome = SimpleNamespace(
        ended="queue pairs went to error", dilation=1, fidelity=Fidelity(0, ok=True),
        switches={"leaf1": SimpleNamespace(dropped=dropped)}, endpoints={"h1": counters},
    )  # fmt: skip
    drawn = Drawn(1, {"transport": {"recovery": recovery}}, [], disk_is_full=False, may_wait=True)
    found = chaos.judged(drawn, [], cast(Outcome, outcome), [], [stalled("retries")])
    assert bool(found.complaints) != is_excused


@pytest.mark.parametrize(
    ("faults", "lets_go"),
    [
        ([], True),
        ([{"action": "down", "link": "a"}], True),
        ([{"action": "down", "link": "a"}, {"action": "down", "link": "b"}], False),
        ([{"action": "down", "link": "a"}, {"action": "up", "link": "a"}], True),
        ([{"action": "down", "switch": "a"}], False),
        ([{"action": "down", "switch": "a"}, {"action": "up", "switch": "a"}], True),
        ([{"action": "down", "plane": 1, "for_ns": 5}], True),
        ([{"action": "halt", "host": "h1"}], False),
        ([{"action": "halt", "host": "h1", "for_ns": 5}], True),
    ],
)
def test_whether_every_fault_lets_go(faults: Faults, lets_go: bool) -> None:
    assert chaos.is_survivable(faults) == lets_go


def test_a_missing_frame_is_a_complaint(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(conservation, "violations", lambda *_: ["leaf1 lost a frame"])
    assert "leaf1 lost a frame" in chaos.simulated(drawn(1)).complaints


@pytest.mark.parametrize("seed", range(20))
def test_shortening_finds_the_fewest(seed: int) -> None:
    """Against a search of all that there is, for what fails if some of it is there together."""
    rng = random.Random(seed)
    faults: Faults = [{"n": n} for n in range(rng.randrange(1, 12))]
    guilty = rng.sample(faults, rng.randrange(0, min(4, len(faults)) + 1))
    tried = 0

    def fails(some: Faults) -> bool:
        nonlocal tried
        tried += 1
        return all(fault in some for fault in guilty)

    found = shortest(list(faults), fails)
    assert sorted(json.dumps(fault) for fault in found) == sorted(map(json.dumps, guilty))
    assert tried <= 4 * len(faults) ** 2 + 4


def test_leaks_are_told(tmp_path: Path) -> None:
    before = Belongings.now()
    with (tmp_path / "file").open("w"):
        ballast = bytearray(60 << 20)
        ballast[::4096] = b"x" * len(ballast[::4096])
        leaks = Belongings.now().leaks(before)
    assert len(leaks) == 2 and "descriptors" in leaks[0] and "more memory bytes" in leaks[1]
    assert Belongings.now().leaks(before) == [] or len(ballast)


def test_an_unfinished_job_must_have_a_reason() -> None:
    """Every fault let go, or nobody says why: both are complaints."""
    flap: Faults = [{"at_ns": 1, "action": "down", "link": "leaf1-spine1", "for_ns": 5}]
    dead: Faults = [{"at_ns": 1, "action": "halt", "host": "h1"}]
    assert chaos.is_survivable(flap) and not chaos.is_survivable(dead)
    chosen = Drawn(2, drawn(2).changes, flap, disk_is_full=False)
    assert chaos.simulated(chosen).complaints == ()
    hopeless = Drawn(2, chosen.changes | {"limit_ns": "5us"}, flap, disk_is_full=False)
    complaints = chaos.simulated(hopeless).complaints
    assert complaints and all("every fault let go" in each for each in complaints)
    assert any("limit" in each for each in complaints)
    assert isinstance(chaos.simulated(hopeless), Ending)


def test_a_clock_jumps_for_all_that_a_program_starts() -> None:
    """And who waits, by whichever clock, waits neither for a day more nor a moment less."""
    program = """
import json, subprocess, sys, threading, time
right = float(sys.argv[1])
def off(told=None): return round((told or time.time()) - time.monotonic() - right)
seen = [off()]
while seen[-1] > 0:
    began = time.monotonic()
    threading.Event().wait(0.02)
    assert time.monotonic() - began >= 0.02
    seen += [off()] if off() != seen[-1] else []
date = int(subprocess.check_output(("date", "+%s")))
print(json.dumps([seen, abs(off(date) + 86400) < 10]))
"""
    ended = subprocess.run(
        [sys.executable, "-c", program, str(time.time() - time.monotonic())],
        env=os.environ | chaos.jumping(((0.0, 3600.0), (0.5, -86400.0))),
        capture_output=True, text=True, check=True, timeout=LONG_S,
    )  # fmt: skip
    seen, is_inherited = json.loads(ended.stdout)
    assert seen[-1] == -86400 and set(seen) <= {3600, -86400} and is_inherited
    assert chaos.jumping(()) == {}


def test_a_run_whose_clock_jumps_is_the_same_run() -> None:
    """In the simulator, whose own time has nothing to do with it."""
    faults: Faults = [{"at_ns": "10us", "action": "down", "link": "leaf1-spine1", "for_ns": "20us"}]
    clock = ((0.0, 3600.0), (0.4, -86400.0), (0.8, 0.0), (1.2, 30.0))
    little = {"traffic": {"kind": "incast", "senders": 1, "bytes": "50KB"}}
    jumping = Drawn(1, drawn(1).changes | little, faults, disk_is_full=False, clock=clock)
    assert chaos.simulated(jumping) == Ending("finished")


# --- a soak ---------------------------------------------------------------------------------------


def rounds(count: int, **held: Any) -> list[soak.Round]:
    """Rounds in which nothing changes but what is given: a figure by the round's number."""
    usual = soak.Held(9, 40, 200, 300 << 20, 8, 1 << 20)
    jct = held.pop("jct_ns", lambda _: 1_000_000)
    return [
        soak.Round(
            n, 3.0 * n, 3.0, n % 4, jct(n), held.get("believed", lambda _: True)(n),
            replace(usual, **{k: v(n) for k, v in held.items() if k != "believed"}),
        )
        for n in range(count)
    ]  # fmt: skip


def test_a_soak_tells_what_has_changed() -> None:
    assert soak.judged(rounds(200)) == []
    assert (
        soak.judged(rounds(200, memory_bytes=lambda n: (300 << 20) + (n * 7919) % (8 << 20))) == []
    )
    assert soak.judged(rounds(200, memory_bytes=lambda n: (300 << 20) + n * (1 << 18)))
    for name, every in (("descriptors", 3), ("threads", 10), ("processes", 60)):
        (complaint,) = soak.judged(rounds(200, **{name: lambda n, every=every: 100 + n // every}))
        assert complaint.startswith(f"{name} grew from 10")
    assert soak.judged(rounds(200, jct_ns=lambda n: 1_000_000 + 200 * n)) == []
    (complaint,) = soak.judged(rounds(200, jct_ns=lambda n: 1_000_000 + 400 * n))
    assert complaint.startswith("throughput at the end is 9")
    (complaint,) = soak.judged(rounds(200, believed=lambda _: False))
    assert "could not keep up" in complaint


def test_a_soaks_faults_let_go() -> None:
    for number in range(100):
        faults = soak.faults_of(1, number)
        assert bool(faults) == (number % 4 != 0)
        assert faults == soak.faults_of(1, number)
        assert all("for_ns" in each or each["action"] == "restart" for each in faults)
        catalogue.check(catalogue.made(soak.scenario_of(1) | {"faults": faults}))


def test_what_processes_hold_is_counted(tmp_path: Path) -> None:
    (tmp_path / "a").write_text("abc")
    held = soak.Held.now(tmp_path)
    assert (held.files, held.file_bytes) == (1, 3)
    assert held.processes > 0 and held.threads >= held.processes and held.descriptors > 2


@pytest.mark.slow
@pytest.mark.mininet
@pytest.mark.clock
def test_a_fabric_that_stays_up_stays_what_it_was(tmp_path: Path) -> None:
    done = closlab("chaos", "--for", "20s", "--out", str(tmp_path))
    assert done.returncode == 0, done.stderr


def test_how_long_is_a_time(tmp_path: Path) -> None:
    done = closlab("chaos", "--for", "soon", "--out", str(tmp_path))
    assert done.returncode == 1 and "90s, 30min or 2h" in done.stderr


def test_nobody_goes_by_a_clock_that_can_be_set() -> None:
    """So a jump of it is nothing to a run: it stamps what is told, and says how old a file is."""
    root = Path(chaos.__file__).resolve().parents[2]
    sources = [
        path
        for folder in ("switch", "traffic", "controller", "lab/engines", "lab/machine")
        for path in (root / folder).rglob("*.[cph]*")
        if path.suffix in (".c", ".h", ".py")
    ]
    settable = ("CLOCK_REALTIME", "gettimeofday", "time(NULL)", "time.time(", "time.time_ns(")
    found = {
        path.relative_to(root).as_posix()
        for path in sources
        if any(word in path.read_text() for word in settable)
    }
    assert len(sources) > 100
    uses = {"switch/p4runtime/digests.py", "switch/p4runtime/idle.py", "lab/engines/mininet/tap.py"}
    uses |= {"lab/engines/mininet/running.py", "switch/cache.py"}
    uses |= {"lab/machine/clock.c"}  # which makes it jump
    uses |= {"traffic/verbs/fabric_clock.c"}  # which gives programs the fabric's in its place
    # The kernel stamps frames by it; what that comes to by the other clock lies between the time
    # that was served last and now, however this one was set meanwhile.
    uses |= {"switch/rt/loop.c", "switch/rt/port_socket.h", "traffic/core/host_main.c"}
    uses |= {"traffic/tester/port.c"}
    assert found <= uses


def test_for_whom_a_run_waits_is_passed_on_while_it_does(capfd: pytest.CaptureFixture[str]) -> None:
    says = "import sys; sys.stderr.write('closlab: waiting\\nelse\\n'); sys.exit(len(input()))"
    assert _heard([sys.executable, "-c", says], "abc\n", os.environ, LONG_S) == (
        3,
        "closlab: waiting\nelse",
    )
    assert capfd.readouterr().err == "closlab: waiting\n"
    hangs = "import time; time.sleep(1000)"
    assert _heard([sys.executable, "-c", hangs], "", os.environ, 0.1) is None


def test_a_run_that_is_stopped_itself_is_told_of(capfd: pytest.CaptureFixture[str]) -> None:
    """It goes on as its own child, which it has left running, says so."""
    stops = (
        "import os, signal, subprocess, sys; "
        "subprocess.Popen(['sh', '-c', f'sleep 3; kill -CONT {os.getpid()}']); "
        "os.kill(os.getpid(), signal.SIGSTOP)"
    )
    assert _heard([sys.executable, "-c", stops], "", os.environ, LONG_S) == (0, "")
    assert "was stopped, and SIGCONT lets it go on" in capfd.readouterr().err
