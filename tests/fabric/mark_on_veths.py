"""The share of packets a real switch marks, by the depth of the queue: depths and shares as JSON.

To be run in a network namespace of its own:

    unshare -rn python -m tests.fabric.mark_on_veths soft|bmv2

Our own switch has BMv2's command lines, and so takes its place.
"""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from controller import Settings, Target, install, switch_plans
from lab.machine import program, tools
from params.marking import Ecn
from switch.shims import write_shims
from tests.fabric.testbed import ecn_of, ipv4_frame
from tests.veths import run, veth
from tests.waiting import LONG_S, SLOWNESS
from topologies import leaf_spine

KMIN, KMAX, PMAX = 100_000, 400_000, 0.2
FIRST, STEP, DEPTHS = 50_000, 1750, 221
PACKETS = {"soft": 10_000, "bmv2": 300}  # a depth
SIZE = 60
GRPC, THRIFT = 50051, 9090
IN, OUT = 1, 2
CELL = OUT * 8 + 3
_BATCH = 20


def main() -> None:
    """Measure all depths."""
    (kind,) = sys.argv[1:]
    for port in (IN, OUT):
        veth(f"s{port}", f"h{port}")
    run("ip link set lo up")
    with tempfile.TemporaryDirectory() as folder:
        if kind == "soft":
            built = program.build(Path(folder))
            write_shims(Path(folder))
            os.environ["PATH"] = f"{folder}:{os.environ['PATH']}"
        else:
            built = program.build_for_bmv2(Path(folder))
        switch = subprocess.Popen(
            [
                *(tools.BMV2, "--no-p4", "--device-id", "1", "--thrift-port", str(THRIFT)),
                *("-i", f"{IN}@s{IN}", "-i", f"{OUT}@s{OUT}"),
                *tools.notifications_at("tcp://127.0.0.1:10090"),
                *("--", "--grpc-server-addr", f"127.0.0.1:{GRPC}", "--priority-queues", "8"),
            ],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        try:
            _wait_for(GRPC)
            settings = Settings(ecn=Ecn(kmin=KMIN, kmax=KMAX, pmax=PMAX), control_queue=0)
            target = Target("leaf1", f"127.0.0.1:{GRPC}", 1, built.p4info, built.json)
            install([target], switch_plans(leaf_spine(1, 1, 2), settings))
            json.dump(_measure(PACKETS[kind]), sys.stdout)
        finally:
            switch.kill()
            switch.wait()


def _measure(packets: int) -> list[tuple[int, float]]:
    words, environment = tools.bmv2_cli(THRIFT)
    cli = subprocess.Popen(
        words,
        env=environment,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert cli.stdin is not None and cli.stdout is not None
    sender, receiver = (_socket(f"h{port}") for port in (IN, OUT))
    frame = ipv4_frame("10.0.1.1", "10.0.1.2", size=SIZE, ecn=2)
    shares = []
    for step in range(DEPTHS):
        depth = FIRST + STEP * step
        # The queue is made to hold all but the packet that passes.
        cli.stdin.write(f"register_write buffer_out_used {CELL} {depth - SIZE}\n")
        cli.stdin.write(f"register_read buffer_out_used {CELL}\n")
        cli.stdin.flush()
        while f"]= {depth - SIZE}" not in cli.stdout.readline():
            pass
        marked = 0
        for _ in range(packets // _BATCH):
            for _ in range(_BATCH):
                sender.send(frame)
            marked += sum(ecn_of(receiver.recv(2048)) == 3 for _ in range(_BATCH))
        shares.append((depth, marked / packets))
    cli.stdin.close()
    cli.wait()
    return shares


def _socket(interface: str) -> socket.socket:
    made = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(0x0800))
    made.bind((interface, 0))
    made.settimeout(10 * SLOWNESS)
    return made


def _wait_for(port: int) -> None:
    deadline = time.monotonic() + LONG_S
    while True:
        try:
            socket.create_connection(("127.0.0.1", port), timeout=1).close()
        except OSError:
            if time.monotonic() > deadline:
                raise
            time.sleep(0.05)
        else:
            return


if __name__ == "__main__":
    main()
