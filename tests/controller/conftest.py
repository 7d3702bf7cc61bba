"""Real switches behind real P4Runtime servers, with ports in memory."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from functools import wraps
from pathlib import Path
from typing import Any

import pytest
from google.protobuf import text_format

from compiler import compile_program
from controller import Target, Tls
from switch import host as switch_host
from switch.host import Host, SwitchSettings
from topologies import Fabric

CPU_PORT = 510
FABRIC = Path(__file__).parents[2] / "p4src" / "fabric.p4"


def asynchronous(test: Callable[..., Coroutine[Any, Any, None]]) -> Callable[..., None]:
    """A test that is a coroutine."""

    @wraps(test)
    def run(*args: Any, **kwargs: Any) -> None:
        asyncio.run(asyncio.wait_for(test(*args, **kwargs), 240))

    return run


@pytest.fixture(scope="session")
def program(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """The fabric program's P4Info and JSON."""
    return program_in(tmp_path_factory.mktemp("program"))


def program_in(folder: Path) -> tuple[Path, Path]:
    """The same, written into a folder."""
    compiled = compile_program(FABRIC)
    p4info, source = folder / "fabric.p4info.txtpb", folder / "fabric.json"
    p4info.write_text(text_format.MessageToString(compiled.p4info))
    source.write_text(compiled.json_text)
    return p4info, source


def ports_of(host: Host, fabric: Fabric) -> None:
    """Give each switch a port in memory for each of its cables."""
    for node in fabric.switches:
        for port in fabric.ports(node):
            host.devices[node.name].plane.add_port(port)


@asynccontextmanager
async def switches(
    fabric: Fabric, addresses: dict[str, str] | None = None, tls: switch_host.Tls | None = None
) -> AsyncIterator[tuple[Host, dict[str, str]]]:
    """Run a fabric's switches; yields them and their addresses."""
    wanted = addresses or {}
    host = Host(
        [
            SwitchSettings(
                node.name, number, wanted.get(node.name, "127.0.0.1:0"), cpu_port=CPU_PORT, tls=tls
            )
            for number, node in enumerate(fabric.switches, 1)
        ]
    )
    await host.start()
    try:
        ports_of(host, fabric)
        yield host, {n.name: f"127.0.0.1:{host.grpc_port(n.name)}" for n in fabric.switches}
    finally:
        await host.stop()


def targets_of(
    fabric: Fabric, addresses: dict[str, str], program: tuple[Path, Path], tls: Tls | None = None
) -> list[Target]:
    """The switches as a controller sees them."""
    return [
        Target(node.name, addresses[node.name], number, *program, tls=tls)
        for number, node in enumerate(fabric.switches, 1)
    ]
