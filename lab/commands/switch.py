"""``closlab switch``: our switch (`switch/`)."""

from __future__ import annotations

from switch import cli


def main(arguments: list[str]) -> int:
    """Run one switch, with simple_switch_grpc's flags."""
    return cli.main(arguments)
