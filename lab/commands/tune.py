"""``closlab tune``: a scenario's keys as levers, in the browser."""

from __future__ import annotations

import sys

from rich.console import Console

from lab.commands.options import Changes, Name, PagePort
from lab.machine.scratch import scratch
from lab.progress import Stages
from views.live import server
from views.live.hub import recorded
from views.live.kept import scene_of, snapshots
from views.live.tuning import Tuning


def command(scenario: Name, changes: Changes = None, port: PagePort = 0) -> None:
    """Turn a scenario's keys in the browser, and see at once what that does. Ends with Ctrl-C."""
    server.require()
    with scratch() as space:
        tuning = Tuning(scenario, tuple(changes or ()), space)
        with Stages(Console(stderr=True))("Simulating it as it is"):
            run = tuning.begin()
        hub = recorded(scene_of(run), snapshots(run))
        with server.serving(hub, port, tuner=tuning) as address:
            print(f"{run.result.scenario.name}, to be tuned:  {address}", file=sys.stderr)
            print("Ctrl-C ends it.", file=sys.stderr)
            server.wait()
