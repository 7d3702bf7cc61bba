"""``closlab watch``: a lab that runs, in the browser."""

from __future__ import annotations

from lab.commands.options import GnmiPort, PagePort, Running
from lab.engines.mininet import running
from views.live.attend import attend
from views.live.server import require


def command(lab: Running = None, port: PagePort = 0, gnmi: GnmiPort = None) -> None:
    """Watch a lab that runs on Mininet in the browser, from a second terminal, until Ctrl-C."""
    require()
    attend(running.find(lab), port, gnmi)
