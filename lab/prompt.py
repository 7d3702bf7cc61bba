"""The ``mininet>`` prompt on a fabric that is up."""

from __future__ import annotations

import sys

from mininet.cli import CLI
from mininet.log import setLogLevel
from mininet.net import Mininet
from rich.console import Console


class LabPrompt(CLI):  # type: ignore[misc]
    """Mininet's own prompt."""

    prompt = "mininet> "


def prompt(network: Mininet, console: Console) -> None:
    """Hand the network to the user until they leave."""
    console.print(
        "\nThe fabric is up. Try  [bold]h1 ping -c 3 h8[/],  [bold]pingall[/],  [bold]net[/],  "
        "[bold]help[/];  [bold]exit[/] takes it down.\n"
        "From a second terminal:  [bold]closlab shell leaf1[/]  and  [bold]closlab enter h1[/]",
        highlight=False,
    )
    setLogLevel("info")
    LabPrompt(network, stdin=sys.stdin)
    setLogLevel("critical")
