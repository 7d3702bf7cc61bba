"""Who dies is named to who waits, who stands still to who watches; after a kill nothing is left."""

from __future__ import annotations

import io
import os
import re
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from lab.engines.mininet import hands, running
from lab.errors import LabError, RunError
from lab.machine import speed
from lab.machine import supervisor as module
from lab.machine.building import building
from lab.machine.certificates import made
from lab.machine.paths import ROOT
from lab.machine.processes import stop
from lab.machine.stopped import Standstill
from lab.machine.supervisor import Supervisor
from switch import build
from topologies import TopologyError
from topologies.ip import run_ip

LONG_S = 60.0


@pytest.fixture
def sleeper() -> Iterator[subprocess.Popen[bytes]]:
    process = subprocess.Popen(["sleep", "600"])
    yield process
    process.kill()
    process.wait()


@pytest.fixture(autouse=True)
def at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "LOOK_S", 0.02)
    monkeypatch.setattr(module, "_ASKED_WITHIN_S", 0.05)


def test_who_waits_for_the_dead_is_woken(sleeper: subprocess.Popen[bytes]) -> None:
    watch = Supervisor()
    with pytest.raises(RunError, match=r"^the one died \(SIGKILL\)$"), watch.watching(print):
        watch.rely(sleeper.pid, "the one")
        sleeper.kill()
        time.sleep(LONG_S)


def test_who_asks_is_told_and_goes_on(sleeper: subprocess.Popen[bytes]) -> None:
    watch = Supervisor()
    with watch.watching(print):
        watch.rely(sleeper.pid, "the one")
        assert watch.failure is None
        sleeper.terminate()
        while watch.failure is None:
            time.sleep(0.005)
        time.sleep(0.3)
        assert watch.failure == "the one died (SIGTERM)"


def test_what_comes_of_a_death_is_told_as_that(sleeper: subprocess.Popen[bytes]) -> None:
    watch = Supervisor()
    with pytest.raises(RunError) as caught, watch.watching(print):
        watch.rely(sleeper.pid, "the one")
        sleeper.kill()
        raise RunError("nobody answers", "Ask again.")
    assert caught.value.message == "the one died (SIGKILL)"
    assert caught.value.cure == "nobody answers\nAsk again."


def test_who_died_before_it_was_let_go_is_told_of(sleeper: subprocess.Popen[bytes]) -> None:
    """Even if nobody has looked yet: what it was for is taken down as that fails."""
    watch = Supervisor()
    watch.rely(sleeper.pid, "the one")
    sleeper.kill()
    os.waitid(os.P_PID, sleeper.pid, os.WEXITED | os.WNOWAIT)
    watch.spare(sleeper.pid)
    explained = watch.explained(RunError("nobody answers"))
    assert explained is not None and explained.message == "the one died (SIGKILL)"


def test_who_is_let_go_may_end(
    sleeper: subprocess.Popen[bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "_KNOWN_WITHIN_S", 0.01)
    watch = Supervisor()
    watch.rely(sleeper.pid, "the one")
    watch.spare(sleeper.pid)
    sleeper.kill()
    sleeper.wait()
    assert watch.explained(RunError("nobody answers")) is None


def test_what_fails_while_all_live_is_told_as_it_is(
    sleeper: subprocess.Popen[bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "_KNOWN_WITHIN_S", 0.01)
    watch = Supervisor()
    with pytest.raises(KeyError), watch.watching(print):
        watch.rely(sleeper.pid, "the one")
        raise KeyError


def test_an_end_that_is_meant_is_nobodys_business(sleeper: subprocess.Popen[bytes]) -> None:
    with module.supervisor.watching(print):
        module.supervisor.rely(sleeper.pid, "the one")
        stop(sleeper)
        time.sleep(0.2)
        assert module.supervisor.failure is None


def test_who_is_stopped_is_waited_for_by_name(sleeper: subprocess.Popen[bytes]) -> None:
    lines: list[str] = []
    meant: set[int] = set()
    still = Standstill(lines.append, {sleeper.pid: "the one"}, meant)
    still.look()
    sleeper.send_signal(signal.SIGSTOP)
    while state(sleeper.pid) != "T":
        time.sleep(0.01)
    still.look()
    assert lines == []  # it may be on its way to go on, as after a terminal's Ctrl-Z
    still.look()
    still.look()
    where = f"process {sleeper.pid} was stopped, and SIGCONT lets it go on"
    assert lines == [f"waiting for the one: {where}"]
    sleeper.send_signal(signal.SIGCONT)
    still.look()
    assert lines[1:] == ["the one goes on, or has ended"]
    meant.add(sleeper.pid)
    sleeper.send_signal(signal.SIGSTOP)
    still.look()
    still.look()
    assert len(lines) == 2


_MAKES = """\
import subprocess, sys, time
from lab.machine.scratch import at_our_end, scratch
with scratch() as folder, at_our_end() as executor:
    (folder / "file").touch()
    child = subprocess.Popen(["sleep", "600"], process_group=0, stdout=subprocess.DEVNULL)
    executor.then("kill", "-s", "KILL", "--", f"-{child.pid}")
    print(folder, child.pid, flush=True)
    sys.stdin.readline()
    child.kill()
    child.wait()
"""


@pytest.mark.parametrize("is_killed", [True, False])
def test_what_is_made_for_a_while_goes_with_its_maker(tmp_path: Path, is_killed: bool) -> None:
    with subprocess.Popen(
        [sys.executable, "-c", _MAKES],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        cwd=ROOT,
        env=os.environ | {"TMPDIR": str(tmp_path)},
    ) as maker:
        assert maker.stdout is not None
        folder, pid = maker.stdout.readline().split()
        assert Path(folder, "file").exists()
        if is_killed:
            maker.kill()
        else:
            maker.communicate("on\n")
    until = time.monotonic() + LONG_S
    while (lives(int(pid)) or any(tmp_path.iterdir())) and time.monotonic() < until:
        time.sleep(0.02)
    assert not lives(int(pid)) and not any(tmp_path.iterdir())


_IS_KILLED_AT_IT = """\
import os, shutil
from lab.machine.scratch import scratch
shutil.rmtree = lambda *_, **__: os.kill(os.getpid(), 9)
with scratch() as folder:
    (folder / "file").touch()
"""


_ITS_SHELL_IS_KILLED = """\
import os
from lab.machine.scratch import at_our_end
with at_our_end() as executor:
    os.kill(executor._shell.pid, 9)
    executor._shell.wait()
    executor.then("true")
"""


def test_who_waits_for_the_end_may_be_killed_as_well() -> None:
    done = subprocess.run([sys.executable, "-c", _ITS_SHELL_IS_KILLED], cwd=ROOT, check=False)
    assert done.returncode == 0


def test_a_folder_goes_whose_maker_is_killed_while_he_removes_it(tmp_path: Path) -> None:
    words = [sys.executable, "-c", _IS_KILLED_AT_IT]
    environment = os.environ | {"TMPDIR": str(tmp_path)}
    done = subprocess.run(words, cwd=ROOT, env=environment, check=False)
    assert done.returncode == -signal.SIGKILL
    until = time.monotonic() + LONG_S
    while any(tmp_path.iterdir()) and time.monotonic() < until:
        time.sleep(0.02)
    assert not any(tmp_path.iterdir())


def lives(pid: int) -> bool:
    try:
        return state(pid) != "Z"  # who took it over may never ask how it ended
    except OSError:
        return False


def state(pid: int) -> str:
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]


def test_a_lab_is_over_whose_process_nobody_asked_how_it_ended(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In a container there may be nobody who does."""
    monkeypatch.setenv("CLOSLAB_RUNNING", str(tmp_path))
    with subprocess.Popen(["sleep", "600"]) as process:
        registration = running.Registration("two")
        registration.announce(process.pid)
        registration.furnish({}, {}, {}, {})
        assert [lab.pid for lab in running.running()] == [process.pid]
        process.kill()
        while state(process.pid) != "Z":
            time.sleep(0.01)
        assert running.running() == []
        running.Registration("three").announce(process.pid)  # over before it was made known
    assert not any(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("does", "expected"),
    [("kill -9 $$", r"ip was killed \(SIGKILL\)"), ("exit 3", "ip ended with 3")],
)
def test_how_ip_ended_is_told(
    does: str, expected: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "ip").write_text(f"#!/bin/sh\n{does}\n")
    (tmp_path / "ip").chmod(0o700)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    with pytest.raises(TopologyError, match=expected):
        run_ip(["link set lo up"])


def test_a_compiler_that_was_killed_is_told_as_that(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(build, "compiler", lambda: ("sh", "-c", "kill -9 $$"))
    with pytest.raises(build.BuildError, match=r"\nwas killed \(SIGKILL\)$"):
        build._compile(["a.c"], tmp_path / "a.so")
    expected = r"(?s)it cannot be built.*\nwas killed \(SIGKILL\)$"
    with pytest.raises(LabError, match=expected), building("it"):
        build._compile(["a.c"], tmp_path / "a.so")


def test_a_compiler_that_was_stopped_is_waited_for_by_name(
    sleeper: subprocess.Popen[bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Once, whoever else looks as well."""
    said = io.StringIO()
    monkeypatch.setattr(sys, "stderr", said)
    with building("it"), building("a part of it"):
        sleeper.send_signal(signal.SIGSTOP)
        while "SIGCONT" not in said.getvalue():
            time.sleep(0.01)
        time.sleep(0.1)
    assert said.getvalue().count("SIGCONT") == 1


def test_a_lab_that_does_not_answer_is_waited_for_with_a_word_and_not_for_ever(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(hands, "_TELL_S", 0.05)
    monkeypatch.setattr(hands, "_ANSWER_S", 0.07)
    with socket.socket(socket.AF_UNIX) as silent:
        silent.bind(str(tmp_path / hands.SOCKET))
        silent.listen()
        with pytest.raises(LabError, match="does not answer any more"):
            hands.ask(tmp_path, "lb spray")
    assert "closlab: still waiting for the lab to answer, 0 s by now\n" in capsys.readouterr().err


def test_a_measure_whose_process_was_killed_is_taken_here(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(speed, "_measure", lambda: speed.Measure(1.0, 2.0, 3.0))
    monkeypatch.setattr(sys, "executable", "false")
    assert speed._measure_apart() == speed.Measure(1.0, 2.0, 3.0)


def test_a_killed_openssl_is_told_as_that(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "openssl").write_text("#!/bin/sh\nkill -9 $$\n")
    (tmp_path / "openssl").chmod(0o700)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    with pytest.raises(RunError, match=r"no certificates \(SIGKILL\): it said nothing"), made():
        pass


def test_of_a_lab_of_somebody_else_it_is_told_whose_it_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CLOSLAB_RUNNING", str(tmp_path))
    monkeypatch.setattr(running, "_others", lambda: iter([0, 4_000_000_000]))
    with pytest.raises(LabError, match="one of root and one of user 4000000000"):
        running.find()


@pytest.mark.slow
@pytest.mark.mininet
@pytest.mark.parametrize("seed", range(1, 13))
def test_any_process_may_be_hit_at_any_moment(seed: int) -> None:
    hit(seed, "mininet,bgp,exec,prompt,live,sim,sweep,tls")


@pytest.mark.slow
@pytest.mark.parametrize("seed", [3, 5])
def test_any_process_of_a_sweep_may_be_hit(seed: int) -> None:
    hit(seed, "sim,sweep")


def hit(seed: int, kinds: str) -> None:
    """In a process of its own, which makes a room: what is left there is ended, whoever it is."""
    words = ["--runs", "1", "--seed", str(seed), "--kinds", kinds]
    done = subprocess.run(
        [sys.executable, "-m", "tests.lab.kills", *words],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr


def test_a_measure_whose_process_was_stopped_is_waited_for_by_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nobody else looks out for it yet: a run measures its machine first."""
    said, measures = io.StringIO(), tmp_path / "measures"
    measures.write_text("#!/bin/sh\nkill -STOP $$\necho 1 2 3\n")
    measures.chmod(0o700)
    monkeypatch.setattr(sys, "stderr", said)
    monkeypatch.setattr(sys, "executable", str(measures))

    def let_go() -> None:
        while "SIGCONT" not in said.getvalue():
            time.sleep(0.01)
        os.kill(int(re.findall(r"process (\d+) was stopped", said.getvalue())[0]), signal.SIGCONT)

    thread = threading.Thread(target=let_go)
    thread.start()
    assert speed._measure_apart() == speed.Measure(1.0, 2.0, 3.0)
    thread.join()
