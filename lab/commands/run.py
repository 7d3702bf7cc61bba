"""``closlab run``: its words; what they ask for is done in `execution.py`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from lab.commands.options import (
    P4,
    Changes,
    Dilation,
    GnmiPort,
    Jobs,
    Json,
    Name,
    Out,
    PagePort,
    Seed,
)


def command(
    scenario: Name,
    changes: Changes = None,
    seed: Seed = None,
    out: Out = None,
    engine: Annotated[str, typer.Option(help="mininet or sim.")] = "mininet",
    switch: Annotated[str, typer.Option(help="soft (ours) or bmv2 (mininet).")] = "soft",
    dilation: Dilation = None,
    pcap: Annotated[bool, typer.Option("--pcap", help="Keep what crosses each link.")] = False,
    pcap_link: Annotated[
        list[str] | None, typer.Option(metavar="LINK", help="Keep what crosses one.")
    ] = None,
    p4: P4 = None,
    control: Annotated[
        str | None, typer.Option(metavar="KIND", help="p4runtime, or bgp between the switches.")
    ] = None,
    tls: Annotated[
        bool,
        typer.Option("--tls", help="Let controller and switches prove who they are (mininet)."),
    ] = False,
    prompt: Annotated[
        bool, typer.Option("--cli", help="Stay at the mininet> prompt instead of measuring.")
    ] = False,
    live: Annotated[
        bool, typer.Option("--live", help="Serve a page on this machine that shows it meanwhile.")
    ] = False,
    pace: Annotated[
        str | None,
        typer.Option(
            metavar="TIME/s",
            help="With --live: how much of the simulator's time passes in a second, such as "
            "100us/s; 0: as much as it can.",
        ),
    ] = None,
    port: PagePort = 0,
    gnmi: GnmiPort = None,
    reports: Annotated[
        str | None, typer.Option(metavar="KIND", help="Keep telemetry reports: csv or parquet.")
    ] = None,
    checkpoint: Annotated[
        str | None,
        typer.Option(
            metavar="TIME",
            help="Keep in DIR every so often (10min) how far it is: the same command goes on from "
            "there (sim).",
        ),
    ] = None,
    accuracy: Annotated[
        str,
        typer.Option(
            metavar="HOW",
            help="exact, or what times may differ by, 1% or 5%, where that is quicker: steps of "
            "jobs that go as those before are left out, and told (sim).",
        ),
    ] = "exact",
    machines: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Share the fabric out among the machines that FILE names (mininet).",
        ),
    ] = None,
    jobs: Jobs = None,
    is_json: Json = False,
) -> None:
    """Run a scenario. Ends with 0; 1: not everything arrived; 3: do not trust this run; 4: lossless
    classes lost for want of headroom that the scenario has less of than links need.
    """
    from lab.commands.execution import execute, page_of  # not for a shell that asks for words

    links = ["all"] if pcap else pcap_link or []
    execute(
        scenario,
        (
            *(changes or ()),
            *([f"measures.pcap=[{','.join(links)}]"] if links else []),
            *([f"control.kind={control}"] if control else []),
        ),
        seed,
        out,
        engine=engine,
        switch=switch,
        prompt=prompt,
        is_json=is_json,
        dilation=dilation,
        p4=p4,
        reports=reports,
        tls=tls,
        jobs=jobs,
        checkpoint=checkpoint,
        accuracy=accuracy,
        machines=machines,
        page=page_of(engine, live, pace, port, gnmi),
    )
