"""The same plans on the real BMv2, where it is at hand."""

import asyncio
import shutil
import socket
import subprocess
from pathlib import Path

import pytest

from controller import Settings, Target, switch_plans
from controller.client import connected, reconcile
from controller.settings import HopTelemetry
from params.access import Rule
from params.load_balancing import LoadBalancing, Policy
from tests.controller.conftest import asynchronous
from tests.waiting import LONG_S
from topologies import leaf_spine

BMV2 = shutil.which("simple_switch_grpc")

# A microsecond of a fabric slowed down a thousand times; clones have one queue there.
SETTINGS = Settings(
    tick_ns=1.0,
    control_queue=0,
    lb=LoadBalancing(policy=Policy.CONGA),
    telemetry=HopTelemetry(share=0.5, drop_share=0.5, report_port=1),
    tenants={"h1": 1, "h2": 1},
    rules=(Rule(allow=False, dst_port=9),),
)


def _free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as probe:
        return int(probe.getsockname()[1])


@pytest.mark.reference
@asynchronous
async def test_bmv2_takes_every_plan_and_gives_it_back(program: tuple[Path, Path]) -> None:
    assert BMV2 is not None
    fabric = leaf_spine(2, 2, 1)
    for node in fabric.switches:
        port = _free_port()
        arguments = ["--no-p4", "--device-id", "1", "--thrift-port", str(_free_port()), "--"]
        arguments += ["--grpc-server-addr", f"127.0.0.1:{port}", "--priority-queues", "8"]
        process = subprocess.Popen(
            [BMV2, *arguments], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )
        try:
            await _listens(port)
            plan = switch_plans(fabric, SETTINGS)[node.name]
            async with connected(Target(node.name, f"127.0.0.1:{port}", 1, *program)) as switch:
                assert len(await reconcile(switch, plan)) > 50
                assert len(await reconcile(switch, plan)) == 0
        finally:
            process.terminate()
            process.wait()


async def _listens(port: int) -> None:
    async with asyncio.timeout(LONG_S):
        while True:
            try:
                _, writer = await asyncio.open_connection("127.0.0.1", port)
            except OSError:
                await asyncio.sleep(0.05)
            else:
                writer.close()
                return
