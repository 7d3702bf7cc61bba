"""Interfaces in switches' rooms have the carriers of the front ports, whatever the kernel tells."""

import subprocess
import sys
from pathlib import Path

import pytest

from tests.veths import alone

ROOT = Path(__file__).parents[2]

# One that waits as if the machine were slow, while the kernel has thousands of things to tell.
STORM = """
import json
import subprocess
import threading
import time
from lab.engines.mininet import carriers
from tests.waiting import LONG_S
from topologies.ip import run_ip, turn

def up():
    told = json.loads(subprocess.run(["ip", "-j", "link"], capture_output=True).stdout)
    return {each["ifname"] for each in told if "UP" in each["flags"]}

def eventually(wanted):
    until = time.monotonic() + LONG_S
    while up() & {"room1", "room2"} != wanted:
        assert time.monotonic() < until, up()
        time.sleep(0.01)

run_ip(
    line
    for name in ("front1", "front2", "room1", "room2")
    for line in (
        f"link add {name} type veth peer name {name}-end",
        f"link set {name} up",
        f"link set {name}-end up",
    )
)
waits, go_on = threading.Event(), threading.Event()

def slowly(name, *, is_up):
    waits.set()
    go_on.wait()
    turn(name, is_up=is_up)

carriers.turn = slowly
run_ip(["link set front2-end down"])  # before anybody looks
go_on.set()
following = carriers.Carriers({"front1": "room1", "front2": "room2"})
following.start()
eventually({"room1"})
go_on.clear()
waits.clear()
run_ip(["link set front1-end down"])
assert waits.wait(LONG_S)
run_ip(f"link set front1 mtu {1000 + n % 500}" for n in range(3000))
run_ip(["link set front1-end up", "link set front2-end up", "link set front1-end down"])
go_on.set()
eventually({"room2"})
run_ip(["link set front1-end up"])
eventually({"room1", "room2"})
following.stop()
print("followed")
"""


@pytest.mark.mininet
def test_no_storm_of_news_loses_a_carrier() -> None:
    done = subprocess.run(
        [*alone(), sys.executable, "-c", STORM],
        capture_output=True, text=True, check=False, cwd=ROOT,
    )  # fmt: skip
    assert (done.stdout, done.stderr) == ("followed\n", "")
