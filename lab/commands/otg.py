"""``closlab otg``: a traffic generator, by the Open Traffic Generator's API."""

from __future__ import annotations

import importlib.util
from typing import Annotated

import typer

from lab.commands.options import Changes, Dilation
from lab.errors import LabError, MissingTool

_NEEDS = ("snappi", "starlette", "uvicorn")
_MIN_GBPS, _MAX_GBPS = 0.001, 1000


def command(
    scenario: Annotated[
        str | None, typer.Argument(help="Whose hosts are the tester's ports; h1 is one.")
    ] = None,
    changes: Changes = None,
    wire: Annotated[
        str | None, typer.Option(metavar="A,B", help="No fabric: ports A and B, and a cable.")
    ] = None,
    gbps: Annotated[float, typer.Option(help="Of that cable.")] = 1,
    dilation: Dilation = None,
    switch: Annotated[str, typer.Option(help="soft or bmv2.")] = "soft",
    address: Annotated[str, typer.Option(help="Where to answer.")] = "127.0.0.1",
    http: Annotated[
        int, typer.Option(min=0, max=65535, help="Its port; 0: any that is free.")
    ] = 8443,
    grpc: Annotated[
        int, typer.Option(min=0, max=65535, help="That of gRPC; 0: any that is free.")
    ] = 40051,
    tls: Annotated[bool, typer.Option("--tls", help="HTTPS, by a certificate of its own.")] = False,
    forgotten: Annotated[
        float, typer.Option(min=0, help="Seconds without a request that end flows; 0: none.")
    ] = 300,
) -> None:
    """Be a tester: scripts written for snappi send, capture and count at a scenario's hosts.

    Speaks OTG by HTTP and gRPC until it is interrupted, and takes everything down.
    """
    if missing := [name for name in _NEEDS if importlib.util.find_spec(name) is None]:
        raise MissingTool(
            f"the package {missing[0]} is not installed",
            "The launcher brings it (./closlab otg); in an environment of your own:  "
            "pip install 'closlab[otg]'",
        )
    from doors.tester.server import Doors, serve
    from doors.tester.testbed import scenario_up, wire_up
    from lab.machine import tools
    from lab.scenario import catalogue

    if (scenario is None) == (wire is None):
        raise LabError(
            "a tester's ports are either a scenario's hosts or the ends of a cable",
            "Such as:  closlab otg incast, or  closlab otg --wire p1,p2",
        )
    tools.require_emulation()
    tools.require_compiler()
    doors = Doors(address, http, grpc, tls, forgotten)
    if scenario is not None:
        serve(scenario_up(catalogue.load(scenario, tuple(changes or ())), switch, dilation), doors)
        return
    assert wire is not None
    if changes or dilation:
        raise LabError("--set and --dilation are for a scenario's fabric", "A cable has --gbps.")
    names = [name.strip() for name in wire.split(",")]
    if len(names) != 2 or not all(names) or names[0] == names[1]:
        raise LabError(f"--wire: '{wire[:80]}' does not name two ports", "Such as p1,p2")
    if not _MIN_GBPS <= gbps <= _MAX_GBPS:
        raise LabError(f"--gbps is from {_MIN_GBPS:g} to {_MAX_GBPS:,}")
    serve(wire_up((names[0], names[1]), round(gbps * 1e9)), doors)
