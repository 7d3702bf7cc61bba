"""Sandboxes leave nothing behind, however they end, and do not see one another."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.waiting import LONG_S

pytestmark = [pytest.mark.mininet, pytest.mark.ordinary]  # a user namespace besides

_RUN = """
import sys
from lab.engines.mininet.sandbox import run_in_sandbox
def inside():
    {body}
    return 0
sys.exit(run_in_sandbox(inside, lambda pid: print("sandbox", pid, flush=True)))
"""

_SLOWLY_READY = """
import sys, time
from lab.engines.mininet import sandbox
sandbox._mind_threads = lambda: time.sleep(1) or []  # it is not ready yet
sys.exit(sandbox.run_in_sandbox(lambda: 5, lambda pid: None))
"""


def start(body: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", _RUN.format(body=body)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def first_of(sandbox: "subprocess.Popen[str]") -> int:
    """The first process of one that says that it is up."""
    assert sandbox.stdout is not None
    first = int(sandbox.stdout.readline().split()[1])
    assert sandbox.stdout.readline() == "up\n"
    return first


def test_it_has_a_network_mounts_and_processes_of_its_own() -> None:
    done = start(
        "import os, socket; "
        "print(os.getpid(), [name for _, name in socket.if_nameindex()], "
        "sorted(int(p) for p in os.listdir('/proc') if p.isdigit()))"
    )
    out, err = done.communicate(timeout=LONG_S)
    assert done.returncode == 0, err
    assert out.splitlines()[1] == "1 ['lo'] [1]"


def test_its_loopback_works() -> None:
    done = start(
        "import socket; s = socket.create_server(('127.0.0.1', 50051)); "
        "socket.create_connection(('127.0.0.1', 50051), 2); print('connected')"
    )
    out, err = done.communicate(timeout=LONG_S)
    assert "connected" in out, err


@pytest.mark.by_day(1)
@pytest.mark.parametrize(("body", "code"), [("return 7", 7), ("raise KeyboardInterrupt", 130)])
def test_the_exit_code_comes_through(body: str, code: int) -> None:
    done = start(body)
    done.communicate(timeout=LONG_S)
    assert done.returncode == code


DIES = "import threading; threading.Thread(target=[].pop, name='carriers').start(); "


@pytest.mark.by_day(1)
@pytest.mark.parametrize(
    "body",
    [
        DIES + "threading.Event().wait()",
        DIES + "import subprocess; subprocess.run(['sleep', '600'])",
        DIES + "[each.join() for each in threading.enumerate()[1:]]",
        DIES + "import contextlib, time\n    with contextlib.suppress(Exception): time.sleep(600)",
    ],
)
def test_a_thread_that_dies_takes_the_run_with_it(body: str) -> None:
    """At once, whatever is waited for; and even if somebody takes the word of it for his own."""
    done = start(body)
    _, err = done.communicate(timeout=LONG_S)
    assert done.returncode == 70
    assert "IndexError: pop from empty list" in err
    assert "closlab: a thread of the run died (carriers)" in err


@pytest.mark.parametrize("victim", ["outside", "inside"])
def test_a_kill_of_either_end_ends_everything_in_it(victim: str) -> None:
    sandbox = start(
        "import subprocess, time; subprocess.Popen(['setsid', 'sleep', '600']); "
        "subprocess.run(['mount', '-t', 'tmpfs', 'none', '/mnt']); "
        "subprocess.run(['ip', 'link', 'add', 'v0', 'type', 'veth', 'peer', 'name', 'v1']); "
        "print('up', flush=True); time.sleep(600)"
    )
    first = first_of(sandbox)
    namespace = (Path("/proc") / str(first) / "ns" / "net").readlink()
    mounts = Path("/proc/self/mounts").read_text()

    os.kill(sandbox.pid if victim == "outside" else first, signal.SIGKILL)
    sandbox.wait(LONG_S)

    deadline = time.monotonic() + LONG_S
    while in_namespace(namespace) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert in_namespace(namespace) == []
    assert Path("/proc/self/mounts").read_text() == mounts
    assert sandbox.returncode == (-9 if victim == "outside" else 1)
    if victim == "inside":  # a program of the run may end with any code, and was not killed then
        assert "the run was killed (SIGKILL); nothing of it is left" in sandbox.communicate()[1]


def test_a_first_process_that_is_stopped_is_waited_for_by_name() -> None:
    """By whom it waits, who sees no /proc but the sandbox's."""
    sandbox = start("import time; print('up', flush=True); time.sleep(600)")
    assert sandbox.stderr is not None
    first = first_of(sandbox)
    os.kill(first, signal.SIGSTOP)
    name = "the first process of the run"
    where = f"process {first} was stopped, and SIGCONT lets it go on"
    assert sandbox.stderr.readline() == f"closlab: waiting for {name}: {where}\n"
    os.kill(first, signal.SIGCONT)
    assert sandbox.stderr.readline() == f"closlab: {name} goes on\n"
    os.kill(first, signal.SIGKILL)
    sandbox.communicate(timeout=LONG_S)


def test_one_that_is_stopped_before_it_is_known_is_waited_for_too() -> None:
    """Its parent asks it to be ready, and hears nothing."""
    sandbox = subprocess.Popen(
        [sys.executable, "-c", _SLOWLY_READY], stderr=subprocess.PIPE, text=True
    )
    assert sandbox.stderr is not None
    children = Path(f"/proc/{sandbox.pid}/task/{sandbox.pid}/children")
    while not (found := children.read_text().split()):
        time.sleep(0.001)
    os.kill(int(found[0]), signal.SIGSTOP)
    line = sandbox.stderr.readline()
    assert line.startswith(f"closlab: waiting for the first process of the run: process {found[0]}")
    os.kill(int(found[0]), signal.SIGCONT)
    assert sandbox.wait(LONG_S) == 5


@pytest.mark.slow
def test_one_that_was_told_to_end_and_does_not_is_ended_and_says_where_it_was() -> None:
    sandbox = start(
        "from lab.engines.mininet import sandbox; sandbox._ENDS_WITHIN_S = 0.2\n"
        "    import time\n"
        "    try: print('up', flush=True); time.sleep(600)\n"
        "    except KeyboardInterrupt: time.sleep(600)"
    )
    first = first_of(sandbox)
    os.kill(first, signal.SIGTERM)
    _, err = sandbox.communicate(timeout=LONG_S)
    assert sandbox.returncode == 70
    assert "closlab: the run was told to end, and did not: it is ended as it stands, at" in err
    assert "Current thread" in err


def in_namespace(namespace: Path) -> list[str]:
    """Every process whose network namespace is the given one."""
    members = []
    for process in Path("/proc").glob("[0-9]*"):
        try:
            if (process / "ns" / "net").readlink() == namespace:
                members.append(process.name)
        except OSError:
            continue
    return members


def test_where_namespaces_are_forbidden_it_says_what_to_do() -> None:
    """Inside a user namespace in which an ordinary user may make no other."""
    program = (
        "from lab.engines.mininet.sandbox import run_in_sandbox\n"
        "from lab.errors import SandboxError\n"
        "try: run_in_sandbox(lambda: 0, print)\n"
        "except SandboxError as error: error.show()"
    )
    done = subprocess.run(
        [
            *("unshare", "--user", "--map-user=1000", "--keep-caps", "sh", "-c"),
            "echo 0 > /proc/sys/user/max_user_namespaces && "
            'exec setpriv --ambient-caps=-all --inh-caps=-all "$0" -c "$1"',
            *(sys.executable, program),
        ],
        capture_output=True,
        text=True,
        check=False,
    )
    assert "does not let you make the private namespaces" in done.stderr
    assert "sudo sysctl" in done.stderr
    assert "Traceback" not in done.stderr
